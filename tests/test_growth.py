"""`python -m benchmarks growth`: slopes are those of what commands took on real stores."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from benchmarks import growth
from benchmarks.checkout import environment
from benchmarks.growth import Axis, Command, Cost

TINY = """
import json
from benchmarks import growth
growth.warm()
axis = next(axis for axis in growth.AXES if axis.name == "sessions")
print(json.dumps(growth.grown(axis, (2, 4), True)))
"""


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


def test_what_costs_next_to_nothing_is_flat_and_a_limit_at_a_size_counts() -> None:
    assert _grow({10: [0.001], 100: [0.05]}, 0.1)["met"]
    assert _grow({10: [1.0], 100: [2.0]}, 1.05, (100, 2.5))["met"]
    assert not _grow({10: [1.0], 100: [2.0]}, 1.05, (100, 1.5))["met"]


@pytest.mark.slow
def test_an_axis_is_measured_on_stores_of_two_sizes() -> None:
    """In a process of its own: commands are forked, which a process with gRPC threads must not."""
    ran = subprocess.run(
        [sys.executable, "-c", TINY], env=environment(), capture_output=True, text=True, check=True
    )
    rows = json.loads(ran.stdout)
    assert {row["name"].partition(",")[0] for row in rows} == {
        growth.START,
        "session list",
        "session show",
        "server status",
        "session create",
    }
    assert all(cpus > [0] for row in rows for cpus in row["cpu"].values() if row["value"] > 0)
