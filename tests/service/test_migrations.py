"""Databases of every schema so far open, and are what a new one is."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from animalcat.service.model import SessionState
from animalcat.service.storage import schema
from animalcat.service.storage.base import readable
from animalcat.service.storage.migrate import StoreTooNewError
from animalcat.service.storage.sql import SqlStore
from animalcat.v1 import results_pb2, sessions_pb2
from tests.suites.storage import NOW, SPEC, attempt, finished

FIXTURES = Path(__file__).parent / "fixtures"
WRITTEN = (1, 2, 3, 4)
"""Schemas of which there is a store that the animalcat of then has written."""


def old(data: Path, version: int) -> Path:
    """A data directory as the animalcat of then left it."""
    data.mkdir(exist_ok=True)
    with closing(sqlite3.connect(data / "animalcat.sqlite")) as db:
        db.executescript((FIXTURES / f"schema-{version}.sql").read_text())
    return data


def layout_of(path: Path) -> dict[str, Any]:
    """Every table, with its columns, keys and indexes."""
    engine = sa.create_engine(f"sqlite:///{path / 'animalcat.sqlite'}")
    tables = sa.inspect(engine)
    found: dict[str, Any] = {}
    for table in tables.get_table_names():
        columns = {
            column["name"]: (str(column["type"]), column["nullable"], column["primary_key"])
            for column in tables.get_columns(table)
        }
        indexes = sorted((i["name"], i["column_names"]) for i in tables.get_indexes(table))
        uniques = sorted(u["column_names"] for u in tables.get_unique_constraints(table))
        found[table] = (columns, indexes, uniques, tables.get_foreign_keys(table))
    engine.dispose()
    return found


@pytest.mark.parametrize("version", WRITTEN)
def test_a_store_of_an_older_schema_opens(tmp_path: Path, version: int) -> None:
    """What it holds is listed as it was, and can be gone on with."""
    store = SqlStore.in_directory(old(tmp_path, version))
    sessions = {s.spec.stop.max_episodes: s for s in store.sessions()}
    ended, waits, new = sessions[2], sessions[5], sessions[4]
    assert (ended.state, ended.episodes) == (SessionState.FINISHED, 2)
    assert {c.name for c in ended.capabilities} == {"navigationAbility", "visualAbility"}
    assert store.profile(ended.id) is not None
    assert store.certificates(ended.id)[16].passed
    assert (waits.state, waits.episodes, new.state) == (
        SessionState.WAITING,
        3,
        SessionState.WAITING,
    )
    attempts = readable(store.episodes(waits.id))
    assert [e.number for e in attempts if e.outcome is not None and e.outcome.counts] == [0, 1, 2]
    assert all(not episode.versions for episode in attempts)
    assert (new.spec.agent, new.spec.record_pixels) == ("tests:other", True)
    if version < 4:  # sharpness came with the default of 0, then of 1.5
        assert {s.spec.policy.sharpness for s in sessions.values()} == {0.0}
    if version >= 2:
        assert waits.spec.policy.about == ("visualAbility",)
    assert len(store.campaigns()) == (1 if version >= 4 else 0)
    made = store.create_session("s", SPEC, NOW).id
    store.open_episode(attempt(made, 0))
    store.finish_episode(finished(attempt(made, 0)))
    assert store.episodes(made) == [finished(attempt(made, 0))]
    store.close()


@pytest.mark.parametrize("version", WRITTEN)
def test_a_store_that_was_brought_up_to_date_is_as_a_new_one(tmp_path: Path, version: int) -> None:
    SqlStore.in_directory(old(tmp_path / "old", version)).close()
    SqlStore.in_directory(tmp_path / "new").close()
    assert layout_of(tmp_path / "old").items() >= layout_of(tmp_path / "new").items()


def test_the_steps_end_at_the_schema_of_today() -> None:
    from importlib.resources import files

    from alembic.script import ScriptDirectory

    steps = ScriptDirectory(str(files("animalcat.service.storage") / "migrations"))
    numbers = [step.revision for step in steps.walk_revisions()]
    assert numbers == [f"{k:04}" for k in range(int(schema.REVISION), 0, -1)]


def test_two_that_start_at_once_take_every_step_once(tmp_path: Path) -> None:
    old(tmp_path, 1)
    with ThreadPoolExecutor(4) as pool:
        stores = list(pool.map(SqlStore.in_directory, [tmp_path] * 4))
    assert {len(store.sessions()) for store in stores} == {3}
    for store in stores:
        store.close()


def test_a_step_that_fails_leaves_the_store_as_it_was(tmp_path: Path) -> None:
    """So the animalcat that wrote it can still be used."""
    old(tmp_path, 2)
    with closing(sqlite3.connect(tmp_path / "animalcat.sqlite")) as db, db:
        db.execute("CREATE INDEX sessions_by_battery ON sessions (seq)")  # in the last step's way
    before = layout_of(tmp_path)
    with pytest.raises(sa.exc.OperationalError, match="sessions_by_battery"):
        SqlStore.in_directory(tmp_path)
    assert layout_of(tmp_path) == before


@pytest.mark.parametrize("table", ["alembic_version", "meta"])
def test_a_newer_schema_is_refused_and_left_alone(tmp_path: Path, table: str) -> None:
    """Also by an animalcat that knows nothing of alembic: it looks into `meta`."""
    store = SqlStore.in_directory(tmp_path)
    store.close()
    with closing(sqlite3.connect(tmp_path / "animalcat.sqlite")) as db, db:
        assert db.execute("SELECT value FROM meta").fetchall() == [(str(int(schema.REVISION)),)]
        if table == "meta":
            db.execute("DROP TABLE alembic_version")
            db.execute("UPDATE meta SET value = '99'")
        else:
            db.execute("UPDATE alembic_version SET version_num = '0099'")
    with pytest.raises(StoreTooNewError, match=r"schema 99.*update animalcat"):
        SqlStore.in_directory(tmp_path)


def test_a_current_store_opens_without_alembic(tmp_path: Path) -> None:
    """Importing it takes time that every start would pay."""
    code = (
        "import sys; from pathlib import Path; from animalcat.service.storage.sql import SqlStore;"
        "[SqlStore.in_directory(Path(sys.argv[1])).close() for _ in range(2)];"
        "sys.exit('alembic' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)


@pytest.mark.asyncio(loop_scope="session")
async def test_a_session_of_the_first_schema_is_played_to_its_end(
    start: Callable[[Path], Any], tmp_path: Path
) -> None:
    """With the battery of then; what was played before has no versions, and it says so."""
    shutil.copytree(FIXTURES / "batteries", tmp_path / "batteries")
    old(tmp_path, 1)
    async with start(tmp_path) as service:
        [waits] = [
            s.name
            for s in (
                await service.sessions.ListSessions(sessions_pb2.ListSessionsRequest())
            ).sessions
            if s.spec.stop.max_episodes == 5
        ]
        end = await service.play(waits)
        assert (end.state, end.episodes) == (sessions_pb2.SESSION_STATE_FINISHED, 5)
        request = results_pb2.GetProfileRequest(name=f"{waits}/profile")
        profile = (await service.profiles.GetProfile(request)).profile_json
        assert "played by an older animalcat" in profile
