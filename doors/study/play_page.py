"""The page on which a person plays arenas, of a command or of a battery of the server."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from animalcat.arena_configs.loader import load_text
from animalcat.doors.study.game import ACTIONS_PER_SECOND, Game, GameShow
from animalcat.doors.study.realtime import Frame, Screen, play, with_screen
from animalcat.service.storage.artefacts import PERSONS
from animalcat.service.web.site import Part, Site, not_found_error
from animalcat.service.web.stage import Show, Stage
from animalcat.text import names

log = logging.getLogger(__name__)

MOST_GAMES: Final = 4
"""Most arenas that people play at a server at once, beside sessions."""
HOME: Final = Path(__file__).parent
RESOLUTION: Final = 256
"""Side of the picture in pixels."""


def person_session(instance: str, now: datetime) -> str:
    """Id of a person's session: the arena's name and the time, to the second."""
    stamp = now.strftime("%Y%m%d-%H%M%S")
    return f"{PERSONS}{names.to_component(instance)[:70]}-{stamp}"


def playing_alone(make: Callable[[], Show], title: str = "play") -> Callable[[Site], Part]:
    """Return what makes the only page of a command: a game."""

    def part(site: Site) -> Part:
        stage = Stage(make)
        latest: list[WebSocket] = []

        async def show(request: Request) -> Response:
            site.caller(request)
            return site.page(request, "play.html.j2", title=title, socket="/play", back="")

        async def connect(socket: WebSocket) -> None:
            if site.known(socket) is None:
                await socket.close(1008)
                return
            for other in latest:  # another tab takes the game over
                await other.close(4000, "another tab has taken over")
            latest[:] = [socket]
            await _play(socket, stage)
            if socket in latest:
                latest.clear()

        return Part(
            [Route("/", show), WebSocketRoute("/play", connect)], home=HOME, stop=stage.close
        )

    return part


def playing(site: Site) -> Part:
    """Return the part on which arenas of the server's batteries are played."""
    places, stages = asyncio.Semaphore(MOST_GAMES), set[Stage]()

    async def show(request: Request) -> Response:
        battery, instance = _names_of(request)
        await _arena(site, request, battery, instance)
        at = f"/batteries/{battery}/arenas/{instance}/play"
        back = f"/batteries/{battery}"
        return site.page(request, "play.html.j2", title=instance, socket=f"{at}/socket", back=back)

    async def connect(socket: WebSocket) -> None:
        caller = site.known(socket)
        if caller is None or not caller.runs or places.locked():
            await socket.close(1008)
            return
        async with places:  # which it has at once
            await let_play(socket)

    async def let_play(socket: WebSocket) -> None:
        battery, instance = _names_of(socket)
        assert site.served is not None, "it is a server's"
        text = await _arena(site, socket, battery, instance)
        session = person_session(instance, datetime.now(UTC))
        home = site.served.settings.home.absolute()
        stage = Stage(partial(_game, text, instance, session, str(home)), apart=True)
        stages.add(stage)
        try:
            await _play(socket, stage)
        finally:
            stages.discard(stage)
            stage.close()

    def stop() -> None:
        for stage in stages:
            stage.close()

    path = "/batteries/{battery}/arenas/{instance:path}/play"
    return Part(
        [Route(path, show), WebSocketRoute(f"{path}/socket", connect)], home=HOME, stop=stop
    )


def _game(text: str, instance: str, session: str, home: str) -> GameShow:
    """Make a game of one arena, in whatever process."""
    arena = load_text(text, instance).config.first
    data = Path(home)
    return GameShow(
        Game(arena, 0, session=session, instance=instance, data=data, resolution=RESOLUTION)
    )


async def _play(socket: WebSocket, stage: Stage) -> None:
    """Let the person at a socket play what is on a stage."""
    await socket.accept()
    screen = Screen(socket)

    async def frame(name: str, *arguments: int) -> Frame:
        shown = await stage.call(name, *arguments)
        return Frame(shown.pixels, shown.state, shown.state["ended_by"] is not None)

    async def work() -> None:
        act, restart = partial(frame, "act"), partial(frame, "restart")
        await play(screen, await frame("state"), act, restart, 1.0 / ACTIONS_PER_SECOND)

    failed = await with_screen(screen, work)
    if failed is not None:
        log.warning("an arena that a person plays has failed", exc_info=failed)
        await screen.tell(failed=f"{type(failed).__name__}: {failed}"[:300])
        await socket.close(1011)


def _names_of(request: Request | WebSocket) -> tuple[str, str]:
    return str(request.path_params["battery"]), str(request.path_params["instance"])


async def _arena(site: Site, request: Request | WebSocket, battery: str, instance: str) -> str:
    """Return the text of an arena of a battery that the visitor may see."""
    found = await site.client(request).get_battery(battery)
    assert site.served is not None, "it is a server's"
    arenas = await site.served.engines.battery(found.digest)
    at = arenas.index.get(instance)
    if at is None:
        raise not_found_error(f"battery {battery} has no arena named {instance[:100]!r}")
    return await asyncio.to_thread(arenas.arena_yaml, arenas.instances[at])
