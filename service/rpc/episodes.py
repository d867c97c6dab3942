"""Serves recorded episodes: lists them, and streams their steps."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from animalcat import names
from animalcat.codec import encode, word
from animalcat.service.access.belongings import wanted as wanted_of
from animalcat.service.errors import Code, ServiceError
from animalcat.service.library.layouts import layout_of
from animalcat.service.measuring.explaining import explained_episode
from animalcat.service.person import recordings
from animalcat.service.recording import RecordingError, read_episode
from animalcat.service.rpc import paging
from animalcat.service.session.engines import Engines
from animalcat.service.storage.artefacts import recording_key
from animalcat.service.storage.listing import EpisodeFilter, SessionFilter
from animalcat.v1 import results_pb2, results_pb2_grpc, sessions_pb2, types_pb2
from animalcat.values import Outcome


class Episodes(results_pb2_grpc.EpisodesServicer):
    """Servicer of recorded episodes."""

    def __init__(self, engines: Engines) -> None:
        self._engines = engines

    async def ListEpisodes(  # noqa: N802
        self, request: results_pb2.ListEpisodesRequest, context: Any
    ) -> results_pb2.ListEpisodesResponse:
        """List all attempts of one session or of all, in order, including those a person played."""
        wanted = EpisodeFilter(outcomes=_outcomes(request))
        parts = self._engines.parts
        if request.parent != names.EVERY_SESSION:
            sessions = [names.parse_session(request.parent)]
            if await asyncio.to_thread(parts.store.session, sessions[0]) is not None:
                page = await asyncio.to_thread(
                    parts.store.episodes, sessions[0], wanted, paging.stored(request)
                )
                return results_pb2.ListEpisodesResponse(
                    episodes=[encode(episode) for episode in page], next_page_token=page.next
                )
        else:
            whose = wanted_of(request)
            seen = await self._engines.sessions(SessionFilter(whose=whose))
            known = [session.id for session in reversed(seen)]
            played = list[str]()  # what people played beside sessions belongs to nobody
            if whose.seen_by is None:
                played = await asyncio.to_thread(recordings.sessions, parts.data)
            sessions = [*known, *(session for session in played if session not in known)]
        matching = [
            episode
            for session in sessions
            for episode in await self._episodes(session)
            if not wanted.outcomes or episode.outcome in request.outcomes
        ]
        shown = paging.paged(matching, lambda episode: episode.name, request)
        return results_pb2.ListEpisodesResponse(episodes=shown, next_page_token=shown.next)

    async def ExplainEpisode(  # noqa: N802
        self, request: results_pb2.ExplainEpisodeRequest, context: Any
    ) -> results_pb2.ExplainEpisodeResponse:
        """Explain an episode by the posterior of its session."""
        session, number, attempt = names.parse_episode(request.name)
        stored = await self._engines.stored(session)
        battery = await self._engines.battery(stored.spec.battery_digest)
        attempts = await self._engines.episodes(session)
        layout = await asyncio.to_thread(layout_of, stored.spec, self._engines.parts.store)
        explanation = await asyncio.to_thread(
            explained_episode, stored, layout, battery, attempts, number, attempt
        )
        return results_pb2.ExplainEpisodeResponse(explanation_json=json.dumps(explanation))

    # The stub of the generated code knows generators only; gRPC takes coroutines as well.
    async def StreamEpisode(  # noqa: N802  # pyright: ignore[reportIncompatibleMethodOverride]
        self, request: results_pb2.StreamEpisodeRequest, context: Any
    ) -> None:
        """Stream the steps of a recorded episode; if it is damaged, end with an error."""
        session, number, attempt = names.parse_episode(request.name)
        episodes = await self._episodes(session)
        if attempt is None:
            attempt = max((e.attempt for e in episodes if e.episode == number), default=0)
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

    async def _episodes(self, session: str) -> list[sessions_pb2.EpisodeSummary]:
        """Return the episodes of a session in the store, or else of one that a person played.

        Raises:
            ServiceError: There is no such session.
        """
        parts = self._engines.parts
        if await asyncio.to_thread(parts.store.session, session) is None:
            played = await asyncio.to_thread(recordings.episodes, parts.data, session)
            if played:
                return played
        await self._engines.session(session)
        attempts = await asyncio.to_thread(parts.store.episodes, session)
        return [encode(episode) for episode in attempts]


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
