"""Demands that are parameters are met without a search, over their whole range."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from animalcat.arena_configs.checks import check_arena
from animalcat.arena_configs.families.aims import aims_at
from animalcat.arena_configs.families.claims import measure_geometry
from animalcat.arena_configs.families.grid import are_parameters, demand_grid
from animalcat.arena_configs.families.language import Family
from animalcat.arena_configs.families.library import load_family
from animalcat.arena_configs.families.ranges import (
    Categorical,
    Constant,
    Interval,
    Range,
    TruncatedNormal,
)
from animalcat.arena_configs.families.reader import read_family
from animalcat.arena_configs.families.sampling import draw_parameters
from animalcat.arena_configs.families.scope import Formula, Place
from animalcat.arena_configs.families.search import search
from animalcat.arena_configs.features.start import bearing
from animalcat.arena_configs.model import Arena
from animalcat.arena_configs.placement import place
from animalcat.service.measuring.twins import Stratum, Target, twin, worst

NAVIGATION = load_family("navigation")
DEMANDS = ("rewardDistance", "rewardSize", "rewardBehind", "XPos")
OPEN = ("open-front", "open-side", "open-behind")


def formula(value: float) -> Formula:
    return Formula(value, f"{value}", Place("", 1, ""))


def number(low: float, high: float, kind: str) -> Interval:
    return Interval(formula(low), formula(high), kind)


def made(family: Family, paradigm: str, row: dict[str, float], seed: int) -> Arena:
    """The first arena that is looked at for some demands."""
    stratum = Stratum(family, family.paradigm(paradigm))
    aims = {name: Target(row[name], 0.0 if name in DEMANDS[2:] else 0.002) for name in DEMANDS}
    made = twin(stratum, aims, np.random.default_rng(seed), measure_geometry)
    assert made is not None
    assert worst(aims, made.measured.values) <= 1.0 + 1e-9
    return made.arena


def test_a_grid_of_demands_comes_back() -> None:
    codes: set[tuple[float, float]] = set()
    for paradigm in OPEN:
        rows = demand_grid(NAVIGATION, NAVIGATION.paradigm(paradigm), DEMANDS)
        assert len({tuple(row[name] for name in DEMANDS) for row in rows}) == len(rows) > 500
        assert min(row["rewardDistance"] for row in rows) < 1.3
        assert max(row["rewardDistance"] for row in rows) > 37.9
        sizes = sorted({row["rewardSize"] for row in rows})
        assert (sizes[0], sizes[-1]) == (0.5, 5.0)
        assert max(np.diff(sizes)) < 0.31
        for seed, row in enumerate(rows[:: len(rows) // 12]):
            arena = made(NAVIGATION, paradigm, row, seed)
            placement = place(arena, np.random.default_rng(0))
            assert (placement.drawn, placement.skipped) == ({}, ())
            assert check_arena(arena, np.random.default_rng(0)) == (), row
            found = measure_geometry(arena).values
            assert found["rewardDistance"] == pytest.approx(row["rewardDistance"], abs=0.002)
            assert found["rewardSize"] == pytest.approx(row["rewardSize"], abs=5e-4)
        codes |= {(row["rewardBehind"], row["XPos"]) for row in rows}
    assert len(codes) == 8  # a reward at a side is to the left or to the right


def test_the_same_demands_have_many_arenas() -> None:
    row = {"rewardDistance": 10.0, "rewardSize": 1.0, "rewardBehind": 0.0, "XPos": 0.0}
    arenas = [made(NAVIGATION, "open-front", row, seed) for seed in range(20)]
    assert len(set(arenas)) == 20
    assert made(NAVIGATION, "open-front", row, 3) == arenas[3]
    # Straight ahead is to neither side: a little to the left of it, or to the right.
    starts = [place(arena, np.random.default_rng(0)) for arena in arenas]
    angles = [bearing(start, start.objects[0]) for start in starts]
    assert {angle > 0.0 for angle in angles} == {True, False}


def test_the_longest_way_across_the_arena_can_be_made() -> None:
    wide = replace(
        NAVIGATION,
        parameters={**NAVIGATION.parameters, "distance": number(1.0, 53.0, "uniform")},
    )
    for size, far in ((0.5, 54.5), (5.0, 51.5)):
        row = {"rewardDistance": far, "rewardSize": size, "rewardBehind": 0.0, "XPos": 1.0}
        far = min(far, 53.0)
        row["rewardDistance"] = far
        found = measure_geometry(made(wide, "open-front", row, 1)).values
        assert found["rewardDistance"] == pytest.approx(far, abs=0.002)


def test_what_no_parameter_can_be_becomes_the_nearest() -> None:
    asked = {"distance": 90.0, "size": 0.1, "side": 0.3}
    found = search(NAVIGATION, asked, np.random.default_rng(1), measure_geometry, paradigm=OPEN[0])
    assert not found.exact
    assert found.made["rewardDistance"] == pytest.approx(50.0, abs=0.01)
    assert (found.made["rewardSize"], found.made["XPos"]) == (0.5, 0.0)


def test_a_part_that_few_draws_are_for_is_found() -> None:
    """With these seeds none of the first ten draws is for practice."""
    for seed in (11, 32, 37):
        rng = np.random.default_rng(seed)
        asked = {"distance": 20.0}
        found = search(NAVIGATION, asked, rng, measure_geometry, part="practice", paradigm=OPEN[0])
        assert found.exact
        assert found.instance.part == "practice"


@pytest.mark.parametrize(
    "drawn",
    [
        number(-1.0, 4.0, "uniform"),
        number(0.5, 40.0, "log_uniform"),
        number(2.0, 7.0, "integers"),
        TruncatedNormal(formula(1.0), formula(2.0), formula(-3.0), formula(4.0)),
        Categorical((0.0, 0.5, 3.0), (1.0, 8.0, 2.0)),
        Constant(formula(2.0)),
    ],
)
def test_a_share_gives_the_value_that_it_is_asked_for(drawn: Range) -> None:
    for share in np.linspace(0.0, 0.999, 37).tolist():
        value = drawn.value(share, {})
        assert isinstance(value, float)
        again = drawn.share(value, {})
        assert 0.0 <= again < 1.0
        assert drawn.value(again, {}) == pytest.approx(value, abs=1e-9)
    least, *_, most = [*drawn.spread({}), drawn.spread({})[-1]]
    assert isinstance(least, float)
    assert isinstance(most, float)
    assert drawn.value(drawn.share(least - 5.0, {}), {}) == pytest.approx(least, abs=1e-9)
    assert drawn.value(drawn.share(most + 5.0, {}), {}) == pytest.approx(most, abs=1e-9)


TEXT = """
name: two
description: Two claims.
parameters: {far: {uniform: [5, 20]}, size: {choice: [1, 2]}, side: {choice: [-1, 1]}}
variants: {mirror: true}
arena:
  timeLimit: 250
  items:
    - {name: Agent, positions: [[20, 5]], rotations: [-20 * side]}
    - {name: GoodGoal, positions: [[20, 5 + far]], sizes: [size]}
