"""Serves the page on which a person plays or watches, on this machine and to that page only."""

from __future__ import annotations

import hmac
import json
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any, Final, NamedTuple, Protocol

from animalcat.arena_configs.model import ArenaError
from animalcat.envs.types import ACTIONS
from animalcat.service.person.game import ACTIONS_PER_SECOND, Game, View

HOST: Final = "127.0.0.1"
TOKEN_HEADER: Final = "X-Animalcat-Token"
STATE_HEADER: Final = "X-Animalcat-State"
MAX_BODY: Final = 1000
"""Most bytes of a request; those of the page have about 40."""
IDLE_SECONDS: Final = 30.0
"""Seconds of silence after which a connection is closed."""

# The page is a single file that loads nothing from elsewhere; no other page may frame it.
_POLICY: Final = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


class WebReply(NamedTuple):
    """What a call is answered.

    Attributes:
        status: Whether it was done; CONFLICT where it refers to another moment.
        state: What the page shows beside the picture, as JSON has it.
        pixels: The pictures' bytes; `state` says their sizes.
    """

    status: HTTPStatus
    state: Mapping[str, Any]
    pixels: bytes


class Show(Protocol):
    """What a page shows; all of it runs on one thread."""

    def answer(self, name: str, body: Mapping[str, Any]) -> WebReply:
        """Do what a request asks for; if it refers to another moment, change nothing.

        Args:
            name: Name of the call.
            body: Its arguments.

        Raises:
            ValueError: There is no such call, or an argument is wrong.
            ArenaError: The arena cannot be built.
            OSError: A recording cannot be written.
        """
        ...

    def close(self) -> None:
        """End it."""
        ...


class PageServer:
    """The page and its calls.

    Another page in the same browser cannot play, because of three checks. The calls need a token
    that only the address printed at the start contains, behind the # so that it is sent nowhere
    else. They need a custom header, which a foreign page may not send. Their `Host` must be this
    server's own, which excludes foreign names that resolve to this machine.
    """

    def __init__(self, show: Callable[[], Show], token: str, port: int = 0) -> None:
        """Bind to the port and start the show.

        Args:
            show: Makes what is shown; all of it runs on one thread.
            token: A secret with at least 128 random bits.
            port: Port of 127.0.0.1; 0 for any free one.

        Raises:
            OSError: The port is taken.
            ArenaError: The arena cannot be built.
        """
        self._token = token
        self._thread = ThreadPoolExecutor(1)
        self._server = _Server((HOST, port), self)
        self.port = self._server.server_port
        try:
            self._show = self._thread.submit(show).result()
        except BaseException:
            self._server.server_close()
            self._thread.shutdown()
            raise

    @property
    def url(self) -> str:
        """Address for the person; it contains the token, so it must stay on this machine."""
        return f"http://{HOST}:{self.port}/#{self._token}"

    def serve(self) -> None:
        """Answer requests until another thread calls `stop` or the caller is interrupted."""
        self._server.serve_forever(poll_interval=0.1)

    def stop(self) -> None:
        """Make `serve` return."""
        self._server.shutdown()

    def close(self) -> None:
        """Free the port and close the show; an episode that still runs is recorded as void."""
        self._server.server_close()
        self._thread.submit(self._show.close).result()
        self._thread.shutdown()

    def admits(self, host: str, origin: str | None) -> bool:
        """Return whether a request comes from this server's own page, judging by its headers."""
        names = {f"{name}:{self.port}" for name in (HOST, "localhost")}
        return host in names and (origin is None or origin in {f"http://{n}" for n in names})

    def knows(self, token: str) -> bool:
        """Return whether this is the token."""
        return hmac.compare_digest(token.encode(), self._token.encode())

    def call(self, name: str, body: dict[str, Any]) -> WebReply:
        """Do what a request asks for; see `Show.answer`."""
        return self._thread.submit(self._show.answer, name, body).result()


