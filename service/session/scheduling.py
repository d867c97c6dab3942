"""Chooses the next attempt of a session, and draws the consequences when one has ended."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Final

from animalcat.layouts.adaptive.statuses import CONFIRMED
from animalcat.service.batteries.battery import Battery
from animalcat.service.errors import Code, ServiceError
from animalcat.service.memory import pause_after
from animalcat.service.session.disk import LOOK_SECONDS
from animalcat.service.session.evidence import MAX_FAULTS_IN_A_ROW, Evidence
from animalcat.service.session.link import AgentLeftError, AgentLink
from animalcat.service.session.parts import Parts
from animalcat.service.session.record import SessionRecord
from animalcat.text.counts import count_of
from animalcat.values import CapabilityStatus, Cause, Episode, Ruling

log = logging.getLogger(__name__)


_AS_BEFORE: Final[tuple[CapabilityStatus, ...]] = ()
"""No capabilities to store: they were stored together with an earlier attempt at the decision."""


class NothingToPlayError(ServiceError):
    """No instance of the battery can be played, so the session cannot go on, now or later."""

    def __init__(self, reason: str) -> None:
        super().__init__(Code.SESSION_FAILED, f"{reason}; fix that, then create a new session")
        self.reason = reason


class Schedule:
    """What the agents of one session play, and in which order.

    The agents share what has begun and what has ended. Both change under one lock: choosing and
    beginning an episode is one operation, and so is storing and telling it.
    """

    def __init__(self, record: SessionRecord, battery: Battery, parts: Parts) -> None:
        self._record = record
        self._battery = battery
        self._parts = parts
        self._books = asyncio.Condition()
        self._loading = asyncio.Lock()
        self._evidence: Evidence | None = None
        self._last_look: int | None = None
        self._refuted: int | None = None
        self._closed = False
        self._broken = False
        self._draining = False
        self._loaded = False
        self._starved = 0
        self._starving = False

    @property
    def evidence(self) -> Evidence:
        """What is known of the session; `load` must come first."""
        assert self._evidence is not None, "load first"
        return self._evidence

    @property
    def loaded(self) -> bool:
        """Whether the evidence is in memory."""
        return self._evidence is not None

    @property
    def busy(self) -> bool:
        """Whether something is under way, or would be lost that is not in the store."""
        if self._loading.locked() or self._books.locked() or self._broken:
            return True
        if self._closed:
            return True
        return self._evidence is not None and self._evidence.busy

    async def load(self) -> None:
        """Bring the evidence up to date with the store; a second call does nothing."""
        async with self._loading:
            if self._evidence is not None:
                return
            # At the first time here, an earlier server left it open; later, a failure of this one.
            why = Cause.SERVER_FAILED if self._loaded else Cause.SERVER_STOPPED
            evidence = await Evidence.load(
                self._record.session, self._battery, self._parts, why, self._record.waiting
            )
            self._loaded = True
            if not self._record.session.state.over:  # then its profile says what is known
                self._record.show(await evidence.progress())
                evidence.begin_to_find_reach(self._record)
            self._evidence = evidence

    def break_off(self) -> None:
        """Let nothing more begin after an error, which may have left something half done."""
        self._broken = True

    def mend(self) -> None:
        """After `break_off`, once nobody plays any more, start again from what is stored."""
        if self._broken:
            self._broken = False
            self.unload()

    def stop(self) -> None:
        """Cancel long computations, because the server is stopping."""
        if self._evidence is not None:
            self._evidence.close()

    @asynccontextmanager
    async def changing(self) -> AsyncGenerator[None]:
        """Let nothing be chosen or kept in the block; who waits for a turn looks again after it."""
        async with self._books:
            yield
            self._books.notify_all()

    @asynccontextmanager
    async def corrected(self) -> AsyncGenerator[None]:
        """Have the block correct what is stored, then build the evidence from that again."""
        async with self._loading:
            yield
            self.unload()
        await self.load()

    async def drain(self) -> None:
        """Begin nothing more, because the server will stop; what is played is played to its end."""
        async with self.changing():
            self._draining = True

    def close(self) -> None:
        """Let nothing more begin, because the session is being ended with what is known."""
        self._closed = True

    def go_on(self) -> bool:
        """Let another episode begin, though the live posterior says that it is enough.

        Returns:
            Whether one can: not if the budget is used up, or nothing came of it the last time.
        """
        outcomes = self.evidence.measurement.learner.n
        if self._full or self._refuted == outcomes:
            return False
        self._refuted = outcomes
        return True

    def reopen(self) -> None:
        """Let episodes begin again, because the session could not be ended."""
        self._closed = False

    async def next(self, link: AgentLink) -> Episode | None:
        """Wait until an attempt can begin, and begin it.

        Args:
            link: The agent that is to play it.

        Returns:
            The attempt; None if the session has enough, is being ended or is over.

        Raises:
            AgentLeftError: The agent left, or an error of another agent's play stopped the session.
        """
        async with self._books:
            while not (self._closed or self._record.session.state.over):
                if self._broken:
                    raise AgentLeftError(Cause.SESSION_STOPPED)
                if self._draining:
                    raise AgentLeftError(Cause.SERVER_STOPPED)
                if self._record.session.unjudged:
                    raise AgentLeftError(Cause.SESSION_STOPPED)
                if await self._parts.disk.short() and await self._could_begin():
                    await self._wait_for_disk(link)
                    continue
                if self._starving and await self._could_begin():
                    await self._wait_for_memory(link)
                    continue
                episode = await self._choose(link)
                if episode is not None:
                    return episode
                if await self._has_enough():
                    return None
                await link.idle(self._books.wait())
            return None

    async def keep(self, episode: Episode) -> None:
        """Store how an attempt ended, and tell what the next decision is to know.

        Raises:
            NothingToPlayError: The backend failed once too often: no instance is left.
            ServiceError: The backend failed too often in a row, or a certificate cannot be made.
        """
        async with self._books:
            await asyncio.to_thread(self._parts.store.finish_episode, episode, self._parts.files)
            self.evidence.end(episode)
            if episode.ruling is Ruling.AWAITED:
                self._record.await_ruling(*self._record.session.unjudged, episode.number)
            if self._broken:
                return
            if episode.kind is Cause.OUT_OF_MEMORY:
                self._starved, self._starving = self._starved + 1, True
            elif episode.settled:
                self._starved = 0
            if episode.backend_fault:
                await self._set_aside_after_fault(episode)
            elif self.evidence.replaces(episode):
                await self.evidence.exclude(episode.instance)
            await self.evidence.take_in_due()
            self._record.show(await self.evidence.progress())
            self._record.tell(episode)

    async def release(self, number: int) -> None:
        """Free an episode number for others, even if the end of its attempt could not be stored."""
        async with self.changing():
            self.evidence.drop(number)

    async def is_spent(self) -> bool:
        """Return whether nothing is left to play, so that the session needs no more agents."""
        async with self._books:
            if self._closed:
                return True
            if self._broken or self._record.session.state.over:
                return False
            await self._tell_due()
            if self.evidence.idle is not None:
                return False
            if await self._may_begin():
                return False
            return await self._has_enough()

    async def settle(self, *, certify: bool) -> None:
        """Wait for what is being played, and tell every outcome that counts, as the session ends.

        `close` comes first, so that nothing begins afterwards.

        Args:
            certify: Whether to apply the certificates that are due, and wait for them if need be.
        """
        async with self._books:
            self._books.notify_all()  # who waits for a turn need not
            await self._books.wait_for(lambda: not self.evidence.playing)
            await self._close_left()
            await self.evidence.take_in_all(certify=certify)

    def unload(self) -> None:
        """Drop the evidence; the next `load` builds it again from what is stored."""
        if self._evidence is not None:
            self._evidence.close()
            self._evidence = self._refuted = None

    async def _could_begin(self) -> bool:
        """Return whether `_choose` would begin something."""
        if self._is_paused:
            return False
        if self.evidence.idle is not None:
            return True
        await self._tell_due()
        return await self._may_begin()

    async def _wait_for_disk(self, link: AgentLink) -> None:
        """Wait until there is room for what is to be played, or something has changed.

        An episode writes a recording and an outcome, and without room neither can be kept.
        """
        with self._record.waiting(self._parts.disk.wanted):
            while await self._parts.disk.short():
                await link.idle(self._look_again())
                if self._may_not_begin or not await self._could_begin():
                    return

    async def _wait_for_memory(self, link: AgentLink) -> None:
        """Wait after a simulator has died for want of memory, each time longer."""
        loop, memory = asyncio.get_running_loop(), self._parts.memory
        end = loop.time() + pause_after(self._starved)
        times = count_of(self._starved, "time")
        with self._record.waiting(f"memory for its simulator, which ran out of it {times}"):
            while loop.time() < end or memory.short():
                await link.idle(self._look_again())
                if self._may_not_begin or not await self._could_begin():
                    return
        self._starving = False

    @property
    def _may_not_begin(self) -> bool:
        """Whether nothing may begin, whatever is left to play."""
        session = self._record.session
        over = self._closed or session.state.over or bool(session.unjudged)
        return over or self._broken or self._draining

    async def _look_again(self) -> None:
        """Release the lock, and wait for a change or a while."""
        with suppress(TimeoutError):
            async with asyncio.timeout(LOOK_SECONDS):
                await self._books.wait()

    async def _choose(self, link: AgentLink) -> Episode | None:
        """Choose an attempt and begin it in the store; None if none can begin now."""
        if self._is_paused:  # not even what was begun and does not count yet
            return None
        evidence = self.evidence
        if evidence.left and link.resumes:
            return evidence.resume()
        await self._close_left()
        number, decision = evidence.idle, None
        if number is not None:
            decision = evidence.decision(number)
        else:
            await self._tell_due()
            if not await self._may_begin():
                return None
            number = evidence.begun
        session, known = self._record.session, _AS_BEFORE
        if decision is None:
            decision, known = await evidence.choose(number), session.capabilities
            if decision is None:
                return None
        decision = evidence.counted_on(decision)
        seen_before = evidence.seen_before(number, decision)
        tries = evidence.tries(number)
        episode = Episode(session.id, number, tries, decision, link.process, seen=seen_before)
        await asyncio.to_thread(self._parts.store.open_episode, episode, known, session.misfit)
        evidence.begin(episode)
        return episode

    async def _close_left(self) -> None:
        """Store how attempts ended that an earlier process left open, as none goes on with them."""
        for episode in [*self.evidence.left.values()]:
            await asyncio.to_thread(self._parts.store.finish_episode, episode, self._parts.files)
            self.evidence.end(episode)
            if self.evidence.replaces(episode):
                await self.evidence.exclude(episode.instance)
            self._record.tell(episode)

    async def _tell_due(self) -> None:
        """Tell the outcomes that the next new decision is to know.

        If those are enough to stop, all episodes begun so far are played to their end and told as
        well, for one last look. Whether that happens follows from outcomes alone, never from which
        slot was quicker.
        """
        evidence = self.evidence
        await evidence.take_in_due()
        begun = evidence.begun
        if evidence.due(begun) < begun and self._knows_due() and await self._is_enough():
            self._last_look = begun
        if self._last_look == begun:
            await evidence.take_in(begun)

    def _knows_due(self) -> bool:
        """Return whether all outcomes were told that the next new decision is to know."""
        wanted = self.evidence.begun
        if self._last_look != wanted:
            wanted = self.evidence.due(wanted)
        return self.evidence.untold >= wanted

    async def _may_begin(self) -> bool:
        """Return whether a new episode may begin, judging by the outcomes told."""
        return self._knows_due() and not await self._is_enough()

    async def _has_enough(self) -> bool:
        """Return whether the session is to end, given that nothing can begin now."""
        return not self.evidence.playing and not self._is_paused

    async def _is_enough(self) -> bool:
        """Return whether the stopping rule forbids a new episode."""
        if self._full:
            return True
        verdict = await self.evidence.verdict()
        refuted = self._refuted == self.evidence.measurement.learner.n
        return verdict.stop and not (refuted and verdict.end in CONFIRMED)

    @property
    def _full(self) -> bool:
        """Whether as many episodes were begun as the budget has."""
        stop = self._record.session.spec.stop
        return stop.combine == "any" and self._scored_count >= stop.max_episodes

    @property
    def _scored_count(self) -> int:
        """How many episodes that are to count were begun; below 0 while practice goes on."""
        return self.evidence.begun - self._record.session.spec.practice

    @property
    def _is_paused(self) -> bool:
        return self._record.session.held

    async def _set_aside_after_fault(self, episode: Episode) -> None:
        """Set aside an instance that failed too often, and give up if too much has failed."""
        log.warning("session %s, %s: %s", episode.session, episode.decision.instance, episode.cause)
        instance, evidence = episode.decision.instance, self.evidence
        if instance in evidence.set_aside:
            await evidence.exclude(instance)
        if not evidence.measurement.learner.left:
            self.break_off()
            raise NothingToPlayError(
                f"no instance can be played; the last attempt failed with: {episode.cause}"
            )
        if evidence.backend_fails:
            self.break_off()
            raise ServiceError(
                Code.SESSION_FAILED,
                f"the backend that plays arenas failed {MAX_FAULTS_IN_A_ROW} times in a row, most "
                f"recently with: {episode.cause}. Every outcome is kept; fix that, then resume the "
                "session",
            )
