import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml

from streaming_moments.pipelines.command_line.entry import main

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
BIN = Path(sys.executable).parent


def environment(**more):
    return {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT), **more}


def test_shellcheck_finds_nothing_in_any_script():
    tracked = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    scripts = [
        name
        for name in tracked
        if (ROOT / name).is_file()
        and re.match(rb"#!.*\b(ba|da)?sh\b", (ROOT / name).read_bytes()[:64])
    ]
    assert {"deploy/install.sh", "deploy/healthy.sh", "deploy/nightly.sh", ".ci/run"} <= set(
        scripts
    )
    for name in scripts:
        assert os.access(ROOT / name, os.X_OK), name
    found = subprocess.run(
        [BIN / "shellcheck", "--severity=style", *scripts],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert found.returncode == 0, found.stdout


@pytest.mark.parametrize(("ends", "told"), [(0, 0), (10, 0), (11, 11), (3, 3), (2, 2)])
def test_the_nightly_script_makes_a_success_of_nothing_new(tmp_path, ends, told):
    program = tmp_path / "streaming-moments"
    program.write_text(f'#!/bin/sh\necho "$@"\nexit {ends}\n')
    program.chmod(0o755)
    ran = subprocess.run(
        [DEPLOY / "nightly.sh"],
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
    )
    assert ran.returncode == told
    assert ran.stdout.split() == ["nightly", "/etc/streaming-moments/nightly.toml", "--json"]


def command_of(service, **replaced):
    """A command of the compose file, on ports of this machine that are free."""
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    return [replaced.get(part, part) for part in compose["services"][service]["command"]]


@contextmanager
def running(command, folder, log):
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, cwd=folder, env=environment(), stdout=output, stderr=subprocess.STDOUT
        )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def found_in(log, pattern, process):
    """First match in a log, as soon as it is there."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        match = re.search(pattern, log.read_text())
        if match:
            return match[1]
        assert process.poll() is None, log.read_text()
        time.sleep(0.1)
    raise AssertionError(f"no {pattern!r} in {log.read_text()}")


def health(port=None):
    more = {} if port is None else {"HEALTH_PORT": port}
    return subprocess.run(
        [DEPLOY / "healthy.sh"], capture_output=True, text=True, env=environment(**more), timeout=60
    )


def test_the_commands_of_the_compose_file_start_a_cluster_and_the_health_check_follows(
    tmp_path, monkeypatch
):
    scheduler_log, worker_log = tmp_path / "scheduler.log", tmp_path / "worker.log"
    ports = {"8786": "0", ":8787": "127.0.0.1:0"}
    with running(command_of("scheduler", **ports), tmp_path, scheduler_log) as scheduler:
        address = found_in(scheduler_log, r"Scheduler at:\s+(tcp://\S+)", scheduler)
        port = found_in(scheduler_log, r"dashboard at:\s+\S+:(\d+)", scheduler)
        assert health(port).stdout.strip() == "ok"
        ports = {"tcp://scheduler:8786": address, ":8788": "127.0.0.1:0"}
        with running(command_of("worker", **ports), tmp_path, worker_log) as worker:
            found_in(worker_log, r"(Registered to)", worker)
            worker_port = found_in(worker_log, r"dashboard at:\s+\S+:(\d+)", worker)
            assert health(worker_port).stdout.strip() == "ok"
            assert "3.33 GiB" in worker_log.read_text()
            (tmp_path / "a.txt").write_text("law and sea\nsea and ship\nlaw and ship\n" * 20)
            monkeypatch.chdir(tmp_path)
            options = "--max-topics", "1", "--max-document-fraction", "1"
            # this process has loaded what another would load anew
            with pytest.raises(SystemExit) as ended:
                main(["create", "store", "a.txt", "--scheduler", address, *options])
            assert ended.value.code == 0
        assert health(worker_port).returncode != 0
    assert health(port).returncode != 0


def test_without_a_port_the_command_line_is_what_must_start():
    assert health().stdout.strip().endswith(version("streaming-moments"))
