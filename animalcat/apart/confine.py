"""Runs a program so that it sees what it is given, and nothing else.

It is a program of its own, started with a plan as JSON, and imports nothing of the project: what it
does must be done in a process without threads, and before the program that is run.

*Namespaces* (Linux): the program gets a root folder that was built from nothing. It sees no other
process, no terminal and, unless the plan says so, no network. *Another user* (root, where
namespaces are forbidden): it runs with a number of its own, so it may not read what others keep to
themselves. *Landlock*: the kernel refuses to open what it was not given. *Inside* is the last step
within a root that bubblewrap has built.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import resource
import shutil
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, NoReturn

NAMESPACES = "namespaces"
USER = "user"
LANDLOCK = "landlock"
INSIDE = "inside"
CANNOT = 97
"""Exit code where the program could not be put apart; nothing was run."""
AGENT_ID = 1000
"""Number of the user within the namespaces: not root's, so no capability outlives `exec`."""

_CLONE_NEWNS = 0x00020000
_CLONE_NEWUTS = 0x04000000
_CLONE_NEWIPC = 0x08000000
_CLONE_NEWUSER = 0x10000000
_CLONE_NEWPID = 0x20000000
_CLONE_NEWNET = 0x40000000
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_NOEXEC = 1, 2, 4, 8
_MS_REMOUNT, _MS_BIND, _MS_REC, _MS_PRIVATE = 32, 4096, 16384, 1 << 18
_MNT_DETACH = 2
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 1, 4, 36, 38


class _Numbers(NamedTuple):
    """What calls of the system are called on a kind of processor."""

    kind: int
    pivot_root: int
    socket: int
    ioctl: int
    keyctl: int
    refused: tuple[int, ...]
    """add_key, request_key, keyctl, io_uring_setup (which would make sockets), bpf, userfaultfd,
    perf_event_open, and shmget, whose memory is nobody's and so is not counted."""
    shared: tuple[int, ...]
    """What programs share by number or name, without a file: memory, semaphores and queues of
    System V, and queues of POSIX."""
    of_process: tuple[int, ...]
    """prlimit64, sched_setparam, sched_setscheduler, sched_setattr and sched_setaffinity, whose
    first word is a process."""
    of_many: tuple[tuple[int, int], ...]
    """setpriority and ioprio_set, and the first word with which they mean all of a user."""


