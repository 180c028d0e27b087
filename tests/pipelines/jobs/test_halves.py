"""Halves of the documents, from the shards to the statistics and back."""

import json
import shutil
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from brute_halves import odd_document

from streaming_moments import CountBatch, MomentStatistics
from streaming_moments.errors import InvalidInput, StoreError
from streaming_moments.models.poissons.poisson_mixture import PoissonMixture
from streaming_moments.models.topic_options import TopicOptions
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.choose import chosen_options
from streaming_moments.pipelines.jobs.compact import compact
from streaming_moments.pipelines.jobs.create import PilotOptions, create
from streaming_moments.pipelines.jobs.drift.measure_drift import measure_drift
from streaming_moments.pipelines.jobs.forget import forget
from streaming_moments.pipelines.jobs.rebase import rebase
from streaming_moments.pipelines.jobs.refit import coherence, refit, refit_by
from streaming_moments.pipelines.jobs.update import update
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.operations.windows import Window, WindowedStore
from streaming_moments.storage.shards import ShardFormat
from streaming_moments.storage.store.store import MomentStore

pytestmark = pytest.mark.usefixtures("few_blocks")
OPTIONS = PilotOptions(vocabulary_size=120, core=100, max_topics=4, min_documents=2)
SIZES = (61, 30, 17, 1, 1, 1)


def put(path, texts):
    """Lines with blank ones among them, which are no documents."""
    lines = [json.dumps({"text": text}) for text in texts]
    path.write_text("\n\n".join(lines[:4]) + "\n" + "\n".join(lines[4:]) + "\n\n")


@pytest.fixture
def corpus(planted, tmp_path):
    """Texts by shard."""
    begins = np.cumsum([0, *SIZES])
    texts = {
        tmp_path / f"{number}.jsonl": planted[start : start + size]
        for number, (start, size) in enumerate(zip(begins, SIZES, strict=False))
    }
    for path, own in texts.items():
        put(path, own)
    return texts


def half_of(store, text):
    """Whether a text is of the odd half."""
    [counts] = (Counter(passage) for passage in store.policy.passages(text))
    return odd_document(dict(enumerate(counts[word] for word in store.vocabulary.terms)))


def expected(store, corpus):
    """Statistics of texts, counted one by one; the passages of a text are of its half."""
    rows, halves = [], []
    for texts in corpus.values():
        for text in texts:
            passages = [Counter(passage) for passage in store.policy.passages(text)]
            own = [[passage[term] for term in store.vocabulary.terms] for passage in passages]
            whole = np.sum(own, axis=0).tolist()
            rows += own
            halves += [odd_document(dict(enumerate(whole)))] * len(own)
    batch = CountBatch.from_csr(np.array(rows), store.vocabulary.fingerprint)
    batch = replace(batch, halves=np.array(halves))
    return MomentStatistics.of(batch, store.basis, halves=store.halves)


@pytest.mark.parametrize("passage_words", [None, 7])
def test_whatever_comes_and_goes_halves_are_of_the_documents_left(
    corpus, embedded, tmp_path, passage_words
):
    run, listed = Run(embedded), list_shards([str(tmp_path / "*.jsonl")])
    policy = TokenPolicy(passage_words=passage_words)
    store = create(str(tmp_path / "store"), listed, ShardFormat(), policy, OPTIONS, run)
    store = update(update(store, listed[1:3], run).store, listed, run).store
    assert store.load() == expected(store, corpus)
    even = store.load().even_pair_counts.sum()
    assert 0 < even < store.load().pair_counts.sum()
    # a shard of the first segment, one document of the second
    store = forget(store, [listed[1], listed[4]], run)
    left = {path: texts for path, texts in corpus.items() if path.stem not in "14"}
    assert store.load() == expected(store, left)
    # new content, the old one read from a copy
    path = tmp_path / "2.jsonl"
    (tmp_path / "old").mkdir()
    shutil.copy(path, tmp_path / "old" / "copy.jsonl")
    put(path, corpus[path][3:9])
    left[path] = corpus[path][3:9]
    changed = list_shards([str(path)])
    store = update(store, changed, run, old=list_shards([str(tmp_path / "old")])).store
    assert store.load() == expected(store, left)
    store = compact(store, run)
    assert len(store.commit.segments) == 1
    assert store.load() == expected(store, left)
    assert store.verify() == []
    without = rebase(store, run, halves=False).store
    assert not without.halves
    assert without.load() == expected(without, left)
    assert without.load().even_pair_counts is None
    again = rebase(without, run, halves=True).store
    assert again.halves
    assert again.load() == expected(again, left)
    assert MomentStore.open(again.url).verify() == []


