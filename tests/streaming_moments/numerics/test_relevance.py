import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from streaming_moments.numerics.relevance import top_words

SCORES = arrays(
    np.float64,
    array_shapes(min_dims=2, max_dims=2, max_side=12),
    elements=st.sampled_from([-np.inf, -1.0, 0.0, 0.5, 2.0]),
)


@given(SCORES, st.integers(0, 15))
def test_the_top_words_are_the_first_of_all_sorted(scores, number):
    whole = np.argsort(-scores, axis=0, kind="stable")
    found = top_words(scores, number)
    assert found.dtype == np.int64
    np.testing.assert_array_equal(found, whole[:number].T)
