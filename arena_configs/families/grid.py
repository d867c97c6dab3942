"""Spreads the demands of a family over what its parameters can be, where they are parameters."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from animalcat.arena_configs.families.aims import aims_at, claimed_values
from animalcat.arena_configs.families.build import scope_of, words
from animalcat.arena_configs.families.language import Family, Paradigm
from animalcat.arena_configs.families.ranges import EmptyRangeError
from animalcat.arena_configs.families.sampling import Draw, constraints_hold, fits
from animalcat.arena_configs.families.scope import Value
from animalcat.text.formulas import names

MOST: Final = 5_000
"""Most combinations of demands of a paradigm, mirror images aside."""
_TRIES: Final = 50
"""Draws of all else with a combination of demands, before it is said to fit nowhere."""


def are_parameters(family: Family, paradigm: Paradigm, demands: Collection[str]) -> bool:
    """Whether some demands are all parameters of a paradigm."""
    return aims_at(family, paradigm, dict.fromkeys(demands, 0.0)).demands >= {*demands}


def demand_grid(family: Family, paradigm: Paradigm, asked: Sequence[str]) -> list[dict[str, float]]:
    """Combine values of demands that are parameters of a paradigm.

    Args:
        family: The family.
        paradigm: The paradigm.
        asked: The demands.

    Returns:
        What is claimed of arenas, one for each combination of these demands that fits. Empty if one
        of them is no parameter, or if there are more than `MOST`.
    """
    if not are_parameters(family, paradigm, asked):
        return []
    aims = aims_at(family, paradigm, dict.fromkeys(asked, 0.0))
    found: dict[tuple[float, ...], dict[str, float]] = {}
    flips = (False, True) if family.variants.mirror else (False,)
    for number, values in enumerate(_combine(family, paradigm, aims.values)):
        if number == MOST:
            return []
        if not _has_room(family, paradigm, values, aims.values):
            continue
        for mirrored in flips:
            scope = scope_of(family, paradigm, values, mirrored)
            claimed = claimed_values(family, paradigm, scope)
            found.setdefault(tuple(claimed[name] for name in asked), claimed)
    return [*found.values()]


def _combine(
    family: Family, paradigm: Paradigm, demands: Mapping[str, float]
) -> Iterator[dict[str, Value]]:
    """Values of the parameters that are demands, from least to greatest, and of what hangs on them.

    Others are in the middle; those that no claim and no constraint names are left out.
    """
    ranges = family.ranges_of(paradigm)
    needed = _names_needed(family, paradigm, demands)

    def rest(scope: dict[str, Value], names: Sequence[str]) -> Iterator[dict[str, Value]]:
        for k, name in enumerate(names):
            try:
                if name in demands:
                    for value in ranges[name].spread(scope):
                        yield from rest({**scope, name: _round(value)}, names[k + 1 :])
                    return
                scope[name] = ranges[name].value(0.5, scope)
            except EmptyRangeError:
                return
        yield scope

    order = [name for name in paradigm.order if name in needed]
    yield from rest(words(family, paradigm), order)


def _names_needed(family: Family, paradigm: Paradigm, demands: Iterable[str]) -> set[str]:
    """Names on which demands, claims and constraints depend."""
    claims = family.claims_of(paradigm)
    formulas = [*family.constraints]
    formulas += [one for claim in claims for one in (claim.exact, claim.when) if one is not None]
    left = [*demands, *(name for one in formulas for name in names(one.expression))]
    ranges = family.ranges_of(paradigm)
    found: set[str] = set()
    while left:
        name = left.pop()
        if name in ranges and name not in found:
            found.add(name)
            left += [other for one in ranges[name].formulas for other in names(one.expression)]
    return found


def _round(value: Value) -> Value:
    return value if isinstance(value, str) else round(value, 6)


def _has_room(
    family: Family, paradigm: Paradigm, values: Mapping[str, Value], demands: Mapping[str, float]
) -> bool:
    """Whether the constraints hold with some values of the other parameters."""
    if constraints_hold(family, paradigm, values):
        return True
    given = {name: values[name] for name in demands}
    rng = np.random.default_rng(0)
    all_names = [*family.ranges_of(paradigm)]
    draws = (
        Draw(paradigm, dict(zip(all_names, rng.random(len(all_names)).tolist(), strict=True)), 0)
        for _ in range(_TRIES)
    )
    return any(fits(family, draw, given) for draw in draws)
