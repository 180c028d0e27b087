"""What all models have of their base: parts, reordering, read-only arrays, a short repr."""

import pickle
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from streaming_moments.deprecation import Deprecated
from streaming_moments.errors import InvalidInput
from streaming_moments.models.chains.hidden_markov import HiddenMarkovModel
from streaming_moments.models.factors.independent_factors import IndependentFactors
from streaming_moments.models.halves import HeldOut
from streaming_moments.models.mixtures.gaussian_mixture import GaussianMixture
from streaming_moments.models.registry import MODELS
from streaming_moments.models.stored import StoredModel, stored_as
from streaming_moments.models.three_view.multi_view import MultiViewMixture
from streaming_moments.models.topics import TopicModel

SHARES = np.array([0.7, 0.3])
COLUMNS = np.array([[0.9, 0.2], [0.1, 0.8]])


def chain(**more):
    return HiddenMarkovModel(COLUMNS, COLUMNS, SHARES, SHARES, **more)


@dataclass(frozen=True, eq=False, repr=False)
class Counted(StoredModel):
    """A model with a field of each type."""

    name = "counted"
    nulls = ("score", "since")

    sizes: np.ndarray[tuple[int, ...], np.dtype[np.int64]]
    number: int = 0
    score: float = float("nan")
    called: tuple[str, ...] = ()
    scores: dict | None = field(default=None, metadata=stored_as(own=True))
    method: str = field(default="joint", metadata=stored_as(name="rotation"))
    held_out: HeldOut | None = None


def test_fields_are_stored_as_they_say():
    model = Counted(np.arange(3), 2, called=("a", "b"), held_out=HeldOut(-1.0, -2.0), documents=5)
    arrays, attributes = model.parts()
    assert [*arrays] == ["sizes"]
    assert attributes == {
        "number": 2,
        "score": None,
        "called": ["a", "b"],
        "rotation": "joint",
        "held_out": {"even": -1.0, "odd": -2.0},
        "documents": 5,
        "since": None,
    }
    again = Counted.from_parts(arrays, attributes)
    assert np.isnan(again.score)
    assert again.sizes.dtype == np.int64
    assert (again.called, again.held_out, again.method) == (("a", "b"), model.held_out, "joint")


@pytest.mark.parametrize(
    ("changed", "refused"),
    [
        ({"documents": 1.5}, "documents of the stored model counted cannot be read"),
        ({"documents": None}, "documents of the stored model counted cannot be read"),
        ({"score": "high"}, "score of the stored model counted cannot be read"),
        ({"held_out": {"even": 1.0}}, "held_out of the stored model counted cannot be read"),
        ({"called": 3}, "called of the stored model counted cannot be read"),
        ({"other": 3}, "model counted has no other; install the version of the package"),
    ],
)
def test_a_part_that_is_of_no_field_or_of_another_type_is_named(changed, refused):
    arrays, attributes = Counted(np.arange(3)).parts()
    with pytest.raises(InvalidInput, match=refused):
        Counted.from_parts(arrays, {**attributes, **changed})


@pytest.mark.parametrize("gone", ["bars", "word_bars"])
def test_bars_are_stored_together(gone):
    arrays, attributes = chain(bars=SHARES, word_bars=COLUMNS).parts()
    less = {name: array for name, array in arrays.items() if name != gone}
    with pytest.raises(InvalidInput, match=f"model hmm lacks {gone}; refit it"):
        HiddenMarkovModel.from_parts(less, attributes)


@pytest.mark.parametrize("gone", ["operators", "first", "last"])
def test_operators_are_stored_together(gone):
    arrays, attributes = chain().parts()
    ops = {"operators": np.ones((2, 2, 2)), "first": SHARES, "last": SHARES}
    del ops[gone]
    with pytest.raises(InvalidInput, match=f"model hmm lacks {gone}; refit it"):
        HiddenMarkovModel.from_parts({**arrays, **ops}, attributes)


def test_arrays_of_a_model_are_read_only_and_those_of_the_caller_are_not():
    means = np.eye(2)
    model = GaussianMixture(means, SHARES, np.ones((2, 1)))
    for one in (model, pickle.loads(pickle.dumps(model)), model.reordered(np.array([1, 0]))):
        for array in one.parts()[0].values():
            assert not array.flags.writeable
    means[0, 0] = 1.0
    assert means.flags.writeable


@pytest.mark.parametrize("order", [[0], [0, 0], [0, 2], [1, 0, 2]])
@pytest.mark.parametrize(
    "model",
    [
        chain(),
        MultiViewMixture(COLUMNS, COLUMNS, COLUMNS, SHARES),
        GaussianMixture(COLUMNS, SHARES, np.ones((2, 1))),
    ],
    ids=lambda one: one.name,
)
def test_an_order_that_is_no_permutation_is_refused(model, order):
    with pytest.raises(InvalidInput, match="does not name each of 2 topics once"):
        model.reordered(np.array(order))


def test_a_model_without_states_is_not_reordered():
    with pytest.raises(InvalidInput, match="model factors has no states"):
        IndependentFactors(np.eye(2), np.eye(2), np.ones(2)).reordered(np.arange(2))


