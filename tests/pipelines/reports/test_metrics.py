import os
import stat
import subprocess
import sys
from dataclasses import replace
from functools import partial

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from streaming_moments.errors import InvalidInput, StoreError
from streaming_moments.pipelines.reports.metrics import RunMetrics, metrics_registry, write_metrics

NIGHT = RunMetrics(
    store='s3://bucket/"quoted"\\store',
    version=31,
    documents=9_321_442,
    tokens=1_712_331_004,
    shards=1412,
    state_bytes=572_428_288,
    commit_time=1_780_000_000.25,
    finished=1_780_000_100.5,
    exit_code=11,
    last_success=1_779_900_000.0,
    step_seconds={"update": 184.2, "refit": 41.4},
    captured=0.71,
    outside_share=0.125,
    effective_documents=2147.5,
    pair_distance=0.0125,
    left_out=2,
    warnings=3,
)


def parsed(content):
    """Value by name and step; every sample names the store."""
    found = {}
    for family in text_string_to_metric_families(content.decode()):
        assert family.type == "gauge"
        assert family.documentation
        for sample in family.samples:
            assert sample.labels["store"] == NIGHT.store
            found[sample.name.removeprefix("streaming_moments_"), sample.labels.get("step")] = (
                sample.value
            )
    return found


def metrics_text(metrics):
    return generate_latest(metrics_registry(metrics))


def test_what_is_written_is_read_back(tmp_path):
    write_metrics(tmp_path / "moments.prom", NIGHT)
    assert parsed((tmp_path / "moments.prom").read_bytes()) == {
        ("version", None): 31,
        ("documents", None): 9_321_442,
        ("tokens", None): 1_712_331_004,
        ("shards", None): 1412,
        ("shards_left_out", None): 2,
        ("run_warnings", None): 3,
        ("state_bytes", None): 572_428_288,
        ("commit_timestamp_seconds", None): 1_780_000_000.25,
        ("run_timestamp_seconds", None): 1_780_000_100.5,
        ("run_exit_code", None): 11,
        ("last_success_timestamp_seconds", None): 1_779_900_000.0,
        ("captured_spectrum", None): 0.71,
        ("outside_share", None): 0.125,
        ("effective_documents", None): 2147.5,
        ("pair_distance", None): 0.0125,
        ("step_seconds", "update"): 184.2,
        ("step_seconds", "refit"): 41.4,
    }


def test_what_is_not_known_is_left_out():
    names = {name for name, _ in parsed(metrics_text(replace(NIGHT, captured=None)))}
    assert "captured_spectrum" not in names
    assert "outside_share" in names


def test_two_stores_in_one_process_do_not_meet():
    first, second = metrics_text(NIGHT), metrics_text(replace(NIGHT, documents=5))
    assert parsed(first)["documents", None] == 9_321_442
    assert parsed(second)["documents", None] == 5


def test_the_file_is_replaced_whole_and_others_may_read_it(tmp_path, request):
    path = tmp_path / "moments.prom"
    # as systemd runs it
    request.addfinalizer(partial(os.umask, os.umask(0o077)))
    write_metrics(path, NIGHT)
    with path.open("rb") as earlier:
        write_metrics(path, replace(NIGHT, version=32))
        # who was reading reads the old one to its end
        assert parsed(earlier.read())["version", None] == 31
    assert parsed(path.read_bytes())["version", None] == 32
    assert [one.name for one in tmp_path.iterdir()] == ["moments.prom"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o644


def test_a_writer_that_dies_leaves_the_old_file(tmp_path):
    path = tmp_path / "moments.prom"
    write_metrics(path, NIGHT)
    # the file system is full, as far as this process is concerned
    programme = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100));"
        "from streaming_moments.pipelines.reports.metrics import *;"
        "write_metrics(sys.argv[1], RunMetrics('s', 32, 1, 1, 1, 1, 1.0, 1.0, 0))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", programme, path],
        capture_output=True,
        text=True,
        timeout=60,
        env=os.environ,
    )
    assert "StoreError" in ran.stderr
    assert "cannot be written" in ran.stderr
    assert parsed(path.read_bytes())["version", None] == 31
    assert [one.name for one in tmp_path.iterdir()] == ["moments.prom"]


def test_a_name_that_is_not_collected_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match=r"\.prom"):
        write_metrics(tmp_path / "moments.txt", NIGHT)


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(StoreError, match="create it"):
        write_metrics(tmp_path / "absent" / "moments.prom", NIGHT)
