"""MomentStore: statistics of a growing collection of documents at a URL, with versions."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from streaming_moments.errors import InvalidInput, StoreError
from streaming_moments.models.base import Model
from streaming_moments.statistics.base import Foundation, Statistics
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.counts.foundation import CountsFoundation
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.dates import DateRange, DateSource
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.log.commit_log import CommitLog
from streaming_moments.storage.log.commits import Commit, Lineage
from streaming_moments.storage.log.covering import parts_of
from streaming_moments.storage.log.format import StoreFormat, raise_writer, read_format
from streaming_moments.storage.log.layout import row_blocks_for
from streaming_moments.storage.log.ledger import Ledger, ShardRecord, read_ledger, table_of
from streaming_moments.storage.log.locks import fenced
from streaming_moments.storage.log.uncommitted import Uncommitted
from streaming_moments.storage.segments.blocks import block_of, require_apart
from streaming_moments.storage.segments.foundations import (
    read_foundation,
    require_matching,
    write_foundation,
    write_vocabulary,
)
from streaming_moments.storage.segments.models import write_model
from streaming_moments.storage.segments.segments import Segment, SegmentWriter
from streaming_moments.storage.shards import ShardFormat
from streaming_moments.storage.store.changes import Recount, recounted
from streaming_moments.storage.store.creation import create_files
from streaming_moments.storage.store.garbage import require_fresh
from streaming_moments.storage.store.model_changes import (
    Succession,
    TagMove,
    model_added,
    require_free,
)
from streaming_moments.storage.store.snapshot import Snapshot
from streaming_moments.storage.store.verification import require_whole


@dataclass(frozen=True)
class MomentStore(Snapshot):
    """A store at one immutable version. Make one with `create` or `open`.

    Methods that write return the store at the new version.

    Parameters
    ----------
    folder, format, commit, foundation
        As for `Snapshot`.
    fence : int
        Fence of the lock under which commits are made; 0 without a lock.

    Examples
    --------
    >>> import numpy as np
    >>> from streaming_moments.statistics.counts.batch import CountBatch
    >>> from streaming_moments.statistics.counts.statistics import MomentStatistics
    >>> vocabulary = Vocabulary(("law", "sea", "ship"), core=3)
    >>> basis = Basis(np.eye(3, 2, dtype=np.int8), 3, vocabulary.fingerprint)
    >>> store = MomentStore.create("memory://example", vocabulary, None, basis, ShardFormat())
    >>> batch = CountBatch.from_csr([[2, 1, 0], [0, 1, 1]], vocabulary.fingerprint)
    >>> shard = ShardRecord("s3://corpus/1.txt", 20, "etag:d41d", documents=2, tokens=5)
    >>> store = store.append_statistics(MomentStatistics.of(batch, basis), [shard], "May")
    >>> store.version, store.load().pair_counts.tolist()
    (1, [[2, 2, 0], [2, 0, 1], [0, 1, 0]])
    """

    fence: int = 0

    def __repr__(self) -> str:
        return f"MomentStore({self.url!r}, version {self.version}, {self.kind})"

    @classmethod
    def create(
        cls,
        url: str,
        vocabulary: Vocabulary,
        policy: TokenPolicy | None,
        basis: Basis,
        form: ShardFormat,
        codocuments: bool = True,
        message: str = "",
        storage_options: Mapping[str, Any] | None = None,
        single_writer: bool = False,
        dates: DateSource = DateSource(),
        pilot: Mapping[str, Any] | None = None,
        halves: bool = True,
    ) -> MomentStore:
        """Create an empty store of documents; its first commit makes it visible.

        Parameters
        ----------
        url : str
            Any fsspec URL, or a local path.
        vocabulary : Vocabulary
            Words to count.
        policy : TokenPolicy or None
            Policy that cuts texts into tokens; None if shards hold token ids.
        basis : Basis
            Matrix Q that projects the words of the vocabulary to a few columns.
        form : ShardFormat
            Format of the shards.
        codocuments : bool
            Whether to store in how many documents two words occur together. The coherence of topics
            needs these counts.
        message : str
            Message for the log.
        storage_options : mapping, optional
            Options of the file system; never stored.
        single_writer : bool
            Promise of the caller that nobody else writes to the store. It is needed on storage that
            cannot exclude a second writer.
        dates : DateSource
            Where the dates of documents come from.
        pilot : mapping, optional
            Description of how vocabulary and basis were made, which can be stored as JSON.
        halves : bool
            Whether to store the pair counts of one half of the documents separately. Error bars and
            the held-out likelihood need them.

        Raises
        ------
        StoreError
            There is already a store, the storage cannot be written, or it cannot exclude a second
            writer. The error says what to do.
        ForeignStatistics
            Vocabulary, policy and basis do not belong together.
        """
        require_matching(vocabulary, policy, basis)
        foundation = CountsFoundation(basis, codocuments, halves)
        lineage = Lineage(
            vocabulary.fingerprint,
            basis.fingerprint,
            row_blocks_for(foundation),
            codocuments,
            form.to_json(),
            None if dates == DateSource() else dates.to_json(),
            pilot,
            halves=halves,
            halves_by_content=foundation.halves_by_content,
        )
        words = vocabulary, policy
        return cls._founded(
            url, foundation, lineage, words, message, storage_options, single_writer
        )

    @classmethod
    def create_on(
        cls,
        url: str,
        foundation: Foundation,
        form: Mapping[str, Any],
        message: str = "",
        storage_options: Mapping[str, Any] | None = None,
        single_writer: bool = False,
        dates: DateSource = DateSource(),
        pilot: Mapping[str, Any] | None = None,
    ) -> MomentStore:
        """Create an empty store of any kind of statistics.

        `form` describes how shards are read, and can be stored as JSON. Other arguments and the
        errors are those of `create`.
        """
        lineage = Lineage(
            "",
            foundation.fingerprint,
            row_blocks_for(foundation),
            False,
            form,
            None if dates == DateSource() else dates.to_json(),
            pilot,
            kind=foundation.kind,
            halves_by_content=foundation.halves_by_content,
        )
        return cls._founded(url, foundation, lineage, None, message, storage_options, single_writer)

    @classmethod
    def open(
        cls,
        url: str,
        version: int | None = None,
        storage_options: Mapping[str, Any] | None = None,
        whole: bool = True,
    ) -> MomentStore:
        """Open a store at a version: -1 is the latest (the default), -2 the version before it.

        Unless `whole` is False, checks that every file of the version exists and has the recorded
        size. The hash of a file is checked when the file is read; `verify` checks all hashes.

        Raises
        ------
        StoreError
            There is no store or no such version, or a file is missing, damaged or unlisted.
        """
        folder = Folder.at(url, storage_options)
        form = read_format(folder)
        log = CommitLog(folder, form.single_writer)
        commit = log.latest() if version is None else log.existing(version)
        if whole:
            require_whole(folder, commit)
        return cls(folder, form, commit, read_foundation(folder, commit.lineage))

    def writable(self) -> MomentStore:
        """Return the store if this version of the package may write it. Call this before long work.

        Raises
        ------
        FormatError
            Only a later version of the package may write the store. The error names that version.
        """
        self.format.require_writable(self.url)
        return self

    def new_segment(self) -> SegmentWriter:
        """Return a writer for a new segment, which can be sent to workers that write row blocks."""
        return SegmentWriter(self.folder, uuid.uuid4().hex, self.layout, self.folder.clock())

    def append(
        self,
        segment: Segment | None,
        message: str = "",
        skipped: Sequence[tuple[str, str]] = (),
        unique: bool = False,
        again: bool = False,
    ) -> MomentStore:
        """Commit a sealed segment on top of the latest version.

        Parameters
        ----------
        segment : Segment or None
            None, or a segment without shards, commits only the skipped shards.
        message : str
            Message for the log.
        skipped : sequence of (str, str)
            URL of each skipped shard, and the reason.
        unique : bool
            Whether to refuse shards whose content is counted under other names.
        again : bool
            Whether shards that were forgotten or purged may be counted again.

        Raises
        ------
        ShardsAlreadyCounted
            Shards of the segment are counted already, perhaps because another writer has just
            counted them. Write a segment of the other shards.
        CopiesCounted
            With `unique`, the content of a shard is counted under another name.
        ShardsForgotten
            Shards were forgotten or purged, perhaps by another writer meanwhile.
        ForeignStatistics
            The segment was counted with another basis.
        BoundExceeded
            Sums of the statistics could reach 2^62.
        CreationUnknown
            It is unknown whether the commit was written.
        StoreError
            Nothing was written. The error says why.
        PiecesOverlap
            Pieces of one sequence overlap. The error names them, and the shards of the segment.
        InvalidInput
            There are neither shards nor skipped shards. Or a shard lies within a counted shard, or
            contains one.
        """
        left_out = tuple(skipped)
        if segment is None or not segment.shards:
            if not left_out:
                raise InvalidInput(
                    "there are neither counted nor skipped shards to commit; give at least one"
                )
            return self.extended(lambda head: head.successor("append", message, skipped=left_out))
        recount = Recount(
            "append", message, (segment,), skipped=left_out, unique=unique, again=again
        )

        def change(head: Commit) -> Commit:
            ledger = read_ledger(self.folder, head.segments, self.ledger(), head.sums)
            successor = recounted(head, recount, ledger)
            require_apart(self.folder, parts_of(successor), self.layout, recount.added)
            return successor

        grown = self.extended(change, recount.written)
        own = {segment.reference.id: table_of(segment.shards)}
        return grown.knowing(Ledger({**self.ledger().tables, **own}))

    def append_statistics(
        self, statistics: Statistics, shards: Sequence[ShardRecord], message: str = ""
    ) -> MomentStore:
        """Write the statistics of all rows of some shards, and commit them.

        Raises the errors of `write_segment` and `append`.
        """
        return self.append(self.write_segment(statistics, shards), message)

    def write_segment(
        self, statistics: Statistics, shards: Sequence[ShardRecord], dates: DateRange | None = None
    ) -> Segment:
        """Write the statistics of all rows of some shards as a segment.

        Raises
        ------
        ForeignStatistics, InvalidInput, StoreError
            The statistics belong to another foundation, or to other shards. Or a file cannot be
            written.
        """
        writer = self.new_segment()
        blocks = (block_of(statistics, writer.layout, i) for i in range(self.row_blocks))
        files = [record for block in blocks for record in writer.write_block(block)]
        return writer.seal(statistics.totals, shards, files, dates)

    def save_model(
        self,
        name: str,
        model: Model,
        message: str = "",
        tag: TagMove | None = None,
        after: Succession | None = None,
    ) -> MomentStore:
        """Store a model under a new name. The model must have been fitted to this version.

        `tag` moves a tag to the model in the same commit. `after` copies the labels of an earlier
        model to the matching topics.

        Raises
        ------
        InvalidInput, StoreError
            The name is invalid or used, or another writer has moved the tag. Or the commit fails
            with an error of `append`.
        """
        require_free(self.commit, name)
        reference, written = write_model(self.folder, name, model, self.version)
        return self.extended(
            lambda head: model_added(head, name, reference, message, tag, after), [written]
        )

    def extended(
        self, change: Callable[[Commit], Commit], written: Sequence[Uncommitted] = ()
    ) -> MomentStore:
        """Commit the result of `change` on the latest version.

        Raises the errors of `append` and `fenced`.

        Parameters
        ----------
        change : callable
            Function that makes the successor of a commit. It is called again if another writer has
            committed meanwhile.
        written : sequence of Uncommitted
            Segments and models that are new in this commit.
        """
        # read the format of the store again, because a later version of the package may have raised
        # it
        read_format(self.folder).require_writable(self.url)

        def whole(head: Commit) -> Commit:
            # Check the written files after the latest commit was read. If `gc` deleted some of them
            # before, this check fails. If `gc` deletes them later, it makes a commit first, so this
            # commit fails.
            require_fresh(self.folder, written)
            try:
                changed = change(head)
            except StoreError:
                # if files are missing, raise an error about them, because it is clearer than the
                # error of `change`
                require_fresh(self.folder, written)
                raise
            kept = (
                (changed.forgotten, head.forgotten),
                (changed.origins, head.origins),
                (_copies_models(changed), _copies_models(head)),
            )
            if any(after and not before for after, before in kept):
                raise_writer(self.folder)
            return changed

        return self._with(self._log.extend(self.commit, fenced(whole, self.fence)))

    @classmethod
    def _founded(
        cls,
        url: str,
        foundation: Foundation,
        lineage: Lineage,
        words: tuple[Vocabulary, TokenPolicy | None] | None,
        message: str,
        storage_options: Mapping[str, Any] | None,
        single_writer: bool,
    ) -> MomentStore:
        folder = Folder.at(url, storage_options)
        store_format = format_of(foundation, lineage, single_writer)

        def write(place: Folder) -> None:
            if words is not None:
                write_vocabulary(place, *words)
            write_foundation(place, foundation)

        commit = Commit.first(lineage, message)
        create_files(folder, store_format, commit, write)
        return cls(folder, store_format, commit, foundation)


def _copies_models(commit: Commit) -> bool:
    return any(one.source is not None for one in commit.models.values())


def format_of(foundation: Foundation, lineage: Lineage, single_writer: bool) -> StoreFormat:
    """Return the oldest format of stores that supports the options of a new store."""
    found = StoreFormat.of(foundation, single_writer)
    dates = lineage.dates
    return found.for_careful_writers() if dates is not None and "zones" in dates else found
