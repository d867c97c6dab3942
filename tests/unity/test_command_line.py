"""What `animalai`'s constructor can ask for, the stand-in gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from animalcat.envs.types import CameraSpec, ObservationSpec, RaySpec

from .arenas import FORWARD, LEFT, near_goal, write
from .compare import assert_same
from .conftest import Client, Command, Drive, available, free_port
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


@pytest.mark.parametrize("version", ["6.2.0", pytest.param("4.1.0", marks=pytest.mark.slow)])
def test_grey_images_are_the_mean_of_the_colours(drive: Drive, arena: Path, version: str) -> None:
    client = available(version)
    record = drive(client, COMMANDS, arenas_configurations=arena, grayscale=True)
    colour = Game(ObservationSpec(CAMERA, None), [near_goal(9)]).follow(COMMANDS)
    for message, told in zip(record.messages, colour, strict=True):
        assert message.decision is not None
        assert told.decision is not None
        camera = told.decision.observation.camera
        assert camera is not None
        mean = camera.mean(axis=2) / 255
        image = message.decision.observations[0]
        assert image.shape == ((1, 16, 16) if client.channels_first else (16, 16, 1))
        np.testing.assert_allclose(image.reshape(mean.shape), mean, atol=1.01 / 255)


def test_a_log_that_nobody_asks_for_is_in_the_cache(
    newest: Client, drive: Drive, arena: Path, tmp_path: Path
) -> None:
    port = free_port()
    drive(newest, arenas_configurations=arena, base_port=port, seed=5)
    text = (tmp_path / "cache" / "animalcat" / f"Player-{port}.log").read_text()
    assert "mlagents-envs 1.0.0, seed 5" in text
    # The client stops its server while it still says so, and sometimes comes first.
    cut = "the client went without closing its environment (unavailable)"
    assert "the client closed its environment" in text or cut in text
