"""Sees that calls come by a proxy, so that what seems to come from this machine may not."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final

import grpc

from animalcat.service.access.rules import RULES, Rule
from animalcat.service.errors import KINDS, Code, ServiceError

log = logging.getLogger(__name__)

HEADERS: Final = frozenset({"forwarded", "x-forwarded-for", "x-real-ip", "x-forwarded-host", "via"})
"""Headers that proxies add, and no client of ours sends."""
_NO_TOKEN: Final = (
    "this server has seen calls that a proxy forwards, so it cannot tell who is of its machine, "
    "and asks everybody for a token: set ANIMALCAT_TOKEN. Whoever runs it makes one with: "
    "animalcat token create"
)


class OpenDoor:
    """Whether callers of this machine need no token: so it is until a proxy shows itself.

    Attributes:
        open: Whether they need none.
        proxy: The header by which a proxy has shown itself; empty if none has.
    """

    def __init__(self, is_open: bool) -> None:
        self.open = is_open
        self.proxy = ""

    def look(self, headers: Iterable[str]) -> None:
        """Take in the names of a call's headers, and ask for tokens from then on if one tells."""
        if not self.open or self.proxy:
            return
        self.proxy = next((name for name in headers if name.lower() in HEADERS), "")
        if self.proxy:
            log.warning(
                "a call has the header %s, so a proxy stands before this server, and what comes "
                "from this machine may come from anywhere: everybody needs a token until the "
                "server is started again. Start it with --behind-proxy",
                self.proxy,
            )

    @property
    def warning(self) -> str:
        """What to say of it in the server's status; empty for nothing."""
        return (
            f"a proxy has forwarded calls (header {self.proxy}), and callers of this machine need "
            "tokens since: start the server with --behind-proxy"
            if self.proxy
            else ""
        )


class ForwardedInterceptor(grpc.aio.ServerInterceptor):
    """Refuses who shows nothing where a proxy has shown itself; it stands before the gate."""

    def __init__(self, door: OpenDoor) -> None:
        self._door = door

    async def intercept_service(
        self,
        continuation: Callable[
            [grpc.HandlerCallDetails], Awaitable[grpc.RpcMethodHandler[Any, Any] | None]
        ],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> grpc.RpcMethodHandler[Any, Any] | None:
        """Look at the headers of a call."""
        headers = dict(handler_call_details.invocation_metadata or ())
        self._door.look(str(name) for name in headers)
        public = RULES.get(handler_call_details.method, Rule()).public
        if not self._door.proxy or public or "authorization" in headers:
            return await continuation(handler_call_details)
        handler = await continuation(handler_call_details)
        if handler is None:
            return None
        kind = next(kind for kind in KINDS if getattr(handler, kind) is not None)

        async def refuse(request: Any, context: Any) -> Any:
            raise ServiceError(Code.NO_TOKEN, _NO_TOKEN)

        return KINDS[kind](refuse, bytes, handler.response_serializer)
