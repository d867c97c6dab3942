"""Compares what a family claims of its arenas with what is measured on them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from animalcat.arena_configs.families.build import scope_of
from animalcat.arena_configs.families.instance import FamilyInstance, variant_of
from animalcat.arena_configs.families.language import Claim, Control, Family
from animalcat.arena_configs.families.scope import Scope
from animalcat.arena_configs.features.chains import chain_features
from animalcat.arena_configs.features.definition import MeasuredFeatures
from animalcat.arena_configs.features.registry import FEATURES, measure_features
from animalcat.arena_configs.model import Arena, ArenaError
from animalcat.arena_configs.placement import place
from animalcat.arena_configs.sequence import episode_arenas

Measure: TypeAlias = Callable[[Arena], MeasuredFeatures]
"""What measures the demands of an arena: its geometry alone, or by playing it as well."""

WITHIN: Final = 0.005
"""By how much a demand may differ from a claim that does not say: positions are whole
millimetres."""


class BrokenClaim(NamedTuple):
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
        arena: An arena with every value explicit, or several that merge.
    """
    rng = np.random.default_rng(0)
    placed = [place(part, rng) for part in episode_arenas(arena)]
    return chain_features([measure_features(one) for one in placed], placed)


def differences(
    claims: Iterable[Claim], scope: Scope, measured: MeasuredFeatures, *, played: bool
) -> list[BrokenClaim]:
    """The claims about an arena that do not hold.

    Args:
        claims: The claims.
        scope: A value for every name in them.
        measured: What was measured on the arena.
        played: Whether it was played. If not, claims that take playing are left out.
    """
    broken: list[BrokenClaim] = []
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
        broken.append(BrokenClaim(claim.demand, _words_of_claim(claim, scope), value, why, claim))
    return broken


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


def words_of_claims(name: str, broken: Iterable[BrokenClaim]) -> str:
    """What is wrong with the claims about an instance, a line for each claim.

    Args:
        name: Which instance, in words.
        broken: The claims that do not hold.
    """
    return "\n".join(_line(name, claim) for claim in broken)


def _line(name: str, broken: BrokenClaim) -> str:
    got = f"it does not apply ({broken.why})"
    if broken.measured is not None:
        got = f"{broken.measured:.6g} is measured"
    where = f"{broken.claim.place.file}:{broken.claim.place.line}"
    unit = f" {FEATURES[broken.demand].unit}".rstrip()
    return f"{name}: {broken.demand} is claimed to be {broken.claimed}{unit} ({where}), but {got}"


def _words_of_claim(claim: Claim, scope: Mapping[str, float | str]) -> str:
    if claim.absent:
        return "without a value"
    low, high = bounds(claim, scope)
    if claim.exact is not None:
        value = claim.exact.number(scope)
        within = "" if claim.within is None else f" within {claim.within.number(scope):g}"
        return f"{value + 0.0:.6g}{within}"  # 0 to either side is 0, and never -0
    parts = [f"at least {low:.6g}"] if math.isfinite(low) else []
    parts += [f"at most {high:.6g}"] if math.isfinite(high) else []
    return " and ".join(parts)


def check_claims(
    family: Family, instances: Iterable[FamilyInstance], measure: Measure, *, played: bool
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
    family: Family, instances: Iterable[FamilyInstance], measure: Measure, *, played: bool
) -> Iterator[str]:
    """Say which claims do not hold, one instance after the other.

    Args:
        family: The family.
        instances: Instances of it; a control comes after the instance that it is of.
        measure: Measures the demands of an arena.
        played: Whether it plays the arena.
    """
    measured: dict[str, Mapping[str, float]] = {}
    held = {d for control in family.controls.values() for d in (*control.takes, *control.keeps)}
    for instance in instances:
        paradigm = family.paradigm(instance.paradigm)
        control = family.controls[instance.control] if instance.control else None
        features = measure(instance.arena)
        measured[instance.name] = {d: v for d, v in features.values.items() if d in held}
        scope = scope_of(family, paradigm, instance.parameters, variant_of(instance.variant)[0])
        name = f"family {family.name}, instance {instance.name} ({instance.paradigm})"
        wrong = differences(family.claims_of(paradigm, control), scope, features, played=played)
        if wrong:
            yield words_of_claims(name, wrong)
        if control is not None and instance.control_of in measured:
            yield from _reasons_of_no_pair(
                name, control, measured[instance.control_of], features.values, played
            )


def _reasons_of_no_pair(
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
                f"{_format_value(first)} and {_format_value(second)}"
            )


def _format_value(value: float | None) -> str:
    return "none" if value is None else f"{value:.6g}"
