"""Says what a process is given that is kept apart, and how: it sees that and nothing else."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any, Final

import animalcat
from animalcat.apart import confine
from animalcat.apart.view import WORK, Mount, View, as_json, machine, software
from animalcat.envs.agents.watching import PASSED_ON, VARIABLES
from animalcat.machine.folders import cache_folder, caches

BUBBLEWRAP: Final = "bubblewrap"
"""The way that uses a program kept for this; the others are in `confine`."""
_TRIAL_SECONDS: Final = 20.0
"""How long a trial may take on a busy machine."""
_LONGEST_PLAN: Final = 120_000
"""Most bytes of a plan, since systems take an argument of 128 KiB."""
_COMPILED: Final = "compiled"
"""Part of the cache in which numba keeps what it compiles of our own agents."""
_SECRETS: Final = (
    "TOKEN",
    "HOME",
    "POSTGRES_URL",
    "DATABASE_URL",
    "STORE",
)
"""Ends of `ANIMALCAT_...` variables that are nothing for an agent."""
_KEPT: Final = (
    *("PATH", "LANG", "LANGUAGE", "TZ", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "CONDA_PREFIX"),
    *("PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE", "PYTHONUTF8", "PYTHONWARNINGS"),
    *VARIABLES,
)
_KEPT_BEGINNINGS: Final = (PASSED_ON, "LC_")
_KEPT_ENDS: Final = ("_NUM_THREADS",)
_FOR_NETWORK: Final = (
    *("http_proxy", "https_proxy", "no_proxy", "all_proxy"),
    *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"),
    *("GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", "ANIMALCAT_CA", "ANIMALCAT_DIRECT_NETWORKS"),
)
"""Variables that an agent's process has only where it has the network."""


class Permission(StrEnum):
    """What an agent's process may do besides playing."""

    PLAY = "play"
    """Nothing: it reaches the server's door for agents, and not the network."""
    NETWORK = "network"
    """Use the network, for example to ask a model elsewhere."""
    ALL = "all"
    """Everything that its user may: it is not kept apart."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What all processes of an agent together, or each of them, may take.

    Attributes:
        processes: Processes and threads, together.
        memory: Bytes that each process may have for itself.
        room: Bytes in each of its folders, which are in memory, and twice as much in /dev/shm; no
            file may be larger than that.
        files: Open files of each process.
    """

    processes: int
    memory: int
    room: int
    files: int

    @classmethod
    def of_machine(cls) -> Limits:
        """Limits by the size of this machine, for agents that mean no harm."""
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        processes = max(512, 64 * (os.cpu_count() or 1))
        return cls(processes, memory * 3 // 4, max(memory // 8, 64 << 20), 4096)


@dataclass(frozen=True, slots=True)
class ProcessPlan:
    """All that a process is given, whichever way it is kept apart.

    Attributes:
        mounts: What it sees, in the order in which it is put there.
        network: Whether it has the network.
        limits: What it may take.
        variables: Its environment.
        kept: A folder of compiled code that only our code has filled, and where the process has
            its own copy of it; empty if it needs none.
        hide: Folders that another user must not be able to read.
    """

    mounts: tuple[Mount, ...]
    network: bool
    limits: Limits
    variables: Mapping[str, str]
    kept: tuple[str, ...] = ()
    hide: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Way:
    """How processes can be put apart on this machine.

    Attributes:
        name: "bubblewrap", "namespaces", "user", "landlock", or empty if they cannot.
        why: Why no better way is open.
        open: What it does not cover, each in some words.
    """

    name: str
    why: str = ""
    open: tuple[str, ...] = ()

    @property
    def whole(self) -> bool:
        """Whether a process sees what it is given and nothing else."""
        return self.name in (BUBBLEWRAP, confine.NAMESPACES)


@dataclass(frozen=True, slots=True)
class ApartCommand:
    """A command that runs a program apart.

    Attributes:
        command: The command.
        variables: Its environment.
        folder: A folder that was made for it, and is to be removed after it; None: none.
    """

    command: tuple[str, ...]
    variables: Mapping[str, str]
    folder: Path | None = None

    def remove(self) -> None:
        """Remove its folder."""
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)


