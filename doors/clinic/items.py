"""Statistics of items: what each tells, which are twins, and what the whole set can tell."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq, minimize
from scipy.special import expit, log_expit, logsumexp, ndtr, stdtr, stdtrit
from scipy.stats import rankdata

from animalcat.doors.clinic.population import LOG_PRIOR, NODES, ItemModel, fit_items
from animalcat.layouts.checking.scores import Estimate, bootstrap
from animalcat.layouts.inference.randomness import rng

Floats: TypeAlias = npt.NDArray[np.float64]
Flags: TypeAlias = npt.NDArray[np.bool_]
Rows: TypeAlias = npt.NDArray[np.int64]
Tick: TypeAlias = Callable[[str, int, int], None]

RATE: Final = 0.05
"""Share of false alarms of each kind (Benjamini and Hochberg 1995)."""
GROUP_RATE: Final = 0.02
"""Share of sets without differences between groups in which an item is named for one. It is below
`RATE`, since items with other faults make a few alarms more."""
LITTLE: Final = 0.5
"""Logits per standard deviation of ability under which a discrimination is low. Baker (2001, The
basics of item response theory) calls 0.01 to 0.34 very low, and 0.35 to 0.64 low."""
Z90: Final = 1.6448536269514722
"""Half a 90 % interval, in standard errors."""
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
"""Standard errors beyond `Z90` that make an interval above 0 four times in five."""
_SLOPE_SD, _EASE_SD = 3.0, 5.0
"""Weak priors of slope and ease of an item, so that a perfect one stays finite."""
_SHUFFLES, _SETS, _SIMULATED, _RANDOM_FORMS = 1999, 1999, 1000, 20
"""How often outcomes are shuffled and groups drawn, and how many agents and forms are."""
_WAYS: Final = 10_000
"""Ways of passing, up to which all are gone through."""
_FEW: Final = 10
"""Shuffles beyond an item, up to which the tail is followed further."""
_REFIT: Final = 100
"""Agents up to which items are fitted anew to outcomes that are simulated."""
_PARTS: Final = 5
"""Parts of the agents, each of which is held out once."""
_BLOCK: Final = 500
"""Items whose pairs with all others are looked at at once."""


def false_discovery(p: npt.ArrayLike, total: int | None = None) -> Flags:
    """Which of several tests alarm, so that `RATE` of the alarms are false.

    That is by Benjamini and Hochberg (1995), with NaN where there is no test, and with the total
    of tests where only the smallest p-values are given.
    """
    values = np.asarray(p, np.float64)
    order = np.argsort(values, kind="stable")
    tests = total or max(int(np.isfinite(values).sum()), 1)
    below = np.flatnonzero(values[order] <= RATE * np.arange(1, len(values) + 1) / tests)
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
        """Compute likelihoods; groups of agents, counted from 0, have means of their own."""
        eta = NODES * model.slope[:, np.newaxis] + model.ease[:, np.newaxis]
        passes, fails = np.asarray(log_expit(eta)), np.asarray(log_expit(-eta))
        told: Floats = np.nan_to_num(outcomes) @ passes + np.nan_to_num(1.0 - outcomes) @ fails
        prior = np.broadcast_to(LOG_PRIOR, told.shape)
        if groups is not None:
            means, moved = np.zeros(int(groups.max()) + 1), 1.0
            while moved > 1e-9:  # expectation, maximization
                prior = -0.5 * (NODES - means[groups, np.newaxis]) ** 2
                own = np.bincount(groups, _share(told + prior) @ NODES) / np.bincount(groups)
                means, moved = own, float(np.abs(own - means).max())
            prior = prior - logsumexp(prior, axis=1)[:, np.newaxis]
        return cls(model, outcomes, told + prior, passes, fails)

    def share(self) -> Floats:
        """Posterior of each agent on the grid, (agents, nodes)."""
        return _share(self.joint)

    def expected(self) -> Floats:
        """Probability of a success by that posterior, (agents, items)."""
        return self.share() @ np.exp(self.passes).T

    def without(self, item: int) -> tuple[Rows, Floats]:
        """The agents that played an item, and their posteriors by all the other items.

        An item is judged by what all the others say of an agent, never by itself: one whose
        outcomes are random then has a slope around 0, and one with a wrong key a slope below it.
        """
        rows = np.flatnonzero(np.isfinite(self.outcomes[:, item]))
        y = self.outcomes[rows, item, np.newaxis]
        own = y * self.passes[item] + (1.0 - y) * self.fails[item]
        return rows, _share(self.joint[rows] - own)

    def simulated(self, generator: np.random.Generator) -> Floats:
        """Outcomes in which nothing is left but ability, where there are outcomes."""
        drawn = self.share().cumsum(axis=1) > generator.random((len(self.outcomes), 1))
        made = _draw_outcomes(np.exp(self.passes)[:, drawn.argmax(axis=1)].T, generator)
        return np.where(np.isfinite(self.outcomes), made, np.nan)


def fit_population(names: tuple[str, ...], outcomes: Floats) -> ItemModel:
    """Fit items so that the agents themselves have abilities of mean 0 and standard deviation 1.

    `fit_items` draws the ease of items to 0. Where items are many and agents few, it therefore puts
    the agents far from the mean that its prior has. Here they are put back: abilities are moved and
    scaled, and items with them, which changes no probability.
    """
    model = fit_items(names, outcomes)
    for _ in range(3):
        share = Abilities.of(model, outcomes).share()
        mean = float((share @ NODES).mean())
        sd = float(np.sqrt((share @ NODES**2).mean() - mean**2))
        model = ItemModel(names, model.slope * sd, model.ease + model.slope * mean)
    return model


class ItemFit(NamedTuple):
    """An item given what the others say of agents: logit = slope x ability + ease + effects."""

    slope: float
    slope_error: float
    ease: float
    ease_error: float
    effects: Floats


def fit_item(y: Floats, share: Floats, effects: Floats | None = None) -> ItemFit:
    """Fit one item by marginal likelihood, with a slope that may have any sign.

    Args:
        y: (agents,): 0 to 1.
        share: (agents, nodes): posterior of each agent by other items.
        effects: (agents, effects): what else may shift the logit.
    """
    beside = np.empty((len(y), 0)) if effects is None else effects
    wide = np.column_stack([np.ones(len(y)), beside])  # what does not depend on the node
    sds = np.array([_SLOPE_SD, _EASE_SD, *[_SLOPE_SD] * beside.shape[1]])
    known, passed = np.log(share + 1e-300), y[:, np.newaxis]

    def loss(at: Floats) -> tuple[float, Floats]:
        eta = at[0] * NODES + (wide @ at[1:])[:, np.newaxis]
        joint = known + passed * eta + log_expit(-eta)
        total = np.asarray(logsumexp(joint, axis=1), np.float64)
        off = np.exp(joint - total[:, np.newaxis]) * (passed - np.asarray(expit(eta)))
        gradient = np.append(off.sum(axis=0) @ NODES, off.sum(axis=1) @ wide)
        return 0.5 * float(np.sum((at / sds) ** 2) - 2.0 * total.sum()), at / sds**2 - gradient

    rate = (y.sum() + 0.5) / (len(y) + 1.0)
    start = np.array([0.5, np.log(rate / (1.0 - rate)), *[0.0] * beside.shape[1]])
    options = {"ftol": 1e-14, "gtol": 1e-8, "maxiter": 500}
    at = minimize(loss, start, jac=True, method="L-BFGS-B", options=options).x
    steps = np.eye(len(at)) * 1e-4
    curve = np.array([(loss(at + step)[1] - loss(at - step)[1]) / 2e-4 for step in steps])
    errors = np.sqrt(np.maximum(np.diag(_inverse(0.5 * (curve + curve.T))), 1e-12))
    return ItemFit(float(at[0]), float(errors[0]), float(at[1]), float(errors[1]), at[2:])


class Discriminations(NamedTuple):
    """How well each item parts agents, (items,).

    The p-values are of no discrimination against a positive one (`rises`) and a negative one
    (`falls`), by shuffling outcomes, and of `LITTLE` or more against less (`little`).
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
    drawn: dict[tuple[int, int], tuple[Rows, int]] = {}
    for item in range(items):
        tick("fitting items", item, items)
        rows, share = known.without(item)
        y = known.outcomes[rows, item]
        if not len(rows) or np.ptp(y) == 0.0:
            continue
        size = len(y), int(y.sum())
        if size not in drawn:
            drawn[size] = _who_passes(*size, rng(seed, "clinic", size[0]))
        who, ways = drawn[size]
        ability = share @ NODES
        ability = ability - ability.mean()
        told = float(y @ ability)
        beyond = ability[who].sum(axis=1) - told
        # Beyond the shuffles the tail is the normal one, and never rarer than one way of all.
        sd = np.sqrt(ability @ ability * size[1] * (size[0] - size[1]) / size[0] / (size[0] - 1))
        for place, sign in ((4, 1.0), (5, -1.0)):
            p = (np.count_nonzero(sign * beyond >= -1e-12) + (ways > len(who))) / (
                len(who) + (ways > len(who))
            )
            if ways > len(who) and p * len(who) <= _FEW:
                p = min(p, max(float(ndtr(-sign * told / sd)), 1.0 / ways))
            found[place, item] = p
        one = fit_item(y, share)
        found[:4, item] = one[:4]
        found[6, item] = ndtr((one.slope - LITTLE) / one.slope_error)
    return Discriminations(*found)


