"""What each instance would tell: expected drop of variance, and expected information gain.

On average an outcome y lowers the posterior variance of an ability by Var(E[ability | y]). The best
guess of the ability that is linear in y achieves Cov(ability, y)^2 / Var(y) of this. That is all of
it for success and failure, where y has only two values, and nearly all of it for counts; for scores
the best cubic guess is used instead. Either needs only a few weighted sums per instance and no
logarithms. Bias and noise are marginalised by summing over whole particles.

For several outcomes, the best guess that is linear in all of them together is used, with their
powers where they are scores. The outcomes are independent given the agent, so the covariance of any
two is the covariance of their expectations over the particles.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.adaptive.bank import Bank
from animalcat.layouts.inference.live import LivePosterior
from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.model.likelihood import LEAST_SIZE, draw_outcomes, log_density, trials_of
from animalcat.layouts.model.spec import Bernoulli, Binomial, Likelihood
from animalcat.portable import arrays as portable

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]
Mask: TypeAlias = npt.NDArray[np.bool_]

PARTICLES: Final = 1000
"""Number of particles for scoring; the posterior's are thinned to about as many."""

_LARGE: Final = 4000
"""Number of distinct instances above which a first look with few particles selects those that get a
second look."""
_TABLED: Final = 200
"""Number of distinct instances, of counts or scores, for which `information` makes a table of
probabilities."""
_DEGREE: Final = 3
"""Degree of the polynomial guess from a score. It achieves 0.65 to 1 of the drop, and ranks
instances at least as well as a table of 64 drawn scores would, in a twentieth of the time."""
_FIRST_LOOK: Final = 250
"""Particles of the first look."""
_CELLS: Final = 16_000_000
"""Number of probabilities in the first look (64 MB); with more instances it uses fewer particles.
"""
BLOCK: Final = 250_000
"""Number of cells (instances times particles) of counts or scores whose moments are computed at
once, about 15 MB."""
_LEAST_LOOK: Final = 32
"""Least number of particles of a first look, however many instances there are."""
_SECOND_LOOK: Final = 1000
"""Number of instances that get a second look, shared among the paradigms."""

_PENDING_EXACT: Final = 3
"""Number of pending episodes up to which all combinations of outcomes are enumerated; for more, 8
draws are taken."""
BINS: Final = 8
"""Number of quantile bins of an ability when information about it is computed."""
NODES: Final = 64
"""Number of scores drawn from the prediction to represent it."""


@dataclass(frozen=True, slots=True, eq=False)
class ExpectedGains:
    """What every instance is expected to tell, given a posterior.

    Attributes:
        drops: (instances, capabilities): expected drop of variance, in the unit squared.
        total: (instances,): sum of the drops, each as a share of the squared range.
        predicted: (instances,): probability of success, or mean score, of the first outcome that
            the instance gives.
        variance: (capabilities,): current variance, in the unit squared.
        mean: (capabilities,): current mean, in the unit.
    """

    drops: Floats
    total: Floats
    predicted: Floats
    variance: Floats
    mean: Floats

    def weighted(self, weights: Floats) -> ExpectedGains:
        """Scale the gains for outcomes that count as less than one.

        Args:
            weights: (instances,), in [0, 1].
        """
        drops = self.drops * weights[:, np.newaxis]
        return replace(self, drops=drops, total=self.total * weights)


