"""A store that changes beneath a running service: all that was read of it is read again."""

import json
import shutil
import uuid

import boto3
import pytest
from s3_server import S3Server

from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.create import PilotOptions, create
from streaming_moments.pipelines.jobs.rebase import rebase
from streaming_moments.pipelines.jobs.update import update
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.shards import ShardFormat
from streaming_moments.storage.store.store import MomentStore

NEW_WORD = "zeb"
LONG = f"{NEW_WORD} " * 250_000  # its triples pass 2^62 where the store knows the word
KEYS = {"key": "testing", "secret": "testing"}


@pytest.fixture(params=["local", "s3"])
def anywhere(request, fitted, tmp_path):
    """A store of the word on a local disk and on S3, its URL, and the options of its storage."""
    if request.param == "local":
        shutil.copytree(fitted, tmp_path / "store")
        yield str(tmp_path / "store"), {}
        return
    server = S3Server()
    server.start()
    host, port = server.get_host_and_port()
    options = {"endpoint_url": f"http://{host}:{port}", **KEYS}
    account = {"aws_access_key_id": "testing", "aws_secret_access_key": "testing"}
    s3 = boto3.client(
        "s3", endpoint_url=options["endpoint_url"], region_name="us-east-1", **account
    )
    s3.create_bucket(Bucket="changed")
    url = f"s3://changed/{uuid.uuid4().hex}"
    for path in sorted(fitted.rglob("*")):
        if path.is_file():
            key = f"{url.removeprefix('s3://changed/')}/{path.relative_to(fitted)}"
            s3.upload_file(str(path), "changed", key)
    yield url, options
    server.stop()


def with_new_word(url, options, tmp_path, embedded):
    """Have a store count documents of a new word, and then know the word."""
    run = Run(embedded, storage_options=options or None)
    more = tmp_path / "more.jsonl"
    store = MomentStore.open(url, storage_options=options or None)
    text = f"{NEW_WORD} {NEW_WORD} {store.vocabulary.terms[0]}"
    more.write_text((json.dumps({"text": text}) + "\n") * 40)
    store = update(store, list_shards([str(more)]), Run(embedded)).store
    chosen = PilotOptions(vocabulary_size=300, core=300, max_topics=4, min_documents=2)
    return rebase(store, run, chosen).store


def test_after_a_rebase_documents_are_judged_by_the_new_words(
    serve_at, anywhere, tmp_path, embedded
):
    url, options = anywhere
    with serve_at(url, storage_options=options) as client:
        assert client.send([{"text": LONG}]).status_code == 202
        store = with_new_word(url, options, tmp_path, embedded)
        assert NEW_WORD in store.vocabulary.terms
        client.service.current.look()
        refused = client.send([{"text": LONG}])
        assert refused.status_code == 422, refused.text
        assert "above 2^62" in refused.json()["detail"]
        assert client.send([{"text": f"{NEW_WORD} law"}]).status_code == 202


def test_a_store_that_takes_other_documents_is_described_so(serve_at, fitted, tmp_path, embedded):
    """The store at the URL is another one than that with which the service began."""
    place = tmp_path / "store"
    shutil.copytree(fitted, place)
    shards = tmp_path / "ids.jsonl"
    shards.write_text("".join(json.dumps({"ids": [n % 7, 7 + n % 5]}) + "\n" for n in range(60)))
    with serve_at(place) as client:
        text = client("GET", "/v1/openapi.json").json()["components"]["schemas"]["DocumentSent"]
        assert "text" in text["properties"]
        shutil.rmtree(place)
        client.service.current.look()
        ready = client("GET", "/readyz")
        assert (ready.status_code, ready.json()["problems"]) == (503, ["store"])
        form = ShardFormat(ids_column="ids")
        pilot = PilotOptions(vocabulary_size=12, core=12, max_topics=3, min_documents=1)
        create(str(place), list_shards([str(shards)]), form, None, pilot, Run(embedded))
        client.service.current.look()
        assert client.service.view.store.version == 0
        assert client("GET", "/v1/models").json()["models"] == []
        ids = client("GET", "/v1/openapi.json").json()["components"]["schemas"]["DocumentSent"]
        assert "ids" in ids["properties"]
        assert "ids" in client("GET", "/docs").text


def test_a_store_of_the_same_version_is_another_by_its_commits(
    serve_at, fitted, unfitted, tmp_path
):
    """Pages and the model of the store that was there are not shown of the one that is."""
    place = tmp_path / "store"
    shutil.copytree(fitted, place)
    with serve_at(place) as client:
        before = client("GET", "/").text
        assert client.service.view.published is not None
        shutil.rmtree(place)
        shutil.copytree(unfitted, place)
        for _ in range(client.service.view.store.version):
            store = MomentStore.open(str(place))
            store.extended(lambda head: head.successor("append", "nothing"))
        client.service.current.look()
        assert client.service.view.published is None
        assert client("GET", "/v1/status").json()["documents"] == 0
        assert client("GET", "/").text != before
