"""Verification: which files there are on every open; on demand every hash and identity."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from streaming_moments.basis import Basis
from streaming_moments.errors import InvalidInput, StoreError
from streaming_moments.lengths import LengthHistogram
from streaming_moments.storage.blocks import read_stored_block, sum_block
from streaming_moments.storage.commits import CommitLog
from streaming_moments.storage.folders import Folder
from streaming_moments.storage.format import read_format
from streaming_moments.storage.foundations import read_basis, read_vocabulary
from streaming_moments.storage.layout import (
    MODELS,
    SEGMENTS,
    SegmentLayout,
    model_folder,
    segment_folder,
    vocabulary_file,
)
from streaming_moments.storage.ledger import Ledger, read_ledger
from streaming_moments.storage.manifests import (
    MANIFEST,
    FileRecord,
    files_from_json,
    misfits,
    problems_with_files,
    read_manifests,
    segment_manifests,
)
from streaming_moments.storage.models import model_files
from streaming_moments.storage.sealed import unseal
from streaming_moments.storage.versions import Commit, Lineage, ModelReference, SegmentReference

_PROBES = 4  # random vectors; an asymmetry escapes one of them with a chance below 2^-32
_SEED = 2018
_LISTINGS = 8  # at the same time


def require_whole(folder: Folder, commit: Commit, known: Commit | None = None) -> None:
    """Refuse a version of which a file is missing, of another size or too much.

    Manifests are read, the folder of each segment and that of all models are listed; no array is
    read. The basis is checked as it is read.

    Parameters
    ----------
    folder : Folder
        The store.
    commit : Commit
        The version.
    known : Commit, optional
        A version that was found whole; what it names is not looked at again.

    Raises
    ------
    StoreError
        Names the first such file and the remedy.
    """
    before = _manifests_of(known) if known is not None else {}
    new = dict(_manifests_of(commit).items() - before.items())
    records = {
        name: files_from_json(content.get("files"), f"{folder.url}/{name}/{MANIFEST}")
        for name, content in zip(new, read_manifests(folder, new), strict=True)
    }
    _require_files(folder, records)
    seen = set() if known is None else set(_vocabularies(known.lineage))
    for fingerprint in _vocabularies(commit.lineage):
        if fingerprint not in seen:
            # no manifest tells its size, only the seal
            words = vocabulary_file(fingerprint)
            unseal(folder.read(words), f"{folder.url}/{words}")


def _vocabularies(lineage: Lineage) -> list[str]:
    return [lineage.vocabulary, *(era.vocabulary for era in lineage.eras)]


def _manifests_of(commit: Commit) -> dict[str, str]:
    """SHA-256 of the manifest of each folder that a commit names."""
    segments = {segment_folder(part.id): part.manifest for part in commit.segments}
    models = {model_folder(name, part.id): part.manifest for name, part in commit.models.items()}
    return {**segments, **models}


def _require_files(folder: Folder, records: Mapping[str, Mapping[str, FileRecord]]) -> None:
    """Refuse folders that do not hold exactly the files of their records."""
    segments = [name for name in records if name.startswith(f"{SEGMENTS}/")]
    with ThreadPoolExecutor(_LISTINGS) as pool:
        listed = dict(zip(segments, pool.map(folder.sizes, segments), strict=True))
    if len(segments) < len(records):
        # models are many and small, so that one listing of all is quicker
        for path, size in folder.sizes(MODELS).items():
            name, identity, rest = path.split("/", 2) if path.count("/") > 1 else (path, "", "")
            listed.setdefault(model_folder(name, identity), {})[rest] = size
    for name, files in records.items():
        where = f"{folder.url}/{name}"
        for problem, remedy in misfits(where, listed.get(name, {}), files):
            raise StoreError(f"{problem}; {remedy} (`streaming-moments verify` lists all problems)")


def store_problems(folder: Folder, commit: Commit) -> Iterator[str]:
    """Problems of a version, one line each: nothing less than every byte of it is read."""
    yield from _history_problems(folder, commit)
    try:
        read_format(folder)
        layouts = _layouts(folder, commit.lineage)
    except (StoreError, InvalidInput) as error:
        # without these, nothing else can be judged
        yield str(error)
        return
    # damaged files first, as that is soon known; numbers are judged only where no byte is wrong
    undamaged = []
    for segment in commit.segments:
        damaged = list(_segment_problems(folder, segment, layouts[segment.words]))
        yield from damaged
        undamaged += [] if damaged else [segment]
    for name, model in commit.models.items():
        yield from _model_problems(folder, name, model)
    yield from _ledger_problems(folder, commit)
    for segment in undamaged:
        yield from _number_problems(folder, segment, layouts[segment.words])
    yield from _state_problems(folder, commit, layouts[None])


def _layouts(folder: Folder, lineage: Lineage) -> dict[int | None, SegmentLayout]:
    """How the segments of each era are cut, by its words; None for the lineage's own.

    Raises
    ------
    StoreError
        A vocabulary or basis is missing or damaged, or one did not grow into the next.
    """
    vocabulary, _ = read_vocabulary(folder, lineage.vocabulary)
    basis = read_basis(folder, lineage.basis)
    bases: dict[int | None, Basis] = {None: basis}
    for era in lineage.eras:
        earlier, _ = read_vocabulary(folder, era.vocabulary)
        bases[era.words] = read_basis(folder, era.basis)
        same = basis.with_words(era.words, era.vocabulary)
        if bases[era.words] != same or earlier.terms != vocabulary.terms[: era.words]:
            raise StoreError(
                f"the vocabulary of {era.words} words that held until version {era.version} did "
                f"not grow into that of {vocabulary.n_words}; restore the commit from a copy"
            )
    return {
        words: SegmentLayout(own, lineage.row_blocks, lineage.codocuments)
        for words, own in bases.items()
    }


def _history_problems(folder: Folder, latest: Commit) -> Iterator[str]:
    """Commits up to a version that cannot be read or do not follow one another."""
    try:
        commits = CommitLog(folder).history(latest.version)
    except StoreError as error:
        yield str(error)
        return
    for commit, before in itertools.pairwise(commits):
        if commit.parent != before.transaction:
            yield f"commit {commit.version} does not follow commit {before.version}"


def _ledger_problems(folder: Folder, commit: Commit) -> Iterator[str]:
    try:
        ledger = read_ledger(folder, commit.segments, Ledger({}))
    except StoreError as error:
        yield str(error)
        return
    for url in ledger.repeated():
        yield f"shard {url} is counted more than once"
    for url in ledger.overdrawn():
        yield f"shard {url} is taken away but was not counted"


def _state_problems(folder: Folder, commit: Commit, layout: SegmentLayout) -> Iterator[str]:
    """Counts below zero in the sum of the segments."""
    if all(segment.sign > 0 for segment in commit.segments):
        return
    for index in range(layout.row_blocks):
        try:
            sum_block(folder, commit.segments, layout, index).require_non_negative()
        except (StoreError, InvalidInput) as error:
            yield f"row block {index} of version {commit.version}: {error}"


def _model_problems(folder: Folder, name: str, reference: ModelReference) -> Iterator[str]:
    """Damage to the files of a model."""
    try:
        files = model_files(folder, name, reference)
    except StoreError as error:
        yield str(error)
        return
    yield from problems_with_files(folder, model_folder(name, reference.id), files)


def _segment_problems(
    folder: Folder, reference: SegmentReference, layout: SegmentLayout
) -> Iterator[str]:
    """Damage to the files of a segment, or files of another store."""
    try:
        [manifest] = segment_manifests(folder, [reference])
        yield from problems_with_files(folder, segment_folder(reference.id), manifest.files)
    except StoreError as error:
        yield str(error)
        return
    if manifest.dates != reference.dates:
        days = f"{manifest.dates} in its manifest, {reference.dates} in the commit"
        yield f"segment {reference.id}: the days of its documents are {days}"
    basis = layout.basis
    if (manifest.basis, manifest.vocabulary) != (basis.fingerprint, basis.vocabulary):
        yield f"segment {reference.id} is of another basis or vocabulary"


def _number_problems(
    folder: Folder, reference: SegmentReference, layout: SegmentLayout
) -> Iterator[str]:
    """Broken identities between the arrays of a segment."""
    where = f"segment {reference.id}"
    try:
        histogram = LengthHistogram.zero()
        sums = _Sums.of(layout.basis)
        for index in range(layout.row_blocks):
            histogram, arrays = read_stored_block(folder, reference, layout, index)
            yield from _block_problems(f"{where}, row block {index}", layout, index, arrays)
            sums.add(layout, index, arrays)
        yield from _sum_problems(where, sums, histogram)
        yield from _count_problems(folder, reference, histogram)
    except (StoreError, InvalidInput) as error:
        yield str(error)


def _block_problems(
    where: str, layout: SegmentLayout, index: int, arrays: dict[str, NDArray[np.int64]]
) -> Iterator[str]:
    block, basis = layout.block(index), layout.basis
    rows, core_rows = block.size(basis.n_words), block.size(basis.core)
    for name, array in arrays.items():
        used = core_rows if name == "codocuments" else rows
        if array[0, used:].any():
            yield f"{where}: the padding of {name} is not zero"
        if name != "triple_sketch" and array.size and array.min() < 0:
            yield f"{where}: {name} has counts below zero"
    words, documents = arrays["word_counts"][0, :rows], arrays["document_frequencies"][0, :rows]
    if (documents > words).any() or ((documents == 0) & (words > 0)).any():
        yield f"{where}: document_frequencies do not fit word_counts"
    absent = words == 0
    for name in ("pair_counts", "triple_sketch"):
        if arrays[name][0, :rows][absent].any():
            yield f"{where}: {name} is not zero for words that never occurred"
    if "codocuments" in arrays:
        own = np.arange(core_rows)
        together = arrays["codocuments"][0, :core_rows]
        if (together[own, own * block.step + block.index] != documents[:core_rows]).any():
            yield f"{where}: the diagonal of codocuments is not document_frequencies"


@dataclass
class _Sums:
    """Sums over the row blocks of one segment from which its identities are checked.

    That P = P' inside the core is checked by r' P q = q' P r for random r and q, so that no core
    times core matrix is held; like the sketch's identity in integers modulo 2^64, hence exact.
    """

    basis: Basis
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    cubes: NDArray[np.int64]
    words: int = 0
    pairs: int = 0
    skew: dict[str, NDArray[np.int64]] = field(default_factory=dict)

    @classmethod
    def of(cls, basis: Basis) -> _Sums:
        rng = np.random.default_rng(_SEED)
        shape, limits = (basis.core, _PROBES), np.iinfo(np.int64)
        left = rng.integers(limits.min, limits.max, shape, dtype=np.int64)
        right = rng.integers(limits.min, limits.max, shape, dtype=np.int64)
        return cls(basis, left, right, np.zeros((basis.columns, basis.packed), dtype=np.int64))

    def add(self, layout: SegmentLayout, index: int, arrays: dict[str, NDArray[np.int64]]) -> None:
        block = layout.block(index)
        rows = block.size(self.basis.core)
        self.words += sum(arrays["word_counts"][0].tolist())
        self.pairs += sum(arrays["pair_counts"][0].sum(axis=1).tolist())
        left, right = self.left[block.rows], self.right[block.rows]
        for name in ("pair_counts", "codocuments"):
            if name in arrays:
                inner = arrays[name][0, :rows]
                skew = (left * (inner @ self.right) - right * (inner @ self.left)).sum(axis=0)
                self.skew[name] = self.skew.get(name, 0) + skew
        own = self.basis.matrix[block.rows].astype(np.int64)
        self.cubes += own.T @ arrays["triple_sketch"][0, :rows]


def _sum_problems(where: str, sums: _Sums, histogram: LengthHistogram) -> Iterator[str]:
    basis = sums.basis
    if sums.words != histogram.C1:
        yield f"{where}: word_counts add up to {sums.words}, the lengths to C1 = {histogram.C1}"
    if sums.pairs > histogram.C2 or (basis.core == basis.n_words and sums.pairs != histogram.C2):
        yield f"{where}: pair_counts add up to {sums.pairs}, the lengths to C2 = {histogram.C2}"
    for name, skew in sums.skew.items():
        if skew.any():
            yield f"{where}: {name} is not symmetric inside the core"
    # sum_i Q_ia (T_i)_bc = sum_d y_a y_b y_c does not depend on the order of a, b and c
    rows, columns = np.triu_indices(basis.columns)
    cubes = np.empty((basis.columns,) * 3, dtype=np.int64)
    cubes[:, rows, columns] = cubes[:, columns, rows] = sums.cubes
    if (cubes != cubes.transpose(1, 0, 2)).any():
        yield f"{where}: triple_sketch is not the sketch of a symmetric tensor"


def _count_problems(
    folder: Folder, reference: SegmentReference, histogram: LengthHistogram
) -> Iterator[str]:
    where = f"segment {reference.id}"
    table = read_ledger(folder, [reference], Ledger({})).tables[reference.id]
    sums = [pc.sum(table[name]).as_py() or 0 for name in ("documents", "tokens")]
    counted = (*sums, table.num_rows)
    promised = (reference.documents, reference.tokens, reference.shards)
    held = (histogram.n_documents, histogram.C1, reference.shards)
    if not counted == promised == held:
        yield (
            f"{where}: documents, tokens and shards are {counted} in its ledger, {promised} in "
            f"the commit and {held[:2]} in its lengths"
        )
