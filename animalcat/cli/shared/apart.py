"""Keeps an agent's process apart from the evaluator: from its files, memory and processes."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Annotated, Final

import typer

import animalcat
from animalcat.cli.shared import confine
from animalcat.cli.shared.command_help import AGENT
from animalcat.folders import cache_folder, caches, sockets_folder

_TRIAL_SECONDS: Final = 20.0
"""How long a trial may take on a busy machine."""
_SECRETS: Final = (
    "TOKEN",
    "CERTIFICATE",
    "KEY",
    "HOME",
    "POSTGRES_URL",
    "DATABASE_URL",
    "STORE",
    "ARTEFACTS",
)
"""Ends of `ANIMALCAT_...` variables that are nothing for an agent."""
_STORAGES: Final = ("AWS_", "AZURE_", "GOOGLE_", "GCS_", "FSSPEC_")
"""Beginnings of variables that tell how object storage is reached."""


class Permission(StrEnum):
    """What an agent's process may do besides playing."""

    PLAY = "play"
    """Nothing: it reaches the server's door for agents, and not the network."""
    NETWORK = "network"
    """Use the network, for example to ask a model elsewhere."""
    ALL = "all"
    """Everything that its user may: it is not kept apart."""


AgentMay = Annotated[
    Permission,
    typer.Option(
        "--agent-may",
        help="What the agent's process may do besides playing, where this command starts it: "
        "nothing (play), use the network, or all that you may. With network or all it may find the "
        "server of this machine, and what that knows.",
        rich_help_panel=AGENT,
    ),
]


@dataclass(frozen=True, slots=True)
class Way:
    """How processes can be put apart on this machine.

    Attributes:
        name: "namespaces", "user", or empty if they cannot.
        why: Why not, or what is lacking; empty if nothing is.
        seen: Folders that a process sees all the same, because they hold what it needs.
    """

    name: str
    why: str = ""
    seen: tuple[str, ...] = ()


@cache
def way(*read: str) -> Way:
    """Return how a process can be put apart here, by trying it.

    Args:
        read: Files that it must be able to read.
    """
    if sys.platform != "linux":
        return Way("", f"this works on Linux alone, and not on {sys.platform}")
    with tempfile.TemporaryDirectory() as folder:
        secret = Path(folder) / "hidden" / "secret"
        secret.parent.mkdir(mode=0o700)
        secret.write_text("x", "ascii")
        look = f"import os, sys; sys.exit(os.path.exists({str(secret)!r}))"
        said = ""
        for name in (confine.NAMESPACES, confine.USER):
            if name == confine.USER and os.geteuid() != 0:
                continue
            command = _launched(
                [sys.executable, "-I", "-S", "-c", look], [str(secret.parent)], name, False, read
            )
            try:
                done = subprocess.run(
                    command, capture_output=True, text=True, timeout=_TRIAL_SECONDS, check=False
                )
            except (OSError, subprocess.TimeoutExpired) as error:
                said = said or str(error)
                continue
            if done.returncode == 0:
                return Way(name, said)
            said = said or (done.stderr.strip().splitlines() or ["it failed"])[-1]
    return Way("", said)


def apart(
    command: Sequence[str],
    hide: Iterable[Path],
    *,
    network: bool,
    read: Sequence[Path] = (),
    keep: Sequence[Path] = (),
) -> tuple[list[str], Way]:
    """Return the command that runs a command apart, or the command itself where that cannot be.

    Args:
        command: What to run.
        hide: Folders that it must not see; one that does not exist is left out, and one that holds
            what it needs as well.
        network: Whether it has the network.
        read: Files that it must be able to read.
        keep: Folders in which it must not write, besides those of the software.

    Returns:
        The command, and how it puts the process apart.
    """
    files = [str(path.resolve()) for path in read]
    found = way(*files)
    if not found.name:
        return list(command), found
    needed = [*files, *_software()]
    hidden: list[str] = []
    seen: list[str] = []
    for path in (*hide, cache_folder("")):
        whole = str(path.resolve())
        if not path.is_dir():
            continue
        if any(_within(one, whole) for one in (*needed, os.getcwd())):
            seen.append(whole)
            continue
        hidden.append(whole)
        if found.name == confine.USER:
            with suppress(OSError):
                path.chmod(stat.S_IMODE(path.stat().st_mode) & ~stat.S_IRWXO)
    sockets = sockets_folder()
    kept = [str(path) for path in (*keep, *([sockets] if sockets else []))]
    started = _launched(command, hidden, found.name, network, files, kept)
    return started, replace(found, seen=tuple(seen))


def environment(**changes: str) -> dict[str, str]:
    """Return the environment of an agent's process: without what is for people and servers.

    Where recordings are in object storage, that goes for its credentials as well.
    What numba compiles for agents is kept away from what it compiles for others, who would run it.

    Args:
        changes: What is added.
    """
    withheld = _STORAGES if "ANIMALCAT_ARTEFACTS" in os.environ else ()
    kept = {
        name: value
        for name, value in os.environ.items()
        if not (name.startswith("ANIMALCAT_") and name.endswith(_SECRETS))
        and not name.startswith(withheld)
    }
    return {**kept, "NUMBA_CACHE_DIR": str(_compiled()), **changes}


def _compiled() -> Path:
    """The folder for what numba compiles for agents."""
    folder = caches() / "animalcat-agents"
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    return folder


def _launched(
    command: Sequence[str],
    hide: Sequence[str],
    name: str,
    network: bool,
    read: Sequence[str],
    keep: Sequence[str] = (),
) -> list[str]:
    write = [os.getcwd(), tempfile.gettempdir(), "/dev/shm", str(_compiled())]
    plan = {
        "way": name,
        "command": list(command),
        "hide": list(hide),
        "write": [path for path in dict.fromkeys(write) if os.path.isdir(path)],
        "keep": [*_software(), *keep],
        "network": network,
        "read": list(read),
    }
    return [sys.executable, "-I", "-S", str(Path(confine.__file__)), json.dumps(plan)]


def _software() -> list[str]:
    """Folders of what runs here, in which no agent may write."""
    package = Path(animalcat.__file__).parent
    linked = [one.resolve() for one in package.iterdir() if one.is_symlink() and one.is_dir()]
    found = [Path(sys.prefix), package, *linked]
    return [str(path) for path in dict.fromkeys(found) if path.is_dir()]


def _within(path: str, folder: str) -> bool:
    return Path(path).is_relative_to(folder)
