"""`animalcat doctor`: what is there, what is missing, and how to get it."""

from __future__ import annotations

import ctypes.util
import importlib
import importlib.metadata
import os
import platform
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Final, Literal

import typer

from animalcat.apart import way
from animalcat.cli.shared.common import common, without
from animalcat.cli.shared.output import MISSING, fail, print_json, print_rows, print_table, say
from animalcat.cli.shared.plugin_problems import plugins_with_problems
from animalcat.cli.shared.progress import progress
from animalcat.extending.installing import install
from animalcat.machine.folders import cache_folder
from animalcat.machine.kept import FILE, LIMIT, cache_sizes, size_limit

CLIENT: Final = ("grpcio", "protobuf", "numpy", "gymnasium", "typer", "rich")
SERVER: Final = ("sapien", "numba", "pymc", "nutpie", "arviz", "pandas", "sqlalchemy", "mcap")
SERVER_EXTRA: Final = install("server")


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked for.

    Attributes:
        item: What was looked for.
        status: "ok"; "missing" (something will not work); "partial" (it works in part); "absent"
            (optional).
        found: Version or place, or why it does not work.
        remedy: How to get it; empty where nothing is to be done.
    """

    item: str
    status: Literal["ok", "missing", "partial", "absent"]
    found: str
    remedy: str = ""


def examine() -> Iterator[Finding]:
    """Look for everything that animalcat can use, the needful first."""
    yield _interpreter()
    yield _caches()
    yield from _packages(CLIENT, install(), optional=False)
    server = list(_packages(SERVER, SERVER_EXTRA, optional=True))
    yield from server
    if all(finding.status == "absent" for finding in server):
        return  # A client only: what follows serves the simulator.
    yield _agents()
    yield from _server_of_here()
    yield _x11()
    yield _works("simulator", _import_physics, f"{SERVER_EXTRA}; and libX11 (see above)")
    yield from _unity()
    yield from _plugins()


def _plugins() -> Iterator[Finding]:
    """What other packages add; nothing of it is run."""
    for plugin, problem in plugins_with_problems():
        item, found = f"{plugin.kind} {plugin.name}", f"a plugin of {plugin.source}"
        if problem:
            yield Finding(item, "partial", found, problem)
        else:
            yield Finding(item, "ok", found)


def _caches() -> Finding:
    """What the user's cache takes, and how much it may."""
    sizes = cache_sizes()
    parts = ", ".join(f"{name} {size / 1e6:.0f} MB" for name, size in sizes.items())
    try:
        limit = f"each of {FILE} and batteries up to {size_limit() / 1e6:.0f} MB ({LIMIT})"
    except ValueError as error:
        return Finding("cache", "partial", str(error), f"set {LIMIT} to a number, or unset it")
    return Finding("cache", "ok", f"{cache_folder('')}: {parts or 'empty'}; {limit}")


@without("--server", "--data")
def command(
    warm: Annotated[
        bool, typer.Option("--warm", help="Compile now what would be compiled on first use.")
    ] = False,
) -> None:
    """Look for everything that animalcat needs, and say how to get what is missing.

    The exit code is 3 when something is missing.
    """
    if warm:
        _warm()
        return
    findings = list(examine())
    missing = [f for f in findings if f.status == "missing"]
    if common().as_json:
        print_json([asdict(f) for f in findings])
    else:
        print_table([asdict(f) for f in findings], ["item", "status", "found", "remedy"])
        say(_sum(findings))
    if missing:
        raise typer.Exit(MISSING)


def _sum(findings: Sequence[Finding]) -> str:
    missing = sum(finding.status == "missing" for finding in findings)
    if missing:
        return f"{missing} missing"
    if any(f.status == "absent" and f.item in SERVER for f in findings):
        return (
            "Nothing is missing for a client of a server elsewhere. To serve, simulate or fit "
            f"here: {SERVER_EXTRA}"
        )
    return "Nothing is missing."


