"""What takes a server long, and where its simulators and fits are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum, auto

from animalcat.text import names


class OperationKind(StrEnum):
    """What an operation does."""

    IMPORT_BATTERY = auto()
    BUILD_BATTERY = auto()


class OperationState(StrEnum):
    """Where an operation stands."""

    RUNNING = auto()
    DONE = auto()
    FAILED = auto()
    CANCELLED = auto()
    ABORTED = auto()

    @property
    def over(self) -> bool:
        """Whether nothing more will happen."""
        return self is not OperationState.RUNNING


@dataclass(frozen=True, slots=True)
class Operation:
    """Something that takes the server long.

    Attributes:
        id: Id, the last component of its name.
        kind: What it does.
        subject: Resource name of what it works on.
        created: When it began, with time zone.
        request_id: The caller's id for the request; a repeated id begins nothing new. May be empty.
            Clients are not told.
        asked: Digest of what was asked for. Clients are not told.
        state: Where it stands.
        done: Number of parts that are done.
        total: Number of parts in all; 0 if unknown.
        message: What is being done.
        resource: Resource name of the result; empty while there is none.
        error: Why it failed; empty if it did not.
        error_code: Code of the error; empty if there is none.
        ended: When it ended, with time zone; None while it runs.
        owner: Subject that began it. Clients are not told.
    """

    id: str
    kind: OperationKind
    subject: str
    created: datetime
    request_id: str = ""
    asked: str = ""
    state: OperationState = OperationState.RUNNING
    done: int = 0
    total: int = 0
    message: str = ""
    resource: str = ""
    error: str = ""
    error_code: str = ""
    ended: datetime | None = None
    owner: str = ""

    @property
    def name(self) -> str:
        """Resource name, "operations/{id}"."""
        return names.operation_name(self.id)


@dataclass(frozen=True, slots=True)
class PlacedWorker:
    """A simulator that runs.

    Attributes:
        session: Id of the session that it plays; empty if none for now.
        node: Name or address of its machine.
    """

    session: str
    node: str


@dataclass(frozen=True, slots=True)
class PlacedFit:
    """A process that makes fits.

    Attributes:
        node: Name or address of its machine; empty: it has no place yet.
        busy: Whether it works.
    """

    node: str
    busy: bool


@dataclass(frozen=True, slots=True)
class Refusal:
    """Something that a server refused to somebody, or ended.

    Attributes:
        what: What was refused or ended: the code of an error, or words.
        who: To whom, in words.
        number: How often since the server started.
        last: When it last happened, with time zone.
        words: What was said then.
    """

    what: str
    who: str
    number: int
    last: datetime
    words: str


@dataclass(frozen=True, slots=True)
class ServerStanding:
    """How a server is as a whole.

    Attributes:
        version: Version of animalcat that it runs.
        uptime_seconds: Seconds since it started.
        ready: Whether it takes work.
        reasons: Why it does not, in words.
        disk_free_bytes: Bytes that are free where the data directory is.
        disk_bytes: All bytes there.
        memory_available_bytes: Bytes of memory that its processes can still get; 0 if unknown.
        out_of_memory_kills: Processes in its control groups that were killed for want of memory,
            since the machine started.
        database_seconds: Seconds that its database took for the last look at it.
    """

    version: str = ""
    uptime_seconds: float = 0.0
    ready: bool = False
    reasons: tuple[str, ...] = ()
    disk_free_bytes: int = 0
    disk_bytes: int = 0
    memory_available_bytes: int = 0
    out_of_memory_kills: int = 0
    database_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class ProcessPlacement:
    """Where simulators and fits are, and which sessions wait.

    Attributes:
        engine: Who starts simulators and fits: "local" or "ray".
        workers: All simulators that run.
        max_workers: Most simulators at once; 0: no limit, or in a cluster as many as have room.
        campaign_workers: Most simulators of one campaign at once; 0: no limit.
        backlog: For sessions that wait, by id, what they wait for; at most 1,000, newest first.
        fits: All processes that make fits.
        fits_waiting: Fits and compilations of layouts that wait for one of these.
        lacks: What the server lacks, so that nothing new begins, in words.
        refusals: What was refused or ended since the server started, the most frequent first.
        sessions: Number of sessions by the name of their state; those without any are left out.
        standing: How the server is as a whole.
    """

    engine: str
    workers: tuple[PlacedWorker, ...]
    max_workers: int
    campaign_workers: int
    backlog: Mapping[str, str]
    fits: tuple[PlacedFit, ...]
    fits_waiting: int
    lacks: tuple[str, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    sessions: Mapping[str, int] = field(default_factory=dict[str, int])
    standing: ServerStanding = ServerStanding()
