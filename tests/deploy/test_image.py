import os
import re
import shutil
import subprocess
import sysconfig
import tomllib
import venv
from pathlib import Path

import pip
import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
CONTAINERFILE = (DEPLOY / "Containerfile").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LONG = os.environ.get("STREAMING_MOMENTS_DEPLOY") == "long"


def locked():
    text = (DEPLOY / "requirements.lock").read_text().replace("\\\n", " ")
    lines = [line.strip() for line in text.splitlines() if line.strip() and line[0] != "#"]
    versions, hashes = {}, {}
    for line in lines:
        pinned, *rest = line.split("--hash=sha256:")
        name, version = pinned.split(";")[0].split("==")
        versions[canonicalize_name(name)] = version.strip()
        hashes[canonicalize_name(name)] = rest
    return versions, hashes


DIGEST = r"[\w./-]+:[\w.-]+@sha256:[0-9a-f]{64}"


def test_every_image_of_others_is_pinned_by_digest():
    bases = re.findall(r"^FROM (\S+)", CONTAINERFILE, re.MULTILINE)
    assert set(bases) == {"${PYTHON}"}
    [python] = re.findall(r"^ARG PYTHON=(\S+)", CONTAINERFILE, re.MULTILINE)
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    others = [one["image"] for one in services.values() if "build" not in one]
    assert len(others) == 1
    for image in (python, *others):
        assert re.fullmatch(DIGEST, image), image


def test_every_locked_package_has_hashes():
    _, hashes = locked()
    assert len(hashes) > 50
    assert all(hashes.values())
    assert all(re.fullmatch(r"[0-9a-f]{64}\s*", one) for some in hashes.values() for one in some)


def test_the_lock_holds_what_the_project_asks_for():
    versions, _ = locked()
    extras = PROJECT["optional-dependencies"]
    asked = [*PROJECT["dependencies"], *extras["s3"], *extras["gcs"], *extras["azure"]]
    asked += [line.split("#")[0] for line in (DEPLOY / "image.in").read_text().splitlines()]
    wrong = [
        f"{requirement}: {versions.get(canonicalize_name(requirement.name))}; run make deploy-lock"
        for requirement in (Requirement(line) for line in asked if line.strip())
        if not requirement.specifier.contains(
            versions.get(canonicalize_name(requirement.name), "0")
        )
    ]
    assert wrong == []


def test_the_image_runs_the_steps_of_the_script_and_nobody_is_root():
    steps = re.findall(r"^RUN deploy/install.sh (\w+)", CONTAINERFILE, re.MULTILINE)
    assert steps == ["dependencies", "project"]
    *_, last = CONTAINERFILE.split("\nFROM ")
    assert re.search(r"^USER 10001:10001$", last, re.MULTILINE)
    assert "HEALTHCHECK" in last
    copied = re.findall(r"^COPY (?!--from)(?:--\S+ )?(.*) \S+$", CONTAINERFILE, re.MULTILINE)
    for name in " ".join(copied).split():
        assert (ROOT / name).exists(), name
    ignored = (DEPLOY / "Containerfile.dockerignore").read_text().splitlines()
    for name in " ".join(copied).split():
        assert f"!{name}" in ignored, name


def test_the_image_has_the_python_of_the_tests_and_of_the_lock():
    [image] = re.findall(r"^ARG PYTHON=\S+:(\d+\.\d+)-slim", CONTAINERFILE, re.MULTILINE)
    makefile = (ROOT / "Makefile").read_text()
    assert re.findall(r"--python-version (\S+)", makefile) == [image]
    assert PROJECT["requires-python"] == f">={image}"


@pytest.fixture
def source(tmp_path):
    """What the image copies."""
    place = tmp_path / "source"
    skipped = shutil.ignore_patterns("__pycache__")
    for name in ("streaming_moments", "storage", "pipelines", "deploy"):
        shutil.copytree(ROOT / name, place / name, ignore=skipped)
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, place)
    return place


def install(step, source, place):
    return subprocess.run(
        [source / "deploy" / "install.sh", step, source, place],
        capture_output=True,
        text=True,
        timeout=1800,
        env=alone(),
    )


def alone():
    """Without what leads to this environment."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


@pytest.fixture(scope="module")
def fresh(tmp_path_factory):
    """A virtual environment with nothing in it but the pip of this one."""
    place = tmp_path_factory.mktemp("image") / "venv"
    venv.create(place, symlinks=True)
    [site] = place.glob("lib/python*/site-packages")
    (site / "pip").symlink_to(Path(pip.__file__).parent)
    return place


def test_a_file_that_is_not_the_locked_one_is_refused(source, fresh):
    lock = source / "deploy" / "requirements.lock"
    lock.write_text("six==1.17.0 --hash=sha256:" + "0" * 64 + "\n")
    installed = install("dependencies", source, fresh)
    assert installed.returncode != 0
    assert "DO NOT MATCH THE HASHES" in installed.stderr
    assert list(fresh.glob("lib/python*/site-packages/six*")) == []


def test_the_images_steps_install_the_project(source, fresh, tmp_path):
    lock = source / "deploy" / "requirements.lock"
    if not LONG:
        # all but what builds the project is borrowed from this environment
        [builder] = re.findall(r"^setuptools==(?:.*\\\n)+.*\n", lock.read_text(), re.MULTILINE)
        lock.write_text(builder)
    installed = install("dependencies", source, fresh)
    assert installed.returncode == 0, installed.stdout + installed.stderr
    if not LONG:
        [site] = fresh.glob("lib/python*/site-packages")
        (site / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    installed = install("project", source, fresh)
    assert installed.returncode == 0, installed.stdout + installed.stderr
    assert installed.stdout.strip().endswith(PROJECT["version"])
    where = subprocess.run(
        [fresh / "bin" / "python", "-c", "import streaming_moments as s; print(s.__file__)"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=alone(),
        check=True,
    )
    assert where.stdout.startswith(str(fresh))


def test_an_unknown_step_is_refused(source, tmp_path):
    assert install("everything", source, tmp_path).returncode == 2