_NUMBERS = {
    "x86_64": _Numbers(
        *(0xC000003E, 155, 41, 16, 250),
        refused=(248, 249, 250, 425, 321, 323, 298, 29),
        shared=(*range(29, 32), *range(64, 72), 220, 240, 241),
        of_process=(302, 142, 144, 314, 203),
        of_many=((141, 2), (251, 3)),
    ),
    "aarch64": _Numbers(
        *(0xC00000B7, 41, 198, 29, 219),
        refused=(217, 218, 219, 425, 280, 282, 241, 194),
        shared=(180, 181, *range(186, 198)),
        of_process=(261, 118, 119, 274, 122),
        of_many=((140, 2), (30, 3)),
    ),
}
_FAMILIES = (1, 2, 10, 16)
"""Kinds of sockets that a program may make: of this machine, IPv4, IPv6 and netlink. Others, such
as those to the host of a virtual machine, belong to no network namespace."""
_FAMILIES_WITHOUT_NETWORK = (1, 16)
"""Those of them that lead to no port, where no namespace keeps the network away."""
_INTO_TERMINAL = (0x5412, 0x541C)
"""TIOCSTI and TIOCLINUX, which type for the person."""
_PR_GET_SECCOMP, _PR_SET_SECCOMP, _SECCOMP_FILTER = 21, 22, 2
_JOIN_SESSION_KEYRING = 1
_SYS_OPEN_TREE, _SYS_MOVE_MOUNT, _SYS_MOUNT_SETATTR = 428, 429, 442
_SYS_LANDLOCK_CREATE, _SYS_LANDLOCK_ADD, _SYS_LANDLOCK_RESTRICT = 444, 445, 446
_AT_FDCWD, _AT_EMPTY_PATH, _AT_RECURSIVE = -100, 0x1000, 0x8000
_OPEN_TREE_CLONE, _MOVE_FROM_FD = 1, 4
_ATTR_RDONLY, _ATTR_NOSUID, _ATTR_NODEV, _ATTR_IDMAP = 1, 2, 4, 0x00100000
_KERNEL = ("sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "scsi")
"""What of /proc changes the kernel."""
_LEAST_PROCESSES = 302
"""The lowest number of processes that the kernel takes for a namespace."""
_SIOCSIFFLAGS, _IFF_UP = 0x8914, 1
_NOBODY = 65534
_IDS = (61_000, 64_999)
"""Numbers of users, of which an agent gets one that nobody has."""
_ALL_SECONDS = 5.0
"""How long the end of all of a program's processes is tried."""

_FS_EXECUTE, _FS_WRITE, _FS_READ, _FS_LIST = 1, 2, 4, 8
_FS_ALL = (13, 14, 15, 15, 16)
"""How many rights on files Landlock has, by its version; later ones have as many as the last."""
_FS_ON_FILES = 1 | 2 | 4 | 1 << 14 | 1 << 15
"""Rights that a file can have, which is no folder."""
_NET_ALL = 3
_SCOPE_ALL = 3
_NET_FROM, _SCOPE_FROM = 4, 6
"""Versions of Landlock that know ports, and abstract sockets and signals."""


def main(plan: dict[str, Any]) -> NoReturn:
    """Run the plan's command apart, and end as it ends.

    Args:
        plan: `way` is one of those above; `command` is what to run; `folder` is where it works;
            `mounts` is what there is, by path (`kind`: "see" a file or folder of the machine,
            "share" one that it may change, "link", "empty" folder of `size` bytes; `given`: whether
            it may be readable by its owner alone); `network` is whether it has the network; `hide`
            is what another user must not be able to read; `lists` are folders whose names Landlock
            lets it read; `limits` are numbers by name; `kept` is
            a folder of compiled code, and another one for a copy of it; `parent` is the process
            with which all of it ends.
    """
    try:
        if (go := _WAYS.get(plan["way"])) is not None:
            go(plan)
        _prepare(plan)
    except (OSError, ValueError) as error:
        print(f"the program cannot be put apart: {error}", file=sys.stderr)
        sys.exit(CANNOT)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    os.execvp(plan["command"][0], plan["command"])


def landlock_version() -> int:
    """Return which version of Landlock the kernel has; 0: none."""
    return max(0, _libc().syscall(_SYS_LANDLOCK_CREATE, None, ctypes.c_size_t(0), 1))


def refuses_calls() -> bool:
    """Return whether the kernel can refuse calls of the system that a program makes."""
    return os.uname().machine in _NUMBERS and _libc().prctl(_PR_GET_SECCOMP, 0, 0, 0, 0) >= 0


def _prepare(plan: dict[str, Any]) -> None:
    """Set in this very process what the program and all its children have to keep to."""
    limits: dict[str, int] = plan["limits"]
    with contextlib.suppress(OSError):  # the first that is ended where memory runs short
        _write("/proc/self/oom_score_adj", "1000")
    for name, number in (
        ("files", resource.RLIMIT_NOFILE),
        ("file_bytes", resource.RLIMIT_FSIZE),
        ("memory", resource.RLIMIT_DATA),
        ("processes", resource.RLIMIT_NPROC),
        ("core", resource.RLIMIT_CORE),
    ):
        # By Landlock alone the user's other processes would count, too.
        if name in limits and not (name == "processes" and plan["way"] == LANDLOCK):
            _, most = resource.getrlimit(number)
            value = limits[name] if most == resource.RLIM_INFINITY else min(limits[name], most)
            resource.setrlimit(number, (value, value))
    _check(_libc().prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    numbers = _NUMBERS.get(os.uname().machine)
    if numbers is not None:
        _libc().syscall(numbers.keyctl, _JOIN_SESSION_KEYRING, None)  # the person's has keys in it
        _refuse_calls(numbers, plan["way"], plan["network"])
    if plan["way"] in (USER, LANDLOCK):
        if not _landlock(plan) and plan["way"] == LANDLOCK:
            raise OSError("this kernel has no Landlock")
    elif landlock_version() >= _SCOPE_FROM:
        _restrict(0, 0, _SCOPE_ALL, ())  # abstract sockets belong to the network
    _copy_links(*plan["kept"])
    os.chdir(plan["folder"])


def _refuse_calls(numbers: _Numbers, way: str, network: bool) -> None:
    """Have the kernel refuse calls that lead around what else keeps the program apart."""
    load, equal, at_least, end = 0x20, 0x15, 0x35, 0x06
    allow, no_such_call, no_such_family, forbidden = 0x7FFF0000, 0x50026, 0x50061, 0x50001
    first, second = (load, 0, 0, 16), (load, 0, 0, 24)
    words = [(load, 0, 0, 4), (equal, 1, 0, numbers.kind), (end, 0, 0, no_such_call)]
    words += [(load, 0, 0, 0), (at_least, 0, 1, 0x40000000), (end, 0, 0, no_such_call)]

    def judge(number: int, *inner: tuple[int, int, int, int]) -> None:
        """Add what is to be done at a call; all of its ways end it."""
        words.extend([(equal, 0, len(inner), number), *inner])

    partial = way in (USER, LANDLOCK)  # there is no namespace, so the machine's are in reach
    for number in (*numbers.refused, *(numbers.shared if partial else ())):
        judge(number, (end, 0, 0, no_such_call))
    families = _FAMILIES_WITHOUT_NETWORK if partial and not network else _FAMILIES
    inner = [first]
    for request in families:
        inner += [(equal, 0, 1, request), (end, 0, 0, allow)]
    judge(numbers.socket, *inner, (end, 0, 0, no_such_family))
    if way == LANDLOCK:  # the person's processes have the same number of user
        own = [(equal, 1, 0, 0), (end, 0, 0, forbidden), (end, 0, 0, allow)]
        for number in numbers.of_process:
            judge(number, first, *own)
        for number, all_of_user in numbers.of_many:
            judge(number, first, (equal, 2, 0, all_of_user), second, *own)
    inner = [second]
    for request in _INTO_TERMINAL:
        inner += [(equal, 0, 1, request), (end, 0, 0, forbidden)]
    judge(numbers.ioctl, *inner, (end, 0, 0, allow))
    words.append((end, 0, 0, allow))
    code = b"".join(struct.pack("HBBI", *word) for word in words)
    kept = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("HxxxxxxP", len(words), ctypes.addressof(kept))
    # A kernel without this leaves what the other ways cover.
    _libc().prctl(_PR_SET_SECCOMP, _SECCOMP_FILTER, program, 0, 0)


def _copy_links(source: str = "", target: str = "") -> None:
    """Make a copy of a folder's tree, whose files are links until they are replaced."""
    for folder, _, files in os.walk(source) if source else ():
        copy = target + folder[len(source) :]
        os.makedirs(copy, exist_ok=True)
        for name in files:
            with contextlib.suppress(OSError):
                os.symlink(f"{folder}/{name}", f"{copy}/{name}")


# Namespaces


def _in_namespaces(plan: dict[str, Any]) -> None:
    """Go into namespaces, and return only in the process that is to run the program."""
    _end_with_parent(signal.SIGKILL, plan["parent"])
    flags = _CLONE_NEWNS | _CLONE_NEWPID | _CLONE_NEWIPC | _CLONE_NEWUTS
    flags |= 0 if plan["network"] else _CLONE_NEWNET
    user, group = os.geteuid(), os.getegid()
    # Root gives the program another number, since no limit of processes binds root's own.
    may = user == 0 and _may_become_nobody()
    ids = _ids_of_nobody() if may else -1  # before the first process of the new namespace
    powerful = may and _libc().unshare(flags) == 0
    if not powerful:
        _check(_libc().unshare(_CLONE_NEWUSER | flags), "unshare")
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{AGENT_ID} {user} 1")
        _write("/proc/self/gid_map", f"{AGENT_ID} {group} 1")
    first = os.fork()  # the first process of the new namespace, with whose end all others end
    if first:
        _wait_for(first)
    _end_with_parent(signal.SIGKILL)
    _build_root(plan, powerful, ids)
    _check(_libc().prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0), "dumpable")  # nobody looks into it
    if not plan["network"]:
        with contextlib.suppress(OSError):
            _loopback()
    ready, go = os.pipe(), os.pipe()
    runs = os.fork()
    if runs:
        os.close(ready[1])  # else it would be waited for though the other one has failed
        os.close(go[0])
        if powerful and os.read(ready[0], 1):
            for name in ("uid_map", "gid_map"):
                _write(f"/proc/{runs}/{name}", f"{AGENT_ID} {_NOBODY} 1")
        with contextlib.suppress(BrokenPipeError):  # it has failed, and said why
            os.write(go[1], b"x")
        os.close(ready[0])
        os.close(go[1])
        _wait_for(runs)
    os.close(ready[0])
    os.close(go[1])
    if powerful:
        os.setgroups([])
        _check(_libc().unshare(_CLONE_NEWUSER), "unshare")
        os.write(ready[1], b"x")
    os.read(go[0], 1)
    os.close(ready[1])
    os.close(go[0])
    if powerful:
        with contextlib.suppress(OSError):
            _write("/proc/sys/user/max_user_namespaces", "0")
        os.setresgid(AGENT_ID, AGENT_ID, AGENT_ID)
        os.setresuid(AGENT_ID, AGENT_ID, AGENT_ID)
    _check(_libc().prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0), "dumpable")
    _end_with_parent(signal.SIGKILL)


