"""The servicer of recorded episodes: list, stream."""

from __future__ import annotations

import asyncio
from typing import Any

from animalcat import names
from animalcat.service.converters import episode_to_proto
from animalcat.service.engines import Engines
from animalcat.service.errors import Code, ServiceError
from animalcat.service.play import recording_path
from animalcat.service.recording import RecordingError, read_episode
from animalcat.v1 import results_pb2, results_pb2_grpc


class Episodes(results_pb2_grpc.EpisodesServicer):
    """Recorded episodes."""

    def __init__(self, engines: Engines) -> None:
        self._engines = engines

    async def ListEpisodes(  # noqa: N802
        self, request: results_pb2.ListEpisodesRequest, context: Any
    ) -> results_pb2.ListEpisodesResponse:
        """The episodes of a session, in order, all attempts."""
        session = names.parse_session(request.parent)
        await self._engines.stored(session)
        episodes = await asyncio.to_thread(self._engines.parts.store.episodes, session)
        return results_pb2.ListEpisodesResponse(episodes=map(episode_to_proto, episodes))

    # The stub of the generated code knows generators only; gRPC takes coroutines as well.
    async def StreamEpisode(  # noqa: N802  # pyright: ignore[reportIncompatibleMethodOverride]
        self, request: results_pb2.StreamEpisodeRequest, context: Any
    ) -> None:
        """The steps of one recorded episode."""
        session, number, attempt = names.parse_episode(request.name)
        await self._engines.stored(session)
        if attempt is None:
            attempts = [
                e.attempt
                for e in await asyncio.to_thread(self._engines.parts.store.episodes, session)
                if e.number == number
            ]
            attempt = max(attempts, default=0)
        path = recording_path(self._engines.parts.data, session, number, attempt)
        try:
            recording = await asyncio.to_thread(read_episode, path)
        except FileNotFoundError:
            raise ServiceError(
                Code.UNKNOWN_EPISODE,
                f"{request.name} has no recording; list the session's episodes",
            ) from None
        except RecordingError as error:
            raise ServiceError(Code.UNKNOWN_EPISODE, f"{request.name}: {error}") from error
        await context.write(results_pb2.StreamEpisodeResponse(header=recording.header))
        for step in recording.steps:
            await context.write(results_pb2.StreamEpisodeResponse(step=step))
        if recording.footer is not None:
            await context.write(results_pb2.StreamEpisodeResponse(footer=recording.footer))
