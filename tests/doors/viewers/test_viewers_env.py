"""Rerun, moviepy and inspect_ai read what is written for them, in an environment of their own."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from animalcat.outcomes import outcomes_frame, write_outcomes
from animalcat.service.recording.reader import read_episode
from animalcat.v1 import sessions_pb2
from tests.doors.rerun.test_rerun import recording  # noqa: F401  the fixture

ROOT = Path(__file__).resolve().parents[3]
PYTHON = ROOT / ".clients" / "viewers" / "bin" / "python"
USE = ROOT / "tests" / "doors" / "viewers" / "use.py"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PYTHON.exists(), reason="the viewers are absent: make env-viewers"),
]


@pytest.fixture(scope="module")
def viewer_facts(recording: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:  # noqa: F811
    folder = tmp_path_factory.mktemp("viewers")
    rows = [
        {
            "episode": number,
            "attempt": 0,
            "instance": f"arena-{number}",
            "outcome": outcome,
            "return": 0.5 * number,
            "steps": 12,
            "ended_by": "goal" if outcome == "success" else None,
            "predicted": 0.25,
            "agent": "mine [/b]",
            "versions": '{"animalcat": "0.1.0"}',
            "backend": "sim",
            "features": {"rewardDistance": 4.0 + number, "lava": 0.0},
        }
        for number, outcome in enumerate(("success", "failure", "void", "success"))
    ]
    table = folder / "outcomes.csv"
    write_outcomes(outcomes_frame(rows, {"rewardDistance": "m", "lava": ""}), table)
    session = sessions_pb2.Session(
        name="sessions/mine-1a2b",
        spec=sessions_pb2.SessionSpec(agent="mine [/b]", battery="batteries/b", layout="aaio"),
        state=sessions_pb2.SESSION_STATE_RUNNING,
    )
    given = {
        "proto": session.SerializeToString().hex(),
        "profile": {"nodes": {"sight": {"mean": 1.0}}, "labels": ["unfinished"]},
        "outcomes": table.read_text(),
    }
    (folder / "session.json").write_text(json.dumps(given))
    done = subprocess.run(
        [PYTHON, USE, recording, folder / "session.json", folder],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "SDL_VIDEODRIVER": "dummy"},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_rerun_opens_an_episode(viewer_facts: dict[str, Any], recording: Path) -> None:  # noqa: F811
    found, steps = viewer_facts["rerun"], read_episode(recording).steps
    assert found["recordings"] == ["sessions/play-ü/episodes/0-0-0"]
    assert found["blueprints"] == 1
    assert found["steps"] == list(range(len(steps)))
    np.testing.assert_allclose(found["seconds"], 0.06 * np.arange(len(steps)), atol=1e-6)
    assert found["reward"] == [step.reward for step in steps]
    assert found["health"] == [step.observation.health for step in steps]
    assert found["rays"] == [5] * len(steps)
    assert found["images"] == len(steps)
    places = np.array([step.observation.position for step in steps])[:, [0, 2, 1]]
    np.testing.assert_allclose(found["agent"], places, rtol=1e-6)
    assert {"Ellipsoids3D", "Mesh3D", "Transform3D"} <= set(found["shapes"])
    assert found["log"][0] == "the agent remarks: a goal!"
    assert "| sight | 1 | 0.5 | 0.2 to 1.8 | m |" in found["table"]
    assert {"/about", "/arena/rays", "/arena/course", "/posterior/values"} <= set(found["entities"])


def test_gymnasium_records_a_video_and_opens_a_window(viewer_facts: dict[str, Any]) -> None:
    found = viewer_facts["video"]
    assert found["size"] == [256, 256]
    assert found["fps"] == 5
    assert found["frames"] in (6, 7)
    assert found["window"] == [512, 512]


@pytest.mark.parametrize("form", ["eval", "json"])
def test_inspect_opens_a_session(viewer_facts: dict[str, Any], form: str) -> None:
    found = viewer_facts["inspect"][form]
    assert viewer_facts["inspect"]["listed"] == 1  # inspect lists one form, .eval unless it is told
    assert found["status"] == "started"
    assert found["eval"]["task"] == "animalcat/b"
    assert found["eval"]["model"] == "animalcat/mine [/b]"
    assert found["eval"]["tags"] == ["unfinished"]
    assert found["profile"]["nodes"]["sight"]["mean"] == 1.0
    success, returned = found["results"]["scores"]
    assert success["metrics"]["accuracy"]["value"] == pytest.approx(2 / 3)
    assert returned["metrics"]["mean"]["value"] == pytest.approx((0.0 + 0.5 + 1.5) / 3)
    samples = found["samples"]
    assert [one["id"] for one in samples] == ["0-0", "1-0", "2-0", "3-0"]
    first, failed, void, _ = samples
    assert first["input"] == "arena-0: rewardDistance 4 m"
    assert first["scores"]["success"]["value"] == "C"
    assert "outcome predicted: 25%" in first["scores"]["success"]["explanation"]
    assert first["messages"][1]["content"] == "step 2: a goal!"
    assert first["metadata"]["demands"] == {"rewardDistance [m]": 4.0, "lava": 0.0}
    assert first["metadata"]["versions"] == {"animalcat": "0.1.0"}
    assert failed["scores"]["success"]["value"] == "I"
    assert "does not count" in void["error"]["message"]
    assert not void["scores"]
