"""Unmodified `animalai` code in an adaptive session: a real server, the real stand-in."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import animalcat
from animalcat.cli.shared.output import BAD_INPUT, UNREACHABLE
from animalcat.client.session_source import SERVER, SESSION
from animalcat.envs.agents.load import load_agent

from .conftest import MakeSession, Server
from .test_animalai_agent import EXAMPLE

SCRIPT = Path(__file__).with_name("animalai_loop.py")
STAND_IN = Path(sys.executable).with_name("animalcat-unity")

PAGE = Path(__file__).resolve().parents[2] / "docs" / "unity.md"
PATIENCE = 200
"""Seconds after which a loop that does not end fails its test."""
EPISODES = 8
UNTIL_SPENT: Any = {"max_episodes": EPISODES, "target_sd": 0.0, "futility": 0.0}
"""A session that ends by its budget, never because it knows enough."""

Row = tuple[object, ...]


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("localhost", 0))
        return int(listener.getsockname()[1])


@contextmanager
def loop(name: str, folder: Path, server: str, session: str, **settings: Any) -> Generator[Any]:
    """A loop of animalai_loop.py, running."""
    words = [f"{key}={json.dumps(value)}" for key, value in settings.items()]
    process = subprocess.Popen(
        [sys.executable, SCRIPT, name, STAND_IN, str(free_port()), *words],
        env={**os.environ, SERVER: server, SESSION: session, "XDG_CACHE_HOME": str(folder)},
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def run(*arguments: Any, **settings: Any) -> tuple[list[dict[str, Any]], str, int]:
    """What a loop printed, what stands on its standard error, and how it ended."""
    with loop(*arguments, **settings) as process:
        out, err = process.communicate(timeout=PATIENCE)
        return (
            [json.loads(line) for line in out.splitlines() if line[0] == "{"],
            err,
            process.returncode,
        )


def rows(episodes: list[animalcat.values.Episode]) -> list[Row]:
    """Everything of episodes that depends on what the agent did."""
    return [
        (e.number, e.attempt, e.instance, e.outcome, e.episode_return, e.steps, e.ended_by,
         e.decision.propensity, e.decision.predicted, e.cause)
        for e in episodes
    ]  # fmt: skip


@pytest.fixture(scope="module")
def by_grpc(server: Server) -> list[Row]:
    """The episodes of the same agent over gRPC, with the same seed."""
    with animalcat.connect(server.address) as client:
        session = client.create_session(
            agent="over gRPC", battery="navigation", certify=False, seed=5, **UNTIL_SPENT
        )
        client.evaluate(load_agent(f"{EXAMPLE}:AnimalAIBraitenberg"), session)
        return rows(client.episodes(session))


@pytest.mark.parametrize(
    "name", ["reset", pytest.param("restart", marks=pytest.mark.slow), "gymnasium"]
)
def test_a_loop_that_knows_nothing_is_tested_as_an_agent_over_grpc_is(
    server: Server,
    client: animalcat.Client,
    make_session: MakeSession,
    by_grpc: list[Row],
    tmp_path: Path,
    name: str,
) -> None:
    session = make_session(seed=5, **UNTIL_SPENT)
    id_ = session.name.removeprefix("sessions/")
    printed, err, code = run(name, tmp_path, server.address, id_)
    assert (printed.pop(), code) == ({"ended": "UnityCommunicatorStoppedException"}, 0), err
    stored = client.episodes(session)
    assert rows(stored) == by_grpc
    assert [one["steps"] for one in printed] == [e.steps for e in stored]
    assert [one["return"] for one in printed] == pytest.approx(
        [e.episode_return for e in stored], abs=1e-4
    )
    assert len({e.instance for e in stored}) > 1
    assert f"has had its {EPISODES} episodes" in err
    # What is said, and so what the agent could read, names nothing of the arenas.
    assert not any(e.instance in err for e in stored)
    assert wait_for(lambda: client.get_session(session).state == "finished")


def test_the_page_can_be_followed(server: Server, client: animalcat.Client, tmp_path: Path) -> None:
    text = PAGE.read_text()
    play, _ = re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)[:2]
    (create,) = re.findall(
        r"^\.venv/bin/animalcat (session run --elsewhere .*)$", text, re.MULTILINE
    )
    (tmp_path / "arena.yml").write_text(text.split("```yaml\n")[1].split("```")[0])
    (tmp_path / "play.py").write_text(re.sub(r'"/home/me/[^"]*"', repr(str(STAND_IN)), play))
    create = create.replace("localhost:50051", server.address)
    assert server.address in create

    def python(*arguments: str, **variables: str) -> str:
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=tmp_path,
            env={**os.environ, "XDG_CACHE_HOME": str(tmp_path), **variables},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            timeout=PATIENCE,
        ).stdout

    session = python("-m", "animalcat", *create.split()).strip()
    out = python("play.py", **{SERVER: server.address, SESSION: session})
    stored = client.episodes(session)
    printed = re.findall(r"^episode (\d): return (\S+) after (\d+) steps$", out, re.MULTILINE)
    assert [(int(n), float(total), int(steps)) for n, total, steps in printed] == [
        (e.number, pytest.approx(e.episode_return, abs=0.006), e.steps) for e in stored
    ]
    assert len(stored) == 3


def test_an_episode_that_is_left_is_played_standing_still(
    server: Server, client: animalcat.Client, make_session: MakeSession, tmp_path: Path
) -> None:
    session = make_session(max_episodes=2)
    printed, err, code = run("leave", tmp_path, server.address, session.name)
    assert code == 0, err
    left, whole, _ = printed
    first, second = client.episodes(session)
    assert "episode 0 was left at decision 4" in err
    assert left["steps"] == 4 < first.steps
    assert first.ended_by == "time_limit"
    assert first.outcome == "failure"
    assert second.steps == whole["steps"]
    again, err, _ = run("reset", tmp_path, server.address, session.name)
    assert again == []
    assert "over" in err or "finished" in err


def test_a_client_that_is_killed_voids_its_episode(
    server: Server, client: animalcat.Client, make_session: MakeSession, tmp_path: Path
) -> None:
    session = make_session(max_episodes=1)
    with loop("wait", tmp_path, server.address, session.name) as process:
        process.stdout.readline()
    assert wait_for(lambda: client.episodes(session)[0].outcome is not None)
    [void] = client.episodes(session)
    assert (void.outcome, void.steps) == ("void", 4)
    printed, err, code = run("reset", tmp_path, server.address, session.name)
    assert code == 0, err
    _, played = client.episodes(session)
    assert (played.number, played.attempt, played.instance) == (0, 1, void.instance)
    assert played.steps == printed[0]["steps"]


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"useCamera": True, "resolution": 36}, "camera"),
        pytest.param({"raysPerSide": 4}, "9 rays", marks=pytest.mark.slow),
        pytest.param({"decisionPeriod": 5}, "5", marks=pytest.mark.slow),
    ],
)
def test_a_client_that_sees_otherwise_is_refused(
    server: Server,
    make_session: MakeSession,
    tmp_path: Path,
    settings: dict[str, Any],
    named: str,
) -> None:
    session = make_session()
    printed, err, code = run("reset", tmp_path, server.address, session.name, **settings)
    assert printed == []
    assert code == 1
    assert f"return code {BAD_INPUT}" in err
    assert named in err


def test_a_server_that_is_not_there_is_named(tmp_path: Path) -> None:
    address = f"localhost:{free_port()}"
    _, err, code = run("reset", tmp_path, address, "s1")
    assert code == 1
    assert f"return code {UNREACHABLE}" in err
    assert f"no animalcat server answers at {address}" in err


@pytest.mark.parametrize(
    ("server", "session", "missing"),
    [("", "s", SERVER), pytest.param("s:1", "", SESSION, marks=pytest.mark.slow)],
)
def test_a_session_needs_both_variables(
    tmp_path: Path, server: str, session: str, missing: str
) -> None:
    _, err, code = run("reset", tmp_path, server, session)
    assert code == 1
    assert f"return code {BAD_INPUT}" in err
    assert f"is set and {missing} is not" in err


def test_a_person_plays_no_session(server: Server, tmp_path: Path) -> None:
    _, err, code = run("reset", tmp_path, server.address, "s", play=True)
    assert code == 1
    assert f"return code {BAD_INPUT}" in err
    assert "a session is for an agent" in err


def wait_for(condition: Callable[[], bool]) -> bool:
    """Whether it comes true while one can wait."""
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True
