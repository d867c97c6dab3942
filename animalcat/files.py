"""Writes results to files: completely, or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that it is there completely or, on a full disk, not at all.

    The content goes to a file beside it, which then takes its name. What is no plain file, such as
    a pipe, is written to directly.

    Args:
        path: Where to; folders are made.
        content: What to write.

    Raises:
        OSError: It cannot be written; what stood there before still stands.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and not path.is_file():
        path.write_bytes(content)
        return
    target = path.resolve()  # a link stays one
    descriptor, name = tempfile.mkstemp(prefix=".animalcat-", dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
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
