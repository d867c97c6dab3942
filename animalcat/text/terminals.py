"""Text from strangers, as it may be shown on a terminal."""

from __future__ import annotations

import unicodedata
from typing import Final

_LAYOUT: Final = frozenset(
    map(chr, (0x61C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)))
)
"""Characters that change the order of others."""


def harmless(text: str) -> str:
    """Return a text in which what steers a terminal is written out, such as ESC as four letters.

    Args:
        text: From somebody else, such as an agent. Ends of lines and tabs stay.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        one
        if one in "\n\t" or not (unicodedata.category(one) in ("Cc", "Zl", "Zp") or one in _LAYOUT)
        else one.encode("unicode_escape").decode()
        for one in text
    )
