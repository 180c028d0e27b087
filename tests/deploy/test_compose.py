import json
from pathlib import Path

import jsonschema
import pytest
import yaml

from streaming_moments.pipelines.nightly.config import read_config

DEPLOY = Path(__file__).parents[2] / "deploy"
SCHEMA = json.loads((Path(__file__).parent / "schemas" / "compose-spec.json").read_text())


@pytest.fixture
def compose():
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text())


def test_the_file_is_a_compose_file(compose):
    jsonschema.validate(compose, SCHEMA)


def test_a_misspelled_key_is_found(compose):
    compose["services"]["worker"]["depend_on"] = compose["services"]["worker"].pop("depends_on")
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(compose, SCHEMA)


def test_it_has_storage_scheduler_workers_and_the_nightly_job(compose):
    services = compose["services"]
    assert set(services) == {"storage", "scheduler", "worker", "put", "nightly", "serve"}
    for service in services.values():
        assert set(service.get("depends_on", ())) <= set(services)
        assert {one["source"] for one in service.get("configs", ())} <= set(compose["configs"])
    for config in compose["configs"].values():
        assert (DEPLOY / config["file"]).is_file()
    for service in services.values():
        if "build" in service:
            root = DEPLOY / service["build"]["context"]
            assert (root / service["build"]["dockerfile"]).is_file()


def test_services_of_ours_are_locked_down(compose):
    for name, service in compose["services"].items():
        if name == "storage":
            continue
        assert service["read_only"]
        assert service["cap_drop"] == ["ALL"]
        assert service["tmpfs"] == ["/tmp"]


def test_only_dashboard_and_service_are_open_and_only_to_this_machine(compose):
    ports = [port for one in compose["services"].values() for port in one.get("ports", ())]
    assert ports == ["127.0.0.1:8787:8787", "127.0.0.1:8080:8080"]


@pytest.mark.parametrize(
    "path", sorted(DEPLOY.rglob("nightly.toml")), ids=lambda path: path.parent.name
)
def test_the_configurations_are_what_the_nightly_job_takes(path):
    config = read_config(path)
    assert config.cluster.scheduler
    assert config.create