@cache
def way() -> Way:
    """Return how a process can be put apart here, by trying it."""
    if sys.platform != "linux":
        return Way("", f"this works on Linux alone, and not on {sys.platform}")
    said = ""
    for name in _order():
        plan = plan_of(network=False, limits=Limits(64, 1 << 30, 16 << 20, 256))
        try:
            started = launch_command([sys.executable, "-I", "-S", "-c", "pass"], plan, name)
        except OSError as error:  # there is no folder for what is temporary
            said = said or str(error)
            continue
        try:
            done = subprocess.run(
                started.command,
                env=started.variables,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=_TRIAL_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:  # whose own words have the whole plan in them
            said = said or f"a trial took longer than {_TRIAL_SECONDS:g} s"
            continue
        except OSError as error:
            said = said or str(error)
            continue
        finally:
            started.remove()
        if done.returncode == 0:
            return Way(name, said, _left_open(name))
        said = said or (done.stderr.strip().splitlines() or ["it failed"])[-1]
    return Way("", said)


def _order() -> tuple[str, ...]:
    """Ways in the order in which they are tried."""
    if os.geteuid() == 0:
        # Bubblewrap keeps root's number, whose are the settings of the kernel in /proc and which no
        # limit of processes binds; and Landlock leaves root its powers.
        return (confine.NAMESPACES, confine.USER)
    bubblewrap = (BUBBLEWRAP,) if shutil.which("bwrap") else ()
    return (*bubblewrap, confine.NAMESPACES, confine.LANDLOCK)


def _left_open(name: str) -> tuple[str, ...]:
    """What a way does not cover on this machine."""
    version, refuses = confine.landlock_version(), confine.refuses_calls()
    if name in (BUBBLEWRAP, confine.NAMESPACES):
        abstract = "with --agent-may network, it reaches abstract sockets (X11, some D-Bus)"
        return () if version >= 6 else (abstract,)
    uncovered = ["names of files", "sockets that have a path", "other processes can be seen"]
    uncovered.append("what your programs share in /dev/shm, and what it leaves there")
    uncovered.append("what is written to its folder and /dev/shm is limited for each file alone")
    if not version:
        uncovered.append("all files that every user may read or change, and what it leaves in /tmp")
    if not refuses:
        uncovered.append("the network" if version < 4 else "the network but for TCP")
        uncovered.append("memory, semaphores and queues that your programs share")
    if version < 6:
        uncovered.append("abstract sockets")
    if name == confine.LANDLOCK:
        uncovered.append("the number of processes")
        if not refuses:
            uncovered.append("limits and priorities of your other processes")
        if version < 6:
            uncovered.append("ending your other processes, and outliving the command")
    return tuple(uncovered)


def plan_of(
    *,
    network: bool,
    limits: Limits | None = None,
    sees: Iterable[str] = (),
    links: Mapping[str, str] | None = None,
    sockets: Iterable[str] = (),
    variables: Mapping[str, str] | None = None,
    ours: bool = False,
    hide: Sequence[str] = (),
) -> ProcessPlan:
    """Return what a process is given: the software, and what is said here.

    Args:
        network: Whether it has the network.
        limits: What it may take; None: by the size of this machine.
        sees: Files and folders of a person that it may read.
        links: Links that it finds, and what they say.
        sockets: Sockets, or folders of them, that it may use.
        variables: What its environment has besides.
        ours: Whether it runs nothing but our own code, so that it may fill the cache of compiled
            code that others run.
        hide: Folders that another user must not be able to read.
    """
    limits = limits or Limits.of_machine()
    view = machine(network, limits.room)
    for path in software():
        view.see(path, given=True)
    home = _home(view, sees)
    view.empty(home, limits.room, 0o700)
    for path in sees:
        view.see(path, given=True)
    for at, says in (links or {}).items():
        view.mounts[at] = Mount(at, "link", says)
    for path in sockets:
        view.see(path)
    compiled = cache_folder(_COMPILED)
    compiled.mkdir(parents=True, exist_ok=True)
    kept = view.see(str(compiled), given=True, kind="share" if ours else "see")
    own = kept if ours else f"{home}/.cache/numba"
    changes = {"HOME": home, "TMPDIR": "/tmp", "NUMBA_CACHE_DIR": own, **(variables or {})}
    whole = clean_environment(os.environ, network=network) | changes
    copies = () if ours else (kept, own)
    return ProcessPlan(view.ordered(), network, limits, whole, copies, tuple(hide))


def _home(view: View, sees: Iterable[str]) -> str:
    """The home folder: where it is outside, so that paths in it are the same, but empty."""
    home = os.path.realpath(os.environ.get("HOME") or "/")
    special = ("/", "/etc", "/usr", "/dev", "/proc", "/sys", "/run", "/tmp", "/var/tmp", WORK)
    taken = [*view.seen(), *map(os.path.realpath, sees)]
    inside = any(Path(home).is_relative_to(path) for path in taken)
    below = any(Path(path).is_relative_to(home) for path in special)
    return f"{WORK}/home" if inside or below or home.startswith(("/proc/", "/dev/")) else home


def launch_command(command: Sequence[str], plan: ProcessPlan, name: str) -> ApartCommand:
    """Return the command that runs a command as a plan says.

    Args:
        command: What to run.
        plan: What it is given.
        name: The way.

    Raises:
        ValueError: There is too much in the plan.
    """
    folder: Path | None = None
    limits = {**_limits(plan.limits), "core": 0}
    said: dict[str, Any] = {
        "way": name,
        "command": list(command),
        "folder": WORK,
        "parent": os.getpid(),
        "network": plan.network,
        "limits": limits,
        "kept": list(plan.kept),
        "hide": list(plan.hide),
        "mounts": as_json(plan.mounts),
        # Python looks through the folder in which a package is.
        "lists": [str(Path(animalcat.__file__).parents[1])],
    }
    variables = dict(plan.variables)
    if name == BUBBLEWRAP:
        said |= {"way": confine.INSIDE, "mounts": []}
    elif name in (confine.USER, confine.LANDLOCK):
        shared = "/tmp" if name == confine.USER else None  # one's own may be closed to others
        folder = Path(tempfile.mkdtemp(prefix="animalcat-agent-", dir=shared))
        said["folder"] = str(folder)
        variables |= {"HOME": str(folder), "TMPDIR": str(folder)}
        if plan.kept:
            said["kept"][1] = variables["NUMBA_CACHE_DIR"] = str(folder / ".numba")
    if name == confine.USER:
        for path in plan.hide:
            with suppress(OSError):  # where it is not ours, the trial of it fails
                os.chmod(path, stat.S_IMODE(os.stat(path).st_mode) & ~stat.S_IRWXO)
    text = json.dumps(said)
    if len(text) > _LONGEST_PLAN:
        if folder is not None:
            folder.rmdir()
        raise ValueError(
            f"an agent is shown too many files one by one ({len(plan.mounts)}); keep them in one "
            "folder, and name it with --agent-sees"
        )
    run = [sys.executable, "-I", "-S", str(Path(confine.__file__)), text]
    if name == BUBBLEWRAP:
        run = [*_bubblewrap(plan), *run]
    return ApartCommand(tuple(run), variables, folder)


def _limits(limits: Limits) -> dict[str, int]:
    numbers = asdict(limits)
    return {**numbers, "file_bytes": 2 * numbers.pop("room")}


def _bubblewrap(plan: ProcessPlan) -> list[str]:
    """The words of a plan for bubblewrap."""
    words = [shutil.which("bwrap") or "bwrap", "--die-with-parent", "--unshare-user"]
    words += ["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--disable-userns"]
    words += ["--unshare-net"] if not plan.network else []
    words += ["--uid", str(confine.AGENT_ID), "--gid", str(confine.AGENT_ID)]
    words += ["--cap-drop", "ALL"]
    for mount in plan.mounts:
        if mount.path.startswith("/proc/"):
            continue  # it has one of its own
        if mount.kind == "link":
            words += ["--symlink", mount.source, mount.path]
        elif mount.kind == "empty":
            words += [
                "--perms",
                f"{mount.mode:o}",
                "--size",
                str(mount.size),
                "--tmpfs",
                mount.path,
            ]
        elif confine.is_device(mount.source):
            words += ["--dev-bind-try", mount.source, mount.path]
        else:
            words += [
                "--bind" if mount.kind == "share" else "--ro-bind-try",
                mount.source,
                mount.path,
            ]
    return [*words, "--proc", "/proc", "--remount-ro", "/", "--chdir", WORK, "--"]


def clean_environment(given: Mapping[str, str], *, network: bool) -> dict[str, str]:
    """Return what an agent's process gets of an environment: what is known to do no harm.

    Args:
        given: The environment.
        network: Whether it has the network.
    """
    names = {*_KEPT, *(_FOR_NETWORK if network else ())}
    kept = {
        name: value
        for name, value in given.items()
        if name in names or name.startswith(_KEPT_BEGINNINGS) or name.endswith(_KEPT_ENDS)
    }
    if "PYTHONPATH" in kept:  # it works in another folder
        parts = kept["PYTHONPATH"].split(os.pathsep)
        kept["PYTHONPATH"] = os.pathsep.join(os.path.abspath(part) for part in parts if part)
    return kept


def named_variables(named: Iterable[str], given: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that a person names for an agent, as NAME or NAME=VALUE.

    Raises:
        ValueError: One has no value.
    """
    variables: dict[str, str] = {}
    for text in named:
        name, equals, value = text.partition("=")
        if not name or (not equals and name not in given):
            raise ValueError(f"--agent-env {text}: it is not set here; say {name or 'NAME'}=VALUE")
        variables[name] = value if equals else given[name]
    return variables


def environment(**changes: str) -> dict[str, str]:
    """Return the environment of an agent's process that is not kept apart.

    It is without what is for people and servers. What numba compiles for agents is kept away from
    what it compiles for others, who would run it.

    Args:
        changes: What is added.
    """
    kept = {
        name: value
        for name, value in os.environ.items()
        if not (name.startswith("ANIMALCAT_") and name.endswith(_SECRETS))
    }
    compiled = caches() / "animalcat-agents"
    compiled.mkdir(parents=True, exist_ok=True)
    return {**kept, "NUMBA_CACHE_DIR": str(compiled), **changes}
