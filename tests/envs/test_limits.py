"""Limits of known strength: how they are written, what they refuse, and that each truly acts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from animalcat.arena_configs.families.generate import generate
from animalcat.arena_configs.model import RGB, STEPS_PER_UNIT, Arena
from animalcat.envs.agents.base import EpisodeInfo
from animalcat.envs.agents.limits.acting import FollowsColor, Lapses
from animalcat.envs.agents.limits.catalogue import LIMITS
from animalcat.envs.agents.limits.context import TAGS
from animalcat.envs.agents.limits.limited import limit_agent
from animalcat.envs.agents.limits.reference import read_reference
from animalcat.envs.agents.limits.seeing import Resolution, Sight
from animalcat.envs.agents.load import AgentLoadError, load_agent
from animalcat.envs.answers import Actions, Note, Noted
from animalcat.envs.sim.environment import SimEnvironment
from animalcat.envs.types import CameraSpec, EndedBy, Observation, ObservationSpec, RaySpec
from tests.things import AGENT, GOAL, ON_FOOT, thing

if TYPE_CHECKING:
    from animalcat.envs.agents.base import Agent

SPEC = ObservationSpec()
STATE = ObservationSpec(rays=None, privileged=True)
HELD = thing("Agent", 20, 5, frozen_agent_delays=(3.0,))
ARENAS = {
    "open": Arena(time_limit=150, items=(AGENT, GOAL)),
    "small": Arena(time_limit=150, items=(AGENT, thing("GoodGoal", 20, 30, 1, 1, 1))),
    "right": Arena(time_limit=150, items=(AGENT, thing("GoodGoal", 35, 15, 2, 2, 2))),
    "left": Arena(time_limit=150, items=(AGENT, thing("GoodGoal", 5, 15, 2, 2, 2))),
    "lava": Arena(time_limit=150, items=(AGENT, thing("DeathZone", 20, 20, 10, 0.5, 2), GOAL)),
    "ramp": Arena(time_limit=150, items=ON_FOOT["ramp"]),
    "beside": Arena(time_limit=150, items=(AGENT, thing("Ramp", 5, 20, 5, 2, 6), GOAL)),
    # The agent is held with its back to lava; the goal is ahead.
    "held": Arena(
        time_limit=100,
        items=(
            thing("Agent", 20, 20, frozen_agent_delays=(5.0,)),
            thing("DeathZone", 20, 12, 10, 0.5, 4),
            GOAL,
        ),
    ),
    "screen": Arena(time_limit=200, items=(AGENT, thing("Wall", 20, 25, 12, 4, 1), GOAL)),
    "red wall": Arena(
        time_limit=100,
        items=(AGENT, thing("Wall", 10, 15, 2, 3, 2, colors=(RGB(r=220, g=10, b=10),)), GOAL),
    ),
    # The goal falls behind a wall while the agent is held.
    "falls": Arena(
        time_limit=150,
        items=(HELD, thing("Wall", 20, 30, 8, 3, 0.5), thing("GoodGoal", 20, 32, 1, 1, 1, y=7)),
    ),
    # It rolls away, and the light goes out for good.
    "dark": Arena(
        time_limit=150,
        blackouts=(3,),
        items=(HELD, thing("GoodGoalBounce", 20, 8, 1, 1, 1, yaw=60)),
    ),
}


@dataclass(frozen=True)
class Played:
    """What came of an episode."""

    reached: bool
    actions: tuple[int, ...]
    places: tuple[tuple[float, float], ...]

    @property
    def metres(self) -> float:
        return sum(float(np.hypot(a - c, b - d)) for (a, b), (c, d) in pairwise(self.places))


def play_out(agent: Agent, arena: Arena, spec: ObservationSpec, number: int = 0) -> Played:
    """Play an arena once, to its end."""
    environment = SimEnvironment(spec)
    step = environment.load(arena, 0)
    limit = -(-arena.time_limit * STEPS_PER_UNIT // spec.decision_period)
    agent.reset(EpisodeInfo(number, 11, spec, limit))
    actions, places = list[int](), list[tuple[float, float]]()
    while step.ended_by is None:
        action = agent.act(step.observation)
        assert isinstance(action, int)
        actions.append(action)
        step = environment.step(action)
        places.append((float(step.observation.position[0]), float(step.observation.position[2])))
    environment.close()
    return Played(step.ended_by is EndedBy.GOAL, tuple(actions), tuple(places))


@cache
def play(reference: str, name: str, camera: bool = False) -> Played:
    privileged = read_reference(reference).privileged
    spec = replace(STATE if privileged else SPEC, camera=CameraSpec(32) if camera else None)
    return play_out(load_agent(reference), ARENAS[name], spec)


@pytest.mark.parametrize(
    ("limits", "passes", "fails"),
    [
        ("sight=40+no-search", "open", None),
        ("sight=10+no-search", None, "open"),
        ("resolution=3+no-search", "open", "small"),
        ("smallest=1.5+no-search", "open", "small"),
        ("memory=8+no-search", "falls", None),
        ("memory=1+no-search", "open", "falls"),
        ("memory=8+no-search", "dark", "screen"),
        ("no-permanence", "falls", "dark"),
        ("follows=last-place", "falls", "dark"),
        ("lava-blind", "open", "lava"),
        ("ramp-shy", "lava", "ramp"),
        ("platform-shy", "lava", "ramp"),
        ("left", "left", "right"),
        ("follows=left", "left", "right"),
        ("path=23", None, "small"),
        ("gives-up=1", None, "open"),
        ("only-with=lava", "lava", "open"),
        ("not-with=lava", "open", "lava"),
        ("not-with=ramp", "screen", "beside"),
        ("only-with=wall", "screen", "beside"),
        ("lapses=1", None, "open"),
    ],
)
def test_a_limit_acts_and_no_more_than_it_says(
    limits: str, passes: str | None, fails: str | None
) -> None:
    reference = f"builtin:planner+{limits}"
    if passes is not None:
        assert play(reference, passes).reached
    if fails is not None:
        assert play("builtin:planner", fails).reached
        assert not play(reference, fails).reached


@pytest.mark.parametrize("metres", [5, 12, 20])
def test_a_path_is_as_long_as_it_says(metres: float) -> None:
    assert play(f"builtin:planner+path={metres}", "open").metres == pytest.approx(metres, abs=0.4)


def test_giving_up_and_delay_are_in_seconds() -> None:
    late = play("builtin:planner+delay=0.3+gives-up=1.2", "open").actions
    assert late[:5] == (0,) * 5
    assert set(late[5:20]) - {0}
    assert set(late[20:]) == {0}


def test_lapses_are_as_frequent_as_they_say() -> None:
    own = [0, 3] * 1500
    limit = Lapses(lapses=0.3)
    limit.begin(EpisodeInfo(0, 5, SPEC))
    done = [limit.do(action, blank(SPEC)) for action in own]
    other = np.mean([a != b for a, b in zip(own, done, strict=True)])
    assert other == pytest.approx(0.3 * 8 / 9, abs=0.03)
    limit.begin(EpisodeInfo(0, 5, SPEC))
    assert [limit.do(action, blank(SPEC)) for action in own] == done


def test_it_tires_learns_and_has_bad_days() -> None:
    tires, learns, days = Lapses(tires=50), Lapses(learns=50), Lapses(days=0.4, seed=3)
    shares = {limit: list[float]() for limit in (tires, learns, days)}
    for limit, share in shares.items():
        for episode in range(1000):
            limit.begin(EpisodeInfo(episode, episode, SPEC))
            share.append(limit.share)
    assert shares[tires][:60:10] == pytest.approx([0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
    assert shares[learns][:60:10] == pytest.approx([1.0, 0.8, 0.6, 0.4, 0.2, 0.0])
    by_day = np.reshape(shares[days], (-1, 10))
    assert (by_day == by_day[:, :1]).all()
    assert set(by_day[:, 0]) == {0.0, 1.0}
    assert by_day.mean() == pytest.approx(0.4, abs=0.12)


def blank(spec: ObservationSpec) -> Observation:
    zero = np.zeros(3, np.float32)
    camera = None if spec.camera is None else np.zeros(spec.camera.shape, np.uint8)
    rays = None if spec.rays is None else np.zeros(spec.rays.size, np.float32)
    return Observation(100.0, zero, zero, rays, camera)


def test_sight_ends_rays() -> None:
    spec = replace(SPEC, rays=RaySpec(5, 90.0))
    environment = SimEnvironment(spec)
    seen = environment.load(ARENAS["screen"], 0).observation
    limit = Sight(25.0)
    limit.begin(EpisodeInfo(0, 0, spec))
    left = limit.see(seen)
    assert seen.rays is not None
    assert left.rays is not None
    spec.validate(left)
    before, after = (rays.reshape(-1, 14) for rays in (seen.rays, left.rays))
    far = before[:, 13] * 200 > 25
    assert 0 < far.sum() < len(far)
    assert (after[~far] == before[~far]).all()
    assert (after[far, 12:] == 1).all()
    assert not after[far, :12].any()


def test_resolution_merges_rays_and_pixels() -> None:
    spec = ObservationSpec(CameraSpec(32), RaySpec(8, 80.0))
    seen = SimEnvironment(spec).load(ARENAS["screen"], 0).observation
    limit = Resolution(25.0)
    limit.begin(EpisodeInfo(0, 0, spec))
    left = limit.see(seen)
    spec.validate(left)
    assert seen.rays is not None
    assert left.rays is not None
    assert left.camera is not None
    assert seen.camera is not None
    told = {row.tobytes() for row in left.rays.reshape(-1, 14)}
    assert len(told) <= 7 < len({row.tobytes() for row in seen.rays.reshape(-1, 14)})
    assert (left.rays[:14] == seen.rays[:14]).all()  # the middle ray tells for itself
    blocks = left.camera.reshape(4, 8, 4, 8, 3)
    assert (blocks == blocks[:, :1, :, :1]).all()
    means = seen.camera.reshape(4, 8, 4, 8, 3).mean(axis=(1, 3))
    assert np.abs(blocks[:, 0, :, 0] - means).max() <= 0.5


def test_a_colour_draws_it_to_its_side() -> None:
    spec = ObservationSpec(CameraSpec(32))
    limit = FollowsColor("red")
    limit.begin(EpisodeInfo(0, 0, spec))
    seen = blank(spec)
    assert limit.do(6, seen) == 6
    assert seen.camera is not None
    seen.camera[10:20, 25:30] = (200, 20, 20)
    assert limit.do(6, seen) == 1
    seen.camera[10:20, 2:7] = (20, 20, 200)
    assert limit.do(6, seen) == 1
    seen.camera[:] = 0
    seen.camera[10:20, 14:18] = (200, 20, 20)
    assert limit.do(6, seen) == 3


def test_who_confuses_two_hiding_places_never_finds_the_goal() -> None:
    """It passes the goal on its way, and stays with the place that it took for the goal's."""
    given = {"places": 6, "hidden": 3.0, "distance": 14.0, "lava": 0, "ramp": 0, "platform": 0}
    (one,) = generate("hiding-separable", 1, np.random.default_rng(0), given=given)
    for places, finds in ((5, False), (6, True)):
        agent = load_agent(f"builtin:planner+places={places}+no-search")
        assert play_out(agent, one.arena, STATE).reached == finds


