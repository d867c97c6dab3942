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
from animalcat.layouts.inference.live import LivePosterior

Floats: TypeAlias = npt.NDArray[np.float64]
Mask: TypeAlias = npt.NDArray[np.bool_]

_TIE: Final = 1e-9
"""Scores this near to the best, in shares of it, count as equal."""


SETTLED: Final = 0.1
"""Standard deviation of the agent's determinism at which it is known well enough."""

_ROUNDING: Final = 1e-9
"""Plays by which paradigms may differ and still count as equally due."""


@dataclass(frozen=True, slots=True)
class SelectionContext:
    """What a selector may look at.

    Attributes:
        posterior: What is known of the agent.
        bank: What can be played.
        history: What was played.
        gains: Works out what each instance would tell.
    """

    posterior: LivePosterior
    bank: Bank
    history: History
    gains: GainEstimator

    @property
    def scores(self) -> ExpectedGains:
        """What each instance would tell, pending episodes and repeats allowed for."""
        scores = self.gains.scores(self.posterior, self.history.pending)
        return scores if self.history.retest is None else scores.weighted(self.weights)

    @property
    def weights(self) -> Floats:
        """As how many outcomes one more play of each instance counts, (instances,)."""
        return self.history.weights(len(self.bank))


@dataclass(frozen=True, slots=True, eq=False)
class Branch:
    """One alternative: taken with `share`, then an instance by `probabilities`, which sum to 1.

    Attributes:
        share: Probability of the branch.
        reason: Why an instance is chosen in it, in a word.
        probabilities: (instances,).
        because: Why this branch and no other, in words, where there is more to say.
    """

    share: float
    reason: str
    probabilities: Floats
    because: str = ""


class Selector(Protocol):
    """Whatever can choose the next instance."""

    def branches(self, view: SelectionContext, allowed: Mask) -> tuple[Branch, ...]:
        """How it would choose.

        Args:
            view: What it may look at.
            allowed: (instances,), some of them True.

        Returns:
            Branches whose shares sum to 1; nothing where it has no instance to offer.
        """
        ...


class Criterion(Protocol):
    """How much each instance is worth: the larger, the better."""

    def worth(self, view: SelectionContext) -> Floats:
        """(instances,)."""
        ...


@dataclass(frozen=True, slots=True)
class VarianceDrop:
    """Expected drop of the variance of all capabilities, each in shares of its range."""

    def worth(self, view: SelectionContext) -> Floats:
        """(instances,)."""
        return view.scores.total


@dataclass(frozen=True, slots=True)
class Information:
    """Expected information about capabilities, in nats.

    Attributes:
        about: Their names; empty: all.
    """

    about: tuple[str, ...] = ()

    def worth(self, view: SelectionContext) -> Floats:
        """(instances,).

        Raises:
            ValueError: A name is no capability of the layout.
        """
        layout = view.bank.layout
        names = [layout.latents[i].name for i in layout.capabilities]
        if unknown := [name for name in self.about if name not in names]:
            raise ValueError(f"{unknown[0]!r} is no capability; there are: {', '.join(names)}")
        places = [k for k, name in enumerate(names) if not self.about or name in self.about]
        return view.gains.information(view.posterior, places) * view.weights


@dataclass(frozen=True, slots=True)
class Threshold:
    """Nearness of an instance's hardest demand to the estimated ability.

    The hardest demand is the one with the least margin, in shares of the capability's range.
    """

    def worth(self, view: SelectionContext) -> Floats:
        """(instances,): 0 where the margin is 0, less where it is not; least where none is."""
        layout = view.bank.layout
        spans = np.array([layout.latents[i].prior.span for i in layout.capabilities])
        margins = (view.scores.mean - view.bank.demands) / spans
        hardest = np.fmin.reduce(margins, axis=1, initial=np.inf)
        return -np.minimum(np.abs(hardest), 10.0)


@dataclass(frozen=True, slots=True)
class PerSecond:
    """The worth by another criterion, which is at least 0, for each expected second of play."""

    criterion: Criterion

    def worth(self, view: SelectionContext) -> Floats:
        """(instances,)."""
        return self.criterion.worth(view) / view.bank.seconds


@dataclass(frozen=True, slots=True)
class Best:
    """The instance of most worth; equal ones share the choice."""

    criterion: Criterion
    reason: str = "informative"

    def branches(self, view: SelectionContext, allowed: Mask) -> tuple[Branch, ...]:
        """One branch, on the best."""
        worth = np.where(allowed, self.criterion.worth(view), -np.inf)
        best = worth >= worth.max() - _TIE * abs(worth.max())
        return (Branch(1.0, self.reason, _uniform(best)),)


