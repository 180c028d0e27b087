import re
import shutil
import subprocess
from ipaddress import ip_address, ip_network
from pathlib import Path

import jsonschema
import kubernetes_validate
import numpy as np
import pytest
import yaml

from streaming_moments.pipelines.cluster.cluster import limit_for
from streaming_moments.pipelines.option_types import Bytes
from streaming_moments.pipelines.planning.cost import comfortable_budget
from streaming_moments.pipelines.planning.job import CorpusSize, Job
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.counts.foundation import CountsFoundation
from streaming_moments.storage.log.layout import row_blocks_for

KUBERNETES = Path(__file__).parents[2] / "deploy" / "kubernetes"
BASE, EXAMPLE = KUBERNETES / "base", KUBERNETES / "overlays" / "example"
CRD = Path(__file__).parent / "schemas" / "daskcluster.crd.yaml"
# older ones want `onPodConditions` in every rule of a failure policy
OLDEST, NEWEST = "1.29", "1.33"
# what a nanny needs beside its worker
NANNY = 256 << 20


def loaded(path):
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return [one for one in yaml.load_all(path.read_text(), loader) if one]


def kustomization(folder):
    [content] = loaded(folder / "kustomization.yaml")
    return content


@pytest.fixture(scope="session")
def dask_cluster_schema():
    """What the operator's CRD says, with fields that it does not know refused."""
    [crd] = loaded(CRD)
    [version] = crd["spec"]["versions"]
    assert f"{crd['spec']['group']}/{version['name']}" == "kubernetes.dask.org/v1"
    schema = version["schema"]["openAPIV3Schema"]
    schema["properties"] |= {name: {} for name in ("apiVersion", "kind", "metadata")}
    return strict(schema)


