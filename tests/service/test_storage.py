"""The relational store keeps the laws of a store, and survives its process."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from animalcat.service.storage import sql
from animalcat.service.storage.errors import StoreInUseError
from animalcat.service.storage.migrate import StoreUnreachableError
from animalcat.service.storage.sql import SqlStore
from tests import postgres
from tests.suites.storage import (
    NOW,
    SPEC,
    StorageSuite,
    attempt,
    finish_attempt,
)

ENDED = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
)
"""Ends every other connection."""


class TestSqlite(StorageSuite):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[SqlStore]:
        store = SqlStore.in_directory(tmp_path)
        yield store
        store.close()


@pytest.fixture(scope="module")
def server() -> Iterator[postgres.Postgres]:
    with postgres.running() as started:
        yield started


@pytest.mark.xdist_group("postgres")
class TestPostgres(StorageSuite):
    @pytest.fixture
    def store(self, server: postgres.Postgres) -> Iterator[SqlStore]:
        with postgres.schema(server) as url:
            store = SqlStore(url)
            yield store
            store.close()


@pytest.mark.xdist_group("postgres")
def test_a_postgresql_has_one_server_at_a_time(server: postgres.Postgres) -> None:
    with postgres.schema(server) as url, ExitStack() as stack:
        one, other = (stack.enter_context(closing(SqlStore(url))) for _ in range(2))
        one.hold("the first")
        one.hold("the first")  # again is fine
        with pytest.raises(StoreInUseError, match="in use by another server, the first; stop"):
            other.hold("the second")
        with psycopg.connect(server.url, autocommit=True) as db:  # as when it is restarted
            db.execute(ENDED)
        one.hold("the first")
        one.create_session("s", SPEC, NOW)
        with pytest.raises(StoreInUseError):
            other.hold("the second")
        with psycopg.connect(server.url, autocommit=True) as db:
            db.execute(ENDED)
        other.hold("the second")
        with pytest.raises(StoreInUseError, match="in use by another server, the second"):
            one.create_session("t", SPEC, NOW)  # a server that was frozen writes nothing more
        with pytest.raises(StoreInUseError):
            one.hold("the first")
        other.close()
        with pytest.raises(StoreInUseError):
            one.hold("the first")
        third = stack.enter_context(closing(SqlStore(url)))
        third.hold("the third")
        assert [session.id for session in third.sessions()] == ["s"]


def test_a_database_that_is_not_there_is_named_without_its_password() -> None:
    url = "postgresql://someone:secret@127.0.0.1:1/nothing"
    with pytest.raises(StoreUnreachableError, match=r"someone:\*\*\*@127.0.0.1:1/nothing"):
        SqlStore(url)


@pytest.mark.xdist_group("postgres")
def test_a_database_that_knows_no_encoding_keeps_every_character(
    server: postgres.Postgres,
) -> None:
    with psycopg.connect(server.url, autocommit=True) as db:
        db.execute("CREATE DATABASE plain ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0")
    store = SqlStore(server.url.rpartition("/")[0] + "/plain")
    named = replace(SPEC, agent="là 猫")
    store.create_session("s", named, NOW)
    found = store.session("s")
    assert found is not None
    assert found.spec == named
    store.close()


@pytest.mark.parametrize("url", ["nonsense", "mysql+nothing://h/d"])
def test_what_is_no_database_is_refused(url: str) -> None:
    with pytest.raises(StoreUnreachableError, match="postgresql://USER:PASSWORD@HOST/DATABASE"):
        SqlStore(url)


def test_sqlite_is_durable_and_write_ahead(tmp_path: Path) -> None:
    with closing(SqlStore.in_directory(tmp_path)) as store, store._engine.connect() as db:
        said = [f"PRAGMA {name}" for name in ("journal_mode", "synchronous", "foreign_keys")]
        assert [db.exec_driver_sql(text).scalar() for text in said] == ["wal", 2, 1]


def test_what_was_written_is_there_after_reopening(tmp_path: Path) -> None:
    store = SqlStore.in_directory(tmp_path)
    session = store.create_session("s", SPEC, NOW).id
    store.open_episode(attempt(session, 0))
    store.finish_episode(finish_attempt(attempt(session, 0)))
    # Not closed: as after kill -9, the write-ahead log is all that the next process finds.
    again = SqlStore.in_directory(tmp_path)
    assert again.episodes(session) == [finish_attempt(attempt(session, 0))]
    again.close()
    store.close()


def test_writers_of_one_server_line_up_and_wait_for_no_lock_of_sqlite(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here SQLite waits for nobody, so two that wrote at once would be an error."""
    configure = sql._configure_sqlite  # pyright: ignore[reportPrivateUsage]

    def impatient(connection: Any, entry: Any) -> None:
        configure(connection, entry)
        connection.execute("PRAGMA busy_timeout=0")

    monkeypatch.setattr(sql, "_configure_sqlite", impatient)
    store = SqlStore.in_directory(tmp_path)
    sessions = [store.create_session(f"s{k}", SPEC, NOW).id for k in range(8)]

    def write(session: str) -> None:
        for number in range(10):
            store.open_episode(attempt(session, number))
            store.finish_episode(finish_attempt(attempt(session, number)))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, sessions))
    assert all(len(store.episodes(session)) == 10 for session in sessions)
    store.close()
