"""Brings a database up to the present schema, in one transaction and only once.

A new database is created directly with the present schema. An older one goes through the modules in
`migrations/versions` step by step, by means of alembic, which is imported only then.
"""

from __future__ import annotations

import re
from importlib.resources import as_file, files
from typing import Final

from sqlalchemy import Connection, Engine, insert, inspect, select

from animalcat.service.storage import schema

WRITE_LOCK: Final = 0x616E696D616C
"""Key of the advisory lock under which PostgreSQL's transactions write: "animal" in ASCII."""
_REVISION: Final = re.compile(r"r([1-9][0-9]*)")


class StoreVersionError(Exception):
    """Another version of animalcat wrote the store, and this one cannot use it."""


class StoreUnreachableError(Exception):
    """There is no such database, it does not answer, or there is no driver for it."""


def bring_up_to_date(engine: Engine) -> None:
    """Create the tables of a new database, or bring those of an older one up to date.

    Raises:
        StoreVersionError: The database is newer than this code, or is from before the first
            release.
    """
    with engine.execution_options(animalcat_reads=True).connect() as db:
        if revision(db) == schema.REVISION:
            return
    with engine.begin() as db:  # this takes the write lock
        known = revision(db)  # again: another process may have been quicker
        if known == schema.REVISION:
            return
        if known is None:
            schema.metadata.create_all(db)
            db.execute(insert(schema.alembic_version).values(version_num=schema.REVISION))
            return
        _check_known(known, engine.url.database or "the database")
        step(db)


def revision(db: Connection) -> str | None:
    """Return the schema of a database: "r1", "r2", ...; None if it is new.

    Empty for one whose tables do not say it, as those of the first drafts of animalcat.
    """
    tables = inspect(db)
    if tables.has_table(schema.alembic_version.name):
        return db.scalar(select(schema.alembic_version.c.version_num)) or ""
    return "" if tables.has_table(schema.meta.name) else None


def step(db: Connection) -> None:
    """Take a database through all steps that it has not been through."""
    from alembic import command
    from alembic.config import Config

    with as_file(files("animalcat.service.storage") / "migrations") as folder:
        config = Config()
        config.set_main_option("script_location", str(folder).replace("%", "%%"))
        config.attributes["connection"] = db
        command.upgrade(config, "head")


def _check_known(stored: str, database: str) -> None:
    if not (known := _REVISION.fullmatch(stored)):
        raise StoreVersionError(
            f"{database} was written before the first release of animalcat, whose schemas are no "
            "longer read. Choose another data directory (--data) or database (--store), or move "
            "this one away with the recordings and batteries beside it"
        )
    if int(known[1]) > int(schema.REVISION[1:]):
        raise StoreVersionError(
            f"{database} has schema {stored}, and this animalcat knows schemas up to "
            f"{schema.REVISION}. Update animalcat, or choose another data directory"
        )
