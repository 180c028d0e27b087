"""Values of the wrong type at the public functions: one line that says what is taken."""

import contextlib
import copy
import inspect
import traceback
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import streaming_moments
from streaming_moments import pipelines, sklearn, storage
from streaming_moments.arguments import checked, fits
from streaming_moments.errors import InvalidInput, StreamingMomentsError
from streaming_moments.models.base import Model
from streaming_moments.statistics import estimate
from streaming_moments.synthetic.hidden import markov_sequences, view_records
from streaming_moments.synthetic.mixtures import factor_rows, mixture_rows
from streaming_moments.synthetic.sets import feature_sets
from streaming_moments.synthetic.tables import latent_tree_table
from streaming_moments.testing import small_store

FUNCTIONS = {
    name: getattr(streaming_moments, name)
    for name in ("create_store", "fit", "fit_by", "from_gensim", "open_store", "polished")
}
CLASSES = {"Store": streaming_moments.Store, "Topics": streaming_moments.Topics}
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.floats(),
    st.text("ab", max_size=3),
    st.binary(max_size=3),
    st.just(object()),
    st.lists(st.one_of(st.none(), st.integers(0, 3), st.just("a")), max_size=2),
    st.dictionaries(st.text("ab", max_size=1), st.integers(), max_size=1),
    st.just(np.zeros(2)),
)
WRONG = VALUES | st.just(len) | st.just(int)


@pytest.fixture(scope="module")
def right(tmp_path_factory):
    """What each parameter takes, by its name."""
    folder = tmp_path_factory.mktemp("arguments")
    (folder / "a.txt").write_text("law sea\nship tax\n" * 9)
    store = small_store.create()
    store = store.append(small_store.segment(store, {"a": 1, "b": 2}))
    return {
        "store": store,
        "model": replace(small_store.model_of(0), vocabulary=small_store.VOCABULARY.fingerprint),
        "statistics": small_store.total([1, 2]),
        "url": str(folder / "store"),
        "documents": [str(folder / "a.txt")],
        "n_topics": 1,
        "batches": [],
        "bags": [[(0, 1)]],
        "dictionary": {0: "sea"},
    }


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_what_a_function_cannot_work_with_is_an_error_of_ours(name, right, data):
    function = FUNCTIONS[name]
    parameters = inspect.signature(function).parameters
    # where Dask would wait, for workers or a scheduler at an address
    wrong = data.draw(st.sampled_from([one for one in parameters if one != "worker_timeout"]))
    given = {
        one: right[one]
        for one, parameter in parameters.items()
        if parameter.default is inspect.Parameter.empty
    }
    given[wrong] = data.draw(WRONG)
    try:
        result = function(**given)
        if hasattr(result, "__enter__"):
            with result:
                pass
    except StreamingMomentsError as error:
        said = str(error)
    else:
        said = "what can be worked with is"
    assert said
    assert "\n" not in said


def test_the_argument_is_named_with_what_it_is_and_what_is_taken(right):
    with pytest.raises(InvalidInput) as caught:
        streaming_moments.fit(None, 3)
    assert str(caught.value) == (
        "statistics is of type NoneType; fit takes MomentStatistics or WeightedStatistics"
    )
    with pytest.raises(InvalidInput, match="^name is of type int; Store.topics takes str or None$"):
        streaming_moments.Store(right["store"]).topics(name=3)


@pytest.mark.parametrize(
    ("name", "what"),
    {
        "text_column": "counting=CountingOptions(text_column=...)",
        "language": "counting=CountingOptions(languages=...)",
        "min_df": "pilot=PilotOptions(min_documents=...)",
        "kind": "shape=KindOptions(kind=...)",
        "n_topics": "max_topics",
        "n_tokeniser": "tokeniser",
    }.items(),
)
def test_an_unknown_name_of_a_field_of_options_is_answered_with_the_call(name, what):
    with pytest.raises(TypeError) as caught:
        streaming_moments.create_store("memory://", ["a text"], source="a", **{name: None})
    assert str(caught.value) == f"create_store has no argument {name}; give {what}"


def test_an_unknown_kind_is_named_with_those_that_are_known():
    with pytest.raises(InvalidInput, match="^there is no kind 'graph'; choose among counts, views"):
        streaming_moments.KindOptions("graph", "a,b")


def test_a_matrix_in_place_of_a_batch_is_named():
    model = streaming_moments.TopicModel.from_topics(np.eye(3)[:, :2], np.array([0.5, 0.5]), 0.1)
    for call in (estimate, partial(streaming_moments.polished, model)):
        with pytest.raises(InvalidInput, match=r"type ndarray; .* by CountBatch.from_csr\(X\)$"):
            call(np.eye(3))


def test_other_errors_and_calls_without_arguments_stay_as_they_are():
    def broken(number: int) -> int:
        raise ValueError(f"{number} is fine, this code is not")

    with pytest.raises(ValueError, match="3 is fine") as caught:
        checked(broken)(3)
    assert not isinstance(caught.value, StreamingMomentsError)
    with pytest.raises(TypeError, match="missing"):
        streaming_moments.fit()


