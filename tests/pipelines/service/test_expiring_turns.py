"""Expiry by turns: what a deletion may be planned on stays, and what is left goes on at once."""

import os
from functools import partial
from pathlib import Path

from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.service.config import service_of
from streaming_moments.pipelines.service.ingest_worker import accumulator as module
from streaming_moments.pipelines.service.ingest_worker.accumulator import Accumulator


def test_nothing_expires_while_a_deletion_waits_and_what_is_left_goes_on_at_once(
    serve, place, embedded, monkeypatch
):
    content = {
        "store": str(place / "store"),
        "accumulate": {"seal_after": "10ms"},
        "keep": {"keys": "1d", "documents": "1d"},
    }
    now = [0.0]
    config, run = service_of(content, "service.toml"), Run(embedded)
    ours = Accumulator.of(config, run, lambda line: None, clock=lambda: now[0])
    with serve() as client:
        for number in range(3):
            client.send([{"text": "a b c", "id": f"n{number}"}])
            ours.turn()
        shards = sorted(Path(ours.seals.inbox.folder.url, "sealed").glob("*/*.jsonl"))
        for path in shards:
            os.utime(path, (1, 1))
        asked = client("DELETE", "/v1/documents?id=n1").headers["Location"]
        # it may be planned on shards that are old
        assert ours.expire_if_due() is None
        assert all(path.exists() for path in shards)
        ours.turn()
        assert client("GET", asked).json()["documents"] == 1
        for path in shards:
            if path.exists():
                os.utime(path, (1, 1))
        with monkeypatch.context() as patch:
            patch.setattr(module, "expire", partial(module.expire, most=1))
            assert ours.expire_if_due().more
            # there is more: the next look goes on
            assert ours.expire_if_due().shards == 1
        assert ours.expire_if_due() is None
        now[0] = 7 * 3600.0
        assert ours.expire_if_due() is not None
    assert not any(path.exists() for path in shards)