def _may_become_nobody() -> bool:
    """Whether the number of `nobody` is one that this user namespace has."""
    with open("/proc/self/uid_map", encoding="ascii") as file:
        spans = [tuple(map(int, line.split())) for line in file]
    return any(inside <= _NOBODY < inside + count for inside, _, count in spans)


def _build_root(plan: dict[str, Any], powerful: bool, ids: int) -> None:
    """Build the new root, and go there; the old one is gone afterwards."""
    owner = _NOBODY if powerful else -1
    owned = f",uid={_NOBODY},gid={_NOBODY}" if powerful else ""
    _mount(None, "/", None, _MS_REC | _MS_PRIVATE)
    # All that is seen has to be reached while the new root is built, /tmp as well.
    _mount("tmpfs", "/tmp", "tmpfs", _MS_NOSUID | _MS_NODEV, "mode=755,size=16m")
    for name in ("old", "new"):
        os.mkdir(f"/tmp/{name}")
    os.chdir("/tmp")
    _pivot("/tmp", "/tmp/old")
    os.chdir("/")
    _mount("tmpfs", "/new", "tmpfs", _MS_NOSUID | _MS_NODEV, "mode=755,size=16m")
    for mount in plan["mounts"]:
        target = f"/new{mount['path']}"
        if mount["kind"] == "link":
            _make_folders(os.path.dirname(target), owner)
            os.symlink(mount["source"], target)
        elif mount["kind"] == "empty":
            _make_folders(target, owner)
            options = f"mode={mount['mode']:o},size={mount['size']},nr_inodes=200k{owned}"
            _mount("tmpfs", target, "tmpfs", _MS_NOSUID | _MS_NODEV, options)
        else:
            _bind(f"/old{mount['source']}", target, mount, owner, ids if mount["given"] else -1)
    os.makedirs("/new/proc", exist_ok=True)
    # Where the system hides parts of /proc, as in containers, there is none of one's own; what the
    # plan shows of the machine's stays. It is permitted only while the old one is there.
    nothing = _MS_NOSUID | _MS_NODEV | _MS_NOEXEC
    _libc().mount(b"proc", b"/new/proc", b"proc", ctypes.c_ulong(nothing), None)
    if not powerful:
        with contextlib.suppress(OSError):  # they would only be a way to attack
            _write("/new/proc/sys/user/max_user_namespaces", "0")
        with contextlib.suppress(OSError):  # for root without powers, of newer kernels
            most = max(_LEAST_PROCESSES, plan["limits"]["processes"])
            _write("/new/proc/sys/kernel/pid_max", str(most))
        for name in _KERNEL:  # root's number may be the program's here
            if os.path.exists(path := f"/new/proc/{name}"):
                _mount(path, path, None, _MS_BIND | _MS_REC)
                _set_attributes(_AT_FDCWD, path, _AT_RECURSIVE, _ATTR_RDONLY)
    if ids >= 0:
        os.close(ids)
    _mount(None, "/new", None, _MS_REMOUNT | _MS_BIND | _MS_RDONLY | _MS_NOSUID | _MS_NODEV)
    _check(_libc().umount2(b"/old", _MNT_DETACH), "umount of the old root")
    os.chdir("/new")
    _pivot(".", ".")
    _check(_libc().umount2(b".", _MNT_DETACH), "umount of the old root")
    os.chdir("/")


