from __future__ import annotations

import collections

import numpy as np
import pytest

from animalcat.arena_configs.families.generate import generate
from animalcat.arena_configs.families.instance import FamilyInstance
from animalcat.arena_configs.features.registry import measure_features
from animalcat.arena_configs.geometry import Solid, overlaps
from animalcat.arena_configs.model import Point
from animalcat.arena_configs.placement import place


@pytest.fixture(scope="module")
def navigation() -> list[FamilyInstance]:
    return generate("navigation", 300, np.random.default_rng(2024))


@pytest.mark.slow
def test_navigation_covers_its_demands(navigation: list[FamilyInstance]) -> None:
    rng = np.random.default_rng(0)
    rows = [(measure_features(place(i.arena, rng)).values, i.paradigm) for i in navigation]
    distances = [features["rewardDistance"] for features, _ in rows]
    sizes = [features["rewardSize"] for features, _ in rows]
    assert (min(distances) < 2, max(distances) > 35) == (True, True)
    assert (min(sizes) < 0.6, max(sizes) > 4.5) == (True, True)
    behind = {"front": 0.0, "side": 0.5, "behind": 1.0}
    for features, paradigm in rows:
        assert features["rewardBehind"] == behind[paradigm.partition("-")[2]], paradigm
    sides = collections.Counter(features["XPos"] for features, _ in rows)
    assert abs(sides[1.0] - sides[-1.0]) < 15
    assert sides[0.0] > 10


def test_navigation_leaves_a_way_past_what_stands_there() -> None:
    """The agent starts clear of all, and so does the goal; between them is a way."""
    for paradigm in ("walls-behind", "zone-front"):
        for one in generate("navigation", 25, np.random.default_rng(3), paradigm=paradigm):
            placement = place(one.arena, np.random.default_rng(0))
            things = [solid for thing in placement.objects[1:] for solid in thing.solids()]
            here, there = placement.agent.position, placement.objects[0].position
            for x, z in ((here.x, here.z), (there.x, there.z)):
                ball = Solid("sphere", Point(x, 0.5, z), Point(0.5, 0.5, 0.5), 0.0)
                assert not any(overlaps(solid, ball) for solid in things), one.name
            assert measure_features(placement).values["wayLength"] < 60.0, one.name
