"""Rivals of a layout, fitted beside it before the last word of a session.

Each rival is the layout, but that the agent does worse in one stratum. Layout and rivals are
compared by how likely they make everything that was played, with all of their parameters integrated
out. So what the layout explains as noise, a rival may explain better, with less noise and a stratum
in which the agent fails. Their mean Bayes factor is an e-value: if the layout is right, it is not
expected to grow, however instances are chosen (Ramdas et al. 2023, Game-theoretic statistics and
safe anytime-valid inference). Its inverse is one against the rivals, as in Wald's sequential test.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.inference.evaluator import Evaluator
from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.model.likelihood import log_density, trials_of
from animalcat.layouts.model.spec import Bernoulli, Layout
from animalcat.layouts.watching.alarm import LEVEL, Suspect
from animalcat.layouts.watching.strata import Group, Stratification
from animalcat.layouts.watching.sums import SumRival, fit_sum
from animalcat.portable import arrays as portable

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]
Mask: TypeAlias = npt.NDArray[np.bool_]

PASSED: Final = 1 / 5
"""Bayes factor of the rivals below which a session may end for what it knows. If agents are as the
rivals say, at most this share of them ever gets there, by Ville's inequality."""
LAST: Final = 0.5
"""The same once nothing more is played: then the layout must explain it twice as well as rivals."""
KEPT: Final = (0.1, 0.4)
"""What share of the chance of success rivals leave in their stratum; each is as likely."""
MATTERS: Final = 0.05
"""By how much predictions of the battery have to differ on average for a sum to be a rival. Where
they hardly differ, no capability is wrong for it."""
SUM: Final = "sum of difficulties"
"""Name of the rival to which difficulties add up."""
SHOWS: Final = 0.65
"""Least chance of success in a stratum, but for what a rival takes away, from which on the rival
counts for passing. Where the agent fails anyway, a rival hardly differs from the layout."""
_SHARES: Final[Mapping[Group, float]] = {
    "time": 0.2,
    "paradigm": 0.15,
    "outside": 0.15,
    "cue": 0.35,
    "feature": 0.15,
    "pair": 0.35,
}
"""Weight of each group of strata; those of absent groups go to the others. That of cues is more
than `PASSED` of all, so that no session ends for what it knows while one was not put to the test
where it would show."""
_APART: Final[Mapping[Group, float]] = {"dependence": 0.2, "sum": 0.2}
"""Share of all evidence of the groups that are few rivals each. Every one of them has to be passed
by itself, as all other strata together have to be, or hundreds of these would hide them."""
_CHANGES: Final = (8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384)
"""Numbers of episodes after which, or until which, the agent may do worse."""
_ROWS: Final = 500
"""Episodes that are compared at a time, so that arrays stay small."""
_SIZE: Final = 500
"""Draws at each power of the likelihood."""
_SWEEPS: Final = 4
"""Metropolis sweeps at each power."""
_EFFECTIVE: Final = 0.5
"""Share of the draws that stays effective from one power to the next."""
_WIDTHS: Final = (2.38, 0.95)
"""Widths of the steps of sweeps in turn, in posterior standard deviations by the root of their
number (Roberts, Gelman and Gilks 1997)."""
_CERTAIN: Final = 1e-9
"""Chances are kept this far from 0 and 1."""
_ABLE: Final = (1.3, 0.6)
"""Mean and standard deviation of an able agent's capabilities, in z-space: from .75 to .97 of a
uniform range."""
_QUIET: Final = (-0.9, 0.7)
"""The same of its noise."""
_STRAIGHT: Final = (0.0, 0.4)
"""The same of its biases."""


class _Stratum(NamedTuple):
    """Some of the episodes, in which a rival says that the agent does worse.

    Attributes:
        stratification: What it is a stratum of.
        name: Its name.
        group: The kind of stratification.
        where: It in words.
        weight: Its share among the rivals.
        there: (episodes,), whether each is in it.
    """

    stratification: str
    name: str
    group: Group
    where: str
    weight: float
    there: Mask


class _Moments(NamedTuple):
    """Some of the episodes, by when they were played.

    Attributes:
        name: What says when.
        where: When, in words.
        there: (episodes,), whether each is among them.
        group: Of the strata.
    """

    name: str
    where: str
    there: Mask
    group: Group = "time"


