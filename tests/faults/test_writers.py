"""Many writers at once, in real processes, one of them with a clock that is days off."""

import itertools
import json
import os
import subprocess
import sys
import time
import uuid
from collections import Counter
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import boto3
import pytest
from forking import forking

from streaming_moments.errors import StoreError
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.log.commit_log import CommitConflict, CommitLog
from streaming_moments.storage.log.commits import Commit, Lineage
from streaming_moments.storage.log.ledger import ShardsAlreadyCounted
from streaming_moments.storage.shards import ShardFormat
from streaming_moments.storage.store.garbage import collect, find_garbage
from streaming_moments.storage.store.store import MomentStore
from streaming_moments.testing.small_store import (
    BASIS,
    VOCABULARY,
    append,
    create,
    model_of,
    record,
    segment,
    total,
)

GROUP = 2  # shards to a commit
DAY = 86400


@pytest.fixture(scope="module")
def processes():
    """New processes that have the imports behind them, so that they truly race."""
    return forking()


def run_all(processes, function, arguments):
    """What `function(*own, barrier)` returns in a process for each of the arguments."""
    barrier, results = processes.Barrier(len(arguments)), processes.Queue()
    workers = [
        processes.Process(target=reported, args=(results, function, *own, barrier))
        for own in arguments
    ]
    for worker in workers:
        worker.start()
    try:
        return [results.get(timeout=1200) for _ in workers]
    finally:
        for worker in workers:
            worker.join(20)
            worker.kill()


def reported(results, function, *arguments):
    try:
        results.put(function(*arguments))
    except BaseException as error:
        results.put(error)
        raise


def write(url, options, name, wanted, barrier):
    """Count the shards wanted, in groups; without those that another writer was first with.

    Returns the messages of the commits made, and how often others were first.
    """
    store = MomentStore.open(url, storage_options=options)
    barrier.wait()
    made, overtaken = [], 0
    urls = list(wanted)
    for start in range(0, len(urls), GROUP):
        group = {url: wanted[url] for url in urls[start : start + GROUP]}
        while group:
            message = f"{name}: {' '.join(group)}"
            try:
                store = append(store, group, message)
            except ShardsAlreadyCounted as told:
                overtaken += 1
                group = {url: seed for url, seed in group.items() if url not in told.urls}
                continue
            made.append(message)
            break
    return made, overtaken


def wishes(writers, overlapping):
    """Shards by writer; each is wanted by three writers if they overlap."""
    share = 2 * GROUP
    shards = {f"s{i:03}": i for i in range(writers * share)}
    urls = list(shards)
    copies = min(3, writers) if overlapping else 1
    wanted = [
        [url for copy in range(copies) for url in urls[(writer + copy) % writers :: writers]]
        for writer in range(writers)
    ]
    return shards, [{url: shards[url] for url in own} for own in wanted]


def problem_after(store, shards, answers):
    """What the store holds else than every shard once; empty if nothing."""
    failed = [answer for answer in answers if isinstance(answer, BaseException)]
    if failed:
        return f"a writer failed: {failed[0]!r}"
    made = [message for messages, _ in answers for message in messages]
    log = store.log()
    if sorted(commit.message for commit in log[:-1]) != sorted(made):
        return f"{len(log) - 1} commits in the log, {len(made)} reported"
    if Counter(entry.url for entry in store.ledger()) != Counter(list(shards)):
        return "a shard is not counted exactly once"
    if set(store.ledger()) != {record(*shard) for shard in shards.items()}:
        return "another ledger"
    if store.load() != total(shards.values()):
        return "other statistics"
    if store.verify():
        return f"verify: {store.verify()}"
    return ""


@pytest.mark.parametrize("overlapping", [False, True], ids=["disjoint", "overlapping"])
def test_no_commit_is_lost_and_no_shard_counted_twice(processes, tmp_path, campaigns, overlapping):
    commits = overtaken = held = rounds = 0
    for writers in campaigns.size([2, 8], [2, 8, 16] * 5):
        root = tmp_path / str(rounds)
        create(root)
        shards, wanted = wishes(writers, overlapping)
        answers = run_all(
            processes,
            write,
            [(str(root), None, f"w{number}", own) for number, own in enumerate(wanted)],
        )
        store = MomentStore.open(str(root))
        problem = problem_after(store, shards, answers)
        if problem:
            print(f"{writers} writers: {problem}")
        else:
            commits += store.version
            overtaken += sum(times for _, times in answers)
        held += not problem
        rounds += 1
    assert overtaken or not overlapping
    kind = "overlapping" if overlapping else "disjoint"
    note = f"{commits} commits, {overtaken} times another was first"
    campaigns.record(f"rounds of up to 16 writers, {kind} shards", rounds, held, note)


