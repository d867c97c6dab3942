"""`animalcat bench`: every part runs to its end and prints its rows, with less of the same work.

The parts `simulator`, `twin`, `demands` and `adaptive` have tests of their own, beside what they
measure (`tests/envs/test_fidelity.py`, `tests/envs/test_twin.py`, `tests/envs/test_agreement.py`,
`tests/layouts/adaptive/test_bench.py`).
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping
from math import isfinite
from typing import Any, Final

import pytest
from typer.testing import CliRunner

from animalcat.benchmarks.layouts import OTHERS
from animalcat.cli.bench import PARTS
from animalcat.cli.main import build

LESS: Final[Mapping[str, Mapping[str, Mapping[str, Any]]]] = {
    "sensors": {},
    "service": {"service": {"CHUNK": 20}},
    "unity": {"unity": {"STEPS": 2}},
    "commands": {
        "commands": {
            "REPEATS": 1,
            "LISTS": {"layout list": "layout.show", "battery list": "battery"},
        }
    },
    "slots": {"slots": {"SLOTS": (1, 2), "EPISODES": 4, "THINKING": 0.0}},
    "layouts": {
        "layouts": {"SIZES": ((69, None, 5),), "OTHERS": (OTHERS[0],), "DRAWS": 50},
        "inference": {"NUTS": (("aaio", 6.0, 1, 1),), "DRAWS": 50},
    },
}
"""By part: by module, constants that say how much is measured, and less than they say."""


def test_every_part_is_tried() -> None:
    assert set(LESS) | {"simulator", "twin", "demands", "adaptive"} == set(PARTS)


@pytest.mark.parametrize(
    "part",
    [
        pytest.param(
            part, marks=pytest.mark.slow if part in ("layouts", "service", "slots") else ()
        )
        for part in LESS
    ],
)
def test_a_part_runs_to_its_end(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, constants in LESS[part].items():
        module = importlib.import_module(f"animalcat.benchmarks.{name}")
        for constant, value in constants.items():
            assert hasattr(module, constant)
            monkeypatch.setattr(module, constant, value)
    done = CliRunner().invoke(build(["bench"]), ["bench", part, "--quick", "--json"])
    assert done.exit_code == 0, done.output
    rows = json.loads(done.stdout)[part]
    figures = [row[key] for row in rows for key in ("median", "value") if key in row]
    assert len(figures) == len(rows) > 1
    assert all(isfinite(figure) and figure > 0.0 for figure in figures)
