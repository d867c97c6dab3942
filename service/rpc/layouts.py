"""Serves calls on layouts: list and get them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import cache
from typing import Any, Final

from animalcat.layouts.library import LAYOUTS, load_layout, text_of, variants
from animalcat.service.access.belongings import whose_filter
from animalcat.service.errors import Code, unknown
from animalcat.service.model import LayoutRecord
from animalcat.service.rpc.paging import stored_page
from animalcat.service.storage.listing import BadPageError, Page
from animalcat.service.storage.sql import SqlStore
from animalcat.text import names
from animalcat.v1 import layouts_pb2, layouts_pb2_grpc

_SHIPPED: Final = "shipped"
"""What the token of a page begins with whose last layout is a shipped one."""


class Layouts(layouts_pb2_grpc.LayoutsServicer):
    """Servicer of measurement layouts, both those shipped and those that the store keeps."""

    def __init__(self, store: SqlStore) -> None:
        self._store = store

    async def ListLayouts(  # noqa: N802
        self, request: layouts_pb2.ListLayoutsRequest, context: Any
    ) -> layouts_pb2.ListLayoutsResponse:
        """List the layouts of this server."""
        first = await asyncio.to_thread(shipped_variants)
        whose, asked = whose_filter(request), stored_page(request)
        # What is shipped belongs to nobody, whatever is stored of it.
        digests = [layout.digest for layout in first]
        first = tuple(one for one in first if whose.takes("", common=True))
        visible = [layout.digest for layout in first]
        shown: list[LayoutRecord] = []
        kind, _, last = asked.after.partition("/")
        if not asked.after or kind == _SHIPPED:
            begin = 0
            if last:
                if last not in visible:
                    raise BadPageError("the page's token is from another version; start again")
                begin = visible.index(last) + 1
            shown = list(first[begin : begin + asked.limit])
            asked = Page(asked.limit - len(shown))
        following = f"{_SHIPPED}/{shown[-1].digest}" if shown else ""
        if asked.limit:
            page = await asyncio.to_thread(self._store.layouts, asked, digests, whose)
            shown, following = [*shown, *page], page.next
        told = [_to_proto(layout, text=request.texts and layout not in first) for layout in shown]
        return layouts_pb2.ListLayoutsResponse(layouts=told, next_page_token=following)

    async def GetLayout(  # noqa: N802
        self, request: layouts_pb2.GetLayoutRequest, context: Any
    ) -> layouts_pb2.GetLayoutResponse:
        """Return one layout with its text."""
        wanted = names.parse_layout(request.name)
        found = await asyncio.to_thread(self._store.layout, wanted)
        for layout in await asyncio.to_thread(shipped_variants):
            named = layout.name == wanted and request.variant in (layout.variant, "")
            if layout.digest == wanted or named:
                found = layout
                break
        if found is not None:
            return layouts_pb2.GetLayoutResponse(layout=_to_proto(found, text=True))
        known = await self._layout_records()
        raise unknown(
            Code.UNKNOWN_LAYOUT,
            "layout",
            f"{wanted} {request.variant}".strip(),
            [f"{layout.name} {layout.variant}".strip() for layout in known],
        )

    async def _layout_records(self) -> list[LayoutRecord]:
        """Return the shipped layouts in the library's order, then those that only the store has."""
        first = await asyncio.to_thread(shipped_variants)
        digests = {layout.digest for layout in first}
        stored = await asyncio.to_thread(self._store.layouts)
        return [*first, *(layout for layout in stored if layout.digest not in digests)]


@cache
def shipped_variants() -> tuple[LayoutRecord, ...]:
    """Return every variant of the shipped layouts; the default variant of each comes first."""
    return tuple(_shipped_records())


def _shipped_records() -> Iterator[LayoutRecord]:
    for name in LAYOUTS:
        for variant in variants(name):
            yield LayoutRecord(load_layout(name, variant).identity, name, variant, text_of(name))


def _is_shipped(layout: LayoutRecord) -> bool:
    return layout in shipped_variants()


def _to_proto(layout: LayoutRecord, *, text: bool) -> layouts_pb2.Layout:
    return layouts_pb2.Layout(
        name=names.layout_name(layout.digest),
        title=layout.name,
        variant=layout.variant,
        digest=layout.digest,
        shipped=_is_shipped(layout),
        text=layout.text if text else "",
        owner=layout.owner,
    )
