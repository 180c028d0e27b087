"""Random histories of three sites and a hub beside a recount, and merges that are killed."""

import contextlib
import dataclasses
import random
import signal
from collections import Counter
from datetime import timedelta
from itertools import count

import pytest
from forking import PATIENCE, forking
from growing import TERMS, compact, forget, recount, segment, segments_by_era
from killable_cluster import die_after
from mortal_folder import Killed, Mortal, Sleeping
from s3_server import s3_process, with_bucket
from unreliable_proxy import KINDS, Fault, UnreliableProxy

from streaming_moments.errors import ForeignStatistics, StoreError, StreamingMomentsError
from streaming_moments.pipelines.jobs.sites.merge import in_turn
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.log.origins import name_in
from streaming_moments.storage.merging.counted_once import ShardsRefused
from streaming_moments.storage.merging.pulling import drop_origin, pull, pull_together
from streaming_moments.storage.operations.expiry import expire
from streaming_moments.storage.operations.forgetting import commit_recount
from streaming_moments.storage.operations.growth import grow
from streaming_moments.storage.operations.history import rollback
from streaming_moments.storage.operations.purges.purging import holdings_of, ledger_of_all
from streaming_moments.storage.shards import ShardFormat
from streaming_moments.storage.store.changes import Recount
from streaming_moments.storage.store.garbage import collect, find_garbage
from streaming_moments.storage.store.store import MomentStore
from streaming_moments.testing.small_store import (
    BASIS,
    VOCABULARY,
    append,
    create,
    purge,
    sum_beside,
    total,
)

pytestmark = pytest.mark.usefixtures("few_blocks")
SITES = ("berlin", "oslo", "rome")


