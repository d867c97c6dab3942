"""Makes instances of drafts: fixes every value and measures what was not measured before."""

from __future__ import annotations

import hashlib
import re
import zlib
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing
from itertools import islice
from typing import Final, NamedTuple, TypeAlias, TypeVar
from zlib import crc32

import numpy as np

from animalcat.arena_configs.instance import Instance
from animalcat.arena_configs.model import STEPS_PER_UNIT, Arena, ArenaError
from animalcat.arena_configs.origin import Origin
from animalcat.arena_configs.placement import Placement, fix, place
from animalcat.arena_configs.sequence import episode_arenas, pass_mark
from animalcat.arena_configs.writer import to_yaml
from animalcat.machine.processes import process_pool
from animalcat.service.batteries.estimate import Tick
from animalcat.service.batteries.naming import ControlLink, TaskKind, some
from animalcat.service.batteries.packed import Packed
from animalcat.service.batteries.readings import Reading, Shelf, key_of, shipped_readings
from animalcat.service.batteries.validity import PlannerVerdict, judge

MANY: Final = 100
"""Arenas from which on several processes measure: each takes seconds to start."""
CHUNK: Final = 8
"""Arenas that a process measures at a time."""
AHEAD: Final = 4
"""Chunks that wait for each process, so that none waits for the next."""
SAMPLE: Final = 4
"""Arenas of a battery that are measured although the project ships what was measured of them."""
MOST_TOLD: Final = 2500
"""Most characters about files that cannot be used: a server's messages have 3,000."""

_LOOK: Final = re.compile(r"\.colors\[|\.row\d+$")
"""What is drawn of looks alone: colours, and the squares of a board."""

T = TypeVar("T")


def silent(done: int, total: int, message: str) -> None:
    """Ignore progress."""


class Draft(NamedTuple):
    """An instance before its values are fixed; its kind goes before its paradigm."""

    name: str
    paradigm: str
    arena: Arena
    seed: int
    origin: Origin | None = None
    kind: TaskKind = TaskKind()
    link: ControlLink = ControlLink()


Drafts: TypeAlias = Sequence[Draft] | Packed[Draft]
"""Drafts in their order; many are packed."""


class Fixed(NamedTuple):
    """An instance, the text of its arena, and how the planner fared in it, if it tried."""

    instance: Instance
    text: str
    verdict: PlannerVerdict | None = None


