"""Stores of other tokenisers than the default: created, counted, fitted, read, and refused."""

import json
import re
from dataclasses import replace
from types import SimpleNamespace

import own_words
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streaming_moments import CountingOptions, PilotOptions, create_store, open_store
from streaming_moments.errors import InvalidInput, ShardError
from streaming_moments.pipelines import Run, update
from streaming_moments.pipelines.jobs.update import UpdateResult
from streaming_moments.pipelines.reports import outside_words
from streaming_moments.pipelines.reports.outside_words import language_line
from streaming_moments.pipelines.service.published import Published
from streaming_moments.storage import MomentStore, list_shards
from streaming_moments.storage.counting.samples import sample_of_passages, settled
from streaming_moments.storage.counting.tokenisers import registry
from streaming_moments.storage.counting.tokenisers.base import TokeniserMissing
from streaming_moments.storage.counting.tokens import TokenPolicy

TEXTS = ["c++ 2026 code c++ compiler", "sea ship 1492 port sea"] * 40
PILOT = PilotOptions(max_topics=2, min_documents=2, max_document_fraction=1)
CHINESE = ["我们喜欢大海和船", "政府通过了新的税法", "船在港口", "法院讨论税法"] * 30


def language_line_of(store, share):
    """What is said of a store whose tokeniser took this share of the time."""
    known = store.snapshot
    lineage = known.commit.lineage
    drawn = {**lineage.pilot["drawn"], "tokeniser_share": share}
    del drawn["languages"]
    slow = replace(lineage, pilot={**lineage.pilot, "drawn": drawn})
    found = language_line(
        SimpleNamespace(commit=SimpleNamespace(lineage=slow), policy=known.policy)
    )
    return "" if found is None else str(found)


@pytest.fixture
def fresh():
    """Tokenisers are opened once in a process; tests change their versions."""
    registry.tokeniser_called.cache_clear()
    yield
    registry.tokeniser_called.cache_clear()


@pytest.fixture(scope="module")
def shard(tmp_path_factory):
    path = tmp_path_factory.mktemp("texts") / "a.parquet"
    pq.write_table(pa.table({"text": TEXTS, "id": [f"d{n}" for n in range(len(TEXTS))]}), path)
    return path


@pytest.fixture(scope="module")
def counted(shard, tmp_path_factory, embedded):
    """A store of words between blanks, with a model."""
    url = str(tmp_path_factory.mktemp("stores") / "blanks")
    store = create_store(
        url,
        str(shard),
        client=embedded.client,
        max_topics=2,
        tokeniser=own_words.by_blanks,
        pilot=PILOT,
    )
    store = store.update(str(shard), client=embedded.client)
    with pytest.warns(UserWarning, match="80 documents are too few"):
        store.refit(2, name="two", client=embedded.client, alpha0=0.1)
    return open_store(url)


def test_a_function_counts_the_words_of_a_store(counted):
    assert {"c++", "2026", "sea", "1492"} <= {*counted.snapshot.vocabulary.terms}
    assert counted.snapshot.policy.tokeniser == "own_words:by_blanks"
    assert counted.snapshot.commit.tokens == sum(len(text.split()) for text in TEXTS)
    drawn = counted.snapshot.commit.lineage.pilot["drawn"]
    assert 0 <= drawn["tokeniser_share"] <= 1
    told = {share: language_line_of(counted, share) for share in (0.05, 0.83)}
    assert told == {
        0.05: "",
        0.83: "Tokeniser own_words:by_blanks took 83% of the time that reading the sample took.",
    }


def test_update_says_which_share_of_the_time_a_tokeniser_took(tmp_path, run, monkeypatch):
    monkeypatch.setattr(outside_words, "SLOW", 0)
    (tmp_path / "a.txt").write_text("\n".join(TEXTS))
    shares = []
    for tokeniser in ("own_words:by_blanks", "words"):
        store = tmp_path / tokeniser.partition(":")[0]
        given = ("--tokeniser", tokeniser, "--max-topics", 2, "--max-document-fraction", 1)
        code, _, err = run("create", store, tmp_path / "a.txt", *given, "--language", "none")
        assert code == 0, err
        _, out, _ = run("update", store, tmp_path / "a.txt")
        shares.append(json.loads(run("update", store, tmp_path / "a.txt", "--json")[1]))
        said = re.findall(
            r"Tokeniser (\S+) took \d+% of the time that reading the shards took", out
        )
        assert said == [tokeniser] * (tokeniser != "words")
    # the second updates read nothing
    assert [one["tokeniser_share"] for one in shares] == [None, None]
    store = MomentStore.open(str(tmp_path / "own_words"))
    result = UpdateResult(store, 1, 0, 2, 2, 0, (), seconds=(0.75, 1.0))
    assert result.tokeniser_share == 0.75
    code, out, _ = run("status", store.url)
    assert (code, "words, found by tokeniser own_words:by_blanks" in out) == (0, True)


def test_models_services_and_outputs_cut_texts_alike(counted, shard, embedded, run, tmp_path):
    topics = counted.topics()
    read = topics.read(["c++ 1492 unknown"])
    assert read.to_frame()["length"].tolist() == [2]
    published = Published.of(counted.snapshot, "published")
    (answer,) = published.infer(["c++ 1492 unknown"])
    assert (answer.words, answer.known) == (3, 2)
    out = tmp_path / "out"
    code, _, err = run("transform", counted.snapshot.url, shard, "--output", out)
    assert (code, err) == (0, err)
    assert next(out.glob("**/*.parquet"))


