"""Plays again what agents did in the real build: recorded outcomes, rewards and logs.

Nothing here is fitted: the agents are those of the recordings, with their seeds and their builds,
and Unity's random numbers draw what an arena leaves to chance.
"""

from __future__ import annotations

import csv
import importlib
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from animalcat.arena_configs.loader import load_config
from animalcat.arena_configs.model import STEPS_PER_UNIT, Arena, Item, Vector3
from animalcat.arena_configs.outcome import success
from animalcat.arena_configs.placement import place
from animalcat.envs.sim.environment import SimEnvironment
from animalcat.envs.types import CameraSpec, EndedBy, ObservationSpec, Phase, RaySpec
from tests.small import FORWARD, NOOP, start

if TYPE_CHECKING:
    import numpy.typing as npt

    from animalcat.envs.sim.builds import Build
    from animalcat.envs.sim.environment import Rng

FOLDER: Final = "unity-outcomes"
BUILD: Final[Build] = "3.1.3"
"""The build of the ray agent's rewards; for the camera agent and the traces too."""
SEED: Final = 0
"""Seed of the processes that the ray agent played in."""
CAMERA_SEED: Final = 2023
"""Seed of the processes that the camera agent played in."""
GREEN: Final = (188, 224, 138)
"""The pixels that the camera agent looks for, RGB."""

_RIGHT: Final = 1
_LEFT: Final = 2
_RAYS: Final = RaySpec(7, 30.0)
_SPEC: Final = ObservationSpec(rays=_RAYS)
_CAMERA: Final = ObservationSpec(CameraSpec(40), rays=None)
_LOST: Final = 1e-4
"""A reward as near to -1 is that of a run which only ran out of time."""


class Pair(NamedTuple):
    """Rewards of one arena, by the ray agent.

    Attributes:
        instance: Name of the arena's file.
        real: Final reward in the real build.
        ours: The simulator's, with the start of the agent that comes nearest.
        mark: The arena's pass mark.
    """

    instance: str
    real: float
    ours: float
    mark: float = 0.0

    @property
    def telling(self) -> bool:
        """Whether the real run is no plain time-out."""
        return abs(self.real + 1.0) > _LOST

    @property
    def alike(self) -> bool:
        """Whether both are passed or both are not."""
        return success(self.real, self.mark) == success(self.ours, self.mark)

    def agrees(self, within: float) -> bool:
        """Whether the two rewards differ by no more than this."""
        return abs(self.real - self.ours) <= within


class Episode(NamedTuple):
    """An episode of the camera agent.

    Attributes:
        x, z, size: Of the goal, in metres.
        reached: Whether the goal was reached in the real build.
        ticks: Physics steps there, from after the first decision.
    """

    x: float
    z: float
    size: float
    reached: bool
    ticks: int


class LogErrors(NamedTuple):
    """How far a log of the real build is from the same actions here.

    Attributes:
        name: Of the log.
        rows: Physics steps compared: the first episode of the log.
        place: Greatest error of a coordinate, in metres.
        health: Greatest error of the health, of 100.
        reward: Greatest error of the reward so far.
    """

    name: str
    rows: int
    place: float
    health: float
    reward: float


def real_rewards(data_dir: Path) -> dict[str, float]:
    """Final reward of the ray agent in the real build, by name of the arena's file."""
    with (data_dir / FOLDER / "ray-agent-346.csv").open(encoding="utf-8") as table:
        return {row["instance"]: float(row["final_reward"]) for row in csv.DictReader(table)}


def ray_arenas(
    data_dir: Path, names: Collection[str] | None = None
) -> dict[str, tuple[Arena, float, bool]]:
    """Arenas with the ray agent's real reward, and whether they leave more than colours to chance.

    Args:
        data_dir: The folder of recorded data.
        names: Only these; None for all.
    """
    real = real_rewards(data_dir)
    found: dict[str, tuple[Arena, float, bool]] = {}
    for path in sorted((data_dir / "animal-ai-competition").rglob("*.y*ml")):
        if path.stem not in real or (names is not None and path.stem not in names):
            continue
        arena = load_config(path).config.first
        drawn = place(arena, np.random.default_rng(SEED)).drawn
        chance = any(".colors" not in key for key in drawn)
        found[path.stem] = (arena, real[path.stem], chance)
    return found


def braitenberg() -> Any:
    """The ray agent's class; its package has no types.

    Raises:
        ImportError: The package is not installed.
    """
    return importlib.import_module("animalai.agents.braitenberg").Braitenberg


