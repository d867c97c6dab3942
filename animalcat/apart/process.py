"""Runs an agent in a process of its own, apart from the evaluator, until its session is over."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol, Self

from animalcat.apart.confine import CANNOT
from animalcat.apart.memory import MemoryLimit
from animalcat.apart.output import AgentOutput, last_lines
from animalcat.apart.plan import (
    ApartCommand,
    Limits,
    Permission,
    ProcessPlan,
    environment,
    launch_command,
    named_variables,
    plan_of,
    way,
)
from animalcat.apart.view import beside, holds
from animalcat.client import AsyncClient, Client
from animalcat.client.credentials import CA, TOKEN, is_local
from animalcat.envs.agents.limits.limited import check_observation
from animalcat.envs.agents.limits.reference import Reference
from animalcat.envs.agents.load import AgentLoadError, check_name
from animalcat.envs.types import ObservationSpec
from animalcat.errors import AnimalcatError
from animalcat.extending import plugins
from animalcat.machine.codes import BAD_INPUT, UNREACHABLE
from animalcat.machine.folders import SERVER_FOLDER, SOCKET
from animalcat.values import Session, SessionEvent, SessionState, Ticket

POLL_SECONDS: Final = 0.2
"""How often the agent's process is looked at."""
_NETWORK: Final = ("Network is unreachable", "Name or service not known", "name resolution")
"""What systems say where there is no network."""
_FILES: Final = ("ModuleNotFoundError", "FileNotFoundError", "No such file or directory")
"""What programs say where something is not to be seen."""
_MEMORY: Final = ("MemoryError", "bad_alloc", "Cannot allocate memory", "can't allocate memory")
"""What programs say where there is no memory for them."""
GRACE_SECONDS: Final = 60.0
"""How long a session may take to end, or to notice, after its agent's process has ended."""


class ApartError(AnimalcatError):
    """An agent cannot run as it is asked for; the text says why and what to do."""


def check_reference(reference: str, spec: ObservationSpec | None = None) -> None:
    """Check that a reference names an agent; nothing of it is run here.

    Args:
        reference: The reference.
        spec: What its session shows, on which its limits must be able to act; None: not known here.

    Raises:
        ApartError: It names none, or one whose limits cannot act.
    """
    try:
        read = check_name(reference)
    except AgentLoadError as error:
        raise ApartError(str(error)) from error
    if read.in_file and not Path(read.where).is_file():
        raise ApartError(f"agent {reference!r}: there is no file {read.where}")
    try:
        if read.door is not None:
            read.door.check()
        if spec is not None:
            check_observation(read, spec)
    except ValueError as error:
        raise ApartError(f"agent {reference!r}: {error}") from error


@dataclass(frozen=True, slots=True)
class Bounds:
    """Within what an agent's process plays.

    Attributes:
        may: What it may do besides playing.
        sees: What it may read besides its own folder and the software.
        variables: Variables of the environment that it gets, as NAME or NAME=VALUE.
        hide: Folders that it must not see, although they may be in its own folder: those of the
            arenas that it is asked to play.
        same_agent: Whether a person says that it is the agent that the session has, whatever its
            fingerprint.
        limits: What it may take; None: by the size of this machine.
    """

    may: Permission = Permission.PLAY
    sees: tuple[Path, ...] = ()
    variables: tuple[str, ...] = ()
    hide: tuple[Path, ...] = ()
    same_agent: bool = False
    limits: Limits | None = None


def check_apart(references: Iterable[str], bounds: Bounds, data: Path | None = None) -> None:
    """Check that agents can run within their bounds here, before anything is begun.

    Agents that come with animalcat run anywhere.

    Args:
        references: The agents.
        bounds: Within what they play.
        data: The data directory, where it is known here.

    Raises:
        ApartError: They cannot.
    """
    for path in bounds.sees:
        if not path.exists():
            raise ApartError(f"--agent-sees {path}: there is no such file or folder")
    try:
        named_variables(bounds.variables, os.environ)
    except ValueError as error:
        raise ApartError(str(error)) from error
    if bounds.may is Permission.ALL:
        if bounds.sees:
            raise ApartError("--agent-may all shows the agent everything; leave --agent-sees out")
        return
    if data is not None:
        _check_data(list(map(str, bounds.sees)), str(data))
    foreign = [reference for reference in references if not check_name(reference).ours]
    if foreign and not way().name:
        raise ApartError(
            f"agents cannot be kept apart from the evaluator here ({way().why}), so "
            f"{foreign[0]} could read and change results. If you trust its code as your own, say "
            "--agent-may all; animalcat doctor says what would help"
        )


class AgentRun(Protocol):
    """A process of an agent that may have ended."""

    @property
    def how(self) -> str:
        """How it ended, in words; see `how_ended`."""
        ...


