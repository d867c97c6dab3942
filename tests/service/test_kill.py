"""Blows at named moments of a session lose nothing, double nothing and change no decision."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from benchmarks import kill, postgres
from benchmarks.kill_points import MOMENTS, Point, plan


def test_a_plan_spreads_its_points() -> None:
    everything = sum(2 * len(moments) for moments in MOMENTS.values())
    sessions = plan(everything, 1, 20, seed=1, kills=list(MOMENTS))
    points = [point for session in sessions for point in session]
    assert set(Counter((p.target, p.blow, p.moment) for p in points).values()) == {1}
    assert len(points) == everything
    for session in sessions:
        struck = [point.episode for point in session]
        assert len(set(struck)) == len(struck)
        assert set(struck) <= set(range(1, 21))
    assert plan(everything, 1, 20, seed=1, kills=list(MOMENTS)) == sessions
    assert all(p.blow == "stop" for s in plan(99, 1, 20, 1, kills=[]) for p in s)


def test_a_point_meets_its_moment() -> None:
    point = Point("worker", "kill", "step", 3, 2)
    assert not point.meets("step", 3, 1)
    assert point.meets("step", 3, 2)
    assert not point.meets("step", 4, 2)
    assert not point.meets("acted", 3, 2)


def test_a_blow_that_meets_nobody_does_not_count(tmp_path: Path) -> None:
    points = [Point(target, "kill", "start", 3) for target in ("worker", "agent", "server")]
    stage = kill.Stage(tmp_path, points, "", relayed=False)
    assert stage.answer({"moment": "start", "episode": 3, "step": 0}) == "go"
    assert stage.struck == []


def test_what_was_started_ends_also_when_the_game_breaks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = kill.Stage(tmp_path, (), "", relayed=False)
    started: list[subprocess.Popen[bytes]] = []

    def breaks(session: str) -> bool:
        for name in ("server", "agent"):
            stage._keep(name, [sys.executable, "-c", "import time; time.sleep(600)"])  # pyright: ignore[reportPrivateUsage]
        started.extend(stage._processes.values())  # pyright: ignore[reportPrivateUsage]
        raise RuntimeError("broken")

    monkeypatch.setattr(stage, "_create_session", lambda: "session")
    monkeypatch.setattr(stage, "_over", breaks)
    with pytest.raises(RuntimeError, match="broken"):
        stage.play()
    assert len(started) == 2
    assert None not in [process.poll() for process in started]


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_thirty_blows() -> None:
    rows = kill.strike(kill.QUICK)
    if any(row.get("note") == postgres.MISSING for row in rows):
        pytest.skip(postgres.MISSING)
    assert sum(row["value"] for row in rows if row.get("unit") == "points") == kill.QUICK
    assert [row["note"] for row in rows if "met" in row] == ["", ""]
