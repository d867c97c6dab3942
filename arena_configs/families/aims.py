"""Demands that are parameters: what is asked of them is set, and need not be searched for."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from animalcat.arena_configs.families.build import words
from animalcat.arena_configs.families.language import MIRROR, Claim, Control, Family, Paradigm
from animalcat.arena_configs.families.ranges import EmptyRangeError
from animalcat.arena_configs.families.sampling import Draw
from animalcat.arena_configs.families.scope import Scope, Value
from animalcat.text.formulas import Call

ALIKE: Final = 0.01
"""Share of a demand by which one that was found may differ and still be what was asked for; of a
demand below 1, this much in its unit."""


@dataclass(frozen=True, slots=True)
class Aims:
    """Values that parameters are to have, because a family claims that they are demands.

    Attributes:
        family: The family.
        paradigm: The paradigm.
        demands: Demands that are set.
        values: What is asked for, by parameter.
    """

    family: Family
    paradigm: Paradigm
    demands: frozenset[str]
    values: Mapping[str, float]

    def at(self, draw: Draw) -> Draw:
        """Change the shares of a draw so that parameters are what is asked for, or the nearest.

        Its ranges may leave it nothing, which then shows when it is built.

        Args:
            draw: A draw of the paradigm.
        """
        if not self.values:
            return draw
        ranges = self.family.ranges_of(self.paradigm)
        shares = {**draw.shares}
        scope: dict[str, Value] = words(self.family, self.paradigm)
        last = max(map(self.paradigm.order.index, self.values))
        for name in self.paradigm.order[: last + 1]:
            try:
                if name in self.values:
                    shares[name] = ranges[name].share(self.values[name], scope)
                scope[name] = ranges[name].value(shares[name], scope)
            except EmptyRangeError:
                return draw
        return Draw(draw.paradigm, shares, draw.seed)


def aims_at(
    family: Family,
    paradigm: Paradigm,
    demands: Mapping[str, float],
    *,
    mirrored: bool = False,
    control: Control | None = None,
    given: Collection[str] = (),
) -> Aims:
    """Find the parameters that are demands, and what each has to be.

    A parameter is a demand where the family claims exactly that: `rewardDistance: distance`, or
    `XPos: side * mirror`.

    Args:
        family: The family.
        paradigm: The paradigm.
        demands: What is asked for.
        mirrored: Whether the arena is a mirror image.
        control: The control that is made; None for none.
        given: Parameters that are set to something else.
    """
    fixed = {*given, *(control.parameters if control else ())}
    values: dict[str, float] = {}
    found: set[str] = set()
    for claim in family.claims_of(paradigm, control):
        if claim.demand not in demands:
            continue
        value = demands[claim.demand]
        name, sided = _parameter(claim, value)
        if name in family.parameters and name not in fixed and name not in values:
            values[name] = -value if sided and mirrored else value
            found.add(claim.demand)
    return Aims(family, paradigm, frozenset(found), values)


def claimed_values(
    family: Family, paradigm: Paradigm, scope: Scope, control: Control | None = None
) -> dict[str, float]:
    """What a family claims exactly of the demands of an arena.

    Args:
        family: The family.
        paradigm: The paradigm.
        scope: A value for every name that formulas may use.
        control: The control that is made; None for none.
    """
    return {
        claim.demand: claim.exact.number(scope)
        for claim in family.claims_of(paradigm, control)
        if claim.exact is not None and (claim.when is None or claim.when.holds(scope))
    }


def _parameter(claim: Claim, value: float) -> tuple[str, bool]:
    """The parameter that a demand is, and whether its sign changes in a mirror image; "" if none.

    Args:
        claim: A claim about the demand.
        value: What is asked for: the claim has to be as exact as that is.
    """
    if claim.exact is None or claim.when is not None:
        return "", False
    within = 0.0 if claim.within is None else claim.within.expression
    if not isinstance(within, float) or within > ALIKE * max(1.0, abs(value)):
        return "", False
    match claim.exact.expression:
        case str(name):
            return name, False
        case Call("mul", (str(name), str(sign))) if sign == MIRROR:
            return name, True
        case _:
            return "", False
