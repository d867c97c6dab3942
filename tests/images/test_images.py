"""The images are built, and played with as docker/README.md says, by a real container engine.

`make test KIND=images` runs these. Where no container can be run they are skipped, and say why.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.images.containers import (
    BASE,
    DOCKER,
    HUB,
    POSTGRES,
    Engine,
    NoEngineError,
    Pods,
    Project,
)
from tests.images.openenv_package import PYTHON, validate
from tests.images.pods import AGENT, HEAD, SHELLS, pod
from tests.service.conftest import FILES

pytestmark = [pytest.mark.images, pytest.mark.timeout(2400)]

COMPOSE = "docker/compose.yaml"
OVER = "docker/compose.postgres.yaml"
CLUSTER = "docker/cluster/compose.yaml"
MOST_MB = {"animalcat": 1250, "animalcat-agent": 300, "animalcat-cluster": 1500}
"""Most megabytes of each image, unpacked; docs/operations.md names what they have."""


@pytest.fixture(scope="session")
def engine() -> Generator[Engine]:
    """An engine that has built all images."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = os.environ.get("ANIMALCAT_IMAGES") or Path(cache) / "animalcat" / "images"
    try:
        made = Engine(Path(folder).resolve())
        with made.serving():
            Project(made, "build", [COMPOSE], {}).compose("--profile", "agent", "build")
            Project(made, "build", [CLUSTER], {}).compose("build")
            yield made
    except NoEngineError as error:
        pytest.skip(f"no container engine: {error}")


