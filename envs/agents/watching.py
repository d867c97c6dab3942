"""Watches what an agent is made of, in its process: what it imports and opens until it is ready.

Python cannot take an audit hook back, so one hook serves all watches, and does nothing beside them.
"""

from __future__ import annotations

import os
import re
import site
import sys
import sysconfig
import tempfile
import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import animalcat
from animalcat.envs.agents.fingerprint import AgentFingerprint, digest_of, fold_digests
from animalcat.envs.agents.limits.reference import DoorAgent, Reference
from animalcat.extending import plugins
from animalcat.machine.folders import cache_folder
from animalcat.wire.protocol import version

PASSED_ON: Final = "ANIMALCAT_AGENT_"
"""Beginning of the variables by which a person tells an agent something; all of them are kept."""
VARIABLES: Final = (
    *("PYTHONHASHSEED", "PYTHONOPTIMIZE", "PYTHONPATH"),
    *("CUDA_VISIBLE_DEVICES", "CUBLAS_WORKSPACE_CONFIG", "JAX_PLATFORMS", "XLA_FLAGS"),
    *("TF_DETERMINISTIC_OPS", "PYTORCH_ENABLE_MPS_FALLBACK", "NVIDIA_TF32_OVERRIDE"),
    *("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"),
    *("NUMBA_DISABLE_JIT", "HF_HUB_OFFLINE", "HF_HOME", "TORCH_HOME"),
)
"""Other variables that are kept, because they often change what an agent computes."""
_MACHINE: Final = (
    "/proc",
    "/dev",
    "/sys",
    "/etc",
    "/usr",
    "/lib",
    "/lib64",
    "/bin",
    "/sbin",
    "/run",
)
"""Folders of the machine, which are no part of an agent unless it lives there itself."""
_INSTALLED: Final = frozenset(("site-packages", "dist-packages", "__pycache__"))
"""Folders whose content counts nowhere."""
_MAPPED: Final = re.compile(r"^\S+ r\S* \S+ \S+ \S+ +(/.*)$", re.MULTILINE)
"""A file in /proc/self/maps that can be read."""
_PACKAGE: Final = "package "
"""What stands before the name of a package in place of the path of a file."""
_STEPS_UP: Final = 2
"""How many folders above the agent's are still named from there."""


