"""Reads and writes rows of the store as they are stored, whatever they say and in any database."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import groupby
from typing import Any, Final, NamedTuple, TypeAlias

from sqlalchemy import (
    JSON,
    Column,
    ColumnElement,
    Connection,
    DateTime,
    Integer,
    Table,
    Text,
    cast,
    func,
    insert,
    select,
    text,
)

from animalcat.service.storage import schema

TABLES: Final = (
    schema.batteries,
    schema.layouts,
    schema.sessions,
    schema.campaigns,
    schema.episodes,
    schema.certificates,
    schema.profiles,
    schema.chain,
    schema.owners,
    schema.audit,
)
"""What a store holds for good, so that each table comes after those to which it refers."""
OF_SESSION: Final = (schema.episodes, schema.certificates, schema.profiles, schema.chain)
"""Tables with rows that belong to one session."""
OF_ITEM: Final = (schema.owners,)
"""Tables that say to whom things belong, by their resource names."""
_NUMBERED: Final = (schema.sessions, schema.campaigns)
"""Tables whose rows get a number that rises."""
_AT_ONCE: Final = 1000
"""Rows that are read or written at once."""

PlainRow: TypeAlias = list[Any]
"""A row as JSON values, in the order of the table's columns: JSON is text, a time is ISO 8601."""


class RawText(str):
    """JSON text that is stored as it is, since digests are of that text."""

    __slots__ = ()


def dumped(value: Any) -> str:
    """Return a value of a JSON column as text; text that is `RawText` is it already."""
    return value if isinstance(value, RawText) else json.dumps(value)


class KeptFiles(NamedTuple):
    """The files of a session that its chain tells of.

    Attributes:
        session: Its id.
        digests: SHA-256 by what it is of (see `chain.ChainLink.what`); empty for a file that was
            removed on purpose.
    """

    session: str
    digests: dict[str, str]


class SessionSize(NamedTuple):
    """How much of a database a session takes.

    Attributes:
        session: Its id.
        agent: Its agent.
        battery: Id of its battery.
        battery_digest: Digest of that.
        state: Its state, as it is stored.
        created: Time of creation, UTC without time zone.
        episodes: Number of attempts.
        row_bytes: Characters of its rows, about as many as bytes.
    """

    session: str
    agent: str
    battery: str
    battery_digest: str
    state: str
    created: datetime
    episodes: int
    row_bytes: int


