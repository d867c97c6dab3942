"""Recordings: whole, cut at any byte, compact, and played again."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from hypothesis import given, settings
from hypothesis import strategies as st
from mcap.reader import make_reader
from mcap.writer import Writer

from animalcat.envs.answers import Note
from animalcat.envs.backends import make_environment
from animalcat.envs.types import (
    CameraSpec,
    EndedBy,
    Observation,
    ObservationSpec,
    Phase,
    RaySpec,
    Step,
)
from animalcat.service.recording.channels import LIBRARY, Channel
from animalcat.service.recording.compact import CHUNK_BYTES, compact_recording
from animalcat.service.recording.encoding import OPCODE, StepWriter, message, recorded_step
from animalcat.service.recording.live import LiveFile
from animalcat.service.recording.reader import (
    Log,
    Recording,
    RecordingError,
    read_episode,
    whole_length,
)
from animalcat.service.recording.sums import DamageError
from animalcat.service.recording.verify import camera_images, load_arena, verify
from animalcat.service.recording.writer import (
    EpisodeRecorder,
    begin_recording,
    finish_recording,
    left_behind,
)
from animalcat.service.versions import versions
from animalcat.v1 import results_pb2, sessions_pb2, types_pb2
from animalcat.wire.protocol import PROTOCOL
from animalcat.wire.steps import observation_from_proto, spec_from_proto, spec_to_proto
from tests.disk import full_disk
from tests.service.recorded import FOLDER, RECORDING

ARENA = """!ArenaConfig
arenas:
  0: !Arena
    timeLimit: 50
    items:
    - !Item
      name: Agent
      positions: [!Vector3 {x: 20, y: 0, z: 5}]
      rotations: [0]
    - !Item
      name: GoodGoal
      positions: [!Vector3 {x: 20, y: 0, z: 30}]
      sizes: [!Vector3 {x: 2, y: 2, z: 2}]
