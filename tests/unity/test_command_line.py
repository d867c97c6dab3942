"""What `animalai`'s constructor can ask for, the stand-in gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from animalcat.envs.types import CameraSpec, ObservationSpec, RaySpec

from .arenas import FORWARD, LEFT, near_goal, write
from .compare import assert_same
from .conftest import Client, Command, Drive
from .expected import Game

COMMANDS: tuple[Command, ...] = (("step", *FORWARD), ("step", *LEFT), ("reset", ""), ("step", 2, 1))
CAMERA, RAYS = CameraSpec(16), RaySpec(2, 60.0)


@pytest.fixture
def arena(tmp_path: Path) -> Path:
    """A file with a goal and two walls."""
    return write(tmp_path, "arena.yml", near_goal(9))


@pytest.mark.parametrize(
    ("options", "spec"),
    [
        pytest.param({"useCamera": False}, ObservationSpec(None, None), marks=pytest.mark.slow),
        ({"useCamera": False, "useRayCasts": True}, ObservationSpec(None, RAYS)),
        # Unity's camera is empty without graphics; the simulator's is not.
        ({"no_graphics": True, "resolution": 512}, ObservationSpec(CameraSpec(512), None)),
        (
            {"raysPerSide": 4, "rayMaxDegrees": 100, "useRayCasts": True, "decisionPeriod": 5},
            ObservationSpec(CAMERA, RaySpec(4, 100.0), 5),
        ),
        (
            {
                "additional_args": ["--cameraEncoding", "raw", "--rayTags", "18"],
                "useRayCasts": True,
            },
            ObservationSpec(CAMERA, RaySpec(2, 60.0, 18)),
        ),
        # What changes nothing: window, speed, quality, and what no build knows.
        pytest.param(
            {
                "inference": True,
                "timescale": 20,
                "targetFrameRate": -1,
                "captureFrameRate": 30,
                "additional_args": ["-force-vulkan", "--receiveConfiguration", "--unheard-of", "1"],
            },
            ObservationSpec(CAMERA, None),
            marks=pytest.mark.slow,
        ),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_the_client_gets_what_it_asks_for(
    newest: Client, drive: Drive, arena: Path, options: dict[str, Any], spec: ObservationSpec
) -> None:
    record = drive(newest, COMMANDS, arenas_configurations=arena, **options)
    assert "error" not in record.report
    assert_same(newest, record.messages, Game(spec, [near_goal(9)]).follow(COMMANDS))
