"""The service as it is deployed: valid, and of keys and paths that there are."""

import configparser
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import kubernetes_validate
import pytest
import yaml

from streaming_moments.pipelines.service.config import read_service, service_of

DEPLOY = Path(__file__).parents[2] / "deploy"
KUBERNETES = DEPLOY / "kubernetes" / "service"
UNIT = DEPLOY / "systemd" / "streaming-moments-serve.service"


def resources():
    (content,) = yaml.safe_load_all((KUBERNETES / "kustomization.yaml").read_text())
    for name in content["resources"]:
        yield from yaml.safe_load_all((KUBERNETES / name).read_text())


def test_every_resource_is_what_kubernetes_takes():
    kinds = []
    for resource in resources():
        kinds.append(resource["kind"])
        for version in ("1.29", "1.33"):
            kubernetes_validate.validate(resource, version, strict=True)
    assert sorted(kinds) == [
        "Deployment",
        "Deployment",
        "HorizontalPodAutoscaler",
        "NetworkPolicy",
        "PodDisruptionBudget",
        "Service",
        "ServiceAccount",
    ]


def test_what_selects_the_servers_finds_them():
    of = {(one["kind"], one["metadata"]["name"]): one for one in resources()}
    serve = of["Deployment", "streaming-moments-serve"]["spec"]
    labels = serve["template"]["metadata"]["labels"]
    assert serve["selector"]["matchLabels"] == labels
    assert of["Service", "streaming-moments"]["spec"]["selector"] == labels
    budget = of["PodDisruptionBudget", "streaming-moments-serve"]["spec"]
    assert budget["selector"]["matchLabels"] == labels
    config = read_service(KUBERNETES / "service.toml")
    (container,) = serve["template"]["spec"]["containers"]
    assert container["ports"][0]["containerPort"] == config.listen.port
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert str(Path(config.tokens).parent) == mounts["tokens"]
    grace = serve["template"]["spec"]["terminationGracePeriodSeconds"]
    assert grace > config.limits.drain.total_seconds() + 5
    assert "--no-accumulate" in container["args"]


def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path):
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd-analyze is not installed: apt-get install systemd")
    here = Path(sys.executable).parent / "python"
    text = UNIT.read_text().replace("/opt/streaming-moments/bin/streaming-moments", str(here))
    (tmp_path / UNIT.name).write_text(text)
    command = [analyze, "verify", "--man=no", str(tmp_path / UNIT.name)]
    found = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (found.returncode, found.stderr) == (0, "")


def test_the_unit_leaves_time_to_drain():
    parser = configparser.RawConfigParser(strict=False)
    parser.optionxform = str
    parser.read(UNIT)
    drain = service_of({"store": "s"}, "").limits.drain.total_seconds()
    assert int(parser["Service"]["TimeoutStopSec"]) > drain
    assert parser["Service"]["RestartPreventExitStatus"] == "2"


def test_the_service_of_compose_is_one():
    content = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    assert content["services"]["serve"]["command"][:2] == ["streaming-moments", "serve"]
    told = tomllib.loads((DEPLOY / "compose" / "service.toml").read_text())
    assert service_of(told, "service.toml").tokens
