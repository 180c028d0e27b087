"""Labels: names of topics, in which commit, and in the next model."""

import numpy as np
import pytest

from streaming_moments.errors import InvalidInput, StoreError
from streaming_moments.models.factors.independent_factors import IndependentFactors
from streaming_moments.models.mixtures.gaussian_mixture import GaussianMixture
from streaming_moments.models.topics import TopicModel
from streaming_moments.storage.operations.labels import label, succession
from streaming_moments.testing.small_store import append, create, model_of


@pytest.fixture
def store():
    """Two models of three topics each, without labels."""
    store = append(create(), {"a": 1, "b": 2})
    return store.save_model("first", model_of(0, 3)).save_model("second", model_of(1, 3))


def labels(store):
    return {name: model.labels for name, model in store.models.items()}


def test_the_latest_model_is_labelled_unless_another_is_named(store):
    store = label(store, 2, "sea")
    assert labels(store) == {"first": {}, "second": {2: "sea"}}
    assert (store.commit.operation, store.commit.message) == (
        "label",
        "label topic 2 of second: sea",
    )
    store = label(store, 0, "law", "first", "as we agreed")
    assert labels(store) == {"first": {0: "law"}, "second": {2: "sea"}}
    assert store.commit.message == "as we agreed"


def test_a_label_takes_the_place_of_another_and_an_empty_one_takes_it_away(store):
    for topic, text in ((2, "sea"), (0, "law"), (2, "ship")):
        store = label(store, topic, text)
    assert labels(store)["second"] == {0: "law", 2: "ship"}
    assert [*labels(store)["second"]] == [0, 2]
    store = label(store, 0, "")
    assert labels(store)["second"] == {2: "ship"}
    assert store.commit.message == "label topic 0 of second: none"


@pytest.mark.parametrize("topic", [-1, 3])
def test_a_topic_that_is_not_there_is_refused(store, topic):
    with pytest.raises(
        InvalidInput, match=f"'second' has topics 0 to 2, not {topic}; `streaming-moments topics`"
    ):
        label(store, topic, "sea")
    assert store.latest().version == store.version


def test_what_cannot_be_a_label_is_refused(store):
    with pytest.raises(InvalidInput, match="cannot be named"):
        label(store, 0, "a" * 101)
    with pytest.raises(StoreError, match="no model 'third'"):
        label(store, 0, "sea", "third")
    assert store.latest().version == store.version
    assert label(store, 0, "a" * 100).models["second"].labels == {0: "a" * 100}


def test_a_label_that_another_gave_meanwhile_stays(store):
    label(store, 0, "law")
    assert label(store, 1, "sea").models["second"].labels == {0: "law", 1: "sea"}


def turned(model, order):
    return TopicModel.from_topics(model.topics[:, order], model.weights[order], alpha0=0.1)


def test_a_later_model_has_the_labels_of_the_latest_that_has_any():
    # three topics that nobody takes for one another
    model = TopicModel.from_topics(
        np.array([[0.9, 0.05, 0.0], [0.05, 0.9, 0.0], [0.05, 0.05, 0.5], [0.0, 0.0, 0.5]]),
        np.full(3, 1 / 3),
        alpha0=0.1,
    )
    store = append(create(), {"a": 1, "b": 2})
    assert succession(store.save_model("none", model), model) is None
    store = store.latest().save_model("first", model)
    store = label(store, 0, "of the first", "first").save_model("second", turned(model, [2, 0, 1]))
    store = label(store, 1, "law", "second").save_model("unlabelled", model)
    after = turned(model, [1, 2, 0])
    found = succession(store, after)
    assert found.model == "second"
    assert dict(found.topics) == {0: 1, 1: 2, 2: 0}
    store = store.save_model("third", after, after=found)
    assert labels(store)["third"] == {2: "law"}
    assert succession(store, after).model == "third"


def test_a_model_without_states_has_no_labels(store):
    store = store.save_model("factors", IndependentFactors(np.eye(2), np.eye(2), np.zeros(2)))
    with pytest.raises(InvalidInput, match="model 'factors' has no topics, states or clusters"):
        label(store, 0, "sea")
    assert store.latest().version == store.version


def test_labels_are_not_carried_to_a_model_that_cannot_be_compared(store):
    store = label(store, 0, "law")
    means = np.arange(4.0).reshape(2, 2)
    mixture = GaussianMixture(means, np.full(2, 0.5), np.ones((2, 1)))
    assert succession(store, mixture) is None
    store = store.save_model("mixture", mixture)
    assert label(store, 1, "near").models["mixture"].labels == {1: "near"}
    with pytest.raises(InvalidInput, match="'mixture' has topics 0 to 1, not 2"):
        label(store, 2, "far", "mixture")
