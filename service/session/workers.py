"""Lends worker processes that play arenas, and reuses them from session to session."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from animalcat.arena_configs.outcome import MarkedPlace
from animalcat.envs.backends import AUTOMATIC, is_plugin, unity_build
from animalcat.envs.messages import Reply
from animalcat.envs.patience import Patience
from animalcat.envs.starting import Fork, Spawn, Starter
from animalcat.envs.types import ObservationSpec, Step
from animalcat.envs.worker_client import Worker, WorkerClient, WorkerFault
from animalcat.service.errors import Code, ServiceError
from animalcat.service.library.plugins import usable
from animalcat.service.session.room import Room

KEPT: Final = 2
"""Number of idle workers that are kept, because starting one takes seconds."""
REST_SECONDS: Final = 1.0
"""How long a worker at which nothing was played yet may rest before it gives way."""
LOOK_SECONDS: Final = 1.0
"""How often one that takes long to open is asked what it waits for."""
COMMAND: Final = (sys.executable, "-P", "-m", "animalcat.service.session.player")
"""The program of a worker that plays with agents."""


def own_starter(patience: Patience, *, forked: bool) -> Starter:
    """Return what starts simulators here.

    Args:
        patience: Time limits for workers.
        forked: Whether they share memory as forks of one process, where the system can do that.
    """
    return Fork(COMMAND, patience) if forked and Fork.works_here() else Spawn(COMMAND)


class EngineError(Exception):
    """What starts simulators and fits cannot be used; the message says why and what to do."""


class PoolStatus(NamedTuple):
    """Where workers are, and how many there may be.

    Attributes:
        engine: Who starts them: "local" or "ray".
        workers: For each worker the session that it plays, empty if none, and its machine.
        most: Most workers at once; 0 for no limit of their own.
        quota: Most workers of one campaign; 0 for no limit.
    """

    engine: str
    workers: tuple[tuple[str, str], ...]
    most: int
    quota: int


class Borrower(NamedTuple):
    """For whom a worker is lent.

    Attributes:
        session: Id of the session.
        tell: Is called with what it waits for when it has to wait, and with "" when it does not.
    """

    session: str
    tell: Callable[[str], None]


class Workers:
    """Lends workers; used on one event loop only.

    A backend is checked whenever a worker is taken, not only when a session is created, because
    sessions outlive the server and a data directory may come from anywhere.
    """

    engine = "local"
    """Who starts workers."""

    def __init__(
        self,
        allowed_builds: Sequence[Path] = (),
        patience: Patience = Patience(),
        room: Room | None = None,
        *,
        forked: bool = True,
        starter: Starter | None = None,
    ) -> None:
        """Create the pool without starting any worker.

        Args:
            allowed_builds: Paths of the Unity builds that sessions may name.
            patience: Time limits for workers.
            room: How many there may be; None for no limit.
            forked: Whether simulators share memory as forks of one process, where the system can
                do that.
            starter: Starts simulators and stays open afterwards; None for one of the pool's own.
        """
        self.room = room or Room()
        self._allowed_builds = tuple(allowed_builds)
        self._patience = patience
        self._spawn = Spawn(COMMAND)
        self._own = own_starter(patience, forked=forked)
        self._starter = starter or self._own
        self._idle: list[Worker] = []
        self._loans: list[Loan] = []
        self._groups: dict[str, str] = {}

    def check(self, backend: str) -> None:
        """Check that a backend exists and that this server may run it.

        Raises:
            ServiceError: It does not or may not; the message says what to do.
            PluginError: It is another package's, whose code this server may not run, or it breaks.
        """
        if backend == "sim" or (is_plugin(backend) and usable("backend", backend) is not None):
            return
        try:
            build = unity_build(backend)
        except ValueError as error:
            raise ServiceError(Code.UNKNOWN_BACKEND, str(error)) from error
        allowed: set[Path] = set()
        for path in self._allowed_builds:
            with suppress(ValueError):  # a build that no longer exists allows nothing
                allowed.add(unity_build(f"unity:{path}"))
        if backend != AUTOMATIC and build not in allowed:
            raise ServiceError(
                Code.BUILD_NOT_ALLOWED,
                f"{build}: this server may not run it. If you trust that program, start the server "
                f"with: serve --allow-build {build} (resume takes that option too), or make it the "
                f"build that {AUTOMATIC} stands for: animalcat unity setup --build {build}",
            )

    def group(self, session: str, campaign: str) -> None:
        """Let a session share the turns and the quota of its campaign.

        Args:
            session: Its id.
            campaign: Id of its campaign; empty where it is in none.
        """
        if campaign:
            self._groups[session] = campaign

    async def take(self, backend: str, spec: ObservationSpec, borrower: Borrower) -> Loan:
        """Lend a worker for a backend; its process starts at its first load at the latest.

        Args:
            backend: Name of the backend.
            spec: The observations that the worker is to make.
            borrower: For whom.

        Raises:
            ServiceError: The backend does not exist, or this server may not run it.
        """
        await asyncio.to_thread(self.check, backend)
        group = self._groups.get(borrower.session, borrower.session)
        loan = Loan(self, backend, spec, borrower, group)
        self._loans.append(loan)
        return loan

    def make(self, backend: str, spec: ObservationSpec) -> Worker:
        """Describe a worker; nothing is started."""
        starter = self._starter if backend == "sim" else self._spawn
        return WorkerClient(backend, spec, starter=starter, patience=self._patience)

    def machine(self, worker: Worker) -> str:
        """Name or address of the machine on which a worker is."""
        return socket.gethostname()

    def status(self) -> PoolStatus:
        """Where workers are, and whose."""
        taken = [(it.borrower.session, it.worker) for it in self._loans if it.worker is not None]
        placed = [*taken, *(("", worker) for worker in self._idle)]
        return PoolStatus(
            self.engine,
            tuple((session, self.machine(worker)) for session, worker in placed if worker.running),
            self.room.most,
            self.room.quota,
        )

    @property
    def scarce(self) -> str:
        """What another worker would still wait for once it has a place; empty for nothing."""
        return ""

    @property
    def pressed(self) -> bool:
        """Whether one that has a place here may wait for its engine to have room."""
        return False

    async def place(self, loan: Loan) -> Worker:
        """Wait for a place and return a worker for it, which may have to be opened yet.

        Raises:
            WorkerFault: It cannot be started.
        """
        if why := self.room.hindrance(loan.group) or self.scarce:
            # An agent may wait for the outcome of this one, and rest in its place meanwhile.
            resting = self._resting(loan.group if self.room.at_quota(loan.group) else None)
            if resting is not None:
                self.give_up(resting)
            loan.tell(why)
        try:
            await self.room.enter(loan.group)
            try:
                worker = await self._find_worker(loan.backend, loan.spec)
                await self.open(worker, loan)
            except BaseException:
                self.room.leave(loan.group, arrived=False)
                raise
            self.room.arrive()
        finally:
            loan.tell("")
        return worker

    async def open(self, worker: Worker, loan: Loan) -> None:
        """Open a worker, and tell meanwhile what it waits for."""
        opening = asyncio.ensure_future(worker.open())
        try:
            while not (await asyncio.wait([opening], timeout=LOOK_SECONDS))[0]:
                loan.tell(self.scarce)
        finally:
            opening.cancel()
            await asyncio.gather(opening, return_exceptions=True)
        opening.result()

    async def _find_worker(self, backend: str, spec: ObservationSpec) -> Worker:
        """Return an idle worker, else a new one."""
        for worker in self._idle:
            if (worker.backend, worker.spec) == (backend, spec):
                self._idle.remove(worker)
                return worker
        if self.room.most or self.engine != "local":
            # None of the idle ones is of use to this one, and they hold room.
            await self._end_idle(0)
        return self.make(backend, spec)

    def _resting(self, group: str | None = None) -> Loan | None:
        """Return a loan at which nothing is played: of a group, or of the group that holds most."""
        resting = [
            loan
            for loan in self._loans
            if loan.resting and loan.worker is not None and group in (None, loan.group)
        ]
        return max(resting, key=lambda loan: self.room.held(loan.group), default=None)

    def rested(self, loan: Loan) -> None:
        """Take the worker of a loan at which nothing is played, if another needs the room."""
        if self.room.waited_for or (self.pressed and self.scarce):
            self.give_up(loan)

    async def give_way(self) -> None:
        """End one worker at which nothing is played, if there is any."""
        resting = self._resting()
        if self._idle:
            await self._idle.pop(0).close()
        elif resting is not None:
            self.give_up(resting)

    def give_up(self, loan: Loan) -> None:
        """Take its worker from a loan, with the place; the next to have the place may reuse it."""
        worker, loan.worker = loan.worker, None
        if worker is None:
            return
        if self.pressed:  # the other waits for the end of a worker, and not for this one
            worker.drop()
        elif worker.running:
            self._idle.append(worker)
        self.room.leave(loan.group)

    async def give_back(self, loan: Loan) -> None:
        """Keep a worker for the next session, or end it.

        A worker that drives Unity builds is always ended: it holds one or two of them, about a
        gigabyte of memory.
        """
        self._loans.remove(loan)
        worker, loan.worker = loan.worker, None
        if worker is None:
            return
        try:
            if worker.backend.startswith("unity:") or self.pressed:
                await worker.close()
            elif worker.running:
                self._idle.append(worker)
        finally:
            self.room.leave(loan.group)
        await self._end_idle(KEPT)

    async def close(self) -> None:
        """End all idle workers, and what helps to start others."""
        await self._end_idle(0)
        await self._own.close()

    async def _end_idle(self, kept: int) -> None:
        end = len(self._idle) - kept
        old, self._idle = (self._idle[:end], self._idle[end:]) if end > 0 else ([], self._idle)
        await asyncio.gather(*(worker.close() for worker in old))


class Loan:
    """A worker as a session has it: while nothing is played, it may give its place to another.

    It keeps the contract of `Worker`.

    Attributes:
        backend: Name of the backend.
        spec: Specification of its observations.
        versions: Versions of software outside this installation that plays, known once it is open.
        borrower: For whom it is lent.
        group: The campaign of the session, or the session itself.
        worker: What plays; None while it has no place.
        resting: Whether nothing is played until the next `open`.
    """

    def __init__(
        self, pool: Workers, backend: str, spec: ObservationSpec, borrower: Borrower, group: str
    ) -> None:
        self.backend = backend
        self.spec = spec
        self.versions: Mapping[str, str] = {}
        self.borrower = borrower
        self.group = group
        self.worker: Worker | None = None
        self.resting = False
        self._pool = pool
        self._told = ""
        self._unused = True
        self._later: asyncio.TimerHandle | None = None

    def tell(self, why: str) -> None:
        """Tell the session what it waits for, unless it knows; empty for nothing."""
        if why != self._told:
            self._told = why
            self.borrower.tell(why)

    @property
    def running(self) -> bool:
        """Whether there is something that has not failed."""
        return self.worker is not None and self.worker.running

    async def open(self) -> None:
        """Wait for a place unless it has one, and until it can play."""
        self.resting = False
        if self._later is not None:
            self._later.cancel()
        self._unused = self._unused or self.worker is None
        if self.worker is not None and not self.worker.running:  # it was lost, with its place
            self._pool.give_up(self)
        if self.worker is None:
            self.worker = await self._pool.place(self)
        await self.worker.open()
        self.versions = self.worker.versions

    async def load(self, arena_yaml: str, seed: int, places: Sequence[MarkedPlace] = ()) -> Step:
        """Start an episode; see `Worker`."""
        await self.open()
        self._unused = False
        return await self._there.load(arena_yaml, seed, places)

    async def step(self, actions: bytes) -> list[Step]:
        """Take decisions; see `Worker`."""
        return await self._there.step(actions)

    def place_for(self, place: str) -> str:
        """Where it may listen for an agent; see `Worker`."""
        return self._there.place_for(place)

    async def play(self, terms: bytes) -> Reply:
        """Play the episode with its agent; see `Worker`."""
        return await self._there.play(terms)

    async def turn(self, answer: bytes) -> Reply:
        """Take what the agent answered; see `Worker`."""
        return await self._there.turn(answer)

    async def reply(self, waits: float) -> Reply:
        """Wait for what it says of an agent that came to it; see `Worker`."""
        return await self._there.reply(waits)

    def recall(self) -> None:
        """Have the agent go on by the server; see `Worker`."""
        if self.worker is not None:
            self.worker.recall()

    def stop(self, waited: float) -> None:
        """End the play; see `Worker`."""
        if self.worker is not None:
            self.worker.stop(waited)

    def rest(self) -> None:
        """Give way where another waits for room; the next `open` finds a place again."""
        if self._unused:  # who has just come is about to begin an episode, if it may
            self._later = asyncio.get_running_loop().call_later(REST_SECONDS, self._rest)
        else:
            self._rest()

    def _rest(self) -> None:
        self.resting = True
        self._pool.rested(self)

    def drop(self) -> None:
        """End it at once, because it has failed; its place is kept for the next."""
        if self.worker is not None:
            self.worker.drop()

    async def close(self) -> None:
        """End it; see `Worker`."""
        if self.worker is not None:
            await self.worker.close()

    @property
    def _there(self) -> Worker:
        if self.worker is None:
            raise WorkerFault("no worker is running; load an arena first")
        return self.worker
