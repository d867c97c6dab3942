"""The doors of the project, in one place: every way in which a policy comes to play a session.

A new door is a function here and a row of `DOORS`; `tests/client/test_doors.py` walks them all and
holds the recordings equal.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import animalcat
from animalcat.client.direct import DirectError, DirectPlay
from animalcat.client.session_source import SERVER, SESSION
from animalcat.envs.agents.limits.limited import limit_agent
from animalcat.envs.agents.limits.reference import read_reference
from tests.doors import agents, policy

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(__file__).parent
CLIENTS = ROOT / ".clients"
"""Unmodified clients in environments of their own, which `make env-unity` makes."""
STAND_IN = Path(sys.executable).with_name("animalcat-unity")
EPISODES = 3
PATIENCE = 200


@dataclass(frozen=True)
class Visit:
    """Who stands before a door: a client of the server, and what may be used there."""

    client: animalcat.Client
    name: str
    folder: Path
    patch: pytest.MonkeyPatch

    def session(self, **fields: Any) -> animalcat.values.Session:
        """The same session for each door, but for the agent's name."""
        spec = {"agent": self.name, "battery": "navigation", "certify": False, "seed": 5}
        spec |= {"max_episodes": EPISODES, "target_sd": 0.0, "futility": 0.0}
        return self.client.create_session(**{**spec, **fields})

    def run(self, *words: str | Path, **variables: str) -> str:
        """What a program prints."""
        done = subprocess.run(
            words,
            cwd=ROOT,
            env={**os.environ, "XDG_CACHE_HOME": str(self.folder), **variables},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


Walk = Callable[[Visit], list[str]]
"""Goes through a door, and names the sessions that were played."""


def evaluate(agent: Any, visit: Visit, **fields: Any) -> list[str]:
    """`Client.evaluate`, of which the client plays with the worker itself."""
    session = visit.session(**fields)
    visit.client.evaluate(agent, session)
    return [session.name]


def relay_visit(visit: Visit) -> list[str]:
    """The server relays, as where the ports of its workers are closed."""

    async def raise_closed(*_: Any) -> DirectPlay:
        raise DirectError("closed")

    visit.patch.setattr(DirectPlay, "open", raise_closed)
    return evaluate(agents.Predicting(), visit)


def asynchronous(visit: Visit) -> list[str]:
    """`AsyncClient.evaluate` of an agent whose thinking is a coroutine."""

    async def play() -> str:
        session = visit.session()
        async with animalcat.aconnect(visit.client.address) as client:
            await client.evaluate(agents.Asking(), session)
        return session.name

    return [asyncio.run(play())]


def behind_limits(visit: Visit) -> list[str]:
    """Limits that never act, one of which takes several actions one at a time."""
    reference = read_reference("builtin:random+lapses=0+path=1000+gives-up=1000")
    return evaluate(limit_agent(agents.Predicting(), reference), visit)


def remote_env(visit: Visit, *, flat: bool) -> list[str]:
    """A Gymnasium loop around a session."""
    session, model = visit.session(), policy.Model()
    env = animalcat.RemoteEnv(visit.client.address, session, flat_actions=flat, sensors=["rays"])
    with closing(env):
        while not env.session_over:
            seen, _ = env.reset()
            ended = False
            while not ended:
                action = model.predict(seen, deterministic=True)[0]
                taken = np.int64(3 * action[0] + action[1]) if flat else action
                seen, _, terminated, truncated, _ = env.step(taken)
                ended = terminated or truncated
    return [session.name]


def agent_run(visit: Visit) -> list[str]:
    """`agent run`, which loads the class from its file."""
    session = visit.session()
    visit.run(
        *(sys.executable, "-m", "animalcat", "agent", "run", "--name", visit.name),
        *("--connect", visit.client.address, "--session", session.id),
        *("--agent", f"{FOLDER / 'agents.py'}:Predicting"),
        PYTHONPATH=str(ROOT),
    )
    return [session.name]


def session_run(visit: Visit) -> list[str]:
    """`session run`, which starts the agent apart."""
    told = visit.run(
        *(sys.executable, "-m", "animalcat", "session", "run", "--json"),
        *("--server", visit.client.address, "--battery", "navigation", "--no-certify"),
        *("--seed", "5", "--max-episodes", str(EPISODES), "--target-sd", "0", "--futility", "0"),
        *("--agent", f"{FOLDER / 'agents.py'}:Predicting"),
        PYTHONPATH=str(ROOT),
    )
    return [f"sessions/{json.loads(told)['session'].removeprefix('sessions/')}"]


def campaign(visit: Visit) -> list[str]:
    """Two agents of one campaign, which answer in two forms."""
    made = visit.client.create_campaign(
        agents=["doors: flat", "doors: pair"],
        battery="navigation",
        budget=2 * EPISODES,
        common=EPISODES,
        seed=5,
        certify=False,
    )
    players = zip((agents.Flat(), agents.Predicting()), made.sessions, strict=True)

    async def play() -> None:  # at once, since each waits for what the other's round has told
        async with animalcat.aconnect(visit.client.address) as client:
            await asyncio.gather(*(client.evaluate(*player) for player in players))

    asyncio.run(play())
    return [session.name for session in made.sessions]


def animalai(version: str, visit: Visit) -> list[str]:
    """Unmodified `animalai` on the stand-in, whose arenas the session chooses."""
    python = Path(sys.executable)
    if version:
        python = CLIENTS / f"animalai-{version}" / "bin" / "python"
        if not python.exists():
            pytest.skip(f"animalai {version} is not set up here: make env-unity")
    session = visit.session()
    with socket.socket() as listener:
        listener.bind(("localhost", 0))
        port = listener.getsockname()[1]
    # By its folder at the end: beside it lies one that is named `inspect` as a module of Python.
    script = f"import sys; sys.path.append({str(FOLDER)!r}); import animalai_client as a; a.main"
    visit.run(
        *(python, "-c", f"{script}(*sys.argv[1:])", STAND_IN, str(port)),
        **{SERVER: visit.client.address, SESSION: session.id},
    )
    return [session.name]


@dataclass(frozen=True)
class Door:
    """A way in.

    Attributes:
        walk: Goes through it.
        chooses: Whether its session chooses what every other door's session chooses.
        marks: Of its test.
    """

    walk: Walk
    chooses: bool = True
    marks: tuple[Any, ...] = field(default=())


THOROUGH = (pytest.mark.thorough,)

DOORS: dict[str, Door] = {
    "evaluate, integers": Door(partial(evaluate, agents.Flat())),
    "evaluate, tuples": Door(partial(evaluate, agents.Pair()), marks=THOROUGH),
    "evaluate, Actions": Door(partial(evaluate, agents.Several()), marks=THOROUGH),
    "evaluate, arrays (1, 2)": Door(partial(evaluate, agents.Rows()), marks=THOROUGH),
    "evaluate, predict of Stable-Baselines3": Door(partial(evaluate, agents.Predicting())),
    "evaluate, privileged": Door(
        partial(
            evaluate,
            agents.Predicting(),
            observation_spec=animalcat.ObservationSpec(privileged=True),
        ),
        marks=THOROUGH,
    ),
    "evaluate, two slots": Door(partial(evaluate, agents.Predicting, slots=2), chooses=False),
    "evaluate, relayed": Door(relay_visit),
    "evaluate, coroutines": Door(asynchronous, marks=THOROUGH),
    "evaluate, behind limits": Door(behind_limits, marks=THOROUGH),
    "RemoteEnv, pairs": Door(partial(remote_env, flat=False)),
    "RemoteEnv, integers": Door(partial(remote_env, flat=True), marks=THOROUGH),
    "campaign": Door(campaign, chooses=False, marks=THOROUGH),
    "agent run": Door(agent_run, marks=THOROUGH),
    "session run": Door(session_run, marks=THOROUGH),
    "animalai of this environment": Door(partial(animalai, ""), marks=THOROUGH),
    **{
        f"animalai {version}": Door(partial(animalai, version), marks=THOROUGH)
        for version in ("6.2.0", "6.2.0-python3.14", "5.0.1", "4.1.0")
    },
}
"""Every door that leads into a session, by name."""


def arena(arena_yaml: str, *, flat: bool) -> tuple[bytes, list[float], list[Any]]:
    """`Arena-v0`, which no session stands behind: an episode's actions, rewards and rays."""
    env = gymnasium.make(
        "animalcat/Arena-v0", arena=arena_yaml, flat_actions=flat, sensors=["rays"]
    )
    return _alone(env, flat)


def step_as_vector(arena_yaml: str, *, flat: bool) -> tuple[bytes, list[float], list[Any]]:
    """The same in a vector of one, which hands the rows of a batch on."""
    envs = gymnasium.make_vec(
        "animalcat/Arena-v0",
        num_envs=1,
        arena=arena_yaml,
        flat_actions=flat,
        sensors=["rays"],
    )
    return _alone(envs, flat, batch=True)


def _alone(env: Any, flat: bool, batch: bool = False) -> tuple[bytes, list[float], list[Any]]:
    model, actions, rewards = policy.Model(), bytearray(), list[float]()
    seen, _ = env.reset(seed=0)
    rays, ended = [np.ravel(seen)], False
    with closing(env):
        while not ended:
            action = model.predict(rays[-1], deterministic=True)[0]
            number = int(3 * action[0] + action[1])
            taken = np.int64(number) if flat else action
            given = env.step(np.array([taken]) if batch else taken)
            seen, reward, terminated, truncated = (np.ravel(one) for one in given[:4])
            actions.append(number)
            rewards.append(float(reward[0]))
            rays.append(seen)
            ended = bool(terminated[0] or truncated[0])
    return bytes(actions), rewards, rays


ALONE = {"Arena-v0": arena, "make_vec": step_as_vector}
"""Every door that leads to an arena without a session, by name."""
