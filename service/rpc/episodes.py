"""Serves recorded episodes: lists them, and streams their steps."""

from __future__ import annotations

import asyncio
import json
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from animalcat.service.access.belongings import whose_filter as wanted_of
from animalcat.service.errors import Code, ServiceError
from animalcat.service.library.layouts import layout_of
from animalcat.service.measuring.explaining import Explainer
from animalcat.service.recording.reader import RecordingError, read_episode
from animalcat.service.rpc import paging, persons
from animalcat.service.session.engines import Engines
from animalcat.service.storage.artefacts import recording_key
from animalcat.service.storage.listing import BadPageError, EpisodeFilter, Page
from animalcat.text import names
from animalcat.v1 import results_pb2, results_pb2_grpc, sessions_pb2, types_pb2
from animalcat.values import Episode, Outcome
from animalcat.wire.codec import encode, word

_PEOPLE: Final = "people/"
"""What the token of a page begins with that shows what people played, after all sessions."""


class Episodes(results_pb2_grpc.EpisodesServicer):
    """Servicer of recorded episodes."""

    def __init__(self, engines: Engines) -> None:
        self._engines = engines
        self._explainer = Explainer(engines.parts.store, engines.parts.files)

    async def ListEpisodes(  # noqa: N802
        self, request: results_pb2.ListEpisodesRequest, context: Any
    ) -> results_pb2.ListEpisodesResponse:
        """List all attempts of one session or of all, in order, including those a person played."""
        wanted, asked = EpisodeFilter(outcomes=_outcomes(request)), paging.stored_page(request)
        store, data = self._engines.parts.store, self._engines.parts.data
        if request.parent != names.EVERY_SESSION:
            session = names.parse_session(request.parent)
            if await asyncio.to_thread(store.has_session, session):
                newest = request.newest_first
                page = await asyncio.to_thread(
                    store.episodes, session, wanted, asked, newest_first=newest
                )
                return _list_response(page, page.next)
            if not await asyncio.to_thread(persons.places, data, session):
                await self._engines.session(session)  # an error
            return await asyncio.to_thread(_page_of_people, data, [session], request, asked)
        if request.newest_first:
            raise ServiceError(
                Code.INVALID_REQUEST,
                "newest_first: the newest come first of one session; name it as the parent",
            )
        whose = wanted_of(request)
        # What people played beside sessions belongs to nobody.
        beside = whose.seen_by is None
        if not asked.after.startswith(_PEOPLE):
            page = await asyncio.to_thread(store.all_episodes, wanted, asked, whose)
            if page.next or not beside or not await asyncio.to_thread(persons.sessions, data):
                return _list_response(page, page.next)
            return _list_response(page, _PEOPLE)
        people = await asyncio.to_thread(persons.sessions, data) if beside else []
        known = await asyncio.to_thread(store.sessions_by_id, people)
        people = [session for session in people if session not in known]
        return await asyncio.to_thread(_page_of_people, data, people, request, asked)

    async def ExplainEpisode(  # noqa: N802
        self, request: results_pb2.ExplainEpisodeRequest, context: Any
    ) -> results_pb2.ExplainEpisodeResponse:
        """Explain an episode by the posterior of its session."""
        session, number, attempt = names.parse_episode(request.name)
        stored = await self._engines.stored(session)
        battery = await self._engines.battery(stored.spec.battery_digest)
        layout = await asyncio.to_thread(layout_of, stored.spec, self._engines.parts.store)
        explanation = await asyncio.to_thread(
            self._explainer.explained, stored, layout, battery, number, attempt
        )
        return results_pb2.ExplainEpisodeResponse(explanation_json=json.dumps(explanation))

    # The stub of the generated code knows generators only; gRPC takes coroutines as well.
    async def StreamEpisode(  # noqa: N802  # pyright: ignore[reportIncompatibleMethodOverride]
        self, request: results_pb2.StreamEpisodeRequest, context: Any
    ) -> None:
        """Stream the steps of a recorded episode; if it is damaged, end with an error."""
        session, number, attempt = names.parse_episode(request.name)
        if attempt is None:
            attempt = await self._last_attempt(session, number)
        key, files = recording_key(session, number, attempt), self._engines.parts.files
        try:
            recording = await asyncio.to_thread(lambda: read_episode(files.fetch(key)))
        except FileNotFoundError:
            raise ServiceError(
                Code.UNKNOWN_EPISODE,
                f"{request.name} has no recording; list the session's episodes",
            ) from None
        except RecordingError as error:
            raise ServiceError(Code.RECORDING_DAMAGED, str(error)) from error
        await context.write(results_pb2.StreamEpisodeResponse(header=recording.header))
        for step in recording.steps:
            await context.write(results_pb2.StreamEpisodeResponse(step=step))
        if recording.footer is not None:
            await context.write(results_pb2.StreamEpisodeResponse(footer=recording.footer))
        if recording.damage:
            raise ServiceError(Code.RECORDING_DAMAGED, f"{key} is damaged: {recording.damage}")

    async def _last_attempt(self, session: str, number: int) -> int:
        """Return the last attempt at an episode, of the store or of what a person played; else 0.

        Args:
            session: Its id.
            number: Number of the one that is wanted of a session in the store; None for all.

        Raises:
            ServiceError: There is no such session.
        """
        parts = self._engines.parts
        if await asyncio.to_thread(parts.store.has_session, session):
            return await asyncio.to_thread(parts.store.last_attempt, session, number) or 0
        played = await asyncio.to_thread(persons.places, parts.data, session)
        if not played:
            await self._engines.session(session)  # an error
        return max((attempt for place, attempt in played if place == number), default=0)


