"""The relational store keeps the laws of a store, and survives its process."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import psycopg
import pytest

from animalcat.service.recording.writer import begin_recording
from animalcat.service.session.play import end_recording
from animalcat.service.storage import sql
from animalcat.service.storage.artefacts import Artefacts, recording_path
from animalcat.service.storage.claims import NotOwnerError
from animalcat.service.storage.migrate import StoreUnreachableError
from animalcat.service.storage.sql import SqlStore
from animalcat.v1 import results_pb2, types_pb2
from animalcat.values import SessionState
from tests import postgres
from tests.suites.storage import (
    NOW,
    SPEC,
    StorageSuite,
    attempt,
    finished,
)


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


@pytest.fixture(params=["sqlite", "postgres"])
def two(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[list[SqlStore]]:
    """The stores of two servers on one database."""
    with ExitStack() as stack:
        if request.param == "sqlite":
            url = f"sqlite:///{tmp_path / 'shared.sqlite'}"
        else:
            url = stack.enter_context(postgres.schema(request.getfixturevalue("server")))
        stores = [SqlStore(url, owner) for owner in ("one", "other")]
        for store in stores:
            stack.callback(store.close)
        yield stores


@pytest.mark.xdist_group("postgres")
class TestClaims:
    def test_a_session_has_one_owner_at_a_time(self, two: list[SqlStore]) -> None:
        one, other = (store.claims(60.0) for store in two)
        one.listen_at("here:1")
        assert one.claim("s") is None
        assert one.claim("s") is None  # again is fine
        found = other.claim("s")
        assert found is not None
        assert found.address == "here:1"
        one.release("s")
        assert other.claim("s") is None
        assert (one.renew(), other.renew()) == (frozenset(), {"s"})

    def test_a_claim_runs_out_and_the_old_owner_writes_no_more(self, two: list[SqlStore]) -> None:
        session = two[0].create_session("s", SPEC, NOW).id
        slow, quick = two[0].claims(0.05), two[1].claims(60.0)
        assert slow.claim(session) is None
        two[0].open_episode(attempt(session, 0))
        time.sleep(0.1)
        assert quick.claim(session) is None
        for write in (
            lambda: two[0].finish_episode(finished(attempt(session, 0))),
            lambda: two[0].open_episode(attempt(session, 1)),
            lambda: two[0].set_state(session, SessionState.RUNNING),
            lambda: two[0].allow({session: 3}),
            lambda: two[0].delete_session(session),
            lambda: two[0].check_owned(session),
        ):
            with pytest.raises(NotOwnerError, match=r"another server owns session s now"):
                write()
        two[1].check_owned(session)
        two[1].finish_episode(finished(attempt(session, 0)))
        assert two[0].episodes(session) == [finished(attempt(session, 0))]

    def test_an_owner_that_was_frozen_leaves_recordings_as_they_are(
        self, two: list[SqlStore], tmp_path: Path
    ) -> None:
        """Its successor has said that the attempt was a fault, and stored the recording so."""
        session = two[0].create_session("s", SPEC, NOW).id
        slow, quick = two[0].claims(0.05), two[1].claims(60.0)
        assert slow.claim(session) is None
        begun = attempt(session, 0)
        two[0].open_episode(begun)
        files = Artefacts(tmp_path)
        path = recording_path(tmp_path, session, begun.number, begun.attempt)
        spec = types_pb2.ObservationSpec(decision_period=3)
        begin_recording(path, results_pb2.EpisodeHeader(observation_spec=spec))
        time.sleep(0.1)
        assert quick.claim(session) is None
        (tmp_path / "new").write_bytes(b"as the successor has stored it")
        (tmp_path / "new").replace(path)
        frozen = cast(Any, SimpleNamespace(store=two[0], data=tmp_path))
        with pytest.raises(NotOwnerError):
            end_recording(frozen, begun, results_pb2.EpisodeFooter(), 3)
        with pytest.raises(NotOwnerError):
            two[0].finish_episode(finished(begun), files)
        assert path.read_bytes() == b"as the successor has stored it"
        two[1].finish_episode(finished(begun), files)

    def test_the_sessions_of_a_campaign_that_are_not_over_are_claimed_together(
        self, two: list[SqlStore]
    ) -> None:
        one, other = (store.claims(60.0) for store in two)
        for name in ("a", "b", "c", "d"):
            two[0].create_session(name, SPEC, NOW)
        assert one.claim("c") is None
        two[0].finish_session("c", SessionState.CANCELLED, "", {}, ())
        one.release("c")
        campaign = ("a", "b", "c")
        assert one.claim("d") is None
        assert other.claim("a", campaign) is None
        assert one.claim("b", campaign) is not None
        assert one.claim("c", campaign) is None  # one that is over may be read anywhere
        assert (one.renew(), other.renew()) == ({"c", "d"}, {"a", "b"})
        other.release()
        assert one.claim("b", campaign) is None
        assert one.renew() == {"a", "b", "c", "d"}

    def test_of_many_that_claim_at_once_one_gets_it(self, two: list[SqlStore]) -> None:
        claims = [store.claims(60.0) for store in two] * 4
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda c: (c.owner.id, c.claim("s") is None), claims))
        assert len({owner for owner, mine in found if mine}) == 1


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
            store.finish_episode(finished(attempt(session, number)))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, sessions))
    assert all(len(store.episodes(session)) == 10 for session in sessions)
    store.close()


def test_sqlite_is_durable_and_write_ahead(tmp_path: Path) -> None:
    store = SqlStore.in_directory(tmp_path)
    with store._engine.connect() as db:  # pyright: ignore[reportPrivateUsage]
        assert db.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert db.exec_driver_sql("PRAGMA synchronous").scalar() == 2
        assert db.exec_driver_sql("PRAGMA foreign_keys").scalar() == 1
    store.close()
