"""Writes an episode's recording step by step, and compacts it at the end."""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cache, lru_cache
from hashlib import blake2b
from io import BytesIO, FileIO
from pathlib import Path
from typing import IO, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from mcap.opcode import Opcode
from mcap.writer import CompressionType, Writer

from animalcat.envs.types import EndedBy, Step
from animalcat.service.model import Note
from animalcat.service.recording.channels import LIBRARY, Channel, log_time
from animalcat.service.recording.reader import Log, LogMessage, read_episode, whole_length
from animalcat.v1 import results_pb2, types_pb2
from animalcat.wire import ended_by_from_proto, ended_by_to_proto, observation_to_proto

CHUNK_BYTES: Final = 64 * 1024
"""Bytes of a compact recording's chunks before compression."""

_MESSAGE: Final = struct.Struct("<BQHIQQ")
"""Beginning of an mcap message: opcode, length of the rest, channel, sequence, both times."""
_OPCODE: Final = int(Opcode.MESSAGE)
_SCALAR: Final = struct.Struct("<Bf")
"""A field of protobuf that holds a float32: tag and value."""
_VECTORS: Final = struct.Struct("2s12s2s12s")
"""Velocity and position in protobuf: each a tag with a length, and three float32."""
_FLOAT: Final = np.dtype(np.float32)


class Unfinished(NamedTuple):
    """Where a recording stands, for another process that goes on with it.

    Attributes:
        path: The file.
        pixels: Whether it keeps the camera's images.
        period: Physics steps per decision.
        steps: Number of steps recorded, counting the first observation.
        episode_return: Sum of the rewards.
        ended_by: Why the episode ended, as a number of `EndedBy`; 0 if it has not.
    """

    path: str
    pixels: bool
    period: int
    steps: int
    episode_return: float
    ended_by: int


