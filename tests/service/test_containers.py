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
    words = (DOCKER / "README.md").read_text().split()
    assert {"docker/compose.yaml", "docker/compose.postgres.yaml"} <= set(words)


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