@dataclass(frozen=True, slots=True)
class WorthProportional:
    """Any instance, the likelier the more it is worth.

    What is worth most is where the layout is steepest, hence where it shows most when it is wrong.
    Always playing that makes an agent that the layout does not describe look like another one that
    it does (docs/adaptive.md).

    Attributes:
        criterion: What instances are worth, at least 0.
        sharpness: Power of the worth that probabilities are proportional to.
    """

    criterion: Criterion
    sharpness: float
    reason: str = "informative"

    def branches(self, view: SelectionContext, allowed: Mask) -> tuple[Branch, ...]:
        """One branch, on all that are allowed."""
        worth = np.where(allowed, self.criterion.worth(view), 0.0)
        most = worth.max()
        if most <= 0.0:
            return (Branch(1.0, self.reason, _uniform(allowed)),)
        odds = (worth / most) ** self.sharpness
        return (Branch(1.0, self.reason, odds / odds.sum()),)


@dataclass(frozen=True, slots=True)
class UniformRandom:
    """Any instance, all with the same probability."""

    reason: str = "random"

    def branches(self, view: SelectionContext, allowed: Mask) -> tuple[Branch, ...]:
        """One branch."""
        return (Branch(1.0, self.reason, _uniform(allowed)),)


@dataclass(frozen=True, slots=True)
class Listed:
    """The instances of a list, in its order, each as often as it stands there.

    Attributes:
        order: Rows.
    """

    order: tuple[int, ...]
    reason: str = "listed"

    def branches(self, view: SelectionContext, allowed: Mask) -> tuple[Branch, ...]:
        """One branch on the next of the list; none after its end."""
        left = list(view.history.started)
        for row in self.order:
            if row in left:
                left.remove(row)
            elif allowed[row]:
                return (Branch(1.0, self.reason, _uniform(np.arange(len(allowed)) == row)),)
        return ()


@dataclass(frozen=True, slots=True)
class Probe:
    """An instance that was played before, to tell how random the agent is, until that is known.

    The more an outcome would be open if it was drawn anew, the more likely: there an agreement
    tells most.

    Attributes:
        exposures: How often an instance may be played; 0: any number of times.
    """

    exposures: int
    reason: str = "probe"

    def branches(self, view: SelectionContext, allowed: Mask) -> tuple[Branch, ...]:
        """One branch; none where nothing was played or enough is known.

        What repeats count as does not matter here, nor hence what is allowed.
        """
        retest = view.history.retest
        if retest is None or retest.sd <= SETTLED:
            return ()
        begun = view.history.exposures(len(view.bank))
        open_ones = (begun > 0) & ~view.bank.offered
        open_ones[list(view.history.pending)] = False
        if self.exposures:
            open_ones &= begun < self.exposures
        if not open_ones.any():
            return ()
        predicted = view.scores.predicted
        spread = np.where(open_ones, np.maximum(predicted * (1.0 - predicted), 1e-3), 0.0)
        return (Branch(1.0, self.reason, spread / spread.sum()),)


@dataclass(frozen=True, slots=True)
class First:
    """One selector as long as it offers anything, then another.

    Attributes:
        first: The one.
        then: The other.
    """

    first: Selector
    then: Selector

    def branches(self, view: SelectionContext, allowed: Mask) -> tuple[Branch, ...]:
        """Those of the first, or else of the other."""
        return self.first.branches(view, allowed) or self.then.branches(view, allowed)


@dataclass(frozen=True, slots=True)
class Balanced:
    """Only paradigms that are due: each is owed as many plays as it has a share of the battery.

    A paradigm may be `slack` plays further ahead of what it is owed than the one that is furthest
    behind. Owing all the same would give rare paradigms most of the plays: where the layout is
    wrong about those, it is then wrong about everything (docs/adaptive.md).

    With `evenly`, chance first picks among the paradigms that are due, all with the same
    probability: then a random choice is stratified by paradigm.
    """

    selector: Selector
    slack: int = 1
    evenly: bool = False

    def branches(self, view: SelectionContext, allowed: Mask) -> tuple[Branch, ...]:
        """The other selector's, among the paradigms that are due."""
        members, plays = view.bank.members, view.history.plays(view.bank)
        open_ones = [name for name, rows in members.items() if allowed[rows].any()]
        if not open_ones:
            return ()
        share = sum(plays.values()) / sum(map(len, members.values()))
        ahead = {name: plays[name] - share * len(members[name]) for name in open_ones}
        least = min(ahead.values()) + _ROUNDING
        due = [name for name in open_ones if ahead[name] <= least + self.slack]
        masks = [_only(allowed, members[name]) for name in due]
        if not self.evenly:
            return self.selector.branches(view, np.logical_or.reduce(masks))
        offers = [self.selector.branches(view, mask) for mask in masks]
        return _merged([(1.0 / len(offers), offer) for offer in offers])