def _make_folders(path: str, owner: int) -> None:
    """Make a folder and those above it, which belong to the program (negative: as they are)."""
    if os.path.isdir(path):
        return
    _make_folders(os.path.dirname(path), owner)
    os.mkdir(path, 0o755)
    os.chown(path, owner, owner)


def _bind(source: str, target: str, mount: dict[str, Any], owner: int, ids: int) -> None:
    """Show a file or folder of the machine at its place in the new root.

    Args:
        source: Where it is now.
        target: Where it comes.
        mount: The mount, as in the plan.
        owner: Of folders on the way; negative: this process.
        ids: A user namespace in which what is root's is the program's; negative: none.
    """
    if not os.path.exists(source):
        return
    if os.path.isdir(source):
        _make_folders(target, owner)
    elif not os.path.exists(target):
        _make_folders(os.path.dirname(target), owner)
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644))
    attributes = _ATTR_NOSUID | (0 if mount["kind"] == "share" else _ATTR_RDONLY)
    attributes |= 0 if source.startswith("/old/dev/") else _ATTR_NODEV
    if ids < 0 or not _bind_as_nobody(source, target, attributes, ids):
        _mount(source, target, None, _MS_BIND | _MS_REC)
        _set_attributes(_AT_FDCWD, target, _AT_RECURSIVE, attributes)


