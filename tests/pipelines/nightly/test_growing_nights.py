"""Nights that add words by themselves, where drift says so, and nights that do not."""

import json
import re
from dataclasses import replace

import pytest

from streaming_moments.errors import InvalidInput
from streaming_moments.pipelines.nightly import night as nights
from streaming_moments.pipelines.nightly.config import config_of
from streaming_moments.storage.store.store import MomentStore

pytestmark = pytest.mark.usefixtures("few_blocks")
NEW = ("mars", "rover", "crater")
CREATE = "[create]\nmin_documents = 5\nvocabulary_size = 200\ncore = 80\nmax_topics = 3\n"


class Nights:
    """Nights of a store: each counts sixty documents, of which every third may have new words."""

    def __init__(self, folder, planted, run):
        self.folder, self.planted, self.run = folder, planted, run

    def night(self, number, words=NEW * 4, more="", create=CREATE, code=0):
        texts = self.planted[60 * number : 60 * number + 60]
        lines = [
            f"{text} {' '.join(words)}" if place % 3 == 0 else text
            for place, text in enumerate(texts)
        ]
        (self.folder / f"shard-2026-12-0{number}.txt").write_text("\n".join(lines))
        (self.folder / "night.toml").write_text(
            f'store = "{self.folder}/store"\nshards = "{self.folder}/shard-*.txt"\n'
            f'output = "{self.folder}/out"\n[refit]\ntopics = 2\nalpha0 = 1\nrefine = 1\n'
            f"{create}{more}"
        )
        found, out, err = self.run("nightly", self.folder / "night.toml")
        assert found == code, err
        return self.report, out + err

    @property
    def report(self):
        return json.loads((self.folder / "out" / "latest.json").read_text())

    @property
    def store(self):
        return MomentStore.open(f"{self.folder}/store")


@pytest.fixture
def nights_of(tmp_path, planted, run):
    """After a first night, without new words."""
    made = Nights(tmp_path, planted, run)
    report, _ = made.night(1, ())
    assert (report["growth"], report["words_added"]) == ("", 0)
    return made


def steps_of(report):
    return {step["step"]: step["values"] for step in report["steps"]}


def test_a_night_adds_words_by_itself_and_says_so(nights_of):
    before = nights_of.store
    report, out = nights_of.night(2)
    store, told = nights_of.store, steps_of(report)["growth"]
    added = set(store.vocabulary.terms) - set(before.vocabulary.terms)
    assert set(NEW) <= added
    assert report["words_added"] == told["words"] == len(added)
    assert told["outside_share"] > told["outside_before"] + 0.02
    assert report["growth"].startswith(f"{told['outside_share']:.1%} of the tokens of new shards")
    assert f"{len(added)} words were added (" in report["growth"]
    assert "mars" in report["growth"]
    assert report["growth"] in out
    assert report["outcome"] == "published"
    assert report["growth"] in (nights_of.folder / "out" / "latest.html").read_text()
    index = (nights_of.folder / "out" / "index.html").read_text()
    assert re.search(rf"published</\w+>\s*<\w+[^>]*>{len(added)} words added<", index)
    assert "mars" not in index
    # the next night counts them, and lacks none
    report, _ = nights_of.night(3)
    assert (report["growth"], report["words_added"]) == ("", 0)
    third = nights_of.store
    rows = [third.vocabulary.index[word] for word in NEW]
    assert third.load().word_counts[rows].min() >= 20
    assert third.verify() == []
    assert third.vocabulary == store.vocabulary


@pytest.mark.parametrize("more", ["[growth]\nenabled = false\n", "[growth]\noutside_above = 1\n"])
def test_growth_can_be_switched_off(nights_of, more):
    report, _ = nights_of.night(2, more=more)
    assert "growth" not in steps_of(report)
    assert (report["growth"], nights_of.store.commit.lineage.eras) == ("", ())


def test_a_night_without_new_words_adds_none(nights_of):
    report, _ = nights_of.night(2, ())
    assert "growth" not in steps_of(report)


def test_words_that_were_always_lacking_are_no_drift(tmp_path, planted, run):
    """The report says instead what would lower the share."""
    made = Nights(tmp_path, planted, run)
    small = CREATE.replace("200", "60").replace("80", "60") + "max_document_fraction = 1.0\n"
    for number in (1, 2):
        report, _ = made.night(number, (), create=small)
        assert report["status"]["outside_share"] > 0.05
        assert "growth" not in steps_of(report)
        assert report["growth"] == ""
        [first, *_] = report["status"]["advice"]
        assert first.startswith("`[create] vocabulary_size = 120` or `rebase ")
        page = (tmp_path / "out" / "latest.html").read_text()
        assert "would count rarer words as well" in page


