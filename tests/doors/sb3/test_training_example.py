"""The example of docs/training.md in small: train, test the checkpoints, draw the trajectory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from animalcat import Actions
from animalcat.arena_configs.families.generate import generate
from animalcat.arena_configs.writer import to_yaml
from animalcat.envs.agents.base import EpisodeInfo
from animalcat.envs.agents.load import load_agent
from animalcat.envs.types import Observation, ObservationSpec

ROOT = Path(__file__).resolve().parents[3]
PYTHON = ROOT / ".clients" / "sb3" / "bin" / "python"
EXAMPLE = ROOT / "docs" / "examples" / "training"
RAYS = 70


def observation(generator: np.random.Generator) -> Observation:
    three = np.zeros(3, np.float32)
    rays = generator.random(RAYS).astype(np.float32)
    return Observation(100.0, three, three, rays)


def test_a_checkpoint_plays_its_weights(tmp_path: Path) -> None:
    (tmp_path / "agents.py").write_bytes((EXAMPLE / "agents.py").read_bytes())
    generator = np.random.default_rng(0)
    shapes = [(8, RAYS), (8,), (9, 8), (9,)]
    for name, sure in (("0", 0.0), ("500", 50.0)):
        layers = [generator.normal(0.0, 0.1, shape) for shape in shapes]
        layers[-1][5] += sure
        np.savez(tmp_path / f"{name}.npz", *layers)
    info = EpisodeInfo(0, 7, ObservationSpec())
    seen = [observation(generator) for _ in range(40)]
    acts: dict[str, list[object]] = {}
    for name in ("Step0", "Step500", "Step0"):
        agent = load_agent(f"{tmp_path / 'agents.py'}:{name}")
        agent.reset(info)
        found = [agent.act(one) for one in seen]
        assert acts.setdefault(name, found) == found  # the same seed gives the same actions
    assert acts["Step500"] == [Actions([5, 5, 5])] * 40
    assert len({str(action) for action in acts["Step0"]}) > 4
    with pytest.raises(ValueError, match="trained on 70"):
        load_agent(f"{tmp_path / 'agents.py'}:Step0").act(seen[0]._replace(rays=None))


@pytest.mark.slow
@pytest.mark.skipif(not PYTHON.exists(), reason="Stable-Baselines3 is absent: make env-sb3")
def test_checkpoints_are_trained_tested_and_drawn(tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "CUDA_VISIBLE_DEVICES": "",
        "ANIMALCAT_HOME": str(tmp_path / "data"),
    }

    def run(*words: object) -> str:
        done = subprocess.run(
            [str(word) for word in words],
            capture_output=True,
            text=True,
            check=False,
            env=environment,
            cwd=tmp_path,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    run(PYTHON, EXAMPLE / "train.py", "made", "--steps", "0,1000", "--arenas", "20")
    first, last = (np.load(tmp_path / "made" / f"{n}.npz") for n in (0, 1000))
    assert all(np.isfinite(last[name]).all() for name in last.files)
    assert any((first[name] != last[name]).any() for name in last.files)

    (tmp_path / "arenas").mkdir()
    for k, one in enumerate(generate("navigation", 6, np.random.default_rng(0), part="test")):
        (tmp_path / "arenas" / f"{k}.yaml").write_text(to_yaml(one.arena))
    cat = (sys.executable, "-m", "animalcat")
    agents = [part for n in (0, 1000) for part in ("--agent", f"made/agents.py:Step{n}")]
    shares = ("--budget", 4, "--common", 2, "--no-certify", "--json")
    text = run(*cat, "campaign", "run", *agents, "--battery", "arenas", *shares)
    (tmp_path / "campaign.json").write_text(text)
    compared = json.loads(run(*cat, "profile", "compare", "campaign.json", "--json"))
    assert len({row["agent"] for row in compared["standings"]}) == 2
    run(*cat, "profile", "plot", "campaign.json", "--kind", "comparison", "-o", "learning.png")
    assert (tmp_path / "learning.png").stat().st_size > 10_000
