"""What the service knows of store, model, tokens and inbox as these change, look by look."""

import shutil
import threading
import time
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from streaming_moments.errors import InvalidInput, StoreError
from streaming_moments.pipelines.service import counting_progress, state_view, validation
from streaming_moments.pipelines.service.config import service_of
from streaming_moments.pipelines.service.counting_progress import Counting, counting_now
from streaming_moments.pipelines.service.ingest_worker.counted import note_reached
from streaming_moments.pipelines.service.ingest_worker.steps import FailingStep
from streaming_moments.pipelines.service.limits import LimitsSection
from streaming_moments.pipelines.service.published import Published
from streaming_moments.pipelines.service.record_schema import shape_of, takes_texts
from streaming_moments.pipelines.service.state_view import Current
from streaming_moments.pipelines.service.tokens import Role, add_token
from streaming_moments.pipelines.service.validation import DOCUMENTS_OF_ROOM, Countable
from streaming_moments.statistics.views.statistics import PEAK
from streaming_moments.storage.counting.tokenisers.base import TokeniserMissing
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.inbox.inbox import Inbox
from streaming_moments.storage.inbox.sealing import SealLog
from streaming_moments.storage.inbox.set_aside import SetAside
from streaming_moments.storage.operations.labels import label
from streaming_moments.storage.store.model_changes import TagMove
from streaming_moments.storage.store.store import MomentStore

UNCOUNTED = "no documents are counted, because each cycle fails: "


class Looked:
    """What a service of a store knows, and what it was told of problems."""

    def __init__(self, store, **content):
        self.lines, self.replaced = [], []
        config = service_of({"store": str(store), **content}, "service.toml")
        self.current = Current(config, self.lines.append, lambda: self.replaced.append(1))


@pytest.fixture
def look_at(archived):
    """Looks at stores as 0.2.0 wrote them."""

    def looked(name, **content):
        return Looked(archived(name), **content)

    return looked


def test_a_model_is_published_although_it_cannot_read_texts_here(look_at, monkeypatch):
    def lacking(published):
        raise TokeniserMissing("tokeniser thai needs pythainlp")

    monkeypatch.setattr(Published, "warm", lacking)
    looked = look_at("night")
    assert (looked.current.view.published.name, looked.current.view.problems) == ("night-v3", {})
    assert looked.lines == ["model: night-v3 reads no texts: tokeniser thai needs pythainlp"]


def test_a_new_version_and_model_are_found_and_what_is_the_same_is_not_read_again(
    look_at, monkeypatch
):
    looked = look_at("night")
    current, first = looked.current, looked.current.view
    assert (first.store.version, first.published.name, first.problems) == (4, "night-v3", {})
    assert first.intake.takes_texts is True
    again = current.look()
    assert (again.store, again.intake, again.published) == (
        first.store,
        first.intake,
        first.published,
    )
    model = first.store.load_any_model("night-v1")
    store = first.store.save_model("kept", model, tag=None)
    with monkeypatch.context() as patch:
        patch.setattr(Published, "of", lambda *told: pytest.fail("loaded again"))
        patch.setattr(MomentStore, "open", lambda *told, **how: pytest.fail("read again"))
        found = current.look()
        assert (found.store.version, found.published.version) == (5, 5)
        assert found.published.model is first.published.model
    store.save_model("other", model, tag=TagMove("published", "night-v3"))
    found = current.look()
    assert (found.published.name, found.published.version) == ("other", found.store.version)
    assert (looked.lines, looked.replaced, found.intake) == ([], [], first.intake)


