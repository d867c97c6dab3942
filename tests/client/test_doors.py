"""One policy through every door of the project: the recordings are equal."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import animalcat
from animalcat.envs.sim.environment import SimEnvironment
from animalcat.service.recording.encoding import recorded_step
from animalcat.service.recording.reader import Recording, read_episode
from animalcat.service.recording.verify import load_arena
from animalcat.v1 import results_pb2
from animalcat.wire.steps import observation_from_proto, spec_from_proto
from tests.doors import ALONE, DOORS, EPISODES, Visit, evaluate
from tests.doors.agents import Flat
from tests.doors.policy import pair

from .conftest import Server


def recordings(server: Server, session: str) -> list[Recording]:
    """The episodes of a session, in order of number."""
    folder = server.home / "recordings" / session.removeprefix("sessions/")
    read = [read_episode(path) for path in folder.glob("*.mcap")]
    assert len(read) == EPISODES
    return sorted(read, key=lambda one: one.header.name)


def steps(recording: Recording) -> list[bytes]:
    """What was seen and done and what came of it, byte for byte."""
    return [one.SerializeToString(deterministic=True) for one in recording.steps]


def header_of(recording: Recording) -> results_pb2.EpisodeHeader:
    """What an episode was to be; the names of session and agent, and the state, are the door's."""
    header = results_pb2.EpisodeHeader()
    header.CopyFrom(recording.header)
    header.name = header.agent = ""
    header.observation_spec.privileged = False
    return header


@cache
def truth(arena_yaml: str, seed: int, spec: bytes) -> list[bytes]:
    """What the policy does in an arena, without any door: simulator and policy alone."""
    header = results_pb2.EpisodeHeader(arena_yaml=arena_yaml, seed=seed)
    header.observation_spec.ParseFromString(spec)
    environment = SimEnvironment(spec_from_proto(header.observation_spec))
    step, action, taken = environment.load(load_arena(header), seed), None, list[bytes]()
    while True:
        told = recorded_step(len(taken), step, action, pixels=False)
        taken.append(told.SerializeToString(deterministic=True))
        if step.ended_by is not None:
            environment.close()
            return taken
        move, turn = pair(step.observation.rays)
        action = 3 * move + turn
        step = environment.step(action)


@pytest.fixture(scope="module")
def by_integers(server: Server, tmp_path_factory: pytest.TempPathFactory) -> list[Recording]:
    """The session of the plainest agent, to compare the others with."""
    with animalcat.connect(server.address) as client, pytest.MonkeyPatch.context() as patch:
        visit = Visit(client, "doors: the first", tmp_path_factory.mktemp("first"), patch)
        (session,) = evaluate(Flat(), visit)
    return recordings(server, session)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=door.marks) for name, door in DOORS.items()]
)
def test_every_door_gives_the_same_recordings(
    server: Server,
    client: animalcat.Client,
    by_integers: list[Recording],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    door = DOORS[name]
    for session in door.walk(Visit(client, f"doors: {name}", tmp_path, monkeypatch)):
        played = recordings(server, session)
        for one in played:
            header = one.header
            spec = header.observation_spec.SerializeToString(deterministic=True)
            assert steps(one) == truth(header.arena_yaml, header.seed, spec)
        if door.chooses:
            assert [header_of(one) for one in played] == [header_of(one) for one in by_integers]
            assert [one.footer for one in played] == [one.footer for one in by_integers]


@pytest.mark.parametrize("flat", [False, True], ids=["pairs", "integers"])
@pytest.mark.parametrize("name", ALONE)
def test_an_arena_alone_is_played_as_a_session_plays_it(
    by_integers: list[Recording], name: str, flat: bool
) -> None:
    first = by_integers[0]
    actions, rewards, rays = ALONE[name](first.header.arena_yaml, flat=flat)
    assert list(actions) == [one.action for one in first.steps[1:]]
    assert rewards == [one.reward for one in first.steps[1:]]
    spec = spec_from_proto(first.header.observation_spec)
    seen: list[Any] = [observation_from_proto(one.observation, spec).rays for one in first.steps]
    assert np.array_equal(rays, seen)


def test_the_policy_does_several_things(by_integers: list[Recording]) -> None:
    """Else doors that mix actions up would go unseen."""
    done = {step.action for one in by_integers for step in one.steps[1:]}
    assert len(done) >= 3
