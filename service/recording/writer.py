"""Writes an episode's recording step by step, and compacts it at the end."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

from mcap.writer import Writer

from animalcat.envs.answers import Note
from animalcat.envs.types import EndedBy, Step
from animalcat.protocol import PROTOCOL
from animalcat.service.recording.channels import LIBRARY, Channel
from animalcat.service.recording.compact import compacted
from animalcat.service.recording.encoding import OPCODE, StepWriter, message
from animalcat.service.recording.live import LiveFile
from animalcat.service.recording.reader import read_episode, whole_length
from animalcat.service.storage.artefacts import ASIDE
from animalcat.v1 import results_pb2, types_pb2
from animalcat.wire import ended_by_from_proto, ended_by_to_proto

log = logging.getLogger(__name__)


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
    it before `step` returns, so killing the process loses nothing recorded; a power cut may.
    `finish` replaces the file by a compressed form of the same messages, durably and in one atomic
    rename. The bytes depend on the messages alone.
    """

    def __init__(self, path: Path, header: results_pb2.EpisodeHeader) -> None:
        """Start a recording; create its folder, and move an older file of its name aside.

        Args:
            path: The mcap file.
            header: What is needed to play the episode again. The protocol is added to it.

        Raises:
            OSError: The file cannot be written.
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        period = header.observation_spec.decision_period
        _keep_other(path)
        begun = Unfinished(str(path), header.pixels, period, 0, 0.0, 0)
        self._begin(begun, LiveFile(path, anew=True))
        preamble = _preamble()
        self._file.add(preamble[0], preamble[1:])
        whole = results_pb2.EpisodeHeader()
        whole.CopyFrom(header)
        whole.protocol = PROTOCOL
        self._add(Channel.HEADER, whole.SerializeToString(deterministic=True))

    @classmethod
    def resume(cls, unfinished: Unfinished) -> EpisodeRecorder:
        """Go on with a recording that another process has begun and leaves alone.

        Raises:
            OSError: The file cannot be written.
        """
        self = cls.__new__(cls)
        self._begin(unfinished, LiveFile(Path(unfinished.path), anew=False))
        return self

    def _begin(self, unfinished: Unfinished, file: LiveFile) -> None:
        self.path = Path(unfinished.path)
        self._pixels = unfinished.pixels
        self._period = unfinished.period
        self._next = unfinished.steps
        self._return = unfinished.episode_return
        self._ended_by = EndedBy.of(unfinished.ended_by)
        self._file = file
        self._steps = StepWriter(file, self._period, self._pixels)

    def hand_over(self) -> Unfinished:
        """Close the file as it is, for another process to go on with it by `resume`.

        Returns:
            Where the recording stands. This recorder only goes on by `go_on`.
        """
        self.close()
        ended_by = self._ended_by.number if self._ended_by else 0
        return Unfinished(
            str(self.path), self._pixels, self._period, self._next, self._return, ended_by
        )

    def go_on(self, unfinished: Unfinished) -> None:
        """Go on from where another process has left the recording.

        Raises:
            OSError: The file cannot be written.
        """
        self.close()
        self._begin(unfinished, LiveFile(Path(unfinished.path), anew=False))

    @property
    def steps(self) -> int:
        """Number of decisions recorded so far."""
        return max(0, self._next - 1)

    @property
    def episode_return(self) -> float:
        """Sum of the rewards recorded so far."""
        return self._return

    def step(self, step: Step, action: int | None, notes: Sequence[Note] = ()) -> None:
        """Record the result of `load` (action None) or of the next decision.

        Args:
            step: The step that the environment returned.
            action: The action that led to it, 0 to 8.
            notes: The agent's notes since the previous step.
        """
        number = self._next
        self._steps.add(number, step, action, notes)
        self._next = number + 1
        self._return += step.reward
        self._ended_by = step.ended_by

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
        with self._file.content() as content:
            compact = compacted(content)
        self.close()
        _replace(self.path, compact)
        return footer

    def close(self) -> None:
        """Close the file as it is, without a footer unless `finish` was called."""
        self._file.close()

    def _add(self, channel: Channel, data: bytes) -> None:
        self._file.add(OPCODE, message(channel, self.steps, self._period, data))


def _keep_other(path: Path) -> None:
    """Move a file of the same name aside, as a database that was lost knew it: it is kept."""
    k = 1
    while path.exists():
        aside = path.with_name(f"{path.name}.{ASIDE}-{k}")
        if not aside.exists():
            log.error("%s is there already, and is now %s", path, aside.name)
            path.rename(aside)
        k += 1


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
        ended_by.number if ended_by else 0,
    )


def _replace(path: Path, content: bytes) -> None:
    """Give a file another content: durably, and either completely or not at all.

    Raises:
        OSError: It cannot be written, for example because the disk is full; it stays as it was.
    """
    temporary = path.with_suffix(".tmp")
    with temporary.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


@cache
def _preamble() -> bytes:
    """What a recording begins with: mcap's header, the schemas and the channels."""
    file = BytesIO()
    writer = Writer(file, use_chunking=False)
    writer.start(profile="", library=LIBRARY)
    for channel in Channel:
        schema = writer.register_schema(channel.schema_name, "protobuf", channel.schema())
        number = writer.register_channel(channel.topic, "protobuf", schema)
        assert number == channel.number
    # The writer keeps the schemas back until the first message, which is cut off again.
    writer.add_message(Channel.HEADER.number, 0, b"", 0)
    return file.getvalue()[: -len(message(Channel.HEADER, 0, 0, b"")) - 1]
