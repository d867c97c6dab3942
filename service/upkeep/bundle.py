"""The form of a backup: contents named by their digests, and a manifest that comes last.

A backup is a folder, or an archive with the same in it:

    objects/ab/abcdef...    contents, each named by the SHA-256 of its bytes
    manifest.json           what was backed up when, and which contents make it up

The manifest names a content for the rows of each table (JSON lines, compressed) and one for the
list of files. What is there without a manifest that names it is no backup. So a backup that was cut
short is none, and one that is made again in a folder leaves the one before as it is to the last.
"""

from __future__ import annotations

import ctypes
import fcntl
import hashlib
import json
import os
import re
import secrets
import shutil
import tarfile
import zipfile
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Final, Protocol, cast

import zstandard

from animalcat.files import replace_file, sync_folder
from animalcat.service.upkeep.place import DataError

MANIFEST: Final = "manifest.json"
OBJECTS: Final = "objects"
FORM: Final = 1
"""Version of the form."""
ENDINGS: Final = (".tar.zst", ".tar.gz", ".tgz", ".zip")
"""How the names of archives end; anything else is a folder."""
_CHUNK: Final = 1 << 20
_OBJECT: Final = re.compile(rf"{OBJECTS}/[0-9a-f]{{2}}/([0-9a-f]{{64}})")
PART: Final = ".part-"
"""Begins the name of what is being written."""


class Writer(Protocol):
    """Takes the contents of a backup, and then its manifest."""

    def put(self, path: Path, wanted: str = "") -> tuple[str, int]:
        """Take a content.

        Args:
            path: A file that has it.
            wanted: The digest that it should have; empty where nobody knows.

        Returns:
            The digest of what was taken, and its bytes. Where a content with the digest that is
            wanted is there already, that is kept, and the file is not read.
        """
        ...

    def holds(self, digest: str) -> bool:
        """Whether a content is there already, and right."""
        ...

    def finish(self, manifest: dict[str, Any]) -> None:
        """Make it a backup: what was put is safe on the disk before the manifest appears."""
        ...

    def abandon(self) -> None:
        """Take back what this writer has put."""
        ...

    def close(self) -> None:
        """Let the place go."""
        ...


def is_archive(path: Path) -> bool:
    """Whether a backup of this name is an archive."""
    return path.name.endswith(ENDINGS)


def sealed(manifest: dict[str, Any]) -> dict[str, Any]:
    """Return a manifest with its own digest."""
    return {**manifest, "digest": _digest_of(manifest)}


def _digest_of(manifest: dict[str, Any]) -> str:
    plain = {key: value for key, value in manifest.items() if key != "digest"}
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


def read_manifest(text: bytes, where: str) -> dict[str, Any]:
    """Read a manifest.

    Args:
        text: Its bytes.
        where: What it is of, for the message.

    Raises:
        DataError: It is none, or is damaged, or of another version.
    """
    try:
        manifest = cast("dict[str, Any]", json.loads(text))
        form = manifest["form"]
    except (ValueError, TypeError, KeyError) as error:
        raise DataError(f"{where}: its {MANIFEST} cannot be read; it is no whole backup") from error
    if form != FORM:
        raise DataError(
            f"{where} is a backup of form {form}, and this animalcat reads form {FORM}; use the "
            "animalcat that made it"
        )
    if manifest.get("digest") != _digest_of(manifest):
        raise DataError(f"{where}: its {MANIFEST} was changed; it is no whole backup")
    return manifest


