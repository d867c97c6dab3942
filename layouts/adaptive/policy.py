"""Choosing by a policy: builds the selector for it and draws the choices."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.extending import plugins
from animalcat.layouts.adaptive.bank import Bank, History
from animalcat.layouts.adaptive.battery_rate import RateBettor, Wager
from animalcat.layouts.adaptive.information import ExpectedGains, GainEstimator
from animalcat.layouts.adaptive.peers import Peers
from animalcat.layouts.adaptive.plan import MOST_SHARPNESS, Policy
from animalcat.layouts.adaptive.selectors import (
    LISTED,
    Aimed,
    Best,
    Branch,
    CoolDown,
    Criterion,
    Deviation,
    First,
    Information,
    ListOrder,
    Mixture,
    OnDemand,
    PerSecond,
    Probe,
    SelectionContext,
    Selector,
    StratifiedRandom,
    Threshold,
    UniformRandom,
    VarianceDrop,
    WorthProportional,
    cap_chances,
    propensities,
)
from animalcat.layouts.inference.live import LivePosterior
from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.watching.watch import DOUBT
from animalcat.portable import arrays as portable

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]
Mask: TypeAlias = npt.NDArray[np.bool_]


RANDOM: Final = "random"
PLUGIN: Final = "plugin"
CHECK: Final = "check"
PAIR: Final = "pair"
"""The reasons of a random draw, of a choice of a plugin, of a random draw where a rival of the
layout would show or a cue misleads, and of what makes a pair with what was begun, which decides
it."""
_SHARPER: Final = 5.0
"""How many times as sharp choices are without doubt as they are in full doubt."""
_REPEATING: Final = 5.0
"""Factor of the sharpness of choices where instances may be repeated: what is most informative is
not used up then (docs/research/adaptive.md)."""
_LEAN: Final = 0.15
"""Share of the choices among instances in which an open cue misleads, while success is expected
there. Two or three of them rule a cue out."""
_WHY_CUE: Final = "it shows whether the agent relies on a cue where it seems to have a capability"
_WHY_CHECK: Final = "the layout was hardly tried where such arenas are, or it may be wrong there"
_KEPT: Final = frozenset({"listed", "random", "rate", "stratified"})
"""Policies that nothing changes: their draws are what somebody relies on."""
_EVENLY: Final = 0.3
"""Share of even draws under the policy "rate", so that no weight is large where the layout is sure
and wrong."""
_ROUNDING: Final = 1e-6
"""How far probabilities may sum to something else than 1."""
WORTHWHILE: Final = 0.05
"""A repeat that counts as less of an outcome than this is only played as a probe."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A chosen instance and why it was chosen.

    Attributes:
        index: Its row in the bank.
        instance: Its name.
        score: Expected drop of variance, summed over capabilities as shares of their squared range.
        propensity: Probability with which the policy chose this instance.
        predicted: Predicted probability of success, or mean score.
        margins: For each capability that it demands, posterior mean minus demand, in its unit.
        reason: The kind of draw, for example "informative", "random" or "generated"; "pair"
            for what makes a pair with what was begun, which decides it.
        alternatives: Names and scores of the best other instances.
        because: Why this instance and no other, in words; empty if there is no more to say.
        peers: The other instances of its paradigm that could have been begun; None for a repeat and
            for an offer.
        offered: Whether it is an offer, for which an instance is to be made.
        wager: What its outcome will say of the success rate on the whole battery; None for a repeat
            and for an offer, and if nothing was asked of it.
        episode: Number of the episode for which it was chosen.
    """

    index: int
    instance: str
    score: float
    propensity: float
    predicted: float
    margins: Mapping[str, float]
    reason: str
    alternatives: tuple[tuple[str, float], ...] = ()
    because: str = ""
    peers: Peers | None = None
    offered: bool = False
    wager: Wager | None = None
    episode: int = 0


class PluginSelector:
    """The selector of another package.

    What it chooses is never recorded as random, because random draws show whether a layout is
    wrong.
    """

    def __init__(self, name: str) -> None:
        """Make it.

        Args:
            name: Name of the plugin (`animalcat.extending.plugins`), called without arguments.

        Raises:
            ValueError: It cannot be loaded or made, or is no selector; the message says why.
        """
        self._name = name
        self._selector: Selector = plugins.call_plugin("policy", name)
        if not callable(getattr(self._selector, "branches", None)):
            raise ValueError(
                f"the policy {name!r}, a plugin, makes a {type(self._selector).__name__}, which "
                "has no method `branches(context, allowed)`"
            )

    def branches(self, context: SelectionContext, allowed: Mask) -> tuple[Branch, ...]:
        """Return the branches of the other package's selector, each with its own word for it.

        Raises:
            PluginError: It fails, or what it gives are no probabilities of what is allowed.
        """
        called = f"the policy {self._name!r}, a plugin"
        try:
            branches = tuple(self._selector.branches(context, allowed))
            _insist_on_chances(called, branches, context.bank, allowed)
        except Exception as error:
            ours = str(error).startswith(called)
            what = str(error) if ours else f"{called}, fails: {type(error).__name__}: {error}"
            raise plugins.PluginError(what) from error
        return tuple(
            replace(
                branch, reason=PLUGIN, because=f"{branch.reason}: {branch.because}".rstrip(": ")
            )
            for branch in branches
        )


class PolicySelector:
    """The selector of a policy. The more a layout is in doubt, the more it draws at random.

    For one thread at a time.
    """

    def __init__(self, policy: Policy, bank: Bank, aside: Collection[str] = ()) -> None:
        """Build it, for the usual doubt.

        Args:
            policy: How to choose.
            bank: The instances to choose from.
            aside: Names of instances that are no longer in the bank; the policy may list them.

        Raises:
            ValueError: The policy's list names an instance that never was in the bank.
        """
        self._policy, self._bank, self._aside = policy, bank, frozenset(aside)
        self._built = DOUBT, self._at(DOUBT)

    def branches(self, context: SelectionContext, allowed: Mask) -> tuple[Branch, ...]:
        """Return the branches of the policy's selectors, mixed according to the doubt."""
        if context.doubt != self._built[0]:
            self._built = context.doubt, self._at(context.doubt)
        return self._built[1].branches(context, allowed)

    def _at(self, doubt: float) -> Selector:
        factor = (_SHARPER - (_SHARPER - 1.0) * doubt) / (_SHARPER - (_SHARPER - 1.0) * DOUBT)
        if self._policy.exposures != 1:
            factor *= _REPEATING
        policy = replace(
            self._policy,
            random_share=min(doubt / DOUBT * self._policy.random_share, 1.0),
            sharpness=min(factor * self._policy.sharpness, MOST_SHARPNESS),
        )
        return _selector_of(policy, self._bank, self._aside)


