"""The service as it is deployed: valid, and of keys and paths that there are."""

import configparser
import re
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

import kubernetes_validate
import pytest
import yaml

from streaming_moments.pipelines.service.config import read_service, service_of

DEPLOY = Path(__file__).parents[2] / "deploy"
KUBERNETES = DEPLOY / "kubernetes" / "service"
PROMETHEUS = KUBERNETES / "prometheus"
NANNY = 256  # MiB that what watches over a process needs beside it
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
    assert Counter(kinds) == {
        "Deployment": 4,
        "HorizontalPodAutoscaler": 2,
        "NetworkPolicy": 3,
        "PodDisruptionBudget": 1,
        "Service": 2,
        "ServiceAccount": 1,
    }


@pytest.fixture
def of():
    """All resources by kind and name."""
    return {(one["kind"], one["metadata"]["name"]): one for one in resources()}


def of_kind(of, kind):
    return {name: one["spec"] for (found, name), one in of.items() if found == kind}


def pod_of(of, name):
    """Labels, pod and the one container of a Deployment."""
    template = of["Deployment", name]["spec"]["template"]
    (container,) = template["spec"]["containers"]
    return template["metadata"]["labels"], template["spec"], container


def test_what_is_referred_to_is_there_and_locked_down(of):
    (content,) = yaml.safe_load_all((KUBERNETES / "kustomization.yaml").read_text())
    maps = {generator["name"] for generator in content["configMapGenerator"]}
    for name, spec in of_kind(of, "Deployment").items():
        labels, pod, container = pod_of(of, name)
        assert spec["selector"]["matchLabels"] == labels == {"app.kubernetes.io/name": name}
        assert ("ServiceAccount", pod["serviceAccountName"]) in of
        assert not pod["automountServiceAccountToken"]
        assert pod["securityContext"]["runAsNonRoot"]
        volumes = {volume["name"]: volume for volume in pod["volumes"]}
        assert {one["configMap"]["name"] for one in volumes.values() if "configMap" in one} <= maps
        assert {mount["name"] for mount in container["volumeMounts"]} == set(volumes)
        ports = {port["name"] for port in container.get("ports", ())}
        probes = [value for key, value in container.items() if key.endswith("Probe")]
        assert {probe["httpGet"]["port"] for probe in probes} <= ports
        assert container["securityContext"]["capabilities"]["drop"] == ["ALL"]
        assert container["securityContext"]["readOnlyRootFilesystem"]
        assert "env" not in container, "a value here may be a secret"
        assert container["image"] == "streaming-moments"
        assert container["resources"]["limits"]["memory"]


def test_what_accumulates_and_its_workers_have_one_scheduler(of):
    name = "streaming-moments-counting"
    labels, _, scheduler = pod_of(of, name)
    service = of["Service", name]["spec"]
    assert service["selector"] == labels
    (port,) = service["ports"]
    ports = {one["name"]: one["containerPort"] for one in scheduler["ports"]}
    assert ports[port["targetPort"]] == port["port"]
    assert scheduler["args"][:4] == ["dask", "scheduler", "--port", str(port["port"])]
    _, _, worker = pod_of(of, "streaming-moments-worker")
    address = f"tcp://{name}:{port['port']}"
    assert worker["args"][:3] == ["dask", "worker", address]
    assert read_service(KUBERNETES / "service.toml").cluster.scheduler == address
    # as the nightly job, whose workers count too, and what watches over it
    _, _, accumulate = pod_of(of, "streaming-moments-accumulate")
    (night,) = yaml.safe_load_all((KUBERNETES.parent / "base" / "cronjob.yaml").read_text())
    template = night["spec"]["jobTemplate"]["spec"]["template"]
    (job,) = template["spec"]["containers"]
    assert job["resources"]["limits"]["memory"] == "1Gi"
    assert accumulate["resources"]["limits"]["memory"] == f"{1024 + NANNY}Mi"


def selects(selector, name):
    """Whether pods of this name are selected."""
    labels = {"app.kubernetes.io/name": name}
    rules = selector.get("matchExpressions", [])
    assert {rule["operator"] for rule in rules} <= {"In"}
    wanted = {key: [value] for key, value in selector.get("matchLabels", {}).items()}
    wanted |= {rule["key"]: rule["values"] for rule in rules}
    return all(labels.get(key) in values for key, values in wanted.items())