def test_sixteen_writers_share_a_store_on_s3(processes, campaigns):
    if not campaigns.long:
        pytest.skip("a minute and more: runs in the long form")
    from s3_server import S3Server

    server = S3Server()
    server.start()
    host, port = server.get_host_and_port()
    options = {"endpoint_url": f"http://{host}:{port}", "key": "user", "secret": "secret"}
    url = f"s3://cloud/{uuid.uuid4().hex}"
    try:
        boto3.client(
            "s3",
            endpoint_url=options["endpoint_url"],
            aws_access_key_id="user",
            aws_secret_access_key="secret",
            region_name="us-east-1",
        ).create_bucket(Bucket="cloud")
        store = MomentStore.create(
            url, VOCABULARY, None, BASIS, ShardFormat(), storage_options=options
        )
        shards, wanted = wishes(16, overlapping=True)
        few = [dict(list(own.items())[: 2 * GROUP]) for own in wanted]
        answers = run_all(
            processes,
            write,
            [(url, options, f"w{number}", own) for number, own in enumerate(few)],
        )
        shards = {name: seed for own in few for name, seed in own.items()}
        store = store.latest()
        problem = problem_after(store, shards, answers)
        print(problem)
        campaigns.record("rounds of 16 writers on S3", 1, not problem, f"{store.version} commits")
    finally:
        server.stop()


def race(path, races, barrier):
    """Transactions by which this process won, by version."""
    log, won = CommitLog(Folder.at(path)), {}
    lineage = Lineage("a" * 64, "b" * 64, 4, True, {"kind": "text"})
    for version in range(races):
        commit = replace(Commit.first(lineage, ""), version=version)
        barrier.wait()
        try:
            log.put(commit)
        except CommitConflict:
            continue
        won[version] = commit.transaction
    return won


def test_of_eight_processes_one_wins_each_version(processes, tmp_path, campaigns):
    races = campaigns.size(100, 2000)
    answers = run_all(processes, race, [(str(tmp_path), races)] * 8)
    log = CommitLog(Folder.at(str(tmp_path)))
    winners = [
        [own[version] for own in answers if version in own] == [log.read(version).transaction]
        for version in range(races)
    ]
    assert not list(tmp_path.rglob("*.partial"))
    shares = "/".join(str(len(own)) for own in answers)
    campaigns.record("races of 8 processes for one version", races, sum(winners), f"won {shares}")


def live_with_a_clock_off_by(days, path, barrier):
    """What a writer does whose own clock is wrong: commits, collects garbage, is refused."""
    shift = timedelta(days=days)
    real = time.time

    class Shifted(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime.fromtimestamp(real(), tz) + shift

    # in this process only, for all that looks at the time
    time.time = lambda: real() + days * DAY
    for name, module in list(sys.modules.items()):
        if name.startswith("streaming_moments") and vars(module).get("datetime") is datetime:
            module.datetime = Shifted
    store = MomentStore.open(path)
    barrier.wait()
    store = append(store, {f"clock{days}": 50}, f"clock {days}")
    store = store.save_model(f"m{days}", model_of(1))
    collect(store.folder, find_garbage(store.folder))
    stale = segment(store, {f"stale{days}": 60})
    then = real() - 4.5 * DAY
    for file in Path(path, "segments", stale.reference.id).rglob("*"):
        os.utime(file, (then, then))
    try:
        store.append(stale)
    except StoreError as error:
        return str(error), [commit.time for commit in store.log() if str(days) in commit.message]
    return "not refused", []


def test_a_writer_whose_clock_is_off_harms_nothing(processes, tmp_path, campaigns):
    root = tmp_path / "store"
    store = append(create(root), {"a": 1})
    # begun by a writer with the right time, that commits after all the others
    begun = segment(store, {"b": 2})
    offs = [-1, 1, -30, 30]
    answers = run_all(processes, live_with_a_clock_off_by, [(days, str(root)) for days in offs])
    refused = [answer for answer in answers if "begun 4.5 days ago" in answer[0]]
    campaigns.record("writers whose clock is off by days", len(offs), len(refused))
    store = store.append(begun)
    log = store.log()
    assert [commit.version for commit in log] == list(range(len(log) - 1, -1, -1))
    assert all(new.parent == old.transaction for new, old in itertools.pairwise(log))
    times = [datetime.fromisoformat(commit.time) for commit in log]
    assert times != sorted(times, reverse=True), "no clock was off"
    assert max(times) - min(times) > timedelta(days=59)
    assert store.load() == total([1, 2, 50, 50, 50, 50])
    assert MomentStore.open(str(root)).verify() == []
    # the four stale segments are 4.5 days old
    assert find_garbage(store.folder) == []
    assert len(find_garbage(store.folder, timedelta(days=4))) == 4
    shown = subprocess.run(
        [sys.executable, "-m", "streaming_moments", "log", str(root), "--json"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert shown.returncode == 0, shown.stderr
    assert [line["version"] for line in json.loads(shown.stdout)["commits"]] == [
        commit.version for commit in log
    ]
