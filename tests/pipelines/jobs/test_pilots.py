"""Pilots that go on until they have the words asked for, and what is said of words left out."""

import json
from dataclasses import asdict, replace

import numpy as np
import pytest

from streaming_moments import create_store, open_store
from streaming_moments.errors import InvalidInput
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs import create as pilots
from streaming_moments.pipelines.jobs.create import PilotOptions, create, draw_words, next_draw
from streaming_moments.pipelines.jobs.grow import grow
from streaming_moments.pipelines.jobs.rebase import pilot_of, rebase
from streaming_moments.pipelines.jobs.update import update
from streaming_moments.pipelines.planning import trial
from streaming_moments.pipelines.reports.kinds.registry import advice_on
from streaming_moments.pipelines.reports.outside_words import advice_of, drawn_of, pilot_line
from streaming_moments.pipelines.reports.status import status_of
from streaming_moments.printing.remedies import of_commands
from streaming_moments.statistics.counts.batch import CountBatch
from streaming_moments.storage.counting.samples import TermSample
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.operations.lineages import stage
from streaming_moments.storage.shards import ShardFormat

pytestmark = pytest.mark.usefixtures("few_blocks")
# a quarter of what a pilot of 20,000 passages would take
FIRST, TITLES = 5_000, 25_000
WORDS, ASKED = 1500, 1125


def spelled(number):
    """The tokeniser knows no digits."""
    return "w" + "".join("abcdefghij"[int(digit)] for digit in f"{number:04}")


@pytest.fixture(scope="module")
def titles(tmp_path_factory):
    """Titles of three words each, of which most are rare: two shards of 12,500 lines."""
    folder = tmp_path_factory.mktemp("titles")
    rng = np.random.default_rng(3)
    names = np.array([spelled(number) for number in range(WORDS)])
    chances = 1 / (np.arange(WORDS) + 5.0)
    drawn = names[rng.choice(WORDS, (TITLES, 3), p=chances / chances.sum())]
    for number, part in enumerate(np.split(drawn, 2)):
        (folder / f"{number}.txt").write_text("\n".join(map(" ".join, part.tolist())) + "\n")
    return folder


@pytest.fixture(scope="module")
def listed(titles):
    return list_shards([str(titles / "*.txt")])


def made(place, listed, options, run):
    return create(str(place), listed, ShardFormat(), TokenPolicy(), options, run)


def asking(words, pilot_documents=FIRST, **more):
    return PilotOptions(
        pilot_documents=pilot_documents, vocabulary_size=words, core=50, max_topics=2, **more
    )


@pytest.fixture
def small_pilots(monkeypatch):
    """Pilots begin with a quarter of the passages, so that a quarter of titles is enough."""
    for module in (pilots, trial):
        monkeypatch.setattr(module, "PILOT_DOCUMENTS", FIRST)


@pytest.mark.usefixtures("small_pilots")
def test_a_pilot_goes_on_until_it_has_the_words_asked_for(listed, embedded, tmp_path):
    told = []
    run = Run(embedded, tell=told.append)
    few = made(tmp_path / "few", listed, asking(ASKED, pilot_documents=FIRST + 1), run)
    assert drawn_of(few)["stopped"] == "--pilot-documents sets this number"
    assert (few.basis.n_words < ASKED, told) == (True, [])
    store = made(tmp_path / "store", listed, asking(ASKED), run)
    drawn = drawn_of(store)
    assert store.basis.n_words == ASKED
    assert FIRST + 1 < drawn["passages"] < TITLES
    assert drawn["stopped"] == f"it has all {ASKED:,} words of --vocabulary-size"
    assert f"a sample of {drawn['passages']:,} passages in 2 shards (it has all" in (
        store.commit.message
    )
    assert told
    assert f"passages has fewer than {ASKED:,} words; drawing up to " in told[0]
    likeliest = {spelled(number) for number in range(ASKED)}
    right, before = (len(likeliest & set(one.vocabulary.terms)) for one in (store, few))
    assert right > max(before, 0.9 * ASKED)
    assert 0 < drawn["outside_share"] < drawn_of(few)["outside_share"]
    assert [*map(str, advice_of(few, 0.3))] == [
        "without `create --pilot-documents` the pilot of `streaming-moments create` or "
        "`streaming-moments rebase` would search for rarer words: it found "
        f"{few.basis.n_words:,} of {ASKED:,} requested words",
    ]