class _Draws(NamedTuple):
    """Draws of agents with what they weigh.

    Attributes:
        theta: (draws, latents), in the units of the latents.
        log_weights: (draws,), logarithms of the prior density over that of the draws.
    """

    theta: Floats
    log_weights: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Examination:
    """How the rivals of a layout fare beside it.

    Attributes:
        log_evidence: Logarithm of the mean Bayes factor of all rivals, where those that would not
            show count as nothing. Who fails where the layout expects failure is sharper than the
            layout, which makes no capability wrong.
        log_left: The same, as the mean of those alone that would show: where the layout expects
            success. It is the most of what the groups apart and all others have.
        wanted: (instances,), how much playing each would tell of rivals that would show; 0 where
            none would.
        suspects: The strata of the likeliest rivals, most evidence first.
    """

    log_evidence: float
    log_left: float
    wanted: Floats
    suspects: tuple[Suspect, ...]

    def passes(self, *, last: bool) -> bool:
        """Whether a session may end for what it knows.

        Args:
            last: Whether nothing more can be played.
        """
        return bool(self.log_left < portable.log(LAST if last else PASSED))

    @property
    def contradicts(self) -> bool:
        """Whether what was played contradicts the layout, at the level of the alarm."""
        return bool(self.log_evidence > portable.log(LEVEL))


def examine(
    evaluator: Evaluator,
    columns: Floats,
    outcomes: Floats,
    rows: Ints,
    features: Floats,
    ways: Sequence[Stratification],
    expected: Floats,
    playable: Mask,
    seed: int,
) -> Examination:
    """Compare a layout with its rivals.

    Args:
        evaluator: Evaluator of the layout.
        columns: (episodes, columns): the instances played, as `evaluator.columns` returned them.
        outcomes: (episodes,) or (episodes, outcomes), in the order played, without repeats; NaN
            where one is missing.
        rows: (episodes,): the rows of the instances.
        features: (instances, features); NaN where one is missing.
        ways: How the instances are divided into strata.
        expected: (instances,): the success that is expected of each; NaN where it is not known.
        playable: (instances,): whether each may be played next.
        seed: Seed of the session; it keys the randomness.
    """
    summed = _sum_rival(evaluator.layout, features, rows, outcomes)
    times = _times(rows, outcomes)
    strata = _strata(ways, rows, times, summed=summed is not None)
    weights = np.array([stratum.weight for stratum in strata])
    there = np.array([stratum.there for stratum in strata])
    draws = _draw_agents(evaluator, columns, outcomes, rng(seed, "rivals", len(rows)))
    logs, predicted, without, whole = _log_factors(evaluator, columns, outcomes, draws, there)
    known = np.isfinite(expected)
    means = np.concatenate(
        [
            _sums(ways, np.where(known, expected, 0.0)) / np.maximum(_sums(ways, known), 1.0),
            np.full(len(strata) - _count(ways), expected[known].mean() if known.any() else 0.0),
        ]
    )
    showing = np.where(there.any(axis=1), without, means) >= SHOWS
    # Who never failed cannot be seen to give up after failures; it matters only to who fails.
    showing &= there.any(axis=1) | np.array([one.group != "dependence" for one in strata])
    apart = np.zeros(len(expected))
    if summed is not None:
        apart = np.where(known, np.abs(summed.expected - np.where(known, expected, 0.0)), 0.0)
        logs[-1] = summed.log_evidence - max(whole, summed.log_single)
        showing[-1] = apart.sum() >= MATTERS * known.sum()
        strata[-1] = strata[-1]._replace(there=summed.expected[rows] < predicted)
    each = logs + portable.log(weights)
    shown = float(portable.logsumexp(each[showing])) if showing.any() else -np.inf
    groups = np.array([one.group for one in strata])
    families = [~np.isin(groups, [*_APART]), *(groups == group for group in _APART)]
    left = max(
        float(portable.logsumexp(each[those]) - portable.log(weights[those].sum()))
        if those.any()
        else -np.inf
        for those in (showing & family for family in families)
    )
    worth = np.where(showing, portable.exp(each - each.max()), 0.0)
    wanted = _share_worth(ways, worth[: len(strata) - (summed is not None)], playable)
    apart = np.where(playable, apart, 0.0)
    wanted += worth[-1] * apart / max(apart.sum(), _CERTAIN)
    return Examination(shown, left, wanted, _suspects(strata, logs, outcomes, predicted))


