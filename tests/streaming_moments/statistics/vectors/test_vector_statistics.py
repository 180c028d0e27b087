"""Statistics of vectors: the grid, the laws, brute force, halves, bounds, identities and guards."""

import tracemalloc
from dataclasses import replace
from itertools import combinations_with_replacement
from math import isqrt, prod

import numpy as np
import pytest
from brute_halves import odd_row
from hypothesis import given, settings
from hypothesis import strategies as st

from streaming_moments.errors import (
    BoundExceeded,
    ForeignStatistics,
    InvalidInput,
    NotIdentifiable,
)
from streaming_moments.models.rows import InMemory
from streaming_moments.statistics.row_block import RowBlock
from streaming_moments.statistics.vectors import foundation as foundations
from streaming_moments.statistics.vectors.foundation import VectorsFoundation
from streaming_moments.statistics.vectors.grid import LARGEST_RADIUS, Grid
from streaming_moments.statistics.vectors.moments import VectorMoments
from streaming_moments.statistics.vectors.rows import VectorBatch
from streaming_moments.statistics.vectors.statistics import joined_blocks
from streaming_moments.testing.laws import check_laws

D, S = 4, 3
MATRIX = np.array([[127, -3, 1], [5, 90, -1], [-60, 2, 1], [9, 31, 1]], dtype=np.int8)


def made(
    step=0.25, radius=40, whole=False, squares=True, fourth=True, halves=True, shift=(3, 4, 0)
):
    grid = Grid(np.array([0.5, -1.0, 0.0, 2.0]), step, radius, whole)
    return VectorsFoundation(grid, MATRIX, np.array(shift, np.uint8), squares, fourth, halves)


def drawn(seed, rows=12, scale=4.0, kind=np.float64):
    rng = np.random.default_rng(seed)
    values = (scale * rng.standard_t(3, size=(rows, D))).astype(kind)
    return VectorBatch(values, rng.random(rows) < 0.5, int(seed) % 3)


