"""An agent in a process of its own, and waiting for its session beside it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from animalcat.cli.shared.apart import Permission, Way, apart, environment, way
from animalcat.cli.shared.confine import NAMESPACES
from animalcat.cli.shared.output import BAD_INPUT, UNREACHABLE, fail
from animalcat.client import AsyncClient, Client
from animalcat.client.values import Episode, Session, SessionEvent, SessionState, Ticket
from animalcat.envs.agents import AgentLoadError
from animalcat.envs.agents.limits import check_observation
from animalcat.envs.agents.load import check_name
from animalcat.envs.types import ObservationSpec
from animalcat.errors import AnimalcatError

LINES: Final = 60
"""Most lines of what an agent printed that are shown, so that a traceback is whole."""
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


class Ended(Protocol):
    """A process of an agent that may have ended."""

    @property
    def how(self) -> str:
        """How it ended, in words; see `how_ended`."""
        ...


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

    @property
    def how(self) -> str:
        """How it ended, in words; see `how_ended`."""
        return how_ended(self._process.poll())

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
        lines = self._output.strip().splitlines()[-LINES:]
        if self._cut and any(word in self._output for word in _NETWORK):
            lines.append("The agent's process has no network unless you give --agent-may network.")
        return "\n".join(lines)


def how_ended(code: int | None) -> str:
    """How an agent's process ended, in words; empty where that tells nothing of its code.

    So it is while it runs, where it could not reach the server, and where that refused it.

    Args:
        code: With which it ended; None: it runs.
    """
    if code in (None, UNREACHABLE, BAD_INPUT):
        return ""
    with suppress(ValueError):  # what runs it apart adds 128 to the signal that ended it
        return f"its process was ended by {signal.Signals(-code if code < 0 else code - 128).name}"
    return f"its process ended with code {code}"


async def give_up(client: AsyncClient, session: Session, processes: Iterable[Ended]) -> None:
    """Tell the server of agents whose processes have ended, if it does not know yet.

    An agent whose code raises something says so before it goes. One that died could not.

    Args:
        client: Connected to the server.
        session: Theirs.
        processes: Those that have ended.
    """
    for process in processes:
        if process.how:
            await client.dismiss_agents(session, process.how)


def failed_words(session: Session, episodes: Iterable[Episode]) -> str:
    """What became of a session where the agent's code failed, and what to do; empty if it did not.

    Args:
        session: The session.
        episodes: Its attempts.
    """
    waits = [one for one in episodes if one.ruling == "awaited"]
    if not waits:
        return ""
    where = "; ".join(f"episode {one.number} ({one.instance}): {one.cause}" for one in waits)
    return (
        f"{where}. Session {session.id} is paused there, and the agent has seen this arena. Say "
        f"what the episode counts as: animalcat session judge {session.id} --as repeat (the same "
        "arena is played again, and the profile says so), --as failure, or --as fault (it was no "
        "doing of the agent's)"
    )


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
    told: list[AgentProcess] = []
    try:
        while left > 0:
            await asyncio.wait([reading], timeout=POLL_SECONDS)
            new = [one for one in processes if one.ended and one not in told]
            told += new
            # Again and again: the server may miss a connection a moment later.
            if new or (len(told) == len(processes) and state == "running"):
                await give_up(client, session, told)
            if reading.done():
                event = reading.result()
                if event is None:
                    return
                state = event.session.state
                tell(event)
                reading = asyncio.ensure_future(anext(events, None))
            elif len(told) == len(processes):
                if state != "running":
                    return
                left -= POLL_SECONDS
    finally:
        reading.cancel()
        await asyncio.wait([reading])
        await events.aclose()
