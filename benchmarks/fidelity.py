"""How faithful the simulator is: its figures beside those of the real build, as rows of a table."""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypedDict

import numpy as np

from animalcat.arena_configs.loader import load_config
from animalcat.arena_configs.model import Arena
from animalcat.bench.simulator import build_times
from animalcat.envs.sim.environment import SimEnvironment
from animalcat.envs.sim.rules import EpisodeState
from animalcat.envs.testing import FORWARD, play_episode, start, thing
from animalcat.envs.types import ObservationSpec
from benchmarks import camera, files, movement

if TYPE_CHECKING:
    from collections.abc import Iterator

    from animalcat.arena_configs.builds import Build

ROOT: Final = Path(__file__).resolve().parent.parent
VERSIONS: Final[tuple[Build, ...]] = ("4.x", "3.1.3")
"""Builds whose masses pushed objects have in the figures."""

STEPS: Final = {
    55: 275,
    70: 351,
    100: 501,
    250: 1250,
    350: 1750,
    400: 2000,
    500: 2500,
    750: 3751,
    1000: 5001,
}
"""Time limit -> physics steps that health lasts (reference/animal-ai.md section 4.2)."""
PICKUP: Final = 3.9952
"""Last reward of the trace of a GoodGoal of size 4, time limit 500 (section 4.3)."""


SIZES: Final = ((1, 5), (6, 10), (11, 20), (21, 40), (41, 300))
"""Numbers of objects by which build times are told apart, the agent among them."""


class Row(TypedDict):
    """One figure: a value, what is asked for, and what else there is to say."""

    name: str
    median: float
    unit: str
    target: str
    note: str


def run(quick: bool = False) -> list[Row]:
    """Every figure; those that need recorded data say so where it is absent.

    Args:
        quick: A sample of the real files instead of all.
    """
    rows = [*_rewards(), *_unreferenced()]
    data_dir = data_folder()
    if data_dir is None:
        return [*rows, _row("traces, frames and files", 0, "", "", "no data: set ANIMALCAT_DATA")]
    return [
        *_movement(data_dir),
        *rows,
        *_camera(data_dir),
        *_files(data_dir, quick),
        *_builds(data_dir, quick),
    ]


def data_folder() -> Path | None:
    """The folder of real arenas, frames and traces that ANIMALCAT_DATA names, if it is there."""
    path = Path(os.environ.get("ANIMALCAT_DATA") or "../shared/data")
    path = path if path.is_absolute() else ROOT / path
    return path if (path / "unity-traces").is_dir() else None


def survived(time_limit: int) -> int:
    """Physics steps that an idle agent's health lasts."""
    episode = EpisodeState(time_limit, goals=1)
    while episode.ended_by is None:
        episode.tick()
    return episode.steps


def pickups() -> set[float]:
    """Last rewards of runs to the goal of `PICKUP`, begun here and there along a metre.

    One for each of the three physics steps of a decision in which the goal can be touched.
    """
    environment = SimEnvironment(ObservationSpec(rays=None))
    goal = thing("GoodGoal", 20, 0, 15, size=(4, 4, 4))
    arenas = (Arena(time_limit=500, items=(start(z=5 + i / 25), goal)) for i in range(25))
    return {
        list(play_episode(environment, arena, 0, [FORWARD] * 60))[-1].reward for arena in arenas
    }


def _row(name: str, value: float, unit: str, target: str = "", note: str = "") -> Row:
    return Row(name=name, median=value, unit=unit, target=target, note=note)


def _movement(data_dir: Path) -> Iterator[Row]:
    for name in movement.FLOOR_TRACES:
        far, fast = movement.floor_errors(data_dir, name)
        yield _row(f"{name}, open loop", far, "m", "<= 0.001", f"speed {fast:.1e} m/s")
    ramp = movement.ramp_errors(data_dir)
    for stretch in movement.STRETCHES:
        parts = [ahead for ahead in ramp if ahead.decision in stretch.decisions]
        known = [ahead for ahead in parts if ahead.decision not in movement.BEYOND]
        yield _row(
            f"ramp-and-wall, a decision ahead, {stretch.name}",
            max(ahead.speed for ahead in known),
            "m/s",
            f"<= {stretch.within}",
            f"{len(known)} of {len(parts)} decisions, place {max(a.place for a in known):.1e} m",
        )
    for ahead in ramp:
        if ahead.decision in movement.WORDS:
            words = movement.WORDS[ahead.decision]
            yield _row(f"- decision {ahead.decision}", ahead.speed, "m/s", "<= 0.001", words)
    fast, far = movement.glance_errors(data_dir)
    note = f"place {far:.1e} m"
    yield _row(f"- decision {movement.GLANCE}, told it is ground", fast, "m/s", "<= 0.001", note)


