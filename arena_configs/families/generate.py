"""Draws instances of families; each passes every check, and its claims can be compared."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from itertools import combinations
from pathlib import Path
from types import MappingProxyType
from typing import Final, TypeAlias

import numpy as np

from animalcat.arena_configs.checks import check_arena
from animalcat.arena_configs.families.build import (
    UnfitError,
    build_arena,
    controlled,
    parameter_values,
    scope_of,
)
from animalcat.arena_configs.families.claims import (
    ClaimError,
    Measure,
    differences,
    told,
)
from animalcat.arena_configs.families.language import PARTS, Control, Family, Paradigm, Part
from animalcat.arena_configs.families.polar import (
    POLAR,
    PolarArena,
    load_polar,
    polar_arenas,
    shares,
)
from animalcat.arena_configs.families.polar_template import PolarFamily
from animalcat.arena_configs.families.reader import read_family
from animalcat.arena_configs.families.scope import Value
from animalcat.arena_configs.families.variants import mirrored, turned
from animalcat.arena_configs.model import Arena, ArenaError
from animalcat.arena_configs.placement import fix, place
from animalcat.arena_configs.writer import to_yaml

AnyFamily: TypeAlias = Family | PolarFamily

DRAWS: Final = 2000
"""Draws of the parameters for one instance, before its constraints are said to contradict."""
TRIES: Final = 100
"""Arenas that are built for one instance, before the family is said to leave no room."""
_SEEDS: Final[int] = 2**62
"""Seeds that an instance may be drawn from."""
_PRACTICE: Final = 4
"""One in so many of all arenas is for practice."""


@dataclass(frozen=True, slots=True)
class FamilyInstance:
    """An arena of a family.

    Attributes:
        name: Its name, unique in the family for this seed.
        arena: The arena; every value is explicit.
        paradigm: The stratum it was drawn for.
        parameters: Its parameters and derived values.
        variant: Which variant of its task it is: mirrored or not, and how it is turned.
        task: The draw of parameters that its variants share.
        part: The part that it belongs to, whatever the seed.
        control: The control that made it of another instance; "" for none.
        control_of: Name of that instance.
    """

    name: str
    arena: Arena
    paradigm: str
    parameters: Mapping[str, Value] = field(default_factory=dict[str, Value])
    variant: str = ""
    task: str = ""
    part: Part = "test"
    control: str = ""
    control_of: str = ""


@dataclass(frozen=True, slots=True)
class Draw:
    """One draw of a family's parameters.

    Attributes:
        paradigm: The paradigm.
        shares: By parameter, which share of all draws are below its value.
        seed: Seed of colours that are drawn at random.
    """

    paradigm: Paradigm
    shares: Mapping[str, float]
    seed: int


def _shipped() -> tuple[str, ...]:
    folder = files("animalcat.arena_configs").joinpath("families")
    found = (Path(one.name) for one in folder.iterdir())
    return tuple(sorted(path.stem for path in found if path.suffix == ".yaml"))


FAMILIES: Final = _shipped()
"""Names of the families that come with the project, one for each file."""


@cache
def load_family(name: str) -> AnyFamily:
    """Load a family that comes with the project.

    Args:
        name: One of `FAMILIES`.

    Raises:
        ArenaError: There is no such family, or its file is wrong.
    """
    if name in POLAR:
        return load_polar(name)
    if name not in FAMILIES:
        raise ArenaError(f"no family {name!r}; there are: {', '.join(FAMILIES)}")
    text = files("animalcat.arena_configs").joinpath(f"families/{name}.yaml").read_text("utf-8")
    return read_family(text, f"{name}.yaml")


def load_family_file(path: Path) -> Family:
    """Load a family of one's own.

    Args:
        path: A YAML file.

    Raises:
        ArenaError: It cannot be read, or is no family; the message says line and key.
    """
    try:
        text = path.read_text("utf-8-sig")
    except OSError as error:
        raise ArenaError(f"{path}: {error.strerror or 'not readable'}") from None
    except UnicodeDecodeError:
        raise ArenaError(f"{path}: the file is not UTF-8 text") from None
    return read_family(text, str(path))


def generate(
    family: str | AnyFamily,
    n: int,
    rng: np.random.Generator,
    *,
    part: Part | None = None,
    paradigm: str | None = None,
    controls: Sequence[str] = (),
    given: Mapping[str, Value] = MappingProxyType({}),
    measure: Measure | None = None,
    played: bool = False,
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

    Raises:
        ArenaError: There is no such family, part, paradigm or control; nothing satisfies its
            constraints; or its ranges leave no room.
        ClaimError: A claim does not hold.
    """
    chosen = load_family(family) if isinstance(family, str) else family
    if isinstance(chosen, PolarFamily):
        return _polar(chosen, n, rng, part, paradigm, controls, given)
    made = [*_instances(chosen, n, rng, part, paradigm, controls, given)]
    if measure is not None:
        check_claims(chosen, made, measure, played=played)
    return made


