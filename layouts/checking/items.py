"""Statistics of items: what each tells, which are twins, and what the whole set can tell.

An item is judged by what all the others say of an agent, never by itself: the ability is the
posterior of the 2PL model (`fit_items`) on a grid without the item's own outcome, and the item is
then fitted by marginal likelihood with a slope that may have any sign. So an item whose outcomes
are random has a slope around 0, and one with a wrong key a slope below it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import chdtrc, expit, log_expit, logsumexp, ndtr, stdtr, stdtrit

from animalcat.layouts.checking.population import LOG_PRIOR, NODES, ItemModel, fit_items
from animalcat.layouts.inference.randomness import rng

Floats: TypeAlias = npt.NDArray[np.float64]
Flags: TypeAlias = npt.NDArray[np.bool_]
Rows: TypeAlias = npt.NDArray[np.int64]
Tick: TypeAlias = Callable[[str, int, int], None]

RATE: Final = 0.05
"""Share of false alarms among the alarms of each kind (Benjamini and Hochberg 1995)."""
LITTLE: Final = 0.5
"""Logits per standard deviation of ability under which a discrimination is low. Baker (2001, The
basics of item response theory) calls 0.01 to 0.34 very low, and 0.35 to 0.64 low."""
Z90: Final = 1.6448536269514722
"""Half a 90 % interval, in standard errors."""
POWER: Final = 0.8
"""Probability with which so many agents would give an interval above 0."""
ALIKE: Final = 0.5
"""Correlation of two items' residuals from which they are called twins."""
LEAST_SIDE: Final = 5
"""Fewest successes, and failures, of an item that is looked at for twins."""
LEAST_GROUP: Final = 10
"""Fewest agents of a group that is compared with others."""
UNEQUAL: Final = 0.43
"""Logits from which a difference between groups is more than negligible (the ETS scale: 1 on its
delta scale, 2.35 of which are a logit)."""

_POWER_Z: Final = 0.8416212335729143
_SHUFFLES: Final = 1999
_SLOPE_SD: Final = 3.0
_EASE_SD: Final = 5.0
"""Weak priors of slope and ease of an item, so that a perfect one stays finite."""
_SIMULATED: Final = 1000
_RANDOM_FORMS: Final = 20
_BLOCK: Final = 500


def false_discovery(p: npt.ArrayLike, total: int | None = None) -> Flags:
    """Which of several tests alarm, so that `RATE` of the alarms are false (Benjamini, Hochberg).

    Args:
        p: (tests,): p-values; NaN where there is no test.
        total: How many tests there were, where only the smallest p-values are given.
    """
    values = np.asarray(p, np.float64)
    count = int(np.isfinite(values).sum()) if total is None else total
    order = np.argsort(np.where(np.isfinite(values), values, np.inf), kind="stable")
    limits = RATE * np.arange(1, len(values) + 1) / max(count, 1)
    below = np.flatnonzero(np.nan_to_num(values[order], nan=np.inf) <= limits)
    alarms = np.zeros(len(values), bool)
    alarms[order[: below[-1] + 1 if len(below) else 0]] = True
    return alarms


