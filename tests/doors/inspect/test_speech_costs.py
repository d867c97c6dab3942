"""The benchmark of turns runs; what it finds is for people to read."""

from __future__ import annotations

import pytest

from benchmarks import speech


def test_turns_are_measured_in_both_forms_and_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speech, "TURNS", 3)
    rows = speech.run(quick=True)
    assert [row["name"] for row in rows] == [
        "script, 84 pixels",
        "script, 512 pixels",
        "tools, 84 pixels",
        "tools, 512 pixels",
    ]
    assert all(0.0 < row["median"] <= row["p99"] for row in rows)