class EpisodeRecorder:
    """Records one attempt at one episode in one file; not safe across threads.

    During play the file at `path` grows by one complete message per step. The operating system has
    it before `step` returns, so killing the process loses nothing recorded. `finish` replaces the
    file by a compressed form of the same messages in one atomic rename. The bytes depend on the
    messages alone.
    """

    def __init__(self, path: Path, header: results_pb2.EpisodeHeader) -> None:
        """Start a recording; create its folder, and replace an older file of the same attempt.

        Args:
            path: The mcap file.
            header: What is needed to play the episode again.

        Raises:
            OSError: The file cannot be written.
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        period = header.observation_spec.decision_period
        begun = Unfinished(str(path), header.pixels, period, 0, 0.0, 0)
        self._begin(begun, FileIO(path, "w"))
        self._file.write(_preamble())
        self._add(Channel.HEADER, header.SerializeToString(deterministic=True))

    @classmethod
    def resume(cls, unfinished: Unfinished) -> EpisodeRecorder:
        """Go on with a recording that another process has begun and leaves alone.

        Raises:
            OSError: The file cannot be written.
        """
        self = cls.__new__(cls)
        self._begin(unfinished, FileIO(unfinished.path, "a"))
        return self

    def _begin(self, unfinished: Unfinished, file: FileIO) -> None:
        self.path = Path(unfinished.path)
        self._pixels = unfinished.pixels
        self._period = unfinished.period
        self._next = unfinished.steps
        self._return = unfinished.episode_return
        self._ended_by = EndedBy(unfinished.ended_by) if unfinished.ended_by else None
        self._file = file

    @property
    def unfinished(self) -> Unfinished:
        """Where the recording stands, for `resume` or `go_on` in another process."""
        ended_by = int(self._ended_by or 0)
        return Unfinished(
            str(self.path), self._pixels, self._period, self._next, self._return, ended_by
        )

    def go_on(self, unfinished: Unfinished) -> None:
        """Go on from where another process has left the recording.

        Raises:
            OSError: The file cannot be written.
        """
        self.close()
        self._begin(unfinished, FileIO(unfinished.path, "a"))

    @property
    def steps(self) -> int:
        """Number of decisions recorded so far."""
        return max(0, self._next - 1)

    def step(self, step: Step, action: int | None, notes: Sequence[Note] = ()) -> None:
        """Record the result of `load` (action None) or of the next decision.

        Args:
            step: The step that the environment returned.
            action: The action that led to it, 0 to 8.
            notes: The agent's notes since the previous step.
        """
        data = step_bytes(self._next, step, action, pixels=self._pixels, notes=notes)
        self._next += 1
        self._return += step.reward
        self._ended_by = step.ended_by
        self._add(Channel.STEP, data)

    def finish(
        self, outcome: int, outcomes: Mapping[str, float] | None = None
    ) -> results_pb2.EpisodeFooter:
        """Write the footer, compact the file durably and close it; this takes milliseconds.

        Args:
            outcome: The outcome of the episode, as a number of `types_pb2.Outcome`.
            outcomes: Observed values by source.

        Returns:
            The footer as recorded, with outcomes, return, number of decisions and why it ended.
        """
        footer = results_pb2.EpisodeFooter(
            outcome=types_pb2.Outcome.ValueType(outcome),
            episode_return=self._return,
            steps=self.steps,
            ended_by=ended_by_to_proto(self._ended_by),
            outcomes=outcomes,
        )
        self._add(Channel.FOOTER, footer.SerializeToString(deterministic=True))
        self.close()
        compact(self.path)
        return footer

    def close(self) -> None:
        """Close the file as it is, without a footer unless `finish` was called."""
        self._file.close()

    def _add(self, channel: Channel, data: bytes) -> None:
        number = self.steps
        time = log_time(number, self._period)
        length = _MESSAGE.size - 9 + len(data)
        about = (_channel_ids()[channel], number, time, time)
        record = _MESSAGE.pack(_OPCODE, length, *about) + data
        # Nothing is kept back in a buffer, so the operating system has the step when this returns.
        while (written := self._file.write(record)) < len(record):
            record = record[written:]  # of a disk that is full, the next attempt says so


def left_behind(path: Path) -> Unfinished:
    """Return where a recording stands whose writer died, after cutting off what is incomplete.

    The return is the sum of the rewards as recorded, which are rounded to float32.

    Raises:
        RecordingError: There is no complete header.
        OSError: The file cannot be read or written.
    """
    recording = read_episode(path)
    os.truncate(path, whole_length(path.read_bytes()))
    steps = recording.steps
    ended_by = ended_by_from_proto(steps[-1].ended_by) if steps else None
    return Unfinished(
        str(path),
        recording.header.pixels,
        recording.header.observation_spec.decision_period,
        len(steps),
        sum(step.reward for step in steps),
        int(ended_by or 0),
    )


def compact(path: Path) -> None:
    """Rewrite a recording in compressed form: durably, and either completely or not at all.

    Raises:
        DamageError: The file is damaged or not a recording; it stays as it was.
        OSError: The file cannot be written, for example because the disk is full; it stays as it
            was.
    """
    temporary = path.with_suffix(".tmp")
    with temporary.open("wb") as file:
        log = _Log(file, chunked=True)
        for message in Log(path.read_bytes()).messages():
            log.add(message)
        log.end()
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def recorded_step(
    number: int, step: Step, action: int | None, *, pixels: bool, notes: Sequence[Note] = ()
) -> results_pb2.RecordedStep:
    """Return the recorded form of a step.

    Args:
        number: Number of decisions taken so far.
        step: The step that the environment returned.
        action: The action that led to it; None at number 0.
        pixels: Whether to keep the camera's image; its digest is always kept.
        notes: The agent's notes since the previous step.
    """
    seen = step.observation
    if seen.state is not None:
        # The state follows from arena, seed and actions, and would outweigh all the rest.
        seen = seen._replace(state=None)
    message = results_pb2.RecordedStep(
        step=number,
        action=action,  # pyright: ignore[reportArgumentType]  None: not set
        reward=step.reward,
        observation=observation_to_proto(seen, camera=pixels),
        camera_digest=camera_digest(step),
    )
    if step.ended_by is not None:
        message.ended_by = ended_by_to_proto(step.ended_by)
    if notes:
        message.notes.extend(types_pb2.Note(**asdict(note)) for note in notes)
    return message


def step_bytes(
    number: int, step: Step, action: int | None, *, pixels: bool, notes: Sequence[Note] = ()
) -> bytes:
    """Return what `recorded_step` serialises to, in half the time.

    This is the one message that is written while an agent waits, so it is put together here field
    by field, in the order of their numbers, as protobuf does.

    Args:
        number: As for `recorded_step`, as are all others.
        step: The step.
        action: The action.
        pixels: Whether to keep the image.
        notes: The notes.
    """
    seen = step.observation
    rays, camera = seen.rays, seen.camera
    perceived = b"" if camera is None or not pixels else _field(0x0A, camera.tobytes())
    if rays is not None:
        perceived += _field(0x12, rays.tobytes())
    if seen.health:
        perceived += _SCALAR.pack(0x1D, seen.health)
    perceived += _VECTORS.pack(
        b"\x22\x0c", _vector(seen.velocity), b"\x2a\x0c", _vector(seen.position)
    )
    data = b"\x08" + _varint(number) if number else b""
    if action is not None:
        data += b"\x10" + _varint(action)
    if step.reward:
        data += _SCALAR.pack(0x1D, step.reward)
    data += _begun(0x22, len(perceived)) + perceived
    if step.ended_by is not None:
        data += b"\x28" + _varint(ended_by_to_proto(step.ended_by))
    if camera is not None:
        data += _field(0x3A, camera_digest(step))
    if notes:  # parts of a message that follow each other are one message
        told = (types_pb2.Note(**asdict(note)) for note in notes)
        data += results_pb2.RecordedStep(notes=told).SerializeToString(deterministic=True)
    return data


def _vector(numbers: npt.NDArray[np.float32]) -> bytes:
    """Three numbers, also of a backend that gives them with more digits."""
    if numbers.dtype is not _FLOAT:
        numbers = numbers.astype(np.float32)
    return numbers.tobytes()


def _field(tag: int, content: bytes) -> bytes:
    """A field of bytes, which protobuf leaves out where they are none."""
    return _begun(tag, len(content)) + content if content else b""


@lru_cache(maxsize=1024)
def _begun(tag: int, length: int) -> bytes:
    return bytes((tag,)) + _varint(length)


def _varint(number: int) -> bytes:
    """A whole number as protobuf writes it: seven bits a byte, the lowest first."""
    if number < 0x80:
        return bytes((number,))
    return bytes((number & 0x7F | 0x80,)) + _varint(number >> 7)


def camera_digest(step: Step) -> bytes:
    """Return the BLAKE2b digest (16 bytes) of a step's camera image; empty without a camera."""
    image = step.observation.camera
    return b"" if image is None else blake2b(image.tobytes(), digest_size=16).digest()


