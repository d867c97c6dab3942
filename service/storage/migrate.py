"""Brings a database up to the present schema, in one transaction and only once.

A new database is created directly with the present schema. An older one goes through the modules in
`migrations/versions` step by step, by means of alembic, which is imported only then.
"""

from __future__ import annotations

from importlib.resources import as_file, files
from typing import Final

from sqlalchemy import Connection, Engine, insert, inspect, select, update

from animalcat.service.storage import schema

WRITE_LOCK: Final = 0x616E696D616C
"""Key of the advisory lock under which PostgreSQL's transactions write: "animal" in ASCII."""


class StoreTooNewError(Exception):
    """A newer version of animalcat wrote the store."""


class StoreUnreachableError(Exception):
    """There is no such database, it does not answer, or there is no driver for it."""


def bring_up_to_date(engine: Engine) -> None:
    """Create the tables of a new database, or bring those of an older one up to date.

    Raises:
        StoreTooNewError: The database is newer than this code.
    """
    with engine.execution_options(animalcat_reads=True).connect() as db:
        if revision(db) == schema.REVISION:
            return
    with engine.begin() as db:  # this takes the write lock
        found = revision(db)  # again: another process may have been quicker
        if found == schema.REVISION:
            return
        if found is None:
            schema.metadata.create_all(db)
            db.execute(insert(schema.meta).values(key="schema", value=str(int(schema.REVISION))))
            db.execute(insert(schema.alembic_version).values(version_num=schema.REVISION))
            return
        if not found.isdecimal() or int(found) > int(schema.REVISION):
            raise StoreTooNewError(
                f"{engine.url.database} has schema {found.lstrip('0')}; this animalcat knows up to "
                f"{int(schema.REVISION)}: update animalcat, or choose another data directory"
            )
        _step(db, found)


def revision(db: Connection) -> str | None:
    """Return the schema of a database: "0001", "0002", ...; None if it has none yet."""
    tables = inspect(db)
    if tables.has_table(schema.alembic_version.name):
        return db.scalar(select(schema.alembic_version.c.version_num))
    if not tables.has_table(schema.meta.name):
        return None
    before_alembic = db.scalar(select(schema.meta.c.value).where(schema.meta.c.key == "schema"))
    return None if before_alembic is None else f"{int(before_alembic):04}"


def _step(db: Connection, found: str) -> None:
    from alembic import command
    from alembic.config import Config

    with as_file(files("animalcat.service.storage") / "migrations") as folder:
        config = Config()
        config.set_main_option("script_location", str(folder).replace("%", "%%"))
        config.attributes["connection"] = db
        if not inspect(db).has_table(schema.alembic_version.name):
            command.stamp(config, found)
        command.upgrade(config, "head")
    # Versions of animalcat from before alembic look at this to refuse a newer store.
    newest = str(int(schema.REVISION))
    db.execute(update(schema.meta).where(schema.meta.c.key == "schema").values(value=newest))