def compare(instance: str, arena: Arena, real: float, rng: Rng = "unity") -> Pair:
    """Play an arena as the ray agent did.

    That agent was kept from one arena to the next, and its last action, which is not known, decides
    whether it turns at once or a decision later: of the two starts the nearer one counts.

    Args:
        instance: Name of the arena.
        arena: The arena.
        real: The real reward.
        rng: How chance is drawn.
    """
    played = [_final_reward(arena, rng, turning) for turning in (False, True)]
    ours = min(played, key=lambda reward: abs(reward - real))
    return Pair(instance, real, ours, arena.pass_mark)


def _final_reward(arena: Arena, rng: Rng, turning: bool) -> float:
    environment = SimEnvironment(_SPEC, BUILD, rng, SEED)
    agent = braitenberg()(2 * _RAYS.per_side + 1)
    if turning:
        agent.prev_action = agent.actions.LEFT
    environment.load(arena, SEED)
    step = environment.step(NOOP)  # the script's own first step, before the agent sees anything
    total = np.float32(step.reward)  # which the script sums so, decision by decision
    while step.phase is not Phase.LAST:
        move, turn = agent.get_action(step.observation.rays).action_tuple.discrete[0]
        step = environment.step(int(3 * move + turn))
        total += np.float32(step.reward)
    environment.close()
    return float(total)


def camera_episodes(data_dir: Path) -> list[Episode]:
    """The recorded episodes of the camera agent."""
    with (data_dir / FOLDER / "camera-agent-40px.csv").open(encoding="utf-8") as table:
        return [
            Episode(
                float(row["x"]),
                float(row["z"]),
                float(row["size"]),
                row["success"] == "1",
                int(row["ticks"]),
            )
            for row in csv.DictReader(table)
        ]


def play_camera_episode(episode: Episode) -> tuple[bool, int]:
    """Play an episode as the camera agent did: whether the goal was reached, and the ticks."""
    agent = Item(name="Agent", positions=(Vector3(x=20.0, z=0.5),))
    size = Vector3(x=episode.size, y=episode.size, z=episode.size)
    goal = Item(name="GoodGoal", positions=(Vector3(x=episode.x, z=episode.z),), sizes=(size,))
    environment = SimEnvironment(_CAMERA, BUILD, "unity", CAMERA_SEED)
    environment.load(Arena(time_limit=250, items=(agent, goal)), SEED)
    step = environment.step(NOOP)
    before = environment.physics_steps
    while step.phase is not Phase.LAST:
        assert step.observation.camera is not None
        step = environment.step(look(step.observation.camera))
    ticks = environment.physics_steps - before
    environment.close()
    return step.ended_by is EndedBy.GOAL, ticks


def look(image: npt.NDArray[np.uint8]) -> int:
    """The camera agent's action: toward the half of the image that shows the goal's colour."""
    seen = (image == np.array(GREEN, np.uint8)).all(axis=2).any(axis=0)
    middle = len(seen) // 2
    if seen[middle - 1 : middle + 1].any():
        return FORWARD
    if seen[:middle].any():
        return _LEFT
    return _RIGHT if seen[middle:].any() else _LEFT


def log_errors(data_dir: Path) -> list[LogErrors]:
    """The first episode of every log of the real build, played again in an empty arena.

    The goals and zones of these logs do not touch the agent before their last row, but for zones
    that only tell. The time limit is that of the log's second row. A row tells the state before a
    physics step, and the action of the step before it.
    """
    return [_log_errors(path) for path in sorted((data_dir / "unity-logs").glob("*.csv"))]


def _log_errors(path: Path) -> LogErrors:
    with path.open(encoding="utf-8") as table:
        rows = [row for row in csv.DictReader(table) if row["ZPosition"]]
    last = next((i for i in range(1, len(rows)) if rows[i]["Step"] == "1"), len(rows))
    rows = rows[:last]
    limit = round(-1.0 / float(rows[1]["Reward"]) / STEPS_PER_UNIT)
    first = rows[0]
    agent = start(float(first["XPosition"]), float(first["ZPosition"]))
    environment = SimEnvironment(ObservationSpec(rays=None, decision_period=1))
    environment.load(Arena(time_limit=limit, items=(agent,)), SEED)
    place = health = reward = 0.0
    for row in rows[1:]:
        move, turn = (int(row[f"Action{kind}WithDescription"][0]) for kind in ("Forward", "Rotate"))
        seen = environment.step(3 * move + turn).observation
        real = [float(row[f"{axis}Position"]) for axis in "XYZ"]
        place = max(place, float(np.abs(seen.position - real).max()))
        health = max(health, abs(seen.health - float(row["Health"])))
        reward = max(reward, abs(environment.episode_return - float(row["Reward"])))
    return LogErrors(path.stem, len(rows) - 1, place, health, reward)
