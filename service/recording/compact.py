"""Compresses a finished recording: the same records in chunks, with sums and an index.

The bytes are those that mcap's own writer makes of the same messages. That writer takes every
message apart and puts it together again, which takes longer than all else that recording does. Here
the records stay as they are, and only where each one begins is looked up.
"""

from __future__ import annotations

import struct
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate
from typing import Final, NamedTuple
from zlib import crc32

import zstandard
from mcap.data_stream import RecordBuilder
from mcap.opcode import Opcode
from mcap.records import Chunk, ChunkIndex, DataEnd, Footer, McapRecord, Statistics, SummaryOffset

from animalcat.service.recording.sums import MAGIC, DamageError

CHUNK_BYTES: Final = 64 * 1024
"""Bytes of a compact recording's chunks before compression."""

_RECORD: Final = struct.Struct("<BQ")
"""Beginning of a record: opcode, length of the rest."""
_MESSAGE: Final = struct.Struct("<BQHIQ")
"""Beginning of a message: the same, channel, sequence, log time."""
_INDEX: Final = struct.Struct("<BQHI")
"""Beginning of the index of a channel's messages in a chunk: the same, channel, length in bytes."""
_FOOTER: Final = struct.Struct("<BQQQ")
"""The footer up to its sum: the same, where the summary and its offsets begin."""


_of_thread = threading.local()
"""Keeps a compressor, as to make one takes as long as to compress three chunks."""


class _Part(NamedTuple):
    """The records of one chunk, and by channel the log time and place of each of its messages."""

    records: bytes | memoryview
    places: dict[int, list[int]]

    @property
    def times(self) -> tuple[int, int]:
        """Log time of the first message and of the last one, as time never goes back."""
        return min(of[0] for of in self.places.values()), max(of[-2] for of in self.places.values())


def compact_recording(live: bytes | memoryview) -> bytes:
    """Return the compressed form of a recording.

    Args:
        live: The file as it grew during play: mcap's header, schemas, channels and messages.

    Raises:
        DamageError: It does not end with a whole record.
    """
    defined: dict[int, list[bytes]] = {Opcode.SCHEMA: [], Opcode.CHANNEL: []}
    try:
        begin = first = _end(live, len(MAGIC))
        while live[first] in defined:
            start, first = first, _end(live, first)
            defined[live[start]].append(bytes(live[start:first]))
        parts = list(_parts(live, begin, first))
    except (IndexError, struct.error) as error:
        raise DamageError("the file does not end with a whole record") from error
    file = bytearray(live[:begin])
    if not hasattr(_of_thread, "compressor"):
        _of_thread.compressor = zstandard.ZstdCompressor()
    chunks = [_add_chunk(file, part, _of_thread.compressor.compress) for part in parts]
    file += _write_bytes([DataEnd(crc32(file))])
    return bytes(file + _summary(len(file), defined, parts, chunks) + MAGIC)


def _end(live: bytes | memoryview, start: int) -> int:
    """Where the record that starts there ends."""
    _, length = _RECORD.unpack_from(live, start)
    return start + _RECORD.size + length


def _parts(live: bytes | memoryview, start: int, place: int) -> Iterator[_Part]:
    """Yield the records from `start` on, of which the first message is at `place`.

    Raises:
        DamageError: A record is of another kind, or not whole.
        struct.error: The last record is not whole.
    """
    unpack, opcode_of_message, before = _MESSAGE.unpack_from, int(Opcode.MESSAGE), _RECORD.size
    index: dict[int, list[int]] = {}
    size, full = len(live), start + CHUNK_BYTES
    latest, places = -1, list[int]()
    while place < size:
        opcode, length, channel, _, time = unpack(live, place)
        if opcode != opcode_of_message:
            raise DamageError(f"there is a record of kind {opcode} among the messages")
        if channel != latest:
            latest, places = channel, index.setdefault(channel, [])
        places += (time, place - start)
        place += before + length
        if place > full:
            yield _Part(live[start:place], index)
            start, index, full, latest = place, {}, place + CHUNK_BYTES, -1
    if place > size:
        raise DamageError("the file does not end with a whole record")
    if index:
        yield _Part(live[start:], index)


def _add_chunk(
    file: bytearray, part: _Part, compress: Callable[[bytes | memoryview], bytes]
) -> ChunkIndex:
    """Add a chunk and the indexes of its messages, and return what the summary says of it."""
    began, ended = part.times
    compressed = compress(part.records)
    size = len(part.records)
    start = len(file)
    file += _write_bytes([Chunk("zstd", compressed, ended, began, crc32(part.records), size)])
    indexes = len(file)
    offsets: dict[int, int] = {}
    for channel, index in part.places.items():
        offsets[channel] = len(file)
        length = 8 * len(index)
        file += _INDEX.pack(Opcode.MESSAGE_INDEX, 6 + length, channel, length)
        file += struct.pack(f"<{len(index)}Q", *index)
    return ChunkIndex(
        chunk_length=indexes - start,
        chunk_start_offset=start,
        compression="zstd",
        compressed_size=len(compressed),
        message_end_time=ended,
        message_index_length=len(file) - indexes,
        message_index_offsets=offsets,
        message_start_time=began,
        uncompressed_size=size,
    )


def _summary(
    start: int, defined: dict[int, list[bytes]], parts: list[_Part], chunks: list[ChunkIndex]
) -> bytes:
    """What follows the data, which ends at `start`: the summary and the footer."""
    counts: Counter[int] = Counter()
    for part in parts:
        counts.update({channel: len(index) // 2 for channel, index in part.places.items()})
    times = [time for part in parts for time in part.times] or [0]
    statistics = Statistics(
        attachment_count=0,
        channel_count=len(defined[Opcode.CHANNEL]),
        channel_message_counts=counts,
        chunk_count=len(chunks),
        message_count=counts.total(),
        message_end_time=max(times),
        message_start_time=min(times),
        metadata_count=0,
        schema_count=len(defined[Opcode.SCHEMA]),
    )
    groups = {
        **{opcode: b"".join(records) for opcode, records in defined.items()},
        Opcode.STATISTICS: _write_bytes([statistics]),
        Opcode.CHUNK_INDEX: _write_bytes(chunks),
        Opcode.ATTACHMENT_INDEX: b"",
        Opcode.METADATA_INDEX: b"",
    }
    summary = b"".join(groups.values())
    offsets = start + len(summary)
    starts = accumulate(map(len, groups.values()), initial=start)
    summary += _write_bytes(
        SummaryOffset(opcode, place, len(group))
        for (opcode, group), place in zip(groups.items(), starts, strict=False)
    )
    footer = _FOOTER.pack(Opcode.FOOTER, 20, start, offsets)
    return summary + _write_bytes([Footer(start, offsets, crc32(footer, crc32(summary)))])


def _write_bytes(records: Iterable[McapRecord]) -> bytes:
    builder = RecordBuilder()
    for record in records:
        record.write(builder)
    return builder.end()
