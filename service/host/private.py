"""Finds the server that a command talks to, or starts a private one.

A private server stops when its standard input ends. That is a named pipe in the data directory,
which every command that uses the server holds open for writing. So the server lives as long as any
of them, also if they are killed, and whichever of them started it.
"""

from __future__ import annotations

import fcntl
import json
import os
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final, TypedDict

from animalcat.errors import AnimalcatError
from animalcat.service.access.tickets import Tickets
from animalcat.service.access.tokens import TokenError
from animalcat.service.host.lock import local_address, running_server
from animalcat.service.host.settings import Settings

STOP_SECONDS: Final = 30.0
"""Seconds that a private server may take to store what is open."""
STARTING_SECONDS: Final = 20.0
"""Seconds to wait for a server that holds the directory but does not answer yet."""

MOST_LOG_BYTES: Final = 1024 * 1024
"""Size of the log of private servers beyond which it is emptied."""
PIPE: Final = "server.pipe"
"""Name of the pipe in a data directory."""
GATE: Final = "server.gate"
"""Name of the file in a data directory that is locked while a command joins, starts or leaves."""
_LOOK_SECONDS: Final = 0.1


@contextmanager
def server_for(
    address: str | None,
    data: Path | None = None,
    builds: Sequence[Path] = (),
    plugins: Sequence[str] = (),
) -> Generator[str]:
    """Yield the address of a server for the duration of the block.

    This is the given address, or else the server that uses the data directory, or else a private
    server on a free port of this machine. The private server runs in a process session of its own
    and stops when the last command that uses it has left this block. Ctrl-C therefore reaches only
    the command, which leaves this block and so lets the server store what is open; if the command
    is killed, the server stops in the same way. If two commands start at once, one starts the
    server and the other joins it.

    Args:
        address: Host and port of a server; None or empty to find one.
        data: The data directory; None for that of the settings.
        builds: Unity builds that a private server may run if a session names them.
        plugins: Packages whose plugins it may run.

    Raises:
        AnimalcatError: The private server did not start, and the message is its own; or the server
            that holds the directory does not answer.
    """
    if address:
        yield address
        return
    home = (Settings().home if data is None else data).absolute()
    home.mkdir(parents=True, exist_ok=True)
    allowed = [f"--allow-build={build}" for build in builds]
    allowed += [f"--allow-plugin={package}" for package in plugins]
    with _gate(home):
        held = _join(home) or _start(home, allowed)
    try:
        yield held.address
    finally:
        with _gate(home):
            held.leave()


class ShownToServer(TypedDict, total=False):
    """Arguments of `connect`: what proves who one is, and how the server is known."""

    token: str
    ca: str


def proof_for_own(home: Path) -> ShownToServer:
    """What a client shows to the server of a data directory: that it can read the directory.

    The token of the environment is for a server elsewhere.

    Args:
        home: The data directory.

    Returns:
        Arguments of `connect`; none where the directory is another user's.

    Raises:
        AnimalcatError: The key in the directory cannot be used.
    """
    try:
        return {"token": Tickets(home).local_pass(), "ca": ""}
    except TokenError as error:
        raise AnimalcatError(str(error)) from error
    except OSError:
        return {}


class _Held:
    """A server that does not stop as long as it is held.

    Attributes:
        address: Where it listens.
    """

    def __init__(
        self,
        home: Path,
        address: str,
        pipe: int = -1,
        process: subprocess.Popen[bytes] | None = None,
    ) -> None:
        """Hold it.

        Args:
            home: The data directory.
            address: Where it listens.
            pipe: Its pipe, open for writing; -1 for a server that no command keeps alive.
            process: Its process, if this one started it.
        """
        self.address = address
        self._home = home
        self._pipe = pipe
        self._process = process

    def leave(self) -> None:
        """Let it go; if nobody else holds it, wait until it has stopped."""
        if self._pipe < 0:
            return
        os.close(self._pipe)
        if _is_held(self._home):
            return
        process = self._process
        if process is not None:
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        else:
            _wait(lambda: running_server(self._home) is None, STOP_SECONDS)
        (self._home / PIPE).unlink(missing_ok=True)