claims:
  rewardSize: size
  XPos: side * mirror
  rewardDistance: {is: far, within: 3}
  goalDistance: {is: far, if: size == 1}
  rewardSum: 0.999 * size
"""


def test_only_exact_claims_of_a_parameter_are_set() -> None:
    family = read_family(TEXT, "two.yaml")
    paradigm = family.paradigms[0]
    asked = {"rewardSize": 1.0, "XPos": 1.0}
    asked |= {"rewardDistance": 1.0, "goalDistance": 1.0, "rewardSum": 1.0}
    plain = aims_at(family, paradigm, asked)
    assert plain.demands == {"rewardSize", "XPos"}
    assert plain.values == {"size": 1.0, "side": 1.0}
    assert aims_at(family, paradigm, asked, mirrored=True).values == {"size": 1.0, "side": -1.0}
    assert aims_at(family, paradigm, asked, given=["size"]).demands == {"XPos"}
    draw = draw_parameters(family, paradigm, np.random.default_rng(0))
    shares = plain.at(draw).shares
    assert shares["far"] == draw.shares["far"]
    assert (shares["size"], shares["side"]) == (0.25, 0.75)
    assert not are_parameters(family, paradigm, ["rewardSize", "rewardSum"])
    assert demand_grid(family, paradigm, ["rewardSize", "rewardSum"]) == []
    grid = demand_grid(family, paradigm, ["rewardSize", "XPos"])
    assert {(row["rewardSize"], row["XPos"]) for row in grid} == {
        (a, b) for a in (1, 2) for b in (-1, 1)
    }
    assert all(row["rewardSum"] == pytest.approx(0.999 * row["rewardSize"]) for row in grid)
