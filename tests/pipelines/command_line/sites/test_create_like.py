"""`create --like` and `foundation`, from the command line and from Python."""

import json
from pathlib import Path

import pytest

from streaming_moments import create_store, open_store
from streaming_moments.errors import InvalidInput
from streaming_moments.pipelines.jobs.create import CountingOptions, PilotOptions

TEXTS = ["the sea and a ship in the port"] * 30 + ["a law of the tax on trade"] * 30


@pytest.fixture(scope="module")
def hub(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hub")
    few = PilotOptions(min_documents=2)
    store = create_store(str(folder / "hub"), TEXTS, source="texts", max_topics=2, pilot=few)
    store.foundation(str(folder / "words.json"))
    return store


def test_a_command_makes_a_store_like_another_or_like_its_file(hub, run, tmp_path):
    words = tmp_path / "words.json"
    code, out, _ = run("foundation", hub.url, "--output", words, "--json")
    assert code == 0
    assert json.loads(out)["vocabulary"] == hub.snapshot.vocabulary.fingerprint
    for number, like in enumerate((hub.url, words)):
        code, out, _ = run("create", tmp_path / f"site-{number}", "--like", like)
        assert code == 0
        assert "Next: streaming-moments update" in out
        site = open_store(str(tmp_path / f"site-{number}"))
        assert site.snapshot.foundation == hub.snapshot.foundation
        assert site.documents == 0


def test_only_where_documents_are_may_differ(hub, run, tmp_path):
    options = ("--text-column", "body", "--date-column", "day", "--format", "jsonl")
    assert run("create", tmp_path / "site", "--like", hub.url, *options)[0] == 0
    site = open_store(str(tmp_path / "site")).snapshot
    assert (site.form.text_column, site.form.kind, site.dates.column) == ("body", "jsonl", "day")
    for given, said in (
        (
            ("--core", "7", "--no-halves"),
            "remove `create --no-halves` and `create --core`, which would set them differently",
        ),
        (("shards/*.txt",), "remove SHARDS, which would set them differently"),
        (("--ids-column", "ids"), "counts texts; remove `create --ids-column`"),
    ):
        code, _, errors = run("create", tmp_path / "other", *given, "--like", hub.url)
        assert code == 2
        assert said in " ".join(errors.split())
        assert not (tmp_path / "other").exists()


def test_shards_are_missing_without_another_store(run, tmp_path):
    code, _, errors = run("create", tmp_path / "store")
    assert code == 2
    assert "Missing argument 'SHARDS...'" in errors


def test_python_takes_a_store_its_url_or_its_file(hub, tmp_path):
    for number, like in enumerate((hub, hub.url, f"{Path(hub.url).parent}/words.json")):
        site = create_store(str(tmp_path / f"{number}"), like=like)
        assert site.snapshot.foundation == hub.snapshot.foundation
    site = site.update(TEXTS[:40], source="genoa")
    assert site.documents == 40
    for wrong in ({"documents": TEXTS}, {"max_topics": 5}):
        with pytest.raises(InvalidInput, match="which would set them differently"):
            create_store(str(tmp_path / "other"), like=hub, **wrong)
    body = CountingOptions(text_column="body")
    assert create_store(str(tmp_path / "b"), like=hub, counting=body).snapshot.form == body.form
