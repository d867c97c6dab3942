"""Writes an episode's recording step by step, and compacts it at the end."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from hashlib import blake2b
from pathlib import Path
from typing import IO, Final

from google.protobuf.message import Message
from mcap.writer import CompressionType, Writer

from animalcat.envs.types import EndedBy, Step
from animalcat.service.model import Note
from animalcat.service.recording.channels import LIBRARY, Channel, log_time
from animalcat.service.recording.reader import Log, LogMessage
from animalcat.v1 import results_pb2, types_pb2
from animalcat.wire import ended_by_to_proto, observation_to_proto

CHUNK_BYTES: Final = 64 * 1024
"""Bytes of a compact recording's chunks before compression."""


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
        self.path = path
        self._pixels = header.pixels
        self._period = header.observation_spec.decision_period
        self._next = 0
        self._return = 0.0
        self._ended_by: EndedBy | None = None
        self._file = path.open("wb")
        self._log = _Log(self._file, chunked=False)
        self._add(Channel.HEADER, header)

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
        message = recorded_step(self._next, step, action, pixels=self._pixels, notes=notes)
        self._next += 1
        self._return += step.reward
        self._ended_by = step.ended_by
        self._add(Channel.STEP, message)

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
        self._add(Channel.FOOTER, footer)
        self.close()
        compact(self.path)
        return footer

    def close(self) -> None:
        """Close the file as it is, without a footer unless `finish` was called."""
        self._file.close()

    def _add(self, channel: Channel, message: Message) -> None:
        data = message.SerializeToString(deterministic=True)
        self._log.add(LogMessage(channel, self.steps, log_time(self.steps, self._period), data))
        self._file.flush()


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
    message = results_pb2.RecordedStep(
        step=number,
        reward=step.reward,
        # The state follows from arena, seed and actions, and would outweigh all the rest.
        observation=observation_to_proto(replace(step.observation, state=None), camera=pixels),
        ended_by=ended_by_to_proto(step.ended_by),
        notes=[types_pb2.Note(**asdict(note)) for note in notes],
        camera_digest=camera_digest(step),
    )
    if action is not None:
        message.action = action
    return message


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
        self._ids = {channel: self._register(channel) for channel in Channel}

    def add(self, message: LogMessage) -> None:
        self._writer.add_message(
            self._ids[message.channel],
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
