"""Recorded episodes as files for Foxglove, read back by the library of its format."""

from __future__ import annotations

import errno
import io
import json
import os
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mcap.reader import make_reader
from mcap_protobuf.decoder import DecoderFactory
from PIL import Image
from typer.testing import CliRunner

from animalcat.cli.main import build
from animalcat.envs.answers import Note
from animalcat.envs.backends import make_environment
from animalcat.envs.types import ObservationSpec, Phase, RaySpec
from animalcat.installing import install
from animalcat.protocol import PROTOCOL
from animalcat.service.recording import EpisodeRecorder, camera_images, read_episode
from animalcat.service.recording.foxglove_file import foxglove_bytes
from animalcat.service.recording.scene import mesh_of, moments
from animalcat.service.recording.verify import load_arena
from animalcat.service.versions import versions
from animalcat.v1 import results_pb2, types_pb2
from animalcat.wire import spec_to_proto
from tests.service.recorded import RECORDING

TEXT = """!ArenaConfig
arenas:
  0: !Arena
    timeLimit: 100
    items:
    - !Item
      name: Agent
      positions: [!Vector3 {x: 20, y: 0, z: 5}]
      rotations: [0]
    - !Item
      name: GoodGoalMulti
      positions: [!Vector3 {x: 20, y: 0, z: 8}, !Vector3 {x: 5, y: 0, z: 30}]
      sizes: [!Vector3 {x: 1, y: 1, z: 1}]
    - !Item
      name: Ramp
      positions: [!Vector3 {x: 30, y: 0, z: 20}]
      sizes: [!Vector3 {x: 4, y: 2, z: 6}]
      rotations: [90]
    - !Item
      name: CylinderTunnel
      positions: [!Vector3 {x: 10, y: 0, z: 20}]
      sizes: [!Vector3 {x: 4, y: 4, z: 4}]
"""


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A walk straight on that takes the first of two goals; rays tell it where it goes."""
    spec = ObservationSpec(rays=RaySpec(2, 60, 12))
    header = results_pb2.EpisodeHeader(
        name="sessions/play-ü/episodes/0-0",
        instance="a | `strange` <b>name</b>\n#",
        arena_yaml=TEXT,
        seed=3,
        observation_spec=spec_to_proto(spec),
        backend="sim",
        versions=versions(),
        agent="päiväkoti 🐈",
    )
    path = tmp_path_factory.mktemp("r") / "odd ü name.mcap"
    recorder = EpisodeRecorder(path, header)
    environment = make_environment("sim", spec)
    step, number = environment.load(load_arena(header), 3), 0
    recorder.step(step, None)
    while step.phase is not Phase.LAST and number < 60:
        step, number = environment.step(3), number + 1
        recorder.step(step, 3, [Note("a goal!")] if number == 2 else ())
    environment.close()
    recorder.finish(types_pb2.OUTCOME_FAILURE)
    return path


def export(path: Path, *words: str) -> tuple[int, str, str]:
    words = ("episode", "export", str(path), *words)
    done = CliRunner().invoke(build(list(words)), list(words))
    return done.exit_code, done.stdout, done.stderr


def decoded(content: bytes) -> dict[str, list[Any]]:
    """Messages by topic, each with its time in seconds."""
    found: defaultdict[str, list[Any]] = defaultdict(list)
    reader = make_reader(io.BytesIO(content), decoder_factories=[DecoderFactory()])
    for _, channel, message in reader.iter_messages():
        if channel.message_encoding == "json":
            found[channel.topic].append((message.log_time / 1e9, json.loads(message.data)))
    for _, channel, message, value in make_reader(
        io.BytesIO(content), decoder_factories=[DecoderFactory()]
    ).iter_decoded_messages(topics=["/camera", "/scene", "/tf", "/rays", "/log"]):
        found[channel.topic].append((message.log_time / 1e9, value))
    return found


def test_foxglove_is_given_image_scene_rays_and_numbers(recording: Path, tmp_path: Path) -> None:
    code, out, said = export(recording, "--format", "foxglove", "-o", str(tmp_path), "--json")
    assert (code, said) == (0, "")
    (row,) = json.loads(out)
    assert Path(row["file"]) == tmp_path / "odd ü name.foxglove.mcap"
    there, episode = decoded(Path(row["file"]).read_bytes()), read_episode(recording)
    steps = len(episode.steps)
    assert row["steps"] == steps - 1
    for topic in ("/camera", "/tf", "/rays", "/step"):
        assert len(there[topic]) == steps
    np.testing.assert_allclose([t for t, _ in there["/tf"]], 0.06 * np.arange(steps), atol=1e-6)

    images = list(camera_images(episode, 84))
    for (_, message), image in zip(there["/camera"], images, strict=True):
        np.testing.assert_array_equal(np.asarray(Image.open(io.BytesIO(message.data))), image)
    for (_, told), step in zip(there["/step"], episode.steps, strict=True):
        assert (told["reward"], told["health"]) == (step.reward, step.observation.health)
    assert there["/step"][1][1]["words"] == "forward"
    assert there["/step"][-1][1]["return"] == pytest.approx(episode.footer.episode_return)  # type: ignore[union-attr]
    for (_, frame), step in zip(there["/tf"], episode.steps, strict=True):
        x, y, z = step.observation.position
        place = frame.translation
        assert (place.x, place.y, place.z) == pytest.approx((x, z, y))
    assert frame.rotation.z == pytest.approx(np.sin(np.pi / 4))  # it walks north
    # The agent walks towards a goal of 1 m: the middle ray gets as much shorter as it goes.
    (_, first), (_, later) = there["/rays"][0], there["/rays"][5]
    assert len(first.ranges) == 5
    went = there["/tf"][5][1].translation.y - there["/tf"][0][1].translation.y
    assert first.ranges[2] - later.ranges[2] == pytest.approx(went, abs=1e-3)
    assert first.ranges[2] == pytest.approx(2.0, abs=0.1)
    lines = [message.message for _, message in there["/log"]]
    assert lines[0] == "the agent remarks: a goal!"
    assert "reward +0.99" in " ".join(lines)
    assert there["/about"][0][1]["who"].startswith("päiväkoti 🐈 on a | `strange`")
    assert "/posterior" not in there  # a file alone knows of none

    entities = {one.id: one for _, scene in there["/scene"] for one in scene.entities}
    things = {
        name: entity.metadata[0].value
        for name, entity in entities.items()
        if name.startswith("thing")
    }
    assert sorted(things.values()).count("goodGoalMulti") == 2
    deleted = [one.id for _, scene in there["/scene"] for one in scene.deletions]
    assert [things[name] for name in deleted] == ["goodGoalMulti"]
    assert len(entities["course"].lines[0].points) == steps
    assert sum(len(one.triangles) for one in entities.values()) == 2  # the ramp and the tunnel
    assert decoded(foxglove_bytes(episode)).keys() == there.keys()


def test_the_posterior_of_the_session_comes_along() -> None:
    nodes = {"visualAbility": {"mean": 1.0, "sd": 0.5, "hdi": [0.2, 1.8], "unit": "m"}}
    there = decoded(foxglove_bytes(read_episode(RECORDING), nodes=nodes))
    told = {"mean": 1.0, "sd": 0.5, "low": 0.2, "high": 1.8, "unit": "m"}
    assert there["/posterior"] == [(0.0, {"visualAbility": told})]


def test_things_are_where_the_simulator_has_them(recording: Path) -> None:
    first = next(moments(read_episode(recording)))
    by_shape = {thing.shape: thing for thing in first.changed}
    ramp, tunnel = by_shape["wedge"], by_shape["tunnel"]
    assert ramp.centre == pytest.approx((30, 20, 1), abs=0.02)
    corners, triangles = mesh_of(ramp)
    assert np.ptp(corners, axis=0) == pytest.approx((4, 6, 2), rel=0.01)
    for thing in (ramp, tunnel):
        corners, triangles = mesh_of(thing)
        edges = np.sort(
            np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [2, 0]]])
        )
        _, times = np.unique(edges, axis=0, return_counts=True)
        assert (times == 2).all()  # closed
    x, y, z, w = ramp.turn
    assert (x, y, abs(z), w) == pytest.approx((0, 0, np.sqrt(0.5), np.sqrt(0.5)), abs=1e-5)


def test_what_cannot_be_exported_is_said_and_leaves_nothing(
    recording: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"

    def refused(path: Path, *words: str) -> str:
        code, printed, said = export(path, "--format", "foxglove", "-o", str(out), *words)
        assert (code, printed) == (2, "")
        assert not out.exists()
        return said

    for data, message in (
        (b"", "not a recording"),
        (b"\x89PNG and so on", "not begin like an mcap file"),
        (RECORDING.read_bytes()[:900], "cut before its header ends"),
    ):
        (tmp_path / "bad.mcap").write_bytes(data)
        said = refused(tmp_path / "bad.mcap")
        assert "bad.mcap" in said
        assert message in said
    assert "No such file" in refused(tmp_path / "none.mcap")
    assert "--name goes with --format minari" in refused(recording, "--name", "x")
    foreign = tmp_path / "foreign.mcap"
    foreign.write_bytes(foxglove_bytes(read_episode(RECORDING)))
    assert "foreign.mcap: not a recording" in refused(foreign)
    assert "there is no backend 'moon'" in refused(recording, "--backend", "moon")
    with monkeypatch.context() as patch:
        patch.setattr("animalcat.service.recording.writer.PROTOCOL", PROTOCOL + 1)
        recorder = EpisodeRecorder(tmp_path / "newer.mcap", read_episode(RECORDING).header)
    recorder.finish(types_pb2.OUTCOME_VOID)
    said = refused(tmp_path / "newer.mcap")
    assert "newer.mcap: a newer version recorded it" in said
    assert "install a newer animalcat" in said

    EpisodeRecorder(tmp_path / "empty.mcap", read_episode(RECORDING).header).close()
    assert "empty.mcap: no step is recorded" in refused(tmp_path / "empty.mcap")

    own = tmp_path / "own.mcap"
    own.write_bytes(before := RECORDING.read_bytes())
    code, _, said = export(own, "--format", "foxglove", "-o", str(own))
    assert (code, "is the recording itself" in said) == (2, True)
    assert own.read_bytes() == before

    out.mkdir()
    (out / "odd ü name.foxglove.mcap").write_bytes(b"what was there")

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        code, _, said = export(recording, "--format", "foxglove", "-o", str(out))
    assert (code, "No space left" in said) == (2, True)
    assert [one.read_bytes() for one in out.iterdir()] == [b"what was there"]
    monkeypatch.setitem(sys.modules, "foxglove_schemas_protobuf", None)
    for name in [one for one in sys.modules if one.startswith("foxglove_schemas_protobuf.")]:
        monkeypatch.delitem(sys.modules, name)
    code, _, said = export(recording, "--format", "foxglove", "-o", str(out))
    assert (code, install("foxglove") in said) == (3, True)


def test_a_damaged_recording_is_exported_as_far_as_it_is_right(
    recording: Path, tmp_path: Path
) -> None:
    data = bytearray(recording.read_bytes())
    data[-40] ^= 1  # the summary's sum
    bad = tmp_path / "bad.mcap"
    bad.write_bytes(data)
    file = tmp_path / "out.mcap"
    code, _, said = export(bad, "--format", "foxglove", "-o", str(file))
    assert code == 1
    assert "bad.mcap is damaged" in said
    assert decoded(file.read_bytes())["/about"][0][1]["labels"] == ["damaged recording"]
