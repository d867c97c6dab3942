"""Selectors: each gives every instance a probability of being next; combinators wrap others.

A selector is given a `SelectionContext` and the instances that are allowed. It answers with
branches: alternatives among which chance decides, each with its probability. So the propensity of
a choice is exact, however selectors are combined.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.adaptive.bank import Bank, History
from animalcat.layouts.adaptive.information import ExpectedGains, GainEstimator
from animalcat.layouts.adaptive.statuses import EXHAUSTED
from animalcat.layouts.inference.live import LivePosterior
from animalcat.layouts.watching.watch import DOUBT
from animalcat.portable import arrays as portable

Floats: TypeAlias = npt.NDArray[np.float64]
Mask: TypeAlias = npt.NDArray[np.bool_]

LISTED: Final = "listed"
"""Why an instance is chosen that a list has in its order."""

_TIE: Final = 1e-9
"""Scores this near to the best, in shares of it, count as equal."""


SPREAD: Final = 100
"""Number of the most informative instances that get most of the choices for what they tell. Small
batteries are left as they are: with 30, those of the Olympics were predicted a little worse."""

REST: Final = 0.35
"""Greatest share of such choices that is left to all other instances. With 0.2, intervals of the
whole battery's success rate were wider (docs/research/adaptive.md)."""

AIM_WIDTH: Final = 0.15
"""Difference to the aimed success rate at which an instance is worth 0.61 of what it tells. The
sharpness of a policy narrows it."""

SETTLED: Final = 0.1
"""Standard deviation of the agent's determinism at which it is known well enough."""

_ROUNDING: Final = 1e-9
"""Plays by which paradigms may differ and still count as equally due."""


@dataclass(frozen=True, slots=True)
class SelectionContext:
    """What a selector bases its choice on.

    Attributes:
        posterior: What is known of the agent.
        bank: The instances to choose from.
        history: What was played.
        gains: Computes what each instance would tell.
        doubt: How far the layout is in doubt, from 0 to 1.
    """

    posterior: LivePosterior
    bank: Bank
    history: History
    gains: GainEstimator
    doubt: float = DOUBT

    @property
    def scores(self) -> ExpectedGains:
        """Expected gains of each instance, allowing for pending episodes and repeats."""
        scores = self.gains.scores(self.posterior, self.history.pending)
        return scores if self.history.retest is None else scores.weighted(self.weights)

    @property
    def weights(self) -> Floats:
        """How many outcomes one more play of each instance would count as, (instances,)."""
        return self.history.weights(len(self.bank))


@dataclass(frozen=True, slots=True, eq=False)
class Branch:
    """An alternative, taken with probability `share`; it then draws an instance.

    Attributes:
        share: Probability of the branch.
        reason: Why it chooses an instance, in one word.
        probabilities: (instances,), summing to 1.
        because: Why this branch and no other, in words; empty if there is no more to say.
    """

    share: float
    reason: str
    probabilities: Floats
    because: str = ""


class Selector(Protocol):
    """Something that can choose the next instance: `Learner(selector=...)` takes any.

    Its answer follows from its arguments alone, so that a test can be repeated from its record.
    """

    def branches(self, context: SelectionContext, allowed: Mask) -> tuple[Branch, ...]:
        """Describe how it would choose.

        Args:
            context: What to base the choice on.
            allowed: (instances,), at least one of them True.

        Returns:
            Branches whose shares sum to 1; empty if it has no instance to offer.
        """
        ...


class Criterion(Protocol):
    """A measure of how much each instance is worth; larger is better."""

    def worth(self, context: SelectionContext) -> Floats:
        """The worth of each instance, (instances,)."""
        ...


@dataclass(frozen=True, slots=True)
class VarianceDrop:
    """Expected drop of variance summed over the capabilities, as shares of their squared range."""

    def worth(self, context: SelectionContext) -> Floats:
        """The worth of each instance, (instances,)."""
        return context.scores.total


@dataclass(frozen=True, slots=True)
class Information:
    """Expected information about capabilities, in nats.

    Attributes:
        about: Names of the capabilities; all if empty.
    """

    about: tuple[str, ...] = ()

    def worth(self, context: SelectionContext) -> Floats:
        """The worth of each instance, (instances,).

        Raises:
            ValueError: A name in `about` is not a capability of the layout.
        """
        layout = context.bank.layout
        names = [layout.latents[i].name for i in layout.capabilities]
        if unknown := [name for name in self.about if name not in names]:
            raise ValueError(f"{unknown[0]!r} is not a capability; there are: {', '.join(names)}")
        places = [k for k, name in enumerate(names) if not self.about or name in self.about]
        return context.gains.information(context.posterior, places) * context.weights