def _sum_rival(layout: Layout, features: Floats, rows: Ints, outcomes: Floats) -> SumRival | None:
    """The rival to which difficulties add up; None for one alone, or where scores are observed."""
    if not isinstance(layout.outcome, Bernoulli) or len(layout.outcomes) > 1:
        return None
    return fit_sum(features, rows, outcomes.reshape(len(rows)))


def _count(ways: Sequence[Stratification]) -> int:
    return sum(len(way.strata) for way in ways)


def _log_factors(
    evaluator: Evaluator, columns: Floats, outcomes: Floats, draws: _Draws, there: Mask
) -> tuple[Floats, Floats, Floats, float]:
    """Logarithm of each rival's Bayes factor, and what is expected of the episodes.

    Returns:
        (strata,), 0 where a stratum has no episode; (episodes,), the mean share that the layout
        expects; (strata,), the mean share in a stratum that a rival would expect if it kept all, 0
        where it has no episode; and the logarithm of the layout's own evidence.
    """
    # Many strata hold the same episodes; each set is worked out once.
    distinct, places = np.unique(there, axis=0, return_inverse=True)
    some = distinct.any(axis=1)
    chosen = distinct[some].astype(np.float64)
    parts = [slice(start, start + _ROWS) for start in range(0, len(columns), _ROWS)]
    whole = draws.log_weights.copy()
    gains = np.zeros((len(KEPT), len(chosen), len(whole)))
    for part in parts:
        means = _means(evaluator, columns[part], draws)
        of_rival = partial(
            _log_likelihood, evaluator, columns[part], outcomes[part], draws, means=means
        )
        usual = of_rival(1.0)
        whole += usual.sum(axis=0)
        for gain, kept in zip(gains, KEPT, strict=True):
            gain += portable.dot(chosen[:, part], of_rival(kept) - usual)
    evidence = float(portable.logsumexp(whole))
    weights = portable.exp(whole - evidence)
    # In place: for many strata, this is by far the largest array.
    rivals = np.add(gains, whole, out=gains)
    best = rivals.max(axis=2, keepdims=True)
    shares = portable.exp(np.subtract(rivals, best, out=rivals))
    sums = shares.sum(axis=2)
    predicted, inside = np.empty(len(columns)), np.zeros(sums.shape)
    for part in parts:
        mean = np.mean(_means(evaluator, columns[part], draws), axis=0)
        predicted[part] = portable.dot(mean, weights)
        for total, share in zip(inside, shares, strict=True):
            total += np.einsum("ij,ij->i", chosen[:, part], portable.dot(share, mean.T))
    factors = best[..., 0] + portable.log(sums)
    expected = inside / chosen.sum(axis=1) / sums
    logs, without = np.zeros(len(distinct)), np.zeros(len(distinct))
    logs[some] = portable.logsumexp(factors, axis=0) - portable.log(len(KEPT)) - evidence
    without[some] = np.max(expected, axis=0)
    index = np.ravel(places)
    return logs[index], predicted, without[index], evidence - float(portable.log(_SIZE))


def _means(evaluator: Evaluator, columns: Floats, draws: _Draws) -> list[Floats]:
    """What each draw expects of every outcome, (episodes, draws) each."""
    return [
        np.clip(evaluator.by_instance(draws.theta, columns, np.float64, k), _CERTAIN, 1 - _CERTAIN)
        for k in range(len(evaluator.layout.outcomes))
    ]


def _log_likelihood(
    evaluator: Evaluator,
    columns: Floats,
    outcomes: Floats,
    draws: _Draws,
    kept: float,
    means: Sequence[Floats],
) -> Floats:
    """Log likelihood of each episode if a share of all success is kept, (episodes, draws)."""
    layout = evaluator.layout
    given = outcomes.reshape(len(columns), len(layout.outcomes))
    out = np.zeros((len(columns), len(draws.theta)))
    for k, (node, mean) in enumerate(zip(layout.outcomes, means, strict=True)):
        there = ~np.isnan(given[:, k])
        size = evaluator.sample_sizes(draws.theta, columns[there], k)
        trials = trials_of(layout, node.likelihood, columns[there])
        y = given[there, k][:, np.newaxis]
        out[there] += log_density(node.likelihood, kept * mean[there], size, trials, y)[:, 0]
    return out