class _Log:
    """The recording's channels in one mcap file."""

    def __init__(self, file: IO[bytes], *, chunked: bool) -> None:
        self._writer = Writer(
            file,
            CHUNK_BYTES,
            compression=CompressionType.ZSTD,
            use_chunking=chunked,
            enable_data_crcs=chunked,  # only the form with chunks has an end to keep the sum in
        )
        self._writer.start(profile="", library=LIBRARY)
        self.ids = {channel: self._register(channel) for channel in Channel}

    def add(self, message: LogMessage) -> None:
        self._writer.add_message(
            self.ids[message.channel],
            message.log_time,
            message.data,
            publish_time=message.log_time,
            sequence=message.sequence,
        )

    def end(self) -> None:
        self._writer.finish()

    def _register(self, channel: Channel) -> int:
        schema = self._writer.register_schema(channel.schema_name, "protobuf", channel.schema())
        return self._writer.register_channel(channel.topic, "protobuf", schema)


@cache
def _preamble() -> bytes:
    """What a recording begins with during play: mcap's header, the schemas and the channels."""
    file = BytesIO()
    # The writer keeps the schemas back until the first message, which is cut off again.
    _Log(file, chunked=False).add(LogMessage(Channel.HEADER, 0, 0, b""))
    return file.getvalue()[: -_MESSAGE.size]


@cache
def _channel_ids() -> dict[Channel, int]:
    """The number of each channel in a file."""
    return _Log(BytesIO(), chunked=False).ids
