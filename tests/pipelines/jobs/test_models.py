"""Every model of the registry: fitted, kept, shown, read with and compared by the commands."""

import json
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

from streaming_moments.errors import InvalidInput, StoreError
from streaming_moments.models import registry as models
from streaming_moments.models.base import Description, FitOptions
from streaming_moments.models.registry import DEFAULT_MODEL, MODELS
from streaming_moments.models.rows import InMemory
from streaming_moments.models.stored import StoredModel
from streaming_moments.models.topic_options import ROWS
from streaming_moments.models.topics import TopicModel
from streaming_moments.pipelines.cluster.refit_memory import plan_refit
from streaming_moments.pipelines.model_options import options_table
from streaming_moments.pipelines.nightly.config import config_of
from streaming_moments.storage.store.store import MomentStore

pytestmark = pytest.mark.usefixtures("few_blocks")
ROOT = Path(__file__).parents[3]
CREATE = ("--core", "30", "--max-topics", "4", "--length-weights", "pooled")
# of documents; test_latent_trees has tables
TOPICAL = [name for name, one in MODELS.items() if issubclass(one, TopicModel)]
NIGHT = {"store": "s", "shards": ["a/*.txt"], "output": "r"}


@pytest.fixture(scope="module")
def cut(planted):
    """The planted documents cut off at some word: Poisson lengths would imply no alpha0."""
    cuts = 3 + np.random.default_rng(5).exponential(15, size=len(planted)).astype(int)
    return [" ".join(text.split()[:words]) for text, words in zip(planted, cuts, strict=True)]


@pytest.fixture
def lines(cut, tmp_path):
    path = tmp_path / "documents.txt"
    path.write_text("\n".join(cut))
    return str(path)


@pytest.fixture
def store(run, lines, tmp_path):
    place = str(tmp_path / "store")
    assert run("create", place, lines, *CREATE)[0] == 0
    assert run("update", place, lines)[0] == 0
    return place


def options_of(name):
    return ("--model", name, "--topics", "2")


@pytest.mark.parametrize("name", TOPICAL)
def test_every_command_goes_by_what_the_model_says(run, store, lines, tmp_path, name):
    code, out, err = run("refit", store, *options_of(name), "--name", "first", "--json")
    assert code == 0, err
    fitted = json.loads(out)
    assert fitted["fitted_as"] == name
    opened = MomentStore.open(store)
    model = opened.load_model("first")
    assert type(model) is MODELS[name]
    held = InMemory((opened.load(),))
    again = type(model).fit(held, type(model).Options(topics=2))
    np.testing.assert_allclose(model.topics, again.topics, atol=1e-9)
    shown = json.loads(run("topics", store, "--json")[1])
    assert shown["fitted_as"] == name
    for column, values in model.described().columns.items():
        assert shown[column.replace(" ", "_")] == fitted[column.replace(" ", "_")]
        np.testing.assert_allclose(fitted[column.replace(" ", "_")], values)
        assert column in run("show", store)[1]
    assert model.described().sentence in run("topics", store, "--verbose")[2]
    page = tmp_path / "page.html"
    assert run("page", store, "--output", page)[0] == 0
    for column in model.described().columns:
        assert column == "error bar" or f'"{column}"' in page.read_text()
    output = str(tmp_path / "proportions")
    code, out, err = run("transform", store, lines, "--output", output, "--json")
    assert code == 0, err
    table = pq.read_table(json.loads(out)["files"][0])
    assert table.num_rows == json.loads(out)["documents"] > 0
    before = MomentStore.open(store).version
    assert run("tag", store, "night", "first")[0] == 0
    assert run("refit", store, *options_of(name), "--name", "other", "--method", "svd")[0] == 0
    assert run("tag", store, "night", "other")[0] == 0
    after = MomentStore.open(store).version
    moved = json.loads(run("diff", store, str(before + 1), str(after), "--json")[1])["moved"]
    assert [pair[2] < 0.5 for pair in moved["night"]["pairs"]] == [True, True]