@pytest.mark.parametrize(
    ("value", "hint", "expected"),
    [
        (3, int, True),
        (True, int, False),
        (np.int64(3), int, True),
        (3, float, True),
        ("joint", "any name that is not resolved", True),
        (None, int | None, True),
        ([1, "a"], list[int], False),
        (object(), Model, False),
        (np.zeros(2), np.ndarray, True),
    ],
)
def test_what_fits_a_hint(value, hint, expected):
    assert fits(value, hint) == expected


@pytest.fixture(scope="module")
def instances(right):
    """One of each public class, by its name."""
    return {
        "Store": streaming_moments.Store(right["store"]),
        "Topics": streaming_moments.Topics(
            right["model"], small_store.VOCABULARY, storage.TokenPolicy()
        ),
    }


def members(kind):
    """What makes one of a class, and its public methods that take something."""
    for name in dir(kind):
        function = getattr(kind, name)
        called = inspect.isfunction(function) or inspect.ismethod(function)
        if called and (name == "__init__" or not name.startswith("_")):
            named = inspect.signature(function).parameters
            # what comes in any number has no name to call it by
            taken = [name for name, one in named.items() if one.kind is not one.VAR_POSITIONAL]
            # the one of whom it is asked, whatever it is called there
            taken = taken[1:] if inspect.isfunction(inspect.getattr_static(kind, name)) else taken
            if taken and function.__module__.startswith("streaming_moments"):
                yield name, taken


@pytest.mark.parametrize("name", sorted(CLASSES))
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_what_a_class_cannot_work_with_is_an_error_of_ours(name, instances, tmp_path_factory, data):
    one = instances[name]
    member, taken = data.draw(st.sampled_from([*members(CLASSES[name])]))
    # what a function that is given does is its own
    wrong = {parameter: data.draw(VALUES) for parameter in taken if parameter != "worker_timeout"}
    with contextlib.chdir(tmp_path_factory.getbasetemp()):
        said = "what can be worked with is"
        try:
            if member == "__init__":
                field = data.draw(st.sampled_from([*wrong]))
                replace(one, **{field: wrong[field]})
            else:
                result = getattr(one, member)(**wrong)
                if inspect.isgenerator(result):
                    next(result, None)
        except StreamingMomentsError as error:
            said = str(error)
    assert said
    assert "\n" not in said


@pytest.fixture(scope="module")
def seen():
    """Each estimator fitted, and on what, by its name."""
    tables = np.kron(np.eye(2, dtype=np.int64), np.ones((6, 6), dtype=np.int64))
    table = latent_tree_table(300, n_columns=4, n_states=2, n_categories=2, seed=1)
    records = view_records(400, sizes=(6, 5, 4), k=2, seed=1)
    given = {
        "MomentBernoulliMixture": feature_sets(300, 8, 2, mean=0.3, seed=1).batch.to_csr(),
        "MomentCommunities": tables - np.eye(12, dtype=np.int64),
        "MomentFactors": factor_rows(300, 4, 1, noise=0.1, seed=1).rows,
        "MomentGaussianMixture": mixture_rows(300, 4, 2, separation=5.0, seed=1).rows,
        "MomentHMM": list(
            markov_sequences(60, length=20, n_symbols=4, k=2, seed=1).batch.symbols.reshape(60, 20)
        ),
        "MomentLatentTree": table.codes,
        "MomentTopics": 3 * tables + 1,
        "MomentViews": [view.to_csr() for view in records.batch.views],
    }
    return {name: (getattr(sklearn, name)().fit(X), X) for name, X in given.items()}


@pytest.mark.parametrize("name", sklearn.__all__)
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_what_an_estimator_cannot_work_with_is_an_error_of_ours(name, seen, data):
    kind, (fitted, X) = getattr(sklearn, name), seen[name]
    member, taken = data.draw(
        st.sampled_from([one for one in members(kind) if one[0] != "set_params"])
    )
    wrong = data.draw(st.sampled_from([one for one in taken if one != "y"]))
    value, said = data.draw(VALUES), "what can be worked with is"
    try:
        if member == "__init__":
            kind(**{wrong: value}).fit(X)
        else:
            right = {"X": X} if "X" in taken else {}
            getattr(copy.copy(fitted), member)(**{**right, wrong: value})
    except StreamingMomentsError as error:
        said = str(error)
    except (TypeError, ValueError) as error:
        # what scikit-learn says of an array that is none it says itself
        where = traceback.extract_tb(error.__traceback__)[-1].filename
        if wrong != "X" or "sklearn" not in where:
            raise
    assert said
    assert "\n" not in said


def test_a_field_of_what_is_given_is_named(right):
    wrong = pipelines.CountingOptions(text_column=3)
    with pytest.raises(InvalidInput, match="^text_column of a CountingOptions is of type int; "):
        streaming_moments.create_store(right["url"], right["documents"], counting=wrong)


@pytest.mark.parametrize("name", sklearn.__all__)
def test_a_number_of_components_that_is_none_is_refused(name, seen):
    with pytest.raises(StreamingMomentsError):
        getattr(sklearn, name)(n_components=None).fit(seen[name][1])