def test_what_cannot_be_looked_at_stays_as_it_was_and_is_told_once(look_at, monkeypatch):
    looked = look_at("night")
    before = looked.current.view

    def away(*told):
        raise StoreError("away")

    def broken(*told):
        raise ZeroDivisionError("oh")

    with monkeypatch.context() as patch:
        patch.setattr(MomentStore, "is_there", away)
        patch.setattr(Inbox, "backlog", broken)
        for _ in range(2):
            found = looked.current.look()
        assert found.problems == {
            "store": "away",
            "inbox": "ZeroDivisionError: oh",
            "counting": f"{UNCOUNTED}ZeroDivisionError: oh",
        }
        assert (found.store, found.published, found.backlog) == (
            before.store,
            before.published,
            before.backlog,
        )
    assert looked.lines == [
        f"counting: {UNCOUNTED}ZeroDivisionError: oh",
        "inbox: ZeroDivisionError: oh",
        "store: away",
    ]
    assert looked.current.look().problems == {}
    assert looked.lines[3:] == [
        f"{part}: can be checked again" for part in ("counting", "inbox", "store")
    ]


def test_a_model_that_could_not_be_loaded_is_looked_at_again(look_at, monkeypatch):
    looked = look_at("night")
    first = looked.current.view.published
    label(looked.current.view.store, 0, "sea", "night-v3")
    with monkeypatch.context() as patch:
        patch.setattr(Current, "_published", lambda *told: 1 // 0)
        assert set(looked.current.look().problems) == {"model"}
        assert looked.current.view.published is first
    found = looked.current.look()
    assert (found.problems, found.published.version) == ({}, 5)


def test_a_store_of_another_lineage_is_read_whole(look_at, monkeypatch):
    looked = look_at("night")
    first = looked.current.view.store
    after = first.save_model("kept", first.load_any_model("night-v1"), tag=None)
    lineage = replace(after.commit.lineage, pilot={"another": 1})
    other = replace(after, commit=replace(after.commit, lineage=lineage))
    monkeypatch.setattr(MomentStore, "latest", lambda self: other)
    found = looked.current.look()
    assert dict(found.problems) == {}
    assert found.store is not other
    assert found.store.commit == after.commit


def test_a_model_is_warm_before_it_answers_and_there_may_be_none(look_at, monkeypatch):
    warm = []
    monkeypatch.setattr(Published, "warm", lambda self: warm.append(self.name))
    assert look_at("night").current.view.published.name == "night-v3"
    assert warm == ["night-v3"]
    monkeypatch.setattr(Published, "of", lambda *told: None)
    view = look_at("counts_2").current.view
    assert (view.published, dict(view.problems)) == (None, {})


def test_what_cannot_be_looked_at_when_it_begins_is_none(look_at, monkeypatch):
    def away(*told):
        raise StoreError("away")

    monkeypatch.setattr(SealLog, "latest", away)
    monkeypatch.setattr(state_view, "require_owner", away)
    looked = look_at("night")
    problems = {"counting": f"{UNCOUNTED}away", "inbox": "away", "seals": "away"}
    assert looked.current.view.problems == problems
    told = [f"{name}: {why}" for name, why in problems.items()]
    assert (looked.current.view.sealed, looked.lines) == (0, told)
    monkeypatch.setattr(Inbox, "backlog", lambda self: 1 // 0)
    assert looked.current.look().problems["inbox"].startswith("ZeroDivisionError"), "the first"


def test_another_store_at_the_place_is_read_anew(archived, look_at):
    looked = look_at("night")
    first = looked.current.view
    place = archived("counts_3")
    shutil.rmtree(first.store.url)
    shutil.copytree(place, first.store.url)
    found = looked.current.look()
    assert looked.replaced == [1]
    assert (found.store.version, found.published.name) == (8, "topics")
    assert found.intake is not first.intake
    assert set(found.problems) == {"counting", "owner"}


def test_what_the_store_takes_no_more_is_told_until_it_takes_it_again(look_at, monkeypatch):
    looked = look_at("night")
    first, commit = looked.current.view, looked.current.view.store.commit
    lineage = replace(commit.lineage, pilot={"another": 1})
    other = replace(first.store, commit=replace(commit, lineage=lineage))

    def refused(store, limits):
        raise InvalidInput("of ids")

    with monkeypatch.context() as patch:
        patch.setattr(Current, "_latest", lambda self, store: other)
        patch.setattr("streaming_moments.pipelines.service.record_schema.shape_of", refused)
        found = looked.current.look()
        assert (found.intake, found.problems["documents"]) == (None, "of ids")
        with pytest.raises(StoreError, match="of ids"):
            assert looked.current.intake
    monkeypatch.setattr(Current, "_latest", lambda self, store: store)
    found = looked.current.look()
    assert dict(found.problems) == {}
    assert found.intake.takes_texts
    assert looked.current.intake is found.intake


def test_tokens_that_cannot_be_read_are_none(look_at, tmp_path):
    path = tmp_path / "tokens.json"
    made = add_token(path, "me", Role.READER)
    looked = look_at("night", tokens=str(path))
    current = looked.current
    assert current.view.tokens.principal_of(made).name == "me"
    whole = path.read_bytes()
    path.write_bytes(b"?")
    current.look_at_tokens()
    assert (set(current.view.problems), current.view.tokens.several) == ({"tokens"}, ())
    assert len(looked.lines) == 1
    assert set(current.look().problems) == {"tokens"}, "a look at all else keeps it"
    path.write_bytes(whole)
    current.look_at_tokens()
    assert (dict(current.view.problems), len(current.view.tokens.several)) == ({}, 1)
    assert looked.lines[1:] == ["tokens: can be checked again"]
    add_token(path, "you", Role.READER)
    assert len(current.look().tokens.several) == 2
    without = look_at("counts_2").current
    assert without.view.tokens is None
    without.look_at_tokens()
    assert without.view.tokens is None


def test_silence_grows_from_look_to_look_and_threads_renew_the_view(look_at):
    current = look_at("night", refresh="5ms").current
    current._looked -= 100
    assert current.silence >= 100
    current.look()
    assert current.silence < 100
    assert [one.name for one in current._threads] == [
        "looking at the store",
        "looking at the tokens",
    ]
    first = current.view
    current.start()
    deadline = time.monotonic() + 60
    while current.view is first:
        assert time.monotonic() < deadline
    current.stop()
    assert not any(one.is_alive() for one in current._threads)
    assert all(one.daemon for one in current._threads)
    look_at("counts_2").current.stop()  # of one that never began


def test_each_look_asks_for_room_in_the_inbox(look_at, monkeypatch):
    looked, asked, room = look_at("night"), [], Folder.require_room
    monkeypatch.setattr(Folder, "require_room", lambda self: asked.append(1) or room(self))
    looked.current.look()
    assert asked == [1]


def test_an_intake_is_of_the_limits_and_of_what_the_store_counts(archived):
    limits = replace(LimitsSection(), document=5000, days=7)
    store = MomentStore.open(str(archived("night")))
    shape = shape_of(store, limits)
    assert [one.name for one in shape.counted] == ["text"]
    assert (takes_texts(store), shape.required) == (True, ("text",))
    told = {
        "counts_ids": ["ids", "counts"],
        "neighbours": ["ids"],
        "tables_4": ["c0", "c1", "c2", "c3"],
        "views": ["a", "b", "c"],
        "sequences": ["text"],
        "vectors_fourth": ["x", "y", "z", "u"],
        "edges": ["source", "target"],
    }
    for name, fields in told.items():
        store = MomentStore.open(str(archived(name)))
        found = [one.name for one in shape_of(store, limits).counted]
        assert takes_texts(store) is False
        assert found == fields


def test_a_document_is_judged_by_what_it_may_add(archived):
    judge = Countable(MomentStore.open(str(archived("night"))))
    assert DOCUMENTS_OF_ROOM == 1 << 14
    line = b'{"text": "wd wd wd"}\n'
    assert (judge.why_not(line), judge.bound(line) > 0) == (None, True)
    assert judge.why_not(b'{"text": 5}\n') is not None
    assert judge.bound(line * 2) == 2 * judge.bound(line)
    for name in ("views", "vectors", "counts_3"):
        light = Countable(MomentStore.open(str(archived(name)))).light
        assert light > 100


def test_a_bound_at_the_room_is_refused_and_one_below_is_not(archived, monkeypatch):
    judge = Countable(MomentStore.open(str(archived("night"))))
    most = 2**62 // 2**14
    for bound, told in ((most - 1, None), (most, "could add 2.81e+14 to a sum, above 2.81e+14")):
        monkeypatch.setattr(Countable, "bound", lambda self, line, bound=bound: bound)
        found = judge.why_not(b"")
        assert found is None if told is None else told in found


@pytest.fixture
def inbox(tmp_path):
    return Inbox.open(str(tmp_path / "inbox"))


def test_counting_stalls_from_when_seals_wait_or_a_turn_fails(inbox, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(counting_progress, "monotonic", lambda: now[0])
    failing = FailingStep("count", 1, "", "", "away"), FailingStep("look", 1, "", "", "far")
    assert counting_now(inbox, 0, (), Counting()) == Counting(), "nothing came yet"
    note_reached(inbox, 3)
    found = counting_now(inbox, 3, (), Counting())
    assert (found, found.stalled(), found.problem(1.0)) == (Counting(reached=3), 0.0, None)
    assert counting_now(inbox, 2, (), Counting()).lag == 0
    found = counting_now(inbox, 5, (), found)
    assert (found.lag, found.since, found.reached) == (2, 100.0, 3)
    now[0] = 110.0
    found = counting_now(inbox, 6, (), found)
    assert (found.lag, found.since, found.stalled()) == (3, 100.0, 10.0)
    assert (found.problem(10.5), "for more than 10 s" in found.problem(10.0)) == (None, True)
    note_reached(inbox, 4)
    now[0] = 120.0
    found = counting_now(inbox, 6, (), found)
    assert (found.since, found.reached) == (120.0, 4), "it went on"
    now[0] = 130.0
    note_reached(inbox, 6)
    found = counting_now(inbox, 6, failing[:1], found)
    assert (found.lag, found.failing, found.since) == (0, "away", 120.0)
    assert found.problem(1e9) == f"{UNCOUNTED}away"
    assert counting_now(inbox, 6, failing[1:], found).failing == "far"
    assert counting_now(inbox, 6, (), found, "full").failing == "full"
    night = FailingStep("night", 1, "", "", "away")
    found = counting_now(inbox, 6, (night,), found)
    assert (found.failing, found.since) == (None, None)


def test_documents_set_aside_are_added_up():
    aside = SetAside("a", 3, "full"), SetAside("b", 4, "full")
    assert Counting(set_aside=aside).documents_set_aside == 7


def test_a_look_while_another_looks_waits(look_at):
    current = look_at("night").current
    with current._looking:
        thread = threading.Thread(target=current.look, daemon=True)
        thread.start()
        thread.join(0.05)
        assert thread.is_alive()
    thread.join(60)
    assert not thread.is_alive()
    assert timedelta(0) == current.view.backlog.age


@pytest.mark.parametrize("name", ["counts_1", "counts_3"])
def test_up_to_how_many_words_no_document_is_too_large(archived, monkeypatch, name):
    """As a loop over all lengths finds it: the length before the first that may be too large."""
    store = MomentStore.open(str(archived(name)))
    basis = store.foundation.basis
    peak = float(np.abs(basis.matrix.astype(np.int64)).max())

    def bound(length):
        weight = float(basis.weights.at(np.array([length]))[0])
        return weight * length * (peak * length) ** 2

    bounds, longest = [bound(n) for n in range(validation.LIGHT + 1)], bound(validation.LIGHT)
    for most in (bounds[300], bounds[300] * (1 + 1e-9), bounds[2], longest, longest * 2):
        monkeypatch.setattr(validation, "_MOST", most)
        large = [n for n, one in enumerate(bounds) if one >= most]
        wanted = large[0] - 1 if large else validation.LIGHT
        assert Countable(store).light == wanted


def test_of_views_a_third_of_the_words_are_in_each(archived, monkeypatch):
    store = MomentStore.open(str(archived("views")))
    for length, light in ((10, 30), (validation.LIGHT, validation.LIGHT)):
        monkeypatch.setattr(validation, "_MOST", PEAK * (length + 0.5) ** 3)
        assert Countable(store).light == light
    monkeypatch.setattr(validation, "_MOST", 1)
    assert Countable(MomentStore.open(str(archived("vectors")))).light == validation.LIGHT
