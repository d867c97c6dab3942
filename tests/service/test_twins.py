"""Twins have the demands of the arena that they are twins of, and variations keep them."""

from __future__ import annotations

import numpy as np
import pytest

from animalcat.arena_configs.families.claims import measure_geometry
from animalcat.arena_configs.families.generate import generate
from animalcat.arena_configs.families.instance import FamilyInstance
from animalcat.arena_configs.families.library import load_family
from animalcat.arena_configs.features.definition import MeasuredFeatures
from animalcat.arena_configs.features.registry import FEATURES
from animalcat.arena_configs.model import Arena
from animalcat.arena_configs.writer import to_yaml
from animalcat.service.measuring.twins import (
    SIDED,
    WITHIN,
    Stratum,
    Target,
    twin,
    variations,
    worst,
)
from tests.symmetry import COLOURS, SIDES

NAMES = ("goalDistance", "goalSize", "rightLeftPosition", "wallsInWay")
CODES = frozenset({"rightLeftPosition", "wallsInWay", "rewardBehind", "XPos"})


def detours(paradigm: str, control: str = "") -> Stratum:
    family = load_family("detour")
    taken = family.controls[control] if control else None
    return Stratum(family, family.paradigm(paradigm), taken)


def draw_some(family: str, paradigm: str, n: int) -> list[FamilyInstance]:
    return generate(family, n, np.random.default_rng(8), paradigm=paradigm)


def features(arena: Arena) -> dict[str, float]:
    return measure_geometry(arena).values


def ask_next(arena: Arena, names: tuple[str, ...] = NAMES) -> dict[str, Target]:
    has = features(arena)
    return {
        name: Target(has[name], 0.0 if name in CODES else WITHIN * max(1.0, has[name]))
        for name in names
    }


def test_sides_are_those_that_a_mirror_changes() -> None:
    assert SIDED == SIDES


def test_a_twin_has_the_same_demands_and_other_details() -> None:
    one = draw_some("detour", "wall", 1)[0]
    aims, texts = ask_next(one.arena), {to_yaml(one.arena)}
    for seed in (1, 2):
        made = twin(detours("wall"), aims, np.random.default_rng(seed), measure_geometry, one.part)
        assert made is not None
        assert worst(aims, features(made.arena)) <= 1.0
        texts.add(to_yaml(made.arena))
    assert len(texts) == 3


def test_a_control_has_twins_that_are_controls() -> None:
    pair = generate("detour", 2, np.random.default_rng(3), paradigm="wall", controls=["open"])
    aims = ask_next(next(one for one in pair if one.control == "open").arena)
    made = twin(detours("wall", "open"), aims, np.random.default_rng(0), measure_geometry)
    assert made is not None
    assert worst(aims, features(made.arena)) <= 1.0
    assert features(made.arena)["wallsInWay"] == 0.0


@pytest.mark.parametrize("paradigm", ["open-side", "walls-behind", "zone-front"])
def test_demands_that_are_parameters_are_met_at_the_first_look(paradigm: str) -> None:
    family = load_family("navigation")
    stratum = Stratum(family, family.paradigm(paradigm))
    names = ("rewardDistance", "rewardSize", "rewardBehind", "XPos")
    for one in draw_some("navigation", paradigm, 3):
        looks: list[Arena] = []

        def look(arena: Arena, looks: list[Arena] = looks) -> MeasuredFeatures:
            looks.append(arena)
            return measure_geometry(arena)

        made = twin(stratum, ask_next(one.arena, names), np.random.default_rng(6), look, one.part)
        assert made is not None
        assert len(looks) == 1
        has, had = features(made.arena), features(one.arena)
        assert has["rewardDistance"] == pytest.approx(had["rewardDistance"], abs=0.002)
        assert (has["rewardBehind"], has["XPos"]) == (had["rewardBehind"], had["XPos"])
        assert to_yaml(made.arena) != to_yaml(one.arena)


@pytest.mark.parametrize("mirror", [False, True])
def test_a_variation_keeps_what_no_place_or_colour_decides(mirror: bool) -> None:
    one = draw_some("detour", "bay", 1)[0]
    had = features(one.arena)
    # What goes by the axes of the arena, or over the grid, changes a little with the direction.
    loose = {"goalDistance", "wayManhattan", "wayLength", "wayBearing", "timeNeeded", "detour"}
    seen: set[str] = set()
    for varied in variations(one.arena, np.random.default_rng(2), mirror=mirror):
        has = features(varied.arena)
        sign = -1.0 if varied.flipped else 1.0
        for name in FEATURES.keys() & had.keys() - COLOURS - loose:
            expected = had[name] * (sign if name in SIDES else 1.0)
            assert has[name] == pytest.approx(expected, abs=0.02), name
        goal, there = (
            next(item for item in arena.items if item.name.startswith("GoodGoal")).positions[0]
            for arena in (one.arena, varied.arena)
        )
        assert varied.point(goal.x, goal.z) == pytest.approx((there.x, there.z), abs=2e-3)
        seen.add(to_yaml(varied.arena))
    assert len(seen) >= 3
    assert to_yaml(one.arena) not in seen
    again = next(variations(one.arena, np.random.default_rng(9), mirror=mirror))
    assert to_yaml(again.arena) not in seen
