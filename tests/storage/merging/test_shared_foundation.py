"""Shared foundations: a store like another counts the same words, and holds nothing of it."""

from dataclasses import replace

import pytest

from streaming_moments.errors import InvalidInput, StoreError
from streaming_moments.storage.dates import DateSource
from streaming_moments.storage.files.sealed import seal, unseal
from streaming_moments.storage.merging.shared_foundation import SharedFoundation, create_like
from streaming_moments.storage.operations.growth import grow
from streaming_moments.testing.small_store import append, create


def like(store, **how):
    return create_like(f"{store.url}-like", SharedFoundation.of(store), **how)


def test_a_store_like_another_has_its_foundation_and_none_of_its_counts(tmp_path):
    store = append(create(tmp_path / "store"), {"/secret/a.txt": 1}, "a message")
    made = like(store)
    assert (made.version, made.commit.documents, len(made.ledger())) == (0, 0, 0)
    assert made.commit.lineage == replace(store.commit.lineage, like=True)
    assert made.foundation == store.foundation
    assert made.vocabulary == store.vocabulary
    assert made.format == store.format
    assert made.verify() == []
    assert append(made, {"b": 2}).load() == append(create(), {"b": 2}).load()
    told = b"".join(path.read_bytes() for path in tmp_path.rglob("store-like/**/*.json"))
    assert b"secret" not in told
    assert b"a message" not in told


def test_a_file_of_the_foundation_makes_the_same_store(tmp_path):
    store = append(create(tmp_path / "store"), {"/secret/a.txt": 1})
    SharedFoundation.of(store).save(str(tmp_path / "words.json"))
    for place in ("words.json", "store"):
        shared = SharedFoundation.at(str(tmp_path / place))
        assert shared == SharedFoundation.of(store)
    assert b"secret" not in (tmp_path / "words.json").read_bytes()


def test_words_that_were_added_stay_added(tmp_path):
    store = grow(append(create(tmp_path / "store"), {"a": 1}), ["moon"])
    made = like(store)
    assert made.vocabulary.terms == store.vocabulary.terms
    assert made.foundation.first_words == store.foundation.first_words == 4
    assert [era.version for era in made.commit.lineage.eras] == [0]
    assert made.verify() == []


def test_the_form_of_shards_may_differ(tmp_path):
    shared = SharedFoundation.of(create())
    shared = shared.read_as({"text_column": "body", "kind": "jsonl"}, DateSource("day"))
    made = create_like(str(tmp_path / "store"), shared)
    assert (made.form.text_column, made.form.kind) == ("body", "jsonl")
    assert made.dates == DateSource("day")
    assert made.format.min_writer >= 5
    with pytest.raises(InvalidInput, match="counts column 'n' needs an ids column"):
        shared.read_as({"counts_column": "n"})


def test_an_existing_store_is_refused():
    store = create()
    like(store)
    with pytest.raises(StoreError, match="there is already a store at"):
        like(store)


def test_damaged_files_and_files_of_something_else_are_refused(tmp_path):
    shared = SharedFoundation.of(create())
    path = tmp_path / "words.json"
    content = unseal(shared.to_bytes(), "")

    def refused(data, match):
        path.write_bytes(data)
        with pytest.raises(StoreError, match=match):
            create_like(str(tmp_path / "new"), SharedFoundation.at(str(path)))
        assert not (tmp_path / "new" / "format.json").exists()

    refused(shared.to_bytes()[:-1], "is damaged")
    refused(seal({**content, "foundation": 2}), "not a foundation of a store")
    refused(seal({"version": 1}), "not a foundation of a store")
    for name in ("../outside", "commits/00000000000000000000.json"):
        files = {**content["files"], name: ""}
        refused(
            seal({**content, "files": files}), "leaves its folder|which is not part of a foundation"
        )
    words, basis = (
        [name for name in content["files"] if name.startswith(folder)]
        for folder in ("vocabulary/", "basis/")
    )
    for gone in (words, basis):
        files = {name: one for name, one in content["files"].items() if name not in gone}
        refused(seal({**content, "files": files}), "the foundation's .* is missing")
    with pytest.raises(StoreError, match="there is no store at"):
        SharedFoundation.at(str(tmp_path / "missing"))
