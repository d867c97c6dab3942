"""One session, from decision to outcome to the next decision; the only writer of its records."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from animalcat.arena_configs.outcome import success
from animalcat.envs.worker_client import WorkerClient, WorkerFault
from animalcat.layouts.fit import FitError, FitRequest, FitResult
from animalcat.layouts.fitter import Fitter
from animalcat.layouts.randomness import rng
from animalcat.layouts.spec import Layout
from animalcat.service.battery import Battery, Instance
from animalcat.service.certificates import Certifier, fit_seed, fit_twice
from animalcat.service.converters import episode_header
from animalcat.service.errors import Code, ServiceError
from animalcat.service.events import Event, EventBus
from animalcat.service.link import AgentLeftError, AgentLink, EpisodeOpening
from animalcat.service.measurement import Measurement
from animalcat.service.model import (
    CapabilityStatus,
    Cause,
    Episode,
    Outcome,
    Session,
    SessionState,
)
from animalcat.service.play import Course, play, recording_path
from animalcat.service.recording import EpisodeRecorder
from animalcat.service.reports import Report, exported_profile, live_profile
from animalcat.service.storage.base import SessionStore
from animalcat.service.workers import Workers

log = logging.getLogger(__name__)

MAX_FAULTS: Final = 3
"""Backend faults of an instance after which it is set aside."""
MAX_FAULTS_IN_A_ROW: Final = 9
"""Backend faults in a row, whatever the instance, after which the session pauses."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What engines share.

    Attributes:
        store: Where records are kept.
        data: The data directory.
        workers: What plays arenas.
        fitter: The process that runs NUTS.
        bus: Who is told of progress.
        versions: Versions of what could change the numbers, by package.
        monotonic: Tells seconds, for budgets of time.
    """

    store: SessionStore
    data: Path
    workers: Workers
    fitter: Fitter
    bus: EventBus
    versions: Mapping[str, str]
    monotonic: Callable[[], float] = time.monotonic


class SessionEngine:
    """Plays a session with one agent at a time.

    Every state that matters is in the store before it is acted on, and starting is resuming: the
    stored outcomes and certificates are told to a fresh `Measurement`. All methods run on one
    event loop; the measurement is touched in threads, one at a time (`_thinking`). The engine's
    task is cancelled nowhere but inside the calls of its link.
    """

    def __init__(self, session: Session, battery: Battery, parts: Parts) -> None:
        self.session = session
        self._battery = battery
        self._parts = parts
        self._attempts: list[Episode] = []
        self._measurement: Measurement | None = None
        self._certifier: Certifier | None = None
        self._thinking = asyncio.Lock()
        self._preparing = asyncio.Lock()
        self._link: AgentLink | None = None
        self._task: asyncio.Task[Session] | None = None
        self._warming: asyncio.Task[None] | None = None
        self._fitting: asyncio.Task[FitResult] | None = None
        self._stopping = False

    @property
    def playing(self) -> bool:
        """Whether an agent is connected, or the session is being finished."""
        return self._task is not None and not self._task.done()

    @property
    def _seconds(self) -> float:
        """How long was played, attempts that did not count among it."""
        return sum(episode.seconds for episode in self._attempts)

    async def admit(self, link: AgentLink) -> asyncio.Task[Session]:
        """Let an agent play.

        Returns:
            The task that plays. It gives the session when that is over, or raises
            `AgentLeftError` when the link ends first.

        Raises:
            ServiceError: Another agent is connected, or the session is over.
        """
        while self._task is not None and not self._task.done():
            if self._link is not None and not self._link.interrupted:
                raise ServiceError(
                    Code.AGENT_CONNECTED,
                    f"an agent plays session {self.session.id} already; end that one first",
                )
            await asyncio.wait([self._task])
        if self.session.state.over:
            raise ServiceError(Code.SESSION_OVER, f"session {self.session.id} is over")
        self._link = link
        self._task = asyncio.create_task(self._run(link), name=f"session {self.session.id}")
        self._task.add_done_callback(_log_failure)
        return self._task

    async def cancel(self) -> Session:
        """End the session; what it learnt stays.

        Raises:
            ServiceError: It was over for another reason.
        """
        if self.playing and self._link is not None and self._task is not None:
            self._link.interrupt(Cause.CANCELLED)
            await asyncio.wait([self._task])
        if not self.session.state.over:
            await self._prepare()
            await self._end_live(SessionState.CANCELLED, Cause.CANCELLED.value)
        if self.session.state is not SessionState.CANCELLED:
            raise ServiceError(
                Code.SESSION_OVER,
                f"session {self.session.id} is {self.session.state.name.lower()} already",
            )
        return self.session

    async def stop(self) -> None:
        """Let the agent go and drop what takes long, as the server is to stop.

        The session can be resumed: what was dropped is done again from what is stored.
        """
        self._stopping = True
        for task in (self._warming, self._fitting):
            if task is not None:
                task.cancel()
        if self._certifier is not None:
            self._certifier.close()
        if self.playing and self._link is not None and self._task is not None:
            self._link.interrupt(Cause.SERVER_STOPPED)
            await asyncio.wait([self._task])

    async def live_profile(self) -> dict[str, Any]:
        """The profile as the live posterior has it now, as JSON values."""
        await self._prepare()
        measurement = self._known()
        async with self._thinking:
            report = await asyncio.to_thread(
                live_profile, self.session, measurement, self._attempts, self._parts.versions
            )
        return report.profile

    async def _run(self, link: AgentLink) -> Session:
        spec = self.session.spec
        worker = self._parts.workers.take(spec.backend, spec.observation_spec)
        try:
            await self._prepare()
            await worker.open()
            self._warming = asyncio.create_task(self._warm(self._known().layout))
            await link.welcome(self.session)
            await self._set_state(SessionState.RUNNING)
            while not await self._enough():
                await self._episode(link, worker)
            return await self._finish()
        except AgentLeftError as left:
            if left.cause is Cause.CANCELLED:
                return await self._end_live(SessionState.CANCELLED, Cause.CANCELLED.value)
            raise
        except WorkerFault as fault:
            raise ServiceError(Code.SESSION_FAILED, f"what plays arenas fails: {fault}") from fault
        except asyncio.CancelledError:
            if self._stopping:  # a fit that was waited for has been dropped
                raise AgentLeftError(Cause.SERVER_STOPPED) from None
            raise
        except Exception:
            # Whatever was half done: the next agent starts from what is stored.
            self._measurement = None
            raise
        finally:
            await self._parts.workers.give_back(worker)
            if self.session.state is SessionState.RUNNING:
                await self._set_state(SessionState.WAITING)

    async def _warm(self, layout: Layout) -> None:
        """Compile the layout, which takes seconds, before the first fit is wanted."""
        try:
            await self._parts.fitter.start(layout)
        except FitError as error:
            log.warning("session %s: %s", self.session.id, error)  # the fit itself will say so

    async def _prepare(self) -> None:
        """Bring the measurement to where the store is; does nothing the second time."""
        async with self._preparing:
            if self._measurement is not None:
                return
            store, session = self._parts.store, self.session.id
            attempts = await asyncio.to_thread(store.episodes, session)
            for k, episode in enumerate(attempts):
                if episode.outcome is None:  # open when the server before this one ended
                    attempts[k] = replace(
                        episode, outcome=Outcome.FAULT, cause=Cause.SERVER_STOPPED.value
                    )
                    await asyncio.to_thread(store.finish_episode, attempts[k])
            measurement = await asyncio.to_thread(Measurement, self.session.spec, self._battery)
            certifier = Certifier(
                self.session,
                measurement,
                self._thinking,
                store,
                self._parts.fitter,
                self._parts.data,
            )
            await certifier.load()
            for episode in attempts:
                if episode.outcome is not None and episode.outcome.counts:
                    await self._tell(measurement, certifier, episode)
            for instance in _set_aside(attempts):
                await asyncio.to_thread(measurement.set_aside, instance)
            self._attempts = attempts
            self._certifier = certifier
            self._measurement = measurement
            await self._refresh()

    async def _tell(self, measurement: Measurement, certifier: Certifier, episode: Episode) -> None:
        """Take in an outcome that is stored; the same way live and after a restart."""
        async with self._thinking:
            await asyncio.to_thread(
                measurement.tell,
                episode.number,
                episode.decision.instance,
                episode.outcome is Outcome.SUCCESS,
            )
        if self.session.spec.certify:
            await certifier.after_episode()

    async def _episode(self, link: AgentLink, worker: WorkerClient) -> None:
        """Decide or repeat, play, keep, take in."""
        episode, capabilities = await self._open()
        instance = self._battery.instances[self._battery.index[episode.decision.instance]]
        arena_yaml = await asyncio.to_thread(self._battery.arena_yaml, instance)
        spec = self.session.spec
        await asyncio.to_thread(self._parts.store.open_episode, episode, capabilities)
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
        course = await play(link, worker, recorder, opening, arena_yaml, instance.seed)
        seconds = self._parts.monotonic() - began
        finished = replace(self._judged(episode, course, instance), seconds=seconds)
        assert finished.outcome is not None
        await asyncio.to_thread(recorder.finish, finished.outcome)
        await asyncio.to_thread(self._parts.store.finish_episode, finished)
        self._attempts.append(finished)
        if finished.outcome.counts:
            await self._tell(self._known(), self._certificates(), finished)
        elif finished.backend_fault:
            log.warning(
                "session %s, %s: %s", episode.session, episode.decision.instance, finished.cause
            )
            await self._after_fault(finished)
        await self._refresh()
        self._publish(finished)
        if course.left is not None:
            raise AgentLeftError(course.left)
        if course.last is not None:
            last = None if course.fault else course.last
            await link.end(episode.number, course.steps, course.reward, last)

    async def _open(self) -> tuple[Episode, tuple[CapabilityStatus, ...]]:
        """The next attempt: the open decision again, or a new one."""
        measurement = self._known()
        number = measurement.n
        tries = [e for e in self._attempts if e.number == number]
        if tries and tries[-1].decision.instance not in _set_aside(self._attempts):
            decision = tries[-1].decision
            capabilities = ()
        else:
            async with self._thinking:
                decision = await asyncio.to_thread(measurement.choose, number)
            capabilities = self.session.capabilities
            assert decision is not None, "the stopper ends a session whose battery is exhausted"
        assert self._link is not None
        return (
            Episode(self.session.id, number, len(tries), decision, self._link.instance),
            capabilities,
        )

    def _judged(self, episode: Episode, course: Course, instance: Instance) -> Episode:
        """What became of an attempt."""
        cause = ""
        if course.fault:
            outcome, cause = Outcome.FAULT, f"backend: {course.fault}"
        elif course.left is Cause.SERVER_STOPPED:
            outcome, cause = Outcome.FAULT, course.left.value
        elif course.left is Cause.CANCELLED:
            outcome, cause = Outcome.VOID, course.left.value
        elif course.left is not None:
            before = any(
                e.agents_void
                for e in self._attempts
                if e.number == episode.number and e.decision.instance == instance.name
            )
            outcome, cause = Outcome.VOID, course.left.value
            if before:
                outcome = Outcome.FAILURE
                cause = f"{course.left.value}, for the second time: it counts as a failure"
        else:
            passed = success(course.episode_return, instance.pass_mark)
            outcome = Outcome.SUCCESS if passed else Outcome.FAILURE
        return replace(
            episode,
            outcome=outcome,
            episode_return=course.episode_return,
            steps=course.steps,
            ended_by=course.ended_by,
            cause=cause,
        )

    async def _after_fault(self, episode: Episode) -> None:
        instance = episode.decision.instance
        if instance in _set_aside(self._attempts):
            async with self._thinking:
                await asyncio.to_thread(self._known().set_aside, instance)
        latest = self._attempts[-MAX_FAULTS_IN_A_ROW:]
        if not self._known().covered:
            reason = f"no instance can be played, at last because of {episode.cause}"
            await self._end_live(SessionState.FAILED, reason)
            raise ServiceError(Code.SESSION_FAILED, f"{reason}; mend that, create a new session")
        if len(latest) == MAX_FAULTS_IN_A_ROW and all(e.backend_fault for e in latest):
            raise ServiceError(
                Code.SESSION_FAILED,
                f"what plays arenas failed {MAX_FAULTS_IN_A_ROW} times in a row, at last with: "
                f"{episode.cause}. Every outcome is kept; resume the session when that is mended",
            )

    async def _enough(self) -> bool:
        async with self._thinking:
            return (await asyncio.to_thread(self._known().verdict, self._seconds)).stop

    async def _finish(self) -> Session:
        """Fit by NUTS, keep the profile, end the session."""
        measurement = self._known()
        n, seed = measurement.n, self.session.spec.seed
        features, outcomes = measurement.data(n)
        request = FitRequest(measurement.layout, features, outcomes, fit_seed(seed, "profile", n))
        try:
            self._fitting = asyncio.create_task(fit_twice(self._parts.fitter, request))
            fit = await self._fitting
        except FitError as error:
            raise ServiceError(
                Code.SESSION_FAILED,
                f"the last fit failed ({error}); every outcome is kept, resume the session",
            ) from error
        certificates = await asyncio.to_thread(self._parts.store.certificates, self.session.id)
        async with self._thinking:
            verdict = await asyncio.to_thread(measurement.verdict, self._seconds)
            report = await asyncio.to_thread(
                exported_profile,
                self.session,
                measurement,
                fit,
                self._attempts,
                certificates,
                self._parts.versions,
            )
        await self._end(SessionState.FINISHED, verdict.reason, report)
        return self.session

    async def _end_live(self, state: SessionState, reason: str) -> Session:
        """End with what the live posterior knows."""
        ended = replace(self.session, state=state, reason=reason)
        async with self._thinking:
            report = await asyncio.to_thread(
                live_profile, ended, self._known(), self._attempts, self._parts.versions
            )
        await self._end(state, reason, report)
        return self.session

    async def _end(self, state: SessionState, reason: str, report: Report) -> None:
        self.session = await asyncio.to_thread(
            self._parts.store.finish_session,
            self.session.id,
            state,
            reason,
            report.profile,
            report.capabilities,
        )
        self._publish(None)

    async def _refresh(self) -> None:
        """Bring the session's summary up to date with what was told."""
        measurement = self._known()
        async with self._thinking:
            verdict = await asyncio.to_thread(measurement.verdict, self._seconds)
            capabilities = await asyncio.to_thread(measurement.capabilities, verdict)
        counted = [e for e in self._attempts if e.outcome is not None and e.outcome.counts]
        self.session = replace(
            self.session,
            episodes=len(counted),
            successes=sum(e.outcome is Outcome.SUCCESS for e in counted),
            capabilities=capabilities,
            misfit=measurement.misfit,
        )

    async def _set_state(self, state: SessionState) -> None:
        stored = await asyncio.to_thread(self._parts.store.set_state, self.session.id, state)
        self.session = replace(self.session, state=stored.state, reason=stored.reason)
        self._publish(None)

    def _publish(self, episode: Episode | None) -> None:
        self._parts.bus.publish(Event(self.session, episode))

    def _known(self) -> Measurement:
        assert self._measurement is not None, "prepare first"
        return self._measurement

    def _certificates(self) -> Certifier:
        assert self._certifier is not None, "prepare first"
        return self._certifier


def _log_failure(task: asyncio.Task[Session]) -> None:
    """Log what is nobody's doing; whoever waited for the task may be gone."""
    error = None if task.cancelled() else task.exception()
    if error is not None and not isinstance(error, AgentLeftError):
        log.error("%s stopped: %s", task.get_name(), error, exc_info=error)


def _set_aside(attempts: list[Episode]) -> set[str]:
    """Instances whose backend failed too often."""
    faults: dict[str, int] = {}
    for episode in attempts:
        if episode.backend_fault:
            instance = episode.decision.instance
            faults[instance] = faults.get(instance, 0) + 1
    return {instance for instance, count in faults.items() if count >= MAX_FAULTS}
