"""Priors of latent nodes, each with its map to and from a standard normal variable."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.portable import arrays as portable

Floats: TypeAlias = npt.NDArray[np.float64]

_EDGE: Final = 1e-12
"""Least distance of a share of the range from 0 and 1 when it is mapped to a normal variable."""


@dataclass(frozen=True, slots=True)
class ScaledBeta:
    """Beta(alpha, beta) stretched from [0, 1] to [low, high]; uniform if both parameters are 1."""

    low: float
    high: float
    alpha: float = 1.0
    beta: float = 1.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise ValueError(f"range [{self.low}, {self.high}] is empty or not finite")
        if not (self.alpha > 0 and self.beta > 0):
            raise ValueError(f"alpha {self.alpha} and beta {self.beta} must be above 0")

    @property
    def flat(self) -> bool:
        """Whether it is the uniform distribution."""
        return self.alpha == 1.0 and self.beta == 1.0

    @property
    def mean(self) -> float:
        """Prior mean."""
        return self.low + (self.high - self.low) * self.alpha / (self.alpha + self.beta)

    @property
    def sd(self) -> float:
        """Prior standard deviation."""
        total = self.alpha + self.beta
        return (self.high - self.low) * math.sqrt(self.alpha * self.beta / (total + 1.0)) / total

    @property
    def span(self) -> float:
        """Length of the range, to which shares of the range refer."""
        return self.high - self.low

    def from_standard(self, z: Floats) -> Floats:
        """Map standard normal values to this prior."""
        # With a parameter of 1 the inverse is a power, twenty times quicker than in general.
        if self.beta == 1.0:
            share = portable.power(portable.ndtr(z), 1.0 / self.alpha)
        elif self.alpha == 1.0:
            share = 1.0 - portable.power(portable.ndtr(-z), 1.0 / self.beta)
        else:
            share = portable.betaincinv(self.alpha, self.beta, portable.ndtr(z))
        return self.low + (self.high - self.low) * share

    def to_standard(self, values: Floats) -> Floats:
        """Map values of this prior to standard normal values; a value at an edge stays finite."""
        share = np.clip((values - self.low) / (self.high - self.low), 0.0, 1.0)
        if not self.flat:
            share = portable.betainc(self.alpha, self.beta, share)
        return portable.ndtri(np.clip(share, _EDGE, 1.0 - _EDGE))

    def __str__(self) -> str:
        if self.flat:
            return f"Uniform({self.low:g}, {self.high:g})"
        return f"ScaledBeta({self.alpha:g}, {self.beta:g}, {self.low:g}, {self.high:g})"


@dataclass(frozen=True, slots=True)
class Normal:
    """Normal distribution."""

    mean: float
    sd: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.mean) and math.isfinite(self.sd) and self.sd > 0):
            raise ValueError(f"mean {self.mean} and sd {self.sd} > 0 must be finite")

    @property
    def low(self) -> float:
        """Lower end of the range: minus infinity."""
        return -math.inf

    @property
    def high(self) -> float:
        """Upper end of the range: infinity."""
        return math.inf

    @property
    def span(self) -> float:
        """Length of the uniform distribution with the same standard deviation."""
        return self.sd * math.sqrt(12.0)

    def from_standard(self, z: Floats) -> Floats:
        """Map standard normal values to this prior."""
        return self.mean + self.sd * z

    def to_standard(self, values: Floats) -> Floats:
        """Map values of this prior to standard normal values."""
        return (values - self.mean) / self.sd

    def __str__(self) -> str:
        return f"Normal({self.mean:g}, {self.sd:g})"


@dataclass(frozen=True, slots=True)
class HalfNormal:
    """The absolute value of a normal variable with mean 0 and standard deviation `scale`."""

    scale: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.scale) and self.scale > 0):
            raise ValueError(f"scale {self.scale} must be above 0 and finite")

    @property
    def low(self) -> float:
        """Lower end of the range."""
        return 0.0

    @property
    def high(self) -> float:
        """Upper end of the range: infinity."""
        return math.inf

    @property
    def mean(self) -> float:
        """Prior mean."""
        return self.scale * math.sqrt(2.0 / math.pi)

    @property
    def sd(self) -> float:
        """Prior standard deviation."""
        return self.scale * math.sqrt(1.0 - 2.0 / math.pi)

    @property
    def span(self) -> float:
        """Length of the uniform distribution with the same standard deviation."""
        return self.sd * math.sqrt(12.0)

    def from_standard(self, z: Floats) -> Floats:
        """Map standard normal values to this prior."""
        return -self.scale * portable.ndtri(0.5 * portable.ndtr(-z))

    def to_standard(self, values: Floats) -> Floats:
        """Map values of this prior to standard normal values; a value at the edge stays finite."""
        above = 2.0 * portable.ndtr(-values / self.scale)
        return -portable.ndtri(np.clip(above, 1e-300, 1.0 - _EDGE))

    def __str__(self) -> str:
        return f"HalfNormal({self.scale:g})"


Prior: TypeAlias = ScaledBeta | Normal | HalfNormal

PRIORS: Final[dict[str, type[Prior]]] = {
    "scaled_beta": ScaledBeta,
    "normal": Normal,
    "half_normal": HalfNormal,
}
"""The closed set of priors, by the name that a specification uses."""
