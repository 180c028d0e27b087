"""Pages of stores of every kind, in a real browser, each as its model describes itself."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from streaming_moments import create_store
from streaming_moments.models.registry import MODELS
from streaming_moments.models.states import states_of
from streaming_moments.pipelines import PilotOptions
from streaming_moments.pipelines.jobs.create import CountingOptions
from streaming_moments.pipelines.jobs.kinds.create_kinds import KindOptions
from streaming_moments.storage.operations.labels import label
from streaming_moments.storage.store.store import MomentStore
from streaming_moments.synthetic.graphs import community_graph
from streaming_moments.synthetic.hidden import markov_sequences
from streaming_moments.synthetic.mixtures import mixture_rows
from streaming_moments.synthetic.sets import feature_sets

NASTY = "<script>alert(1)</script><img src=x onerror=alert(2)>"
FEW = PilotOptions(min_documents=1)
POOLED = replace(FEW, length_weights="pooled")
OTHERS = ("/time", "/choice", "/versions", "/health", "/try")


def codes():
    """Three columns that agree mostly, of words that look like HTML."""
    rng = np.random.default_rng(0)
    hidden = rng.integers(0, 2, 400)
    near = rng.random((400, 3)) < 0.85
    drawn = np.where(near, hidden[:, None], 1 - hidden[:, None])
    words = [NASTY, "law & <b>order</b>"]
    return pd.DataFrame(
        {name: [words[one] for one in own] for name, own in zip("abc", drawn.T, strict=True)}
    )


def sequences():
    drawn = markov_sequences(80, length=30, n_symbols=6, k=2, seed=1).batch.symbols
    return [[f"{NASTY} {symbol}" for symbol in row] for row in drawn.reshape(80, 30).tolist()]


def edges():
    graph = community_graph(90, 2, 0.6, 0.05, 0.0, seed=0)
    named = [[f"{NASTY} {node}" for node in ends] for ends in np.asarray(graph.edges).T.tolist()]
    return pd.DataFrame({"source": named[0], "target": named[1]})


def rows():
    drawn = mixture_rows(600, 3, 2, separation=5.0, variances="spherical", seed=1).rows
    return pd.DataFrame({f"{NASTY} {name}": drawn[:, place] for place, name in enumerate("xyz")})


def skewed():
    drawn = np.random.default_rng(0).exponential(size=(2000, 2)) @ [
        [3.0, 1.0, 0.0],
        [0.0, 1.0, 3.0],
    ]
    return pd.DataFrame({f"{NASTY} {name}": drawn[:, place] for place, name in enumerate("xyz")})


def sets():
    batch = feature_sets(600, 8, 2, mean=0.4, seed=1).batch
    rows = zip(batch.indptr, batch.indptr[1:], strict=False)
    return [[f"{NASTY} {one}" for one in batch.words[start:stop]] for start, stop in rows]


COLUMNS = ",".join(f"{NASTY} {name}" for name in "xyz")
VIEWS, STEPS = KindOptions("views", "a,b,c"), KindOptions("sequences", "steps")
ROWS, EDGES = KindOptions("vectors", COLUMNS), KindOptions("edges")
# model: options, what is counted, how, and what its parts are called
KINDS = {
    "views": ({}, codes, {"shape": VIEWS}, "state"),
    "hmm": ({}, sequences, {"shape": STEPS}, "state"),
    "latent_tree": ({}, codes, {}, "state"),
    "blockmodel": ({}, edges, {"shape": EDGES, "pilot": PilotOptions()}, "state"),
    "gaussian_mixture": ({}, rows, {"shape": ROWS, "pilot": PilotOptions()}, "cluster"),
    "factors": ({}, skewed, {"shape": ROWS, "pilot": PilotOptions()}, "factor"),
    "bernoulli_mixture": ({}, sets, {"shape": KindOptions("sets", "codes")}, "state"),
    "communities": ({}, None, {}, "topic"),
    "poisson": ({}, None, {"pilot": POOLED}, "topic"),
    "independent": ({"max_alpha0": 100.0}, None, {"pilot": POOLED}, "topic"),
}


@pytest.fixture(scope="module", params=KINDS)
def kept(request, tmp_path_factory, planted):
    """Folder of a store with a model of a family, what its parts are called, and the family."""
    family = request.param
    options, drawn, given, what = KINDS[family]
    categories = tuple("abc") if family == "latent_tree" else ()
    counting = CountingOptions(categories=categories, date_pattern="none")
    place = tmp_path_factory.mktemp("kind")
    content = planted[:300] if drawn is None else drawn()
    how = {"counting": counting, "pilot": FEW, **given}
    store = create_store(f"{place}/store", content, source="all", **how)
    store = store.update(content, source="all")
    store.refit_as(MODELS[family], n_topics=2, name="first", **options)
    return place, what, family


def test_every_family_is_tried():
    assert set(KINDS) | {"topics"} == set(MODELS)


def test_each_part_of_a_model_has_a_page(kept, serve_at, seen, pictured, examined):
    place, what, family = kept
    with serve_at(place / "store") as client:
        page = seen(client, "/", 390, "dark")
        assert page.get_by_role("link", name=f"{what.capitalize()}s").count() >= 1
        links = page.locator('a[href^="topics/"]')
        parts = links.count()
        # a tree is a picture of all of its nodes
        assert (parts == 2) != (page.locator("pre").count() == 1)
        assert page.eval_on_selector_all(
            "#states .scroll", "all => all.every(one => one.scrollWidth <= one.clientWidth)"
        ), "nothing of a table is beyond the edge of a phone"
        if parts:
            links.first.focus()
            page.keyboard.press("Enter")
            page.wait_for_url("**/topics/*")
        assert client("GET", f"/topics/{parts}").status_code == 404
        paths = ("/", *(f"/topics/{number}" for number in range(parts)))
        told = seen(client, "/health")
        for at, width, every in ((page, 390, (*paths, *OTHERS)), (told, 1280, paths)):
            for path in every:
                at.goto(f"http://127.0.0.1:{client.port}{path}")
                assert at.locator("h1").count() == 1
                assert at.locator("img").count() == 0
                assert at.evaluate("document.documentElement.scrollWidth") <= width, path
                if path in ("/", "/topics/0"):
                    pictured(at, family + path.replace("/topics/0", "-part").rstrip("/"))
                if path.startswith("/topics/"):
                    assert at.locator(".alone li, .facts div").count() > 1, path
        # a page of each sort: other families differ in their tables only
        for path in ("/", "/topics/0") if what == "cluster" else ():
            told.goto(f"http://127.0.0.1:{client.port}{path}")
            examined(told, family + path.replace("/topics/0", "-part").rstrip("/"))


def test_the_written_page_of_each_kind_has_no_element_of_a_name(kept, run, watched, pictured):
    place, _, family = kept
    store = MomentStore.open(f"{place}/store")
    if states_of(store.load_any_model("first")) is not None:
        label(store, 0, NASTY, "first", NASTY)
    path = place / "page.html"
    assert run("page", place / "store", "--output", path, "--model", "first")[0] == 0
    page = watched.page(1280, 720, "light")
    page.goto(path.as_uri())
    # a tree shows the names of columns, and none of their values
    shown = page.evaluate("document.documentElement.innerText")
    assert (NASTY in shown) != (page.locator("pre").count() == 1)
    assert page.locator("img").count() == 0
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 720})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        pictured(page, f"{family}-page")
    # those of the page itself, and the values that they show
    assert page.locator("script").count() == len(re.findall("<script[ >]", path.read_text()))
    assert page.locator("script").all_inner_texts().count("alert(1)") == 0
