"""Receipts and keys: their forms, which the service also documents."""

import re

import pytest

from streaming_moments.errors import InvalidInput
from streaming_moments.storage.inbox.receipts import (
    KEY_FORM,
    RECEIPT_FORM,
    is_of_key,
    new_receipt,
    receipt_of_key,
    require_receipt,
    seal_before,
)


@pytest.mark.parametrize("text", ["", "k12", "b" + "0" * 32, "../claims/x", "k" + "g" * 32])
def test_what_is_no_receipt_is_refused(text):
    with pytest.raises(InvalidInput, match="not a receipt"):
        require_receipt(text)


def test_receipts_say_behind_which_seal_to_look():
    assert seal_before(new_receipt(7)) == 7
    assert seal_before(receipt_of_key("k")) is None
    assert require_receipt(new_receipt(7)) != new_receipt(7)


def test_a_receipt_that_is_none_is_shown_by_its_beginning():
    with pytest.raises(InvalidInput) as refused:
        require_receipt("x" * 61)
    assert str(refused.value).startswith(f"{'x' * 60!r} is not a receipt")


@pytest.mark.parametrize("key", ["", "k" * 256, "é", "a\nb", "a\0"])
def test_what_is_no_key_is_refused(key):
    with pytest.raises(InvalidInput, match="printable"):
        receipt_of_key(key)


def test_a_key_has_up_to_255_characters_and_one_that_is_refused_is_shown_by_its_beginning():
    assert len(receipt_of_key("k" * 255)) == 33
    with pytest.raises(InvalidInput) as refused:
        receipt_of_key("k" * 256)
    assert str(refused.value).startswith(f"the key {'k' * 40!r} has 256 characters; give 1 to 255 ")


def test_what_is_made_has_the_forms_that_are_described():
    assert RECEIPT_FORM == "^(k[0-9a-f]{32}|b[0-9a-f]{32}-[0-9]{1,19})$"
    assert KEY_FORM == "^[ -~]+$"
    made = new_receipt(10**19 - 1), receipt_of_key("order-7", "shop")
    assert all(re.search(RECEIPT_FORM, receipt) for receipt in made)
    assert [is_of_key(receipt) for receipt in made] == [False, True]
