"""Draws the parameters of a family until its constraints hold, or says which contradict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from types import MappingProxyType
from typing import Final

import numpy as np

from animalcat.arena_configs.families.build import UnfitError, parameter_values, scope_of
from animalcat.arena_configs.families.language import Family, Paradigm
from animalcat.arena_configs.families.scope import Value
from animalcat.arena_configs.model import ArenaError

DRAWS: Final = 2000
"""Draws of the parameters for one instance, before its constraints are said to contradict."""


@dataclass(frozen=True, slots=True)
class Draw:
    """One draw of a family's parameters.

    Attributes:
        paradigm: The paradigm.
        shares: By parameter, the quantile of its value: the share of all draws below it.
        seed: Seed of colours that are drawn at random.
    """

    paradigm: Paradigm
    shares: Mapping[str, float]
    seed: int


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
        ArenaError: No draw satisfies them; the message names those that contradict each other, or
            says that they hold too rarely.
    """
    for _ in range(DRAWS):
        draw = random_draw(family, paradigm, rng)
        if fits(family, draw, given):
            return draw
    raise _contradiction(family, paradigm, rng, given)


def random_draw(family: Family, paradigm: Paradigm, rng: np.random.Generator) -> Draw:
    """Draw parameters, whether or not the constraints hold."""
    names = family.ranges_of(paradigm)
    shares_ = dict(zip(names, rng.random(len(names)).tolist(), strict=True))
    return Draw(paradigm, shares_, int(rng.integers(2**31)))


def fits(family: Family, draw: Draw, given: Mapping[str, Value] = MappingProxyType({})) -> bool:
    """Whether every constraint holds for a draw of the parameters."""
    return fitting_values(family, draw, given) is not None


def fitting_values(
    family: Family, draw: Draw, given: Mapping[str, Value] = MappingProxyType({})
) -> dict[str, Value] | None:
    """Parameters and derived values of a draw; None if a constraint does not hold."""
    try:
        values = parameter_values(family, draw.paradigm, draw.shares, given)
    except UnfitError:
        return None
    return values if constraints_hold(family, draw.paradigm, values) else None


def constraints_hold(family: Family, paradigm: Paradigm, values: Mapping[str, Value]) -> bool:
    """Whether every constraint holds for values of the parameters."""
    scope = scope_of(family, paradigm, values)
    return all(constraint.holds(scope) for constraint in family.constraints)


def _contradiction(
    family: Family, paradigm: Paradigm, rng: np.random.Generator, given: Mapping[str, Value]
) -> ArenaError:
    """Say which constraints never hold together: the fewest that tell it, or that all do rarely."""
    where = f"family {family.name}, paradigm {paradigm.name}"
    rows: list[list[bool]] = []
    reasons = Counter[str]()
    for _ in range(DRAWS):
        draw = random_draw(family, paradigm, rng)
        try:
            values = parameter_values(family, paradigm, draw.shares, given)
        except UnfitError as error:
            reasons[str(error).partition(" is ")[0]] += 1
            continue
        scope = scope_of(family, paradigm, values)
        rows.append([constraint.holds(scope) for constraint in family.constraints])
    if not rows:
        why, _times = reasons.most_common(1)[0]
        name, _, low = why.partition(": ")
        words = f"{where}: a range never has a value: {name}"
        words += f": {low} is always above its high end" if low else ""
        ends = family.ranges_of(paradigm)[name].formulas
        return ends[0].place.error(words, "contradiction") if ends else ArenaError(words)
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
    hits = int(held.all(axis=1).sum())
    first = family.constraints[0].place if family.constraints else paradigm.place
    return first.error(
        f"{where}: only {hits} of {2 * DRAWS} draws have a value in every range and satisfy all "
        "constraints; change ranges or constraints so that more do",
        "no-arena",
    )
