"""Linking functions: how a derived node follows from its parents. The set is closed.

Each linking function knows its parents, checks units, bounds its result, and gives itself as an
expression; the evaluators know only expressions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from animalcat.layouts.model.expressions import ONE, Range, bounds, hull, unit_of
from animalcat.portable import scalars
from animalcat.text.formulas import (
    Call,
    Expression,
    FormulaError,
    add,
    logistic,
    mul,
    names,
    parse_formula,
    power,
)

_MOST_EASINESS: Final = 20.0
"""Largest size of an easiness in logits; beyond it a probability would round to 0 or 1."""
SURE: Final = 1e-6
"""Probabilities nearer to 0 or 1 than this have the logit of this, so that each has one."""


class Link(Protocol):
    """The interface of every linking function."""

    @property
    def parents(self) -> tuple[str, ...]:
        """Names of the parent nodes."""
        ...

    @property
    def expression(self) -> Expression:
        """The function as an expression."""
        ...

    def unit_problem(self, units: Mapping[str, str], unit: str) -> str:
        """What is wrong with the units of the parents and of the result; empty if nothing is."""
        ...

    def bounds(self, ranges: Mapping[str, Range]) -> Range:
        """Range of the result, given the parents' ranges.

        Raises:
            FormulaError: The function is not defined everywhere in the ranges.
        """
        ...


@dataclass(frozen=True, slots=True)
class Scaling:
    """factor x input: the same quantity in another unit."""

    input: str
    factor: float

    @property
    def parents(self) -> tuple[str, ...]:
        """Names of the parent nodes."""
        return (self.input,)

    @property
    def expression(self) -> Expression:
        """The function as an expression."""
        return mul(self.input, self.factor)

    def unit_problem(self, units: Mapping[str, str], unit: str) -> str:
        """Always empty, since it serves to change units."""
        return ""

    def bounds(self, ranges: Mapping[str, Range]) -> Range:
        """Range of the result."""
        return bounds(self.expression, ranges)

    def __str__(self) -> str:
        return f"{self.factor:g} x {self.input}"


@dataclass(frozen=True, slots=True)
class LogScaling:
    """top x ln(easiest / input) / ln(easiest / hardest): 0 at `easiest`, `top` at `hardest`."""

    input: str
    easiest: float
    hardest: float
    top: float

    def __post_init__(self) -> None:
        if not (self.easiest > 0 and self.hardest > 0 and self.easiest != self.hardest):
            raise ValueError("easiest and hardest must be above 0 and differ")

    @property
    def parents(self) -> tuple[str, ...]:
        """Names of the parent nodes."""
        return (self.input,)

    @property
    def expression(self) -> Expression:
        """The function as an expression."""
        scale = self.top / scalars.log(self.easiest / self.hardest)
        return add(scale * scalars.log(self.easiest), mul(Call("log", (self.input,)), -scale))

    def unit_problem(self, units: Mapping[str, str], unit: str) -> str:
        """Always empty, since it serves to change units."""
        return ""

    def bounds(self, ranges: Mapping[str, Range]) -> Range:
        """Range of the result."""
        return bounds(self.expression, ranges)

    def __str__(self) -> str:
        ratio = self.easiest / self.hardest
        return f"{self.top:g} ln({self.easiest:g} / {self.input}) / ln({ratio:g})"


@dataclass(frozen=True, slots=True)
class WeightedSum:
    """constant + sum of weight x input, all in one unit."""

    inputs: tuple[str, ...]
    weights: tuple[float, ...]
    constant: float = 0.0

    def __post_init__(self) -> None:
        if len(self.inputs) != len(self.weights) or not self.inputs:
            raise ValueError(f"{len(self.inputs)} inputs but {len(self.weights)} weights")

    @property
    def parents(self) -> tuple[str, ...]:
        """Names of the parent nodes."""
        return self.inputs

    @property
    def expression(self) -> Expression:
        """The function as an expression."""
        terms = [mul(name, w) for name, w in zip(self.inputs, self.weights, strict=True)]
        return add(self.constant, *terms)

    def unit_problem(self, units: Mapping[str, str], unit: str) -> str:
        """What is wrong unless all are in one unit; empty if nothing is."""
        return _differing(self.inputs, units, unit)

    def bounds(self, ranges: Mapping[str, Range]) -> Range:
        """Range of the result."""
        low, high = bounds(self.expression, ranges)
        # Weights like 1/3 sum to a hair above 1.
        return (low if abs(low) > 1e-12 else 0.0, high if abs(high - 1.0) > 1e-12 else 1.0)

    def __str__(self) -> str:
        text = f"{self.constant:g}" if self.constant else ""
        for name, weight in zip(self.inputs, self.weights, strict=True):
            sign = (" - " if text else "-") if weight < 0 else " + " if text else ""
            text += sign + ("" if abs(weight) == 1.0 else f"{abs(weight):g} ") + name
        return text


@dataclass(frozen=True, slots=True)
class Product:
    """Product of the inputs, of which at most one has a unit."""

    inputs: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.inputs:
            raise ValueError("it needs inputs")

    @property
    def parents(self) -> tuple[str, ...]:
        """Names of the parent nodes."""
        return self.inputs

    @property
    def expression(self) -> Expression:
        """The function as an expression."""
        return mul(*self.inputs)

    def unit_problem(self, units: Mapping[str, str], unit: str) -> str:
        """What is wrong unless at most one input has a unit and the result has the same."""
        got = [units[name] for name in self.inputs if units[name] != ONE] or [ONE]
        if got != [unit]:
            return f"its inputs give {' x '.join(got)!r}, it says {unit!r}"
        return ""

    def bounds(self, ranges: Mapping[str, Range]) -> Range:
        """Range of the result."""
        return bounds(self.expression, ranges)

    def __str__(self) -> str:
        return " x ".join(self.inputs)


@dataclass(frozen=True, slots=True)
class LogisticMargin:
    """1 / (1 + exp(-slope x (ability - demand + shift))); the slope is per unit of the ability."""

    ability: str
    demand: str
    slope: float
    shift: str = ""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.slope) and self.slope > 0):
            raise ValueError(f"slope {self.slope} must be above 0")

    @property
    def parents(self) -> tuple[str, ...]:
        """Names of the parent nodes."""
        return (self.ability, self.demand, *([self.shift] if self.shift else []))

    @property
    def expression(self) -> Expression:
        """The function as an expression, multiplied out so that instances need not multiply."""
        more = [mul(self.shift, self.slope)] if self.shift else []
        return logistic(add(mul(self.ability, self.slope), mul(self.demand, -self.slope), *more))

    def unit_problem(self, units: Mapping[str, str], unit: str) -> str:
        """What is wrong unless ability, demand and shift share a unit and the result has none."""
        if unit != ONE:
            return f"a logistic margin has no unit, it says {unit!r}"
        return _differing(self.parents, units, units[self.ability])

    def bounds(self, ranges: Mapping[str, Range]) -> Range:
        """Range of the result, within [0, 1]."""
        return (0.0, 1.0)

    def __str__(self) -> str:
        shift = f" + {self.shift}" if self.shift else ""
        return f"logistic({self.slope:.4g} x ({self.ability} - {self.demand}{shift}))"


@dataclass(frozen=True, slots=True)
class Gate:
    """`input` where the binary feature `when` is 1; elsewhere `otherwise`, or 1 if not given."""

    input: str
    when: str
    otherwise: str = ""

    @property
    def parents(self) -> tuple[str, ...]:
        """Names of the parent nodes."""
        return (self.input, self.when, *([self.otherwise] if self.otherwise else []))

    @property
    def expression(self) -> Expression:
        """The function as an expression."""
        off = add(1.0, mul(self.when, -1.0))
        return add(mul(self.input, self.when), mul(off, self.otherwise) if self.otherwise else off)

    def unit_problem(self, units: Mapping[str, str], unit: str) -> str:
        """What is wrong unless both branches have the unit of the result; or empty."""
        branches = (self.input, self.otherwise) if self.otherwise else (self.input,)
        if not self.otherwise and unit != ONE:
            return f"without `otherwise` a gate gives 1 where {self.when} is 0; it says {unit!r}"
        return _differing(branches, units, unit) or _differing((self.when,), units, ONE)

    def bounds(self, ranges: Mapping[str, Range]) -> Range:
        """The smallest range that contains both branches."""
        return hull([ranges[self.input], ranges.get(self.otherwise, (1.0, 1.0))])

    def __str__(self) -> str:
        return f"{self.input} if {self.when} else {self.otherwise or 1}"


@dataclass(frozen=True, slots=True)
class NoiseMixture:
    """(1 - noise) x performance + noise x nu; the chance level `nu` is a number or a feature."""

    performance: str
    noise: str
    nu: float | str

    def __post_init__(self) -> None:
        if isinstance(self.nu, float) and not 0.0 <= self.nu <= 1.0:
            raise ValueError(f"nu {self.nu} is not in [0, 1]")

    @property
    def parents(self) -> tuple[str, ...]:
        """Names of the parent nodes."""
        chance = (self.nu,) if isinstance(self.nu, str) else ()
        return (self.performance, self.noise, *chance)

    @property
    def expression(self) -> Expression:
        """The function as an expression."""
        kept = add(1.0, mul(self.noise, -1.0))
        return add(mul(self.performance, kept), mul(self.noise, self.nu))

    def unit_problem(self, units: Mapping[str, str], unit: str) -> str:
        """What is wrong if anything has a unit; or empty."""
        return _differing(self.parents, units, ONE) or (
            f"a mixture has no unit, it says {unit!r}" if unit != ONE else ""
        )

    def bounds(self, ranges: Mapping[str, Range]) -> Range:
        """Between performance and chance, since noise is checked to be a share."""
        low, high = ranges[self.noise]
        if low < 0.0 or high > 1.0:
            raise FormulaError(f"noise {self.noise} may be {low:g} to {high:g}, not in [0, 1]")
        nu = ranges[self.nu] if isinstance(self.nu, str) else (self.nu, self.nu)
        return hull([ranges[self.performance], nu])

    def __str__(self) -> str:
        nu = self.nu if isinstance(self.nu, str) else f"{self.nu:g}"
        return f"(1 - {self.noise}) x {self.performance} + {self.noise} x {nu}"


@dataclass(frozen=True, slots=True)
class OddsShift:
    """The odds of a probability, multiplied by exp(easiness): an instance that is easier or harder.

    Easiness and sharpness are features: with 0 and 1 the probability is what it was. They are what
    calibration by earlier agents finds of an instance beyond its demands. The sharpness multiplies
    the logit first: above 1, able agents and others are further apart there than elsewhere.
    """

    probability: str
    easiness: str
    sharpness: str = ""

    @property
    def parents(self) -> tuple[str, ...]:
        """Names of the parent nodes."""
        return (self.probability, self.easiness, *([self.sharpness] if self.sharpness else []))

    @property
    def expression(self) -> Expression:
        """The function as an expression.

        It is p e / (1 + p (e - 1)) with e = exp(easiness); with a sharpness it is the logistic
        function of sharpness x logit(p) + easiness.
        """
        if self.sharpness:
            p = Call("max", (SURE, Call("min", (1.0 - SURE, self.probability))))
            rest = Call("log", (add(1.0, mul(p, -1.0)),))
            logit = add(Call("log", (p,)), mul(rest, -1.0))
            return logistic(add(mul(logit, self.sharpness), self.easiness))
        odds = Call("exp", (self.easiness,))
        rest = add(1.0, mul(self.probability, add(odds, -1.0)))
        return mul(self.probability, odds, power(rest, -1.0))

    def unit_problem(self, units: Mapping[str, str], unit: str) -> str:
        """What is wrong if anything has a unit; or empty."""
        return _differing(self.parents, units, ONE) or (
            f"a probability has no unit, it says {unit!r}" if unit != ONE else ""
        )

    def bounds(self, ranges: Mapping[str, Range]) -> Range:
        """Range of the result, within [0, 1].

        Raises:
            FormulaError: The probability may leave [0, 1], the easiness is unbounded, or the
                sharpness may be 0 or less.
        """
        low, high = ranges[self.probability]
        if low < 0.0 or high > 1.0:
            raise FormulaError(f"{self.probability} may be {low:g} to {high:g}, not in [0, 1]")
        if not all(abs(end) <= _MOST_EASINESS for end in ranges[self.easiness]):
            raise FormulaError(f"{self.easiness} may be beyond {_MOST_EASINESS:g} logits")
        least, most = ranges[self.sharpness] if self.sharpness else (1.0, 1.0)
        if not (least > 0.0 and math.isfinite(most)):
            raise FormulaError(f"{self.sharpness} may be 0, less or without end; it is a factor")
        return (0.0, 1.0)

    def __str__(self) -> str:
        sharpness = f"{self.sharpness} x " if self.sharpness else ""
        return f"logistic({sharpness}logit({self.probability}) + {self.easiness})"


@dataclass(frozen=True, slots=True)
class Formula:
    """A user's own formula in the safe grammar of `formulas.parse_formula`."""

    formula: str

    def __post_init__(self) -> None:
        parse_formula(self.formula)

    @property
    def parents(self) -> tuple[str, ...]:
        """Names of the parent nodes."""
        return names(self.expression)

    @property
    def expression(self) -> Expression:
        """The function as an expression."""
        return parse_formula(self.formula)

    def unit_problem(self, units: Mapping[str, str], unit: str) -> str:
        """What is wrong with the units; or empty.

        The terms of a sum share one unit, and a product has at most one factor with a unit. A
        number takes the unit that it meets.
        """
        try:
            got = unit_of(self.expression, units)
        except FormulaError as error:
            return str(error)
        return f"it gives {got!r}, it says {unit!r}" if got not in (None, unit) else ""

    def bounds(self, ranges: Mapping[str, Range]) -> Range:
        """Range of the result."""
        return bounds(self.expression, ranges)

    def __str__(self) -> str:
        return self.formula


LINKS: Final[dict[str, type[Link]]] = {
    "scaled": Scaling,
    "log_scaled": LogScaling,
    "weighted_sum": WeightedSum,
    "product": Product,
    "logistic_margin": LogisticMargin,
    "gate": Gate,
    "noise_mixture": NoiseMixture,
    "odds_shift": OddsShift,
    "formula": Formula,
}
"""The closed set of linking functions, by the name that a specification uses."""


def _differing(parents: Iterable[str], units: Mapping[str, str], unit: str) -> str:
    for name in parents:
        if units[name] != unit:
            return f"{name} is in {units[name]!r}, {unit!r} is expected"
    return ""