def test_another_version_is_refused_before_anything_is_counted(
    counted, embedded, run, monkeypatch, fresh, tmp_path
):
    monkeypatch.setattr(own_words.by_blanks, "version", "2")
    store = MomentStore.open(counted.snapshot.url)
    more = tmp_path / "more.txt"
    more.write_text("sea ship")
    with pytest.raises(TokeniserMissing, match="own_words:by_blanks of version 1"):
        update(store, list_shards([str(more)]), Run(embedded), skip_bad_shards=True)
    assert store.latest().version == store.version
    # what needs no text is shown all the same
    code, out, _ = run("status", counted.snapshot.url)
    assert (code, "80" in out) == (0, True)
    assert counted.topics().top_words()


def test_documents_on_which_a_function_fails_make_a_bad_shard(tmp_path, embedded):
    good, bad = tmp_path / "good.txt", tmp_path / "bad.txt"
    good.write_text("\n".join(TEXTS))
    bad.write_text("sea 13\n")
    counting = CountingOptions(tokeniser="own_words:unlucky")
    named = {"client": embedded.client, "counting": counting, "pilot": PILOT, "max_topics": 2}
    store = create_store(str(tmp_path / "store"), str(good), **named)
    with pytest.raises(ShardError, match="bad.txt: document 1: tokeniser own_words:unlucky f"):
        store.update([str(good), str(bad)], client=embedded.client)
    counted = store.update([str(good), str(bad)], client=embedded.client, skip_bad_shards=True)
    assert counted.documents == len(TEXTS)


def test_a_pilot_in_a_language_without_spaces_names_its_tokeniser(tmp_path, run):
    (tmp_path / "a.txt").write_text("\n".join(CHINESE))
    store = tmp_path / "store"
    sizes = ("--max-topics", 2, "--max-document-fraction", 1, "--min-documents")
    code, out, _ = run("create", f"{store}-plain", tmp_path / "a.txt", *sizes, 2)
    assert (code, "create another store with `create --tokeniser chinese`." in out) == (0, True)
    # what would not help is not said
    assert ("Found no language" in out, "--min-documents" in out) == (False, False)
    # each sentence is a word, and each is in 30 documents
    code, _, err = run("create", f"{store}-none", tmp_path / "a.txt", *sizes, 31)
    assert (code, "`create --tokeniser chinese`. As is, " in err) == (2, True)
    pytest.importorskip("rjieba")
    code, out, _ = run(
        "create", store, tmp_path / "a.txt", *sizes, 2, "--tokeniser", "zh", "--json"
    )
    assert code == 0
    assert "better_tokeniser" not in json.loads(out)["pilot"]
    opened = MomentStore.open(str(store))
    assert {"税法", "法院", "大海"} <= {*opened.vocabulary.terms}
    assert opened.policy.languages == ("chinese",)


def test_options_refuse_what_is_no_tokeniser(tmp_path, shard, run):
    code, _, err = run("create", tmp_path / "s", shard, "--tokeniser", "nowhere:cut")
    assert (code, "nowhere:cut cannot be imported" in err) == (2, True)
    pq.write_table(pa.table({"ids": [[1, 2, 3]]}), tmp_path / "ids.parquet")
    given = ("--ids-column", "ids", "--tokeniser", "regex:a")
    code, _, err = run("create", tmp_path / "s", tmp_path / "ids.parquet", *given)
    assert (code, "--tokeniser" in err) == (2, True)
    with pytest.raises(InvalidInput, match="cannot import the tokeniser"):
        create_store(str(tmp_path / "s"), TEXTS, source="x", tokeniser=lambda text: text.split())


def test_phrases_that_a_sample_shows_have_no_word_with_their_separator():
    text = "snake_case code and new york new_york " * 20
    for name, longest in (("own_words:by_blanks", "2"), (r"regex:[\w+#]+", "3")):
        asked = TokenPolicy.for_languages(["none"], tokeniser=name, phrases=[longest])
        passages = [asked.words(text)]
        sample, found = settled(sample_of_passages(passages, asked, 1), asked, 1)
        assert ("new", "york") in found.phrases
        assert not [word for phrase in found.phrases for word in phrase if "_" in word]
        # the store counts as its sample
        assert {*sample.terms} == {*found.tokens(text)}
        # without a phrase, words stay as they are cut
        sample, found = settled(sample_of_passages([["a_b", "sea"]], asked, 1), asked, 1)
        assert (sample.terms, found.phrases, found.tokens("a_b")) == (("a_b", "sea"), (), ["a_b"])


def test_phrases_of_the_sample_are_words_of_the_store(tmp_path, embedded, run):
    texts = ["the supreme court ruled on trade", "a ship left the north sea port"] * 30
    path = tmp_path / "a.txt"
    path.write_text("\n".join([*texts, *(["trade", "court", "sea", "north", "ship", "ruled"] * 8)]))
    sizes = ("--max-topics", 2, "--max-document-fraction", 1, "--min-documents", 2)
    given = ("--phrases", 3, "--phrases", "left a")
    code, _, err = run("create", tmp_path / "s", path, *sizes, *given, "--language", "english")
    assert (code, "the phrase 'left a' has 'a', which is too short" in err) == (2, True)
    code, out, err = run(
        "create", tmp_path / "s", path, *sizes, "--phrases", 2, "--language", "english"
    )
    assert (code, err) == (0, err)
    assert "count in place of their words" in out
    store = MomentStore.open(str(tmp_path / "s"))
    assert ("supreme", "court") in store.policy.phrases
    assert {"supreme_court", "north_sea", "court"} <= {*store.vocabulary.terms}
    assert store.policy.phrase_words is None
    counted = open_store(str(tmp_path / "s")).update(str(path), client=embedded.client)
    tokens = [store.policy.tokens(line) for line in path.read_text().splitlines()]
    assert counted.snapshot.commit.tokens + sum(
        record.outside for record in counted.snapshot.ledger()
    ) == sum(map(len, tokens))