def check_claims(
    family: Family, instances: Sequence[FamilyInstance], measure: Measure, *, played: bool
) -> None:
    """Compare what a family claims with what is measured on its instances.

    Args:
        family: The family.
        instances: Instances of it.
        measure: Measures the demands of an arena.
        played: Whether it plays the arena. If not, claims that take playing are not compared.

    Raises:
        ClaimError: A claim does not hold; the message names instance, demand, claim and measure.
    """
    lines = [*claim_errors(family, instances, measure, played=played)]
    if lines:
        raise ClaimError("\n".join(lines))


def claim_errors(
    family: Family, instances: Sequence[FamilyInstance], measure: Measure, *, played: bool
) -> Iterator[str]:
    """Say which claims do not hold, one instance after the other.

    Args:
        family: The family.
        instances: Instances of it; a control comes after the instance that it is of.
        measure: Measures the demands of an arena.
        played: Whether it plays the arena.
    """
    measured: dict[str, Mapping[str, float]] = {}
    for one in instances:
        paradigm = family.paradigm(one.paradigm)
        control = family.controls[one.control] if one.control else None
        features = measure(one.arena)
        measured[one.name] = features.values
        scope = scope_of(family, paradigm, one.parameters, variant_of(one.variant)[0])
        name = f"family {family.name}, instance {one.name} ({one.paradigm})"
        wrong = differences(family.claims_of(paradigm, control), scope, features, played=played)
        if wrong:
            yield told(name, wrong)
        if control is not None and one.control_of in measured:
            yield from _unpaired(name, control, measured[one.control_of], features.values, played)


def _unpaired(
    name: str,
    control: Control,
    before: Mapping[str, float],
    after: Mapping[str, float],
    played: bool,
) -> Iterator[str]:
    """What keeps an instance and its control from differing in what the control takes alone."""
    for demand, differs in [(d, True) for d in control.takes] + [(d, False) for d in control.keeps]:
        values = before.get(demand), after.get(demand)
        if not played and values == (None, None):
            continue
        first, second = values
        same = first == second or (
            first is not None and second is not None and math.isclose(first, second, abs_tol=0.005)
        )
        if same == differs:
            what = "is the same" if same else "is not the same"
            word = "takes" if differs else "keeps"
            yield (
                f"{name}: control {control.name} {word} {demand}, but it {what} without it: "
                f"{_shown(first)} and {_shown(second)}"
            )


def _shown(value: float | None) -> str:
    return "none" if value is None else f"{value:.6g}"


