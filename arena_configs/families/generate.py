"""Draws instances of families; each passes every check, and its claims can be compared."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from animalcat.arena_configs.checks import check_arena, check_config
from animalcat.arena_configs.families.build import (
    UnfitError,
    apply_control,
    build_arena,
    parameter_values,
    scope_of,
)
from animalcat.arena_configs.families.claims import Measure, check_claims
from animalcat.arena_configs.families.instance import FamilyInstance, variant_name, variant_of
from animalcat.arena_configs.families.language import PARTS, Family, Paradigm, Part, shares
from animalcat.arena_configs.families.library import load_family
from animalcat.arena_configs.families.sampling import (
    DRAWS,
    Draw,
    constraints_hold,
    draw_parameters,
)
from animalcat.arena_configs.families.scope import Value
from animalcat.arena_configs.families.variants import mirror_arena, turn_arena
from animalcat.arena_configs.model import Arena, ArenaError
from animalcat.arena_configs.placement import fix, place
from animalcat.arena_configs.sequence import ArenaSequence, episode_arenas, of_parts
from animalcat.arena_configs.writer import to_yaml

TRIES: Final = 100
"""Arenas that are built for one instance, before the family is said to leave no room; and draws of
the parameters of one variant, before its task is drawn again."""
_SEEDS: Final[int] = 2**62
"""Seeds that an instance may be drawn from."""
_PRACTICE: Final = 4
"""One in so many of all arenas is for practice."""


def generate(
    family: str | Family,
    n: int,
    rng: np.random.Generator,
    *,
    part: Part | None = None,
    paradigm: str | None = None,
    controls: Sequence[str] = (),
    given: Mapping[str, Value] = MappingProxyType({}),
    measure: Measure | None = None,
    played: bool = False,
    seen: set[str] | None = None,
) -> list[FamilyInstance]:
    """Draw instances of a family.

    Args:
        family: Name of a family, or a family.
        n: Number of instances besides controls, divided among the paradigms by their weights.
        rng: Source of all randomness.
        part: Only instances of this part; None for both.
        paradigm: Only instances of this paradigm; None for all.
        controls: Names of controls; each instance is followed by these controls of it.
        given: Parameters that are set, whatever their range.
        measure: Measures the demands of every instance, to compare them with what the family
            claims; None to compare nothing.
        played: Whether it plays the arenas. If not, claims that take playing are not compared.
        seen: Texts of arenas that are not to be drawn again, as controls neither; those drawn here
            are added. By default no instance is drawn again, but two may have the same control.

    Raises:
        ArenaError: There is no such family, part, paradigm or control; nothing satisfies its
            constraints; or its ranges leave no room.
        ClaimError: A claim does not hold.
    """
    chosen = load_family(family) if isinstance(family, str) else family
    check_asked(chosen, part, paradigm, controls, given)
    wanted = _DrawRequest(part, paradigm, tuple(controls), given, seen is not None)
    made = [*_instances(chosen, n, rng, wanted, set() if seen is None else seen)]
    if measure is not None:
        check_claims(chosen, made, measure, played=played)
    return made


def drawing(family: str, n: int, rng: np.random.Generator) -> Iterator[FamilyInstance]:
    """Draw the instances that `generate` draws, one after the other.

    Args:
        family: Name of a family.
        n: Number of instances.
        rng: Source of all randomness.

    Raises:
        ArenaError: As `generate`.
    """
    wanted = _DrawRequest(None, None, (), MappingProxyType({}), False)
    return _instances(load_family(family), n, rng, wanted, set())


def check_asked(
    family: Family,
    part: Part | None = None,
    paradigm: str | None = None,
    controls: Sequence[str] = (),
    given: Mapping[str, Value] = MappingProxyType({}),
) -> None:
    """Refuse what a family does not have.

    Args:
        family: The family.
        part: The part that is asked for; None for both.
        paradigm: The paradigm; None for all.
        controls: Names of controls.
        given: Parameters that are set.

    Raises:
        ArenaError: It does not have it, or what is set is not finite.
    """
    where = f"family {family.name}"
    if part is not None and part not in PARTS:
        raise ArenaError(f"{where} has no part {part!r}; it has {' and '.join(PARTS)}")
    if paradigm is not None:
        _one_of([one.name for one in family.paradigms], paradigm, where, "paradigm")
    for control in controls:
        _one_of([*family.controls], control, where, "control")
    for name, value in given.items():
        _one_of([*family.ranges], name, where, "parameter")
        if not isinstance(value, str) and not math.isfinite(value):
            raise ArenaError(f"{where}: parameter {name!r} is set to {value}; give a finite number")


class _DrawRequest(NamedTuple):
    """Which instances are drawn; the fields are arguments of `generate`."""

    part: Part | None
    paradigm: str | None
    controls: tuple[str, ...]
    given: Mapping[str, Value]
    fresh_controls: bool


def _instances(
    family: Family, n: int, rng: np.random.Generator, wanted: _DrawRequest, seen: set[str]
) -> Iterator[FamilyInstance]:
    strata = {one.name: one for one in family.paradigms if wanted.paradigm in (None, one.name)}
    width, index = len(str(n)), 0
    counts = shares([one.weight for one in strata.values()], n)
    for stratum, count in zip(strata.values(), counts, strict=True):
        made = 0
        while made < count:
            seed = int(rng.integers(_SEEDS))
            each = min(family.variants.each, count - made)
            task = _task(family, stratum, seed, made, each, wanted, seen)
            first = index + 1
            for one, others in task:
                index += 1
                made += 1
                name = f"{family.name}-{index:0{width}d}"
                task_name = f"{family.name}-{first:0{width}d}"
                yield replace(one, name=name, task=task_name)
                for other in others:
                    called = f"{name}.{other.control}"
                    yield replace(other, name=called, task=task_name, control_of=name)


def _one_of(known: Sequence[str], name: str, where: str, what: str) -> None:
    if name not in known:
        there = ", ".join(known) or "none"
        raise ArenaError(f"{where} has no {what} {name!r}; it has {there}")


_Variants: TypeAlias = list[tuple[FamilyInstance, list[FamilyInstance]]]


def _task(
    family: Family,
    paradigm: Paradigm,
    seed: int,
    made: int,
    each: int,
    wanted: _DrawRequest,
    seen: set[str],
) -> _Variants:
    """Draw the variants of one task, each with its controls."""
    part, _, controls, given, fresh_controls = wanted
    rng = np.random.default_rng(seed)
    reasons = Counter[str]()
    for _ in range(DRAWS):
        draw = draw_parameters(family, paradigm, rng, given)
        try:
            base = base_arena(family, draw, given)
            if part is not None and part_of(base) != part:
                reasons[f"it is not for {part}"] += 1
                continue
            found: _Variants = []
            fresh = set[str]()
            for number in range(made, made + each):
                one = _variant(family, draw, number, rng, given, part_of(base))
                _add(one, seen, fresh)
                here = [name for name in controls if family.controls[name].is_of(paradigm)]
                others = [_control(family, one, draw, name, given) for name in here]
                for other in others if fresh_controls else ():
                    _add(other, seen, fresh)
                found.append((one, others))
        except UnfitError as error:
            reasons[str(error)] += 1
            tries = sum(times for why, times in reasons.items() if "is not for" not in why)
            if tries >= TRIES:
                break
            continue
        seen |= fresh
        return found
    why, times = reasons.most_common(1)[0]
    raise paradigm.place.error(
        f"family {family.name}, paradigm {paradigm.name}: no arena in "
        f"{reasons.total()} draws; {times} times because {why}",
        "no-arena",
    )


def _add(one: FamilyInstance, seen: set[str], fresh: set[str]) -> None:
    """Add an arena to those that are new, unless it was drawn before."""
    text = to_yaml(one.arena)
    if text in seen or text in fresh:
        raise UnfitError(f"the arena{' of a control' * bool(one.control)} was drawn before")
    fresh.add(text)


def base_arena(
    family: Family, draw: Draw, given: Mapping[str, Value] = MappingProxyType({})
) -> Arena:
    """The arena of a draw without any variation, which decides its part.

    Args:
        family: The family.
        draw: A draw of the parameters.
        given: Parameters that are set.

    Raises:
        UnfitError: Something would stand outside the arena.
    """
    plain = {**draw.shares, **dict.fromkeys(family.variants.parameters, 0.0)}
    values = parameter_values(family, draw.paradigm, plain, given)
    return build_arena(family, scope_of(family, draw.paradigm, values))


def part_of(arena: Arena) -> Part:
    """The part that an arena belongs to: by its content, so that parts share none."""
    digest = hashlib.blake2b(to_yaml(arena).encode(), digest_size=8).digest()
    return PARTS[0] if int.from_bytes(digest, "little") % _PRACTICE == 0 else PARTS[1]


def turn_and_check(family: Family, arena: Arena, flipped: bool, quarters: int) -> Arena:
    """Turn a built arena, make every value explicit and check it.

    Args:
        family: The family, which says which warnings its arenas may have.
        arena: The arena as built, with those that it merges with.
        flipped: Whether it becomes its mirror image.
        quarters: Quarters of a circle by which it is turned.

    Raises:
        UnfitError: It does not pass.
        ArenaError: It leaves something to chance.
    """
    parts = episode_arenas(arena)
    if flipped:
        parts = [mirror_arena(part) for part in parts]
    arena = of_parts([turn_arena(part, quarters) for part in parts])
    rng = np.random.default_rng(0)
    chain = isinstance(arena, ArenaSequence)
    problems = check_config(arena.config(), rng) if chain else check_arena(arena, rng)
    for problem in problems:
        if problem.code not in family.allow:
            raise UnfitError(problem.message)
    drawn = [field for part in episode_arenas(arena) for field in place(part, rng).drawn]
    if drawn:
        raise ArenaError(
            f"family {family.name} leaves to chance: {', '.join(drawn)}. Give it a value or a "
            "parameter"
        )
    return fix(arena, rng)


def _variant(
    family: Family,
    draw: Draw,
    number: int,
    rng: np.random.Generator,
    given: Mapping[str, Value],
    part: Part,
) -> FamilyInstance:
    variants = family.variants
    values = _draw_variants(family, draw, rng, given)
    flipped = variants.mirror and number % 2 == 1
    quarters = (number // (2 if variants.mirror else 1)) % 4 if variants.turns else 0
    built = build_arena(family, scope_of(family, draw.paradigm, values), seed=draw.seed)
    arena = turn_and_check(family, built, flipped, quarters)
    return FamilyInstance(
        "", arena, draw.paradigm.name, values, variant_name(flipped, quarters), part=part
    )


def _draw_variants(
    family: Family, draw: Draw, rng: np.random.Generator, given: Mapping[str, Value]
) -> dict[str, Value]:
    """The values of a draw with the parameters of its variants drawn anew.

    Raises:
        UnfitError: The constraints do not hold with any that were drawn.
    """
    names = family.variants.parameters
    for _ in range(TRIES):
        mine = dict(zip(names, rng.random(len(names)).tolist(), strict=True))
        values = parameter_values(family, draw.paradigm, {**draw.shares, **mine}, given)
        if constraints_hold(family, draw.paradigm, values):
            return values
    raise UnfitError(f"the constraints do not hold with other values of {', '.join(names)}")


def _control(
    family: Family, one: FamilyInstance, draw: Draw, name: str, given: Mapping[str, Value]
) -> FamilyInstance:
    """The control of an instance: built from the same values, in the same variant."""
    control = family.controls[name]
    values = apply_control(family, draw.paradigm, control, one.parameters, given)
    built = build_arena(family, scope_of(family, draw.paradigm, values), control, draw.seed)
    flipped, quarters = variant_of(one.variant)
    arena = turn_and_check(family, built, flipped, quarters)
    return replace(one, arena=arena, parameters=values, control=name)
