"""Idempotency: keys and claims. The tests of the inbox cover repeated submissions."""

import pytest

from streaming_moments.errors import StoreError
from streaming_moments.storage.inbox.idempotency import CLAIMS, Claim, claim_file, is_claim_file
from streaming_moments.storage.inbox.receipts import new_receipt, receipt_of_key


def test_a_claim_that_is_forgotten_keeps_its_seal_and_no_digest():
    claim = Claim("a" * 64, 4)
    assert not claim.is_forgotten
    assert claim.forgotten() == Claim("0" * 64, 4)
    assert claim.forgotten().is_forgotten


def test_a_damaged_claim_is_an_error():
    data = Claim("a" * 64, 4).sealed()
    assert Claim.unsealed(data, "claim") == Claim("a" * 64, 4)
    with pytest.raises(StoreError, match="damaged"):
        Claim.unsealed(data.replace(b"4", b"5"), "claim")


def test_the_name_of_a_claim_is_the_receipt_of_its_key():
    receipt = receipt_of_key("order-7")
    assert claim_file(receipt) == f"{CLAIMS}/{receipt}.json"
    assert is_claim_file(f"{receipt}.json")
    for other in (receipt, f"{new_receipt(0)}.json", "notes.json", f"{receipt}.json.tmp"):
        assert not is_claim_file(other)
