"""Keeps the audit log: who did what to what, from where, and what came of it.

Lines are only ever added, each with a digest of itself and of the line before, as the links of a
session's chain are. Who changes, adds or removes a line within breaks the chain. The last digest
(`audit --verify` prints it) is what to note elsewhere. Old lines go by `cut` alone, which leaves a
line that says with which digest they end.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Final

from sqlalchemy import Connection, Engine, RowMapping, delete, func, insert, or_, select, true

from animalcat.service.model import NewLine
from animalcat.service.storage import schema
from animalcat.service.storage.listing import BadPageError, Listing, Page
from animalcat.values import AuditLine, AuditVerification

CUT: Final = "CutAudit"
"""What is told of old lines that were removed."""
_CUT_WORDS: Final = re.compile(r"the lines up to (\d+), which end with the digest ([0-9a-f]{64})")
BEGUN: Final = "begun"
"""Result of a line that is written before something is done; another one says what came of it."""
_MOST_PROBLEMS: Final = 20
"""Most problems that are told one by one."""
_ROWS: Final = 1000
"""Rows that are read at once."""


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

    def add(self, lines: Sequence[NewLine]) -> list[int]:
        """Add lines, all or none of them; return the number of each.

        A line that was added before keeps the number that it has.
        """
        with self._changing() as db:
            return _add(db, lines)

    def old(self, before: datetime) -> int:
        """Return the number of lines that were written before everything from a time on."""
        with self._reader.connect() as db:
            return _old(db, before)[1]

    def cut(self, before: datetime, line: Callable[[str], NewLine]) -> int:
        """Remove the lines that were written before everything from a time on.

        Args:
            before: That time, with time zone.
            line: Returns the line that tells of it, given words.

        Returns:
            How many were removed.
        """
        table = schema.audit
        with self._changing() as db:
            last, number = _old(db, before)
            if number:
                digest = db.scalar(select(table.c.digest).where(table.c.seq == last))
                words = f"the lines up to {last}, which end with the digest {digest}"
                _add(db, [line(words)])
                db.execute(delete(table).where(table.c.seq <= last))
            return number

    def lines(self, wanted: AuditFilter = AuditFilter(), page: Page = Page()) -> Listing[AuditLine]:
        """List lines, newest first; what was begun is left out where a line says its result.

        Raises:
            BadPageError: The page's token did not come from such a list.
        """
        table, later = schema.audit, schema.audit.alias("later")
        answered = select(later.c.seq).where(later.c.begun == table.c.seq).correlate(table).exists()
        query = select(table).where(~answered).order_by(table.c.seq.desc())
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

    def verify(self) -> AuditVerification:
        """Look whether every line is as it was written, and none is gone before the last."""
        table, digest, number, said = schema.audit, "", 0, 0
        problems: list[str] = []
        query = select(table).order_by(table.c.seq)
        with self._reader.execution_options(yield_per=_ROWS).connect() as db:
            first = db.scalar(select(func.min(table.c.seq)))
            for words in db.scalars(select(table.c.words).where(table.c.action == CUT)):
                told = _CUT_WORDS.fullmatch(words)
                if told and int(told[1]) + 1 == first:
                    digest, said = told[2], int(told[1])
            for row in db.execute(query).mappings():
                number += 1
                values = {name: value for name, value in row.items() if name != "digest"}
                if row["seq"] != said + 1:
                    gone = f"line {said + 1}" + (f" to {row['seq'] - 1}" * (row["seq"] > said + 2))
                    problems.append(f"{gone} of the audit log is gone")
                elif row["digest"] != _digest(digest, values):
                    problems.append(
                        f"line {row['seq']} of the audit log, of {row['created']:%Y-%m-%d %H:%M:%S}"
                        ", was changed after it was written"
                    )
                digest, said = row["digest"], row["seq"]
        if len(problems) > _MOST_PROBLEMS:
            rest = len(problems) - _MOST_PROBLEMS
            problems = [*problems[:_MOST_PROBLEMS], f"and {rest} more"]
        return AuditVerification(tuple(problems), number, digest)


def _add(db: Connection, lines: Sequence[NewLine]) -> list[int]:
    table = schema.audit
    last = select(table.c.seq, table.c.digest).order_by(table.c.seq.desc()).limit(1)
    row = db.execute(last).one_or_none()
    seq, digest = (0, "") if row is None else (row.seq, row.digest)
    numbers: list[int] = []
    for new in lines:
        known = db.scalar(select(table.c.seq).where(table.c.id == new.id))
        if known is None:
            seq += 1
            values = _values(new, seq)
            digest = _digest(digest, values)
            db.execute(insert(table).values(**values, digest=digest))
        numbers.append(seq if known is None else known)
    return numbers


def _old(db: Connection, before: datetime) -> tuple[int, int]:
    """Return the last line before all that were written from a time on, and how many there are."""
    table = schema.audit
    newer = db.scalar(select(func.min(table.c.seq)).where(table.c.created >= _plain(before)))
    last, number = db.execute(
        select(func.max(table.c.seq), func.count()).where(
            table.c.seq < newer if newer is not None else true()
        )
    ).one()
    return int(last or 0), int(number)


def _values(new: NewLine, seq: int) -> dict[str, Any]:
    """Return what the columns of a line are, but for its digest."""
    line = {name: value for name, value in asdict(new.line).items() if name != "digest"}
    sizes = {name: column.type for name, column in schema.audit.c.items()}
    line |= {"created": _plain(new.line.created), "seq": seq, "id": new.id, "begun": new.begun}
    return {
        name: value[: getattr(sizes[name], "length", None)] if isinstance(value, str) else value
        for name, value in line.items()
    }


def _digest(before: str, values: Mapping[str, Any]) -> str:
    plain = {
        name: value.isoformat() if isinstance(value, datetime) else value
        for name, value in values.items()
    }
    return sha256(f"{before}\n{json.dumps(plain, sort_keys=True)}".encode()).hexdigest()


def _plain(time: datetime) -> datetime:
    return time.astimezone(UTC).replace(tzinfo=None)


def _line(row: RowMapping) -> AuditLine:
    values = {name: value for name, value in row.items() if name not in ("id", "begun")}
    return AuditLine(**{**values, "created": row["created"].replace(tzinfo=UTC)})


def joined(objects: Iterable[str]) -> str:
    """Return the names of what a line is about, as it has them."""
    return " ".join(dict.fromkeys(objects))