class Chooser:
    """Chooses from one bank, for any number of posteriors. For one thread at a time."""

    def __init__(
        self,
        bank: Bank,
        policy: Policy | None = None,
        *,
        selector: Selector | None = None,
        aside: Collection[str] = (),
        most: float = 1.0,
    ) -> None:
        """Build the policy's selector.

        Args:
            bank: The instances to choose from.
            policy: How to choose; by default `Policy()`.
            selector: Chooses in place of the policy, which then only says how often an instance may
                be played and whether any may be made.
            aside: Names of instances that are no longer in the bank; the policy may list them.
            most: The greatest chance that an instance may have of being chosen next, unless it is
                listed.
        """
        self.bank = bank
        self._most = most
        self.policy = policy or Policy()
        self.gains = GainEstimator(bank)
        self._ours = selector is None
        order = set(self.policy.order)
        listed = [row for row, name in enumerate(bank.names) if name in order] if order else []
        self._listed: Ints = np.array(listed, np.int64)
        self._selector = selector or PolicySelector(self.policy, bank, aside)
        self._fallback = PolicySelector(_fallback_of(self.policy), bank, aside)

    def choose(
        self,
        posterior: LivePosterior,
        history: History,
        episode: int,
        *,
        distrust: bool = False,
        doubt: float = DOUBT,
        bettor: RateBettor | None = None,
        wanted: Floats | None = None,
        telling: Floats | None = None,
    ) -> Choice | None:
        """Choose the next instance.

        Args:
            posterior: The current posterior.
            history: What was played and what is being played.
            episode: Number of the episode to come; it keys the randomness.
            distrust: Whether the layout is contradicted. What instances would tell is then unknown,
                so the choice is stratified random, after what the policy lists.
            doubt: How far the layout is in doubt, from 0 to 1. The more it is, the more is drawn at
                random, in proportion, and the softer choices are.
            bettor: What stakes on the success rate of the whole battery; None: nothing is staked.
            wanted: (instances,): how much each is wanted for the check of the layout before the
                last word, to which its chance is proportional; None: there is none to be made.
            telling: (instances,): 1 for those that tell of an open cue, to which a share of the
                choices goes, and 0 for the others; None: there is none.

        Returns:
            The choice, or None if no instance is left.
        """
        branches = self._branches(posterior, history, distrust, doubt, wanted, telling)
        if not branches:
            return None
        generator = rng(posterior.seed, "select", episode)
        shares = np.array([b.share for b in branches])
        branch = branches[_draw_index(shares, generator.random())]
        index = _draw_index(branch.probabilities, generator.random())
        scores = self.scores(posterior, history)
        chances = propensities(branches, len(self.bank))
        available = self.available(history, distrust=distrust)
        return Choice(
            index=index,
            instance=self.bank.names[index],
            score=float(scores.total[index]),
            propensity=float(chances[index]),
            predicted=float(scores.predicted[index]),
            margins=self._margins(scores.mean, index),
            reason=branch.reason,
            alternatives=self._alternatives(scores.total, available, index),
            because=branch.because,
            peers=self._peers(history, index, chances, scores.predicted),
            offered=bool(self.bank.offered[index]),
            wager=self._wager(history, index, chances, scores.predicted, bettor, branch.reason),
            episode=episode,
        )

    def scores(self, posterior: LivePosterior, history: History) -> ExpectedGains:
        """Expected gains of each instance now, allowing for pending episodes and repeats."""
        return SelectionContext(posterior, self.bank, history, self.gains).scores

    def available(self, history: History, *, distrust: bool = False) -> Mask:
        """Which instances may be chosen for what they tell or at random, (instances,).

        Repeats that would count for almost nothing are left out. An offer is used once.

        Args:
            history: What was played.
            distrust: Whether the layout is contradicted; if so, nothing is made on demand.
        """
        possible = self._playable(history, distrust)
        if history.retest is not None:
            possible &= history.weights(len(self.bank)) >= WORTHWHILE
        return possible

    def _playable(self, history: History, distrust: bool) -> Mask:
        """Which instances may be chosen for any reason, also as a probe, (instances,)."""
        exposures = history.exposures(len(self.bank))
        possible = ~self.bank.offered
        if self.policy.generate and not distrust:
            possible = possible | (self.bank.offered & (exposures == 0))
        if self.policy.exposures:
            possible &= exposures < self.policy.exposures
        return possible

    def _branches(
        self,
        posterior: LivePosterior,
        history: History,
        distrust: bool,
        doubt: float,
        wanted: Floats | None,
        telling: Floats | None,
    ) -> tuple[Branch, ...]:
        allowed = self.available(history, distrust=distrust)
        if not allowed.any():
            return ()
        if self.policy.pairs and (rest := self._rest(history, allowed)):
            return (rest,)
        branches = self._branches_drawn_from(
            posterior, history, allowed, distrust, doubt, wanted, telling
        )
        if self._most < 1.0:
            branches = tuple(
                one
                if one.reason == LISTED
                else replace(one, probabilities=cap_chances(one.probabilities, self._most, allowed))
                for one in branches
            )
        return self._in_sets(branches, history, allowed) if self.policy.pairs else branches

    def _rest(self, history: History, allowed: Mask) -> Branch | None:
        """The branch that goes on with an arena and its controls; None if none was begun."""
        sets = self.bank.sets
        left = allowed & (history.exposures(len(self.bank)) == 0) & ~self.bank.offered
        open_sets = np.zeros(len(sets), np.bool_)
        open_sets[sets[left]] = True
        started = history.started
        begun = np.flatnonzero(open_sets[sets[started]])
        if not begun.size:
            return None
        row = int(started[begun[0]])
        rest = left & (sets == sets[row])
        why = f"it makes a pair with {self.bank.names[row]}"
        return Branch(1.0, PAIR, rest / np.count_nonzero(rest), why)

    def _in_sets(
        self, branches: tuple[Branch, ...], history: History, allowed: Mask
    ) -> tuple[Branch, ...]:
        """Let an arena and its controls share their chances, so that any may come first."""
        fresh = allowed & (history.exposures(len(self.bank)) == 0)
        sets, size = self.bank.sets, len(self.bank)
        members = np.bincount(sets, fresh, size)[sets]

        def share_out(chances: Floats) -> Floats:
            whole = np.bincount(sets, np.where(fresh, chances, 0.0), size)[sets]
            return np.where(fresh & (members > 1.0), whole / np.maximum(members, 1.0), chances)

        return tuple(replace(b, probabilities=share_out(b.probabilities)) for b in branches)

    def _branches_drawn_from(
        self,
        posterior: LivePosterior,
        history: History,
        allowed: Mask,
        distrust: bool,
        doubt: float,
        wanted: Floats | None,
        telling: Floats | None,
    ) -> tuple[Branch, ...]:
        """The branches of the policy, or of the check of the layout, as if nothing made pairs."""
        if wanted is not None and not distrust and self._checks(history):
            worth = np.where(allowed & ~self.bank.offered, wanted, 0.0)
            if worth.any():
                return (Branch(1.0, CHECK, worth / worth.sum(), _WHY_CHECK),)
        context = SelectionContext(posterior, self.bank, history, self.gains, doubt)
        selector = self._fallback if distrust else self._selector
        branches = selector.branches(context, allowed)
        name = type(selector).__name__
        _insist_on_chances(name, branches, self.bank, self._playable(history, distrust))
        if telling is None or distrust or not self._checks(history):
            return branches
        worth = np.where(allowed & ~self.bank.offered, telling * context.scores.total, 0.0)
        if not worth.any():
            return branches
        return (
            *(replace(branch, share=(1.0 - _LEAN) * branch.share) for branch in branches),
            Branch(_LEAN, CHECK, worth / worth.sum(), _WHY_CUE),
        )

    def _checks(self, history: History) -> bool:
        """Whether the policy leaves it open what is played now: not before its list is done."""
        if not self._ours or self.policy.name in _KEPT:
            return False
        return bool((history.exposures(len(self.bank))[self._listed] > 0).all())

    def _peers(
        self, history: History, index: int, chances: Floats, predicted: Floats
    ) -> Peers | None:
        exposures = history.exposures(len(self.bank))
        if self.bank.offered[index] or exposures[index]:
            return None
        rows = self.bank.members[self.bank.paradigms[index]]
        rows = rows[exposures[rows] == 0]
        return Peers(
            left=len(rows),
            propensity=float(chances[rows].sum()),
            predicted=float(predicted[rows].mean()),
            open=bool((chances[rows] > 0.0).all()),
        )

    def _wager(
        self,
        history: History,
        index: int,
        chances: Floats,
        predicted: Floats,
        bettor: RateBettor | None,
        reason: str,
    ) -> Wager | None:
        """What is staked on an instance that is drawn from several, and for the first time."""
        begun = history.exposures(len(self.bank)) > 0
        if bettor is None or self.bank.offered[index] or begun[index]:
            return None
        # Without a draw, whether it succeeds tells nothing of the rest.
        if reason == PAIR or np.count_nonzero(chances) == 1:
            return None
        rows = np.flatnonzero((chances > 0.0) & ~begun & ~self.bank.offered)
        before = int(np.count_nonzero(begun & ~self.bank.offered))
        drawn = int(np.searchsorted(rows, index))
        odds = chances[rows] / chances[rows].sum()
        return bettor.wager(predicted[rows], odds, drawn, before)

    def _margins(self, mean: Floats, index: int) -> dict[str, float]:
        layout = self.bank.layout
        margins = mean - self.bank.demands[index]
        return {
            layout.latents[i].name: float(margins[k])
            for k, i in enumerate(layout.capabilities)
            if np.isfinite(margins[k])
        }

    def _alternatives(
        self, total: Floats, available: Mask, index: int, count: int = 3
    ) -> tuple[tuple[str, float], ...]:
        rest = available.copy()
        rest[index] = False
        rows: Ints = np.flatnonzero(rest)
        if len(rows) > count:
            rows = rows[portable.largest(total[rows], count)]
        best = rows[np.argsort(-total[rows], kind="stable")]
        return tuple((self.bank.names[int(row)], float(total[row])) for row in best)


