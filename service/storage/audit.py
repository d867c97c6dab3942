"""Keeps the audit log: who did what to what, from where, and what came of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, Final

from sqlalchemy import Connection, Engine, RowMapping, delete, func, insert, or_, select, update

from animalcat.service.storage import schema
from animalcat.service.storage.listing import BadPageError, Listing, Page
from animalcat.values import AuditLine

BEGUN: Final = "begun"
"""Result of a line until it is known what came of it."""
_LATER: Final = ("object", "result", "words", "times")
"""What of a line is written again when it is known what came of it."""


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """Which lines are wanted; an empty field accepts all.

    Attributes:
        subject: Subject of the caller.
        action: What was called.
        object: Resource name of what it was about.
        since: The earliest time, with time zone; None for all.
    """

    subject: str = ""
    action: str = ""
    object: str = ""
    since: datetime | None = None


class AuditLog:
    """The audit log of a database; see `SqlStore` for what holds of its methods."""

    def __init__(
        self, reader: Engine, changing: Callable[[], AbstractContextManager[Connection]]
    ) -> None:
        """Use a store's database.

        Args:
            reader: Reads it.
            changing: Begins a transaction that writes; one at a time in the whole database.
        """
        self._reader = reader
        self._changing = changing

    def write(self, lines: Sequence[AuditLine]) -> list[int]:
        """Write lines, all or none of them; return the number of each.

        A line that has a number says what came of the line of that number.
        """
        table = schema.audit
        numbers: list[int] = []
        with self._changing() as db:
            for line in lines:
                values, number = _values(line), line.seq
                if number:
                    later = {name: values[name] for name in _LATER}
                    db.execute(update(table).where(table.c.seq == number).values(later))
                else:
                    key = db.execute(insert(table).values(values)).inserted_primary_key
                    number = int(key[0]) if key else 0
                numbers.append(number)
        return numbers

    def count(self, before: datetime) -> int:
        """Return the number of lines that were written before a time."""
        table = schema.audit
        query = select(func.count()).where(table.c.created < _plain(before))
        with self._reader.connect() as db:
            return int(db.scalar(query) or 0)

    def remove(self, before: datetime) -> int:
        """Remove the lines that were written before a time, and return their number."""
        table = schema.audit
        with self._changing() as db:
            return db.execute(delete(table).where(table.c.created < _plain(before))).rowcount

    def lines(self, wanted: AuditFilter = AuditFilter(), page: Page = Page()) -> Listing[AuditLine]:
        """List lines, newest first.

        Raises:
            BadPageError: The page's token did not come from such a list.
        """
        table = schema.audit
        query = select(table).order_by(table.c.seq.desc())
        for column, value in ((table.c.subject, wanted.subject), (table.c.action, wanted.action)):
            if value:
                query = query.where(column == value)
        if name := wanted.object:  # a list of names with a space between them
            ways = (name, f"{name} %", f"% {name}", f"% {name} %")
            escaped = [way.replace("_", r"\_") for way in ways]
            query = query.where(or_(*(table.c.object.like(way, escape="\\") for way in escaped)))
        if wanted.since is not None:
            query = query.where(table.c.created >= _plain(wanted.since))
        if page.after:
            if not (page.after.isdecimal() and page.after.isascii()):
                raise BadPageError(f"{page.after[:40]!r} is not the token of a page")
            query = query.where(table.c.seq < int(page.after))
        if page.limit:
            query = query.limit(page.limit + 1)
        with self._reader.connect() as db:
            rows = db.execute(query).mappings().all()
        more = bool(page.limit) and len(rows) > page.limit
        shown = rows[: page.limit] if page.limit else rows
        return Listing(map(_line, shown), str(shown[-1]["seq"]) if more else "")


def _values(line: AuditLine) -> dict[str, Any]:
    """Return what the columns of a line are, but for its number."""
    sizes = {name: column.type for name, column in schema.audit.c.items()}
    values = asdict(line) | {"created": _plain(line.created)}
    del values["seq"]
    return {
        name: value[: getattr(sizes[name], "length", None)] if isinstance(value, str) else value
        for name, value in values.items()
    }


def _plain(time: datetime) -> datetime:
    return time.astimezone(UTC).replace(tzinfo=None)


def _line(row: RowMapping) -> AuditLine:
    return AuditLine(**{**row, "created": row["created"].replace(tzinfo=UTC)})


def join_names(objects: Iterable[str]) -> str:
    """Return the names of what a line is about, as it has them."""
    return " ".join(dict.fromkeys(objects))
