"""Wrong sizes of data that is drawn, and shapes that cannot be compared, are named."""

import inspect

import numpy as np
import pytest

from streaming_moments import synthetic
from streaming_moments.errors import InvalidInput

DRAWN = {
    "community_graph": (20, 2),
    "factor_rows": (9, 3, 2),
    "feature_sets": (9, 4, 2),
    "latent_tree_table": (9, 3, 2, 2),
    "lda_corpus": (9, 5, 2),
    "markov_sequences": (3, 9, 4, 2),
    "mixture_rows": (9, 3, 2),
    "single_topic_corpus": (9, 5, 2),
    "view_records": (9, (4, 4, 4), 2),
}


@pytest.mark.parametrize("name", DRAWN)
def test_each_size_below_one_is_refused_by_its_name(name):
    draw, sizes = getattr(synthetic, name), DRAWN[name]
    draw(*sizes)
    names = list(inspect.signature(draw).parameters)
    for place, size in enumerate(sizes):
        if isinstance(size, int):
            with pytest.raises(InvalidInput, match=f"^{names[place]} is 0; give at least 1$"):
                draw(*sizes[:place], 0, *sizes[place + 1 :])
    with pytest.raises(InvalidInput, match=f"^{names[0]} is of type str; {name} takes int$"):
        draw("many", *sizes[1:])
    with pytest.raises(TypeError, match=f"^{name} has no argument n_rounds"):
        draw(*sizes, n_rounds=3)


@pytest.mark.parametrize("name", ["topic_error", "membership_error", "probability_error"])
def test_columns_that_cannot_be_compared_are_refused(name):
    error = getattr(synthetic, name)
    truth = np.eye(4)[:, :2]
    assert error(truth.tolist(), truth[:, ::-1]) == 0
    with pytest.raises(InvalidInput, match=r"\(2, 4\) and \(4, 2\); give the transpose"):
        error(truth.T, truth)
    with pytest.raises(InvalidInput, match="give matrices with the same number of rows"):
        error(truth[:3], truth)