class Lister:
    """Answers with several actions, and notes that it did."""

    asked: int = 0

    def reset(self, info: EpisodeInfo) -> None:
        self.asked = 0

    def act(self, observation: Observation) -> Noted:
        self.asked += 1
        return Noted(Actions([3] * 40), Note(f"answer {self.asked}"))


def test_several_actions_are_used_up_before_the_agent_is_asked_again() -> None:
    agent = Lister()
    walker = limit_agent(agent, read_reference("builtin:forward+path=5"))
    for _ in range(2):
        walker.reset(EpisodeInfo(0, 0, SPEC))
        for number in range(90):
            walker.act(blank(SPEC))
            assert agent.asked == 1 + number // 40


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        ("builtin:planner+sigth=3", "no limit is named 'sigth'; there are: sight, resolution"),
        ("builtin:planner+", "no limit is named ''"),
        ("builtin:planner+sight", "sight needs a strength: sight takes more than 0 to 100 (m)"),
        ("builtin:planner+sight=0", "sight=0 is out of range"),
        ("builtin:planner+sight=nan", "sight=nan is out of range"),
        ("builtin:planner+sight=far", "sight=far is out of range"),
        ("builtin:planner+lapses=1.5", "lapses takes 0 to 1 (share of decisions)"),
        ("builtin:planner+tires=2.5", "whole"),
        ("builtin:planner+lapses=.1+lapses=.2", "lapses is given twice"),
        ("builtin:planner+follows=sound", "follows takes red | green"),
        ("builtin:planner+memory=2+no-permanence", "memory and no-permanence contradict"),
        ("builtin:planner+left=.2+right=.2", "left and right contradict each other"),
        ("builtin:planner+tires=9+learns=9", "tires and learns contradict each other"),
        ("builtin:planner+follows=last-place+no-search", "no-search and follows=last-place"),
        ("builtin:planner+only-with=ramp+not-with=ramp", "would never play"),
        ("builtin:planner+delay=2+gives-up=1", "delay and gives-up contradict each other"),
        ("builtin:planner+seed=3", "seed concerns the days alone"),
        ("builtin:braitenberg+memory=2", "builtin:braitenberg does not have; it takes: sight,"),
        ("builtin:scout+smallest=1", "smallest needs a switch that builtin:scout does not have"),
        ("builtin:braitenberg+follows=left", "cannot follow left; it can follow: red, green"),
        ("mine.py:Mine+ramp-shy", "an agent of a file does not have; it takes: sight"),
        ("builtin:clever+sight=3", "no such builtin; there are: braitenberg"),
        (
            "builtin:+sight=3",
            "expected builtin:NAME, plugin:NAME, llm:MODEL or path/to/file.py:ClassName",
        ),
    ],
)
def test_errors_say_what_is_wrong(reference: str, words: str) -> None:
    with pytest.raises(AgentLoadError) as caught:
        load_agent(reference)
    assert words in str(caught.value)
    assert repr(reference) in str(caught.value)


