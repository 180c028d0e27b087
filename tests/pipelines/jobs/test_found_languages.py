"""create --language: which stop words a store removes, and what is said of them."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streaming_moments import CountingOptions, KindOptions, PilotOptions, create_store
from streaming_moments.errors import InvalidInput, NotIdentifiable
from streaming_moments.pipelines import (
    Run,
    create,
    rebase,
    refit,
    update,
)
from streaming_moments.pipelines.jobs import create as pilots
from streaming_moments.pipelines.jobs.kinds.create_kinds import create_kind, require_options_of
from streaming_moments.storage import (
    MomentStore,
    ShardFormat,
    TokenPolicy,
    list_shards,
)

ENGLISH = ["the sea and a ship in the port of the north", "a law of the tax on trade and the court"]
ITALIAN = [
    "il mare e una nave nel porto del nord",
    "una legge della tassa sul commercio e la corte",
]
PILOT = PilotOptions(max_topics=2, min_documents=2, max_document_fraction=1)


@pytest.fixture
def place(tmp_path):
    for name, texts in (("english", ENGLISH), ("italian", ITALIAN)):
        pq.write_table(pa.table({"text": texts * 40}), tmp_path / f"{name}.parquet")
    letters = "abcdefg"
    codes = [f"x{letters[n % 7]} y{letters[n % 5]} z{letters[n % 3]}" for n in range(80)]
    pq.write_table(pa.table({"text": codes}), tmp_path / "codes.parquet")
    pq.write_table(pa.table({"ids": [[1, 2, 3], [2, 3, 4]] * 20}), tmp_path / "ids.parquet")
    return tmp_path


@pytest.fixture
def made(place, embedded):
    def make(languages, name="english"):
        policy = TokenPolicy.for_languages(languages)
        shards = list_shards([str(place / f"{name}.parquet")])
        url = str(place / f"store-{name}-{'-'.join(languages) or 'none'}")
        return create(url, shards, ShardFormat(), policy, PILOT, Run(embedded))

    return make


def test_a_store_of_found_languages_is_that_of_named_ones(made):
    found, named = made(["auto"]), made(["english"])
    assert found.policy == named.policy
    assert found.policy.languages == ("english",)
    assert {*found.vocabulary.terms} == {
        *("sea", "ship", "port", "north", "law", "tax", "trade", "court")
    }
    assert found.vocabulary.fingerprint == named.vocabulary.fingerprint
    assert found.basis.fingerprint == named.basis.fingerprint


def test_a_pilot_that_memory_cuts_has_the_passages_of_one_of_named_languages(made, monkeypatch):
    monkeypatch.setattr(pilots, "pilot_room", lambda memory: 4_000)
    found, named = made(["auto"]), made(["english"])
    drawn, expected = (store.commit.lineage.pilot["drawn"] for store in (found, named))
    assert drawn == {**expected, "languages": ["english"]}
    assert drawn["passages"] < 80
    assert found.basis.fingerprint == named.basis.fingerprint


def test_updates_and_rebases_have_the_words_that_were_found(made, embedded, place):
    run = Run(embedded)
    made(["auto"])
    store = MomentStore.open(str(place / "store-english-auto"))
    store = update(store, list_shards([str(place / "english.parquet")]), run).store
    assert store.commit.tokens == 40 * 8
    # the languages of the pilot stay, whatever comes later
    mixed = place / "mixed.parquet"
    pq.write_table(pa.table({"text": ENGLISH * 5 + ITALIAN * 40}), mixed)
    store = update(store, list_shards([str(mixed)]), run).store
    again = rebase(store, run).store
    assert again.policy == store.policy
    assert "della" in again.vocabulary.terms


@pytest.mark.parametrize("languages", [("none",), ()])
def test_none_removes_nothing(made, languages):
    store = made(languages)
    assert store.policy == TokenPolicy()
    assert "the" in store.vocabulary.terms


def test_from_python_a_store_names_its_languages(place):
    store = create_store("memory://found-it", ITALIAN * 40, source="x", max_topics=2, pilot=PILOT)
    assert store.languages == ("italian",)
    whole = CountingOptions(languages=("none",))
    store = create_store(
        "memory://none", ENGLISH * 40, source="x", max_topics=2, counting=whole, pilot=PILOT
    )
    assert store.languages == ()


def test_a_store_of_ids_has_no_language(place, embedded):
    counting = CountingOptions(ids_column="ids")
    shards = list_shards([str(place / "ids.parquet")])
    few = PilotOptions(max_topics=1, min_documents=1, max_document_fraction=1)
    for languages in (("auto",), ("none",), ()):
        own = CountingOptions(ids_column="ids", languages=languages)
        url = str(place / f"ids-{len(languages)}-{languages[:1]}")
        assert create_kind(url, shards, KindOptions(), own, few, Run(embedded)).policy is None
    assert counting.languages == ("auto",)
    named = CountingOptions(ids_column="ids", languages=("english",))
    with pytest.raises(InvalidInput, match="leave out `create --passage-words`, `create --lang"):
        create_kind(str(place / "no"), shards, KindOptions(), named, few, Run(embedded))


def test_kinds_without_texts_take_no_language():
    for languages in (("auto",), ()):
        require_options_of(
            KindOptions("vectors"), CountingOptions(languages=languages), PilotOptions()
        )
    with pytest.raises(InvalidInput, match="kind vectors does not use `create --language`"):
        require_options_of(
            KindOptions("vectors"), CountingOptions(languages=("english",)), PilotOptions()
        )


def test_views_with_texts_have_the_words_of_their_languages(place, embedded):
    rows = {
        "title": ITALIAN * 40,
        "author": ["dante", "petrarca"] * 40,
        "year": ["1300", "1350"] * 40,
    }
    pq.write_table(pa.table(rows), place / "books.parquet")
    shards = list_shards([str(place / "books.parquet")])
    for title, languages in (("title:text", ["italian"]), ("title", [])):
        shape = KindOptions("views", f"{title},author,year")
        url = str(place / f"views-{len(languages)}")
        store = create_kind(url, shards, shape, CountingOptions(), PILOT, Run(embedded))
        assert store.reading["policy"]["languages"] == languages
        assert ("stop words of Italian removed" in store.commit.message) == bool(languages)
        words = store.foundation.vocabularies[0].terms
        assert ("nave" in words) == bool(languages)
        assert "il" not in words


@pytest.mark.parametrize(
    ("name", "options", "languages", "line"),
    [
        ("english", (), ["english"], "Found English in the sample and removed 1,244 stop words; "),
        ("codes", (), [], "Found no language in the sample, so no stop words are removed; "),
        ("english", ("--language", "none"), None, None),
        ("english", ("--language", "it", "--language", "en"), None, None),
    ],
)
def test_create_says_what_it_found(run, place, name, options, languages, line):
    few = ("--max-topics", "2", "--min-documents", "2", "--max-document-fraction", "1")
    create = ("create", place / "store", place / f"{name}.parquet", *few, *options)
    code, out, err = run(*create)
    assert (code, err) == (0, "")
    assert [one for one in out.splitlines() if one.startswith("Found ")] == (
        [] if line is None else [next(one for one in out.splitlines() if one.startswith(line))]
    )
    code, out, err = run("create", place / "other", *create[2:], "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["pilot"].get("languages") == languages


def test_an_unknown_language_is_refused_on_the_command_line(run, place):
    create = ("create", place / "store", place / "english.parquet")
    code, out, err = run(*create, "--language", "klingon")
    assert (code, out) == (2, "")
    assert "no stop words for language 'klingon'; choose among arabic (ar)" in err
    code, out, err = run(*create, "--language", "auto", "--language", "english")
    assert (code, out) == (2, "")
    assert "give it alone" in err
    assert not (place / "store").exists()


def test_a_plan_removes_the_words_that_create_would(run, place):
    options = ("--max-topics", "2", "--min-documents", "2", "--max-document-fraction", "1")
    words = {
        language: json.loads(
            run("plan", place / "english.parquet", *options, "--language", language, "--json")[1]
        )["words"]
        for language in ("auto", "none")
    }
    assert words["auto"] == 8 < words["none"]


def test_documents_of_too_few_words_are_refused_with_what_to_do(made, embedded, place):
    texts = ["the sea and the ship", "a law of the tax"] * 20
    pq.write_table(pa.table({"text": texts}), place / "short.parquet")
    store, run = made(["auto"], "short"), Run(embedded)
    with pytest.raises(NotIdentifiable, match="run `streaming-moments update` first"):
        refit(store, 1, 0.1, run)
    store = update(store, list_shards([str(place / "short.parquet")]), run).store
    with pytest.raises(
        NotIdentifiable, match="count longer documents, .* `create --language none`"
    ):
        refit(store, 1, 0.1, run)
