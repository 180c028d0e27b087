"""Three nights of embeddings, a cluster of which moves on the third: followed, judged, shown."""

import csv
import io
import json
import re
from pathlib import Path

import numpy as np
import pytest

from streaming_moments.models.states import states_of
from streaming_moments.pipelines.nightly.config import config_of
from streaming_moments.pipelines.nightly.night import nightly
from streaming_moments.quality.clusters import cluster_move, principal_plane
from streaming_moments.storage.operations.labels import label
from streaming_moments.storage.store.store import MomentStore
from streaming_moments.synthetic.mixtures import mixture_rows

pytestmark = pytest.mark.usefixtures("few_blocks")
NASTY = "<img src=x onerror=console.error(1)>"
NAMES = ("age", "income", "height", "=cmd", f"{NASTY}")
DAYS, ROWS, CLUSTERS, STEP = 3, 1500, 3, 4.0


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("clusters")


def shard(place, day):
    return place / f"2026-11-0{day + 1} {NASTY}.csv"


@pytest.fixture(scope="module")
def nights(place, embedded):
    """Reports and pages; between the first and the second people named a cluster."""
    drawn = mixture_rows(DAYS * ROWS, len(NAMES), CLUSTERS, 6.0, "spherical", uneven=2.0, seed=3)
    told = {
        "store": f"{place}/store",
        "shards": f"{place}/2026*.csv",
        "output": f"{place}/reports",
        "create": {"kind": "vectors", "columns": ",".join(NAMES)},
        "gates": {"max_mean_move": 0.8, "min_topic_weight": 0.05},
    }
    seen = []
    for day in range(DAYS):
        at = slice(day * ROWS, (day + 1) * ROWS)
        rows = drawn.rows[at].copy()
        if day == 2:  # in the direction in which the means lie apart most
            axis = principal_plane(drawn.means, drawn.weights).axes[:, 0]
            rows[drawn.labels[at] == 1] += STEP * axis
        numbers = [",".join(f"{one:.6f}" for one in row) for row in rows]
        named = (f"{line},{NASTY}{number}" for number, line in enumerate(numbers))
        lines = [",".join((*NAMES, "id")), *named]
        shard(place, day).write_text("\n".join(lines))
        # on the first night the spectrum tells how many there are
        refit = {"model": "gaussian_mixture", "topics": CLUSTERS if day else "auto"}
        config = config_of({**told, "refit": refit}, "night.toml")
        report = nightly(config, embedded, lambda step: None)
        page = (place / "reports" / "latest.html").read_text()
        seen.append((report, page))
        if day == 0:
            label(MomentStore.open(f"{place}/store"), 1, f"the sea {NASTY}")
    return seen


@pytest.fixture(scope="module")
def store(place, nights):
    return MomentStore.open(f"{place}/store")


def content_of(html):
    [content] = re.findall(r'id="content">(.*?)</script>', html)
    return json.loads(content)


def latest(place):
    return place / "reports" / "latest.html"


def test_the_cluster_that_moved_is_told_and_its_model_rejected(nights, store):
    reports = [report for report, _ in nights]
    assert reports[0].candidates[0].n_topics == CLUSTERS
    assert [one.outcome for one in reports] == ["published", "published", "rejected"]
    gate = next(one for one in reports[2].gates if one.name.startswith("largest move"))
    assert reports[0].gates[0].value is None
    both = [states_of(store.load_any_model(one.model)) for one in reports[1:]]
    kept = reports[2].matching.kept
    assert [(pair.before, pair.after) for pair in kept] == [(one, one) for one in range(CLUSTERS)]
    moves = [cluster_move(*both, pair) for pair in kept]
    assert [pair.moved for pair in kept] == [one.bars > 1 for one in moves]
    mover = int(np.argmax([one.spreads for one in moves]))
    assert gate.value == moves[mover].spreads
    assert not gate.holds
    # a third of its rows have moved by four, most of which is seen of its mean
    assert moves[mover].length > STEP / DAYS / 2
    assert max(one.spreads for one in moves if one is not moves[mover]) < 0.5
    assert reports[2].reasons[0].startswith("largest move of a mean, in standard deviations: ")
    for report in reports[1:]:
        assert store.models[report.model].labels == {1: f"the sea {NASTY}"}
        assert [one.label for one in report.topics] == [None, f"the sea {NASTY}", None]


