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
    Label,
    and_,
    delete,
    insert,
    literal,
    or_,
    select,
    true,
)

from animalcat.service.storage import schema
from animalcat.service.storage.listing import WhoseFilter

_KINDS: Final[Mapping[str, ColumnElement[Any]]] = {
    "sessions": schema.sessions.c.id,
    "campaigns": schema.campaigns.c.id,
    "batteries": schema.batteries.c.id,
    "layouts": schema.layouts.c.digest,
}
"""What can belong to somebody: the first part of its resource name, and what the second one is."""
COMMON: Final = frozenset({"batteries", "layouts"})
"""Kinds of things that all may read where they belong to nobody."""


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

    def of(self, item: str) -> str:
        """Return the owner of something; empty where it is nobody's."""
        with self._reader.connect() as db:
            return owner_of(db, item)

    def there(self, item: str) -> bool:
        """Return whether there is something of this resource name."""
        with self._reader.connect() as db:
            return _is_there(db, item)

    def hand_over(self, items: Iterable[str], owner: str) -> None:
        """Give things another owner, all or none of them.

        Raises:
            KeyError: One of them does not exist.
        """
        with self._changing() as db:
            for item in items:
                _insist(db, item)
                forget(db, item)
                own(db, item, owner)


def own(db: Connection, item: str, owner: str) -> None:
    """Store to whom something belongs that belongs to nobody yet."""
    if owner:
        db.execute(insert(schema.owners).values(item=item, owner=owner))


def owner_of(db: Connection, item: str) -> str:
    """Return the owner of something; empty where it is nobody's."""
    table = schema.owners
    return db.scalar(select(table.c.owner).where(table.c.item == item)) or ""


def forget(db: Connection, item: str) -> None:
    """Forget to whom something belongs."""
    db.execute(delete(schema.owners).where(schema.owners.c.item == item))


def column(kind: str) -> Label[Any]:
    """Return what reads the owner of each row, labelled "owner"."""
    owners, of = schema.owners, _KINDS[kind].table
    its_owner = select(owners.c.owner).where(owners.c.item == _item(kind))
    return its_owner.correlate(of).scalar_subquery().label("owner")


def whose_condition(kind: str, whose: WhoseFilter) -> ColumnElement[bool]:
    """Return the condition under which a row is wanted; see `WhoseFilter.takes`."""
    owners, item, of = schema.owners, _item(kind), _KINDS[kind].table

    def belongs(owner: str) -> ColumnElement[bool]:
        mine = (owners.c.item == item) & (owners.c.owner == owner)
        return select(owners.c.item).where(mine).correlate(of).exists()

    # All may see batteries and layouts that belong to nobody.
    anybody = select(owners.c.item).where(owners.c.item == item).correlate(of).exists()
    ownerless = [~anybody] if kind in COMMON else []

    conditions: list[ColumnElement[bool]] = [true()]
    if whose.owner:
        conditions.append(belongs(whose.owner))
    if whose.mine:
        conditions.append(or_(belongs(whose.mine), *ownerless))
    if whose.seen_by is not None:
        conditions.append(or_(belongs(whose.seen_by), *ownerless))
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