@dataclass(frozen=True, slots=True)
class Deviation:
    """Standard deviation of the outcome, as the posterior predicts it.

    Draws in proportion to it estimate the success rate of the battery with the least variance, if
    the predictions hold (Zrnic and Candes 2024, Active statistical inference).
    """

    def worth(self, context: SelectionContext) -> Floats:
        """The worth of each instance, (instances,)."""
        return np.sqrt(np.clip(context.scores.predicted * (1.0 - context.scores.predicted), 0, 1))


@dataclass(frozen=True, slots=True)
class Threshold:
    """How near an instance's hardest demand is to the estimated ability.

    The hardest demand is the one with the smallest margin, as a share of the capability's range.
    """

    def worth(self, context: SelectionContext) -> Floats:
        """Minus the absolute margin of the hardest demand, (instances,), and at least -10."""
        layout = context.bank.layout
        spans = np.array([layout.latents[i].prior.span for i in layout.capabilities])
        margins = (context.scores.mean - context.bank.demands) / spans
        hardest = np.fmin.reduce(margins, axis=1, initial=np.inf)
        return -np.minimum(np.abs(hardest), 10.0)


@dataclass(frozen=True, slots=True)
class Aimed:
    """The worth by another criterion, which is at least 0, where success is as likely as wanted.

    The worth falls off as a normal density does in the difference to the aim: agents whom failures
    discourage are given what they mostly pass, and of that what is most informative. Eggen and
    Verschoor (2006) take items whose information is greatest at such a rate, for one ability; here
    it is the rate that the posterior predicts, so that any layout can be aimed.

    Attributes:
        criterion: The other criterion.
        aim: Probability of success that is aimed at.
    """

    criterion: Criterion
    aim: float

    def worth(self, context: SelectionContext) -> Floats:
        """The worth of each instance, (instances,)."""
        off = (context.scores.predicted - self.aim) / AIM_WIDTH
        return self.criterion.worth(context) * portable.exp(-0.5 * off**2)


@dataclass(frozen=True, slots=True)
class PerSecond:
    """The worth by another criterion, which is at least 0, per expected second of play."""

    criterion: Criterion

    def worth(self, context: SelectionContext) -> Floats:
        """The worth of each instance, (instances,)."""
        return self.criterion.worth(context) / context.bank.seconds


@dataclass(frozen=True, slots=True)
class Best:
    """The instance of greatest worth; ties are broken at random."""

    criterion: Criterion
    reason: str = "informative"

    def branches(self, context: SelectionContext, allowed: Mask) -> tuple[Branch, ...]:
        """Return one branch, on the best instances."""
        worth = np.where(allowed, self.criterion.worth(context), -np.inf)
        best = worth >= worth.max() - _TIE * abs(worth.max())
        return (Branch(1.0, self.reason, _uniform(best)),)


@dataclass(frozen=True, slots=True)
class WorthProportional:
    """Any instance, with probability proportional to a power of its worth.

    The most informative instances are those where the layout is steepest, which is also where a
    wrong layout misleads most. If only these were played, an agent that the layout does not
    describe would look like a different agent that it does describe (docs/research/adaptive.md).

    In a large battery, most of what is drawn in this way would be one of the many instances that
    tell little. So most draws are among the best. What is left for the others keeps every instance
    open, without which outcomes could not be weighted to speak of the whole battery.

    Attributes:
        criterion: The worth of instances, at least 0.
        sharpness: The power of the worth.
        among: Number of the best instances that get all but `REST` of the draws at least, where
            those of equal worth, such as variants, count as one.
    """

    criterion: Criterion
    sharpness: float
    among: int = SPREAD
    reason: str = "informative"

    def branches(self, context: SelectionContext, allowed: Mask) -> tuple[Branch, ...]:
        """Return one branch, on all allowed instances."""
        worth = np.where(allowed, self.criterion.worth(context), 0.0)
        most = worth.max()
        if most <= 0.0:
            return (Branch(1.0, self.reason, _uniform(allowed)),)
        odds = portable.power(worth / most, self.sharpness)
        chances: Floats = odds / odds.sum()
        if (least := portable.distinct_rank(worth, self.among)) is not None:
            best = worth >= least
            share = float(chances[best].sum())
            if share < 1.0 - REST:
                chances = chances * np.where(best, (1.0 - REST) / share, REST / (1.0 - share))
        return (Branch(1.0, self.reason, chances),)


