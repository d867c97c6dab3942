"""Keeps what commands did beside a server until one writes it into the audit log."""

from __future__ import annotations

import fcntl
import logging
import os
import pwd
import secrets
import socket
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter, ValidationError

from animalcat.service.access.private_files import keep_owner, private_folder
from animalcat.service.model import NewLine
from animalcat.values import AuditLine

log = logging.getLogger(__name__)

_FORM: Final = TypeAdapter(NewLine)


class Outbox:
    """Lines for the audit log in a folder of which one process at a time changes what is audited.

    A server takes them in within seconds, or when it starts next.
    """

    def __init__(self, folder: Path) -> None:
        """Describe where they are kept; nothing is made.

        Args:
            folder: The folder.
        """
        self._folder = folder
        self._file = folder / "audit.jsonl"

    @contextmanager
    def locked(self) -> Generator[None]:
        """Keep other processes from changing the folder in the block."""
        private_folder(self._folder)
        path = self._folder / "tokens.lock"
        with path.open("ab") as lock:
            keep_owner(path)
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def put(self, time: datetime, action: str, thing: str, words: str) -> None:
        """Leave a line about what a person does at this machine; within `locked`.

        Args:
            time: The current time with time zone.
            action: What is done.
            thing: To what.
            words: What is to be said of it.

        Raises:
            OSError: It cannot be written, and so must not be done.
        """
        line = by_command(time, action, thing, words)
        handle = os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "ab") as file:
            keep_owner(self._file)
            before = file.tell()
            try:
                file.write(_FORM.dump_json(line) + b"\n")
                file.flush()
                os.fsync(file.fileno())
            except OSError:
                os.ftruncate(handle, before)
                raise

    def take(self, add: Callable[[Sequence[NewLine]], object]) -> None:
        """Have all lines added to the log, and forget them; they are kept where that fails.

        Args:
            add: Adds them; it may get a line twice if this is cut short.
        """
        try:
            if not self._file.stat().st_size:
                return
        except FileNotFoundError:
            return
        with self.locked():
            lines: list[NewLine] = []
            for text in self._file.read_bytes().splitlines():
                try:
                    lines.append(_FORM.validate_json(text))
                except ValidationError:  # a power cut: what it tells of was not done either
                    log.error("%s: a line cannot be read, and is left out", self._file)
            add(lines)
            os.truncate(self._file, 0)


def by_command(time: datetime, action: str, thing: str, words: str) -> NewLine:
    """Return a line about what a person does at this machine; see `Outbox.put`."""
    line = AuditLine(
        *(time, secrets.token_hex(8), "", _person(), "administrator", action, thing),
        words=words,
        peer="this machine",
        server=socket.gethostname(),
    )
    return NewLine(secrets.token_hex(12), line)


def _person() -> str:
    """Return who runs this process, in words."""
    number = os.getuid()
    try:
        name = pwd.getpwuid(number).pw_name
    except KeyError:
        name = str(number)
    asked = os.environ.get("SUDO_USER", "")
    return f"user {name}" + (f", for {asked[:40]!r}" if asked and asked != name else "")
