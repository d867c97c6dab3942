"""What rays tell, as `Rays` reads it: names, angles and metres are those of the arena."""

from __future__ import annotations

import re
import runpy
from functools import cache
from math import cos, radians, sin
from pathlib import Path
from typing import Any

import pytest

from animalcat import Rays, RaySpec
from animalcat.arena_configs.catalogue import KINDS
from animalcat.arena_configs.model import Arena, Item
from animalcat.arena_configs.tags import OBJECTS, RAY_TAGS, TAG_OF
from animalcat.envs.agents.base import EpisodeInfo
from animalcat.envs.answers import read_answer
from animalcat.envs.rays import OTHER
from animalcat.envs.sim.environment import SimEnvironment
from animalcat.envs.types import EndedBy, ObservationSpec, Phase
from tests.things import thing

PICTURES = Path(__file__).resolve().parents[2] / "docs" / "pictures"
AGENT = thing("Agent", 20, 20)
WIDE = RaySpec(6, 180.0, 18)
"""A ray every 30 degrees, all round."""


@cache
def environment(spec: RaySpec) -> SimEnvironment:
    return SimEnvironment(ObservationSpec(rays=spec))


def view_of(*items: Item, spec: RaySpec) -> Rays:
    arena = Arena(time_limit=250, items=(AGENT, *items))
    return Rays(environment(spec).load(arena, 0).observation.rays, spec)


def at(angle: float, away: float, name: str, size: float = 2.0) -> Item:
    """An object in a direction from the agent."""
    x, z = 20 + away * sin(radians(angle)), 20 + away * cos(radians(angle))
    return thing(name, x, z, size, size, size)


@pytest.mark.parametrize("spec", [RaySpec(2, 60.0), RaySpec(3, 90.0, 18), WIDE])
@pytest.mark.parametrize("number", [0, 1, 2, 3])
def test_the_nearest_of_a_kind_is_where_it_stands(spec: RaySpec, number: int) -> None:
    angle = spec.angles[number]
    rays = view_of(at(angle, 10.0, "GoodGoal", 1.0), spec=spec)
    found = rays.nearest("GoodGoal")
    assert found is not None
    assert found == rays[number]
    assert (found.angle, found.kind) == (angle, "goodGoal")
    assert found.distance == pytest.approx(10.0 - 0.5 - 0.5, abs=1e-2)
    assert rays.nearest("goodGoal", "BadGoal") == found
    assert rays.nearest("BadGoal", "Wall") is None


def test_the_columns_are_named_and_hold_what_the_names_say() -> None:
    for spec in (RaySpec(), RaySpec(1, 30.0, 18)):
        rays = view_of(at(0, 9, "Wall"), spec=spec)
        assert spec.columns == (*RAY_TAGS[: spec.tags], "missed", "distance")
        assert rays.table.shape == (2 * spec.per_side + 1, len(spec.columns))
        assert rays.table[0, spec.columns.index("Immovable")] == 1.0
        assert rays.table[0, spec.columns.index("distance")] * 200.0 == pytest.approx(
            rays[0].distance
        )


@pytest.mark.parametrize("tags", [12, 18])
@pytest.mark.parametrize("name", sorted(set(KINDS) - {"Agent"}))
def test_every_object_is_found_by_its_name_or_named_as_one_that_is_not_told(
    name: str, tags: int
) -> None:
    spec = RaySpec(0, 0.0, tags)
    # One looks through a tunnel, so it stands beside the middle.
    beside = 16.0 if "Tunnel" in name else 0.0
    rays = view_of(at(beside, 9.0, name, 5.0 if beside else 2.0), spec=spec)
    if name == "Ramp":  # in this build it has the tag of walls
        assert (rays.nearest("Ramp"), rays.nearest("Wall")) == (None, rays[0])
    elif TAG_OF[name] in spec.columns:
        assert rays.nearest(name) == rays[0]
        assert rays[0].kind == TAG_OF[name]
    else:
        assert rays.nearest(OTHER) == rays[0]
        with pytest.raises(ValueError, match=f"{tags} tags do not tell {name}: ask for"):
            rays.nearest(name)


def test_names_that_do_not_exist_are_refused_with_the_one_that_was_meant() -> None:
    rays = view_of(spec=RaySpec())
    with pytest.raises(ValueError, match="no ray tells 'GoodGaol'; did you mean GoodGoal"):
        rays.nearest("GoodGaol")
    with pytest.raises(ValueError, match=r"no ray tells 'xyz'; there are .*LightBlock"):
        rays.nearest("Wall", "xyz")


def test_the_picture_is_what_the_script_draws() -> None:
    """To draw it again after a change: `python docs/pictures/rays.py docs/pictures/rays.svg`."""
    script = runpy.run_path(str(PICTURES / "rays.py"))
    assert (PICTURES / "rays.svg").read_text("utf-8") == script["draw"]()
    kinds = [ray.kind for ray in script["see"]()]
    assert kinds == ["Immovable", "badGoal", "goodGoal", "arena", "arena"]


def test_the_table_of_the_page_is_that_of_the_code() -> None:
    page = (PICTURES.parent / "agents.md").read_text("utf-8")
    section = page.split("### What the rays tell", 1)[1].split("\n### ", 1)[0]
    rows = re.findall(r"^\| ?(\d*) \| `?(\w+)`? \| (.*) \|$", section, re.MULTILINE)
    assert [tag for _, tag, _ in rows] == [*RAY_TAGS, OTHER]
    assert [number for number, _, _ in rows] == [*map(str, range(len(RAY_TAGS))), ""]
    for number, tag, objects in rows:
        told = set(re.findall("`(.*?)`", objects)) - ({"Ramp"} if tag == "Immovable" else set())
        assert told == (set(OBJECTS[tag]) if number else {"GrowGoal", "ShrinkGoal"})
        assert ("with 18 tags" in objects) == (number.isdigit() and int(number) >= 12)


AGENTS = {"README.md": "Seeker", "docs/agents.md": "Chaser"}


@pytest.mark.parametrize(("page", "name"), AGENTS.items())
@pytest.mark.parametrize("spec", [RaySpec(), RaySpec(0, 0.0), RaySpec(3, 90.0, 18)])
def test_the_agents_of_the_pages_reach_a_goal(page: str, name: str, spec: RaySpec) -> None:
    text = (PICTURES.parents[1] / page).read_text("utf-8")
    (code,) = (b for b in re.findall("```python\n(.*?)```", text, re.DOTALL) if name in b)
    scope: dict[str, Any] = {}
    exec(compile(code, page, "exec"), scope)
    agent, sim = scope[name](), environment(spec)
    items = (thing("Agent", 20, 5, yaw=180), thing("GoodGoal", 26, 30, 3, 3, 3))
    step = sim.load(Arena(time_limit=250, items=items), 0)
    agent.reset(EpisodeInfo(0, 0, sim.spec, 417))
    while step.phase is not Phase.LAST:
        (action,) = read_answer(agent.act(step.observation)).actions
        step = sim.step(action)
    assert step.ended_by is EndedBy.GOAL
