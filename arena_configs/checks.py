"""Checks of arenas: finds what Unity would refuse, change or leave out."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from pydantic.alias_generators import to_camel

from animalcat.arena_configs.bounds import ENDLESS, out_of_bounds
from animalcat.arena_configs.builds import MERGING, NEWEST, Build, unheeded_fields
from animalcat.arena_configs.catalogue import KINDS, ObjectKind, canonical_name
from animalcat.arena_configs.chance import LEFT, ORDER, left_to_chance
from animalcat.arena_configs.draws import Draws
from animalcat.arena_configs.features.registry import read_features
from animalcat.arena_configs.features.start import SECONDS_PER_UNIT
from animalcat.arena_configs.features.survey import Survey
from animalcat.arena_configs.geometry import Solid, outside_by, overlaps
from animalcat.arena_configs.loader import OLD_NAMES, LoadedConfig
from animalcat.arena_configs.model import (
    ARENA_SIDE,
    STEPS_PER_UNIT,
    Arena,
    ArenaConfig,
    ArenaError,
    GrantContinuousReward,
    Item,
    LimitedInvocations,
    Operation,
    OperationFromList,
    Problem,
    Severity,
    ToggleObject,
)
from animalcat.arena_configs.outcome import NO_LIMIT, NO_REWARD, MarkFault, mark_fault
from animalcat.arena_configs.placement import (
    Placement,
    agent_body,
    on_edge,
    place,
)
from animalcat.arena_configs.quickest import NEEDED, REFERENCE_SECONDS, returns_in_time
from animalcat.arena_configs.reach import unreachable_goals
from animalcat.arena_configs.returns import max_return, min_return
from animalcat.arena_configs.routes import positive_goals, run_seconds
from animalcat.arena_configs.sequence import episode_arenas, episodes, pass_mark
from animalcat.arena_configs.signs import SYMBOLS, is_known

OF_MARKS: Final = ("unreachable-pass-mark", "tight-pass-mark", "sure-pass", "no-reward")
"""Kinds of findings that follow from the pass mark of an episode."""
OF_BATTERY: Final = (LEFT, "no-time-limit", "no-reward")
"""Kinds of findings that concern who makes a battery, and not who plays an arena."""
_WINDING: Final = 4.0
"""How much longer than the straight way, in time, a way may be that is looked for."""
_ROUNDED: Final = 0.0025
"""How far an eighth of a turn in radians may be rounded, in eighths."""
_OPERATED: Final = ("SpawnerButton", "DataZone")
"""Objects that run operations."""


def check_arena(
    arena: Arena,
    rng: Draws,
    *,
    file: str = "",
    path: str = "",
    build: Build = NEWEST,
    whole: bool = False,
) -> tuple[Problem, ...]:
    """Check one arena.

    Args:
        arena: The arena.
        rng: Source of randomness for what the arena leaves to chance.
        file: Name of its file, for the problems.
        path: Where the arena stands in its file, such as `arenas[0]`.
        build: The build that is to play it.
        whole: Whether to report also what may well be meant, but matters in a battery: that
            something is left to chance, and that nothing gives reward.

    Returns:
        Errors (Unity refuses the arena, or nobody can pass it) and warnings (something is changed,
        left out or left to chance).
    """
    prefix = f"{path}." if path else ""
    return tuple(
        Problem(file, None, (prefix + field).rstrip("."), severity, code, message)
        for field, severity, code, message in _findings(arena, rng, build, whole)
    )


def check_loaded(
    loaded: LoadedConfig, rng: Draws, *, file: str, build: Build = NEWEST
) -> tuple[Problem, ...]:
    """Check a file: what its loader met, and what is found in its arenas.

    Args:
        loaded: The loaded file.
        rng: As for `check_arena`.
        file: Name of the file, for the problems.
        build: The build that is to play it.
    """
    old = build == "3.1.3"
    met = [problem for problem in loaded.problems if not (old and problem.code == "old-field")]
    known = {(problem.field, problem.code) for problem in met}
    problems = [
        replace(problem, line=_line(loaded, problem.field))
        for problem in check_config(loaded.config, rng, file=file, build=build)
        if (problem.field, problem.code) not in known
    ]
    if old:
        problems.extend(_newer_names(loaded, file))
    return tuple(sorted([*met, *problems], key=lambda problem: problem.line or 0))


def _newer_names(loaded: LoadedConfig, file: str) -> Iterator[Problem]:
    """Names of the 4.x grammar, for which build 3.1.3 has others."""
    for field in loaded.newer_names:
        old = OLD_NAMES[field.rpartition(".")[2]]
        message = f"a 4.x name, with which build 3.1.3 refuses the file; it wants `{old}`"
        yield Problem(file, loaded.lines[field], field, "warning", "new-field", message)


def check_config(
    config: ArenaConfig, rng: Draws, *, file: str = "", build: Build = NEWEST
) -> tuple[Problem, ...]:
    """Check all arenas of a configuration, and say what is left to chance.

    Args:
        config: The configuration.
        rng: As for `check_arena`.
        file: Name of its file, for the problems.
        build: The build that is to play it.
    """
    problems: list[Problem] = []
    later = {number + 1 for number, arena in config.arenas.items() if arena.merge_next_arena}
    for number, arena in sorted(config.arenas.items()):
        path = f"arenas[{number}]"
        merges = build in MERGING and _merges(config, number)
        problems.extend(
            problem
            for problem in check_arena(arena, rng, file=file, path=path, build=build, whole=True)
            if not (merges and problem.code in OF_MARKS)
        )
        if arena.time_limit == 0 and not (merges and number in later):
            message = f"no time limit ends an episode: {NO_LIMIT}"
            field = f"{path}.timeLimit"
            problems.append(Problem(file, None, field, "warning", "no-time-limit", message))
        if arena.merge_next_arena and build not in MERGING:
            message = _say_what_is_ignored("mergeNextArena", build, MERGING)
            field = f"{path}.mergeNextArena"
            problems.append(Problem(file, None, field, "warning", "ignored-field", message))
    lost = [n for n, arena in config.arenas.items() if arena.merge_next_arena]
    lost = [number for number in lost if number + 1 not in config.arenas]
    for number in lost:
        which = "the last arena" if number == max(config.arenas) else f"arena {number}"
        message = f"{which} wants to merge with the next one, and there is none"
        field = f"arenas[{number}].mergeNextArena"
        problems.append(Problem(file, None, field, "error", "merged-last", message))
    if config.randomize_arenas and (len(config.arenas) if lost else len(episodes(config))) > 1:
        problems.append(Problem(file, None, "randomizeArenas", "warning", LEFT, ORDER))
    if build in MERGING and not lost:
        problems.extend(_marks_of_chains(config, rng, file))
    return tuple(problems)


def _merges(config: ArenaConfig, number: int) -> bool:
    """Whether an arena merges with the next one, or the one before with it."""
    before = config.arenas.get(number - 1)
    return config.arenas[number].merge_next_arena or bool(before and before.merge_next_arena)


def _marks_of_chains(config: ArenaConfig, rng: Draws, file: str) -> Iterator[Problem]:
    """What is wrong with the pass marks of arenas that merge."""
    for number, arena in episodes(config).items():
        parts = episode_arenas(arena)
        last = number + len(parts) - 1
        if len(parts) == 1:
            continue  # said of the arena itself
        try:
            placed = [place(part, rng) for part in parts]
        except ArenaError:
            continue  # so is this
        fault = mark_fault(min_return(*placed), max_return(*placed), pass_mark(arena))
        if fault is not None:
            field = f"arenas[{last}].passMark"
            message = f"of arenas {number} to {last}, which merge: {fault.message}"
            yield Problem(file, None, field, fault.severity, fault.code, message)
            if fault.severity == "error" and max_return(*placed) <= 0.0:
                yield Problem(file, None, field, "warning", "no-reward", NO_REWARD)


def _line(loaded: LoadedConfig, field: str) -> int | None:
    """Line of a field, or of the nearest enclosing thing that has a line."""
    while field:
        if field in loaded.lines:
            return loaded.lines[field]
        field = re.sub(r"(\.\w+|\[-?\d+\]|^\w+)$", "", field)
    return None


_Finding = tuple[str, Severity, str, str]


def _findings(arena: Arena, rng: Draws, build: Build, whole: bool) -> Iterator[_Finding]:
    yield from _timing(arena)
    yield from _agents(arena)
    for index, item in enumerate(arena.items):
        yield from _item(item, f"items[{index}]", build)
    huge = [*_huge(arena)]
    yield from huge
    if huge:
        return  # nothing can be placed by such numbers
    try:
        placement = place(arena, rng)
    except ArenaError as error:
        yield "items", "error", "no-room", str(error)
        return
    for name, reason, (index, copy) in placement.skipped:
        if canonical_name(name) not in (None, "Agent"):  # said elsewhere
            message = f"copy {copy} of {name} finds no place: {reason}"
            yield f"items[{index}]", "warning", "not-spawned", message
    yield from _standing(placement)
    yield from _into_each_other(placement)
    yield from _out_of_reach(placement)
    fault = _mark_fault(placement)
    if fault is not None:
        yield "passMark", fault.severity, fault.code, fault.message
        if whole and fault.severity == "error" and max_return(placement) <= 0.0:
            yield "items", "warning", "no-reward", NO_REWARD
    if whole and (left := left_to_chance(arena, placement, build)) is not None:
        field, message = left
        yield field, "warning", LEFT, message


def _mark_fault(placement: Placement) -> MarkFault | None:
    """What is wrong with a pass mark; the way is looked for where it may matter."""
    least, greatest, mark = min_return(placement), max_return(placement), placement.pass_mark
    fault = mark_fault(least, greatest, mark)
    start = placement.agent.position
    straight = [
        run_seconds(math.hypot(goal.position.x - start.x, goal.position.z - start.z))
        for goal in positive_goals(placement)
    ]
    if placement.time_limit <= 0 or len(straight) != 1:
        return fault
    lost = (straight[0] + REFERENCE_SECONDS) / (SECONDS_PER_UNIT * placement.time_limit)
    if greatest - mark > _WINDING * lost:
        return fault
    demands = read_features(Survey(placement), NEEDED).values
    known = returns_in_time(demands, placement.time_limit * STEPS_PER_UNIT)
    return mark_fault(least, known.greatest, mark, known.likely)


def _timing(arena: Arena) -> Iterator[_Finding]:
    if arena.time_limit < 0:
        yield "timeLimit", "error", "bad-time-limit", f"{arena.time_limit} is negative"
    if arena.time_limit > ENDLESS:
        message = f"above {ENDLESS} health does not fall, in single precision: 0 is without limit"
        yield "timeLimit", "warning", "endless", message
    lights = arena.blackouts
    if not lights or lights[0] < 0:
        return
    if any(later <= sooner for sooner, later in itertools.pairwise(lights)):
        message = "the times must increase; 4.x builds refuse the file"
        yield "blackouts", "error", "bad-blackouts", message
    if max(lights) > arena.time_limit:
        message = f"{max(lights)} is after the time limit {arena.time_limit}; 4.x builds refuse it"
        yield "blackouts", "error", "bad-blackouts", message


def _agents(arena: Arena) -> Iterator[_Finding]:
    agents = [
        (index, item)
        for index, item in enumerate(arena.items)
        if canonical_name(item.name) == "Agent"
    ]
    if not agents:
        yield "items", "warning", "no-agent", "there is no Agent; it starts anywhere, by chance"
    for index, item in agents[:1]:
        if not item.positions:
            message = "the Agent has no position; 4.x builds refuse the file, here it is drawn"
            yield f"items[{index}].positions", "warning", "no-agent", message
        elif on_edge(item.positions[0]):
            message = "x or z is 0 or 40; Unity puts the agent at (1, 0, 1)"
            yield f"items[{index}].positions[0]", "warning", "agent-moved", message
    for index, _ in agents[1:]:
        yield f"items[{index}]", "warning", "second-agent", "only the first Agent counts"


def _huge(arena: Arena) -> Iterator[_Finding]:
    for field, message in out_of_bounds(arena):
        yield field, "error", "too-large", message


def _say_what_is_ignored(name: str, build: Build, builds: tuple[Build, ...]) -> str:
    known = f"builds {', '.join(builds)} heed it" if builds else "no build heeds it here"
    if len(builds) == 1:
        known = f"build {builds[0]} heeds it"
    return f"build {build} does not heed `{name}`; {known}"


def _item(item: Item, field: str, build: Build) -> Iterator[_Finding]:
    name = canonical_name(item.name)
    if name is None:
        message = f"Animal-AI has no object `{item.name[:60]}`; it is not spawned"
        yield f"{field}.name", "warning", "unknown-object", message
        return
    for heeded in unheeded_fields(item, build):
        alias = Item.model_fields[heeded.field].alias or heeded.field
        message = f"{_say_what_is_ignored(alias, build, heeded.builds)} (on {name})"
        yield f"{field}.{alias}", "warning", "ignored-field", message
    shares = [(c.r, c.g, c.b) for c in item.colors if max(c.r, c.g, c.b) <= 1.0]
    if any(0.0 < part < 1.0 for colour in shares for part in colour):
        message = "a colour goes from 0 to 255, and this is next to black: is it a share of 255?"
        yield f"{field}.colors", "warning", "dark-colour", message
    turns = [yaw / math.pi * 4.0 for yaw in item.rotations if 0.0 < yaw < 2.0 * math.pi]
    if any(abs(part - round(part)) < _ROUNDED and round(part) for part in turns):
        message = "a rotation is in degrees, and this is next to none: is it in radians?"
        yield f"{field}.rotations", "warning", "small-rotation", message
    drawn = [i for i, p in enumerate(item.positions) if any(-1.0 != c < 0.0 for c in (p.x, p.z))]
    if drawn:
        message = f"x or z is below 0 and drawn by chance, as -1 is{_more(drawn)}: a corner is 0, 0"
        yield f"{field}.positions[{drawn[0]}]", "warning", "drawn-position", message
    beyond = [i for i, p in enumerate(item.positions) if p.x > ARENA_SIDE or p.z > ARENA_SIDE]
    if beyond:
        message = f"x or z is above 40 and becomes 40{_more(beyond)}"
        yield f"{field}.positions[{beyond[0]}]", "warning", "clamped-position", message
    kind = KINDS[name]
    unknown = [i for i, symbol in enumerate(item.symbol_names) if not is_known(symbol)]
    if name == "SignBoard" and unknown:
        message = (
            f"`{item.symbol_names[unknown[0]][:60]}` is no symbol and no code of squares"
            f"{_more(unknown)}: the board is left empty; use one of {', '.join(SYMBOLS)}, "
            "NxM or rows like 01/10"
        )
        yield f"{field}.symbolNames[{unknown[0]}]", "warning", "unknown-symbol", message
    yield from _operations(item.operations, f"{field}.operations", name, build)
    if kind.reward in ("value", "size"):
        yield from _changing(item, kind, field)
        return
    if kind.fixed_size:
        return
    axes = "x" if kind.ball else "xyz"
    limits = {axis: (getattr(kind.size_min, axis), getattr(kind.size_max, axis)) for axis in axes}
    clamped = [
        (i, axis, getattr(size, axis))
        for i, size in enumerate(item.sizes[: item.copies])
        for axis in axes
        if getattr(size, axis) >= 0
        and not limits[axis][0] <= getattr(size, axis) <= limits[axis][1]
    ]
    if clamped:
        i, axis, value = clamped[0]
        low, high = limits[axis]
        message = f"{value:g} is not in {low:g}..{high:g} and is clamped{_more(clamped)}"
        yield f"{field}.sizes[{i}].{axis}", "warning", "clamped-size", message


def _changing(item: Item, kind: ObjectKind, field: str) -> Iterator[_Finding]:
    """Problems with the values of a goal that changes; sizes have no effect on it."""
    most = kind.size_max.x
    for key, low in (("initial_values", 0.0), ("final_values", 0.0), ("change_rates", -most)):
        values: tuple[float, ...] = getattr(item, key)
        beyond = [i for i, value in enumerate(values) if not low <= value <= most]
        if beyond:
            first = values[beyond[0]]
            message = f"{first:g} is not in {low:g}..{most:g} and is clamped{_more(beyond)}"
            name = f"{field}.{to_camel(key)}[{beyond[0]}]"
            yield name, "warning", "clamped-value", message


def _operations(
    operations: Iterable[Operation], field: str, owner: str, build: Build
) -> Iterator[_Finding]:
    if operations and owner not in _OPERATED:
        message = f"{owner} does nothing with operations; only {' and '.join(_OPERATED)} do"
        yield field, "warning", "no-effect", message
        return
    for index, operation in enumerate(operations):
        yield from _operation(operation, f"{field}[{index}]", owner, build)


def _operation(operation: Operation, field: str, owner: str, build: Build) -> Iterator[_Finding]:
    """Problems of an operation: what it does not do, what is odd in it, and in what it spawns."""
    match operation:
        case GrantContinuousReward() if owner == "SpawnerButton":
            message = (
                "grantContinuousReward does nothing on a SpawnerButton: it pays for every step "
                "inside a DataZone; use grantReward here, or put it on a DataZone"
            )
            yield field, "warning", "no-effect", message
        case LimitedInvocations(operation=inner) if inner is not None:
            yield from _operation(inner, f"{field}.operation", owner, build)
        case OperationFromList(operations=several):
            yield from _operations(several, f"{field}.operations", owner, build)
        case ToggleObject(spawnable=spawned) if spawned is not None:
            yield from _item(spawned, f"{field}.spawnable", build)
        case _:
            pass


def _standing(placement: Placement) -> Iterator[_Finding]:
    start = placement.agent.position
    for thing in placement.objects:
        index, copy = thing.source
        out = max(outside_by(solid) for solid in thing.solids())
        if out > 1e-6:
            message = f"copy {copy} of {thing.name} reaches {out:.2g} m through the arena's wall"
            yield f"items[{index}]", "warning", "out-of-bounds", message
        if thing.kind.reward == "death" and any(
            overlaps(solid, agent_body(start)) for solid in thing.solids()
        ):
            message = f"the agent starts at ({start.x:g}, {start.z:g}), in a DeathZone"
            yield f"items[{index}]", "error", "starts-dead", message


def _into_each_other(placement: Placement) -> Iterator[_Finding]:
    """Overlaps that Unity does not test when it spawns: those of colliders other than the first."""
    earlier: list[tuple[Solid, str]] = [(agent_body(placement.agent.position), "the agent")]
    for thing in placement.objects:
        if thing.kind.zone:
            continue
        (index, copy), parts = thing.source, thing.solids()
        met = {
            other: None
            for part in parts[1:]
            for solid, other in earlier
            if part.shape == "box" and overlaps(part, solid)
        }
        if met:
            message = (
                f"copy {copy} of {thing.name} is in {', '.join(met)}: they push each other out"
            )
            yield f"items[{index}]", "warning", "overlap", message
        earlier.extend((part, f"{thing.name} {index}.{copy}") for part in parts)


def _out_of_reach(placement: Placement) -> Iterator[_Finding]:
    for thing in unreachable_goals(placement):
        index, copy = thing.source
        message = (
            f"copy {copy} of {thing.name} at ({thing.position.x:.4g}, {thing.position.z:.4g}) "
            "cannot be reached: walls or a DeathZone bar every way along the floor"
        )
        yield f"items[{index}]", "warning", "unreachable-goal", message


def _more(overlaps: list[int] | list[tuple[int, str, float]]) -> str:
    return f" (and {len(overlaps) - 1} more)" if len(overlaps) > 1 else ""
