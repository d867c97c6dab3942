"""What is being trained is measured every so many steps, and logged."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

import animalcat
from animalcat import Arena, Result
from animalcat.doors.sb3.measurements import Measurements, scales_for

ROOT = Path(__file__).resolve().parents[3]
PYTHON = ROOT / ".clients" / "sb3" / "bin" / "python"
ARENAS = {f"{d} m": Arena.goal(distance=d, size=2) for d in (3, 6, 9, 20)}
OPTIONS: dict[str, Any] = {"layout": "aaio", "max_episodes": 2, "certify": False}


class Policy:
    """Goes on from a certain step of training, and stands before."""

    observation_space = spaces.Box(0.0, 1.0, (70,), np.float32)

    def __init__(self) -> None:
        self.action = 0

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: Any = 0
    ) -> tuple[Any, Any]:
        return np.array(self.action), None


class Log:
    """Keeps what is logged, as a training's logger does."""

    def __init__(self) -> None:
        self.rows: dict[int, dict[str, float]] = {}
        self._row: dict[str, float] = {}

    def record(self, key: str, value: float) -> None:
        self._row[key] = value

    def dump(self, step: int) -> None:
        self.rows[step], self._row = self._row, {}


def test_measurements_say_their_step_and_log_intervals_as_readers_read_them(
    tmp_path: Path,
) -> None:
    told: list[tuple[int, Result]] = []
    measured = Measurements(
        ARENAS,
        every=100,
        folder=tmp_path,
        on_result=lambda step, result: told.append((step, result)),
        options=OPTIONS,
    )
    policy, log = Policy(), Log()
    measured.begin(0)
    assert [step for step in range(0, 200, 40) if measured.due(step)] == [120, 160]
    measured.take(policy, 120, log)
    assert not measured.due(200)
    policy.action = 3
    measured.take(policy, 240, log)
    assert told == [*measured.results.items()]

    stands, goes = measured.results[120], measured.results[240]
    assert [stands.agent, goes.agent] == ["Policy-120", "Policy-240"]
    known = goes.session.identity.fingerprint
    assert known is not None
    assert known.options["step"] == "240"
    for step, result in told:
        row, scales = log.rows[step], scales_for(result)
        for name in ("navigationAbility", "visualAbility", "noiseLevel"):
            low, high = row[f"animalcat/{name}_low"], row[f"animalcat/{name}_high"]
            assert low <= row[f"animalcat/{name}"] <= high
            ends = sorted(map(scales[name].convert, result.profile["nodes"][name]["hdi"]))
            assert [low, high] == pytest.approx(ends)
        assert row["animalcat/episodes"] == 2
        rate = result.profile["battery_rate"]
        assert row["animalcat/success_rate"] == rate["value"]
        assert row["animalcat/success_rate_low"] == rate["low"]
    assert log.rows[120]["animalcat/success_rate"] < log.rows[240]["animalcat/success_rate"]


def test_without_stable_baselines_the_callback_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['stable_baselines3'] = None; import animalcat.doors.sb3.callback"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd="/"
    )
    assert "pip install stable-baselines3" in done.stderr.splitlines()[-1]


@pytest.mark.slow
@pytest.mark.skipif(not PYTHON.exists(), reason="Stable-Baselines3 is absent: make env-sb3")
def test_a_training_is_measured_and_goes_as_it_would_without(tmp_path: Path) -> None:
    done = subprocess.run(
        [PYTHON, Path(__file__).parent / "sb3_training.py", tmp_path],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": ""},
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["steps"] == [128, 256]
    assert told["same"]  # the training draws nothing else, and learns the same
    assert told["deterministic"] == ["False", "False"]
    assert all(told["tensors"])
    wrapped = told["wrapped"]
    assert " VecNormalize, VecFrameStack " in wrapped["trained"]
    assert "hand over what it was trained in as env=" in wrapped["loaded"]
    assert wrapped["given"] == wrapped["trained"]
    assert "FlattenObservation changes what the model sees" in wrapped["apart"]
    rows = list(csv.DictReader((tmp_path / "progress.csv").open()))
    measured = [row for row in rows if row.get("animalcat/navigationAbility")]
    assert len(measured) == 2
    for row in measured:
        ends = [row[f"animalcat/navigationAbility{end}"] for end in ("_low", "", "_high")]
        assert ends == sorted(ends, key=float)
        assert 0.0 <= float(row["animalcat/success_rate"]) <= 1.0
    with animalcat.local(tmp_path / "study") as lab:
        assert {result.agent for result in lab.results()} == {"PPO-128", "PPO-256", "PPO"}
