"""A law: for any arena and answer, what a speaker is told agrees with the simulator's state."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from animalcat.arena_configs.model import Arena, FreezeAgent, Item, Vector3
from animalcat.arena_configs.sequence import of_parts
from animalcat.arena_configs.tags import LOGGED_TAGS
from animalcat.doors.speech import Conversation, Deed, Go, Press, Tongue, Turn, Wait
from animalcat.doors.speech.perceiving import KINDS
from animalcat.envs.agents.base import EpisodeInfo
from animalcat.envs.sim.environment import SimEnvironment
from animalcat.envs.sim.movement import AgentBody
from animalcat.envs.state import AGENT, Column
from animalcat.envs.types import PHYSICS_STEP, CameraSpec, ObservationSpec, RaySpec

THINGS = (
    *("Wall", "WallTransparent", "CylinderTunnel", "Ramp", "LightBlock", "HeavyBlock", "UBlock"),
    *("GoodGoalMulti", "GoodGoalMultiBounce", "BadGoalMulti", "DecoyGoalBounce", "HotZone"),
    *("SpawnerTree", "GoodGoalBounce", "GrowGoal"),
)
BUDGET = 400
"""Physics steps that an agent without a limit of time is watched."""
NOT_SOLID = [LOGGED_TAGS.index(tag) for tag in ("DeathZone", "HotZone", "DataZone")]
TAGS = {words: [tag for tag in KINDS if KINDS[tag] == words] for words in KINDS.values()}


@dataclass
class Truth:
    """What the simulator knows of a deed."""

    yaw: float
    begin: npt.NDArray[Any]
    turned: float = 0.0
    blind: bool = False
    put: bool = False


@pytest.mark.parametrize(
    "episodes",
    [
        pytest.param(range(50), id="50"),
        pytest.param(
            range(50, 2050), id="2000", marks=[pytest.mark.slow, pytest.mark.timeout(3600)]
        ),
    ],
)
def test_what_a_speaker_is_told_is_so(episodes: range, monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[bool] = []
    step = AgentBody.step

    def noting_step(
        body: AgentBody, move: int, turn: int, *, steps: int = 1, coast: bool = False
    ) -> None:
        held.extend([coast] * steps)
        step(body, move, turn, steps=steps, coast=coast)

    monkeypatch.setattr(AgentBody, "step", noting_step)
    for seed in episodes:
        held.clear()
        try:
            play(seed, held)
        except AssertionError as error:
            raise AssertionError(f"episode {seed}: {error}") from error


def play(seed: int, held: list[bool]) -> None:
    rng = np.random.default_rng(seed)
    spec = ObservationSpec(
        CameraSpec(16) if rng.random() < 0.2 else None,
        RaySpec(int(rng.integers(0, 5)), 90.0, 18) if rng.random() < 0.9 else None,
        int(rng.choice([1, 3, 3, 5, 10, 20])),
        privileged=True,
    )
    arena = random_arena(rng)
    environment = SimEnvironment(spec)
    step = environment.load(arena, seed)
    budget = -(-arena.time_limit * 5 // spec.decision_period)
    # Health tells of holds at the start, and not of those by a zone.
    limited = arena.time_limit > 0 and all(item.name != "DataZone" for item in arena.items)
    talk = Conversation(Tongue(answers=100), EpisodeInfo(0, seed, spec, budget))
    talk.next(step.observation)
    check_seen(talk.show().text, environment, spec)
    while step.ended_by is None and environment.physics_steps < BUDGET:
        world, begun, deed = environment.world, len(held), random_deed(rng)
        truth = Truth(world.agent.yaw, step.observation.position.copy())
        talk.hear([deed])
        while step.ended_by is None and (actions := talk.next(step.observation)):
            for action in actions:
                if step.ended_by is None:
                    stage, yaw = environment.world.stage, environment.world.agent.yaw
                    height = step.observation.position[1]
                    step = environment.step(action)
                    agent = environment.world.agent
                    truth.put = truth.put or environment.world.stage is not stage
                    truth.turned += (agent.yaw - yaw + 180) % 360 - 180
                    drop = abs(step.observation.position[1] - height)
                    truth.blind = truth.blind or drop > 1e-3 or is_blind(step.observation, spec)
        if step.ended_by is None:
            text = talk.show().text
            if not truth.put:
                check_done(text, deed, truth, environment, spec)
                check_hold(text, deed, held, begun, truth, limited)
            check_seen(text, environment, spec)


def random_arena(rng: np.random.Generator) -> Arena:
    """An arena of random things, in which the agent may be held at the start, or later on."""
    hold = float(rng.choice([0, 0, rng.uniform(0.02, 1), rng.uniform(1, 4)]))
    agent = Item(name="Agent", frozen_agent_delays=(hold,) if hold else ())
    others = [Item(name=str(name)) for name in rng.choice(THINGS, rng.integers(0, 9))]
    if rng.random() < 0.2:
        operation = FreezeAgent(freeze_steps=int(rng.integers(10, 150)))
        size = Vector3(x=12.0, y=2.0, z=12.0)
        others.append(Item(name="DataZone", sizes=(size,), operations=(operation,)))
    limit = int(rng.integers(20, 400)) if rng.random() < 0.5 else 0
    arena = Arena(time_limit=limit, items=(agent, *others))
    if rng.random() < 0.1:
        first = arena.model_copy(update={"merge_next_arena": True})
        return of_parts([first, arena])
    return arena


def random_deed(rng: np.random.Generator) -> Deed:
    """A deed as a speaker might ask for."""
    return (
        Go(float(rng.choice([rng.uniform(-6, 12), rng.uniform(-35, 35), 0.5]))),
        Turn(float(rng.uniform(-360, 360))),
        Turn(float(rng.choice([-90, -30, 30, 90]))),
        Go(float(rng.uniform(1, 30))),
        Wait(float(rng.uniform(0, 1))),
        Press(int(rng.integers(0, 9)), int(rng.integers(1, 12))),
    )[rng.integers(0, 6)]


def check_done(
    text: str, deed: Deed, truth: Truth, environment: SimEnvironment, spec: ObservationSpec
) -> None:
    """What is told of moving, turning and meeting."""
    agent = environment.world.agent
    if isinstance(deed, Turn):
        told = re.search(r"You turned (\d+)°( or so|, as far as you can tell)? to the (\w+)", text)
        assert told, text
        degrees = int(told[1]) * (1 if told[3] == "right" else -1)
        off = abs(degrees - truth.turned)
        if told[2] == ", as far as you can tell":
            assert truth.blind, text
        else:
            assert off <= (4 * spec.decision_period if told[2] else 0.51), (text, truth)
    if isinstance(deed, Go):
        way = np.asarray(agent.position)[[0, 2]] - truth.begin[[0, 2]]
        sin, cos = np.sin(np.radians(truth.yaw)), np.cos(np.radians(truth.yaw))
        forward, right = way[0] * sin + way[1] * cos, way[0] * cos - way[1] * sin
        told = re.search(r"You went ([\d.]+) m (forward|backward)", text)
        if told:
            metres = float(told[1]) * (1 if told[2] == "forward" else -1)
            assert abs(metres - forward) < 0.08, (text, forward, right)
            slid = re.search(r"slid some (\d+) m to the (\w+)", text)
            side = float(slid[1]) * (1 if slid[2] == "right" else -1) if slid else 0.0
            assert abs(side - right) < (1.0 if slid else 0.75), (text, forward, right)
        else:
            told = re.search(r"You moved ([\d.]+) m", text)
            assert told, text
            assert abs(float(told[1]) - np.hypot(forward, right)) < 0.08, (text, forward, right)
        if "something is in the way" in text:
            ahead = np.asarray(agent.position) + 0.4 * np.array([sin, 0.0, cos])
            solid = ~np.isin(state_of(environment)[:, Column.TAG], NOT_SOLID)
            assert gaps(ahead, state_of(environment))[solid].min() < 0.5, text


def check_hold(
    text: str, deed: Deed, held: list[bool], begun: int, truth: Truth, limited: bool
) -> None:
    """What is told of being held."""
    told = re.search(r"You (are|were) held,? for (at least )?([\d.]+) s", text)
    runs = [len(run) * PHYSICS_STEP for run in "".join(" x"[one] for one in held).split()]
    if told and told[1] == "are":
        assert held[-1], text
        runs = runs[-1:]
    if told:
        off = np.array(runs or [0.0]) - float(told[3])
        assert off.max() > -0.051 if told[2] else np.abs(off).min() < 0.051, (text, runs)
    whole = begun < len(held) and all(held[begun:])
    if whole and ((limited and all(held)) or (isinstance(deed, Turn) and not truth.blind)):
        assert told, text
        assert told[1] == "are", text


def check_seen(text: str, environment: SimEnvironment, spec: ObservationSpec) -> None:
    """What is told of the agent's speed and place, and of what its rays meet."""
    agent, state = environment.world.agent, state_of(environment)
    place = np.asarray(agent.position)
    told = re.search(r"You are at x ([-\d.]+) m, z ([-\d.]+) m", text)
    assert told, text
    assert np.abs(place[[0, 2]] - [float(told[1]), float(told[2])]).max() < 0.051, text
    turned = np.radians(agent.yaw)
    for name, axis in (
        (("forward", "backward"), (np.sin(turned), 0, np.cos(turned))),
        (("right", "left"), (np.cos(turned), 0, -np.sin(turned))),
        (("up", "down"), (0, 1, 0)),
    ):
        speed = float(np.dot(agent.velocity, axis))
        motion = text[text.rindex("You move") if "You move " in text else len(text) :]
        told = re.search(rf"([\d.]+) m/s ({'|'.join(name)})", motion.split(" You are at")[0])
        said = float(told[1]) * (-1 if told[2] == name[1] else 1) if told else 0.0
        assert abs(said - speed) < 0.051, (text, speed)
    for direction, kind, distance in rays_of(text):
        way = np.radians(agent.yaw + direction)
        ahead = np.array([np.sin(way), 0.0, np.cos(way)])
        if kind is None:
            assert "What touches you is not felt." in text
            continue
        named = [LOGGED_TAGS.index(tag) for tag in TAGS[kind] if tag in LOGGED_TAGS]
        rows = np.isin(state[:, Column.TAG], named) if named else np.ones(len(state), bool)
        assert rows.any(), (text, kind)
        gap = gaps(place + distance * ahead, state)[rows].min()
        assert gap < 0.5 + 0.06 + 0.01 * distance, (text, kind, gap)  # angles are whole degrees


