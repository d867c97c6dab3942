"""Writes the log of a server, for people or as one JSON object per line.

Records know which session and which episode they are about: whoever works on one says so by
`about`, and what it logs, also in threads that it starts, carries the names.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, Final, Literal

from animalcat.text.terminals import PlainFormatter, harmless_json

Style = Literal["plain", "json"]
Level = Literal["", "debug", "info", "warning", "error"]

_ABOUT: Final[ContextVar[dict[str, Any] | None]] = ContextVar("animalcat_log_about", default=None)


@contextmanager
def about(**fields: Any) -> Generator[None]:
    """Add fields, such as session and episode, to all records that are logged in the block."""
    token = _ABOUT.set({**(_ABOUT.get() or {}), **fields})
    try:
        yield
    finally:
        _ABOUT.reset(token)


def tell(**fields: Any) -> None:
    """Add fields to all records that the present task logs from now on, and what it starts."""
    _ABOUT.set({**(_ABOUT.get() or {}), **fields})


class JsonFormatter(logging.Formatter):
    """Makes one JSON object of a record."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record: time in UTC, level, logger, message, what it is about, traceback."""
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: dict[str, Any] = {
            "time": time.replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **(_ABOUT.get() or {}),
            **getattr(record, "about", {}),
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return harmless_json(json.dumps(line, default=str))


def configure(style: Style, level: Level = "") -> None:
    """Send the log to standard error.

    Args:
        style: "plain" tells people what went wrong. "json" is for programs that collect logs, and
            tells also what goes right: servers, sessions and episodes that begin and end.
        level: The least that is told; empty for what the style tells.
    """
    handler = logging.StreamHandler()
    if style == "json":
        handler.setFormatter(JsonFormatter())
    else:
        handler.setFormatter(PlainFormatter("%(asctime)s %(levelname)s %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    set_level(style, level)


def set_level(style: Style, level: Level = "") -> None:
    """Say what is told from now on; see `configure`."""
    usual = "info" if style == "json" else "warning"
    logging.getLogger("animalcat").setLevel((level or usual).upper())