@dataclass(frozen=True, slots=True)
class UniformRandom:
    """Any instance, all with the same probability."""

    reason: str = "random"

    def branches(self, context: SelectionContext, allowed: Mask) -> tuple[Branch, ...]:
        """Return one branch, on all allowed instances."""
        return (Branch(1.0, self.reason, _uniform(allowed)),)


@dataclass(frozen=True, slots=True)
class ListOrder:
    """The instances of a list in its order, each as often as it is listed.

    Attributes:
        order: Rows of the instances.
    """

    order: tuple[int, ...]
    reason: str = LISTED

    def branches(self, context: SelectionContext, allowed: Mask) -> tuple[Branch, ...]:
        """Return one branch on the next instance of the list; none after its end."""
        left = context.history.exposures(len(context.bank)).tolist()
        for row in self.order:
            if left[row]:
                left[row] -= 1
            elif allowed[row]:
                return (Branch(1.0, self.reason, _uniform(np.arange(len(allowed)) == row)),)
        return ()


@dataclass(frozen=True, slots=True)
class Probe:
    """A repeat of an instance, to learn how random the agent is until that is known well enough.

    Instances whose outcome would be uncertain if drawn anew are preferred, since an agreement tells
    most there.

    Attributes:
        exposures: How often an instance may be played; 0 for any number of times.
    """

    exposures: int
    reason: str = "probe"

    def branches(self, context: SelectionContext, allowed: Mask) -> tuple[Branch, ...]:
        """Return one branch; none if nothing was played or if the randomness is known.

        It does not matter how much repeats count, so `allowed` is not used.
        """
        retest = context.history.retest
        if retest is None or retest.sd <= SETTLED:
            return ()
        begun = context.history.exposures(len(context.bank))
        open_ones = (begun > 0) & ~context.bank.offered
        open_ones[list(context.history.pending)] = False
        if self.exposures:
            open_ones &= begun < self.exposures
        if not open_ones.any():
            return ()
        predicted = context.scores.predicted
        spread = np.where(open_ones, np.maximum(predicted * (1.0 - predicted), 1e-3), 0.0)
        return (Branch(1.0, self.reason, spread / spread.sum()),)


@dataclass(frozen=True, slots=True)
class First:
    """One selector as long as it offers anything, then another.

    Attributes:
        first: The selector that is asked first.
        then: The selector that is asked if the first offers nothing.
    """

    first: Selector
    then: Selector

    def branches(self, context: SelectionContext, allowed: Mask) -> tuple[Branch, ...]:
        """Return the branches of the first selector, or else of the second."""
        return self.first.branches(context, allowed) or self.then.branches(context, allowed)


@dataclass(frozen=True, slots=True)
class StratifiedRandom:
    """Any instance of a paradigm that is due, all paradigms that are due with the same probability.

    A paradigm is owed plays in proportion to its share of the battery, and those furthest behind
    are due. If all were owed the same, rare paradigms would get most of the plays; where the layout
    is wrong about these, it would then be wrong about everything (docs/research/adaptive.md).
    """

    reason: str = "random"

    def branches(self, context: SelectionContext, allowed: Mask) -> tuple[Branch, ...]:
        """Return one branch, on the allowed instances of the paradigms that are due."""
        members, plays = context.bank.members, context.history.plays(context.bank)
        open_ones = [name for name, rows in members.items() if allowed[rows].any()]
        if not open_ones:
            return ()
        played = sum(plays.values()) / sum(map(len, members.values()))
        ahead = {name: plays[name] - played * len(members[name]) for name in open_ones}
        least = min(ahead.values()) + _ROUNDING
        due = [name for name in open_ones if ahead[name] <= least]
        share, chances = 0.0, np.zeros(len(allowed))
        for name in due:
            share += 1.0 / len(due)
            chances = chances + 1.0 / len(due) * _uniform(_only(allowed, members[name]))
        return (Branch(share, self.reason, chances / share),)