def _bind_as_nobody(source: str, target: str, attributes: int, ids: int) -> bool:
    """Show what is root's as the program's own; False where the file system cannot."""
    clone = _OPEN_TREE_CLONE | os.O_CLOEXEC | _AT_RECURSIVE
    tree = _libc().syscall(_SYS_OPEN_TREE, _AT_FDCWD, os.fsencode(source), clone)
    if tree < 0:
        return False
    try:
        flags = _AT_EMPTY_PATH | _AT_RECURSIVE
        _set_attributes(tree, "", flags, attributes | _ATTR_IDMAP, ids)
        moved = _libc().syscall(
            _SYS_MOVE_MOUNT, tree, b"", _AT_FDCWD, os.fsencode(target), _MOVE_FROM_FD
        )
        return bool(moved == 0)
    except OSError:
        return False
    finally:
        os.close(tree)


def _ids_of_nobody() -> int:
    """Return an open user namespace in which root's files are `nobody`'s; negative if not here."""
    ready = os.pipe()
    child = os.fork()
    if not child:
        _end_with_parent(signal.SIGKILL)
        done = _libc().unshare(_CLONE_NEWUSER)
        os.write(ready[1], b"x" if done == 0 else b"-")
        signal.pause()
    try:
        if os.read(ready[0], 1) != b"x":
            return -1
        for name in ("uid_map", "gid_map"):
            _write(f"/proc/{child}/{name}", f"0 {_NOBODY} 1\n1 1 {_NOBODY - 1}")
        return os.open(f"/proc/{child}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return -1
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        for end in ready:
            os.close(end)


def _set_attributes(folder: int, path: str, flags: int, wanted: int, ids: int = 0) -> None:
    attributes = struct.pack("QQQQ", wanted, 0, 0, ids)
    done = _libc().syscall(
        _SYS_MOUNT_SETATTR,
        folder,
        os.fsencode(path),
        flags,
        attributes,
        ctypes.c_size_t(len(attributes)),
    )
    _check(done, f"mount {path or 'of a tree'}")


def _pivot(root: str, old: str) -> None:
    numbers = _NUMBERS.get(os.uname().machine)
    if numbers is None:
        raise OSError(f"it is not known how on {os.uname().machine}")
    _check(_libc().syscall(numbers.pivot_root, os.fsencode(root), os.fsencode(old)), "pivot_root")


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
            os._exit(_code(status))


# Another user, and Landlock


def _as_another_user(plan: dict[str, Any]) -> None:
    """Return only in a process of a user that nobody else is."""
    user = _free_id()
    os.chown(plan["folder"], user, user)

    def become() -> None:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
        for path in plan["hide"]:
            if os.access(path, os.R_OK | os.X_OK):
                raise PermissionError(f"everyone may look into {path}")
        for mount in plan["mounts"]:
            needed = (
                mount["kind"] == "see" and mount["given"] and mount["source"] not in plan["kept"]
            )
            if needed and not os.access(mount["source"], os.R_OK):
                raise PermissionError(f"another user may not read {mount['source']}")

    def end_all() -> None:
        killer = os.fork()
        if not killer:
            os.setresuid(user, user, user)
            with contextlib.suppress(OSError):
                os.kill(-1, signal.SIGKILL)
            os._exit(0)
        os.waitpid(killer, 0)

    _supervise(plan["parent"], plan["folder"], end_all, become)


def _by_landlock(plan: dict[str, Any]) -> None:
    """Return only in a process that another one of ours watches."""

    def end_all() -> None:
        for process in descendants(os.getpid()):
            with contextlib.suppress(OSError):
                os.kill(process, signal.SIGKILL)

    _supervise(plan["parent"], plan["folder"], end_all, lambda: None)


def _supervise(
    parent: int, folder: str, end_all: Callable[[], None], become: Callable[[], None]
) -> None:
    """Return in a child that has become another; this process ends all that it leaves behind."""
    _check(_libc().prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "subreaper")
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM,))
    supervisor = os.getpid()
    child = os.fork()
    if child == 0:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGTERM,))
        become()
        _end_with_parent(signal.SIGKILL, supervisor)
        return

    def end(code: int) -> NoReturn:
        last = time.monotonic() + _ALL_SECONDS
        while time.monotonic() < last:
            end_all()
            try:
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            except ChildProcessError:
                break
            time.sleep(0.01)
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(code)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda number, frame: end(128 + number))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGTERM,))
    _end_with_parent(signal.SIGTERM, parent)
    while True:
        ended, status = os.wait()
        if ended == child:
            end(_code(status))