@pytest.mark.usefixtures("small_pilots")
def test_the_same_shards_give_the_same_words(listed, embedded, tmp_path):
    one = made(tmp_path / "one", listed, asking(ASKED), Run(embedded))
    from streaming_moments.pipelines.cluster.cluster import connect

    with connect(memory=768 << 20) as small:
        other = made(tmp_path / "other", listed, asking(ASKED), Run(small))
    assert other.foundation.fingerprint == one.foundation.fingerprint
    assert drawn_of(other) == drawn_of(one)
    another = made(tmp_path / "another", listed, asking(ASKED, seed=1), Run(embedded))
    assert another.vocabulary.fingerprint != one.vocabulary.fingerprint


@pytest.mark.usefixtures("small_pilots")
def test_words_that_are_there_at_once_are_those_of_a_pilot_that_is_told_its_size(
    listed, embedded, tmp_path
):
    """Two quotas: those of the first and those that are told are the same passages."""
    store = made(tmp_path / "store", listed, asking(225), Run(embedded))
    drawn = drawn_of(store)
    assert (drawn["passages"], drawn["shards"]) == (FIRST, 2)
    samples = pilots.sample_pilot(listed, ShardFormat(), TokenPolicy(), asking(225), Run(embedded))
    expected = pilots.choose(samples, TokenPolicy(), asking(225))
    assert store.vocabulary == expected.vocabulary
    assert store.basis.fingerprint == expected.basis.fingerprint


@pytest.mark.usefixtures("small_pilots")
def test_a_corpus_that_ends_is_read_whole(listed, embedded):
    drawn = draw_words(listed, ShardFormat(), TokenPolicy(), asking(9000), Run(embedded))
    assert (drawn.stopped, drawn.sample.batch.documents) == (
        "there are no more passages",
        TITLES,
    )
    assert drawn.sample.documents_seen == TITLES


@pytest.mark.usefixtures("small_pilots")
def test_a_small_corpus_has_the_words_of_before(planted, embedded, tmp_path):
    (tmp_path / "a.txt").write_text("\n".join(planted))
    listed = list_shards([str(tmp_path / "a.txt")])
    drawn = [
        draw_words(listed, ShardFormat(), TokenPolicy(), asking(9000, **told), Run(embedded))
        for told in ({}, {"pilot_documents": FIRST + 1})
    ]
    assert [one.stopped for one in drawn] == ["there are no more passages"] * 2
    assert drawn[0].sample.terms == drawn[1].sample.terms
    one, other = (own.sample.batch.to_csr().toarray() for own in drawn)
    assert np.array_equal(one, other)


@pytest.mark.usefixtures("small_pilots")
def test_many_small_shards_are_all_read_where_a_few_lack_words(planted, embedded, tmp_path):
    for number, text in enumerate(planted[:90]):
        (tmp_path / f"{number:02}.txt").write_text(text)
    listed = list_shards([str(tmp_path / "*.txt")])
    options = asking(9000, min_documents=2)
    drawn = draw_words(listed, ShardFormat(), TokenPolicy(), options, Run(embedded))
    assert (drawn.shards, drawn.sample.batch.documents) == (90, 90)
    assert drawn.stopped == "there are no more passages"
    exact = asking(9000, min_documents=2, pilot_documents=500)
    drawn = draw_words(listed, ShardFormat(), TokenPolicy(), exact, Run(embedded))
    assert (drawn.shards, drawn.stopped) == (64, "--pilot-documents sets this number")


def sampled(rows, seen):
    batch = CountBatch.from_csr(np.array(rows))
    return TermSample(tuple(f"w{n}" for n in range(batch.n_words)), batch, seen)