def _strata(
    ways: Sequence[Stratification], rows: Ints, times: Sequence[_Moments], *, summed: bool
) -> list[_Stratum]:
    """All strata: those of the instances in the order of `ways`, those of time, and the sum."""
    sizes = [(way.group, len(way.strata)) for way in ways]
    number: dict[Group, int] = {group: sum(w.group == group for w in ways) for group in _SHARES}
    number["time"] = 1
    part = {group: share for group, share in _APART.items() if summed or group != "sum"}
    whole = sum(share for group, share in _SHARES.items() if number[group])
    rest = (1.0 - sum(part.values())) / whole
    part |= {group: rest * share / max(number[group], 1) for group, share in _SHARES.items()}
    made = [
        _Stratum(
            *(way.name, name, way.group, f"where {way.phrase(k)}"),
            part[group] / size,
            way.labels[rows] == k,
        )
        for way, (group, size) in zip(ways, sizes, strict=True)
        for k, name in enumerate(way.strata)
    ]
    grouped = Counter(time.group for time in times)
    made += [
        _Stratum(
            *(time.name, time.where, time.group, time.where),
            part[time.group] / grouped[time.group],
            time.there,
        )
        for time in times
    ]
    if summed:
        nobody = np.zeros(len(rows), np.bool_)
        about = (SUM, SUM, "sum", "where several difficulties come together")
        made.append(_Stratum(*about, part["sum"], nobody))
    return made


def _times(rows: Ints, outcomes: Floats) -> list[_Moments]:
    """Strata by when an episode was played, and by what went before."""
    number = np.arange(len(rows))
    failed = np.nanmean(outcomes.reshape(len(rows), -1), axis=1) < 0.5
    follows, before = number > 0, np.roll(failed, 1)
    twice = (number > 1) & before & np.roll(failed, 2)
    begun = [change for change in _CHANGES if change < len(rows)]
    went = "the outcome before"
    return [
        _Moments(went, "after a failure", follows & before, "dependence"),
        _Moments(went, "after a success", follows & ~before, "dependence"),
        _Moments(went, "after two failures in a row", twice, "dependence"),
        _Moments("turns", "in every second episode, the first among them", number % 2 == 0),
        _Moments("turns", "in every second episode, from the second on", number % 2 == 1),
        *(_Moments("time", f"after episode {n}", number >= n) for n in begun),
        *(_Moments("time", f"until episode {n}", number < n) for n in begun),
    ]


def _sums(ways: Sequence[Stratification], values: Floats | Mask) -> Floats:
    """Sum over the instances of each stratum."""
    sums = [
        np.bincount(way.labels[known], values[known], len(way.strata)).astype(np.float64)
        for way in ways
        for known in [way.labels >= 0]
    ]
    return np.concatenate([np.zeros(0), *sums])


def _share_worth(ways: Sequence[Stratification], worth: Floats, playable: Mask) -> Floats:
    """Share the worth of each stratum out among its instances; that of time among all."""
    sizes = _sums(ways, playable)
    each = worth[: len(sizes)] / np.maximum(sizes, 1.0)
    wanted = np.full(len(playable), worth[len(sizes) :].sum() / max(playable.sum(), 1))
    start = 0
    for way in ways:
        known = way.labels >= 0
        wanted[known] += each[start + way.labels[known]]
        start += len(way.strata)
    return np.where(playable, wanted, 0.0)


def _suspects(
    strata: Sequence[_Stratum], logs: Floats, outcomes: Floats, predicted: Floats
) -> tuple[Suspect, ...]:
    """The strata whose rivals are likelier than the layout, most evidence first."""
    observed = np.nanmean(outcomes.reshape(len(predicted), -1), axis=1)
    found = [
        Suspect(
            *(stratum.stratification, stratum.name, False, evidence, stratum.group, stratum.where),
            int(stratum.there.sum()),
            float(observed[stratum.there].sum()),
            float(predicted[stratum.there].sum()),
            evidence * stratum.weight,
        )
        for stratum, log in zip(strata, logs.tolist(), strict=True)
        for evidence in [float(portable.exp(min(log, 700.0)))]
        if evidence > 1.0
    ]
    return tuple(sorted(found, key=lambda suspect: -suspect.corrected))


