"""Recorded episodes moment by moment, and as files for a viewer."""

from __future__ import annotations

import errno
import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mcap.writer import Writer
from typer.testing import CliRunner

from animalcat.cli.main import build
from animalcat.doors.rerun.scene import (
    Moment,
    course,
    mesh_of,
    moment_lines,
    moments,
    ray_ends,
)
from animalcat.envs.answers import Note
from animalcat.envs.backends import make_environment
from animalcat.envs.types import ObservationSpec, Phase, RaySpec
from animalcat.extending.installing import install
from animalcat.service.recording.about import labels, who
from animalcat.service.recording.reader import Recording, read_episode
from animalcat.service.recording.verify import camera_images, load_arena
from animalcat.service.recording.writer import EpisodeRecorder
from animalcat.service.versions import versions
from animalcat.v1 import results_pb2, types_pb2
from animalcat.wire.protocol import PROTOCOL
from animalcat.wire.steps import spec_to_proto
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


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[Moment], Any]]:
    """What Rerun's writer was given; Rerun itself is not installed here."""
    calls: list[tuple[list[Moment], Any]] = []

    def write(recording: Recording, resolution: int, backend: str, nodes: Any) -> bytes:
        calls.append((list(moments(recording, resolution, backend)), nodes))
        return b"rrd"

    monkeypatch.setattr("animalcat.doors.rerun.rerun_file.rerun_bytes", write)
    return calls


def test_moments_have_image_scene_rays_and_numbers(
    recording: Path, tmp_path: Path, written: list[tuple[list[Moment], Any]]
) -> None:
    code, out, _ = export(recording, "--format", "rerun", "-o", str(tmp_path), "--json")
    assert code == 0
    (row,) = json.loads(out)
    assert Path(row["file"]) == tmp_path / "odd ü name.rrd"
    ((there, nodes),), episode = written, read_episode(recording)
    assert nodes is None  # a file alone knows of no posterior
    steps = len(episode.steps)
    assert row["steps"] == steps - 1
    np.testing.assert_allclose([one.seconds for one in there], 0.06 * np.arange(steps), atol=1e-6)

    images = camera_images(episode, 84)
    for moment, image, step in zip(there, images, episode.steps, strict=True):
        np.testing.assert_array_equal(moment.image, image)
        assert (moment.reward, moment.health) == (step.reward, step.observation.health)
        x, y, z = step.observation.position
        assert moment.place == pytest.approx((x, z, y))
    assert there[-1].total == pytest.approx(episode.footer.episode_return)  # type: ignore[union-attr]
    assert there[-1].heading == pytest.approx(90)  # it walks north
    np.testing.assert_allclose(course(episode), [one.place for one in there])
    # The agent walks towards a goal of 1 m: the middle ray gets as much shorter as it goes.
    first, later = there[0], there[5]
    assert len(first.rays) == 5
    went = later.place[1] - first.place[1]
    assert first.rays[2].metres - later.rays[2].metres == pytest.approx(went, abs=1e-3)
    assert first.rays[2].metres == pytest.approx(2.0, abs=0.1)
    assert first.place[1] + first.rays[2].metres == pytest.approx(ray_ends(first)[2][1])
    lines = [line for moment in there for line in moment_lines(moment)]
    assert lines[0] == "the agent remarks: a goal!"
    assert "reward +0.99" in " ".join(lines)
    assert who(episode.header).startswith("päiväkoti 🐈 on a | `strange`")

    things = {thing.number: thing for moment in there for thing in moment.changed}
    assert [thing.tag for thing in things.values()].count("goodGoalMulti") == 2
    deleted = [number for moment in there for number in moment.gone]
    assert [things[number].tag for number in deleted] == ["goodGoalMulti"]


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
    recording: Path, tmp_path: Path, written: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"

    def refusal_of(path: Path, *words: str) -> str:
        code, printed, said = export(path, "--format", "rerun", "-o", str(out), *words)
        assert (code, printed) == (2, "")
        assert not out.exists()
        return said

    for data, message in (
        (b"", "not a recording"),
        (b"\x89PNG and so on", "not begin like an mcap file"),
        (RECORDING.read_bytes()[:900], "cut before its header ends"),
    ):
        (tmp_path / "bad.mcap").write_bytes(data)
        said = refusal_of(tmp_path / "bad.mcap")
        assert "bad.mcap" in said
        assert message in said
    assert "No such file" in refusal_of(tmp_path / "none.mcap")
    assert "--name goes with --format minari" in refusal_of(recording, "--name", "x")
    foreign = tmp_path / "foreign.mcap"
    with foreign.open("wb") as stream:
        other = Writer(stream)
        other.start()
        other.finish()
    assert "foreign.mcap: not a recording" in refusal_of(foreign)
    assert "there is no backend 'moon'" in refusal_of(recording, "--backend", "moon")
    with monkeypatch.context() as patch:
        patch.setattr("animalcat.service.recording.writer.PROTOCOL", PROTOCOL + 1)
        recorder = EpisodeRecorder(tmp_path / "newer.mcap", read_episode(RECORDING).header)
    recorder.finish(types_pb2.OUTCOME_VOID)
    said = refusal_of(tmp_path / "newer.mcap")
    assert "newer.mcap: a newer version recorded it" in said
    assert "install a newer animalcat" in said

    EpisodeRecorder(tmp_path / "empty.mcap", read_episode(RECORDING).header).close()
    assert "empty.mcap: no step is recorded" in refusal_of(tmp_path / "empty.mcap")

    out.mkdir()
    (out / "odd ü name.rrd").write_bytes(b"what was there")

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        code, _, said = export(recording, "--format", "rerun", "-o", str(out))
    assert (code, "No space left" in said) == (2, True)
    assert [one.read_bytes() for one in out.iterdir()] == [b"what was there"]


def test_a_missing_viewer_is_named_with_its_extra(
    recording: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "rerun", None)
    code, _, said = export(recording, "--format", "rerun", "-o", str(tmp_path))
    assert (code, install("rerun") in said) == (3, True)


def test_a_damaged_recording_is_exported_as_far_as_it_is_right(
    recording: Path, tmp_path: Path, written: list[Any]
) -> None:
    data = bytearray(recording.read_bytes())
    data[-40] ^= 1  # the summary's sum
    bad = tmp_path / "bad.mcap"
    bad.write_bytes(data)
    code, _, said = export(bad, "--format", "rerun", "-o", str(tmp_path / "out.rrd"))
    assert code == 1
    assert "bad.mcap is damaged" in said
    assert labels(read_episode(bad), anew=False) == ["damaged recording"]
