"""Verification: checks which files exist when a store is opened, and all content on demand."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import InvalidInput, StoreError
from streaming_moments.statistics.base import Statistics, Totals
from streaming_moments.statistics.row_block import RowBlock
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.files.sealed import unseal
from streaming_moments.storage.lazy_libraries import pc
from streaming_moments.storage.log.commit_log import CommitLog
from streaming_moments.storage.log.commits import Commit, Lineage, ModelReference, SegmentReference
from streaming_moments.storage.log.covering import (
    Part,
    Summed,
    added,
    covered,
    parts_of,
    reference_of,
    segments_in,
    sums_among,
    without_whole,
)
from streaming_moments.storage.log.format import read_format
from streaming_moments.storage.log.layout import (
    MODELS,
    SEGMENTS,
    SHARDS,
    SegmentLayout,
    model_folder,
    segment_folder,
    vocabulary_file,
)
from streaming_moments.storage.log.ledger import Ledger, read_ledger, tables_of_sums
from streaming_moments.storage.log.manifests import (
    MANIFEST,
    FileRecord,
    files_from_json,
    misfits,
    problems_with_files,
    read_manifests,
    segment_manifests,
)
from streaming_moments.storage.segments.blocks import (
    read_stored_blocks,
    read_totals,
    require_apart,
    sum_block,
)
from streaming_moments.storage.segments.foundations import read_foundation, read_vocabulary
from streaming_moments.storage.segments.models import model_files

_LISTINGS = 8  # at most this many folders are listed at the same time


def require_whole(folder: Folder, commit: Commit, known: Commit | None = None) -> None:
    """Raise StoreError for a version with a file that is missing, unlisted or of another size.

    Reads manifests, and lists the folder of each segment and the folder of all models. Reads no
    array. The basis is not checked here, but when it is read. Files that the intact version `known`
    has, too, are skipped. If a sum of segments is stored, it is checked instead of these segments.
    Only if the sum is damaged, the segments are checked. `verify` checks both.
    """
    tried = [commit.sums] if commit.sums else []
    if any(one.whole for one in commit.sums):
        tried.append(without_whole(commit.sums))
    for sums in tried:
        try:
            _require_whole(folder, commit, covered(commit.segments, sums), known)
        except StoreError:
            continue
        return
    _require_whole(folder, commit, commit.segments, known)


def _require_whole(
    folder: Folder, commit: Commit, parts: Sequence[Part], known: Commit | None
) -> None:
    before = _manifests_of(known, parts_of(known)) if known is not None else {}
    new = dict(_manifests_of(commit, parts).items() - before.items())
    records = {
        name: files_from_json(content.get("files"), f"{folder.url}/{name}/{MANIFEST}")
        for name, content in zip(new, read_manifests(folder, new), strict=True)
    }
    _require_files(folder, records)
    seen = set() if known is None else set(_vocabularies(known.lineage))
    for fingerprint in _vocabularies(commit.lineage):
        if fingerprint not in seen:
            # verify the checksum of the vocabulary's file, because no manifest lists its size
            words = vocabulary_file(fingerprint)
            unseal(folder.read(words), f"{folder.url}/{words}")


def _vocabularies(lineage: Lineage) -> list[str]:
    found = [lineage.vocabulary, *(era.vocabulary for era in lineage.eras)]
    return [fingerprint for fingerprint in found if fingerprint]


def _manifests_of(commit: Commit, parts: Sequence[Part]) -> dict[str, str]:
    """Return the SHA-256 of the manifest of each segment, sum and model of a commit, by folder."""
    held = [reference_of(part) for part in parts]
    segments = {segment_folder(one.id): one.manifest for one in held}
    models = {model_folder(name, part.id): part.manifest for name, part in commit.models.items()}
    return {**segments, **models}


def _require_files(folder: Folder, records: Mapping[str, Mapping[str, FileRecord]]) -> None:
    """Raise StoreError if a folder of a segment or model lacks files, or has others."""
    segments = [name for name in records if name.startswith(f"{SEGMENTS}/")]
    with ThreadPoolExecutor(_LISTINGS) as pool:
        listed = dict(zip(segments, pool.map(folder.sizes, segments), strict=True))
    if len(segments) < len(records):
        # list all models at once, which is faster because they are many and small
        for path, size in folder.sizes(MODELS).items():
            name, identity, rest = path.split("/", 2) if path.count("/") > 1 else (path, "", "")
            listed.setdefault(model_folder(name, identity), {})[rest] = size
    for name, files in records.items():
        where = f"{folder.url}/{name}"
        for problem, remedy in misfits(where, listed.get(name, {}), files):
            raise StoreError(f"{problem}; {remedy} (`streaming-moments verify` lists all problems)")


def store_problems(folder: Folder, commit: Commit) -> Iterator[str]:
    """Read every byte of a version and describe its problems, one line each."""
    yield from _history_problems(folder, commit)
    try:
        read_format(folder)
        layouts = _layouts(folder, commit.lineage)
    except (StoreError, InvalidInput) as error:
        # stop, because nothing else can be checked without the foundations
        yield str(error)
        return
    # Check bytes first, because this is fast. Check numbers only in segments whose bytes are
    # undamaged.
    undamaged = []
    for segment in commit.segments:
        damaged = list(_segment_problems(folder, segment, layouts[segment.words]))
        yield from damaged
        undamaged += [] if damaged else [segment]
    replaced = _replaced_sums(folder, commit)
    for one in sums_among(commit.segments, commit.live_sums):
        if one.reference.id in replaced and not folder.names(segment_folder(one.reference.id)):
            continue  # `gc` deletes a sum that a later sum has replaced, so it may be missing
        yield from _sum_problems(folder, one, layouts[one.reference.words])
    for name, model in commit.models.items():
        yield from _model_problems(folder, name, model)
    yield from _ledger_problems(folder, commit)
    for segment in undamaged:
        yield from _number_problems(folder, segment, layouts[segment.words])
    yield from _state_problems(folder, commit, layouts[None])
    try:
        require_apart(folder, commit.segments, layouts[None])
    except (StoreError, InvalidInput) as error:
        yield str(error)


def _layouts(folder: Folder, lineage: Lineage) -> dict[int | None, SegmentLayout]:
    """Return the layout of the segments of each era, by the number of words of its vocabulary.

    An era is the time from one addition of words to the next. The present era has the key None.
    Raises StoreError if a file is damaged, or if a later vocabulary or basis does not begin with an
    earlier one.
    """
    foundation = read_foundation(folder, lineage)
    layouts: dict[int | None, SegmentLayout] = {None: SegmentLayout(foundation, lineage.row_blocks)}
    if not lineage.vocabulary:
        # without a vocabulary, no words can be added, so the present era is the only one
        return layouts
    vocabulary, _ = read_vocabulary(folder, lineage.vocabulary)
    for era in lineage.eras:
        earlier, _ = read_vocabulary(folder, era.vocabulary)
        own = read_foundation(folder, lineage, era)
        same = foundation.basis.with_words(era.words, era.vocabulary)
        if own.basis != same or earlier.terms != vocabulary.terms[: era.words]:
            raise StoreError(
                f"the vocabulary of {era.words} words that was used until version {era.version} is "
                f"not the beginning of the present one of {vocabulary.n_words} words; restore the "
                "commit from a copy"
            )
        layouts[era.words] = SegmentLayout(own, lineage.row_blocks)
    return layouts


def _history_problems(folder: Folder, commit: Commit) -> Iterator[str]:
    """Describe the commits up to and including `commit` that are unreadable or out of order."""
    log = CommitLog(folder)
    try:
        # read the latest commit, because only this one lists all versions that have expired
        latest, commits = log.latest(), log.history(commit.version)
    except StoreError as error:
        yield str(error)
        return
    for after, before in itertools.pairwise(commits):
        lacking = [one for one in range(before.version + 1, after.version) if latest.keeps(one)]
        if lacking:
            yield f"commit {lacking[0]} is marked as expired, but no later commit lists it"
        if after.version == before.version + 1 and after.parent != before.transaction:
            yield f"commit {after.version} does not follow commit {before.version}"


def _ledger_problems(folder: Folder, commit: Commit) -> Iterator[str]:
    try:
        ledger = read_ledger(folder, commit.segments, Ledger({}))
    except StoreError as error:
        yield str(error)
        return
    for url in ledger.repeated():
        yield f"shard {url} is counted more than once"
    for url in ledger.overdrawn():
        yield f"shard {url} is subtracted but was not counted"


def _state_problems(folder: Folder, commit: Commit, layout: SegmentLayout) -> Iterator[str]:
    """Describe negative counts in the sum of the segments of a version, one line each."""
    if all(segment.sign > 0 for segment in commit.segments):
        return
    for index in range(layout.row_blocks):
        try:
            sum_block(folder, commit.segments, layout, index).require_non_negative()
        except (StoreError, InvalidInput) as error:
            yield f"row block {index} of version {commit.version}: {error}"


def _model_problems(folder: Folder, name: str, reference: ModelReference) -> Iterator[str]:
    """Describe damage to the files of a model."""
    try:
        files = model_files(folder, name, reference)
    except StoreError as error:
        yield str(error)
        return
    yield from problems_with_files(folder, model_folder(name, reference.id), files)


def _segment_problems(
    folder: Folder, reference: SegmentReference, layout: SegmentLayout
) -> Iterator[str]:
    """Describe damage to the files of a segment, and a manifest that contradicts the commit."""
    try:
        [manifest] = segment_manifests(folder, [reference])
        yield from problems_with_files(folder, segment_folder(reference.id), manifest.files)
    except StoreError as error:
        yield str(error)
        return
    if manifest.dates != reference.dates:
        days = f"{manifest.dates} in its manifest, {reference.dates} in the commit"
        yield f"segment {reference.id}: the days of its documents are {days}"
    if manifest.names != layout.foundation.names():
        yield f"segment {reference.id} has another basis or vocabulary"


def _replaced_sums(folder: Folder, commit: Commit) -> set[str]:
    """Return the ids of stored sums of all days in `commit` that a later version has replaced."""
    wholes = {one.id for one in commit.sums if one.whole}
    try:
        return wholes - {one.id for one in CommitLog(folder).latest().sums} if wholes else wholes
    except StoreError:
        return set()  # ignore the damaged commit, which `_history_problems` reports


def _sum_problems(folder: Folder, one: Summed, layout: SegmentLayout) -> Iterator[str]:
    """Describe damage to a sum of segments, or wrong numbers in it.

    The version stays readable in spite of such damage, because readers then read the segments
    instead of their sum.
    """
    place = segment_folder(one.reference.id)
    beside = (
        f"; {folder.url}/{place} is a sum of segments, so the segments themselves are read "
        "instead. Delete this folder; the next update then writes a new sum"
    )
    own = [replace(one.reference, sign=1)]
    parts = [added(part) for part in one.of]
    try:
        [manifest] = segment_manifests(folder, own)
        damaged = list(problems_with_files(folder, place, manifest.files))
        yield from (f"{problem}{beside}" for problem in damaged)
        if not damaged and not all(
            _are_equal(*(sum_block(folder, of, layout, index) for of in (own, parts)))
            for index in range(layout.row_blocks)
        ):
            yield f"segment {one.reference.id} is not the sum of its segments{beside}"
        [tables] = tables_of_sums(folder, [one])
        if not damaged and SHARDS in manifest.files and not _has_records(folder, one, tables):
            yield f"segment {one.reference.id} has records that differ from its segments{beside}"
    except (StoreError, InvalidInput) as error:
        yield f"{error}{beside}"


def _has_records(folder: Folder, one: Summed, tables: Mapping[str, Any] | None) -> bool:
    """Whether a stored sum lists the same shards as the segments that it adds up."""
    own = read_ledger(folder, segments_in(one), Ledger({})).tables
    return tables is not None and all(tables[name].equals(own[name]) for name in own)


def _are_equal(one: Statistics, other: Statistics) -> bool:
    """Whether all numbers of two row blocks are equal."""
    pairs = [(one.arrays(), other.arrays()), (one.totals.tables(), other.totals.tables())]
    return all(
        mine.keys() == theirs.keys()
        and all(np.array_equal(mine[name], theirs[name]) for name in mine)
        for mine, theirs in pairs
    )


def _number_problems(
    folder: Folder, reference: SegmentReference, layout: SegmentLayout
) -> Iterator[str]:
    """Describe the arrays of a segment that contradict each other or the totals of the segment."""
    where = f"segment {reference.id}"

    def blocks() -> Iterator[tuple[RowBlock, dict[str, NDArray[np.int64]]]]:
        for index in range(layout.row_blocks):
            _, [arrays] = read_stored_blocks(folder, reference, layout, [index])
            yield layout.block(index), {name: array[0] for name, array in arrays.items()}

    try:
        totals = read_totals(folder, reference, layout)
        for block, problem in layout.foundation.problems(blocks(), totals):
            yield f"{where}{'' if block is None else f', row block {block.index}'}: {problem}"
        yield from _count_problems(folder, reference, totals)
    except (StoreError, InvalidInput) as error:
        yield str(error)


def _count_problems(folder: Folder, reference: SegmentReference, totals: Totals) -> Iterator[str]:
    where = f"segment {reference.id}"
    table = read_ledger(folder, [reference], Ledger({})).tables[reference.id]
    sums = [pc.sum(table[name]).as_py() or 0 for name in ("documents", "tokens")]
    counted = (*sums, table.num_rows)
    promised = (reference.documents, reference.tokens, reference.shards)
    held = (totals.n_documents, totals.n_tokens, reference.shards)
    if not counted == promised == held:
        yield (
            f"{where}: documents, tokens and shards are {counted} in its ledger, {promised} in "
            f"the commit and {held[:2]} in its lengths"
        )
