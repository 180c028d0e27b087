"""Changes: what makes a store, and what makes the next commit of the latest one."""

from __future__ import annotations

from streaming_moments.basis import Basis
from streaming_moments.errors import BoundExceeded, ForeignStatistics, StoreError, short
from streaming_moments.statistics import LARGEST_TOTAL
from streaming_moments.storage.commits import CommitConflict, CommitLog
from streaming_moments.storage.folders import Folder
from streaming_moments.storage.format import StoreFormat, write_format
from streaming_moments.storage.foundations import write_basis, write_vocabulary
from streaming_moments.storage.layout import require_name
from streaming_moments.storage.ledger import Ledger, ShardsAlreadyCounted
from streaming_moments.storage.segments import Segment
from streaming_moments.storage.tokens import TokenPolicy
from streaming_moments.storage.versions import Commit, ModelReference
from streaming_moments.vocabulary import Vocabulary


def create_files(
    folder: Folder,
    store_format: StoreFormat,
    commit: Commit,
    vocabulary: Vocabulary,
    policy: TokenPolicy | None,
    basis: Basis,
) -> None:
    """Write the files of an empty store, its first commit last.

    What a creation that was cut off has left is written again.

    Raises
    ------
    StoreError
        There is a store already, or the storage cannot be written or refuses no second writer.
    """
    require_absent(folder)
    log = CommitLog(folder, store_format.single_writer)
    log.probe()
    write_format(folder, store_format)
    write_vocabulary(folder, vocabulary, policy)
    write_basis(folder, basis)
    folder.sync("")
    try:
        log.put(commit)
    except CommitConflict as error:
        raise StoreError(_exists(folder)) from error


def require_absent(folder: Folder) -> None:
    """Refuse a folder that holds a store, before any work is put into making one.

    Raises
    ------
    StoreError
        There is a store already.
    """
    if CommitLog(folder).latest_version() is not None:
        raise StoreError(_exists(folder))


def appended(
    head: Commit,
    segment: Segment,
    ledger: Ledger,
    message: str,
    skipped: tuple[tuple[str, str], ...],
) -> Commit:
    """The commit that adds a segment.

    Parameters
    ----------
    head : Commit
        The latest commit.
    segment : Segment
        With at least one shard.
    ledger : Ledger
        Of the latest commit.
    message : str
        For the log.
    skipped : tuple of (str, str)
        URLs of shards left out, each with the reason.

    Raises
    ------
    ForeignStatistics
        A segment of another basis.
    ShardsAlreadyCounted
        The ledger holds shards of the segment.
    BoundExceeded
        Sums could pass 2^62.
    """
    if segment.basis != head.lineage.basis:
        raise ForeignStatistics(
            f"the segment is of basis {short(segment.basis)}, the store's latest version of "
            f"{short(head.lineage.basis)}; gather the statistics with the store's basis"
        )
    already = ledger.counted([shard.url for shard in segment.shards])
    if already:
        raise ShardsAlreadyCounted(already)
    bound = sum(part.largest for part in (*head.segments, segment.reference))
    if bound >= LARGEST_TOTAL:
        raise BoundExceeded(
            f"a sum of the statistics may reach {bound:.3g}, above 2^62; cut the documents into "
            "shorter passages (--passage-words), or open another store"
        )
    segments = (*head.segments, segment.reference)
    return head.successor("append", message, segments=segments, skipped=skipped)


def model_added(head: Commit, name: str, reference: ModelReference, message: str) -> Commit:
    """The commit that adds a model; errors as `require_free`."""
    require_free(head, name)
    return head.successor("model", message, models={**head.models, name: reference})


def require_free(commit: Commit, name: str) -> None:
    """Refuse a model name that is no plain file name, or is taken.

    Raises
    ------
    InvalidInput
        A name with other characters than A-Z a-z 0-9 . _ -.
    StoreError
        There is a model of that name.
    """
    require_name(name)
    if name in commit.models:
        raise StoreError(f"there is a model {name!r} already; models never change, take a new name")


def _exists(folder: Folder) -> str:
    return (
        f"there is a store at {folder.url} already; open it with `streaming-moments update` or "
        "MomentStore.open, or create the new one at another URL"
    )
