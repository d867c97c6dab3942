"""Finds what other packages add by entry points: who it comes from, and what it is."""

from __future__ import annotations

import hashlib
import importlib.util
import re
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.metadata import Distribution, EntryPoint, entry_points
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, get_args

from animalcat.extending.files import class_in, split_name

Kind: TypeAlias = Literal["agent", "policy", "backend", "export", "layout", "family"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
"""What a plugin may be."""
GROUPS: Final[Mapping[Kind, str]] = {
    "agent": "animalcat.agents",
    "policy": "animalcat.policies",
    "backend": "animalcat.backends",
    "export": "animalcat.exports",
    "layout": "animalcat.layouts",
    "family": "animalcat.families",
}
"""The group of entry points of each kind."""
SHORT: Final = 12
"""Letters of a digest in sentences."""


class PluginError(ValueError):
    """A plugin cannot be used; the message says why and what to do."""


class PluginNotAllowedError(PluginError):
    """The process may not run the plugin's code: its operator has not allowed it."""


@dataclass(frozen=True, slots=True)
class Plugin:
    """A plugin as it is installed.

    Attributes:
        kind: One of `KINDS`.
        name: Name of its entry point, by which it is asked for.
        distribution: Name of the package that it comes with, or of the file that it is in.
        version: Version of that; a file has none.
        digest: SHA-256 over the package's files, or of the file, in hexadecimal.
    """

    kind: Kind
    name: str
    distribution: str
    version: str
    digest: str

    @property
    def source(self) -> str:
        """Which package it is of, in words."""
        return f"{self.distribution} {self.version}".strip() + f" (sha256 {self.digest[:SHORT]})"

    @property
    def stamp(self) -> str:
        """Version and digest of its package, as they stand among the versions of an episode."""
        return f"{self.version} sha256:{self.digest}"

    @property
    def words(self) -> str:
        """What it is, in words."""
        return f"{self.kind} {self.name} of {self.source}"


@dataclass(slots=True)
class _Process:
    """What this process may load, and what it has loaded."""

    limits: list[frozenset[str]] = field(default_factory=list[frozenset[str]])
    """The distributions and files that each server in it may load, of which those count that all
    may; without any, the process is its user's own and may load all."""
    loaded: dict[tuple[str, str], tuple[Plugin, Any]] = field(
        default_factory=dict[tuple[str, str], tuple[Plugin, Any]]
    )


_process: Final = _Process()


def same_name(distribution: str) -> str:
    """Return the name of a distribution as all ways to write it have it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", distribution).lower()


@contextmanager
def only(distributions: Iterable[str]) -> Generator[None]:
    """Let this process load plugins of some distributions alone, while the block lasts.

    A server lives within such a block: what it loads is code that its operator has to allow.

    Args:
        distributions: Their names, and paths of files whose policies may be loaded too.

    Raises:
        PluginError: No plugin comes with one of them, which is no file either.
    """
    wanted = list(distributions)
    there = {same_name(_owner(entry).name) for entry in _entries()} if wanted else set[str]()
    allowed: list[str] = []
    for name in wanted:
        if same_name(name) in there:
            allowed.append(same_name(name))
        elif name.endswith(".py") and Path(name).is_file():
            allowed.append(str(Path(name).absolute()))
        else:
            file = f", and there is no file {name}" * name.endswith(".py")
            raise PluginError(
                f"no plugin comes with a package {name!r} that is installed here{file}; "
                f"{_join_names('packages with plugins', there)}. `animalcat doctor` shows them"
            )
    limit = frozenset(allowed)
    _process.limits.append(limit)
    try:
        yield
    finally:
        _process.limits.remove(limit)


def limits() -> tuple[frozenset[str], ...]:
    """Return what this process is limited to (`only`), for one that works for it."""
    return (*_process.limits,)


def find(kind: Kind, name: str) -> Plugin | None:
    """Return the plugin of a name; None if there is none. None of its code is run.

    Raises:
        PluginError: Several packages have one of this name, or its file may not be run.
    """
    entry = _entry(kind, name)
    return None if entry is None else _describe(kind, entry)


def every(*kinds: Kind) -> list[Plugin]:
    """Return all plugins that are installed, in order of kind and name. None of their code is run.

    Where several packages have one of the same kind and name, each of them is there.

    Args:
        kinds: Those of these kinds alone; without any, of all.
    """
    return [
        _describe(kind, entry)
        for kind in kinds or KINDS
        for entry in sorted(_entries(kind), key=lambda entry: (entry.name, _owner(entry).name))
    ]


def in_words(used: Iterable[Plugin]) -> str:
    """Return plugins as one phrase, those of a package together."""
    of: dict[str, list[str]] = {}
    for plugin in used:
        of.setdefault(plugin.source, []).append(f"{plugin.kind} {plugin.name}")
    return "; ".join(f"{', '.join(them)} of {source}" for source, them in of.items())


def names(kind: Kind) -> tuple[str, ...]:
    """Return the names of all plugins of a kind, in order."""
    return tuple(sorted({entry.name for entry in _entries(kind)}))


def allowed_names(kind: Kind) -> tuple[str, ...]:
    """Return the names of a kind that an operator has allowed this process to load, in order."""
    packages = _limit()
    if not packages:  # a process that may load none, or any
        return ()
    entries = _entries(kind)
    return tuple(sorted({e.name for e in entries if same_name(_owner(e).name) in packages}))


def load(kind: Kind, name: str) -> Any:
    """Import what a plugin's entry point names, and return it.

    Raises:
        PluginNotAllowedError: This process may not run its code.
        PluginError: There is no such plugin, several packages have one, it breaks when it is
            imported, or its package was changed since this process has loaded it.
    """
    entry = _entry(kind, name)
    if entry is None:
        raise PluginError(f"there is no {kind} {name!r}; {_join_names('plugins', names(kind))}")
    plugin = _describe(kind, entry)
    packages, package = _limit(), plugin.distribution
    if entry.dist and packages is not None and same_name(package) not in packages:
        raise PluginNotAllowedError(
            f"the {kind} {name!r} is a plugin of the package {package} {plugin.version}, "
            "whose code this server may not run. If you trust that package, say --allow-plugin "
            f"{package} to `animalcat serve`, or to a command that starts a server of its own"
        )
    known = _process.loaded.get((kind, name))
    if known is not None:
        if known[0] != plugin:
            raise PluginError(
                f"the {kind} {name!r} was loaded from {known[0].source}, and what is installed by "
                f"now is {plugin.source}; start this process again to use that"
            )
        return known[1]
    try:
        thing = entry.load() if entry.dist else _class_of(entry)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        raise PluginError(
            f"the {kind} {name!r} of {plugin.source} breaks when it is imported: "
            f"{type(error).__name__}: {error}. Mend it, or leave it out"
        ) from error
    _process.loaded[kind, name] = plugin, thing
    return thing


def _limit() -> frozenset[str] | None:
    """Distributions that this process may load; None for any."""
    if not _process.limits:
        return None
    first, *others = _process.limits
    return first.intersection(*others)


def call_plugin(kind: Kind, name: str) -> Any:
    """Load a plugin, call it without arguments, and return what that gives.

    Raises:
        PluginError: As for `load`; or the call fails.
    """
    thing = load(kind, name)
    if not callable(thing):
        raise PluginError(f"the {kind} {name!r} is {thing!r}, which cannot be called")
    try:
        return thing()
    except Exception as error:
        raise PluginError(
            f"the {kind} {name!r}, a plugin, fails when it is made: {type(error).__name__}: {error}"
        ) from error


def text(kind: Kind, name: str) -> str:
    """Return the text of a plugin that is one, or that is a function which returns one.

    Raises:
        PluginError: As for `load`; or it is no text.
    """
    thing = load(kind, name)
    found = call_plugin(kind, name) if callable(thing) else thing
    if not isinstance(found, str):
        raise PluginError(
            f"the {kind} {name!r} is {type(found).__name__}; its entry point has to be a text, or "
            "a function that returns one"
        )
    return found


def words_of_change(known: Plugin) -> str:
    """Return what has become of a plugin since, in a sentence; empty if it is as it was.

    Raises:
        PluginNotAllowedError: It is in a file that this process may not run.
    """
    try:
        now = find(known.kind, known.name)
    except PluginNotAllowedError:
        raise
    except PluginError as error:
        return str(error)
    if now == known:
        return ""
    was = f"the {known.kind} {known.name!r} was {known.source}"
    if now is None:
        return f"{was}, and is not installed here any more"
    return f"{was}, and is {now.source} here"


def places(kind: Kind, name: str) -> list[Path]:
    """Return the files and folders in which the code of a plugin is, and what says so.

    A process that is to load the plugin has to see them.
    """
    entry = _entry(kind, name)
    if entry is None:
        return []
    owner = _owner(entry)
    found = {Path(str(owner.locate_file(path.parts[0]))) for path in owner.files or ()}
    for name_in, path in _files_of_module(entry.module).items():
        found.add(path.parents[len(name_in.split("/")) - 2] if "/" in name_in else path)
    return sorted(path for path in found if path.name != ".." and path.exists())


def _class_of(entry: EntryPoint) -> type[Any]:
    """The class that a policy in a file names."""
    name = split_name(entry.name)[1]
    found = class_in("policy", Path(entry.value), name)
    if isinstance(found, list):
        raise LookupError(f"no class {name} in the file; there are: {', '.join(found) or 'none'}")
    return found


def _entries(kind: Kind | None = None) -> list[EntryPoint]:
    kinds = KINDS if kind is None else (kind,)
    return [
        entry
        for one in kinds
        for entry in entry_points(group=GROUPS[one])
        if entry.dist is not None
    ]


def _in_file(name: str, file: str) -> EntryPoint:
    """What stands for an entry point where a policy is named as FILE.py:Class: it has no package.

    Raises:
        PluginNotAllowedError: This process may not run such a file.
    """
    limit = _limit()
    there = [file] if limit is None else [one for one in limit if Path(one).name == file]
    if len(there) != 1:
        may = "several files of this name" if there else "no such file"
        raise PluginNotAllowedError(
            f"the policy {name!r} is in a file, and this server may run {may}. If you trust it, "
            f"say --allow-plugin PATH/TO/{file} to `animalcat serve`, or to a command that starts "
            "a server of its own"
        )
    return EntryPoint(name, there[0], GROUPS["policy"])


def _entry(kind: Kind, name: str) -> EntryPoint | None:
    """The entry point of a name, or what stands for it.

    Raises:
        PluginError: Several packages have one, or its file may not be run.
    """
    if kind == "policy" and (file := split_name(name)[0]):
        return _in_file(name, file)
    found = [entry for entry in _entries(kind) if entry.name == name]
    if len(found) > 1:
        packages = " and ".join(sorted(f"{_owner(e).name} {_owner(e).version}" for e in found))
        raise PluginError(
            f"several packages have the {kind} {name!r}: {packages}. None of them is used; "
            "uninstall all but one, or have one renamed"
        )
    return found[0] if found else None


def _owner(entry: EntryPoint) -> Distribution:
    assert entry.dist is not None, "others are left out"
    return entry.dist


def _describe(kind: Kind, entry: EntryPoint) -> Plugin:
    if entry.dist is None:
        path = Path(entry.value)
        try:
            content = path.read_bytes()
        except OSError as error:
            raise PluginError(f"the policy {entry.name!r}: {error.strerror}") from error
        return Plugin(kind, entry.name, path.name, "", hashlib.sha256(content).hexdigest())
    owner = _owner(entry)
    return Plugin(kind, entry.name, owner.name, owner.version, digest(owner))


def digest(distribution: Distribution) -> str:
    """SHA-256 over the files of a distribution, and the names of its entry points.

    It is the same wherever and however the same files are installed. What was compiled, and what an
    installer adds for itself, is left out. Of an editable installation, the files are those of the
    packages that its entry points name, as they are now.
    """
    lines = [distribution.read_text("entry_points.txt") or ""]
    files = _files(distribution)
    for name in sorted(files):
        with suppress(OSError), files[name].open("rb") as file:
            lines.append(f"{name} {hashlib.file_digest(file, 'sha256').hexdigest()}")
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _files(distribution: Distribution) -> dict[str, Path]:
    """The files of a distribution, by their paths from where it is installed."""
    found: dict[str, Path] = {}
    for path in distribution.files or ():
        top = path.parts[0]
        of_installer = top.endswith((".dist-info", ".egg-info")) or top.startswith("__editable__")
        link = len(path.parts) == 1 and path.suffix == ".pth"
        if not (of_installer or link or top == ".." or _is_compiled(path.parts)):
            found[path.as_posix()] = Path(str(path.locate()))
    modules = {
        entry.module
        for entry in distribution.entry_points
        if entry.group in GROUPS.values() and entry.module
    }
    for module in sorted(modules):
        found |= _files_of_module(module)
    return found


def _files_of_module(module: str) -> dict[str, Path]:
    """The files of the package of a module; nothing is imported but namespaces."""
    parts = module.split(".")
    for end in range(1, len(parts) + 1):
        with suppress(ImportError, ValueError):
            spec = importlib.util.find_spec(".".join(parts[:end]))
            if spec is None:
                return {}
            if spec.submodule_search_locations is None:
                file = Path(spec.origin or "")
                return {"/".join((*parts[: end - 1], file.name)): file} if file.is_file() else {}
            if spec.origin is not None:  # else it is a namespace, which is shared with others
                folder = Path(spec.origin).parent
                return {
                    "/".join((*parts[:end], *path.relative_to(folder).parts)): path
                    for path in folder.rglob("*")
                    if path.is_file() and not _is_compiled(path.relative_to(folder).parts)
                }
    return {}


def _is_compiled(parts: tuple[str, ...]) -> bool:
    return "__pycache__" in parts or parts[-1].endswith((".pyc", ".pyo"))


def _join_names(what: str, found: Iterable[str]) -> str:
    return f"{what}: {', '.join(sorted(found)) or 'none'}"
