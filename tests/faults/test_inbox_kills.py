"""Processes that put and seal are killed: what was acknowledged is in one shard, once."""

import random
import subprocess
import sys
from collections import Counter

from sent_documents import sealed_texts

from streaming_moments.storage.inbox.inbox import Inbox
from streaming_moments.storage.inbox.sealing import SealLog

PUTTING = """
import sys
from datetime import date
from streaming_moments.storage.inbox.group_commit import GroupCommit
from streaming_moments.storage.inbox.inbox import Inbox
from streaming_moments.storage.inbox.receipts import receipt_of_key
from streaming_moments.storage.inbox.records import RecordShape
commits = GroupCommit(Inbox.open(sys.argv[1]), window=0.002)
first = int(sys.argv[2])
for start in range(first, first + 100_000, 3):
    texts = [str(number) for number in range(start, start + 3)]
    waiting = [
        commits.submit(RecordShape().submission(
            [{"text": text}], receipt_of_key(text), True, date(2026, 11, 23))[0], 0)
        for text in texts
    ]
    for text, one in zip(texts, waiting):
        one.result()
        print(text, flush=True)
"""
SEALING = """
import sys
from streaming_moments.storage.inbox.inbox import Inbox
from streaming_moments.storage.inbox.sealing import SealLog, SealedByAnother
log = SealLog(Inbox.open(sys.argv[1]))
print("begun", flush=True)
while True:
    try:
        if log.seal_next(most_documents=20):
            print("sealed", flush=True)
    except SealedByAnother:
        pass
"""


def begun(program, *arguments):
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_killed_at_any_time_nothing_acknowledged_is_lost_or_counted_twice(tmp_path, campaigns):
    kills, rng = campaigns.size(3, 100), random.Random(campaigns.seed)
    inbox, acknowledged, next_text = Inbox.open(str(tmp_path)), [], 0
    sealer = None
    for _ in range(kills):
        # what was not acknowledged is sent again, under its key
        putting = begun(PUTTING, tmp_path, next_text)
        sealer = sealer or begun(SEALING, tmp_path)
        assert sealer.stdout.readline()
        lines = rng.randint(1, 60)
        acknowledged += [putting.stdout.readline().strip() for _ in range(lines)]
        putting.kill()
        acknowledged += putting.stdout.read().split()
        next_text = int(acknowledged[-1]) + 1
        if rng.random() < 0.7:
            sealer.kill()
            sealer.stdout.read()
            sealer = None
    if sealer is not None:
        sealer.kill()
        sealer.stdout.read()
    while SealLog(inbox).seal_next():
        pass
    found = Counter(sealed_texts(inbox))
    assert set(found.values()) == {1}
    assert set(acknowledged) <= set(found)
    # of the last process what was in the batch that it did not live to acknowledge
    assert len(found) - len(set(acknowledged)) <= 3
    campaigns.record("inbox: putting and sealing killed", kills, kills, f"{len(found)} documents")
