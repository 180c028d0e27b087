"""Calls and pages of a hub: which origin talks about what, and what has changed where."""

import json
import re

import pytest

from streaming_moments import open_store
from streaming_moments.errors import InvalidInput
from streaming_moments.storage.merging.model_copies import pull_model
from streaming_moments.storage.merging.pulling import pull
from streaming_moments.storage.merging.shared_foundation import SharedFoundation, create_like
from streaming_moments.storage.store.store import MomentStore


@pytest.fixture
def hub(archived):
    """A hub that has the documents and the model of a site, and answers with it."""
    site = MomentStore.open(str(archived("night")))
    url = f"{site.url.rpartition('/')[0]}/hub"
    store = pull(create_like(url, SharedFoundation.of(site)), site, "rome").store
    return pull_model(store, site).store


@pytest.fixture
def caller(hub, call_store):
    with call_store(hub.url) as found:
        yield found


def problem(answer, status):
    assert answer.status == status, answer.text
    return answer.json()


def test_shares_of_each_origin(caller, hub):
    found = caller("GET", "/v1/shares/origins").json()
    assert found["model"] == "night-v3"
    [rome] = found["origins"]
    assert (rome["origin"], rome["tokens"]) == ("rome", hub.commit.tokens)
    assert sum(rome["shares"]) == pytest.approx(1)
    assert len(rome["bars"]) == len(rome["shares"])
    assert caller("GET", "/v1/shares/origins?model=night-v3").json() == found
    assert problem(caller("GET", "/v1/shares/origins?model=none"), 404)["field"] == "model"


def test_shares_of_an_origin_over_time(caller):
    every = caller("GET", "/v1/shares?by=day").json()
    rome = caller("GET", "/v1/shares?by=day&origin=rome").json()
    assert every["origin"] is None
    assert rome == {**every, "origin": "rome"}
    assert caller("GET", "/v1/shares?origin=").json()["periods"] == []
    told = problem(caller("GET", "/v1/shares?origin=oslo"), 404)
    assert (told["field"], "the store has rome" in told["detail"]) == ("origin", True)


def test_the_models_of_a_site_say_who_fitted_them(caller, hub):
    [model] = caller("GET", "/v1/models").json()["models"]
    source = hub.models["night-v3"].source
    assert model == {"name": "night-v3", "version": 1, "fitted_by": source.url}
    assert "night-v3" in source.name


def test_pages_show_origins_and_what_has_changed_there(caller):
    page = caller("GET", "/").text
    assert 'id="origins"' in page
    assert "rome: " in page.partition('id="origin-changes"')[2][:200]
    page = caller("GET", "/time?origin=rome").text
    assert '<a href="time?origin=rome" aria-current="true">rome</a>' in page
    assert '<a href="time?by=day&amp;origin=rome">by day</a>' in page
    assert 'id="periods"' in page
    page = caller("GET", "/time?by=day").text
    assert '<a href="time?origin=rome&amp;by=day">rome</a>' in page
    assert caller("GET", "/time?origin=oslo").status == 404


def test_a_store_without_origins_has_no_shares_of_them(call_at):
    with call_at("night") as alone:
        told = problem(alone("GET", "/v1/shares/origins"), 422)
        assert "has no origins" in told["detail"]
        assert (
            "the store has no origins"
            in problem(alone("GET", "/v1/shares?origin=a"), 404)["detail"]
        )
        assert "Origins" not in alone("GET", "/time").text


def test_the_command_and_python_say_what_has_changed_where(hub, run):
    code, out, _ = run("topics", hub.url, "--by-origin", "--over-time", "day", "--json")
    told = json.loads(out)
    assert (code, told["by_origin"][0]["over_time"]) == (0, told["over_time"])
    out = run("topics", hub.url, "--by-origin", "--over-time", "day")[1]
    assert re.search(r"^rome: (no|largest) change .*from 2026-", out, re.M)
    opened = open_store(hub.url)
    found, every = (opened.shares_over_time("day", origin=one) for one in ("rome", None))
    assert found.shares.tolist() == every.shares.tolist()
    assert len(found.periods) == len(told["over_time"])
    with pytest.raises(InvalidInput, match="has no origin 'oslo'; it has rome"):
        opened.shares_over_time("day", origin="oslo")
