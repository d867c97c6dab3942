"""The images of `docker/` are built and run: the service is well, and the agent plays."""

from __future__ import annotations

import json
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import animalcat
from tests import postgres
from tests.images import ROOT, Images
from tests.service.conftest import FILES

EPISODES = 2


@pytest.fixture(scope="module")
def images() -> Iterator[Images]:
    """A store of images, not in pytest's folders, which other users may not enter."""
    with tempfile.TemporaryDirectory(prefix="animalcat-images-", dir="/var/tmp") as folder:
        yield Images(Path(folder))


@pytest.fixture(scope="module")
def built(images: Images) -> tuple[str, str]:
    """The images of the service and of the agent."""
    return images.build("service"), images.build("agent-example")


@contextmanager
def served(images: Images, image: str, **variables: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Run the service as its image says; the container, and where it listens."""
    port = free_port()
    container = images.container(image)
    recipe = (ROOT / "docker/service/Dockerfile").read_text().splitlines()
    usual = json.loads(next(line for line in recipe if line.startswith("CMD "))[4:])
    command = images.command(container, *usual, "--json", ANIMALCAT_PORT=str(port), **variables)
    service = subprocess.Popen(command, stdout=subprocess.PIPE)
    try:
        assert service.stdout is not None
        said = json.loads(service.stdout.readline())
        yield container, {**said, "port": str(port)}
    finally:
        service.terminate()
        try:
            service.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            service.kill()
            service.communicate()


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def ran(command: list[str], seconds: float = 300.0) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("store", ["SQLite", "PostgreSQL"])
def test_the_images_play_an_episode(
    images: Images, built: tuple[str, str], store: str, tmp_path: Path
) -> None:
    for name, content in FILES[:6]:
        (tmp_path / name).write_bytes(content)
    if store == "SQLite":
        play(images, built, tmp_path)
    else:
        with postgres.running() as server, postgres.schema(server) as url:
            play(images, built, tmp_path, ANIMALCAT_STORE=url)


def play(images: Images, built: tuple[str, str], arenas: Path, **variables: str) -> None:
    service, agent = built
    with served(images, service, **variables) as (container, said):

        def inside(*command: str) -> subprocess.CompletedProcess[str]:
            port = {"ANIMALCAT_PORT": said["port"]}
            return ran(images.command(container, *command, **port, **variables))

        end = time.monotonic() + 60
        while (health := inside("animalcat-health")).returncode != 0:
            assert time.monotonic() < end, health.stderr
        assert inside("id", "-u").stdout.strip() == "1000"
        tokens = {
            role: json.loads(
                inside("animalcat", "token", "create", "--json", "--role", role, *more).stdout
            )["token"]
            for role, more in {"operator": (), "agent": ("--agent", "example")}.items()
        }
        address = f"localhost:{said['port']}"
        certificate = said["ca"]
        with animalcat.connect(address, token=tokens["operator"], ca=certificate) as client:
            client.import_battery(arenas, "small")
            session = client.create_session(
                agent="example", battery="small", max_episodes=EPISODES, certify=False
            )
            recipe = (ROOT / "docker/agent-example/Dockerfile").read_text().splitlines()
            usual = json.loads(next(line for line in recipe if line.startswith("CMD "))[4:])
            usual[usual.index("--connect") + 1] = address
            known = {"ANIMALCAT_TOKEN": tokens["agent"], "ANIMALCAT_CA": certificate}
            played = ran(images.command(images.container(agent), *usual, **known))
            assert played.returncode == 0, played.stderr
            assert client.get_session(session).state == "finished"
            assert sum(e.outcome in ("success", "failure") for e in client.episodes(session)) == 2
    assert inside_is_down(images, container, said["port"])


def inside_is_down(images: Images, container: str, port: str) -> bool:
    """Whether the health check says that nobody serves any more."""
    return ran(images.command(container, "animalcat-health", ANIMALCAT_PORT=port)).returncode != 0


def test_compose_files_name_what_is_there() -> None:
    yaml = pytest.importorskip("yaml")
    docker = ROOT / "docker"
    base = yaml.safe_load((docker / "compose.yaml").read_text())
    over = yaml.safe_load((docker / "compose.postgres.yaml").read_text())
    for service in base["services"].values():
        assert (docker / service["build"]["context"] / service["build"]["dockerfile"]).is_file()
    assert set(over["services"]) - set(base["services"]) == {"postgres"}
    words = set((docker / "README.md").read_text().split())
    assert {"docker/compose.yaml", "docker/compose.postgres.yaml"} <= words
