"""An agent in a process of its own, and waiting for its session beside it."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from animalcat.cli.shared.apart import Permission, Way, apart, environment, way
from animalcat.cli.shared.confine import NAMESPACES
from animalcat.cli.shared.output import fail
from animalcat.client import AsyncClient, Client
from animalcat.client.values import Session, SessionEvent, SessionState, Ticket
from animalcat.envs.agents import AgentLoadError
from animalcat.envs.agents.limits import check_observation
from animalcat.envs.agents.load import check_name
from animalcat.envs.types import ObservationSpec
from animalcat.errors import AnimalcatError

POLL_SECONDS: Final = 0.2
"""How often the agent's process is looked at."""
_NETWORK: Final = ("Network is unreachable", "Name or service not known", "name resolution")
"""What systems say where there is no network."""
GRACE_SECONDS: Final = 60.0
"""How long a session may take to end, or to notice, after its agent's process has ended."""


def check_reference(reference: str, spec: ObservationSpec | None = None) -> None:
    """End the command where a reference names no agent; nothing of it is run here.

    Args:
        reference: The reference.
        spec: What its session shows, on which its limits must be able to act; None: not known here.
    """
    try:
        read = check_name(reference)
    except AgentLoadError as error:
        fail(str(error))
    if not read.builtin and not Path(read.where).is_file():
        fail(f"agent {reference!r}: there is no file {read.where}")
    try:
        if spec is not None:
            check_observation(read, spec)
    except ValueError as error:
        fail(f"agent {reference!r}: {error}")


@dataclass(frozen=True, slots=True)
class Bounds:
    """Within what an agent's process plays.

    Attributes:
        may: What it may do besides playing.
        hide: Folders that it must not see, besides the server's data directory.
        same_agent: Whether a person says that it is the agent that the session has, whatever its
            fingerprint.
    """

    may: Permission = Permission.PLAY
    hide: tuple[Path, ...] = ()
    same_agent: bool = False


class AgentProcess:
    """A process that runs `animalcat agent run`, apart from the evaluator where that can be.

    It holds a ticket for its session, and no token of a person. It is in a session of its own, so
    that Ctrl-C reaches the command alone.

    Attributes:
        note: What is to be said of how it is kept apart; empty if nothing is.
    """

    def __init__(
        self, client: Client, session: Session, reference: str, bounds: Bounds = Bounds()
    ) -> None:
        """Start it.

        Args:
            client: Of the server.
            session: The session.
            reference: What to run.
            bounds: Within what it plays.
        """
        ticket = ticket_for(client, session)
        alone = bounds.may is Permission.PLAY
        inner, self.note = bounds.may is not Permission.ALL, ""
        command = [sys.executable, "-m", "animalcat", "agent", "run"]
        options = ["--session", session.name, "--agent", reference, "--name", session.spec.agent]
        options += ["--same-agent"] if bounds.same_agent else []
        read = check_name(reference)
        files = [] if read.builtin else [Path(read.where).resolve()]
        address, network = client.address, True
        found = way(*map(str, files)) if inner else Way("")
        door = _door(ticket)
        if door is not None and alone and found.name == NAMESPACES:
            address, network = f"unix:{door}", False
        command += ["--connect", address, *options]
        if inner:
            folders = [Path(ticket.folder)] if ticket is not None and ticket.folder else []
            keep = [door.parent] if door is not None else []
            hide = [*folders, *bounds.hide]
            command, found = apart(command, hide, network=network, read=files, keep=keep)
            if not found.name:
                self.note = (
                    "the agent's process is not kept apart from the evaluator here, and could look "
                    f"into its files ({found.why}); see animalcat doctor"
                )
            elif found.seen:
                self.note = (
                    f"the agent can read {' and '.join(found.seen)}, because the agent, the "
                    "software or the working folder is in there; keep them apart to hide it"
                )
        variables = {"ANIMALCAT_TOKEN": ticket.text} if ticket is not None else {}
        if address == client.address:  # a server elsewhere may ask for a certificate, too
            kept = ("ANIMALCAT_CERTIFICATE", "ANIMALCAT_KEY")
            variables |= {name: os.environ[name] for name in kept if name in os.environ}
        self._cut = inner and not network
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
            env=environment(**variables),
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
        """The last lines that it printed, and a hint where it failed for want of the network."""
        lines = self._output.strip().splitlines()[-20:]
        if self._cut and any(word in self._output for word in _NETWORK):
            lines.append("The agent's process has no network unless you give --agent-may network.")
        return "\n".join(lines)


def _door(ticket: Ticket | None) -> Path | None:
    """The socket at which an agent can play without a network; None if there is none here."""
    kind, _, path = ("" if ticket is None else ticket.local_address).partition(":")
    # Behind a tunnel the server takes the caller to be on its machine, but the socket is not here.
    return Path(path) if kind == "unix" and Path(path).is_socket() else None


def ticket_for(client: Client, session: Session) -> Ticket | None:
    """A ticket for a session; None from a server that knows no tickets yet."""
    try:
        return client.get_ticket(session)
    except AnimalcatError as error:
        if error.code == "UNIMPLEMENTED":
            return None
        raise


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