class Snapshot:
    """One state of a database, for as long as the transaction lasts in which it is read."""

    def __init__(self, db: Connection) -> None:
        """Read in a transaction that shows one state: SQLite's, or one that is repeatable."""
        self._db = db

    def rows(self, table: Table, *where: ColumnElement[bool]) -> Iterator[PlainRow]:
        """Yield the rows of a table in the order of their keys."""
        query = select(table).where(*where).order_by(*table.primary_key.columns)
        writers = [_plain(column) for column in table.columns]
        for row in self._read(query):
            yield [write(value) for write, value in zip(writers, row, strict=True)]

    def count(self, table: Table) -> int:
        """Return the number of rows of a table."""
        return int(self._db.scalar(select(func.count()).select_from(table)) or 0)

    def column(self, column: Column[Any], *where: ColumnElement[bool]) -> set[Any]:
        """Return the values that a column has in some rows."""
        return {row[0] for row in self._read(select(column).where(*where).distinct())}

    def kept(self, *sessions: str) -> Iterator[KeptFiles]:
        """Yield the files that the chains of sessions tell of; of all sessions if none is named."""
        table = schema.chain
        query = select(table.c.session, table.c.what, table.c.recording)
        if sessions:
            query = query.where(table.c.session.in_(sessions))
        rows = self._read(query.order_by(table.c.session, table.c.seq))
        for session, links in groupby(rows, key=lambda row: str(row[0])):
            digests: dict[str, str] = {}
            for _, what, digest in links:
                if digest or what in digests:
                    digests[what] = digest
            yield KeptFiles(session, digests)

    def heads(self) -> dict[str, str]:
        """Return the digest of the last link of every session's chain."""
        table = schema.chain
        last = select(table.c.session, func.max(table.c.seq).label("seq"))
        newest = last.group_by(table.c.session).subquery()
        same = (table.c.session == newest.c.session) & (table.c.seq == newest.c.seq)
        query = select(table.c.session, table.c.digest).join(newest, same)
        return {str(session): str(digest) for session, digest in self._read(query)}

    def sizes(self) -> list[SessionSize]:
        """Return how much each session takes, in order of creation, by sums of the database."""
        taken: dict[str, int] = {}
        attempts: dict[str, int] = {}
        for table in OF_SESSION:
            query = select(table.c.session, func.count(), func.sum(_length(table)))
            for session, number, size in self._read(query.group_by(table.c.session)):
                taken[session] = taken.get(session, 0) + int(size)
                if table is schema.episodes:
                    attempts[session] = int(number)
        own = schema.sessions
        columns = (own.c.id, own.c.agent, own.c.battery, own.c.battery_digest, own.c.state)
        query = select(*columns, own.c.created, _length(own)).order_by(own.c.seq)
        found: list[SessionSize] = []
        for session, agent, battery, digest, state, created, size in self._read(query):
            number, rows = attempts.get(session, 0), int(size) + taken.get(session, 0)
            found.append(SessionSize(session, agent, battery, digest, state, created, number, rows))
        return found

    def database_bytes(self) -> int:
        """Return how many bytes the tables take, with their indexes."""
        if self._db.dialect.name == "sqlite":
            pages = int(self._db.scalar(text("PRAGMA page_count")) or 0)
            return pages * int(self._db.scalar(text("PRAGMA page_size")) or 0)
        size = text("SELECT pg_total_relation_size(CAST(:name AS regclass))")
        names = (table.name for table in schema.metadata.sorted_tables)
        return sum(int(self._db.scalar(size, {"name": name}) or 0) for name in names)

    def _read(self, query: Any) -> Iterator[Any]:
        # Not all at once: a year's attempts would not fit into memory.
        yield from self._db.execute(query.execution_options(yield_per=_AT_ONCE))


def load(db: Connection, table: Table, rows: Iterable[Sequence[Any]]) -> int:
    """Insert rows as `Snapshot.rows` gave them, and return their number."""
    readers = [(column.name, _value(column)) for column in table.columns]
    number, batch = 0, list[dict[str, Any]]()
    for row in rows:
        values = zip(readers, row, strict=True)
        batch.append({name: read(value) for (name, read), value in values})
        if len(batch) == _AT_ONCE:
            db.execute(insert(table), batch)
            number, batch = number + len(batch), []
    if batch:
        db.execute(insert(table), batch)
    if table in _NUMBERED and db.dialect.name == "postgresql":  # what follows is numbered higher
        highest = f"(SELECT max(seq) FROM {table.name})"
        sequence = f"pg_get_serial_sequence('{table.name}', 'seq')"
        db.execute(text(f"SELECT setval({sequence}, {highest}) WHERE {highest} IS NOT NULL"))
    return number + len(batch)


def named(table: Table, row: Sequence[Any]) -> dict[str, Any]:
    """Return the values of a row by the names of their columns."""
    return dict(zip(table.columns.keys(), row, strict=True))


def _plain(column: Column[Any]) -> Callable[[Any], Any]:
    if isinstance(column.type, DateTime):
        return _time_text
    return _same  # JSON is text already: the store reads it so


def _value(column: Column[Any]) -> Callable[[Any], Any]:
    if isinstance(column.type, DateTime):
        return datetime.fromisoformat
    return RawText if isinstance(column.type, JSON) else _same


def _time_text(value: datetime) -> str:
    return value.isoformat()


def _same(value: Any) -> Any:
    return value


def _length(table: Table) -> ColumnElement[int]:
    """Characters of a row's texts, and eight for every number."""
    total: Any = 0
    for column in table.columns:
        plain = isinstance(column.type, JSON)
        if plain or hasattr(column.type, "length"):
            total = total + func.coalesce(func.length(cast(column, Text) if plain else column), 0)
        elif isinstance(column.type, Integer) or column.type.python_type is float:
            total = total + 8
    return total