def _who_passes(agents: int, passes: int, generator: np.random.Generator) -> tuple[Rows, int]:
    """Who passes, a row each: in all ways where these are few, else in some; and all ways' number.

    Args:
        agents: How many there are.
        passes: How many of them pass.
        generator: Draws some of the ways.
    """
    ways = comb(agents, passes)
    if ways <= _WAYS:
        return np.array(list(combinations(range(agents), passes))), ways
    order = generator.permuted(np.tile(np.arange(agents), (_SHUFFLES, 1)), axis=1)
    return order[:, :passes], ways


def agents_wanted(known: Abilities, found: Discriminations, which: Flags, seed: int) -> Floats:
    """Agents with which the 90 % interval of items' discriminations is above 0, (items,).

    Agents of the population are simulated from the fit, with outcomes where the known ones have
    them, and pass the item by the discrimination and ease that it now seems to have. The item is
    fitted to them, which gives the standard error per agent: with the number of agents returned,
    the discrimination is above 0 by 1.64 standard errors four times in five. Items that are not
    asked for by `which`, and those that seem to have no discrimination, have NaN.
    """
    model, played = known.model, np.isfinite(known.outcomes)
    generator = rng(seed, "clinic: more agents", 0)
    ability = generator.standard_normal(_SIMULATED)
    drawn = _draw_outcomes(expit(ability[:, np.newaxis] * model.slope + model.ease), generator)
    drawn[~played[generator.integers(len(played), size=len(drawn))]] = np.nan
    simulated = Abilities.of(model, drawn)
    wanted = np.full(len(model.slope), np.nan)
    for item in np.flatnonzero(which & (found.slope > 0.0)).tolist():
        rows, share = simulated.without(item)
        y = _draw_outcomes(expit(ability[rows] * found.slope[item] + found.ease[item]), generator)
        if np.ptp(y):
            error = fit_item(y, share).slope_error * np.sqrt(_SIMULATED)
            wanted[item] = np.ceil(((Z90 + _POWER_Z) * error / found.slope[item]) ** 2)
    return wanted


