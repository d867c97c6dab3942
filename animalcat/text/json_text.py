"""Reads JSON of others, once it is known how deep it is."""

from __future__ import annotations

import json
import re
from typing import Any, Final

MAX_DEPTH: Final = 64
"""Most lists and objects within each other; an export has 10."""
_PARTS: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[{\]}]', re.DOTALL)
"""A text, which may have brackets in it, or a bracket."""


def read_json(content: str | bytes) -> Any:
    """Read a text as JSON.

    Raises:
        ValueError: It is no JSON, or nested too deep.
    """
    text = content.decode() if isinstance(content, bytes) else content
    depth = 0
    for part in _PARTS.finditer(text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(part[0], 0)
        if depth > MAX_DEPTH:
            raise ValueError(f"nested deeper than {MAX_DEPTH} levels")
    return json.loads(text)
