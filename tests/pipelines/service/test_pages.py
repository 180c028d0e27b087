"""The pages, in a real browser, with hostile words, labels and messages."""

import base64
import json
import re

import pytest

from streaming_moments.models.topics import TopicModel
from streaming_moments.pipelines.counting_options import PilotOptions
from streaming_moments.pipelines.interface.opening import create_store
from streaming_moments.pipelines.nightly.report import NightReport, report_as_json
from streaming_moments.pipelines.service.tokens import Role, add_token
from streaming_moments.quality.drift import Drift
from streaming_moments.storage.operations.labels import label
from streaming_moments.storage.store.model_changes import TagMove
from streaming_moments.storage.store.store import MomentStore

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>"
PAGES = {
    "topics": "/",
    "topic": "/topics/0",
    "time": "/time",
    "choice": "/choice",
    "versions": "/versions",
    "compared": "/versions?before=1&after=3",
    "rollback": "/versions/2/rollback",
    "health": "/health",
    "try": "/try",
    "docs": "/docs",
}

# marks of the charts on pages of four topics and three days
CHARTS = {"topics": 4 + 12, "topic": 3, "time": 12, "choice": 2 * 4}


# numbers of topics, each with the log-likelihoods of its two halves, which differ by 0.003 at most
COMPARED = {2: (-8.0032, -8.0128), 3: (-8.0003, -8.0103), 4: (-8.0, -8.0096), 6: (-8.0008, -8.0102)}


@pytest.fixture
def compared(days):
    """Configuration of a night that has compared numbers of topics."""
    store, tried = MomentStore.open(str(days / "store")), []
    for number, (even, odd) in COMPARED.items():
        likely = {"even": even, "odd": odd}
        tried.append({"n_topics": number, "alpha0": 0.3, "npmi": 0.1, "held_out": likely})
    report = {"store": store.url, "version": store.version, "candidates": tried}
    (days / "out").mkdir()
    (days / "out" / "night-20261104T000000000000Z.json").write_text(json.dumps(report))
    (days / "night.toml").write_text(
        f'store = "{store.url}"\nshards = "x"\noutput = "{days}/out"\n[refit]\ntopics = 4\n'
    )
    return {"night": str(days / "night.toml"), "refit_documents": 100}


def test_pages_fit_are_silent_and_accessible(days, serve_days, compared, seen, examined):
    label(MomentStore.open(str(days / "store")), 0, HOSTILE[:90], "three", HOSTILE)
    with serve_days(accumulate=compared) as client:
        page = seen(client, "/")
        for name, path in PAGES.items():
            page.goto(f"http://127.0.0.1:{client.port}{path}")
            assert page.locator("h1").count() == 1
            assert page.evaluate("document.querySelectorAll('img').length") == 0
            assert page.locator(".site a[aria-current]").count() == 1, path
            assert page.get_by_role("link", name="Try it").count() == 1
            # charts are full: empty ones would break no rule
            if name in CHARTS:
                assert page.locator("svg circle.mark").count() == CHARTS[name], name
            examined(page, name)
        page.goto(f"http://127.0.0.1:{client.port}/versions")
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "main", "the navigation is skipped"
        page.locator("summary").click()
        assert page.locator("summary strong").inner_text() == "Versions 1 to 3"
        assert page.locator(".commits a").all_inner_texts() == [f"Version {n}" for n in (3, 2, 1)]
        examined(page, "commits")


def test_what_is_noise_looks_like_noise(serve_days, compared, seen):
    with serve_days(accumulate=compared) as client:
        page = seen(client, "/choice", 390)
        boxes = "all => all.map(one => { const b = one.getBBox(); return [b.y, b.height] })"
        [[_, height]] = page.eval_on_selector_all("#held rect.range", boxes)
        whiskers = page.eval_on_selector_all("#held path.whisker", boxes)
        assert len(whiskers) == len(COMPARED)
        assert all(high == pytest.approx(2 * height, abs=1) for _, high in whiskers)
        marks = [float(one) for one in page.locator("#held .tick").all_text_contents()]
        assert (min(marks), max(marks)) == (-0.01, 0), "a hundredth of a nat is on the axis"
        floor = page.locator("#held svg").bounding_box()["height"]
        dots = page.eval_on_selector_all("#held circle.mark", boxes)
        assert 0.1 * floor < max(at for at, _ in dots) < 0.5 * floor, "a third of that"


def test_the_topics_are_shown_by_their_own_script(visited):
    page = visited("/")
    page.wait_for_selector(".card")
    assert page.locator(".card").count() == 4
    page.get_by_role("link", name="Versions").click()
    page.wait_for_selector("td")
    assert page.locator("tbody tr").count() == 3