def _free_id() -> int:
    """Return a number of a user that has no process."""
    taken = set[int]()
    for process in _processes():
        with contextlib.suppress(FileNotFoundError):  # it has ended
            taken.add(os.stat(f"/proc/{process}").st_uid)
    low, high = _IDS
    span = high - low + 1
    numbers = (low + (os.getpid() + step) % span for step in range(span))
    return next(number for number in numbers if number not in taken)


def parents_of_all() -> dict[int, int]:
    """Return all processes of the machine, and from which each comes."""
    parents: dict[int, int] = {}
    for process in _processes():
        with (
            contextlib.suppress(OSError, ValueError, IndexError),  # it has ended
            open(f"/proc/{process}/stat", encoding="utf-8", errors="replace") as file,
        ):
            parents[process] = int(file.read().rpartition(")")[2].split()[1])
    return parents


def descendants(root: int, parents: dict[int, int] | None = None) -> list[int]:
    """Return all processes that come from one, as they are now or as they were said to be."""
    parents = parents_of_all() if parents is None else parents
    descended, new = list[int](), [root]
    while new:
        new = [process for process, parent in parents.items() if parent in new]
        descended += new
    return descended


def _processes() -> Iterator[int]:
    return (int(name) for name in os.listdir("/proc") if name.isdigit())


