"""Arenas, demands and a layout of one's own, two outcomes an arena: one command to a profile."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

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


@pytest.mark.slow
def test_a_session_over_what_is_ones_own(tmp_path: Path) -> None:
    layout = tmp_path / "garden.yaml"
    shutil.copy(EXAMPLES / layout.name, layout)
    first, *rest = (EXAMPLES / "garden.csv").read_text().splitlines()
    lines = [f"{first},noise [dB]", *(f"{line},{30 + 5 * k}" for k, line in enumerate(rest))]
    features = tmp_path / "garden.csv"
    features.write_text("\n".join(lines))
    out = animalcat(
        *("session", "run", "--agent", "builtin:braitenberg", "--battery", EXAMPLES / "garden"),
        *("--features", features, "--layout", layout),
        *("--max-episodes", "6", "--no-certify", "--json"),
        data=tmp_path,
    )
    result = json.loads(out)
    assert (result["state"], result["episodes"]) == ("finished", 6)
    nodes = result["profile"]["nodes"]
    assert set(nodes) == {"reach", "openness", "haste", "evenness"}
    assert nodes["haste"]["sd"] < 0.5 * nodes["haste"]["prior_sd"]  # known by the time left alone
    session = result["session"]
    assert result["profile"]["layout"]["name"] == "garden"
    layout.unlink()  # the store keeps what was given

    table = tmp_path / "outcomes.csv"
    animalcat("profile", "export", session, "--format", "csv", "-o", table, data=tmp_path)
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    novelty = {
        row["instance"]: float(row["novelty [1]"])
        for row in csv.DictReader((EXAMPLES / "garden.csv").read_text().splitlines())
    }
    assert len(rows) == 6
    for row in rows:
        assert float(row["novelty"]) == novelty[row["instance"]]
        passed = row["outcome"] == "success"
        assert (row["time_left"] != "") == passed
        assert float(row["rewards_taken"]) == passed
        assert 0.0 <= float(row["return_share"]) <= 1.0
        if passed:
            assert 0.0 < float(row["time_left"]) < 1.0
    assert any(row["outcome"] == "success" for row in rows)
    shown = animalcat("layout", "show", "--session", session, data=tmp_path)
    assert yaml.safe_load(shown) == yaml.safe_load((EXAMPLES / layout.name).read_text())
    listed = json.loads(animalcat("layout", "show", "--json", data=tmp_path))
    assert [row["name"] for row in listed if row["from"] != "shipped"] == ["garden"]
