"""Choosing the next instance: expected drop of capability variance, balanced over paradigms.

The score of an instance is the sum over capabilities of Cov(ability, p)^2 / (p (1 - p)), each
ability in shares of its range: exactly the expected drop of posterior variance by its outcome,
with bias and noise marginalised. A share of draws is random, so that a layout that is wrong shows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.evaluator import Evaluator
from animalcat.layouts.kernels import weighted_sums
from animalcat.layouts.live import LivePosterior
from animalcat.layouts.randomness import rng
from animalcat.layouts.spec import Layout

Floats: TypeAlias = npt.NDArray[np.float64]

PARTICLES: Final = 1000
"""Particles that scores are worked out with; the posterior's are thinned to about as many."""

SLACK: Final = 1
"""How many more plays than the least played paradigm a paradigm may have and be chosen again."""

_TIE: Final = 1e-9
"""Scores this near to the best, in shares of it, count as equal."""


@dataclass(frozen=True, slots=True)
class Policy:
    """How to choose.

    Attributes:
        name: "variance" (expected drop of capability variance) or "random" (balanced random).
        random_share: Share of balanced random draws under "variance".
        repeats: Whether an instance may be played more than once.
    """

    name: Literal["variance", "random"] = "variance"
    random_share: float = 0.3
    repeats: bool = False

    def __post_init__(self) -> None:
        if self.name not in ("variance", "random"):
            raise ValueError(f"policy {self.name!r} is unknown; valid: variance, random")
        if not 0.0 <= self.random_share <= 1.0:
            raise ValueError(f"random_share {self.random_share} is not in [0, 1]")


@dataclass(frozen=True, slots=True)
class Choice:
    """A chosen instance, and why.

    Attributes:
        index: Its row.
        score: Expected drop of variance, summed over capabilities in shares of their range.
        propensity: Probability with which the policy chose it here.
        predicted: Predicted probability of success.
        margins: Per capability that it demands, posterior mean minus demand, in its unit.
        reason: Which draw it was: "informative" or "random".
    """

    index: int
    score: float
    propensity: float
    predicted: float
    margins: Mapping[str, float]
    reason: Literal["informative", "random"]


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """What every instance would tell, given a posterior.

    Attributes:
        drops: (instances, capabilities): expected drop of variance, in the unit squared.
        total: (instances,): their sum in shares of the squared range.
        predicted: (instances,): probability of success.
        variance: (capabilities,): variance now, in the unit squared.
    """

    drops: Floats
    total: Floats
    predicted: Floats
    variance: Floats


