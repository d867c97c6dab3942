"""Finds the arena files of a folder, the same for the client, the service and commands."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath
from typing import Final, NamedTuple

from animalcat.errors import AnimalcatError
from animalcat.text import names

ENDINGS: Final = (".yaml", ".yml")
"""Endings of arena files, in lower case."""
MAX_FILE_BYTES: Final = 1024 * 1024
"""Most bytes of an arena file in a battery."""
MAX_TABLE_BYTES: Final = 3 * 1024 * 1024
"""Most bytes of a table of meta-features, which has to go into one message to a server."""
_NOT_OURS: Final = "__MACOSX"
"""The folder that a Mac adds to an archive."""
_PACKED: Final = (".zip", ".gz", ".tgz", ".tar", ".bz2", ".xz", ".7z", ".rar")


class FoundFiles(NamedTuple):
    """Arena files.

    Attributes:
        files: Their paths in order, each after its path relative to the folder, with slashes.
        notes: What was left out, one sentence each.
    """

    files: tuple[tuple[str, Path], ...]
    notes: tuple[str, ...] = ()


def is_yaml(path: str | PurePath) -> bool:
    """Whether a file's name ends as that of an arena, a layout or a recipe does."""
    return str(path).lower().endswith(ENDINGS)


def find_arena_files(source: Path) -> FoundFiles:
    """Find the arena files of a folder and its subfolders, those that are links among them.

    Hidden files and folders, as editors, notebooks and archives of a Mac leave them, are left out
    and counted.

    Args:
        source: A folder, or an arena file.

    Raises:
        AnimalcatError: There is no such path, or no arena file in it; the message says what is. Or
            a file's name is no UTF-8.
    """
    if source.is_file():
        if source.suffix.lower() in _PACKED:
            raise AnimalcatError(
                f"{source}: this is a packed file, which is not looked into; unpack it and give "
                "the folder"
            )
        return FoundFiles(((_named(source.name), source),))
    if not source.is_dir():
        what = "this link leads nowhere" if source.is_symlink() else "no such file or folder"
        raise AnimalcatError(f"{source}: {what}")
    found: list[tuple[str, Path]] = []
    others: list[Path] = []
    hidden: list[str] = []
    for path in _walk(source, hidden):
        if is_yaml(path):
            found.append((_named(path.relative_to(source).as_posix()), path))
        else:
            others.append(path)
    if not found:
        what = _what(others, hidden)
        raise AnimalcatError(f"{source}: no YAML files, and so no arenas, are there; {what}")
    notes: list[str] = []
    if hidden:
        notes.append(f"left out, since they are hidden: {_join_names(hidden)}")
    if packed := [path.name for path in others if path.suffix.lower() in _PACKED]:
        notes.append(f"packed files are not looked into: {_join_names(packed)}")
    return FoundFiles(tuple(sorted(found, key=lambda pair: pair[1])), tuple(notes))


def _named(name: str) -> str:
    try:
        return names.check_unicode(name)
    except names.BadNameError as error:
        raise AnimalcatError(str(error)) from None


def battery_files(source: Path) -> FoundFiles:
    """Find the files of a battery, in which every arena needs a name of its own.

    Raises:
        AnimalcatError: As for `find_arena_files`; or two files give the same name, or some are too
            large.
    """
    found = find_arena_files(source)
    check_sizes([path for _, path in found.files], MAX_FILE_BYTES)
    for _, message in same_names(found):
        raise AnimalcatError(f"{source}: {message}")
    return found


def same_names(found: FoundFiles) -> Iterator[tuple[Path, str]]:
    """Find files whose arenas would have the name of others in a battery, each with what is wrong.

    Args:
        found: The files of a folder.
    """
    known: dict[str, str] = {}
    for relative, path in found.files:
        stem = os.path.splitext(relative)[0]
        if stem in known:
            both = f"{known[stem]} and {relative} both give an arena named {stem}"
            yield path, f"{both}; rename or remove one"
        known.setdefault(stem, relative)


def check_sizes(files: Sequence[Path], most: int) -> None:
    """Refuse files that are larger than what is read.

    Raises:
        AnimalcatError: Some are; the message names them with their sizes.
    """
    sizes = [(path, path.stat().st_size) for path in files if path.is_file()]
    large = [f"{path} has {size:,}" for path, size in sizes if size > most]
    if large:
        raise AnimalcatError(
            f"at most {most:,} bytes of a file are read: {_join_names(large)}; split what is larger"
        )


def has_arena_files(source: Path) -> bool:
    """Whether a path is a folder with an arena file in it, or an arena file."""
    if source.is_dir():
        return any(is_yaml(path) for path in _walk(source, []))
    return is_yaml(source) and source.is_file()


def battery_id(source: Path) -> str:
    """The name of the battery that is made of a path: of a folder its name, of a file its stem."""
    spelled = Path(os.path.abspath(source))  # a link gives its own name, not that of its target
    return names.to_component(spelled.name if source.is_dir() else spelled.stem)


def _walk(folder: Path, hidden: list[str]) -> Iterator[Path]:
    """Files of a folder and its subfolders; names of hidden ones are added to `hidden`."""
    seen: set[str] = set()
    for root, folders, files in os.walk(folder, followlinks=True):
        real = os.path.realpath(root)
        if real in seen:  # a link to a folder that was walked, perhaps to one above it
            folders.clear()
            continue
        seen.add(real)
        hidden += [name for name in (*folders, *files) if _is_hidden(name)]
        folders[:] = sorted(name for name in folders if not _is_hidden(name))
        for name in sorted(files):
            path = Path(root, name)
            if not _is_hidden(name) and path.is_file():
                yield path


def _is_hidden(name: str) -> bool:
    """Whether a file or folder is no one's arena: of an editor, a notebook or a Mac's archive."""
    return name.startswith(".") or name == _NOT_OURS


def _what(others: list[Path], hidden: list[str]) -> str:
    """What is in a folder that has no arena file."""
    kinds = Counter(path.suffix or "no ending" for path in others)
    told = [f"{number} with {kind}" for kind, number in kinds.most_common(4)]
    if hidden:
        told.append(f"{len(hidden)} hidden")
    return f"it has other files: {', '.join(told)}" if told else "it is empty"


def _join_names(found: list[str]) -> str:
    return ", ".join(sorted(found)[:5]) + (f" and {len(found) - 5} more" if found[5:] else "")