def test_each_bound_ends_a_pilot_and_is_named(monkeypatch):
    many = [[1, 1, 0]] * 4 + [[1, 0, 1]]
    one, rare = sampled(many, 5), sampled(many, 99)
    options = asking(3, 20_000, min_documents=3, max_document_fraction=1.0)
    found = asking(2, 20_000, min_documents=3, max_document_fraction=1.0)
    assert next_draw(rare, found, 20_000, (1, 1)) == "it has all 2 words of --vocabulary-size"
    assert next_draw(one, options, 20_000, (1, 1)) == "there are no more passages"
    # the third word was met once: four times as many passages, and of shards that were read whole
    assert next_draw(rare, options, 20_000, (64, 999)) == (80_000, 64)
    assert next_draw(one, options, 20_000, (64, 999)) == (20_000, 256)
    assert next_draw(one, options, 20_000, (64, 70)) == (20_000, 70)
    assert next_draw(one, options, 20_000, (1024, 2000)) == "1,024 shards are the most for a sample"
    assert next_draw(rare, options, 280_000, (1, 1)) == (320_000, 1)
    for asked in (300_000, 320_000):
        assert (
            next_draw(rare, options, asked, (1, 1)) == "320,000 passages are the most for a sample"
        )
    assert next_draw(rare, options, 20_000, (1, 1), cut=True) == "--memory holds no more passages"
    often = sampled([*many, [0, 0, 1], [0, 0, 1]], 99)
    assert next_draw(often, asking(9, 20_000, min_documents=3), 20_000, (1, 1)).startswith(
        "no rarer words appeared"
    )
    monkeypatch.setattr(pilots, "MOST_ENTRIES", 50_000)
    assert next_draw(rare, options, 20_000, (1, 1)) == (25_000, 1)
    assert (
        next_draw(rare, options, 25_000, (1, 1))
        == "50,000 words in passages are the most for a sample"
    )


@pytest.mark.usefixtures("small_pilots")
def test_a_pilot_that_memory_cuts_short_says_so(listed, embedded, monkeypatch):
    monkeypatch.setattr(pilots, "pilot_room", lambda memory: 75_000)
    drawn = draw_words(listed, ShardFormat(), TokenPolicy(), asking(ASKED), Run(embedded))
    assert drawn.stopped == "--memory holds no more passages"
    assert 100 < drawn.sample.batch.documents < FIRST


def test_commands_and_python_say_what_is_outside_and_what_would_lower_it(titles, run, tmp_path):
    url, shards = tmp_path / "store", titles / "*.txt"
    few = ("--vocabulary-size", 400, "--core", 50, "--max-topics", 2)
    code, out, err = run("create", url, shards, *few)
    assert code == 0, err
    assert "of the tokens of the pilot are outside the vocabulary: " in out
    assert "rarer than the 400 requested words" in out
    assert "`create --vocabulary-size 800` or `rebase --vocabulary-size 800` would count" in out
    assert "`grow" not in out, "nothing is counted yet"
    store = open_store(str(url))
    assert (store.outside_share, store.advice) == (None, ())
    code, out, err = run("update", url, titles / "0.txt")
    assert code == 0, err
    store = open_store(str(url))
    assert f"{store.outside_share:.1%} of the tokens are outside the vocabulary" in out
    words = "`PilotOptions(vocabulary_size=800)`", "`streaming-moments grow --words 500`"
    assert all(line.startswith(one) for line, one in zip(store.advice, words, strict=True))
    assert "`grow --words 500` would add words" in out
    told = json.loads(run("update", url, titles / "1.txt", "--json")[1])
    assert told["outside_share"] == told["outside"] / (told["outside"] + told["tokens"])
    assert len(told["advice"]) == 2
    told = json.loads(run("status", url, "--json")[1])
    store = open_store(str(url))
    assert told["outside_share"] == store.outside_share
    assert told["advice"][0].startswith("`create --vocabulary-size 800` or `rebase --")
    shown = run("status", url)[1]
    assert f"warning: {store.outside_share:.1%} of the tokens are outside" in shown
    assert f"warning: {told['advice'][0]}" in shown
    assert run("refit", url, "--topics", 2, "--alpha0", 0, "--refine", 0)[0] == 0
    assert run("page", url, "--output", tmp_path / "page.html", "--no-documents")[0] == 0
    page = (tmp_path / "page.html").read_text()
    assert "tokens outside" in page
    assert "would count rarer words as well" in page
    told = json.loads(run("create", tmp_path / "other", shards, *few, "--json")[1])
    assert told["pilot"]["passages"] == 20_000
    assert told["pilot"]["outside_share"] == pytest.approx(
        sum(told["pilot"][f"{why}_share"] for why in ("common", "rare", "beyond"))
    )
    assert len(told["advice"]) == 1


def test_few_words_outside_and_those_that_are_too_common_need_no_advice(embedded, tmp_path):
    texts = ["the sea ship"] * 40 + ["the law tax"] * 40
    pilot = PilotOptions(min_documents=2)
    store = create_store(str(tmp_path / "store"), texts, source="a", max_topics=2, pilot=pilot)
    store = store.update(texts, source="a")
    assert store.outside_share == pytest.approx(1 / 3)
    assert advice_on(store.snapshot, store.outside_share) == ()
    assert [*store.advice] == [status_of(store.snapshot).warning]
    assert store.advice[0].startswith("no document has three words of the vocabulary")
    assert "33.3% are words in more than 50% of the passages" in pilot_line(store.snapshot)
    assert advice_of(store.snapshot, None) == ()
    [rarer] = advice_of(store.snapshot, 0.3834)
    assert str(rarer).startswith("`create --min-documents 1` would count"), "no file to read again"
    assert advice_of(store.snapshot, 0.3833) == ()


