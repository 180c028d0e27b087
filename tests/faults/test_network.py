"""A network that loses, cuts and refuses, between the library and a real S3 server."""

import traceback
import uuid
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import timedelta

import boto3
import fsspec
import numpy as np
import pytest
import s3fs
from aiohttp import ClientPayloadError
from botocore.exceptions import BotoCoreError
from s3_server import s3_process
from unreliable_proxy import AFTER, KINDS, Fault, UnreliableProxy

from streaming_moments.errors import StoreError, StreamingMomentsError
from streaming_moments.storage.files.created import CreationUnknown
from streaming_moments.storage.operations.history import rollback, tag
from streaming_moments.storage.shards import ShardFormat
from streaming_moments.storage.store.garbage import collect, find_garbage
from streaming_moments.storage.store.store import MomentStore
from streaming_moments.testing import small_store
from streaming_moments.testing.small_store import (
    BASIS,
    VOCABULARY,
    append,
    compact,
    forget,
    model_of,
    record,
    total,
)

KEY, SECRET = "planted-key-71c9", "planted-secret-e04d"
BUCKET = "cloud"
NO_GRACE = timedelta(0)


@pytest.fixture(scope="module")
def server():
    """Host and port of a real S3 server, in a process of its own."""
    with s3_process() as address:
        yield address


@pytest.fixture(scope="module")
def client(server):
    """What sees the server without faults."""
    host, port = server
    client = boto3.client(
        "s3",
        endpoint_url=f"http://{host}:{port}",
        aws_access_key_id="other",
        aws_secret_access_key="other",
        region_name="us-east-1",
    )
    client.create_bucket(Bucket=BUCKET)
    return client


@pytest.fixture
def proxy(server, monkeypatch):
    # the patience of the clients would hide most faults from us
    monkeypatch.setattr(s3fs.S3FileSystem, "retries", 1)
    proxy = UnreliableProxy(*server)
    yield proxy
    proxy.stop()


def options(proxy):
    return {
        "endpoint_url": proxy.url,
        "key": KEY,
        "secret": SECRET,
        "config_kwargs": {"retries": {"total_max_attempts": 1}},
    }


def create(url, proxy):
    return MomentStore.create(
        url, VOCABULARY, None, BASIS, ShardFormat(), storage_options=options(proxy)
    )


@dataclass
class Mirror:
    """A copy of what the server holds under a URL, in memory: much faster to verify."""

    client: object
    url: str
    marks: dict = field(default_factory=dict)
    fs: object = field(default_factory=lambda: fsspec.filesystem("memory"))
    folder: str = field(default_factory=lambda: f"/{uuid.uuid4().hex}")

    def store(self):
        """The store as it is on the server now; None before its first commit."""
        prefix = self.url.removeprefix(f"s3://{BUCKET}/") + "/"
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=prefix)
        found = {item["Key"]: item["ETag"] for page in pages for item in page.get("Contents", ())}
        for gone in self.marks.keys() - found.keys():
            self.fs.rm_file(f"{self.folder}/{gone.removeprefix(prefix)}")
        for key, mark in found.items():
            if self.marks.get(key) != mark:
                content = self.client.get_object(Bucket=BUCKET, Key=key)["Body"].read()
                assert SECRET.encode() not in content
                assert KEY.encode() not in content
                self.fs.pipe_file(f"{self.folder}/{key.removeprefix(prefix)}", content)
        self.marks = found
        if f"{prefix}commits/{0:020d}.json" not in found:
            return None
        return MomentStore.open(f"memory:/{self.folder}")


@dataclass(frozen=True)
class Truth:
    """What a version must hold: seeds by shard, seeds by model, models by tag."""

    shards: dict
    models: dict
    tags: dict


def problem_with(store, truths):
    """What a mirrored store holds else than the last truth; empty if nothing."""
    truth = truths[-1]
    if store.version != len(truths) - 1:
        return f"version {store.version} instead of {len(truths) - 1}"
    if store.verify():
        return f"verify: {store.verify()}"
    if store.load() != total(truth.shards.values()):
        return "other statistics"
    if set(store.ledger()) != {record(*shard) for shard in truth.shards.items()}:
        return "another ledger"
    if dict(store.commit.tags) != truth.tags or [*store.models] != [*truth.models]:
        return "other models"
    for name, seed in truth.models.items():
        if store.load_model(name).topics.tolist() != model_of(seed).topics.tolist():
            return f"another model {name}"
    return ""