class Watch:
    """What one agent imports and opens for reading while it is watched.

    Use it as a context around what the agent does; several times, if something else comes between.
    A file that the agent's process has made itself is not counted.

    Attributes:
        settled: The fingerprint, once the agent's first `reset` is over; what is brought in later
            is no part of it, also where the agent comes back to its session.
    """

    def __init__(self, read: Reference) -> None:
        """Look at the agent's own file before any of its code runs.

        Args:
            read: Names the agent.
        """
        self.settled: AgentFingerprint | None = None
        self._read = read
        self._home = Path(read.where).resolve().parent if read.in_file else None
        self._plugin = plugins.find("agent", read.plugin) if read.plugin else None
        self._before = {id(module) for module in list(sys.modules.values())}
        self._mapped = _mapped_files()
        self._made: set[str] = set()
        self._digests: dict[str, str] = {}
        if self._home is not None:
            self._digest(str(Path(read.where).resolve()))

    def __enter__(self) -> Self:
        _hook()
        _watching.append(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _watching.remove(self)

    def saw(self, path: str, *, reads: bool) -> None:
        """Take in a file that is about to be opened, as it is now.

        Args:
            path: Its absolute path.
            reads: Whether what is in it is read; else it is made or written anew.
        """
        if reads:
            self._digest(path)
        elif path not in self._digests:
            self._made.add(path)

    def fingerprint(self) -> AgentFingerprint:
        """What the agent is, by what was seen until now."""
        read = self._read
        if read.door is not None:
            return _of_door(read, read.door)
        paths = {*self._sources(), *(_mapped_files() - self._mapped)}
        for path in sorted(paths):
            self._digest(path)
        files = {
            _name_of_path(Path(path), self._home): digest for path, digest in self._digests.items()
        }
        ours = bool(read.builtin or read.limits or self._inherits())
        return AgentFingerprint(
            "computed",
            name_of(read),
            _version(self._plugin, ours=ours),
            {name: str(value) for name, value in read.limits.items()},
            fold_digests({**files, **_package(self._plugin)}),
            agent_environment(os.environ),
        )

    def _inherits(self) -> bool:
        """Whether the agent brought in a part of animalcat that is an agent itself."""
        ours = "animalcat.envs.agents."
        return any(
            name.startswith((f"{ours}planner", f"{ours}scout")) and id(module) not in self._before
            for name, module in list(sys.modules.items())
        )

    def _sources(self) -> Iterable[str]:
        for module in list(sys.modules.values()):
            if id(module) in self._before:
                continue
            with suppress(Exception):  # a module may be any object
                file = getattr(module, "__file__", None)
                if isinstance(file, str):
                    yield os.path.abspath(file)

    def _digest(self, path: str) -> None:
        if path in self._digests or path in self._made:
            return
        file = Path(path)
        while not file.exists() and file.parent.suffix in (".zip", ".egg", ".whl", ".pyz"):
            file = file.parent  # a module within an archive
        with suppress(OSError, ValueError):
            if file.is_file() and not is_foreign(file, self._home):
                self._digests[path if file.name == Path(path).name else str(file)] = digest_of(file)


def _of_door(read: Reference, agent: DoorAgent) -> AgentFingerprint:
    """The fingerprint of an agent that is elsewhere; files that were read are no part of it."""
    return AgentFingerprint("computed", name_of(read), version(), agent.options)


def name_of(read: Reference) -> str:
    """The agent that a reference names, the same wherever its file lies."""
    return f"{Path(read.where).name if read.in_file else read.where}:{read.name}"


def _version(plugin: plugins.Plugin | None, *, ours: bool) -> str:
    """The version of an agent: of its plugin, and of animalcat where that is part of it."""
    if plugin is None:
        return version() if ours else ""
    package = f"{plugin.distribution} {plugin.version}"
    return f"{package}, animalcat {version()}" if ours else package


def _package(plugin: plugins.Plugin | None) -> dict[str, str]:
    """The digest of the package of a plugin, as one file of its agent."""
    return {} if plugin is None else {f"{_PACKAGE}{plugin.distribution}": plugin.digest}


def as_now(known: AgentFingerprint, read: Reference) -> AgentFingerprint:
    """Return the fingerprint that an agent has now, without running any of its code.

    Args:
        known: Its fingerprint before. The files in it are read again, and no others.
        read: The reference that names the agent now.
    """
    if read.door is not None:
        return _of_door(read, read.door)
    home = Path(read.where).resolve().parent if read.in_file else None
    plugin = plugins.find("agent", read.plugin) if read.plugin else None
    ours = ", animalcat " in known.version if plugin else bool(known.version)
    files = _package(plugin)
    for name, digest in known.files.items():
        if name.startswith(_PACKAGE):
            continue
        if "*" in name:
            files[name] = digest
            continue
        with suppress(OSError):
            files[name] = digest_of((home or Path("/")) / name)
    return AgentFingerprint(
        "computed",
        name_of(read),
        _version(plugin, ours=ours),
        {name: str(value) for name, value in read.limits.items()},
        files,
    )


def agent_environment(variables: Mapping[str, str]) -> dict[str, str]:
    """Those environment variables that are kept with an agent."""
    return {
        name: value
        for name, value in sorted(variables.items())
        if name in VARIABLES or name.startswith(PASSED_ON)
    }


def is_foreign(path: Path, home: Path | None) -> bool:
    """Whether a file is no part of an agent: of the interpreter, of what is installed, or a cache.

    Args:
        path: The file.
        home: The folder of the agent's file; None for an agent that has none.
    """
    return _is_of_machine(path, home) or _is_of_machine(path.resolve(), home)


def _is_of_machine(candidate: Path, home: Path | None) -> bool:
    if not _INSTALLED.isdisjoint(candidate.parts):
        return True
    for root in _roots():
        at_home = home is not None and candidate.is_relative_to(home) and home.is_relative_to(root)
        if candidate.is_relative_to(root) and not at_home:
            return True
    return False


class _HookState(threading.local):
    """Whether this thread is within the hook."""

    now = False


_looking: Final = _HookState()
_watching: Final[list[Watch]] = []


def _name_of_path(path: Path, home: Path | None) -> str:
    """A file's path from the agent's folder where it is near, else the whole path."""
    if home is not None:
        steps = os.path.relpath(path, home).split(os.sep)
        if steps.count(os.pardir) <= _STEPS_UP:
            return "/".join(steps)
    return path.as_posix()


@cache
def _roots() -> tuple[Path, ...]:
    """Folders of the interpreter, of installed packages, of the machine and of our own caches."""
    package = Path(animalcat.__file__).parent
    folders = [Path(name) for name in _MACHINE]
    folders += [Path(prefix) for prefix in (sys.prefix, sys.base_prefix, sys.exec_prefix)]
    folders += [Path(name) for name in sysconfig.get_paths().values()]
    folders += [Path(name) for name in (*site.getsitepackages(), site.getusersitepackages())]
    folders += [package, *(link.resolve() for link in package.iterdir() if link.is_symlink())]
    folders.append(cache_folder(""))
    if numba := os.environ.get("NUMBA_CACHE_DIR"):
        folders.append(Path(numba))
    temporary = {Path(tempfile.gettempdir()), Path("/")}
    both = {*folders, *(folder.resolve() for folder in folders)} - temporary
    return tuple(sorted(both))


def _mapped_files() -> set[str]:
    """Files that are mapped into memory, also by code that is not Python."""
    if not sys.platform.startswith("linux"):
        return set()
    with suppress(OSError):
        return set(_MAPPED.findall(Path("/proc/self/maps").read_text("utf-8", "replace")))
    return set()


@cache
def _hook() -> None:
    """Have Python tell the watches what is opened, from now on."""
    sys.addaudithook(_audit)


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if not _watching or event not in ("open", "sqlite3.connect") or _looking.now:
        return
    _looking.now = True  # what is opened from here on is opened by this very hook
    with suppress(Exception):  # nothing that is opened may fail because of this
        whole = os.path.abspath(os.fsdecode(arguments[0]))
        reads = event != "open" or _reads(arguments[1], arguments[2])
        for watch in tuple(_watching):
            watch.saw(whole, reads=reads)
    _looking.now = False


def _reads(mode: str | None, flags: int) -> bool:
    """Whether what is opened in this way is read as it is."""
    if mode is not None:
        return "r" in mode or mode == "a+"
    return not flags & (os.O_CREAT | os.O_TRUNC) and flags & os.O_ACCMODE != os.O_WRONLY
