"""The figures of `bench simulator` and `python -m benchmarks fidelity` are those asked for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from animalcat.bench import simulator
from benchmarks import fidelity


def test_rewards_and_times_are_the_real_build_s_also_where_there_is_no_data(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ANIMALCAT_DATA", str(tmp_path))
    rows = {row["name"]: row for row in fidelity.run(quick=True)}
    assert rows["time limits that last to the step"]["median"] == len(fidelity.STEPS)
    assert rows["reward of the traced pickup"]["median"] == pytest.approx(fidelity.PICKUP, abs=1e-6)
    new, old = (rows[f"LightBlock pushed for 1 s, build {b}"]["median"] for b in ("4.x", "3.1.3"))
    assert old > new > 1.0
    assert "ANIMALCAT_DATA" in list(rows.values())[-1]["note"]
    json.dumps(list(rows.values()))


@pytest.mark.slow
def test_speed_has_a_row_for_every_target(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ANIMALCAT_DATA", str(tmp_path))
    rows = {row["name"]: row for row in simulator.run(quick=True)}
    ratio = rows["simulator, rays"]["ratio"]
    assert ratio is not None
    assert ratio > 0.0  # what it is, a busy machine does not tell
    assert 0.0 < rows["memory beyond imports"]["median"] < 250.0  # 66 with compiled code at hand
    assert rows["restore 800 decisions"]["median"] > 0.0
