"""Statistics of edges: brute force, any order and cut, halves, blocks, the laws."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming_moments.errors import ForeignStatistics, InvalidInput
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.statistics.edges.ends import EdgeBatch, even_half
from streaming_moments.statistics.edges.foundation import WHOLE_NODES, EdgesFoundation
from streaming_moments.statistics.row_block import RowBlock
from streaming_moments.testing.laws import check_laws

N = 7
NODES = Vocabulary(tuple("abcdefg"), 5)
MATRIX = np.array([[1, 127], [-5, 3], [0, -127], [2, 2], [9, 0]], dtype=np.int8)
SKETCH = Basis(MATRIX, N, NODES.fingerprint)
PAIRS = [(one, other) for one in range(N) for other in range(one)]
FORMS = [(sketch, directed) for sketch in (None, SKETCH) for directed in (False, True)]


def brute_force(edges, sketch, directed):
    """Sums of the whole and of the even half, straight from the definition."""
    rows = np.zeros((N, 3), dtype=np.int64)
    rows[:, 0] = 1
    rows[:5, 1:] = MATRIX
    if sketch is None:
        rows = np.hstack([np.ones((N, 1), np.int64), np.eye(N, dtype=np.int64)])
    parts = 1 if sketch is None else 3
    sums = np.zeros((2, parts, N, rows.shape[1]), np.int64)
    for edge in edges:
        halves = [0, 1] if even_half(np.array([edge], np.int32), directed)[0] else [0]
        for x, a in [edge] if directed else [edge, edge[::-1]]:
            sums[halves, a % parts, x] += rows[a]
    return sums


@pytest.mark.parametrize(("sketch", "directed"), FORMS)
def test_sums_are_those_of_the_definition_in_any_block(sketch, directed):
    edges = [PAIRS[place] for place in np.random.default_rng(3).permutation(len(PAIRS))[:12]]
    expected = brute_force(edges, sketch, directed)
    foundation = EdgesFoundation(NODES, sketch, directed)
    batch = EdgeBatch.of([*edges, (3, 3), edges[0]], N, directed)
    for step in (1, 4):
        for index in range(step):
            block = RowBlock(index, step)
            found = foundation.of_edges(batch, block)
            for half, name in enumerate(("", "even_")):
                for part in range(foundation.n_parts):
                    own = found.sums[f"{name}ends_{part}"]
                    assert np.array_equal(own, expected[half, part, block.rows])
    totals = found.totals
    assert (totals.edges, totals.loops, totals.repeated, totals.n_documents) == (12, 1, 1, 14)
    assert foundation.of_edges(batch).half(odd=True).totals.triples == 12 - totals.even_triples
    whole = foundation.of_edges(batch)
    assert list(foundation.problems([(RowBlock(), whole.sums)], whole.totals)) == []
    damaged = {**whole.sums, "ends_0": np.array(whole.sums["ends_0"])}
    damaged["ends_0"][0, 0] += 1
    [(block, problem)] = foundation.problems([(RowBlock(), damaged)], whole.totals)
    assert block is None
    assert "degrees add up to" in problem


@pytest.mark.parametrize(("sketch", "directed"), FORMS)
@given(edges=st.lists(st.sampled_from(PAIRS), unique=True, max_size=20), data=st.data())
def test_edges_obey_the_laws_in_any_order_and_cut(sketch, directed, edges, data):
    cuts = sorted(data.draw(st.lists(st.integers(0, len(edges)), min_size=1, max_size=4)))
    places = [0, *cuts, len(edges)]
    parts = [edges[a:b] for a, b in pairwise(places)]
    foundation = EdgesFoundation(NODES, sketch, directed)
    check_laws(
        foundation.of([]),
        lambda own: foundation.of_edges(EdgeBatch.of(own, N, directed)),
        lambda several: [edge for own in several for edge in own],
        parts,
        data.draw(st.permutations(range(len(parts)))),
    )


def test_an_edge_is_of_one_half_wherever_it_comes_and_halves_are_even():
    ends = np.random.default_rng(0).integers(0, 5000, (20_000, 2)).astype(np.int32)
    even = even_half(ends, directed=False)
    assert np.array_equal(even, even_half(ends[:, ::-1], directed=False))
    assert abs(even.mean() - 0.5) < 0.02
    assert not np.array_equal(even, even_half(ends[:, ::-1], directed=True))


def test_joined_batches_are_as_those_alone():
    foundation = EdgesFoundation(NODES, SKETCH)
    prepared = [foundation.prepared(EdgeBatch.of(PAIRS[start::3], N)) for start in range(3)]
    [joined] = foundation.joined(prepared, 1 << 20)
    assert foundation.of([joined]) == foundation.of(prepared)
    assert len(list(foundation.joined(prepared, 1))) == 3


def test_what_was_never_there_is_not_taken_away():
    foundation = EdgesFoundation(NODES, SKETCH)
    some = foundation.of_edges(EdgeBatch.of(PAIRS[:5], N))
    with pytest.raises(InvalidInput, match="never added"):
        some - foundation.of_edges(EdgeBatch.of(PAIRS[5:8], N))
    other = EdgesFoundation(NODES, SKETCH, directed=True)
    with pytest.raises(ForeignStatistics):
        some + other.of_edges(EdgeBatch.of(PAIRS[:5], N, directed=True))


def test_foundations_are_described_and_too_large_ones_refused():
    for sketch, directed in FORMS:
        foundation = EdgesFoundation(NODES, sketch, directed)
        again = EdgesFoundation.from_parts(*foundation.parts())
        assert again.fingerprint == foundation.fingerprint
    many = Vocabulary(tuple(map(str, range(WHOLE_NODES + 1))), 9)
    with pytest.raises(InvalidInput, match="33,587,208 bytes"):
        EdgesFoundation(many)
    with pytest.raises(InvalidInput, match="nodes 0 to 6"):
        EdgesFoundation(NODES).of_edges(EdgeBatch(np.array([[0, 7]], np.int32)))