def _rewards() -> Iterator[Row]:
    wrong = [limit for limit, steps in STEPS.items() if survived(limit) != steps]
    note = f"off: {wrong}" if wrong else "section 4.2"
    yield _row("time limits that last to the step", len(STEPS) - len(wrong), "of 9", "= 9", note)
    rewards = pickups()
    nearest = min(rewards, key=lambda reward: abs(reward - PICKUP))
    note = f"touched in step 1, 2, 3: {sorted(np.round(list(rewards), 6).tolist(), reverse=True)}"
    yield _row("reward of the traced pickup", nearest, "", f"= {PICKUP}", note)


def _unreferenced() -> Iterator[Row]:
    for name in movement.PUSHED:
        for build in VERSIONS:
            note = f"no reference; build {build}: {movement.mass(name, build):.3g} kg"
            way = movement.pushed(name, build)
            yield _row(f"{name} pushed for 1 s, build {build}", way, "m", "", note)
    for name in movement.DRAGGED:
        for build in VERSIONS:
            way, turn = movement.dragged(name, build)
            note = f"turned by {turn:.1f} degrees; no reference; build {build}"
            yield _row(f"{name} slid along for 1 s, build {build}", way, "m", "", note)
    times = (0.1, 0.5, 1.0, 2.0, 4.0)
    for seconds, speed in zip(times, movement.rolling(*times), strict=True):
        note = f"no reference; every build: {movement.mass('GoodGoalBounce'):.3g} kg"
        yield _row(f"GoodGoalBounce {seconds} s after its start", speed, "m/s", "", note)


def _camera(data_dir: Path) -> Iterator[Row]:
    for row in camera.compare(data_dir):
        colours = [("sky", row.sky), ("fence", row.fence), ("floor", row.floor)]
        if row.object is not None:
            colours.append(("object", row.object))
        shades = ", ".join(f"{name} {value:.0f}" for name, value in colours)
        note = f"horizon off by {row.horizon} rows, of 255: {shades}"
        yield _row(f"camera, {row.name}", row.iou, "IoU", f">= {camera.WANTED}", note)


def _files(data_dir: Path, quick: bool) -> Iterator[Row]:
    every = 20 if quick else 1
    for name in files.SETS:
        played = files.play_all(files.arena_files(data_dir / name)[::every], 60 if quick else 200)
        count, decisions = f"{played.arenas} arenas", f"{played.decisions} decisions"
        yield _row(f"{name} played", played.files, "files", "", f"{count}, {decisions}")
        yield _row("- objects skipped", played.skipped.total(), "objects", "= 0", _why(played))
    competition = files.arena_files(data_dir / files.SETS[0])
    rates = files.pass_rates(competition[:: 6 if quick else 1])
    for category, (passed, of) in sorted(rates.items()):
        real = f"a like agent in the real build {files.REAL_PERCENT[category]} %"
        note = f"{passed} of {of}; {real}"
        yield _row(f"{files.AGENT}, category {category}", 100 * passed / of, "%", "", note)


def _builds(data_dir: Path, quick: bool) -> Iterator[Row]:
    """How long the competition's arenas take to be built, all, and by their numbers of objects."""
    found = files.arena_files(data_dir / files.SETS[0])[:: 10 if quick else 1]
    arenas = [load_config(file).config.first for file in found]
    times = np.array(build_times(arenas))
    yield _row(f"arena build, {len(found)} files", float(np.median(times)), "ms", "<= 2")
    yield _row("- nine in ten of them", float(np.quantile(times, 0.9)), "ms")
    yield _row("- the slowest", float(times.max()), "ms")
    counts = np.array([sum(item.copies for item in one.items) for one in arenas])
    for low, high in SIZES:
        some = times[(low <= counts) & (counts <= high)]
        if some.size:
            name = f"- {some.size} of {low} to {high} objects"
            yield _row(name, float(np.median(some)), "ms")


def _why(played: files.Played) -> str:
    """Why objects were skipped and how often, whatever stood in their place."""
    reasons: defaultdict[str, int] = defaultdict(int)
    for (name, reason), times in played.skipped.items():
        reasons[f"{name}: {reason.rstrip('.0123456789').strip()}"] += times
    return "; ".join(f"{times} {reason}" for reason, times in sorted(reasons.items()))
