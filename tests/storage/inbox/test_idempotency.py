"""Idempotency: keys and claims; what comes under them is tested with the inbox."""

import pytest

from streaming_moments.errors import InvalidInput, StoreError
from streaming_moments.storage.inbox.idempotency import Claim, receipt_of_key


@pytest.mark.parametrize("key", ["", "k" * 256, "é", "a\nb", "a\0"])
def test_what_is_no_key_is_refused(key):
    with pytest.raises(InvalidInput, match="printable"):
        receipt_of_key(key)


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


def test_a_key_has_up_to_255_characters_and_one_that_is_refused_is_shown_by_its_beginning():
    assert len(receipt_of_key("k" * 255)) == 33
    with pytest.raises(InvalidInput) as refused:
        receipt_of_key("k" * 256)
    assert str(refused.value).startswith(f"the key {'k' * 40!r} has 256 characters; give 1 to 255 ")
