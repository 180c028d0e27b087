"""Kinds: stores sum, verify and forget statistics that are not word counts."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

import numpy as np
import pytest

from streaming_moments.errors import ForeignStatistics, InvalidInput, StoreError
from streaming_moments.statistics.registry import KINDS
from streaming_moments.statistics.row_block import RowBlock
from streaming_moments.storage.log.ledger import ShardRecord
from streaming_moments.storage.operations.compaction import commit_compaction, seal_sum, write_sum
from streaming_moments.storage.operations.forgetting import commit_recount
from streaming_moments.storage.segments import foundations
from streaming_moments.storage.store.changes import Recount
from streaming_moments.storage.store.store import MomentStore

GRID = 7


@dataclass(frozen=True)
class NumberTotals:
    """Number of vectors of integers."""

    n_documents: int
    bound: ClassVar[int] = 0

    @property
    def n_tokens(self):
        return GRID * self.n_documents

    def tables(self):
        return {"number": np.array([self.n_documents])}

    def __add__(self, other):
        return NumberTotals(self.n_documents + other.n_documents)

    def __sub__(self, other):
        return NumberTotals(self.n_documents - other.n_documents)


@dataclass(frozen=True, eq=False)
class Vectors:
    """First and second moments of vectors of integers, for a block of rows."""

    shift: int
    block: RowBlock
    totals: NumberTotals
    sums: np.ndarray
    squares: np.ndarray

    def arrays(self):
        return {"sums": self.sums, "squares": self.squares}

    def require_non_negative(self):
        if self.totals.n_documents < 0:
            raise InvalidInput("more vectors are taken away than were added")

    def __add__(self, other):
        return self._with(other, np.add, self.totals + other.totals)

    def __sub__(self, other):
        return self._with(other, np.subtract, self.totals - other.totals)

    def __eq__(self, other):
        same = (self.shift, self.block, self.totals) == (other.shift, other.block, other.totals)
        mine, theirs = self.arrays(), other.arrays()
        return same and all(np.array_equal(mine[name], theirs[name]) for name in mine)

    __hash__ = None

    def _with(self, other, combine, totals):
        theirs = other.arrays()
        arrays = {name: combine(array, theirs[name]) for name, array in self.arrays().items()}
        return Vectors(self.shift, self.block, totals, **arrays)


@dataclass(frozen=True)
class Grid:
    """Foundation of vectors: an offset."""

    offset: np.ndarray
    kind: ClassVar[str] = "grid"
    rows: ClassVar[int] = GRID
    joins: ClassVar[bool] = False
    by_length: ClassVar[bool] = False
    told_halves: ClassVar[bool] = False
    halves_by_content: ClassVar[bool] = False
    since_first: ClassVar[frozenset[str]] = frozenset()

    @property
    def fingerprint(self):
        return hashlib.sha256(self.offset.tobytes()).hexdigest()

    def parts(self):
        return {"offset": self.offset}, {"rows": GRID}

    @classmethod
    def from_parts(cls, arrays, attributes):
        assert attributes["rows"] == GRID
        return cls(arrays["offset"])

    def names(self):
        return {"basis": self.fingerprint, "vocabulary": ""}

    def shapes(self, block, rows=None):
        return {"sums": (block.size(GRID),), "squares": (block.size(GRID), GRID)}

    def compresses(self, name):
        return name == "sums"

    def totals(self, tables, rows=None):
        return NumberTotals(int(tables["number"][0]) if tables else 0)

    def statistics(self, block, totals, arrays):
        return Vectors(int(self.offset[0]), block, totals, arrays["sums"], arrays["squares"])

    def of(self, batches, block=RowBlock()):
        moved = np.concatenate([np.empty((0, GRID), np.int64), *batches]) - self.offset
        sums, squares = moved.sum(axis=0), moved.T @ moved
        arrays = {"sums": sums[block.rows], "squares": squares[block.rows]}
        return self.statistics(block, NumberTotals(len(moved)), arrays)

    def require_own(self, statistics):
        if statistics.shift != self.offset[0]:
            raise ForeignStatistics("the vectors are of another offset")

    def problems(self, blocks, totals):
        trace = 0
        for block, arrays in blocks:
            rows = np.arange(block.size(GRID))
            diagonal = arrays["squares"][rows, rows * block.step + block.index]
            if (diagonal < 0).any():
                yield block, "squares are below zero"
            trace += int(diagonal.sum())
        if trace and not totals.n_documents:
            yield None, "squares of no vectors"


@pytest.fixture(autouse=True)
def a_second_kind(monkeypatch):
    monkeypatch.setattr(foundations, "KINDS", MappingProxyType({**KINDS, Grid.kind: Grid}))


@pytest.fixture
def grid():
    return Grid(np.full(GRID, 3))


def vectors(seed, number=20):
    return np.random.default_rng(seed).integers(-9, 9, (number, GRID))


def shard(url, number=20):
    return ShardRecord(url, 8 * number, f"etag:{url}", documents=number, tokens=GRID * number)


def store_of(folder, grid):
    return MomentStore.create_on(str(folder), grid, {"kind": "npy"}, "vectors")


def test_statistics_of_another_kind_are_summed_bit_for_bit(tmp_path, grid):
    store = store_of(tmp_path / "store", grid)
    assert store.load() == grid.of([])
    store = store.append_statistics(grid.of([vectors(0)]), [shard("a")])
    store = store.append_statistics(grid.of([vectors(1)]), [shard("b")])
    opened = MomentStore.open(str(tmp_path / "store"))
    whole = grid.of([vectors(0), vectors(1)])
    assert opened.kind == "grid"
    assert opened.foundation.fingerprint == grid.fingerprint
    assert opened.load() == whole
    assert opened.load_block(2) == grid.of([vectors(0), vectors(1)], RowBlock(2, store.row_blocks))
    assert opened.totals() == NumberTotals(40)
    assert opened.verify() == []
    assert (opened.commit.documents, opened.commit.tokens) == (40, 40 * GRID)


def test_they_are_forgotten_and_compacted(tmp_path, grid):
    store = store_of(tmp_path / "store", grid)
    for seed, url in enumerate("abc"):
        store = store.append_statistics(grid.of([vectors(seed)]), [shard(url)])
    segment = store.write_segment(grid.of([vectors(1)]), [shard("b")])
    store = commit_recount(store, Recount("forget", "", removed=(segment,)))
    without = grid.of([vectors(0), vectors(2)])
    assert store.load() == without
    writer, sources = store.new_segment(), store.commit.segments
    files = [f for index in range(store.row_blocks) for f in write_sum(writer, sources, index)]
    store = commit_compaction(store, sources, seal_sum(store, writer, files, sources))
    assert len(store.commit.segments) == 1
    assert store.load() == without
    assert store.verify() == []


def test_what_is_not_theirs_is_refused(tmp_path, grid):
    store = store_of(tmp_path / "store", grid)
    with pytest.raises(ForeignStatistics, match="another offset"):
        store.append_statistics(Grid(np.zeros(GRID, int)).of([vectors(0)]), [shard("a")])
    with pytest.raises(InvalidInput, match="kind 'grid'"):
        _ = store.vocabulary


def test_their_damage_is_told(tmp_path, grid):
    store = store_of(tmp_path / "store", grid)
    broken = grid.of([vectors(0)])
    np.fill_diagonal(broken.squares, -1)
    store = store.append_statistics(broken, [shard("a")])
    problems = store.verify()
    assert len(problems) == store.row_blocks
    assert all(problem.endswith("squares are below zero") for problem in problems)


def test_a_kind_that_is_not_known_is_named(tmp_path, grid, monkeypatch):
    store_of(tmp_path / "store", grid)
    monkeypatch.setattr(foundations, "KINDS", KINDS)
    known = "kind 'grid'.*supports counts, views, sequences, vectors, edges, sets; install"
    with pytest.raises(StoreError, match=known):
        MomentStore.open(str(tmp_path / "store"))
