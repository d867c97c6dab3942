"""The alarm: an e-process that shows when the layout does not describe the agent.

Before each outcome, bets are laid against the layout's prediction: that the agent succeeds more
often, or less often, than predicted in some stratum of the instances. A stake is multiplied by how
much more likely the bet made the outcome than the prediction did. If the layout is right, no stake
is expected to grow, however instances are chosen and whenever one looks. So by Ville's inequality
the mean of all stakes ever exceeds 20 in at most 5 % of sessions (Ramdas et al. 2023,
Game-theoretic statistics and safe anytime-valid inference). Where an episode has several outcomes,
they are bet on one after another, each predicted with what the ones before it have told.
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
"""Bets on success or failure: each assumes a logit that is this much above the predicted one."""
TILTS: Final = np.array([-0.9, -0.45, 0.45, 0.9])
"""Bets on counts and scores: each is the slope of a linear density over the outcome's quantile in
the predicted distribution."""
QUIET: Final = 8
"""The first outcomes, on which no stake is laid. They are predicted from the prior, and an agent
that surprises the prior does not make the layout wrong. With 24 the alarm found 32 of 37
context-specific sessions within 200 episodes instead of 35."""
_RESTARTS: Final = (16, 48, 112, 240)
"""Episodes after which new stakes on all instances together are laid, to notice agents that change.
"""
PARADIGM: Final = "paradigm"
"""Name of the stratification by paradigm."""
FEW: Final = 6
"""A meta-feature with at most this many values has a stratum for each value; the range of any other
is cut into three."""
MOST: Final = 3
"""Greatest number of suspects that are named."""
_COMMON: Final = 0.2
"""Share of the instances from which a single value of a many-valued meta-feature has its own
stratum. Such a value often means that the thing which has the feature is absent."""


@dataclass(frozen=True, slots=True, eq=False)
class Stratification:
    """One way to divide the instances into strata.

    Attributes:
        name: What the strata are defined by: `PARADIGM`, or a meta-feature.
        strata: Names of the strata.
        labels: (instances,): the stratum of each instance, as an index into `strata`.
    """

    name: str
    strata: tuple[str, ...]
    labels: Ints


def stratifications(
    paradigms: Sequence[str], outside: Mapping[str, npt.ArrayLike]
) -> tuple[Stratification, ...]:
    """Stratify instances by paradigm, and by every meta-feature that the layout does not use.

    A stratification with a single stratum is left out.

    Args:
        paradigms: The paradigm of each instance.
        outside: Meta-features that are not in the layout, each (instances,); NaN where unknown.
    """
    names, labels = np.unique(np.array(paradigms), return_inverse=True)
    made = [Stratification(PARADIGM, tuple(map(str, names)), np.ravel(labels).astype(np.int64))]
    made += [_by_feature(name, np.asarray(v, dtype=np.float64)) for name, v in outside.items()]
    return tuple(scheme for scheme in made if len(scheme.strata) > 1)


@dataclass(frozen=True, slots=True)
class Suspect:
    """A stratum in which predictions fail.

    Attributes:
        stratification: What the strata are defined by.
        stratum: Name of the stratum.
        more: Whether the agent succeeds more often than predicted there.
        evidence: The largest stake on the stratum.
    """

    stratification: str
    stratum: str
    more: bool
    evidence: float


class Alarm:
    """The stakes against a layout, and whether they have raised the alarm.

    Once raised, the alarm stays raised; `stands` says whether hindsight confirms it.
    """

    def __init__(self, ways: Sequence[Stratification] = ()) -> None:
        """Start with every stake at 1.

        Args:
            ways: The stratifications to bet on, as `stratifications` returned them.
        """
        self.stratifications = tuple(ways)
        self._logs = [np.zeros((len(way.strata), len(SHIFTS))) for way in ways]
        self._restarts = np.zeros((len(_RESTARTS), len(SHIFTS)))
        self._episodes = 0
        self._raised_at: int | None = None

    @property
    def evidence(self) -> float:
        """The mean stake, which is the e-value against the layout."""
        return float(np.exp(min(self._log_evidence(), 700.0)))

    @property
    def raised(self) -> bool:
        """Whether the mean stake has ever exceeded `LEVEL`."""
        return self._raised_at is not None

    @property
    def raised_at(self) -> int | None:
        """Number of outcomes after which the alarm was raised; None if it was not."""
        return self._raised_at

    def update(self, row: int, log_factors: Floats) -> None:
        """Take in one episode.

        Args:
            row: Row of the instance that was played.
            log_factors: (bets,), as `log_factors` returned them before the posterior knew the
                outcome.
        """
        self._episodes += 1
        if self._episodes <= QUIET:
            return
        for way, logs in zip(self.stratifications, self._logs, strict=True):
            logs[way.labels[row]] += log_factors
        self._restarts[np.array(_RESTARTS) < self._episodes] += log_factors
        if self._raised_at is None and self._log_evidence() > np.log(LEVEL):
            self._raised_at = self._episodes

    def suspects(self, least: float = 3.0) -> list[Suspect]:
        """Find the strata whose largest stake is above `least`, the largest first."""
        found: list[Suspect] = []
        for way, logs in zip(self.stratifications, self._logs, strict=True):
            for stratum, row in zip(way.strata, logs, strict=True):
                best = int(np.argmax(row))
                if row[best] > np.log(least):
                    evidence = float(np.exp(min(row[best], 700.0)))
                    found.append(Suspect(way.name, stratum, bool(SHIFTS[best] > 0), evidence))
        return sorted(found, key=lambda suspect: -suspect.evidence)

    def contradicted(self) -> tuple[Suspect, ...]:
        """Choose the strata in which to widen the layout.

        They are those of the strongest suspects that err in the same direction as the strongest
        one.
        """
        strongest = self.suspects()[:MOST]
        return tuple(suspect for suspect in strongest if suspect.more == strongest[0].more)

    def inside(self, suspects: Sequence[Suspect]) -> npt.NDArray[np.bool_]:
        """Mark the instances that are in one of the suspects' strata, (instances,)."""
        places = {way.name: way for way in self.stratifications}
        masks = [
            places[s.stratification].labels == places[s.stratification].strata.index(s.stratum)
            for s in suspects
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
        """Whether the alarm is raised and the layout also fails in hindsight.

        Args:
            posterior: The posterior after all of these episodes.
            evaluator: Evaluator of the same layout.
            columns: (episodes, columns): the instances played, as `evaluator.columns` returned
                them.
            outcomes: (episodes,) or (episodes, outcomes), in the order played, without repeats; NaN
                where one is missing.
            rows: (episodes,): the rows of the instances.
        """
        ways = [way.labels[rows] for way in self.stratifications]
        return self.raised and fails(posterior, evaluator, columns, outcomes, ways)

    def _log_evidence(self) -> float:
        """Logarithm of the weighted mean stake.

        Half of the weight is on paradigms, a quarter on all meta-features together, and a quarter
        on all instances together; the share of a part that does not exist goes to the others.
        Within one stratification, half is on single strata and half on sets of strata. Strata do
        not overlap, so the product over them of (1 + stake) / 2 is a stake too: the mean, over all
        sets of strata, of the stake that predictions err in every stratum of the set.
        """
        parts = [(0.25, _log_mean(self._restarts.ravel()))]
        outside: list[float] = []
        for way, scheme_logs in zip(self.stratifications, self._logs, strict=True):
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
    """Compute by which factor each bet made the outcome more likely than the prediction did.

    Args:
        posterior: The posterior before the episode.
        evaluator: Evaluator of the same layout.
        columns: (1, columns): the instance, as `evaluator.columns` returned it.
        outcome: The outcome; for a layout with several outcomes all of them, NaN where one is
            missing.
        episode: Number of the episode; it keys the randomness that makes counts continuous.

    Returns:
        (bets,), as logarithms.
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
    """Compute the logarithms of the factors for the k-th outcome alone, (bets,)."""
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
    """Predicted probabilities of less than the outcome, and of at most the outcome."""
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
    # Scores nearer to 0 or 1 than the edge were moved to the edge.
    less = np.zeros_like(at) if outcome <= edge else at
    return less, np.ones_like(at) if outcome >= 1.0 - edge else at


def _by_feature(name: str, values: Floats) -> Stratification:
    known = values[np.isfinite(values)]
    levels, counts = np.unique(known, return_counts=True)
    if len(levels) <= FEW:
        own, cuts = levels, np.empty(0)
    else:
        own = levels[counts >= _COMMON * len(known)]
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
    return Stratification(name, tuple(strata), labels.astype(np.int64))


def _log_mean(logs: Floats) -> float:
    return float(np.logaddexp.reduce(logs)) - float(np.log(logs.size))
