"""Serves calls on layouts: list and get them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import cache
from typing import Any

from animalcat import names
from animalcat.layouts.library import LAYOUTS, load_layout, text_of, variants
from animalcat.service.access.belongings import wanted
from animalcat.service.errors import Code, unknown
from animalcat.service.model import LayoutRecord
from animalcat.service.rpc.paging import paged
from animalcat.service.storage.owners import groups_in
from animalcat.service.storage.sql import SqlStore
from animalcat.v1 import layouts_pb2, layouts_pb2_grpc


class Layouts(layouts_pb2_grpc.LayoutsServicer):
    """Servicer of measurement layouts, both those shipped and those that the store keeps."""

    def __init__(self, store: SqlStore) -> None:
        self._store = store

    async def ListLayouts(  # noqa: N802
        self, request: layouts_pb2.ListLayoutsRequest, context: Any
    ) -> layouts_pb2.ListLayoutsResponse:
        """List the layouts of this server."""
        known, whose = await self._known(), wanted(request)
        seen = [one for one in known if whose.takes(one.owner, one.circles, common=True)]
        page = paged(seen, lambda layout: layout.digest, request)
        return layouts_pb2.ListLayoutsResponse(
            layouts=map(_to_proto, page), next_page_token=page.next
        )

    async def GetLayout(  # noqa: N802
        self, request: layouts_pb2.GetLayoutRequest, context: Any
    ) -> layouts_pb2.GetLayoutResponse:
        """Return one layout with its text."""
        wanted = names.parse_layout(request.name)
        known = await self._known()
        for layout in known:
            named = _is_shipped(layout) and layout.name == wanted
            if layout.digest == wanted or (named and request.variant in (layout.variant, "")):
                message = _to_proto(layout)
                message.text = layout.text
                return layouts_pb2.GetLayoutResponse(layout=message)
        raise unknown(
            Code.UNKNOWN_LAYOUT,
            "layout",
            f"{wanted} {request.variant}".strip(),
            [f"{layout.name} {layout.variant}".strip() for layout in known],
        )

    async def _known(self) -> list[LayoutRecord]:
        """Return the shipped layouts in the library's order, then those that only the store has."""
        first = await asyncio.to_thread(shipped)
        digests = {layout.digest for layout in first}
        stored = await asyncio.to_thread(self._store.layouts)
        return [*first, *(layout for layout in stored if layout.digest not in digests)]


@cache
def shipped() -> tuple[LayoutRecord, ...]:
    """Return every variant of the shipped layouts; the default variant of each comes first."""
    return tuple(_shipped())


def _shipped() -> Iterator[LayoutRecord]:
    for name in LAYOUTS:
        for variant in variants(name):
            yield LayoutRecord(load_layout(name, variant).identity, name, variant, text_of(name))


def _is_shipped(layout: LayoutRecord) -> bool:
    return layout in shipped()


def _to_proto(layout: LayoutRecord) -> layouts_pb2.Layout:
    return layouts_pb2.Layout(
        name=names.layout_name(layout.digest),
        title=layout.name,
        variant=layout.variant,
        digest=layout.digest,
        shipped=_is_shipped(layout),
        owner=layout.owner,
        groups=groups_in(layout.circles),
    )
