"""The live posterior: sequential Monte Carlo over the parameters of a layout (IBIS).

Particles live in z-space, where every prior is standard normal. An outcome re-weights them; where
the effective number falls below half, they are resampled and moved by random-walk Metropolis
sweeps on all outcomes so far (Chopin 2002). 2,000 particles and 10 sweeps stay within 0.05
posterior standard deviations of NUTS on average, and within 0.15 at worst.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.inference.counting import EqualRows
from animalcat.layouts.inference.evaluator import Evaluator
from animalcat.layouts.inference.fit import FitData, FitResult
from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.inference.summary import NodeSummary, RankedDraws
from animalcat.layouts.model.growing import Growing
from animalcat.layouts.model.spec import Layout
from animalcat.portable import arrays as portable
from animalcat.portable import scalars

Floats: TypeAlias = npt.NDArray[np.float64]
Mask: TypeAlias = npt.NDArray[np.bool_]
LogLikelihood: TypeAlias = Callable[[Floats], Floats]

_SWEEPS: Final = 10
"""Metropolis sweeps of a move."""
_MANY: Final = 15
"""From so many latents on, a move has as many sweeps as there are latents: a random walk needs
steps in proportion to its dimensions (Roberts, Gelman and Gilks 1997). With 10 sweeps of 19
latents, means differed between seeds by 0.05 to 0.07 standard deviations, with 20 by 0.03 to 0.04.
"""
_ROWS: Final = 1024
"""Number of outcomes of which likelihoods are held at once."""
_BLOCK: Final = 64
"""Number of outcomes that `update_all` processes at once."""
_ACCEPTANCE: Final = 0.25
"""Acceptance rate that the step width is tuned to."""
_KEPT: Final = 0.8
"""Share of the particles that stay effective when a restart raises the likelihood's power. With a
half, means were off by two to five times as much where the posterior has two modes."""


class TellError(ValueError):
    """An outcome cannot be told, or an episode was not told."""


@dataclass(frozen=True, slots=True)
class ToldOutcome:
    """The outcome of one episode, as it was told to a live posterior.

    Attributes:
        episode: Its number; below 0 if it was told in an earlier test.
        features: Features of its instance, in the layout's order.
        outcome: The outcome; for a layout with several all of them, NaN where one is missing.
        weight: How many outcomes it counts as.
    """

    episode: int
    features: tuple[float, ...]
    outcome: float | tuple[float, ...]
    weight: float = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class _Reseed:
    """Draws of the posterior given the first `told` outcomes, each counted by its weight."""

    told: int
    draws: Floats
    weights: Floats


class LivePosterior:
    """The posterior after every outcome told so far.

    Its state is determined by the seed and by the outcomes, reseeds and restarts in their order. So
    the same again gives the same posterior, bit for bit, on every processor. `particles` and
    `weights` are read-only and are replaced, never changed: the same array object means the same
    content. It is for one thread at a time.
    """

    def __init__(self, layout: Layout, seed: int, particles: int = 2000) -> None:
        """Start at the prior.

        Args:
            layout: The layout that is measured.
            seed: Seed of the session.
            particles: Number of particles; errors fall with its square root.
        """
        if particles < 100:
            raise ValueError(f"{particles} particles are too few; 100 at least")
        self.layout = layout
        self.seed = seed
        self._size = particles
        self._evaluator = Evaluator(layout)
        self._episodes: dict[int, None] = {}
        self._features = Growing(np.float64, len(layout.features))
        several = len(layout.outcomes) if len(layout.outcomes) > 1 else None
        self._outcomes = Growing(np.float64, several)
        self._weights_told = Growing(np.float64)
        self._equal = EqualRows()
        self._groups = Growing(np.int64)
        self._by_group: Floats | None = None
        self._sums: Floats | None = None
        self._ranked: RankedDraws | None = None
        self._summary: tuple[Floats, list[NodeSummary]] | None = None
        self._columns = Growing(np.float64, self._evaluator.width)
        self._moves = 0
        self._start(
            portable.standard_normal(rng(seed, "prior", 0), (particles, len(layout.latents)))
        )

    @property
    def particles(self) -> Floats:
        """(particles, latents), in the units of the latents."""
        return self._theta

    @property
    def weights(self) -> Floats:
        """(particles,), summing to 1."""
        return self._weights

    @property
    def tells(self) -> Sequence[ToldOutcome]:
        """Outcomes told so far, in order."""
        rows = zip(
            self._episodes,
            self._features.rows.tolist(),
            _tell_form(self._outcomes.rows),
            self._told_weights.rows.tolist(),
            strict=True,
        )
        return tuple(ToldOutcome(number, tuple(row), y, weight) for number, row, y, weight in rows)

    @property
    def told(self) -> int:
        """Number of outcomes told so far."""
        return len(self._episodes)

    @property
    def moves(self) -> int:
        """Number of moves of the particles; between moves only the weights change."""
        return self._moves

    @property
    def ess(self) -> float:
        """Effective number of particles (Kish)."""
        return float(1.0 / np.sum(self._weights**2))

    def to_arviz(self) -> Any:
        """Return the posterior as ArviZ has it, like `FitResult.to_arviz`; see `as_fit`."""
        return self.as_fit().to_arviz()

    def as_fit(self) -> FitResult:
        """Return the posterior in the form of a fit, which says that it is not certified.

        The particles are resampled by their weights into one chain. There are no statistics of a
        sampler.
        """
        draws = self.resampled()[np.newaxis]
        return FitResult(self.layout, draws, self.summary(), self.diagnostics, self._data())

    def _data(self) -> FitData:
        return FitData(
            self._features.rows,
            self._outcomes.rows,
            self._told_weights.rows,
            tuple(self._episodes),
        )

    @property
    def diagnostics(self) -> dict[str, Any]:
        """Quality of the inference, like `FitResult.diagnostics`; JSON-ready."""
        return {
            "engine": "smc",
            "converged": False,
            "reasons": ["live posterior: not refitted by NUTS"],
            "outcomes": self.told,
            "evidence": self._data().digest,
            "prior_only": not self.told,
            "particles": self._size,
            "ess": self.ess,
        }

    def resampled(self) -> Floats:
        """Draws of equal weight, (particles, latents); the same each time for the same state."""
        generator = rng(self.seed, "resampled", self.told)
        places = (np.arange(self._size) + generator.uniform()) / self._size
        rows = np.searchsorted(np.cumsum(self._weights), places).clip(max=self._size - 1)
        return self._theta[generator.permutation(rows)]

    def update(
        self,
        features: npt.ArrayLike,
        outcome: float | Sequence[float],
        episode: int,
        weight: float = 1.0,
    ) -> None:
        """Take in the outcome of one episode.

        Args:
            features: (features,), of the instance that was played.
            outcome: 1 for success or 0 for failure, the number of successful trials, or the score.
                For a layout with several outcomes all of them, NaN where one is missing.
            episode: Number of the episode; each can be told once.
            weight: How many outcomes it counts as, 0 to 1: the likelihood is raised to this power.
                It is less than 1 for repeats, see `layouts.adaptive.retest`.

        Raises:
            TellError: This episode was told already.
            ValueError: A feature is missing or out of range, the outcome is of the wrong kind, or
                the weight is not in [0, 1].
        """
        if not 0.0 <= weight <= 1.0:
            raise ValueError(f"weight {weight} of episode {episode} is not in [0, 1]")
        if episode in self._episodes:
            raise TellError(f"episode {episode} was told already; invalidate it first")
        checked = self.layout.check_features(np.atleast_2d(np.asarray(features, np.float64)))
        given = np.asarray(outcome, np.float64)[np.newaxis]
        (y,) = self.layout.check_outcomes(given, checked)
        self._append(episode, checked[0], self._evaluator.columns(checked)[0], y, weight)
        self._reweight(self.told - 1)

    def update_checked(
        self,
        columns: Floats,
        outcome: float | Sequence[float] | Floats,
        episode: int,
        weight: float,
        group: int = -1,
    ) -> None:
        """Take in an outcome as `update` does, whose features and values were checked already.

        Args:
            columns: (1, columns): the instance, as `Evaluator.columns` returned it.
            outcome: As `Layout.check_outcomes` returned it.
            episode: Number of the episode, which was not told yet.
            weight: How many outcomes it counts as.
            group: The group of outcomes to which it belongs, for `update_groups`; -1 for none.
        """
        features = columns[0, : len(self.layout.features)]
        self._append(episode, features, columns[0], outcome, weight, group)
        self._reweight(self.told - 1)

    def update_all(self, features: npt.ArrayLike, outcomes: npt.ArrayLike, first: int = 1) -> None:
        """Take in many outcomes: faster than `update` one by one, and equal but for rounding.

        Args:
            features: (episodes, features), of the instances that were played.
            outcomes: (episodes,) or (episodes, outcomes), in the order played.
            first: Number of the first episode; the others follow it.

        Raises:
            TellError: One of these episodes was told already.
            ValueError: As for `update`; nothing is taken in.
        """
        checked = self.layout.check_features(np.asarray(features, np.float64))
        y = self.layout.check_outcomes(np.asarray(outcomes, np.float64), checked)
        numbers = range(first, first + len(y))
        if twice := [number for number in self._episodes if number in numbers]:
            raise TellError(f"episode {twice[0]} was told already; invalidate it first")
        columns = self._evaluator.columns(checked)
        done = self.told
        for number, row, prepared, outcome in zip(numbers, checked, columns, y, strict=True):
            self._append(number, row, prepared, outcome, 1.0)
        start = 0
        while start < len(y):
            block = slice(start, start + _BLOCK)
            each = self._evaluator.pointwise(self._theta, columns[block], y[block])
            after = self._log_weights + np.cumsum(each, axis=0)
            weights = portable.exp(after - after.max(axis=1, keepdims=True))
            ess = weights.sum(axis=1) ** 2 / np.sum(weights**2, axis=1)
            low = np.flatnonzero(ess < self._size / 2)
            taken = int(low[0]) + 1 if low.size else len(after)
            self._weigh(after[taken - 1])
            start += taken
            if low.size:
                episode = numbers[start - 1]
                self._move(self._rng("move", episode), told=done + start)

    def reweigh(self, weights: npt.ArrayLike) -> None:
        """Change the weights of outcomes as if they had been told with the new ones.

        Args:
            weights: (episodes told,), how many outcomes each counts as, 0 to 1.

        Raises:
            ValueError: A weight is not in [0, 1], or their number is not that of the outcomes.
        """
        now = np.array(weights, dtype=np.float64)
        if now.shape != (self.told,):
            raise ValueError(f"{now.shape} weights for {self.told} outcomes")
        if not ((now >= 0.0) & (now <= 1.0)).all():
            raise ValueError("a weight is not in [0, 1]")
        more = now - self._told_weights.rows
        changed = np.flatnonzero(more)
        if not len(changed):
            return
        self._weights_told = _grow_array(now)
        self._weigh(self._log_weights + portable.dot(more[changed], self._likelihoods(changed)))
        if self.ess < self._size / 2:
            self._move(self._rng("reweigh", self._latest), told=len(now))

    def update_groups(
        self,
        columns: Floats,
        outcome: float | Sequence[float] | Floats,
        episode: int,
        group: int,
        weights: Floats,
    ) -> None:
        """Take in a checked outcome, and change weights where all of a group count the same.

        It takes no longer after many outcomes than after few: their likelihoods are added up by
        group as they come. So the result is that of `update_checked` and `reweigh` but for
        rounding.

        Args:
            columns: (1, columns): the instance, as `Evaluator.columns` returned it.
            outcome: As `Layout.check_outcomes` returned it.
            episode: Number of the episode, which was not told yet.
            group: The group of outcomes to which it belongs; -1 for none, and then it counts for
                nothing.
            weights: (groups,), how many outcomes those of each group count as from now on. There
                are the groups 0, 1, ...; who is in none keeps its weight.
        """
        before = np.full(len(weights), np.nan)
        if self._by_group is not None:
            before[: len(self._by_group)] = self._by_group
        else:
            there = self._groups.rows >= 0
            before[self._groups.rows[there]] = self._weights_told.rows[there]
        before = np.where(np.isnan(before), weights, before)
        self._by_group = before
        own = 0.0 if group < 0 else float(before[group])
        self.update_checked(columns, outcome, episode, own, group)
        more = weights - before
        if not more.any():
            return
        sums = self._group_sums(len(weights))
        self._by_group = weights
        # Not the product of a library, whose threads wait busily for each other.
        self._weigh(self._log_weights + np.einsum("g,gp->p", more, sums))
        if self.ess < self._size / 2:
            self._move(self._rng("reweigh", self._latest), told=self.told)

    def _group_sums(self, groups: int) -> Floats:
        """Log likelihoods added up by group, (groups, particles)."""
        if self._sums is None:
            rows, places = self._equal.firsts, self._equal.places
            there = self._groups.rows >= 0
            flat = self._groups.rows[there] * len(rows) + places[there]
            counts = np.bincount(flat, minlength=groups * len(rows)).astype(np.float64)
            counts = counts.reshape(groups, len(rows))
            self._sums = np.zeros((groups, self._size))
            for start in range(0, len(rows), _ROWS):
                part = slice(start, start + _ROWS)
                more: Floats = portable.dot(counts[:, part], self._likelihoods(rows[part]))
                self._sums += more
        elif len(self._sums) < groups:
            more = np.zeros((groups - len(self._sums), self._size))
            self._sums = np.concatenate([self._sums, more])
        return self._sums

    @property
    def _told_weights(self) -> Growing[np.float64]:
        """How many outcomes each counts as."""
        if self._by_group is not None:
            groups = self._groups.rows
            there = groups >= 0
            kept = self._weights_told.rows.copy()
            kept[there] = self._by_group[groups[there]]
            self._weights_told, self._by_group = _grow_array(kept), None
        return self._weights_told

    def reseed(self, draws: npt.ArrayLike, told: int, weights: npt.ArrayLike | None = None) -> None:
        """Restart from draws of the posterior, and take in again what was told after them.

        Args:
            draws: (draws, latents), of the posterior given the first `told` outcomes.
            told: Number of outcomes, in the order told, that the draws know.
            weights: (told,), how many outcomes each counted as in the draws; by default as it does
                now.

        Raises:
            ValueError: A shape is wrong, or fewer outcomes were told.
        """
        array = np.array(draws, dtype=np.float64)
        if array.ndim != 2 or array.shape[1] != len(self.layout.latents) or not array.size:
            raise ValueError(f"draws have shape {array.shape}; expected (draws, latents)")
        if not 0 <= told <= self.told:
            raise ValueError(f"{told} outcomes are not among the {self.told} told")
        given = self._told_weights.rows[:told] if weights is None else weights
        known = np.array(given, np.float64)
        if known.shape != (told,):
            raise ValueError(f"{known.shape} weights for {told} outcomes")
        self._reseed(_Reseed(told, array, known))

    def restart(self) -> None:
        """Sample the posterior anew, starting from the prior, in case particles have died out.

        Early outcomes may leave no particle where later outcomes want many, as with an agent that
        first fails everything and then succeeds. Small steps do not find the way back. So the
        particles are drawn from the prior, and the likelihood of all outcomes at once is raised to
        a power that grows to 1 in steps (Neal 2001; Del Moral, Doucet and Jasra 2006). That takes
        some 20 times as long as a move.
        """
        log_likelihood = self._log_likelihood(self.told)
        generator = self._rng("restart", self._latest)
        z = portable.standard_normal(generator, self._z.shape)
        at, power = _Particles(z, log_likelihood(z)), 0.0
        while power < 1.0:
            step = _step(at.log_likelihood, 1.0 - power)
            weights = _temper_weights(at.log_likelihood, step)
            root = _root(at.z, weights)
            rows = _systematic(weights, generator.random())
            power = min(power + step, 1.0)
            at = _Particles(at.z[rows], at.log_likelihood[rows])
            at = _sweep(generator, at, root, log_likelihood, power, redrawn=True)
        self._moves += 1
        self._start(at.z)

    def summary(self) -> list[NodeSummary]:
        """Every node of the profile, in the layout's order."""
        if self._summary is None or self._summary[0] is not self._weights:
            ess = np.full(len(self.layout.latents), self.ess)
            if self._ranked is None:
                self._ranked = RankedDraws(self.layout, self._theta)
            nodes = self._ranked.summarise(self._weights, ess)
            self._summary = self._weights, nodes
        return list(self._summary[1])

    def _start(self, z: Floats) -> None:
        self._z = z
        self._sums = self._ranked = None
        self._theta = _freeze(self._values(z))
        self._weigh(np.zeros(len(z)))

    def _weigh(self, log_weights: Floats) -> None:
        self._log_weights = log_weights - log_weights.max()
        weights = portable.exp(self._log_weights)
        self._weights = _freeze(weights / weights.sum())

    def _values(self, z: Floats) -> Floats:
        return self.layout.from_standard(z)

    @property
    def _latest(self) -> int:
        """Number of the last episode told; 0 if there is none."""
        return next(reversed(self._episodes), 0)

    def _rng(self, purpose: str, episode: int) -> np.random.Generator:
        """The generator for a purpose after an episode, counted from the first below 0."""
        first = min(0, next(iter(self._episodes), 0))
        return rng(self.seed, purpose, episode - first)

    def _append(
        self,
        episode: int,
        features: Floats,
        columns: Floats,
        outcome: float | Sequence[float] | Floats,
        weight: float,
        group: int = -1,
    ) -> None:
        self._episodes[episode] = None
        self._features.append(features)
        self._columns.append(columns)
        self._outcomes.append(outcome)
        self._weights_told.append(weight)
        self._equal.append(columns, outcome)
        self._groups.append(group)

    def _likelihoods(self, indices: slice | npt.NDArray[np.int64]) -> Floats:
        """Log likelihoods of some of the outcomes told, (outcomes, particles)."""
        columns, outcomes = self._columns.rows[indices], self._outcomes.rows[indices]
        return self._evaluator.pointwise(self._theta, columns, outcomes)

    def _reweight(self, index: int, episode: int | None = None) -> None:
        (likelihood,) = self._likelihoods(slice(index, index + 1))
        group = int(self._groups.rows[index])
        if self._sums is not None and group >= 0:
            self._group_sums(group + 1)[group] += likelihood
        self._weigh(self._log_weights + float(self._weights_told.rows[index]) * likelihood)
        if self.ess < self._size / 2:
            number = self._latest if episode is None else episode
            self._move(self._rng("move", number), told=index + 1)

    def _reseed(self, entry: _Reseed) -> None:
        self._apply(entry)
        numbers = list(self._episodes)
        for index in range(entry.told, len(numbers)):
            self._reweight(index, numbers[index])

    def _apply(self, entry: _Reseed) -> None:
        """Take particles from given draws; a move then separates equal ones."""
        rows = np.linspace(0, len(entry.draws) - 1, self._size).round().astype(np.int64)
        draws = entry.draws[rows]
        self._start(self.layout.to_standard(draws))
        more = self._told_weights.rows[: entry.told] - entry.weights
        if len(changed := np.flatnonzero(more)):  # counted anew since the draws were made
            self._weigh(portable.dot(more[changed], self._likelihoods(changed)))
        self._move(rng(self.seed, "reseed", entry.told), told=entry.told)

    def _move(self, generator: np.random.Generator, told: int) -> None:
        """Resample, then sweep on the first `told` outcomes; the posterior is invariant."""
        root = _root(self._z, self._weights)
        z = self._z[_systematic(self._weights, generator.random())]
        log_likelihood = self._log_likelihood(told)
        at = _Particles(z, log_likelihood(z))
        self._moves += 1
        self._start(_sweep(generator, at, root, log_likelihood).z)

    def _log_likelihood(self, told: int) -> LogLikelihood:
        """What makes the log likelihood, (particles,), of the first `told` outcomes."""
        if not told:
            return lambda z: np.zeros(len(z))
        columns, outcomes = self._columns.rows[:told], self._outcomes.rows[:told]
        weights = self._told_weights.rows[:told]
        if self._equal.pays(told):
            counted = self._equal.counted(weights)
            columns, outcomes = columns[counted.rows], outcomes[counted.rows]
            weights = counted.weights
        return lambda z: self._evaluator.log_likelihood(self._values(z), columns, outcomes, weights)


