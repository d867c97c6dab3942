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
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.inference.evaluator import Evaluator
from animalcat.layouts.inference.live import LivePosterior
from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.model.likelihood import LEAST, LEAST_SIZE, trials_of
from animalcat.layouts.model.spec import Bernoulli, Beta, Binomial
from animalcat.layouts.watching.beyond import LIFTS
from animalcat.layouts.watching.hindsight import Belief, fails
from animalcat.layouts.watching.settled import SHIFTS, ScoredPrediction, SettledBets
from animalcat.layouts.watching.strata import Group, Stratification
from animalcat.portable import arrays as portable

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]

LEVEL: Final = 20.0
"""Mean stake at which the alarm goes off: false alarms in at most 1 of 20 sessions."""
TILTS: Final = np.array([-0.9, -0.45, 0.45, 0.9])
"""Bets on counts and scores: each is the slope of a linear density over the outcome's quantile in
the predicted distribution."""
QUIET: Final = 8
"""The first outcomes, on which no stake is laid. They are predicted from the prior, and an agent
that surprises the prior does not make the layout wrong. With 24 the alarm found 32 of 37
context-specific sessions within 200 episodes instead of 35."""
MOST: Final = 3
"""Greatest number of suspects that are named."""
_LEAST_EVIDENCE: Final = 3.0
"""Least stake of a stratum that is a suspect."""
_SHARES: Final[Mapping[Group, float]] = {
    "time": 0.25,
    "paradigm": 0.15,
    "outside": 0.15,
    "cue": 0.15,
    "feature": 0.15,
    "pair": 0.3,
}
"""Weight of each group of stratifications; those of absent groups go to the others."""
_RESTARTS: Final = (8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384)
"""Numbers of episodes after which new stakes on all instances together are laid, to notice agents
that change."""
_TIMED: Final = (("the outcome before", ("after a failure", "after a success")),)
"""Stratifications by what went before, with the strata in words."""


@dataclass(frozen=True, slots=True)
class Suspect:
    """A stratum in which predictions fail.

    Attributes:
        stratification: What the strata are defined by.
        stratum: Name of the stratum.
        more: Whether the agent succeeds more often than predicted there.
        evidence: The stake on the stratum, the mean of its bets.
        group: The kind of stratification.
        where: The stratum in words.
        episodes: How many episodes were in it.
        observed: What was observed there, summed, as shares of the outcomes' maxima.
        predicted: What was predicted there, each before its outcome.
        corrected: The stake times its weight among all stakes. Their sum is the alarm's evidence.
    """

    stratification: str
    stratum: str
    more: bool
    evidence: float
    group: Group = "outside"
    where: str = ""
    episodes: int = 0
    observed: float = 0.0
    predicted: float = 0.0
    corrected: float = 0.0


