"""The pages on which sessions are watched and steered."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from animalcat.service.web.site import Part, Site


def watching(site: Site) -> Part:
    """Return the part that shows sessions."""

    async def sessions(request: Request) -> Response:
        found = await site.client(request).list_sessions()
        return site.page(request, "sessions.html.j2", sessions=found)

    return Part([Route("/", sessions)], bar={"/": "Sessions"})
