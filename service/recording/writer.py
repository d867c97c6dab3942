"""Writes an episode's recording step by step, and compacts it at the end."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from contextlib import closing
from functools import cache
from io import BytesIO
from pathlib import Path

from mcap.writer import Writer

from animalcat.envs.answers import Note
from animalcat.envs.types import EndedBy, Step
from animalcat.machine.files import replace_file
from animalcat.service.recording.channels import LIBRARY, Channel
from animalcat.service.recording.compact import compact_recording
from animalcat.service.recording.encoding import OPCODE, StepWriter, message
from animalcat.service.recording.live import LiveFile
from animalcat.service.recording.reader import Recording, RecordingError, read_episode, whole_length
from animalcat.service.storage.artefacts import ASIDE
from animalcat.v1 import results_pb2, types_pb2
from animalcat.wire.protocol import PROTOCOL
from animalcat.wire.steps import ended_by_to_proto

log = logging.getLogger(__name__)


class EpisodeRecorder:
    """Records one attempt at one episode in one file; not safe across threads.

    During play the file at `path` grows by one complete message per step. The operating system has
    it before `step` returns, so killing the process loses nothing recorded; a power cut may.
    `finish` replaces the file by a compressed form of the same messages, durably and in one atomic
    rename. The bytes depend on the messages alone.

    Where one process plays and another one judges, each does its part by `begin_recording`,
    `StepWriter` and `finish_recording`, as this class does for one.
    """

    def __init__(self, path: Path, header: results_pb2.EpisodeHeader) -> None:
        """Start a recording; see `begin_recording`."""
        self.path = path
        self._period = header.observation_spec.decision_period
        self._next = 0
        self._return = 0.0
        self._ended_by: EndedBy | None = None
        begin_recording(path, header)
        self._file = LiveFile(path, anew=False)
        self._writer = StepWriter(self._file, self._period, header.pixels)

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
        self._writer.add(self._next, step, action, notes)
        self._next += 1
        self._return += step.reward
        self._ended_by = step.ended_by

    def finish(
        self, outcome: int, outcomes: Mapping[str, float] | None = None
    ) -> results_pb2.EpisodeFooter:
        """Close the file and finish it; this takes milliseconds.

        Args:
            outcome: The outcome of the episode, as a number of `types_pb2.Outcome`.
            outcomes: Observed values by source.

        Returns:
            The footer as recorded, with outcomes, return, number of decisions and why it ended.
        """
        self.close()
        footer = results_pb2.EpisodeFooter(
            outcome=types_pb2.Outcome.ValueType(outcome),
            episode_return=self._return,
            steps=self.steps,
            ended_by=ended_by_to_proto(self._ended_by),
            outcomes=outcomes,
        )
        finish_recording(self.path, footer, self._period)
        return footer

    def close(self) -> None:
        """Close the file as it is, without a footer unless `finish` was called."""
        self._file.close()


def begin_recording(path: Path, header: results_pb2.EpisodeHeader) -> None:
    """Begin a file; create its folder, and move an older file of its name aside.

    Args:
        path: The mcap file.
        header: What is needed to play the episode again. The protocol is added to it.

    Raises:
        OSError: The file cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    _keep_other(path)
    preamble, data = _preamble(), _whole(header).SerializeToString(deterministic=True)
    period = header.observation_spec.decision_period
    with closing(LiveFile(path, anew=True)) as file:
        file.add(preamble[0], preamble[1:])
        file.add(OPCODE, message(Channel.HEADER, 0, period, data))


def finish_recording(path: Path, footer: results_pb2.EpisodeFooter, decision_period: int) -> None:
    """Add the footer to a file that nobody writes any more, and compact it durably.

    Args:
        path: The mcap file, with a header and complete steps.
        footer: How the episode ended.
        decision_period: Physics steps per decision.

    Raises:
        OSError: The file cannot be written; it stays as it was, perhaps with the footer.
    """
    data = footer.SerializeToString(deterministic=True)
    with closing(LiveFile(path, anew=False)) as file:
        file.add(OPCODE, message(Channel.FOOTER, footer.steps, decision_period, data))
        with file.content() as content:
            compact = compact_recording(content)
    replace_file(path, compact)


def _keep_other(path: Path) -> None:
    """Move a file of the same name aside, as a database that was lost knew it: it is kept."""
    k = 1
    while path.exists():
        aside = path.with_name(f"{path.name}.{ASIDE}-{k}")
        if not aside.exists():
            log.error("%s is there already, and is now %s", path, aside.name)
            path.rename(aside)
        k += 1


def left_behind(path: Path) -> Recording:
    """Read a recording whose writer died, and cut off of the file what is incomplete.

    Raises:
        RecordingError: There is no complete header.
        OSError: The file cannot be read or written.
    """
    recording = read_episode(path)
    os.truncate(path, whole_length(path.read_bytes()))
    return recording


def read_unfinished(path: Path, header: results_pb2.EpisodeHeader) -> Recording | None:
    """Read a recording that is to go on, as `left_behind` does.

    Args:
        path: The mcap file.
        header: The header that it would get now.

    Returns:
        The recording; None if it cannot go on: it is over, damaged, without a step, or was begun
        with another header, as by another version.
    """
    try:
        recording = left_behind(path)
    except (RecordingError, OSError):
        return None
    last = recording.steps[-1].ended_by if recording.steps else None
    open_ = last == types_pb2.ENDED_BY_UNSPECIFIED and recording.footer is None
    same = recording.header == _whole(header) and not recording.damage
    return recording if open_ and same else None


def _whole(header: results_pb2.EpisodeHeader) -> results_pb2.EpisodeHeader:
    whole = results_pb2.EpisodeHeader()
    whole.CopyFrom(header)
    whole.protocol = PROTOCOL
    return whole


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