@contextmanager
def _gate(home: Path) -> Generator[None]:
    """Keep other commands from joining, starting or leaving the server of a directory."""
    try:
        file = os.open(home / GATE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if os.geteuid() == 0:  # a visitor, whose files the server's user could not open
            os.fchown(file, home.stat().st_uid, home.stat().st_gid)
    except OSError:  # nothing can be written here, so no server is started or kept alive either
        yield
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)


def _join(home: Path) -> _Held | None:
    """Hold the server that uses a directory; None if there is none."""
    address = _find_address(home)
    if not address:
        return None
    abandoned = not _is_held(home)
    try:
        pipe = os.open(home / PIPE, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:  # nobody reads, so the server is not private
        return _Held(home, address)
    if not abandoned:
        return _Held(home, address, pipe)
    # Whoever held it was killed, so it is about to stop.
    os.close(pipe)
    stopped = _wait(lambda: running_server(home) is None, STOP_SECONDS)
    return None if stopped else _Held(home, address)


def _find_address(home: Path) -> str:
    """Return the address of the server that uses a directory; empty if there is none."""
    end = time.monotonic() + STARTING_SECONDS
    while (holder := running_server(home)) is not None and not holder.address:
        if time.monotonic() > end:
            raise AnimalcatError(
                f"a server (process {holder.pid}) uses {home} but does not answer; end it, or "
                "choose another directory with --data",
                "UNAVAILABLE",
            )
        time.sleep(_LOOK_SECONDS)
    return "" if holder is None else local_address(home) or holder.address


def _start(home: Path, allowed: Sequence[str]) -> _Held:
    """Start a private server; or hold another one that took the directory just before."""
    # Appended to, because two servers that start at once both write before one gives way.
    with (home / "server.log").open("a+b") as log:
        if log.tell() > MOST_LOG_BYTES:
            log.truncate(0)
        end, pipe = _pipe(home)
        try:
            process = _launch(home, log, allowed, end)
        except BaseException:
            os.close(pipe)
            raise
        finally:
            os.close(end)
        try:
            return _Held(home, _address(process, log), pipe, process)
        except BaseException as error:
            os.close(pipe)
            (home / PIPE).unlink(missing_ok=True)
            target = _find_address(home) if isinstance(error, AnimalcatError) else ""
            if not target:
                raise
            return _Held(home, target)


def _pipe(home: Path) -> tuple[int, int]:
    """Return both ends of the pipe of a directory, for reading and for writing."""
    path = home / PIPE
    try:
        if not path.exists():
            os.mkfifo(path, 0o600)
        if not stat.S_ISFIFO(path.stat().st_mode):
            return os.pipe()
        end = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:  # a file system without named pipes: the server goes with this command
        return os.pipe()
    pipe = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    os.set_blocking(end, True)
    return end, pipe


def _is_held(home: Path) -> bool:
    """Return whether a command holds the pipe of a directory."""
    try:
        end = os.open(home / PIPE, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        os.read(end, 1)  # ended, as nobody has it open for writing
    except BlockingIOError:
        return True
    finally:
        os.close(end)
    return False


def await_server(home: Path, seconds: float) -> None:
    """Wait for another server of a data directory, where one is gone that was not private."""
    if not (home / PIPE).exists():
        _wait(lambda: running_server(home) is not None, seconds)


def _wait(done: Callable[[], bool], seconds: float) -> bool:
    """Wait until something is done, for a time; return whether it is."""
    end = time.monotonic() + seconds
    while not (there := done()) and time.monotonic() < end:
        time.sleep(_LOOK_SECONDS)
    return there


def _launch(
    home: Path, log: IO[bytes], allowed: Sequence[str], end: int
) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-P", "-m", "animalcat", "serve", "--private", "--port", "0"]
    return subprocess.Popen(
        [*command, "--data", str(home), *allowed],
        stdin=end,
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