class Alarm:
    """The stakes against a layout, and whether they have raised the alarm.

    Once raised, the alarm stays raised; `stands` says whether hindsight confirms it.
    """

    def __init__(self, ways: Sequence[Stratification] = ()) -> None:
        """Start with every stake at 1.

        Args:
            ways: The stratifications to bet on, as `stratifications` and `known_stratifications`
                returned them.
        """
        self.stratifications = tuple(ways)
        names = [list(way.strata) for way in ways]
        names += [list(strata) for _, strata in _TIMED]
        self._sizes = np.array([len(strata) for strata in names], np.int64)
        self._starts = np.concatenate([[0], np.cumsum(self._sizes)])[:-1].astype(np.int64)
        rows = len(ways[0].labels) if ways else 1
        self._labels = np.array([way.labels for way in ways], np.int64).reshape(-1, rows)
        groups: list[Group] = [way.group for way in ways]
        groups.extend("time" for _ in _TIMED)
        self._groups = groups
        self._single = np.array([way.group == "feature" for way in ways], np.bool_)
        cells = int(self._sizes.sum())
        self._logs = np.zeros((cells, len(SHIFTS)))
        self._sums = np.zeros((cells, 3))
        self._whole = np.zeros(3)
        self._restarts = np.zeros((len(_RESTARTS), len(SHIFTS)))
        self._restart_sums = np.zeros((len(_RESTARTS), 3))
        self._weights, self._restart_weight = self._share_weights()
        self._moments: list[tuple[int, ...]] = []
        self._before: ScoredPrediction | None = None
        self._episodes = 0
        self._numbers: list[int] = []
        self._raised_at: int | None = None
        self._log_evidence = 0.0
        self._settled = SettledBets(len(LIFTS), cells, len(_RESTARTS))
        self._parents = self._found_parents()
        self._streak = 0.0
        self._streak_sums = np.zeros(3)

    @property
    def evidence(self) -> float:
        """The mean stake, which is the e-value against the layout."""
        return float(portable.exp(min(self._log_evidence, 700.0)))

    @property
    def raised(self) -> bool:
        """Whether the mean stake has ever exceeded `LEVEL`."""
        return self._raised_at is not None

    @property
    def raised_at(self) -> int | None:
        """Number of episodes after which the alarm was raised; None if it was not."""
        return self._raised_at

    def update(
        self, row: int, log_factors: Floats, scored: ScoredPrediction, number: int | None = None
    ) -> None:
        """Take in one episode.

        Args:
            row: Row of the instance that was played.
            log_factors: (bets,), as `log_factors` returned them before the posterior knew the
                outcome.
            scored: What was predicted and observed.
            number: How many episodes there have been, including those on which nothing is bet. What
                is said is dated by it; by default as if there were no such episodes.
        """
        self._episodes += 1
        self._numbers.append(self._episodes if number is None else number)
        moments = self._moment()
        self._moments.append(moments)
        quiet = self._episodes <= QUIET
        each = np.array(scored.beyond or (scored.predicted,) * len(LIFTS))
        laid = self._settled.lay(each, scored.observed)
        self._before = scored
        if quiet:
            return
        self._streak += laid.streak
        self._streak_sums += laid.bad * _count_row(scored)
        here = self._labels[:, row] if self._labels.size else np.zeros(0, np.int64)
        known = here >= 0
        cells = self._starts[: len(self._labels)] + here
        alone = cells[known & self._single]
        places = np.concatenate([cells[known], self._starts[len(self._labels) :] + moments])
        self._logs[places] += log_factors
        begun = np.array(_RESTARTS) < self._episodes
        self._restarts[begun] += log_factors
        factors = laid.factors[:, np.newaxis]
        self._settle(places, alone, factors, scored)
        self._settled.restarts[:, begun] += factors
        self._settled.streak += laid.days
        self._whole += _count_row(scored)
        self._sums[places] += _count_row(scored)
        self._restart_sums[begun] += _count_row(scored)
        settled = self._settled
        means = self._weighted_means(
            np.concatenate([self._logs[np.newaxis], self._beyond_single()]),
            np.concatenate([self._restarts[np.newaxis], settled.restarts]),
            np.concatenate([[self._streak], settled.streak]),
        )
        self._log_evidence, settled.log = float(means[0]), means[1:]
        if self._raised_at is None and self._log_evidence > portable.log(LEVEL):
            self._raised_at = self._numbers[-1]

    @property
    def _least_settled_log(self) -> float:
        """Logarithm of the least mean settled stake, under which the agent is described best.

        It is evidence against all of them: against the layout, however far the agent may be beyond
        its ranges.
        """
        return float(self._settled.log.min())

    def _settle(
        self,
        places: Ints,
        alone: Ints,
        factors: Floats,
        scored: ScoredPrediction,
    ) -> None:
        """Let bets against the shifted predictions win or lose.

        In strata of a single known feature only bets count by which the agent is less sharp than
        the layout, or the other way round: less success where success was predicted, more where it
        was not. All of them are kept beside, for the pairs.

        Args:
            places: The cells of all strata that the episode is in.
            alone: Those of them that are of a single known feature.
            factors: (lifts, 1, bets), what the bets win.
            scored: What was predicted and observed.
        """
        settled = self._settled
        settled.cells[:, places] += factors
        if not alone.size:
            return
        settled.single[:, alone] += factors
        ready = self._sums[alone, 0] > 0.0
        mean = self._sums[alone, 2] / np.maximum(self._sums[alone, 0], 1.0)
        high = np.where(ready, mean, scored.predicted) >= self._mean_predicted
        bets = np.where(high[:, np.newaxis], SHIFTS < 0.0, SHIFTS > 0.0)
        settled.cells[:, alone] -= np.where(bets, 0.0, factors)

    def _beyond_single(self) -> Floats:
        """The settled stakes; those of pairs are divided by what a single stratum explains.

        A pair counts as far as the same bet wins more in it than in either of its features alone.
        """
        settled = self._settled
        if not self._parents.size:
            return settled.cells
        cells, first, second = self._parents.T
        explained = np.maximum(settled.single[:, first], settled.single[:, second])
        stakes = settled.cells.copy()
        stakes[:, cells] -= np.maximum(explained, 0.0)
        return stakes

    def _found_parents(self) -> Ints:
        """(pair cells, 3): each cell of a pair, and those of its two features."""
        starts = {
            way.name: int(start) for way, start in self._strata_places if way.group == "feature"
        }
        parents = [
            (int(start) + k, starts[way.parents[0]] + i, starts[way.parents[1]] + j)
            for way, start in self._strata_places
            if way.group == "pair"
            for k, (i, j) in enumerate(way.places)
        ]
        return np.array(parents, np.int64).reshape(-1, 3)

    @property
    def _strata_places(self) -> list[tuple[Stratification, int]]:
        """Each stratification of instances, with the place of its first stratum."""
        return [
            (way, int(start))
            for way, start in zip(self.stratifications, self._starts.tolist(), strict=False)
        ]

    @property
    def _mean_predicted(self) -> float:
        """Mean of all predictions so far."""
        number, _, predicted = self._whole
        return float(predicted / max(number, 1.0))

    def suspects(self, least: float = _LEAST_EVIDENCE) -> list[Suspect]:
        """Find the strata whose stake is above `least`, those with the most evidence first.

        Evidence is compared after each stake was multiplied by its weight among all stakes, so that
        one of many strata needs more.
        """
        suspects: list[Suspect] = []
        logs, restarts, streak = self._deciding()
        names = [(way.name, way.strata) for way in self.stratifications] + list(_TIMED)
        for k, (name, strata) in enumerate(names):
            for i, stratum in enumerate(strata):
                place = int(self._starts[k]) + i
                way = self.stratifications[k] if k < len(self.stratifications) else None
                where = stratum if way is None else f"where {way.phrase(i)}"
                suspect = self._suspect(
                    (name, stratum, self._groups[k], where),
                    logs[place],
                    self._sums[place],
                    float(self._weights[k]) / (2 * len(strata)),
                )
                suspects.append(suspect)
        begun = [start for start in _RESTARTS if start < self._episodes]
        for k, start in enumerate(begun):
            number = self._numbers[start - 1]
            about = ("time", str(number), "time", f"after episode {number}")
            share = self._restart_weight / len(_RESTARTS)
            suspects.append(self._suspect(about, restarts[k], self._restart_sums[k], share))
        about = ("time", "days", "time", "on bad days, which earlier outcomes give away")
        suspect = self._suspect(about, np.array([streak]), self._streak_sums, self._restart_weight)
        if 2.0 * max(map(_log_mean, restarts)) < streak:  # else it changed once
            suspects.append(suspect)
        kept = [suspect for suspect in suspects if suspect.evidence > least]
        return sorted(kept, key=lambda suspect: -suspect.corrected)

    @property
    def standing(self) -> bool | None:
        """Whether the alarm stands, as far as bets alone tell; None where `fails` has to.

        It does not stand if it is not raised. It does if other stakes exceed `LEVEL` too: bets
        against predictions that were shifted, all alike, to the agent's recent successes.
        """
        if not self.raised:
            return False
        return True if self._least_settled_log > portable.log(LEVEL) else None

    def fails(
        self,
        belief: Belief,
        evaluator: Evaluator,
        columns: Floats,
        outcomes: Floats,
        rows: Ints,
    ) -> bool:
        """Whether the layout also fails in hindsight, by which a raised alarm may stand.

        An able agent is predicted badly at first because it succeeds more often than predicted,
        everywhere. So a raised alarm also stands where other stakes exceed `LEVEL`, which such an
        agent does not win (`standing`). They leave it to the agent to be sharper than the layout's
        slopes, which makes no capability wrong. The agent may also be abler than the ranges reach:
        the alarm stands only if it does for each of `beyond.LIFTS`.

        Args:
            belief: What was known after all of these episodes; there may have been more since.
            evaluator: Evaluator of the same layout.
            columns: (episodes, columns): the instances played, as `evaluator.columns` returned
                them.
            outcomes: (episodes,) or (episodes, outcomes), in the order played, without repeats; NaN
                where one is missing.
            rows: (episodes,): the rows of the instances.
        """
        groups: dict[Group, list[Ints]] = {}
        for way in self.stratifications:
            if way.group in ("feature", "pair"):
                continue  # the settled bets are about these
            groups.setdefault(way.group, []).append(way.labels[rows])
        before = self._moments[: len(rows)]
        moments = np.array(before, np.int64).reshape(len(rows), len(_TIMED))
        time = [1 + moments[:, k] for k in range(len(_TIMED))]
        numbers = np.arange(len(rows))
        cuts = [start for start in _RESTARTS if start < len(rows)]
        time += [(numbers >= start).astype(np.int64) for start in cuts]
        return all(
            fails(belief, evaluator, columns, outcomes, [time, *groups.values()], lift)
            for lift in LIFTS
        )

    def _sum_logs(self, logs: Floats) -> Floats:
        """Logarithms of the sums over the strata of each stratification, (agents, ways)."""
        most = np.maximum.reduceat(logs, self._starts, axis=1)
        apart = logs - np.repeat(most, self._sizes, axis=1)
        return most + portable.log(np.add.reduceat(portable.exp(apart), self._starts, axis=1))

    def _deciding(self) -> tuple[Floats, Floats, float]:
        """The stakes of strata, restarts and days by which the alarm stands, so they name it."""
        settled = self._settled
        if self._least_settled_log > portable.log(LEVEL):
            least = int(settled.log.argmin())
            stakes = self._beyond_single()[least]
            return stakes, settled.restarts[least], float(settled.streak[least])
        return self._logs, self._restarts, self._streak

    def _moment(self) -> tuple[int, ...]:
        """The stratum by what went before, for each such stratification; -1 where there is none."""
        if self._before is None:
            return (-1,)
        return (int(self._before.observed >= 0.5),)

    def _suspect(
        self, about: tuple[str, str, Group, str], logs: Floats, sums: Floats, weight: float
    ) -> Suspect:
        name, stratum, group, where = about
        best = int(np.argmax(logs))
        evidence = float(portable.exp(min(_log_mean(logs), 700.0)))
        episodes, observed, predicted = sums.tolist()
        return Suspect(
            *(name, stratum, bool(SHIFTS[best] > 0), evidence, group, where),
            *(round(episodes), observed, predicted, evidence * weight),
        )

    def _share_weights(self) -> tuple[Floats, float]:
        """The weight of each stratification, and that of the restarts; all sum to 1."""
        number = {group: self._groups.count(group) for group in _SHARES}
        number["time"] += 2  # the restarts, and good and bad days
        there = {group: share for group, share in _SHARES.items() if number[group]}
        whole = sum(there.values())
        weights = np.array([there[g] / whole / number[g] for g in self._groups])
        return weights.reshape(-1), there["time"] / whole / number["time"]

    def _weighted_means(self, logs: Floats, again: Floats, streak: Floats) -> Floats:
        """Logarithms of weighted mean stakes, by those of the cells, the restarts and the days.

        Each group of stratifications has its share of the weight, and the stratifications of a
        group have equal parts. Stakes on all instances together belong to the group "time". Within
        one stratification, half is on single strata and half on sets of strata. Strata do not
        overlap, so the product over them of (1 + stake) / 2 is a stake too: the mean, over all sets
        of strata, of the stake that predictions err in every stratum of the set.

        Args:
            logs: (agents, cells, bets).
            again: (agents, restarts, bets).
            streak: (agents,).

        Returns:
            (agents,).
        """
        share = float(portable.log(self._restart_weight))
        whole = again.reshape(len(again), -1)
        restarts = portable.logsumexp(whole, axis=1) - portable.log(whole.shape[1]) + share
        restarts = portable.logaddexp(restarts, streak + share)
        each = portable.logsumexp(logs, axis=2) - portable.log(logs.shape[2])
        single = self._sum_logs(each) - portable.log(self._sizes)
        sets = np.add.reduceat(
            portable.logaddexp(0.0, each) - portable.log(2.0), self._starts, axis=1
        )
        ways = portable.logaddexp(single, sets) - portable.log(2.0) + portable.log(self._weights)
        return np.asarray(portable.logaddexp(portable.logsumexp(ways, axis=1), restarts))