def test_the_page_of_the_night_says_the_same_numbers(nights, store):
    report, html = nights[2]
    assert html.index('<section id="gates">') < html.index('<ul class="reasons')
    content, model = content_of(html), store.load_any_model(nights[2][0].model)
    assert content["title"] == "Clusters of the night"
    assert [one["weight"] for one in content["topics"]] == model.weights.tolist()
    assert content["shares"]["dates"] == ["2026-11-01", "2026-11-02", "2026-11-03"]
    assert content["shares"]["shares"][-1] == model.weights.tolist()
    plane = principal_plane(model.means, model.weights)
    np.testing.assert_allclose(content["plane"]["places"], plane.places(model.means))
    before = store.load_any_model(report.published_before)
    np.testing.assert_allclose(content["plane"]["before"], plane.places(before.means))
    assert content["plane"]["bars"] == model.bars.tolist()
    measures = {one["name"]: one for one in content["measures"]}
    assert list(measures) == ["weight", "spread", "spreads moved"]
    assert measures["weight"]["bars"] == model.weight_bars.tolist()
    moved = [one["spreads"] for one in content["changes"]]
    assert measures["spreads moved"]["values"] == moved
    assert content["notes"][str(int(np.argmax(moved)))] == "moved"
    assert content["facts"]["rows"] == DAYS * ROWS
    first = content_of(nights[0][1])
    assert (first["changes"], first["plane"]["before"]) == ([], [])


@pytest.mark.parametrize("width", [1280, 390])
def test_clusters_are_drawn_in_the_plane(nights, place, visiting, examined, width):
    page = visiting(latest(place), width=width)
    if width == 390:
        examined(page, "clusters")
    headline = page.locator("#headline").text_content()
    assert headline.startswith("The new model was rejected, and the earlier published one stays. ")
    assert ". Rejected: 3 clusters" in headline
    assert re.search(r"furthest moved: .* by \d\.\d spreads since 2026-11-02\.$", headline)
    assert page.locator("#plane .spread").count() == CLUSTERS
    moved = sum(pair.moved for pair in nights[2][0].matching.kept)
    assert page.locator("#plane .spread.moved").count() == moved > 0
    assert page.locator("#plane line.before").count() == CLUSTERS
    assert page.locator("#plane line.axis").count() == 2 * CLUSTERS
    assert page.locator("#measures .panel").count() == 3
    assert page.locator("#measures .mark").count() == 3 * CLUSTERS
    assert page.locator("#shares circle.mark").count() == DAYS * CLUSTERS
    assert page.locator("#changes thead .number").all_text_contents()[-2:] == ["spreads", "bars"]
    boxes = page.eval_on_selector_all(
        ".mark",
        "marks => marks.map(mark => { const b = mark.getBoundingClientRect(),"
        " s = mark.ownerSVGElement.getBoundingClientRect();"
        " return [b.width > 0 && b.height > 0, b.left >= s.left - 8, b.right <= s.right + 8,"
        " b.top >= s.top - 8, b.bottom <= s.bottom + 8] })",
    )
    assert all(all(box) for box in boxes)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    cut = page.eval_on_selector_all(
        "#changes th", "all => all.map(one => one.scrollWidth - one.clientWidth)"
    )
    assert max(cut) <= 0
    # one scale for both axes: an outline of equal variances is a circle
    sizes = page.eval_on_selector_all(
        "#plane .spread", "all => all.map(one => [one.rx.baseVal.value, one.ry.baseVal.value])"
    )
    assert all(across == pytest.approx(up) for across, up in sizes)
    page.locator('#plane [data-topic="1"]').focus()
    page.keyboard.press("Enter")
    assert page.locator(".card.chosen h3").text_content().startswith(f"1the sea {NASTY}")
    page.locator("#topic-1 .back").click()
    assert page.url.endswith("#place-1")


def test_nothing_that_people_called_it_is_taken_for_html(nights, place, visiting):
    html = latest(place).read_text()
    assert "<img" not in html
    page = visiting(latest(place))
    assert page.locator("#ledger tbody tr").count() == DAYS
    assert NASTY in page.locator("#ledger tbody tr").first.text_content()
    words = page.locator("#topic-0 .word").all_text_contents()
    assert sorted(words) == sorted(NAMES)


def test_its_numbers_can_be_taken_as_a_table(nights, place, store, visiting):
    page = visiting(latest(place))
    with page.expect_download() as download:
        page.locator("#table").click()
    assert download.value.suggested_filename == "clusters.csv"
    text = Path(download.value.path()).read_bytes().decode()
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    model = store.load_any_model(nights[2][0].model)
    assert [float(row["weight"]) for row in rows] == model.weights.tolist()
    assert [float(row["error bar"]) for row in rows] == model.bars.tolist()
    assert [float(row["weight, error"]) for row in rows] == model.weight_bars.tolist()
    assert [row["label"] for row in rows] == ["", f"the sea {NASTY}", ""]


