"""An inbox whose storage does not answer in time: who sends is told when to come again."""

import threading
import time

import boto3
import pytest
from s3_server import S3Server
from unreliable_proxy import Fault, UnreliableProxy

from streaming_moments.storage.files import local_files

ACCOUNT = {"aws_access_key_id": "testing", "aws_secret_access_key": "testing"}
SENT = [{"text": "the sea"}]


@pytest.fixture
def cloud():
    """Options of an S3 server on this machine with a bucket, and the proxy before it."""
    server = S3Server()
    server.start()
    proxy = UnreliableProxy(*server.get_host_and_port())
    s3 = boto3.client("s3", endpoint_url=proxy.url, region_name="us-east-1", **ACCOUNT)
    s3.create_bucket(Bucket="slow")
    yield {"endpoint_url": proxy.url, "key": "testing", "secret": "testing"}, proxy
    proxy.stop()
    server.stop()


def acknowledged(client, key):
    """The receipt, once there is one, within two minutes."""
    deadline = time.monotonic() + 120
    while (answer := client.send(SENT, key)).status_code == 503:
        assert time.monotonic() < deadline
    assert answer.status_code == 202, answer.text
    return answer.json()["receipt"]


def told_to_come_again(answer):
    assert (answer.status_code, answer.json()["status"]) == (503, 503)
    assert "Idempotency-Key" in answer.json()["detail"]
    assert int(answer.headers["Retry-After"]) > 0


def test_a_bucket_that_answers_503_is_not_waited_for_and_holds_no_half_batch(serve, cloud):
    options, proxy = cloud
    told = {"inbox": "s3://slow/inbox", "storage_options": options, "limits": {"seconds": "1s"}}
    with serve(**told) as client:
        inbox = client.service.current.inbox
        proxy.suffer(Fault("slow down", 0, 1_000_000))
        told_to_come_again(client.send(SENT, "k"))
        assert proxy.calm() > 0
        receipt = acknowledged(client, "k")
        assert client.send(SENT, "k").json()["receipt"] == receipt
        found = [one.receipt for batch in inbox.pending() for one in inbox.read(batch.name)]
        assert set(found) == {receipt}
        assert client.service.current.seals.seal_next().documents == 1


def test_what_is_still_to_be_written_is_held_and_answered_for(serve, monkeypatch):
    goes_on, create = threading.Event(), local_files.create_whole

    def waits(path, content):
        assert goes_on.wait(60)
        create(path, content)

    with serve(limits={"seconds": "200ms"}) as client:
        budget = client.service.budget
        monkeypatch.setattr(local_files, "create_whole", waits)
        try:
            told_to_come_again(client.send(SENT, "k"))
            assert not budget.take(budget.nbytes), "memory that is in use is no room for others"
        finally:
            goes_on.set()
        receipt = acknowledged(client, "k")
        assert client("GET", f"/v1/receipts/{receipt}").json()["state"] == "accepted"
        deadline = time.monotonic() + 60
        while not budget.take(budget.nbytes):
            assert time.monotonic() < deadline
        budget.give(budget.nbytes)