def rays_of(text: str) -> Iterator[tuple[float, str | None, float]]:
    """Direction, kind and distance of each ray that a text tells of."""
    for clause in text.partition("from left to right: ")[2].split(". ")[0].split("; "):
        told = re.match(r"(ahead|(\d+)° (left|right)) (?:nothing|(.+) at ([\d.]+) m)", clause)
        if told:
            degrees = float(told[2] or 0) * (-1 if told[3] == "left" else 1)
            yield degrees, told[4], float(told[5] or 0)


def state_of(environment: SimEnvironment) -> npt.NDArray[np.float64]:
    """What is in the arena but the agent, with its four walls as far boxes."""
    from animalcat.envs.sim.state import state_of as told

    state = told(environment.world)
    walls = np.zeros((4, state.shape[1]))
    for row, (x, z) in zip(walls, ((-50, 20), (90, 20), (20, -50), (20, 90)), strict=True):
        row[Column.TAG] = LOGGED_TAGS.index("arena")
        row[Column.CENTER : Column.CENTER + 3] = x, 0, z
        row[Column.HALF : Column.HALF + 3] = 50, 1000, 50
        row[Column.ROTATION : Column.ROTATION + 9] = np.eye(3).ravel()
    return np.concatenate([state[AGENT + 1 :].astype(float), walls])


def gaps(place: npt.NDArray[Any], state: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Metres from a point to each thing, or to the box around it; 0 within."""
    turned = state[:, Column.ROTATION : Column.ROTATION + 9].reshape(-1, 3, 3)
    off = place - state[:, Column.CENTER : Column.CENTER + 3]
    local = np.einsum("nji,nj->ni", turned, off)
    half = state[:, Column.HALF : Column.HALF + 3]
    box = np.linalg.norm(np.maximum(np.abs(local) - half, 0.0), axis=1)
    ball = np.maximum(np.linalg.norm(off, axis=1) - half[:, 0], 0.0)
    round_ = state[:, Column.SHAPE] == 1
    box[round_] = ball[round_]
    return box


def is_blind(seen: Any, spec: ObservationSpec) -> bool:
    """Whether too few rays meet anything to tell a turn by, and the camera shows nothing."""
    if spec.rays is None:
        hits = 0
    else:
        far = seen.rays.reshape(-1, spec.rays.tags + 2)[:, -1]
        hits = int(((far > 1e-4) & (far < 1.0)).sum())
    return hits < 2
