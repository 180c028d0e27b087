"""A disk on which each operation of an inbox fails in turn: nothing acknowledged is lost."""

import contextlib
import errno
import uuid

import pytest
from faulty_disk import READING, WRITING, interposed
from sent_documents import sealed_texts, sent

from streaming_moments.errors import StoreError
from streaming_moments.storage.inbox.inbox import Inbox
from streaming_moments.storage.inbox.sealing import SealLog


class Once:
    """Lets the operation of a number fail, before it is done or after."""

    def __init__(self, kinds, number, error, after):
        self.kinds, self.left, self.error, self.after, self.met = kinds, number, error, after, False

    def __call__(self, operation, apply):
        if operation.kind not in self.kinds:
            return apply(operation)
        self.left -= 1
        if self.left:
            return apply(operation)
        self.met = True
        if self.after:
            apply(operation)
        raise OSError(self.error, operation.kind)


def acknowledged(inbox):
    """Texts of a few submissions that are told to last, and a seal in between."""
    told = []
    for text, key in (("a", None), ("b", "k"), ("c", None)):
        try:
            inbox.put([sent(text, key=key), sent(f"{text} again", key=f"{text} again")])
        except StoreError:
            continue
        told += [text, f"{text} again"]
        if text == "b":
            with contextlib.suppress(StoreError):
                SealLog(inbox).seal_next()
    return told


@pytest.mark.parametrize(
    ("kinds", "error", "after"),
    [
        (WRITING, errno.ENOSPC, False),
        (WRITING, errno.EIO, False),
        (WRITING - {"write", "unlink", "rmdir"}, errno.EIO, True),
        (READING, errno.EIO, False),
    ],
    ids=["full", "error", "reply lost", "unreadable"],
)
def test_each_operation_may_fail_once(tmp_path, campaigns, kinds, error, after):
    tried = 0
    for number in range(1, 1000):
        inbox = Inbox.open(str(tmp_path / uuid.uuid4().hex))
        with interposed(Once(kinds, number, error, after)) as fault:
            told = acknowledged(inbox)
        if not fault.met:
            break
        tried += 1
        while SealLog(inbox).seal_next():
            pass
        found = sealed_texts(inbox)
        assert len(set(found)) == len(found), number
        assert set(told) <= set(found), number
        assert inbox.pending() == []
    campaigns.record(f"inbox: operations of the disk, {errno.errorcode[error]}", tried, tried)