def test_a_text_is_tried_and_its_words_are_told(visited, planted, client, examined):
    page = visited("/try")
    page.get_by_role("textbox").fill(f"{planted[0]} {HOSTILE}")
    page.get_by_role("button").click()
    page.wait_for_selector("#found td")
    told = page.locator("#found").inner_text()
    assert "are known" in told
    assert any(word in told for word in planted[0].split())
    assert HOSTILE in page.get_by_role("textbox").input_value()
    [first, *_] = page.locator("#found tbody a").all_inner_texts()
    assert page.locator("#answer").inner_text().startswith(f"Its topics: {first} ")
    examined(page, "tried")
    page.get_by_role("textbox").fill("xyzzy plugh")
    page.get_by_role("button").click()
    page.wait_for_selector("#answer.bad")
    assert page.locator("#found").count() == 0, "the shares of a text without words say nothing"
    assert planted[0] not in repr(client.lines)


def test_health_tells_drift_rates_and_the_ledger(place, start, planted, visited, client):
    (place / "out").mkdir()
    name, ours = f"{place}/store/", "2026-11-22T03:00:00+00:00"
    drift = Drift(0.75, 0.125, 900.0, 0.5)
    report = NightReport(name, ours, outcome="rejected", drift=drift)
    (place / "out" / "night-1.json").write_text(json.dumps(report_as_json(report)))
    (place / "night.toml").write_text(
        f'store = "{name}"\nshards = "x"\noutput = "{place}/out"\n[refit]\ntopics = 2\n'
    )
    rules = {"night": str(place / "night.toml"), "refit_every": "24h"}
    with start({"store": str(place / "store"), "accumulate": rules}) as nightly:
        nightly.send([{"text": text} for text in planted[:7]])
        nightly.send([{}])
        text = nightly("GET", "/health").text
        assert "UTC: rejected" in text
        assert "1 thing needs attention" in text
        assert [one in text for one in (">0.75<", ">12.50<", ">0.500<")] == [True] * 3
        rates = text[text.index('label="Rates"') : text.index("Drift</h2>")]
        assert re.findall(r">(\d+)<", rates) == [*"77", *"00", *"22", *"11", *"00"]
    page = visited("/health", 390)
    assert page.locator("[aria-label=Shards] tbody tr").count() == 6
    assert "No night has run yet" in page.content()
    assert "All is well" in page.locator("#state").inner_text()


def test_the_only_version_is_not_compared_with_itself(serve_at, tmp_path):
    pilot, texts = PilotOptions(min_documents=2), ["the sea ship sails", "the sea ship sank"] * 20
    store = create_store(str(tmp_path / "s"), texts, source="a", max_topics=2, pilot=pilot)
    with serve_at(tmp_path / "s") as client:
        for source, offered in (("a", False), ("b", True)):
            store = store.update(texts, source=source)
            client.service.current.look()
            page = client("GET", "/versions").text
            assert f"Version {store.version} is the latest" in page
            assert ("Compare two versions" in page) == offered


def test_two_versions_are_compared(client):
    told = client("GET", "/versions?before=1&after=2")
    assert "the documents are the same. New models: " in told.text
    assert "Version 2 is the latest: " in told.text
    assert client("GET", "/versions?before=0").status_code == 422


def test_pages_ask_people_for_a_token_and_calls_take_no_password(serve, place):
    token = add_token(place / "tokens.json", "me", Role.ADMIN)
    with serve(tokens=str(place / "tokens.json")) as client:
        answer = client("GET", "/")
        assert answer.status_code == 401
        assert answer.headers["WWW-Authenticate"].startswith("Basic")
        told = {"Authorization": "Basic " + base64.b64encode(f"any:{token}".encode()).decode()}
        assert client("GET", "/", headers=told).status_code == 200
        assert client("POST", "/try", data={"text": "a"}, headers=told).status_code == 200
        # what a browser sends of its own accord changes nothing
        assert client.send([{"text": "a"}], headers=told).status_code == 401
        assert client("DELETE", "/v1/documents?id=a", headers=told).status_code == 401


def test_topics_that_moved_between_two_versions_are_told(days, serve_days):
    store = MomentStore.open(str(days / "store"))
    model = store.load_model("three")
    order = [1, 0, *range(2, model.n_topics)]
    turned = TopicModel.from_topics(model.topics[:, order], model.weights[order])
    store.save_model("turned", turned, tag=TagMove("published", "three"))
    with serve_days() as client:
        text = client("GET", f"/versions?before={store.version}&after={store.version + 1}").text
    assert "published: three before, turned after. Of 4 topics in both" in text
    assert "by 0.00" in text
