"""Check sums of a finished recording: together they cover every byte of the file.

mcap has three kinds: one a chunk, one over the data section up to its end record, one over the
summary and the footer. What is left over, the end record, the sums themselves and the magic at the
end, has one right form each.
"""

from __future__ import annotations

import struct
from typing import Final
from zlib import crc32

from mcap.opcode import Opcode

MAGIC: Final = b"\x89MCAP0\r\n"
"""Begins an mcap file, and ends a finished one."""
_DATA_END: Final = struct.Struct("<BQI")
_FOOTER: Final = struct.Struct("<BQQQI")


class DamageError(ValueError):
    """Part of a file is not as it was written."""


def check_sums(data: bytes) -> bool:
    """Check a finished mcap file as a whole; the sums of its chunks are checked as they are read.

    Args:
        data: All of the file.

    Returns:
        Whether sums cover every byte. Recordings of older versions have none over the bytes of the
        data section that are outside of chunks, and they hold no steps.

    Raises:
        DamageError: A sum is wrong, or a part that every finished file has is not there.
    """
    end = len(data) - len(MAGIC) - _FOOTER.size
    if end < len(MAGIC) or not data.endswith(MAGIC):
        raise DamageError("the file does not end like a finished recording")
    opcode, length, summary, _, footer_sum = _FOOTER.unpack_from(data, end)
    data_end = summary - _DATA_END.size
    if (opcode, length) != (Opcode.FOOTER, _FOOTER.size - 9) or not len(MAGIC) <= data_end < end:
        raise DamageError("the file's footer is damaged")
    view = memoryview(data)
    if footer_sum and crc32(view[summary : len(data) - len(MAGIC) - 4]) != footer_sum:
        raise DamageError("the check sum of the file's summary is wrong")
    opcode, length, data_sum = _DATA_END.unpack_from(data, data_end)
    if (opcode, length) != (Opcode.DATA_END, _DATA_END.size - 9):
        raise DamageError("the end of the file's data is damaged")
    if data_sum and crc32(view[:data_end]) != data_sum:
        raise DamageError("the check sum of the file's data is wrong")
    return bool(data_sum and footer_sum)