@dataclass(frozen=True, slots=True)
class OnDemand:
    """Another selector's choice in the battery, unless something better could be made.

    Attributes:
        selector: The selector that chooses in the battery.
        criterion: The worth of instances, at least 0.
        enough: The battery's best instance is good enough if it is worth this share of the best
            offer.
    """

    selector: Selector
    criterion: Criterion
    enough: float
    reason: str = "generated"

    def branches(self, context: SelectionContext, allowed: Mask) -> tuple[Branch, ...]:
        """Return the other selector's branches, or one branch on the best offer."""
        own, offered = allowed & ~context.bank.offered, allowed & context.bank.offered
        worth = self.criterion.worth(context)
        most, best = (float(worth[rows].max(initial=0.0)) for rows in (own, offered))
        if own.any() and most >= self.enough * best:
            return self.selector.branches(context, own)
        if not offered.any():
            return ()
        because = (
            f"the best of the battery would tell {most / best:.0%} of what this does"
            if own.any()
            else EXHAUSTED
        )
        offers = Best(self.criterion, self.reason).branches(context, offered)
        return tuple(replace(b, because=because) for b in offers)


@dataclass(frozen=True, slots=True)
class CoolDown:
    """Another selector's choice that avoids variants of the last instances if it can.

    Attributes:
        selector: The selector that chooses among the rest.
        episodes: Number of last episodes whose variants are avoided.
    """

    selector: Selector
    episodes: int = 5

    def branches(self, context: SelectionContext, allowed: Mask) -> tuple[Branch, ...]:
        """Return the other selector's branches among instances that are not cooling down."""
        started = context.history.started
        last = started[max(len(started) - self.episodes, 0) :]
        variants = context.bank.variants
        rested = allowed & ~np.isin(variants, variants[last])
        return self.selector.branches(context, rested if rested.any() else allowed)


@dataclass(frozen=True, slots=True)
class Mixture:
    """One of several selectors, by chance.

    Attributes:
        parts: Pairs of share and selector; the shares sum to 1.
    """

    parts: tuple[tuple[float, Selector], ...] = field(default=())

    def __post_init__(self) -> None:
        total = sum(share for share, _ in self.parts)
        if abs(total - 1.0) > 1e-9 or any(share < 0.0 for share, _ in self.parts):
            raise ValueError(f"shares of a mixture must be at least 0 and sum to 1, not {total}")

    def branches(self, context: SelectionContext, allowed: Mask) -> tuple[Branch, ...]:
        """Return the branches of all parts with a share above 0."""
        offers = [(s, part.branches(context, allowed)) for s, part in self.parts if s > 0.0]
        kept = [(share, offer) for share, offer in offers if offer]
        whole = sum(share for share, _ in kept)
        return tuple(
            replace(b, share=share / whole * b.share) for share, offer in kept for b in offer
        )


def propensities(branches: Sequence[Branch], size: int) -> Floats:
    """Probability of every instance over all branches, (instances,)."""
    return np.asarray(sum((b.share * b.probabilities for b in branches), np.zeros(size)))


def cap_chances(chances: Floats, most: float, allowed: Mask) -> Floats:
    """Lower all chances to a cap, and give what is over to the others in proportion.

    Where all that have a chance are at the cap, the rest goes evenly to all that are allowed. If
    there are too few of these, all have the same chance.

    Args:
        chances: (instances,), summing to 1.
        most: The cap.
        allowed: (instances,), which may be chosen.
    """
    found, full = chances, np.zeros(len(chances), np.bool_)
    while found.max() > most * (1.0 + _ROUNDING):
        full |= found >= most
        free = allowed & ~full
        if not free.any():
            return _uniform(allowed)
        weights = np.where(free, chances, 0.0)
        weights = weights if weights.any() else free.astype(np.float64)
        rest = 1.0 - most * np.count_nonzero(full)
        found = np.where(full, most, rest * weights / weights.sum())
    return found


def _uniform(mask: Mask) -> Floats:
    return mask / np.count_nonzero(mask)


def _only(allowed: Mask, rows: npt.NDArray[np.int64]) -> Mask:
    mask = np.zeros(len(allowed), dtype=np.bool_)
    mask[rows] = allowed[rows]
    return mask
