"""What parts of the application are made of, and what they share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import grpc
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import BaseRoute
from starlette.types import Scope

from animalcat.client.async_client import AsyncClient
from animalcat.service.access.callers import Caller
from animalcat.service.web.guard import FORM_FIELD, PAGE, Asked, Door
from animalcat.service.web.visits import Visits

if TYPE_CHECKING:
    from animalcat.service.access.gate import Gate
    from animalcat.service.host.settings import Settings
    from animalcat.service.own_calls import Calls
    from animalcat.service.session.engines import Engines

HERE: Final = Path(__file__).parent
_FORGED: Final = Markup('<input type="hidden" name="{}" value="{}">')
T = TypeVar("T")
_LOOK_SECONDS: Final = 0.5
VISIT: Final = "visit"
"""The cookie of who was let in."""


@dataclass(frozen=True, slots=True)
class Served:
    """The data directory whose server has the pages.

    Attributes:
        settings: How it is served.
        gate: Says who may do what.
        calls: Answers the calls of this process.
        engines: The engines of its sessions.
    """

    settings: Settings
    gate: Gate
    calls: Calls
    engines: Engines


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the pages.

    Attributes:
        routes: Its routes, for all of which `Guard` stands.
        bar: What it adds to the bar at the top: paths with their words.
        home: A folder NAME with its `templates`, which may extend `base.html.j2` and use its
            blocks, and with files in `static` that are offered under `/static/NAME/`.
        stop: Is called when the server stops, before connections are closed.
    """

    routes: Sequence[BaseRoute]
    bar: Mapping[str, str] = field(default_factory=dict[str, str])
    home: Path | None = None
    stop: Callable[[], None] = lambda: None


class SignInNeeded(Exception):  # noqa: N818  not an error: the browser is led to where it enters
    """Nobody knows who looks."""


