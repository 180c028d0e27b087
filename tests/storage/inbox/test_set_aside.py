"""Set aside: shards that are not counted until a request, or a deletion of their documents."""

import uuid
from datetime import date

import pytest

from streaming_moments.errors import InvalidInput, StoreError
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.files.sealed import seal
from streaming_moments.storage.inbox.deletions import note_gone
from streaming_moments.storage.inbox.seals import shard_file
from streaming_moments.storage.inbox.set_aside import (
    SetAside,
    all_set_aside,
    find_set_aside,
    forget_set_aside,
    is_due,
    retry,
    set_aside,
    set_aside_file,
)

LATE, EARLY = shard_file(12, date(2026, 11, 20)), shard_file(3, date(2026, 11, 23))


@pytest.fixture
def folder():
    return Folder.at(f"memory://{uuid.uuid4().hex}")


def due(folder):
    return {one.path for one in all_set_aside(folder) if is_due(folder, one)}


def test_notes_are_found_by_shard_and_listed_by_seal(folder):
    assert (all_set_aside(folder), find_set_aside(folder, LATE)) == ((), None)
    late, early = set_aside(folder, LATE, 9, "too large"), set_aside(folder, EARLY, 4, "no columns")
    assert late == SetAside(LATE, 9, "too large", "", False)
    assert all_set_aside(folder) == (early, late)
    assert find_set_aside(folder, LATE) == late
    assert due(folder) == set()


def test_a_shard_is_due_on_request_or_once_documents_of_it_were_deleted(folder):
    for path in (LATE, EARLY):
        set_aside(folder, path, 9, "too large")
    retry(folder, [LATE])
    assert due(folder) == {LATE}
    note_gone(folder, EARLY, [0], None, "1" * 32)
    assert due(folder) == {LATE, EARLY}
    # set aside anew, it waits for the next deletion
    assert len(set_aside(folder, EARLY, 9, "still too large").gone) == 64
    assert due(folder) == {LATE}
    note_gone(folder, EARLY, [0], None, "2" * 32)
    assert due(folder) == {LATE, EARLY}
    for path in (LATE, EARLY, EARLY):
        forget_set_aside(folder, path)
    assert folder.names("set_aside") == []
    with pytest.raises(InvalidInput, match=f"{LATE} is not set aside"):
        retry(folder, [LATE])


def test_each_shard_of_a_seal_has_a_note_of_its_own():
    notes = [set_aside_file(shard_file(3, date(2026, 11, day))) for day in (22, 23)]
    assert notes == [f"set_aside/00000000000000000003-2026-11-{day}.json" for day in (22, 23)]


def test_a_note_that_is_gone_before_it_is_read_is_left_out(folder):
    class Beside(Folder):
        def names(self, name):
            found = super().names(name)
            forget_set_aside(folder, LATE)
            return found

    set_aside(folder, LATE, 9, "too large")
    kept = set_aside(folder, EARLY, 4, "no columns")
    assert all_set_aside(Beside(folder.url)) == (kept,)


def test_a_damaged_note_is_an_error(folder):
    folder.write(set_aside_file(LATE), seal({"path": LATE}))
    for read in (all_set_aside, lambda folder: find_set_aside(folder, LATE)):
        with pytest.raises(StoreError, match="is not a valid note"):
            read(folder)
