"""An inbox on S3 of which a shard cannot be read once: a turn that fails, and no refusal."""

import random
import uuid
from datetime import date
from unittest.mock import patch

import boto3
import pytest
from s3_server import s3_process
from unreliable_proxy import Fault, UnreliableProxy

from streaming_moments.errors import StreamingMomentsError
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.service.config import service_of
from streaming_moments.pipelines.service.ingest_worker.accumulator import Accumulator
from streaming_moments.storage.inbox.receipts import new_receipt
from streaming_moments.storage.inbox.records import RecordShape
from streaming_moments.storage.inbox.set_aside import all_set_aside
from streaming_moments.storage.store.store import MomentStore

TODAY = date(2026, 11, 23)


@pytest.fixture(scope="module")
def s3():
    """A proxy before an S3 server in a process of its own, and options of it."""
    keys = {"aws_access_key_id": "any", "aws_secret_access_key": "any"}
    with s3_process() as (host, port):
        boto3.client(
            "s3", endpoint_url=f"http://{host}:{port}", region_name="us-east-1", **keys
        ).create_bucket(Bucket="bucket")
        proxy = UnreliableProxy(host, port)
        # tried again once, not four times with seconds between them
        retries = {"retries": {"max_attempts": 1, "mode": "legacy"}}
        access = {"key": "any", "secret": "any", "endpoint_url": proxy.url}
        # a client that is made asks it for the waits of its own
        with patch("botocore.retryhandler.delay_exponential", lambda **_: 0.01):
            yield proxy, {**access, "config_kwargs": retries}
        proxy.stop()


@pytest.mark.parametrize("kind", ["texts", "sequences"])
def test_reads_that_fail_refuse_nothing(kind, s3, place, embedded, tmp_path, run):
    proxy, options = s3
    store, text = place / "store", "a b c"
    if kind == "sequences":
        draw = random.Random(3)
        lines = ("".join(draw.choices("abc", k=30)) + "\n" for _ in range(500))
        (tmp_path / "p.txt").write_text("".join(lines))
        store, text = tmp_path / "sequences", "abcabcabc"
        assert run("create", store, tmp_path / "p.txt", "--kind", "sequences")[0] == 0
    before = MomentStore.open(str(store)).commit.documents
    content = {
        "store": str(store),
        "inbox": f"s3://bucket/{uuid.uuid4().hex}",
        "storage_options": options,
        "accumulate": {"seal_after": "1ms"},
    }
    now = [0.0]
    ours = Accumulator.of(
        service_of(content, "x"),
        Run(embedded, storage_options=options),
        lambda line: None,
        clock=lambda: now[0],
    )
    failed = 0
    for number, start in enumerate((0, 12, 20, 28), 1):
        one, _ = RecordShape().submission([{"text": text}] * 5, new_receipt(0), False, TODAY)
        ours.seals.inbox.put([one])
        # more in a row than clients try again, from a request of the turn on
        proxy.suffer(Fault("internal error", start, 12))
        for _ in range(5):
            now[0] += 3600.0  # what failed is due again
            try:
                turn = ours.turn()
            except (StreamingMomentsError, OSError):
                failed += 1
                proxy.calm()
                continue
            proxy.calm()
            assert (turn.left_out, turn.set_aside) == ((), ())
            if not turn.failed:
                break
            failed += 1
        assert MomentStore.open(str(store)).commit.documents == before + 5 * number
    assert failed
    assert ours.look() is None
    assert all_set_aside(ours.seals.inbox.folder) == ()
