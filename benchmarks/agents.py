"""What the scout passes of each family, beside the Braitenberg agent, and what its decisions cost.

Instances are drawn from a seed of their own; every agent plays each of them once, in the simulator.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from animalcat.arena_configs.families import generate, load_family
from animalcat.arena_configs.model import STEPS_PER_UNIT
from animalcat.arena_configs.outcome import success
from animalcat.envs.agents import EpisodeInfo, load_agent
from animalcat.envs.sim.environment import SimEnvironment
from animalcat.envs.types import CameraSpec, ObservationSpec

if TYPE_CHECKING:
    from animalcat.arena_configs.model import Arena
    from animalcat.envs.agents import Agent

TESTBED: Final = (
    "navigation", "introductory", "y-maze", "detour", "radial-maze", "spatial-elimination",
    "delayed-gratification", "support-and-gravity", "object-permanence", "numerosity", "tool-use",
    "weak-generalisation", "internal-models",
)  # fmt: skip
"""Families after the testbed's categories, and `navigation`."""
SUITES: Final = (
    "cups", "grid-cups", "chick-task", "tunnel-effect", "numerosity-hidden", "what-where-when",
    "implosion-explosion", "baillargeon", "aperture", "partly-hidden", "fence", "room-practice",
)  # fmt: skip
"""Families after O-PIAAGETS."""
FAMILIES: Final = (*TESTBED, *SUITES)
DRAWS: Final = 10
"""Instances of each family."""
SEED: Final = 19
RAYS: Final = ObservationSpec()
CAMERA: Final = ObservationSpec(CameraSpec(84))
TARGET: Final = 0.3
"""Most that the median decision of the scout may cost with rays, in ms of CPU time."""
LONGEST: Final = 6000
"""Decisions after which an episode without a time limit is given up."""


class Play(NamedTuple):
    """An episode: whether it was passed, and the CPU time of each decision in seconds."""

    passed: bool
    spent: list[float]


def play(agent: Agent, arena: Arena, spec: ObservationSpec, seed: int = 0) -> Play:
    """Let an agent play an arena once.

    Args:
        agent: The agent, which is told as much as in a session.
        arena: The arena.
        spec: What it observes.
        seed: Of the agent, and of what the arena leaves to chance.
    """
    environment = SimEnvironment(spec)
    spent: list[float] = []
    try:
        step = environment.load(arena, seed)
        limit = arena.time_limit * STEPS_PER_UNIT
        agent.reset(EpisodeInfo(0, seed, spec, -(-limit // spec.decision_period)))
        while step.ended_by is None and len(spent) < LONGEST:
            began = time.thread_time()
            action = agent.act(step.observation)
            spent.append(time.thread_time() - began)
            assert isinstance(action, int)
            step = environment.step(action)
        total = environment.episode_return
    finally:
        environment.close()
    return Play(success(total, arena.pass_mark), spent)


def run(quick: bool) -> list[dict[str, Any]]:
    """Measure.

    Args:
        quick: Three instances of each family instead of `DRAWS`.
    """
    scout, other = load_agent("builtin:scout"), load_agent("builtin:braitenberg")
    draws = min(3, DRAWS) if quick else DRAWS
    rows: list[dict[str, Any]] = []
    spent: dict[str, list[float]] = {"rays": [], "rays and camera": []}
    for family in FAMILIES:
        arenas = [
            one.arena for one in generate(load_family(family), draws, np.random.default_rng(SEED))
        ]
        passed = float(np.mean([play(other, arena, RAYS).passed for arena in arenas]))
        for sensors, spec in (("rays", RAYS), ("rays and camera", CAMERA)):
            plays = [play(scout, arena, spec) for arena in arenas]
            spent[sensors] += [cost for one in plays for cost in one.spent]
            rows.append(
                {
                    "name": f"{family}, {sensors}",
                    "value": float(np.mean([one.passed for one in plays])),
                    "unit": "of instances passed",
                    "baseline": passed,
                    "note": f"{draws} instances; beside builtin:braitenberg",
                }
            )
    for sensors, costs in spent.items():
        milliseconds = 1e3 * np.array(costs)
        median = float(np.median(milliseconds))
        row: dict[str, Any] = {
            "name": f"decision, {sensors}",
            "median": median,
            "p99": float(np.percentile(milliseconds, 99)),
            "unit": "ms of CPU",
        }
        if sensors == "rays":
            row |= {"target": f"at most {TARGET:g}", "met": median <= TARGET}
        rows.append(row)
    return rows
