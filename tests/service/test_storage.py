"""The relational store keeps the laws of a store, and survives its process."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from animalcat.service.storage.base import SessionStore
from animalcat.service.storage.sql import SqlStore
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


POSTGRES = os.environ.get("ANIMALCAT_POSTGRES_URL", "")
"""URL of a database in which tests may make schemas; it needs a driver, such as psycopg."""


@pytest.mark.skipif(not POSTGRES, reason="ANIMALCAT_POSTGRES_URL names no database")
class TestPostgres(StorageSuite):
    @pytest.fixture
    def store(self) -> Iterator[SessionStore]:
        name = f"test_{uuid.uuid4().hex}"
        engine = sa.create_engine(POSTGRES, isolation_level="AUTOCOMMIT")
        with engine.connect() as db:
            db.execute(sa.schema.CreateSchema(name))
        store = SqlStore(f"{POSTGRES}?options=-csearch_path%3D{name}")
        yield store
        store.close()
        with engine.connect() as db:
            db.execute(sa.schema.DropSchema(name, cascade=True))
        engine.dispose()


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