@pytest.fixture(scope="session")
def arenas(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A few arenas, which are measured in a moment."""
    folder = tmp_path_factory.mktemp("made") / "few"
    folder.mkdir()
    for name, content in FILES[:16]:
        (folder / name).write_bytes(content)
    return folder


@contextmanager
def project(engine: Engine, *files: str, **variables: str) -> Generator[Project]:
    """A project whose containers and volumes are gone after the block."""
    made = Project(engine, f"acat{os.getpid()}", files, variables)
    made.down("--volumes")
    try:
        yield made
    finally:
        made.down("--volumes", "--timeout", "5")


def words_of(line: str) -> str:
    """A line that docker/README.md has."""
    assert line in (DOCKER / "README.md").read_text(), line
    return line


def free_port() -> str:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return str(taken.getsockname()[1])


@pytest.mark.parametrize("name", MOST_MB)
def test_an_image_is_small_and_unprivileged(engine: Engine, name: str) -> None:
    found = engine.image(name)
    assert found["Size"] / 1e6 < MOST_MB[name]
    assert found["Config"]["User"] in ("animalcat", "agent")
    # Nothing that installs more, and no source.
    script = "id -u; command -v pip gcc; ls -d /src /root/.cache 2> /dev/null; true"
    shown = engine.podman("run", "--rm", "--network", "none", name, "sh", "-c", script)
    assert shown.split() == ["1000"]


def test_what_is_built_on_is_pinned(engine: Engine) -> None:
    for file in DOCKER.glob("*/Dockerfile"):
        text = file.read_text()
        assert f"ARG BASE={BASE.rpartition('/')[2]}\n" in text
        assert text.count("--require-hashes") == 2
        assert not re.search(r"pip\S* install (?!.*(--require-hashes|--no-index))", text)
    over = yaml.safe_load((DOCKER / "compose.postgres.yaml").read_text())
    assert over["services"]["postgres"]["image"] == POSTGRES.rpartition("/")[2]
    assert engine.image("animalcat")["Healthcheck"]["Test"] == ["CMD", "animalcat-health"]


def test_openenv_validates_its_package(engine: Engine, tmp_path: Path) -> None:
    """The validator builds the image from the package's folder, and plays without a network."""
    if not PYTHON.exists():
        pytest.skip("OpenEnv is not installed: make env-openenv")
    report, table = validate(engine, tmp_path)
    found = {result["check_id"]: result["status"] for result in report["results"]}
    assert not {"fail", "error"} & {*found.values()}, table
    graded = ("startup", "reward_well_formed", "observation_schema", "state_contract")
    for name in (*graded, "network_policy"):
        assert found[f"runtime.{name}"] == "pass", table
    # What is skipped, its build has no grader for; these are tests of ours (tests/doors/openenv).
    why = {tuple(r["evidence"]) for r in report["results"] if r["status"] == "skip"}
    assert why == {("grader not implemented in this build",)}, table


@pytest.mark.parametrize("store", ["sqlite", "postgresql"])
def test_an_agent_plays_with_the_service(
    engine: Engine, store: str, arenas: Path, tmp_path: Path
) -> None:
    """Both in containers, over TLS, with a token; and the outcomes outlast the containers."""
    port = free_port()
    files = [COMPOSE, OVER] if store == "postgresql" else [COMPOSE]
    with project(engine, *files, ANIMALCAT_PORT=port, POSTGRES_PASSWORD="chosen") as made:
        made.up("service")
        state = made.run("service", "cat /proc/1/status")
        assert re.search(r"^Uid:\s+1000", state, re.MULTILINE)
        assert re.search(r"^CapEff:\s+0+$", state, re.MULTILINE)
        assert re.search(r"^NoNewPrivs:\s+1$", state, re.MULTILINE)
        with pytest.raises(subprocess.CalledProcessError):
            made.run("service", "touch /opt/written")
        (ca,) = set(re.findall(r"sha256:[0-9a-f]{64}", made.compose("logs", "service")))
        known = {"ANIMALCAT_CA": ca}
        made.copy(arenas, "service", "/data/few")
        create = (
            "animalcat session run --elsewhere --agent example --battery /data/few --max-episodes 3"
        )
        made.run("service", create + " --no-certify", **known)
        token = made.run("service", words_of("animalcat token create --agent example"))
        made.environment |= {"ANIMALCAT_CA": ca, "ANIMALCAT_TOKEN": token}

        played = f"{made.name}_played"
        made.compose("run", "--detach", "--no-deps", "--name", played, "agent")
        assert engine.podman("wait", played).strip() == "0", engine.podman("logs", played)
        assert "3 episodes counted, 3 played here" in engine.podman("logs", played)
        engine.podman("rm", played)

        made.down()  # and the volumes stay
        made.up("service")
        (session,) = json.loads(made.run("service", "animalcat session list --json", **known))
        assert (session["state"], session["episodes"]) == ("finished", 3)
        verify = f"animalcat session show --verify {session['session']}"
        made.run("service", verify, **known)
        if store == "postgresql":
            query = ["-tAc", "select count(*) from episodes"]
            counted = made.compose(
                "exec", "-T", "postgres", "psql", "--username", "animalcat", *query
            )
            assert counted.strip() == "3"

        # Another machine comes by the port that is published, and a foreign token opens nothing.
        command = [sys.executable, "-m", "animalcat", "session", "list", "--server"]
        for shown, code in ((token, 0), ("acat_0_0", None)):
            outside = os.environ | {"ANIMALCAT_CA": ca, "ANIMALCAT_TOKEN": shown}
            done = subprocess.run(
                [*command, f"localhost:{port}"], env=outside, capture_output=True, check=False
            )
            assert (done.returncode == 0) == (code == 0), done.stderr


def test_a_cluster_plays_a_campaign(engine: Engine, arenas: Path) -> None:
    """Head, two workers and server are containers with addresses of their own."""
    with project(engine, CLUSTER) as made:
        made.up()
        assert len(made.containers()) == 4
        made.copy(arenas, "server", "/data/few")
        own = made.run("server", "hostname -I").split()
        assert_campaign_is_played(made, "server", own)


@pytest.mark.parametrize("shell", SHELLS)
def test_pods_of_the_values_play_a_campaign(engine: Engine, arenas: Path, shell: str) -> None:
    """They are what KubeRay makes of the values, as older versions and newer ones call `ray`."""
    values = yaml.safe_load((DOCKER / "cluster" / "kuberay-values.yaml").read_text())
    head, worker = values["head"], values["worker"]
    image = f"{HUB}/{values['image']['repository']}:{values['image']['tag']}"
    (sidecar,) = head["sidecarContainers"]
    sidecar |= {"image": image, "imagePullPolicy": "Never"}
    made = Pods(engine, name := f"acat{os.getpid()}{shell}")
    try:
        address = made.up(pod(f"{name}-head", head, image, shell))
        server = f"{name}-head-{sidecar['name']}"
        asked = {f"{name}-head-ray-head": HEAD, server: "animalcat server status"}
        for number in range(worker["replicas"]):
            made.up(pod(f"{name}-{number}", worker, image, shell, address))
            asked[f"{name}-{number}-ray-worker"] = AGENT
        engine.wait_until(lambda one: made.says(one, asked[one]), list(asked))
        made.copy(arenas, server, "/data/few")
        assert_campaign_is_played(made, server, [address])
    finally:
        made.down()


def assert_campaign_is_played(made: Project | Pods, server: str, own: list[str]) -> None:
    """Assert that both workers play it, and neither head nor server does.

    It is long enough that whoever asks every few seconds sees who plays.
    """
    campaign = made.begin(
        server,
        "animalcat campaign run --agent builtin:random --agent builtin:braitenberg "
        "--battery /data/few --budget 30 --common 2 --no-certify --json",
    )
    nodes: set[str] = set()
    fitting: set[str] = set()
    while campaign.poll() is None:
        found: dict[str, Any] = json.loads(made.run(server, "animalcat server status --json"))
        assert found["engine"] == "ray"
        nodes |= {one["node"] for one in found["workers"] if one["session"]}
        fitting |= {one["node"] for one in found["fits"] if one["node"]}
        time.sleep(1)
    printed, errors = campaign.communicate()
    assert campaign.returncode == 0, errors
    played = json.loads(printed)
    assert (played["episodes"], played["over"]) == (30, True)
    assert len(nodes) == 2  # each worker plays
    assert not nodes & set(own)
    assert fitting
