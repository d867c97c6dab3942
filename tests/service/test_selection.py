"""A battery is selected so that its demands do not go together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pytest

from animalcat.arena_configs.batteries.library import load_recipe
from animalcat.arena_configs.families.claims import check_claims
from animalcat.arena_configs.families.generate import generate
from animalcat.arena_configs.families.instance import FamilyInstance
from animalcat.arena_configs.families.language import Family
from animalcat.arena_configs.features.definition import MeasuredFeatures
from animalcat.arena_configs.instance import Instance
from animalcat.arena_configs.origin import Origin
from animalcat.layouts.library import load_layout
from animalcat.service.batteries.drafts import Draft, reading_of
from animalcat.service.batteries.selection import MOST, DemandRows, Together, select

LAYOUT: Final = load_layout("object-permanence", "measured")
ABSENT: Final = {
    "badGoals": 0.0,
    "decoys": 0.0,
    "changingRewards": 0.0,
    "mustPush": 0.0,
    "hotZones": 0.0,
    "spawners": 0.0,
    "operated": 0.0,
    "rewards": 1.0,
}
EASY: Final = {
    "rampNeeded": 0.0,
    "lavaToAvoid": 0.0,
    "platformNeeded": 0.0,
    "goalDistance": 5.0,
    "goalSize": 4.8,
    "rightLeftPosition": 0.0,
    "occluderPresence": 1.0,
    "timeUnderOcc": 1.0,
    "numPositions": 1.0,
}


def instance(name: str, task: str = "", **demands: float) -> Instance:
    """An instance that is easy but for these demands; those that are NaN do not apply."""
    features = {k: v for k, v in (EASY | ABSENT | demands).items() if np.isfinite(v)}
    missing = {k: "never hidden" for k, v in demands.items() if not np.isfinite(v)}
    origin = Origin("", "", "", "test", task) if task else None
    return Instance(name, "all", features, 0.0, 100, 0, "", missing, (), origin)


def random_instances(count: int, seed: int, together: float = 0.0) -> list[Instance]:
    """Instances with hiding; time goes with distance to some degree, half of them in pairs."""
    rng = np.random.default_rng(seed)
    made: list[Instance] = []
    for k in range(count):
        share = rng.random()
        mixed = share if rng.random() < together else rng.random()
        demands = {
            "goalDistance": 56 * share,
            "timeUnderOcc": 20 * mixed,
            "goalSize": rng.uniform(0.4, 5),
            "numPositions": float(rng.integers(1, 16)),
            "rightLeftPosition": float(rng.integers(-1, 2)),
            **{name: float(rng.integers(2)) for name in ("lavaToAvoid", "rampNeeded")},
        }
        made.append(instance(f"i{k:03}", f"t{k}", **demands))
        if k % 2:
            other = {**demands, "goalSize": 5.4 - demands["goalSize"]}
            made.append(instance(f"i{k:03}.size", f"t{k}", **other))
    return made


def together(instances: Sequence[Instance]) -> list[Together]:
    return DemandRows.of(LAYOUT, instances).together


def test_demands_that_go_together_are_named() -> None:
    found = together(random_instances(200, 1, together=0.5))
    first = found[0]
    assert {first.one, first.other} == {"goalDistance", "timeUnderOcc"}
    assert 0.35 < first.ranks < 0.65
    assert all(one.most < 0.3 for one in found[1:])


def test_a_selection_takes_demands_apart_and_no_task() -> None:
    made = random_instances(200, 3, together=0.35)
    ends = [instance(f"e{k}", f"e{k}", goalDistance=50.0, timeUnderOcc=1.0) for k in range(3)]
    made += ends
    assert together(made)[0].most > MOST
    unsolved = ["i001.size", "i002"]
    chosen = select(LAYOUT, made, 240, unsolved)
    kept = [one for one in made if one.name in chosen]
    assert 240 <= len(kept) <= 241
    assert together(kept)[0].most < MOST
    assert not chosen & {"i001", "i001.size", "i002"}
    assert all((one.name in chosen) == (f"{one.name[:4]}.size" in chosen) for one in made[1:3])
    assert {one.name for one in ends} <= chosen
    assert chosen == select(LAYOUT, made, 240, unsolved)


def easy_task(seed: int) -> tuple[Family, list[FamilyInstance]]:
    """An instance of the shipped battery in which all is easy, and its controls."""
    entry = load_recipe("object-permanence-separable").entries[0]
    assert entry.name == "easy"
    rng = np.random.default_rng(seed)
    return entry.family, generate(entry.family, 1, rng, controls=tuple(entry.controls))


@pytest.fixture(scope="module")
def task() -> tuple[Family, list[FamilyInstance], list[Instance]]:
    family, made = easy_task(4)
    return family, made, [_as_instance(one) for one in made]


def _as_instance(made: FamilyInstance) -> Instance:
    found = reading_of(Draft(made.name, made.paradigm, made.arena, 0))
    origin = Origin("", "", "", "test", made.task, "", made.control, made.control_of)
    features, missing = {**found.features}, {**found.missing}
    return Instance(made.name, "", features, 0.0, 100, 0, "", missing, (), origin)


Task = tuple[Family, Sequence[FamilyInstance], Sequence[Instance]]


def test_what_the_family_claims_holds_when_it_is_played(task: Task) -> None:
    family, made, instances = task
    known = {one.name: one for one in instances}
    arenas = {
        one.arena: MeasuredFeatures({**known[one.name].features}, {**known[one.name].missing})
        for one in made
    }
    check_claims(family, made, arenas.__getitem__, played=True)


def test_demands_of_draws_are_what_their_parameters_say() -> None:
    made = generate("hiding-separable", 6, np.random.default_rng(8))
    rows = DemandRows.of(LAYOUT, [_as_instance(one) for one in made])
    parameters = {
        "goalDistance": "distance",
        "goalSize": "size",
        "numPositions": "places",
        "lavaToAvoid": "lava",
        "rampNeeded": "ramp",
        "platformNeeded": "platform",
    }
    for demand, parameter in parameters.items():
        wanted = [float(one.parameters[parameter]) for one in made]
        assert rows.column(demand) == pytest.approx(wanted, abs=0.05), demand
    hidden = [float(one.parameters["hidden"]) for one in made]
    assert rows.column("timeUnderOcc") == pytest.approx(hidden, abs=0.6)
