"""Admits agents to a session, as many at once as it has slots."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from animalcat.service.errors import Code, ServiceError, system_code
from animalcat.service.refusals import Seldom
from animalcat.service.session.link import AgentLeftError, AgentLink
from animalcat.service.session.record import SessionRecord
from animalcat.values import Cause, Session, SessionState

log = logging.getLogger(__name__)
_seldom = Seldom()

Run = Callable[[AgentLink], Coroutine[Any, Any, Session]]
"""Lets an agent play until the session is over."""


class Seats:
    """The agents of one session, each played by a task of its own.

    A task is only ever cancelled inside a call to its agent's link.
    """

    def __init__(self, record: SessionRecord) -> None:
        self._record = record
        self._tasks: dict[AgentLink, asyncio.Task[Session]] = {}
        self._present = 0
        self._state = asyncio.Lock()

    @property
    def taken(self) -> bool:
        """Whether an agent is connected, or the session is being ended by its last one."""
        return bool(self._tasks)

    @property
    def left(self) -> bool:
        """Whether there are agents, and the connections of all broke."""
        return self.taken and all(seat.away for seat in self._tasks)

    @property
    def number(self) -> int:
        """Number of agents that are seated."""
        return len(self._tasks)

    async def admit(self, link: AgentLink, run: Run) -> asyncio.Task[Session]:
        """Seat an agent, after waiting for one that is leaving if all seats are taken.

        The place of an agent whose connection broke is taken from it, although it might come back.

        Args:
            link: The agent.
            run: Lets it play.

        Returns:
            The task in which `run` plays.

        Raises:
            ServiceError: All slots are taken by agents that stay, the session is over, or a person
                has to say first what a failure of the agent's code counts as.
        """
        session = self._record.session
        self._record.check_judged()
        slots = session.spec.slots
        while len(self._tasks) >= slots:
            leaving = [task for seat, task in self._tasks.items() if seat.interrupted]
            if not leaving and (gone := next((s for s in self._tasks if s.away), None)):
                gone.interrupt(Cause.AGENT_LEFT)  # whoever comes anew is another process
                continue
            if not leaving:
                who = "an agent plays" if slots == 1 else f"{slots} agents play"
                raise ServiceError(
                    Code.AGENT_CONNECTED,
                    f"{who} session {session.id} already; end one agent's run first",
                )
            await asyncio.wait(leaving, return_when=asyncio.FIRST_COMPLETED)
        if self._record.session.state.over:
            raise ServiceError(Code.SESSION_OVER, f"session {session.id} is over")
        task = asyncio.create_task(run(link), name=f"session {session.id}")
        self._tasks[link] = task
        task.add_done_callback(lambda done: self._tasks.pop(link))
        task.add_done_callback(_log_failure)
        return task

    @asynccontextmanager
    async def present(self, when_empty: Callable[[], None]) -> AsyncGenerator[None]:
        """Count as one of the agents that have begun; without any, the session waits for one.

        Args:
            when_empty: Called when the last agent leaves.
        """
        self._present += 1
        try:
            yield
        finally:
            async with self._state:
                self._present -= 1
                if not self._present:
                    when_empty()
                    if self._record.session.state is SessionState.RUNNING:
                        await self._record.set_state(SessionState.WAITING)

    async def begin(self) -> None:
        """Mark the session as running if it was waiting for an agent."""
        async with self._state:
            if self._record.session.state is SessionState.WAITING:
                await self._record.set_state(SessionState.RUNNING)

    def interrupt(self, cause: Cause, *, but: AgentLink | None = None) -> None:
        """Interrupt all agents except `but`."""
        for seat in self._tasks:
            if seat is not but:
                seat.interrupt(cause)

    async def let_go(self, cause: Cause) -> None:
        """Interrupt all agents and wait until they have gone."""
        tasks = list(self._tasks.values())
        self.interrupt(cause)
        if tasks:
            await asyncio.wait(tasks)

    async def give_up(self, failure: str) -> None:
        """Let those agents go whose processes have ended, because their code failed; and wait.

        Args:
            failure: How they ended, in words.
        """
        gone = {seat: task for seat, task in self._tasks.items() if seat.away}
        for seat in gone:
            seat.interrupt(Cause.AGENT_FAILED, failure)
        if gone:
            await asyncio.wait(gone.values())


def _log_failure(task: asyncio.Task[Session]) -> None:
    """Log an error that may have nobody left to receive it; an agent that leaves is no error."""
    error = None if task.cancelled() else task.exception()
    if error is None or isinstance(error, AgentLeftError):
        return
    if isinstance(error, ServiceError) and error.code is Code.AGENT_CHANGED:
        return  # it was refused, and may come as often as it likes
    if (code := system_code(error)) is not None:
        if times := _seldom.due((task.get_name(), code)):
            again = f", {times} times since this was logged" if times > 1 else ""
            log.warning("%s stopped: %s (%s)%s", task.get_name(), code.value, error, again)
    else:
        log.error("%s stopped: %s", task.get_name(), error, exc_info=error)