def test_python_warns_of_few_documents_as_status_does(run, tmp_path):
    pilot = PilotOptions(min_documents=2)
    texts = ["the sea ship sails"] * 40 + ["the law tax court"] * 40
    store = create_store(str(tmp_path / "s"), texts, source="a", max_topics=2, pilot=pilot)
    [few] = store.update(texts, source="a").advice
    rough = "80.0 effective documents are few, below 1,000, so topics from them are rough"
    assert few == f"{rough}; count more documents"
    assert f"warning: {few}" in run("status", store.url)[1]


@pytest.mark.usefixtures("small_pilots")
def test_a_store_of_a_pilot_that_had_too_few_words_is_filled_up(listed, embedded, tmp_path):
    """As stores of before were made: by so many passages, with nothing kept of what they were."""
    here = Run(embedded)
    store = made(tmp_path / "store", listed, asking(ASKED, pilot_documents=FIRST + 1), here)
    old = asdict(asking(ASKED))
    store = stage(store, store.vocabulary, store.policy, store.basis, old, "as before", None)
    store = rebase(update(store, listed, here).store, here).store
    # the rebase that was begun counts on the old words; the next has a pilot that goes on
    assert store.basis.n_words < ASKED
    assert drawn_of(store) == {}
    assert pilot_of(store) == asking(ASKED)
    status = status_of(store)
    assert status.outside_share > 0.05
    lacking = ASKED - store.basis.n_words
    assert [line.split("`")[1] for line in status.advice] == [
        "create --min-documents 2",
        f"grow --words {max(500, lacking)}",
    ]
    grown = grow(store, listed, here, 3000).store
    assert grown.basis.n_words > ASKED - 0.02 * ASKED
    assert grown.verify() == []
    renewed = rebase(store, here).store
    assert renewed.basis.n_words == ASKED
    assert status_of(renewed).outside_share < status.outside_share
    assert "it has all" in str([one.message for one in renewed.log()])


@pytest.mark.usefixtures("small_pilots")
def test_a_plan_has_the_words_of_a_pilot_that_goes_on(titles, run):
    asked = ("--vocabulary-size", ASKED, "--core", 50, "--max-topics", 2, "--topics", 2, "--json")
    planned, exact = (
        json.loads(run("plan", titles / "*.txt", *asked, "--pilot-documents", passages)[1])["words"]
        for passages in (FIRST, FIRST + 1)
    )
    assert exact < 0.9 * ASKED
    assert planned == pytest.approx(ASKED, rel=0.02)


def few_words(words):
    """A sample of 40 documents with two to all of some words each."""
    counts = np.random.default_rng(2).poisson(1.0, (40, words)) + np.eye(40, words, dtype=int)
    return TermSample(tuple(map(spelled, range(words))), CountBatch.from_csr(counts), 40)


@pytest.mark.parametrize(("words", "topics"), [(2, 2), (26, 26), (40, 32)])
def test_a_small_vocabulary_has_as_many_topics_as_core_words_unless_a_number_is_given(
    words, topics
):
    options = PilotOptions(min_documents=1, max_document_fraction=1)
    found = pilots.choose([few_words(words)], None, options)
    assert found.drawn["max_topics"] == topics
    given = replace(options, max_topics=topics)
    same = pilots.choose([few_words(words)], None, given)
    np.testing.assert_array_equal(found.basis.matrix, same.basis.matrix)
    assert "max_topics" not in same.drawn
    with pytest.raises(InvalidInput) as refused:
        pilots.choose([few_words(words)], None, replace(options, max_topics=words + 1))
    said = f"; give at most {words} by `create --max-topics`"
    assert said in refused.value.said(of_commands)


def test_python_prints_for_how_many_topics_a_small_vocabulary_is(capsys):
    texts = ["sea ship storm", "law court tax"] * 20
    pilot = PilotOptions(max_document_fraction=1)
    store = create_store("memory://few-words", texts, source="texts", pilot=pilot, verbose=1)
    assert "up to 6 topics instead of 32, because there are 6 core words" in capsys.readouterr().out
    assert pilot_of(store.snapshot).max_topics is None
