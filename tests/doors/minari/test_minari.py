"""Recorded episodes as datasets of Minari."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import minari
import numpy as np
import pytest
from typer.testing import CliRunner

from animalcat.cli.main import build
from animalcat.doors.minari.minari_data import save_minari
from animalcat.envs.backends import make_environment
from animalcat.envs.replay import replay as replay_steps
from animalcat.envs.types import CameraSpec
from animalcat.service.recording.reader import read_episode
from animalcat.service.recording.verify import camera_images, load_arena
from animalcat.service.recording.writer import EpisodeRecorder
from animalcat.service.versions import versions
from animalcat.v1 import results_pb2, types_pb2
from animalcat.wire.steps import spec_from_proto, spec_to_proto
from tests.service.recorded import RECORDING


@pytest.mark.parametrize("name", ["made", "camera"])
def test_episodes_become_a_minari_dataset(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Observations, actions and rewards come back as they were, images to the bit."""
    path = RECORDING if name == "made" else camera_recording(tmp_path)
    recording = read_episode(path)
    words = ["episode", "export", str(path), "--name", "animalcat/t-v0", "-o", str(tmp_path / "m")]
    done = CliRunner().invoke(build(words), [*words, "--json"])
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["episodes"] == 1
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "m"))
    dataset = minari.load_dataset("animalcat/t-v0")
    (episode,) = dataset.iterate_episodes()
    assert list(episode.actions) == list(recording.actions)
    assert episode.rewards == pytest.approx([step.reward for step in recording.steps[1:]])
    assert episode.terminations[-1] != episode.truncations[-1]
    for key in ("position", "velocity"):
        seen = np.array([getattr(step.observation, key) for step in recording.steps], np.float32)
        np.testing.assert_array_equal(episode.observations[key], seen)
    if name == "camera":
        images = list(camera_images(recording, 16))
        np.testing.assert_array_equal(episode.observations["camera"], images)
    again = CliRunner().invoke(build(words), words)
    assert (again.exit_code, "there is a dataset already" in again.stderr) == (2, True)
    assert [one.name for one in (tmp_path / "m").glob("[!.]*")] == ["animalcat"]


@pytest.mark.parametrize("folder", ["m", "."])
def test_a_dataset_knows_the_environment_that_plays_its_arenas(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    """Folders are given as people do, and the arenas are played in the order of the episodes."""
    monkeypatch.chdir(tmp_path)
    recording = read_episode(RECORDING)
    header = type(recording.header)()
    header.CopyFrom(recording.header)
    header.arena_yaml = header.arena_yaml.replace("timeLimit: 150", "timeLimit: 1")
    short = replace(recording, header=header)
    path = save_minari([recording, short, recording], "animalcat/t-v0", Path(folder))
    assert path == Path(folder) / "animalcat" / "t-v0"
    assert not [str(warning.message) for warning in recwarn if "env" in str(warning.message)]
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / folder))
    dataset = minari.load_dataset("animalcat/t-v0")
    environments = [dataset.recover_environment(), dataset.recover_environment(eval_env=True)]
    for environment in environments:
        assert environment.observation_space == dataset.spec.observation_space
        assert environment.action_space == dataset.spec.action_space
    environment = environments[0]
    for limit in (150, 1, 150):
        environment.reset()
        rewards: list[float] = []
        for action in recording.actions:
            _, reward, terminated, truncated, _ = environment.step(action)
            rewards.append(float(reward))
            if terminated or truncated:
                break
        if limit == 150:
            assert rewards == pytest.approx([step.reward for step in recording.steps[1:]])
        else:
            assert len(rewards) == 2
    environment.close()


def camera_recording(folder: Path) -> Path:
    """A short episode of a camera whose images are kept as digests."""
    old = read_episode(RECORDING)
    spec = replace(spec_from_proto(old.header.observation_spec), camera=CameraSpec(16))
    header = results_pb2.EpisodeHeader()
    header.CopyFrom(old.header)
    header.observation_spec.CopyFrom(spec_to_proto(spec))
    for name, version in versions().items():
        header.versions[name] = version
    environment = make_environment("sim", spec)
    path = folder / "camera.mcap"
    recorder = EpisodeRecorder(path, header)
    for number, step in enumerate(
        replay_steps(environment, load_arena(header), header.seed, old.actions[:12])
    ):
        recorder.step(step, old.actions[number - 1] if number else None)
    environment.close()
    recorder.finish(types_pb2.OUTCOME_FAILURE)
    return path
