"""Sums over many strips: the same whatever order they come in, few of them held at a time."""

from hypothesis import given
from hypothesis import strategies as st

from streaming_moments.models.rows import (
    number_of_strips,
    strip_sums_held,
    strips,
    tree_sum,
)


@st.composite
def arrivals(draw):
    values = draw(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=200))
    return values, draw(st.permutations(range(len(values))))


@given(arrivals())
def test_any_order_of_strips_gives_the_same_bits(arrival):
    values, order = arrival
    expected = tree_sum(enumerate(values), len(values))
    assert tree_sum(((index, values[index]) for index in order), len(values)) == expected


@given(arrivals())
def test_parts_are_added_up_each_once_left_of_right(arrival):
    values, order = arrival
    found = tree_sum(((index, (index,)) for index in order), len(values))
    assert found == tuple(range(len(values)))


@given(st.integers(1, 10_000), st.integers(8, 1 << 40))
def test_strips_share_out_all_blocks_and_are_no_fewer_for_larger_sums(blocks, nbytes):
    cut = strips(range(blocks), nbytes)
    assert sorted(block for strip in cut for block in strip) == list(range(blocks))
    assert len(cut) == number_of_strips(blocks, nbytes) >= min(blocks, 64)
    assert max(map(len, cut)) - min(map(len, cut)) <= 1


@given(st.integers(1, 300))
def test_in_their_order_no_more_sums_are_held_than_the_plan_says(blocks):
    live, most = set(), 0

    class Sum:
        def __init__(self):
            live.add(id(self))

        def __del__(self):
            live.discard(id(self))

        def __add__(self, other):
            return Sum()

    def made():
        nonlocal most
        for index in range(number):
            most = max(most, len(live))
            yield index, Sum()

    number = number_of_strips(blocks, 1 << 40)
    tree_sum(made(), number)
    assert most <= strip_sums_held(blocks, 1 << 40)
