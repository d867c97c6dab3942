"""`animalcat bench` and `python -m benchmarks`: every part runs to its end, with less work.

The parts in `ELSEWHERE` have tests of their own, beside what they measure.
"""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Mapping
from math import isfinite
from pathlib import Path
from typing import Any, Final

import pytest
from typer.testing import CliRunner

from animalcat.bench.layouts import OTHERS
from animalcat.cli.bench import PARTS
from animalcat.cli.demo import WALKS
from animalcat.cli.main import build
from benchmarks import __main__ as laboratory
from benchmarks import coins, fresh, people, rounds, web
from tests.web.chromium import PROGRAM

LESS: Final[Mapping[str, Mapping[str, Mapping[str, Any]]]] = {
    "sensors": {},
    "start": {"start": {"WORKS": {"animalcat --help": ["-m", "animalcat", "--help"]}}},
    "recording": {"recording": {"STEPS": 30, "REPEATS": 1}},
    "agents": {"agents": {"FAMILIES": ("introductory",), "DRAWS": 2}},
    "service": {"service": {"CHUNK": 20}},
    "unity": {"unity": {"STEPS": 2}},
    "python": {"python": {"EPISODES": 2, "QUICK_REPEATS": 1}},
    "commands": {
        "commands": {
            "REPEATS": 1,
            "LISTS": {"layout list": "layout.show", "battery list": "battery"},
        }
    },
    "scaling": {"scaling": {"FEW": (1, 2)}},
    "year": {
        "year": {
            "SESSIONS": 150,
            "EPISODES": 450,
            "BATTERIES": 25,
            "CAMPAIGNS": 25,
            "COMMANDS": ("server status", "session list --all", "campaign show CAMPAIGN"),
        },
        "stores": {"ASKED": 4, "FAMILY_SIZE": 20},
    },
    "soak": {"soak": {"QUICK_AGENTS": 2, "QUICK_SECONDS": 2.0}},
    "slots": {"slots": {"SLOTS": (1, 2), "EPISODES": 4, "THINKING": 0.0}},
    "report": {"report": {"EPISODES": 20}},
    "incidents": {"incidents": {"QUICK_AGENTS": 1, "SECONDS": 5.0}},
    "concurrency": {"concurrency": {"ITEMS": 40, "CHOICES": 6, "AT": (3, 6), "QUICK": 2}},
    "demo": {"demo": {"DEMOS": (WALKS,), "QUICK_SEEDS": 1}},
    "verdicts": {"verdicts": {"RUNS": (("drawn", 150, 21), ("drawn", 150, 22)), "QUICK": 3}},
    "layouts": {
        "layouts": {"SIZES": ((69, None, 5),), "OTHERS": (OTHERS[0],), "DRAWS": 50},
        "inference": {"NUTS": (("aaio", 6.0, 1, 1),), "DRAWS": 50},
    },
}
"""By part: by module, constants that say how much is measured, and less than they say."""


ELSEWHERE: Final = {
    *("simulator", "fidelity", "against", "twin", "fresh", "demands", "adaptive", "recovery"),
    *("impostors", "trust", "kill", "fuzz", "entrants", "rate", "retest", "growth", "coins"),
    *("levels", "choice", "speech", "spoken", "people", "web", "rounds"),
}
"""Parts whose tests are those of test_fidelity, test_paired, test_twin, test_agreement, test_bench
of layouts, test_battery_rate, test_recovery, test_kill, test_fuzz, test_entrants, test_growth and
test_levels; those of `speech` and `spoken` are among those of inspect_ai;
`fresh`, `coins`, `people`, `web` and `rounds` have one below."""


def test_every_part_is_tried() -> None:
    assert set(LESS) | ELSEWHERE == {*PARTS, *laboratory.PARTS}


def measured(part: str, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    """What the command prints of a part: the user's, or the laboratory's."""
    if part in PARTS:
        done = CliRunner().invoke(build(["bench"]), ["bench", part, "--quick", "--json"])
        assert done.exit_code == 0, done.output
        said = done.stdout
    else:
        assert laboratory.main([part, "--quick", "--json"]) == 0
        said = capsys.readouterr().out
    return json.loads(said)[part]


@pytest.mark.parametrize(
    "part",
    [
        pytest.param(
            part,
            marks=pytest.mark.cluster
            if part == "scaling"
            else pytest.mark.slow
            if part
            in (
                *("commands", "layouts", "service", "slots", "soak", "unity", "report", "demo"),
                *("year", "incidents"),
            )
            else (),
        )
        for part in LESS
    ],
)
def test_a_part_runs_to_its_end(
    part: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if part == "incidents" and os.geteuid() != 0:
        pytest.skip("the incidents need root: they mount a disk, and limit memory")
    home = "animalcat.bench" if part in PARTS else "benchmarks"
    for name, constants in LESS[part].items():
        module = importlib.import_module(f"{home}.{name}")
        for constant, value in constants.items():
            assert hasattr(module, constant)
            monkeypatch.setattr(module, constant, value)
    rows = measured(part, capsys)
    figures = [row[key] for row in rows for key in ("cold", "median", "value") if key in row]
    assert len(figures) == len(rows) > 0
    assert all(isfinite(figure) and figure > 0.0 for figure in figures)


def test_people_are_recovered_and_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, less in {"PEOPLE": 20, "ROUNDS": 4, "AIMED": 10, "AIMS": (0.0, 0.7)}.items():
        monkeypatch.setattr(people, name, less)
    rows = people.run(True, tmp_path)
    assert all(isfinite(row["value"]) for row in rows)
    assert {row["name"] for row in rows} >= {
        "coverage of 90 % intervals, all nodes",
        "deviations with an aim of 0.7",
    }
    monkeypatch.setattr(people, "recover", None)  # what is stored is not made again
    assert people.run(True, tmp_path) == rows


@pytest.mark.slow
@pytest.mark.skipif(not PROGRAM, reason="there is no Chromium")
def test_rounds_are_measured_over_a_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "DELAYS", (100,))
    found = {row["name"].partition(": ")[2]: row["value"] for row in rounds.run(True)}
    assert found["from sent to arrived"] >= 40.0  # half of it, by clocks that are compared
    assert found["from key to painted"] >= 100.0


@pytest.mark.slow
def test_what_viewers_cost_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "SECONDS", 0.5)
    monkeypatch.setattr(web, "VIEWERS", 2)
    rows = web.run(True)
    assert rows
    assert all(isfinite(row["value"]) for row in rows)


def test_a_session_of_coins_is_killed_and_comes_to_its_end(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(coins, "QUICK", 24)
    monkeypatch.setattr(coins, "QUICK_ARENAS", 20)
    assert laboratory.main(["coins", "--quick", "--kill", "1", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["coins"]
    assert (rows[0]["value"], rows[0]["note"]) == (0, "")
    assert rows[-1]["name"] == "resuming after 12 episodes"
    assert all(isfinite(row["value"]) and row["value"] > 0.0 for row in rows[1:])


def test_fresh_sessions_run_to_their_end(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By itself, since its figures may be 0, as the share of arenas in common is."""
    monkeypatch.setattr(fresh, "SETTINGS", (fresh.Setting("navigation", 24, "aaio", ""),))
    monkeypatch.setattr(fresh, "EPISODES", 4)
    rows = measured("fresh", capsys)
    assert rows
    assert all(isfinite(row["value"]) for row in rows)
    assert [row["value"] for row in rows if "both played" in row["name"]] == [0.0]
