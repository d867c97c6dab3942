"""Arenas, demands and a layout of one's own, two outcomes an arena: one command to a profile."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"


def animalcat(*arguments: str | Path, data: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "animalcat", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "ANIMALCAT_HOME": str(data)},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_session_over_what_is_ones_own(tmp_path: Path) -> None:
    layout = EXAMPLES / "garden.yaml"
    out = animalcat(
        *("session", "run", "--agent", "builtin:braitenberg", "--battery", EXAMPLES / "garden"),
        *("--features", EXAMPLES / "garden.csv", "--layout", layout),
        *("--max-episodes", "6", "--no-certify", "--json"),
        data=tmp_path,
    )
    result = json.loads(out)
    assert (result["state"], result["episodes"]) == ("finished", 6)
    nodes = result["profile"]["nodes"]
    assert set(nodes) == {"reach", "openness", "haste", "evenness"}
    assert nodes["haste"]["sd"] < 0.5 * nodes["haste"]["prior_sd"]  # known by the time left alone
    session = result["session"]

    table = tmp_path / "outcomes.csv"
    animalcat("profile", "export", session, "--format", "csv", "-o", table, data=tmp_path)
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    novelty = {
        row["instance"]: float(row["novelty [1]"])
        for row in csv.DictReader((EXAMPLES / "garden.csv").read_text().splitlines())
    }
    assert len(rows) == 6
    (own,) = [column for column in rows[0] if column.startswith("novelty [")]
    for row in rows:
        assert float(row[own]) == novelty[row["instance"]]
        passed = row["outcome"] == "success"
        assert (row["time_left"] != "") == passed
        assert float(row["rewards_taken"]) == passed
        assert 0.0 <= float(row["return_share"]) <= 1.0
        if passed:
            assert 0.0 < float(row["time_left"]) < 1.0
    assert any(row["outcome"] == "success" for row in rows)
    shown = animalcat("layout", "show", "--session", session, data=tmp_path)
    assert "left: {kind: score, source: time_left" in shown
