"""Purges of a store and its inbox under faults: refused with nothing changed, or finished."""

import multiprocessing
import random
import shutil
import signal
import uuid
from dataclasses import dataclass, field

import boto3
import pytest
from faulty_disk import FAULTS, KILL, FaultyDisk, interposed
from mortal_folder import Killed
from s3_server import s3_process
from sent_documents import sent
from unreliable_proxy import Fault, UnreliableProxy

from streaming_moments.errors import StreamingMomentsError, Unfinished
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.purge import look_for_purged, purge
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.inbox.inbox import Inbox
from streaming_moments.storage.inbox.sealing import SealLog
from streaming_moments.storage.log import layout
from streaming_moments.storage.store.store import MomentStore
from streaming_moments.testing.small_store import append, create, total

SECRET = "a secret that no file may tell"


def built(place, options=None):
    """A store that counts three sealed shards of an inbox; a fourth waits to be counted."""
    inbox = Inbox.open(f"{place}/inbox", options)
    log = SealLog(inbox)
    for text in ("first", SECRET, "third", "fourth"):
        inbox.put([sent(text, key=text)])
        log.seal_next()
    names = [inbox.folder.shard(f"sealed/{one.path}") for one in inbox.folder.files("sealed")]
    names.sort()
    if options is None:
        store = create(f"{place}/store")
    else:
        from streaming_moments.storage.shards import ShardFormat
        from streaming_moments.testing.small_store import BASIS, VOCABULARY

        store = MomentStore.create(
            f"{place}/store", VOCABULARY, None, BASIS, ShardFormat(), storage_options=options
        )
    for seed, name in enumerate(names[:3]):
        store = append(store, {name: seed})
    return names


def purged(place, names, options=None):
    store = MomentStore.open(f"{place}/store", storage_options=options)
    return purge(store, names, Run(None, storage_options=options))


def inbox_files(place, options=None):
    folder = Folder.at(f"{place}/inbox", options)
    files = [file.path for file in folder.files("") if not file.is_partial]
    return dict(zip(files, folder.read_all(files), strict=True))


def require(place, names, before, error, options=None, copied=lambda url: url):
    """What the error, or that there was none, says of the store and the inbox is so.

    `copied` gives a place where the files of a store are read faster.
    """
    store = MomentStore.open(copied(f"{place}/store"))
    committed = store.ledger().find(names[1]) is None
    assert store.verify() == []
    if not committed:
        # whether it was refused or killed
        assert error is not None
        assert inbox_files(place, options) == before
        assert store.load() == total([0, 1, 2])
    elif isinstance(error, StreamingMomentsError):
        assert isinstance(error, Unfinished), error
    # the same call finishes, and says nothing else than that
    purged(place, [names[1]], options)
    assert MomentStore.open(copied(f"{place}/store")).load() == total([0, 2])
    store = MomentStore.open(f"{place}/store", storage_options=options)
    assert look_for_purged(store, [names[1]], options).traces == ()
    left = inbox_files(place, options)
    assert not [path for path, content in left.items() if SECRET.encode() in content]
    assert all(f"sealed/{name.rpartition('/sealed/')[2]}" in left for name in (names[0], names[3]))
    assert store.folder.names("purging") == []
    # nothing of what was never counted goes, nor anything by a call that names it
    with pytest.raises(StreamingMomentsError, match="accumulate --once"):
        purged(place, [names[1], names[3]], options)
    assert inbox_files(place, options) == left


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """A store and its inbox, at the place where each trial puts them."""
    folder = tmp_path_factory.mktemp("purges")
    names = built(folder / "place")
    shutil.copytree(folder / "place", folder / "kept")
    return folder / "place", folder / "kept", names


def restored(place, kept):
    shutil.rmtree(place)
    shutil.copytree(kept, place)


def failing(disk, place, names):
    try:
        with interposed(disk):
            purged(place, [names[1]])
    except StreamingMomentsError as error:
        return error
    return None


def killed(disk, place, names):
    process = multiprocessing.get_context("fork").Process(target=failing, args=(disk, place, names))
    process.start()
    process.join(60)
    if process.is_alive():
        process.kill()
        process.join()
        raise AssertionError("the process hangs")
    assert process.exitcode == -signal.SIGKILL
    return "killed"


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_of_the_disk_at_each_operation_of_a_purge(template, campaigns, fault):
    place, kept, names = template
    before, counted = inbox_files(place), FaultyDisk(fault, -1)
    failing(counted, place, names)
    restored(place, kept)
    every = range(counted.seen)
    places = [*every] if campaigns.long else random.Random(campaigns.seed).sample(every, 4)
    broken = []
    for at in places:
        error = (killed if fault is KILL else failing)(FaultyDisk(fault, at), place, names)
        try:
            require(place, names, before, error)
        except (AssertionError, StreamingMomentsError, OSError) as failure:
            broken.append(f"operation {at}: {failure!r}")
        restored(place, kept)
    print("\n".join(broken))
    campaigns.record(f"purge of an inbox: {fault.name}", len(places), len(places) - len(broken))


BUCKET = "purges"


