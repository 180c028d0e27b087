"""Submissions of documents, and the content of their shards."""

import json
from datetime import date

from streaming_moments.storage.inbox.receipts import new_receipt, receipt_of_key
from streaming_moments.storage.inbox.records import RecordShape

TODAY = date(2026, 11, 23)
SHAPE = RecordShape()


def sent(*texts, key=None, after=0, day=None):
    """A submission of some texts; each text is also its id."""
    receipt = new_receipt(after) if key is None else receipt_of_key(key)
    records = [{"text": text} | ({} if day is None else {"date": day}) for text in texts]
    return SHAPE.submission(records, receipt, key is not None, TODAY)[0]


def sealed_texts(inbox):
    """All texts of all shards, in order."""
    files = inbox.folder.sizes("sealed")
    contents = inbox.folder.read_all([f"sealed/{path}" for path in files]) if files else []
    return sorted(json.loads(line)["text"] for content in contents for line in content.splitlines())
