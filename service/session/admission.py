"""Admission: which agents play a session, as many at once as it has slots."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from animalcat.service.errors import Code, ServiceError
from animalcat.service.model import Cause, Session, SessionState
from animalcat.service.session.link import AgentLeftError, AgentLink
from animalcat.service.session.record import SessionRecord

log = logging.getLogger(__name__)

Run = Callable[[AgentLink], Coroutine[Any, Any, Session]]
"""Lets an agent play until the session is over."""


class Seats:
    """The agents of one session, each with a task of its own.

    The tasks are cancelled nowhere but inside the calls of their links.
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

    async def admit(self, link: AgentLink, run: Run) -> asyncio.Task[Session]:
        """Seat an agent; one that is leaving is waited for.

        Args:
            link: The agent.
            run: Lets it play.

        Returns:
            The task that plays, which is `run`.

        Raises:
            ServiceError: As many agents are connected as the session has slots, or it is over.
        """
        session = self._record.session
        slots = session.spec.slots
        while len(self._tasks) >= slots:
            leaving = [task for seat, task in self._tasks.items() if seat.interrupted]
            if not leaving:
                who = "an agent plays" if slots == 1 else f"{slots} agents play"
                raise ServiceError(
                    Code.AGENT_CONNECTED,
                    f"{who} session {session.id} already; end that one first",
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
        """Be one of the agents that have begun; without any, the session waits for an agent.

        Args:
            when_empty: Called when the last one leaves.
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
        """Say that the session is being played."""
        async with self._state:
            if self._record.session.state is SessionState.WAITING:
                await self._record.set_state(SessionState.RUNNING)

    def interrupt(self, cause: Cause, *, but: AgentLink | None = None) -> None:
        """Interrupt all agents, or all but one."""
        for seat in self._tasks:
            if seat is not but:
                seat.interrupt(cause)

    async def let_go(self, cause: Cause) -> None:
        """Interrupt all agents and wait until they have gone."""
        tasks = list(self._tasks.values())
        self.interrupt(cause)
        if tasks:
            await asyncio.wait(tasks)


def _log_failure(task: asyncio.Task[Session]) -> None:
    """Log what is nobody's doing; whoever waited for the task may be gone."""
    error = None if task.cancelled() else task.exception()
    if error is not None and not isinstance(error, AgentLeftError):
        log.error("%s stopped: %s", task.get_name(), error, exc_info=error)