def problem_with_error(error):
    """Why an error is not as a user should see it; empty if it is."""
    if error is None:
        return ""
    text = "".join(traceback.format_exception(error))
    if not isinstance(error, StreamingMomentsError):
        return f"no error of ours: {text}"
    if "\n" in str(error) or not str(error):
        return f"not one line: {error}"
    if SECRET in text or KEY in text:
        return f"shows credentials: {error}"
    return ""


def drawn_fault(rng, expected):
    commits = rng.random() < 0.4
    start = 0 if commits else int(rng.integers(expected))
    return Fault(str(rng.choice(KINDS)), start, int(rng.choice([1, 1, 1, 2, 4, 12, 60])), commits)


def drawn_action(rng, truths, number):
    """A name, what a user does, and what must hold afterwards."""
    now = truths[-1]
    names = ["append", "append", "append", "save", "rollback", "collect"]
    names += ["forget", "replace", "compact"] if now.shards else []
    names += ["tag", "tag"] if now.models else []
    name = str(rng.choice(names))
    if name == "append":
        new = {f"s{number}": number}
        return name, lambda store: append(store, new), replace(now, shards={**now.shards, **new})
    if name == "save":
        models = {**now.models, f"m{number}": number}
        model = model_of(number)
        return name, lambda s: s.save_model(f"m{number}", model), replace(now, models=models)
    if name == "rollback":
        version = int(rng.integers(len(truths)))
        return name, lambda store: rollback(store, version), truths[version]
    if name == "compact":
        return name, compact_seen, now
    if name == "collect":
        return name, collect_all, now
    if name == "tag":
        model = str(rng.choice([*now.models]))
        return name, lambda s: tag(s, "live", model), replace(now, tags={**now.tags, "live": model})
    url = str(rng.choice([*now.shards]))
    old = {url: now.shards[url]}
    if name == "forget":
        left = {shard: seed for shard, seed in now.shards.items() if shard != url}
        return name, lambda store: forget(store, old), replace(now, shards=left)
    new = {url: number}
    changed = replace(now, shards={**now.shards, **new})
    return name, lambda store: small_store.replace(store, old, new), changed


def compact_seen(store):
    """Compact; who has seen nothing to sum, or whose sums went meanwhile, looks again."""
    if store.commit.segments:
        try:
            return compact(store)
        except StoreError as error:
            if "has rolled back or compacted the store" not in str(error):
                raise
    return compact(store.latest())


def collect_all(store):
    collect(store.folder, find_garbage(store.folder, NO_GRACE))
    return store


@dataclass
class Walk:
    """Actions on one store, each under faults until it is done."""

    rng: np.random.Generator
    proxy: UnreliableProxy
    mirror: Mirror
    expected: dict
    outcomes: Counter
    truths: list = field(default_factory=list)
    tried: int = 0
    problems: list = field(default_factory=list)

    def suffered(self, name, act, after):
        """Do it under faults, at most three times, then without; false if the truth is lost."""
        for _ in range(int(self.rng.integers(1, 4))):
            fault = drawn_fault(self.rng, self.expected.get(name, 40))
            self.proxy.suffer(fault)
            error = self.attempted(act)
            met = self.proxy.calm()
            self.tried += met > 0
            wrong, done = self.judged(name, error, after)
            outcome = "went through" if error is None else type(error).__name__
            self.outcomes[outcome] += met > 0
            if wrong:
                self.problems.append(f"{name} under {fault}, {outcome} ({error}): {wrong}")
                return False
            if done:
                return True
        self.proxy.suffer(Fault("none", 10**9))
        error = self.attempted(act)
        wrong, done = self.judged(name, error, after)
        if wrong or error or not done:
            self.problems.append(f"{name} again without faults: {error!r} {wrong}")
            return False
        return True

    def attempted(self, act):
        try:
            act()
        except Exception as error:
            return error
        return None

    def judged(self, name, error, after):
        """What is wrong now, and whether the act is done."""
        wrong = problem_with_error(error)
        if wrong:
            return wrong, False
        store = self.mirror.store()
        version = -1 if store is None else store.version
        committed = version == len(self.truths)
        if committed:
            self.truths.append(after)
        # a collection commits before it deletes, and only if a writer could still commit
        collects = name == "collect"
        if error is None and not committed and not collects:
            return "said to be committed, and is not", False
        told = error is None or isinstance(error, CreationUnknown)
        if committed and not told and not collects:
            return "said not to be committed, and is", False
        wrong = problem_with(store, self.truths) if self.truths else ""
        return wrong, error is None if collects else committed