@dataclass(frozen=True)
class Cloud:
    """An S3 server, a proxy before it, and the bytes of the objects that were seen there."""

    client: object
    url: str
    proxy: UnreliableProxy
    seen: dict = field(default_factory=dict)

    def options(self, proxied=False):
        url = self.proxy.url if proxied else self.url
        return {"endpoint_url": url, "key": "purge-key", "secret": "purge-secret"}

    def objects(self, place):
        """Content of each object below a place, by its key; reads what has not been seen."""
        pages = self.client.get_paginator("list_objects_v2").paginate(
            Bucket=BUCKET, Prefix=place.removeprefix(f"s3://{BUCKET}/") + "/"
        )
        found = {}
        for one in (one for page in pages for one in page.get("Contents", [])):
            if one["ETag"] not in self.seen:
                answer = self.client.get_object(Bucket=BUCKET, Key=one["Key"])
                self.seen[one["ETag"]] = answer["Body"].read()
            found[one["Key"]] = self.seen[one["ETag"]]
        return found

    def restore(self, place, kept):
        """Put back the objects below a place."""
        present = self.objects(place)
        for key in present.keys() - kept.keys():
            self.client.delete_object(Bucket=BUCKET, Key=key)
        for key in kept:
            if present.get(key) != kept[key]:
                self.client.put_object(Bucket=BUCKET, Key=key, Body=kept[key])

    def copy(self, place, folder):
        """Write the objects below a place into a folder."""
        prefix = place.removeprefix(f"s3://{BUCKET}/")
        for key, content in self.objects(place).items():
            file = folder / key.removeprefix(f"{prefix}/")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)


@pytest.fixture(scope="module")
def cloud():
    with s3_process() as (host, port):
        proxy, url = UnreliableProxy(host, port), f"http://{host}:{port}"
        client = boto3.client(
            "s3",
            endpoint_url=url,
            aws_access_key_id="purge-key",
            aws_secret_access_key="purge-secret",
            region_name="us-east-1",
        )
        client.create_bucket(Bucket=BUCKET)
        yield Cloud(client, url, proxy)
        proxy.stop()


class Dying:
    """Lets the process die at one of the changes that it makes to any folder."""

    def __init__(self, monkeypatch, at, after):
        self.at, self.after, self.seen = at, after, 0
        for name in ("create", "write"):
            real = getattr(Folder, name)
            monkeypatch.setattr(Folder, name, lambda *given, real=real: self.lives(real, *given))
        delete = Folder.delete
        monkeypatch.setattr(
            Folder,
            "delete",
            lambda folder, names: [self.lives(delete, folder, [one]) for one in names],
        )

    def lives(self, real, *given):
        dies, self.seen = self.seen == self.at, self.seen + 1
        if dies and not self.after:
            raise Killed
        real(*given)
        if dies:
            raise Killed


@pytest.mark.long
def test_deaths_and_lost_replies_at_each_operation_of_a_purge_on_s3(
    cloud, campaigns, monkeypatch, tmp_path
):
    rng, tried, broken = random.Random(campaigns.seed), 0, []
    place, options = f"s3://{BUCKET}/{uuid.uuid4().hex}", cloud.options()
    with monkeypatch.context() as patch:
        # one file for each array: each is a request, and many of each trial
        patch.setattr(layout, "FEWEST_BLOCKS", campaigns.size(1, layout.FEWEST_BLOCKS))
        names = built(place, options)
    kept, before = cloud.objects(place), inbox_files(place, options)

    def copied(url):
        folder = tmp_path / uuid.uuid4().hex
        cloud.copy(url, folder)
        return str(folder)

    def trial(what, act):
        cloud.restore(place, kept)
        error = act()
        try:
            require(place, names, before, error, options, copied)
        except (AssertionError, StreamingMomentsError, OSError) as failure:
            broken.append(f"{what}: {failure!r}")

    def dying(at, after):
        def act():
            with monkeypatch.context() as patch:
                disk = Dying(patch, at, after)
                try:
                    purged(place, [names[1]], options)
                except Killed:
                    return "killed"
                finally:
                    seen.append(disk.seen)
            return None

        return act

    def suffering(fault):
        def act():
            cloud.proxy.suffer(fault)
            try:
                purged(place, [names[1]], cloud.options(proxied=True))
            except StreamingMomentsError as error:
                return error
            finally:
                cloud.proxy.calm()
            return None

        return act

    seen = []
    trial("undisturbed", dying(-1, False))
    every = [(at, after) for at in range(seen[0]) for after in (False, True)]
    for at, after in every if campaigns.long else rng.sample(every, 4):
        trial(f"dies {'after' if after else 'before'} change {at}", dying(at, after))
        tried += 1
    for start in range(60) if campaigns.long else rng.sample(range(60), 2):
        trial(f"lost reply {start}", suffering(Fault("lost reply", start, 3)))
        tried += 1
    for start in range(4):
        trial(f"lost commit {start}", suffering(Fault("lost reply", start, 1, commits=True)))
        tried += 1
    print("\n".join(broken))
    campaigns.record("purge of an inbox on S3", tried, tried - len(broken), f"{seen[0]} changes")