def twins(known: Abilities, seed: int, tick: Tick) -> tuple[Rows, int]:
    """Find twins: pairs of items that go together far beyond what ability explains.

    What is left of outcomes when ability is taken away is correlated (Yen 1984: Q3). Pairs are
    named whose correlation is at least `ALIKE`, and beyond the highest one of any pair in all but
    the share `RATE` of the sets that are simulated from the fit. Of few agents there are few
    patterns of outcomes, so that the highest is 1, and none is named.

    Returns:
        (twins, 2): items by their indices, and the number of items with enough successes and
        failures to be looked at.
    """
    y = known.outcomes
    sides = np.minimum(np.nansum(y, axis=0), np.nansum(1.0 - y, axis=0))
    chosen = np.flatnonzero(sides >= LEAST_SIDE)
    pairs = len(chosen) * (len(chosen) - 1) // 2
    alike, q = _alike(known, chosen) if pairs else (np.empty((0, 2), np.int64), np.empty(0))
    if not len(q):
        return alike, len(chosen)
    generator = rng(seed, "clinic: twins", 0)
    times = int(np.clip(2e6 / pairs, 1 / RATE - 1, 100))
    most: list[float] = []
    for done in range(times):
        tick("comparing pairs of items", done, times)
        made = known.simulated(generator)
        # Items with the same outcomes have the same fit, which matters where agents are few.
        model = fit_population(known.model.items, made) if len(y) <= _REFIT else known.model
        again = Abilities.of(model, made)
        most.append(float(_alike(again, chosen)[1].max(initial=0.0)))
    beyond = np.sort(most)
    p = (1.0 + times - np.searchsorted(beyond, q - 1e-6)) / (1.0 + times)
    return alike[p <= RATE], len(chosen)


