"""What was left out of a submission is deleted by its id, as what was taken."""

from service_answers import due

from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.service.config import service_of
from streaming_moments.pipelines.service.ingest_worker.accumulator import Accumulator


def test_a_deletion_by_id_deletes_what_was_left_out_under_it(serve, place, embedded, planted):
    content = {"store": str(place / "store"), "accumulate": {"seal_after": "10ms"}}
    config = service_of(content, "service.toml")
    accumulator = Accumulator.of(config, Run(embedded), lambda line: None)
    documents = [
        {"id": "ann", "text": planted[0]},
        {"id": "ann", "text": 7},
        {"id": "bob", "Ann's field": 1},
        {"id": 9, "text": None},
    ]
    with serve() as client:
        sent = client.send(documents, "k", params={"skip_bad": "1"}).json()
        assert [one["id"] for one in sent["left_out"]] == ["ann", "bob", "9"]
        client("DELETE", "/v1/documents", params={"id": ["ann", "9"]})
        assert due(accumulator, failing=True).forgotten == 1
        client.service.current.look()
        told = client("GET", f"/v1/receipts/{sent['receipt']}").json()
        assert [one["id"] for one in told["left_out"]] == ["bob"]
        notes = client.service.current.inbox.folder
        assert not any(b"ann" in notes.read(f"left_out/{n}") for n in notes.names("left_out"))