def instance_seed(seed: int, name: str) -> int:
    """Return an instance's seed: 63 bits, because a backend may read it as a signed number."""
    digest = hashlib.blake2b(f"{seed}/{name}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


def fixed_instance(draft: Draft, reading: Reading | None = None) -> Fixed:
    """Make an instance from a draft: fix every value and measure its features.

    Args:
        draft: The draft.
        reading: What was measured of it already; None to measure it.

    Raises:
        ArenaError: The arena cannot be built.
    """
    arena = fixed_arena(draft)
    return _make_fixed(draft, arena, to_yaml(arena), reading or reading_of(draft), "")


def fixed_arena(draft: Draft) -> Arena:
    """Return a draft's arena with every value fixed."""
    return fix(draft.arena, _draws(draft))


def _draws(draft: Draft) -> np.random.Generator:
    return np.random.default_rng([draft.seed, crc32(b"fix")])


def drawn_fields(draft: Draft) -> tuple[str, ...]:
    """Name what a draft leaves to chance and fixing it draws, without looks: it may change demands.

    Raises:
        ArenaError: The arena cannot be built.
    """
    return tuple(
        field
        for placement in first_placements(draft)
        for field in placement.drawn
        if not _LOOK.search(field)
    )


def first_placements(draft: Draft) -> list[Placement]:
    """The placements by which a draft is fixed: they say what was drawn and what has no place.

    There is one for each of the arenas that merge.

    Raises:
        ArenaError: An arena cannot be built.
    """
    draws = _draws(draft)
    return [place(arena, draws) for arena in episode_arenas(draft.arena)]


def placements(draft: Draft) -> list[Placement]:
    """The placements of a draft's fixed arenas, of which demands are measured.

    Raises:
        ArenaError: An arena cannot be built.
    """
    parts = episode_arenas(fixed_arena(draft))
    return [place(arena, np.random.default_rng(draft.seed)) for arena in parts]


def reading_of(draft: Draft) -> Reading:
    """Return the demands of a draft's arena, measured unless they are known.

    Raises:
        ArenaError: The arena cannot be built.
    """
    arena = fixed_arena(draft)
    shelf, key = Shelf(), key_of(to_yaml(arena), draft.seed)
    reading = shelf.find(key)
    if reading is None:
        reading = _read(draft)
        shelf.keep(key, reading)
    return reading


def _read(draft: Draft) -> Reading:
    """Measure the fixed arena of a draft."""
    # Imported here: it loads the simulator, which lists do without.
    from animalcat.envs.measure import measure_episode

    return Reading(*measure_episode(placements(draft), draft.seed).features)


def _make_fixed(draft: Draft, arena: Arena, text: str, reading: Reading, file: str) -> Fixed:
    instance = Instance(
        name=draft.name,
        paradigm=draft.kind.paradigm or draft.paradigm,
        features=reading.features,
        pass_mark=pass_mark(arena),
        time_limit_steps=max(0, arena.time_limit) * STEPS_PER_UNIT,
        seed=draft.seed,
        arena=file,
        missing=reading.missing,
        origin=draft.origin,
        suite=draft.kind.suite,
        task_name=draft.kind.task,
        variant=draft.kind.variant,
        control=draft.link.control,
        control_of=draft.link.control_of,
    )
    return Fixed(instance, text, reading.verdict)


def fixed_instances(
    drafts: Drafts,
    processes: int,
    tick: Tick = silent,
    *,
    battery: str = "",
    solve: bool = False,
) -> Iterator[Fixed]:
    """Make the instances of drafts, in their order; what is known of an arena is not measured.

    Args:
        drafts: The drafts.
        processes: How many processes measure, if there are many arenas.
        tick: Told how many arenas are fixed, before any is measured.
        battery: Name of the family or recipe, of which the project may ship what was measured.
        solve: Whether the planner is to play each arena.

    Raises:
        ArenaError: An arena cannot be built; the message names it.
    """
    texts: list[bytes] = []
    keys: list[str] = []
    for number, draft in enumerate(drafts):
        try:
            text = to_yaml(name_errors(draft, fixed_arena))
        except ArenaError as error:
            others = unfit(drafts[k] for k in range(number + 1, len(drafts)))
            raise join_errors([error, *others], len(drafts), "arenas") from None
        keys.append(key_of(text, draft.seed))
        # Arenas repeat themselves: packed they take a tenth of the memory.
        texts.append(zlib.compress(text.encode(), 1))
        tick(len(texts), len(drafts), "fixing what arenas leave to chance")
    shelf = Shelf()
    trusted: dict[str, Reading] = {}

    def job(place: int) -> _Job:
        key = keys[place]
        return _Job(drafts[place], trusted.get(key) or shelf.find(key), solve)

    def places_left() -> list[int]:
        return [place for place in range(len(drafts)) if not job(place).done]

    todo = places_left()
    if battery and todo:
        trusted |= _trusted_readings(battery, solve, {key: k for k, key in enumerate(keys)}, drafts)
        for key, reading in trusted.items():
            shelf.keep(key, reading)
        todo = places_left()
    unknown = set(todo)
    with closing(_examine_jobs(map(job, todo), len(todo), processes)) as examined:
        for number, (packed, key) in enumerate(zip(texts, keys, strict=True)):
            draft = drafts[number]
            if number in unknown:
                reading = next(examined)
                shelf.keep(key, reading)
            else:
                known = job(number)
                # It may have left the shelf meanwhile.
                reading = known.known if known.known and known.done else _examine(known)
            text = zlib.decompress(packed).decode()
            # What an instance says of its arena is left to chance in none.
            yield _make_fixed(draft, draft.arena, text, reading, f"arenas/{number:05}.yaml")


def unfit(drafts: Iterable[Draft]) -> Iterator[ArenaError]:
    """The errors of the drafts that cannot be built."""
    for draft in drafts:
        try:
            name_errors(draft, fixed_arena)
        except ArenaError as error:
            yield error


def join_errors(errors: Sequence[ArenaError], total: int, what: str) -> ArenaError:
    """One error for all files or arenas that cannot be used.

    Args:
        errors: Their errors, each of which begins with the name and a colon.
        total: How many there are in all.
        what: What they are.
    """
    if len(errors) == 1:
        return errors[0]
    lines, size = [f"{len(errors)} of {total} {what} cannot be used:"], 0
    for number, error in enumerate(errors):
        size += len(str(error)) + 1
        if size > MOST_TOLD:
            rest = [str(later).partition(":")[0] for later in errors[number:]]
            lines.append(f"and {len(rest)} more (`animalcat arena check` says why): {some(rest)}")
            break
        lines.append(str(error))
    return ArenaError("\n".join(lines))


def _trusted_readings(
    battery: str, solve: bool, places: Mapping[str, int], drafts: Drafts
) -> dict[str, Reading]:
    """Return what the project ships of some arenas, by key; nothing if a sample differs."""
    readings = {
        key: reading if solve else reading._replace(verdict=None)
        for key, reading in shipped_readings(battery).items()
        if key in places and (reading.verdict or not solve)
    }
    sample = sorted(readings)[:: max(1, len(readings) // SAMPLE)]
    same = all(_examine(_Job(drafts[places[key]], None, solve)) == readings[key] for key in sample)
    return readings if same else {}


class _Job(NamedTuple):
    """An arena that is to be known.

    Attributes:
        draft: The arena.
        known: What is known of it already.
        solve: Whether the planner is to play it.
    """

    draft: Draft
    known: Reading | None
    solve: bool

    @property
    def done(self) -> bool:
        """Whether everything is known."""
        return self.known is not None and not (self.solve and self.known.verdict is None)


def measure_drafts(drafts: Sequence[Draft], processes: int) -> Generator[Reading]:
    """Measure the arenas of drafts, in their order, whatever is known of them.

    Args:
        drafts: The drafts.
        processes: How many processes measure, if there are many arenas.

    Raises:
        ArenaError: An arena cannot be built; the message names it.
    """
    jobs = (_Job(draft, None, solve=False) for draft in drafts)
    yield from _examine_jobs(jobs, len(drafts), processes)


def _examine_jobs(jobs: Iterator[_Job], count: int, processes: int) -> Generator[Reading]:
    """Examine jobs in their order; only some are with the processes at a time."""
    if processes <= 1 or count < MANY:
        yield from map(_examine, jobs)
        return
    pool = process_pool(processes)
    waiting: deque[Future[list[Reading]]] = deque()
    try:
        while some := [*islice(jobs, CHUNK)]:
            waiting.append(pool.submit(_examine_each, some))
            if len(waiting) >= AHEAD * processes:
                yield from waiting.popleft().result()
        while waiting:
            yield from waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


def _examine_each(jobs: Sequence[_Job]) -> list[Reading]:
    return [*map(_examine, jobs)]


def _examine(job: _Job) -> Reading:
    draft = job.draft
    reading = job.known or _read_named(draft)
    if job.solve and reading.verdict is None:
        verdict = name_errors(draft, lambda draft: judge(fixed_arena(draft), draft.seed))
        reading = reading._replace(verdict=verdict)
    return reading


def _read_named(draft: Draft) -> Reading:
    return name_errors(draft, _read)


def name_errors(draft: Draft, work: Callable[[Draft], T]) -> T:
    """Do some work on a draft; an error tells its name."""
    try:
        return work(draft)
    except ArenaError as error:
        raise ArenaError(f"{draft.name}: {error}", error.problems) from error
