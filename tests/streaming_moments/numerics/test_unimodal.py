"""The highest of values that rise, then fall, against all of them."""

from hypothesis import given
from hypothesis import strategies as st

from streaming_moments.numerics.unimodal import highest_place


@given(st.integers(1, 12), st.data())
def test_the_highest_of_what_rises_then_falls_is_found(number, data):
    top = data.draw(st.integers(0, number - 1))
    steps = data.draw(st.lists(st.floats(0.1, 9), min_size=number, max_size=number))
    values = [0.0] * number
    for place in range(top + 1, number):
        values[place] = values[place - 1] - steps[place]
    for place in range(top - 1, -1, -1):
        values[place] = values[place + 1] - steps[place]
    looked_at = set()

    def value(place):
        looked_at.add(place)
        return values[place]

    assert highest_place(number, value) == top
    assert len(looked_at) <= 5
    assert {one for one in (top - 1, top + 1) if 0 <= one < number} <= looked_at
