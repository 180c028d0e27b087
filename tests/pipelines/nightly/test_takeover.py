"""Nights that were taken for dead: what they do when they wake is refused at each commit."""

import json
import shutil
from datetime import timedelta

import pytest

from streaming_moments.errors import StoreError
from streaming_moments.pipelines.command_line.entry import main
from streaming_moments.pipelines.nightly.config import read_config
from streaming_moments.pipelines.nightly.night import nightly
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.log.locks import LOCKS
from streaming_moments.storage.operations.history import tag
from streaming_moments.storage.store.store import MomentStore

pytestmark = pytest.mark.usefixtures("few_blocks")
CLOCK = Folder.clock


@pytest.fixture
def night(tmp_path, planted):
    """Configuration of nights whose store is made; adds a shard of sixty texts when asked."""

    class Nights:
        config = str(tmp_path / "night.toml")
        store = property(lambda self: MomentStore.open(str(tmp_path / "store")))
        latest = property(lambda self: json.loads((tmp_path / "reports/latest.json").read_text()))
        reports = property(
            lambda self: [
                json.loads(path.read_text()) for path in (tmp_path / "reports").glob("night-*.json")
            ]
        )

        def shard(self, number):
            texts = planted[number * 60 : number * 60 + 60]
            (tmp_path / f"shard-{number}.txt").write_text("\n".join(texts))

    (tmp_path / "night.toml").write_text(
        f'store = "{tmp_path}/store"\nshards = "{tmp_path}/shard-*.txt"\n'
        f'output = "{tmp_path}/reports"\nlock_expiry = "1h"\n[refit]\ntopics = 2\nalpha0 = 1\n'
        "refine = 1\n"
        "[create]\nmin_documents = 2\nvocabulary_size = 120\nmax_topics = 3\n"
    )
    return Nights()


def quiet(step):
    pass


def pass_time(monkeypatch, time):
    """Let the storage's clock go forward."""
    monkeypatch.setattr(Folder, "clock", lambda folder: CLOCK(folder) + time)


def overtaken(monkeypatch, method, other):
    """Stop the next run that gets to a method of the store, until another has run."""
    original = getattr(MomentStore, method)

    def stopped(self, *arguments, **choices):
        monkeypatch.setattr(MomentStore, method, original)
        pass_time(monkeypatch, timedelta(hours=2))
        other()
        return original(self, *arguments, **choices)

    monkeypatch.setattr(MomentStore, method, stopped)


@pytest.mark.parametrize("method", ["save_model", "append"])
def test_a_night_that_was_taken_over_publishes_nothing(
    night, embedded, monkeypatch, capsys, method
):
    night.shard(0)
    nightly(read_config(night.config), embedded, quiet)
    night.shard(1)
    reports = []

    def other():
        night.shard(2)
        reports.append(nightly(read_config(night.config), embedded, quiet))

    overtaken(monkeypatch, method, other)
    with pytest.raises(SystemExit) as ended:
        main(["nightly", night.config])
    assert ended.value.code == 2
    assert "another run took over the lock" in capsys.readouterr().err.splitlines()[-1]
    [report] = reports
    assert (report.outcome, report.status.shards) == ("published", 3)
    store = night.store
    assert store.commit.tags == {"published": report.model}, "an older model is published again"
    assert store.version == report.version, "a commit of the night that was taken over"
    assert store.verify() == []
    assert night.latest["model"] == report.model, "its report takes the place of a later one"
    [told] = [one["error"] for one in night.reports if one["outcome"] == "failed"]
    assert "so it may not commit" in told


def test_a_tag_that_was_moved_meanwhile_is_left_alone(night, embedded, monkeypatch):
    night.shard(0)
    first = nightly(read_config(night.config), embedded, quiet)
    night.shard(1)
    second = nightly(read_config(night.config), embedded, quiet)
    night.shard(2)
    overtaken(monkeypatch, "save_model", lambda: tag(night.store, "published", first.model))
    with pytest.raises(StoreError, match=f"named model '{second.model}' when this run began"):
        nightly(read_config(night.config), embedded, quiet)
    assert night.store.commit.tags == {"published": first.model}
    # the next run begins with what is published now
    third = nightly(read_config(night.config), embedded, quiet)
    assert (third.published_before, third.outcome) == (first.model, "published")


def test_fences_rise_though_the_notes_of_locks_were_deleted(night, embedded, tmp_path):
    for number in range(2):
        night.shard(number)
        nightly(read_config(night.config), embedded, quiet)
    before = night.store.commit.fence
    shutil.rmtree(tmp_path / "store" / LOCKS)
    night.shard(2)
    assert nightly(read_config(night.config), embedded, quiet).outcome == "published"
    assert night.store.commit.fence > before > 0
    # a writer without a lock keeps it, and is refused by none
    assert tag(night.store, "live", "published").commit.fence == night.store.commit.fence
