"""A recorded episode on the page with a time line."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from animalcat.arena_configs.loader import load_text
from animalcat.cli.main import build
from animalcat.envs.backends import make_environment
from animalcat.envs.types import CameraSpec, ObservationSpec, RaySpec
from animalcat.maps.moving import PANEL
from animalcat.service.recording.reader import RecordingError, read_episode
from animalcat.service.recording.verify import camera_images
from animalcat.service.recording.writer import EpisodeRecorder
from animalcat.service.versions import versions
from animalcat.service.web.replaying import Replayed
from animalcat.v1 import results_pb2, types_pb2
from animalcat.wire.steps import spec_to_proto

TEXT = """!ArenaConfig
arenas:
  0: !Arena
    timeLimit: 60
    passMark: 0.5
    items:
    - !Item
      name: Agent
      positions: [!Vector3 {x: 20, y: 0, z: 5}]
      rotations: [0]
    - !Item
      name: HeavyBlock
      positions: [!Vector3 {x: 20, y: 0, z: 8}]
      sizes: [!Vector3 {x: 1, y: 1, z: 1}]
    - !Item
      name: GoodGoal
      positions: [!Vector3 {x: 20, y: 0, z: 14}]
      sizes: [!Vector3 {x: 1, y: 1, z: 1}]
"""


@pytest.fixture(scope="module")
def pushed_recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Somebody pushes a block towards a goal."""
    spec = ObservationSpec(CameraSpec(16), RaySpec())
    header = results_pb2.EpisodeHeader(
        name="sessions/play-test/episodes/0-0",
        instance="goal",
        arena_yaml=TEXT,
        seed=7,
        observation_spec=spec_to_proto(spec),
        backend="sim",
        versions=versions(),
        agent="person",
    )
    path = tmp_path_factory.mktemp("d") / "recordings" / "play-test" / "0-0.mcap"
    environment = make_environment("sim", spec)
    recorder = EpisodeRecorder(path, header)
    recorder.step(environment.load(load_text(TEXT, "test").config.first, 7), None)
    for _ in range(40):
        recorder.step(environment.step(3), 3)
    environment.close()
    recorder.finish(types_pb2.OUTCOME_VOID)
    return path


@pytest.fixture(scope="module")
def film(pushed_recording: Path) -> Iterator[Replayed]:
    shown = Replayed(read_episode(pushed_recording), "a <b>title</b>", 32)
    yield shown
    shown.close()


def replay(*words: str) -> tuple[int, str, str]:
    words = ("episode", "replay", *words)
    done = CliRunner().invoke(build(list(words)), list(words))
    return done.exit_code, done.stdout, done.stderr


def test_every_step_is_shown_as_it_was(film: Replayed, pushed_recording: Path) -> None:
    recording = read_episode(pushed_recording)
    state = film.state().state
    last = len(recording.steps) - 1
    assert state["last"] == last
    assert state["title"] == "a <b>title</b>"
    assert "void" in state["outcome"]
    deadline = time.monotonic() + 60
    while not film.state().state["over"]:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    maps: set[bytes] = set()
    for number, image in enumerate(camera_images(recording, 32)):
        state, pixels = film.frame(number)
        assert (state["step"], state["drawn"]) == (number, last + 1)
        seen = np.frombuffer(pixels[: image.size], np.uint8).reshape(image.shape)
        np.testing.assert_array_equal(seen, image)
        assert len(pixels) == image.size + 3 * PANEL * PANEL
        maps.add(pixels[image.size :])
        step = recording.steps[number]
        assert (state["reward"], state["health"]) == (step.reward, step.observation.health)
        assert state["action"] == ("forward" if number else "")
    assert len(maps) > 10
    assert state["return"] == pytest.approx(sum(step.reward for step in recording.steps))


def test_a_recording_that_cannot_be_shown_is_named(tmp_path: Path, pushed_recording: Path) -> None:
    folder = tmp_path / "recordings" / "two"
    folder.mkdir(parents=True)
    for name in ("0-0.mcap", "1-0.mcap"):
        (folder / name).write_bytes(pushed_recording.read_bytes())
    code, _, said = replay("two", "--data", str(tmp_path), "--play", "--no-browser")
    assert (code, "give the file its own name back" in said) == (2, True)
    (tmp_path / "cut.mcap").write_bytes(pushed_recording.read_bytes()[:500])
    code, _, said = replay(str(tmp_path / "cut.mcap"), "--play", "--no-browser")
    assert (code, "cut.mcap: not a recording, or cut" in said) == (2, True)
    empty = read_episode(pushed_recording)
    with pytest.raises(RecordingError, match="no step is recorded"):
        Replayed(type(empty)(empty.header, (), None), "empty")
