"""Seals: the shards with the documents of a receipt, and the effect of a purge."""

from dataclasses import replace
from datetime import date

import pytest

from streaming_moments.errors import StoreError
from streaming_moments.storage.inbox.batches import Piece
from streaming_moments.storage.inbox.receipts import receipt_of_key
from streaming_moments.storage.inbox.seals import (
    Seal,
    SealedBatch,
    SealedShard,
    SealedSubmission,
    gone_file,
    seal_file,
    seal_of_shard,
    shard_file,
)

FIRST, SECOND = date(2026, 11, 20), date(2026, 11, 23)
ONE, TWO, OTHER = (receipt_of_key(key) for key in ("one", "two", "other"))


def shard(day, documents):
    return SealedShard(shard_file(7, day), day, documents, 10 * documents, "a" * 64)


@pytest.fixture
def seal():
    """Two submissions in two batches: one on two days, one on the second; a third was refused."""
    batches = (
        SealedBatch(
            "batches/a",
            (SealedSubmission(ONE, 0, (Piece(FIRST, 2, 20), Piece(SECOND, 3, 30))),),
            (OTHER,),
        ),
        SealedBatch("batches/b", (SealedSubmission(TWO, 1, (Piece(SECOND, 4, 40),)),)),
    )
    return Seal(7, "c" * 32, batches, (shard(FIRST, 2), shard(SECOND, 7)))


def test_documents_of_a_receipt_are_in_the_shards_of_their_days(seal):
    assert [one.day for one in seal.shards_of(ONE)] == [FIRST, SECOND]
    assert [one.day for one in seal.shards_of(TWO)] == [SECOND]
    assert seal.shards_of(OTHER) == ()
    assert [seal.documents_of(one) for one in (ONE, TWO, OTHER)] == [5, 4, 0]
    assert seal.receipts == {ONE, TWO}
    assert (seal.submissions, seal.documents) == (2, 9)


def test_a_receipt_lacks_what_a_purge_took_of_its_days_alone(seal):
    assert not any(seal.lacks_some_of(one) for one in (ONE, TWO, OTHER))
    purged = replace(seal, shards=seal.shards[1:])
    assert [purged.lacks_some_of(one) for one in (ONE, TWO, OTHER)] == [True, False, False]
    assert purged.documents == 7
    assert [one.day for one in purged.shards_of(ONE)] == [SECOND]


def test_a_seal_comes_back_as_it_was_written(seal):
    assert Seal.unsealed(seal.sealed(), "seal") == seal
    with pytest.raises(StoreError, match="damaged"):
        Seal.unsealed(seal.sealed().replace(b'"documents"', b'"Documents"'), "seal")


@pytest.mark.parametrize("number", [1, 7, 10**19])
def test_a_shard_says_its_seal_wherever_it_lies(number):
    path = shard_file(number, FIRST)
    assert path.startswith(f"sealed/2026-11-20/{number:020d}.")
    assert seal_of_shard(path) == seal_of_shard(f"s3://bucket/2026.inbox/{path}") == number
    assert seal_file(number) == f"seals/{number:020d}.json"
    assert gone_file(path) == f"gone/{path}.json"