def test_a_model_on_new_words_that_the_gates_reject_is_not_published(nights_of):
    published = nights_of.store.commit.tags["published"]
    report, _ = nights_of.night(2, more="[gates]\nmin_documents = 100000\n", code=11)
    assert report["words_added"] >= 3
    assert report["outcome"] == "rejected"
    store = nights_of.store
    assert store.commit.tags["published"] == published
    fitted = store.at(store.models[published].version)
    assert not set(NEW) & set(fitted.vocabulary.terms)
    assert store.verify() == []
    report, _ = nights_of.night(3)
    assert (report["outcome"], report["words_added"]) == ("published", 0)


class Died(Exception):
    """The end of a process."""


@pytest.mark.parametrize("step", ["_drift", "_matched"])
def test_a_night_that_died_before_or_after_is_finished_by_the_next(nights_of, monkeypatch, step):
    def died(*_):
        raise Died

    with monkeypatch.context() as patched:
        patched.setattr(nights, step, died)
        nights_of.night(2, code=1)
    grown = step == "_matched"
    assert bool(nights_of.store.commit.lineage.eras) == grown
    report, _ = nights_of.night(2)
    assert report["outcome"] == "published"
    assert report["words_added"] >= 3
    assert "words were added" in report["growth"]
    assert ("growth" in steps_of(report)) == (not grown)
    store = nights_of.store
    assert len(store.commit.lineage.eras) == 1
    assert set(NEW) <= set(store.vocabulary.terms)
    assert store.verify() == []


def test_there_are_at_most_so_many_words(nights_of):
    words = nights_of.store.basis.n_words
    report, _ = nights_of.night(2, more=f"[growth]\nmost_words = {words + 2}\n")
    assert report["words_added"] == 2
    many = tuple(f"{one}{two}" for one in "abcdef" for two in "uvwxyz")
    report, _ = nights_of.night(3, many, more=f"[growth]\nmost_words = {words + 2}\n")
    assert report["words_added"] == 0
    assert report["growth"].endswith(
        f"no words were added: the vocabulary has {words + 2} words, which is the "
        "maximum; `rebase` the store to choose new words"
    )
    assert nights_of.store.basis.n_words == words + 2


def test_words_of_a_shard_that_is_gone_again_are_not_looked_for(nights_of, monkeypatch):
    real = nights._drift

    def gone(*arguments):
        (nights_of.folder / "shard-2026-12-02.txt").unlink()
        return real(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(nights, "_drift", gone)
        report, _ = nights_of.night(2)
    assert report["outcome"] == "published"
    assert "no words were added: " in report["growth"]
    assert "shard-2026-12-02.txt" in report["growth"]
    assert nights_of.store.commit.lineage.eras == ()


LEAST = {"store": "s", "shards": "*.txt", "output": "r", "refit": {"topics": 5}}


def test_growth_is_on_where_nothing_is_said_of_it():
    config = config_of(LEAST, "n.toml")
    assert config.growth is None
    assert (config.growing.outside_above, config.growing.outside_rise) == (0.05, 0.02)
    assert config_of({**LEAST, "growth": {"enabled": False}}, "n.toml").growing is None
    told = config_of({**LEAST, "growth": {"outside_above": 0.2}}, "n.toml").growing
    assert (told.outside_above, told.outside_rise, told.most_words) == (0.2, 0, None)
    for model in ("hmm", "latent_tree", "gaussian_mixture"):
        other = {**LEAST, "refit": {"model": model, "topics": 2}}
        assert config_of(other, "n.toml").growing is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("enabled", "perhaps"),
        ("outside_rise", float("nan")),
        ("outside_rise", 1.5),
        ("most_words", 0),
        ("most_words", "many"),
    ],
)
def test_values_that_no_growth_can_have_are_refused(key, value):
    with pytest.raises(InvalidInput, match=rf"\[growth\] {key}(: | is )"):
        config_of({**LEAST, "growth": {key: value}}, "n.toml")


def test_a_night_adds_no_words_to_a_store_like_another(nights_of):
    def alike(head):
        return replace(head.successor("test", ""), lineage=replace(head.lineage, like=True))

    before = nights_of.store.extended(alike)
    report, _ = nights_of.night(2)
    assert (report["growth"], report["words_added"]) == ("", 0)
    assert nights_of.store.vocabulary == before.vocabulary
