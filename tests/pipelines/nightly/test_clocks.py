"""Nights of real processes whose own clock is a year off, beside others whose clock is right."""

import json
import os
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from campaigns import few_row_blocks
from forking import Descriptor, forking
from shifted_clock import shift_clock

from streaming_moments.pipelines.command_line.entry import main
from streaming_moments.pipelines.nightly.config import read_config
from streaming_moments.pipelines.nightly.history import read_history
from streaming_moments.pipelines.nightly.night import nightly
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.log.layout import commit_file
from streaming_moments.storage.store.garbage import GRACE, OLDEST_COMMITTED, collect, find_garbage
from streaming_moments.storage.store.store import MomentStore

pytestmark = pytest.mark.usefixtures("few_blocks")
YEAR = timedelta(days=365)


@pytest.fixture
def place(tmp_path, planted):
    for number in range(3):
        day = f"2026-11-2{number}"
        (tmp_path / f"{day}.txt").write_text("\n".join(planted[number * 60 : number * 60 + 60]))
    for name in ("one", "two"):
        (tmp_path / f"{name}.toml").write_text(
            f'store = "{tmp_path}/store"\nshards = "{tmp_path}/2026-11-2*.txt"\n'
            f'output = "{tmp_path}/reports"\n'
            "[create]\nmin_documents = 2\nvocabulary_size = 120\nmax_topics = 3\n"
            "[refit]\ntopics = 2\nalpha0 = 1\nwindow_days = 2\n"
            '[rebase]\nmax_outside_share = 0.001\nnot_again_for = "30d"\n'
        )
    return tmp_path


def run_with_a_clock_off_by(time, place, *arguments):
    """Exit code, output and errors of a command in a process of its own, which is forked."""
    told = [place / name for name in ("out", "err")]
    with told[0].open("w") as out, told[1].open("w") as err:
        given = [Descriptor(file.fileno()) for file in (out, err)]
        process = forking().Process(target=_run, args=(time, [*map(str, arguments)], *given))
        process.start()
        process.join(300)
    return process.exitcode, *[path.read_text() for path in told]


def _run(clock_off_by, arguments, out, err):
    out.become(1)
    err.become(2)
    shift_clock(clock_off_by)
    with few_row_blocks():
        main(arguments)


def age(path, by):
    then = path.stat().st_mtime - by.total_seconds()
    os.utime(path, (then, then))


@pytest.mark.long
@pytest.mark.parametrize("off", [YEAR, -YEAR], ids=["ahead", "behind"])
def test_a_night_whose_clock_is_a_year_off_harms_no_other(place, embedded, off):
    later = place / "2026-11-22.txt"
    content = later.read_text()
    later.unlink()
    code, _, err = run_with_a_clock_off_by(off, place, "nightly", place / "one.toml")
    assert code == 0, err
    store = MomentStore.open(str(place / "store"))
    told = datetime.fromisoformat(store.commit.time)
    assert abs(told - datetime.now(UTC) - off) < timedelta(hours=1), "no clock was off"
    assert find_garbage(store.folder, timedelta(hours=1)) == []
    # the lock is free, the window is that of the shards, and the lineage is as young as it is
    later.write_text(content)
    report = nightly(read_config(str(place / "two.toml")), embedded, lambda step: None)
    assert (report.outcome, report.status.shards) == ("published", 3)
    assert [step.step for step in report.steps].count("rebase") == 0
    model = MomentStore.open(store.url).load_model("published")
    assert (model.since, model.until) == ("2026-11-21", None)
    age(place / "store" / commit_file(0), timedelta(days=31))
    later.with_stem("2026-11-23").write_text(content.upper() + "\nand more")
    report = nightly(read_config(str(place / "two.toml")), embedded, lambda step: None)
    assert [step.step for step in report.steps].count("rebase") == 1
    # reports are in the order of the nights, and so are the names of their files
    filed = [
        json.loads(path.read_text()) for path in sorted((place / "reports").glob("night-*.json"))
    ]
    assert [one["version"] for one in filed] == sorted({one["version"] for one in filed})
    assert len(filed) == 3
    assert filed[-1]["last_published"] == filed[-1]["finished"]
    kept = read_history(Folder.at(str(place / "reports")), store.url)
    assert [one.started for one in kept.nights] == [one["started"] for one in filed]
    assert kept.last_published == filed[-1]["finished"]
    index = (place / "reports" / "index.html").read_text()
    # the chart has the oldest first, the list the newest
    pages = [path.stem for path in sorted((place / "reports").glob("night-*.html"))]
    assert re.findall(r'href="(night-\w+)\.html"', index) == [*pages, *reversed(pages)]
    opened = MomentStore.open(store.url)
    assert opened.verify() == []
    assert [commit.version for commit in opened.log()] == [*range(opened.version, -1, -1)]
    # gc by the wrong clock takes what is old by the storage's clock, and no more
    old, young = opened.new_segment(), opened.new_segment()
    for writer in (old, young):
        opened.folder.write(f"segments/{writer.id}/half", b"written")
    age(Path(opened.url) / "segments" / old.id / "half", GRACE + OLDEST_COMMITTED)
    _, collected, _ = run_with_a_clock_off_by(off, place, "gc", opened.url, "--json")
    [heap] = json.loads(collected)["garbage"]
    assert heap["path"] == f"segments/{old.id}"
    assert opened.folder.exists(f"segments/{young.id}/half")
    collect(opened.folder, find_garbage(opened.folder))
    assert opened.latest().verify() == []
