"""The parts of a measurement layout: features, latent and derived nodes, and outcomes."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.model.codec import Tagged
from animalcat.layouts.model.expressions import ONE
from animalcat.layouts.model.links import LINKS, Link
from animalcat.layouts.model.priors import PRIORS, Prior, ScaledBeta

Kind: TypeAlias = Literal["capability", "bias", "robustness"]

GAP: Final = "{}"
"""Where the value stands, with its unit, in a phrase for readers."""


@dataclass(frozen=True, slots=True)
class Feature:
    """A meta-feature that the layout uses, as it is measured on instances.

    An instance that lacks it is refused, unless `if_missing` or `only_with` says otherwise. One
    that counts is of the order in which an agent plays and of no instance: a learner fills it in.

    Attributes:
        name: Its name, as in the table of instances.
        unit: Its unit; "1" if it has none.
        low: Least value.
        high: Largest value.
        about: What it is, in one line.
        if_missing: The value that replaces a missing one; None if there is no such value.
        only_with: A binary feature without which this one plays no part: where that feature is 0,
            this one may be missing. The graph is checked for it.
        counts: What it counts of the agent as it comes to an instance: "played_before", how many
            instances it has played by then. Empty where the value is the instance's own.
    """

    name: str
    unit: str
    low: float
    high: float
    about: str = ""
    if_missing: float | None = None
    only_with: str = ""
    counts: Literal["", "played_before"] = ""

    def __post_init__(self) -> None:
        if not self.low <= self.high:
            raise ValueError(f"range [{self.low}, {self.high}] is empty")
        if self.counts and (self.if_missing is not None or self.only_with):
            raise ValueError("what counts is never missing: leave out if_missing and only_with")
        if self.if_missing is not None and not self.low <= self.if_missing <= self.high:
            raise ValueError(f"if_missing {self.if_missing} is not in [{self.low}, {self.high}]")


@dataclass(frozen=True, slots=True)
class Latent:
    """A node of the cognitive profile.

    Attributes:
        name: Its name, as in the paper.
        kind: Capability, bias or robustness.
        unit: Its unit.
        prior: Its prior, which also gives its range.
        about: How to read a value, in one line.
        noiseless: For a robustness node, the value that means no noise.
        reads: What an agent with a value does, for readers, with `GAP` where the value stands:
            "finds goals up to {} away". Empty for words made of the demand's name.
    """

    name: str
    kind: Kind
    unit: str
    prior: Annotated[Prior, Tagged(PRIORS)]
    about: str = ""
    noiseless: float = 0.0
    reads: str = ""

    @property
    def informative(self) -> bool:
        """Whether its prior leans somewhere before anything was played: it is not uniform."""
        return not (isinstance(self.prior, ScaledBeta) and self.prior.flat)

    @property
    def is_share(self) -> bool:
        """Whether it is a share or a chance, from 0 to 1, which has no more beyond its ends."""
        return self.unit == "1" and (self.prior.low, self.prior.high) == (0.0, 1.0)


@dataclass(frozen=True, slots=True)
class Derived:
    """A node that follows from its parents by a linking function."""

    name: str
    unit: str
    link: Annotated[Link, Tagged(LINKS)]


@dataclass(frozen=True, slots=True)
class Bernoulli:
    """The outcome is success (1) or failure (0).

    Attributes:
        probability: The derived node that gives the probability of success.
    """

    probability: str

    @property
    def parents(self) -> tuple[str, ...]:
        """Names of the parent nodes; the one within [0, 1] comes first."""
        return (self.probability,)

    def __str__(self) -> str:
        return f"success with probability {self.probability}"


@dataclass(frozen=True, slots=True)
class Binomial:
    """The outcome is the number of successes among independent trials.

    Attributes:
        probability: The derived node that gives the probability of success of each trial.
        trials: The feature that gives the number of trials.
    """

    probability: str
    trials: str

    @property
    def parents(self) -> tuple[str, ...]:
        """Names of the parent nodes; the one within [0, 1] comes first."""
        return (self.probability, self.trials)

    def __str__(self) -> str:
        return f"successes of {self.trials}, each with probability {self.probability}"


@dataclass(frozen=True, slots=True)
class Beta:
    """The outcome is a score, distributed as Beta(mean x sample_size, (1 - mean) x sample_size).

    A score of exactly 0 or 1 has no finite density and is refused, unless `edge` is given. A score
    nearer to 0 or 1 than the edge then only says that it was that near.

    Attributes:
        mean: The derived node that gives the expected score.
        sample_size: The latent or derived node that says how tightly scores cluster.
        edge: Distance from 0 and 1 within which scores are not told apart; 0 refuses scores of 0
            and 1.
    """

    mean: str
    sample_size: str
    edge: float = 0.0

    def __post_init__(self) -> None:
        if not 0.0 <= self.edge < 0.5:
            raise ValueError(f"edge {self.edge} is not in [0, 0.5)")

    @property
    def parents(self) -> tuple[str, ...]:
        """Names of the parent nodes; the one within [0, 1] comes first."""
        return (self.mean, self.sample_size)

    def __str__(self) -> str:
        edge = f"; told apart from {self.edge:g} to {1 - self.edge:g}" * (self.edge > 0)
        return f"score with mean {self.mean} and sample size {self.sample_size}{edge}"


Likelihood: TypeAlias = Bernoulli | Binomial | Beta
"""How an outcome follows from nodes."""

LIKELIHOODS: Final[dict[str, type[Likelihood]]] = {
    "bernoulli": Bernoulli,
    "binomial": Binomial,
    "beta": Beta,
}
"""The closed set of likelihoods, by the name that a specification uses."""

OutcomeKind: TypeAlias = Literal["success", "score", "count", "choice"]
OutcomeSource: TypeAlias = Literal["success", "return", "time_left", "rewards", "choice"]

KINDS: Final[Mapping[OutcomeKind, type[Likelihood]]] = {
    "success": Bernoulli,
    "score": Beta,
    "count": Binomial,
    "choice": Bernoulli,
}
"""The closed set of kinds of outcomes, and the likelihood of each."""

SOURCES: Final[Mapping[OutcomeKind, Mapping[OutcomeSource, str]]] = {
    "success": {"success": "whether the episode was passed"},
    "score": {
        "return": "share of the way from the arena's least to its greatest return",
        "time_left": "share of its time that an episode that was passed had left; missing where it "
        "was not",
    },
    "count": {"rewards": "rewards taken of those there"},
    "choice": {"choice": "whether the first of the marked places that was reached is a right one"},
}
"""Possible sources, in an episode, of outcomes of each kind; the first is the default."""

_NAME: Final = re.compile(r"[A-Za-z][\w-]*")


@dataclass(frozen=True, slots=True)
class OutcomeNode:
    """One thing that is observed of an instance; given the agent, outcomes are independent.

    Attributes:
        name: Its name in tables: letters, digits, "_" and "-".
        kind: Its kind.
        source: Where it comes from in an episode, one of `SOURCES`. It does not matter for a layout
            of something other than episodes.
        likelihood: How it follows from nodes.
    """

    name: str
    kind: OutcomeKind
    source: OutcomeSource
    likelihood: Annotated[Likelihood, Tagged(LIKELIHOODS)]

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(
                f"name {self.name!r}: expected a letter, then letters, digits, _ and -"
            )
        if type(self.likelihood) is not KINDS[self.kind]:
            raise ValueError(
                f"an outcome of kind {self.kind} cannot be {type(self.likelihood).__name__}"
            )
        if self.source not in SOURCES[self.kind]:
            raise ValueError(
                f"source {self.source!r} gives no {self.kind}; valid: "
                f"{', '.join(SOURCES[self.kind])}"
            )

    @classmethod
    def of(cls, likelihood: Likelihood) -> OutcomeNode:
        """Make the only outcome of a layout that gives no more than its likelihood."""
        kind: OutcomeKind = next(kind for kind, known in KINDS.items() if known is type(likelihood))
        return cls(kind, kind, default_source(kind), likelihood)

    @property
    def parents(self) -> tuple[str, ...]:
        """Names of the parent nodes; the one within [0, 1] comes first."""
        return self.likelihood.parents

    def __str__(self) -> str:
        if self == OutcomeNode.of(self.likelihood):
            return str(self.likelihood)
        return f"{self.name} ({self.source}): {self.likelihood}"


def default_source(kind: OutcomeKind) -> OutcomeSource:
    """The source of outcomes of a kind unless another one is given."""
    return next(iter(SOURCES[kind]))


@dataclass(frozen=True, slots=True)
class Exclusion:
    """A limit on a feature beyond which a layout does not apply.

    The feature is not one of the layout's own; those have a range.

    Attributes:
        feature: Name of the feature.
        above: Value that it must not exceed; None for no limit.
        below: Value that it must not fall below; None for no limit.
        unit: Unit of the feature and the limits.
    """

    feature: str
    above: float | None = None
    below: float | None = None
    unit: str = ONE

    def __post_init__(self) -> None:
        if self.above is None and self.below is None:
            raise ValueError("say what is excluded: above, below, or both")
        if self.above is not None and self.below is not None and self.above < self.below:
            raise ValueError(f"above {self.above:g} and below {self.below:g} leave nothing")

    def __str__(self) -> str:
        limits = (("above", self.above), ("below", self.below))
        words = " or ".join(f"{side} {limit:g}" for side, limit in limits if limit is not None)
        return f"{self.feature} {words}{f' {self.unit}' * (self.unit != ONE)}"

    def broken_by(self, value: float) -> str:
        """Which limit a value breaks, in words; empty if none."""
        return out_of_range(
            self.feature,
            value,
            -math.inf if self.below is None else self.below,
            math.inf if self.above is None else self.above,
            self.unit,
        )


@dataclass(frozen=True, slots=True)
class Cue:
    """What an agent may go by that lacks a capability, and seems to have it all the same.

    As long as the cue leads to the goal, both pass. Only instances in which it misleads tell them
    apart. Burden et al. 2023, appendix D.4, call such agents fraudsters.

    Attributes:
        name: What the agent goes by, for readers: "where it last saw the goal".
        mimics: The capability that it seems to have.
        feature: The meta-feature that says where the cue misleads.
        above: It misleads where the feature is more than this; None for no such limit.
        below: It misleads where the feature is less than this; None for no such limit.
        unit: Unit of the feature and the limits.
    """

    name: str
    mimics: str
    feature: str
    above: float | None = None
    below: float | None = None
    unit: str = ONE

    def __post_init__(self) -> None:
        if not self.name.strip() or "\n" in self.name:
            raise ValueError("a cue needs a name that readers understand, in one line")
        if self.above is None and self.below is None:
            raise ValueError("say where the cue misleads: above, below, or both")

    def misleads(self, values: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Whether the cue misleads, by values of its feature: 1 or 0, NaN where there is no cue."""
        known = np.asarray(values, np.float64)
        above = known > (math.inf if self.above is None else self.above)
        below = known < (-math.inf if self.below is None else self.below)
        return np.where(np.isnan(known), np.nan, above | below)


def out_of_range(name: str, value: float, low: float, high: float, unit: str) -> str:
    """On which side a feature's value is out of range, in words; empty if it is within."""
    if low <= value <= high:
        return ""
    side = f"below {low:g}" if value < low else f"above {high:g}"
    return f"{name} {side}{f' {unit}' * (unit not in (ONE, ''))}"
