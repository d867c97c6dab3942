"""Reads recordings, including those that a crash cut short or a disk damaged."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Final, NamedTuple

import zstandard
from google.protobuf.empty_pb2 import Empty
from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet
from mcap.exceptions import EndOfFile
from mcap.records import Channel as ChannelRecord
from mcap.records import Chunk, McapRecord, Message
from mcap.stream_reader import StreamReader, breakup_chunk

from animalcat.service.recording.channels import Channel
from animalcat.service.recording.sums import MAGIC, DamageError, check_sums
from animalcat.v1 import results_pb2
from animalcat.wire.protocol import PROTOCOL, version

_RECORD: Final = struct.Struct("<BQ")
_VARINT: Final = 0
"""How protobuf writes whole numbers, among its types of fields."""
MOST_BYTES: Final = 2 << 30
"""Most bytes that the chunks of a recording may unpack to."""


class RecordingError(ValueError):
    """A file is not a recording, or is cut or damaged before its header ends."""


@dataclass(frozen=True, slots=True)
class Recording:
    """A recorded episode.

    Attributes:
        header: What is needed to play the episode again.
        steps: Every step without a gap, from the first observation (number 0); of a damaged file,
            the steps that are known to be right.
        footer: How the episode ended; None if the recording was cut, or this part is damaged.
        damage: What is wrong with the file; empty if nothing is, or if it was merely cut while the
            episode played.
        checked: Whether check sums cover every byte, as they do once the episode has ended. None if
            the recording was not read from a file.
    """

    header: results_pb2.EpisodeHeader
    steps: tuple[results_pb2.RecordedStep, ...]
    footer: results_pb2.EpisodeFooter | None
    damage: str = ""
    checked: bool | None = None

    @property
    def complete(self) -> bool:
        """Whether the whole episode is there, undamaged."""
        return self.footer is not None and not self.damage

    @property
    def actions(self) -> bytes:
        """The actions taken, one per byte."""
        return bytes(step.action for step in self.steps[1:])


class LogMessage(NamedTuple):
    """A message of the file, still serialised."""

    channel: Channel
    sequence: int
    log_time: int
    data: bytes


def read_episode(path: Path) -> Recording:
    """Read a recording.

    A file that was cut gives every step that was complete before the cut. A compact file gives
    every step of its complete chunks; no crash cuts it, because it appears by an atomic rename. A
    damaged file gives what is known to be right, and says what is wrong.

    Args:
        path: The mcap file.

    Raises:
        RecordingError: There is no complete header, or it is one of another protocol.
        OSError: The file cannot be read.
    """
    header: results_pb2.EpisodeHeader | None = None
    footer: results_pb2.EpisodeFooter | None = None
    steps: list[results_pb2.RecordedStep] = []
    log = Log(path.read_bytes())
    try:
        for message in log.messages():
            match message.channel:
                case Channel.HEADER if header is None:
                    header = _header(message.data, path)
                case Channel.STEP if message.sequence == len(steps):
                    steps.append(results_pb2.RecordedStep.FromString(message.data))
                case Channel.FOOTER if message.sequence == max(0, len(steps) - 1):
                    footer = results_pb2.EpisodeFooter.FromString(message.data)
                case _:
                    raise DamageError(f"the message after {len(steps)} steps is not the next one")
    except (DecodeError, DamageError) as error:
        # This may also be a power cut, which can leave anything after the last block that was
        # written.
        damage = str(error)
    else:
        damage = ""
    if header is None:
        why = f" ({damage})" if damage else ""
        raise RecordingError(f"{path}: not a recording, or cut before its header ends{why}")
    return Recording(header, tuple(steps), footer, damage, log.checked)


def _header(data: bytes, path: Path) -> results_pb2.EpisodeHeader:
    """Parse a header, once its protocol is known to be this one.

    Raises:
        DecodeError: It is damaged.
        RecordingError: It is one of another protocol.
    """
    protocol = _protocol(data)
    if protocol > PROTOCOL:
        raise RecordingError(
            f"{path}: a newer version recorded it, by protocol {protocol}; this version, "
            f"animalcat {version()}, reads up to {PROTOCOL}. Update it: "
            "install a newer animalcat"
        )
    if not protocol:
        raise RecordingError(
            f"{path}: it was recorded before the first release of animalcat, whose recordings are "
            "no longer read. Record the episode again"
        )
    return results_pb2.EpisodeHeader.FromString(data)


def _protocol(data: bytes) -> int:
    """Number of the protocol of a header; 0 where it says none.

    It is read alone, since the other fields may mean something else under another protocol.
    """
    number = results_pb2.EpisodeHeader.PROTOCOL_FIELD_NUMBER
    for field in UnknownFieldSet(Empty.FromString(data)):
        if field.field_number == number and field.wire_type == _VARINT:
            return int(field.data)
    return 0


class Log:
    """The messages of a recording's file.

    Attributes:
        checked: Whether check sums cover every byte; known once the messages have been read.
    """

    def __init__(self, data: bytes) -> None:
        """Take the content of the file."""
        self._data = data
        self._room = MOST_BYTES
        self.checked = False

    def messages(self) -> Iterator[LogMessage]:
        """Yield the complete messages in order.

        Raises:
            DamageError: The file is damaged, or is not an mcap file. If it is compact, the messages
                before the damage are right.
        """
        topics = {channel.topic: channel for channel in Channel}
        channels: dict[int, Channel] = {}
        for record in self._records():
            if isinstance(record, ChannelRecord) and record.topic in topics:
                channels[record.id] = topics[record.topic]
            elif isinstance(record, Message) and record.channel_id in channels:
                channel = channels[record.channel_id]
                yield LogMessage(channel, record.sequence, record.log_time, record.data)

    def _records(self) -> Iterator[McapRecord]:
        """Yield the complete records, including those in chunks.

        Only compact files have chunks. They are written in one go, so a wrong or missing sum of the
        whole file is damage. The sum of each chunk still tells which chunks are right.
        """
        damage = ""
        compact = False
        for record in self._outer_records():
            if not isinstance(record, Chunk):
                yield record
                continue
            if not compact:
                compact = True
                try:
                    check_sums(self._data)
                    self.checked = True
                except DamageError as error:
                    damage = str(error)
            if record.uncompressed_crc == 0:
                raise DamageError("a chunk has lost its check sum")
            try:
                self._count(record)
                content = breakup_chunk(record, validate_crc=True)
            except Exception as error:  # see _outer_records
                raise DamageError(f"a chunk is damaged: {error!r}") from error
            yield from content
        if damage:
            raise DamageError(damage)

    def _count(self, chunk: Chunk) -> None:
        """Count what a chunk unpacks to before it is unpacked.

        Raises:
            ValueError: It is too much, or not what the chunk says, or packed as no recording is.
        """
        size = len(chunk.data)
        if chunk.compression:
            size = zstandard.frame_content_size(chunk.data)
        if size != chunk.uncompressed_size or chunk.compression not in ("", "zstd"):
            raise ValueError("it does not say what it unpacks to")
        self._room -= size
        if self._room < 0:
            raise ValueError(f"a recording unpacks to {MOST_BYTES >> 30} GiB at most")

    def _outer_records(self) -> Iterator[McapRecord]:
        if not self._data.startswith(MAGIC):
            raise DamageError("it does not begin like an mcap file")
        whole = BytesIO(self._data[: whole_length(self._data)])
        records = StreamReader(whole, emit_chunks=True).records
        while True:
            try:
                record = next(records, None)
            except EndOfFile:  # cut between two records
                return
            except Exception as error:  # at damage, the decoders raise errors of any type
                raise DamageError(f"a record is damaged: {error!r}") from error
            if record is None:
                return
            yield record


def whole_length(data: bytes) -> int:
    """Return the length of the complete records, because mcap's reader accepts a torn one."""
    end = len(MAGIC)
    while end + _RECORD.size <= len(data):
        opcode, length = _RECORD.unpack_from(data, end)
        if opcode == 0 or end + _RECORD.size + length > len(data):
            return end
        end += _RECORD.size + length
    return end
