"""Where batteries, recordings and draws are kept: in the data directory, or in object storage."""

from __future__ import annotations

import hashlib
import importlib
import os
from pathlib import Path
from typing import Any

import pytest

from animalcat.service.storage.artefacts import (
    CACHE,
    Artefacts,
    ArtefactsError,
    ArtefactsUrlError,
    ObjectStorage,
    artefacts_for,
)
from tests.service.s3 import S3, bucket, make_bucket, s3
from tests.suites.artefacts import RECORDING, ArtefactsSuite, Make, written

__all__ = ["bucket", "s3"]

ROOM = 1 << 20
pytestmark = pytest.mark.xdist_group("object storage")


class TestDataDirectory(ArtefactsSuite):
    @pytest.fixture
    def make(self, tmp_path: Path) -> Make:
        return lambda name: Artefacts(tmp_path)


class OverObjectStorage(ArtefactsSuite):
    """What only object storage has: a cache, and places where half a file could be seen."""

    @pytest.fixture
    def url(self) -> str:
        raise NotImplementedError

    @pytest.fixture
    def make(self, tmp_path: Path, url: str) -> Make:
        return lambda name: artefacts_for(tmp_path / name, url, ROOM)

    def test_only_the_latest_copies_are_kept_here(self, tmp_path: Path, url: str) -> None:
        files = artefacts_for(tmp_path / "a", url, 25)
        keys = [f"recordings/s/{k}-0.mcap" for k in range(4)]
        for key in keys:
            written(files, key, b"0123456789")
            files.put(key)
        cache = tmp_path / "a" / CACHE
        assert {p.name for p in cache.rglob("*.mcap")} == {"2-0.mcap", "3-0.mcap"}
        files.fetch(keys[2])
        assert files.fetch(keys[0]).read_bytes() == b"0123456789"
        assert {p.name for p in cache.rglob("*.mcap")} == {"2-0.mcap", "0-0.mcap"}
        again = artefacts_for(tmp_path / "a", url, 5)
        again.fetch(keys[1])
        assert {p.name for p in cache.rglob("*.mcap")} == {"1-0.mcap"}

    def test_a_digest_is_that_of_what_is_stored_and_not_of_a_copy(
        self, tmp_path: Path, url: str
    ) -> None:
        here, there = (artefacts_for(tmp_path / name, url, ROOM) for name in "ab")
        written(here, RECORDING)
        here.put(RECORDING)
        written(there, RECORDING, b"forged")
        there.put(RECORDING)
        assert here.fetch(RECORDING).read_bytes() == b"steps"
        assert here.digest(RECORDING) == hashlib.sha256(b"forged").hexdigest()

    def test_nothing_but_what_was_put_is_left_there(self, tmp_path: Path, url: str) -> None:
        files = artefacts_for(tmp_path / "a", url, ROOM)
        written(files, RECORDING)
        files.put(RECORDING)
        written(files, "batteries/d/battery.json")
        files.put_folder("batteries/d")
        fsspec: Any = importlib.import_module("fsspec")
        storage, root = fsspec.core.url_to_fs(
            url, use_listings_cache=False, skip_instance_cache=True
        )
        found = {str(path).removeprefix(root).lstrip("/") for path in storage.find(root)}
        assert found == {RECORDING, "batteries/d.tar"}
        hidden = [p for p in (tmp_path / "a" / CACHE).rglob(".*") if p.is_file()]
        assert not hidden


class TestLocalUrl(OverObjectStorage):
    @pytest.fixture
    def url(self, tmp_path: Path) -> str:
        return f"file://{tmp_path}/shared"


class TestMemoryUrl(OverObjectStorage):
    @pytest.fixture
    def url(self) -> str:
        return f"memory://animalcat-{os.urandom(6).hex()}"


class TestS3(OverObjectStorage):
    @pytest.fixture
    def url(self, bucket: str) -> str:
        return bucket

    @pytest.mark.slow
    def test_a_storage_that_is_gone_is_an_error_until_it_is_back(
        self, tmp_path: Path, url: str, s3: S3
    ) -> None:
        files = artefacts_for(tmp_path / "a", url, ROOM)
        written(files, RECORDING)
        s3.stop()
        try:
            with pytest.raises(ArtefactsError):
                files.put(RECORDING)
            assert files.fetch(RECORDING).read_bytes() == b"steps"
            with pytest.raises(ArtefactsError):
                files.digest("recordings/s/1-0.mcap")
            with pytest.raises(ArtefactsUrlError, match="cannot be kept"):
                artefacts_for(tmp_path / "b", url, ROOM)
        finally:
            s3.start()
        make_bucket(url)
        files.put(RECORDING)
        assert artefacts_for(tmp_path / "b", url, ROOM).fetch(RECORDING).read_bytes() == b"steps"

    def test_a_bucket_that_is_not_there_is_said_at_once(self, tmp_path: Path, bucket: str) -> None:
        with pytest.raises(ArtefactsUrlError, match="Check the bucket"):
            artefacts_for(tmp_path, f"{bucket.replace('bucket-', 'none-')}", ROOM)


def test_a_half_copy_is_never_taken_for_a_whole_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The copy breaks off in the middle, both ways."""
    url = f"file://{tmp_path}/shared"
    files, other = (ObjectStorage(tmp_path / name, url, ROOM) for name in "ab")
    written(files, RECORDING, bytes(1000))

    def broken(_: Any, source: str, target: str, **__: Any) -> None:
        Path(target).write_bytes(Path(source).read_bytes()[:500])
        raise ConnectionResetError("in the middle")

    local: Any = importlib.import_module("fsspec.implementations.local")
    with monkeypatch.context() as patch:
        patch.setattr(local.LocalFileSystem, "put_file", broken)
        with pytest.raises(ArtefactsError, match="in the middle"):
            files.put(RECORDING)
    assert not [p for p in (tmp_path / "shared").rglob("*") if p.is_file()]
    assert files.fetch(RECORDING).read_bytes() == bytes(1000)
    files.put(RECORDING)
    with monkeypatch.context() as patch:
        patch.setattr(local.LocalFileSystem, "get_file", broken)
        with pytest.raises(ArtefactsError, match="in the middle"):
            other.fetch(RECORDING)
    assert not [p for p in (tmp_path / "b").rglob("*") if p.is_file()]
    assert other.fetch(RECORDING).read_bytes() == bytes(1000)


@pytest.mark.parametrize("url", ["nonsense://bucket", "nonsense"])
def test_a_url_of_no_storage_is_refused(tmp_path: Path, url: str) -> None:
    with pytest.raises(ArtefactsUrlError):
        artefacts_for(tmp_path, url, ROOM)
