"""`python -m benchmarks growth`: slopes are those of what commands took on real stores."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks import growth
from benchmarks.growth import Axis, Command, Cost


def _grow(
    spent: dict[int, list[float]], goal: float, most: tuple[int, float] | None = None
) -> dict[str, Any]:
    command = Command("something", ("something",), goal, most)
    axis = Axis("things", (), (1, 2), growth.a_size, (command,))
    found = {size: [Cost(cpu, 0) for cpu in costs] for size, costs in spent.items()}
    return growth.row_of(axis, "something", goal, most, found)


def test_the_upper_bound_of_a_slope_is_that_of_the_worst_pair_of_runs() -> None:
    row = _grow({10: [1.0, 1.0, 0.5], 100: [10.0, 9.0, 20.0]}, 1.05)
    assert row["value"] == pytest.approx(1.0)
    assert row["high"] == pytest.approx(1.602, abs=1e-3)
    assert not row["met"]