def on_grid(foundation, values):
    """x and y of rows by Python's integers, and how many were drawn in."""
    grid, rows, sketches, clipped = foundation.grid, [], [], 0
    for row in values.tolist():
        given = [
            round(min(max((value - offset) / grid.step, -32767), 32767))
            for value, offset in zip(row, grid.offset.tolist(), strict=True)
        ]
        root = isqrt(sum(x * x for x in given))
        if root > grid.radius:
            clipped += 1
            given = [(2 * x * grid.radius + root) // (2 * root) for x in given]
        wide = [sum(int(q) * x for q, x in zip(column, given, strict=True)) for column in MATRIX.T]
        shifts = foundation.shift.tolist()
        sketches.append([(y + (1 << b >> 1)) >> b for y, b in zip(wide, shifts, strict=True)])
        rows.append(given)
    return rows, sketches, clipped


def by_hand(rows, sketches):
    """Every sum by its definition, in Python's integers."""

    def rising(columns, order):
        places = combinations_with_replacement(range(len(columns[0]) if columns else 0), order)
        return [sum(prod(row[i] for i in place) for row in columns) for place in places]

    norms = [sum(x * x for x in row) for row in rows]
    return {
        "first": rising(rows, 1),
        "second": rising(rows, 2),
        "sketched_first": rising(sketches, 1),
        "sketched_second": rising(sketches, 2),
        "norms": [sum(y[a] * n for y, n in zip(sketches, norms, strict=True)) for a in range(S)],
        "third": rising(sketches, 3),
        "squares": [sum(r[i] * r[h] ** 2 for r in rows) for i in range(D) for h in range(D)],
        "fourth": rising(sketches, 4),
    }


@pytest.mark.parametrize("seed", range(3))
def test_sums_are_those_of_the_definition_in_any_block(seed, monkeypatch):
    foundation, batch = made(), drawn(seed, rows=30)
    rows, sketches, clipped = on_grid(foundation, batch.values)
    whole = foundation.of_vectors(batch)
    assert (whole.totals.clipped, whole.totals.n_tokens) == (clipped, 30)
    assert 0 < clipped < 30
    assert whole.totals.without == batch.without
    for half, kept in (("", np.ones(30, bool)), ("even_", ~batch.odd)):
        places = np.flatnonzero(kept)
        expected = by_hand([rows[i] for i in places], [sketches[i] for i in places])
        for name, sums in expected.items():
            assert whole.flat(half + name).tolist() == sums, name
    monkeypatch.setattr(foundations, "_ROW_BYTES", 200)
    wide = made()
    assert wide.rows > 3
    for step in (1, 2, 3):
        blocks = [wide.of_vectors(batch, RowBlock(index, step)) for index in range(step)]
        again = joined_blocks(blocks)
        assert all(np.array_equal(again.flat(name), whole.flat(name)) for name in whole.arrays())
        held = [(block.block, block.arrays()) for block in blocks]
        assert not list(wide.problems(padded(held), whole.totals))


def padded(blocks):
    """As a store keeps them: all with as many rows as the longest."""
    longest = max(len(next(iter(arrays.values()))) for _, arrays in blocks)
    for block, arrays in blocks:
        yield (
            block,
            {
                name: np.pad(array, [(0, longest - len(array)), (0, 0)])
                for name, array in arrays.items()
            },
        )


def joined(batches):
    values, odd = np.concatenate([one.values for one in batches]), [one.odd for one in batches]
    return VectorBatch(values, np.concatenate(odd), sum(one.without for one in batches))


@settings(max_examples=12)
@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_the_laws_hold_whatever_the_cut(seeds, order):
    foundation = made()
    parts = [drawn(seed, rows=1 + seed % 5) for seed in seeds]
    places = list(range(len(parts)))
    order.shuffle(places)
    check_laws(foundation.of([]), foundation.of_vectors, joined, parts, places)


def test_batches_joined_and_sums_taken_away_give_the_same_bits():
    foundation = made()
    prepared = [foundation.prepared(drawn(seed)) for seed in range(6)]
    whole = foundation.of(prepared)
    assert foundation.of(foundation.joined(prepared, 10**9)) == whole
    assert len(list(foundation.joined(prepared, 10**9))) == 1
    assert len(list(foundation.joined(prepared, 1))) == 6
    sums = foundation.sums(RowBlock())
    sums.add(prepared)
    sums.subtract(foundation.joined(prepared[2:], 10**9))
    left = foundation.of(prepared[:2])
    assert all(np.array_equal(sums.arrays[name], left.sums[name]) for name in left.sums)


@pytest.mark.parametrize(
    ("d", "s", "optional", "scale"),
    [
        (512, 20, (), 10),
        (512, 20, (), 1000),
        (256, 20, ("squares",), 10),
        (30, 30, ("fourth",), 10),
    ],
)
@pytest.mark.parametrize("halves", [False, True])
def test_joined_batches_hold_as_much_as_they_say(d, s, optional, scale, halves):
    grid, sketch = Grid(np.zeros(d), 1.0, 16_000), np.eye(d, s, dtype=np.int8)
    kept = dict.fromkeys(optional, True)
    shift = np.full(s, 6 if optional else 0, np.uint8)
    foundation = VectorsFoundation(grid, sketch, shift, **kept, halves=halves)
    rows = np.random.default_rng(0).normal(size=(4200, d)).astype(np.float32)
    prepared = [foundation.prepared(VectorBatch.of(scale * rows))]
    tracemalloc.start()
    joined = list(foundation.joined(prepared, 10**9))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # the batches as one, and the rows of a half
    copied = 1.5 * prepared[0].nbytes
    assert joined[0].nbytes < peak <= foundation.joined_bytes + copied


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.int8, np.int64, np.uint8])
def test_numbers_of_any_type_are_those_of_float64(kind):
    values = np.abs(drawn(1, rows=20, scale=9.0).values).astype(kind)
    foundation = made()
    found = foundation.of_vectors(VectorBatch.of(values))
    assert found == foundation.of_vectors(VectorBatch.of(values.astype(np.float64)))


def test_sums_beyond_what_single_precision_holds_are_exact():
    foundation = made(step=0.01, radius=9000, shift=(9, 10, 4))
    batch = drawn(3, rows=400, scale=30.0)
    rows, sketches, _ = on_grid(foundation, batch.values)
    expected, found = by_hand(rows, sketches), foundation.of_vectors(batch)
    assert max(expected["second"]) > 2**32
    assert max(map(abs, expected["fourth"])) > 2**40
    for name, sums in expected.items():
        assert found.flat(name).tolist() == sums, name


def test_third_moments_beyond_what_double_precision_holds_are_exact():
    foundation = VectorsFoundation(
        Grid(np.zeros(2), 1.0, 16_384), np.eye(2, dtype=np.int8), np.zeros(2, np.uint8)
    )
    rows = np.tile([[16_381.0, 1.0]], (9001, 1))
    found = foundation.of_vectors(VectorBatch.of(rows)).flat("third").tolist()
    assert found == [9001 * 16_381**power for power in (3, 2, 1, 0)]
    assert found[0] > 2**53


