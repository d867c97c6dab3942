"""Serves the page on which a person plays: on this machine only, to that page only."""

from __future__ import annotations

import hmac
import json
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any, Final

from animalcat.arena_configs.model import ArenaError
from animalcat.envs.types import ACTIONS
from animalcat.service.person.game import ACTIONS_PER_SECOND, Game, View

HOST: Final = "127.0.0.1"
TOKEN_HEADER: Final = "X-Animalcat-Token"
STATE_HEADER: Final = "X-Animalcat-State"
MAX_BODY: Final = 1000
"""Bytes; what the page sends has some 40."""
IDLE_SECONDS: Final = 30.0
"""A connection on which nothing comes for so long is closed."""

# The page is one file without anything from elsewhere; nobody may frame it.
_POLICY: Final = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


class PageServer:
    """The page and its three calls: state, step, restart.

    Another page in the same browser cannot play: the calls need a token that only the address
    printed at the start holds (behind the #, so that it travels nowhere else), a custom header,
    which a foreign page may not send, and a `Host` that is this server's own, which no name
    resolved to this machine gives.
    """

    def __init__(self, game: Callable[[], Game], title: str, token: str, port: int = 0) -> None:
        """Bind, and start the game.

        Args:
            game: Makes the game; all of it runs on one thread.
            title: Shown on the page.
            token: A secret, at least 128 bits of chance.
            port: Port of 127.0.0.1; 0 is any free one.

        Raises:
            OSError: The port is taken.
            ArenaError: The arena cannot be built.
        """
        self._token, self.title = token, title
        self._thread = ThreadPoolExecutor(1)
        self._server = _Server((HOST, port), self)
        self.port = self._server.server_port
        try:
            self._game = self._thread.submit(game).result()
        except BaseException:
            self._server.server_close()
            self._thread.shutdown()
            raise

    @property
    def url(self) -> str:
        """Where the person goes; it holds the token, so keep it to this machine."""
        return f"http://{HOST}:{self.port}/#{self._token}"

    def serve(self) -> None:
        """Answer until `stop` is called from another thread, or the caller is interrupted."""
        self._server.serve_forever(poll_interval=0.1)

    def stop(self) -> None:
        """Make `serve` return."""
        self._server.shutdown()

    def close(self) -> None:
        """Free the port and close the game; an episode that still runs is recorded as void."""
        self._server.server_close()
        self._thread.submit(self._game.close).result()
        self._thread.shutdown()

    def admits(self, host: str, origin: str | None) -> bool:
        """Whether a request comes from this machine's own page, by its headers."""
        names = {f"{name}:{self.port}" for name in (HOST, "localhost")}
        return host in names and (origin is None or origin in {f"http://{n}" for n in names})

    def knows(self, token: str) -> bool:
        """Whether this is the token."""
        return hmac.compare_digest(token.encode(), self._token.encode())

    def call(self, name: str, body: dict[str, Any]) -> tuple[HTTPStatus, View]:
        """Do what a request asks for; one for another moment changes nothing (CONFLICT).

        Raises:
            ValueError: It asks for no such thing.
        """
        return self._thread.submit(self._call, name, body).result()

    def _call(self, name: str, body: dict[str, Any]) -> tuple[HTTPStatus, View]:
        game = self._game
        if name == "state":
            return HTTPStatus.OK, game.view
        if name not in ("step", "restart"):
            raise ValueError(f"there is no call {name!r}; there are: state, step, restart")
        fields = ("episode", "step", "action") if name == "step" else ("episode",)
        values = {field: body.get(field) for field in fields}
        for field, value in values.items():
            if type(value) is not int:
                raise ValueError(f"{field} is {value!r} where a whole number is due")
        # Two tabs, or a request that came twice: the first one counts.
        if values["episode"] != game.view.episode or values.get("step") not in (
            None,
            game.view.step,
        ):
            return HTTPStatus.CONFLICT, game.view
        if name == "restart":
            return HTTPStatus.OK, game.restart()
        action = values["action"]
        if action is None or not 0 <= action < ACTIONS:
            raise ValueError(f"action is {action} where 0 to {ACTIONS - 1} is due")
        return HTTPStatus.OK, game.act(action)

    def state(self, view: View) -> str:
        """A view without its picture, as JSON in ASCII."""
        return json.dumps(
            {
                "title": self.title,
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
        )


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 16

    def __init__(self, address: tuple[str, int], page: PageServer) -> None:
        self.page = page
        super().__init__(address, _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that goes away in mid-answer is no error."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "animalcat"
    sys_version = ""
    timeout = IDLE_SECONDS
    # An answer is written in two parts; waiting to join them would cost 40 ms a frame.
    disable_nagle_algorithm = True
    server: _Server  # pyright: ignore[reportIncompatibleVariableOverride]  it is always this one

    def do_GET(self) -> None:
        if not self._admitted():
            return
        if self.path != "/":
            self._refuse(HTTPStatus.NOT_FOUND, "there is only /")
            return
        page = files("animalcat.service.person").joinpath("page.html").read_bytes()
        self._answer(HTTPStatus.OK, page, "text/html; charset=utf-8")

    def do_POST(self) -> None:
        if not self._admitted():
            return
        if not self.server.page.knows(self.headers.get(TOKEN_HEADER, "")):
            self._refuse(HTTPStatus.FORBIDDEN, "open the address that animalcat printed")
            return
        try:
            status, view = self.server.page.call(self.path.lstrip("/"), self._body())
        except (ArenaError, OSError) as error:
            self._refuse(HTTPStatus.INTERNAL_SERVER_ERROR, str(error))
        except ValueError as error:
            self._refuse(HTTPStatus.BAD_REQUEST, str(error))
        else:
            state = {STATE_HEADER: self.server.page.state(view)}
            self._answer(status, view.camera.tobytes(), "application/octet-stream", state)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the terminal is the person's."""

    def _admitted(self) -> bool:
        if self.server.page.admits(self.headers.get("Host", ""), self.headers.get("Origin")):
            return True
        self._refuse(HTTPStatus.FORBIDDEN, "this address is not for you")
        return False

    def _body(self) -> dict[str, Any]:
        """The request's JSON object.

        Raises:
            ValueError: It is none, or too long.
        """
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit()) or int(length) > MAX_BODY:
            raise ValueError(f"the body's length is {length!r} where at most {MAX_BODY} is due")
        try:
            body = json.loads(self.rfile.read(int(length)))
        except (RecursionError, ValueError):
            body = None
        if not isinstance(body, dict):
            raise ValueError("the body is no JSON object")
        return body  # pyright: ignore[reportUnknownVariableType]  keys of JSON are strings

    def _refuse(self, status: HTTPStatus, message: str) -> None:
        self.close_connection = True  # what was sent with it has not been read
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
