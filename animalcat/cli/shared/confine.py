"""Runs a program apart from this machine's other processes and from files that it must not see.

It is a program of its own, started with a plan as JSON, and imports nothing of the project: what it
does must be done in a process without threads, and before the program that is run.

There are two ways. *Namespaces* (Linux): the program sees no other process, none of the hidden
folders and, unless the plan says so, no network; it can write only where the plan says. *Another
user* (root, where namespaces are forbidden): the program runs as `nobody`, who may not read what
its owner keeps to himself.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import signal
import socket
import struct
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

NAMESPACES = "namespaces"
USER = "user"
CANNOT = 97
"""Exit code where the program could not be put apart; nothing was run."""

_CLONE_NEWNS = 0x00020000
_CLONE_NEWIPC = 0x08000000
_CLONE_NEWUSER = 0x10000000
_CLONE_NEWPID = 0x20000000
_CLONE_NEWNET = 0x40000000
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_NOEXEC = 1, 2, 4, 8
_MS_BIND, _MS_REC, _MS_PRIVATE = 4096, 16384, 1 << 18
_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS = 1, 38
_SYS_MOUNT_SETATTR = 442
_AT_FDCWD, _AT_RECURSIVE, _MOUNT_ATTR_RDONLY = -100, 0x8000, 1
_SIOCSIFFLAGS, _IFF_UP = 0x8914, 1
_NOBODY = 65534
_INSIDE = 1000
"""Id that the user has within the namespace: not root's, so that no capability outlives `exec`."""


def main(plan: dict[str, Any]) -> NoReturn:
    """Run the plan's command apart, and end as it ends.

    Args:
        plan: `way` is "namespaces" or "user"; `command` is what to run; `hide` are folders that it
            must not see, `write` are folders in which it may write, `keep` are folders within these
            in which it may not; `network` is whether it has the network; `read` are files that it
            must be able to read.
    """
    try:
        if plan["way"] == USER:
            _become_nobody(plan)
        else:
            _unshare(plan)
    except OSError as error:
        print(f"the program cannot be put apart: {error}", file=sys.stderr)
        sys.exit(CANNOT)
    _run(plan["command"])


def _become_nobody(plan: dict[str, Any]) -> None:
    os.setgroups([])
    os.setgid(_NOBODY)
    os.setuid(_NOBODY)
    _libc().prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    for path in plan["hide"]:
        if os.access(path, os.R_OK | os.X_OK):
            raise PermissionError(f"everyone may look into {path}")
    for path in plan["read"]:
        if not os.access(path, os.R_OK):
            raise PermissionError(f"the user nobody may not read {path}")


def _unshare(plan: dict[str, Any]) -> None:
    """Go into namespaces, and return only in the process that is to run the program."""
    user, group = os.geteuid(), os.getegid()
    flags = _CLONE_NEWUSER | _CLONE_NEWNS | _CLONE_NEWPID | _CLONE_NEWIPC
    _check(_libc().unshare(flags | (0 if plan["network"] else _CLONE_NEWNET)), "unshare")
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{_INSIDE} {user} 1")
    _write("/proc/self/gid_map", f"{_INSIDE} {group} 1")
    _arrange_files(plan)
    if not plan["network"]:
        with contextlib.suppress(OSError):
            _loopback()
    first = os.fork()  # the first process of the new namespace, with whose end all others end
    if first:
        _wait_for(first)
    _libc().prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    nothing = _MS_NOSUID | _MS_NODEV | _MS_NOEXEC
    # Where the system hides parts of /proc, as in containers, it stays that of the machine. Even so
    # a process of another user namespace cannot be looked into, only seen.
    _libc().mount(b"proc", b"/proc", b"proc", nothing, None)
    _libc().prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    runs = os.fork()
    if runs:
        _wait_for(runs)
    _libc().prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _arrange_files(plan: dict[str, Any]) -> None:
    _mount(None, "/", None, _MS_REC | _MS_PRIVATE)
    for path in (*plan["write"], *plan["keep"]):
        _mount(path, path, None, _MS_BIND | _MS_REC)
    # Kernels before 5.12 cannot do this; what must be hidden is hidden even so.
    if _set_read_only("/", True):
        for path in plan["write"]:
            _set_read_only(path, False)
        for path in plan["keep"]:
            _set_read_only(path, True)
    for path in plan["hide"]:
        _mount("none", path, "tmpfs", _MS_RDONLY | _MS_NOSUID | _MS_NODEV | _MS_NOEXEC)
    # Else the working folder would still be the one below what was mounted over it.
    os.chdir(os.getcwd())


def _set_read_only(path: str, wanted: bool) -> bool:
    attributes = struct.pack(
        "QQQQ", _MOUNT_ATTR_RDONLY if wanted else 0, 0 if wanted else _MOUNT_ATTR_RDONLY, 0, 0
    )
    done = _libc().syscall(
        _SYS_MOUNT_SETATTR,
        _AT_FDCWD,
        os.fsencode(path),
        _AT_RECURSIVE,
        attributes,
        ctypes.c_size_t(len(attributes)),
    )
    return done == 0


def _loopback() -> None:
    """Let processes within the namespace reach each other."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", _IFF_UP))


def _wait_for(child: int) -> NoReturn:
    """Hand signals on to a child, and end as it does."""

    def pass_on(number: int, frame: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, pass_on)
    while True:
        ended, status = os.wait()  # the first process of a namespace inherits orphans
        if ended == child:
            code = os.waitstatus_to_exitcode(status)
            os._exit(code if code >= 0 else 128 - code)


def _run(command: Sequence[str]) -> NoReturn:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    os.execvp(command[0], list(command))


def _mount(source: str | None, target: str, kind: str | None, flags: int) -> None:
    _check(
        _libc().mount(
            None if source is None else os.fsencode(source),
            os.fsencode(target),
            None if kind is None else kind.encode(),
            ctypes.c_ulong(flags),
            None,
        ),
        f"mount {target}",
    )


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def _libc() -> Any:
    return ctypes.CDLL(None, use_errno=True)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