def strict(schema):
    """Kubernetes drops unknown fields in silence: here they are an error."""
    if isinstance(schema, list):
        return [strict(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    made = {name: strict(value) for name, value in schema.items()}
    if made.get("x-kubernetes-int-or-string"):
        return {"type": ["integer", "string"]}
    known = isinstance(made.get("properties"), dict)
    free = "additionalProperties" in made or made.get("x-kubernetes-preserve-unknown-fields")
    return {**made, "additionalProperties": False} if known and not free else made


def require_valid(resource, dask_cluster_schema):
    if resource["kind"] == "DaskCluster":
        jsonschema.validate(resource, dask_cluster_schema)
        return
    for version in (OLDEST, NEWEST):
        kubernetes_validate.validate(resource, version, strict=True)


def resources_of_base():
    return [one for name in kustomization(BASE)["resources"] for one in loaded(BASE / name)]


def pod_specs(resources):
    for resource in resources:
        if resource["kind"] == "DaskCluster":
            for role in ("worker", "scheduler"):
                yield role, resource["spec"][role]["spec"], resource["spec"][role]["metadata"]
        if resource["kind"] == "CronJob":
            template = resource["spec"]["jobTemplate"]["spec"]["template"]
            yield "nightly", template["spec"], template["metadata"]


def test_every_resource_is_what_kubernetes_takes(dask_cluster_schema):
    resources = resources_of_base()
    kinds = sorted(resource["kind"] for resource in resources)
    assert kinds == ["CronJob", "DaskCluster", "NetworkPolicy", "ServiceAccount"]
    for resource in resources:
        require_valid(resource, dask_cluster_schema)


def test_a_misspelled_field_is_found(dask_cluster_schema):
    by_kind = {resource["kind"]: resource for resource in resources_of_base()}
    job = by_kind["CronJob"]
    job["spec"]["concurencyPolicy"] = job["spec"].pop("concurrencyPolicy")
    with pytest.raises(kubernetes_validate.ValidationError):
        require_valid(job, dask_cluster_schema)
    cluster = by_kind["DaskCluster"]
    [worker] = cluster["spec"]["worker"]["spec"]["containers"]
    worker["resource"] = worker.pop("resources")
    with pytest.raises(jsonschema.ValidationError):
        require_valid(cluster, dask_cluster_schema)


def test_no_file_lies_beside_the_kustomizations():
    for folder in (BASE, EXAMPLE):
        content = kustomization(folder)
        named = {"kustomization.yaml", *content.get("configurations", ())}
        named |= {name for name in content["resources"] if "/" not in name}
        named |= {one["path"] for one in content.get("patches", ())}
        for generator in content["configMapGenerator"]:
            named |= set(generator["files"])
        assert named == {path.name for path in folder.iterdir()}


def test_what_is_referred_to_is_there():
    resources = resources_of_base()
    names = {(one["kind"], one["metadata"]["name"]) for one in resources}
    maps = {generator["name"] for generator in kustomization(BASE)["configMapGenerator"]}
    roles = []
    for role, pod, metadata in pod_specs(resources):
        roles.append(role)
        assert ("ServiceAccount", pod["serviceAccountName"]) in names
        volumes = {volume["name"]: volume for volume in pod["volumes"]}
        assert {v["configMap"]["name"] for v in volumes.values() if "configMap" in v} <= maps
        [container] = pod["containers"]
        assert {mount["name"] for mount in container["volumeMounts"]} == set(volumes)
        ports = {port["name"] for port in container.get("ports", ())}
        probes = [value for name, value in container.items() if name.endswith("Probe")]
        assert {probe["httpGet"]["port"] for probe in probes} <= ports
        # the network policy opens the pods to one another by this label
        assert metadata["labels"]["app.kubernetes.io/name"] == "streaming-moments"
    assert roles == ["worker", "scheduler", "nightly"]


def test_pods_are_locked_down():
    for _, pod, _ in pod_specs(resources_of_base()):
        assert pod["securityContext"]["runAsNonRoot"]
        assert not pod["automountServiceAccountToken"]
        [container] = pod["containers"]
        context = container["securityContext"]
        assert context["readOnlyRootFilesystem"]
        assert not context["allowPrivilegeEscalation"]
        assert context["capabilities"]["drop"] == ["ALL"]
        assert "memory" in container["resources"]["limits"]
        secrets = [one["secretRef"]["name"] for one in container.get("envFrom", ())]
        assert set(secrets) <= {"streaming-moments-storage"}
        assert "env" not in container, "a value here may be a secret"


def test_the_network_lets_in_and_out_only_what_is_named():
    [policy] = [one for one in resources_of_base() if one["kind"] == "NetworkPolicy"]
    spec = policy["spec"]
    ours = {"matchLabels": {"app.kubernetes.io/name": "streaming-moments"}}
    assert (spec["podSelector"], sorted(spec["policyTypes"])) == (ours, ["Egress", "Ingress"])
    page = (Path(__file__).parents[2] / "docs" / "operation" / "deployment.md").read_text()
    [operator] = re.findall(r"helm install .*--namespace (\S+)", page)
    pods, scheduler = spec["ingress"]
    assert pods == {"from": [{"podSelector": ours}]}
    [asking] = scheduler["from"]
    named = asking["namespaceSelector"]["matchLabels"]
    assert named == {"kubernetes.io/metadata.name": operator}
    assert scheduler["ports"] == [{"protocol": "TCP", "port": 8787}]
    inside, names, storage = spec["egress"]
    assert inside == {"to": [{"podSelector": ours}]}
    assert {(port["protocol"], port["port"]) for port in names["ports"]} == {
        ("UDP", 53),
        ("TCP", 53),
    }
    assert all(one["namespaceSelector"]["matchLabels"] for one in names["to"])
    assert storage["ports"] == [{"protocol": "TCP", "port": 443}]
    # whoever reaches the metadata service of a cloud has the credentials of the node
    metadata = [ip_address("169.254.169.254"), ip_address("fd00:ec2::254")]
    for one in storage["to"]:
        allowed = ip_network(one["ipBlock"]["cidr"])
        but = [ip_network(part) for part in one["ipBlock"]["except"]]
        assert all(part.subnet_of(allowed) for part in but)
        assert not [
            address
            for address in metadata
            if address in allowed and not any(address in part for part in but)
        ]


def test_two_nights_never_run_at_once_and_a_refused_model_is_no_retry():
    [job] = [one for one in resources_of_base() if one["kind"] == "CronJob"]
    assert job["spec"]["concurrencyPolicy"] == "Forbid"
    rules = job["spec"]["jobTemplate"]["spec"]["podFailurePolicy"]["rules"]
    [codes] = [rule["onExitCodes"] for rule in rules if "onExitCodes" in rule]
    assert codes["values"] == [2, 3, 11]
    [container] = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    assert codes["containerName"] == container["name"]


@pytest.mark.parametrize(
    ("words", "core", "topics", "threads", "place"),
    [
        (10_000, 4096, 32, 2, "base"),
        (50_000, 4096, 64, 4, "overlays/example"),
        (10_000, 4096, 32, 2, "service"),
    ],
)
def test_the_limits_are_those_that_the_memory_projection_asks_for(
    words, core, topics, threads, place
):
    columns = -(-3 * topics // 2) + max(2, topics // 8)
    signs = np.random.default_rng(0).choice(np.array([-1, 1], dtype=np.int8), (core, columns))
    basis = Basis(signs, words)
    foundation = CountsFoundation(basis, True)
    job = Job(CorpusSize(1, 1, 1), foundation, row_blocks_for(foundation), topics, 1)
    text = (
        KUBERNETES / place / ("daskcluster.yaml" if place == "base" else "workers.yaml")
    ).read_text()
    limit = Bytes().convert(re.search(r"--memory-limit\s+- (\S+)", text)[1], None, None)
    assert int(re.search(r'--nthreads\s+- "(\d+)"', text)[1]) == threads
    assert limit == limit_for(comfortable_budget(job, threads))
    container = {int(size) << 20 for size in re.findall(r"memory: (\d+)Mi", text)}
    assert container == {limit + NANNY}


def test_the_overlay_renders_to_what_kubernetes_takes(dask_cluster_schema):
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("kubectl is not installed: apt-get install kubernetes-client")
    rendered = subprocess.run(
        [kubectl, "kustomize", str(EXAMPLE)], capture_output=True, text=True, timeout=60
    )
    assert rendered.returncode == 0, rendered.stderr
    resources = list(yaml.safe_load_all(rendered.stdout))
    for resource in resources:
        require_valid(resource, dask_cluster_schema)
        assert resource["metadata"]["namespace"] == "topics"
    pods = list(pod_specs(resources))
    assert len(pods) == 3
    for _, pod, _ in pods:
        assert (
            pod["containers"][0]["image"] == "registry.example.org/topics/streaming-moments:0.3.0"
        )
    [configured] = [one for one in resources if one["kind"] == "ConfigMap"]
    assert "s3://example-corpus/store" in configured["data"]["nightly.toml"]
    [volume] = [v for _, pod, _ in pods for v in pod["volumes"] if "configMap" in v]
    assert volume["configMap"]["name"] == configured["metadata"]["name"]
    [cluster] = [one for one in resources if one["kind"] == "DaskCluster"]
    assert cluster["spec"]["worker"]["replicas"] == 8
