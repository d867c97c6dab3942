"""A campaign on a cluster, all of whose parts are lost once: as if it had been played here."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import psutil
import pytest

from animalcat.service.storage.artefacts import recording_path
from animalcat.service.storage.sql import SqlStore
from animalcat.values import Outcome
from tests.doors.ray import cluster_agents, clusters
from tests.service.conftest import FILES
from tests.service.test_restart import wait_for

CAMPAIGN = (
    "--agent agents.py:Walks --agent agents.py:Turns --battery arenas --layout aaio --budget 12 "
    "--common 3 --seed 3 --agent-may all"
)


def command(data: Path) -> list[str]:
    run = [sys.executable, "-m", "animalcat", "campaign", "run", *CAMPAIGN.split()]
    return [*run, "--data", str(data), "--json"]


def on_cluster(address: str) -> dict[str, str]:
    """The environment in which a command's own server uses a cluster."""
    return {**os.environ, "ANIMALCAT_ENGINE": "ray", "ANIMALCAT_RAY_ADDRESS": address}


def begin_one(
    folder: Path, data: Path, environment: dict[str, str] | None = None
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command(data),
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )


def show_value(process: subprocess.Popen[bytes]) -> dict[str, Any]:
    output, _ = process.communicate(timeout=280)
    assert process.returncode == 0
    campaign = json.loads(output)
    for agent in campaign["comparison"]["agents"]:
        del agent["played_on"]  # which says how many attempts were cut short
    told = ("campaign", "episodes", "over", "comparison", "common")
    return {key: campaign[key] for key in told}


def measure_all(data: Path) -> dict[str, Any]:
    """What the sessions left behind, but for attempts at which no agent is to blame."""
    store = SqlStore.in_directory(data)
    left: dict[str, Any] = {}
    for session in store.sessions():
        episodes = store.episodes(session.id)
        counted = [e for e in episodes if e.outcome in (Outcome.SUCCESS, Outcome.FAILURE)]
        profile = store.profile(session.id)
        assert profile is not None
        left[session.spec.agent] = {
            "decisions": [(e.number, e.decision, e.outcome, e.episode_return) for e in counted],
            # One that was repeated says so in its header.
            "recordings": {
                e.number: recording_path(data, session.id, e.number, e.attempt).read_bytes()
                for e in counted
                if not e.attempt
            },
            "profile": profile["nodes"],
            "lost": [(e.number, e.outcome) for e in episodes if e not in counted],
        }
    store.close()
    return left


def kill(process: subprocess.Popen[bytes]) -> None:
    """End a command and the server that it started, without a word to either."""
    for one in [*psutil.Process(process.pid).children(recursive=True), process]:
        os.kill(one.pid, signal.SIGKILL)
    process.communicate()


def prepare(folder: Path) -> None:
    """Write the agents and the arenas."""
    (folder / "arenas").mkdir()
    for name, content in FILES[:18]:
        (folder / "arenas" / name).write_bytes(content)
    shutil.copy(cluster_agents.__file__, folder / "agents.py")


@pytest.mark.cluster
@pytest.mark.timeout(600)
def test_what_stands_in_the_way_is_said_before_anything_is_played(tmp_path: Path) -> None:
    prepare(tmp_path)
    nobody = on_cluster("127.0.0.1:9")
    run = command(tmp_path / "data")
    done = subprocess.run(
        run, cwd=tmp_path, env=nobody, capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    absent = "no Ray cluster answers at 127.0.0.1:9"
    assert f"server did not start: {absent}" in done.stderr
    with closing(SqlStore.in_directory(tmp_path / "data")) as store:
        assert not store.campaigns()


@pytest.mark.cluster
@pytest.mark.timeout(900)
def test_a_campaign_loses_its_driver_and_a_node_and_no_result(tmp_path: Path) -> None:
    prepare(tmp_path)
    local = show_value(begin_one(tmp_path, tmp_path / "local"))
    expected = measure_all(tmp_path / "local")
    assert sum(len(one["decisions"]) for one in expected.values()) == 12

    data = tmp_path / "cluster"
    held = [tmp_path / f"{name}-held" for name in ("Walks", "Turns")]  # each on a node of its own

    def wait_and_forget() -> None:
        for one in held:
            wait_for(one.exists)
            one.unlink()

    with clusters.running() as cluster:
        clusters.add(cluster, cpus=0)  # the head plays nothing, and makes fits
        nodes = [clusters.add(cluster) for _ in range(2)]
        environment = on_cluster(cluster.address)

        (tmp_path / "hold-1").touch()
        first = begin_one(tmp_path, data, environment)
        wait_and_forget()
        kill(first)
        (tmp_path / "hold-1").unlink()

        (tmp_path / "hold-2").touch()
        second = begin_one(tmp_path, data, environment)
        wait_and_forget()
        clusters.lose(cluster, next(filter(clusters.simulates, nodes)))
        (tmp_path / "hold-2").unlink()
        assert show_value(second) == local

    found = measure_all(data)
    assert sum(len(one.pop("lost")) for one in found.values()) >= 3
    assert not any(one.pop("lost") for one in expected.values())
    for agent, one in expected.items():
        repeated = one["recordings"].keys() - found[agent]["recordings"].keys()
        assert len(repeated) <= 2
        for number in repeated:
            del one["recordings"][number]
    assert found == expected
