"""Answers the calls of its own process: a data directory without a port, a socket or a channel.

The calls go the way of `animalcat.service.own_calls`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from animalcat.layouts.inference.fitter import Fits
from animalcat.service.host.local import LocalAddress
from animalcat.service.host.settings import Settings
from animalcat.service.own_calls import Calls
from animalcat.service.rpc.server import Starter, compose_server, servicers_of


@asynccontextmanager
async def serve_within(
    settings: Settings, fitter: Fits | None = None, starter: Starter | None = None
) -> AsyncGenerator[Calls]:
    """Serve a data directory to callers on the running event loop.

    Leaving the block stores what is open, and lets the directory go.

    Args:
        settings: Which directory, and how it is served.
        fitter: Runs NUTS and stays open afterwards; None for one of its own.
        starter: Starts simulators and stays open afterwards; None for one of its own.

    Yields:
        What clients take in place of a channel.

    Raises:
        DirectoryInUseError: A server uses the directory, or another such block.
        Exception: What else keeps `create_server` from starting.
    """
    async with compose_server(settings, fitter=fitter, starter=starter) as inside:
        local = LocalAddress()
        calls = Calls(inside.limits, inside.gate)
        try:
            for add, servicer in await servicers_of(inside, local):
                add(servicer, calls)
            yield calls
        finally:
            await inside.stop()
            await calls.close()
            local.close()
