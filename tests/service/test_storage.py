"""The relational store keeps the laws of a store, and survives its process."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from animalcat.service.storage.base import SessionStore
from animalcat.service.storage.sql import SqlStore, StoreTooNewError
from animalcat.service.testing.storage_suite import (
    NOW,
    SPEC,
    StorageSuite,
    attempt,
    finished,
)


class TestSqlite(StorageSuite):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[SessionStore]:
        store = SqlStore.in_directory(tmp_path)
        yield store
        store.close()


def test_what_was_written_is_there_after_reopening(tmp_path: Path) -> None:
    store = SqlStore.in_directory(tmp_path)
    session = store.create_session("s", SPEC, NOW).id
    store.open_episode(attempt(session, 0))
    store.finish_episode(finished(attempt(session, 0)))
    # Not closed: as after kill -9, the write-ahead log is all that the next process finds.
    again = SqlStore.in_directory(tmp_path)
    assert again.episodes(session) == [finished(attempt(session, 0))]
    again.close()
    store.close()


def test_sqlite_is_durable_and_write_ahead(tmp_path: Path) -> None:
    store = SqlStore.in_directory(tmp_path)
    with store._engine.connect() as db:  # pyright: ignore[reportPrivateUsage]
        assert db.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert db.exec_driver_sql("PRAGMA synchronous").scalar() == 2
        assert db.exec_driver_sql("PRAGMA foreign_keys").scalar() == 1
    store.close()


def test_a_newer_schema_is_refused_and_left_alone(tmp_path: Path) -> None:
    SqlStore.in_directory(tmp_path).close()
    with sqlite3.connect(tmp_path / "animalcat.sqlite") as db:
        db.execute("UPDATE meta SET value = '99' WHERE key = 'schema'")
    with pytest.raises(StoreTooNewError, match=r"schema 99.*update animalcat"):
        SqlStore.in_directory(tmp_path)


def test_an_older_store_is_brought_up_to_date(tmp_path: Path) -> None:
    """The first schema had no time of play, the second no misfit, the third no campaigns, and the
    fourth neither layouts nor what played an attempt."""
    store = SqlStore.in_directory(tmp_path)
    session = store.create_session("s", SPEC, NOW).id
    store.open_episode(attempt(session, 0))
    store.close()
    with sqlite3.connect(tmp_path / "animalcat.sqlite") as db:
        db.execute("ALTER TABLE episodes DROP COLUMN seconds")
        db.execute("ALTER TABLE sessions DROP COLUMN misfit")
        db.execute("ALTER TABLE sessions DROP COLUMN allowed")
        db.execute("ALTER TABLE episodes DROP COLUMN outcomes")
        db.execute("ALTER TABLE episodes DROP COLUMN versions")
        db.execute("DROP TABLE campaigns")
        db.execute("DROP TABLE layouts")
        db.execute("UPDATE meta SET value = '1' WHERE key = 'schema'")
    store = SqlStore.in_directory(tmp_path)
    assert [episode.seconds for episode in store.episodes(session)] == [0.0]
    assert [(found.misfit, found.allowed) for found in store.sessions()] == [("", None)]
    assert store.campaigns() == store.layouts() == []
    assert [dict(episode.versions) for episode in store.episodes(session)] == [{}]
    store.finish_episode(finished(attempt(session, 0)))
    store.close()
    with sqlite3.connect(tmp_path / "animalcat.sqlite") as db:
        (version,) = db.execute("SELECT value FROM meta WHERE key = 'schema'").fetchone()
    assert version == "5"
