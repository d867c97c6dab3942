"""Puts the parts together: the application that a server, or a command, shows to browsers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from http import HTTPStatus
from typing import Any, Final, TypeAlias
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from animalcat.errors import AnimalcatError
from animalcat.service.errors import ServiceError
from animalcat.service.web.guard import Guard
from animalcat.service.web.site import HERE, VISIT, Part, SignInNeeded, Site
from animalcat.service.web.visits import ENTER, VISIT_SECONDS
from animalcat.text.names import BadNameError

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
    for make in (*parts, _entrance):
        part = make(site)
        site.add(part)
        routes += part.routes
        if part.home is not None:
            folder = StaticFiles(directory=part.home / "static")
            routes.insert(0, Mount(f"/static/{part.home.name}", folder))
    routes.append(Mount("/static", StaticFiles(directory=HERE / "static")))

    async def answer_failure(request: Request, error: Exception) -> Response:
        """Answer a request that failed: by a page, or by JSON for scripts."""
        page = "text/html" in request.headers.get("accept", "")
        if isinstance(error, SignInNeeded) and page and request.method == "GET":
            here = request.url.path.removeprefix(site.asked(request).prefix)
            here += f"?{request.url.query}" if request.url.query else ""
            return site.go(request, f"{ENTER}?then={quote(here, safe='')}")
        status, words = _status_and_words(error)
        if page:
            return site.page(request, "error.html.j2", status, status=status, words=words)
        return JSONResponse({"error": words}, status)

    kinds = (SignInNeeded, AnimalcatError, ServiceError, HTTPException, BadNameError, Exception)
    handlers: dict[Any, Any] = dict.fromkeys(kinds, answer_failure)
    app = Starlette(routes=routes, exception_handlers=handlers)
    # Around it, so that errors too have its headers.
    return Guard(app, site.visits, site.door)


def _status_and_words(error: Exception) -> tuple[int, str]:
    """Return the status and the words that tell of an error; of our own faults the log tells."""
    match error:
        case SignInNeeded():
            return HTTPStatus.UNAUTHORIZED, "sign in first"
        case HTTPException(status_code=HTTPStatus.NOT_FOUND, detail="Not Found"):
            return error.status_code, "there is no such page"
        case HTTPException():
            return error.status_code, error.detail
        case BadNameError():
            return HTTPStatus.NOT_FOUND, str(error)
        case ServiceError():
            code, wait = error.code.value, error.retry_seconds
            return _status_and_words(AnimalcatError(error.message, code, retry_seconds=wait))
        case AnimalcatError():
            return _status(error), str(error)
        case _:
            return HTTPStatus.INTERNAL_SERVER_ERROR, "the server failed, and its log says how"


def _status(error: AnimalcatError) -> int:
    code = error.code or ""
    if code.startswith("UNKNOWN") or code in ("INVALID_NAME", "NO_PROFILE"):
        return HTTPStatus.NOT_FOUND
    if code in ("FORBIDDEN", "BAD_TOKEN", "NO_TOKEN"):
        return HTTPStatus.FORBIDDEN
    if error.retry_seconds is not None:
        return HTTPStatus.SERVICE_UNAVAILABLE
    return HTTPStatus.INTERNAL_SERVER_ERROR if code == "INTERNAL" else HTTPStatus.BAD_REQUEST


def _entrance(site: Site) -> Part:
    """Return the part that lets browsers in that show a ticket, or a token."""

    async def show(request: Request) -> Response:
        # The ticket stands behind the # of a link, which is sent nowhere.
        return page(request, request.query_params.get("then", "/"), "")

    async def enter(request: Request) -> Response:
        form = site.asked(request).form
        shown, then = form.get("ticket", "").strip()[:_LONGEST], form.get("then", "/")
        caller = site.visits.redeem(shown)
        if caller is None and site.served is not None and shown:
            with suppress(ServiceError):
                caller = await site.served.gate.recognise(shown, open_to_machine=False)
            if caller is not None and (caller.until is not None or not caller.role.reads):
                caller = None  # tickets of agents, and agents' tokens, are for playing alone
        if caller is None:
            words = (
                "This ticket or token is not valid: a ticket lets one browser in, once, within a "
                "quarter of an hour. Ask for another."
            )
            return page(request, then, words, HTTPStatus.FORBIDDEN)
        answer, value = site.go(request, _ours(then)), site.visits.cookie(caller)
        return site.give_cookie(request, answer, VISIT, value, VISIT_SECONDS)

    async def leave(request: Request) -> Response:
        return site.give_cookie(request, site.go(request, ENTER), VISIT, "", 0)

    def page(request: Request, then: str, words: str, status: int = HTTPStatus.OK) -> Response:
        return site.page(request, "enter.html.j2", status, then=_ours(then), words=words)

    routes = (
        Route(ENTER, show),
        Route(ENTER, enter, methods=["POST"]),
        Route("/leave", leave, methods=["POST"]),
    )
    return Part(routes)


def _ours(path: str) -> str:
    """Return the path of a page if it is one of ours, and of no other host; else the first one."""
    plain = path.startswith("/") and not path.startswith("//") and "\\" not in path
    return path if plain and path.isprintable() else "/"
