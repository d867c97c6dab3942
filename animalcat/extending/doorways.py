"""Finds what the doors add: each is a folder of `doors/`, and its `door.toml` says what it has."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias, get_args

import animalcat

Kind: TypeAlias = Literal[
    "commands", "agents", "engines", "exports", "logs", "looks", "pages", "sources"
]
"""What a door may add:

- `commands` of the command line, by a noun, or by a noun and a verb;
- `agents` by the beginning of their references, as `envs.agents.limits.reference.DoorAgent`;
- `engines` that start simulators and fits, as functions of a server's settings, its data directory
  and the versions of its software that give `Workers` and `Fits`;
- `exports` of recorded episodes by their form, as functions of `cli.episode.export.Asked`;
- `logs` by the ending of files that stand where a session may, as `cli.shared.logs.Logs`;
- `looks` through what a door has stored, as functions of the data directory and the sessions of its
  store that give damage and notes (`service.upkeep.verifying`);
- `pages` of a server, as `service.web.application.MakePart`;
- `sources` of episodes for a client of Unity, as functions of the build and of what to call when
  the client is gone.
"""
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
DECLARATION: Final = "door.toml"
"""The file by which a folder is a door."""


@dataclass(frozen=True, slots=True)
class Entry:
    """Something that a door adds. Doors come with animalcat, so it is trusted like the rest of it.

    Attributes:
        door: The door's name.
        name: What it is asked for by.
        at: Where it is: `module:attribute`, or a module.
        help: What it is for, in a line.
        extra: The extra of animalcat that brings what the door needs; empty where it needs none.
    """

    door: str
    name: str
    at: str
    help: str
    extra: str

    @property
    def noun(self) -> str:
        """The first word of a command."""
        return self.name.partition(" ")[0]

    @property
    def verb(self) -> str:
        """The second word of a command; empty for a noun."""
        return self.name.partition(" ")[2]

    def load(self) -> Any:
        """Import it, and return it."""
        return EntryPoint(self.name, self.at, DECLARATION).load()


@cache
def entries(kind: Kind) -> Mapping[str, Entry]:
    """Return what all doors add of a kind, by name. No door is imported.

    Raises:
        ValueError: A declaration holds what is unknown, or two doors add the same.
    """
    found: dict[str, Entry] = {}
    for path in _declarations():
        declared = tomllib.loads(path.read_text("utf-8"))
        extra = declared.pop("extra", "")
        if unknown := declared.keys() - {"docs", *KINDS}:
            raise ValueError(f"{path}: {', '.join(sorted(unknown))}: a door adds {KINDS}")
        for name, about in declared.get(kind, {}).items():
            if name in found:
                raise ValueError(f"{path}: {kind} {name!r} is of the door {found[name].door} too")
            found[name] = Entry(path.parent.name, name, extra=extra, **about)
    return MappingProxyType(found)


def doors() -> list[str]:
    """Return the names of the doors that are there."""
    return [path.parent.name for path in _declarations()]


def _declarations() -> list[Path]:
    """The declarations of the doors that are there."""
    folders = (Path(place) / "doors" for place in animalcat.__path__)
    return sorted(path for folder in folders for path in folder.glob(f"*/{DECLARATION}"))
