"""The servicer of layouts: list, get."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from animalcat import names
from animalcat.layouts.library import LAYOUTS, load_layout, text_of, variants
from animalcat.service.errors import Code, unknown
from animalcat.service.paging import paged
from animalcat.v1 import layouts_pb2, layouts_pb2_grpc


class Known(NamedTuple):
    """A layout that the server has.

    Attributes:
        title: What it calls itself.
        variant: Its variant; the default one where empty.
        digest: Of its model.
        shipped: It came with the server.
    """

    title: str
    variant: str
    digest: str
    shipped: bool


class Layouts(layouts_pb2_grpc.LayoutsServicer):
    """Measurement layouts."""

    async def ListLayouts(  # noqa: N802
        self, request: layouts_pb2.ListLayoutsRequest, context: Any
    ) -> layouts_pb2.ListLayoutsResponse:
        """The layouts of this server."""
        page = paged(await asyncio.to_thread(shipped), lambda layout: layout.digest, request)
        return layouts_pb2.ListLayoutsResponse(
            layouts=map(_to_proto, page.items), next_page_token=page.next_token
        )

    async def GetLayout(  # noqa: N802
        self, request: layouts_pb2.GetLayoutRequest, context: Any
    ) -> layouts_pb2.GetLayoutResponse:
        """One layout with its text."""
        wanted = names.parse_layout(request.name)
        known = await asyncio.to_thread(shipped)
        for layout in known:
            named = layout.title == wanted and request.variant in (layout.variant, "")
            if layout.digest == wanted or named:
                message = _to_proto(layout)
                message.text = await asyncio.to_thread(text_of, layout.title)
                return layouts_pb2.GetLayoutResponse(layout=message)
        raise unknown(
            Code.UNKNOWN_LAYOUT,
            "layout",
            f"{wanted} {request.variant}".strip(),
            [f"{layout.title} {layout.variant}".strip() for layout in known],
        )


@cache
def shipped() -> tuple[Known, ...]:
    """The shipped layouts, each variant, the default one first."""
    return tuple(_shipped())


def _shipped() -> Iterator[Known]:
    for title in LAYOUTS:
        for variant in variants(title):
            yield Known(title, variant, load_layout(title, variant).digest, shipped=True)


def _to_proto(layout: Known) -> layouts_pb2.Layout:
    return layouts_pb2.Layout(
        name=names.layout_name(layout.digest),
        title=layout.title,
        variant=layout.variant,
        digest=layout.digest,
        shipped=layout.shipped,
    )
