"""Holds the engines of a server: one per session, made when it is first needed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from animalcat.layouts.adaptive.plan import StoppingRule
from animalcat.service.batteries.battery import BATTERIES, Battery, load
from animalcat.service.errors import Code, ServiceError, unknown
from animalcat.service.library.plugins import insist_unchanged
from animalcat.service.measuring.certificates import CERTIFICATES
from animalcat.service.session.engine import SessionEngine
from animalcat.service.session.events import Event
from animalcat.service.session.parts import Parts
from animalcat.service.session.unused import Unused, bytes_of, give_back, spare
from animalcat.service.storage.artefacts import RECORDINGS
from animalcat.service.storage.errors import readable
from animalcat.service.storage.listing import Listing, Page, SessionFilter
from animalcat.text import names
from animalcat.values import Episode, Session, SessionState

log = logging.getLogger(__name__)

_PAGE: Final = 1000
"""Attempts that are read at a time."""
_MUCH: Final = 16 * 1024**2
"""Bytes that have left memory, after which it is given back to the system."""


class Engines:
    """The engines of all sessions that are not over; used on one event loop only.

    A session has one engine at a time, so that it has only one writer. One that nobody uses leaves
    memory, and so does a battery.

    Attributes:
        parts: What they share.
    """

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self._engines = Unused[SessionEngine](
            parts.monotonic,
            idle=lambda engine: engine.idle,
            weigh=lambda engine: engine.weigh(),
            uses=lambda engine: engine.uses,
            empty=lambda engine: engine.unload(),
        )
        self._batteries = Unused[Battery](parts.monotonic, lambda _: True, bytes_of)
        self._making = asyncio.Lock()
        self._loading: dict[str, asyncio.Lock] = {}
        self._draining = False
        self._left = 0
        self._giving_back: asyncio.Future[None] | None = None

    @property
    def battery_folder(self) -> Path:
        """The folder that holds batteries, each under its digest."""
        return self.parts.data / BATTERIES

    @property
    def agents(self) -> int:
        """Number of agents that are connected."""
        return sum(engine.agents for engine in self._engines.values())

    async def get(self, session: str) -> SessionEngine:
        """Return the engine of a session.

        Raises:
            ServiceError: There is no such session, or it cannot be read; or it goes on, and its
                plugins are not those with which it began.
        """
        async with self._making:
            engine = self._engines.get(session)
            if engine is None:
                stored = await self.stored(session)
                if not stored.state.over:
                    await asyncio.to_thread(insist_unchanged, stored.spec)
                    campaign = await asyncio.to_thread(self.parts.store.campaign_of, session)
                    self.parts.workers.group(session, campaign)
                engine = SessionEngine(
                    stored, await self.battery(stored.spec.battery_digest), self.parts
                )
                self._forget()
                self._engines.put(session, engine)
                if self._draining:
                    await engine.drain()
        self.spare()
        return engine

    async def stored(self, session: str) -> Session:
        """Return a session as it is stored.

        Raises:
            ServiceError: There is no such session, or it cannot be read.
        """
        stored = await self._find_session(session)
        if stored.state is SessionState.UNREADABLE:
            raise ServiceError(
                Code.UNREADABLE,
                f"session {session} is {stored.reason}. Update animalcat if a newer version wrote "
                "it; otherwise delete the session and create it again",
            )
        return stored

    async def episodes(self, session: str) -> list[Episode]:
        """Return all attempts of a session, ordered by episode number and attempt.

        Raises:
            UnreadableError: An attempt cannot be read.
        """
        return readable(await asyncio.to_thread(self.parts.store.episodes, session))

    def attempts(self, session: str) -> Iterator[Episode]:
        """Read all attempts of a session from the store in order, of which few are held at a time.

        It blocks: not for an event loop.

        Raises:
            UnreadableError: An attempt cannot be read.
        """
        page = self.parts.store.episodes(session, page=Page(_PAGE))
        yield from readable(page)
        while page.next:
            page = self.parts.store.episodes(session, page=Page(_PAGE, page.next))
            yield from readable(page)

    async def _find_session(self, session: str) -> Session:
        found = await asyncio.to_thread(self.parts.store.session, session)
        if found is None:
            known = await asyncio.to_thread(self.parts.store.session_ids)
            raise unknown(Code.UNKNOWN_SESSION, "session", session, known)
        return found

    async def session(self, session: str) -> Session:
        """Return a session as it stands, from its engine if it has one, readable or not.

        Raises:
            ServiceError: There is no such session.
        """
        engine = self._engines.look(session)
        if engine is None:
            return await self._find_session(session)
        return engine.session

    async def owned(self, session: str) -> None:
        """Take in whose a session is by now, if it has an engine."""
        item, engine = names.session_name(session), self._engines.look(session)
        if engine is not None:
            engine.belongs_to(await asyncio.to_thread(self.parts.store.owners.of, item))

    async def sessions_of(self, ids: Sequence[str]) -> list[Session]:
        """Return sessions in the order of their ids, each as its engine knows it if it has one.

        Raises:
            ServiceError: One of them does not exist.
        """
        known = {s: e.session for s in ids if (e := self._engines.look(s)) is not None}
        wanted = [session for session in ids if session not in known]
        known |= await asyncio.to_thread(self.parts.store.sessions_by_id, wanted)
        return [known[s] if s in known else await self._find_session(s) for s in ids]

    async def sessions(
        self, wanted: SessionFilter = SessionFilter(), page: Page = Page()
    ) -> Listing[Session]:
        """List sessions, newest first, each as its engine knows it if it has one.

        Raises:
            BadPageError: The page's token did not come from a list of the store.
        """
        stored = await asyncio.to_thread(self.parts.store.sessions, wanted, page)
        return Listing(map(self._as_known_session, stored), stored.next)

    async def backlog(self, most: int) -> dict[str, str]:
        """Return what sessions wait for, by their ids, of the newest that are not over."""
        words: dict[str, str] = {}
        stored = await asyncio.to_thread(self.parts.store.standings, most)
        for name, standing in stored.items():
            engine = self._engines.look(name)
            if said := standing.waits_for if engine is None else engine.session.waits_for:
                words[name] = said
        return words

    def _as_known_session(self, stored: Session) -> Session:
        engine = self._engines.look(stored.id)
        if engine is None:
            return stored
        engine.belongs_to(stored.owner)
        return engine.session

    async def delete(self, session: str) -> None:
        """Delete a session that is not being played, with its recordings, certificates and draws.

        Raises:
            ServiceError: There is no such session, or it is being played.
            InUseError: A campaign uses it.
        """
        async with self._making:
            stored = await self.session(session)
            engine = self._engines.get(session)
            if engine is not None and engine.playing:
                raise ServiceError(
                    Code.IN_USE, f"session {session} is being played; cancel it first"
                )
            if engine is not None:
                self._engines.pop(session)
                await engine.stop()
            await asyncio.to_thread(
                self.parts.store.delete_session, session, partial(self._remove_files, session)
            )
        if not stored.state.over:  # its watchers need not wait for more
            gone = replace(stored, state=SessionState.CANCELLED, reason="the session was deleted")
            self.parts.bus.publish(Event(gone, None))

    def _remove_files(self, session: str) -> None:
        for kind in (RECORDINGS, CERTIFICATES):
            self.parts.files.remove(f"{kind}/{session}")

    async def waiting(self) -> list[str]:
        """Return the ids of the sessions that wait for an agent, or for its return."""
        waiting = SessionFilter(states=(SessionState.WAITING,))
        left = [engine.session.id for engine in self._engines.values() if engine.left]
        return [*(s.id for s in await self.sessions(waiting)), *left]

    async def battery(self, digest: str) -> Battery:
        """Return the battery with this digest; once read, it is kept in memory for a while."""
        lock = self._loading.setdefault(digest, asyncio.Lock())
        async with lock:  # of two that want it, one reads it
            battery = self._batteries.get(digest)
            if battery is None:
                battery = await asyncio.to_thread(self._load_battery, digest)
                self._batteries.put(digest, battery)
                self.spare()
        if not lock.locked():
            self._loading.pop(digest, None)
        return battery

    def spare(self) -> None:
        """Let the engines and batteries leave memory that nobody has used for long, or that weigh.

        A session whose engine has left is resumed from what is stored when it is used again, as
        after a restart of the server.
        """
        most = self.parts.unused_bytes
        left = spare((self._engines, self._batteries), self.parts.unused_seconds, most)
        self._left += left
        if self._left >= _MUCH:  # else it is soon used again
            log.info("%.1f MB that nobody used have left memory", self._left / 1e6)
            self._left = 0
            self._giving_back = asyncio.ensure_future(asyncio.to_thread(give_back))

    async def keep_spare(self) -> None:
        """Call `spare` again and again, and drop what is over; it ends by being cancelled."""
        while True:
            await asyncio.sleep(max(1.0, min(30.0, self.parts.unused_seconds / 4)))
            try:
                async with self._making:
                    self._forget()
                self.spare()
            except Exception:  # the database may come back
                log.exception("memory could not be given back")

    def _load_battery(self, digest: str) -> Battery:
        try:
            return load(digest, self.battery_folder)
        except FileNotFoundError as error:
            log.error("a battery cannot be read: %s", error)
            raise ServiceError(
                Code.BATTERY_GONE,
                f"the arenas of the battery with digest {names.short_digest(digest)} cannot be "
                f"read: they are gone from the folder {BATTERIES} of the data directory. "
                "Restore them from a backup, or import or build the battery again: the same "
                "content has the same digest",
            ) from error

    async def drain(self) -> None:
        """Begin no more episodes, and wait until those that are played are over and stored."""
        self._draining = True
        await asyncio.gather(*(engine.drain() for engine in self._engines.values()))
        while self.agents:
            await asyncio.sleep(0.05)

    async def close(self) -> None:
        """Let every agent go, and wait until everything is stored."""
        await asyncio.gather(*(engine.stop() for engine in self._engines.values()))
        await self.parts.workers.close()

    async def extend(self, session: str, max_episodes: int, target_sd: float | None) -> None:
        """Give a session more episodes, or a finer target, and let it go on if it was finished.

        Args:
            session: Its id.
            max_episodes: Its budget of episodes from now on; 0 for as it is.
            target_sd: Target of all capabilities from now on; None for as it is.

        Raises:
            ServiceError: There is no such session, an agent plays it, it ended otherwise than by
                its stopping rule, or this would not let it go on.
        """
        async with self._making:
            stored = await self.stored(session)
            engine = self._engines.get(session)
            if engine is not None and engine.playing:
                raise ServiceError(
                    Code.IN_USE,
                    f"session {session} is being played; extend it when its agent is done",
                )
            stop = extend_rule(stored, max_episodes, target_sd)
            if engine is not None:
                self._engines.pop(session)
                await engine.stop()
            await asyncio.to_thread(self.parts.store.extend, session, stop)

    def _forget(self) -> None:
        """Drop the engines of sessions that are over."""
        engines = [(e.session, e) for e in self._engines.values()]
        for session in [s.id for s, e in engines if s.state.over and not e.playing]:
            self._engines.pop(session)


def extend_rule(session: Session, max_episodes: int, target_sd: float | None) -> StoppingRule:
    """Return the stopping rule with which a session goes on.

    Args:
        session: The session.
        max_episodes: Its budget of episodes from now on; 0 for as it is.
        target_sd: Target of all capabilities from now on; None for as it is.

    Raises:
        ServiceError: The session cannot go on, or not with this.
    """
    before, name = session.spec.stop, f"session {session.id}"
    if session.state.over and session.state is not SessionState.FINISHED:
        raise ServiceError(
            Code.SESSION_OVER, f"{name} is {session.state.name.lower()}; create a new one"
        )
    most = max_episodes or before.max_episodes
    if most < before.max_episodes:
        raise ServiceError(
            Code.INVALID_REQUEST,
            f"max_episodes: {name} has a budget of {before.max_episodes} episodes, and {most} is "
            "less",
        )
    used_up = session.episodes >= before.max_episodes
    if session.state.over and not used_up and target_sd is None:
        raise ServiceError(
            Code.INVALID_REQUEST,
            f"{name} did not end by its budget, so a larger one would end it again at once: "
            f"{session.reason}. Give a finer target than {before.target_sd:g} (--target-sd)",
        )
    if session.state.over and used_up and most <= session.episodes:
        raise ServiceError(
            Code.INVALID_REQUEST,
            f"max_episodes: {name} has played {session.episodes} episodes; give more",
        )
    try:
        if target_sd is None:
            return replace(before, max_episodes=most)
        return replace(before, max_episodes=most, target_sd=target_sd, targets={})
    except ValueError as error:
        raise ServiceError(Code.INVALID_REQUEST, str(error)) from None
