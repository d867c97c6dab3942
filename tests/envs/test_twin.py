"""With Unity's draws, real rewards of the real build's agent come out to the last digit."""

from __future__ import annotations

from pathlib import Path

import pytest

from animalcat.benchmarks import twin

SAMPLE = ("01-20-01", "06-01-01", "06-04-01", "06-05-01", "06-09-01", "09-02-01", "09-07-01")
"""Agent drawn last, first, in place and heading; colours before a ball; a skin before balls."""


@pytest.mark.parametrize("instance", SAMPLE)
def test_a_real_reward(instance: str, data_dir: Path) -> None:
    pytest.importorskip("animalai.agents.braitenberg")
    arena, real = twin.chance_arenas(data_dir, {instance})[instance]
    pair = twin.compare(instance, arena, real)
    assert pair.telling
    assert pair.agrees(1e-6)
    assert not twin.compare(instance, arena, real, "animalcat").agrees(twin.EXACT)


def test_the_part_counts_what_agrees(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("animalai.agents.braitenberg")
    some = twin.chance_arenas(data_dir, {"06-02-01", "06-15-01"})
    assert len(some) == 2
    monkeypatch.setattr(twin, "chance_arenas", lambda _: some)
    rows = {row["name"]: row for row in twin.run()}
    close = rows["arenas left to chance: within 0.001"]
    assert (close["value"], close["unit"]) == (1, "of 2")
    assert close["note"].startswith("off: 06-15-01 ")


def test_without_data_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANIMALCAT_DATA", str(tmp_path))
    [row] = twin.run(quick=True)
    assert "ANIMALCAT_DATA" in row["note"]
