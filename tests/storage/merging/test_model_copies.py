"""Copies of models: a spoke has the model of its hub, file by file, and says where it came from."""

import pytest

from streaming_moments.errors import ForeignStatistics, InvalidInput, StoreError
from streaming_moments.storage.log.commit_json import commit_from_json, commit_to_json
from streaming_moments.storage.log.commits import ModelSource
from streaming_moments.storage.log.layout import model_folder
from streaming_moments.storage.merging.model_copies import pull_model
from streaming_moments.storage.merging.pulling import pull
from streaming_moments.storage.operations.growth import grow
from streaming_moments.storage.operations.history import tag
from streaming_moments.storage.operations.labels import label
from streaming_moments.storage.operations.lineages import store_for
from streaming_moments.storage.store.store import MomentStore
from streaming_moments.testing.small_store import append, create, model_of, purge, rebase


@pytest.fixture
def rome():
    return append(create(), {"/rome": 2})


@pytest.fixture
def hub(rome):
    store = append(create(), {"/own": 1})
    store = pull(store, rome, "rome").store.save_model("k2", model_of(1))
    store = label(store, 1, "law and tax", "k2")
    return tag(store, "published", "k2").save_model("later", model_of(2))


def files_of(store, name):
    place = model_folder(name, store.models[name].id)
    return {
        file.path: store.folder.read(f"{place}/{file.path}") for file in store.folder.files(place)
    }


def test_the_published_model_comes_to_the_byte(hub, rome):
    done = pull_model(rome, hub)
    assert (done.name, done.tag, done.is_new) == ("k2", "published", True)
    after = MomentStore.open(rome.url)
    assert files_of(after, "k2") == files_of(hub, "k2")
    found = after.models["k2"]
    assert found.manifest == hub.models["k2"].manifest
    assert found.labels == {1: "law and tax"}
    assert after.commit.tags == {"published": "k2"}
    assert found.source.url == hub.url
    assert (found.source.name, found.source.version) == ("k2", hub.models["k2"].version)
    assert (found.version, after.commit.message) == (1, f"pull-model: k2 is k2 of {hub.url}")
    assert after.verify() == []
    assert commit_from_json(commit_to_json(after.commit), "x") == after.commit
    again = pull_model(after, hub)
    assert (again.is_new, again.store.version) == (False, after.version)


def test_a_name_or_tag_there_and_a_name_here(hub, rome):
    done = pull_model(rome, hub, "later", "europe")
    assert (done.name, done.tag, done.source.name) == ("europe", None, "later")
    done = pull_model(rome, hub, name="european")
    assert (list(done.store.models), done.store.commit.tags) == (
        ["europe", "european"],
        {"published": "european"},
    )
    # the tag moves there, and then here
    tag(hub, "published", "later")
    done = pull_model(rome, hub, name="europe")
    assert (done.is_new, done.store.commit.tags) == (False, {"published": "europe"})
    with pytest.raises(StoreError, match="has no model 'none'"):
        pull_model(rome, hub, "none")


def test_without_the_tag_the_latest_comes():
    hub = (
        append(create(), {"/own": 1}).save_model("one", model_of(1)).save_model("two", model_of(2))
    )
    done = pull_model(create(), hub)
    assert (done.name, done.tag) == ("two", None)
    with pytest.raises(StoreError, match="there is no model"):
        pull_model(hub, create())


def test_a_model_that_was_copied_keeps_its_source(hub, rome):
    second = pull_model(rome, hub).store
    third = pull_model(create(), second).store
    assert third.models["k2"].source == second.models["k2"].source
    # back at the hub it is the model that is there
    assert pull_model(hub, third).is_new is False


def test_wrong_input_is_refused_with_what_to_do(hub, rome):
    with pytest.raises(InvalidInput, match="itself, or a copy of it"):
        pull_model(hub, hub)
    other = rebase(append(create(), {"/x": 1})).save_model("new", model_of(1))
    with pytest.raises(ForeignStatistics, match="cannot be added to those of .*: .*core words"):
        pull_model(rome, other)
    own = rome.save_model("k2", model_of(3))
    with pytest.raises(InvalidInput, match="model named 'k2'; give .* by `pull-model --as`"):
        pull_model(own, hub)
    tagged = create().save_model("published", model_of(3))
    with pytest.raises(InvalidInput, match="'published' is the name of a model"):
        pull_model(tagged, hub)
    assert tagged.latest().version == tagged.version


def test_words_that_the_hub_has_added_come_with_the_model(hub, rome):
    grown = grow(hub, ["moon"])
    after = pull_model(rome, grown, "later").store
    assert after.vocabulary.terms == grown.vocabulary.terms
    assert [one.message for one in after.log()][1] == f"grow: 1 words that {grown.url} has added"
    # models of the words before stand at the version that had them
    older = model_of(4)
    assert older.vocabulary == ""
    assert store_for(after, "later", older).version == after.version


def test_a_purge_drops_copied_models_because_no_one_knows_their_documents(hub, rome):
    store = append(pull_model(rome, hub).store, {"/more": 3})
    store = purge(store, ["/more"])
    assert (list(store.models), store.commit.tags) == ([], {})
    assert not any(file.path.startswith("models/") for file in store.folder.files(""))


def test_sources_are_part_of_the_commit(hub, rome):
    content = commit_to_json(pull_model(rome, hub).store.commit)
    content["models"]["k2"]["source"]["later"] = 7
    found = commit_from_json(content, "x")
    assert isinstance(found.models["k2"].source, ModelSource)
    assert commit_to_json(found) == content
