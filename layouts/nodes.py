"""The parts of a measurement layout: features, latent and derived nodes, outcomes."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final, Literal, TypeAlias

from animalcat.layouts.links import Link
from animalcat.layouts.priors import Prior

Kind: TypeAlias = Literal["capability", "bias", "robustness"]


@dataclass(frozen=True, slots=True)
class Feature:
    """A meta-feature of instances, as it is measured.

    An instance that lacks it is refused, unless one of the two rules says what holds then.

    Attributes:
        name: As in the table of instances.
        unit: Its unit; "1" where it has none.
        low: Least value.
        high: Largest value.
        about: What it is, in one line.
        if_missing: What is taken for a missing value; None: nothing is.
        only_with: A binary feature without which this one plays no part; where that one is 0, this
            one may be missing. The graph is checked for it.
    """

    name: str
    unit: str
    low: float
    high: float
    about: str = ""
    if_missing: float | None = None
    only_with: str = ""

    def __post_init__(self) -> None:
        if not self.low <= self.high:
            raise ValueError(f"range [{self.low}, {self.high}] is empty")
        if self.if_missing is not None and not self.low <= self.if_missing <= self.high:
            raise ValueError(f"if_missing {self.if_missing} is not in [{self.low}, {self.high}]")


@dataclass(frozen=True, slots=True)
class Latent:
    """A node of the cognitive profile.

    Attributes:
        name: As in the paper.
        kind: Capability, bias or robustness.
        unit: Its unit.
        prior: Its prior; the range is that of the prior.
        about: How to read a value, in one line.
        noiseless: Of a robustness node, the value that means no noise.
    """

    name: str
    kind: Kind
    unit: str
    prior: Prior
    about: str = ""
    noiseless: float = 0.0


@dataclass(frozen=True, slots=True)
class Derived:
    """A node that follows from its parents by a linking function."""

    name: str
    unit: str
    link: Link


@dataclass(frozen=True, slots=True)
class Bernoulli:
    """The outcome is success (1) or failure (0).

    Attributes:
        probability: The derived node that gives the probability of success.
    """

    probability: str

    @property
    def parents(self) -> tuple[str, ...]:
        """Nodes that it follows from, the one within [0, 1] first."""
        return (self.probability,)

    def __str__(self) -> str:
        return f"success with probability {self.probability}"


@dataclass(frozen=True, slots=True)
class Binomial:
    """The outcome is how many of some independent trials were successes.

    Attributes:
        probability: The derived node that gives the probability of success of each.
        trials: The feature that says how many trials there were.
    """

    probability: str
    trials: str

    @property
    def parents(self) -> tuple[str, ...]:
        """Nodes that it follows from, the one within [0, 1] first."""
        return (self.probability, self.trials)

    def __str__(self) -> str:
        return f"successes of {self.trials}, each with probability {self.probability}"


@dataclass(frozen=True, slots=True)
class Beta:
    """The outcome is a score, Beta(mean x sample_size, (1 - mean) x sample_size).

    A score of exactly 0 or 1 has no finite density: it is refused, unless `edge` is given. A score
    nearer to 0 or 1 than that then says only that it was there or nearer.

    Attributes:
        mean: The derived node that gives the expected score.
        sample_size: The node that says how tightly scores cluster: a latent or derived one.
        edge: Distance from 0 and 1 up to which scores are told apart; 0: refuse scores of 0 and 1.
    """

    mean: str
    sample_size: str
    edge: float = 0.0

    def __post_init__(self) -> None:
        if not 0.0 <= self.edge < 0.5:
            raise ValueError(f"edge {self.edge} is not in [0, 0.5)")

    @property
    def parents(self) -> tuple[str, ...]:
        """Nodes that it follows from, the one within [0, 1] first."""
        return (self.mean, self.sample_size)

    def __str__(self) -> str:
        edge = f"; told apart from {self.edge:g} to {1 - self.edge:g}" * (self.edge > 0)
        return f"score with mean {self.mean} and sample size {self.sample_size}{edge}"


Outcome: TypeAlias = Bernoulli | Binomial | Beta

OUTCOMES: Final[dict[str, type[Outcome]]] = {
    "bernoulli": Bernoulli,
    "binomial": Binomial,
    "beta": Beta,
}
"""The closed set of outcomes, by the name that a specification uses."""


@dataclass(frozen=True, slots=True)
class Covers:
    """Which instances a layout describes: names by glob, and families (`FAMILY-...`)."""

    instances: tuple[str, ...] = ()
    families: tuple[str, ...] = ()

    def __contains__(self, instance: str) -> bool:
        return any(fnmatchcase(instance, glob) for glob in self.instances) or any(
            instance.startswith(f"{family}-") for family in self.families
        )
