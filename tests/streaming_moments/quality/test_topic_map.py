import numpy as np
import pytest
from scipy.spatial.distance import cdist, jensenshannon

from streaming_moments.errors import InvalidInput
from streaming_moments.quality.topic_map import classical_scaling, topic_distances


def test_distances_are_those_of_scipy():
    topics = np.random.default_rng(0).dirichlet(np.full(50, 0.2), size=6).T
    topics[:5, 0] = 0
    topics /= topics.sum(axis=0)
    found = topic_distances(topics)
    for one in range(6):
        for other in range(6):
            expected = jensenshannon(topics[:, one], topics[:, other], base=2)
            assert found[one, other] == pytest.approx(expected, abs=1e-7)
    assert np.array_equal(found, found.T)


def test_places_in_the_plane_are_found_again():
    places = np.random.default_rng(1).normal(size=(12, 2))
    distances = cdist(places, places)
    found = classical_scaling(distances)
    assert np.allclose(cdist(found, found), distances)
    assert np.allclose(found.mean(axis=0), 0)


def test_the_map_does_not_flip_when_a_distance_changes_a_little():
    places = np.random.default_rng(2).normal(size=(9, 2)) * [3, 1]
    before = classical_scaling(cdist(places, places))
    moved = places + np.random.default_rng(3).normal(scale=1e-3, size=places.shape)
    after = classical_scaling(cdist(moved, moved))
    assert np.abs(before - after).max() < 0.01


@pytest.mark.parametrize("k", [0, 1, 2])
def test_few_topics_have_places_too(k):
    assert classical_scaling(1 - np.eye(k)).shape == (k, 2)


def test_what_is_no_matrix_is_refused():
    with pytest.raises(InvalidInput):
        classical_scaling([[0, 1, 2], [1, 0, 3]])
    with pytest.raises(InvalidInput):
        topic_distances([0.5, 0.5])