class AgentProcess:
    """A process that runs `animalcat agent run`, apart from the evaluator.

    It holds a ticket for its session, and no token of a person. It is in a session of its own, so
    that Ctrl-C reaches this process alone and it reaches no terminal. It ends with this process,
    however that ends, and as a context at the context's end.

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

        Raises:
            ApartError: It cannot run so.
            AgentLoadError: The reference names no agent.
            AnimalcatError: The server refuses.
        """
        ticket = client.get_ticket(session)
        read = check_name(reference)
        best, notes = way(), list[str]()
        # An agent of a door is asked by our code, which needs the network and the user's key.
        model = read.door is not None
        apart = bounds.may is not Permission.ALL and bool(best.name) and not model
        door = _door(client, ticket)
        network = door is None or bounds.may is not Permission.PLAY
        address = client.address if door is None or not apart else f"unix:{door}"
        command = [sys.executable, "-P", "-m", "animalcat", "agent", "run", "--connect", address]
        command += ["--session", session.name, "--name", session.spec.agent]
        command += ["--agent", _elsewhere(reference, read)]
        command += ["--same-agent"] if bounds.same_agent else []
        variables = {TOKEN: ticket.text}
        files, folders = list[str](), list[str]()
        if door is None and CA in os.environ:  # a server elsewhere may speak TLS
            variables[CA] = os.environ[CA]
            files = [path for path in (os.environ[CA],) if os.path.isfile(path)]
        variables |= named_variables(bounds.variables, os.environ)
        if apart:
            plan = _plan(read, bounds, network, door, ticket.folder, files, variables, notes)
            try:
                started = launch_command(command, plan, best.name)
            except ValueError as error:
                raise ApartError(str(error)) from error
            if best.whole:
                folders = [mount.path for mount in plan.mounts if mount.kind == "empty"]
            else:
                notes.append(
                    f"the agent is kept apart in part ({best.name}); not covered: "
                    f"{'; '.join(best.open)}"
                )
        else:
            started = ApartCommand(tuple(command), environment(**variables))
            if bounds.may is not Permission.ALL and not model:
                notes.append(f"the agent, which is ours, is not kept apart here ({best.why})")
        self.note = "; ".join(notes)
        self._apart, self._cut = apart, apart and not network
        self._started = started
        self._output = AgentOutput()
        try:
            self._process = subprocess.Popen(
                started.command,
                stdin=subprocess.DEVNULL,
                stdout=self._output.writes,
                stderr=self._output.writes,
                start_new_session=True,
                env=started.variables,
            )
        except OSError:
            started.remove()
            raise
        finally:
            self._output.begun()
        self._most = (bounds.limits or Limits.of_machine()).memory
        self._memory = MemoryLimit(self._process, self._most, folders) if apart else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    @property
    def ended(self) -> bool:
        """Whether it has."""
        return self._process.poll() is not None

    @property
    def how(self) -> str:
        """How it ended, in words; see `how_ended`."""
        code = self._process.poll()
        over = "" if code is None or self._memory is None else self._memory.why
        return over or how_ended(code)

    def close(self) -> None:
        """End it if it still runs; calling it twice is fine."""
        if not self.ended:
            self._process.terminate()
            try:
                self._process.wait(5)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._output.wait()
        self._started.remove()

    def output(self) -> str:
        """The last lines that it printed, and a hint where it failed for want of something."""
        text = self._output.text()
        lines = last_lines(text)
        if self._cut and any(word in text for word in _NETWORK):
            lines.append("The agent's process has no network unless you give --agent-may network.")
        if self._apart and any(word in text for word in _FILES):
            lines.append(
                "The agent's process sees its own folder and what is installed; show it more with "
                "--agent-sees PATH."
            )
        over = self._memory is not None and self._memory.why
        if over or (self._apart and any(word in text for word in _MEMORY)):
            lines.append(
                f"The agent's processes may take {self._most / (1 << 30):.3g} GiB of memory here, "
                "together and each. If that is too little, and you trust its code as your own, say "
                "--agent-may all."
            )
        return "\n".join(lines)


def _file(read: Reference) -> Path:
    """An agent's file, as it is called from any working folder; it may be a link."""
    named = Path(read.where)
    return named.parent.resolve() / named.name


def _elsewhere(reference: str, read: Reference) -> str:
    """A reference that means the same in another working folder."""
    return f"{_file(read)}{reference[len(read.where) :]}" if read.in_file else reference


