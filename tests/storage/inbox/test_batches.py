"""Batches: reading returns exactly the written submissions, or an error."""

from dataclasses import replace
from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sent_documents import sent

from streaming_moments.errors import StoreError
from streaming_moments.storage.inbox.batches import (
    Piece,
    Submission,
    batch_from_bytes,
    batch_to_bytes,
    receipts_of_batch,
)
from streaming_moments.storage.inbox.receipts import new_receipt, receipt_of_key

pieces = st.lists(
    st.tuples(st.dates(), st.integers(1, 9), st.binary(max_size=40)), min_size=1, max_size=4
)


def submission_of(parts, key):
    found = tuple(Piece(day, number, len(content)) for day, number, content in parts)
    receipt = new_receipt(3) if key is None else receipt_of_key(key)
    content = b"".join(content for _, _, content in parts)
    return Submission(receipt, "a" * 64, key is not None, found, content)


@given(st.lists(st.builds(submission_of, pieces, st.none() | st.just("key")), max_size=4))
@settings(max_examples=50)
def test_a_batch_comes_back_as_it_was_written(submissions):
    data = batch_to_bytes(submissions)
    assert batch_from_bytes(data, "batch") == tuple(submissions)
    assert receipts_of_batch(data, "batch").keys() == {one.receipt for one in submissions}


def test_each_flipped_or_missing_byte_is_found():
    data = batch_to_bytes([sent("the sea"), sent("the law", key="k")])
    for place in range(len(data)):
        flipped = data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]
        for damaged in (flipped, data[:place]):
            with pytest.raises(StoreError, match="damaged|not a valid batch"):
                batch_from_bytes(damaged, "batch")


def test_a_batch_that_ends_within_its_header_has_none():
    data = batch_to_bytes([sent("the sea")])
    for end in (0, data.index(b"\n") + 1):
        with pytest.raises(StoreError, match="batches/a is damaged .it has no header"):
            receipts_of_batch(data[:end], "batches/a")


def test_pieces_are_the_lines_of_their_days():
    one = sent("a", "b", day="2026-11-20")
    (piece, lines), *_ = one.lines()
    assert (piece.day, piece.documents, lines) == (date(2026, 11, 20), 2, one.content)


def test_pieces_that_are_not_the_documents_are_an_error():
    one = sent("the sea")
    [piece] = one.pieces
    short = replace(one, pieces=(replace(piece, nbytes=piece.nbytes - 1),))
    with pytest.raises(
        StoreError, match="batches/a is damaged .the sizes in its header do not add up"
    ):
        batch_from_bytes(batch_to_bytes([short]), "batches/a")


def test_a_batch_says_the_digest_of_each_receipt():
    several = [sent("the sea"), sent("the law", key="k")]
    told = receipts_of_batch(batch_to_bytes(several), "batch")
    assert told == {one.receipt: one.digest for one in several}
    assert several[1].documents == 1
    # logs must not tell what people sent
    assert "the law" not in repr(several)
