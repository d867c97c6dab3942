"""`python -m benchmarks`: every part runs to its end, with less work.

The parts in `ELSEWHERE` have tests of their own, beside what they measure.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping
from math import isfinite
from typing import Any, Final

import pytest

from animalcat.cli.demo import WALKS
from benchmarks import __main__ as laboratory
from benchmarks.layouts import OTHERS

LESS: Final[Mapping[str, Mapping[str, Mapping[str, Any]]]] = {
    "speed": {"speed": {"QUICK": {"layout show": None}, "PAIRS": 1, "MOST": 20.0}},
    "simulator": {"simulator": {"CHUNK": 20}},
    "service": {"service": {"CHUNK": 20}},
    "demo": {"demo": {"DEMOS": (WALKS,), "QUICK_SEEDS": 1}},
    "layouts": {"layouts": {"SIZES": ((69, None, 5),), "OTHERS": (OTHERS[0],), "DRAWS": 50}},
    "peers": {"peers": {"TOLD": (5,), "ORDERS": 1, "FOLDS": 30, "AGENTS": (1, 1)}},
    "groups": {"groups": {"RUNS": (3, 3), "PERSONS": 3, "_DRAWS": 400}},
    "comparing": {"comparing": {"RUNS": (40, 40), "FAMILIES": (4, 4), "RATED": (60, 20)}},
    "papers": {"papers.permanence": {"QUICK_AGENTS": (6,)}},
}
"""By part: by module, constants that say how much is measured, and less than they say."""
ELSEWHERE: Final = {"twin", "saving", "coverage", "recovery", "growth", "kill", "fuzz"}


def test_every_part_is_tried_and_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert set(LESS) | ELSEWHERE == laboratory.PARTS.keys()
    assert laboratory.main([]) == 0
    listed = capsys.readouterr().out
    assert all(words in listed for words in laboratory.PARTS.values())
    with pytest.raises(SystemExit):
        laboratory.main(["coins"])
    assert "no part coins; there are speed, " in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("part", LESS)
def test_a_part_runs_to_its_end(
    part: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, constants in LESS[part].items():
        module = importlib.import_module(f"benchmarks.{name}")
        for constant, value in constants.items():
            assert hasattr(module, constant)
            monkeypatch.setattr(module, constant, value)
    assert laboratory.main([part, "--quick", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)[part]
    figures = [row[key] for row in rows for key in ("cold", "median", "value") if key in row]
    assert len(rows) == len(figures) > 0
    assert all(isfinite(figure) and figure >= 0.0 for figure in figures)