@dataclass(frozen=True, slots=True)
class OnDemand:
    """The other selector's choice in the battery, unless something better could be made.

    Attributes:
        selector: Who chooses in the battery.
        criterion: What instances are worth, at least 0.
        enough: The best instance of the battery is good enough when it is worth this share of the
            best that could be made.
    """

    selector: Selector
    criterion: Criterion
    enough: float
    reason: str = "generated"

    def branches(self, view: SelectionContext, allowed: Mask) -> tuple[Branch, ...]:
        """The other's, or one branch on the best offer."""
        own, offered = allowed & ~view.bank.offered, allowed & view.bank.offered
        worth = self.criterion.worth(view)
        most, best = (float(worth[rows].max(initial=0.0)) for rows in (own, offered))
        if own.any() and most >= self.enough * best:
            return self.selector.branches(view, own)
        if not offered.any():
            return ()
        because = (
            f"the best of the battery would tell {most / best:.0%} of what this does"
            if own.any()
            else "the battery is exhausted"
        )
        made = Best(self.criterion, self.reason).branches(view, offered)
        return tuple(replace(b, because=because) for b in made)


@dataclass(frozen=True, slots=True)
class CoolDown:
    """Not the variants of what was played last, as long as there is anything else.

    Attributes:
        selector: Who chooses among the rest.
        episodes: How many of the last episodes count.
    """

    selector: Selector
    episodes: int = 5

    def branches(self, view: SelectionContext, allowed: Mask) -> tuple[Branch, ...]:
        """The other selector's, among what is rested."""
        last = view.history.started[-self.episodes :] if self.episodes else ()
        variants = view.bank.variants
        rested = allowed & ~np.isin(variants, variants[list(last)])
        return self.selector.branches(view, rested if rested.any() else allowed)


@dataclass(frozen=True, slots=True)
class Mixture:
    """One of several selectors, by chance.

    Attributes:
        parts: Share and selector; the shares sum to 1.
    """

    parts: tuple[tuple[float, Selector], ...] = field(default=())

    def __post_init__(self) -> None:
        total = sum(share for share, _ in self.parts)
        if abs(total - 1.0) > 1e-9 or any(share < 0.0 for share, _ in self.parts):
            raise ValueError(f"shares of a mixture must be at least 0 and sum to 1, not {total}")

    def branches(self, view: SelectionContext, allowed: Mask) -> tuple[Branch, ...]:
        """Branches of all parts of some share."""
        offers = [(s, part.branches(view, allowed)) for s, part in self.parts if s > 0.0]
        kept = [(share, offer) for share, offer in offers if offer]
        whole = sum(share for share, _ in kept)
        return tuple(
            replace(b, share=share / whole * b.share) for share, offer in kept for b in offer
        )


def stratified_random() -> Selector:
    """Any instance of the paradigms that are furthest behind what they are owed."""
    return Balanced(UniformRandom(), slack=0, evenly=True)


def propensities(branches: Sequence[Branch], size: int) -> Floats:
    """Probability of every instance over all branches, (instances,)."""
    return np.asarray(sum((b.share * b.probabilities for b in branches), np.zeros(size)))


def _merged(offers: Sequence[tuple[float, tuple[Branch, ...]]]) -> tuple[Branch, ...]:
    """One branch for each reason."""
    totals: dict[str, tuple[float, Floats]] = {}
    for share, offer in offers:
        for b in offer:
            weight = share * b.share
            before, sums = totals.get(b.reason, (0.0, np.zeros(len(b.probabilities))))
            totals[b.reason] = (before + weight, sums + weight * b.probabilities)
    return tuple(Branch(share, reason, sums / share) for reason, (share, sums) in totals.items())


def _uniform(mask: Mask) -> Floats:
    return mask / np.count_nonzero(mask)


def _only(allowed: Mask, rows: npt.NDArray[np.int64]) -> Mask:
    mask = np.zeros(len(allowed), dtype=np.bool_)
    mask[rows] = allowed[rows]
    return mask
