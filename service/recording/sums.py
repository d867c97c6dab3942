"""Checks the sums of a finished recording, which together cover every byte of the file.

An mcap file has three kinds of sums: one per chunk, one over the data section up to its end record,
and one over the summary and the footer. The remaining bytes can have only one right value: the end
record, the sums themselves and the magic bytes at the end.
"""

from __future__ import annotations

import struct
from typing import Final
from zlib import crc32

from mcap.opcode import Opcode

MAGIC: Final = b"\x89MCAP0\r\n"
"""Magic bytes that begin an mcap file and end a finished one."""
_DATA_END: Final = struct.Struct("<BQI")
_FOOTER: Final = struct.Struct("<BQQQI")


class DamageError(ValueError):
    """Part of a file is not as it was written."""


def check_sums(data: bytes) -> None:
    """Check a finished mcap file as a whole; the sums of its chunks are checked on reading them.

    Args:
        data: The content of the file.

    Raises:
        DamageError: A sum is wrong, or a part that every finished file has is missing.
    """
    end = len(data) - len(MAGIC) - _FOOTER.size
    if end < len(MAGIC) or not data.endswith(MAGIC):
        raise DamageError("the file does not end like a finished recording")
    opcode, length, summary, _, footer_sum = _FOOTER.unpack_from(data, end)
    data_end = summary - _DATA_END.size
    if (opcode, length) != (Opcode.FOOTER, _FOOTER.size - 9) or not len(MAGIC) <= data_end < end:
        raise DamageError("the file's footer is damaged")
    view = memoryview(data)
    if crc32(view[summary : len(data) - len(MAGIC) - 4]) != footer_sum:
        raise DamageError("the check sum of the file's summary is wrong")
    opcode, length, data_sum = _DATA_END.unpack_from(data, data_end)
    if (opcode, length) != (Opcode.DATA_END, _DATA_END.size - 9):
        raise DamageError("the end of the file's data is damaged")
    if crc32(view[:data_end]) != data_sum:
        raise DamageError("the check sum of the file's data is wrong")
