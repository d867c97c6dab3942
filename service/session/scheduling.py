"""Scheduling: which attempt a session plays next, and what follows when one has ended."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from animalcat.service.batteries.battery import Battery
from animalcat.service.errors import Code, ServiceError
from animalcat.service.model import CapabilityStatus, Cause, Episode
from animalcat.service.session.evidence import Evidence
from animalcat.service.session.ledger import MAX_FAULTS_IN_A_ROW
from animalcat.service.session.link import AgentLeftError, AgentLink
from animalcat.service.session.parts import Parts
from animalcat.service.session.record import SessionRecord
from animalcat.service.storage.base import readable

log = logging.getLogger(__name__)


_AS_BEFORE: Final[tuple[CapabilityStatus, ...]] = ()
"""Stored with an attempt whose decision was made, and stored, before."""


class NothingToPlayError(ServiceError):
    """No instance of the battery can be played, so the session cannot go on, now or later."""

    def __init__(self, reason: str) -> None:
        super().__init__(Code.SESSION_FAILED, f"{reason}; mend that, create a new session")
        self.reason = reason


class Schedule:
    """What the agents of one session play, in which order.

    They share what is begun and what has ended. That changes under one lock: an episode is chosen
    and begun, or stored and told, in one go.
    """

    def __init__(self, record: SessionRecord, battery: Battery, parts: Parts) -> None:
        self._record = record
        self._battery = battery
        self._parts = parts
        self._books = asyncio.Condition()
        self._loading = asyncio.Lock()
        self._evidence: Evidence | None = None
        self._last_look: int | None = None
        self._conclusion = ""
        self._broken = False

    @property
    def evidence(self) -> Evidence:
        """What is known; `load` comes first."""
        assert self._evidence is not None, "load first"
        return self._evidence

    @property
    def conclusion(self) -> str:
        """Why the session is to end although its stopping rule would go on; empty: it is not."""
        return self._conclusion

    async def load(self) -> None:
        """Bring the evidence to where the store is; does nothing the second time."""
        async with self._loading:
            if self._evidence is not None:
                return
            evidence = await Evidence.load(self._record.session, self._battery, self._parts)
            self._record.show(await evidence.progress())
            evidence.begin_to_find_reach(self._record)
            self._evidence = evidence

    def break_off(self) -> None:
        """Begin nothing more after an error, whatever was half done."""
        self._broken = True

    def mend(self) -> None:
        """Go on after `break_off` from what is stored, as nobody plays any more."""
        if self._broken:
            self._broken = False
            self._unload()

    def stop(self) -> None:
        """Drop what takes long, as the server is to stop."""
        if self._evidence is not None:
            self._evidence.close()

    async def allow(self, episodes: int) -> None:
        """Let so many episodes begin in all, as is stored already."""
        async with self._books:
            self._record.allow(episodes)
            self._books.notify_all()

    async def set_paused(self, paused: bool) -> None:
        """Begin nothing more, or go on; what is being played is played to its end.

        Raises:
            ServiceError: The session is over.
        """
        async with self._books:
            await self._record.set_paused(paused)
            self._books.notify_all()

    async def conclude(self, reason: str) -> None:
        """Begin nothing more: the session is to end for a reason that its stopping rule lacks."""
        async with self._books:
            self._conclusion = reason
            self._books.notify_all()

    async def next(self, link: AgentLink) -> Episode | None:
        """The next attempt, begun; waits until there is one.

        Args:
            link: The agent that is to play it.

        Returns:
            The attempt; None where the session has enough or is over.

        Raises:
            AgentLeftError: The agent leaves, or another's error has stopped the session.
        """
        async with self._books:
            while not self._record.session.state.over:
                if self._broken:
                    raise AgentLeftError(Cause.SESSION_STOPPED)
                episode = await self._choose(link.process)
                if episode is not None:
                    return episode
                if await self._has_enough():
                    return None
                await link.idle(self._books.wait())
            return None

    def is_second_chance(self, episode: Episode) -> bool:
        """Whether the agent voided an earlier attempt at what it is to play."""
        return self.evidence.ledger.voided_before(episode)

    async def keep(self, episode: Episode) -> None:
        """Store how an attempt ended, and tell what the next decision is to know.

        Raises:
            NothingToPlayError: What plays arenas failed once too often: no instance is left.
            ServiceError: It failed too often in a row; a certificate cannot be had.
        """
        async with self._books:
            await asyncio.to_thread(self._parts.store.finish_episode, episode)
            self.evidence.ledger.end(episode)
            if self._broken:
                return
            if episode.backend_fault:
                await self._set_aside_after_fault(episode)
            await self.evidence.take_in_due()
            self._record.show(await self.evidence.progress())
            self._record.tell(episode)

    async def release(self, number: int) -> None:
        """Let others go on, whether or not the end of an attempt could be stored."""
        async with self._books:
            self.evidence.ledger.drop(number)
            self._books.notify_all()

    async def is_spent(self) -> bool:
        """Whether nothing is left to play, so that the session needs no agent any more."""
        async with self._books:
            if self._broken or self._record.session.state.over:
                return False
            await self._tell_due()
            if self.evidence.ledger.idle is not None or await self._may_begin():
                return False
            return await self._has_enough()

    async def settle(self, *, certify: bool) -> None:
        """Wait for what is being played, and tell all that counts, as the session ends.

        Args:
            certify: Apply the certificates that are due, which may have to be waited for.
        """
        async with self._books:
            await self._books.wait_for(lambda: not self.evidence.ledger.playing)
            await self.evidence.take_in_all(certify=certify)

    async def invalidate(self, number: int, attempt: int | None, reason: str) -> Episode:
        """Declare an outcome invalid: what is known is made anew without it.

        Args:
            number: Number of the episode.
            attempt: Which try at it; None: the one that counts.
            reason: Why, in words.

        Raises:
            ServiceError: There is no such attempt, it does not count, or a certificate rests on it.
        """
        store, session = self._parts.store, self._record.session.id
        async with self._loading:
            attempts = readable(await asyncio.to_thread(store.episodes, session))
            tries = [e for e in attempts if e.number == number and (e.counts or e.invalid)]
            wanted = [e.attempt for e in tries if attempt in (e.attempt, None)]
            if not wanted:
                raise ServiceError(
                    Code.UNKNOWN_EPISODE,
                    f"no attempt at episode {number} of session {session} counts; list them",
                )
            certified = await asyncio.to_thread(store.certificates, session)
            if after := [n for n in certified if n > number]:
                raise ServiceError(
                    Code.IN_USE,
                    f"episode {number} of session {session} is part of what was certified at "
                    f"{after[0]} episodes; cancel the session and create a new one",
                )
            invalid = await asyncio.to_thread(
                store.invalidate_episode, session, number, wanted[-1], reason
            )
            self._unload()
        await self.load()
        self._record.tell(invalid)
        return invalid

    def _unload(self) -> None:
        """Forget the evidence, which the next `load` makes anew from what is stored."""
        if self._evidence is not None:
            self._evidence.close()
            self._evidence = None

    async def _choose(self, process: str) -> Episode | None:
        """An attempt, begun in the store; None where none can begin now."""
        if self._paused:
            return None
        ledger = self.evidence.ledger
        number, decision = ledger.idle, None
        if number is not None:
            decision = ledger.decision(number)
        else:
            await self._tell_due()
            if not await self._may_begin():
                return None
            number = ledger.begun
        session, known = self._record.session, _AS_BEFORE
        if decision is None:
            decision, known = await self.evidence.choose(number), session.capabilities
            if decision is None:
                return None
        episode = Episode(session.id, number, ledger.tries(number), decision, process)
        await asyncio.to_thread(self._parts.store.open_episode, episode, known, session.misfit)
        ledger.begin(episode)
        return episode

    async def _tell_due(self) -> None:
        """Tell what the next new decision is to know.

        Where that is enough already, what was begun is played to its end and told too, for one last
        look. Whether it comes to that follows from outcomes alone, never from who was quicker.
        """
        evidence = self.evidence
        await evidence.take_in_due()
        begun = evidence.ledger.begun
        if evidence.due(begun) < begun and self._knows_due() and await self._is_enough():
            self._last_look = begun
        if self._last_look == begun:
            await evidence.take_in(begun)

    def _knows_due(self) -> bool:
        """Whether the next new decision would know all that it is to know."""
        ledger = self.evidence.ledger
        wanted = ledger.begun
        if self._last_look != wanted:
            wanted = self.evidence.due(wanted)
        return ledger.untold >= wanted

    async def _may_begin(self) -> bool:
        """Whether a new number may begin, by what was told."""
        return self._knows_due() and self._is_allowed() and not await self._is_enough()

    async def _has_enough(self) -> bool:
        """Whether the session is to end, given that nothing can begin now."""
        if self.evidence.ledger.playing or self._paused:
            return False
        return self._is_allowed() or await self._is_enough()

    async def _is_enough(self) -> bool:
        """Whether no new number is to begin, by the stopping rule or a conclusion."""
        stop = self._record.session.spec.stop
        full = stop.combine == "any" and self.evidence.ledger.begun >= stop.max_episodes
        return bool(self._conclusion) or full or (await self.evidence.verdict()).stop

    def _is_allowed(self) -> bool:
        """Whether a campaign lets the next new number begin."""
        allowed = self._record.session.allowed
        return allowed is None or self.evidence.ledger.begun < allowed

    @property
    def _paused(self) -> bool:
        return self._record.session.paused and not self._conclusion

    async def _set_aside_after_fault(self, episode: Episode) -> None:
        """Set an instance aside that failed too often; give up where too much fails."""
        log.warning("session %s, %s: %s", episode.session, episode.decision.instance, episode.cause)
        instance, ledger = episode.decision.instance, self.evidence.ledger
        if instance in ledger.set_aside:
            await self.evidence.set_aside(instance)
        if not self.evidence.measurement.learner.left:
            self.break_off()
            raise NothingToPlayError(
                f"no instance can be played, at last because of {episode.cause}"
            )
        if ledger.backend_fails:
            self.break_off()
            raise ServiceError(
                Code.SESSION_FAILED,
                f"what plays arenas failed {MAX_FAULTS_IN_A_ROW} times in a row, at last with: "
                f"{episode.cause}. Every outcome is kept; resume the session when that is mended",
            )
