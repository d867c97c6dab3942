"""Reads recordings, also those that a crash has cut short."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Final, NamedTuple

from google.protobuf.message import DecodeError
from mcap.exceptions import EndOfFile, InvalidMagic, McapError
from mcap.records import Channel as ChannelRecord
from mcap.records import Message
from mcap.stream_reader import StreamReader

from animalcat.service.recording.channels import Channel
from animalcat.v1 import results_pb2

_MAGIC: Final = b"\x89MCAP0\r\n"
_RECORD: Final = struct.Struct("<BQ")


class RecordingError(ValueError):
    """A file is no recording, or is cut before its header ends."""


@dataclass(frozen=True, slots=True)
class Recording:
    """A recorded episode.

    Attributes:
        header: How to play it again.
        steps: Every step, from the first observation (number 0) without a gap.
        footer: How it ended; None where the recording was cut.
    """

    header: results_pb2.EpisodeHeader
    steps: tuple[results_pb2.RecordedStep, ...]
    footer: results_pb2.EpisodeFooter | None

    @property
    def complete(self) -> bool:
        """Whether the episode was recorded to its end."""
        return self.footer is not None

    @property
    def actions(self) -> bytes:
        """Actions taken, one byte each."""
        return bytes(step.action for step in self.steps[1:])


class LogMessage(NamedTuple):
    """One message of the file, still serialised."""

    channel: Channel
    sequence: int
    log_time: int
    data: bytes


def read_episode(path: Path) -> Recording:
    """Read a recording.

    A file that was cut while its episode played gives every step that was whole before the cut;
    one in the compact form, every step of its whole chunks (it appears by an atomic rename, so no
    crash cuts it).

    Raises:
        RecordingError: There is no whole header.
        OSError: The file cannot be read.
    """
    header: results_pb2.EpisodeHeader | None = None
    footer: results_pb2.EpisodeFooter | None = None
    steps: list[results_pb2.RecordedStep] = []
    damage = ""
    try:
        for message in read_messages(path):
            match message.channel:
                case Channel.HEADER:
                    header = results_pb2.EpisodeHeader.FromString(message.data)
                case Channel.STEP if message.sequence == len(steps):
                    steps.append(results_pb2.RecordedStep.FromString(message.data))
                case Channel.FOOTER if message.sequence == max(0, len(steps) - 1):
                    footer = results_pb2.EpisodeFooter.FromString(message.data)
                case _:
                    break
    except (DecodeError, McapError, ValueError) as error:
        # A power cut may leave anything after the last block that reached the disk.
        damage = f" ({error})"
    if header is None:
        raise RecordingError(f"{path}: not a recording, or cut before its header ends{damage}")
    return Recording(header, tuple(steps), footer)


def read_messages(path: Path) -> Iterator[LogMessage]:
    """The whole messages of a recording's file, in order.

    Raises:
        McapError: The file is damaged here, or is no mcap file.
    """
    data = path.read_bytes()
    if not data.startswith(_MAGIC):
        raise InvalidMagic(data[: len(_MAGIC)])
    topics = {channel.topic: channel for channel in Channel}
    channels: dict[int, Channel] = {}
    try:
        for record in StreamReader(BytesIO(data[: _whole(data)])).records:
            if isinstance(record, ChannelRecord) and record.topic in topics:
                channels[record.id] = topics[record.topic]
            elif isinstance(record, Message) and record.channel_id in channels:
                channel = channels[record.channel_id]
                yield LogMessage(channel, record.sequence, record.log_time, record.data)
    except EndOfFile:
        return


def _whole(data: bytes) -> int:
    """Length of the part that holds whole records: mcap's reader passes a torn one as whole."""
    end = len(_MAGIC)
    while end + _RECORD.size <= len(data):
        opcode, length = _RECORD.unpack_from(data, end)
        if opcode == 0 or end + _RECORD.size + length > len(data):
            return end
        end += _RECORD.size + length
    return end