def _plan(
    read: Reference,
    bounds: Bounds,
    network: bool,
    door: Path | None,
    data: str,
    files: Sequence[str],
    variables: dict[str, str],
    notes: list[str],
) -> ProcessPlan:
    """What an agent is given; what is to be said of it is added to the notes."""
    sees = [*map(str, bounds.sees), *files]
    links = dict[str, str]()
    if read.plugin:
        sees += map(str, plugins.places("agent", read.plugin))
    if read.in_file:
        file = _file(read).resolve()
        sees.append(str(_file(read)))
        hidden = [*bounds.hide, *([Path(data)] if data else [])]
        if not holds(sees[:-1], str(file)):
            try:
                shown_to_it, left = beside(file, hidden)
            except ValueError as error:
                raise ApartError(str(error)) from error
            links = {path: os.readlink(path) for path in shown_to_it if os.path.islink(path)}
            sees += [path for path in shown_to_it if path not in links]
            if left:
                notes.append(f"the agent is not shown {_some(left)}, beside its file")
    plan = plan_of(
        network=network,
        limits=bounds.limits,
        sees=sees,
        links=links,
        sockets=[str(door.parent)] if door is not None else [],
        variables=variables,
        ours=read.ours,
        hide=[data] if data else [],
    )
    shared = [mount.source for mount in plan.mounts if mount.kind in ("see", "share")]
    if data:
        _check_data([*sees, *shared], data)
    notes += [
        f"the agent can read {path}, which is in {where}"
        for path in bounds.hide
        if path.exists() and (where := holds(shared, str(path)))
    ]
    return plan


def _check_data(paths: Sequence[str], data: str) -> None:
    """Refuse to let an agent see a data directory, or something in it.

    Raises:
        ApartError: It would.
    """
    real = os.path.realpath(data)
    if inside := [path for path in paths if holds([real], path)]:
        raise ApartError(
            f"the agent would see {inside[0]}, which is in the data directory; move it elsewhere"
        )
    if where := holds(map(os.path.realpath, paths), real):
        raise ApartError(
            f"the data directory {data} is in {where}, which the agent would see; keep the two "
            "apart, or show it less with --agent-sees"
        )


def _some(paths: Sequence[str]) -> str:
    """Some paths in words, by their last names."""
    names = [os.path.basename(path) for path in paths]
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def how_ended(code: int | None) -> str:
    """How an agent's process ended, in words; empty where that tells nothing of its code.

    So it is while it runs, where it could not reach the server, where that refused it, and where
    it could not be put apart, so that nothing of it ran.

    Args:
        code: With which it ended; None: it runs.
    """
    if code in (None, UNREACHABLE, BAD_INPUT, CANNOT):
        return ""
    with suppress(ValueError):  # what runs it apart adds 128 to the signal that ended it
        return f"its process was ended by {signal.Signals(-code if code < 0 else code - 128).name}"
    return f"its process ended with code {code}"


async def give_up(client: AsyncClient, session: Session, processes: Iterable[AgentRun]) -> None:
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


def _door(client: Client, ticket: Ticket) -> Path | None:
    """The socket at which an agent can play without a network; None if there is none here.

    A server elsewhere could name any socket of this machine, and its folder would be seen. Behind a
    tunnel the server takes the caller to be on its machine, but the socket is not here.
    """
    kind, _, name = ticket.local_address.partition(":")
    path = Path(name)
    own = path.name == SOCKET and path.parent.name.startswith(SERVER_FOLDER)
    here = kind == "unix" and own and is_local(client.address)
    return path if here and path.is_socket() else None


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
    reported: list[AgentProcess] = []
    try:
        while left > 0:
            await asyncio.wait([reading], timeout=POLL_SECONDS)
            new = [process for process in processes if process.ended and process not in reported]
            reported += new
            # Again and again: the server may miss a connection a moment later.
            if new or (len(reported) == len(processes) and state == "running"):
                await give_up(client, session, reported)
            if reading.done():
                event = reading.result()
                if event is None:
                    return
                state = event.session.state
                tell(event)
                reading = asyncio.ensure_future(anext(events, None))
            elif len(reported) == len(processes):
                if state != "running":
                    return
                left -= POLL_SECONDS
    finally:
        reading.cancel()
        await asyncio.wait([reading])
        await events.aclose()


def run_agent(
    client: Client,
    session: Session | str,
    reference: str,
    bounds: Bounds = Bounds(),
    tell: Callable[[SessionEvent], None] = lambda event: None,
) -> Session:
    """Run an agent apart until its session is over: in as many processes as the session has slots.

    Args:
        client: Of the server.
        session: The session, which waits for its agent.
        reference: What to run: "builtin:NAME", "plugin:NAME" or "path/to/file.py:Class".
        bounds: Within what it plays.
        tell: Is called with everything that happens in the session.

    Returns:
        The session, which is over.

    Raises:
        ApartError: The agent cannot run so; or it ended before its session, which can be gone on
            with. The text has the last lines that it printed.
        AnimalcatError: The server refuses, or cannot be reached.
    """
    current = client.get_session(session)
    check_reference(reference, current.spec.observation_spec)
    check_apart([reference], bounds)
    with ExitStack() as stack:
        processes = [
            stack.enter_context(AgentProcess(client, current, reference, bounds))
            for _ in range(max(1, current.spec.slots or 1))
        ]
        client.run(follow(client.aio, current, processes, tell))
    current = client.get_session(current)
    if not current.over:
        printed = "\n".join(dict.fromkeys(process.output() for process in processes))
        raise ApartError(f"the agent ended before its session {current.id} did\n{printed}".rstrip())
    return current
