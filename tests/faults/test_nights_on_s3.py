"""Two nights at once on one store on a real S3 server: one of them does it, once."""

import json

import pytest
from killable_cluster import PATIENCE
from night_corpus import CREATE, REFIT, command, require_counted_once, shard
from s3_server import client_with_bucket, s3_process

from streaming_moments.storage.store.store import MomentStore

BUCKET, KEY, SECRET = "twins", "twin-key-09d2", "twin-secret-66f1"


@pytest.fixture(scope="module")
def server():
    """URL of a real S3 server, in a process of its own."""
    with s3_process() as (host, port):
        yield f"http://{host}:{port}"


@pytest.mark.long
def test_two_nights_at_once_on_s3(campaigns, server, tmp_path):
    rounds, held, ends = campaigns.size(2, 100), 0, []
    options = {"endpoint_url": server, "key": KEY, "secret": SECRET}
    client = client_with_bucket(server, BUCKET, KEY, SECRET)
    tables = {"create": CREATE, "refit": REFIT, "storage_options": options}
    sections = "".join(
        f"[{name}]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in keys.items())
        for name, keys in tables.items()
    )
    for number in range(rounds):
        # every tenth round begins a store anew, which the two race for as well
        store, first = f"s3://{BUCKET}/{number // 10}/store", number % 10 == 0
        prefix = f"{number // 10}/shards"
        client.put_object(Bucket=BUCKET, Key=f"{prefix}/{number}.txt", Body=shard(number % 10))
        config = tmp_path / "night.toml"
        config.write_text(
            f'store = "{store}"\nshards = "s3://{BUCKET}/{prefix}/*.txt"\n'
            f'output = "{store}-reports"\n{sections}'
        )
        twins = [command("nightly", config) for _ in range(2)]
        for twin in twins:
            twin.join(PATIENCE)
        codes = sorted(int(twin.exitcode) for twin in twins)
        ends.append(codes)
        done = MomentStore.open(store, storage_options=options)
        assert require_counted_once(done, options) == number % 10 + 1
        fitted = done.at(done.models[done.commit.tags["published"]].version)
        assert len(fitted.ledger()) == number % 10 + 1
        creations = sum(commit.operation == "create" for commit in done.log())
        # one has published; the other was kept out, or came after it
        held += codes in ([0, 2], [0, 10]) and creations == 1 and (not first or done.version == 2)
    campaigns.record("two nights at once on S3", rounds, held, f"exit codes {ends}")
