"""The page that plays a recorded episode, with a time line; and why the episode was played."""

from __future__ import annotations

import asyncio
import json
import struct
import time
import zlib
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from animalcat import names
from animalcat.service.person.replaying import Replayed
from animalcat.service.person.shows import Show, Shown
from animalcat.service.recording import RecordingError, read_episode
from animalcat.service.storage.artefacts import recording_key
from animalcat.service.web.site import Part, Site, not_found
from animalcat.service.web.stage import Stage

STREAM: Final = "/animalcat.v1.Episodes/StreamEpisode"
"""The call of the wire that shows as much as a film does."""
MOST_FILMS: Final = 3
"""Most episodes that are drawn at once; each has a process. The longest unused goes first."""
IDLE_SECONDS: Final = 60.0
"""For how long an episode stays drawn that nobody looks at."""
_LENGTH: Final = struct.Struct("<I")


@dataclass(frozen=True, slots=True)
class MakeFilm:
    """Makes the film of a recording, in whatever process.

    Attributes:
        path: The file.
        title: Its title.
    """

    path: str
    title: str

    def __call__(self) -> Replayed:
        """Make it."""
        return Replayed(read_episode(Path(self.path)), self.title)


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
    films = OrderedDict[str, tuple[Stage, float]]()

    async def show(request: Request) -> Response:
        session, number, attempt = await allowed(request)
        at = f"/sessions/{session}/episodes/{request.path_params['episode']}"
        title = f"{session}, episode {number}" + (f", attempt {attempt}" if attempt else "")
        back = f"/sessions/{session}"
        frames, because = f"{at}/film", f"{at}/why"
        return site.page(
            request, "film.html.j2", title=title, frames=frames, back=back, why=because
        )

    async def why(request: Request) -> Response:
        session, number, attempt = await allowed(request)
        told = await site.client(request).explain_episode(session, number, attempt)
        return site.page(request, "why.html.j2", why=told)

    async def frame(request: Request) -> Response:
        session, number, attempt = await allowed(request)
        key = recording_key(session, number, attempt or 0)
        stage = films[key][0] if key in films else await stage_of(key, f"{session}/{number}")
        films[key] = stage, time.monotonic()
        films.move_to_end(key)
        sparing.cancel()
        try:
            return await _frame(stage, request)
        except (RecordingError, ValueError) as error:
            drop(key)
            raise not_found(str(error)) from error
        finally:
            spare_later()

    async def allowed(request: Request) -> tuple[str, int, int | None]:
        session, episode = request.path_params["session"], request.path_params["episode"]
        try:
            name = f"sessions/{session}/episodes/{episode}"
            session, number, attempt = names.parse_episode(name)
        except names.BadNameError as error:
            raise not_found(str(error)) from error
        await site.check(request, STREAM, names.session_name(session))
        return session, number, attempt

    async def stage_of(key: str, title: str) -> Stage:
        assert site.served is not None, "it is a server's"
        try:
            path = await asyncio.to_thread(site.served.engines.parts.files.fetch, key)
        except FileNotFoundError:
            raise not_found(f"{title} has no recording") from None
        while len(films) >= MOST_FILMS:
            drop(next(iter(films)))
        return Stage(MakeFilm(str(path), title), apart=True)

    def drop(key: str) -> None:
        films.pop(key)[0].close()

    def spare_later() -> None:
        nonlocal sparing
        sparing = asyncio.get_running_loop().call_later(IDLE_SECONDS, spare)

    def spare() -> None:
        over = time.monotonic() - IDLE_SECONDS
        for key in [key for key, (_, used) in films.items() if used <= over]:
            drop(key)
        if films:
            spare_later()

    def stop() -> None:
        sparing.cancel()
        for key in list(films):
            drop(key)

    class _Never:
        def cancel(self) -> None: ...

    sparing: asyncio.TimerHandle | _Never = _Never()
    path = "/sessions/{session}/episodes/{episode}"
    routes = [
        Route(path, show),
        Route(f"{path}/why", why),
        Route(f"{path}/film/{{step:int}}", frame),
    ]
    return Part(routes, stop=stop)


async def _frame(stage: Stage, request: Request) -> Response:
    """Answer with the pictures of a step, and at the first one with what the film is."""
    step = int(request.path_params["step"])
    about = "about" in request.query_params
    shown = await stage.call("state" if about else "frame", {} if about else {"step": step})
    return Response(packed(shown), media_type="application/octet-stream")


def packed(shown: Shown) -> bytes:
    """Return pictures as pages unpack them: the length of the state, the state, packed pixels."""
    text = json.dumps(shown.state).encode()
    return _LENGTH.pack(len(text)) + text + zlib.compress(shown.pixels, 1)