def _polar(
    family: PolarFamily,
    n: int,
    rng: np.random.Generator,
    part: Part | None,
    paradigm: str | None,
    controls: Sequence[str],
    given: Mapping[str, Value],
) -> list[FamilyInstance]:
    if controls:
        raise ArenaError(f"family {family.name} has no control {controls[0]!r}; it has none")
    if given:
        raise ArenaError(f"family {family.name} has no parameters to set")
    if paradigm is not None:
        known = {one.name: one for one in family.paradigms}
        _one_of(known, paradigm, f"family {family.name}", "paradigm")
        family = family.model_copy(update={"paradigms": (known[paradigm],)})
    made: list[PolarArena] = []
    while len(made) < n:
        more = polar_arenas(family, n, rng)
        made += [one for one in more if part is None or part_of(one.arena) == part]
    width = len(str(n))
    names = [f"{family.name}-{index:0{width}d}" for index in range(1, n + 1)]
    return [
        FamilyInstance(
            name,
            one.arena,
            one.paradigm,
            variant="mirror" if one.mirrored else "",
            task=name,
            part=part_of(one.arena),
        )
        for name, one in zip(names, made, strict=False)
    ]


def _instances(
    family: Family,
    n: int,
    rng: np.random.Generator,
    part: Part | None,
    paradigm: str | None,
    controls: Sequence[str],
    given: Mapping[str, Value],
) -> Iterator[FamilyInstance]:
    where = f"family {family.name}"
    if part is not None and part not in PARTS:
        raise ArenaError(f"{where} has no part {part!r}; it has {' and '.join(PARTS)}")
    for control in controls:
        _one_of(family.controls, control, where, "control")
    for name in given:
        _one_of(family.ranges, name, where, "parameter")
    strata = {one.name: one for one in family.paradigms}
    if paradigm is not None:
        _one_of(strata, paradigm, where, "paradigm")
        strata = {paradigm: strata[paradigm]}
    width, index, seen = len(str(n)), 0, set[str]()
    counts = shares([one.weight for one in strata.values()], n)
    for stratum, count in zip(strata.values(), counts, strict=True):
        made = 0
        while made < count:
            seed = int(rng.integers(_SEEDS))
            each = min(family.variants.each, count - made)
            task = _task(family, stratum, seed, made, each, part, controls, given, seen)
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


def _one_of(known: Mapping[str, object], name: str, where: str, what: str) -> None:
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
    part: Part | None,
    controls: Sequence[str],
    given: Mapping[str, Value],
    seen: set[str],
) -> _Variants:
    """Draw the variants of one task, each with its controls."""
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
                text = to_yaml(one.arena)
                if text in seen or text in fresh:
                    raise UnfitError("the arena was drawn before")
                fresh.add(text)
                here = [name for name in controls if family.controls[name].is_of(paradigm)]
                others = [_control(family, one, draw, name) for name in here]
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
    raise ArenaError(
        f"family {family.name}, paradigm {paradigm.name}: no arena in "
        f"{reasons.total()} draws; {times} times because {why}"
    )


def draw_parameters(
    family: Family,
    paradigm: Paradigm,
    rng: np.random.Generator,
    given: Mapping[str, Value] = MappingProxyType({}),
) -> Draw:
    """Draw parameters until every constraint holds.

    Args:
        family: The family.
        paradigm: The paradigm.
        rng: Source of all randomness.
        given: Parameters that are set.

    Raises:
        ArenaError: No draw satisfies them; the message names those that contradict each other.
    """
    for _ in range(DRAWS):
        draw = _drawn(family, paradigm, rng)
        if _holds(family, draw, given):
            return draw
    raise _contradiction(family, paradigm, rng, given)


def _drawn(family: Family, paradigm: Paradigm, rng: np.random.Generator) -> Draw:
    names = family.ranges_of(paradigm)
    shares_ = dict(zip(names, rng.random(len(names)).tolist(), strict=True))
    return Draw(paradigm, shares_, int(rng.integers(2**31)))


def _holds(family: Family, draw: Draw, given: Mapping[str, Value]) -> bool:
    try:
        values = parameter_values(family, draw.paradigm, draw.shares, given)
    except UnfitError:
        return False
    scope = scope_of(family, draw.paradigm, values)
    return all(constraint.holds(scope) for constraint in family.constraints)


def fits(family: Family, draw: Draw, given: Mapping[str, Value] = MappingProxyType({})) -> bool:
    """Whether every constraint holds for a draw of the parameters."""
    return _holds(family, draw, given)


