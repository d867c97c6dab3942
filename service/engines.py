"""The engines of a server, one a session, made when they are wanted."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

from animalcat import names
from animalcat.service import battery as batteries
from animalcat.service.battery import Battery
from animalcat.service.engine import SessionEngine
from animalcat.service.errors import Code, unknown
from animalcat.service.model import Session, SessionState
from animalcat.service.parts import Parts


class Engines:
    """Gives out engines; used on one event loop only.

    It holds each session's engine, so that a session has one writer, until the session is over.
    """

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self._engines: dict[str, SessionEngine] = {}
        self._batteries: dict[str, Battery] = {}
        self._making = asyncio.Lock()

    @property
    def battery_folder(self) -> Path:
        """Where batteries are kept by digest."""
        return self.parts.data / "batteries"

    async def get(self, session: str) -> SessionEngine:
        """The engine of a session.

        Raises:
            ServiceError: No such session.
        """
        async with self._making:
            engine = self._engines.get(session)
            if engine is None:
                stored = await self.stored(session)
                engine = SessionEngine(
                    stored, await self.battery(stored.spec.battery_digest), self.parts
                )
                self._forget()
                self._engines[session] = engine
        return engine

    async def stored(self, session: str) -> Session:
        """A session as the store has it.

        Raises:
            ServiceError: No such session.
        """
        found = await asyncio.to_thread(self.parts.store.session, session)
        if found is None:
            known = await asyncio.to_thread(self.parts.store.sessions)
            raise unknown(
                Code.UNKNOWN_SESSION,
                "session",
                names.session_name(session),
                [names.session_name(s.id) for s in known],
            )
        return found

    async def session(self, session: str) -> Session:
        """A session as it stands, from its engine where it has one.

        Raises:
            ServiceError: No such session.
        """
        engine = self._engines.get(session)
        return engine.session if engine is not None else await self.stored(session)

    async def sessions(self) -> list[Session]:
        """All sessions, newest first."""
        stored = await asyncio.to_thread(self.parts.store.sessions)
        return [self._engines[s.id].session if s.id in self._engines else s for s in stored]

    async def waiting(self) -> list[str]:
        """Ids of the sessions that wait for an agent."""
        return [s.id for s in await self.sessions() if s.state is SessionState.WAITING]

    async def allow(self, episodes: Mapping[str, int]) -> None:
        """Let so many episodes begin in all, by session; a failure leaves all as they were.

        Raises:
            ServiceError: No such session.
        """
        engines = [await self.get(session) for session in episodes]
        await asyncio.to_thread(self.parts.store.allow, episodes)
        for engine, allowed in zip(engines, episodes.values(), strict=True):
            await engine.allow(allowed)

    async def battery(self, digest: str) -> Battery:
        """A battery by its digest, kept in memory once read."""
        if digest not in self._batteries:
            self._batteries[digest] = await asyncio.to_thread(
                batteries.load, digest, self.battery_folder
            )
        return self._batteries[digest]

    async def close(self) -> None:
        """Let every agent go and wait until all is stored."""
        await asyncio.gather(*(engine.stop() for engine in self._engines.values()))
        await self.parts.workers.close()

    def _forget(self) -> None:
        """Drop the engines of sessions that are over."""
        for session, engine in list(self._engines.items()):
            if engine.session.state.over and not engine.playing:
                del self._engines[session]