def test_the_mean_of_rows_is_planned_with_the_memory_it_takes(run, store):
    fit = ("--topics", "2", "--alpha0", "0.5")
    for more in ((), ("--rows", "mean")):
        assert run("refit", store, *fit, *more)[0] == 0
    *_, one, two = MomentStore.open(store).models
    assert (one, two) == ("k2-a0.5-joint-v1", "k2-a0.5-joint-mean-v2")
    models = [MomentStore.open(store).load_model(name) for name in (one, two)]
    assert 0 < np.abs(models[0].topics - models[1].topics).max() < 0.1
    options = [TopicModel.Options(topics=4, rows=rows) for rows in ROWS]
    layout = MomentStore.open(store).layout
    held = [TopicModel.fit_bytes(layout.foundation, one) for one in options]
    assert held[0] < held[1]

    class Larger(TopicModel):
        @classmethod
        def fit_bytes(cls, foundation, options):
            return 1000 * TopicModel.fit_bytes(foundation, options)

    plans = [
        plan_refit(layout, model, one, 1, 1, 8 << 30).peak_bytes
        for model, one in zip((TopicModel, Larger), options, strict=True)
    ]
    assert plans[0] < plans[1]


def test_topics_are_refined_as_often_as_told(run, store):
    fit = ("--topics", "3", "--alpha0", "0.5")
    for more in (("--refine", "0"), ()):
        assert run("refit", store, *fit, *more)[0] == 0
    plain, likelier = MomentStore.open(store).models
    assert (plain, likelier) == ("k3-a0.5-joint-r0-v1", "k3-a0.5-joint-v2")
    assert "correlations" not in json.loads(run("topics", store, "--model", plain, "--json")[1])
    shown = json.loads(run("topics", store, "--json")[1])
    model = MomentStore.open(store).load_model(likelier)
    assert (shown["refined"], shown["implied_alpha0"]) == (10, model.implied_alpha0)
    np.testing.assert_allclose(shown["correlations"], model.correlations)
    np.testing.assert_allclose(model.pair_weights.sum(axis=1), model.weights)
    said = run("topics", store, "--verbose")[2]
    assert "alpha0 0.5; refined in 10 rounds by word pairs, which imply alpha0" in said
    code, _, err = run("refit", store, *fit, "--refine", "-1")
    assert (code, "refine is -1; it must be 0 to 10,000 rounds" in err) == (2, True)
    chosen = run("select", store, "--topics", "2,3", "--alpha0", "0.1", "--refine", "3")[1]
    assert "--alpha0 0.1 --refine 3" in chosen


def test_topics_are_kept_as_ever_and_other_models_say_what_they_are(run, store):
    for name in TOPICAL:
        assert run("refit", store, *options_of(name), "--name", name)[0] == 0
    said = {}
    for metadata in Path(store).glob("models/*/*/zarr.json"):
        attributes = json.loads(metadata.read_text())["attributes"]
        said[metadata.parent.name] = attributes.get("model")
    assert sorted(said.values(), key=str) == [None, "communities", "independent", "poisson"]


def test_a_store_with_a_model_that_this_version_has_not_says_so(run, store, monkeypatch):
    assert run("refit", store, *options_of("poisson"))[0] == 0
    monkeypatch.setattr(models, "MODELS", {"topics": TopicModel})
    with pytest.raises(StoreError, match='model is "poisson"; choose topics.* install the version'):
        MomentStore.open(store).load_model()


@dataclass(frozen=True, eq=False)
class Lengths(StoredModel):
    """Not a model of topics: the mean length alone."""

    name: ClassVar[str] = "lengths"
    kind: ClassVar[str] = "counts"
    Options: ClassVar[type[FitOptions]] = FitOptions
    compares_halves: ClassVar[bool] = False
    mean: NDArray[np.float64]

    @classmethod
    def fit(cls, rows, options):
        whole = rows.lengths.whole
        return cls(np.array([whole.C1 / whole.n_documents]), documents=whole.n_documents)

    @classmethod
    def fit_bytes(cls, foundation, options):
        return 8

    def described(self):
        return Description({}, {"words a document": self.mean}, "one number")