@dataclasses.dataclass
class Site:
    """A store, and what each of its versions must hold: seed and number of words by shard."""

    store: MomentStore
    states: dict

    @property
    def now(self):
        return self.states[self.store.version]

    @property
    def words(self):
        return self.store.basis.n_words

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
    moved: set = dataclasses.field(default_factory=set)
    seeds: count = dataclasses.field(default_factory=count)
    done: Counter = dataclasses.field(default_factory=Counter)

    def step(self):
        name = self.rng.choice(SITES)
        at_hub = (self.pulled, self.pulled, self.killed, self.hub_counts, self.rolled_back)
        at_hub = (*at_hub, self.summed, self.expired, self.dropped, self.collected, self.grown)
        at_hub = (*at_hub, self.met, self.met, self.pulled_all, self.pulled_all)
        chance = self.rng.random()
        if chance < 0.5:
            self.rng.choice(at_hub)(name)
        elif chance < 0.6:
            self.swapped(name)
        else:
            self.changed(self.sites[name], name)
        self.require()

    def fresh(self, place):
        seed = next(self.seeds)
        kinds = (f"/{place}/{seed}", f"/data/{seed % 4}", f"s3://data/{seed}")
        return self.rng.choice(kinds), seed

    def changed(self, site, name):
        rng, now = self.rng, site.now
        acts = ["append", "append", "compact", "rollback", "expire", "grow"]
        acts += ["forget", "replace", "purge"] if now else []
        act = rng.choice(acts)
        url, seed = self.fresh(name)
        if act == "append":
            if url not in now and (name, url) not in self.purged:
                self.counts(site, {url: seed})
        elif act == "compact":
            if site.store.commit.segments:
                site.did(compact(site.store), now)
        elif act == "rollback":
            version = rng.choice([v for v in site.states if site.store.commit.keeps(v)])
            site.did(rollback(site.store, version), site.states[version])
        elif act == "expire":
            site.did(expire(site.store, rng.randrange(1, 4), timedelta(0))[0], now)
        elif act == "grow":
            self.grows(site)
        else:
            url = rng.choice(sorted(now))
            if act == "forget":
                self.forgets(site, url)
            elif act == "purge":
                if url in self.moved:
                    return  # another site has it in its versions
                self.purged.add((name, url))
                left = {other: one for other, one in now.items() if other != url}
                site.did(purge(site.store, [url], segment), left)
            else:
                old, new = segments_by_era(site.store, {url: now[url]}), next(self.seeds)
                added = (segment(site.store, {url: new}),)
                store = commit_recount(site.store, Recount("replace", "", added, old))
                site.did(store, {**now, url: (new, site.words)})
        self.done[act] += 1

    def counts(self, site, shards):
        own = {url: (seed, site.words) for url, seed in shards.items()}
        site.did(site.store.append(segment(site.store, shards)), {**site.now, **own})

    def forgets(self, site, url):
        left = {other: one for other, one in site.now.items() if other != url}
        site.did(forget(site.store, {url: site.now[url]}), left)

    def grows(self, site):
        """Add the next words; rarely two at once, so that some stores do not add up."""
        number = 2 if self.rng.random() < 0.1 else 1
        if site.words + number <= len(TERMS):
            site.did(grow(site.store, TERMS[site.words : site.words + number]), site.now)

    def swapped(self, name):
        """Shards of two sites change places, or one moves."""
        other = self.rng.choice([one for one in SITES if one != name])
        sites = self.sites[name], self.sites[other]
        shards = []
        for one, there in zip(sites, (other, name), strict=True):
            able = [
                url
                for url in one.now
                if url.startswith("s3://") and (there, url) not in self.purged
            ]
            shards += [(one, url, one.now[url][0]) for url in able[-1:]]
        if not shards or (len(shards) == 2 and shards[0][1] == shards[1][1]):
            return
        for one, url, _ in shards:
            self.forgets(one, url)
        for one, url, seed in shards:
            self.moved.add(url)
            into = sites[one is sites[0]]
            if url not in into.now:
                self.counts(into, {url: seed})
                self.done["move"] += 1

    def held(self):
        """What the hub must hold by the versions that its commit names."""
        origins = self.hub.store.commit.origins
        return {name: self.sites[name].states[one.version] for name, one in origins.items()}

    def up_to_date(self):
        """Sites of which the hub holds the latest version."""
        origins = self.hub.store.commit.origins
        versions = {name: one.version for name, one in origins.items()}
        return {name for name, at in self.sites.items() if versions.get(name) == at.store.version}

    def adds_up(self, name):
        """Whether all words of a site are in the hub, or can follow."""
        mine, theirs = (sizes(one.store) for one in (self.hub, self.sites[name]))
        if not (mine >= theirs or theirs >= mine):
            return False
        if self.hub.words in theirs:
            mine |= {one for one in theirs if one > self.hub.words}
        parts = self.sites[name].store.commit.segments
        return {part.words or self.sites[name].words for part in parts} <= mine

    def conflict(self, *names):
        """Whether shards count twice after pulls of sites."""
        own, origins = self.hub.now
        after = {**origins, **{name: self.sites[name].now for name in names}}
        urls = [name_in(name, url) for name, held in after.items() for url in held] + [*own]
        return len(set(urls)) < len(urls)

    def pulled(self, name):
        """A pull is refused if shards count twice or words differ, and only then."""
        hub, site = self.hub, self.sites[name]
        own, origins = hub.now
        refused = () if self.adds_up(name) else (ForeignStatistics,)
        refused += (ShardsRefused,) if self.conflict(name) else ()
        before = hub.store.version
        if refused:
            with pytest.raises(refused):
                pull(hub.store, site.store, name)
            hub.did(hub.store, hub.now)
            assert all(one.operation == "grow" for one in hub.store.log(before + 1))
            self.done["refused"] += 1
            return
        hub.did(pull(hub.store, site.store, name).store, (own, {**origins, name: site.now}))
        assert self.held() == hub.now[1]
        self.done["pull"] += 1

    def pulled_all(self, _):
        """All sites in turn: only those are left that cannot be pulled, alone or together."""
        own, _ = self.hub.now
        sites = {site.store.url: site for site in self.sites.values()}

        def take(store, urls):
            return pull_together(store, [sites[url].store for url in urls])

        refused = False
        try:
            in_turn(self.hub.store, self.rng.sample(sorted(sites), len(sites)), take)
        except (ForeignStatistics, ShardsRefused):
            refused = True
        self.hub.store = self.hub.store.latest()
        self.hub.did(self.hub.store, (own, self.held()))
        left = [name for name in SITES if name not in self.up_to_date()]
        assert refused == bool(left)
        for name in left:
            assert not self.adds_up(name) or self.conflict(name)
        words = [sizes(self.sites[name].store) for name in left]
        nested = all(one <= other or other <= one for one in words for other in words)
        assert not left or not nested or not all(map(self.adds_up, left)) or self.conflict(*left)
        self.done["all refused" if refused else "all"] += 1

    def killed(self, name):
        """A merge dies at a drawn operation; the hub is as before, or as after it."""
        hub, before = self.hub, self.hub.store.version
        after = hub.now[0], {**hub.now[1], name: self.sites[name].now}
        folder = Mortal(hub.store.url, None, self.rng.randrange(80), after=self.rng.random() < 0.5)
        with contextlib.suppress(Killed, ForeignStatistics, ShardsRefused):
            pull(dataclasses.replace(hub.store, folder=folder), self.sites[name].store, name)
        latest, now = hub.store.latest(), hub.now
        # it may also have deleted what dead pulls left, which is a commit of its own
        done = any(commit.operation == "merge" for commit in latest.log(before + 1))
        hub.did(latest, after if done else now)
        self.done["kill"] += 1

    def met(self, name):
        """While a merge runs, its site changes, or another merge runs, or garbage is collected."""
        hub, site = self.hub, self.sites[name]
        if not self.adds_up(name) or self.conflict(name):
            return
        acts = (
            lambda: self.changed(site, name),
            lambda: pull(hub.store, site.store, name),
            lambda: collect(hub.store.folder, find_garbage(hub.store.folder, timedelta(0))),
        )
        meanwhile, at_site = self.rng.choice(acts), self.rng.random() < 0.5
        place, own = (site if at_site else hub), hub.now[0]
        slow = Sleeping(place.store.url, None, self.rng.randrange(20 if at_site else 80), meanwhile)
        asleep = dataclasses.replace(place.store, folder=slow)
        pair = (hub.store, asleep) if at_site else (asleep, site.store)
        # what another one has collected, or words that do not fit any more, may refuse it
        with contextlib.suppress(StoreError, ForeignStatistics, ShardsRefused):
            pull(*pair, name)
        hub.store = hub.store.latest()
        hub.did(hub.store, (own, self.held()))
        self.done["met"] += 1

    def collected(self, name):
        """Garbage of dead merges goes, and so do old versions of a site."""
        folder, site = self.hub.store.folder, self.sites[name]
        collect(folder, find_garbage(folder, timedelta(0)))
        self.hub.did(self.hub.store, self.hub.now)
        site.did(expire(site.store, 1, timedelta(0))[0], site.now)

    def grown(self, _):
        self.grows(self.hub)

    def hub_counts(self, _):
        own, origins = self.hub.now
        url, seed = self.fresh("hub")
        if url not in own:
            store = self.hub.store.append(segment(self.hub.store, {url: seed}))
            self.hub.did(store, ({**own, url: (seed, self.hub.words)}, origins))

    def rolled_back(self, _):
        hub = self.hub
        version = self.rng.choice([v for v in hub.states if hub.store.commit.keeps(v)])
        hub.did(rollback(hub.store, version), hub.states[version])

    def summed(self, _):
        parts = [part for part in self.hub.store.commit.segments if part.sign > 0]
        parts = [part for part in parts if part.words == parts[-1].words]
        if len(parts) > 1 and not self.hub.store.commit.sums:
            self.hub.did(sum_beside(self.hub.store, parts), self.hub.now)

    def expired(self, _):
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
        shards = [*own.values(), *(shard for held in origins.values() for shard in held.values())]
        store = MomentStore.open(self.hub.store.url)
        assert store.load() == recount(store, shards)
        assert len(store.ledger()) == len(shards)
        assert set(store.commit.origins) == set(origins)


