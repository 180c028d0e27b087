"""Gone lines: deleted lines of a shard, by their numbers when sealed."""

import uuid
from datetime import date

import pytest

from streaming_moments.errors import StoreError
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.files.sealed import seal
from streaming_moments.storage.inbox.deletions import (
    Gone,
    cut_shards,
    documents_left,
    is_as_noted,
    note_gone,
    read_gone,
)
from streaming_moments.storage.inbox.seals import SealedShard, shard_file

DAY = date(2026, 11, 23)
PATH = shard_file(7, DAY)
SHARD = SealedShard(PATH, DAY, 6, 60, "c" * 64)
FIRST, SECOND = "1" * 32, "2" * 32


@pytest.fixture
def folder():
    return Folder.at(f"memory://{uuid.uuid4().hex}")


def test_lines_of_each_deletion_are_noted_as_they_were_sealed(folder):
    assert read_gone(folder, PATH) == Gone((), None, "")
    assert documents_left(folder, SHARD) == 6
    note_gone(folder, PATH, [1, 3], "a" * 64, FIRST)
    note_gone(folder, PATH, [0], "b" * 64, FIRST)
    assert read_gone(folder, PATH) == Gone((1, 3), "a" * 64, FIRST)
    # of 0, 2, 4 and 5, which are left, the second and the third
    note_gone(folder, PATH, [1, 2], None, SECOND)
    assert read_gone(folder, PATH) == Gone((1, 2, 3, 4), None, SECOND)
    assert documents_left(folder, SHARD) == 2


def test_bytes_are_a_shard_as_sealed_or_what_deletions_left(folder):
    def known():
        return [is_as_noted(folder, SHARD, digit * 64) for digit in "cad"]

    assert known() == [True, False, False]
    note_gone(folder, PATH, [1], "a" * 64, FIRST)
    assert known() == [True, True, False]
    # version 0.2.0 does not say what is left
    folder.write(f"gone/{PATH}.json", seal({"lines": [1]}))
    assert known() == [True, True, True]
    folder.write(f"gone/{PATH}.json", seal({"lines": []}))
    assert known() == [True, False, False]


def test_shards_with_a_note_are_listed_without_half_written_notes(folder):
    note_gone(folder, PATH, [1], None, FIRST)
    folder.write(f"gone/{shard_file(8, DAY)}.json.partial", b"")
    assert [file.is_partial for file in folder.files("gone")] == [False, True]
    assert cut_shards(folder) == [PATH]


def test_a_note_without_lines_is_an_error(folder):
    folder.write(f"gone/{PATH}.json", seal({"left": None}))
    with pytest.raises(StoreError, match=r"gone/sealed/.* is not a valid note"):
        read_gone(folder, PATH)
