"""A program that tries to get out of where it runs; it says what it reached, as JSON.

It imports nothing of the project, and is told its targets as JSON.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import resource
import signal
import socket
import sys
import termios
from collections.abc import Callable
from functools import partial
from typing import Any

TARGETS: dict[str, Any] = json.loads(sys.argv[1])


def connect(address: str) -> str:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller:
        caller.settimeout(2)
        caller.connect(address)
    return "connected"


def port() -> str:
    with socket.create_connection(("127.0.0.1", TARGETS["port"]), 2):
        return "connected"


def plant() -> str:
    """What became operator: another folder in the place of the one above the data directory."""
    data = TARGETS["data"]
    above = os.path.dirname(data)
    os.rename(above, above + ".away")
    os.makedirs(data + "/access")
    with open(data + "/access/tokens.json", "w") as file:
        file.write("{}")
    return "planted"


def write(path: str) -> str:
    with open(path, "w") as file:
        file.write("\x1b]0;taken\x07")
    return "written"


def into_terminal() -> list[int]:
    """Which of the open files take letters as if they were typed."""
    found: list[int] = []
    for number in range(64):
        try:
            fcntl.ioctl(number, termios.TIOCSTI, b"x")
            found.append(number)
        except OSError:
            pass
    return found


def terminals() -> list[str]:
    found: list[str] = []
    for name in ["/dev/tty", "/dev/ptmx", "/dev/console", *TARGETS["terminals"]]:
        try:
            os.close(os.open(name, os.O_RDWR | os.O_NOCTTY))
            found.append(name)
        except OSError:
            pass
    return found


def others() -> list[str]:
    """Processes that are neither this one nor the first of its namespace."""
    return [one for one in os.listdir("/proc") if one.isdigit() and int(one) > 2]


def through_proc() -> list[str]:
    """What is seen of the machine through other processes."""
    found: list[str] = []
    for one in {str(os.getppid()), "1", str(TARGETS["parent"])}:
        for part in ("root", "cwd", "fd/1", "mem", "environ"):
            try:
                at = os.open(f"/proc/{one}/{part}", os.O_RDONLY)
                if part != "environ" or os.read(at, 1):
                    found.append(f"{one}/{part}")
                os.close(at)
            except OSError:
                pass
    return found


def syscalls() -> list[str]:
    libc = ctypes.CDLL(None, use_errno=True)
    tries = {
        "mount": lambda: libc.mount(b"tmpfs", b"/tmp", b"tmpfs", 0, None),
        "umount": lambda: libc.umount2(b"/usr/lib", 2),
        "user namespace": lambda: libc.unshare(0x10000000),
        "chroot": lambda: libc.chroot(b"/"),
        "sethostname": lambda: libc.sethostname(b"x", 1),
        "setuid": lambda: libc.setuid(0),
        "ptrace": lambda: libc.ptrace(16, TARGETS["parent"], None, None),
        "keyctl": lambda: min(0, int(libc.syscall(250, 0, -3, 0))),
        "io_uring": lambda: min(0, int(libc.syscall(425, 1, ctypes.create_string_buffer(256)))),
        "ptrace the first": lambda: libc.ptrace(0x4206, 1, None, None),
    }
    return [name for name, call in tries.items() if call() == 0]


def read(path: str) -> str:
    with open(path) as file:
        return file.read().strip()


def kill_parent() -> str:
    os.kill(TARGETS["parent"], signal.SIGCONT)
    return "sent"


def make_shared(name: str, *words: Any) -> str:
    """Make, or find, what programs share by its number or name."""
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)(*words) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return "shared"


def datagram() -> str:
    """Say something to the network that is no connection."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as caller:
        return str(caller.sendto(b"arena", ("127.0.0.1", TARGETS["port"])))


def change_limits() -> str:
    """Change what another process of the same user may take; that of time would end it."""
    resource.prlimit(os.getppid(), resource.RLIMIT_CORE, (0, 0))
    return "changed"


def move() -> str:
    """Keep another process of the same user to one core."""
    os.sched_setaffinity(os.getppid(), {0})
    return "moved"


def main() -> None:
    tries: dict[str, Callable[[], Any]] = {
        "plant": plant,
        "secret": lambda: read(TARGETS["secret"]),
        "recordings": lambda: os.listdir(str(TARGETS["recordings"])),
        "top": lambda: sorted(os.listdir("/")),
        "dev": lambda: sorted(os.listdir("/dev")),
        "run": lambda: sorted(os.listdir("/run")),
        "tmp": lambda: os.listdir("/tmp"),
        "here": lambda: os.listdir("."),
        "home": lambda: sorted(os.listdir(os.path.expanduser("~"))),
        "port": port,
        "terminals": terminals,
        "into_terminal": into_terminal,
        "through_proc": through_proc,
        "others": others,
        "syscalls": syscalls,
        "kill_parent": kill_parent,
        "sysctl": lambda: os.open("/proc/sys/kernel/core_pattern", os.O_WRONLY),
        "vsock": lambda: str(socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)),
        "sysrq": lambda: os.open("/proc/sysrq-trigger", os.O_WRONLY),
        "environment": lambda: sorted(os.environ),
        "open": lambda: sorted(int(one) for one in os.listdir("/proc/self/fd")),
        "nice": lambda: read("/proc/self/oom_score_adj"),
        "ids": lambda: [os.getuid(), os.geteuid(), os.getgroups()],
        "session": lambda: os.getsid(0) == os.getsid(os.getppid()),
        "datagram": datagram,
        "memory": lambda: make_shared("shmget", TARGETS["port"], 4096, 0o1600),
        "semaphores": lambda: make_shared("semget", TARGETS["port"], 1, 0o1600),
        "messages": lambda: make_shared("msgget", TARGETS["port"], 0o1600),
        "queue": lambda: make_shared(
            "mq_open", b"/animalcat-test", os.O_RDWR | os.O_CREAT, 0o600, None
        ),
        "limits": change_limits,
        "slow": lambda: os.setpriority(os.PRIO_PROCESS, os.getppid(), 19),
        "slow_all": lambda: os.setpriority(os.PRIO_USER, 0, 19),
        "move": move,
        **{f"socket {name}": partial(connect, at) for name, at in TARGETS["sockets"].items()},
        **{f"write {path}": partial(write, path + "/mine") for path in TARGETS["folders"]},
    }
    got: dict[str, Any] = {}
    for name, attempt in tries.items():
        try:
            got[name] = attempt()
        except OSError as error:
            got[name] = f"error: {error.strerror or error}"
    print(json.dumps(got))


main()
