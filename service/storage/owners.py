"""Keeps to whom sessions, campaigns, batteries and layouts belong, by their resource names.

The owner is beside what it owns, and in no id and no digest: to hand something over changes neither
its name nor its chain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Connection,
    Engine,
    and_,
    delete,
    func,
    insert,
    literal,
    or_,
    select,
    true,
)

from animalcat.service.storage import schema
from animalcat.service.storage.listing import WhoseFilter, circle_of

_KINDS: Final[Mapping[str, ColumnElement[Any]]] = {
    "sessions": schema.sessions.c.id,
    "campaigns": schema.campaigns.c.id,
    "batteries": schema.batteries.c.id,
    "layouts": schema.layouts.c.digest,
}
"""What can belong to somebody: the first part of its resource name, and what the second one is."""
COMMON: Final = frozenset({"batteries", "layouts"})
"""Kinds of things that all may read where they belong to nobody."""
_SEPARATOR: Final = "\n"
"""Stands between circles in one text; no circle has it."""


class Owners:
    """To whom things belong; see `SqlStore` for what holds of its methods."""

    def __init__(
        self, reader: Engine, changing: Callable[[], AbstractContextManager[Connection]]
    ) -> None:
        """Use a store's database.

        Args:
            reader: Reads it.
            changing: Begins a transaction that writes.
        """
        self._reader = reader
        self._changing = changing

    def of(self, item: str) -> tuple[str, frozenset[str]]:
        """Return the owner of something and with whom it is shared, both empty where nobody is."""
        owners, shares = schema.owners, schema.shares
        with self._reader.connect() as db:
            owner = db.scalar(select(owners.c.owner).where(owners.c.item == item)) or ""
            return owner, frozenset(
                db.scalars(select(shares.c.circle).where(shares.c.item == item))
            )

    def every(self) -> dict[str, str]:
        """Return the owners of all things that belong to somebody, by resource name."""
        table = schema.owners
        with self._reader.connect() as db:
            return {row.item: row.owner for row in db.execute(select(table.c.item, table.c.owner))}

    def forget(self, subject: str) -> int:
        """Share nothing with a subject alone any more; return with how many things that was so."""
        table = schema.shares
        with self._changing() as db:
            gone = delete(table).where(table.c.circle == circle_of(subject))
            return db.execute(gone).rowcount

    def there(self, item: str) -> bool:
        """Return whether there is something of this resource name."""
        with self._reader.connect() as db:
            return _is_there(db, item)

    def share(self, items: Iterable[str], add: Iterable[str], remove: Iterable[str]) -> None:
        """Share things with groups, and no longer with others, all or none of them.

        Raises:
            KeyError: One of them does not exist.
        """
        with self._changing() as db:
            for item in items:
                _insist(db, item)
                share(db, item, add)
                shares = schema.shares
                gone = (shares.c.item == item) & shares.c.circle.in_(list(remove))
                db.execute(delete(shares).where(gone))

    def hand_over(self, items: Iterable[str], owner: str) -> None:
        """Give things another owner, all or none of them.

        Raises:
            KeyError: One of them does not exist.
        """
        with self._changing() as db:
            for item in items:
                _insist(db, item)
                forget(db, item, shared=False)
                own(db, item, owner)


def own(db: Connection, item: str, owner: str) -> None:
    """Store to whom something belongs that belongs to nobody yet."""
    if owner:
        db.execute(insert(schema.owners).values(item=item, owner=owner))


def share(db: Connection, item: str, circles: Iterable[str]) -> None:
    """Share something with circles; with those that it is shared with it stays so."""
    table = schema.shares
    known = set(db.scalars(select(table.c.circle).where(table.c.item == item)))
    new = [{"item": item, "circle": circle} for circle in sorted(set(circles) - known)]
    if new:
        db.execute(insert(table), new)


def also(db: Connection, item: str, owner: str) -> None:
    """Let somebody see what is there already, and which they brought as well."""
    before = db.scalar(select(schema.owners.c.owner).where(schema.owners.c.item == item))
    if owner and before not in (None, owner):
        share(db, item, [circle_of(owner)])


def forget(db: Connection, item: str, *, shared: bool = True) -> None:
    """Forget to whom something belongs, and, if asked, with whom it is shared."""
    for table in (schema.owners, schema.shares)[: 2 if shared else 1]:
        db.execute(delete(table).where(table.c.item == item))


def columns(kind: str) -> tuple[ColumnElement[Any], ColumnElement[Any]]:
    """Return what reads the owner and the circles of each row, labelled "owner" and "circles"."""
    owners, shares = schema.owners, schema.shares
    item, of = _item(kind), _KINDS[kind].table
    circles = func.aggregate_strings(shares.c.circle, _SEPARATOR)
    return (
        select(owners.c.owner).where(owners.c.item == item).correlate(of).scalar_subquery(),
        select(circles).where(shares.c.item == item).correlate(of).scalar_subquery(),
    )


def circles_in(text: str | None) -> frozenset[str]:
    """Return the circles that a row has, as `columns` reads them."""
    return frozenset(text.split(_SEPARATOR)) if text else frozenset()


def groups_in(circles: Iterable[str]) -> tuple[str, ...]:
    """Return the groups among circles, in order."""
    return tuple(sorted(circle for circle in circles if not circle.startswith("=")))


def wanted(kind: str, whose: WhoseFilter) -> ColumnElement[bool]:
    """Return the condition under which a row is wanted; see `WhoseFilter.takes`."""
    owners, shares = schema.owners, schema.shares
    item, of = _item(kind), _KINDS[kind].table

    def belongs(owner: str) -> ColumnElement[bool]:
        mine = (owners.c.item == item) & (owners.c.owner == owner)
        return select(owners.c.item).where(mine).correlate(of).exists()

    # All may see batteries and layouts that belong to nobody.
    anybody = select(owners.c.item).where(owners.c.item == item).correlate(of).exists()
    ownerless = [~anybody] if kind in COMMON else []

    def shared(circles: Iterable[str]) -> ColumnElement[bool]:
        with_them = (shares.c.item == item) & shares.c.circle.in_(sorted(circles))
        return select(shares.c.item).where(with_them).correlate(of).exists()

    conditions: list[ColumnElement[bool]] = [true()]
    if whose.owner:
        conditions.append(belongs(whose.owner))
    if whose.mine:
        conditions.append(or_(belongs(whose.mine), *ownerless))
    if whose.group:
        conditions.append(shared([whose.group]))
    if whose.seen_by is not None:
        own_ones = [belongs(whose.seen_by)] if whose.seen_by else []
        conditions.append(or_(*own_ones, shared(whose.circles), *ownerless))
    return and_(*conditions)


def _item(kind: str) -> ColumnElement[str]:
    return literal(f"{kind}/").concat(_KINDS[kind])


def _is_there(db: Connection, item: str) -> bool:
    kind, _, key = item.partition("/")
    column = _KINDS[kind]
    return db.scalar(select(column).where(column == key)) is not None


def _insist(db: Connection, item: str) -> None:
    if not _is_there(db, item):
        raise KeyError(f"no {item}")
