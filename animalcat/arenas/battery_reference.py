"""Decides what a reference to a battery means: the one rule for the client and every command."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from animalcat.arenas.arena_files import ENDINGS, has_arena_files
from animalcat.errors import AnimalcatError
from animalcat.text import names
from animalcat.text.guesses import hint

_PREFIX: Final = "batteries/"
_BARE: Final = re.compile(r"[A-Za-z0-9._-]{1,100}", re.ASCII)


class Spelling(NamedTuple):
    """How a reference is written.

    Attributes:
        name: The battery's id, if a name is written; else empty.
        whole: Whether the name is written as `batteries/NAME`.
        path: The text as a path.
    """

    name: str
    whole: bool
    path: Path


class Meant(NamedTuple):
    """What a reference means.

    Attributes:
        kind: A battery that is stored, one that comes with the server and is not stored yet, arena
            files, or both: a stored battery and arena files, which are meant if they are the same.
        name: The battery's id; empty for arena files.
        path: The arena files; None for a name alone.
    """

    kind: Literal["stored", "shipped", "files", "both"]
    name: str
    path: Path | None = None


def spelling_of(text: str) -> Spelling:
    """Tell a name from a path, by how it is written.

    A name is `NAME` or `batteries/NAME`. What has any other slash, begins with `.` or `~`, or ends
    like an arena file is a path.

    Args:
        text: The reference.
    """
    path = Path(text).expanduser()
    rest = text.removeprefix(_PREFIX)
    whole = rest != text and bool(_BARE.fullmatch(rest))
    if whole:
        return Spelling(rest, True, path)
    as_path = text.startswith(".") or path.suffix.lower() in ENDINGS
    bare = bool(_BARE.fullmatch(text)) and not as_path
    return Spelling(text if bare else "", False, path)


def battery_name(text: str) -> str:
    """The resource name of a battery that is given by its id or its resource name.

    Raises:
        AnimalcatError: A path is given, of which a battery has to be made first.
        animalcat.text.names.BadNameError: It is no name.
    """
    known: Any = getattr(text, "id", text)  # a battery has one
    if not isinstance(known, str):
        raise AnimalcatError(
            f"battery is {text!r:.60} (a {type(text).__name__}); give its id, or the battery",
            "INVALID_NAME",
        )
    text = known
    if text.startswith(_PREFIX):
        return names.battery_name(text.removeprefix(_PREFIX))
    if "/" in text or text.startswith("~"):
        raise AnimalcatError(
            f"{text!r} is a path, and the id of a battery is expected: "
            f"client.import_battery({text!r}) makes a battery of the arena files there, and its "
            "`id` goes here",
            "INVALID_NAME",
        )
    return names.battery_name(text)


def resolve(text: str, stored: Collection[str], shipped: Collection[str]) -> Meant:
    """Decide what a reference means here.

    Args:
        text: The reference.
        stored: Ids of the batteries that the server has.
        shipped: Ids of those that come with it.

    Raises:
        AnimalcatError: There is nothing of that name; or it is both one that comes with the server
            and a path, and the message shows how to write either.
    """
    name, whole, path = spelling_of(text)
    known = name and (name in stored or name in shipped)
    files = has_arena_files(path)
    if name and files and name in shipped:
        raise either(text, "the battery that comes with animalcat")
    if known and files:
        return Meant("both", name, path)
    if known:
        return Meant("stored" if name in stored else "shipped", name)
    if files or (path.exists() and not whole):
        return Meant("files", "", path)  # reading a folder without arenas says what is there
    if name:
        raise AnimalcatError(
            f"no battery is called {name!r}, and no folder or file of that name is here."
            f"{hint(name, {*stored, *shipped})} `animalcat battery show` lists those that are "
            "stored, and docs/batteries.md those that come with animalcat",
            "UNKNOWN_BATTERY",
        )
    what = "this link leads nowhere" if path.is_symlink() else "no such file or folder"
    raise AnimalcatError(f"{text}: {what}", "UNKNOWN_BATTERY")


def either(text: str, battery: str, contents: str = "") -> AnimalcatError:
    """The error for a reference that means two things, with a way to write each.

    Args:
        text: The reference.
        battery: What it means as a name, in words.
        contents: How the two differ, in words; empty if nothing is known.
    """
    name, whole, path = spelling_of(text)
    as_name = name if whole else f"{_PREFIX}{name}"
    what = "folder" if path.is_dir() else "file"
    return AnimalcatError(
        f"{text!r} means two things here: {battery}, and the {what} {path.absolute()}"
        f"{f'. {contents}' if contents else ''}. Write ./{text} for the {what}, or {as_name} for "
        "the battery",
        "AMBIGUOUS_BATTERY",
    )
