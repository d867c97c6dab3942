"""Finds the server that a command talks to, or starts a private one."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

from animalcat.errors import AnimalcatError
from animalcat.service.host.lock import local_address, running_server
from animalcat.service.host.settings import Settings

STOP_SECONDS: Final = 30.0
"""Seconds that a private server may take to store what is open."""
STARTING_SECONDS: Final = 20.0
"""Seconds to wait for a server that holds the directory but does not answer yet."""

MOST_LOG_BYTES: Final = 1024 * 1024
"""Size of the log of private servers beyond which it is emptied."""


@contextmanager
def server_for(
    address: str | None, data: Path | None = None, builds: Sequence[Path] = ()
) -> Generator[str]:
    """Yield the address of a server for the duration of the block.

    This is the given address, or else the server that uses the data directory, or else a private
    server on a free port of this machine. The private server runs in a process session of its own
    and stops when its standard input ends. Ctrl-C therefore reaches only the command, which leaves
    this block and so lets the server store what is open; if the command is killed, the server stops
    in the same way. If two commands start at once, one starts the server and the other joins it.

    Args:
        address: Host and port of a server; None or empty to find one.
        data: The data directory; None for that of the settings.
        builds: Unity builds that a private server may run if a session names them.

    Raises:
        AnimalcatError: The private server did not start, and the message is its own; or the server
            that holds the directory does not answer.
    """
    if address:
        yield address
        return
    home = (Settings().home if data is None else data).absolute()
    found = _found(home)
    if found:
        yield found
        return
    home.mkdir(parents=True, exist_ok=True)
    # Appended to, because two servers that start at once both write before one gives way.
    with (home / "server.log").open("a+b") as log:
        if log.tell() > MOST_LOG_BYTES:
            log.truncate(0)
        process = _start(home, log, builds)
        try:
            try:
                ours = _address(process, log)
            except AnimalcatError:
                if not (ours := _found(home)):
                    raise
            yield ours
        finally:
            assert process.stdin is not None  # a pipe
            process.stdin.close()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _found(home: Path) -> str:
    """Return the address of the server that uses a directory; empty if there is none."""
    end = time.monotonic() + STARTING_SECONDS
    while (holder := running_server(home)) is not None and not holder.address:
        if time.monotonic() > end:
            raise AnimalcatError(
                f"a server (process {holder.pid}) uses {home} but does not answer; end it, or "
                "choose another directory with --data",
                "UNAVAILABLE",
            )
        time.sleep(0.1)
    return "" if holder is None else local_address(home) or holder.address


def _start(home: Path, log: IO[bytes], builds: Sequence[Path]) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-P", "-m", "animalcat", "serve", "--private", "--port", "0"]
    return subprocess.Popen(
        [*command, "--data", str(home), *(f"--allow-build={build}" for build in builds)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        start_new_session=True,
    )


def _address(process: subprocess.Popen[bytes], log: IO[bytes]) -> str:
    assert process.stdout is not None  # a pipe
    before = log.tell()
    line = process.stdout.readline()
    if not line:
        process.wait()
        log.seek(before)
        printed = log.read().decode(errors="replace").strip().splitlines()
        last = printed[-1].removeprefix("error: ") if printed else "it printed nothing"
        raise AnimalcatError(f"the private server did not start: {last}", "UNAVAILABLE")
    return str(json.loads(line)["address"])
