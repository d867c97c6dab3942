"""The Unity backend against the stand-in, through the whole client."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from animalcat.arena_configs.model import Arena
from animalcat.arena_configs.sequence import ArenaSequence
from animalcat.envs.sim.environment import SimEnvironment
from animalcat.envs.types import CameraSpec, EndedBy, ObservationSpec, Step
from animalcat.envs.unity.environment import UnityEnvironment
from animalcat.envs.unity.late import LateSimEnvironment
from animalcat.envs.unity.process import UnityFault
from tests.small import (
    FORWARD,
    NOOP,
    goal_arena,
    lone_arena,
    play_episode,
    start,
    thing,
)
from tests.suites.environments import EnvironmentSuite, Make, assert_same_steps
from tests.unity_builds import STAND_IN, build, settings

SEEING = ObservationSpec(camera=CameraSpec(24))
Environments = dict[ObservationSpec, UnityEnvironment]


@pytest.fixture(scope="module")
def environments() -> Iterator[Environments]:
    made: Environments = {}
    yield made
    for environment in made.values():
        environment.close()


class TestUnityConformance(EnvironmentSuite):
    """One build for each specification plays all of its episodes."""

    idle = 1

    @pytest.fixture
    def make(self, environments: Environments, tmp_path_factory: pytest.TempPathFactory) -> Make:
        def make(spec: ObservationSpec) -> Reopened:
            if spec not in environments:
                tags = ("--rayTags", str(spec.rays.tags)) if spec.rays else ()
                own = settings(tmp_path_factory.mktemp("logs"), arguments=tags)
                environments[spec] = UnityEnvironment(spec, STAND_IN, own)
            return Reopened(environments[spec])

        return make


class Reopened:
    """A new environment on a build that is there already: closing leaves the build."""

    def __init__(self, environment: UnityEnvironment) -> None:
        self._environment = environment
        self._loaded = False

    @property
    def spec(self) -> ObservationSpec:
        return self._environment.spec

    def load(self, arena: Arena, seed: int) -> Step:
        self._loaded = True
        return self._environment.load(arena, seed)

    def step(self, action: int) -> Step:
        if not self._loaded:
            raise RuntimeError("no episode is open")
        return self._environment.step(action)

    def close(self) -> None:
        self._loaded = False


def test_every_number_is_the_simulators(tmp_path: Path) -> None:
    """Builds of their own start as the simulator does; what merges plays on; all ends are told."""
    first = goal_arena().model_copy(update={"merge_next_arena": True})
    values = {name: getattr(first, name) for name in Arena.model_fields}
    arenas = (
        ArenaSequence(**values, following=(lone_arena("GoodGoal", z=18.0),)),
        lone_arena("DeathZone", size=(10.0, 1.0, 4.0), z=20.0),
        # The last health is taken by time, though the agent burns.
        lone_arena("HotZone", size=(10.0, 1.0, 10.0), z=8.0, time_limit=55),
    )
    environment = UnityEnvironment(SEEING, STAND_IN, settings(tmp_path, builds="spare"))
    ends: list[EndedBy | None] = []
    try:
        for seed, arena in enumerate(arenas):
            steps = list(play_episode(environment, arena, seed, [FORWARD] * 150))
            assert_same_steps(
                steps, list(play_episode(SimEnvironment(SEEING), arena, seed, [FORWARD] * 150))
            )
            ends.append(steps[-1].ended_by)
        assert environment.versions["unity-builds"] == "spare"
    finally:
        environment.close()
    assert ends == [EndedBy.GOAL, EndedBy.DEATH, EndedBy.DEATH]
    # Each episode's build has left its arena and its log.
    assert len(list(tmp_path.glob("*/*/arena.yaml"))) == len(arenas)


def test_a_kept_build_plays_as_the_simulator_a_step_late(tmp_path: Path) -> None:
    environment = UnityEnvironment(SEEING, STAND_IN, settings(tmp_path))
    try:
        for seed, arena in enumerate((goal_arena(), lone_arena("Wall", time_limit=20))):
            steps = list(play_episode(environment, arena, seed, [FORWARD] * 60))
            late = list(play_episode(LateSimEnvironment(SEEING), arena, seed, [FORWARD] * 60))
            assert_same_steps(steps, late)
    finally:
        environment.close()


WRONG = {
    "moved": r"starts at \(20.00, 0.51, 6.00\) and not at \(20.00, 0.51, 5.00\)",
    "turned": "see something else than in this arena from the heading 0",
    "another": "1 rays meet goals where 0 should",
    "hurried": "plays with the time limit 240",
}


@pytest.mark.parametrize("name", WRONG)
def test_another_arena_than_was_meant_is_a_fault(name: str, tmp_path: Path) -> None:
    """Also where the agent itself has no rays."""
    own = settings(tmp_path, builds="fresh")
    environment = UnityEnvironment(ObservationSpec(rays=None), build(tmp_path, name), own)
    arena = Arena(time_limit=250, items=(start(), thing("GoodGoal", 20.0, 0.0, 2.0)))
    with pytest.raises(UnityFault, match=WRONG[name]):
        list(play_episode(environment, arena, 1, [NOOP] * 3))
    _nothing_runs(tmp_path)


@pytest.mark.slow
def test_a_build_that_dies_or_hangs_is_a_fault_and_the_next_episode_is_played(
    tmp_path: Path,
) -> None:
    for name in ("dying", "hanging"):
        once = tmp_path / f"{name}.once"
        path = build(tmp_path, name, once=once)
        own = settings(tmp_path, builds="fresh", step_seconds=2)
        environment = UnityEnvironment(ObservationSpec(), path, own)
        with pytest.raises(UnityFault, match=r"return code 9|too long to respond"):
            list(play_episode(environment, goal_arena(), 1, [FORWARD] * 30))
        _nothing_runs(tmp_path)
        with pytest.raises(RuntimeError, match="load"):
            environment.step(FORWARD)
        steps = list(play_episode(environment, goal_arena(), 1, [FORWARD] * 30))
        assert steps[-1].ended_by is EndedBy.GOAL
        environment.close()
        _nothing_runs(tmp_path)


@pytest.mark.parametrize(
    ("name", "message"),
    [("stillborn", "no licence for this display"), ("silent", "no observation|too long")],
)
def test_a_build_that_does_not_start_is_a_fault_with_what_it_printed(
    name: str, message: str, tmp_path: Path
) -> None:
    own = settings(tmp_path, builds="fresh", start_seconds=12 if name == "stillborn" else 2)
    environment = UnityEnvironment(ObservationSpec(), build(tmp_path, name), own)
    with pytest.raises(UnityFault, match=message):
        environment.load(goal_arena(), 0)
    _nothing_runs(tmp_path)


def test_a_build_is_told_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("DISPLAY", ":7")
    curious = tmp_path / "curious"
    curious.write_text(f"#!/bin/sh\nenv > {tmp_path}/told\nexit 1\n")
    curious.chmod(0o755)
    own = settings(tmp_path, builds="fresh", start_seconds=12)
    with pytest.raises(UnityFault):
        UnityEnvironment(ObservationSpec(), curious, own).load(goal_arena(), 0)
    told = (tmp_path / "told").read_text().splitlines()
    assert "DISPLAY=:7" in told
    assert not [line for line in told if line.startswith("AWS")]


HOLDER = """
    import sys, time
    from pathlib import Path
    from tests.small import goal_arena
    from animalcat.envs.types import ObservationSpec
    from animalcat.envs.unity.environment import UnityEnvironment
    from tests.unity_builds import build, settings
    folder = Path(sys.argv[1])
    environment = UnityEnvironment(
        ObservationSpec(), build(folder, "hanging"), settings(folder, builds="spare")
    )
    environment.load(goal_arena(), 0)
    print("playing", flush=True)
    for _ in range(9):
        environment.step(3)
"""


@pytest.mark.slow
@pytest.mark.parametrize("who", ["holder", "player"])
def test_nothing_is_left_when_who_plays_is_killed(who: str, tmp_path: Path) -> None:
    """Also not a build that hangs, in the middle of a step, and the spare one beside it."""
    root = Path(__file__).parents[3]
    holder = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(HOLDER), str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(root)},
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"playing\n"
    assert len(_processes(tmp_path)) >= 2
    if who == "holder":
        holder.kill()
    else:
        (playing,) = (p for p in psutil.Process(holder.pid).children() if "-I" in p.cmdline())
        playing.kill()
    holder.wait(60)
    _nothing_runs(tmp_path)


def _processes(folder: Path) -> list[psutil.Process]:
    """Players and builds whose logs are in a folder."""
    found: list[psutil.Process] = []
    for process in psutil.process_iter():
        try:
            if process.pid != os.getpid() and str(folder) in " ".join(process.cmdline()):
                found.append(process)
        except psutil.Error:
            continue
    return found


def _nothing_runs(folder: Path) -> None:
    """Wait until no process of a folder is left; ending takes what it takes."""
    end = time.monotonic() + 30
    while (left := _processes(folder)) and time.monotonic() < end:
        time.sleep(0.1)
    assert left == []
