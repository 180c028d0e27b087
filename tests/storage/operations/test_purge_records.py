"""Purge records: written before the commit, deleted at the very end."""

import uuid

import pytest
from synced_folder import Synced

from streaming_moments.errors import StoreError
from streaming_moments.storage.files.sealed import seal
from streaming_moments.storage.log.forgotten import Forgotten
from streaming_moments.storage.operations.purges.purge_records import (
    begin_purge,
    committed_names,
    end_purges,
    purge_records,
)


@pytest.fixture
def folder():
    return Synced(f"memory://{uuid.uuid4().hex}")


def test_a_record_is_kept_until_its_purge_has_ended(folder):
    assert (purge_records(folder), committed_names(folder, Forgotten())) == ({}, frozenset())
    first, second = begin_purge(folder, {"a", "b"}), begin_purge(folder, {"c"})
    assert folder.synced == ["purging", "purging"]
    folder.write("purging/half.partial", b"")
    assert purge_records(folder) == {first: {"a", "b"}, second: {"c"}}
    # one of its names alone is not all of a purge
    for purged, names in ((["a"], set()), (["a", "b"], {"a", "b"}), (["a", "b", "c"], {*"abc"})):
        assert committed_names(folder, Forgotten().with_purged(purged)) == names
    end_purges(folder, {"x"})
    assert len(folder.synced) == 2
    end_purges(folder, {"b", "x"})
    assert (purge_records(folder), folder.synced[2:]) == ({second: {"c"}}, [""])


def test_a_record_that_ends_while_records_are_read_is_left_out(folder):
    class Beside(Synced):
        def find_all(self, names, limits=None):
            super().delete([first])
            return super().find_all(names, limits)

    first, second = begin_purge(folder, {"a"}), begin_purge(folder, {"b"})
    assert purge_records(Beside(folder.url)) == {second: {"b"}}


def test_what_is_no_record_is_an_error(folder):
    folder.write("purging/x.json", seal({"names": 7}))
    with pytest.raises(StoreError, match=r"purging/x.json is not a valid record of a purge"):
        purge_records(folder)