def _alike(known: Abilities, chosen: Rows) -> tuple[Rows, Floats]:
    """Pairs whose residuals correlate by at least `ALIKE`, in blocks to save memory."""
    expected = known.expected()
    left = ((known.outcomes - expected) / np.sqrt(expected * (1.0 - expected)))[:, chosen]
    there, left = np.isfinite(left).astype(np.float64), np.nan_to_num(left)
    pairs: list[Rows] = []
    found: list[Floats] = []
    for start in range(0, len(chosen), _BLOCK):
        block = slice(start, start + _BLOCK)
        some, at = left[:, block].T, there[:, block].T
        n = at @ there
        with np.errstate(invalid="ignore", divide="ignore"):
            x, y = some @ there / n, at @ left / n
            xx, yy = some**2 @ there / n - x**2, at @ left**2 / n - y**2
            q = (some @ left / n - x * y) / np.sqrt(xx * yy)
        one, other = np.nonzero((n >= 2 * LEAST_SIDE) & (q >= ALIKE))
        after = one + start < other
        one, other = one[after], other[after]
        pairs.append(chosen[np.column_stack([one + start, other])])
        found.append(np.minimum(q[one, other], 1.0))
    return np.concatenate(pairs), np.concatenate(found)


class Contradictions(NamedTuple):
    """How far items are from what their demands say.

    Attributes:
        left: (items,): logits by which an item is easier than that; NaN if it is not looked at.
        alarms: (items,): whether it is further off than items of this set are.
        explained: Share of the differences in difficulty that demands explain, less chance.
        weights: By demand, logits by which an item is harder per unit.
    """

    left: Floats
    alarms: Flags
    explained: float
    weights: Mapping[str, Estimate]


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

    def fit_weights(spread: float) -> tuple[Floats, Floats, Floats, Floats]:
        """Weights, what they leave, that in standard deviations, and the weights' covariance."""
        weight = 1.0 / (spread**2 + known)
        inner = _inverse(wide.T @ (wide * weight[:, np.newaxis]))
        beta = inner @ (wide.T @ (weight * y))
        leverage = ((wide @ inner) * wide).sum(axis=1) * weight
        left = y - wide @ beta
        return beta, left, left * np.sqrt(weight / np.maximum(1.0 - leverage, 1e-9)), inner

    def beyond(spread: float) -> float:
        return float(np.median(np.abs(fit_weights(spread)[2])) - stdtrit(free, 0.75))

    most = max(float(y.std()) * 3.0, 1e-6)
    spread = brentq(beyond, 0.0, most) if beyond(0.0) > 0.0 > beyond(most) else 0.0
    beta, left, scaled, inner = fit_weights(spread)
    full, alarms = np.full(len(ease), np.nan), np.zeros(len(ease), bool)
    full[rows] = left
    alarms[rows] = false_discovery(2.0 * stdtr(free, -np.abs(scaled)))
    reach = stdtrit(free, 0.95) * np.sqrt(np.diag(inner))
    noise, varied = float(known.mean()), float(y.var(ddof=1))
    unexplained = max(float(left @ left) / free - noise, 0.0)
    explained = 1.0 - unexplained / max(varied - noise, 1e-9) if varied > noise else 0.0
    ends = np.column_stack([-beta, -beta - reach, -beta + reach]).tolist()
    weights = {name: Estimate(*ends[k]) for k, name in enumerate(names, 1)}
    return Contradictions(full, alarms, float(np.clip(explained, 0.0, 1.0)), weights)


