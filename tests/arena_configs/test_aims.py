"""Demands that are parameters are met without a search, over their whole range."""

from __future__ import annotations

import numpy as np
import pytest

from animalcat.arena_configs.checks import check_arena
from animalcat.arena_configs.families.claims import measure_geometry
from animalcat.arena_configs.families.grid import demand_grid
from animalcat.arena_configs.families.language import Family
from animalcat.arena_configs.families.library import load_family
from animalcat.arena_configs.families.ranges import (
    Categorical,
    Constant,
    Interval,
    Range,
    TruncatedNormal,
)
from animalcat.arena_configs.families.scope import Formula, Place
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


def first_arena(family: Family, paradigm: str, row: dict[str, float], seed: int) -> Arena:
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
            arena = first_arena(NAVIGATION, paradigm, row, seed)
            placement = place(arena, np.random.default_rng(0))
            assert (placement.drawn, placement.skipped) == ({}, ())
            assert check_arena(arena, np.random.default_rng(0)) == (), row
            found = measure_geometry(arena).values
            assert found["rewardDistance"] == pytest.approx(row["rewardDistance"], abs=0.002)
            assert found["rewardSize"] == pytest.approx(row["rewardSize"], abs=5e-4)
        codes |= {(row["rewardBehind"], row["XPos"]) for row in rows}
    assert len(codes) == 8  # a reward at a side is to the left or to the right


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