class GainEstimator:
    """Computes expected gains, once for each state of the posterior. For one thread at a time."""

    def __init__(self, bank: Bank) -> None:
        self.bank = bank
        self._filled: list[tuple[Floats, int, Floats | npt.NDArray[np.float32]]] = []
        self._scored: tuple[Floats, Floats, tuple[int, ...], ExpectedGains] | None = None

    def scores(self, posterior: LivePosterior, pending: Sequence[int] = ()) -> ExpectedGains:
        """Compute the expected drops of variance.

        Args:
            posterior: The current posterior.
            pending: Rows of the instances being played, whose outcomes will be known before this
                one's.
        """
        theta, weights, waiting = posterior.particles, posterior.weights, tuple(sorted(pending))
        kept = self._scored
        if kept is None or kept[0] is not theta or kept[1] is not weights or kept[2] != waiting:
            gains = self._scores(theta, weights, waiting, posterior.seed)
            self._scored = kept = (theta, weights, waiting, gains)
        return kept[3]

    def noiseless(self, posterior: LivePosterior) -> ExpectedGains:
        """Compute the expected gains if the agent had no noise.

        The comparison with `scores` tells a noisy agent from an uninformative battery.
        """
        theta = posterior.particles.copy()
        for i, node in enumerate(self.bank.layout.latents):
            if node.kind == "robustness":
                theta[:, i] = node.noiseless
        ability = posterior.particles[:, list(self.bank.layout.capabilities)]
        (gains,) = self._judge(theta, ability, [posterior.weights], self._looks[0], None)
        return _expand(gains, self.bank.place)

    def information(self, posterior: LivePosterior, about: Sequence[int]) -> Floats:
        """Compute the expected information about some capabilities, summed, in nats.

        Each ability is cut into bins of equal probability. The information about the bin is at most
        that about the ability, and close to it where outcomes change slowly with the ability.

        Args:
            posterior: The current posterior.
            about: Indices of the capabilities among the layout's capabilities.

        Returns:
            (instances,).
        """
        layout = self.bank.layout
        thin = _thin(posterior.particles, PARTICLES)
        weights = _thin(posterior.weights, PARTICLES)
        weights = weights / weights.sum()
        masks = [m for k in about for m in _bins(thin[:, layout.capabilities[k]], weights)]
        shares = np.array([portable.dot(weights, m) for m in masks])
        rows = np.vstack([weights, *(weights * m for m in masks)])
        if self._binary:
            p = self._probabilities(posterior.particles, PARTICLES)
            sums = _sums(p, rows)
            within = sums[1:] / shares[:, np.newaxis]
            gains = len(about) * _entropy(sums[0]) - portable.dot(shares, _entropy(within))
        else:
            looked_at, gains = self._worth_a_look(posterior)
            nats = np.empty(len(looked_at))
            for i, table in enumerate(_tables(self.bank, thin, weights, looked_at)):
                joint = portable.dot(rows, table.T)
                within = joint[1:] / shares[:, np.newaxis]
                whole = -portable.xlogy(joint[0], joint[0]).sum()
                nats[i] = len(about) * whole + portable.dot(
                    portable.xlogy(within, within).sum(axis=1), shares
                )
            gains *= max(float(nats.min()), 0.0) / max(float(gains.max()), 1e-300)
            gains[looked_at] = nats
        return np.maximum(gains, 0.0)[self.bank.place]

    @property
    def _binary(self) -> bool:
        """Whether success or failure is the only outcome of the layout."""
        outcomes = self.bank.layout.outcomes
        return len(outcomes) == 1 and isinstance(outcomes[0].likelihood, Bernoulli)

    @property
    def _looks(self) -> tuple[int, ...]:
        """Numbers of particles of the first look at all instances, and of a second look at some."""
        count, binary = len(self.bank.distinct), self._binary
        if count <= (_LARGE if binary else _SECOND_LOOK):
            return (PARTICLES,)
        cells = _CELLS if binary else 4 * BLOCK
        return min(_FIRST_LOOK, max(cells // count, _LEAST_LOOK)), PARTICLES

    def _worth_a_look(self, posterior: LivePosterior) -> tuple[Ints, Floats]:
        """The distinct instances for which tables are made, and the drops of all instances."""
        total = np.empty(len(self.bank.distinct))
        total[self.bank.place] = self.scores(posterior).total
        return _promising(total, self.bank, _TABLED), total

    def _scores(
        self, theta: Floats, weights: Floats, pending: tuple[int, ...], seed: int
    ) -> ExpectedGains:
        bank = self.bank
        ability = theta[:, list(bank.layout.capabilities)]
        looks = self._looks
        futures = self._futures(theta, weights, pending, seed) if pending else [(1.0, weights)]
        first = self._marginal(theta, ability, futures, looks[0], None)
        if len(looks) == 1:
            return _expand(first, bank.place)
        rows = _promising(first.total, bank, _SECOND_LOOK)
        second = self._marginal(theta, ability, futures, looks[1], rows)
        total = np.minimum(first.total, second.total.min())
        drops, predicted = first.drops.copy("K"), first.predicted.copy()
        total[rows], drops[rows], predicted[rows] = second.total, second.drops, second.predicted
        whole = ExpectedGains(drops, total, predicted, second.variance, second.mean)
        return _expand(whole, bank.place)

    def _marginal(
        self,
        theta: Floats,
        ability: Floats,
        futures: Sequence[tuple[float, Floats]],
        count: int,
        rows: Ints | None,
    ) -> ExpectedGains:
        """Average the gains over the possible outcomes of pending episodes."""
        judged = self._judge(theta, ability, [w for _, w in futures], count, rows)
        if len(futures) == 1:
            return judged[0]
        parts = [(share, gains) for (share, _), gains in zip(futures, judged, strict=True)]

        def mean(name: str) -> Floats:
            return np.asarray(sum(share * getattr(part, name) for share, part in parts))

        return ExpectedGains(
            *(mean(f) for f in ("drops", "total", "predicted", "variance", "mean"))
        )

    def _futures(
        self, theta: Floats, weights: Floats, pending: tuple[int, ...], seed: int
    ) -> list[tuple[float, Floats]]:
        """Possible weights once the pending outcomes are known, each with its probability."""
        rows = self.bank.place[list(pending)]
        columns = self.bank.distinct[rows]
        if not self._binary or len(pending) > _PENDING_EXACT:
            generator = rng(seed, "pending", len(pending))
            draws = generator.choice(len(theta), 8, p=weights)
            drawn = self.bank.evaluator.simulate(theta[draws], columns, generator)
            if drawn.ndim == 3:
                drawn = np.where(self.bank.gives[rows][:, np.newaxis], drawn, np.nan)
            outcomes = drawn.swapaxes(0, 1)
        else:
            outcomes = np.array(list(product((0.0, 1.0), repeat=len(pending))))
        futures: list[tuple[float, Floats]] = []
        for row in outcomes:
            likelihood = self.bank.evaluator.log_likelihood(theta, columns, row)
            posterior = weights * portable.exp(likelihood - likelihood.max())
            chance = float(posterior.sum()) * float(portable.exp(likelihood.max()))
            futures.append((chance, posterior / posterior.sum()))
        if len(pending) > _PENDING_EXACT or not self._binary:
            return [(1.0 / len(futures), w) for _, w in futures]
        total = sum(chance for chance, _ in futures)
        return [(chance / total, w) for chance, w in futures]

    def _judge(
        self,
        theta: Floats,
        ability: Floats,
        futures: Sequence[Floats],
        count: int,
        rows: Ints | None,
    ) -> list[ExpectedGains]:
        """Compute gains of all or some distinct instances with about `count` particles.

        Args:
            theta: (particles, latents).
            ability: (particles, capabilities).
            futures: Weights of the particles, for each of which there is a result.
            count: About how many particles are used.
            rows: Some distinct instances; None for all.
        """
        layout = self.bank.layout
        sample = _thin(ability, count)
        known: list[tuple[Floats, Floats, Floats]] = []
        weightings: list[Floats] = []
        for weights in futures:
            thin = _thin(weights, count)
            thin = thin / thin.sum()
            mean = portable.dot(thin, sample)
            centred = sample - mean
            known.append((thin, mean, centred))
            weightings.append(np.vstack([thin, (centred * thin[:, np.newaxis]).T]))
        found: list[tuple[Floats, Floats]] = []
        if self._binary:
            # All at once: the probabilities are the same, and are read only once.
            p = self._probabilities(theta, count, rows)
            sums = _sums(p, np.concatenate(weightings)).reshape(
                len(futures), 1 + ability.shape[1], len(p)
            )
            for k in range(len(futures)):
                predicted = np.clip(sums[k, 0], 0.0, 1.0)
                spread = np.maximum(predicted * (1.0 - predicted), 1e-9)
                found.append(((sums[k, 1:] ** 2 / spread).T, predicted))
        else:
            chosen = np.arange(len(self.bank.distinct)) if rows is None else rows
            thinned = _thin(theta, count)
            found = [_guess_drops(self.bank, thinned, chosen, each) for each in weightings]
        spans = np.array([layout.latents[i].prior.span for i in layout.capabilities])
        return [
            ExpectedGains(
                drops,
                portable.dot(drops, 1.0 / spans**2),
                predicted,
                portable.dot(thin, centred**2),
                mean,
            )
            for (drops, predicted), (thin, mean, centred) in zip(found, known, strict=True)
        ]

    def _probabilities(
        self, theta: Floats, count: int, rows: Ints | None = None
    ) -> npt.NDArray[np.float32]:
        """(instances, particles); those of all instances are cached until the particles move."""
        columns = self.bank.distinct
        if rows is not None:
            columns = columns[rows]
            return self.bank.evaluator.by_instance(_thin(theta, count), columns, np.float32)
        for made_of, particles, p in self._filled:
            if made_of is theta and particles == count:
                return p.astype(np.float32, copy=False)
        p = self.bank.evaluator.by_instance(_thin(theta, count), columns, np.float32)
        self._filled = [kept for kept in self._filled if kept[0] is theta] + [(theta, count, p)]
        return p


def _moments(bank: Bank, theta: Floats, columns: Floats, outcome: int) -> list[Floats]:
    """Moments of an outcome under every particle: E[y], E[y^2], ..., each (instances, particles).

    Counts are expressed as shares of the trials. There are two moments for every degree of the
    guess.
    """
    likelihood = bank.layout.outcomes[outcome].likelihood
    p = bank.evaluator.by_instance(theta, columns, np.float64, outcome)
    if isinstance(likelihood, Bernoulli):
        return [p, p]
    if isinstance(likelihood, Binomial):
        trials = trials_of(bank.layout, likelihood, columns)[:, np.newaxis]
        return [p, p / trials + (1.0 - 1.0 / trials) * p**2]
    size = bank.evaluator.sample_sizes(theta, columns, outcome)
    assert size is not None  # scores have one
    size = np.maximum(size, LEAST_SIZE)
    moments = [p]
    for k in range(1, 2 * _DEGREE):
        moments.append(moments[-1] * (p * size + k) / (size + k))
    return moments


def _guess_drops(
    bank: Bank, theta: Floats, rows: Ints, weightings: Floats
) -> tuple[Floats, Floats]:
    """Drops of variance by the best polynomial guess from the outcomes, and predicted means.

    Args:
        bank: The bank.
        theta: (particles, latents).
        rows: Some distinct instances.
        weightings: (1 + capabilities, particles): the weights, then the weights times each centred
            capability.

    Returns:
        (instances, capabilities) and (instances,).
    """
    outcomes = range(len(bank.layout.outcomes))
    size = max(BLOCK // len(theta) // len(outcomes), 1)
    parts: list[tuple[Floats, Floats]] = []
    for start in range(0, max(len(rows), 1), size):
        block = rows[start : start + size]
        moments = [_moments(bank, theta, bank.distinct[block], k) for k in outcomes]
        if len(moments) == 1:
            parts.append(_guess(moments[0], weightings))
        else:
            parts.append(_guess_from_all(moments, bank.gives[block], weightings))
    return np.concatenate([d for d, _ in parts]), np.concatenate([p for _, p in parts])


def _guess(moments: Sequence[Floats], weightings: Floats) -> tuple[Floats, Floats]:
    """`_guess_drops` for a block of instances with one outcome, from its `_moments`."""
    degree = len(moments) // 2
    powers = np.arange(1, degree + 1)
    known = [portable.dot(m, weightings[0]) for m in moments]
    mean: Floats = np.stack([np.ones(len(moments[0])), *known], axis=1)
    together: Floats = np.stack(
        [portable.dot(m, weightings[1:].T) for m in moments[:degree]], axis=1
    )
    spread = mean[:, powers[:, np.newaxis] + powers]
    spread -= mean[:, powers, np.newaxis] * mean[:, np.newaxis, powers]
    scale = np.maximum(np.trace(spread, axis1=1, axis2=2), 1e-6)[:, np.newaxis, np.newaxis]
    ridge = 1e-9 * scale * np.eye(degree)  # powers of nearly one value are nearly collinear
    guess = portable.solve(spread + ridge, together)
    return np.sum(together * guess, axis=1), known[0]


def _guess_from_all(
    moments: Sequence[Sequence[Floats]], gives: Mask, weightings: Floats
) -> tuple[Floats, Floats]:
    """`_guess_drops` for a block of instances with several outcomes.

    Args:
        moments: The `_moments` of each outcome.
        gives: (instances, outcomes): which outcomes each instance gives.
        weightings: As for `_guess_drops`.
    """
    weights, each = weightings[0], weightings[1:].T
    guessed = [(k, power) for k, own in enumerate(moments) for power in range(1, len(own) // 2 + 1)]
    means = np.stack([portable.dot(moments[k][power - 1], weights) for k, power in guessed], axis=1)
    together = np.stack([portable.dot(moments[k][power - 1], each) for k, power in guessed], axis=1)
    spread = -means[:, :, np.newaxis] * means[:, np.newaxis]
    for i, (k, power) in enumerate(guessed):
        for j, (other, of_other) in enumerate(guessed[: i + 1]):
            if k == other:
                both = portable.dot(moments[k][power + of_other - 1], weights)
            else:
                both = portable.dot(moments[k][power - 1] * moments[other][of_other - 1], weights)
            spread[:, i, j] += both
            if i != j:
                spread[:, j, i] += both
    there = gives[:, [k for k, _ in guessed]]
    # An outcome that is not given is left out: it gets variance 1 and no covariance.
    spread *= there[:, :, np.newaxis] & there[:, np.newaxis]
    together *= there[:, :, np.newaxis]
    scale = np.maximum(np.trace(spread, axis1=1, axis2=2), 1e-6)[:, np.newaxis]
    ridge = np.where(there, 1e-9 * scale, 1.0)  # powers of nearly one value are nearly collinear
    filled = spread + ridge[:, :, np.newaxis] * np.eye(len(guessed))
    guess = portable.solve(filled, together)
    predicted = np.stack([portable.dot(own[0], weights) for own in moments], axis=1)
    first = np.argmax(gives, axis=1)
    return np.sum(together * guess, axis=1), predicted[np.arange(len(first)), first]


def _tables(bank: Bank, theta: Floats, weights: Floats, rows: Ints) -> Iterator[Floats]:
    """For each distinct instance, a table of how likely outcomes are: (outcomes, particles).

    For counts, it holds every outcome (or 65 of them if there are more) and its probability. For
    scores, it holds outcomes drawn from the prediction, with their densities divided by the density
    of the draw: scores may have poles at 0 and 1, where no fixed grid is fine enough. Several
    outcomes together are enumerated if there are few combinations, and drawn otherwise.
    """
    layout, columns = bank.layout, bank.distinct[rows]
    outcomes = range(len(layout.outcomes))
    p = [bank.evaluator.by_instance(theta, columns, np.float64, k) for k in outcomes]
    sizes = [bank.evaluator.sample_sizes(theta, columns, k) for k in outcomes]
    most = [trials_of(layout, o.likelihood, columns) for o in layout.outcomes]
    for i in range(len(rows)):
        row = slice(i, i + 1)
        given = [
            _OutcomeModel(
                layout.outcomes[k].likelihood,
                p[k][row],
                None if (size := sizes[k]) is None else size[row],
                most[k][row],
            )
            for k in outcomes
            if bank.gives[rows[i], k]
        ]
        if len(given) == 1:
            yield _table_of_one(given[0], weights)
        else:
            yield _table_of_all(given, weights)


@dataclass(frozen=True, slots=True, eq=False)
class _OutcomeModel:
    """One outcome of one instance: its likelihood and that likelihood's parameters, (1, particles).

    Attributes:
        likelihood: The likelihood.
        p: Probability of success, or mean score.
        size: Sample size of a score; None for other kinds.
        trials: (1,): the outcome's maximum.
    """

    likelihood: Likelihood
    p: Floats
    size: Floats | None
    trials: Floats

    def log_table(self, y: Floats) -> Floats:
        """Log densities of some outcomes, (outcomes, particles)."""
        each = y[np.newaxis]
        return log_density(self.likelihood, self.p, self.size, self.trials, each)[0]


def _table_of_one(given: _OutcomeModel, weights: Floats) -> Floats:
    if given.size is None:
        y, share = _counts(int(given.trials[0]))
        return portable.exp(given.log_table(y)) * share[:, np.newaxis]
    y = _draw_outcomes([given], weights)[0]
    return _importance(given.log_table(y), weights)


def _table_of_all(given: Sequence[_OutcomeModel], weights: Floats) -> Floats:
    counts = [int(outcome.trials[0]) + 1 for outcome in given]
    if all(outcome.size is None for outcome in given) and prod(counts) <= NODES:
        each = np.array(list(product(*(map(float, range(count)) for count in counts)))).T
        logs = [outcome.log_table(y) for outcome, y in zip(given, each, strict=True)]
        return portable.exp(np.sum(logs, axis=0))
    each = _draw_outcomes(given, weights)
    logs = [outcome.log_table(y) for outcome, y in zip(given, each, strict=True)]
    return _importance(np.asarray(np.sum(logs, axis=0)), weights)


def _importance(log_table: Floats, weights: Floats) -> Floats:
    """Importance-weighted likelihoods of outcomes that were drawn from the prediction."""
    log_table -= log_table.max(axis=1, keepdims=True)
    table = portable.exp(log_table).astype(np.float32)
    return table / (len(table) * portable.dot(table, weights)[:, np.newaxis])


def _draw_outcomes(given: Sequence[_OutcomeModel], weights: Floats) -> list[Floats]:
    """Outcomes drawn jointly from the prediction, each (draws,); the draws are deterministic."""
    steps = (np.arange(NODES) + 0.5) / NODES
    rows = np.minimum(np.digitize(steps, np.cumsum(weights)), len(weights) - 1)
    fixed = np.random.default_rng(0)
    return [
        draw_outcomes(
            outcome.likelihood,
            outcome.p[:, rows],
            None if outcome.size is None else outcome.size[:, rows],
            outcome.trials,
            fixed,
        )[0]
        for outcome in given
    ]


def _counts(trials: int) -> tuple[Floats, Floats]:
    """Counts that represent all possible ones, and how many counts each represents."""
    counts = np.unique(np.linspace(0, trials, min(trials + 1, 65)).round())
    return counts, np.gradient(counts) if len(counts) > 1 else np.ones(1)


def _promising(total: Floats, bank: Bank, most: int) -> Ints:
    """The distinct rows with the highest scores, equally many from each paradigm and the offers."""
    if len(total) <= most:
        return np.arange(len(total))
    share = max(1, most // len(bank.groups))
    best = [
        own if len(own) <= share else own[portable.largest(total[own], share)]
        for own in bank.groups
    ]
    return np.unique(np.concatenate(best))


def _expand(scores: ExpectedGains, place: Ints) -> ExpectedGains:
    """Expand gains from distinct instances to all instances."""
    if len(place) == len(scores.total):  # each is its own, in the same order
        return scores
    drops, total, predicted = (
        np.take(a, place, axis=-1) for a in (scores.drops.T, scores.total, scores.predicted)
    )
    return ExpectedGains(drops.T, total, predicted, scores.variance, scores.mean)


def _sums(p: npt.NDArray[np.float32], weightings: Floats) -> Floats:
    """Sums over particles under every weighting, (weightings, instances)."""
    from animalcat.portable.kernels import rows_by_rows  # brings numba

    out = np.empty((len(weightings), len(p)))
    rows_by_rows(p, weightings.astype(np.float32), out)
    return out


def contrast_of_groups(bank: Bank, theta: Floats, groups: Sequence[Mask]) -> tuple[Floats, Floats]:
    """How well each instance tells groups of draws apart, such as candidate explanations.

    Scores and counts are taken as successes with the probability of their mean share, which is a
    little less than they tell.

    Args:
        bank: The instances.
        theta: (draws, latents), equally weighted draws.
        groups: Masks of the draws, each (draws,), which do not overlap and are not empty.

    Returns:
        Expected information about the group in bits, (instances,), and success predicted by each
        group, (groups, instances).
    """
    shares = np.array([mask.sum() for mask in groups], np.float64)
    shares /= shares.sum()
    p = bank.evaluator.by_instance(theta, bank.distinct, np.float64)
    each = np.stack([p[:, mask].mean(axis=1) for mask in groups])
    nats = _entropy(portable.dot(shares, each)) - portable.dot(shares, _entropy(each))
    return (np.maximum(nats, 0.0) / portable.log(2.0))[bank.place], each[:, bank.place]


def _bins(ability: Floats, weights: Floats) -> list[Floats]:
    """Masks of the quantile bins of an ability; empty bins are left out."""
    order = np.argsort(ability, kind="stable")
    ranks = np.empty(len(order), np.int64)
    before = np.cumsum(weights[order]) - 0.5 * weights[order]
    ranks[order] = np.minimum((before * BINS).astype(np.int64), BINS - 1)
    return [
        (ranks == b).astype(np.float64)
        for b in range(BINS)
        if portable.dot(weights, ranks == b) > 0
    ]


def _entropy(p: Floats) -> Floats:
    """Entropy of success and failure, in nats."""
    q = np.clip(p, 0.0, 1.0)
    return -portable.xlogy(q, q) - portable.xlogy(1.0 - q, 1.0 - q)


def _thin(array: Floats, count: int) -> Floats:
    """Thin an array to about `count` evenly spaced rows.

    After systematic resampling equal particles lie side by side, so this keeps the distribution.
    """
    return array[:: max(1, len(array) // count)]
