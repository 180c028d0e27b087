"""Random histories of three sites and a hub beside a recount, and merges that are killed."""

import contextlib
import dataclasses
import random
import signal
from datetime import timedelta
from itertools import count

import pytest
from forking import PATIENCE, forking
from killable_cluster import die_after
from mortal_folder import Killed, Mortal
from s3_server import s3_process, with_bucket
from unreliable_proxy import KINDS, Fault, UnreliableProxy

from streaming_moments.errors import StreamingMomentsError
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.log.origins import name_in
from streaming_moments.storage.merging.pulling import drop_origin, pull
from streaming_moments.storage.operations.expiry import expire
from streaming_moments.storage.operations.history import rollback
from streaming_moments.storage.operations.purging import holdings_of, ledger_of_all
from streaming_moments.storage.shards import ShardFormat
from streaming_moments.storage.store.garbage import collect, find_garbage
from streaming_moments.storage.store.store import MomentStore
from streaming_moments.testing.small_store import (
    BASIS,
    VOCABULARY,
    append,
    compact,
    create,
    forget,
    purge,
    replace,
    sum_beside,
    total,
)

pytestmark = pytest.mark.usefixtures("few_blocks")
SITES = ("berlin", "oslo", "rome")


@dataclasses.dataclass
class Site:
    """A store, and what each of its versions must hold: seeds by shard."""

    store: MomentStore
    states: dict

    @property
    def now(self):
        return self.states[self.store.version]

    def did(self, store, state):
        self.store = store.latest()
        self.states.setdefault(self.store.version, state)


@dataclasses.dataclass
class History:
    """Three sites and a hub; of the hub, each version holds its own shards and those by origin."""

    rng: random.Random
    sites: dict
    hub: Site
    purged: set = dataclasses.field(default_factory=set)
    seeds: count = dataclasses.field(default_factory=count)

    def step(self):
        name = self.rng.choice(SITES)
        at_hub = (self.pulled, self.pulled, self.killed, self.hub_counts, self.rolled_back)
        at_hub = (*at_hub, self.summed, self.expired, self.dropped)
        if self.rng.random() < 0.5:
            self.rng.choice(at_hub)(name)
        else:
            self.changed(self.sites[name], name)
        self.require()

    def fresh(self, place):
        seed = next(self.seeds)
        kinds = (f"/{place}/{seed}", f"/data/{seed % 4}", f"s3://data/{seed}")
        return self.rng.choice(kinds), seed

    def changed(self, site, name):
        rng, now = self.rng, site.now
        acts = ["append", "append", "compact", "rollback", "expire"]
        acts += ["forget", "replace", "purge"] if now else []
        act = rng.choice(acts)
        url, seed = self.fresh(name)
        if act == "append":
            if url not in now and (name, url) not in self.purged:
                site.did(append(site.store, {url: seed}), {**now, url: seed})
        elif act == "compact":
            if site.store.commit.segments:
                site.did(compact(site.store), now)
        elif act == "rollback":
            version = rng.choice([v for v in site.states if site.store.commit.keeps(v)])
            site.did(rollback(site.store, version), site.states[version])
        elif act == "expire":
            site.did(expire(site.store, rng.randrange(1, 4), timedelta(0))[0], now)
        else:
            url = rng.choice(sorted(now))
            left = {other: one for other, one in now.items() if other != url}
            if act == "forget":
                site.did(forget(site.store, {url: now[url]}), left)
            elif act == "purge":
                self.purged.add((name, url))
                site.did(purge(site.store, [url]), left)
            else:
                new = {url: next(self.seeds)}
                site.did(replace(site.store, {url: now[url]}, new), {**now, **new})

    def after_pull(self, name):
        own, origins = self.hub.now
        return own, {**origins, name: self.sites[name].now}

    def pulled(self, name):
        after = self.after_pull(name)
        self.hub.did(pull(self.hub.store, self.sites[name].store, name).store, after)

    def killed(self, name):
        """A merge dies at a drawn operation; the hub is as before, or as after it."""
        hub, after = self.hub, self.after_pull(name)
        before = hub.store.version
        folder = Mortal(hub.store.url, None, self.rng.randrange(80), after=self.rng.random() < 0.5)
        with contextlib.suppress(Killed):
            pull(dataclasses.replace(hub.store, folder=folder), self.sites[name].store, name)
        latest, now = hub.store.latest(), hub.now
        # it may also have deleted what dead pulls left, which is a commit of its own
        done = any(commit.operation == "merge" for commit in latest.log(before + 1))
        hub.did(latest, after if done else now)

    def hub_counts(self, name):
        own, origins = self.hub.now
        url, seed = self.fresh("hub")
        if url not in own:
            self.hub.did(append(self.hub.store, {url: seed}), ({**own, url: seed}, origins))

    def rolled_back(self, name):
        hub = self.hub
        version = self.rng.choice([v for v in hub.states if hub.store.commit.keeps(v)])
        hub.did(rollback(hub.store, version), hub.states[version])

    def summed(self, name):
        parts = [part for part in self.hub.store.commit.segments if part.sign > 0]
        if len(parts) > 1 and not self.hub.store.commit.sums:
            self.hub.did(sum_beside(self.hub.store, parts), self.hub.now)

    def expired(self, name):
        now = self.hub.now
        self.hub.did(expire(self.hub.store, self.rng.randrange(1, 4), timedelta(0))[0], now)

    def dropped(self, name):
        own, origins = self.hub.now
        if name in origins and self.rng.random() < 0.3:
            left = {key: one for key, one in origins.items() if key != name}
            self.hub.did(drop_origin(self.hub.store, name), (own, left))

    def require(self):
        """The hub holds what one store would hold that counted these shards."""
        own, origins = self.hub.now
        seeds = [*own.values(), *(seed for held in origins.values() for seed in held.values())]
        store = MomentStore.open(self.hub.store.url)
        assert store.load() == total(seeds)
        assert len(store.ledger()) == len(seeds)
        assert set(store.commit.origins) == set(origins)


