"""End to end: an unmodified client, and the logs that the stand-in leaves beside itself."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

import pytest

from animalcat.arena_configs.model import (
    Arena,
    EndEpisode,
    GrantContinuousReward,
    GrantReward,
    Item,
    Operation,
    OperationFromList,
    ToggleObject,
    Vector3,
)
from animalcat.envs.mlagents.observation_log import COLUMNS
from tests.small import start

from .arenas import FORWARD, spot, write
from .conftest import Client, Command, Drive

AHEAD: Command = ("step", *FORWARD)
IDLE: Command = ("step", 0, 0)
NAMES = COLUMNS.split(",")


@pytest.fixture
def stand_in(executable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The stand-in under the name of a build, in a folder of its own, told of no other folder."""
    monkeypatch.delenv("ANIMALCAT_OBSERVATION_LOGS")
    build = tmp_path / "build" / "AAI.x86_64"
    build.parent.mkdir()
    build.symlink_to(executable)
    return build


def only_file(folder: Path) -> list[str]:
    """The lines of the only log in a folder."""
    [path] = folder.iterdir()
    assert path.name.startswith("Observations_")
    assert path.suffix == ".csv"
    return path.read_text().splitlines()


def rows(lines: Iterable[str]) -> list[dict[str, str]]:
    return [dict(zip(NAMES, line.split(","), strict=True)) for line in lines if "," in line]


def zone(z: float, *operations: Operation) -> Item:
    """A wide zone across the agent's way, named Z."""
    return Item(
        name="DataZone",
        positions=(Vector3(x=20, y=0, z=z),),
        rotations=(0.0,),
        sizes=(Vector3(x=10, y=0, z=2),),
        trigger_zone_id=("Z",),
        operations=operations,
    )


@pytest.mark.parametrize("how", ["argument", "variable"])
def test_logs_go_where_they_are_told_to(
    newest: Client,
    drive: Drive,
    stand_in: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    how: str,
) -> None:
    elsewhere = tmp_path / "elsewhere"
    options: dict[str, object] = {}
    if how == "argument":
        monkeypatch.setenv("ANIMALCAT_OBSERVATION_LOGS", "none")
        options["additional_args"] = ["--observationLogs", str(elsewhere)]
    else:
        monkeypatch.setenv("ANIMALCAT_OBSERVATION_LOGS", str(elsewhere))
    path = write(tmp_path, "arena.yml", spot(10))
    named = {"arenas_configurations": path, "file_name": str(stand_in), "useCamera": False}
    drive(newest, [IDLE], **named, **options)
    assert rows(only_file(elsewhere)[1:])[0]["CombinedRaycastData"] == ""
    assert not (stand_in.parent / "ObservationLogs").exists()


def test_a_build_that_does_not_exist_is_refused(executable: str) -> None:
    words = [executable, "--mlagents-port", "9", "--build", "2.0", "-logFile", "-"]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 2
    assert "there is no build '2.0'; there are: 4.x, 4.2, 4.1, 3.1.3" in ended.stderr
    told = subprocess.run(
        [executable, "--help"], capture_output=True, text=True, timeout=60, check=True
    ).stdout
    assert "--build NAME" in told
    assert "--observationLogs FOLDER" in told


def test_operations_and_buttons_show_in_the_log(
    newest: Client, drive: Drive, stand_in: Path, tmp_path: Path
) -> None:
    """Rewards, a spawned goal, an end: each in the row after the step in which it happens."""
    ball = Item(
        name="GoodGoal",
        positions=(Vector3(x=35, y=0, z=35),),
        rotations=(0.0,),
        sizes=(Vector3(x=1, y=1, z=1),),
    )
    one = OperationFromList(operations=(GrantReward(reward=0.25),))
    spawn = ToggleObject(spawnable=ball)
    zones = (zone(9, one, spawn), zone(14, GrantContinuousReward(reward_per_step=0.01)))
    operated = Arena(time_limit=100, items=(start(20, 5), *zones, zone(20, EndEpisode(reward=1))))
    button = Item(
        name="SpawnerButton",
        positions=(Vector3(x=20, y=0, z=9),),
        rotations=(90.0,),
        reward_names=("GoodGoal",),
        reward_weights=(100.0,),
        reward_spawn_pos=Vector3(x=5, y=0, z=35),
        move_durations=(0.1,),
        reset_durations=(0.1,),
    )
    pressed = Arena(time_limit=100, items=(start(20, 5), button))
    path = write(tmp_path, "arenas.yml", operated, pressed)
    named = {"arenas_configurations": path, "file_name": str(stand_in), "useCamera": False}
    drive(newest, [AHEAD] * 40, **named)
    told = rows(only_file(stand_in.parent / "ObservationLogs")[1:])
    first = [row for row in told if row["Episode"] == "1"]
    second = [row for row in told if row["Episode"] == "2"]
    rewards = [float(row["Reward"]) for row in first]
    gains = [after - before for before, after in pairwise(rewards)]
    assert max(gains) == pytest.approx(0.25 - 1 / 500, abs=1e-6)
    granted = gains.index(max(gains)) + 1
    assert first[granted]["CollectedRewardType"] == "End Episode Operation"
    assert first[granted]["CombinedSpawnerInfo"].startswith("SpawnerButtonID:Z; Position:20;")
    inside = [n for n, gain in enumerate(gains) if gain == pytest.approx(0.01 - 1 / 500, abs=1e-6)]
    assert inside == list(range(inside[0], inside[-1] + 1))
    assert "Agent was in DataZone: Z" in {row["DataZoneMessage"] for row in first}
    assert second[0]["CollectedRewardType"] == "End Episode Operation"
    triggered = [row for row in second if row["WasSpawnerButtonTriggered?"] == "Yes"]
    assert len(triggered) == 1
    assert triggered[0]["CombinedSpawnerInfo"].startswith("SpawnerButtonID:1; Position:20;")
    assert triggered[0]["CombinedSpawnerInfo"].endswith("RewardType:GoodGoal")