def _insist_on_chances(name: str, branches: Sequence[Branch], bank: Bank, possible: Mask) -> None:
    """Refuse branches that are no chances, since propensities would be wrong.

    Raises:
        ValueError: Shares or probabilities are below 0 or do not sum to 1, are not of these
            instances, or are of some that may not be played now.
    """
    size = len(bank)
    sums = {"shares of the branches": sum(b.share for b in branches)} if branches else {}
    for b in branches:
        if b.share < 0.0:
            raise ValueError(f"{name}: the branch {b.reason!r} has a share below 0")
        if b.probabilities.shape != (size,):
            raise ValueError(
                f"{name}: the branch {b.reason!r} has probabilities of shape "
                f"{b.probabilities.shape}; give one for each of the {size} instances"
            )
        if (b.probabilities < 0.0).any():
            raise ValueError(f"{name}: the branch {b.reason!r} has a probability below 0")
        sums[f"probabilities of the branch {b.reason!r}"] = float(b.probabilities.sum())
    for what, whole in sums.items():
        if not abs(whole - 1.0) <= _ROUNDING:  # NaN is refused too
            raise ValueError(f"{name}: the {what} sum to {whole:g}; they must sum to 1")
    refused = (propensities(branches, size) > 0.0) & ~possible
    if refused.any():
        instance = bank.names[int(refused.argmax())]
        raise ValueError(
            f"{name}: {instance!r} has a probability above 0 and may not be played now; give "
            "probabilities to what is allowed"
        )


