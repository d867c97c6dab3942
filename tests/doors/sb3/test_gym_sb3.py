"""Stable-Baselines3 trains on `animalcat/Arena-v0`, from a folder with an `envs` of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PYTHON = ROOT / ".clients" / "sb3" / "bin" / "python"
SCRIPT = Path(__file__).parent / "train.py"
STEPS = 1000
OWN_ENVS = '''\
"""The user's own package, which happens to be called envs."""

import gymnasium


class Brave(gymnasium.Wrapper):
    """Passes everything on."""
'''


@pytest.mark.slow
@pytest.mark.skipif(not PYTHON.exists(), reason="Stable-Baselines3 is absent: make env-sb3")
@pytest.mark.parametrize("policy", ["MlpPolicy", "CnnPolicy"])
def test_ppo_trains_for_a_thousand_steps(tmp_path: Path, policy: str) -> None:
    (tmp_path / "envs").mkdir()
    (tmp_path / "envs" / "__init__.py").write_text(OWN_ENVS)
    shutil.copy(SCRIPT, tmp_path)
    done = subprocess.run(
        [PYTHON, "train.py", policy, str(STEPS)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["steps"] == STEPS
    assert told["finite"]
    assert told["moved"] > 1e-5
    assert -3.0 <= told["return"] <= 5.0
    assert told["own"] == str(tmp_path / "envs" / "__init__.py")