def ease_beyond(outcomes: Floats, predicted: Floats) -> tuple[Floats, Floats]:
    """Logits by which each item is easier than predictions say, and the standard errors, (items,).

    Args:
        outcomes: (agents, items).
        predicted: (agents, items): probabilities of success; NaN where there is none.
    """
    logits = np.log(predicted) - np.log1p(-predicted)
    there = np.isfinite(outcomes) & np.isfinite(logits)
    shift, weight = np.zeros(outcomes.shape[1]), np.ones(outcomes.shape[1])
    for _ in range(60):
        p = np.asarray(expit(logits + shift), np.float64)
        off = np.where(there, outcomes - p, 0.0).sum(axis=0) - shift / _EASE_SD**2
        weight = np.where(there, p * (1.0 - p), 0.0).sum(axis=0) + 1.0 / _EASE_SD**2
        shift = shift + np.clip(off / weight, -1.0, 1.0)
    known = there.any(axis=0)
    return np.where(known, shift, np.nan), np.where(known, 1.0 / np.sqrt(weight), np.nan)


class Differences(NamedTuple):
    """Which items differ between groups of agents of equal ability, (items,), and how far.

    Effects are logits by which each other group finds an item easier than the first one does,
    (items, groups - 1).
    """

    groups: tuple[str, ...]
    effects: Floats
    alarms: Flags


def differences(
    model: ItemModel,
    outcomes: Floats,
    groups: Sequence[str],
    names: Sequence[str],
    seed: int,
    tick: Tick,
) -> Differences:
    """Find differential functioning: groups of equal ability that pass an item unequally often.

    Each group has a mean ability of its own. What groups make of an item is the sum, over their
    agents, of what ability leaves of outcomes. It is compared with the same for groups that are
    drawn anew, each agent's by its ability alone (Candes et al. 2018: the conditional randomization
    test). An item is named if it is beyond the greatest of all items in all but the share
    `GROUP_RATE` of the draws (Westfall and Young 1993), so that no more sets without differences
    have an alarm; and if the effect is `UNEQUAL` or more.
    """
    codes = np.array([names.index(name) for name in groups])
    own = (codes[:, np.newaxis] == np.arange(len(names))).astype(np.float64)
    known, pooled = Abilities.of(model, outcomes, codes), Abilities.of(model, outcomes)
    played = np.isfinite(outcomes)
    varies = (np.nansum(outcomes, axis=0) > 0.0) & (np.nansum(1.0 - outcomes, axis=0) > 0.0)
    looked = varies & ((own.T @ played).min(axis=0) >= LEAST_GROUP)
    effects = np.full((len(looked), len(names) - 1), np.nan)
    for number, item in enumerate(np.flatnonzero(looked).tolist()):
        tick("comparing groups", number, int(looked.sum()))
        rows, share = known.without(item)
        effects[item] = fit_item(outcomes[rows, item], share, own[rows, 1:]).effects
    means = own.T @ (known.share() @ NODES) / own.sum(axis=0)
    priors = _share(-0.5 * (NODES - means[:, np.newaxis]) ** 2)
    likely = np.exp(pooled.joint - LOG_PRIOR - pooled.joint.max(axis=1, keepdims=True)) @ priors.T
    likely *= own.sum(axis=0)
    likely /= likely.sum(axis=1, keepdims=True)
    left = np.where(played & looked, outcomes - pooled.expected(), 0.0)
    joint = likely[:, :, np.newaxis] * (np.eye(len(names)) - likely[:, np.newaxis])
    scale = _inverse(np.einsum("ai,agh->igh", left**2, joint[:, 1:, 1:]))

    def size(groups: Floats) -> Floats:
        """How unequal items are, (items,), where agents are in these groups."""
        scores = left.T @ (groups - likely)[:, 1:]
        return np.einsum("ig,igh,ih->i", scores, scale, scores)

    generator = rng(seed, "clinic: groups", 0)
    drawn = generator.random((_SETS, len(codes), 1)) > likely.cumsum(axis=1)[:, :-1]
    anew = np.eye(len(names))[drawn.sum(axis=2)]
    beyond = np.array([size(one).max() for one in anew])
    exceeded = (beyond[:, np.newaxis] >= size(own)).sum(axis=0)
    spread = np.ptp(np.column_stack([np.zeros(len(looked)), np.nan_to_num(effects)]), axis=1)
    named = looked & ((1 + exceeded) / (1 + _SETS) <= GROUP_RATE) & (spread >= UNEQUAL)
    return Differences(tuple(names), effects, named)


