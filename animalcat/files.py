"""Writes results to files: completely, or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


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

    The content goes to a file beside it, which then takes its name. What is no plain file, such as
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
        Path(name).replace(target)
    except BaseException as error:
        Path(name).unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename is None:
            error.filename = str(path)
        raise