def _count_row(scored: ScoredPrediction) -> Floats:
    """What a stratum counts: an episode, what was observed, and what was predicted."""
    return np.array([1.0, scored.observed, scored.predicted])


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
            weights = weights * portable.exp(likelihood - likelihood.max())
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
        predicted = float(np.clip(portable.dot(weights, p), 1e-6, 1.0 - 1e-6))
        shifted = portable.expit(portable.logit(predicted) + SHIFTS)
        if outcome:
            return portable.log(shifted / predicted)
        return portable.log((1.0 - shifted) / (1.0 - predicted))
    below, above = _ends(evaluator, theta, columns, p, k, outcome)
    low, high = float(portable.dot(weights, below)), float(portable.dot(weights, above))
    u = low + (high - low) * generator.random()
    return portable.log1p(TILTS * (2.0 * u - 1.0))


def _ends(
    evaluator: Evaluator, theta: Floats, columns: Floats, p: Floats, k: int, outcome: float
) -> tuple[Floats, Floats]:
    """Predicted probabilities of less than the outcome, and of at most the outcome."""
    likelihood = evaluator.layout.outcomes[k].likelihood
    if isinstance(likelihood, Binomial):
        from scipy.special import bdtr  # few layouts count

        trials = int(trials_of(evaluator.layout, likelihood, columns)[0])
        less = np.zeros_like(p) if outcome < 1.0 else bdtr(outcome - 1.0, trials, p)
        return less, bdtr(outcome, trials, p)
    assert isinstance(likelihood, Beta)
    sizes = evaluator.sample_sizes(theta, columns, k)
    assert sizes is not None  # scores have one
    size = np.maximum(sizes[0], LEAST_SIZE)
    mean = np.clip(p, LEAST, 1.0 - LEAST)
    at = portable.betainc(mean * size, (1.0 - mean) * size, outcome)
    edge = likelihood.edge
    # Scores nearer to 0 or 1 than the edge were moved to the edge.
    less = np.zeros_like(at) if outcome <= edge else at
    return less, np.ones_like(at) if outcome >= 1.0 - edge else at


def _log_mean(logs: Floats) -> float:
    return float(portable.logsumexp(logs)) - float(portable.log(logs.size))
