"""The page that plays a recorded episode, with a time line; and why the episode was played."""

from __future__ import annotations

import asyncio
import json
import struct
import zlib
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from animalcat.service.recording.reader import RecordingError, read_episode
from animalcat.service.storage.artefacts import recording_key
from animalcat.service.web.replaying import Replayed
from animalcat.service.web.site import Part, Site, not_found_error
from animalcat.service.web.stage import Show, Stage
from animalcat.text import names

STREAM: Final = "/animalcat.v1.Episodes/StreamEpisode"
"""The call of the wire that shows as much as a film does."""
MOST_FILMS: Final = 3
"""Most episodes that are drawn at once; each has a process. The longest unused goes first."""
IDLE_SECONDS: Final = 60.0
"""For how long an episode stays drawn that nobody looks at."""
_LENGTH: Final = struct.Struct("<I")


def film_alone(make: Callable[[], Show], title: str) -> Callable[[Site], Part]:
    """Return what makes the only page of a command: a recorded episode.

    Args:
        make: Makes the film.
        title: Its title.
    """

    def part(site: Site) -> Part:
        stage = Stage(make)

        async def show(request: Request) -> Response:
            site.caller(request)
            return site.page(request, "film.html.j2", title=title, frames="/film", back="", why="")

        async def frame(request: Request) -> Response:
            site.caller(request)
            return await _frame(stage, request)

        return Part([Route("/", show), Route("/film/{step:int}", frame)], stop=stage.close)

    return part


def filming(site: Site) -> Part:
    """Return the part on which recorded episodes are played."""
    films = OrderedDict[str, Stage]()
    idle: dict[str, asyncio.TimerHandle] = {}

    async def show(request: Request) -> Response:
        session, number, attempt = await check_request(request)
        at = f"/sessions/{session}/episodes/{request.path_params['episode']}"
        title = f"{session}, episode {number}" + (f", attempt {attempt}" if attempt else "")
        places: dict[str, Any] = {
            "frames": f"{at}/film",
            "why": f"{at}/why",
            "back": f"/sessions/{session}",
        }
        return site.page(request, "film.html.j2", title=title, **places)

    async def why(request: Request) -> Response:
        session, number, attempt = await check_request(request)
        told = await site.client(request).explain_episode(session, number, attempt)
        return site.page(request, "why.html.j2", why=told)

    async def frame(request: Request) -> Response:
        session, number, attempt = await check_request(request)
        key = recording_key(session, number, attempt or 0)
        stage = films.get(key) or await stage_of(key, f"{session}/{number}")
        films.move_to_end(key)
        in_use(key)
        try:
            return await _frame(stage, request)
        except (RecordingError, ValueError) as error:
            drop(key)
            raise not_found_error(str(error)) from error
        finally:
            in_use(key)
            if key in films:
                idle[key] = asyncio.get_running_loop().call_later(IDLE_SECONDS, drop, key)

    async def check_request(request: Request) -> tuple[str, int, int | None]:
        session, episode = request.path_params["session"], request.path_params["episode"]
        try:
            name = f"sessions/{session}/episodes/{episode}"
            session, number, attempt = names.parse_episode(name)
        except names.BadNameError as error:
            raise not_found_error(str(error)) from error
        await site.check(request, STREAM, names.session_name(session))
        return session, number, attempt

    async def stage_of(key: str, title: str) -> Stage:
        assert site.served is not None, "it is a server's"
        try:
            path = await asyncio.to_thread(site.served.engines.parts.files.fetch, key)
        except FileNotFoundError:
            raise not_found_error(f"{title} has no recording") from None
        if key not in films:
            while len(films) >= MOST_FILMS:
                drop(next(iter(films)))
            films[key] = Stage(partial(_film, str(path), title), apart=True)
        return films[key]

    def in_use(key: str) -> None:
        if (timer := idle.pop(key, None)) is not None:
            timer.cancel()

    def drop(key: str) -> None:
        in_use(key)
        if (stage := films.pop(key, None)) is not None:
            stage.close()

    def stop() -> None:
        for key in list(films):
            drop(key)

    path = "/sessions/{session}/episodes/{episode}"
    routes = [
        Route(path, show),
        Route(f"{path}/why", why),
        Route(f"{path}/film/{{step:int}}", frame),
    ]
    return Part(routes, stop=stop)


def _film(path: str, title: str) -> Replayed:
    """Make the film of a recording, in whatever process."""
    return Replayed(read_episode(Path(path)), title)


async def _frame(stage: Stage, request: Request) -> Response:
    """Answer with the pictures of a step, and at the first one with what the film is.

    It is as pages unpack it: the length of the state, the state, packed pixels.
    """
    about, step = "about" in request.query_params, int(request.path_params["step"])
    shown = await (stage.call("state") if about else stage.call("frame", step))
    text = json.dumps(shown.state).encode()
    packed = _LENGTH.pack(len(text)) + text + zlib.compress(shown.pixels, 1)
    return Response(packed, media_type="application/octet-stream")