"""
RAYS = ObservationSpec()
CAMERA = ObservationSpec(CameraSpec(16), RaySpec(1), 5)
ACTIONS = bytes([3, 3, 4, 5, 3, 0, 3, 3] * 12)


@dataclass(frozen=True, repr=False)
class Played:
    """An episode that was recorded: its file, and the length of its records after each step."""

    path: Path
    sizes: list[int]
    live: bytes


def header(spec: ObservationSpec, *, pixels: bool = False) -> results_pb2.EpisodeHeader:
    return results_pb2.EpisodeHeader(
        name="sessions/s/episodes/0-0",
        instance="navigation/7",
        arena_yaml=ARENA,
        seed=11,
        observation_spec=spec_to_proto(spec),
        backend="sim",
        versions=versions(),
        agent="builtin:forward",
        pixels=pixels,
        protocol=PROTOCOL,
    )


def play(path: Path, spec: ObservationSpec, *, pixels: bool = False) -> Played:
    head = header(spec, pixels=pixels)
    environment = make_environment("sim", spec)
    recorder = EpisodeRecorder(path, head)
    sizes: list[int] = []
    recorder.step(environment.load(load_arena(head), head.seed), None)
    sizes.append(whole_length(path.read_bytes()))
    for number, action in enumerate(ACTIONS):
        step = environment.step(action)
        recorder.step(step, action, [Note("half way")] if number == 6 else [])
        sizes.append(whole_length(path.read_bytes()))
        if step.phase is Phase.LAST:
            break
    live = path.read_bytes()[: sizes[-1]]
    recorder.finish(types_pb2.OUTCOME_SUCCESS)
    environment.close()
    return Played(path, sizes, live)


@pytest.fixture(scope="module")
def rays(tmp_path_factory: pytest.TempPathFactory) -> Played:
    return play(tmp_path_factory.mktemp("rays") / "new" / "0-0.mcap", RAYS)


@pytest.fixture(scope="module")
def camera(tmp_path_factory: pytest.TempPathFactory) -> Played:
    return play(tmp_path_factory.mktemp("camera") / "0-0.mcap", CAMERA)


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("scratch") / "cut.mcap"


def test_a_recording_tells_the_whole_episode(rays: Played) -> None:
    recording = read_episode(rays.path)
    assert recording.complete
    assert recording.header == header(RAYS)
    assert recording.footer is not None
    assert recording.footer.outcome == types_pb2.OUTCOME_SUCCESS
    assert recording.footer.ended_by == types_pb2.ENDED_BY_GOAL
    assert recording.footer.steps == len(recording.steps) - 1 == len(rays.sizes) - 1
    assert ACTIONS.startswith(recording.actions)
    assert [step.step for step in recording.steps] == list(range(len(recording.steps)))
    assert [[n.text for n in s.notes] for s in recording.steps if s.notes] == [["half way"]]

    environment = make_environment("sim", RAYS)
    environment.load(load_arena(recording.header), recording.header.seed)
    for recorded in recording.steps[1:]:
        step = environment.step(recorded.action)
        seen = observation_from_proto(recorded.observation, RAYS)
        assert np.array_equal(seen.position, step.observation.position)
        assert seen.rays is not None
        assert np.array_equal(seen.rays, np.asarray(step.observation.rays))


def test_the_same_episode_has_the_same_bytes(rays: Played, tmp_path: Path) -> None:
    again = play(tmp_path / "elsewhere.mcap", RAYS)
    assert again.live == rays.live
    assert again.path.read_bytes() == rays.path.read_bytes()


def test_the_compact_form_is_small_and_leaves_nothing_beside_it(rays: Played) -> None:
    # mcap repeats the schemas uncompressed at the file's end. They grow with the wire (2.8 kB when
    # notes were texts, 4.1 kB with all that is said of answers and choices) and are a third of so
    # short an episode.
    schemas = sum(len(channel.schema()) for channel in Channel)
    assert rays.path.stat().st_size - schemas < (len(rays.live) - schemas) / 2
    assert schemas < 5000
    assert list(rays.path.parent.iterdir()) == [rays.path]


def test_every_step_is_in_the_file_before_the_next_one(rays: Played, scratch: Path) -> None:
    assert len(set(rays.sizes)) == len(rays.sizes)
    for number, size in enumerate(rays.sizes):
        scratch.write_bytes(rays.live[:size])
        assert len(read_episode(scratch).steps) == number + 1


def cuts(played: Played) -> st.SearchStrategy[int]:
    edges = [size + off for size in played.sizes for off in (-1, 0, 1)]
    return st.integers(0, len(played.live)) | st.sampled_from(edges)


@settings(max_examples=300)
@given(st.data())
def test_a_recording_cut_at_any_byte_gives_every_whole_step(
    rays: Played, scratch: Path, data: st.DataObject
) -> None:
    cut = data.draw(cuts(rays))
    tail = data.draw(st.sampled_from([b"", bytes(4096), b"\x05" + bytes(3)]))
    whole = sum(size <= cut for size in rays.sizes)
    scratch.write_bytes(rays.live[:cut] + tail)
    if whole == 0 and cut < rays.sizes[0] - 500:
        with pytest.raises(RecordingError, match="cut before its header"):
            read_episode(scratch)
        return
    try:
        recording = read_episode(scratch)
    except RecordingError:
        assert whole == 0
        return
    assert not recording.complete
    assert not recording.checked
    assert recording.footer is None
    # A tail of zeros may by chance be what a step was missing, never more than that.
    assert whole <= len(recording.steps) <= whole + bool(tail)
    full = read_episode(rays.path)
    assert recording.steps[:whole] == full.steps[:whole]


@given(st.data())
def test_a_cut_compact_recording_gives_true_steps_or_none(
    rays: Played, scratch: Path, data: st.DataObject
) -> None:
    compact = rays.path.read_bytes()
    scratch.write_bytes(compact[: data.draw(st.integers(0, len(compact)))])
    full = read_episode(rays.path)
    try:
        recording = read_episode(scratch)
    except RecordingError:
        return
    assert recording.steps == full.steps[: len(recording.steps)]


def flip_bit(data: bytes, bit: int) -> bytes:
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def chunks(data: bytes) -> list[range]:
    """Where the compressed content of each chunk is."""
    summary = make_reader(BytesIO(data)).get_summary()
    assert summary is not None
    ends = [(c.chunk_start_offset + c.chunk_length, c) for c in summary.chunk_indexes]
    return [range(end - chunk.compressed_size, end) for end, chunk in ends]


def outside_of_chunks(data: bytes) -> list[int]:
    """Bits of a finished file of one chunk that the chunk's own sum does not cover."""
    (chunk,) = chunks(data)
    covered = range(8 * chunk.start, 8 * chunk.stop)
    return [bit for bit in range(8 * len(data)) if bit not in covered]