def test_coroutines_cannot_be_limited(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "class Mine:\n"
        "    async def reset(self, info): pass\n"
        "    async def act(self, observation): return 3\n"
    )
    load_agent(f"{file}:Mine")
    with pytest.raises(AgentLoadError, match="`act` is a coroutine"):
        load_agent(f"{file}:Mine+lapses=.1")


def test_the_page_lists_all() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "agents.md").read_text("utf-8")
    rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    for name, limit in LIMITS.items():
        shown = f"`{name}`" if limit.otherwise is not None else f"`{name}="
        assert any(shown in row or f"`{name}=" in row for row in rows) or name == "seed", name
    assert all(f"`{kind}`" in page for kind in TAGS)


@pytest.mark.parametrize(
    ("limits", "passes", "fails"),
    [
        ("left", "left", "right"),
        ("right", "right", "left"),
        ("not-with=lava", "open", "lava"),
        ("only-with=ramp", None, "open"),
        ("gives-up=1", None, "open"),
        ("path=10", None, "open"),
    ],
)
def test_limits_work_with_an_agent_that_knows_nothing_of_them(
    limits: str, passes: str | None, fails: str
) -> None:
    reference = f"builtin:braitenberg+{limits}"
    assert passes is None or play(reference, passes).reached
    assert play("builtin:braitenberg", fails).reached
    assert not play(reference, fails).reached


@pytest.mark.parametrize("more", ["", "+left", "+delay=0.3", "+left+delay=0.3"])
def test_it_looks_all_round_before_it_plays_however_long_it_is_held(more: str) -> None:
    """It begins where it looked at first: on the straight way to the goal."""
    assert play(f"builtin:braitenberg+only-with=lava{more}", "held").reached
    assert not play(f"builtin:braitenberg+not-with=lava{more}", "held").reached
    assert play(f"builtin:braitenberg+not-with=ramp{more}", "held").reached