@dataclass(frozen=True, eq=False)
class Abilities:
    """What a 2PL model says of agents.

    Attributes:
        model: The items.
        outcomes: (agents, items), NaN where not played.
        joint: (agents, nodes): log likelihood of all outcomes, with the prior.
        passes: (items, nodes): log probability of a success.
        fails: (items, nodes): log probability of a failure.
    """

    model: ItemModel
    outcomes: Floats
    joint: Floats
    passes: Floats
    fails: Floats

    @classmethod
    def of(cls, model: ItemModel, outcomes: Floats, groups: Rows | None = None) -> Abilities:
        """Compute likelihoods; groups of agents have means of their own.

        Args:
            model: The items.
            outcomes: (agents, items).
            groups: (agents,): the group of each, counted from 0.
        """
        eta = NODES * model.slope[:, np.newaxis] + model.ease[:, np.newaxis]
        passes, fails = np.asarray(log_expit(eta)), np.asarray(log_expit(-eta))
        played = np.isfinite(outcomes)
        ones = np.where(played, outcomes, 0.0)
        told: Floats = ones @ passes + np.where(played, 1.0 - outcomes, 0.0) @ fails
        prior = np.broadcast_to(LOG_PRIOR, told.shape)
        if groups is not None:
            means = np.zeros(int(groups.max()) + 1)
            for _ in range(50):  # expectation, maximization
                prior = -0.5 * (NODES - means[groups][:, np.newaxis]) ** 2
                share = _share(told + prior)
                means = np.bincount(groups, share @ NODES) / np.bincount(groups)
            prior = prior - logsumexp(prior, axis=1)[:, np.newaxis]
        return cls(model, outcomes, told + prior, passes, fails)

    def share(self) -> Floats:
        """Posterior of each agent on the grid, (agents, nodes)."""
        return _share(self.joint)

    def without(self, item: int) -> tuple[Rows, Floats]:
        """The agents that played an item, and their posteriors by all the other items."""
        y = self.outcomes[:, item]
        rows = np.flatnonzero(np.isfinite(y))
        own = (
            y[rows, np.newaxis] * self.passes[item] + (1.0 - y[rows, np.newaxis]) * self.fails[item]
        )
        return rows, _share(self.joint[rows] - own)


def fit_population(names: tuple[str, ...], outcomes: Floats) -> ItemModel:
    """Fit items so that the agents themselves have abilities of mean 0 and standard deviation 1.

    `fit_items` draws the ease of items to 0. Where items are many and agents few, it therefore puts
    the agents far from the mean that its prior has. Here they are put back: abilities are moved and
    scaled, and items with them, which changes no probability.

    Args:
        names: Names of the items.
        outcomes: (agents, items), NaN where not played.
    """
    model = fit_items(names, outcomes)
    for _ in range(3):
        share = Abilities.of(model, outcomes).share()
        means = share @ NODES
        mean, sd = (
            float(means.mean()),
            float(np.sqrt((share @ NODES**2).mean() - means.mean() ** 2)),
        )
        model = ItemModel(names, model.slope * sd, model.ease + model.slope * mean)
    return model


@dataclass(frozen=True, slots=True)
class ItemFit:
    """An item given what the others say of agents: logit = slope x ability + ease + effects.

    Attributes:
        slope: Discrimination, in logits per standard deviation of ability.
        slope_error: Its standard error.
        ease: Logit at mean ability.
        ease_error: Its standard error.
        effects: (groups - 1,): by how much each other group finds it easier than the first.
        errors: Their standard errors.
        log_likelihood: Of the outcomes, without the priors.
    """

    slope: float
    slope_error: float
    ease: float
    ease_error: float
    effects: Floats
    errors: Floats
    log_likelihood: float


