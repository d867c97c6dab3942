"""What docker/ says of the images is so, as far as it can be told without building them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.service.test_restart import Server

DOCKER = Path(__file__).resolve().parents[2] / "docker"


def test_compose_files_name_what_is_there() -> None:
    base = yaml.safe_load((DOCKER / "compose.yaml").read_text())
    over = yaml.safe_load((DOCKER / "compose.postgres.yaml").read_text())
    for service in base["services"].values():
        assert (DOCKER / service["build"]["context"] / service["build"]["dockerfile"]).is_file()
    assert set(over["services"]) - set(base["services"]) == {"postgres"}
    # Else a container that is made anew would not know what it was asked before.
    assert base["services"]["service"]["hostname"] == "service"
    words = (DOCKER / "README.md").read_text().split()
    assert {"docker/compose.yaml", "docker/compose.postgres.yaml"} <= set(words)


def test_the_pods_of_the_cluster_have_what_they_name() -> None:
    """As far as the values alone tell; neither Helm nor the chart is asked."""
    values = yaml.safe_load((DOCKER / "cluster/kuberay-values.yaml").read_text())
    assert set(values) == {"image", "head", "worker"}
    image = f"{values['image']['repository']}:{values['image']['tag']}"
    (server,) = values["head"]["sidecarContainers"]
    assert server["image"] == image
    for container, pod in ((values["head"], values["head"]), (server, values["head"])):
        assert {m["name"] for m in container["volumeMounts"]} <= {v["name"] for v in pod["volumes"]}
    for container in (values["head"], values["worker"], server):
        assert "/data" in {mount["mountPath"] for mount in container["volumeMounts"]}
        assert container["resources"]["limits"]["memory"].endswith("Gi")
    for pod in (values["head"], values["worker"]):  # options of `ray start`, all of them texts
        assert all(isinstance(value, str) for value in pod["rayStartParams"].values())
    compose = yaml.safe_load((DOCKER / "cluster/compose.yaml").read_text())
    serve = "exec animalcat serve --engine ray --address"
    assert serve in compose["services"]["server"]["command"][-1]
    assert serve in server["command"][-1]


@pytest.mark.slow
def test_the_health_check_of_the_service(tmp_path: Path) -> None:
    server = Server(tmp_path, ANIMALCAT_SELF_SIGNED="true")
    check = [sys.executable, DOCKER / "service/health.py"]
    asked = os.environ | {"ANIMALCAT_PORT": server.address.rpartition(":")[2]}
    try:
        assert subprocess.run(check, env=asked, check=False).returncode == 0
    finally:
        server.stop(9)
    assert subprocess.run(check, env=asked, stderr=subprocess.PIPE, check=False).returncode != 0
