"""Reads rows of the store as they are stored, whatever they say and in any database."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any, Final, NamedTuple, TypeAlias

from sqlalchemy import Column, ColumnElement, Connection, Table, func, select, text

from animalcat.service.storage import schema

OF_SESSION: Final = (schema.episodes, schema.certificates, schema.profiles, schema.chain)
"""Tables with rows that belong to one session."""
_AT_ONCE: Final = 1000
"""Rows that are read at once."""

PlainRow: TypeAlias = tuple[Any, ...]
"""A row in the order of the table's columns; JSON is text."""


class KeptFiles(NamedTuple):
    """The files of a session that its chain tells of.

    Attributes:
        session: Its id.
        digests: SHA-256 by what it is of (see `chain.ChainLink.what`).
    """

    session: str
    digests: dict[str, str]


class Snapshot:
    """One state of a database, for as long as the transaction lasts in which it is read."""

    def __init__(self, db: Connection) -> None:
        """Read in a transaction that shows one state: SQLite's, or one that is repeatable."""
        self._db = db

    def exported(self) -> str:
        """Return the name by which another connection to a PostgreSQL sees this state."""
        return str(self._db.scalar(text("SELECT pg_export_snapshot()")))

    def schema(self) -> str:
        """Return the name of the schema of a PostgreSQL in which the tables are."""
        return str(self._db.scalar(text("SELECT current_schema()")))

    def rows(self, table: Table) -> Iterator[PlainRow]:
        """Yield the rows of a table in the order of their keys."""
        for row in self._read(select(table).order_by(*table.primary_key.columns)):
            yield tuple(row)

    def count(self, table: Table) -> int:
        """Return the number of rows of a table."""
        return int(self._db.scalar(select(func.count()).select_from(table)) or 0)

    def column(self, column: Column[Any], *where: ColumnElement[bool]) -> set[Any]:
        """Return the values that a column has in some rows."""
        return {row[0] for row in self._read(select(column).where(*where).distinct())}

    def kept(self) -> Iterator[KeptFiles]:
        """Yield the files that the chains of all sessions tell of."""
        table = schema.chain
        query = select(table.c.session, table.c.what, table.c.recording)
        rows = self._read(query.order_by(table.c.session, table.c.seq))
        for session, links in groupby(rows, key=lambda row: str(row[0])):
            yield KeptFiles(session, {what: digest for _, what, digest in links if digest})

    def _read(self, query: Any) -> Iterator[Any]:
        # Not all at once: a year's attempts would not fit into memory.
        yield from self._db.execute(query.execution_options(yield_per=_AT_ONCE))
