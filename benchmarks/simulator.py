"""How fast the simulator plays and builds, beside bare PhysX stepping of the same arena."""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from typing import Final, TypedDict

import numpy as np
from rich.console import Console
from rich.table import Table

from animalcat.arena_configs.model import Arena
from animalcat.arena_configs.placement import place
from animalcat.envs.sim.builder import build
from animalcat.envs.sim.environment import SimEnvironment
from animalcat.envs.sim.physics import Physics
from animalcat.envs.testing import start, thing
from animalcat.envs.types import ACTIONS, CameraSpec, ObservationSpec, RaySpec

PERIOD: Final = 3
CHUNK: Final = 100
"""Decisions between two looks at the clock; each chunk plays a fresh arena."""


class Row(TypedDict):
    """One line of the table: a median, and for rates the baseline and value over baseline."""

    name: str
    median: float
    unit: str
    baseline: float | None
    ratio: float | None


def arena() -> Arena:
    """Twenty walls in a ring, two ramps, a block, a tunnel, a hot zone and four goals."""
    ring = np.linspace(0, 2 * np.pi, 20, endpoint=False)
    walls = [
        thing("Wall", 20 + 15 * np.sin(a), 0, 20 + 15 * np.cos(a), yaw=a * 57.3, size=(3, 2, 0.5))
        for a in ring.tolist()
    ]
    rest = [
        thing("Ramp", 12, 0, 20, yaw=90, size=(3, 1, 3)),
        thing("Ramp", 28, 0, 20, yaw=270, size=(3, 1, 3)),
        thing("LightBlock", 24, 0, 26, size=(1.5, 1, 1.5)),
        thing("CylinderTunnel", 16, 0, 26, size=(4, 4, 4)),
        thing("HotZone", 26, 0, 14, size=(3, 0.5, 3)),
        *(thing("GoodGoalMulti", x, 0, z) for x, z in ((2, 2), (38, 2), (2, 38), (38, 38))),
    ]
    return Arena(time_limit=0, items=(start(20, 18), *walls, *rest))


def run(quick: bool = False) -> list[Row]:
    """Measure.

    Args:
        quick: A tenth of the work, for a first impression.
    """
    chunks = 4 if quick else 40
    specs = {
        "vector only": ObservationSpec(rays=None, decision_period=PERIOD),
        "rays": ObservationSpec(rays=RaySpec(), decision_period=PERIOD),
        "camera 84x84": ObservationSpec(CameraSpec(84), rays=None, decision_period=PERIOD),
        "camera 150x150": ObservationSpec(CameraSpec(150), rays=None, decision_period=PERIOD),
    }
    bare, *rates = _rates(chunks, [_bare, *(_player(spec) for spec in specs.values())])
    rows = [_row("bare PhysX stepping", bare, "decisions/s", None)]
    for name, rate in zip(specs, rates, strict=True):
        rows.append(_row(f"simulator, {name}", rate, "decisions/s", bare))
    return [*rows, _row("simulator, arena build", _build_time(chunks), "ms", None)]


def _row(name: str, values: list[float], unit: str, baseline: list[float] | None) -> Row:
    median = statistics.median(values)
    base = statistics.median(baseline) if baseline else None
    return Row(
        name=name, median=median, unit=unit, baseline=base, ratio=median / base if base else None
    )


def _rates(chunks: int, variants: list[Callable[[], Callable[[int], object]]]) -> list[list[float]]:
    """Decisions a second of each variant's chunks.

    Variants take turns, so that what else the machine does slows all alike; the first round,
    which compiles, is left out.
    """
    actions = np.random.default_rng(0).integers(ACTIONS, size=CHUNK).tolist()
    rates: list[list[float]] = [[] for _ in variants]
    for _ in range(chunks + 1):
        for prepare, seen in zip(variants, rates, strict=True):
            decide = prepare()
            began = time.perf_counter()
            for action in actions:
                decide(action)
            seen.append(CHUNK / (time.perf_counter() - began))
    return [seen[1:] for seen in rates]


def _player(spec: ObservationSpec) -> Callable[[], Callable[[int], object]]:
    environment, scene = SimEnvironment(spec), arena()

    def prepare() -> Callable[[int], object]:
        environment.load(scene, 0)
        return environment.step

    return prepare


def _bare() -> Callable[[int], object]:
    placement = place(arena(), np.random.default_rng(0))
    physics = Physics(placement.agent.position, build(placement).bodies)

    def decide(action: int) -> None:
        velocity = (0.0, 0.0, float(action))
        for _ in range(PERIOD):
            physics.advance(velocity)

    return decide


def _build_time(chunks: int) -> list[float]:
    environment, scene = SimEnvironment(ObservationSpec(rays=None)), arena()
    times: list[float] = []
    for _ in range(chunks + 1):
        began = time.perf_counter()
        environment.load(scene, 0)
        times.append((time.perf_counter() - began) * 1e3)
    return times[1:]


def main() -> None:
    """Print the table, or JSON with `--json`."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.simulator", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the work")
    parser.add_argument("--json", action="store_true", help="JSON instead of a table")
    options = parser.parse_args()
    rows = run(options.quick)
    if options.json:
        print(json.dumps(rows, indent=2))
        return
    table = Table("what", "median", "unit", "baseline", "ratio", title="Simulator, one core")
    for row in rows:
        table.add_row(
            row["name"],
            f"{row['median']:,.1f}",
            row["unit"],
            f"{row['baseline']:,.1f}" if row["baseline"] else "",
            f"{row['ratio']:.2f}" if row["ratio"] else "",
        )
    Console().print(table)


if __name__ == "__main__":
    main()