def is_device(path: str) -> bool:
    """Whether something is a device, or a folder of such, and no file that programs share."""
    shared = ("/dev/shm/", "/dev/mqueue/", "/dev/hugepages/")
    return path.startswith("/dev/") and not f"{path}/".startswith(shared)


def _landlock(plan: dict[str, Any]) -> bool:
    """Have the kernel refuse what the plan does not give; False if it cannot."""
    version = landlock_version()
    if not version:
        return False
    rights = (1 << _FS_ALL[min(version, len(_FS_ALL)) - 1]) - 1
    reads, changes = _FS_EXECUTE | _FS_READ | _FS_LIST, rights
    rules = [(plan["folder"], changes), ("/dev/shm", changes), ("/proc", _FS_READ | _FS_LIST)]
    rules += [(path, _FS_LIST) for path in plan["lists"]]
    for mount in plan["mounts"]:
        if mount["kind"] in ("see", "share"):
            device = _FS_WRITE | (1 << 15 & rights) if is_device(mount["source"]) else 0
            rules.append((mount["source"], changes if mount["kind"] == "share" else reads | device))
    net = _NET_ALL if version >= _NET_FROM and not plan["network"] else 0
    _restrict(rights, net, _SCOPE_ALL if version >= _SCOPE_FROM else 0, rules)
    return True


def _restrict(files: int, net: int, scope: int, rules: Sequence[tuple[str, int]]) -> None:
    version = landlock_version()
    size = 24 if version >= _SCOPE_FROM else 16 if version >= _NET_FROM else 8
    asked = struct.pack("QQQ", files, net, scope)[:size]
    ruleset = _libc().syscall(_SYS_LANDLOCK_CREATE, asked, ctypes.c_size_t(size), 0)
    _check(min(ruleset, 0), "landlock")
    for path, rights in rules:
        try:
            opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:  # there is no such file
            continue
        allowed = rights if os.path.isdir(path) else rights & _FS_ON_FILES
        rule = struct.pack("=Qi", allowed & files, opened)
        _check(_libc().syscall(_SYS_LANDLOCK_ADD, ruleset, 1, rule, 0), f"landlock {path}")
        os.close(opened)
    _check(_libc().syscall(_SYS_LANDLOCK_RESTRICT, ruleset, 0), "landlock")
    os.close(ruleset)


# Small parts


def _end_with_parent(number: int, parent: int = 0) -> None:
    """Have the kernel send this process a signal when its parent ends."""
    _check(_libc().prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0), "end with the parent")
    if parent and os.getppid() != parent:  # it ended just before
        os._exit(CANNOT)


def _code(status: int) -> int:
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _mount(
    source: str | None, target: str, kind: str | None, flags: int, options: str = ""
) -> None:
    _check(
        _libc().mount(
            None if source is None else os.fsencode(source),
            os.fsencode(target),
            None if kind is None else kind.encode(),
            ctypes.c_ulong(flags),
            options.encode() or None,
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


_WAYS = {NAMESPACES: _in_namespaces, USER: _as_another_user, LANDLOCK: _by_landlock}

if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