def test_rows_that_are_no_numbers_are_left_out_and_counted():
    values = np.ones((5, D))
    values[1, 2], values[3, 0] = np.nan, -np.inf
    batch = VectorBatch.of(values)
    assert (len(batch.values), batch.without, batch.documents) == (3, 2, 5)
    even = 3 * (not odd_row(made().grid.quantised(values[:1])[0][0].tolist()))
    totals = made().of_vectors(batch).totals
    assert (totals.n_documents, totals.n_tokens, totals.even_documents) == (5, 3, even)
    reason = made().rejection_reason(made().of_vectors(VectorBatch.of(values[[1]])).totals)
    assert "finite" in reason
    assert made().rejection_reason(totals) is None


def test_the_largest_numbers_there_are_are_drawn_in():
    values = np.array([[1e308, -1e308, 0, 0], [0.5, -1.0, 0.0, 2.0]])
    rows, norms, clipped = made(step=1e-300).grid.quantised(values)
    assert clipped == 1
    assert norms[0] <= 41**2
    assert rows[1].tolist() == [0, 0, 0, 0]


def test_halves_are_the_statistics_of_each_half():
    foundation, batch = made(), drawn(5, rows=20)
    found = foundation.of_vectors(batch)
    alone = replace(foundation, halves=False)
    for odd in (False, True):
        part = VectorBatch(batch.values[batch.odd == odd], batch.odd[batch.odd == odd])
        expected, half = alone.of_vectors(part), found.half(odd)
        assert half.totals.n_tokens == expected.totals.n_tokens
        assert all(np.array_equal(half.sums[name], expected.sums[name]) for name in half.sums)
    with pytest.raises(InvalidInput, match="no halves"):
        alone.of_vectors(batch).half(odd=True)


def test_a_foundation_is_made_again_of_its_parts():
    foundation = made()
    again = VectorsFoundation.from_parts(*foundation.parts())
    assert again == foundation
    assert again.fingerprint == foundation.fingerprint
    others = [made(step=0.5), made(radius=41), made(whole=True), made(squares=False)]
    others += [made(fourth=False), made(halves=False), made(shift=(3, 4, 1))]
    assert len({one.fingerprint for one in (foundation, *others)}) == 8


@pytest.mark.parametrize(
    ("broken", "told"),
    [
        ({"step": 0.0}, "step must be above 0"),
        ({"radius": 0}, "radius 1 to 16384"),
        ({"radius": 20_000}, "radius 1 to 16384"),
        ({"shift": (1, 2)}, "shifts are"),
        ({"shift": (1, 2, 99)}, "99 bits"),
        ({"radius": 16_000, "shift": (0, 0, 0)}, "one row could add"),
    ],
)
def test_a_foundation_that_cannot_be_is_refused(broken, told):
    with pytest.raises(InvalidInput, match=told):
        made(**broken)


def test_dependent_columns_are_refused():
    grid = Grid(np.zeros(2), 1.0, 10)
    with pytest.raises(InvalidInput, match="dependent"):
        VectorsFoundation(grid, np.ones((2, 2), np.int8), np.zeros(2, np.uint8))
    with pytest.raises(InvalidInput, match="NaN or infinite"):
        Grid(np.array([0.0, np.nan]), 1.0, 10)


def test_fourth_moments_of_a_wide_sketch_are_refused():
    grid = Grid(np.zeros(65), 1.0, 10)

    def of_columns(number):
        sketch = np.eye(65, number, dtype=np.int8), np.zeros(number, np.uint8)
        return VectorsFoundation(grid, *sketch, fourth=True, halves=False)

    with pytest.raises(InvalidInput, match="65 columns would be 814,385 sums; give at most 64"):
        of_columns(65)
    rows = np.eye(65)[[63]] * 3 + np.eye(65)[[62]]
    fourth = of_columns(64).of_vectors(VectorBatch.of(rows)).flat("fourth")
    assert fourth[-5:].tolist() == [1, 3, 9, 27, 81]
    assert np.count_nonzero(fourth) == 5