def sizes(store):
    """Numbers of words that a store has had."""
    return frozenset({store.basis.n_words, *(era.words for era in store.commit.lineage.eras)})


def history(rng, folder):
    hub = create(folder / "hub")
    sites = {name: Site(create(folder / name), {0: {}}) for name in SITES}
    return History(rng, sites, Site(hub, {0: ({}, {})}))


def test_a_hub_is_one_store_that_counted_all_shards(campaigns, tmp_path):
    tried, done = campaigns.size(3, 200), Counter()
    for number in range(tried):
        folder = tmp_path / str(number)
        folder.mkdir()
        one = history(random.Random(campaigns.seed + number), folder)
        for _ in range(campaigns.size(25, 40)):
            one.step()
        # what was purged at a site is nowhere once the hub has pulled it
        for name in SITES:
            if one.adds_up(name) and not one.conflict(name):
                one.pulled(name)
        store = one.hub.store
        collect(store.folder, find_garbage(store.folder, timedelta(0)))
        store = store.latest()
        assert MomentStore.open(store.url).verify() == []
        log = store.log()
        pulled = one.up_to_date()
        gone = {name_in(name, url) for name, url in one.purged if name in pulled}
        assert holdings_of(log, ledger_of_all(store.folder, log), gone).versions == ()
        done += one.done
    campaigns.record("histories of three sites and a hub", tried, tried, told(done))


def told(done):
    """How often each action was tried."""
    return ", ".join(f"{act} {number}" for act, number in sorted(done.items()))


def merge(hub, sites, options=None):
    for number, site in enumerate(sites):
        store = MomentStore.open(hub, storage_options=options)
        pull(store, MomentStore.open(site, storage_options=options), f"site{number}")


def merge_until(steps, *arguments):
    """`merge`, killed after so many steps of what it writes."""
    die_after(steps, (Folder, "sync"), (Folder, "link"))
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
        # the files of this one are copied, those of others get second names
        for file in (folder / "0").rglob("c.*"):
            file.chmod(0o600)
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
                # what the dead merge copied goes, and so do old versions of a site
                if rng.random() < 0.3:
                    collect(store.folder, find_garbage(store.folder, timedelta(0)))
                    expire(MomentStore.open(rng.choice(sites)), 1, timedelta(0))
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
