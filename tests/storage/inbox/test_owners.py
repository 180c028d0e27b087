"""Owners: an inbox belongs to the first store that opens it."""

import shutil
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pytest
from synced_folder import Synced

from streaming_moments.errors import StoreError
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.files.sealed import seal, unseal
from streaming_moments.storage.inbox.inbox import Inbox
from streaming_moments.storage.inbox.owners import (
    InboxOfAnother,
    Owner,
    assign,
    owner_of,
    require_owner,
)
from streaming_moments.storage.shards import ShardFormat
from streaming_moments.storage.store.store import MomentStore

ONE, OTHER = Owner("s3://b/one", "1" * 32), Owner("s3://b/other", "2" * 32)


def opened(folder, owner):
    return Inbox.open(folder.url, folder.storage_options, owner)


def test_a_second_store_is_refused_with_both_names(folder):
    opened(folder, ONE)
    assert unseal(folder.read("inbox.json"), "inbox.json")["store"]["url"] == ONE.url
    with pytest.raises(InboxOfAnother, match=f"{ONE.url}.* not to {OTHER.url}.*inbox assign"):
        opened(folder, OTHER)
    assert opened(folder, ONE).backlog().batches == 0
    # whoever looks at it without counting it is asked for no store
    assert Inbox.open(folder.url, folder.storage_options).backlog().batches == 0


def test_a_new_store_at_the_same_place_is_another(folder):
    opened(folder, ONE)
    with pytest.raises(InboxOfAnother, match="replaced"):
        opened(folder, Owner(ONE.url, OTHER.birth))


@pytest.mark.parametrize("earlier", [True, False])
def test_of_two_stores_at_once_one_has_it(folder, earlier):
    if earlier:
        folder.write("inbox.json", seal({"format": 1}))
    several = [Owner(f"s3://b/{number}", f"{number:032x}") for number in range(6)]

    def first(owner):
        try:
            opened(folder, owner)
        except InboxOfAnother:
            return None
        return owner

    with ThreadPoolExecutor(6) as threads:
        found = [one for one in threads.map(first, several) if one is not None]
    assert found == [owner_of(folder)]
    assert unseal(folder.read("inbox.json"), "inbox.json")["format"] == 1


def test_an_earlier_inbox_is_adopted_by_the_first_that_opens_it_and_by_nobody_who_looks(folder):
    Inbox.open(folder.url, folder.storage_options)
    assert owner_of(folder) is None
    opened(folder, ONE)
    assert owner_of(folder) == ONE
    with pytest.raises(InboxOfAnother):
        opened(folder, OTHER)


def test_an_adoption_that_was_cut_off_is_ended_by_the_next(folder):
    """A dead process had created the note, but not written `inbox.json`."""
    folder.write("inbox.json", seal({"format": 1}))
    folder.write("adopted.json", seal({"store": {"url": ONE.url, "birth": ONE.birth}}))
    with pytest.raises(InboxOfAnother, match=ONE.url):
        opened(folder, OTHER)
    assert owner_of(folder) == ONE


def test_it_is_assigned_to_a_store_that_has_moved(folder):
    opened(folder, ONE)
    assert assign(folder, OTHER) == ONE
    opened(folder, OTHER)
    with pytest.raises(InboxOfAnother, match=OTHER.url):
        require_owner(folder, ONE)


def test_keys_of_later_versions_stay(folder):
    folder.write("inbox.json", seal({"format": 1, "later": 7}))
    opened(folder, ONE)
    assign(folder, OTHER)
    assert unseal(folder.read("inbox.json"), "inbox.json")["later"] == 7


def test_a_damaged_owner_is_told(folder):
    folder.write("inbox.json", seal({"format": 1, "store": {"url": 7}}))
    with pytest.raises(StoreError, match="does not name a valid store"):
        opened(folder, ONE)


def test_a_store_is_known_by_its_place_and_its_first_commit(tmp_path):
    url = str(tmp_path / "a")
    vocabulary = Vocabulary(("law", "sea", "ship"), core=3)
    basis = Basis(np.eye(3, 2, dtype=np.int8), 3, vocabulary.fingerprint)
    store = MomentStore.create(url, vocabulary, None, basis, ShardFormat())
    assert Owner.at(url) == Owner(store.url, store.commit.transaction)
    store.extended(lambda head: head.successor("append", "nothing"))
    assert Owner.at(url + "/") == Owner(store.url, store.commit.transaction)
    shutil.copytree(url, tmp_path / "b")
    assert Owner.at(str(tmp_path / "b")).birth == store.commit.transaction
    with pytest.raises(StoreError, match="no store"):
        Owner.at(f"memory://{uuid.uuid4().hex}")


def test_an_error_is_no_proof_that_a_storage_refuses_to_overwrite(tmp_path, monkeypatch):
    """The storage times out once, and then overwrites."""
    monkeypatch.setattr("tenacity.nap.time.sleep", lambda seconds: None)
    Inbox.open(str(tmp_path))
    create, faults = Folder.create, [TimeoutError("timed out")]

    def overwrites(folder, name, content):
        if name == "inbox.json" and faults:
            raise faults.pop()
        if name == "inbox.json":
            return Folder.write(folder, name, content)
        return create(folder, name, content)

    monkeypatch.setattr(Folder, "create", overwrites)
    with pytest.raises(StoreError, match="overwrites"):
        Inbox.open(str(tmp_path))
    faults += [TimeoutError("timed out")] * 20
    with pytest.raises(StoreError, match=r"cannot be written .*timed out"):
        Inbox.open(str(tmp_path))


@dataclass(frozen=True)
class Assigning(Folder):
    """A folder whose inbox is assigned to another store right after its adoption."""

    def create(self, name, content):
        super().create(name, content)
        if name == "adopted.json":
            assign(self, OTHER)


def test_an_inbox_that_is_assigned_while_a_store_adopts_it_stays_assigned():
    folder = Assigning(Inbox.open(f"memory://{uuid.uuid4().hex}").folder.url)
    with pytest.raises(InboxOfAnother, match=f"{OTHER.url}.* not to {ONE.url}"):
        require_owner(folder, ONE)
    assert owner_of(folder) == OTHER


def test_an_owner_outlasts_a_power_cut():
    folder = Synced(Inbox.open(f"memory://{uuid.uuid4().hex}").folder.url)
    require_owner(folder, ONE)
    assert folder.synced == [""]
    require_owner(folder, ONE)
    assert folder.synced == [""]
    assert assign(folder, OTHER) == ONE
    assert folder.synced == ["", ""]
