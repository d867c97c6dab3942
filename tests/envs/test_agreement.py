"""What names of the O-PIAAGETS files tell, and that measured demands agree with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import demands
from benchmarks.demands import CLAIMS, Cell, Claim, Row

CUPS = Row(
    *("OP", "Spatio-Temporal-Continuity", "Allocentric-OP", "PCTB"),
    *("3CupFC", "1G0.5LClose", "0", "OpLava"),
)


def told(row: Row) -> dict[str, float]:
    found = {claim.feature: claim.told(row) for claim in CLAIMS}
    return {name: value for name, value in found.items() if value is not None}


def test_what_a_name_tells() -> None:
    assert told(CUPS) == {
        "lavaPresence": 1.0,
        "occluderPresence": 1.0,
        "hiddenStanding": 1.0,
        "goalSize": 0.5,
        "rightLeftPosition": -1.0,
        "hidingPlaces": 3.0,
    }
    glass = CUPS._replace(task="3CupFCTrans", occluder="NA")
    assert told(glass)["transparentPresence"] == 1.0
    assert told(glass)["occluderPresence"] == 0.0
    assert "hiddenStanding" not in told(CUPS._replace(suite="Room-Practice-Controls"))
    numbers = CUPS._replace(paradigm="Numerosity-OP", task="TwoFive", instance="L5R2")
    assert told(numbers)["rewards"] == 7.0


def test_cells_that_disagree_are_named() -> None:
    claim = Claim("hidden", "a rule", lambda _: 1.0)
    cells = [Cell("one", 1.0, 1.0), Cell("other", 1.0, 2.0), Cell("third", 1.0, "no reward")]
    total, row = demands._lines([(claim, cells)])
    assert (total["value"], total["unit"]) == (1, "of 3")
    assert "other: 1, found 2" in row["note"]
    assert "third: 1, found no reward" in row["note"]


@pytest.mark.slow
def test_a_sample_of_arenas_agrees(data_dir: Path) -> None:
    """One in 150 arenas; the whole table is that of `python -m benchmarks demands`."""
    rows = dict(list(demands.table(data_dir / demands.FOLDER).items())[::150])
    found = {path: demands.measure(path) for path in rows}
    cells = [cell for claim in CLAIMS for cell in demands.compare(claim, rows, found)]
    assert len(cells) > 15
    assert sum(cell.agrees for cell in cells) >= 0.95 * len(cells)


@pytest.mark.slow
def test_the_benchmark_runs_to_its_end(data_dir: Path) -> None:
    assert (data_dir / demands.FOLDER).is_dir()
    rows = demands.run(quick=True)
    assert [row["name"] for row in rows] == ["all cells", *(claim.feature for claim in CLAIMS)]
