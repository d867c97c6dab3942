"""The alarm: does the layout describe this agent? An e-process on how well outcomes are predicted.

Before each outcome, bets are laid against the prediction: that an agent succeeds more, or less,
than the layout says, in some stratum of the instances. A stake is multiplied by how much likelier
the bet made the outcome. If the layout is right, no stake is expected to grow, however instances
are chosen and whenever one looks; so by Ville's inequality the mean of all stakes ever exceeds 20
in at most 5 % of sessions (Ramdas et al. 2023, Game-theoretic statistics and safe anytime-valid
inference). Of several outcomes of an episode each is bet on, one after another, and predicted with
what the ones before it have told.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import bdtr, betainc, expit, logit

from animalcat.layouts.adaptive.hindsight import fails
from animalcat.layouts.inference.evaluator import Evaluator
from animalcat.layouts.inference.live import LivePosterior
from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.model.likelihood import LEAST, LEAST_SIZE, trials_of
from animalcat.layouts.model.spec import Bernoulli, Beta, Binomial

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]

LEVEL: Final = 20.0
"""Mean stake at which the alarm goes off: false alarms in at most 1 of 20 sessions."""
SHIFTS: Final = np.array([-2.0, -1.0, 1.0, 2.0])
"""Bets on success: by how much the logit is higher than predicted."""
TILTS: Final = np.array([-0.9, -0.45, 0.45, 0.9])
"""Bets on counts and scores: slope of the density of their place in the predicted distribution."""
QUIET: Final = 8
"""First outcomes that no stake is laid on: they are predicted by the prior, and an agent that
surprises the prior is no wrong layout. With 24 the alarm found 32 of 37 context-specific sessions
within 200 episodes instead of 35."""
RESTARTS: Final = (16, 48, 112, 240)
"""Episodes after which stakes on all instances together are laid anew, for agents that change."""
PARADIGM: Final = "paradigm"
"""Name of the way that parts instances by paradigm."""
FEW: Final = 6
"""Values up to which a meta-feature has a stratum for each; else its range is cut into three."""
MOST: Final = 3
"""Suspects that are named at most."""
COMMON: Final = 0.2
"""Share of the instances from which on a value has a stratum of its own also then: often it means
that there is nothing to have the feature."""


@dataclass(frozen=True, slots=True, eq=False)
class Scheme:
    """One way to part instances into strata.

    Attributes:
        name: What they are parted by.
        strata: Names of the strata.
        labels: (instances,): the stratum of each, by its place in `strata`.
    """

    name: str
    strata: tuple[str, ...]
    labels: Ints


def schemes(paradigms: Sequence[str], outside: Mapping[str, npt.ArrayLike]) -> tuple[Scheme, ...]:
    """Ways to part instances: by paradigm, and by every meta-feature that the layout does not know.

    Args:
        paradigms: The paradigm of each instance.
        outside: Meta-features that are not in the layout, each (instances,); NaN: unknown.
    """
    names, labels = np.unique(np.array(paradigms), return_inverse=True)
    made = [Scheme(PARADIGM, tuple(map(str, names)), np.ravel(labels).astype(np.int64))]
    made += [_by_feature(name, np.asarray(v, dtype=np.float64)) for name, v in outside.items()]
    return tuple(scheme for scheme in made if len(scheme.strata) > 1)


@dataclass(frozen=True, slots=True)
class Suspect:
    """A stratum in which predictions fail.

    Attributes:
        scheme: What strata are parted by.
        stratum: Which.
        more: Whether the agent succeeds more than predicted there.
        evidence: The largest stake on it.
    """

    scheme: str
    stratum: str
    more: bool
    evidence: float


class Alarm:
    """Stakes against a layout. It stays raised once it is; whether it stands, hindsight tells."""

    def __init__(self, ways: Sequence[Scheme] = ()) -> None:
        """Start with stakes of 1.

        Args:
            ways: Ways to part instances, as `schemes` gave them.
        """
        self.schemes = tuple(ways)
        self._logs = [np.zeros((len(way.strata), len(SHIFTS))) for way in ways]
        self._restarts = np.zeros((len(RESTARTS), len(SHIFTS)))
        self._episodes = 0
        self._raised_at: int | None = None

    @property
    def evidence(self) -> float:
        """The mean stake: e-value against the layout."""
        return float(np.exp(min(self._log_evidence(), 700.0)))

    @property
    def raised(self) -> bool:
        """Whether the mean stake has ever exceeded `LEVEL`."""
        return self._raised_at is not None

    @property
    def raised_at(self) -> int | None:
        """After how many outcomes it was raised; None: not yet."""
        return self._raised_at

    def update(self, row: int, log_factors: Floats) -> None:
        """Take in one episode.

        Args:
            row: The instance.
            log_factors: (bets,), as `log_factors` gave them before the posterior took it in.
        """
        self._episodes += 1
        if self._episodes <= QUIET:
            return
        for way, logs in zip(self.schemes, self._logs, strict=True):
            logs[way.labels[row]] += log_factors
        self._restarts[np.array(RESTARTS) < self._episodes] += log_factors
        if self._raised_at is None and self._log_evidence() > np.log(LEVEL):
            self._raised_at = self._episodes

    def suspects(self, least: float = 3.0) -> list[Suspect]:
        """Strata with a stake above `least`, the largest first."""
        found: list[Suspect] = []
        for way, logs in zip(self.schemes, self._logs, strict=True):
            for stratum, row in zip(way.strata, logs, strict=True):
                best = int(np.argmax(row))
                if row[best] > np.log(least):
                    evidence = float(np.exp(min(row[best], 700.0)))
                    found.append(Suspect(way.name, stratum, bool(SHIFTS[best] > 0), evidence))
        return sorted(found, key=lambda suspect: -suspect.evidence)

    def contradicted(self) -> tuple[Suspect, ...]:
        """What to widen a layout in: of the strongest suspects those that are off the same way."""
        strongest = self.suspects()[:MOST]
        return tuple(suspect for suspect in strongest if suspect.more == strongest[0].more)

    def inside(self, suspects: Sequence[Suspect]) -> npt.NDArray[np.bool_]:
        """Which instances are in one of the strata, (instances,)."""
        places = {way.name: way for way in self.schemes}
        masks = [
            places[s.scheme].labels == places[s.scheme].strata.index(s.stratum) for s in suspects
        ]
        return np.logical_or.reduce(masks)

    def stands(
        self,
        posterior: LivePosterior,
        evaluator: Evaluator,
        columns: Floats,
        outcomes: Floats,
        rows: Ints,
    ) -> bool:
        """Whether it is raised, and the layout fails in hindsight too.

        Args:
            posterior: What is known now.
            evaluator: Of the same layout.
            columns: (episodes, columns): the instances, as `evaluator.columns` gave them.
            outcomes: (episodes,) or (episodes, outcomes), in the order played, without repeats;
                NaN where one is missing.
            rows: (episodes,): the instances.
        """
        ways = [way.labels[rows] for way in self.schemes]
        return self.raised and fails(posterior, evaluator, columns, outcomes, ways)

    def _log_evidence(self) -> float:
        """Half of the stake is on paradigms, a quarter on all meta-features, one on all instances.

        What there is nothing of leaves its part to the rest. Within a way, half is on single
        strata, half on sets of them: strata do not overlap, so the product over them of
        (1 + stake) / 2 is a stake too, the mean over all sets of the stake that all of a set are
        off.
        """
        parts = [(0.25, _log_mean(self._restarts.ravel()))]
        outside: list[float] = []
        for way, scheme_logs in zip(self.schemes, self._logs, strict=True):
            each = np.logaddexp.reduce(scheme_logs, axis=1) - np.log(len(SHIFTS))
            sets = float(np.sum(np.logaddexp(0.0, each) - np.log(2.0)))
            whole = _log_mean(np.array([_log_mean(each), sets]))
            if way.name == PARADIGM:
                parts.append((0.5, whole))
            else:
                outside.append(whole)
        if outside:
            parts.append((0.25, _log_mean(np.array(outside))))
        shares, logs = np.array(parts).T
        return float(np.logaddexp.reduce(logs + np.log(shares / shares.sum())))


def log_factors(
    posterior: LivePosterior,
    evaluator: Evaluator,
    columns: Floats,
    outcome: float | Sequence[float],
    episode: int,
) -> Floats:
    """By how much each bet made what happened likelier than the prediction did.

    Args:
        posterior: What was known before the episode.
        evaluator: Of the same layout.
        columns: (1, columns): the instance, as `evaluator.columns` gave it.
        outcome: What happened; of a layout with several outcomes all of them, NaN where one is
            missing.
        episode: Its number; it keys the randomness that makes counts continuous.

    Returns:
        (bets,), in logarithms.
    """
    theta, weights = posterior.particles, posterior.weights
    generator = rng(posterior.seed, "alarm", episode)
    given = np.atleast_1d(np.asarray(outcome, dtype=np.float64))
    there: list[int] = np.flatnonzero(~np.isnan(given)).tolist()
    total = np.zeros(len(SHIFTS))
    for k in there:
        total += _factors(evaluator, theta, weights, columns, k, float(given[k]), generator)
        if k != there[-1]:
            alone = np.full((1, len(given)), np.nan)
            alone[0, k] = given[k]
            (likelihood,) = evaluator.pointwise(theta, columns, alone)
            weights = weights * np.exp(likelihood - likelihood.max())
            weights = weights / weights.sum()
    return total


def _factors(
    evaluator: Evaluator,
    theta: Floats,
    weights: Floats,
    columns: Floats,
    k: int,
    outcome: float,
    generator: np.random.Generator,
) -> Floats:
    """The same of one of the outcomes, the k-th."""
    p = evaluator.by_instance(theta, columns, np.float64, k)[0]
    if isinstance(evaluator.layout.outcomes[k].likelihood, Bernoulli):
        predicted = float(np.clip(weights @ p, 1e-6, 1.0 - 1e-6))
        shifted = expit(logit(predicted) + SHIFTS)
        if outcome:
            return np.log(shifted / predicted)
        return np.log((1.0 - shifted) / (1.0 - predicted))
    below, above = _ends(evaluator, theta, columns, p, k, outcome)
    low, high = float(weights @ below), float(weights @ above)
    u = low + (high - low) * generator.random()
    return np.log1p(TILTS * (2.0 * u - 1.0))


def _ends(
    evaluator: Evaluator, theta: Floats, columns: Floats, p: Floats, k: int, outcome: float
) -> tuple[Floats, Floats]:
    """Predicted probability of less than the outcome, and of at most the outcome."""
    likelihood = evaluator.layout.outcomes[k].likelihood
    if isinstance(likelihood, Binomial):
        trials = int(trials_of(evaluator.layout, likelihood, columns)[0])
        less = np.zeros_like(p) if outcome < 1.0 else bdtr(outcome - 1.0, trials, p)
        return less, bdtr(outcome, trials, p)
    assert isinstance(likelihood, Beta)
    sizes = evaluator.sample_sizes(theta, columns, k)
    assert sizes is not None  # scores have one
    size = np.maximum(sizes[0], LEAST_SIZE)
    mean = np.clip(p, LEAST, 1.0 - LEAST)
    at = betainc(mean * size, (1.0 - mean) * size, outcome)
    edge = likelihood.edge
    # Scores nearer to an end than the edge were moved to it.
    less = np.zeros_like(at) if outcome <= edge else at
    return less, np.ones_like(at) if outcome >= 1.0 - edge else at


def _by_feature(name: str, values: Floats) -> Scheme:
    known = values[np.isfinite(values)]
    levels, counts = np.unique(known, return_counts=True)
    if len(levels) <= FEW:
        own, cuts = levels, np.empty(0)
    else:
        own = levels[counts >= COMMON * len(known)]
        rest = known[~np.isin(known, own)]
        cuts = np.unique(np.quantile(rest, [1 / 3, 2 / 3])) if len(rest) else np.empty(0)
    strata = [f"{level:g}" for level in own]
    labels = np.full(len(values), len(strata))
    for i, level in enumerate(own):
        labels[values == level] = i
    if len(cuts):
        common = np.isin(values, own)
        labels[~common] = len(strata) + np.digitize(values[~common], cuts)
        ends = [f"{cut:g}" for cut in cuts]
        inner = [f"{low} to {high}" for low, high in pairwise(ends)]
        strata += [f"below {ends[0]}", *inner, f"from {ends[-1]}"]
    unknown = ~np.isfinite(values)
    if unknown.any():
        labels = np.where(unknown, len(strata), labels)
        strata.append("unknown")
    return Scheme(name, tuple(strata), labels.astype(np.int64))


def _log_mean(logs: Floats) -> float:
    return float(np.logaddexp.reduce(logs)) - float(np.log(logs.size))