def test_statistics_of_others_and_beyond_the_bounds_are_refused():
    foundation, batch = made(), drawn(0)
    found = foundation.of_vectors(batch)
    with pytest.raises(ForeignStatistics, match="have foundation"):
        found + made(step=0.5).of_vectors(batch)
    with pytest.raises(ForeignStatistics, match="rows have 3 numbers"):
        foundation.prepared(VectorBatch.of(np.ones((2, 3))))
    with pytest.raises(InvalidInput, match="never added"):
        found - foundation.of_vectors(drawn(1, rows=30))
    with pytest.raises(BoundExceeded, match="2\\^62"):
        foundation.require_bounded(2.0**62)
    full = replace(found, totals=replace(found.totals, largest=2**62 - 1))
    with pytest.raises(BoundExceeded, match="2\\^62"):
        full + found
    room = foundation.room(found.totals)
    assert room == 2**62 * 12 // found.totals.largest
    assert max(np.abs(array).max() for array in found.sums.values()) <= found.totals.bound


def test_no_entry_passes_the_bound_of_a_row():
    foundation = made()
    values = np.eye(D) * 1e6 * np.where(np.arange(D) % 2, -1, 1)
    for row in values:
        prepared = foundation.prepared(VectorBatch.of(row[None]))
        sums = prepared.summed.sums
        assert max(np.abs(array).max() for array in sums.values()) <= prepared.totals.largest
        assert prepared.totals.largest <= foundation.largest_gain


@pytest.mark.parametrize(
    "name", ["first", "second", "sketched_first", "third", "squares", "fourth"]
)
def test_what_no_vectors_can_make_is_found(name):
    foundation = made()
    found = foundation.of_vectors(drawn(4, rows=40))
    sums = dict(found.arrays())
    assert not list(foundation.problems([(RowBlock(), sums)], found.totals))
    for half in ("", "even_"):
        damaged = sums[half + name].copy()
        damaged[0, 0] += 1
        problems = [
            p
            for _, p in foundation.problems(
                [(RowBlock(), sums | {half + name: damaged})], found.totals
            )
        ]
        assert problems
        assert all(one.startswith(half) for one in problems) or not half
    wrong = replace(found.totals, n_tokens=1)
    assert [p for _, p in foundation.problems([(RowBlock(), sums)], wrong)]


def test_central_moments_are_those_of_the_rows_on_the_grid():
    foundation, batch = made(whole=True), drawn(6, rows=200)
    rows, sketches, _ = (np.array(one, dtype=float) for one in on_grid(foundation, batch.values))
    x, y = rows - rows.mean(axis=0), sketches - sketches.mean(axis=0)
    found = VectorMoments.of(foundation.of_vectors(batch))
    number = len(x)
    expected = {
        "mean": rows.mean(axis=0),
        "covariance": x.T @ x / number,
        "sketch_mean": sketches.mean(axis=0),
        "sketch_covariance": y.T @ y / number,
        "third": np.einsum("na,nb,nc->abc", y, y, y) / number,
        "squares": x.T @ x**2 / number,
        "fourth": np.einsum("na,nb,nc,nd->abcd", y, y, y, y) / number,
    }
    for name, value in expected.items():
        assert np.allclose(getattr(found, name), value, atol=1e-9 * np.abs(value).max()), name
    # of norms the rounding of the sketch alone is left
    norms = y.T @ (x**2).sum(axis=1) / number
    off = 0.5 * 2 * np.abs(found.mean).sum() * np.sqrt((x**2).mean(axis=0).max())
    assert np.abs(found.norms - norms).max() < off
    noisy = VectorMoments.of(made().of_vectors(batch))
    assert np.allclose(np.diag(found.covariance - noisy.covariance), 1 / 12)
    with pytest.raises(NotIdentifiable, match="no vectors"):
        VectorMoments.of(foundation.of([]))
    block = foundation.of_vectors(batch, RowBlock())
    assert InMemory((block,)).foundation == foundation


@pytest.mark.parametrize(("size", "shift"), [(60, 7), (80, 7), (80, 30)])
def test_sketches_are_rounded_whether_single_precision_holds_them_or_not(size, shift):
    grid = Grid(np.zeros(size), step=1.0, radius=LARGEST_RADIUS, whole=True)
    matrix = np.full((size, 1), 127, dtype=np.int8)
    foundation = VectorsFoundation(grid, matrix, np.array([shift], dtype=np.uint8))
    rng = np.random.default_rng(size)
    rows = rng.integers(-1_800, 1_800, (1_500, size)).astype(np.int16)
    rows[0], rows[1] = 1_800, -1_800
    exact = [sum(127 * one for one in row) for row in rows.tolist()]
    expected = [(one + (1 << shift >> 1)) >> shift for one in exact]
    assert foundation.sketched(rows)[:, 0].tolist() == expected
