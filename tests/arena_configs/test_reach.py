from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from animalcat.arena_configs.checks import check_arena
from animalcat.arena_configs.geometry import rotate
from animalcat.arena_configs.loader import load_config
from animalcat.arena_configs.model import Arena, GrantReward, Item, Vector3
from animalcat.arena_configs.placement import place
from animalcat.arena_configs.reach import unreachable_goals
from tests.things import thing

AGENT = thing("Agent", 20, 5)
GOAL = thing("GoodGoal", 20, 30, 1, 1, 1)
FENCE = thing("Wall", 20, 20, 40, 1, 0.1)
MOAT = thing("DeathZone", 20, 30, 8, 0.5, 8)


def pen(gap: float, yaw: float = 0.0, height: float = 1.0) -> tuple[Item, ...]:
    """Four walls around the goal, one of them with a gap."""
    side = (9.0 - gap) / 2
    return (
        thing("Wall", 15, 30, 1, height, 10, yaw=yaw),
        thing("Wall", 25, 30, 1, height, 10, yaw=yaw),
        thing("Wall", 20, 35, 9, height, 1, yaw=yaw),
        thing("Wall", 20 - gap / 2 - side / 2, 25, side, height, 1, yaw=yaw),
        thing("Wall", 20 + gap / 2 + side / 2, 25, side, height, 1, yaw=yaw),
    )


def count_lost(*items: Item) -> int:
    return len(unreachable_goals(place(Arena(items=items), np.random.default_rng(0))))


@pytest.mark.parametrize(
    ("number", "items"),
    [
        (0, (AGENT, GOAL)),
        (1, (AGENT, GOAL, FENCE)),
        (1, (AGENT, GOAL, *pen(0.0))),
        (1, (AGENT, GOAL, *pen(0.4))),
        (0, (AGENT, GOAL, *pen(1.0))),  # as wide as the agent
        (1, (AGENT, GOAL, MOAT)),
        (1, (thing("Agent", 20, 30), thing("GoodGoal", 20, 5, 1, 1, 1), *pen(0.0))),
        (1, (AGENT, thing("Wall", 20, 20, 6, 4, 6), thing("GoodGoal", 20, 20, 1, 1, 1, y=4))),
        (0, (AGENT, thing("Wall", 20, 20, 6, 4, 6), thing("GoodGoal", 20, 17.2, 5, 5, 5, y=0))),
        (0, (AGENT, thing("Wall", 20, 20, 40, 2, 1, y=1.5), GOAL)),  # one walks below it
    ],
)
def test_the_floor(number: int, items: tuple[Item, ...]) -> None:
    assert count_lost(*items) == number


@pytest.mark.parametrize("yaw", [0.0, 20.0, 45.0, 77.0])
@pytest.mark.parametrize("gap", [0.0, 2.0])
def test_a_pen_at_any_angle(yaw: float, gap: float) -> None:
    def turn_over(item: Item) -> Item:
        at = item.positions[0]
        x, z = rotate(at.x - 20, at.z - 30, yaw)
        update = {"positions": (Vector3(x=20 + x, z=30 + z),), "rotations": (yaw,)}
        return item.model_copy(update=update)

    # Corners overlap at no angle, so every wall is spawned.
    placement = place(
        Arena(items=(AGENT, GOAL, *map(turn_over, pen(gap)))), np.random.default_rng(0)
    )
    assert not placement.skipped
    assert len(unreachable_goals(placement)) == (gap == 0.0)


@pytest.mark.parametrize(
    "help_",
    [
        thing("Ramp", 10, 8, 4, 2, 8),
        thing("Wall", 10, 8, 4, 0.2, 4),
        thing("CylinderTunnel", 10, 10, 3, 3, 6),
        Item(
            name="DataZone",
            positions=(Vector3(x=10, z=10),),
            rotations=(0.0,),
            operations=(GrantReward(),),
        ),
    ],
)
def test_what_may_help_the_agent_over_keeps_it_silent(help_: Item) -> None:
    assert count_lost(AGENT, GOAL, *pen(0.0, height=5.0)) == 1
    assert count_lost(AGENT, GOAL, *pen(0.0, height=5.0), help_) == 0


def test_a_bouncing_goal_is_wherever_it_may_roll() -> None:
    ball = thing("GoodGoalBounce", 20, 30, 1, 1, 1)
    assert count_lost(AGENT, ball, *pen(0.0)) == 1
    assert count_lost(AGENT, ball, *pen(1.4)) == 0
    assert count_lost(AGENT, ball, thing("Wall", 20, 20, 40, 4, 1)) == 1
    far = thing("GoodGoalBounce", 5, 38, 1, 1, 1)  # rolls from its corner to the fence's gap
    assert count_lost(AGENT, far, thing("Wall", 18, 20, 36, 4, 1)) == 0


def test_check_warns_and_never_fails() -> None:
    problems = check_arena(Arena(items=(AGENT, GOAL, FENCE)), np.random.default_rng(0))
    assert [(p.severity, p.code, p.field) for p in problems] == [
        ("warning", "unreachable-goal", "items[1]")
    ]
    assert "(20, 30)" in problems[0].message


def test_parts_in_each_other() -> None:
    # Unity looks at a U's middle bar alone when it spawns it: here an arm stands in the wall.
    u = thing("UBlock", 20, 20, 5, 1, 5)
    wall = thing("Wall", 17.3, 17.8, 0.3, 1, 0.3)
    for items, code in (((AGENT, wall, u), "overlap"), ((AGENT, u, wall), "not-spawned")):
        problems = check_arena(
            Arena(items=(*items, thing("GoodGoal", 5, 5))), np.random.default_rng(0)
        )
        assert [(p.severity, p.code, p.field) for p in problems] == [("warning", code, "items[2]")]


@pytest.mark.data
def test_real_arenas_are_seldom_suspected(data_dir: Path) -> None:
    suspected: set[str] = set()
    for path in sorted((data_dir / "animal-ai-competition").glob("*.yaml")):
        placement = place(load_config(path).config.first, np.random.default_rng(0))
        if unreachable_goals(placement):
            suspected.add(path.stem)
    # A goal amid a DeathZone (pass mark -1.1: to leave it alone is right); goals behind a fence.
    assert suspected == {"04-28-01", "02-27-01"}
