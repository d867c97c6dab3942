"""A database is made at once or by the steps, and those of another history are refused."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from animalcat.service.storage import migrate, schema
from animalcat.service.storage.migrate import StoreVersionError
from animalcat.service.storage.sql import SqlStore


def condition(index: Any) -> str:
    """What a row has to be like for an index to have it; empty if all rows are in it."""
    return str(index.get("dialect_options", {}).get("sqlite_where", ""))


def layout_of(path: Path) -> dict[str, Any]:
    """Every table, with its columns, keys and indexes."""
    engine = sa.create_engine(f"sqlite:///{path / 'animalcat.sqlite'}")
    tables = sa.inspect(engine)
    found: dict[str, Any] = {}
    for table in tables.get_table_names():
        columns = {
            column["name"]: (str(column["type"]), column["nullable"], column["default"])
            for column in tables.get_columns(table)
        }
        indexes = [
            (i["name"], i["column_names"], i["unique"], condition(i))
            for i in tables.get_indexes(table)
        ]
        uniques = sorted(u["column_names"] for u in tables.get_unique_constraints(table))
        key = tables.get_pk_constraint(table)["constrained_columns"]
        found[table] = (columns, sorted(indexes), uniques, key, tables.get_foreign_keys(table))
    engine.dispose()
    return found


def change(data: Path, *statements: str) -> None:
    with closing(sqlite3.connect(data / "animalcat.sqlite")) as db, db:
        for statement in statements:
            db.execute(statement)


def test_the_steps_make_what_a_new_database_is(tmp_path: Path) -> None:
    SqlStore.in_directory(tmp_path / "new").close()
    (tmp_path / "steps").mkdir()
    engine = sa.create_engine(f"sqlite:///{tmp_path / 'steps' / 'animalcat.sqlite'}")
    with engine.begin() as db:
        migrate.step(db)
        assert migrate.revision(db) == schema.REVISION
    engine.dispose()
    assert layout_of(tmp_path / "steps") == layout_of(tmp_path / "new")
    SqlStore.in_directory(tmp_path / "steps").close()


def test_the_steps_end_at_the_schema_of_today() -> None:
    from importlib.resources import files

    from alembic.script import ScriptDirectory

    steps = ScriptDirectory(str(files("animalcat.service.storage") / "migrations"))
    numbers = [step.revision for step in steps.walk_revisions()]
    assert numbers == [f"r{k}" for k in range(int(schema.REVISION[1:]), 0, -1)]


def test_several_that_start_at_once_make_one_database(tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        stores = list(pool.map(SqlStore.in_directory, [tmp_path] * 4))
    assert len({store.id() for store in stores}) == 1
    for store in stores:
        store.close()


OLD = "written before the first release.*move this one away"


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("UPDATE alembic_version SET version_num = 'r99'", "schema r99.*up to r1.*Update"),
        ("UPDATE alembic_version SET version_num = '0001'", OLD),
        ("UPDATE alembic_version SET version_num = '0012'", OLD),
        ("UPDATE alembic_version SET version_num = ''", OLD),
        ("DELETE FROM alembic_version", OLD),
        ("DROP TABLE alembic_version", OLD),
    ],
)
def test_a_database_of_another_history_is_refused_and_left_alone(
    tmp_path: Path, statement: str, words: str
) -> None:
    SqlStore.in_directory(tmp_path).close()
    change(tmp_path, statement)
    before = layout_of(tmp_path)
    with pytest.raises(StoreVersionError, match=f"{tmp_path}/animalcat.sqlite .*{words}"):
        SqlStore.in_directory(tmp_path)
    assert layout_of(tmp_path) == before


def test_a_current_store_opens_without_alembic(tmp_path: Path) -> None:
    """Importing it takes time that every start would pay."""
    code = (
        "import sys; from pathlib import Path; from animalcat.service.storage.sql import SqlStore;"
        "[SqlStore.in_directory(Path(sys.argv[1])).close() for _ in range(2)];"
        "sys.exit('alembic' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)