class Site:
    """What all parts share.

    Attributes:
        visits: Who looks.
        door: By which addresses browsers come.
        served: The server of the data directory; None where a command shows one page alone.
        bar: What stands in the bar at the top.
        templates: All templates; every value is escaped, and names that nobody gave are errors.
    """

    def __init__(
        self,
        visits: Visits,
        door: Door,
        served: Served | None = None,
    ) -> None:
        """Begin without parts; `create_app` adds them."""
        self.visits = visits
        self.door = door
        self.served = served
        self.bar: dict[str, str] = {}
        self._stops: list[Callable[[], None]] = []
        self._files = FileSystemLoader(HERE / "templates")
        self.templates = Environment(
            loader=self._files,
            autoescape=True,
            trim_blocks=True,
            lstrip_blocks=True,
            undefined=StrictUndefined,
        )

    def add(self, part: Part) -> None:
        """Take the templates and the bar of a part; its routes go into the application."""
        self.bar |= part.bar
        self._stops.append(part.stop)
        if part.home is not None:
            self._files.searchpath.append(str(part.home / "templates"))

    def stop(self) -> None:
        """End what parts keep open, such as streams; calling it twice is fine."""
        while self._stops:
            self._stops.pop()()

    def whose(self, scope: Scope) -> tuple[str | None, int]:
        """Return who looks, None if nobody knows, and the most connections they may have."""
        caller = self.known(HTTPConnection(scope))
        if caller is None or self.served is None:
            return caller and caller.id, 0
        return caller.id, self.served.gate.most_connections(caller)

    def asked(self, request: HTTPConnection) -> Asked:
        """Return what the guard knows of a request."""
        return request.state.asked

    def path(self, request: HTTPConnection, path: str) -> str:
        """Return the path of a page as the browser has to ask for it, behind a proxy too."""
        return f"{self.asked(request).prefix}{path}"

    def go(self, request: HTTPConnection, path: str) -> Response:
        """Lead the browser to another page after a form was done."""
        return RedirectResponse(self.path(request, path), HTTPStatus.SEE_OTHER)

    def page(
        self, request: HTTPConnection, name: str, code: int = HTTPStatus.OK, **values: Any
    ) -> Response:
        """Return a page.

        Templates are given what is passed here, and: `at(path)` for links, `asset(name)` for files
        of `static`, `forged` (the hidden field of every form), `bar`, `here` (the path of the
        page) and `visitor` (the caller, or None).

        Args:
            request: What it answers.
            name: Name of the template.
            code: Status of the answer.
            **values: What the template is given.
        """
        asked = self.asked(request)

        at = partial(self.path, request)

        def asset(name: str) -> str:
            return at(f"/static/{name}")

        shown = self.templates.get_template(name).render(
            at=at,
            asset=asset,
            forged=_FORGED.format(FORM_FIELD, asked.forgery),
            bar=self.bar,
            here=request.url.path.removeprefix(asked.prefix),
            visitor=self.known(request),
            **values,
        )
        answer = HTMLResponse(shown, code)
        if asked.fresh:
            self.give_cookie(request, answer, PAGE, asked.nonce)
        return answer

    def cookie(self, request: HTTPConnection, what: str) -> str:
        """Return one of our cookies that the browser shows; empty for none."""
        return request.cookies.get(self.visits.cookie_name(what), "")

    def give_cookie(
        self,
        request: HTTPConnection,
        answer: Response,
        what: str,
        value: str,
        seconds: float | None = None,
    ) -> Response:
        """Give a browser a cookie, which no script and no other site gets, and return the answer.

        Args:
            request: What is answered.
            answer: The answer that brings it.
            what: Which cookie.
            value: Its value.
            seconds: How long it lasts; None: until the browser ends.
        """
        asked = self.asked(request)
        answer.set_cookie(
            self.visits.cookie_name(what),
            value,
            None if seconds is None else int(seconds),
            path=f"{asked.prefix}/",
            secure=asked.origin.startswith("https:"),
            httponly=True,
        )
        return answer

    def known(self, request: HTTPConnection) -> Caller | None:
        """Return who looks; None if nobody knows."""
        return self.visits.caller(self.cookie(request, VISIT))

    def caller(self, request: HTTPConnection) -> Caller:
        """Return who looks.

        Raises:
            SignInNeeded: Nobody knows.
        """
        caller = self.known(request)
        if caller is None:
            raise SignInNeeded
        return caller

    def client(self, request: HTTPConnection) -> AsyncClient:
        """Return a client of the server with the rights of who looks.

        Its calls go the way of those that come over the wire: the same table says who may do what,
        the same limits hold, and the same audit log tells of them.

        Raises:
            SignInNeeded: Nobody knows who looks.
        """
        return AsyncClient("this server", self.channel(request))

    def channel(self, request: HTTPConnection) -> grpc.aio.Channel:
        """Return what stubs of the server's services take, with the rights of who looks.

        Raises:
            SignInNeeded: Nobody knows who looks.
        """
        assert self.served is not None, "the part asks for a server"
        calls: Any = self.served.calls.of(self.caller(request), self.asked(request).peer)
        return calls

    async def check(self, request: HTTPConnection, method: str, *items: str) -> Caller:
        """Check that who looks may make a call about things; for what no call of the wire shows.

        Args:
            request: Whose request it is.
            method: Full name of the call of the wire that shows as much.
            items: Resource names of the things.

        Raises:
            SignInNeeded: Nobody knows who looks.
            ServiceError: It may not.
        """
        assert self.served is not None, "the part asks for a server"
        caller, gate = self.caller(request), self.served.gate
        rule = gate.admit(method, caller)
        await gate.check(caller, rule.reach[caller.role], *items)
        return caller


def not_found_error(words: str) -> HTTPException:
    """Return the error for what there is not."""
    return HTTPException(HTTPStatus.NOT_FOUND, words)


async def while_asked(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Return what some work gives; it ends when the browser goes.

    Raises:
        HTTPException: The browser has gone.
    """
    task = asyncio.create_task(work)
    try:
        while not (await asyncio.wait({task}, timeout=_LOOK_SECONDS))[0]:
            if await request.is_disconnected():
                raise HTTPException(HTTPStatus.REQUEST_TIMEOUT, "the browser has gone")
        return task.result()
    finally:
        task.cancel()