def fit_item(y: Floats, share: Floats, effects: Floats | None = None) -> ItemFit:
    """Fit one item by marginal likelihood, by Newton's method with halved steps.

    Args:
        y: (agents,): 0 to 1.
        share: (agents, nodes): posterior of each agent by other items.
        effects: (agents, effects): what else may shift the logit.
    """
    beside = np.zeros((len(y), 0)) if effects is None else effects
    wide = np.column_stack([np.ones(len(y)), beside])  # what does not depend on the node
    sds = np.concatenate([[_SLOPE_SD, _EASE_SD], np.full(beside.shape[1], _SLOPE_SD)])
    rate = (y.sum() + 0.5) / (len(y) + 1.0)
    at = np.concatenate([[0.5, np.log(rate / (1.0 - rate))], np.zeros(beside.shape[1])])

    def told(at: Floats) -> tuple[float, Floats, Floats]:
        eta = at[0] * NODES + (wide @ at[1:])[:, np.newaxis]
        joint = np.log(share + 1e-300)
        joint = joint + y[:, np.newaxis] * log_expit(eta) + (1 - y)[:, np.newaxis] * log_expit(-eta)
        total = logsumexp(joint, axis=1)
        return float(total.sum()), np.exp(joint - total[:, np.newaxis]), np.asarray(expit(eta))

    def worth(at: Floats, told_likelihood: float) -> float:
        return told_likelihood - 0.5 * float(np.sum((at / sds) ** 2))

    likelihood, responsible, p = told(at)
    hessian = np.eye(len(at))
    for _ in range(30):
        off = y[:, np.newaxis] - p
        own = responsible * off
        by_node, by_agent = own @ NODES, own.sum(axis=1)
        score = np.column_stack([by_node, by_agent[:, np.newaxis] * wide])
        weight = responsible * (off**2 - p * (1.0 - p))
        # Louis 1982: the curvature of a mixture is that of its parts less the spread of scores.
        nn = float((weight @ NODES**2).sum())
        n1 = (weight @ NODES) @ wide
        ones = (wide * weight.sum(axis=1)[:, np.newaxis]).T @ wide
        curve = np.block([[np.array([[nn]]), n1[np.newaxis]], [n1[:, np.newaxis], ones]])
        hessian = score.T @ score - curve + np.diag(1.0 / sds**2)
        gradient = score.sum(axis=0) - at / sds**2
        values, vectors = np.linalg.eigh(hessian)
        step = vectors @ ((vectors.T @ gradient) / np.maximum(np.abs(values), 1e-3))
        before = worth(at, likelihood)
        for halving in range(20):
            tried = at + step * 0.5**halving
            now, responsible_now, p_now = told(tried)
            if worth(tried, now) >= before - 1e-12:
                break
        else:
            break
        at, likelihood, responsible, p = tried, now, responsible_now, p_now
        if np.abs(step).max() < 1e-7:
            break
    errors = np.sqrt(np.maximum(np.diag(np.linalg.pinv(hessian)), 1e-12))
    return ItemFit(
        float(at[0]), float(errors[0]), float(at[1]), float(errors[1]),
        at[2:], errors[2:], likelihood,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Discriminations:
    """How well each item parts agents; arrays are (items,).

    Attributes:
        slope: Discrimination.
        error: Its standard error.
        ease: Logit at mean ability.
        ease_error: Its standard error.
        rises: p-value of no discrimination against a positive one, by shuffling outcomes.
        falls: p-value of none against a negative one.
        little: p-value of `LITTLE` or more against less.
    """

    slope: Floats
    error: Floats
    ease: Floats
    ease_error: Floats
    rises: Floats
    falls: Floats
    little: Floats


def discriminations(known: Abilities, seed: int, tick: Tick) -> Discriminations:
    """Fit every item, and compare it with its own outcomes shuffled between agents."""
    items = known.outcomes.shape[1]
    found = np.full((7, items), np.nan)
    orders: dict[int, Rows] = {}
    for item in range(items):
        tick("fitting items", item, items)
        rows, share = known.without(item)
        y = known.outcomes[rows, item]
        if not len(rows) or np.ptp(y) == 0.0:
            continue
        one = fit_item(y, share)
        ability = share @ NODES
        ability = ability - ability.mean()
        if len(y) not in orders:
            shuffled = np.tile(np.arange(len(y)), (_SHUFFLES, 1))
            orders[len(y)] = rng(seed, "clinic", len(y)).permuted(shuffled, axis=1)
        null, seen = y[orders[len(y)]] @ ability, float(y @ ability)
        rises = (1 + np.count_nonzero(null >= seen - 1e-12)) / (1 + _SHUFFLES)
        falls = (1 + np.count_nonzero(null <= seen + 1e-12)) / (1 + _SHUFFLES)
        little = float(ndtr((one.slope - LITTLE) / one.slope_error))
        found[:, item] = (
            one.slope, one.slope_error, one.ease, one.ease_error, rises, falls, little,
        )  # fmt: skip
    return Discriminations(*found)


def agents_wanted(known: Abilities, found: Discriminations, which: Flags, seed: int) -> Floats:
    """Agents with which the 90 % interval of items' discriminations is above 0, (items,).

    Agents of the population are simulated from the fit, with outcomes where the known ones have
    them, and pass the item by the discrimination and ease that it now seems to have. The item is
    fitted to them, which gives the standard error per agent: with the number of agents returned,
    the discrimination is above 0 by 1.64 standard errors with the probability `POWER`.

    Args:
        known: What is known of the agents.
        found: The items as fitted.
        which: (items,): for which items; others, and those that seem to have none, have NaN.
        seed: Seed of the simulation.
    """
    model, played = known.model, np.isfinite(known.outcomes)
    generator = rng(seed, "clinic: more agents", 0)
    ability = generator.standard_normal(_SIMULATED)
    p = expit(ability[:, np.newaxis] * model.slope + model.ease)
    drawn = _drawn(p, generator)
    drawn[~played[generator.integers(len(played), size=len(drawn))]] = np.nan
    simulated = Abilities.of(model, drawn)
    wanted = np.full(len(model.slope), np.nan)
    for item in np.flatnonzero(which & (found.slope > 0.0)).tolist():
        rows, share = simulated.without(item)
        chance = expit(ability[rows] * found.slope[item] + found.ease[item])
        y = _drawn(chance, generator)
        if np.ptp(y):
            error = fit_item(y, share).slope_error * np.sqrt(_SIMULATED)
            wanted[item] = np.ceil(((Z90 + _POWER_Z) * error / found.slope[item]) ** 2)
    return wanted


@dataclass(frozen=True, slots=True)
class Twins:
    """Two items whose outcomes go together far beyond what ability explains.

    Attributes:
        one: Index of an item.
        other: Index of the other.
        correlation: Of what is left of their outcomes when ability is taken away (Yen 1984: Q3).
    """

    one: int
    other: int
    correlation: float


def twins(known: Abilities, seed: int, tick: Tick) -> tuple[list[Twins], int]:
    """Find twins among items with enough successes and failures.

    The correlations of residuals of all pairs are compared with those of outcomes simulated from
    the fit, so that nothing is left in these but ability. Pairs are named whose correlation is at
    least `ALIKE` and beyond the simulated ones, with the share `RATE` of false alarms.

    Returns:
        The twins, closest first, and the number of items that were looked at.
    """
    y = known.outcomes
    sides = np.minimum(np.nansum(y, axis=0), np.nansum(1.0 - y, axis=0))
    chosen = np.flatnonzero(sides >= LEAST_SIDE)
    pairs = len(chosen) * (len(chosen) - 1) // 2
    if not pairs:
        return [], len(chosen)
    seen = _residual_pairs(known, chosen)
    if not seen:
        return [], len(chosen)
    generator = rng(seed, "clinic: twins", 0)
    share = known.share()
    times = int(np.clip(2e6 / pairs, 5, 100))
    null: list[Floats] = []
    p_of = np.exp(known.passes)
    for done in range(times):
        tick("comparing pairs of items", done, times)
        nodes = (share.cumsum(axis=1) > generator.random((len(y), 1))).argmax(axis=1)
        drawn = _drawn(p_of[:, nodes].T, generator)
        drawn[np.isnan(y)] = np.nan
        again = Abilities.of(known.model, drawn)
        null.append(np.array([one.correlation for one in _residual_pairs(again, chosen)]))
    beyond = np.sort(np.concatenate(null))
    q = np.array([one.correlation for one in seen])
    p = (1.0 + len(beyond) - np.searchsorted(beyond, q)) / (1.0 + times * pairs)
    alarms = false_discovery(p, pairs)
    named = [one for one, alarm in zip(seen, alarms, strict=True) if alarm]
    return sorted(named, key=lambda one: -one.correlation), len(chosen)


def _residual_pairs(known: Abilities, chosen: Rows) -> list[Twins]:
    """Pairs whose residuals correlate by at least `ALIKE`, in blocks to save memory."""
    expected = known.share() @ np.exp(known.passes).T
    left = (known.outcomes - expected) / np.sqrt(expected * (1.0 - expected))
    left = left[:, chosen]
    there = np.isfinite(left).astype(np.float64)
    left = np.nan_to_num(left)
    found: list[Twins] = []
    for start in range(0, len(chosen), _BLOCK):
        some, at = left[:, start : start + _BLOCK], there[:, start : start + _BLOCK]
        n = at.T @ there
        with np.errstate(invalid="ignore", divide="ignore"):
            x, y = (some.T @ there) / n, (at.T @ left) / n
            xx, yy = (some**2).T @ there / n - x**2, at.T @ left**2 / n - y**2
            q = (some.T @ left / n - x * y) / np.sqrt(xx * yy)
        enough = (n >= 2 * LEAST_SIDE) & (q >= ALIKE)
        for i, j in np.argwhere(enough).tolist():
            if start + i < j:
                one, other = int(chosen[start + i]), int(chosen[j])
                found.append(Twins(one, other, min(float(q[i, j]), 1.0)))
    return found


@dataclass(frozen=True, eq=False)
class Contradictions:
    """How far items are from what their demands say.

    Attributes:
        left: (items,): logits by which an item is easier than its demands say; NaN of an item that
            is not looked at.
        alarms: (items,): whether it is further off than items of this set are.
        spread: Standard deviation of what demands leave unexplained, in logits.
        explained: Share of the differences in difficulty that demands explain, less chance.
        weights: By demand, logits by which an item is harder per unit, low and high end of the
            90 % interval.
    """

    left: Floats
    alarms: Flags
    spread: float
    explained: float
    weights: dict[str, tuple[float, float, float]]


def contradictions(
    ease: Floats, error: Floats, demands: Floats, names: Sequence[str]
) -> Contradictions:
    """Regress the ease of items on their demands, and find items that do not fit.

    The regression allows that demands do not say all (Janssen, Schepers and Peres 2004): what they
    leave has a spread of its own, estimated by the median so that a few items cannot hide
    themselves. Items far outside of it are named, by Student's t and with `RATE` of false alarms.

    Args:
        ease: (items,), in logits; NaN of an item without.
        error: (items,): its standard errors.
        demands: (items, demands), no two of them collinear; NaN where not known.
        names: Names of the demands.
    """
    rows = np.flatnonzero(np.isfinite(ease) & np.isfinite(demands).all(axis=1))
    wide = np.column_stack([np.ones(len(rows)), demands[rows]])
    y, known = ease[rows], error[rows] ** 2
    free = len(rows) - wide.shape[1]

    def fitted(spread: float) -> tuple[Floats, Floats, Floats, Floats]:
        weight = 1.0 / (spread**2 + known)
        inner = np.asarray(np.linalg.pinv(wide.T @ (wide * weight[:, np.newaxis])), np.float64)
        beta = inner @ (wide.T @ (weight * y))
        leverage = ((wide @ inner) * wide).sum(axis=1) * weight
        scale = np.sqrt((spread**2 + known) * np.maximum(1.0 - leverage, 1e-9))
        return beta, y - wide @ beta, np.asarray(scale, np.float64), inner

    low, high = 0.0, max(float(y.std()) * 3.0, 1e-6)
    middle = float(stdtrit(free, 0.75))
    for _ in range(60):
        spread = 0.5 * (low + high)
        _, left, scale, _ = fitted(spread)
        low, high = (spread, high) if np.median(np.abs(left / scale)) > middle else (low, spread)
    spread = 0.5 * (low + high)
    beta, left, scale, inner = fitted(spread)
    p = 2.0 * stdtr(float(free), -np.abs(left / scale))
    full, alarms = np.full(len(ease), np.nan), np.zeros(len(ease), bool)
    full[rows] = left
    alarms[rows] = false_discovery(p)
    reach = float(stdtrit(free, 0.95)) * np.sqrt(np.diag(inner))
    noise, varied = float(known.mean()), float(y.var(ddof=1))
    unexplained = max(float((left**2).sum()) / free - noise, 0.0)
    explained = 1.0 - unexplained / max(varied - noise, 1e-9) if varied > noise else 0.0
    return Contradictions(
        full, alarms, spread, float(np.clip(explained, 0.0, 1.0)),
        {
            name: (-float(beta[k]), -float(beta[k] + reach[k]), -float(beta[k] - reach[k]))
            for k, name in enumerate(names, 1)
        },
    )  # fmt: skip


def ease_beyond(outcomes: Floats, predicted: Floats) -> tuple[Floats, Floats]:
    """Logits by which each item is easier than predictions say, and the standard errors, (items,).

    Args:
        outcomes: (agents, items).
        predicted: (agents, items): probabilities of success; NaN where there is none.
    """
    logits = np.log(predicted) - np.log1p(-predicted)
    there = np.isfinite(outcomes) & np.isfinite(logits)
    y, z = np.where(there, outcomes, 0.0), np.where(there, logits, 0.0)
    shift = np.zeros(outcomes.shape[1])
    known = 1.0 / _EASE_SD**2
    for _ in range(60):
        p = np.where(there, expit(z + shift), 0.0)
        weight = (p * (1.0 - p)).sum(axis=0) + known
        shift += np.clip(((y - p).sum(axis=0) - known * shift) / weight, -1.0, 1.0)
    p = np.where(there, expit(z + shift), 0.0)
    error = 1.0 / np.sqrt((p * (1.0 - p)).sum(axis=0) + known)
    none = ~there.any(axis=0)
    return np.where(none, np.nan, shift), np.where(none, np.nan, error)


@dataclass(frozen=True, eq=False)
class Differences:
    """How far items differ between groups of agents of equal ability.

    Attributes:
        groups: Names of the groups; the first is the one that others are compared with.
        effects: (items, groups - 1): logits by which a group finds an item easier than the first.
        alarms: (items,): whether it differs.
    """

    groups: tuple[str, ...]
    effects: Floats
    alarms: Flags


def differences(
    model: ItemModel, outcomes: Floats, groups: Sequence[str], names: Sequence[str], tick: Tick
) -> Differences:
    """Find differential functioning: groups of equal ability that pass an item unequally often.

    Each group has a mean ability of its own, and each item is fitted with and without effects of
    groups; twice the difference of their log likelihoods is compared with chi-squared (Swaminathan
    and Rogers 1990, with ability not known but estimated by the other items). Named are items with
    an effect of `UNEQUAL` or more.

    Args:
        model: The items.
        outcomes: (agents, items).
        groups: (agents,): the group of each.
        names: The groups, in order.
        tick: Told of progress.
    """
    place = {name: k for k, name in enumerate(names)}
    codes = np.array([place[name] for name in groups])
    known = Abilities.of(model, outcomes, codes)
    items, others = outcomes.shape[1], len(names) - 1
    effects, p = np.full((items, others), np.nan), np.full(items, np.nan)
    for item in range(items):
        tick("comparing groups", item, items)
        rows, share = known.without(item)
        y, own = outcomes[rows, item], codes[rows]
        if np.bincount(own, minlength=others + 1).min() < LEAST_GROUP or np.ptp(y) == 0.0:
            continue
        wide = (own[:, np.newaxis] == np.arange(1, others + 1)).astype(np.float64)
        with_groups, alike = fit_item(y, share, wide), fit_item(y, share)
        gain = max(2.0 * (with_groups.log_likelihood - alike.log_likelihood), 0.0)
        p[item] = float(chdtrc(others, gain))
        effects[item] = with_groups.effects
    spread = np.column_stack([np.zeros(items), effects])
    large = np.ptp(np.nan_to_num(spread), axis=1) >= UNEQUAL
    return Differences(tuple(names), effects, false_discovery(p) & large)


@dataclass(frozen=True, eq=False)
class ShortForm:
    """A short form, and how well such forms tell the full score of agents that did not choose them.

    Attributes:
        chosen: Indices of its items, the most telling first.
        full: (agents,): share of the full set passed.
        predicted: (agents,): that share as predicted by a form that was chosen without the agent.
        at_random: (agents,): mean absolute error of random forms of that length.
    """

    chosen: list[int]
    full: Floats
    predicted: Floats
    at_random: Floats


def shortened(outcomes: Floats, length: int, seed: int, parts: int, tick: Tick) -> ShortForm:
    """Choose a short form, and judge its kind by agents that are held out.

    Args:
        outcomes: (agents, items).
        length: Number of items.
        seed: Seed of the parts and of random forms.
        parts: Number of parts of the agents, each held out once.
        tick: Told of progress.
    """
    agents, items = outcomes.shape
    full = np.nanmean(outcomes, axis=1)
    part = rng(seed, "clinic: short form", 0).permutation(agents) % parts
    predicted, at_random = np.full(agents, np.nan), np.full(agents, np.nan)
    for one in range(parts):
        tick("trying short forms", one, parts)
        held = part == one
        moments = _Moments.of(outcomes[~held])
        predicted[held] = moments.full_score(outcomes[held], moments.chosen(length))
        generator = rng(seed, "clinic: short form", 1 + one)
        forms = [generator.permutation(items)[:length].tolist() for _ in range(_RANDOM_FORMS)]
        off = [np.abs(moments.full_score(outcomes[held], form) - full[held]) for form in forms]
        at_random[held] = np.mean(off, axis=0)
    return ShortForm(_Moments.of(outcomes).chosen(length), full, predicted, at_random)


@dataclass(frozen=True, eq=False)
class _Moments:
    """Means and covariances of the outcomes of a population, (items,) and (items, items).

    Where agents are twice as many as items, covariances are the mean of those of the 2PL model and
    of those seen, which know what items share beside one ability. With fewer they are the model's.
    """

    mean: Floats
    covariance: Floats
    trusted: bool

    @classmethod
    def of(cls, outcomes: Floats) -> _Moments:
        model = fit_population(tuple(map(str, range(outcomes.shape[1]))), outcomes)
        known, weight = Abilities.of(model, outcomes), np.exp(LOG_PRIOR)
        p = np.exp(known.passes)
        mean = p @ weight
        covariance = (p * weight) @ p.T - np.outer(mean, mean)
        trusted = len(outcomes) >= 2 * len(mean)
        if trusted:
            filled = np.where(np.isfinite(outcomes), outcomes, known.share() @ p.T)
            covariance = 0.5 * (covariance + np.cov(filled.T))
        covariance[np.diag_indices(len(mean))] = mean * (1.0 - mean)
        return cls(mean, covariance, trusted)

    def chosen(self, length: int) -> list[int]:
        """Items that tell most of the full score; of few agents, such as are spread by difficulty.

        One by one, the item is taken that leaves least of the variance of the sum of all.
        """
        if not self.trusted:
            order = np.argsort(self.mean, kind="stable")
            return order[((np.arange(length) + 0.5) * len(order) / length).astype(int)].tolist()
        left, found = self.covariance.copy(), list[int]()
        for _ in range(length):
            with_sum, own = left.sum(axis=1), np.diag(left)
            gain = np.where(own > 1e-9, with_sum**2 / np.maximum(own, 1e-9), 0.0)
            gain[found] = -1.0
            best = int(np.argmax(gain))
            found.append(best)
            left = left - np.outer(left[:, best], left[best]) / max(float(own[best]), 1e-9)
        return found

    def full_score(self, outcomes: Floats, items: Sequence[int]) -> Floats:
        """Share of all items that agents pass, by the best linear prediction from some of them."""
        some = np.where(np.isfinite(outcomes[:, items]), outcomes[:, items], self.mean[items])
        inner = self.covariance[np.ix_(items, items)] + 1e-9 * np.eye(len(items))
        weight = np.asarray(np.linalg.solve(inner, self.covariance[items].sum(axis=1)), np.float64)
        total = self.mean.sum() + (some - self.mean[items]) @ weight
        return np.clip(total / len(self.mean), 0.0, 1.0)


def information(model: ItemModel) -> Floats:
    """Fisher's information of every item at every node, (items, nodes)."""
    p = expit(NODES * model.slope[:, np.newaxis] + model.ease[:, np.newaxis])
    return np.asarray(model.slope[:, np.newaxis] ** 2 * p * (1.0 - p), np.float64)


def reliability(known: Abilities) -> float:
    """Share of the spread of estimated abilities that is not error, 0 to 1."""
    share = known.share()
    mean = share @ NODES
    error = float((share @ NODES**2 - mean**2).mean())
    return float(np.clip(1.0 - error / (error + float(mean.var())), 0.0, 1.0))


def _drawn(chance: Floats, generator: np.random.Generator) -> Floats:
    """Successes and failures by their chances."""
    return np.asarray(generator.random(chance.shape) < chance, np.float64)


def _share(joint: Floats) -> Floats:
    return np.exp(joint - logsumexp(joint, axis=1)[:, np.newaxis])
