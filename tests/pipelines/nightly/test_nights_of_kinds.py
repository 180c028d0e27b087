"""Nights of every kind beside documents: made, judged, followed, shown."""

import json

import numpy as np
import pytest

from streaming_moments.errors import InvalidInput
from streaming_moments.pipelines.nightly.config import config_of
from streaming_moments.storage.store.store import MomentStore
from streaming_moments.synthetic.graphs import community_graph
from streaming_moments.synthetic.hidden import markov_sequences
from streaming_moments.synthetic.mixtures import mixture_rows
from streaming_moments.synthetic.sets import feature_sets
from streaming_moments.synthetic.tables import latent_tree_table

pytestmark = pytest.mark.usefixtures("few_blocks")
LETTERS = "abcdefgh"
KINDS = {
    "sequences": (
        'kind = "sequences"\nmin_documents = 2',
        'model = "hmm"\ntopics = [1, 2]\nrefine = 5',
    ),
    "views": (
        'kind = "views"\ncolumns = "c0,c1,c2"\nmin_documents = 2',
        'model = "views"\ntopics = 2',
    ),
    "tables": (
        'categories = ["c0", "c1", "c2", "c3"]\nmin_documents = 2',
        'model = "latent_tree"\ntopics = 2',
    ),
    "vectors": (
        'kind = "vectors"\ncolumns = "x,y,z"',
        'model = "gaussian_mixture"\ntopics = 2\npolish = 2',
    ),
    "edges": ('kind = "edges"', 'model = "blockmodel"\ntopics = 2'),
    "sets": (
        'kind = "sets"\ncolumns = "a,b,c,d,e,f,g,h"',
        'model = "bernoulli_mixture"\ntopics = "auto"\npolish = "auto"',
    ),
}
GATES = {
    "sequences": "max_held_out_drop = 0.5\nmax_perplexity = 8\nmin_topic_weight = 0.1",
    "views": "max_held_out_drop = 0.5\nmin_documents = 100",
    "tables": "max_behind = 0.5\nmax_pair_distance = 0.5",
    "vectors": "min_documents = 100",
    "edges": "min_documents = 100",
    "sets": "max_held_out_drop = 0.5\nmin_documents = 100",
}


def suffix_of(kind):
    return "txt" if kind == "sequences" else "csv"


def content(kind, day):
    if kind == "sequences":
        drawn = markov_sequences(120, length=40, n_symbols=8, k=2, seed=2)
        symbols = np.random.default_rng(day).permutation(drawn.batch.symbols.reshape(120, 40))
        return "\n".join("".join(LETTERS[symbol] for symbol in row) for row in symbols)
    if kind == "vectors":
        drawn = mixture_rows(1800, 3, 2, separation=5.0, variances="spherical", seed=1)
        rows = drawn.rows[600 * (day - 1) : 600 * day].tolist()
        return "\n".join(["x,y,z", *(",".join(map(str, row)) for row in rows)])
    if kind == "edges":
        graph = community_graph(90, 2, 0.6, 0.05, 0.0, seed=0)
        parts = np.array_split(np.random.default_rng(0).permutation(graph.edges), 3)
        ends = (f"n{one},n{other}" for one, other in parts[day - 1])
        return "\n".join(["source,target", *ends])
    if kind == "sets":
        rows = feature_sets(1800, 8, 2, mean=0.4, seed=1).batch.to_csr().toarray()
        lines = (",".join(map(str, row)) for row in rows[600 * (day - 1) : 600 * day])
        return "\n".join(["a,b,c,d,e,f,g,h", *lines])
    planted = latent_tree_table(600, n_columns=4, n_states=2, n_categories=3, seed=4)
    codes = np.random.default_rng(day).permutation(planted.codes)
    rows = (",".join(f"v{code}" for code in row) for row in codes)
    return "\n".join(["c0,c1,c2,c3", *rows])


@pytest.fixture(params=KINDS)
def place(request, tmp_path):
    """A configuration, and the shards of a day."""
    kind = request.param
    create, refit = KINDS[kind]
    (tmp_path / "night.toml").write_text(
        f'store = "{tmp_path}/store"\nshards = "{tmp_path}/*.{suffix_of(kind)}"\n'
        f'output = "{tmp_path}/out"\n'
        f"[create]\n{create}\n[refit]\n{refit}\n[gates]\n{GATES[kind]}\n"
        f'[metrics]\ntextfile = "{tmp_path}/night.prom"\n'
    )
    return kind, tmp_path


def came(kind, folder, day):
    (folder / f"2026-11-0{day}.{suffix_of(kind)}").write_text(content(kind, day))


