"""Arenas for given demands give back the demands."""

from __future__ import annotations

import numpy as np
import pytest

from animalcat.arena_configs.checks import check_arena
from animalcat.arena_configs.families import distances, load_polar, places, sizes, solve
from animalcat.arena_configs.families.polar import parse_polar, passable
from animalcat.arena_configs.families.polar_solve import TOLERANCE
from animalcat.arena_configs.families.polar_template import UniformRange
from animalcat.arena_configs.features import bearing, measure_features
from animalcat.arena_configs.model import ArenaError
from animalcat.arena_configs.placement import place

NAVIGATION = load_polar("navigation")
DEMANDS = {"rewardDistance": 10.0, "rewardSize": 1.0, "rewardBehind": 0.0, "XPos": 0.0}


def test_a_grid_of_demands_comes_back() -> None:
    low, high = sizes(NAVIGATION)
    spots = places(NAVIGATION)
    assert len(spots) == 8  # a reward at a side is to the left or to the right
    seed = 0
    for size in np.geomspace(low, high, 5):
        near, far = distances(NAVIGATION, float(size))
        for distance in np.geomspace(near, far, 5):
            for spot in spots:
                seed += 1
                demands = {
                    "rewardDistance": float(distance),
                    "rewardSize": float(size),
                    "rewardBehind": spot.behind,
                    "XPos": spot.side,
                }
                made = solve("navigation", demands, np.random.default_rng(seed))
                placement = place(made.arena, np.random.default_rng(0))
                assert (placement.drawn, placement.skipped) == ({}, ())
                assert check_arena(made.arena, np.random.default_rng(0)) == (), demands
                assert passable(placement), demands
                assert made.paradigm == spot.paradigm
                found = measure_features(placement).values
                assert found["rewardDistance"] == pytest.approx(distance, abs=TOLERANCE)
                assert found["rewardSize"] == pytest.approx(size, abs=5e-4)
                assert (found["rewardBehind"], found["XPos"]) == (spot.behind, spot.side)


def test_the_same_demands_have_many_arenas() -> None:
    made = [solve("navigation", DEMANDS, np.random.default_rng(k)).arena for k in range(20)]
    assert len(set(made)) == 20
    assert solve("navigation", DEMANDS, np.random.default_rng(3)).arena == made[3]
    # Straight ahead is to neither side: a little to the left of it, or to the right.
    starts = [place(arena, np.random.default_rng(0)) for arena in made]
    angles = [bearing(start, start.objects[0]) for start in starts]
    assert {angle > 0.0 for angle in angles} == {True, False}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rewardDistance": 0.9}, r"rewardDistance 0.9 .* 1\.251 to 37\.999 m"),
        ({"rewardDistance": 60.0}, "rewardDistance 60"),
        ({"rewardSize": 0.1}, r"rewardSize 0.1 .* 0.5 to 5 m"),
        ({"rewardBehind": 0.5}, r"\(0.5, 0\); it has \(0, -1\), \(0, 0\)"),
        ({"XPos": 0.3}, r"\(0, 0.3\)"),
    ],
)
def test_demands_that_no_arena_has(change: dict[str, float], message: str) -> None:
    with pytest.raises(ArenaError, match=message):
        solve("navigation", {**DEMANDS, **change}, np.random.default_rng(0))


def test_a_family_without_mirror_images_has_no_left() -> None:
    lone = parse_polar(
        "{name: lone, description: One side., goal: GoodGoal, distance: 5, size: 1, time_limit: 99,"
        " paradigms: [{name: right, weight: 1, angle: {uniform: [20, 30]}}]}",
        "lone.yaml",
    )
    assert [(p.behind, p.side, p.angles) for p in places(lone)] == [(0.0, 1.0, (20.0, 30.0))]
    assert distances(lone, 1.0) == pytest.approx((5.0, 5.0), abs=2e-3)


def test_the_longest_way_across_the_arena_can_be_made() -> None:
    wide = NAVIGATION.model_copy(update={"distance": UniformRange(uniform=(1.0, 60.0))})
    for size in (0.5, 5.0):
        _, far = distances(wide, size)
        assert far > 51.0
        made = solve(
            wide, {**DEMANDS, "rewardDistance": far, "rewardSize": size}, np.random.default_rng(1)
        )
        found = measure_features(place(made.arena, np.random.default_rng(0))).values
        assert found["rewardDistance"] == pytest.approx(far, abs=TOLERANCE)
