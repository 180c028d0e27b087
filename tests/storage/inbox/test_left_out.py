"""Notes of what was left out: they go with the documents that they are of."""

from streaming_moments.storage.files.sealed import seal
from streaming_moments.storage.inbox.left_out import (
    LeftOut,
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
