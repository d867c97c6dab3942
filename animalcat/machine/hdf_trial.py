"""Reads all of an HDF5 file within limits, as a program: damaged ones hang its library for good."""

from __future__ import annotations

import resource
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any, Final

SECONDS: Final = 30
"""CPU time that it may take."""
MOST_BYTES: Final = 2 << 30
"""Most bytes that all of a file unpacks to."""


def insist_on_readable(path: Path, seconds: int = SECONDS) -> None:
    """Check in a process of its own that a file can be read.

    Args:
        path: The file.
        seconds: CPU time that it may take.

    Raises:
        ValueError: It cannot, or has too much in it.
    """
    command = [sys.executable, "-P", "-m", __name__, path, str(seconds)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = done.stderr.strip().splitlines()
        raise ValueError(said[-1] if said else f"it took more than {seconds} s of a processor")


def _read_all(path: str, seconds: int) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_AS, (4 * MOST_BYTES, 4 * MOST_BYTES))
    left = MOST_BYTES

    def read(name: str, part: Any) -> None:
        nonlocal left
        dict(part.attrs)
        if hasattr(part, "nbytes"):
            left -= part.nbytes
            if left < 0:
                raise ValueError(f"{name} has {part.nbytes:,} bytes; {MOST_BYTES:,} are read")
            part[()]

    library: Any = import_module("h5py")
    with library.File(path) as file:
        file.visititems(read)


if __name__ == "__main__":
    _read_all(sys.argv[1], int(sys.argv[2]))