class _Particles(NamedTuple):
    """The particles, and how likely each makes the outcomes.

    Attributes:
        z: (particles, latents).
        log_likelihood: (particles,).
    """

    z: Floats
    log_likelihood: Floats

    def density(self, power: float) -> Floats:
        """Log of the prior times a power of the likelihood, but for a constant."""
        return -0.5 * np.einsum("ij,ij->i", self.z, self.z) + power * self.log_likelihood

    def where(self, chosen: Mask, other: _Particles) -> _Particles:
        """These particles where they are chosen, and others elsewhere."""
        return _Particles(
            np.where(chosen[:, np.newaxis], self.z, other.z),
            np.where(chosen, self.log_likelihood, other.log_likelihood),
        )


def _sweep(
    generator: np.random.Generator,
    at: _Particles,
    root: Floats,
    log_likelihood: LogLikelihood,
    power: float = 1.0,
    redrawn: bool = False,
) -> _Particles:
    """Sweep over particles, of which the prior times a power of the likelihood is invariant.

    Args:
        generator: Where randomness is from.
        at: The particles.
        root: Cholesky factor of their covariance.
        log_likelihood: Makes the log likelihood, (particles,), of particles.
        power: The power.
        redrawn: Whether, after every small step, some latents of each particle are also drawn anew
            from the prior: any number of them with equal probability.
    """
    size, dim = len(at.log_likelihood), len(root)
    width = 2.38 / math.sqrt(dim)  # Roberts, Gelman and Gilks 1997
    for _ in range(_SWEEPS if dim < _MANY else dim):
        z = at.z + portable.dot(width * portable.standard_normal(generator, (size, dim)), root.T)
        proposed = _Particles(z, log_likelihood(z))
        gain = proposed.density(power) - at.density(power)
        accept = portable.log(generator.random(size)) < gain
        at = proposed.where(accept, at)
        width *= scalars.exp(float(accept.mean()) - _ACCEPTANCE)
        if redrawn:
            anew = generator.random((size, dim)) < generator.random((size, 1))
            z = np.where(anew, portable.standard_normal(generator, (size, dim)), at.z)
            proposed = _Particles(z, log_likelihood(z))
            gain = power * (proposed.log_likelihood - at.log_likelihood)
            at = proposed.where(portable.log(generator.random(size)) < gain, at)
    return at


