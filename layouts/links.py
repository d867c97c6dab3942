"""Linking functions: how a derived node of a layout follows from its parents. A closed set."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

ONE: Final = "1"
"""The unit of what has no unit."""


@dataclass(frozen=True, slots=True)
class Scaled:
    """factor x input: the same quantity in another unit."""

    input: str
    factor: float

    @property
    def parents(self) -> tuple[str, ...]:
        """Names of the nodes it follows from."""
        return (self.input,)

    def unit_problem(self, units: Mapping[str, str], unit: str) -> str:
        """What is wrong with the units; empty where nothing is."""
        return ""

    def is_probability(self, shares: Mapping[str, bool]) -> bool:
        """Whether the result is sure to be in [0, 1], given which parents are."""
        return shares[self.input] and 0.0 <= self.factor <= 1.0

    def __str__(self) -> str:
        return f"{self.factor:g} x {self.input}"


@dataclass(frozen=True, slots=True)
class LogScaled:
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
        """Names of the nodes it follows from."""
        return (self.input,)

    def unit_problem(self, units: Mapping[str, str], unit: str) -> str:
        """What is wrong with the units; empty where nothing is."""
        return ""

    def is_probability(self, shares: Mapping[str, bool]) -> bool:
        """Whether the result is sure to be in [0, 1], given which parents are."""
        return False

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
        """Names of the nodes it follows from."""
        return self.inputs

    def unit_problem(self, units: Mapping[str, str], unit: str) -> str:
        """What is wrong with the units; empty where nothing is."""
        return _differing(self.inputs, units, unit)

    def is_probability(self, shares: Mapping[str, bool]) -> bool:
        """Whether the result is sure to be in [0, 1], given which parents are."""
        least = self.constant + sum(min(w, 0.0) for w in self.weights)
        most = self.constant + sum(max(w, 0.0) for w in self.weights)
        return all(shares[name] for name in self.inputs) and least >= 0.0 and most <= 1.0

    def __str__(self) -> str:
        terms = [f"{w:g} {name}" for name, w in zip(self.inputs, self.weights, strict=True)]
        return " + ".join([f"{self.constant:g}"] * (self.constant != 0.0) + terms)


@dataclass(frozen=True, slots=True)
class Product:
    """Product of the inputs, of which at most one has a unit."""

    inputs: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.inputs:
            raise ValueError("a product needs inputs")

    @property
    def parents(self) -> tuple[str, ...]:
        """Names of the nodes it follows from."""
        return self.inputs

    def unit_problem(self, units: Mapping[str, str], unit: str) -> str:
        """What is wrong with the units; empty where nothing is."""
        got = [units[name] for name in self.inputs if units[name] != ONE] or [ONE]
        if got != [unit]:
            return f"its inputs give {' x '.join(got)!r}, it says {unit!r}"
        return ""

    def is_probability(self, shares: Mapping[str, bool]) -> bool:
        """Whether the result is sure to be in [0, 1], given which parents are."""
        return all(shares[name] for name in self.inputs)

    def __str__(self) -> str:
        return " x ".join(self.inputs)


@dataclass(frozen=True, slots=True)
class LogisticMargin:
    """1 / (1 + exp(-slope x (ability - demand + shift))); slope is per unit of the ability."""

    ability: str
    demand: str
    slope: float
    shift: str = ""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.slope) and self.slope > 0):
            raise ValueError(f"slope {self.slope} must be above 0")

    @property
    def parents(self) -> tuple[str, ...]:
        """Names of the nodes it follows from."""
        return (self.ability, self.demand, *([self.shift] if self.shift else []))

    def unit_problem(self, units: Mapping[str, str], unit: str) -> str:
        """What is wrong with the units; empty where nothing is."""
        if unit != ONE:
            return f"a logistic margin has no unit, it says {unit!r}"
        return _differing(self.parents, units, units[self.ability])

    def is_probability(self, shares: Mapping[str, bool]) -> bool:
        """Whether the result is sure to be in [0, 1], given which parents are."""
        return True

    def __str__(self) -> str:
        shift = f" + {self.shift}" if self.shift else ""
        return f"logistic({self.slope:.4g} x ({self.ability} - {self.demand}{shift}))"


@dataclass(frozen=True, slots=True)
class NoiseMixture:
    """(1 - noise) x performance + noise x nu, with the chance `nu` a fixed number."""

    performance: str
    noise: str
    nu: float

    def __post_init__(self) -> None:
        if not 0.0 <= self.nu <= 1.0:
            raise ValueError(f"nu {self.nu} is not in [0, 1]")

    @property
    def parents(self) -> tuple[str, ...]:
        """Names of the nodes it follows from."""
        return (self.performance, self.noise)

    def unit_problem(self, units: Mapping[str, str], unit: str) -> str:
        """What is wrong with the units; empty where nothing is."""
        return _differing(self.parents, units, ONE) or (
            f"a mixture has no unit, it says {unit!r}" if unit != ONE else ""
        )

    def is_probability(self, shares: Mapping[str, bool]) -> bool:
        """Whether the result is sure to be in [0, 1], given which parents are."""
        return shares[self.performance] and shares[self.noise]

    def __str__(self) -> str:
        return f"(1 - {self.noise}) x {self.performance} + {self.noise} x {self.nu:g}"


Link: TypeAlias = Scaled | LogScaled | WeightedSum | Product | LogisticMargin | NoiseMixture

LINKS: Final[dict[str, type[Link]]] = {
    "scaled": Scaled,
    "log_scaled": LogScaled,
    "weighted_sum": WeightedSum,
    "product": Product,
    "logistic_margin": LogisticMargin,
    "noise_mixture": NoiseMixture,
}
"""The closed set of linking functions, by the name that a specification uses."""


def _differing(names: tuple[str, ...], units: Mapping[str, str], unit: str) -> str:
    for name in names:
        if units[name] != unit:
            return f"{name} is in {units[name]!r}, {unit!r} is wanted"
    return ""