def test_only_what_accumulates_and_the_workers_reach_the_scheduler(of):
    deployments = of_kind(of, "Deployment")
    policies = of_kind(of, "NetworkPolicy").values()
    reached = {}
    for name in deployments:
        (ours,) = [
            one
            for one in policies
            if selects(one["podSelector"], name) and "Ingress" in one["policyTypes"]
        ]
        for other in deployments:
            rules = [
                rule
                for rule in ours["ingress"]
                if any(selects(peer["podSelector"], other) for peer in rule.get("from", ()))
            ]
            ports = {port["port"] for rule in rules for port in rule.get("ports", ())}
            if rules:
                reached[other, name] = ports if all("ports" in rule for rule in rules) else "any"
    counting, worker = "streaming-moments-counting", "streaming-moments-worker"
    inside = {(one, other): "any" for one in (counting, worker) for other in (counting, worker)}
    accumulate = "streaming-moments-accumulate"
    assert reached == inside | {(accumulate, counting): {8786}, (accumulate, worker): {8786}}
    out = [
        rule
        for one in policies
        if selects(one["podSelector"], accumulate)
        for rule in one["egress"]
        if any("podSelector" in to and selects(to["podSelector"], counting) for to in rule["to"])
    ]
    assert [rule["ports"] for rule in out] == [[{"protocol": "TCP", "port": 8786}]]


def test_autoscalers_scale_what_there_is_and_workers_by_the_age_of_the_inbox(of):
    scalers = of_kind(of, "HorizontalPodAutoscaler")
    for scaler in scalers.values():
        target = scaler["scaleTargetRef"]
        assert (target["kind"], target["name"]) in of
        assert 1 <= scaler["minReplicas"] < scaler["maxReplicas"]
    workers = scalers["streaming-moments-worker"]
    assert workers["scaleTargetRef"]["name"] == "streaming-moments-worker"
    # else each `apply` would set the number back
    assert "replicas" not in of["Deployment", "streaming-moments-worker"]["spec"]
    (metric,) = workers["metrics"]
    limit = read_service(KUBERNETES / "service.toml").limits.inbox_age.total_seconds()
    assert int(metric["external"]["target"]["value"]) * 2 < limit
    assert workers["behavior"]["scaleDown"]["stabilizationWindowSeconds"] >= 600
    # what gives it that metric, and says it before documents are refused
    (adapter,) = yaml.safe_load_all((PROMETHEUS / "adapter.yaml").read_text())
    (rule,) = adapter["rules"]["external"]
    name = metric["external"]["metric"]["name"]
    assert rule["seriesQuery"] == f'{name}{{namespace!=""}}'
    assert rule["resources"]["overrides"] == {"namespace": {"resource": "namespace"}}
    # one value: the autoscaler adds up what it is given
    query = rule["metricsQuery"].replace("<<.Series>>", name).replace("<<.LabelMatchers>>", "")
    assert query == f"max(max_over_time({name}{{}}[5m]))"
    (rules,) = yaml.safe_load_all((PROMETHEUS / "rules.yaml").read_text())
    ((alert,),) = [group["rules"] for group in rules["groups"]]
    assert alert["expr"].startswith(f"max by (namespace) ({name}) > ")
    target = int(metric["external"]["target"]["value"])
    assert target < int(alert["expr"].split()[-1]) < limit


def test_prometheus_asks_the_port_of_the_servers_by_a_token(of):
    (scrape,) = yaml.safe_load_all((PROMETHEUS / "scrape.yaml").read_text())
    (job,) = scrape["scrape_configs"]
    assert job["authorization"]["credentials_file"]
    assert "metrics_path" not in job  # /metrics
    kept = job["relabel_configs"][0]
    asked = {
        kept["separator"].join([name, port["name"]])
        for name in of_kind(of, "Deployment")
        for port in pod_of(of, name)[2].get("ports", ())
    }
    found = [one for one in asked if re.fullmatch(kept["regex"], one)]
    assert found == ["streaming-moments-serve/http"]
    targets = {one["target_label"] for one in job["relabel_configs"] if "target_label" in one}
    assert "namespace" in targets  # by which the adapter finds it


def test_what_selects_the_servers_finds_them(of):
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