def _root(z: Floats, weights: Floats) -> Floats:
    """Cholesky factor of the covariance of weighted particles."""
    centred = z - portable.dot(weights, z)
    covariance = portable.dot((centred * weights[:, np.newaxis]).T, centred)
    root = portable.cholesky(covariance + 1e-10 * np.eye(z.shape[1]))
    return np.asarray(root, np.float64)


def _temper_weights(log_likelihood: Floats, by: float) -> Floats:
    """Weights of particles once the likelihood is raised to a power greater by this much."""
    weights = portable.exp(by * (log_likelihood - log_likelihood.max()))
    return weights / weights.sum()


def _step(log_likelihood: Floats, left: float) -> float:
    """By how much the power may grow, so that `_KEPT` of the particles stay effective."""

    def spare(by: float) -> float:
        return 1.0 / float(np.sum(_temper_weights(log_likelihood, by) ** 2)) - _KEPT * len(
            log_likelihood
        )

    if spare(left) >= 0.0:
        return left
    from scipy.optimize import brentq

    return brentq(spare, 0.0, left)


def _systematic(weights: Floats, offset: float) -> npt.NDArray[np.int64]:
    """Systematic resampling: as many indices as weights, each as often as its weight says."""
    size = len(weights)
    total = np.cumsum(weights)
    points: Floats = (np.arange(size) + offset) / size * total[-1]
    return np.minimum(np.digitize(points, total), size - 1).astype(np.int64)


def _grow_array(values: Floats) -> Growing[np.float64]:
    grown = Growing(np.float64)
    grown.extend(values)
    return grown


def _tell_form(outcomes: Floats) -> list[float | tuple[float, ...]]:
    """Outcomes in the form of `ToldOutcome.outcome`, one entry per episode."""
    if outcomes.ndim == 1:
        return outcomes.tolist()
    return [tuple(row) for row in outcomes.tolist()]


def _freeze(array: Floats) -> Floats:
    array.flags.writeable = False
    return array