@dataclass(frozen=True, slots=True)
class ShortForm:
    """A short form of items, and what it loses on agents that did not choose it.

    Attributes:
        items: Its items, the most telling first.
        error: Mean absolute error of the predicted share of all items passed.
        at_random: The same of as many random items.
        rank_correlation: Spearman's correlation of that share with the true one.
        agents: Number of agents, of whom each was held out once.
    """

    items: tuple[str, ...]
    error: Estimate
    at_random: Estimate
    rank_correlation: float
    agents: int


def choose_short_form(
    names: Sequence[str], outcomes: Floats, length: int, seed: int, tick: Tick
) -> ShortForm:
    """Choose a short form, and judge its kind by agents, of whom a fifth is held out at a time."""
    agents, items = outcomes.shape
    full = np.nanmean(outcomes, axis=1)
    part = rng(seed, "clinic: short form", 0).permutation(agents) % _PARTS
    predicted, at_random = np.empty(agents), np.empty(agents)
    for one in range(_PARTS):
        tick("trying short forms", one, _PARTS)
        held = part == one
        moments = _Moments.of(outcomes[~held])
        predicted[held] = moments.full_score(outcomes[held], moments.chosen(length))
        generator = rng(seed, "clinic: short form", 1 + one)
        forms = [generator.permutation(items)[:length].tolist() for _ in range(_RANDOM_FORMS)]
        scores = np.array([moments.full_score(outcomes[held], form) for form in forms])
        at_random[held] = np.abs(scores - full[held]).mean(axis=0)

    def off(one: Floats, other: Floats) -> float:
        return float(np.abs(one - other).mean())

    correlated = float("nan")
    if np.ptp(predicted) > 0.0 and np.ptp(full) > 0.0:
        correlated = float(np.corrcoef(rankdata(predicted), rankdata(full))[0, 1])
    return ShortForm(
        items=tuple(names[item] for item in _Moments.of(outcomes).chosen(length)),
        error=bootstrap(off, predicted, full, seed),
        at_random=bootstrap(off, at_random, np.zeros(agents), seed),
        rank_correlation=correlated,
        agents=agents,
    )


class _Moments(NamedTuple):
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
            filled = np.where(np.isfinite(outcomes), outcomes, known.expected())
            covariance = 0.5 * (covariance + np.cov(filled.T))
        np.fill_diagonal(covariance, mean * (1.0 - mean))
        return cls(mean, covariance, trusted)

    def chosen(self, length: int) -> list[int]:
        """Items most informative about the full score; of few agents, those spread by difficulty.

        One by one, the item is taken that leaves least of the variance of the sum of all.
        """
        if not self.trusted:
            order = np.argsort(self.mean, kind="stable")
            return order[((np.arange(length) + 0.5) * len(order) / length).astype(int)].tolist()
        left, found = self.covariance.copy(), list[int]()
        for _ in range(length):
            own = np.diag(left)
            gain = np.where(own > 1e-9, left.sum(axis=1) ** 2 / np.maximum(own, 1e-9), 0.0)
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


def _draw_outcomes(chance: Floats, generator: np.random.Generator) -> Floats:
    """Successes and failures by their chances."""
    return np.asarray(generator.random(chance.shape) < chance, np.float64)


def _inverse(matrices: Floats) -> Floats:
    made: Any = np.linalg.pinv(matrices)
    return np.asarray(made, np.float64)


def _share(joint: Floats) -> Floats:
    return np.exp(joint - logsumexp(joint, axis=1)[:, np.newaxis])