def _warm() -> None:
    """Use everything that is compiled on first use, and say how long each took."""
    try:
        from animalcat.service.host.warming import compile_all, parts
    except (ImportError, OSError) as error:
        fail(f"nothing can be compiled here ({error}); {SERVER_EXTRA}", MISSING)
    rows: list[dict[str, str | float]] = []
    count = len(list(parts()))
    try:
        with progress("compiling", wait=0.0) as tell:
            tell("compiling", 0, count)
            for done, (name, seconds) in enumerate(compile_all(), 1):
                tell("compiling", done, count)
                rows.append({"item": name, "seconds": round(seconds, 2)})
    except RuntimeError as error:
        fail(f"cannot compile {error}")
    print_rows(rows, ["item", "seconds"])
    if not common().as_json:
        say(
            "Compiled and kept. Models of layouts with scores cannot be kept: a server compiles "
            "each such layout once, in the background."
        )


def _interpreter() -> Finding:
    version = f"{platform.python_implementation()} {platform.python_version()} ({sys.executable})"
    return Finding("Python", "ok", version)


def _packages(names: Sequence[str], remedy: str, *, optional: bool) -> Iterator[Finding]:
    """Look for packages; where all of an optional set are away, nobody meant to have them."""
    versions = {name: _version(name) for name in names}
    away = "absent" if optional and not any(versions.values()) else "missing"
    for name, version in versions.items():
        if version:
            yield Finding(name, "ok", version)
        else:
            yield Finding(name, away, "not installed", remedy)


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _server_of_here() -> Iterator[Finding]:
    """A wrong setting of the server of this machine."""
    try:
        from animalcat.service.host.settings import Settings, SettingsError
    except (ImportError, OSError):  # found missing above
        return
    try:
        Settings()
    except SettingsError as error:
        yield Finding("settings", "missing", str(error), "animalcat serve --check")


def _agents() -> Finding:
    """How agents that a command starts are kept apart from the evaluator, and what that leaves."""
    item, best = "agents apart", way()
    wanted = "" if os.geteuid() == 0 or shutil.which("bwrap") else "install bubblewrap, or "
    remedy = f"optional; {wanted}allow user namespaces" if sys.platform == "linux" else ""
    if not best.name:
        words = f"another's agent needs --agent-may all here: {best.why}"
        return Finding(item, "absent", words, remedy)
    left = f"; not covered: {'; '.join(best.open)}" if best.open else ""
    if best.whole:
        words = f"by {best.name}: an agent sees what it is given, nothing else{left}"
        return Finding(item, "ok", words)
    return Finding(item, "partial", f"in part, by {best.name} ({best.why}){left}", remedy)


def _x11() -> Finding:
    if sys.platform != "linux":
        return Finding("libX11", "ok", f"not needed on {sys.platform}")
    try:
        library = ctypes.util.find_library("X11")
    except OSError as error:  # it needs a folder for what is temporary
        return Finding("libX11", "missing", str(error), "set TMPDIR to a folder of yours")
    if library:
        return Finding("libX11", "ok", library)
    return Finding("libX11", "missing", "not found; PhysX links it", "apt-get install libx11-6")


def _works(
    item: str,
    attempt: Callable[[], str],
    remedy: str,
    away: Literal["missing", "absent"] = "missing",
) -> Finding:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return Finding(item, "ok", attempt())
    except (ImportError, OSError) as error:
        return Finding(item, away, str(error).splitlines()[0], remedy)


def _import_physics() -> str:
    importlib.import_module("animalcat.envs.sim.environment")
    return f"PhysX through sapien {_version('sapien')}"


def _unity() -> Iterator[Finding]:
    """The interpreter that drives Unity builds, and the build that `unity:auto` means."""
    try:
        from animalcat.envs.unity.settings import UnityError, UnitySettings
        from animalcat.envs.unity.setup import client_versions
    except ImportError as error:  # pydantic is away, and was found missing above
        yield Finding("animalai client", "absent", str(error), SERVER_EXTRA)
        return
    try:
        settings = UnitySettings()
        versions = client_versions(settings.interpreter())
        installed = ", ".join(f"{name} {version}" for name, version in versions.items())
        yield Finding("animalai client", "ok", installed)
    except UnityError as error:
        remedy = "optional; animalcat unity setup"
        yield Finding("animalai client", "absent", str(error).splitlines()[0], remedy)
        return
    try:
        yield Finding("Unity build", "ok", str(settings.find_build()))
    except UnityError:
        remedy = "optional, the simulator needs none; animalcat unity setup"
        yield Finding("Unity build", "absent", "none is set or found", remedy)
