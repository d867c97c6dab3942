"""Text from strangers, as it may be shown on a terminal."""

from __future__ import annotations

import logging
import re
from typing import Final

STEERS: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"
)
"""A character that controls a terminal, ends a line unseen, or changes the order of others."""


def harmless(text: str) -> str:
    """Return a text in which what steers a terminal is written out, such as ESC as four letters.

    Args:
        text: From somebody else, such as an agent. Ends of lines and tabs stay.
    """
    return STEERS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def harmless_json(text: str) -> str:
    """Return JSON that means the same and steers no terminal."""
    return STEERS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


class PlainFormatter(logging.Formatter):
    """Makes lines of a record that steer no terminal."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as the format says, with its traceback."""
        return harmless(super().format(record))
