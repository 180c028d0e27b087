"""A service whose inbox is in a bucket of Google Cloud Storage or Azure."""

import uuid

import pytest
from buckets import azure, google
from service_answers import due
from unreliable_proxy import Fault

from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.service.config import service_of
from streaming_moments.pipelines.service.ingest_worker.accumulator import Accumulator
from streaming_moments.storage.store.store import MomentStore


@pytest.mark.parametrize(("protocol", "served"), [("gs", google), ("az", azure)])
def test_what_is_acknowledged_in_a_bucket_is_counted_once(
    serve, place, embedded, planted, protocol, served
):
    with served() as (options, proxy):
        content = {"inbox": f"{protocol}://bucket/{uuid.uuid4().hex}", "storage_options": options}
        config = {"store": str(place / "store"), "accumulate": {"seal_after": "10ms"}, **content}
        run = Run(embedded, storage_options=options)
        accumulator = Accumulator.of(service_of(config, "service.toml"), run, lambda line: None)
        with serve(**content) as client:
            texts = [{"text": text} for text in planted[:3]]
            proxy.suffer(Fault("lost reply", 0, 1, commits=True))
            first = client.send(texts, "k").json()
            assert proxy.calm() == 1
            assert (first["state"], client.send(texts, "k").json()) == ("accepted", first)
            assert client.send(texts[:1], "k").status_code == 422
            turn = due(accumulator, failing=True)
            assert (turn.sealed, turn.counted) == (3, 3)
            client.service.current.look()
            told = client("GET", f"/v1/receipts/{first['receipt']}").json()
            assert (told["state"], told["version"]) == ("counted", turn.version)
            assert MomentStore.open(str(place / "store")).commit.documents == 903
            client("DELETE", "/v1/documents", params={"receipt": first["receipt"]})
            assert accumulator.look().forgotten == 3
        assert accumulator.look() is None
    assert MomentStore.open(str(place / "store")).commit.documents == 900
