"""Where batteries, recordings and draws are kept: in the data directory."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

MARK: Final = "animalcat.id"
"""File that says which database files belong to; see `belonging`."""
ASIDE: Final = "aside"
"""Stands in the ending of what was moved aside, so that nothing wrote over it."""
RECORDINGS: Final = "recordings"
"""Folder of the recordings within a data directory; it has one folder per session."""
PERSONS: Final = "play-"
"""What the folders begin with in which the recordings of people are."""


class StoredFile(NamedTuple):
    """A file as it is stored.

    Attributes:
        key: Its path within a data directory.
        size: Its bytes.
        changed: When it was last written, seconds since 1970; 0 where nobody knows.
        mark: Another text as soon as the file is another one, or was written again.
    """

    key: str
    size: int
    changed: float
    mark: str


def recording_key(session: str, number: int, attempt: int) -> str:
    """Return the path of an attempt's recording within a data directory."""
    return f"{RECORDINGS}/{session}/{number}-{attempt}.mcap"


def recording_path(data: Path, session: str, number: int, attempt: int) -> Path:
    """Return the path of an attempt's recording in a data directory."""
    return data / recording_key(session, number, attempt)


class Artefacts:
    """Keeps files in the data directory.

    A key is the path of a file or folder within that, such as `recordings/SESSION/0-0.mcap`.

    Attributes:
        folder: The data directory.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def mark(self) -> str:
        """Return the id of the database that the files belong to; empty where none is said."""
        try:
            return (self.folder / MARK).read_text("utf-8", "replace").strip()
        except FileNotFoundError:
            return ""

    def set_mark(self, mark: str) -> None:
        """Say which database the files belong to; an earlier mark stays."""
        self.folder.mkdir(parents=True, exist_ok=True)
        file = self.folder / MARK
        # Whole or not at all: a mark that was cut off would say nothing and stay for ever.
        temporary = file.with_name(f".{MARK}.{secrets.token_hex(4)}")
        temporary.write_text(f"{mark}\n", "utf-8")
        try:
            os.link(temporary, file)
        except FileExistsError:
            if not self.mark():
                temporary.replace(file)
        finally:
            temporary.unlink(missing_ok=True)

    def holds(self, folders: Sequence[str]) -> str:
        """Return the first of some folders that has anything in it; empty if none has.

        What a person has played belongs to no database.
        """
        for folder in folders:
            if any(map(_is_kept, self.names(folder))):
                return folder
        return ""

    def names(self, folder: str) -> list[str]:
        """Return the names of what is in a folder; none if there is no such folder."""
        path = self.folder / folder
        return sorted(os.listdir(path)) if path.is_dir() else []

    def walk(self, folder: str) -> Iterator[StoredFile]:
        """Yield all files in a folder and those within it, each looked at once."""
        yield from found_files(self.folder, folder)

    def fetch(self, key: str) -> Path:
        """Return where a file is.

        Raises:
            FileNotFoundError: There is none.
        """
        path = self.folder / key
        if not path.is_file():
            raise FileNotFoundError(f"there is no file {path}")
        return path

    def digest(self, key: str) -> str:
        """Return the SHA-256 of a file as it is stored; empty if there is none."""
        try:
            with (self.folder / key).open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
        except FileNotFoundError:
            return ""

    def remove(self, key: str) -> None:
        """Remove a file, or a folder with all that is in it; nothing is done if there is none."""
        path = self.folder / key
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def found_files(root: Path, folder: str = "") -> Iterator[StoredFile]:
    """Yield all files below a folder of a root; what goes meanwhile is left out."""
    try:
        entries = sorted(os.scandir(root / folder), key=lambda entry: entry.name)
    except (FileNotFoundError, NotADirectoryError):
        return
    for entry in entries:
        key = f"{folder}/{entry.name}" if folder else entry.name
        if entry.is_dir(follow_symlinks=False):
            yield from found_files(root, key)
            continue
        with contextlib.suppress(FileNotFoundError):
            told = entry.stat(follow_symlinks=False)
            mark = f"{told.st_size} {told.st_mtime_ns} {told.st_ctime_ns} {told.st_ino}"
            yield StoredFile(key, told.st_size, told.st_mtime, mark)


def _is_kept(name: str) -> bool:
    """Whether a file or folder belongs to a database: neither half done nor played by a person."""
    return not name.startswith((".", PERSONS))