def walk_of(rng, proxy, client, expected, outcomes, actions):
    """A walk under faults, from the creation of the store on."""
    url = f"s3://{BUCKET}/{uuid.UUID(bytes=rng.bytes(16)).hex}"
    walk = Walk(rng, proxy, Mirror(client, url), expected, outcomes)
    if not walk.suffered("create", lambda: create(url, proxy), Truth({}, {}, {})):
        return walk
    stale = MomentStore.open(url, storage_options=options(proxy))
    for number in range(actions):
        name, act, after = drawn_action(rng, walk.truths, number)
        # another writer has not seen the last commit, so its own is a conflict first
        known = stale if rng.random() < 0.3 else None
        stale = MomentStore.open(url, storage_options=options(proxy))

        def run(act=act, known=known):
            act(known or MomentStore.open(url, storage_options=options(proxy)))

        if not walk.suffered(name, run, after):
            return walk
    collect_all(MomentStore.open(url, storage_options=options(proxy)))
    assert find_garbage(stale.folder, NO_GRACE) == []
    left = walk.mirror.store()
    assert [left.at(version).verify() for version in range(left.version)] == [[]] * left.version
    return walk


def test_whatever_the_network_does_nothing_is_lost_twice_or_unsaid(proxy, client, campaigns):
    rng = np.random.default_rng(campaigns.seed)
    wanted = campaigns.size(12, 500)
    outcomes, problems, tried = Counter(), [], 0
    while tried < wanted:
        walk = walk_of(rng, proxy, client, {}, outcomes, campaigns.size(3, 8))
        tried += walk.tried
        problems += walk.problems
    print(*problems, sep="\n")
    note = ", ".join(f"{times} {outcome}" for outcome, times in outcomes.most_common())
    campaigns.record("requests lost, cut and refused on S3", tried, tried - len(problems), note)


@pytest.fixture
def store(proxy, client):
    return create(f"s3://{BUCKET}/{uuid.uuid4().hex}", proxy)


def test_a_commit_is_written_once_whatever_becomes_of_its_request(proxy, store):
    for version, kind in enumerate(KINDS, 1):
        proxy.suffer(Fault(kind, 0, 1, commits=True))
        store = store.extended(lambda head, kind=kind: head.successor("tag", kind))
        assert proxy.calm() == 1
        assert store.version == version
    assert [commit.message for commit in store.latest().log()] == [*reversed(KINDS), ""]


def test_a_lost_reply_is_known_as_ours_after_the_client_has_tried_again(proxy, store, monkeypatch):
    monkeypatch.setattr(s3fs.S3FileSystem, "retries", 2)
    proxy.suffer(Fault("lost reply", 0, 1, commits=True))
    after = store.extended(lambda head: head.successor("tag", "mine"))
    assert (proxy.calm(), after.version, after.latest().commit.message) == (1, 1, "mine")


@pytest.mark.parametrize("kind", ["lost reply", "lost request"])
def test_a_commit_is_unknown_only_where_nothing_can_be_read(proxy, store, kind):
    proxy.suffer(Fault(kind, 0, 10**6, commits=True))
    with pytest.raises(CreationUnknown, match="may or may not be written") as told:
        store.extended(lambda head: head.successor("tag", "mine"))
    proxy.calm()
    assert problem_with_error(told.value) == ""
    assert store.latest().version == (kind == "lost reply")


def test_a_storage_that_refuses_every_commit_leaves_the_store_as_it_was(proxy, store):
    proxy.suffer(Fault("conflict", 0, 10**6, commits=True))
    with pytest.raises(StoreError, match="could not be written .*the store is unchanged") as told:
        store.extended(lambda head: head.successor("tag", "mine"))
    proxy.calm()
    assert not isinstance(told.value, CreationUnknown)
    assert problem_with_error(told.value) == ""
    assert store.latest().version == 0


def test_every_kind_of_fault_is_what_it_is_called(proxy, client):
    fs = fsspec.filesystem("s3", **options(proxy))
    for kind in KINDS:
        key = f"{BUCKET}/{uuid.uuid4().hex}"
        # twice, as aiohttp itself tries again after a connection was closed
        proxy.suffer(Fault(kind, 0, 2, commits=True))
        with pytest.raises((OSError, BotoCoreError, ClientPayloadError)):
            fs.pipe_file(key, b"content", mode="create")
        assert proxy.calm() >= 1
        assert fs.exists(key) == (kind in AFTER), kind
    for kind in ("cut reply", "short reply"):
        # the second request, as the first asks for the size
        proxy.suffer(Fault(kind, 1, 2))
        with pytest.raises((OSError, BotoCoreError, ClientPayloadError)):
            fs.cat_file(key)
