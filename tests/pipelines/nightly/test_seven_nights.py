"""Seven nights on a real S3 server with a Dask cluster: models, numbers, codes and reports."""

import json
import os
import signal
import time
from dataclasses import dataclass, field

import numpy as np
import pytest
from campaigns import few_row_blocks
from distributed import LocalCluster
from forking import Descriptor, forking
from s3_server import client_with_bucket, s3_process

from streaming_moments import MomentStatistics
from streaming_moments.pipelines.command_line.entry import main
from streaming_moments.statistics.counts.batch import concatenate
from streaming_moments.storage.counting.reading import read_shard
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.store.store import MomentStore

BUCKET, KEY, SECRET = "nights", "night-key-5f0e", "night-secret-b3a9"
PATIENCE = 120
LETTERS = "abcdefghij"
# planted topics by their own words; the last is of nobody's vocabulary until it comes
SUBJECTS, COMMON, LENGTH = 5, 30, 45


def spelled(subject, number):
    """A word of letters alone: the tokeniser knows no digits."""
    return "xyzuvq"[subject] + LETTERS[number // 10] + LETTERS[number % 10]


def documents(rng, number, shares):
    """Documents of one subject each, with a fifth of common words."""
    rows = []
    for subject in rng.choice(len(shares), size=number, p=shares):
        own = np.minimum(rng.geometric(0.08, LENGTH), 40) - 1
        common = rng.integers(COMMON, size=LENGTH)
        is_own = rng.random(LENGTH) < 0.8
        rows.append(
            " ".join(
                spelled(subject, word) if mine else spelled(5, any_)
                for word, any_, mine in zip(own, common, is_own, strict=True)
            )
        )
    return "\n".join(rows).encode()


@pytest.fixture(scope="module")
def server():
    """URL of a real S3 server, in a process of its own."""
    with s3_process() as (host, port):
        yield f"http://{host}:{port}"


@pytest.fixture(scope="module")
def scheduler():
    cluster = LocalCluster(1, threads_per_worker=2, dashboard_address=None, memory_limit=0)
    try:
        yield cluster.scheduler_address
    finally:
        cluster.close(timeout=PATIENCE)


@dataclass
class Team:
    """A bucket that fills by day and a configuration that is run by night."""

    client: object
    options: dict
    folder: object
    scheduler: str
    capsys: object
    runs: list = field(default_factory=list)

    @property
    def store(self):
        return MomentStore.open(f"s3://{BUCKET}/store", storage_options=self.options)

    def put(self, name, content):
        self.client.put_object(Bucket=BUCKET, Key=f"shards/{name}", Body=content)

    def configured(self, topics="4", gates="", expiry="10m"):
        """Path of the configuration."""
        text = f"""
            store = "s3://{BUCKET}/store"
            shards = ["s3://{BUCKET}/shards/*/*.txt"]
            output = "s3://{BUCKET}/reports"
            lock_expiry = "{expiry}"

            [create]
            vocabulary_size = 300
            min_documents = 3
            max_document_fraction = 0.9
            max_topics = 6

            [refit]
            topics = {topics}
            alpha0 = 0.0

            [update]
            compact_after = 2
            compact_by = "all"

            [rebase]
            max_outside_share = 0.3
            not_again_for = "0s"

            [gates]
            max_coherence_drop = 0.2
            min_documents = 100
            min_topic_weight = 0.02
            {gates}

            [cluster]
            scheduler = "{self.scheduler}"

            [storage_options]
            endpoint_url = "{self.options["endpoint_url"]}"
            key = "{KEY}"
            secret = "{SECRET}"
        """
        path = self.folder / "night.toml"
        path.write_text(text)
        return str(path)

    def night(self, **choices):
        """Exit code, names of the steps, and the report."""
        code, steps, err = self.attempt(**choices)
        assert code in (0, 3, 10, 11), err
        report = json.loads(
            self.client.get_object(Bucket=BUCKET, Key="reports/latest.json")["Body"].read()
        )
        assert report["exit_code"] == code
        assert [step["step"] for step in report["steps"]] == steps[:-1]
        assert steps[-1] == "report"
        stored = self.client.get_object(Bucket=BUCKET, Key="reports/latest.html")
        assert stored["ContentType"] == "text/html", "a browser shows it"
        page = stored["Body"].read()
        assert f'datetime="{report["started"]}"' in page.decode()
        self.runs.append(report)
        return code, steps, report

    def attempt(self, **choices):
        with pytest.raises(SystemExit) as ended:
            main(["nightly", self.configured(**choices), "--json"])
        printed = self.capsys.readouterr()
        assert SECRET not in printed.out + printed.err
        steps = [json.loads(line)["step"] for line in printed.out.splitlines()]
        return ended.value.code or 0, steps, printed.err

    def killed_after(self, step):
        """A run in a process of its own that is killed as soon as it has done a step."""
        reading, writing = os.pipe()
        given = (self.configured(expiry="4s"), Descriptor(writing))
        process = forking().Process(target=_night, args=given)
        process.start()
        os.close(writing)
        with open(reading) as lines:
            for line in lines:
                if json.loads(line)["step"] == step:
                    process.kill()
                    break
            lines.read()
        process.join(PATIENCE)
        assert process.exitcode == -signal.SIGKILL

    def command(self, *arguments):
        with pytest.raises(SystemExit) as ended:
            main([*arguments, "--storage-options", json.dumps(self.options), "--json"])
        printed = self.capsys.readouterr()
        assert not ended.value.code, printed.err
        return json.loads(printed.out)


def _night(config, output):
    output.become(1)
    main(["nightly", config, "--json"])


@pytest.fixture
def team(server, scheduler, tmp_path, capsys):
    options = {"endpoint_url": server, "key": KEY, "secret": SECRET}
    client = client_with_bucket(server, BUCKET, KEY, SECRET)
    return Team(client, options, tmp_path, scheduler, capsys)


def subjects(report):
    """The planted topic that each topic of a report speaks of, by its number."""
    found = {}
    for topic in report["topics"]:
        initials = [word[0] for word in topic["relevant"][:5]]
        assert len(set(initials)) == 1, topic
        found[topic["topic"]] = initials[0]
    return found


@pytest.fixture
def one_block():
    """One file for each array: each is a request, and many of each night."""
    with few_row_blocks(1):
        yield


@pytest.mark.long
@pytest.mark.usefixtures("one_block")
def test_seven_nights(team):
    rng = np.random.default_rng(7)

    # the first night makes the store
    team.put("2026-11-15/a.txt", documents(rng, 90, [0.4, 0.3, 0.2, 0.1]))
    team.put("2026-11-15/b.txt", documents(rng, 60, [0.4, 0.3, 0.2, 0.1]))
    code, steps, report = team.night()
    assert (code, report["outcome"], report["counted"]) == (0, "published", 2)
    assert steps == [
        "list",
        "create",
        "update",
        "drift",
        "refit",
        "judge",
        "publish",
        "report",
    ]
    first = subjects(report)
    assert sorted(first.values()) == ["u", "x", "y", "z"]
    assert team.store.commit.tags == {"published": report["model"]}

    # the second brings other shares: without matching, the numbers would change
    team.put("2026-11-16/a.txt", documents(rng, 220, [0.05, 0.15, 0.2, 0.6]))
    code, steps, report = team.night()
    assert (code, report["counted"]) == (0, 1)
    assert subjects(report) == first
    weights = [topic["weight"] for topic in report["topics"]]
    assert weights != sorted(weights, reverse=True), "the test has lost its point"
    assert [pair["before"] for pair in report["matching"]["kept"]] == [0, 1, 2, 3]
    assert 0 < report["drift"]["pair_distance"] < 1
    assert report["status"]["days"] == ["2026-11-15", "2026-11-16"]

    # the third brings nothing
    version = team.store.version
    code, steps, report = team.night()
    assert (code, steps, report["outcome"]) == (10, ["list", "update", "report"], "nothing new")
    assert team.store.version == version

    # on the fourth one shard is no text
    team.put("2026-11-18/a.txt", documents(rng, 80, [0.25, 0.25, 0.25, 0.25]))
    team.put("2026-11-18/bad.txt", b"good words\n\xff\xfe\n")
    code, steps, report = team.night()
    assert (code, report["outcome"], report["counted"]) == (3, "published", 1)
    [(url, reason)] = report["bad"]
    assert url.endswith("18/bad.txt")
    assert "not UTF-8" in reason
    assert subjects(report) == first
    team.client.delete_object(Bucket=BUCKET, Key="shards/2026-11-18/bad.txt")

    # the fifth is killed when it has counted
    team.put("2026-11-19/a.txt", documents(rng, 80, [0.25, 0.25, 0.25, 0.25]))
    before = team.store
    team.killed_after("update")
    left = team.store
    assert left.verify() == []
    assert left.commit.shards == before.commit.shards + 1
    assert left.commit.tags == before.commit.tags
    # the sixth, without new shards, waits until that one counts as dead, and finishes it
    deadline = time.monotonic() + PATIENCE
    while True:
        code, steps, err = team.attempt()
        if code != 2:
            break
        assert "another run holds the lock" in err
        assert time.monotonic() < deadline
    report = json.loads(
        team.client.get_object(Bucket=BUCKET, Key="reports/latest.json")["Body"].read()
    )
    assert (code, report["outcome"], report["counted"]) == (0, "published", 0)
    assert report["status"]["shards"] == 5
    assert team.store.commit.tags["published"] == report["model"] != before.commit.tags["published"]
    assert subjects(report) == first
    calm = report["drift"]["outside_share"]

    # the seventh speaks of what nobody spoke of before
    old = team.store
    team.put("2026-11-21/a.txt", documents(rng, 200, [0.05, 0.05, 0.05, 0.05, 0.8]))
    code, steps, report = team.night(topics="[4, 5]")
    assert (code, report["outcome"]) == (0, "published")
    assert "rebase" in steps
    assert report["drift"]["outside_share"] > 0.3 > calm
    assert "share outside the vocabulary" in report["rebase_reasons"][0]
    assert subjects(report) == {**first, 4: "v"}, "the new topic has the new number"
    assert [lone["topic"] for lone in report["matching"]["born"]] == [4]
    assert report["matching"]["gone"] == []
    assert {candidate["n_topics"] for candidate in report["candidates"]} == {4, 5}
    new = team.store
    assert any(term.startswith("v") for term in new.vocabulary.terms)
    assert not any(term.startswith("v") for term in old.vocabulary.terms)

    # nothing was lost on the way: what is counted is what lies in the bucket, bit for bit
    assert new.verify() == []
    assert new.load() == _counted(team, new)
    assert new.at(old.version).load() == old.load()

    # a model that a gate rejects is kept, with the reason, and yesterday's stays published
    team.put("2026-11-22/a.txt", documents(rng, 60, [0.2, 0.2, 0.2, 0.2, 0.2]))
    code, steps, rejected = team.night(topics="5", gates="min_effective_documents = 1000000000")
    assert (code, rejected["outcome"]) == (11, "rejected")
    assert rejected["reasons"][0].startswith("effective documents: ")
    assert team.store.commit.tags["published"] == report["model"]
    assert rejected["model"] in team.store.models
    assert team.store.commit.message.startswith("nightly: rejected: effective documents")

    # and the day before can be published again
    back = team.command("rollback", f"s3://{BUCKET}/store", "--model")
    assert back["tags"] == {"published": report["published_before"]}
    shown = team.command("topics", f"s3://{BUCKET}/store", "--model", "published")
    assert {topic["words"][0][0] for topic in shown["topics"]} == {"u", "x", "y", "z"}


def _counted(team, store):
    listed = list_shards([f"s3://{BUCKET}/shards/*/*.txt"], team.options)
    batches = [
        read.batch
        for shard in listed
        for read in read_shard(
            shard, store.form, store.vocabulary, store.policy, storage_options=team.options
        )
    ]
    return MomentStatistics.of(concatenate(batches), store.basis)
