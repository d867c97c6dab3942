"""What the shipped families claim of hiding holds when their arenas are played."""

from __future__ import annotations

import numpy as np
import pytest

from animalcat.arena_configs.families.generate import generate
from animalcat.arena_configs.families.library import FAMILIES, load_family
from animalcat.arena_configs.features.definition import MeasuredFeatures
from animalcat.arena_configs.features.registry import FEATURES
from animalcat.arena_configs.model import Arena
from animalcat.arena_configs.placement import place
from animalcat.arena_configs.sequence import episode_arenas
from animalcat.envs.measure import measure_episode


def play_out(arena: Arena) -> MeasuredFeatures:
    rng = np.random.default_rng(0)
    return measure_episode([place(part, rng) for part in episode_arenas(arena)]).features


def takes_playing(name: str) -> bool:
    family = load_family(name)
    claims = [claim for paradigm in family.paradigms for claim in family.claims_of(paradigm)]
    return any(FEATURES[claim.demand].measured == "playing" for claim in claims)


HIDING = [name for name in FAMILIES if takes_playing(name)]


def test_object_permanence_is_played() -> None:
    assert {"object-permanence", "cups", "grid-cups", "chick-task", "tunnel-effect"} <= {*HIDING}


@pytest.mark.parametrize(
    "name",
    [pytest.param(one, marks=pytest.mark.slow if k % 3 else ()) for k, one in enumerate(HIDING)],
)
def test_claims_hold_when_played(name: str) -> None:
    family = load_family(name)
    rng = np.random.default_rng(17)
    made = generate(family, len(family.paradigms), rng, measure=play_out, played=True)
    assert {one.paradigm for one in made} == {paradigm.name for paradigm in family.paradigms}