def test_the_repr_has_the_numbers_of_states_and_records():
    model = chain(documents=7, since="2026-11-01")
    assert repr(model) == ("HiddenMarkovModel(2 states, 7 sequences, since 2026-11-01)")
    assert repr(pickle.loads(pickle.dumps(model))) == repr(model)


@pytest.mark.parametrize(
    "model",
    [chain(), MultiViewMixture(COLUMNS, COLUMNS, COLUMNS, SHARES)],
    ids=lambda one: one.name,
)
def test_a_model_is_a_table_of_its_states_in_notebooks(model):
    shown = model._repr_html_()
    assert shown.startswith(f"<table><caption>{model!r}</caption><tr><th>state</th><th>weight</th>")
    assert shown.count("<tr>") == 3


# by class: the fields that had another name before 0.3.0, with that name
RENAMED = {
    "HiddenMarkovModel": {"transition": "moves"},
    "MultiViewMixture": {"n_missing": "without"},
    "GaussianMixture": {
        "n_separable": "told_apart",
        "n_missing": "without",
        "n_clipped": "drawn_in",
    },
    "IndependentFactors": {
        "n_directions": "told_apart",
        "n_missing": "without",
        "n_clipped": "drawn_in",
    },
}


LOST = {"n_missing": 5, "n_clipped": 7}
RENAMED_MODELS = [
    HiddenMarkovModel(
        COLUMNS, np.array([[0.6, 0.3], [0.4, 0.7]]), *[SHARES] * 2, window_score=-1.0
    ),
    MultiViewMixture(COLUMNS, COLUMNS, COLUMNS, SHARES, n_missing=5),
    GaussianMixture(COLUMNS, SHARES, np.ones((2, 1)), n_separable=3, **LOST),
    IndependentFactors(np.eye(2), np.eye(2), np.ones(2), n_directions=3, **LOST),
]


@pytest.mark.parametrize("model", RENAMED_MODELS, ids=lambda one: one.name)
def test_a_renamed_field_has_its_old_name_in_stores_and_for_a_release_in_python(model):
    renamed = RENAMED[type(model).__name__]
    stored = dict(zip(("arrays", "attributes"), model.parts(), strict=True))
    for new, old in renamed.items():
        value = getattr(model, new)
        there = "arrays" if isinstance(value, np.ndarray) else "attributes"
        assert np.array_equal(stored[there].pop(old), value)
        with pytest.warns(Deprecated, match=rf"\.{old} is deprecated .* use {new}$"):
            assert getattr(model, old) is value
        other = 0 * value
        with pytest.warns(Deprecated, match=rf"\({old}=\) is deprecated .* use {new}$"):
            assert np.array_equal(getattr(replace(model, **{old: other}), new), other)
    assert not renamed.keys() & (stored["arrays"].keys() | stored["attributes"].keys())
    again = type(model).from_parts(*model.parts())
    assert repr(again) == repr(model)
    facts = model.described().facts
    assert again.described().facts == facts
    # what commands print as JSON
    told = {old: np.transpose(getattr(model, new)).tolist() for new, old in renamed.items()}
    assert told == {old: facts[old] for old in renamed.values()}


@pytest.mark.parametrize("model", RENAMED_MODELS, ids=lambda one: one.name)
def test_a_pickle_with_the_old_names_is_read(model):
    renamed = RENAMED[type(model).__name__]
    state = {renamed.get(name, name): value for name, value in vars(model).items()}
    old = object.__new__(type(model))
    old.__setstate__(state)
    assert vars(old).keys() == vars(model).keys()
    for name in renamed:
        assert np.array_equal(getattr(old, name), getattr(model, name))
    assert repr(pickle.loads(pickle.dumps(old))) == repr(model)


def test_alpha0_of_a_fit_is_told_apart_from_the_sum_of_alpha():
    fitted = TopicModel.from_topics(COLUMNS, SHARES, alpha0=0.3)
    learned = fitted.with_alpha_sum(0.7)
    assert (learned.alpha0, learned.alpha_sum) == (0.3, 0.7)
    assert "alpha0 0.3, sum of alpha 0.7" in repr(learned)
    np.testing.assert_allclose(learned.alpha, 0.7 * SHARES)
    # stores and pickles of versions before 0.3.0 have the sum alone, called alpha0
    arrays, attributes = fitted.parts()
    assert attributes["alpha0"] == 0.3
    assert not {"alpha_sum", "given_alpha0"} & attributes.keys()
    state = dict(vars(fitted))
    del state["given_alpha0"]
    old = object.__new__(TopicModel)
    old.__setstate__({**state, "alpha0": state.pop("alpha_sum")})
    for model in (old, TopicModel.from_parts(arrays, attributes)):
        assert (model.alpha0, model.alpha_sum) == (0.3, 0.3)
        assert "sum of alpha" not in repr(model)


@pytest.mark.parametrize("name", MODELS)
def test_options_take_the_number_by_the_name_of_calls_and_of_commands(name):
    options = MODELS[name].Options
    assert options(n_topics=3) == options(topics=3)
    with pytest.raises(TypeError, match="n_topics"):
        options(topics=3, n_topics=3)
