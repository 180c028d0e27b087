"""Every model of the registry has a row at each door, or `ABSENT` says what to do instead."""

import sys
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest

from streaming_moments import sklearn
from streaming_moments.errors import InvalidInput, StoreError
from streaming_moments.models.base import Model
from streaming_moments.models.factors.independent_factors import IndependentFactors
from streaming_moments.models.latent_trees.model import LatentTree
from streaming_moments.models.passes.families import PASSES, passes_of
from streaming_moments.models.registry import ABSENT, MODELS
from streaming_moments.models.rows import InMemory
from streaming_moments.models.states import MATCHED
from streaming_moments.pipelines.interface.reading import options_of
from streaming_moments.pipelines.jobs.outputs.registry import OUTPUTS, output_of
from streaming_moments.pipelines.nightly.config import config_of
from streaming_moments.pipelines.reports.model_pages.registry import SHOWN
from streaming_moments.pipelines.service.predict import ANSWERS, Answering
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.counts.statistics import MomentStatistics
from streaming_moments.statistics.registry import KINDS
from streaming_moments.storage.operations.history import difference, tag
from streaming_moments.synthetic.tables import latent_tree_table
from streaming_moments.testing.small_store import append, create

NIGHT = {"store": "s", "shards": ["*"], "output": "r"}
MEMBERS = {*Model.__annotations__, *(name for name in vars(Model) if name[0] != "_")}


def has(model, members):
    return members <= {*dir(model), *getattr(model, "__dataclass_fields__", ())}


def fitted_at_night(model):
    try:
        night = config_of({**NIGHT, "refit": {"model": model.name, "topics": 2}}, "n.toml")
    except InvalidInput:
        return False
    return night.refit.family is model and isinstance(night.refit.options(2, 0.1), model.Options)


def an_estimator(model):
    modules = [sys.modules[getattr(sklearn, name).__module__] for name in sklearn.__all__]
    return any(model in vars(module).values() for module in modules)


def fitted_from_python(model):
    options = getattr(model, "Options", None)
    return options is not None and isinstance(options_of(model, {"n_topics": 2}), options)


def matched(model):
    return model.name in MATCHED


# The file that gets the line, and whether a model has one.
DOORS = {
    "refit": (
        "its class, or statistics/registry.py",
        lambda m: has(m, MEMBERS) and m.kind in KINDS,
    ),
    "topics": ("its class", lambda m: has(m, {"described"})),
    "transform": ("pipelines/jobs/outputs/registry.py", lambda m: m.name in OUTPUTS),
    "diff": ("streaming_moments/models/states.py", matched),
    "page": ("pipelines/reports/model_pages/registry.py", lambda m: m.name in SHOWN),
    "night": ("streaming_moments/models/registry.py", fitted_at_night),
    "service": ("its class", lambda m: m.name in ANSWERS and has(m, {"read"})),
    "estimator": ("streaming_moments/sklearn/", an_estimator),
    "Python": ("its class", fitted_from_python),
    "polish": ("streaming_moments/models/passes/families.py", lambda m: m.name in PASSES),
}


def problem(model, door):
    """What is wrong with a model at a door, as a sentence; empty where nothing is."""
    file, there = DOORS[door]
    declared = model.name in ABSENT.get(door, {})
    if there(model):
        stale = f"model {model.name} has a row at {door}; take it out of ABSENT in the registry"
        return stale if declared else ""
    if declared:
        return ""
    return (
        f"model {model.name} lacks {door}: give it a line in {file}, or declare in ABSENT of "
        "models/registry.py what to do instead"
    )


class Fake:
    """A model that is a name alone."""

    name: ClassVar[str] = "fake"
    kind: ClassVar[str] = "counts"


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("name", MODELS)
def test_every_model_is_at_every_door(name, door):
    assert problem(MODELS[name], door) == ""


@pytest.mark.parametrize("door", DOORS)
def test_a_model_without_a_row_is_named_with_the_door_and_the_file(door):
    told = problem(Fake, door)
    assert told.startswith(f"model fake lacks {door}: give it a line in {DOORS[door][0]}")


def test_a_row_that_is_declared_absent_is_named(monkeypatch):
    monkeypatch.setitem(DOORS, "transform", ("", lambda model: True))
    assert "take it out of ABSENT" in problem(MODELS["blockmodel"], "transform")


def test_what_is_declared_is_of_doors_and_models_that_there_are():
    assert {*ABSENT} <= {*DOORS}
    for models in ABSENT.values():
        assert {*models} <= {*MODELS}
        assert all(models.values())


# The doors whose rows the product looks up, and what it is asked there.
ASKED = {
    "transform": lambda model: output_of(model.name),
    "polish": passes_of,
    "service": lambda model: Answering(None, model, None).read(b"{}\n"),
}


@pytest.mark.parametrize("door", ASKED)
def test_the_product_says_what_to_do_where_a_model_is_not_known(door):
    with pytest.raises(
        InvalidInput, match=f"model fake is not supported by {door}; give one of the models "
    ):
        ASKED[door](Fake)


@pytest.mark.parametrize(
    ("door", "name"), [(door, name) for door in ASKED for name in ABSENT.get(door, {})]
)
def test_the_product_says_what_is_declared(door, name):
    with pytest.raises(InvalidInput) as refused:
        ASKED[door](MODELS[name])
    assert str(refused.value) == f"model {name} {ABSENT[door][name]}"


def a_tree():
    planted = latent_tree_table(2000, n_columns=4, n_states=2, n_categories=2, seed=1)
    batch = planted.table.batch(planted.codes)
    statistics = MomentStatistics.of(batch, Basis.of_table(planted.table))
    tree = LatentTree.fit(InMemory((statistics,)), LatentTree.Options(topics=2))
    return replace(tree, vocabulary=create().vocabulary.fingerprint)


def factors():
    return IndependentFactors(np.eye(2), np.eye(2), np.ones(2))


@pytest.mark.parametrize("made", [a_tree, factors])
def test_a_difference_of_models_that_are_not_matched_says_what_is_declared(made):
    store = append(create(), {"a": 1})
    model = made()
    store = tag(store.save_model("one", model), "live", "one")
    before = store.version
    store = tag(store.save_model("two", model), "live", "two")
    assert difference(store, before, store.version).moved == {}
    with pytest.raises(StoreError) as refused:
        difference(store, before, store.version, "live")
    assert str(refused.value) == f"model live {ABSENT['diff'][model.name]}"


def test_every_model_that_is_declared_for_diff_was_tried():
    assert {*ABSENT["diff"]} == {LatentTree.name, IndependentFactors.name}