def _draw_agents(
    evaluator: Evaluator, columns: Floats, outcomes: Floats, generator: np.random.Generator
) -> _Draws:
    """Draw agents under every power of the likelihood from 0 to 1, weighed as one sample.

    The posterior's own draws would not do: a rival's are elsewhere, with less noise for example.
    Annealed from the prior (Neal 2001; Del Moral, Doucet and Jasra 2006), the draws lie between
    both. They are weighed by the mixture of all densities that they come from (Owen and Zhou 2000).
    Half of the prior is that of able agents, as in `_able`. Else an agent that is only rare in the
    prior looked as if the layout were wrong.
    """
    layout = evaluator.layout
    centre, spread = _able(layout)

    def prior(z: Floats) -> Floats:
        usual = -0.5 * np.einsum("ij,ij->i", z, z)
        apart = (z - centre) / spread
        able = -0.5 * np.einsum("ij,ij->i", apart, apart) - portable.log(spread).sum()
        return portable.logaddexp(usual, able)

    def fit(z: Floats) -> Floats:
        return evaluator.log_likelihood(layout.from_standard(z), columns, outcomes)

    z = portable.standard_normal(generator, (_SIZE, len(centre)))
    z = np.where(generator.random((_SIZE, 1)) < 0.5, centre + spread * z, z)
    at, power, evidence = fit(z), 0.0, 0.0
    made = [(z, at)]
    powers, evidences = [power], [evidence]
    while power < 1.0:
        step = _step(at, 1.0 - power)
        tempered = portable.exp(step * (at - at.max()))
        evidence += step * float(at.max()) + float(portable.log(tempered.mean()))
        shares = tempered / tempered.sum()
        centred = z - portable.dot(shares, z)
        covariance = portable.dot((centred * shares[:, np.newaxis]).T, centred)
        root = np.asarray(portable.cholesky(covariance + 1e-10 * np.eye(len(centre))), np.float64)
        points = (np.arange(_SIZE) + generator.random()) / _SIZE
        rows = np.minimum(np.searchsorted(np.cumsum(shares), points), _SIZE - 1)
        power = 1.0 if step >= 1.0 - power else power + step
        z, at = z[rows], at[rows]
        before = prior(z)
        for sweep in range(_SWEEPS):
            width = _WIDTHS[sweep % len(_WIDTHS)] / np.sqrt(len(centre))
            proposed = z + portable.dot(
                width * portable.standard_normal(generator, z.shape), root.T
            )
            there, density = fit(proposed), prior(proposed)
            gain = density - before + power * (there - at)
            taken = portable.log(generator.random(_SIZE)) < gain
            z = np.where(taken[:, np.newaxis], proposed, z)
            at, before = np.where(taken, there, at), np.where(taken, density, before)
        made.append((z, at))
        powers.append(power)
        evidences.append(evidence)
    every = np.concatenate([at for _, at in made])
    mixture = portable.logsumexp(np.outer(every, powers) - np.array(evidences), axis=1)
    theta = layout.from_standard(np.concatenate([z for z, _ in made]))
    return _Draws(theta, -np.asarray(mixture, np.float64))


def _step(log_likelihood: Floats, left: float) -> float:
    """By how much the power may grow, so that `_EFFECTIVE` of the draws stay effective."""

    def enough(by: float) -> bool:
        weights = portable.exp(by * (log_likelihood - log_likelihood.max()))
        return float(weights.sum() ** 2 / (weights**2).sum()) >= _EFFECTIVE * len(weights)

    if enough(left):
        return left
    low, high = 0.0, left
    for _ in range(30):
        middle = (low + high) / 2.0
        low, high = (middle, high) if enough(middle) else (low, middle)
    return high


def _able(layout: Layout) -> tuple[Floats, Floats]:
    """Means and standard deviations of able agents in z-space, (latents,) each."""
    of_kind = {"capability": _ABLE, "bias": _STRAIGHT}
    pairs = np.array([of_kind.get(node.kind, _QUIET) for node in layout.latents])
    return pairs[:, 0], pairs[:, 1]