def test_a_store_without_halves_says_what_new_ones_have(corpus, run, tmp_path):
    store, shards = str(tmp_path / "store"), str(tmp_path / "*.jsonl")
    options = ["--vocabulary-size", 120, "--max-topics", 4, "--min-documents", 2]
    plain = ["--no-halves", "--length-weights", "pooled"]
    assert run("create", store, shards, *options, *plain)[0] == 0
    assert run("update", store, shards)[0] == 0
    assert MomentStore.open(store).format.format == 1
    said = " ".join(run("status", store, "--verbose")[1].split())
    assert "without halves, so no error bars" in said
    assert "`rebase --length-weights even --halves`" in said
    code, _, errors = run("rebase", store, "--length-weights", "even", "--halves")
    assert (code, MomentStore.open(store).halves) == (0, True), errors
    shown = json.loads(run("status", store, "--json")[1])
    assert shown["counting"].endswith("with halves")


def test_shards_of_one_document_each_fill_both_halves(planted, embedded, run, tmp_path):
    (tmp_path / "shards").mkdir()
    for number, text in enumerate(planted[:120]):
        put(tmp_path / "shards" / f"{number:03}.jsonl", [text])
    listed = list_shards([str(tmp_path / "shards" / "*.jsonl")])
    made = create(str(tmp_path / "s"), listed, ShardFormat(), TokenPolicy(), OPTIONS, Run(embedded))
    store = update(made, listed, Run(embedded)).store
    odd = [half_of(store, text) for text in planted[:120]]
    # as good as a coin
    assert 40 < sum(odd) < 80
    statistics = store.load()
    share = statistics.even_pair_counts.sum() / statistics.pair_counts.sum()
    assert share == pytest.approx(1 - sum(odd) / 120, abs=0.1)
    whole = refit(store, 3, 1.0, Run(embedded))
    assert whole.topic_bars is not None
    # all of one half: no half to compare with, which is said
    even = [shard for shard, half in zip(listed, odd, strict=True) if not half]
    one_sided = forget(store, [shard for shard in listed if shard not in even], Run(embedded))
    model = refit(one_sided, 3, 1.0, Run(embedded))
    assert model.topic_bars is model.held_out is model.second_start is None
    given = TopicOptions(topics=3, alpha0=1.0), ("refine",), Run(embedded)
    with pytest.raises(InvalidInput, match="halves of the documents.*has no pair of words"):
        chosen_options(one_sided, *given)
    missing = "no error bars: one half of the records cannot support this model"
    code, out, _ = run("refit", one_sided.url, "--topics", 3)
    assert code == 0
    assert missing in " ".join(out.split())
    # wherever bars are shown, not when it was fitted alone
    assert missing in " ".join(run("topics", one_sided.url)[1].split())
    page = tmp_path / "page.html"
    assert run("page", one_sided.url, "--output", page, "--no-documents")[0] == 0
    assert missing in page.read_text()
    assert "no error bars" not in run("topics", store.save_model("own", whole).url)[1]


def test_halves_are_read_where_something_is_made_of_them_alone(corpus, embedded, tmp_path):
    run, listed = Run(embedded), list_shards([str(tmp_path / "*.jsonl")])
    pooled = replace(OPTIONS, length_weights="pooled")
    store = create(str(tmp_path / "s"), listed, ShardFormat(), TokenPolicy(), pooled, run)
    store = update(store, listed, run).store
    for path in (tmp_path / "s").glob("segments/*/even_pair_counts/*"):
        path.unlink()
    fitted = refit_by(store, PoissonMixture, PoissonMixture.Options(topics=3), run)
    assert coherence(store, fitted, run) is not None
    assert measure_drift(store, None, 3, 1.0, run).captured is not None
    block = store.load_block(1, halves=False)
    assert block.even_pair_counts is None
    assert block.pair_counts.any()
    window = WindowedStore(store, Window(), ((1.0, store.commit.segments),))
    assert window.load_block(1, halves=False) == block
    with pytest.raises(StoreError, match="even_pair_counts"):
        refit(store, 3, 1.0, run, refine=0)


def test_a_file_that_grew_and_a_corpus_cut_anew_are_as_counted_at_once(planted, embedded, tmp_path):
    run, path = Run(embedded), tmp_path / "grows.jsonl"
    lines = [json.dumps({"text": text}) + "\n" for text in planted[:90]]
    path.write_text("".join(lines[:31]))
    listed = list_shards([str(path)])
    store = create(str(tmp_path / "s"), listed, ShardFormat(), TokenPolicy(), OPTIONS, run)
    store = update(store, listed, run).store
    path.write_text("".join(lines))
    grown = update(store, list_shards([str(path)]), run).store
    assert grown.load().length_histogram.n_documents == 90
    for name, order in (("once", range(90)), ("anew", np.random.default_rng(1).permutation(90))):
        (tmp_path / name).mkdir()
        for number, own in enumerate(np.array_split(order, 1 if name == "once" else 4)):
            text = "".join(lines[place] for place in own)
            (tmp_path / name / f"{number}.jsonl").write_text(text)
        words = store.vocabulary, store.policy
        empty = MomentStore.create(
            str(tmp_path / f"{name} store"), *words, store.basis, store.form, store.codocuments
        )
        at_once = update(empty, list_shards([str(tmp_path / name / "*.jsonl")]), run).store
        assert at_once.load() == grown.load()