@pytest.mark.parametrize("sample", ["anywhere", "outside of chunks"])
def test_no_flipped_bit_of_a_finished_recording_passes(
    rays: Played, scratch: Path, sample: str
) -> None:
    data, full = rays.path.read_bytes(), read_episode(rays.path)
    assert full.complete
    assert full.checked
    bits = range(8 * len(data)) if sample == "anywhere" else outside_of_chunks(data)
    for bit in random.Random(14).sample(bits, 250):
        scratch.write_bytes(flip_bit(data, bit))
        try:
            found = read_episode(scratch)
        except RecordingError:
            continue
        assert found.damage, f"bit {bit} passes"
        assert not found.complete
        assert found.header == full.header
        assert found.steps == full.steps[: len(found.steps)]


def test_a_damaged_recording_gives_the_chunks_before_the_damage(tmp_path: Path) -> None:
    path = tmp_path / "0-0.mcap"
    recorder = EpisodeRecorder(path, header(ObservationSpec(rays=None)))
    for number, step in enumerate(episode_steps(3000)):
        recorder.step(step, 3 if number else None)
    recorder.finish(types_pb2.OUTCOME_VOID)
    data, full = path.read_bytes(), read_episode(path)
    where = chunks(data)
    assert len(where) > 2
    path.write_bytes(flip_bit(data, 8 * (where[1].start + where[1].stop) // 2))
    found = read_episode(path)
    assert "chunk is damaged" in found.damage
    assert 0 < len(found.steps) < len(full.steps)
    assert found.steps == full.steps[: len(found.steps)]


@pytest.mark.parametrize("content", [b"", b"\x89MCAP0", b"not a recording at all, but text"])
def test_what_is_no_recording_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.mcap").write_bytes(content)
    with pytest.raises(RecordingError, match=r"x\.mcap: not a recording"):
        read_episode(tmp_path / "x.mcap")


def test_a_failed_compaction_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_room(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_room)
    with pytest.raises(OSError, match="No space"):
        play(tmp_path / "0-0.mcap", RAYS)
    recording = read_episode(tmp_path / "0-0.mcap")
    assert recording.complete
    assert verify(recording).difference is None


def test_a_full_disk_is_an_error_and_leaves_what_was_recorded(tmp_path: Path) -> None:
    path = tmp_path / "0-0.mcap"
    recorder = EpisodeRecorder(path, header(ObservationSpec(rays=None)))
    steps = episode_steps(3000)
    recorder.step(next(steps), None)
    with full_disk(200_000), pytest.raises(OSError, match=r"0-0\.mcap"):  # noqa: PT012
        for step in steps:
            recorder.step(step, 3)
    recording = read_episode(path)
    assert len(recording.steps) == recorder.steps + 1 > 100
    assert recording.damage == ""
    recorder.finish(types_pb2.OUTCOME_FAULT)
    assert read_episode(path).complete
    assert read_episode(path).steps == recording.steps


KILLED = """
import sys
from pathlib import Path
from animalcat.service.recording.writer import EpisodeRecorder
from animalcat.v1 import results_pb2
from tests.service.test_recording import episode_steps

recorder = EpisodeRecorder(Path(sys.argv[1]), results_pb2.EpisodeHeader(name="killed"))
for number, step in enumerate(episode_steps(10**9)):
    recorder.step(step, 3 if number else None)
    if number % 1000 == 0:
        print(number, flush=True)
"""


def test_a_killed_process_loses_no_step(tmp_path: Path) -> None:
    path = tmp_path / "0-0.mcap"
    child = subprocess.Popen([sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE)
    assert child.stdout is not None
    with child:
        recorded = [int(child.stdout.readline()) for _ in range(20)][-1]
        child.kill()
        recorded = max(map(int, child.stdout), default=recorded)
    recording = read_episode(path)
    assert recording.damage == ""
    assert recorded < len(recording.steps) <= recorded + 1001
    assert left_behind(path).steps == recording.steps
    assert path.stat().st_size == whole_length(path.read_bytes())
    steps = len(recording.steps) - 1
    footer = results_pb2.EpisodeFooter(outcome=types_pb2.OUTCOME_FAULT, steps=steps)
    finish_recording(path, footer, 0)
    again = read_episode(path)
    assert again.complete
    assert again.steps == recording.steps


def test_what_is_left_to_another_process_goes_on(rays: Played, tmp_path: Path) -> None:
    path = tmp_path / "0-0.mcap"
    """One begins it, two record, and one finishes it: the bytes are those of a single recorder."""
    head, steps = header(ObservationSpec(rays=None)), list(episode_steps(5))
    recorder = EpisodeRecorder(tmp_path / "whole.mcap", head)
    for number, step in enumerate(steps):
        recorder.step(step, 3 if number else None)
    footer = recorder.finish(types_pb2.OUTCOME_VOID)
    assert (footer.steps, footer.episode_return) == (4, sum(step.reward for step in steps))
    begin_recording(path, head)
    for numbers in (range(3), range(3, 5)):
        with closing(LiveFile(path, anew=False)) as file:
            writer = StepWriter(file, head.observation_spec.decision_period, head.pixels)
            for number in numbers:
                writer.add(number, steps[number], 3 if number else None, ())
    finish_recording(path, footer, head.observation_spec.decision_period)
    assert path.read_bytes() == recorder.path.read_bytes()


def test_the_compact_form_is_what_the_library_writes(tmp_path: Path) -> None:
    path = tmp_path / "0-0.mcap"
    recorder = EpisodeRecorder(path, header(ObservationSpec(rays=None)))
    for number, step in enumerate(episode_steps(3000)):
        recorder.step(step, 3 if number else None)
    recorder.close()
    live = path.read_bytes()
    by_library = BytesIO()
    writer = Writer(by_library, CHUNK_BYTES, enable_data_crcs=True)
    writer.start(library=LIBRARY)
    for channel in Channel:
        schema = writer.register_schema(channel.schema_name, "protobuf", channel.schema())
        writer.register_channel(channel.topic, "protobuf", schema)
    for one in Log(live).messages():
        writer.add_message(one.channel.number, one.log_time, one.data, one.log_time, one.sequence)
    writer.finish()
    assert compact_recording(live) == by_library.getvalue()


@pytest.mark.parametrize("cut", [1, 20, 30, 200])
def test_what_is_not_whole_is_not_compacted(cut: int, rays: Played) -> None:
    with pytest.raises(DamageError, match="whole record"):
        compact_recording(rays.live[:-cut])


def test_an_abandoned_recording_stays_as_it_is(tmp_path: Path) -> None:
    recorder = EpisodeRecorder(tmp_path / "0-0.mcap", header(RAYS))
    recorder.close()
    recording = read_episode(tmp_path / "0-0.mcap")
    assert recording.steps == ()
    assert not recording.complete
    assert verify(recording).difference is None


def test_other_tools_can_read_it(rays: Played) -> None:
    with rays.path.open("rb") as file:
        reader = make_reader(file, validate_crcs=True)
        summary = reader.get_summary()
        assert summary is not None
        assert summary.statistics is not None
        assert {c.topic for c in summary.channels.values()} == {"header", "step", "footer"}
        times: list[int] = []
        for schema, channel, message in reader.iter_messages():
            assert schema is not None
            assert schema.encoding == channel.message_encoding == "protobuf"
            decoded = decode(schema.name, schema.data, message.data)
            if channel.topic == "step":
                assert message.log_time == message.publish_time == decoded.step * 3 * 20_000_000
                times.append(message.log_time)
    assert len(times) == len(rays.sizes)


def decode(name: str, schema: bytes, data: bytes) -> Any:
    """Decode by the schema in the file alone, as a viewer does."""
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(schema).file:
        pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name)).FromString(data)


def test_camera_images_are_kept_as_digests(camera: Played, tmp_path: Path) -> None:
    recording = read_episode(camera.path)
    assert all(len(s.camera_digest) == 16 and not s.observation.camera for s in recording.steps)
    assert len({s.camera_digest for s in recording.steps}) > 10
    pixels = read_episode(play(tmp_path / "0-0.mcap", CAMERA, pixels=True).path)
    assert [s.camera_digest for s in pixels.steps] == [s.camera_digest for s in recording.steps]
    assert all(len(s.observation.camera) == 16 * 16 * 3 for s in pixels.steps)
    assert verify(pixels).difference is None


@pytest.mark.parametrize("which", ["rays", "camera"])
def test_an_episode_plays_again_bit_by_bit(which: str, request: pytest.FixtureRequest) -> None:
    played: Played = request.getfixturevalue(which)
    found = verify(read_episode(played.path))
    assert found.difference is None
    assert found.steps == len(played.sizes)
    assert found.versions == ()


def change_step(recording: Recording, number: int, change: results_pb2.RecordedStep) -> Recording:
    steps = list(recording.steps)
    steps[number] = results_pb2.RecordedStep.FromString(steps[number].SerializeToString())
    steps[number].MergeFrom(change)
    return replace(recording, steps=tuple(steps))


def test_verification_finds_the_first_difference(rays: Played, camera: Played) -> None:
    recording = read_episode(rays.path)
    reward = recording.steps[9].reward
    nudged = float(np.nextafter(np.float32(reward), np.float32(1)))
    found = verify(change_step(recording, 9, results_pb2.RecordedStep(reward=nudged))).difference
    assert found is not None
    assert (found.step, found.field) == (9, "reward")
    assert float(found.recorded) == nudged
    assert float(found.replayed) == reward

    blind = np.frombuffer(recording.steps[4].observation.rays, np.float32).copy()
    blind[17] = -0.0
    tampered = results_pb2.RecordedStep(observation=types_pb2.Observation(rays=blind.tobytes()))
    found = verify(change_step(recording, 4, tampered)).difference
    assert found is not None
    assert (found.step, found.field) == (4, "observation.rays[17]")

    found = verify(change_step(recording, 3, results_pb2.RecordedStep(action=8))).difference
    assert found is not None
    assert found.step == 3
    assert found.field.startswith("observation.")

    seen = read_episode(camera.path)
    dark = results_pb2.RecordedStep(camera_digest=bytes(16))
    found = verify(change_step(seen, 2, dark)).difference
    assert found is not None
    assert (found.step, found.field) == (2, "camera_digest")


def test_images_drawn_under_other_looks_are_left_out_and_said_so(camera: Played) -> None:
    recording = read_episode(camera.path)
    assert verify(recording).looks is None
    other = change_step(recording, 2, results_pb2.RecordedStep(camera_digest=bytes(16)))
    other = replace(other, header=results_pb2.EpisodeHeader.FromString(b""))
    other.header.CopyFrom(recording.header)
    other.header.versions["looks"] = "1"
    found = verify(other)
    assert found.difference is None
    assert found.steps == len(camera.sizes)
    assert found.looks == ("looks", "1", versions()["looks"])
    # What is no image is compared all the same.
    found = verify(change_step(other, 3, results_pb2.RecordedStep(reward=0.5))).difference
    assert found is not None
    assert (found.step, found.field) == (3, "reward")


def test_an_episode_of_other_rules_of_motion_is_not_said_to_differ(rays: Played) -> None:
    recording = read_episode(rays.path)
    assert verify(recording).motion is None
    other = change_step(recording, 3, results_pb2.RecordedStep(reward=0.5))
    other = replace(other, header=results_pb2.EpisodeHeader.FromString(b""))
    other.header.CopyFrom(recording.header)
    other.header.versions["motion"] = "1"
    gained = 0.0
    for step in other.steps:
        gained += step.reward
    footer = results_pb2.EpisodeFooter(steps=len(other.steps) - 1, episode_return=gained)
    found = verify(replace(other, footer=footer))
    assert found.motion == ("motion", "1", versions()["motion"])
    assert found.difference is None
    assert found.steps == 0
    assert found.comparison is not None
    assert found.comparison.metres == 0.0  # these rules are only called others
    # What the recording itself contradicts is a difference all the same.
    footer.episode_return += 0.25
    assert verify(replace(other, footer=footer)).difference is not None


def test_verification_checks_the_end(rays: Played) -> None:
    recording = read_episode(rays.path)
    footer = results_pb2.EpisodeFooter(steps=len(recording.steps) - 1, episode_return=0.25)
    found = verify(replace(recording, footer=footer)).difference
    assert found is not None
    assert found.field == "footer.episode_return"
    longer = replace(recording, steps=(*recording.steps, recording.steps[-1]))
    found = verify(longer).difference
    assert found is not None
    assert (found.field, found.replayed) == ("step", "no such step")


def test_verification_says_which_versions_differ(rays: Played) -> None:
    recording = read_episode(rays.path)
    recording.header.versions["sapien"] = "0.0.1"
    (difference,) = verify(recording).versions
    assert difference == ("sapien", "0.0.1", versions()["sapien"])


def test_frames_show_an_episode_that_had_no_camera(rays: Played) -> None:
    recording = read_episode(rays.path)
    images = list(camera_images(recording, 24))
    assert len(images) == len(recording.steps)
    assert {image.shape for image in images} == {(24, 24, 3)}
    assert not np.array_equal(images[0], images[-1])


def test_the_wire_refuses_observations_of_another_size() -> None:
    spec = spec_from_proto(spec_to_proto(CAMERA))
    assert spec == CAMERA
    short = types_pb2.Observation(velocity=[0, 0, 0], position=[0, 0, 0], rays=bytes(8))
    with pytest.raises(ValueError, match=r"observation\.camera has 0 bytes where 768 are due"):
        observation_from_proto(short, spec)
    with pytest.raises(ValueError, match=r"observation\.rays has 8 bytes"):
        observation_from_proto(short, spec, camera=False)
    with pytest.raises(ValueError, match=r"observation\.velocity has 0 numbers"):
        observation_from_proto(types_pb2.Observation(), ObservationSpec(rays=None))


def episode_steps(n: int) -> Iterator[Step]:
    for number in range(n):
        seen = Observation(100.0 - number, np.zeros(3, np.float32), np.ones(3, np.float32))
        yield Step(Phase.MID if number else Phase.FIRST, -0.1, None, seen)


def test_the_return_is_the_sum_in_order(tmp_path: Path) -> None:
    recorder = EpisodeRecorder(tmp_path / "a.mcap", header(ObservationSpec(rays=None)))
    total = 0.0
    for number, step in enumerate(episode_steps(50)):
        recorder.step(step, 3 if number else None)
        total += step.reward
    footer = recorder.finish(types_pb2.OUTCOME_VOID)
    assert footer.episode_return == total
    assert footer.steps == recorder.steps == 49
    assert read_episode(tmp_path / "a.mcap").footer == footer


@pytest.mark.parametrize("number", [0, 1, 127, 128, 20_000])
@pytest.mark.parametrize("pixels", [True, False])
@pytest.mark.parametrize("sensors", ["none", "rays", "camera", "both"])
def test_a_step_is_put_together_as_protobuf_does_it(
    tmp_path: Path, number: int, pixels: bool, sensors: str
) -> None:
    rng = np.random.default_rng(number)
    velocity = rng.normal(size=3)
    seen = Observation(
        health=float(number % 2) * 50.3,
        velocity=cast("npt.NDArray[np.float32]", velocity.astype("f4") if pixels else velocity),
        position=rng.normal(size=3).astype(np.float32),
        rays=rng.normal(size=70).astype(np.float32) if sensors in ("rays", "both") else None,
        camera=rng.integers(256, size=(8, 8, 3)).astype(np.uint8)
        if sensors in ("camera", "both")
        else None,
    )
    notes = [Note("là", tokens_in=3, cost=0.5, currency="EUR")] if number > 1 else []
    step = Step(Phase.MID, float(number % 3) - 1.0, EndedBy.DEATH if number > 127 else None, seen)
    action = number % 9 if number else None
    whole = recorded_step(number, step, action, pixels=pixels, notes=notes)
    file = LiveFile(tmp_path / "0-0.mcap", anew=True)
    StepWriter(file, 3, pixels).add(number, step, action, notes)
    file.close()
    made = message(Channel.STEP, number, 3, whole.SerializeToString(deterministic=True))
    assert (tmp_path / "0-0.mcap").read_bytes() == bytes([OPCODE]) + made


def test_recordings_of_another_protocol_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(RecordingError, match=r"of-before\.mcap: .*before the first release"):
        read_episode(FOLDER / "of-before.mcap")
    for protocol, words in ((0, "before the first release"), (PROTOCOL + 1, "a newer version")):
        path = tmp_path / f"{protocol}.mcap"
        monkeypatch.setattr("animalcat.service.recording.writer.PROTOCOL", protocol)
        EpisodeRecorder(path, header(ObservationSpec(rays=None))).close()
        with pytest.raises(RecordingError, match=f"{path.name}: .*{words}"):
            read_episode(path)


def test_the_recording_that_tests_read_is_one_of_today() -> None:
    """Else: `python -m tests.service.recorded`."""
    recording = read_episode(RECORDING)
    assert recording.complete
    assert recording.checked
    assert recording.header.decision.reason == sessions_pb2.REASON_GENERATED
    assert recording.header.decision.made.offer == "navigation-1.7m-1.76m-front"
    found = verify(recording)
    assert (found.motion, found.difference, found.steps) == (None, None, 4)
