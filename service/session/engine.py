"""Runs one session from an agent's first message to the profile, as its only writer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import fields, replace
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from animalcat.envs.agents.fingerprint import AgentFingerprint
from animalcat.envs.surroundings import simulator_environment
from animalcat.envs.worker_client import Worker, WorkerFault
from animalcat.layouts.inference.fit import FitResult
from animalcat.service.batteries.battery import Battery
from animalcat.service.errors import CATALOGUE, Code, ServiceError, system_code
from animalcat.service.library.plugins import insist_on_worker
from animalcat.service.logs import about
from animalcat.service.refusals import Seldom
from animalcat.service.session.ending import SessionEnder
from animalcat.service.session.identity import Arrival, Identities
from animalcat.service.session.link import AgentLeftError, AgentLink
from animalcat.service.session.parts import Parts
from animalcat.service.session.play import play_attempt
from animalcat.service.session.record import SessionRecord
from animalcat.service.session.scheduling import NothingToPlayError, Schedule
from animalcat.service.session.unused import bytes_of
from animalcat.service.session.workers import Borrower
from animalcat.service.storage.errors import readable
from animalcat.values import Cause, Earlier, Episode, Ruling, Session, SessionState

log = logging.getLogger(__name__)
_seldom = Seldom()
P = ParamSpec("P")
R = TypeVar("R")


def _keeps_in_use(
    method: Callable[Concatenate[SessionEngine, P], Coroutine[Any, Any, R]],
) -> Callable[Concatenate[SessionEngine, P], Coroutine[Any, Any, R]]:
    """A method during which its engine does not leave memory."""

    @wraps(method)
    async def call(self: SessionEngine, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self.in_use():
            return await method(self, *args, **kwargs)

    return call


class SessionEngine:
    """Plays a session with as many agents at once as it has slots.

    Every state that matters is stored before it is acted on. Starting is the same as resuming: a
    new `Evidence` is told everything that is stored. Outcomes are told in order of episode number,
    whichever slot ends first, and a decision knows all of them but the last few (`evidence.lag`).

    All methods run on one event loop. Each agent has a task of its own, which is only ever
    cancelled inside a call to its link.
    """

    def __init__(self, session: Session, battery: Battery, parts: Parts) -> None:
        self._battery = battery
        self._parts = parts
        self._record = SessionRecord(session, parts.store, parts.bus)
        self._agents: dict[AgentLink, asyncio.Task[Session]] = {}
        self._begun = self._calls = self.uses = 0
        self._state = asyncio.Lock()
        self._schedule = Schedule(self._record, battery, parts)
        self._ending = SessionEnder(self._record, self._schedule, parts)
        self._identities = Identities(
            self._record, simulator_environment(session.spec.backend, parts.environment)
        )
        self._stopping = False
        self._why = ""

    @property
    def session(self) -> Session:
        """The session as it stands."""
        return self._record.session

    def belongs_to(self, owner: str) -> None:
        """Take in whose the session is, which the store knows."""
        self._record.session = replace(self._record.session, owner=owner)

    @property
    def playing(self) -> bool:
        """Whether an agent is connected, or the session is being ended."""
        return bool(self._agents) or self._ending.under_way

    @property
    def left(self) -> bool:
        """Whether the connections of all its agents broke, and they may come back."""
        return bool(self._agents) and all(link.away for link in self._agents)

    @property
    def agents(self) -> int:
        """Number of agents that are connected, or may come back."""
        return len(self._agents)

    @property
    def idle(self) -> bool:
        """Whether nobody uses it and it does nothing, so that it may leave memory."""
        if self._calls or self.playing or self._ending.busy:
            return False
        return self.session.over or not (self.session.hindrance or self._schedule.busy)

    @contextmanager
    def in_use(self) -> Generator[None]:
        """Let the engine not leave memory for the block."""
        self._calls += 1
        self.uses += 1
        try:
            yield
        finally:
            self._calls -= 1

    @property
    def loaded(self) -> bool:
        """Whether what is known of the session is in memory."""
        return self._schedule.loaded

    def unload(self) -> None:
        """Forget what is known while nobody uses it; it is built again from what is stored."""
        self._schedule.unload()

    def weigh(self) -> int:
        """Return about how many bytes it takes, without its battery."""
        shared = [getattr(self._parts, field.name) for field in fields(self._parts)]
        return bytes_of(self._schedule, without=(self._parts, *shared, self._battery, self._record))

    @_keeps_in_use
    async def admit(self, link: AgentLink) -> asyncio.Task[Session]:
        """Let an agent play, after waiting for one that is leaving if all slots are taken.

        The place of an agent whose connection broke is taken from it, although it might come back.

        Returns:
            The task that plays. It returns the session once that is over, or raises
            `AgentLeftError` if the agent leaves first.

        Raises:
            ServiceError: All slots are taken by agents that stay, the session is over, or a person
                has to say first what a failure of the agent's code counts as.
        """
        self._record.check_judged()
        slots = self.session.spec.slots
        while len(self._agents) >= slots:
            leaving = [task for agent, task in self._agents.items() if agent.interrupted]
            if not leaving and (
                gone := next((agent for agent in self._agents if agent.away), None)
            ):
                gone.handed_on = link.resumes
                gone.interrupt(Cause.AGENT_LEFT)  # whoever comes anew is another process
                continue
            if not leaving:
                who = "an agent plays" if slots == 1 else f"{slots} agents play"
                raise ServiceError(
                    Code.AGENT_CONNECTED,
                    f"{who} session {self.session.id} already; end one agent's run first",
                )
            await asyncio.wait(leaving, return_when=asyncio.FIRST_COMPLETED)
        if self.session.state.over:
            raise ServiceError(Code.SESSION_OVER, f"session {self.session.id} is over")
        task = asyncio.create_task(self._run(link), name=f"session {self.session.id}")
        self._agents[link] = task
        task.add_done_callback(lambda done: self._agents.pop(link))
        task.add_done_callback(_log_failure)
        return task

    @_keeps_in_use
    async def cancel(self) -> Session:
        """Cancel the session and keep what it has learnt so far.

        Raises:
            ServiceError: The session had already ended for another reason.
        """
        await self._let_go(Cause.CANCELLED)
        if not self.session.state.over:
            await self._schedule.load()
            # Who has come meanwhile is let go once nothing can begin any more.
            await asyncio.gather(self._ending.cancel(), self._let_go(Cause.CANCELLED))
        if self.session.state is not SessionState.CANCELLED:
            self._record.check_goes_on()
        return self.session

    @_keeps_in_use
    async def current(self) -> Session:
        """Return the session after taking in everything that is stored."""
        await self._schedule.load()
        return self.session

    @_keeps_in_use
    async def pause(self) -> Session:
        """Pause the session: nothing new begins, and what is being played is played to its end.

        Raises:
            ServiceError: The session is over.
        """
        async with self._schedule.changing():
            await self._record.set_paused(True)
        return self.session

    @_keeps_in_use
    async def resume(self) -> Session:
        """Let a paused session go on.

        Raises:
            ServiceError: The session is over, or a person has to say first what a failure of the
                agent's code counts as.
        """
        self._record.check_judged()
        async with self._schedule.changing():
            await self._record.set_paused(False)
        return self.session

    @_keeps_in_use
    async def invalidate(self, number: int, attempt: int | None, reason: str) -> Episode:
        """Declare an outcome invalid and measure again without it.

        Args:
            number: Number of the episode.
            attempt: Which attempt at the episode; None for the one that counts.
            reason: Why it is invalid, in words.

        Raises:
            ServiceError: The session is over or an agent plays it; or there is no such attempt, it
                does not count, or a certificate rests on it.
        """
        self._check_idle("declare an outcome invalid")
        store, session = self._parts.store, self.session
        async with self._schedule.corrected():
            attempts = readable(await asyncio.to_thread(store.episodes, session.id))
            tries = [e for e in attempts if e.number == number and (e.counts or e.invalid)]
            wanted = [e.attempt for e in tries if attempt in (e.attempt, None)]
            if not wanted:
                raise ServiceError(
                    Code.UNKNOWN_EPISODE,
                    f"no attempt at episode {number} of session {session.id} counts; list the "
                    "session's episodes to see which do",
                )
            certified = await asyncio.to_thread(store.certificates, session.id)
            if after := [n for n in certified if n > number - session.spec.practice]:
                raise ServiceError(
                    Code.IN_USE,
                    f"episode {number} of session {session.id} is part of the certificate made at "
                    f"{after[0]} episodes and has to stay; cancel the session and create a new one",
                )
            invalid = await asyncio.to_thread(
                store.invalidate_episode, session.id, number, wanted[-1], reason
            )
        self._record.tell(invalid)
        return invalid

    @_keeps_in_use
    async def judge(self, ruling: Ruling) -> Session:
        """Say what the episodes count as at which the agent's code failed, and let it go on.

        Args:
            ruling: What they are.

        Raises:
            ServiceError: The session is over or an agent plays it, or no episode waits for that.
        """
        self._check_idle("say what an episode counts as")
        if not self.session.unjudged:
            raise ServiceError(
                Code.UNKNOWN_EPISODE,
                f"no episode of session {self.session.id} waits to be judged: the agent's code "
                "failed in none, or it was said already what that counts as",
            )
        async with self._schedule.corrected():
            judged = await asyncio.to_thread(
                self._parts.store.judge_failures, self.session.id, ruling
            )
            self._record.await_ruling()
        for episode in judged:
            self._record.tell(episode)
        return self.session

    @_keeps_in_use
    async def dismiss(self, failure: str) -> Session:
        """Take the agents off; what they play is held against nobody.

        Args:
            failure: How the process of an agent ended, in words, if its code failed; then only
                those go whose connection broke, and a person has to say what their episodes are.
        """
        if failure:
            gone = [link for link in self._agents if link.away]
            await self._let_go(Cause.AGENT_FAILED, failure, gone)
        else:
            await self._let_go(Cause.DISMISSED)
        return self.session

    def _check_idle(self, before: str) -> None:
        self._record.check_goes_on()
        if self.playing:
            raise ServiceError(
                Code.IN_USE,
                f"session {self.session.id} is being played or ended; wait until that is over "
                f"before you {before}",
            )

    @_keeps_in_use
    async def drain(self) -> None:
        """Begin no more episodes, because the server will stop; agents leave when theirs ends."""
        await self._schedule.drain()

    async def stop(self) -> None:
        """Let the agents go and abandon long computations, because the server is stopping.

        The session can be resumed; what was abandoned is computed again from what is stored.
        """
        self._stopping = True
        self._ending.close()
        self._schedule.stop()
        await self._let_go(Cause.SERVER_STOPPED)

    @_keeps_in_use
    async def known(self) -> Earlier:
        """Return all that the session, which is over, knows, for one that goes on from it."""
        await self._schedule.load()
        await self._schedule.settle(certify=False)
        return await self._schedule.evidence.known(self.session)

    @_keeps_in_use
    async def live_profile(self) -> dict[str, Any]:
        """Return the profile according to the live posterior as it is now, as JSON values."""
        await self._schedule.load()
        return (await self._schedule.evidence.live_report(self.session)).profile

    @_keeps_in_use
    async def posterior(self) -> FitResult:
        """Return the posterior with draws: a finished session's last fit, else the live one."""
        await self._schedule.load()
        if self.session.state.over:
            await self._schedule.settle(certify=False)
        return await self._ending.posterior()

    async def _let_go(
        self, cause: Cause, detail: str = "", links: Sequence[AgentLink] | None = None
    ) -> None:
        """Interrupt agents, all of them if none are named, and wait until they have gone."""
        those = list(self._agents) if links is None else links
        tasks = [self._agents[link] for link in those]
        for link in those:
            link.interrupt(cause, detail)
        if tasks:
            await asyncio.wait(tasks)

    @asynccontextmanager
    async def _present(self) -> AsyncGenerator[None]:
        """Count one of the agents that have begun; without any, the session waits for one."""
        self._begun += 1
        try:
            yield
        finally:
            async with self._state:
                self._begun -= 1
                if not self._begun:
                    self._schedule.mend()
                    why, self._why = self._why, ""
                    if self.session.state is SessionState.RUNNING:
                        await self._record.set_state(SessionState.WAITING, why)

    async def _run(self, link: AgentLink) -> Session:
        """Let an agent play until it leaves or the session is over, then clean up."""
        with about(session=self.session.id):
            log.info("an agent has come")
            try:
                return await self._seat(link)
            finally:
                log.info("the agent has gone")

    async def _seat(self, link: AgentLink) -> Session:
        spec = self.session.spec
        borrower = Borrower(self.session.id, partial(self._record.wait_for, link))
        worker = await self._parts.workers.take(spec.backend, spec.observation_spec, borrower)
        begun = False
        async with self._present():
            try:
                await self._arrive(link, worker)
                begun = True
                return await self._play(link, worker)
            except AgentLeftError as left:
                if left.cause is Cause.CANCELLED:
                    return await self._ending.cancel()
                raise
            except WorkerFault as fault:
                self._why = f"the backend that plays arenas failed: {fault}"
                raise ServiceError(
                    Code.SESSION_FAILED, f"the backend that plays arenas failed: {fault}"
                ) from fault
            except asyncio.CancelledError:
                if self._stopping:  # the fit that this task waited for was cancelled
                    raise AgentLeftError(Cause.SERVER_STOPPED) from None
                raise
            except Exception as error:
                # Something may be half done, unless the agent was refused before it began. Once all
                # agents have gone, the next one starts from the store.
                if begun or not isinstance(error, ServiceError):
                    self._schedule.break_off()
                    for other in self._agents:
                        if other is not link:
                            other.interrupt(Cause.SESSION_STOPPED)
                if not _refuses_agent(error):
                    self._why = _words(error)
                if isinstance(error, NothingToPlayError):
                    await self._ending.fail(error.reason)
                raise
            finally:
                await self._parts.workers.give_back(worker)

    async def _arrive(self, link: AgentLink, worker: Worker) -> None:
        """Get everything that an agent needs, and see that it is the session's."""
        await self._schedule.load()
        await link.idle(worker.open())  # on a cluster it may have to wait for room
        insist_on_worker(self.session.spec, worker.versions)
        self._ending.warm()
        await self._meet(link)

    async def _play(self, link: AgentLink, worker: Worker) -> Session:
        """Play one episode after another, then end the session."""
        await link.welcome(self.session)
        async with self._state:
            if self.session.state is SessionState.WAITING:
                await self._record.set_state(SessionState.RUNNING)
        while True:
            gone: AgentLeftError | None = None
            try:
                while await self._decide_and_play(link, worker):
                    pass
            except AgentLeftError as left:  # who played the last episode may leave at once
                if left.cause is Cause.CANCELLED or self._stopping:
                    raise
                if not await self._schedule.is_spent():
                    raise
                gone = left
            session = await self._ending.finish()
            if session.state.over:
                return session
            if gone is not None:
                raise gone

    async def _meet(self, link: AgentLink) -> None:
        """See that the agent is the session's, now and once its first `reset` is over."""
        if link.fingerprint is None:
            return

        async def meet(fingerprint: AgentFingerprint, whole: bool = True) -> None:
            arrival = Arrival(fingerprint, whole, link.same_agent, link.unconfined)
            await self._identities.meet(arrival, company=self.agents > 1)

        await meet(link.fingerprint, link.whole)
        link.ready = meet

    async def _decide_and_play(self, link: AgentLink, worker: Worker) -> bool:
        """Begin the next attempt and play it; returns whether there was one."""
        episode = await self._next(link, worker)
        if episode is None:
            return False
        await self._play_episode(episode, link, worker)
        return True

    async def _next(self, link: AgentLink, worker: Worker) -> Episode | None:
        worker.rest()  # it may be long before the session may begin another
        return await self._schedule.next(link)

    async def _play_episode(self, episode: Episode, link: AgentLink, worker: Worker) -> None:
        """Play an attempt and store how it ended, and only then tell the agent."""
        with about(episode=episode.number, attempt=episode.attempt):
            log.info("the episode begins")
            await self._play_and_keep(episode, link, worker)

    async def _play_and_keep(self, episode: Episode, link: AgentLink, worker: Worker) -> None:
        evidence = self._schedule.evidence
        try:
            finished, played = await play_attempt(
                episode,
                self.session.spec,
                self._battery,
                self._parts,
                link,
                worker,
                second_chance=evidence.voided_before(episode),
                closed=evidence.left.pop(episode.number, None),
            )
            if played.left is not None and link.leaves_open(played.left):
                evidence.leave(finished)
                raise AgentLeftError(played.left)
            await self._schedule.keep(finished)
            assert finished.outcome is not None
            log.info(
                "the episode is over: %s after %d decisions%s",
                finished.outcome.name.lower(),
                finished.steps,
                f" ({finished.cause})" if finished.cause else "",
            )
        finally:
            await self._schedule.release(episode.number)
        if self.session.misfit:
            self._ending.warm()
        if played.left is not None:
            raise AgentLeftError(played.left)
        if played.last is not None:
            last = None if played.fault else played.last
            exceeded = played.exceeded
            await link.end(episode.number, played.steps, played.reward, last, exceeded)


def _refuses_agent(error: BaseException | None) -> bool:
    """Return whether it is the agent that cannot go on, and the session can."""
    return isinstance(error, ServiceError) and error.code is Code.AGENT_CHANGED


def _words(error: Exception) -> str:
    """Why a session stopped, for whoever runs it."""
    code = system_code(error)
    if isinstance(error, ServiceError) or code is None:
        return str(error) if isinstance(error, ServiceError) else "the server failed; see its log"
    return CATALOGUE[code].text


def _log_failure(task: asyncio.Task[Session]) -> None:
    """Log an error, which perhaps nobody awaits any more; that an agent leaves is no error."""
    error = None if task.cancelled() else task.exception()
    if error is None or isinstance(error, AgentLeftError):
        return
    if _refuses_agent(error):
        return  # it was refused, and may come as often as it likes
    if (code := system_code(error)) is not None:
        if times := _seldom.due((task.get_name(), code)):
            again = f", {times} times since this was logged" if times > 1 else ""
            log.warning("%s stopped: %s (%s)%s", task.get_name(), code.value, error, again)
    else:
        log.error("%s stopped: %s", task.get_name(), error, exc_info=error)
