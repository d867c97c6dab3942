"""One session, from an agent's first message to the profile; the only writer of its records."""

from __future__ import annotations

import asyncio
from typing import Any

from animalcat.envs.worker_client import WorkerClient, WorkerFault
from animalcat.service.batteries.battery import Battery
from animalcat.service.errors import Code, ServiceError
from animalcat.service.model import Cause, Episode, Session, SessionState
from animalcat.service.session.admission import Seats
from animalcat.service.session.ending import Ending
from animalcat.service.session.link import AgentLeftError, AgentLink
from animalcat.service.session.parts import Parts
from animalcat.service.session.play import play_attempt
from animalcat.service.session.record import SessionRecord
from animalcat.service.session.scheduling import NothingToPlayError, Schedule


class SessionEngine:
    """Plays a session with as many agents at once as it has slots.

    Every state that matters is in the store before it is acted on, and starting is resuming: what
    is stored is told to fresh `Evidence`. Outcomes are told in order of number, whichever slot ends
    first, and a decision knows all but the last few of them (`evidence.lag`).

    All methods run on one event loop; each agent has a task.
    """

    def __init__(self, session: Session, battery: Battery, parts: Parts) -> None:
        self._battery = battery
        self._parts = parts
        self._record = SessionRecord(session, parts.store, parts.bus)
        self._seats = Seats(self._record)
        self._schedule = Schedule(self._record, battery, parts)
        self._ending = Ending(self._record, self._schedule, parts)
        self._stopping = False

    @property
    def session(self) -> Session:
        """The session as it stands."""
        return self._record.session

    @property
    def playing(self) -> bool:
        """Whether an agent is connected, or the session is being finished."""
        return self._seats.taken

    async def admit(self, link: AgentLink) -> asyncio.Task[Session]:
        """Let an agent play.

        Returns:
            The task that plays. It gives the session when that is over, or raises
            `AgentLeftError` when the link ends first.

        Raises:
            ServiceError: As many agents are connected as the session has slots, or it is over.
        """
        return await self._seats.admit(link, self._run)

    async def cancel(self) -> Session:
        """End the session; what it learnt stays.

        Raises:
            ServiceError: It was over for another reason.
        """
        await self._seats.let_go(Cause.CANCELLED)
        if not self.session.state.over:
            await self._schedule.load()
            await self._ending.cancel()
        if self.session.state is not SessionState.CANCELLED:
            self._record.check_goes_on()
        return self.session

    async def current(self) -> Session:
        """The session, with all that is stored taken in."""
        await self._schedule.load()
        return self.session

    async def allow(self, episodes: int) -> None:
        """Let so many episodes begin in all; beyond that, agents wait until more are allowed.

        That is stored already, with what other sessions are allowed (`Engines.allow`).
        """
        await self._schedule.allow(episodes)

    async def pause(self) -> Session:
        """Begin nothing more; what is being played is played to its end.

        Raises:
            ServiceError: The session is over.
        """
        await self._schedule.set_paused(True)
        return self.session

    async def resume(self) -> Session:
        """Go on after a pause.

        Raises:
            ServiceError: The session is over.
        """
        await self._schedule.set_paused(False)
        return self.session

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
        self._record.check_goes_on()
        if self.playing:
            raise ServiceError(
                Code.IN_USE,
                f"an agent plays session {self.session.id}; let it leave before an outcome is "
                "declared invalid",
            )
        return await self._schedule.invalidate(number, attempt, reason)

    async def conclude(self, reason: str) -> Session:
        """End the session with its profile, as its stopping rule would, once nothing is played.

        Args:
            reason: Why, where the stopping rule has none of its own.
        """
        await self._schedule.load()
        await self._schedule.conclude(reason)
        return self.session if self.session.state.over else await self._ending.finish()

    async def stop(self) -> None:
        """Let the agents go and drop what takes long, as the server is to stop.

        The session can be resumed: what was dropped is done again from what is stored.
        """
        self._stopping = True
        self._ending.close()
        self._schedule.stop()
        await self._seats.let_go(Cause.SERVER_STOPPED)

    async def live_profile(self) -> dict[str, Any]:
        """The profile as the live posterior has it now, as JSON values."""
        await self._schedule.load()
        return (await self._ending.live_report()).profile

    async def _run(self, link: AgentLink) -> Session:
        """Let an agent play until the session is over or the agent leaves, and clear up."""
        spec = self.session.spec
        worker = await self._parts.workers.take(spec.backend, spec.observation_spec)
        async with self._seats.present(when_empty=self._schedule.mend):
            try:
                return await self._play(link, worker)
            except AgentLeftError as left:
                if left.cause is Cause.CANCELLED:
                    return await self._ending.cancel()
                raise
            except WorkerFault as fault:
                raise ServiceError(
                    Code.SESSION_FAILED, f"what plays arenas fails: {fault}"
                ) from fault
            except asyncio.CancelledError:
                if self._stopping:  # a fit that was waited for has been dropped
                    raise AgentLeftError(Cause.SERVER_STOPPED) from None
                raise
            except Exception as error:
                # Whatever was half done: who comes when all have gone starts from what is stored.
                self._schedule.break_off()
                self._seats.interrupt(Cause.SESSION_STOPPED, but=link)
                if isinstance(error, NothingToPlayError):
                    await self._ending.fail(error.reason)
                raise
            finally:
                await self._parts.workers.give_back(worker)

    async def _play(self, link: AgentLink, worker: WorkerClient) -> Session:
        """Play one episode after another, and end the session after the last."""
        await self._schedule.load()
        await worker.open()
        self._ending.warm()
        await link.welcome(self.session)
        await self._seats.begin()
        try:
            while (episode := await self._schedule.next(link)) is not None:
                await self._play_episode(episode, link, worker)
        except AgentLeftError as left:  # who has played the last episode may go at once
            if left.cause is Cause.CANCELLED or self._stopping:
                raise
            if not await self._schedule.is_spent():
                raise
        return await self._ending.finish()

    async def _play_episode(self, episode: Episode, link: AgentLink, worker: WorkerClient) -> None:
        """Play an attempt, store how it ended, and only then tell the agent of its end."""
        try:
            finished, played = await play_attempt(
                episode,
                self.session.spec,
                self._battery,
                self._parts,
                link,
                worker,
                second_chance=self._schedule.is_second_chance(episode),
            )
            await self._schedule.keep(finished)
        finally:
            await self._schedule.release(episode.number)
        if self.session.misfit:
            self._ending.warm()
        if played.left is not None:
            raise AgentLeftError(played.left)
        if played.last is not None:
            last = None if played.fault else played.last
            await link.end(episode.number, played.steps, played.reward, last)