def _contradiction(
    family: Family, paradigm: Paradigm, rng: np.random.Generator, given: Mapping[str, Value]
) -> ArenaError:
    """Say which constraints never hold together: the fewest that tell it."""
    where = f"family {family.name}, paradigm {paradigm.name}"
    rows: list[list[bool]] = []
    reasons = Counter[str]()
    for _ in range(DRAWS):
        draw = _drawn(family, paradigm, rng)
        try:
            values = parameter_values(family, paradigm, draw.shares, given)
        except UnfitError as error:
            reasons[str(error).partition(" is ")[0]] += 1
            continue
        scope = scope_of(family, paradigm, values)
        rows.append([one.holds(scope) for one in family.constraints])
    if not rows:
        why, _times = reasons.most_common(1)[0]
        return ArenaError(f"{where}: a range never has a value: {why}")
    held = np.array(rows)
    for size in range(1, len(family.constraints) + 1):
        for few in combinations(range(len(family.constraints)), size):
            if held[:, list(few)].all(axis=1).any():
                continue
            first = family.constraints[few[0]].place
            listed = " and ".join(
                f"{family.constraints[k].place.path} (`{family.constraints[k].text}`, line "
                f"{family.constraints[k].place.line})"
                for k in few
            )
            never = "never holds" if size == 1 else "never hold together"
            return first.error(f"{where}: {listed} {never} in {len(rows)} draws", "contradiction")
    raise AssertionError("some draw satisfies all constraints")


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


def checked(family: Family, arena: Arena, flipped: bool, quarters: int) -> Arena:
    """Turn a built arena, make every value explicit and check it.

    Args:
        family: The family, which says which warnings its arenas may have.
        arena: The arena as built.
        flipped: Whether it becomes its mirror image.
        quarters: Quarters of a circle by which it is turned.

    Raises:
        UnfitError: It does not pass.
        ArenaError: It leaves something to chance.
    """
    if flipped:
        arena = mirrored(arena)
    arena = turned(arena, quarters)
    rng = np.random.default_rng(0)
    for problem in check_arena(arena, rng):
        if problem.code not in family.allow:
            raise UnfitError(problem.message)
    placement = place(arena, rng)
    if placement.drawn:
        raise ArenaError(
            f"family {family.name} leaves to chance: {', '.join(placement.drawn)}. Give it a value "
            "or a parameter"
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
    mine = dict(zip(variants.parameters, rng.random(len(variants.parameters)), strict=True))
    shares_ = {**draw.shares, **{name: float(share) for name, share in mine.items()}}
    values = parameter_values(family, draw.paradigm, shares_, given)
    flipped = variants.mirror and number % 2 == 1
    quarters = (number // (2 if variants.mirror else 1)) % 4 if variants.turns else 0
    built = build_arena(family, scope_of(family, draw.paradigm, values), seed=draw.seed)
    arena = checked(family, built, flipped, quarters)
    return FamilyInstance(
        "", arena, draw.paradigm.name, values, variant_name(flipped, quarters), part=part
    )


def variant_name(flipped: bool, quarters: int) -> str:
    """The name of a variant; "" for the arena as it is built."""
    parts = ["mirror"] * flipped + [f"turn{90 * quarters}"] * (quarters > 0)
    return "-".join(parts)


def variant_of(name: str) -> tuple[bool, int]:
    """Whether a variant is a mirror image, and the quarters by which it is turned."""
    return name.startswith("mirror"), int(name.partition("turn")[2] or 0) // 90


def _control(family: Family, one: FamilyInstance, draw: Draw, name: str) -> FamilyInstance:
    """The control of an instance: built from the same values, in the same variant."""
    control = family.controls[name]
    values = controlled(family, draw.paradigm, control, one.parameters)
    built = build_arena(family, scope_of(family, draw.paradigm, values), control, draw.seed)
    flipped, quarters = variant_of(one.variant)
    arena = checked(family, built, flipped, quarters)
    return replace(one, arena=arena, parameters=values, control=name)