def test_the_page_of_the_store_follows_its_models_and_shows_the_nearest_rows(
    run, nights, place, store, visiting, tmp_path
):
    found, path = tmp_path / "found", tmp_path / "page.html"
    read = ("--output", found, "--top-documents", "2", "--model", nights[2][0].model, "--json")
    read += ("--id-column", "id")
    code, out, err = run("transform", f"{place}/store", shard(place, 2), *read)
    assert code == 0, err
    nearest = json.loads(out)["nearest"]
    shown = ("page", f"{place}/store", "--model", nights[2][0].model, "--output", path)
    code, out, err = run(*shown, "--top-documents", found, "--json")
    assert code == 0, err
    told, content, model = (
        json.loads(out),
        content_of(path.read_text()),
        store.load_any_model(nights[2][0].model),
    )
    assert [one["nearest"] for one in content["topics"]] == nearest
    assert [one["nearest"] for one in told["clusters"]] == nearest
    for name in ("measures", "changes", "plane"):
        assert told[name] == content[name]
    assert [one["weight"] for one in told["clusters"]] == model.weights.tolist()
    assert content["shares"]["dates"] == ["2026-11-01", "2026-11-02", "2026-11-03"]
    assert content["shares"]["shares"] == content_of(nights[2][1])["shares"]["shares"]
    page = visiting(path, width=390)
    assert told["headline"] + "." == page.locator("#headline").text_content()
    rows = page.locator("#topic-2 .near .word")
    page.locator("#topic-2 .sample summary").click()
    assert rows.count() == 2
    assert rows.first.text_content() == nearest[2][0]["id"] == f"{NASTY}{nearest[2][0]['row']}"
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    # of another model, and of one that has no rows near it
    earlier = nights[1][0].model
    shown = ("page", f"{place}/store", "--model", earlier, "--output", path)
    code, _, err = run(*shown, "--top-documents", found)
    assert (code, f"the page shows '{earlier}'" in " ".join(err.split())) == (2, True)


def test_commands_that_compare_models_compare_clusters(run, nights, place, store):
    reports = [report for report, _ in nights]
    code, out, _ = run("topics", f"{place}/store", "--model", reports[2].model, "--json")
    told = json.loads(out)
    assert [one["label"] for one in told["states"]] == [None, f"the sea {NASTY}", None]
    assert [one["weight"] for one in told["states"]] == told["weight"]
    code, out, _ = run("topics", f"{place}/store", "--model", reports[2].model)
    assert out.splitlines()[1].split()[0] == "cluster"
    assert "the sea" in out
    assert run("tag", f"{place}/store", "last", reports[2].model)[0] == 0
    version = MomentStore.open(f"{place}/store").version
    assert run("tag", f"{place}/store", "last", reports[1].model)[0] == 0
    code, out, err = run(
        "diff", f"{place}/store", version, version + 1, "--model", "last", "--json"
    )
    assert code == 0, err
    moved = json.loads(out)["moved"]["last"]
    expected = [[pair.before, pair.after, pair.distance] for pair in reports[2].matching.kept]
    assert [one[:2] for one in moved["pairs"]] == [one[:2] for one in expected]
    np.testing.assert_allclose(
        [one[2] for one in moved["pairs"]], [one[2] for one in expected], atol=1e-12
    )


def test_factors_show_what_tells_them_from_noise(run, nights, place, tmp_path, visiting):
    path, given = tmp_path / "page.html", ("--components", "2", "--weak", "keep")
    # apart: a model more would be the latest of the store
    refitted = run("refit", f"{place}/store", "--model", "factors", *given, "--name", "weak")
    assert refitted[0] == 0, refitted
    shown = ("page", f"{place}/store", "--model", "weak", "--output", path)
    code, out, err = run(*shown, "--json")
    assert code == 0, err
    model = MomentStore.open(f"{place}/store").load_any_model("weak")
    told = json.loads(out)
    measures = {one["name"]: one for one in told["measures"]}
    assert list(measures) == ["column norm", "skewness"]
    norms = np.linalg.norm(model.mixing, axis=0)
    np.testing.assert_allclose(measures["column norm"]["values"], norms)
    assert measures["column norm"]["bars"] == model.bars.tolist()
    assert measures["skewness"]["values"] == model.skewness.tolist()
    assert measures["skewness"]["noise"] == model.skewness_error.tolist()
    first = told["factors"][0]["coordinates"]
    order = np.argsort(-np.abs(model.mixing[:, 0]))
    assert [name for name, _ in first] == [NAMES[one] for one in order]
    page = visiting(path, width=390)
    assert page.locator("h1").text_content() == "Factors of store"
    assert page.locator("#measures .noise").count() == 2
    assert page.locator(".card").count() == 2
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    code, _, err = run(*shown, "--top-documents", tmp_path)
    assert (code, "a transform finds no documents or rows" in " ".join(err.split())) == (2, True)
