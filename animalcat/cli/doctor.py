"""`animalcat doctor`: what is there, what is missing, and how to get it."""

from __future__ import annotations

import ctypes.util
import glob
import importlib
import importlib.metadata
import os
import platform
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Final, Literal

import typer

from animalcat.cli.output import MISSING, print_json, print_rows

CLIENT: Final = ("grpcio", "protobuf", "numpy", "gymnasium", "typer", "rich")
SERVER: Final = ("sapien", "numba", "pymc", "nutpie", "arviz", "pandas", "sqlalchemy", "mcap")
SERVER_EXTRA: Final = "pip install 'animalcat[server]'"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked for.

    Attributes:
        item: What was looked for.
        status: "ok"; "missing" (something will not work); "absent" (optional).
        found: Version or place, or why it does not work.
        remedy: How to get it; empty where nothing is to be done.
    """

    item: str
    status: Literal["ok", "missing", "absent"]
    found: str
    remedy: str = ""


def examine() -> Iterator[Finding]:
    """Look for everything that animalcat can use, the needful first."""
    yield _interpreter()
    yield from _packages(CLIENT, "pip install animalcat", optional=False)
    server = list(_packages(SERVER, SERVER_EXTRA, optional=True))
    yield from server
    if all(finding.status == "absent" for finding in server):
        return  # A client only: what follows serves the simulator.
    yield _x11()
    yield _works("simulator", _import_physics, f"{SERVER_EXTRA}; and libX11 (see above)")
    yield _works(
        "animalai client",
        _import_animalai,
        "optional; make setup, or: uv pip install --python-version 3.14 --no-deps animalai==6.2.0 "
        "mlagents-envs-aai==1.0.0",
        away="absent",
    )
    yield _unity_build()


def command(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Say what is there, what is missing, and how to get it; exit code 3 when something is."""
    findings = list(examine())
    missing = [f for f in findings if f.status == "missing"]
    if as_json:
        print_json([asdict(f) for f in findings])
    else:
        print_rows(
            [asdict(f) for f in findings], ["item", "status", "found", "remedy"], as_json=False
        )
        typer.echo(f"{len(missing)} missing" if missing else "Nothing is missing.")
    if missing:
        raise typer.Exit(MISSING)


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


def _x11() -> Finding:
    if sys.platform != "linux":
        return Finding("libX11", "ok", f"not needed on {sys.platform}")
    library = ctypes.util.find_library("X11")
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


def _import_animalai() -> str:
    importlib.import_module("animalai.environment")
    return f"animalai {_version('animalai')}, mlagents-envs-aai {_version('mlagents-envs-aai')}"


def _unity_build() -> Finding:
    # The places where animalai itself looks for a build.
    cache = Path(
        os.environ.get("ANIMALCAT_UNITY") or os.environ.get("ANIMALAI_CACHE", "~/.animalai")
    )
    patterns = [
        f"{folder}/{name}"
        for folder in ("./env*", str(cache.expanduser()), f"{cache.expanduser()}/**")
        for name in ("AAI.x86_64", "AnimalAI.x86_64", "animalAI.x86_64", "Animal-AI.x86_64")
    ]
    for pattern in patterns:
        for match in sorted(glob.glob(pattern, recursive=True)):
            return Finding("Unity build", "ok", match)
    return Finding(
        "Unity build",
        "absent",
        "optional; the embedded simulator needs none",
        "download a build and unpack it under ~/.animalai",
    )
