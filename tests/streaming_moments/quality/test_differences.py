"""Differences: of what is noise none is named as the largest, however many there are."""

import numpy as np
import pytest

from streaming_moments.quality.differences import (
    bar_of_difference,
    beyond_noise,
    largest_change,
)


@pytest.mark.parametrize("several", [1, 5, 50])
def test_of_noise_a_largest_change_is_named_once_in_twenty_times(several):
    rng, named = np.random.default_rng(several), 0
    for steps in rng.normal(size=(2000, several)).tolist():
        named += largest_change(steps, [1.0] * several) is not None
    assert 0.03 < named / 2000 < 0.07


def test_two_bars_are_the_least():
    assert not beyond_noise(-2.0, 1.0)
    assert beyond_noise(-2.001, 1.0)


def test_what_has_no_bar_says_nothing():
    assert not beyond_noise(9.0, None)
    assert not beyond_noise(9.0, float("nan"))
    assert largest_change([9.0, 1.0], [None, 0.1]) == 1
    assert largest_change([9.0], [None]) is largest_change([], []) is None
    assert bar_of_difference(0.1, None) is None


def test_the_largest_is_not_that_of_most_bars():
    assert largest_change([0.3, -0.5, 0.9], [0.01, 0.1, 0.5]) == 1