def history(rng, folder):
    hub = create(folder / "hub")
    sites = {name: Site(create(folder / name), {0: {}}) for name in SITES}
    return History(rng, sites, Site(hub, {0: ({}, {})}))


def test_a_hub_is_one_store_that_counted_all_shards(campaigns, tmp_path):
    tried = campaigns.size(3, 200)
    for number in range(tried):
        folder = tmp_path / str(number)
        folder.mkdir()
        one = history(random.Random(campaigns.seed + number), folder)
        for _ in range(campaigns.size(25, 40)):
            one.step()
        # what was purged at a site is nowhere once the hub has pulled it
        for name in SITES:
            one.pulled(name)
        store = one.hub.store
        collect(store.folder, find_garbage(store.folder, timedelta(0)))
        store = store.latest()
        assert MomentStore.open(store.url).verify() == []
        log = store.log()
        gone = {name_in(name, url) for name, url in one.purged}
        assert holdings_of(log, ledger_of_all(store.folder, log), gone).versions == ()
    campaigns.record("histories of three sites and a hub", tried, tried)


def merge(hub, sites, options=None):
    for number, site in enumerate(sites):
        store = MomentStore.open(hub, storage_options=options)
        pull(store, MomentStore.open(site, storage_options=options), f"site{number}")


def merge_until(steps, *arguments):
    """`merge`, killed after so many steps of what it writes."""
    die_after(steps, (Folder, "sync"))
    merge(*arguments)


def run_one(work, *arguments):
    process = forking().Process(target=work, args=arguments)
    process.start()
    process.join(PATIENCE)
    assert process.exitcode is not None, "it hangs"
    return process.exitcode


def test_merges_that_are_killed_go_on(campaigns, tmp_path):
    rng, kills, held = random.Random(campaigns.seed), campaigns.size(4, 200), 0
    while held < kills:
        folder = tmp_path / str(held)
        folder.mkdir()
        hub = create(folder / "hub").url
        sites = [append(create(folder / f"{one}"), {f"/{one}": one}).url for one in range(3)]
        for seed in (5, 7):
            while True:
                steps = rng.randrange(200) if held < kills else 10**6
                ended = run_one(merge_until, steps, hub, sites)
                store = MomentStore.open(hub)
                numbers = sorted(int(one.fingerprint.partition(":")[2]) for one in store.ledger())
                assert store.load() == total(numbers)
                assert store.verify() == []
                if ended == 0:
                    break
                assert ended == -signal.SIGKILL
                held += 1
            assert set(numbers) >= {0, 1, 2}
            append(MomentStore.open(sites[0]), {f"/{seed}": seed})
        merge(hub, sites)
        assert MomentStore.open(hub).load() == total([0, 1, 2, 5, 7])
    campaigns.record("merges killed by SIGKILL", held, held)


def test_merges_lose_no_reply_of_a_bucket(campaigns, monkeypatch):
    with s3_process() as (host, port):
        direct = with_bucket(host, port, "sites")
        proxy = UnreliableProxy(host, port)
        try:
            faulty = {**direct, "client_kwargs": {**direct.get("client_kwargs", {})}}
            faulty["endpoint_url"] = proxy.url
            faulty["config_kwargs"] = {"retries": {"total_max_attempts": 1}}
            monkeypatch.setattr("s3fs.S3FileSystem.retries", 1)
            _merged_under_faults(campaigns, direct, faulty, proxy)
        finally:
            proxy.stop()


def _merged_under_faults(campaigns, direct, faulty, proxy):
    rng, tried, met = random.Random(campaigns.seed), campaigns.size(2, 50), 0

    def made(url):
        return MomentStore.create(
            url, VOCABULARY, None, BASIS, ShardFormat(), storage_options=direct
        )

    hub, site = made("s3://sites/hub"), made("s3://sites/site")
    for seed in range(tried):
        site = append(site, {f"/{seed}": seed})
        while True:
            proxy.suffer(Fault(rng.choice(KINDS), rng.randrange(60), rng.choice([1, 2, 4])))
            try:
                merge(hub.url, [site.url], faulty)
                done = True
            except StreamingMomentsError:
                done = False
            met += proxy.calm() > 0
            store = MomentStore.open(hub.url, storage_options=direct)
            numbers = sorted(int(one.fingerprint.partition(":")[2]) for one in store.ledger())
            assert numbers == list(range(len(numbers)))
            assert store.load() == total(numbers)
            if done:
                break
        assert len(numbers) == seed + 1
    campaigns.record("merges on S3 with lost replies", tried, tried, f"{met} faults met")