def _fallback_of(policy: Policy) -> Policy:
    """How to choose while the layout is contradicted: at random, but for what is listed.

    A list stays as it is, since agents are compared on it in its order. So do draws for the success
    rate, whose weights need no layout.
    """
    if policy.name in ("listed", "rate"):
        return policy
    return Policy(name="stratified", order=policy.order)


def _selector_of(policy: Policy, bank: Bank, aside: Collection[str]) -> Selector:
    """Build the selector of a policy; for `aside` see `Chooser`.

    Raises:
        ValueError: The policy's list names an instance that never was in the bank.
    """
    rows = {name: row for row, name in enumerate(bank.names)} if policy.order else {}
    listing = [name for name in policy.order if name not in aside]
    if unknown := [name for name in listing if name not in rows]:
        near = get_close_matches(unknown[0], rows, cutoff=0.0)
        raise ValueError(
            f"the list names {unknown[0]!r}, which is not in the battery of {len(rows)} instances; "
            f"nearest to it are {', '.join(near)}"
        )
    listed = ListOrder(tuple(rows[name] for name in listing))
    match policy.name:
        case "listed":
            return listed
        case "random":
            selector: Selector = UniformRandom()
        case "stratified":
            selector = StratifiedRandom()
        case "rate":
            drawn = WorthProportional(Deviation(), 1.0, len(bank))
            selector = Mixture(((1.0 - _EVENLY, drawn), (_EVENLY, UniformRandom())))
        case "plugin":
            selector = _with_random(policy, PluginSelector(policy.plugin))
        case _:
            criterion = _criterion(policy)
            selector = Best(criterion)
            if policy.sharpness and policy.name != "threshold":
                selector = WorthProportional(criterion, policy.sharpness)
            if policy.generate:
                selector = OnDemand(selector, criterion, policy.enough)
            selector = _with_random(policy, selector)
    if policy.cool_down:
        selector = CoolDown(selector, policy.cool_down)
    if policy.exposures != 1 and policy.probes:
        selector = Mixture(
            ((1.0 - policy.probes, selector), (policy.probes, Probe(policy.exposures)))
        )
    return First(listed, selector) if policy.order else selector


def _with_random(policy: Policy, selector: Selector) -> Selector:
    share = policy.random_share
    return Mixture(((1.0 - share, selector), (share, StratifiedRandom())))


def _criterion(policy: Policy) -> Criterion:
    criterion: Criterion
    match policy.name:
        case "information":
            criterion = Information(policy.about)
        case "threshold":
            return Threshold()  # a distance, which a shorter episode does not improve
        case _:
            criterion = VarianceDrop()
    if policy.aim:
        criterion = Aimed(criterion, policy.aim)
    return PerSecond(criterion) if policy.per_second else criterion


def _draw_index(probabilities: Floats, u: float) -> int:
    """The index that a uniform number selects; never one of probability 0."""
    possible = np.flatnonzero(probabilities)
    total = np.cumsum(probabilities[possible])
    return int(possible[min(int(np.sum(total <= u * total[-1])), possible.size - 1)])