class FolderWriter:
    """Puts a backup into a folder, in which an earlier one may be."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._fresh: list[Path] = []
        self._made = not folder.exists()
        self._wanted: set[str] = set()
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)  # it holds the secrets of sessions
        self._lock = os.open(folder, os.O_RDONLY)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._lock)
            raise DataError(f"another backup is being written into {folder}; wait for it") from None
        for left in folder.glob(f"{PART}*"):  # by one that was killed
            shutil.rmtree(left) if left.is_dir() else left.unlink()

    def holds(self, digest: str) -> bool:
        """See `Writer`."""
        if digest in self._wanted:
            return True
        try:
            right = file_digest(_object(self._folder, digest)) == digest
        except FileNotFoundError:
            return False
        if right:
            self._wanted.add(digest)
        return right

    def put(self, path: Path, wanted: str = "") -> tuple[str, int]:
        """See `Writer`."""
        if wanted and self.holds(wanted):
            return wanted, _object(self._folder, wanted).stat().st_size
        part = self._folder / f"{PART}{secrets.token_hex(8)}"
        try:
            digest, size = copy(path, part)
            target = _object(self._folder, digest)
            if self.holds(digest):
                part.unlink()
                return digest, size
            target.parent.mkdir(parents=True, exist_ok=True)
            fresh = not target.exists()
            part.replace(target)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
        if fresh:
            self._fresh.append(target)
        self._wanted.add(digest)
        return digest, size

    def finish(self, manifest: dict[str, Any]) -> None:
        """See `Writer`."""
        sync_disk(self._folder)  # once for all of them: one by one would take long
        replace_file(self._folder / MANIFEST, json.dumps(manifest, indent=1).encode())
        self._fresh = []
        for path in self._folder.glob(f"{OBJECTS}/*/*"):  # of an earlier backup alone
            if path.name not in self._wanted:
                path.unlink(missing_ok=True)

    def abandon(self) -> None:
        """See `Writer`."""
        for path in self._fresh:
            path.unlink(missing_ok=True)
        for path in {path.parent for path in self._fresh}:
            with suppress(OSError):  # others are in it
                path.rmdir()
        with suppress(OSError):
            (self._folder / OBJECTS).rmdir()
        if self._made:
            with suppress(OSError):
                self._folder.rmdir()

    def close(self) -> None:
        """See `Writer`."""
        os.close(self._lock)


class ArchiveWriter:
    """Streams a backup into an archive, which gets its name at the end."""

    def __init__(self, path: Path) -> None:
        if path.exists():
            raise DataError(f"{path} is there already; give another name")
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        self._part = path.with_name(f".{path.name}{PART}{secrets.token_hex(8)}")
        self._there: set[str] = set()
        self._open: IO[bytes] | None = self._part.open("xb")
        self._part.chmod(0o600)  # it holds the secrets of sessions
        self._layer: Any = None
        self._archive: Any
        if path.name.endswith(".zip"):
            self._archive = zipfile.ZipFile(self._open, "w")
        elif path.name.endswith(".zst"):
            compressor = zstandard.ZstdCompressor(level=3, write_checksum=True)
            self._layer = compressor.stream_writer(self._open, closefd=False)
            self._archive = tarfile.open(fileobj=self._layer, mode="w|")  # noqa: SIM115  closed by finish
        else:
            self._archive = tarfile.open(fileobj=self._open, mode="w|gz")  # noqa: SIM115  as above

    def holds(self, digest: str) -> bool:
        """See `Writer`."""
        return digest in self._there

    def put(self, path: Path, wanted: str = "") -> tuple[str, int]:
        """See `Writer`."""
        with path.open("rb") as file:
            digest, size = hashlib.file_digest(file, "sha256").hexdigest(), file.tell()
            if digest not in self._there:
                file.seek(0)
                self._add(f"{OBJECTS}/{digest[:2]}/{digest}", file, size)
                self._there.add(digest)
        return digest, size

    def _add(self, name: str, file: IO[bytes], size: int) -> None:
        if isinstance(self._archive, zipfile.ZipFile):
            info = zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_DEFLATED
            with self._archive.open(info, "w", force_zip64=True) as member:
                shutil.copyfileobj(file, member, _CHUNK)
            return
        header = tarfile.TarInfo(name)
        header.size, header.mode = size, 0o600
        self._archive.addfile(header, file)

    def finish(self, manifest: dict[str, Any]) -> None:
        """See `Writer`."""
        assert self._open is not None, "it is finished once"
        text = json.dumps(manifest, indent=1).encode()
        whole = self._part.with_name(f"{self._part.name}.manifest")
        try:
            whole.write_bytes(text)
            with whole.open("rb") as file:
                self._add(MANIFEST, file, len(text))
        finally:
            whole.unlink(missing_ok=True)
        self._archive.close()
        if self._layer is not None:
            self._layer.close()
        self._open.flush()
        os.fsync(self._open.fileno())
        self._open.close()
        self._open = None
        try:
            os.link(self._part, self._path)  # which takes no other file's name
        except FileExistsError:
            raise DataError(f"{self._path} has come meanwhile; give another name") from None
        except OSError:  # a file system without links
            self._part.replace(self._path)
        self._part.unlink(missing_ok=True)
        sync_folder(self._path.parent)

    def abandon(self) -> None:
        """See `Writer`."""
        self._part.unlink(missing_ok=True)

    def close(self) -> None:
        """See `Writer`."""
        if self._open is not None:
            with suppress(OSError, ValueError, zstandard.ZstdError):  # it would write its end
                self._archive.close()
            with suppress(OSError):
                self._open.close()
            self._open = None


@contextmanager
def writing(path: Path) -> Generator[Writer]:
    """Write a backup for the block; whatever ends it before `finish` leaves nothing behind."""
    writer: Writer = ArchiveWriter(path) if is_archive(path) else FolderWriter(path)
    try:
        yield writer
    except BaseException:
        with suppress(OSError, ValueError):
            writer.abandon()
        raise
    finally:
        writer.close()


class Source:
    """A backup that is read: its contents in a folder, and its manifest.

    Attributes:
        manifest: Its manifest.
    """

    def __init__(self, folder: Path, manifest: dict[str, Any], *, owned: bool) -> None:
        """Describe it.

        Args:
            folder: Has its contents.
            manifest: Its manifest.
            owned: Whether the folder is this process's own, and its contents have been compared
                with their names.
        """
        self.manifest = manifest
        self._folder = folder
        self._owned = owned
        self._linked: set[str] = set()

    def deliver(self, digest: str, target: Path) -> None:
        """Make a content a file, after comparing it with its digest.

        Raises:
            DataError: The backup is damaged.
        """
        target.parent.mkdir(parents=True, exist_ok=True)
        content = _object(self._folder, digest)
        with _missing(digest):
            if self._owned and digest not in self._linked:
                with suppress(OSError):  # a file system without links
                    os.link(content, target)
                    self._linked.add(digest)  # two files of a store are never one
                    return
            if copy(content, target)[0] != digest:
                target.unlink()
                raise _damaged(digest)

    def holds(self, digest: str) -> bool:
        """Whether it has a content, and that is right."""
        with suppress(FileNotFoundError):
            return file_digest(_object(self._folder, digest)) == digest
        return False

    def lines(self, digest: str) -> Iterator[list[Any]]:
        """Yield the lines of a content that `write_lines` wrote.

        Raises:
            DataError: The backup is damaged.
        """
        with _missing(digest):
            if not self._owned and not self.holds(digest):
                raise _damaged(digest)
            with (
                _object(self._folder, digest).open("rb") as file,
                zstandard.ZstdDecompressor().stream_reader(file, closefd=False) as plain,
            ):
                yield from _lines(plain)


@contextmanager
def reading(path: Path, aside: Path) -> Generator[Source]:
    """Open a backup for the block.

    Args:
        path: A folder or an archive.
        aside: A folder of this process's own, on the disk onto which it is restored: an archive is
            unpacked there, and every content compared with its name.

    Raises:
        DataError: It is no whole backup.
    """
    if not path.exists():
        raise DataError(f"there is no {path}")
    if path.is_dir():
        if not (path / MANIFEST).is_file():
            raise DataError(f"{path} is no whole backup: it has no {MANIFEST}")
        manifest = read_manifest((path / MANIFEST).read_bytes(), str(path))
        yield Source(path, manifest, owned=False)
        return
    try:
        text = _unpack(path, aside)
    except (tarfile.TarError, zipfile.BadZipFile, zstandard.ZstdError, EOFError) as error:
        raise DataError(f"{path} is cut off or damaged: {error}") from error
    yield Source(aside, read_manifest(text, str(path)), owned=True)


def _unpack(path: Path, folder: Path) -> bytes:
    """Unpack the contents of an archive, and return its manifest."""
    manifest = b""
    with _members(path) as members:
        for name, member in members:
            if name == MANIFEST:
                manifest = member.read()
            elif found := _OBJECT.fullmatch(name):
                target = _object(folder, found[1])
                target.parent.mkdir(parents=True, exist_ok=True)
                if _pour(member, target)[0] != found[1]:
                    raise _damaged(found[1])
            else:
                raise DataError(f"{path} has {name[:80]!r} in it, and is no backup of animalcat")
    if not manifest:
        raise DataError(f"{path} is no whole backup: it has no {MANIFEST}")
    return manifest


@contextmanager
def _members(path: Path) -> Generator[Iterable[tuple[str, IO[bytes]]]]:
    with path.open("rb") as file:
        if zipfile.is_zipfile(file):
            with zipfile.ZipFile(file) as archive:
                yield ((name, archive.open(name)) for name in archive.namelist())
            return
        file.seek(0)
        if file.read(4) == b"\x28\xb5\x2f\xfd":  # the mark of zstd
            file.seek(0)
            plain: Any = zstandard.ZstdDecompressor().stream_reader(file, closefd=False)
            with plain, tarfile.open(fileobj=plain, mode="r|") as archive:
                yield _of_tar(archive)
            return
        file.seek(0)
        with tarfile.open(fileobj=file, mode="r|*") as archive:
            yield _of_tar(archive)


def _of_tar(archive: tarfile.TarFile) -> Iterator[tuple[str, IO[bytes]]]:
    for info in archive:
        member = archive.extractfile(info)
        if member is None:
            raise DataError(f"the archive has {info.name[:80]!r} in it, which is no file")
        yield info.name, member


def write_lines(path: Path, rows: Iterable[list[Any]]) -> int:
    """Write rows as lines of JSON, compressed; return their number."""
    number = 0
    compressor = zstandard.ZstdCompressor(level=3, write_checksum=True)
    with path.open("wb") as file, compressor.stream_writer(file, closefd=False) as packed:
        for row in rows:
            packed.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")
            number += 1
    return number


def _lines(plain: Any) -> Iterator[list[Any]]:
    rest = b""
    while chunk := plain.read(_CHUNK):
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield json.loads(line)
    if rest:
        raise DataError("the backup is damaged: a list of rows ends within a row")


def copy(source: Path, target: Path) -> tuple[str, int]:
    """Copy a file, and return the digest and the bytes of what was copied."""
    with source.open("rb") as file:
        return _pour(file, target)


def _pour(file: IO[bytes], target: Path) -> tuple[str, int]:
    digest, size = hashlib.sha256(), 0
    with target.open("wb") as written:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
            size += len(chunk)
            written.write(chunk)
    return digest.hexdigest(), size


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sync_disk(folder: Path) -> None:
    """Let all that was written on the disk of a folder survive a power cut.

    Raises:
        OSError: The disk did not take it.
    """
    call = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
    if call is None:  # not Linux
        os.sync()
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        if call(handle):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(folder))
    finally:
        os.close(handle)


def _object(folder: Path, digest: str) -> Path:
    return folder / OBJECTS / digest[:2] / digest


def _damaged(digest: str) -> DataError:
    return DataError(
        f"the backup is damaged: the content {digest[:12]} is another than its name says; use "
        "another backup"
    )


@contextmanager
def _missing(digest: str) -> Generator[None]:
    try:
        yield
    except FileNotFoundError as error:
        if not str(error.filename or "").endswith(digest):
            raise
        raise DataError(f"the backup is damaged: the content {digest[:12]} is gone") from error