class WebGame:
    """A game on the page: the calls are state, step and restart."""

    def __init__(self, game: Game) -> None:
        """Show a game."""
        self._game = game

    def close(self) -> None:
        """End the game; an episode that still runs is recorded as void."""
        self._game.close()

    def answer(self, name: str, body: Mapping[str, Any]) -> WebReply:
        """See `Show.answer`."""
        game = self._game
        if name == "state":
            return self._seen(HTTPStatus.OK, game.view)
        if name not in ("step", "restart"):
            raise ValueError(f"there is no call {name!r}; the calls are state, step, restart")
        fields = ("episode", "step", "action") if name == "step" else ("episode",)
        values = {field: whole_number(body, field) for field in fields}
        # With two tabs, or a request that arrives twice, only the first one counts.
        if values["episode"] != game.view.episode or values.get("step") not in (
            None,
            game.view.step,
        ):
            return self._seen(HTTPStatus.CONFLICT, game.view)
        if name == "restart":
            return self._seen(HTTPStatus.OK, game.restart())
        action = values["action"]
        if not 0 <= action < ACTIONS:
            raise ValueError(f"action is {action}; give 0 to {ACTIONS - 1}")
        return self._seen(HTTPStatus.OK, game.act(action))

    def _seen(self, status: HTTPStatus, view: View) -> WebReply:
        state = {
            "mode": "play",
            "title": self._game.title,
            "episode": view.episode,
            "step": view.step,
            "health": view.health,
            "reward": view.reward,
            "return": view.episode_return,
            "seconds_left": view.seconds_left,
            "speed": view.speed,
            "ended_by": view.ended_by.name.lower() if view.ended_by else None,
            "passed": view.passed,
            "resolution": view.camera.shape[0],
            "actions_per_second": ACTIONS_PER_SECOND,
        }
        return WebReply(status, state, view.camera.tobytes())


def whole_number(body: Mapping[str, Any], field: str) -> int:
    """An argument of a call.

    Raises:
        ValueError: It is no whole number.
    """
    value = body.get(field)
    if type(value) is not int:
        raise ValueError(f"{field} is {value!r}; give a whole number")
    return value


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 16

    def __init__(self, address: tuple[str, int], page: PageServer) -> None:
        self.page = page
        super().__init__(address, _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a browser that goes away before it has its answer."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "animalcat"
    sys_version = ""
    timeout = IDLE_SECONDS
    # An answer is written in two parts; waiting to join them would cost 40 ms per frame.
    disable_nagle_algorithm = True
    server: _Server  # pyright: ignore[reportIncompatibleVariableOverride]  it is always this one

    def do_GET(self) -> None:
        if not self._admitted():
            return
        if self.path != "/":
            self._refuse(HTTPStatus.NOT_FOUND, "the only page is /")
            return
        page = files("animalcat.service.person").joinpath("page.html").read_bytes()
        self._answer(HTTPStatus.OK, page, "text/html; charset=utf-8")

    def do_POST(self) -> None:
        if not self._admitted():
            return
        if not self.server.page.knows(self.headers.get(TOKEN_HEADER, "")):
            self._refuse(HTTPStatus.FORBIDDEN, "open the whole address that animalcat printed")
            return
        try:
            done = self.server.page.call(self.path.lstrip("/"), self._body())
        except (ArenaError, OSError) as error:
            self._refuse(HTTPStatus.INTERNAL_SERVER_ERROR, str(error))
        except ValueError as error:
            self._refuse(HTTPStatus.BAD_REQUEST, str(error))
        else:
            state = {STATE_HEADER: json.dumps(done.state)}  # in ASCII
            self._answer(done.status, done.pixels, "application/octet-stream", state)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing, because the terminal belongs to the person."""

    def _admitted(self) -> bool:
        hosts = self.headers.get_all("Host", [])
        origins = self.headers.get_all("Origin", [None])
        # Of two, whatever stands between might have looked at the other one.
        once = len(hosts) == len(origins) == 1
        if once and self.server.page.admits(hosts[0], origins[0]):
            return True
        self._refuse(HTTPStatus.FORBIDDEN, "only the page of this server may send requests here")
        return False

    def _body(self) -> dict[str, Any]:
        """Return the request's JSON object.

        Raises:
            ValueError: The body is not a JSON object, or is too long.
        """
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit()) or int(length) > MAX_BODY:
            raise ValueError(f"the body's length is {length!r}; give at most {MAX_BODY} bytes")
        try:
            body = json.loads(self.rfile.read(int(length)))
        except (RecursionError, ValueError):
            body = None
        if not isinstance(body, dict):
            raise ValueError("the body is not a JSON object")
        return body  # pyright: ignore[reportUnknownVariableType]  keys of JSON are strings

    def _refuse(self, status: HTTPStatus, message: str) -> None:
        self.close_connection = True  # the request's body has not been read
        self._answer(status, message.encode(), "text/plain; charset=utf-8")

    def _answer(
        self, status: HTTPStatus, body: bytes, kind: str, headers: dict[str, str] | None = None
    ) -> None:
        self.send_response(status)
        for name, value in {
            "Content-Type": kind,
            "Content-Length": str(len(body)),
            "Cache-Control": "no-store",
            "Content-Security-Policy": _POLICY,
            "Cross-Origin-Resource-Policy": "same-origin",
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
            **({"Connection": "close"} if self.close_connection else {}),
            **(headers or {}),
        }.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