def test_a_model_without_topics_is_kept_and_shown_and_read_by_nobody(
    run, store, tmp_path, monkeypatch
):
    opened = MomentStore.open(store)
    model = Lengths.fit(InMemory((opened.load(),)), Lengths.Options(topics=1))
    opened.save_model("mean", model)
    monkeypatch.setattr(models, "MODELS", {**MODELS, "lengths": Lengths})
    assert "one number" in run("topics", store, "--verbose")[2]
    assert json.loads(run("topics", store, "--json")[1])["words_a_document"] == model.mean.tolist()
    page = tmp_path / "page.html"
    code, out, _ = run("page", store, "--output", page)
    assert (code, out.split(": ")[1]) == (0, "1 state of 900 documents\n")
    assert f"{model.mean[0]:.4g}</td>" in page.read_text()
    with pytest.raises(StoreError, match="'mean' has type 'lengths', which has no topics"):
        MomentStore.open(store).load_model()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            ("--model", "poisson", "--alpha0", "1"),
            "--alpha0 is not an option of model poisson",
        ),
        (("--max-alpha0", "1"), "--max-alpha0 is not an option of model topics"),
        (("--model", "hidden"), "'topics', 'poisson', 'independent'"),
    ],
)
def test_an_option_that_the_model_has_not_is_refused_by_name(run, options, said):
    code, _, err = run("refit", "absent", "--topics", "2", *options)
    assert code == 2
    assert said in err


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ({"model": "poisson", "alpha0": 1}, "alpha0: not an option of model 'poisson'"),
        ({"max_alpha0": 1}, "max_alpha0: not an option of model 'topics'"),
        ({"further": {}}, r"\[refit\] has no key 'further'"),
        ({"model": "hidden"}, r"\[refit\] model: .*'topics', 'poisson', 'independent'"),
        ({"model": "independent", "max_alpha0": "much"}, "max_alpha0 is 'much': write a number"),
        (
            {"model": "poisson", "topics": [2, 3]},
            "topics: a list works only for models",
        ),
    ],
)
def test_keys_of_a_night_are_those_of_its_model(section, said):
    with pytest.raises(InvalidInput, match=said):
        config_of({**NIGHT, "refit": {"topics": 2, **section}}, "n.toml")


@pytest.mark.parametrize("name", TOPICAL)
def test_a_night_takes_every_option_of_its_model(name):
    own = MODELS[name].Options(topics=3)
    given = {one.name: getattr(own, one.name) for one in fields(own)}
    section = config_of({**NIGHT, "refit": {"model": name, **given}}, "n.toml").refit
    assert section.family is MODELS[name]
    assert section.options(3, getattr(own, "alpha0", 0.1)) == own
    bare = config_of({**NIGHT, "refit": {"model": name, "topics": 3}}, "n.toml").refit
    assert bare.options(3, bare.alpha0[0]) == replace(own)


@pytest.mark.parametrize("name", sorted(set(TOPICAL) - {DEFAULT_MODEL}))
def test_nights_of_any_model_match_judge_and_publish(run, cut, tmp_path, name):
    path = tmp_path / "night.toml"
    path.write_text(
        f'store = "{tmp_path}/store"\nshards = "{tmp_path}/*.txt"\n'
        f'output = "{tmp_path}/reports"\n[refit]\nmodel = "{name}"\ntopics = 2\n'
        "[create]\nmin_documents = 2\nvocabulary_size = 120\nmax_topics = 4\n"
        'length_weights = "pooled"\n'
    )
    for day, (first, last) in enumerate([(0, 500), (500, 900)]):
        (tmp_path / f"2026-11-2{day}.txt").write_text("\n".join(cut[first:last]))
        assert run("nightly", str(path))[0] == 0
        report = json.loads((tmp_path / "reports" / "latest.json").read_text())
        assert report["outcome"] == "published", report
    store = MomentStore.open(str(tmp_path / "store"))
    assert type(store.load_model("published")) is MODELS[name]
    assert len(store.models) == 2


def test_the_documentation_has_the_options_of_all_models():
    page = (ROOT / "docs" / "reference" / "model_options.md").read_text()
    assert options_table() in page, options_table()
