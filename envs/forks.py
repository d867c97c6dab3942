"""The fork server: a process without threads that warms up once, and then forks workers.

`animalcat.envs.starting` drives it over a connection of whole messages, each a JSON object. A
request has a number, says what the worker is to be ready for, and brings three file descriptors:
the worker's connection, its pulse, and the file for what it prints. The answer has the number, and
either the new process's id, with a descriptor of that process, or an error. When a worker ends, its
id and code are told.

A fork has nothing but what the fork server has: the scrubbed environment of a worker, and no
connection but its own. It ends with its own connection, as any worker does, whether the fork server
lives or not. The fork server ends when its connection closes, or its parent dies.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import select
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NoReturn

MOST_BYTES: Final = 4096
"""Most bytes of a message."""
ONE_THREAD: Final = dict.fromkeys(
    ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1"
)
"""Variables with which numerical libraries start no threads, which would not live in a fork."""
COMM: Final = "animalcat-forks"
"""What the system calls the fork server, for example in `ps -o comm`."""
_PR_SET_PDEATHSIG: Final = 1

Work = Callable[[int, int], None]
"""Serves a connection, with a pulse; both are file descriptors."""


def serve_forks(connection: socket.socket, work: Work, warm: Callable[[bool, bool], None]) -> None:
    """Fork workers until the other side closes.

    Args:
        connection: To whoever wants workers.
        work: What a worker does.
        warm: Makes ready for a camera, for rays, or both; what it did once it need not do again.
    """
    _die_with_parent()
    rename(COMM)
    children: dict[int, int] = {}
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    while True:
        for fd, _ in poll.poll():
            if fd == connection.fileno():
                try:
                    body, fds, _, _ = socket.recv_fds(connection, MOST_BYTES, 3)
                except ConnectionResetError:
                    return
                if not body:
                    return
                request = json.loads(body)
                said, child = _fork_worker(request, fds, (connection, *children), work, warm)
                for given in fds:
                    os.close(given)
                if child >= 0:
                    children[child] = said["pid"]
                    poll.register(child, select.POLLIN)
                if not _tell(connection, said, child):
                    return
            else:
                poll.unregister(fd)
                pid = children.pop(fd)
                os.close(fd)
                code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
                if not _tell(connection, {"pid": pid, "code": code}):
                    return


def rename(name: str) -> None:
    """Give this process a name, at most 15 letters, where the system has a place for it."""
    with suppress(OSError):
        Path("/proc/self/comm").write_text(name, "ascii")


def _fork_worker(
    request: dict[str, Any],
    fds: list[int],
    foreign: tuple[socket.socket | int, ...],
    work: Work,
    warm: Callable[[bool, bool], None],
) -> tuple[dict[str, Any], int]:
    """Fork a worker; returns the answer, and the descriptor of the process or -1."""
    number = request["number"]
    try:
        warm(request["camera"], request["rays"])
        gc.collect()
        gc.freeze()  # else the collector of each fork would write to all that they share
        pid = os.fork()
    except Exception as error:  # noqa: BLE001  whatever it is, it is the answer
        return {"number": number, "error": f"{type(error).__name__}: {error}"[:1000]}, -1
    if not pid:
        _run(fds, foreign, work)
    return {"number": number, "pid": pid}, os.pidfd_open(pid)


def _run(fds: list[int], foreign: tuple[socket.socket | int, ...], work: Work) -> NoReturn:
    """Be a worker, and end."""
    code = 1
    try:
        for handle in foreign:
            if isinstance(handle, socket.socket):
                handle.close()
            else:
                os.close(handle)
        connection, pulse, log = fds
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.close(log)
        work(connection, pulse)
        code = 0
    except BaseException:  # noqa: BLE001  nothing may get back into the fork server's loop
        traceback.print_exc()
    finally:
        with suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _tell(connection: socket.socket, said: dict[str, Any], child: int = -1) -> bool:
    """Send a message; returns whether somebody hears it."""
    try:
        body = json.dumps(said).encode()
        socket.send_fds(connection, [body], [child] if child >= 0 else [])
    except (BrokenPipeError, ConnectionResetError):
        return False
    return True


def _die_with_parent() -> None:
    """Have the system end this process with its parent, even in the middle of compiling."""
    libc: Any = ctypes.CDLL(None)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
