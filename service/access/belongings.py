"""Knows to whom everything on a server belongs, and what a caller may see in lists."""

from __future__ import annotations

import asyncio
from typing import Any

from animalcat.service.access.callers import Role, present
from animalcat.service.errors import ServiceError
from animalcat.service.operations import Operations
from animalcat.service.storage.listing import WhoseFilter
from animalcat.service.storage.sql import SqlStore
from animalcat.text import names


class Belongings:
    """To whom things belong: those in the store, and operations."""

    def __init__(self, store: SqlStore, operations: Operations) -> None:
        """Look into these.

        Args:
            store: Has sessions, campaigns, batteries and layouts.
            operations: Has what takes long.
        """
        self._store = store
        self._operations = operations

    async def whose(self, item: str) -> str:
        """Return the owner of what has this resource name; empty where nobody has it."""
        kind, _, name = item.partition("/")
        if kind != "operations":
            return await asyncio.to_thread(self._store.owners.of, item)
        try:
            return self._operations.get(names.check_component(name)).owner
        except ServiceError:
            return ""

    async def there(self, item: str) -> bool:
        """Return whether there is something of this resource name in the store."""
        return await asyncio.to_thread(self._store.owners.there, item)


def whose_filter(request: Any) -> WhoseFilter:
    """Return whose things the present caller wants listed, of those that it may see.

    Args:
        request: Has a field `whose`, or none.
    """
    caller = present.get()
    asked: Any = getattr(request, "whose", None)
    everything = caller.role in (Role.OPERATOR, Role.ADMINISTRATOR)
    return WhoseFilter(
        owner=asked.owner if asked is not None else "",
        mine=caller.subject if asked is not None and asked.mine else "",
        seen_by=None if everything else caller.subject,
    )
