"""Guards every request: from which host, from which page, with which form, and what answers carry.

It stands before all routes, so that no route can forget it. Other names for this machine are
refused (DNS rebinding), and what another site's page sends (forged forms, foreign sockets). Every
POST needs what its own page was given. Answers forbid framing, and load nothing from elsewhere.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from typing import Any, Final, Protocol
from urllib.parse import parse_qsl, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from animalcat.networks import Network, is_loopback, within
from animalcat.service.web.visits import Visits

MOST_BODY: Final = 256 * 1024
"""Most bytes of what a page may send at once."""
FORM_FIELD: Final = "forgery"
"""Field of a form that proves that it came with a page of ours."""
FORM_HEADER: Final = "x-animalcat-forgery"
"""The same for what is sent by scripts."""
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
        proxies: Networks of proxies whose headers are believed (X-Forwarded-For, -Proto, -Host,
            -Prefix).
    """

    hosts: frozenset[str]
    url: str = ""
    secure: bool = False
    proxies: tuple[Network, ...] = ()

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
        forgery: What forms and scripts of the page have to send with a POST.
        form: The fields of the form that was sent; none where it was another kind of body.
    """

    prefix: str
    origin: str
    peer: str
    nonce: str
    forgery: str
    form: dict[str, str]

    @property
    def secure(self) -> bool:
        """Whether the browser speaks TLS."""
        return self.origin.startswith("https:")


class Guarded(Protocol):
    """What is guarded; `Site` is one."""

    @property
    def visits(self) -> Visits:
        """Signs what forms have to send."""
        ...

    @property
    def door(self) -> Door:
        """By which addresses browsers come."""
        ...


class Guard:
    """The ASGI middleware before all routes."""

    def __init__(self, app: ASGIApp, site: Guarded) -> None:
        """Guard an application."""
        self._app = app
        self._site = site

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, if it may be."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        prefix, origin, peer = self._place(scope, headers)
        problem = self._stranger(scope, headers, origin)
        body: bytes | None = b""
        if not problem and scope["type"] == "http" and scope["method"] not in _SAFE:
            read = await _body(receive)
            if read is None:
                status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
                await self._refuse(scope, receive, send, f"at most {MOST_BODY} bytes", status)
                return
            body = read
        cookies = cookies_of(headers)
        name = self.cookie("page")
        nonce = cookies.get(name, "")
        known = len(nonce) == 32
        nonce = nonce if known else secrets.token_hex(16)
        asked = Asked(prefix, origin, peer, nonce, self._site.visits.digest("form", nonce), {})
        if body and headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
            asked.form = dict(parse_qsl(body.decode(errors="replace"), max_num_fields=200))
        if not problem and scope["type"] == "http" and scope["method"] not in _SAFE:
            shown = headers.get(FORM_HEADER, "") or asked.form.get(FORM_FIELD, "")
            if not known or not hmac.compare_digest(
                shown.encode(errors="replace"), asked.forgery.encode()
            ):
                problem = "this form is not from a page of this server: reload the page, try again"
        if problem:
            await self._refuse(scope, receive, send, problem)
            return
        scope.setdefault("state", {})["asked"] = asked
        scope["root_path"] = prefix

        async def again() -> Message:
            nonlocal body
            if body is not None:
                told, body = body, None
                return {"type": "http.request", "body": told, "more_body": False}
            return await receive()

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                answer = MutableHeaders(scope=message)
                for key, value in _HEADERS.items():
                    answer.setdefault(key, value)
                if not known and answer.get("content-type", "").startswith("text/html"):
                    answer.append("set-cookie", self.set_cookie(asked, "page", nonce))
            await send(message)

        reads = scope["type"] == "http" and scope["method"] not in _SAFE
        await self._app(scope, again if reads else receive, sent)

    def cookie(self, what: str) -> str:
        """Return the name of one of our cookies; other servers of the machine have others."""
        return f"animalcat-{what}-{self._site.visits.mark}"

    def set_cookie(self, asked: Asked, what: str, value: str, seconds: float | None = None) -> str:
        """Return the header that gives a browser a cookie; no script and no other site gets it."""
        ends = "" if seconds is None else f"; Max-Age={int(seconds)}"
        secure = "; Secure" if asked.secure else ""
        path = f"{asked.prefix}/"
        return f"{self.cookie(what)}={value}; Path={path}; HttpOnly; SameSite=Lax{secure}{ends}"

    def _place(self, scope: Scope, headers: Headers) -> tuple[str, str, str]:
        """Return the pages' path and origin, and whoever asks, as trusted proxies tell of them."""
        door = self._site.door
        peer = (scope.get("client") or ("", 0))[0]
        host, secure, prefix = headers.get("host", ""), door.secure, door.prefix
        if within(peer, door.proxies):
            peer = headers.get("x-forwarded-for", peer).rpartition(",")[2].strip()
            host = headers.get("x-forwarded-host", host)
            secure = headers.get("x-forwarded-proto", "https" if secure else "http") == "https"
            said = headers.get("x-forwarded-prefix", prefix).rstrip("/")
            prefix = said if _is_path(said) else prefix
        if door.url:
            given = urlsplit(door.url)
            return prefix, f"{given.scheme}://{given.netloc}", peer
        return prefix, f"{'https' if secure else 'http'}://{host}", peer

    def _stranger(self, scope: Scope, headers: Headers, origin: str) -> str:
        """Return why a request comes from elsewhere; empty if it does not."""
        hosts, origins = headers.getlist("host"), headers.getlist("origin")
        # Of two, whatever stands between might have looked at the other one.
        if len(hosts) != 1 or len(origins) > 1:
            return "a header came twice"
        allowed = self._site.door.hosts | {urlsplit(self._site.door.url).netloc}
        if not {hosts[0], urlsplit(origin).netloc} <= allowed:
            return (
                f"this server is not known as {hosts[0][:100]!r}; open the address that it "
                "printed, or start it with --name or --web-url"
            )
        unsafe = scope["type"] == "websocket" or scope["method"] not in _SAFE
        if origins and origins[0] != origin:
            return "only pages of this server may send requests here"
        return "only pages may send this" if unsafe and not origins else ""

    async def _refuse(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        words: str,
        status: HTTPStatus = HTTPStatus.FORBIDDEN,
    ) -> None:
        if scope["type"] == "websocket":  # before it is accepted, this is an answer 403
            await receive()
            await send({"type": "websocket.close", "code": 1008})
            return
        answer = PlainTextResponse(words + "\n", status, dict(_HEADERS))
        await answer(scope, receive, send)


def cookies_of(headers: Headers) -> dict[str, str]:
    """Return the cookies of a request; none if they are not to be read."""
    try:
        read = SimpleCookie(headers.get("cookie", ""))
    except CookieError:
        return {}
    return {name: morsel.value for name, morsel in read.items()}


async def _body(receive: Receive) -> bytes | None:
    """Read what a page sends; None if it is too much."""
    body = bytearray()
    while True:
        message: Any = await receive()
        if message["type"] != "http.request":
            return bytes(body)
        body += message.get("body", b"")
        if len(body) > MOST_BODY:
            return None
        if not message.get("more_body", False):
            return bytes(body)


def _is_path(text: str) -> bool:
    plain = text.replace("/", "").replace("-", "").replace("_", "").replace(".", "")
    return not text or (text.startswith("/") and "//" not in text and plain.isalnum())


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
