"""OpenEnv's door: what its validator only names is shown here, over the client."""

from __future__ import annotations

import json
import os
import subprocess
from base64 import b64decode
from pathlib import Path
from statistics import mean
from typing import Any

import pytest
import yaml

import animalcat
from animalcat.arena_configs.families.library import FAMILIES

ROOT = Path(__file__).resolve().parents[3]
PLACE = ROOT / os.environ.get("ANIMALCAT_OPENENV", ".clients/openenv")
PYTHON = PLACE / "bin" / "python"
PACKAGE = ROOT / "docker" / "openenv"
pytestmark = [
    pytest.mark.skipif(not PYTHON.exists(), reason="OpenEnv is not installed: make env-openenv"),
    pytest.mark.xdist_group("openenv"),
]


def facts(*words: str) -> dict[str, Any]:
    """What was found in OpenEnv's own environment of packages."""
    play = str(Path(__file__).with_name("play.py"))
    done = subprocess.run(
        [str(PYTHON), play, *words], capture_output=True, text=True, timeout=280, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def training_facts() -> dict[str, Any]:
    return facts("training")


def test_the_oracle_is_at_the_top_and_rest_at_the_floor(training_facts: dict[str, Any]) -> None:
    declared = yaml.safe_load((PACKAGE / "openenv.yaml").read_text())["validation"]["reward"]
    low, high = declared["range"]
    for split, rewards in training_facts["rewards"].items():
        assert min(rewards["oracle"]) >= high - declared["oracle_tolerance"], split
        assert set(rewards["rest"]) == {low}, split
        floor = mean(rewards["random"])
        assert high - floor >= declared["floor_margin"], f"{split}: random gets {floor}"


def test_a_task_a_seed_and_answers_are_one_episode(training_facts: dict[str, Any]) -> None:
    assert training_facts["first"] == training_facts["repeated"]
    assert len(training_facts["first"]) > 2
    # Without an index the seed draws the arena too.
    one, two, three, again = training_facts["drawn"]
    assert one == again
    assert len({one, two, three}) > 1
    assert training_facts["other seed"] != training_facts["first"]
    assert training_facts["state"] | {"step_count": 0} == {
        "episode_id": training_facts["state"]["episode_id"],
        "evaluation": False,
        "index": 5,
        "over": False,
        "seed": 7,
        "split": "object-permanence",
        "step_count": 0,
        "tongue": "script,picture=0",
    }
    assert training_facts["state"]["step_count"] == len(training_facts["first"]) - 1


def test_words_come_first(training_facts: dict[str, Any]) -> None:
    first, *later = training_facts["first"]
    assert "Find and touch a green ball" in first["prompt"]
    assert "Go takes metres" in first["prompt"]
    assert "Your health is 100 of 100." in first["text"]
    assert first["picture"] == ""
    assert first["answers_left"] == 40
    assert not any(seen["prompt"] for seen in later)
    assert [seen["readable"] for seen in later[:3]] == [True, False, True]
    assert "is no command" in later[1]["text"]
    assert b64decode(training_facts["picture"]["picture"])[1:4] == b"PNG"
    # Who has used up its answers stands still to the end, so that every episode ends.
    assert training_facts["one answer"]["done"]
    assert training_facts["one answer"]["reward"] == 0.0
    assert "no episode is open" in training_facts["after the end"]


def test_a_recorded_episode_comes_out_again_from_a_file(training_facts: dict[str, Any]) -> None:
    kept = json.loads(Path(__file__).with_name("recorded.json").read_text())
    for told, then in zip(training_facts["recorded"], kept, strict=True):
        assert {**{name: told[name] for name in then}, "points": 0} == {**then, "points": 0}
        assert told["points"] == pytest.approx(then["points"])


def test_what_is_unknown_is_refused(training_facts: dict[str, Any]) -> None:
    refused = training_facts["refused"]
    assert "there is no split 'nowhere'" in refused["split"]
    assert "its tasks are 0 to 999" in refused["index"]
    assert "script or frames" in refused["tongue"]
    assert "reset has no option colour" in refused["option"]
    assert "is not a whole number" in refused["seed"]


def test_tasks_are_told_and_not_where_things_are(training_facts: dict[str, Any]) -> None:
    assert training_facts["splits"] == [{"name": name, "type": "train"} for name in FAMILIES]
    assert training_facts["tasks"] == {"num_tasks": 1000}
    assert set(training_facts["task"]["task"]) == {"id", "split", "index", "paradigm"}


def test_a_silent_agent_gives_up_its_place() -> None:
    found = facts("idle")
    assert "larger --places" in found["taken"]
    assert found["free"] == ""


def test_a_session_is_played_and_nothing_can_be_chosen(tmp_path: Path) -> None:
    with animalcat.local(tmp_path) as lab:
        session = lab.create_session(
            agent="spoken", battery="navigation", certify=False, max_episodes=2, seed=3
        )
        found = facts("evaluation", lab.address, session.id)
        outcomes = list(lab.iter_episodes(session))
    assert not {"/reset", "/step", "/state"} & {*found["paths"]}
    for what, why in found["refused"].items():
        assert f"reset takes no {what} here" in why
    assert "is played to its end" in found["mid"]
    assert found["state"]["evaluation"]
    assert [found["state"][name] for name in ("split", "index", "seed")] == ["", None, None]
    assert len(found["episodes"]) == 2
    assert found["end"]["over"]
    # Rewards are the session's affair; points are what every agent is told.
    assert all(seen["reward"] is None for told in found["episodes"] for seen in told)
    for told, outcome in zip(found["episodes"], outcomes, strict=True):
        assert sum(seen["points"] for seen in told) == pytest.approx(outcome.episode_return)
    text = json.dumps(found)
    assert "pass_mark" not in text
    assert "demand" not in text


def test_the_package_validates() -> None:
    done = subprocess.run(
        [str(PYTHON.parent / "openenv"), "validate", str(PACKAGE), "--level", "static", "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    report = json.loads(done.stdout)
    assert report["verdict"] == "pass", done.stdout
    assert report["manifest"]["version"] == animalcat.__version__
