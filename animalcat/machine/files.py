"""Writes results to files: completely, or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from animalcat.machine.marks import mark


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that it is there completely or, on a full disk, not at all.

    Args:
        path: Where to; folders are made.
        content: What to write.

    Raises:
        OSError: It cannot be written; what stood there before still stands.
    """
    with whole_file(path) as file:
        file.write(content)


@contextmanager
def whole_file(path: Path) -> Generator[BinaryIO]:
    """Give a file to be written in the block, which is there completely after it or not at all.

    The content goes to a file beside it, which then takes its name; the folder is marked as one
    in which animalcat writes. What is no plain file, such as
    a pipe, is written to once all is known.

    Args:
        path: Where to; folders are made.

    Raises:
        OSError: It cannot be written; what stood there before still stands.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and not path.is_file():
        with tempfile.TemporaryFile() as held:
            yield held
            held.seek(0)
            with path.open("wb") as pipe:
                shutil.copyfileobj(held, pipe)
        return
    target = path.resolve()  # a link stays one
    descriptor, name = tempfile.mkstemp(prefix=".animalcat-", dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        mask = os.umask(0)
        os.umask(mask)
        Path(name).chmod(0o666 & ~mask)
        mark(target.parent)
        Path(name).replace(target)
    except BaseException as error:
        Path(name).unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename is None:
            error.filename = str(path)
        raise


def replace_file(
    path: Path,
    content: bytes,
    mode: int = 0o666,
    prepare: Callable[[Path], None] = lambda fresh: None,
) -> None:
    """Give a file another content, so that it survives a power cut: all of it, or what was there.

    One process at a time may do so.

    Args:
        path: The file, in a folder that is there.
        content: What is to be in it.
        mode: Who may do what with it, before the umask.
        prepare: Is given the new file before it takes its name.

    Raises:
        OSError: It cannot be written; what stood there before still stands.
    """
    fresh = path.with_name(f".{path.name}.tmp")
    fresh.unlink(missing_ok=True)  # of a process that was killed
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)
        with os.fdopen(os.open(fresh, flags, mode), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        prepare(fresh)
        fresh.replace(path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Let the names in a folder survive a power cut."""
    with suppress(OSError):  # file systems on which folders cannot be opened
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
