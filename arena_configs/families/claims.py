"""Compares what a family claims of its arenas with what is measured on them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from animalcat.arena_configs.families.language import Claim
from animalcat.arena_configs.families.scope import Scope
from animalcat.arena_configs.features import FEATURES, MeasuredFeatures, measure_features
from animalcat.arena_configs.model import Arena, ArenaError
from animalcat.arena_configs.placement import place

Measure: TypeAlias = Callable[[Arena], MeasuredFeatures]
"""What measures the demands of an arena: its geometry alone, or by playing it as well."""

WITHIN: Final = 0.005
"""By how much a demand may differ from a claim that does not say: positions are whole
millimetres."""


class Difference(NamedTuple):
    """A claim that does not hold.

    Attributes:
        demand: Name of the demand.
        claimed: What is claimed of it.
        measured: What was measured; None if it does not apply.
        why: Why it does not apply.
        claim: The claim.
    """

    demand: str
    claimed: str
    measured: float | None
    why: str
    claim: Claim


class ClaimError(ArenaError):
    """A family claims of an arena what is not so."""


def measure_geometry(arena: Arena) -> MeasuredFeatures:
    """Measure the demands of an arena that need no playing.

    Args:
        arena: An arena with every value explicit.
    """
    return measure_features(place(arena, np.random.default_rng(0)))


def differences(
    claims: Iterable[Claim], scope: Scope, measured: MeasuredFeatures, *, played: bool
) -> list[Difference]:
    """The claims about an arena that do not hold.

    Args:
        claims: The claims.
        scope: A value for every name in them.
        measured: What was measured on the arena.
        played: Whether it was played. If not, claims that take playing are left out.
    """
    found: list[Difference] = []
    for claim in claims:
        if claim.when is not None and not claim.when.holds(scope):
            continue
        if not played and FEATURES[claim.demand].measured == "playing":
            continue
        value = measured.values.get(claim.demand)
        low, high = bounds(claim, scope)
        if claim.absent == (value is None) and (value is None or low <= value <= high):
            continue
        why = measured.missing.get(claim.demand, "")
        found.append(Difference(claim.demand, _told(claim, scope), value, why, claim))
    return found


def bounds(claim: Claim, scope: Scope) -> tuple[float, float]:
    """Least and greatest value that agree with a claim."""
    low, high = -math.inf, math.inf
    if claim.exact is not None:
        value = claim.exact.number(scope)
        within = WITHIN if claim.within is None else claim.within.number(scope)
        low, high = value - within, value + within
    if claim.least is not None:
        low = max(low, claim.least.number(scope) - 1e-9)
    if claim.most is not None:
        high = min(high, claim.most.number(scope) + 1e-9)
    return low, high


def told(name: str, found: Iterable[Difference]) -> str:
    """What is wrong with the claims about an instance, a line for each claim.

    Args:
        name: Which instance, in words.
        found: The claims that do not hold.
    """
    return "\n".join(_line(name, one) for one in found)


def _line(name: str, one: Difference) -> str:
    got = f"it does not apply ({one.why})"
    if one.measured is not None:
        got = f"{one.measured:.6g} is measured"
    where = f"{one.claim.place.file}:{one.claim.place.line}"
    unit = f" {FEATURES[one.demand].unit}".rstrip()
    return f"{name}: {one.demand} is claimed to be {one.claimed}{unit} ({where}), but {got}"


def _told(claim: Claim, scope: Mapping[str, float | str]) -> str:
    if claim.absent:
        return "without a value"
    low, high = bounds(claim, scope)
    if claim.exact is not None:
        value = claim.exact.number(scope)
        within = "" if claim.within is None else f" within {claim.within.number(scope):g}"
        return f"{value:.6g}{within}"
    parts = [f"at least {low:.6g}"] if math.isfinite(low) else []
    parts += [f"at most {high:.6g}"] if math.isfinite(high) else []
    return " and ".join(parts)