def _list_response(page: Iterable[Episode], following: str) -> results_pb2.ListEpisodesResponse:
    return results_pb2.ListEpisodesResponse(
        episodes=[encode(episode) for episode in page], next_page_token=following
    )


def _page_of_people(
    data: Path, people: Sequence[str], request: results_pb2.ListEpisodesRequest, page: Page
) -> results_pb2.ListEpisodesResponse:
    """Return a page of what people played; only what it shows is read.

    Args:
        data: The data directory.
        people: Ids of their sessions, sorted.
        request: Says which outcomes are wanted.
        page: Which page.

    Raises:
        BadPageError: The page's token did not come from such a list.
    """
    last = ("", -1, -1)
    if after := page.after.removeprefix(_PEOPLE):
        try:
            session, number, attempt = names.parse_episode(after)
        except names.BadNameError as error:
            raise BadPageError(str(error)) from None
        last = (session, number, attempt or 0)
    shown: list[sessions_pb2.EpisodeSummary] = []
    newest_first = request.newest_first  # of one session
    for session in people[bisect_left(people, last[0]) :]:
        places = persons.places(data, session)
        for place in reversed(places) if newest_first else places:
            here = (session, *place)
            if after and (here >= last if newest_first else here <= last):
                continue
            if len(shown) == page.limit:
                return results_pb2.ListEpisodesResponse(
                    episodes=shown, next_page_token=f"{_PEOPLE}{shown[-1].name}"
                )
            episode = persons.episode(data, session, *place)
            if not request.outcomes or episode.outcome in request.outcomes:
                shown.append(episode)
    return results_pb2.ListEpisodesResponse(episodes=shown)


def _outcomes(request: results_pb2.ListEpisodesRequest) -> tuple[Outcome, ...]:
    """Return the outcomes that a list is restricted to.

    Raises:
        ServiceError: A number stands for no outcome.
    """
    try:
        return tuple(Outcome(word(types_pb2.Outcome, number)) for number in request.outcomes)
    except ValueError as error:
        raise ServiceError(
            Code.INVALID_REQUEST,
            "outcomes: one is unknown; give numbers of animalcat.v1.Outcome other than 0",
        ) from error
