"""Where batteries, recordings and draws are kept: in the data directory, or in object storage.

Everything is written to the data directory first, as a whole and durably. `Artefacts` leaves it
there. `ObjectStorage` then puts it where all servers of a database see it, before anybody is told
that it is stored; what was put there moves to a cache of limited size. So a file outside the cache
is one that has yet to be put.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import importlib
import logging
import os
import secrets
import shutil
import tarfile
import threading
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple, cast

from animalcat.extending.installing import install

log = logging.getLogger(__name__)

MARK: Final = "animalcat.id"
"""File that says which database files belong to; see `belonging`."""
CACHE: Final = "cache"
"""Folder of a data directory with copies of what is in object storage."""
ASIDE: Final = "aside"
"""Stands in the ending of what was moved aside, so that nothing wrote over it."""
RECORDINGS: Final = "recordings"
"""Folder of the recordings within a data directory; it has one folder per session."""
PERSONS: Final = "play-"
"""What the folders begin with in which the recordings of people are."""
_CHUNK: Final = 1 << 20
_AT_ONCE: Final = frozenset(
    {"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl", "oss", "oci", "memory"}
)
"""Storages in which a file appears as a whole; elsewhere it is put beside its place, then moved."""
_FRESH: Final = {"use_listings_cache": False, "skip_instance_cache": True}
_OPTIONS: Final[dict[str, dict[str, Any]]] = {
    "s3": {
        "config_kwargs": {
            "connect_timeout": 5,
            "read_timeout": 30,
            "retries": {"max_attempts": 3, "mode": "standard"},
        }
    }
}
"""What is set so that storage that does not answer is found out within a minute."""
_OURS: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM})
"""Errors of what this machine lacks, which are no fault of the storage."""


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


class ArtefactsError(Exception):
    """The storage of batteries and recordings does not do what is asked of it."""


class DamagedArchiveError(ArtefactsError):
    """The storage answers, and what it gives is no archive of a folder."""


class ArtefactsUrlError(ValueError):
    """The URL of the setting cannot be used."""


class Artefacts:
    """Keeps files in the data directory.

    A key is the path of a file or folder within that, such as `recordings/SESSION/0-0.mcap`.

    Attributes:
        folder: The data directory, in which everything is written first.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def check(self) -> None:
        """Check that the storage can be read and written.

        Raises:
            ArtefactsUrlError: It cannot.
        """

    @property
    def where(self) -> str:
        """What the place is called in messages."""
        return str(self.folder)

    @property
    def mark_place(self) -> str:
        """Where its mark is, for messages."""
        return str(self.folder / MARK)

    def mark(self) -> str:
        """Return the id of the database that the files belong to; empty where none is said.

        Raises:
            ArtefactsError: The storage does not answer.
        """
        try:
            return (self.folder / MARK).read_text("utf-8", "replace").strip()
        except FileNotFoundError:
            return ""

    def set_mark(self, mark: str) -> None:
        """Say which database the files belong to; an earlier mark stays.

        Raises:
            ArtefactsError: The storage does not answer.
        """
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

        Raises:
            ArtefactsError: The storage does not answer.
        """
        for folder in folders:
            if any(map(_is_kept, self.names(folder))):
                return folder
        return ""

    def names(self, folder: str) -> list[str]:
        """Return the names of what is in a folder; none if there is no such folder.

        Raises:
            ArtefactsError: The storage does not answer.
        """
        path = self.folder / folder
        return sorted(os.listdir(path)) if path.is_dir() else []

    def walk(self, folder: str) -> Iterator[StoredFile]:
        """Yield all files in a folder and those within it, each looked at once.

        Raises:
            ArtefactsError: The storage does not answer.
        """
        yield from found_files(self.folder, folder)

    def put(self, key: str) -> None:
        """Store a file that was written; nothing is done if there is none.

        Raises:
            ArtefactsError: It cannot be stored; it is still where it was written.
        """

    def put_folder(self, key: str) -> None:
        """Store a folder whose content never changes, and keep it here as well.

        Raises:
            ArtefactsError: It cannot be stored.
        """

    def fetch(self, key: str) -> Path:
        """Return where a file can be read now; it may go later.

        Raises:
            FileNotFoundError: There is none.
            ArtefactsError: The storage does not answer.
        """
        path = self.folder / key
        if not path.is_file():
            raise FileNotFoundError(f"there is no file {path}")
        return path

    def fetch_folder(self, key: str) -> None:
        """Make a folder that `put_folder` stored available at its place, where it stays.

        Raises:
            FileNotFoundError: There is none.
            ArtefactsError: The storage does not answer.
        """

    def digest(self, key: str) -> str:
        """Return the SHA-256 of a file as it is stored, not of a copy; empty if there is none.

        Raises:
            ArtefactsError: The storage does not answer.
        """
        try:
            with (self.folder / key).open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
        except FileNotFoundError:
            return ""

    def remove(self, key: str) -> None:
        """Remove a file, or a folder with all that is in it; nothing is done if there is none.

        Raises:
            ArtefactsError: The storage does not answer.
        """
        _remove(self.folder / key)


class ObjectStorage(Artefacts):
    """Keeps files at a URL that `fsspec` knows; may be used by several threads.

    A folder is one object there, an archive, so that it is there as a whole or not at all.
    """

    def __init__(self, folder: Path, url: str, cache_bytes: int) -> None:
        """Describe it; nothing is asked of the storage yet.

        Args:
            folder: The data directory.
            url: Where files go, for example "s3://bucket/folder". Credentials come from where the
                storage's own library looks for them, such as the environment.
            cache_bytes: Most bytes of copies that are kept here; the latest one is kept anyway.

        Raises:
            ArtefactsUrlError: There is no such storage, or its package is not installed.
        """
        super().__init__(folder)
        self._cache = folder / CACHE
        self._most = cache_bytes
        self._lock = threading.Lock()
        self._protocol, separator, _ = url.partition("://")
        if not separator:
            raise ArtefactsUrlError(
                f"artefacts at {url!r}: give a URL, for example s3://BUCKET/NAME"
            )
        try:
            fsspec: Any = importlib.import_module("fsspec")
            options = _FRESH | _OPTIONS.get(self._protocol, {})
            self._storage, root = fsspec.core.url_to_fs(url, **options)
        except ImportError as error:
            raise ArtefactsUrlError(
                f"artefacts at {self._protocol}:// need a package: {install('objects')} ({error})"
            ) from error
        except ValueError as error:
            raise ArtefactsUrlError(f"artefacts at {self._protocol}://: {error}") from error
        self._root = str(root).rstrip("/")
        self._sizes = self._found()

    @property
    def where(self) -> str:
        """See `Artefacts`."""
        return f"{self._protocol}://{self._root}"

    @property
    def mark_place(self) -> str:
        """See `Artefacts`."""
        return f"{self.where}/{MARK}"

    def mark(self) -> str:
        """See `Artefacts`."""
        try:
            with self._asked():
                return bytes(self._storage.cat_file(self._place(MARK))).decode().strip()
        except FileNotFoundError:
            return ""

    def set_mark(self, mark: str) -> None:
        """See `Artefacts`."""
        if self.mark():
            return
        with self._asked():
            self._storage.pipe_file(self._place(MARK), f"{mark}\n".encode())

    def names(self, folder: str) -> list[str]:
        """See `Artefacts`."""
        with contextlib.suppress(FileNotFoundError), self._asked():
            entries = self._storage.ls(self._place(folder), detail=False)
            return sorted(str(entry).rstrip("/").rpartition("/")[2] for entry in entries)
        return []

    def walk(self, folder: str) -> Iterator[StoredFile]:
        """See `Artefacts`."""
        found: dict[str, dict[str, Any]] = {}
        with contextlib.suppress(FileNotFoundError), self._asked():
            found = self._storage.find(self._place(folder), detail=True)
        for place, told in sorted(found.items()):
            when = told.get("LastModified") or told.get("mtime") or told.get("created")
            changed = when if isinstance(when, float) else getattr(when, "timestamp", float)()
            size, tag = int(told.get("size") or 0), told.get("ETag", "")
            key = str(place).removeprefix(f"{self._root}/")
            yield StoredFile(key, size, changed, f"{size} {changed} {tag}")

    def check(self) -> None:
        """See `Artefacts`."""
        name = f"{self._root}/.animalcat-{secrets.token_hex(8)}"
        try:
            with self._asked():
                if self._protocol not in _AT_ONCE:  # there, it would make a bucket
                    self._storage.makedirs(self._root, exist_ok=True)
                self._storage.pipe_file(name, b"animalcat")
                answer = self._storage.cat_file(name)
                self._storage.rm_file(name)
        except (ArtefactsError, FileNotFoundError) as error:
            raise ArtefactsUrlError(
                f"artefacts cannot be kept at {self._protocol}://: {error}. Check the bucket, and "
                "that this user may read, write and delete there"
            ) from error
        if answer != b"animalcat":
            raise ArtefactsUrlError("what is written to the storage of artefacts cannot be read")

    def put(self, key: str) -> None:
        """See `Artefacts`."""
        path = self.folder / key
        if not path.is_file():
            return
        with self._asked():
            self._keep_other(key)
            self._send(path, key)
        copy = self._cache / key
        copy.parent.mkdir(parents=True, exist_ok=True)
        size = path.stat().st_size
        path.replace(copy)
        self._use(key, size)

    def put_folder(self, key: str) -> None:
        """See `Artefacts`."""
        with self._asked():
            if self._storage.exists(self._place(_archive(key))):
                return
        self._cache.mkdir(parents=True, exist_ok=True)
        packed = self._cache / f".{secrets.token_hex(8)}.tar"
        try:
            with tarfile.open(packed, "w") as archive:
                archive.add(self.folder / key, arcname=".")
            with self._asked():
                self._send(packed, _archive(key))
        finally:
            packed.unlink(missing_ok=True)

    def fetch(self, key: str) -> Path:
        """See `Artefacts`."""
        written, copy = self.folder / key, self._cache / key
        if written.is_file():
            return written
        if not copy.is_file():
            self._receive(key, copy)
        self._use(key, copy.stat().st_size)
        return copy

    def fetch_folder(self, key: str) -> None:
        """See `Artefacts`."""
        path = self.folder / key
        if path.is_dir():
            return
        mark = secrets.token_hex(8)
        packed = self._cache / f".{mark}.tar"
        unpacked = path.with_name(f".{mark}")
        try:
            self._receive(_archive(key), packed)
            with tarfile.open(packed) as archive:
                archive.extractall(unpacked, filter="data")
            with contextlib.suppress(OSError):  # another thread was first
                unpacked.rename(path)
        except tarfile.TarError as error:
            raise DamagedArchiveError(f"the archive of {key} is damaged: {error}") from error
        finally:
            packed.unlink(missing_ok=True)
            shutil.rmtree(unpacked, ignore_errors=True)

    def digest(self, key: str) -> str:
        """See `Artefacts`."""
        return super().digest(key) or self._digest_there(key)

    def remove(self, key: str) -> None:
        """See `Artefacts`."""
        with self._asked():
            for name in (key, _archive(key)):
                with contextlib.suppress(FileNotFoundError):
                    self._storage.rm(self._place(name), recursive=True)
        super().remove(key)
        _remove(self._cache / key)
        with self._lock:
            for known in [
                copy for copy in self._sizes if copy == key or copy.startswith(f"{key}/")
            ]:
                del self._sizes[known]

    def _digest_there(self, key: str) -> str:
        """The SHA-256 of what is stored; empty if there is none."""
        digest = hashlib.sha256()
        try:
            with self._asked(), self._storage.open(self._place(key), "rb") as opened:
                file = cast(BinaryIO, opened)
                while chunk := file.read(_CHUNK):
                    digest.update(chunk)
        except FileNotFoundError:
            return ""
        return digest.hexdigest()

    def _keep_other(self, key: str) -> None:
        """Move a file of the same name and other content aside: nothing is written over."""
        place = self._place(key)
        if not self._storage.exists(place):
            return
        if self._digest_there(key) != super().digest(key):
            aside = f"{place}.{ASIDE}-{secrets.token_hex(4)}"
            log.error("%s is stored already with other content, which is now %s", key, aside)
            self._storage.mv(place, aside)

    def _send(self, path: Path, key: str) -> None:
        place = self._place(key)
        if self._protocol in _AT_ONCE:
            self._storage.put_file(str(path), place)
            return
        self._storage.makedirs(place.rpartition("/")[0], exist_ok=True)
        beside = f"{place}.{secrets.token_hex(8)}.part"
        try:
            self._storage.put_file(str(path), beside)
            self._storage.mv(beside, place)
        except BaseException:
            with contextlib.suppress(Exception):
                self._storage.rm_file(beside)
            raise

    def _receive(self, key: str, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_name(f".{secrets.token_hex(8)}.part")
        try:
            with self._asked():
                self._storage.get_file(self._place(key), str(beside))
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)

    def _place(self, key: str) -> str:
        return f"{self._root}/{key}"

    @contextlib.contextmanager
    def _asked(self) -> Generator[None]:
        """Turn the errors of storage libraries in the block into `ArtefactsError`."""
        try:
            yield
        except FileNotFoundError:
            raise
        except OSError as error:
            if error.errno in _OURS:
                raise
            raise ArtefactsError(f"{type(error).__name__}: {error}") from error
        except Exception as error:
            raise ArtefactsError(f"{type(error).__name__}: {error}") from error

    def _use(self, key: str, size: int) -> None:
        """Count a copy as the one used last, and remove those used longest ago if need be."""
        with self._lock:
            self._sizes.pop(key, None)
            self._sizes[key] = size
            while sum(self._sizes.values()) > self._most and len(self._sizes) > 1:
                oldest = next(iter(self._sizes))
                del self._sizes[oldest]
                (self._cache / oldest).unlink(missing_ok=True)

    def _found(self) -> dict[str, int]:
        """Return the sizes of copies from earlier runs, oldest first, and remove partial ones."""
        copies: list[tuple[float, str, int]] = []
        for path in self._cache.rglob("*"):
            if path.is_file() and path.name.startswith("."):
                path.unlink(missing_ok=True)
            elif path.is_file():
                known, key = path.stat(), path.relative_to(self._cache).as_posix()
                copies.append((known.st_mtime, key, known.st_size))
        return {key: size for _, key, size in sorted(copies)}


def artefacts_for(folder: Path, url: str, cache_bytes: int) -> Artefacts:
    """Return where the files of a server are kept.

    Args:
        folder: Its data directory.
        url: Where they go; empty for the data directory.
        cache_bytes: Most bytes of copies of what is elsewhere.

    Raises:
        ArtefactsUrlError: They cannot be kept there.
    """
    if not url:
        return Artefacts(folder)
    storage = ObjectStorage(folder, url, cache_bytes)
    storage.check()
    return storage


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


def _archive(key: str) -> str:
    return f"{key}.tar"


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
