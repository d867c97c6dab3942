"""One session, from decision to outcome to the next decision; the only writer of its records."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import replace
from typing import Any

from animalcat.envs.worker_client import WorkerClient, WorkerFault
from animalcat.layouts.inference.fit import FitError
from animalcat.layouts.inference.randomness import rng
from animalcat.service.batteries.battery import Battery
from animalcat.service.converters import episode_header
from animalcat.service.errors import Code, ServiceError
from animalcat.service.measuring.generation import played_arena, played_instance
from animalcat.service.measuring.measurement import Measurement
from animalcat.service.measuring.report import Report, exported_profile, live_profile
from animalcat.service.model import (
    Cause,
    Episode,
    Outcome,
    Session,
    SessionState,
)
from animalcat.service.recording import EpisodeRecorder
from animalcat.service.session.events import Event
from animalcat.service.session.evidence import Evidence
from animalcat.service.session.final_fits import FinalFits
from animalcat.service.session.ledger import MAX_FAULTS_IN_A_ROW
from animalcat.service.session.link import AgentLeftError, AgentLink, EpisodeOpening
from animalcat.service.session.parts import Parts
from animalcat.service.session.play import play, recording_path
from animalcat.service.storage.base import readable

log = logging.getLogger(__name__)


class SessionEngine:
    """Plays a session with as many agents at once as it has slots.

    Every state that matters is in the store before it is acted on, and starting is resuming: the
    stored outcomes and certificates are told to fresh `Evidence`. Outcomes are told in order of
    number, whichever slot ends first, and a decision knows all but the last `lag` of them.

    All methods run on one event loop; each agent has a task. What they share changes under
    `_books` alone: an episode is chosen and begun, or kept and taken in, in one go. The tasks are
    cancelled nowhere but inside the calls of their links.
    """

    def __init__(self, session: Session, battery: Battery, parts: Parts) -> None:
        self.session = session
        self._battery = battery
        self._parts = parts
        self._fits = FinalFits(session, parts)
        self._evidence: Evidence | None = None
        self._preparing = asyncio.Lock()
        self._books = asyncio.Condition()
        self._seats: dict[AgentLink, asyncio.Task[Session]] = {}
        self._present = 0
        self._reaching: asyncio.Task[None] | None = None
        self._ending: asyncio.Task[Session] | None = None
        self._conclusion = ""
        self._broken = False
        self._stopping = False

    @property
    def playing(self) -> bool:
        """Whether an agent is connected, or the session is being finished."""
        return bool(self._seats)

    async def admit(self, link: AgentLink) -> asyncio.Task[Session]:
        """Let an agent play.

        Returns:
            The task that plays. It gives the session when that is over, or raises
            `AgentLeftError` when the link ends first.

        Raises:
            ServiceError: As many agents are connected as the session has slots, or it is over.
        """
        slots = self.session.spec.slots
        while len(self._seats) >= slots:
            leaving = [task for seat, task in self._seats.items() if seat.interrupted]
            if not leaving:
                who = "an agent plays" if slots == 1 else f"{slots} agents play"
                raise ServiceError(
                    Code.AGENT_CONNECTED,
                    f"{who} session {self.session.id} already; end that one first",
                )
            await asyncio.wait(leaving, return_when=asyncio.FIRST_COMPLETED)
        if self.session.state.over:
            raise ServiceError(Code.SESSION_OVER, f"session {self.session.id} is over")
        task = asyncio.create_task(self._run(link), name=f"session {self.session.id}")
        self._seats[link] = task
        task.add_done_callback(lambda done: self._seats.pop(link))
        task.add_done_callback(_log_failure)
        return task

    async def cancel(self) -> Session:
        """End the session; what it learnt stays.

        Raises:
            ServiceError: It was over for another reason.
        """
        await self._let_go(Cause.CANCELLED)
        if not self.session.state.over:
            await self._prepare()
            await self._end_once(self._end_cancelled)
        if self.session.state is not SessionState.CANCELLED:
            raise ServiceError(
                Code.SESSION_OVER,
                f"session {self.session.id} is {self.session.state.name.lower()} already",
            )
        return self.session

    async def current(self) -> Session:
        """The session, with all that is stored taken in."""
        await self._prepare()
        return self.session

    async def allow(self, episodes: int) -> None:
        """Let so many episodes begin in all; beyond that, agents wait until more are allowed.

        That is stored already, with what other sessions are allowed (`Engines.allow`).
        """
        async with self._books:
            self.session = replace(self.session, allowed=episodes)
            self._books.notify_all()

    async def pause(self) -> Session:
        """Begin nothing more; what is being played is played to its end.

        Raises:
            ServiceError: The session is over.
        """
        async with self._books:
            await self._set_paused(True)
        return self.session

    async def resume(self) -> Session:
        """Go on after a pause.

        Raises:
            ServiceError: The session is over.
        """
        async with self._books:
            await self._set_paused(False)
        return self.session

    async def _set_paused(self, paused: bool) -> None:
        self._must_go_on()
        stored = await asyncio.to_thread(self._parts.store.pause, self.session.id, paused)
        self.session = replace(self.session, paused=stored.paused)
        self._books.notify_all()
        self._publish(None)

    def _must_go_on(self) -> None:
        if self.session.state.over:
            raise ServiceError(
                Code.SESSION_OVER,
                f"session {self.session.id} is {self.session.state.name.lower()} already",
            )

    async def invalidate(self, number: int, attempt: int | None, reason: str) -> Episode:
        """Declare an outcome invalid: the measurement is made anew without it.

        Args:
            number: Number of the episode.
            attempt: Which try at it; None: the one that counts.
            reason: Why, in words.

        Raises:
            ServiceError: The session is over or an agent plays it; there is no such attempt, it
                does not count, or a certificate rests on it.
        """
        self._must_go_on()
        if self._seats:
            raise ServiceError(
                Code.IN_USE,
                f"an agent plays session {self.session.id}; let it leave before an outcome is "
                "declared invalid",
            )
        store, session = self._parts.store, self.session.id
        async with self._preparing:
            attempts = readable(await asyncio.to_thread(store.episodes, session))
            tries = [e for e in attempts if e.number == number and (e.counts or e.invalid)]
            wanted = [e.attempt for e in tries if attempt in (e.attempt, None)]
            if not wanted:
                raise ServiceError(
                    Code.UNKNOWN_EPISODE,
                    f"no attempt at episode {number} of session {session} counts; list them",
                )
            certified = [
                n for n in await asyncio.to_thread(store.certificates, session) if n > number
            ]
            if certified:
                raise ServiceError(
                    Code.IN_USE,
                    f"episode {number} of session {session} is part of what was certified at "
                    f"{certified[0]} episodes; cancel the session and create a new one",
                )
            invalid = await asyncio.to_thread(
                store.invalidate_episode, session, number, wanted[-1], reason
            )
            if self._evidence is not None:
                self._evidence.close()
                self._evidence = None
        await self._prepare()
        self._publish(invalid)
        return invalid

    async def conclude(self, reason: str) -> Session:
        """End the session with its profile, as its stopping rule would, once nothing is played.

        Args:
            reason: Why, where the stopping rule has none of its own.
        """
        await self._prepare()
        async with self._books:
            self._conclusion = reason
            self._books.notify_all()
        return self.session if self.session.state.over else await self._end_once(self._finish)

    async def stop(self) -> None:
        """Let the agents go and drop what takes long, as the server is to stop.

        The session can be resumed: what was dropped is done again from what is stored.
        """
        self._stopping = True
        self._fits.close()
        if self._reaching is not None:
            self._reaching.cancel()
        if self._evidence is not None:
            self._evidence.close()
        await self._let_go(Cause.SERVER_STOPPED)

    async def live_profile(self) -> dict[str, Any]:
        """The profile as the live posterior has it now, as JSON values."""
        await self._prepare()
        return (await self._live_report(self.session)).profile

    async def _let_go(self, cause: Cause) -> None:
        """Interrupt all agents and wait until they have gone."""
        tasks = list(self._seats.values())
        for seat in self._seats:
            seat.interrupt(cause)
        if tasks:
            await asyncio.wait(tasks)

    async def _run(self, link: AgentLink) -> Session:
        spec = self.session.spec
        worker = await self._parts.workers.take(spec.backend, spec.observation_spec)
        self._present += 1
        try:
            await self._prepare()
            await worker.open()
            self._fits.warm(self._known.measurement.learner.layout)
            await link.welcome(self.session)
            async with self._books:
                if self.session.state is SessionState.WAITING:
                    await self._set_state(SessionState.RUNNING)
            try:
                while (episode := await self._next(link)) is not None:
                    await self._play(episode, link, worker)
            except AgentLeftError as left:  # who has played the last episode may go at once
                if left.cause is Cause.CANCELLED or not await self._spent():
                    raise
            return await self._end_once(self._finish)
        except AgentLeftError as left:
            if left.cause is Cause.CANCELLED:
                return await self._end_once(self._end_cancelled)
            raise
        except WorkerFault as fault:
            raise ServiceError(Code.SESSION_FAILED, f"what plays arenas fails: {fault}") from fault
        except asyncio.CancelledError:
            if self._stopping:  # a fit that was waited for has been dropped
                raise AgentLeftError(Cause.SERVER_STOPPED) from None
            raise
        except Exception:
            # Whatever was half done: who comes when all have gone starts from what is stored.
            self._broken = True
            for seat in self._seats:
                if seat is not link:
                    seat.interrupt(Cause.SESSION_STOPPED)
            raise
        finally:
            await self._parts.workers.give_back(worker)
            await self._leave()

    async def _leave(self) -> None:
        async with self._books:
            self._present -= 1
            if self._present:
                return
            if self._broken:
                self._broken = False
                self._evidence = None
            if self.session.state is SessionState.RUNNING:
                await self._set_state(SessionState.WAITING)

    async def _prepare(self) -> None:
        """Bring the measurement to where the store is; does nothing the second time."""
        async with self._preparing:
            if self._evidence is not None:
                return
            store, session = self._parts.store, self.session.id
            attempts = readable(await asyncio.to_thread(store.episodes, session))
            for k, episode in enumerate(attempts):
                if episode.outcome is None:  # open when the server before this one ended
                    attempts[k] = replace(
                        episode, outcome=Outcome.FAULT, cause=Cause.SERVER_STOPPED.value
                    )
                    await asyncio.to_thread(store.finish_episode, attempts[k])
            evidence = await Evidence.load(self.session, self._battery, attempts, self._parts)
            self.session = await evidence.shown(self.session)
            self._evidence = evidence
            self._reaching = asyncio.create_task(
                self._find_reach(evidence.measurement), name=f"limits of session {session}"
            )
            self._reaching.add_done_callback(_log_failure)

    async def _find_reach(self, measurement: Measurement) -> None:
        """Say what the battery can tell at most; episodes need not wait for it."""
        await asyncio.to_thread(measurement.find_reach)
        if not self.session.state.over:
            known = measurement.with_reach(self.session.capabilities)
            self.session = replace(self.session, capabilities=known)
            self._publish(None)

    async def _next(self, link: AgentLink) -> Episode | None:
        """The next attempt, begun; None where the session has enough."""
        async with self._books:
            while not self.session.state.over:
                if self._broken:
                    raise AgentLeftError(Cause.SESSION_STOPPED)
                found = await self._chosen(link)
                if found is not None:
                    await self._begin(*found)
                    return found[0]
                if await self._ends():
                    return None
                await link.idle(self._books.wait())
            return None

    async def _spent(self) -> bool:
        """Whether nothing is left to play, so that the session needs no agent any more."""
        async with self._books:
            if self._stopping or self._broken or self.session.state.over:
                return False
            ledger = self._known.ledger
            if self._paused or ledger.idle is not None or await self._may_begin(ledger.begun):
                return False
            return await self._ends()

    async def _ends(self) -> bool:
        """Whether the session is to end, given that nothing can begin now."""
        ledger = self._known.ledger
        if ledger.playing or self._paused:
            return False
        return self._allowed(ledger.begun) or await self._enough(ledger.begun)

    async def _chosen(self, link: AgentLink) -> tuple[Episode, bool] | None:
        """An attempt, and whether its decision is a new one; None where nothing can begin now."""
        if self._paused:
            return None
        ledger = self._known.ledger
        number, decision = ledger.idle, None
        if number is not None:
            decision = ledger.decision(number)
        elif await self._may_begin(number := ledger.begun):
            pass
        else:
            return None
        new = decision is None
        if decision is None:
            decision = await self._known.choose(number)
            if decision is None:
                return None
        attempt = ledger.tries(number)
        return Episode(self.session.id, number, attempt, decision, link.instance), new

    async def _may_begin(self, number: int) -> bool:
        """Whether a new number may begin, with what is told by now; tells what is due."""
        evidence, known = self._known, self._known.due(number)
        await evidence.take_in(known)
        if evidence.ledger.untold < known:
            return False
        if self._allowed(number) and not await self._enough(number):
            return True
        # What was begun is played to its end; then one more look.
        await evidence.take_in(number)
        if evidence.ledger.untold < number or not self._allowed(number):
            return False
        return not await self._enough(number)

    @property
    def _paused(self) -> bool:
        return self.session.paused and not self._conclusion

    def _allowed(self, number: int) -> bool:
        return self.session.allowed is None or number < self.session.allowed

    async def _begin(self, episode: Episode, new: bool) -> None:
        capabilities = self.session.capabilities if new else ()
        await asyncio.to_thread(
            self._parts.store.open_episode, episode, capabilities, self.session.misfit
        )
        self._known.ledger.begin(episode)

    async def _play(self, episode: Episode, link: AgentLink, worker: WorkerClient) -> None:
        """Play, keep, take in."""
        spec = self.session.spec
        instance = played_instance(self._battery, episode.decision)
        try:
            arena_yaml = await asyncio.to_thread(played_arena, self._battery, episode.decision)
            versions = {**self._parts.versions, **worker.versions}
            recorder = await asyncio.to_thread(
                EpisodeRecorder,
                recording_path(self._parts.data, episode.session, episode.number, episode.attempt),
                episode_header(episode, spec, arena_yaml, instance.seed, versions),
            )
            opening = EpisodeOpening(
                episode.number,
                instance.time_limit_steps,
                int(rng(spec.seed, "agent", episode.number).integers(2**63)),
            )
            began = self._parts.monotonic()
            course = await play(
                link, worker, recorder, opening, arena_yaml, instance.seed, instance.task
            )
            seconds = self._parts.monotonic() - began
            physics_steps = course.steps * spec.observation_spec.decision_period
            finished = replace(
                self._known.ledger.judged(episode, course, instance, physics_steps),
                seconds=seconds,
                versions=versions,
            )
            assert finished.outcome is not None
            await asyncio.to_thread(recorder.finish, finished.outcome, finished.outcomes)
            async with self._books:
                await self._keep(finished)
        finally:
            async with self._books:
                self._known.ledger.drop(episode.number)
                self._books.notify_all()
        if course.left is not None:
            raise AgentLeftError(course.left)
        if course.last is not None:
            last = None if course.fault else course.last
            await link.end(episode.number, course.steps, course.reward, last)

    async def _keep(self, episode: Episode) -> None:
        """Store how an attempt ended, and take in what is due."""
        await asyncio.to_thread(self._parts.store.finish_episode, episode)
        self._known.ledger.end(episode)
        if self._broken:
            return
        if episode.backend_fault:
            log.warning(
                "session %s, %s: %s", episode.session, episode.decision.instance, episode.cause
            )
            await self._after_fault(episode)
        await self._known.take_in_due()
        self.session = await self._known.shown(self.session)
        if self.session.misfit:
            self._fits.warm(self._known.measurement.learner.widened_layout)
        self._publish(episode)

    async def _after_fault(self, episode: Episode) -> None:
        instance = episode.decision.instance
        if instance in self._known.ledger.set_aside:
            await self._known.set_aside(instance)
        if not self._known.measurement.learner.left:
            reason = f"no instance can be played, at last because of {episode.cause}"
            await self._end_live(SessionState.FAILED, reason)
            raise ServiceError(Code.SESSION_FAILED, f"{reason}; mend that, create a new session")
        if self._known.ledger.backend_fails:
            raise ServiceError(
                Code.SESSION_FAILED,
                f"what plays arenas failed {MAX_FAULTS_IN_A_ROW} times in a row, at last with: "
                f"{episode.cause}. Every outcome is kept; resume the session when that is mended",
            )

    async def _enough(self, number: int) -> bool:
        """Whether no new number is to begin."""
        stop = self.session.spec.stop
        if self._conclusion or (stop.combine == "any" and number >= stop.max_episodes):
            return True
        return (await self._known.verdict()).stop

    async def _end_once(self, end: Callable[[], Coroutine[Any, Any, Session]]) -> Session:
        """End the session, or wait until whoever came first has ended it."""
        if self._ending is None:
            self._ending = asyncio.create_task(end())
            self._ending.add_done_callback(self._ended)
        return await asyncio.shield(self._ending)

    def _ended(self, ending: asyncio.Task[Session]) -> None:
        if ending.cancelled() or ending.exception() is not None:
            self._ending = None  # the next agent tries again

    async def _finish(self) -> Session:
        """Fit by NUTS, keep the profile, end the session."""
        await self._settle(certify=self.session.spec.certify)
        evidence, measurement = self._known, self._known.measurement
        if self._reaching is not None:
            with suppress(Exception):  # logged; a profile without limits is a profile
                await self._reaching
        try:
            fit = await self._fits.profile(measurement.learner)
        except FitError as error:
            # All is played: what is known is kept, and says that it is not certified.
            log.warning("session %s ends without its last fit: %s", self.session.id, error)
            fit = error
        second = await self._fits.second_reading(measurement.learner)
        certificates = await asyncio.to_thread(self._parts.store.certificates, self.session.id)
        verdict = await evidence.verdict()
        reason = verdict.reason or self._conclusion
        async with evidence.thinking:
            report = await asyncio.to_thread(
                exported_profile,
                replace(self.session, reason=reason),
                measurement,
                fit,
                evidence.ledger.attempts,
                certificates,
                self._parts.versions,
                second,
            )
        await self._end(SessionState.FINISHED, reason, report)
        return self.session

    async def _end_cancelled(self) -> Session:
        await self._settle(certify=False)
        return await self._end_live(SessionState.CANCELLED, Cause.CANCELLED.value)

    async def _settle(self, *, certify: bool) -> None:
        """Wait for what is being played, and tell all that counts."""
        async with self._books:
            await self._books.wait_for(lambda: not self._known.ledger.playing)
            await self._known.take_in_all(certify=certify)

    async def _end_live(self, state: SessionState, reason: str) -> Session:
        """End with what the live posterior knows."""
        ended = replace(self.session, state=state, reason=reason)
        await self._end(state, reason, await self._live_report(ended))
        return self.session

    async def _live_report(self, session: Session) -> Report:
        evidence = self._known
        async with evidence.thinking:
            return await asyncio.to_thread(
                live_profile,
                session,
                evidence.measurement,
                evidence.ledger.attempts,
                self._parts.versions,
            )

    async def _end(self, state: SessionState, reason: str, report: Report) -> None:
        self.session = await asyncio.to_thread(
            self._parts.store.finish_session,
            self.session.id,
            state,
            reason,
            report.profile,
            report.capabilities,
            self._known.measurement.learner.misfit,
        )
        self._publish(None)

    async def _set_state(self, state: SessionState) -> None:
        stored = await asyncio.to_thread(self._parts.store.set_state, self.session.id, state)
        self.session = replace(self.session, state=stored.state, reason=stored.reason)
        self._publish(None)

    def _publish(self, episode: Episode | None) -> None:
        self._parts.bus.publish(Event(self.session, episode))

    @property
    def _known(self) -> Evidence:
        assert self._evidence is not None, "prepare first"
        return self._evidence


def _log_failure(task: asyncio.Task[Session] | asyncio.Task[None]) -> None:
    """Log what is nobody's doing; whoever waited for the task may be gone."""
    error = None if task.cancelled() else task.exception()
    if error is not None and not isinstance(error, AgentLeftError):
        log.error("%s stopped: %s", task.get_name(), error, exc_info=error)
