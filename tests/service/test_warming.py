"""Compiling ahead by using what is compiled on first use."""

from __future__ import annotations

import json

from typer.testing import CliRunner

from animalcat.cli.main import build
from animalcat.layouts.library import LAYOUTS


def test_the_doctor_warms_simulator_and_layouts_and_says_how_long_each_took() -> None:
    done = CliRunner().invoke(build(["doctor"]), ["doctor", "--warm", "--json"])
    assert done.exit_code == 0, done.output
    rows = json.loads(done.stdout)
    assert [row["item"] for row in rows] == [
        "simulator with rays",
        "simulator with a camera",
        *(f"layout {name}" for name in LAYOUTS),
    ]
    assert all(row["seconds"] >= 0 for row in rows)
