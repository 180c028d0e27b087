"""Notes about rejected documents: they are deleted with their documents."""

from dataclasses import dataclass

import pytest

from streaming_moments.errors import StoreError
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.files.sealed import seal
from streaming_moments.storage.inbox.rejected import (
    LeftOut,
    forget_left_out,
    forget_left_out_ids,
    note_left_out,
    read_left_out,
)

ONE, OTHER = "k" + "1" * 32, "k" + "2" * 32


def test_what_is_noted_of_an_id_goes_with_it(inbox):
    folder = inbox.folder
    ann, bob = LeftOut(0, "txt", "'Ann' is no field", "ann"), LeftOut(1, "txt", "no", "bob")
    nameless = LeftOut(2, "", "the line is no JSON")
    note_left_out(folder, ONE, [ann, bob, nameless])
    note_left_out(folder, OTHER, [ann])
    forget_left_out_ids(folder, ["carl"])
    assert read_left_out(folder, OTHER) == (ann,)
    forget_left_out_ids(folder, ["ann"])
    assert read_left_out(folder, ONE) == (bob, nameless)
    assert (read_left_out(folder, OTHER), folder.names("left_out")) == ((), [f"{ONE}.json"])
    forget_left_out_ids(folder, ["bob", "ann"])
    assert read_left_out(folder, ONE) == (nameless,)


def test_notes_that_name_no_ids_go_where_they_quote_one(inbox):
    folder = inbox.folder
    said = [
        {"document": 0, "field": "id", "reason": "it is 'ann smith', expected a number"},
        {"document": 1, "field": "date", "reason": "expected a date, as 2026-11-23"},
    ]
    folder.write(f"left_out/{ONE}.json", seal({"left_out": said}))
    forget_left_out_ids(folder, ["ann smith", "1"])
    assert [one.document for one in read_left_out(folder, ONE)] == [1]


@dataclass(frozen=True)
class Watched(Folder):
    """A folder from which another process deletes a note after the listing."""

    deletes: tuple = ()

    def find_all(self, names, limits=None):
        super().delete(self.deletes)
        return super().find_all(names, limits)

    def write(self, name, content):
        raise AssertionError(f"{name} is written, though nothing of it goes")


def test_a_note_of_which_nothing_goes_is_not_written(inbox):
    folder = inbox.folder
    note_left_out(folder, ONE, [LeftOut(0, "txt", "no", "bob")])
    note_left_out(folder, OTHER, [LeftOut(0, "txt", "no", "ann")])
    watched = Watched(folder.url, folder.storage_options, (f"left_out/{ONE}.json",))
    forget_left_out_ids(watched, ["carl"])
    assert folder.names("left_out") == [f"{OTHER}.json"]


def test_notes_of_some_receipts_go_and_no_others(inbox):
    folder = inbox.folder
    for receipt in (ONE, OTHER):
        note_left_out(folder, receipt, [LeftOut(0, "txt", "no")])
    forget_left_out(folder, [ONE, "k" + "3" * 32])
    assert folder.names("left_out") == [f"{OTHER}.json"]


def test_a_note_without_documents_is_an_error(inbox):
    inbox.folder.write(f"left_out/{ONE}.json", seal({"left": []}))
    with pytest.raises(StoreError, match=f"left_out/{ONE}.json is not a valid note"):
        read_left_out(inbox.folder, ONE)
