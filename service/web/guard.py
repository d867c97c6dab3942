"""Guards every request: from which host, from which page, with which form, and what answers carry.

It stands before all routes, so that no route can forget it. Other names for this machine are
refused (DNS rebinding), and what another site's page sends (forged forms, foreign sockets). Every
POST needs what its own page was given. Answers forbid framing, and load nothing from elsewhere.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qsl, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection, Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocketClose

from animalcat.machine.networks import is_loopback
from animalcat.service.web.visits import Visits

FORM_FIELD: Final = "forgery"
"""Field of a form that proves that it came with a page of ours."""
PAGE: Final = "page"
"""The cookie with a browser's own secret."""
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)
"""What a page may load, and who may frame it."""
WHOLE_PAGE: Final = (
    "sandbox allow-scripts allow-popups; default-src 'none'; script-src 'unsafe-inline'; "
    "style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
"""The same for a report that is one file: it may run its own script, as a stranger to all else."""
_HEADERS: Final[Mapping[str, str]] = {
    "cache-control": "no-store",
    "content-security-policy": POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
_SAFE: Final = frozenset({"GET", "HEAD"})


@dataclass(frozen=True, slots=True)
class Door:
    """By which addresses browsers come.

    Attributes:
        hosts: Hosts that pages are asked for under, with port where that is not the usual one.
        url: The public address without a slash at its end; empty where browsers come directly.
        secure: Whether the server speaks TLS itself.
    """

    hosts: frozenset[str]
    url: str = ""
    secure: bool = False

    @property
    def prefix(self) -> str:
        """The path under which a proxy offers the pages; empty for none."""
        return urlsplit(self.url).path.rstrip("/")


@dataclass(slots=True)
class Asked:
    """What the guard knows of a request; `request.state.asked` has it.

    Attributes:
        prefix: The path under which the pages are.
        origin: The origin of the pages, as in "http://127.0.0.1:8080".
        peer: Address of whoever asks.
        nonce: The browser's own secret.
        fresh: Whether that is new, so that the browser has still to be given it.
        forgery: What forms and scripts of the page have to send with a POST.
        form: The fields of the form that was sent; none where it was another kind of body.
    """

    prefix: str
    origin: str
    peer: str
    nonce: str
    fresh: bool
    forgery: str
    form: dict[str, str] = field(default_factory=dict[str, str])


class Guard:
    """The ASGI middleware before all routes."""

    def __init__(self, app: ASGIApp, visits: Visits, door: Door) -> None:
        """Guard an application.

        Args:
            app: Answers what may be answered.
            visits: Who looks.
            door: By which addresses browsers come.
        """
        self._app, self._visits, self._door = app, visits, door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, if it may be."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        request = HTTPConnection(scope)
        scope["root_path"], origin, peer = self._place(request)
        nonce = request.cookies.get(self._visits.cookie_name(PAGE), "")
        fresh = len(nonce) != 32
        nonce = secrets.token_hex(16) if fresh else nonce
        forgery = self._visits.digest("form", nonce)
        asked = Asked(scope["root_path"], origin, peer, nonce, fresh, forgery)
        request.state.asked = asked
        socket = scope["type"] == "websocket"
        sends = not socket and scope["method"] not in _SAFE
        problem = self._stranger(request.headers, origin, unsafe=socket or sends)
        if not problem and sends:
            body = await Request(scope, receive).body()
            problem = _reason_of_forgery(request.headers, asked, body)
        if not problem:
            await self._app(scope, receive, _with_headers(send))
        elif socket:  # before it is accepted, this is an answer 403
            await WebSocketClose(1008)(scope, receive, send)
        else:
            answer = PlainTextResponse(f"{problem}\n", HTTPStatus.FORBIDDEN, dict(_HEADERS))
            await answer(scope, receive, send)

    def _place(self, request: HTTPConnection) -> tuple[str, str, str]:
        """Return the pages' path and origin, and whoever asks."""
        door, peer = self._door, request.client.host if request.client else ""
        if door.url:
            given = urlsplit(door.url)
            return door.prefix, f"{given.scheme}://{given.netloc}", peer
        host = request.headers.get("host", "")
        return "", f"{'https' if door.secure else 'http'}://{host}", peer

    def _stranger(self, headers: Headers, origin: str, *, unsafe: bool) -> str:
        """Return why a request comes from elsewhere; empty if it does not."""
        hosts, origins = headers.getlist("host"), headers.getlist("origin")
        # Of two, whatever stands between might have looked at the other one.
        if len(hosts) != 1 or len(origins) > 1:
            return "a header came twice"
        allowed = self._door.hosts | {urlsplit(self._door.url).netloc}
        if not {hosts[0], urlsplit(origin).netloc} <= allowed:
            return (
                f"this server is not known as {hosts[0][:100]!r}; open the address that it "
                "printed, or start it with --name or ANIMALCAT_WEB_URL"
            )
        if origins and origins[0] != origin:
            return "only pages of this server may send requests here"
        return "only pages may send this" if unsafe and not origins else ""


def _reason_of_forgery(headers: Headers, asked: Asked, body: bytes) -> str:
    """Read the form that was sent, and return why it is not one of ours; empty if it is."""
    if headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
        asked.form = dict(parse_qsl(body.decode(errors="replace")))
    shown = asked.form.get(FORM_FIELD, "").encode(errors="replace")
    if hmac.compare_digest(shown, asked.forgery.encode()) and not asked.fresh:
        return ""
    return "this form is not from a page of this server: reload the page, try again"


def _with_headers(send: Send) -> Send:
    async def send_on(message: Message) -> None:
        if message["type"] == "http.response.start":
            answer = MutableHeaders(scope=message)
            for key, value in _HEADERS.items():
                answer.setdefault(key, value)
        await send(message)

    return send_on


def own_hosts(host: str, port: int, names: tuple[str, ...] = ()) -> frozenset[str]:
    """Return the hosts of a server that listens at an address.

    Args:
        host: The address.
        port: The port.
        names: Other names of the machine.
    """
    loopback = ("127.0.0.1", "localhost", "[::1]")
    own = loopback if is_loopback(host) else (f"[{host}]" if ":" in host else host, *loopback)
    names = tuple(f"[{name}]" if ":" in name else name for name in names)
    bare = own + names if port in (80, 443) else ()  # browsers leave these ports out
    return frozenset((*bare, *(f"{name}:{port}" for name in (*own, *names))))
