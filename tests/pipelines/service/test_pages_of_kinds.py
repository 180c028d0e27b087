"""Pages of stores of every kind, in a real browser, each as its model describes itself."""

import numpy as np
import pandas as pd
import pytest

from streaming_moments import create_store
from streaming_moments.models.registry import MODELS
from streaming_moments.pipelines import PilotOptions
from streaming_moments.pipelines.jobs.create import CountingOptions
from streaming_moments.pipelines.jobs.kinds.create_kinds import KindOptions
from streaming_moments.synthetic.graphs import community_graph
from streaming_moments.synthetic.hidden import markov_sequences
from streaming_moments.synthetic.mixtures import mixture_rows

NASTY = "<script>alert(1)</script><img src=x onerror=alert(2)>"
FEW = PilotOptions(min_documents=1)
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


COLUMNS = ",".join(f"{NASTY} {name}" for name in "xyz")
# model: options, what is counted, how, and what its parts are called
KINDS = {
    "views": ({"topics": 2}, codes, {"shape": KindOptions("views", "a,b,c")}, "state"),
    "hmm": ({"topics": 2}, sequences, {"shape": KindOptions("sequences", "steps")}, "state"),
    "latent_tree": ({"topics": 2}, codes, {"categories": ("a", "b", "c")}, "state"),
    "blockmodel": ({"topics": 2}, edges, {"shape": KindOptions("edges")}, "state"),
    "communities": ({"topics": 2}, None, {}, "topic"),
    "gaussian_mixture": (
        {"topics": 2},
        rows,
        {"shape": KindOptions("vectors", COLUMNS)},
        "cluster",
    ),
    "factors": (
        {"topics": 2},
        rows,
        {"shape": KindOptions("vectors", COLUMNS)},
        "factor",
    ),
    "poisson": ({"topics": 2}, None, {}, "topic"),
    "independent": ({"topics": 2}, None, {}, "topic"),
}


@pytest.fixture(scope="module", params=KINDS)
def kept(request, tmp_path_factory, planted):
    """Folder of a store with a model of a family, and what its parts are called."""
    family = request.param
    options, drawn, given, what = KINDS[family]
    categories = given.get("categories", ())
    counting = CountingOptions(categories=categories, date_pattern="none")
    place = tmp_path_factory.mktemp("kind")
    content = planted[:300] if drawn is None else drawn()
    shape = {"shape": given["shape"]} if "shape" in given else {}
    store = create_store(
        f"{place}/store", content, source="all", counting=counting, pilot=FEW, **shape
    )
    store = store.update(content, source="all")
    store.refit_as(MODELS[family], name="first", **options)
    return place, what


def test_every_family_is_tried():
    assert set(KINDS) | {"topics"} == set(MODELS)


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_each_part_of_a_model_has_a_page(kept, serve_at, seen, width, scheme):
    place, what = kept
    with serve_at(place / "store") as client:
        page = seen(client, "/", width, scheme)
        assert page.get_by_role("link", name=f"{what.capitalize()}s").count() >= 1
        links = page.locator('a[href^="/topics/"]')
        parts = links.count()
        assert parts >= 2
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        links.first.focus()
        page.keyboard.press("Enter")
        page.wait_for_url("**/topics/*")
        for number in range(parts):
            page.goto(f"http://127.0.0.1:{client.port}/topics/{number}")
            assert page.locator(".facts div").count() > 0, number
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            assert page.locator("img").count() == 0
        assert client("GET", f"/topics/{parts}").status_code == 404
        for path in OTHERS if width == 390 else ():
            page.goto(f"http://127.0.0.1:{client.port}{path}")
            assert page.locator("h1").count() == 1
            assert page.evaluate("document.documentElement.scrollWidth") <= width, path
            assert page.locator("img").count() == 0
