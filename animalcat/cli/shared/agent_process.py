"""An agent in a process of its own, and waiting for its session beside it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from animalcat.cli.shared.output import fail
from animalcat.client import AsyncClient
from animalcat.client.values import Session, SessionEvent, SessionState
from animalcat.envs.agents import BUILTIN

POLL_SECONDS: Final = 0.2
"""How often the agent's process is looked at."""
GRACE_SECONDS: Final = 60.0
"""How long a session may take to end, or to notice, after its agent's process has ended."""


def check_reference(reference: str) -> None:
    """End the command where a reference names no agent; nothing of it is run here."""
    kind, _, name = reference.rpartition(":")
    if kind == "builtin":
        if name not in BUILTIN:
            fail(f"no built-in agent is named {name!r}; there are: {', '.join(sorted(BUILTIN))}")
    elif not kind or not name:
        fail(f"agent {reference!r} is neither builtin:NAME nor path/to/file.py:Class")
    elif not Path(kind).is_file():
        fail(f"agent {reference!r}: there is no file {kind}")


class AgentProcess:
    """A process that runs `animalcat agent run`.

    It is in a session of its own, so that Ctrl-C reaches the command alone.
    """

    def __init__(self, address: str, session: str, name: str, reference: str) -> None:
        """Start it.

        Args:
            address: Of the server.
            session: Resource name of the session.
            name: Name of the agent that the session is for.
            reference: What to run.
        """
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`
        command = [sys.executable, "-m", "animalcat", "agent", "run", "--connect", address]
        self._process = subprocess.Popen(
            [*command, "--session", session, "--agent", reference, "--name", name],
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
        )
        self._output = ""

    @property
    def ended(self) -> bool:
        """Whether it has."""
        return self._process.poll() is not None

    def close(self) -> None:
        """End it if it still runs; calling it twice is fine."""
        if self._log.closed:
            return
        if not self.ended:
            self._process.terminate()
            try:
                self._process.wait(5)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._log.seek(0)
        self._output = self._log.read().decode(errors="replace")
        self._log.close()

    def output(self) -> str:
        """The last lines that it printed; after `close`."""
        return "\n".join(self._output.strip().splitlines()[-20:])


async def follow(
    client: AsyncClient,
    session: Session,
    processes: Sequence[AgentProcess],
    tell: Callable[[SessionEvent], None],
) -> None:
    """Pass on a session's progress until it is over, or its agents have ended and it waits again.

    Args:
        client: Connected to the server.
        session: Which.
        processes: The agent, once for each slot.
        tell: Called with every event.
    """
    events = client.watch_session(session)
    reading = asyncio.ensure_future(anext(events, None))
    left = GRACE_SECONDS
    state: SessionState | None = None
    try:
        while left > 0:
            await asyncio.wait([reading], timeout=POLL_SECONDS)
            if reading.done():
                event = reading.result()
                if event is None:
                    return
                state = event.session.state
                tell(event)
                reading = asyncio.ensure_future(anext(events, None))
            elif all(process.ended for process in processes):
                if state != "running":
                    return
                left -= POLL_SECONDS
    finally:
        reading.cancel()
        await asyncio.wait([reading])
        await events.aclose()
