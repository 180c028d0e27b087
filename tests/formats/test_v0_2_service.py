"""An inbox, nights and estimators of 0.2.0 are read and gone on with as by itself."""

import pickle

import numpy as np
import pytest
from frozen import content_of, expected, files_in, place_of, plain, store_told, unpack, within
from frozen_service import (
    estimator_told,
    history_told,
    inbox_told,
    night_of,
    numbers_of,
    third_night,
)

from streaming_moments.pipelines.service.tokens import Role, TokenFile
from streaming_moments.storage.store.store import MomentStore

ESTIMATORS = sorted(expected("estimators"))


def test_an_inbox_is_read_and_what_waits_in_it_is_counted(embedded_run):
    unpack("inbox")
    told = expected("inbox")
    store = MomentStore.open(f"{place_of('inbox')}/store")
    assert list(within(told["store"], plain(store_told(store)))) == []
    asked = told["receipts"], told["deletions"], told["again"]
    found = plain(inbox_told("inbox", embedded_run, *asked))
    for part in ("tokens", "receipts", "deletions", "again", "store"):
        del told[part]
    assert list(within(told, found)) == []


def test_an_inbox_holds_one_of_each_thing_that_there_is():
    places = {path.split("/")[1] for path in files_in("inbox") if path.startswith("store-inbox/")}
    assert places >= {
        *("inbox.json", "batches", "claims", "left_out", "seals", "sealed", "counted"),
        *("selection", "deletions", "deletion-plans", "aside", "gone", "deleted"),
    }


def test_tokens_are_known(tmp_path):
    (tmp_path / "tokens.json").write_bytes(files_in("inbox")["tokens.json"])
    known = TokenFile(tmp_path / "tokens.json").read()
    for name, token in expected("inbox")["tokens"].items():
        found = known.principal_of(token)
        assert (found.name, found.role) == (name, Role.called(name))
    assert known.principal_of("of nobody") is None


@pytest.mark.parametrize("name", ["night", "night_vectors"])
def test_nights_go_on(name, embedded_run):
    unpack(name)
    told = expected(name)
    night = night_of(name, told["create"], told["refit"])
    assert list(within(told["store"], plain(store_told(MomentStore.open(night.store))))) == []
    assert list(within(told["history"], history_told(name, night))) == []
    assert list(within(told["third"], plain(third_night(name, night, embedded_run)))) == []
    # pages of the nights before are as they were
    after = content_of(name)
    for path, content in files_in(name).items():
        if "/night-" in path:
            assert after[path] == content, path


@pytest.mark.parametrize("called", ESTIMATORS)
def test_a_pickled_estimator_is_read(called):
    told = expected("estimators")[called]
    estimator, rows = pickle.loads(files_in("estimators")[f"{called}.pickle"])
    found = plain(estimator_told(estimator, rows))
    how, numbers = numbers_of(estimator, rows)
    assert how == told["by"]
    np.testing.assert_allclose(numbers, told["numbers"], atol=1e-6)
    same = {name: told["arrays"][name] for name in told["arrays"].keys() & found["arrays"].keys()}
    assert list(within({**told, "arrays": same, "numbers": found["numbers"]}, found)) == []
    # and pickled again
    again = pickle.loads(pickle.dumps(estimator))
    np.testing.assert_array_equal(numbers_of(again, rows)[1], numbers)


def test_an_estimator_that_rows_were_added_to_takes_more():
    estimator, rows = pickle.loads(files_in("estimators")["MomentTopics added to.pickle"])
    before = estimator.n_documents_ if hasattr(estimator, "n_documents_") else None
    estimator.partial_fit(rows)
    np.testing.assert_allclose(estimator.transform(rows).sum(axis=1), 1)
    if before is not None:
        assert estimator.n_documents_ == before + len(rows)
