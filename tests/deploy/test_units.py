import configparser
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SYSTEMD = Path(__file__).parents[2] / "deploy" / "systemd"
SERVICE, TIMER = "streaming-moments-nightly.service", "streaming-moments-nightly.timer"
INSTALLED = "/opt/streaming-moments/bin/streaming-moments"


def unit(name):
    parser = configparser.RawConfigParser(strict=False, interpolation=None)
    parser.optionxform = str
    parser.read(SYSTEMD / name)
    return parser


def verified(folder):
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd-analyze is not installed: apt-get install systemd")
    command = [analyze, "verify", "--man=no", *map(str, sorted(folder.iterdir()))]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


@pytest.fixture
def units(tmp_path):
    """The units as installed, but for the program, which is that of this environment."""
    here = Path(sys.executable).parent / "streaming-moments"
    for name in (SERVICE, TIMER):
        text = (SYSTEMD / name).read_text()
        (tmp_path / name).write_text(text.replace(INSTALLED, str(here)))
    return tmp_path


def test_systemd_finds_nothing_wrong(units):
    found = verified(units)
    assert (found.returncode, found.stderr) == (0, "")


def test_systemd_finds_a_misspelled_setting(units):
    path = units / SERVICE
    path.write_text(path.read_text().replace("SuccessExitStatus", "SuccesExitStatus"))
    assert "SuccesExitStatus" in verified(units).stderr


def test_nothing_new_is_a_success_and_a_refused_model_is_no_retry():
    service = unit(SERVICE)["Service"]
    assert service["SuccessExitStatus"] == "10"
    assert service["RestartPreventExitStatus"].split() == ["2", "3", "11"]
    assert service["UMask"] == "0077"
    assert service["ExecStart"].split()[:2] == [INSTALLED, "nightly"]
    assert unit(TIMER)["Timer"]["Persistent"] == "true"


def test_each_unit_that_the_page_enables_is_copied_before_with_what_it_runs():
    page = (SYSTEMD.parents[1] / "docs" / "operation" / "deployment.md").read_text()
    blocks = [one for one in re.findall(r"```bash\n(.*?)```", page, re.DOTALL) if "enable" in one]
    assert len(blocks) == 2
    for block in blocks:
        [enabled] = re.findall(r"systemctl enable --now (\S+)", block)
        assert (SYSTEMD / enabled).exists() or (SYSTEMD / f"{enabled}.service").exists()
        steps = ["-m venv", "install.sh dependencies", "install.sh project", "useradd"]
        steps += ["cp deploy/systemd/*", "daemon-reload", "enable --now"]
        places = [block.find(step) for step in steps]
        assert -1 not in places
        assert places == sorted(places)