def test_nights_make_publish_follow_and_reject(run, place):
    kind, folder = place
    config = folder / "night.toml"
    for day, code in ((1, 0), (2, 0)):
        came(kind, folder, day)
        found, out, err = run("nightly", config, "--json")
        assert found == code, err
    steps = {step["step"]: step["values"] for step in map(json.loads, out.splitlines())}
    store = MomentStore.open(f"{folder}/store")
    assert store.kind == {"tables": "counts"}.get(kind, kind)
    assert store.verify() == []
    model = store.load_any_model("published")
    assert f'model = "{model.name}"' in KINDS[kind][1]
    report = json.loads((folder / "out" / "latest.json").read_text())
    assert report["outcome"] == "published"
    assert report["status"]["shards"] == 2
    assert report["status"]["days"] == ["2026-11-01", "2026-11-02"]
    assert all(gate["holds"] and gate["value"] is not None for gate in report["gates"][:1])
    page = (folder / "out" / "latest.html").read_text()
    assert f"{'Clusters' if kind == 'vectors' else 'Model'} of the night" in page
    assert report["status"]["tokens"] == store.commit.tokens
    if kind != "tables":
        assert model.n_topics == 2
        assert report["drift"]["outside_share"] < 0.01
    if kind == "tables":
        assert report["matching"] is None
    else:
        assert steps["match"]["kept"] == 2
        assert len(report["topics"]) == 2
        assert "What has changed" in page
    if kind in ("sets", "vectors"):
        assert model.polishing.documents == 1200
        assert steps["polish"]["passes"] == model.polishing.passes
    assert ("scores" in steps["refit"]) == (kind == "tables")
    assert (steps["refit"]["held_out"] is not None) == (
        kind in ("sequences", "views", "sets", "tables")
    )
    assert "streaming_moments_shards" in (folder / "night.prom").read_text()
    # nothing new, and then a bound that no model holds
    assert run("nightly", config)[0] == 10
    came(kind, folder, 3)
    text = config.read_text().replace("min_documents = 100\n", "")
    config.write_text(text.replace("[gates]\n", "[gates]\nmin_documents = 999999\n"))
    code, out, err = run("nightly", config)
    assert code == 11, err
    assert "documents:" in out
    assert "rejected" in (folder / "out" / "latest.html").read_text()


@pytest.mark.parametrize(
    ("sections", "said"),
    [
        ({"refit": {"model": "hmm", "topics": 2, "alpha0": 1.0}}, "alpha0: not an option of model"),
        ({"refit": {"model": "hmm", "topics": 2, "half_life_days": 9}}, "whole numbers"),
        ({"refit": {"model": "factors", "topics": [2, 3]}}, "a list works only for models"),
        ({"refit": {"model": "independent", "topics": 2, "polish": 1}}, "polish"),
        ({"gates": {"max_coherence_drop": 0.1}}, "[gates] max_coherence_drop: model 'hmm'"),
        ({"gates": {"max_behind": 0.1}}, "[gates] max_behind: model 'hmm'"),
        ({"rebase": {"min_captured": 0.3}}, "[rebase] applies to documents"),
        ({"growth": {}}, "[growth] applies to documents"),
        ({"growth": {}, "refit": {"model": "latent_tree", "topics": 2}}, "not to categories"),
        ({"create": {}}, "[create] kind is 'counts'"),
        ({"create": {"kind": "sequences", "max_topics": 4}}, "does not use `create --max-topics`"),
        (
            {
                "create": {"kind": "sequences", "halves": False},
                "refit": {"model": "hmm", "topics": [2, 3]},
            },
            "halves = false",
        ),
        *(
            (
                {"refit": {"model": model, "topics": 2}, "gates": {"max_held_out_drop": 0.1}},
                f"[gates] max_held_out_drop: model '{model}' has no such value",
            )
            for model in ("poisson", "independent", "blockmodel", "gaussian_mixture")
        ),
        (
            {
                "create": {"kind": "sequences", "halves": False},
                "gates": {"max_perplexity": 9, "max_held_out_drop": 0.1},
            },
            "[gates] max_held_out_drop, max_perplexity: needs held-out data",
        ),
        (
            {
                "create": {"kind": "sequences", "sketch_columns": 6},
                "gates": {"max_perplexity": 9},
            },
            "[gates] max_perplexity: sketches have no held-out triples; leave out",
        ),
        (
            {
                "create": {"kind": "sequences", "sketch_columns": 6},
                "refit": {"model": "hmm", "topics": [2, 3]},
            },
            "[refit] topics and alpha0: sketches have no held-out triples; leave out",
        ),
        (
            {
                "create": {"halves": False},
                "refit": {"topics": 2},
                "gates": {"max_held_out_drop": 0.1},
            },
            "needs held-out data; leave it out, or remove halves = false",
        ),
        (
            {
                "create": {"codocuments": False},
                "refit": {"topics": 2},
                "gates": {"max_coherence_drop": 0.1},
            },
            "needs co-document counts; leave it out, or remove codocuments = false",
        ),
        *(
            ({"refit": {"model": model, "topics": 2, "method": "power"}}, 'by "joint", not by')
            for model in ("hmm", "views", "blockmodel", "factors", "gaussian_mixture")
        ),
        ({"create": {"kind": "sequences", "columns": "a,b"}}, "sequences have 2 columns"),
        (
            {"create": {"kind": "views"}, "refit": {"model": "views", "topics": 2}},
            "views are three different columns, got none",
        ),
        (
            {
                "create": {"kind": "edges", "columns": "a"},
                "refit": {"model": "blockmodel", "topics": 2},
            },
            "edges need two different columns",
        ),
        (
            {
                "create": {"kind": "vectors", "columns": "x,x"},
                "refit": {"model": "factors", "topics": 2},
            },
            "the columns of numbers are x, x",
        ),
    ],
)
def test_what_a_night_of_another_kind_cannot_do_is_said_before_it_begins(sections, said):
    base = {"store": "s", "shards": "*.txt", "output": "r", "refit": {"model": "hmm", "topics": 2}}
    assert config_of({**base, "create": {"kind": "sequences"}}, "night.toml").refit.topics == (2,)
    with pytest.raises(InvalidInput) as refused:
        config_of({**base, **sections}, "night.toml")
    assert said in str(refused.value)
