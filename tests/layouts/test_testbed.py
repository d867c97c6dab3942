"""The layout of the whole testbed, and how it is compared with rates and regressions."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from animalcat.arena_configs.features.registry import FEATURES
from animalcat.layouts.inference.evaluator import Evaluator
from animalcat.layouts.library import load_layout, variants
from animalcat.service.batteries.file_features import Plan, measure_files
from animalcat.service.measuring.coverage import check_units

LAYOUT = load_layout("testbed")
PLAIN = {
    "lavaToAvoid": 0.0,
    "raisedRewards": 0.0,
    "rewards": 1.0,
    "endingRewards": 1.0,
    "darkness": 0.0,
    "wayLength": 0.0,
    "goalSize": 5.0,
    "mustPush": 0.0,
}
"""A large goal right here; what it does not name is missing."""
PERFECT = {
    node.name: 0.0 if node.kind == "robustness" else node.prior.high for node in LAYOUT.latents
}


def pass_chance(arena: Mapping[str, float | None], **agent: float) -> float:
    """Probability of success of an agent that is perfect but for what is given."""
    known = {key: value for key, value in {**PLAIN, **arena}.items() if value is not None}
    row = [known.get(name, np.nan) for name in LAYOUT.feature_names]
    theta = [{**PERFECT, **agent}[name] for name in LAYOUT.latent_names]
    return float(Evaluator(LAYOUT).probability([theta], [row])[0, 0])


def test_its_demands_are_measured_ones() -> None:
    check_units(LAYOUT, {})
    assert set(LAYOUT.feature_names) <= set(FEATURES)
    for feature in LAYOUT.features:
        measured = FEATURES[feature.name]
        assert measured.low <= feature.low
        assert feature.high <= measured.high
    assert variants("testbed") == ("graded", "flat")


@pytest.mark.parametrize(
    ("arena", "node", "without"),
    [
        ({"rampNeeded": 1}, "rampAbility", 0.0),
        ({"platformNeeded": 1}, "platformAbility", 0.0),
        ({"lavaToAvoid": 1}, "avoidanceAbility", 0.0),
        ({"hotOnWay": 2}, "avoidanceAbility", 0.0),
        ({"goalSeen": 0}, "searchAbility", 0.0),
        ({"choiceWays": 2, "choiceRight": 1}, "choiceAbility", 0.5),
        ({"choiceWays": 4, "choiceRight": 3}, "choiceAbility", 0.75),
        ({"hiddenStanding": 1.5}, "trackingAbility", 0.0),
        ({"raisedRewards": 1}, "trackingAbility", 0.0),
        ({"mustPush": 1}, "pushAbility", 0.0),
        ({"mustPush": None, "wayLength": None}, "pushAbility", 0.0),
        ({"darkness": 0.3}, "darknessAbility", 0.0),
        ({"rewards": 2}, "patienceAbility", 0.0),
    ],
)
def test_a_demand_asks_for_its_ability(
    arena: Mapping[str, float | None], node: str, without: float
) -> None:
    assert pass_chance(arena) > 0.98
    assert pass_chance(arena, **{node: 0.0}) == pytest.approx(without, abs=0.01)
    assert pass_chance({}, **{node: 0.0}) > 0.98


def test_graded_demands() -> None:
    assert pass_chance({"wayLength": 40}, navigationAbility=4) == pytest.approx(0.5, abs=0.01)
    assert pass_chance({"wayLength": 20}, navigationAbility=4) > 0.85
    assert pass_chance({"goalSize": 0.625}, visualAbility=3) == pytest.approx(0.5, abs=0.01)
    bend = {"wayTurns": 1.0, "detour": 1.5}
    assert pass_chance({**bend, "glassInSight": 1.0}, detourAbility=1.5) < 0.5
    assert pass_chance(bend, detourAbility=1.5) > 0.5
    assert pass_chance({"detour": 1.001}, detourAbility=0) > 0.98
    heap = {"rewards": 4, "endingRewards": 0}
    assert pass_chance(heap, collectingAbility=2) == pytest.approx(0.5, abs=0.01)
    assert pass_chance({"endingRewards": 0}, collectingAbility=0) == pytest.approx(0.5, abs=0.01)
    # Of two rewards that end the episode one is taken: nothing is to be collected, none waits.
    two = {"rewards": 2, "endingRewards": 2}
    assert pass_chance(two, collectingAbility=0, patienceAbility=0) > 0.98


def silent(done: int, total: int) -> None:
    """Progress that nobody looks at."""


@pytest.mark.data
def test_it_covers_all_categories(data_dir: Path) -> None:
    folder = data_dir / "animal-ai-competition"
    files = [
        next(folder.rglob(f"{category:02}-{task:02}-01.y*ml"))
        for category, task in ((1, 24), (10, 3))
    ]
    rows = measure_files(files, Plan(0, "animalcat", "4.x"), processes=1, cache=None, tick=silent)
    for row in rows:
        assert row.features is not None
        assert LAYOUT.why_not(row.features, row.missing) == ""
    push = [row.features is not None and "mustPush" not in row.features for row in rows]
    assert push[-1]  # no safe way
