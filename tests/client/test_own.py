"""Arenas, demands and a layout of one's own, by the commands that a user types."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import yaml

from tests.service.conftest import arena

NAMES = ["acorn", "birch", "cedar", "dune", "elm", "fern", "gorse", "hazel", "iris", "juniper"]
HEARING = """
name: hearing
features:
  rewardDistance: {unit: m, low: 0, high: 60}
  noise: {unit: dB, low: 0, high: 100}
latents:
  reach: {kind: capability, unit: m, prior: {scaled_beta: {low: 0, high: 60}}}
  calm: {kind: capability, unit: dB, prior: {scaled_beta: {low: 0, high: 100}}}
derived:
  reaching: {link: {logistic_margin: {ability: reach, demand: rewardDistance, slope: 0.115}}}
  bearing: {link: {logistic_margin: {ability: calm, demand: noise, slope: 0.069}}}
  passing: {link: {product: {inputs: [reaching, bearing]}}}
outcome: {bernoulli: {probability: passing}}
excludes:
  wallsInWay: {above: 0}
"""


def test_from_a_folder_a_table_and_a_layout_to_a_profile_and_back(tmp_path: Path) -> None:
    yard = tmp_path / "yard"
    yard.mkdir()
    rows = ["instance,noise [dB]"]
    for k, name in enumerate(NAMES):
        (yard / f"{name}.yaml").write_text(arena(k))
        rows.append(f"{name},{30 + 5 * k}")
    (tmp_path / "noise.csv").write_text("\n".join(rows))
    (tmp_path / "hearing.yaml").write_text(HEARING)

    def run(*words: str) -> str:
        command = [sys.executable, "-m", "animalcat", *words, "--data", str(tmp_path / "data")]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    own = ("--features", "noise.csv", "--layout", "hearing.yaml", "--no-certify", "--json")
    agent = ("--agent", "builtin:forward", "--max-episodes", "3")
    made = json.loads(run("session", "run", *agent, "--battery", "yard", *own))
    assert set(made["profile"]["nodes"]) == {"reach", "calm"}
    assert made["profile"]["layout"]["name"] == "hearing"

    (tmp_path / "hearing.yaml").unlink()
    again = yaml.safe_load(run("layout", "show", "--session", made["session"]))
    assert again == yaml.safe_load(HEARING)
    listed = json.loads(run("layout", "list", "--json"))
    assert [row["name"] for row in listed if row["from"] != "shipped"] == ["hearing"]
    shown = json.loads(run("battery", "features", "yard", "--json"))
    (noise,) = (one for one in shown["features"] if one["name"] == "noise")
    assert noise["unit"] == "dB"
    assert shown["instances"][0]["features"]["noise"] == 30