class Selector:
    """Chooses among fixed instances. It may serve several posteriors; one thread at a time."""

    def __init__(
        self,
        layout: Layout,
        features: npt.ArrayLike,
        paradigms: Sequence[str],
        policy: Policy | None = None,
    ) -> None:
        """Prepare the instances.

        Args:
            layout: What is measured.
            features: (instances, features), in the layout's order and units.
            paradigms: The paradigm of each instance, for balance.
            policy: How to choose; by default `Policy()`.

        Raises:
            ValueError: A feature is out of range, or the lengths differ.
        """
        self.layout = layout
        self.policy = policy or Policy()
        self.paradigms = tuple(paradigms)
        self._evaluator = Evaluator(layout)
        values = np.asarray(features, dtype=np.float64)
        self._columns = self._evaluator.columns(values.reshape(-1, len(layout.features)))
        if len(self.paradigms) != len(self._columns):
            raise ValueError(f"{len(self.paradigms)} paradigms, {len(self._columns)} instances")
        self.demands = self._evaluator.demands(self._columns)
        self._members: dict[str, npt.NDArray[np.int64]] = {
            name: np.array([i for i, p in enumerate(self.paradigms) if p == name], dtype=np.int64)
            for name in sorted(set(self.paradigms))
        }
        self._filled: tuple[Floats, npt.NDArray[np.float32]] | None = None
        self._scored: tuple[Floats, Floats, Scores] | None = None

    def __len__(self) -> int:
        return len(self.paradigms)

    def select(
        self, posterior: LivePosterior, used: Collection[int], episode: int
    ) -> Choice | None:
        """Choose the next instance.

        Args:
            posterior: What is known.
            used: Instances played already; with repeats, as often as they were played.
            episode: Number of the episode to come; it keys the randomness.

        Returns:
            The choice, or None where no instance is left.
        """
        if not self.available(used).any():
            return None
        scores = self.scores(posterior)
        informative, by_chance = self._branches(scores, used)
        share = self._random_share
        generator = rng(posterior.seed, "select", episode)
        at_random = bool(generator.random() < share)
        branch = by_chance if at_random else informative
        index = _drawn(branch, generator.random())
        return Choice(
            index=index,
            score=float(scores.total[index]),
            propensity=float(share * by_chance[index] + (1.0 - share) * informative[index]),
            predicted=float(scores.predicted[index]),
            margins=self._margins(posterior, index),
            reason="random" if at_random else "informative",
        )

    def propensities(self, posterior: LivePosterior, used: Collection[int]) -> Floats:
        """Probability with which each instance is chosen next; all 0 where none is left.

        Returns:
            (instances,).
        """
        if not self.available(used).any():
            return np.zeros(len(self))
        informative, by_chance = self._branches(self.scores(posterior), used)
        return self._random_share * by_chance + (1.0 - self._random_share) * informative

    def available(self, used: Collection[int]) -> npt.NDArray[np.bool_]:
        """Which instances may be played now: (instances,)."""
        free = np.ones(len(self), dtype=np.bool_)
        if not self.policy.repeats:
            free[list(used)] = False
        return free

    def scores(self, posterior: LivePosterior) -> Scores:
        """What every instance would tell; worked out once per state of the posterior."""
        theta, weights = posterior.particles, posterior.weights
        if self._scored is None or self._scored[0] is not theta or self._scored[1] is not weights:
            if self._filled is None or self._filled[0] is not theta:
                # Probabilities depend on the particles alone: new ones only after a move.
                thin = _thinned(theta)
                p = self._evaluator.by_instance(thin, self._columns, np.float32)
                self._filled = (theta, p)
            made = self._score(theta, weights, self._filled[1])
            self._scored = (theta, weights, made)
        return self._scored[2]

    def noiseless_scores(self, posterior: LivePosterior) -> Scores:
        """The same if the agent had no noise: tells noise from a battery that cannot tell."""
        theta = posterior.particles.copy()
        for i, node in enumerate(self.layout.latents):
            if node.kind == "robustness":
                theta[:, i] = node.noiseless
        p = self._evaluator.by_instance(_thinned(theta), self._columns, np.float32)
        return self._score(posterior.particles, posterior.weights, p)

    @property
    def _random_share(self) -> float:
        return 1.0 if self.policy.name == "random" else self.policy.random_share

    def _score(self, theta: Floats, weights: Floats, p: npt.NDArray[np.float32]) -> Scores:
        """Variance drops by sums over the thinned particles."""
        thin = _thinned(weights)
        thin = thin / thin.sum()
        ability = _thinned(theta)[:, list(self.layout.capabilities)]
        centred = ability - thin @ ability
        sums = np.empty((len(p), 1 + ability.shape[1]))
        weighted_sums(p, np.vstack([thin, (centred * thin[:, np.newaxis]).T]), sums)
        predicted = np.clip(sums[:, 0], 0.0, 1.0)
        spread = np.maximum(predicted * (1.0 - predicted), 1e-9)
        drops = sums[:, 1:] ** 2 / spread[:, np.newaxis]
        spans = np.array([self.layout.latents[i].prior.span for i in self.layout.capabilities])
        return Scores(drops, drops @ spans**-2.0, predicted, thin @ centred**2)

    def _branches(self, scores: Scores, used: Collection[int]) -> tuple[Floats, Floats]:
        """Probabilities of the informative and of the random draw, each summing to 1."""
        allowed = self.available(used)
        plays = Counter(self.paradigms[i] for i in used)
        members = {name: rows[allowed[rows]] for name, rows in self._members.items()}
        least = min(plays[name] for name, rows in members.items() if rows.size)
        by_chance = np.zeros(len(self))
        due = [n for n, rows in members.items() if rows.size and plays[n] == least]
        for name in due:
            by_chance[members[name]] = 1.0 / (len(due) * members[name].size)
        balanced = np.concatenate([r for n, r in members.items() if plays[n] <= least + SLACK])
        total = scores.total[balanced]
        best = balanced[total >= total.max() * (1.0 - _TIE)]
        informative = np.zeros(len(self))
        informative[best] = 1.0 / best.size
        return informative, by_chance

    def _margins(self, posterior: LivePosterior, index: int) -> dict[str, float]:
        mean = posterior.weights @ posterior.particles
        return {
            self.layout.latents[i].name: float(mean[i] - self.demands[index, k])
            for k, i in enumerate(self.layout.capabilities)
            if np.isfinite(self.demands[index, k])
        }


def _drawn(probabilities: Floats, u: float) -> int:
    """The index that a uniform number picks; never one of probability 0."""
    possible = np.flatnonzero(probabilities)
    total = np.cumsum(probabilities[possible])
    return int(possible[min(int(np.sum(total <= u * total[-1])), possible.size - 1)])


def _thinned(array: Floats) -> Floats:
    """Every so manieth row; after systematic resampling equal particles lie side by side."""
    return array[:: max(1, len(array) // PARTICLES)]
