"""How often the simulator gives the very reward of the real build, with its agent and its seed.

The agent is the Braitenberg agent of the package `animalai`, with 15 rays over 30 degrees a side.
The build is 3.1.3, started for every arena with seed 0 (data/unity-outcomes/ray-agent-346.csv).
Unity's generator draws what an arena leaves to chance, in that build's order, so rewards agree only
where all draws do. No rule was fitted to these rewards: all come from reference/unity-random.md.
"""

from __future__ import annotations

import csv
import importlib
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from animalcat.arena_configs.loader import load_config
from animalcat.arena_configs.placement import place
from animalcat.benchmarks import fidelity, files
from animalcat.envs.sim.environment import SimEnvironment
from animalcat.envs.types import ObservationSpec, Phase, RaySpec

if TYPE_CHECKING:
    from animalcat.arena_configs.builds import Build
    from animalcat.arena_configs.model import Arena
    from animalcat.envs.sim.environment import Rng

BUILD: Final[Build] = "3.1.3"
SEED: Final = 0
EXACT: Final = 2e-5
CLOSE: Final = 1e-3
"""Differences of rewards within which an arena agrees."""

_RAYS: Final = RaySpec(7, 30.0)
_SPEC: Final = ObservationSpec(rays=_RAYS)
_NOOP: Final = 0
_LOST: Final = 1e-4
"""A reward as near to -1 is that of a run which only ran out of time."""


class Pair(NamedTuple):
    """Rewards of one arena.

    Attributes:
        instance: Name of the arena's file.
        real: Final reward in the real build.
        ours: The simulator's, with the start of the agent that comes nearest.
    """

    instance: str
    real: float
    ours: float

    @property
    def telling(self) -> bool:
        """Whether the real run is no plain time-out."""
        return abs(self.real + 1.0) > _LOST

    def agrees(self, within: float) -> bool:
        """Whether the two rewards differ by no more than this."""
        return abs(self.real - self.ours) <= within


def chance_arenas(
    data_dir: Path, names: Collection[str] | None = None
) -> dict[str, tuple[Arena, float]]:
    """Arenas that leave more than colours to chance, with the real reward.

    Args:
        data_dir: The folder of recorded data.
        names: Only these; None for all.
    """
    with (data_dir / "unity-outcomes" / "ray-agent-346.csv").open(encoding="utf-8") as table:
        real = {row["instance"]: float(row["final_reward"]) for row in csv.DictReader(table)}
    found: dict[str, tuple[Arena, float]] = {}
    for path in files.arena_files(data_dir / files.SETS[0]):
        if path.stem not in (real if names is None else names):
            continue
        arena = load_config(path).config.first
        drawn = place(arena, np.random.default_rng(SEED)).drawn
        if any(".colors" not in key for key in drawn):
            found[path.stem] = (arena, real[path.stem])
    return found


def compare(instance: str, arena: Arena, real: float, rng: Rng = "unity") -> Pair:
    """Play an arena as the real agent did.

    That agent was kept from one arena to the next, and its last action, which is not known, decides
    whether it turns at once or a decision later: of the two starts the nearer one counts.

    Args:
        instance: Name of the arena.
        arena: The arena.
        real: The real reward.
        rng: How chance is drawn.
    """
    played = [_final_reward(arena, rng, turning) for turning in (False, True)]
    return Pair(instance, real, min(played, key=lambda ours: abs(ours - real)))


def _braitenberg() -> Any:
    """The agent's class; the package has no types.

    Raises:
        ImportError: The package is not installed.
    """
    return importlib.import_module("animalai.agents.braitenberg").Braitenberg


def _final_reward(arena: Arena, rng: Rng, turning: bool) -> float:
    environment = SimEnvironment(_SPEC, BUILD, rng, SEED)
    agent = _braitenberg()(2 * _RAYS.per_side + 1)
    if turning:
        agent.prev_action = agent.actions.LEFT
    environment.load(arena, SEED)
    step = environment.step(_NOOP)  # the script's own first step, before the agent sees anything
    total = np.float32(step.reward)  # which the script sums so, decision by decision
    while step.phase is not Phase.LAST:
        move, turn = agent.get_action(step.observation.rays).action_tuple.discrete[0]
        step = environment.step(int(3 * move + turn))
        total += np.float32(step.reward)
    environment.close()
    return float(total)


def run(quick: bool = False) -> list[Mapping[str, Any]]:
    """Count the arenas that agree, with Unity's draws and with our own.

    Args:
        quick: Every tenth arena.
    """
    data_dir = fidelity.data_folder()
    if data_dir is None:
        return [{"name": "rewards of the real build", "note": "no data: set ANIMALCAT_DATA"}]
    try:
        _braitenberg()
    except ImportError:
        return [{"name": "rewards of the real build", "note": "no agent: pip install animalai"}]
    arenas = list(chance_arenas(data_dir).items())[:: 10 if quick else 1]
    pairs, others = (
        [compare(name, arena, real, rng) for name, (arena, real) in arenas]
        for rng in ("unity", "animalcat")
    )
    return list(_rows(pairs, others))


def _rows(pairs: list[Pair], others: list[Pair]) -> Iterator[dict[str, Any]]:
    for words, telling in (("arenas left to chance", False), ("- no plain time-out", True)):
        some, plain = (
            [pair for pair in of if pair.telling or not telling] for of in (pairs, others)
        )
        for within in (EXACT, CLOSE):
            off = [f"{p.instance} {p.ours - p.real:+.3g}" for p in some if not p.agrees(within)]
            yield {
                "name": f"{words}: within {within:g}",
                "value": sum(pair.agrees(within) for pair in some),
                "unit": f"of {len(some)}",
                "baseline": sum(pair.agrees(within) for pair in plain),
                "note": f"off: {', '.join(off)}" if off and within == CLOSE else "",
            }
