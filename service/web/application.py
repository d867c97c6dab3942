"""Puts the parts together: the application that a server, or a command, shows to browsers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from http import HTTPStatus
from typing import Any, Final, TypeAlias

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from animalcat.errors import AnimalcatError
from animalcat.service.errors import ServiceError
from animalcat.service.web.guard import Guard
from animalcat.service.web.site import HERE, VISIT, Part, SignInNeeded, Site, quoted, status_of
from animalcat.service.web.visits import ENTER, VISIT_SECONDS

MakePart: TypeAlias = Callable[[Site], Part]
"""Makes a part of the pages; see `site.Part`."""
_LONGEST: Final = 4096
"""Most letters of a ticket or a token."""


def create_app(site: Site, parts: Sequence[MakePart]) -> Guard:
    """Return the application.

    Args:
        site: What its parts share.
        parts: Make the parts, in the order of the bar.
    """
    routes: list[BaseRoute] = []
    for make in parts:
        part = make(site)
        site.add(part)
        routes += part.routes
        if part.static is not None:
            name, folder = part.static
            routes.insert(0, Mount(f"/static/{name}", StaticFiles(directory=folder)))
    routes += [
        Route(ENTER, _Entrance(site).show),
        Route(ENTER, _Entrance(site).enter, methods=["POST"]),
        Route("/leave", _Entrance(site).leave, methods=["POST"]),
        Mount("/static", StaticFiles(directory=HERE / "static")),
    ]
    told = _Told(site)
    handlers: dict[Any, Callable[[Request, Exception], Awaitable[Response]]] = {
        SignInNeeded: told.sign_in,
        AnimalcatError: told.refused,
        ServiceError: told.refused,
        HTTPException: told.failed,
        Exception: told.broken,
    }
    app = Starlette(routes=routes, exception_handlers=handlers)  # pyright: ignore[reportArgumentType]
    return Guard(app, site)  # around all of it, so that errors too have its headers


class _Entrance:
    """Lets browsers in that show a ticket, or a token."""

    def __init__(self, site: Site) -> None:
        self._site = site

    async def show(self, request: Request) -> Response:
        """Show where to enter; the ticket stands behind the # of a link, which is sent nowhere."""
        return self._page(request, request.query_params.get("then", "/"), "")

    async def enter(self, request: Request) -> Response:
        """Exchange a ticket or a token for a cookie."""
        site, form = self._site, self._site.asked(request).form
        shown, then = form.get("ticket", "").strip()[:_LONGEST], form.get("then", "/")
        caller = site.visits.redeem(shown)
        if caller is None and site.served is not None and shown:
            try:
                caller = await site.served.gate.recognise(shown, open_to_machine=False)
            except ServiceError:
                caller = None
            if caller is not None and (caller.until is not None or not caller.role.reads):
                caller = None  # tickets of agents, and agents' tokens, are for playing alone
        if caller is None:
            words = (
                "This ticket or token is not good: a ticket lets one browser in, once and within a "
                "quarter of an hour. Ask for another one."
            )
            return self._page(request, then, words, HTTPStatus.FORBIDDEN)
        answer = site.go(request, then if _is_ours(then) else "/")
        asked = site.asked(request)
        value = site.visits.cookie(caller)
        guard = Guard(answer, site)
        answer.headers.append("set-cookie", guard.set_cookie(asked, VISIT, value, VISIT_SECONDS))
        return answer

    async def leave(self, request: Request) -> Response:
        """Forget who looks."""
        answer, asked = self._site.go(request, ENTER), self._site.asked(request)
        guard = Guard(answer, self._site)
        answer.headers.append("set-cookie", guard.set_cookie(asked, VISIT, "", 0))
        return answer

    def _page(
        self, request: Request, then: str, words: str, status: int = HTTPStatus.OK
    ) -> Response:
        then = then if _is_ours(then) else "/"
        return self._site.page(request, "enter.html.j2", status, then=then, words=words)


class _Told:
    """Answers of requests that fail: a page, or JSON for scripts."""

    def __init__(self, site: Site) -> None:
        self._site = site

    async def sign_in(self, request: Request, error: Exception) -> Response:
        """Lead to where one enters, and back afterwards."""
        if request.method != "GET" or not _wants_page(request):
            return self._answer(request, HTTPStatus.UNAUTHORIZED, "sign in first")
        prefix = self._site.asked(request).prefix
        here = request.url.path.removeprefix(prefix)
        here += f"?{request.url.query}" if request.url.query else ""
        return self._site.go(request, f"{ENTER}?then={quoted(here)}")

    async def refused(self, request: Request, error: Exception) -> Response:
        """Say what the server says."""
        told = error
        if isinstance(error, ServiceError):
            told = AnimalcatError(
                error.message, error.code.value, retry_seconds=error.retry_seconds
            )
        assert isinstance(told, AnimalcatError)
        return self._answer(request, status_of(told), str(told))

    async def failed(self, request: Request, error: Exception) -> Response:
        """Say what is wrong with the request."""
        assert isinstance(error, HTTPException)
        words = error.detail
        if error.status_code == HTTPStatus.NOT_FOUND and words == "Not Found":
            words = "there is no such page"
        return self._answer(request, error.status_code, words)

    async def broken(self, request: Request, error: Exception) -> Response:
        """Say that it is our fault, and nothing else."""
        words = "the server failed, and its log says how"
        return self._answer(request, HTTPStatus.INTERNAL_SERVER_ERROR, words)

    def _answer(self, request: Request, status: int, words: str) -> Response:
        if _wants_page(request):
            return self._site.page(request, "error.html.j2", status, status=status, words=words)
        return JSONResponse({"error": words}, status)


def _wants_page(request: Request) -> bool:
    return "text/html" in request.headers.get("accept", "")


def _is_ours(path: str) -> bool:
    """Whether it is the path of a page of ours, and of no other host."""
    plain = path.startswith("/") and not path.startswith("//") and "\\" not in path
    return plain and path.isprintable()
