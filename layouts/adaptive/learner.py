"""The adaptive test as ask and tell: what to play next, what came of it, and whether to stop."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass
from functools import cached_property
from importlib import import_module
from operator import is_not
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.adaptive.bank import Bank, History, Rows
from animalcat.layouts.adaptive.battery_rate import (
    BatteryRate,
    RateBettor,
    Wager,
    battery_rate,
    predict_rate,
)
from animalcat.layouts.adaptive.bound import InformationBound, information_bounds
from animalcat.layouts.adaptive.outcomes import Outcome, WeightedOutcomes
from animalcat.layouts.adaptive.plan import RULES, Policy, StoppingRule, insist_on_rules
from animalcat.layouts.adaptive.policy import RANDOM, Choice, Chooser
from animalcat.layouts.adaptive.retest import UNKNOWN, DeterminismPrior
from animalcat.layouts.adaptive.seen import NOTHING_SEEN, Seen, add_episode, parts_of
from animalcat.layouts.adaptive.selectors import Selector
from animalcat.layouts.adaptive.statuses import CONFIRMED, OtherEnd
from animalcat.layouts.adaptive.stopping import RuleStopper, Stopper, StopVerdict
from animalcat.layouts.adaptive.telling import Given, values_of
from animalcat.layouts.inference import messages
from animalcat.layouts.inference.evidence import evidence_digest
from animalcat.layouts.inference.live import LivePosterior, TellError
from animalcat.layouts.inference.summary import NodeSummary
from animalcat.layouts.model.growing import Growing
from animalcat.layouts.model.likelihood import as_shares, trials_of
from animalcat.layouts.model.nodes import Cue
from animalcat.layouts.model.spec import Bernoulli, Beta, Layout
from animalcat.layouts.model.tables import of_kind
from animalcat.layouts.reporting.profile import Profile
from animalcat.layouts.watching.alarm import MOST, QUIET, Suspect
from animalcat.layouts.watching.beyond import predict_instance
from animalcat.layouts.watching.cues import CueFinding, cue_finding, instances_to_try
from animalcat.layouts.watching.hindsight import Belief
from animalcat.layouts.watching.rivals import Examination
from animalcat.layouts.watching.watch import BettingWatch, LayoutWatch, Play, Played
from animalcat.portable import arrays as portable
from animalcat.portable import scalars

if TYPE_CHECKING:
    import pandas as pd

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]
Mask: TypeAlias = npt.NDArray[np.bool_]

_EACH: Final = 500
_FEW_MORE: Final = 1.01
"""Up to so many outcomes, an alarm is looked at in hindsight after each; from there on whenever
their number has grown by this factor."""
_GROWN: Final = 1.2
"""By what factor the outcomes must have grown in number for the posterior to be sampled anew again,
which takes a third of a second for 200 successes and failures (docs/design/layouts.md)."""
_GROWN_SLOWLY: Final = 2.0
"""The same for all other outcomes: 200 counts take two seconds, and scores more than ten."""


class Data(NamedTuple):
    """The data of a fit.

    Attributes:
        features: (episodes, features).
        outcomes: (episodes,), or (episodes, outcomes) if the layout has several; NaN where missing.
        weights: (episodes,), how many outcomes each counts as; 0 where nothing was observed.
    """

    features: Floats
    outcomes: Floats
    weights: Floats


class Forecast(NamedTuple):
    """What was predicted of an episode before its outcome was known, and the outcome.

    Attributes:
        features: (features,), in the layout's order and units.
        predicted: For each outcome of the layout, its expected value as a share of its maximum.
        observed: What was observed, the same way; NaN where it is missing.
        random: Whether the instance was drawn at random, and not for what it tells.
    """

    features: Floats
    predicted: tuple[float, ...]
    observed: tuple[float, ...]
    random: bool


class _Observation(NamedTuple):
    """One outcome that was told.

    Attributes:
        episode: Its episode.
        instance: Its instance.
        values: Its values, NaN where one is missing.
        random: Whether the instance was drawn at random.
        wager: What was staked on it, on the success rate of the whole battery.
        before: How many instances the agent had played before.
    """

    episode: int
    instance: str
    values: tuple[float, ...]
    random: bool
    wager: Wager | None
    before: int


class _ChoiceRecord(NamedTuple):
    """What matters later of a choice.

    Attributes:
        random: Whether the instance was drawn at random.
        wager: What was staked on it.
        before: How many instances the agent has played before; None if it was not asked for.
    """

    random: bool = False
    wager: Wager | None = None
    before: int | None = None


class _KeptVerdict(NamedTuple):
    """A verdict, and what it was made of.

    Attributes:
        key: Objects that are replaced where they change.
        n: Number of outcomes told.
        verdict: The verdict.
    """

    key: tuple[object, ...]
    n: int
    verdict: StopVerdict


class _Hindsight:
    """Whether the layout fails in hindsight at some time; worked out when it is first asked for.

    Attributes:
        n: How many outcomes had been told.
    """

    def __init__(self, learner: Learner, belief: Belief) -> None:
        self.n = learner.n
        self._first = learner.observed_first
        self._asked: tuple[Learner, Belief] | None = learner, belief
        self._fails = False

    @property
    def fails(self) -> bool:
        """Whether it does."""
        if self._asked is not None:
            learner, belief = self._asked
            self._fails = learner.fails(belief, self._first)
            self._asked = None
        return self._fails


class _Reseed(NamedTuple):
    """Draws given the first `n` outcomes, which arrived after `told` outcomes had been told."""

    draws: Floats
    n: int
    told: int


class Learner:
    """One adaptive test: ask it for the next instance, and tell it the outcome.

    Its state is determined by its arguments and by what was told, in order. So telling the same
    again gives the same choices, bit for bit. It knows nothing of arenas, agents or storage. It is
    for one thread at a time; a call takes milliseconds.

    An adaptive test of your own is a loop:

        learner = Learner(Bank.of(layout, df), rule=StoppingRule(40), seed=1)
        while not learner.verdict().stop and (choice := learner.ask()):
            learner.tell(choice.instance, answer(choice.instance))
        learner.to_frame()

    With a list of instances, `ask` may return None before the verdict says stop.
    """

    def __init__(
        self,
        bank: Bank,
        policy: Policy | None = None,
        rule: StoppingRule | None = None,
        seed: int = 0,
        *,
        selector: Selector | None = None,
        stopper: Stopper | None = None,
        rules: int = RULES,
        fallback: bool = True,
        determinism: DeterminismPrior | None = None,
        exposure: float = 1.0,
        earlier: Data | None = None,
    ) -> None:
        """Start before the first episode.

        Args:
            bank: The instances to choose from, with the layout that is measured.
            policy: How to choose; by default `Policy()`.
            rule: When to stop; by default `StoppingRule()`.
            seed: Seed of all randomness.
            selector: Chooses in place of the policy, which then only says how often an instance may
                be played and whether any may be made.
            stopper: Tells when to stop in place of the rule, which then only says what counts as
                precise in a profile.
            rules: Version of the decision rules; pass the stored one to continue an earlier test,
                which is refused if it began under other rules.
            fallback: Whether choices are stratified random while the alarm stands.
            determinism: How many agents are random and how many deterministic, which says how much
                repeats count; by default what the layout's calibration says, or a third each.
            exposure: Share of agents, at most, that are asked any one instance, unless the policy
                lists it. So no choice is more likely than 1 - (1 - exposure)^(1 / n), with n the
                rule's number of episodes, and every instance keeps a chance of being chosen.
            earlier: What earlier tests of the same examinee found, by the same layout. The
                posterior knows it before the first choice, as if it had been told here. The rate
                over the bank, the alarm and the budget do not.

        Raises:
            RulesError: The rules have another version.
            TypeError: The bank, the policy or the rule is something else.
            ValueError: The policy or the rule does not fit the layout, the bank or each other.
        """
        insist_on_rules(rules)
        given: Any
        for name, given, kind, call in (
            ("bank", bank, Bank, "Learner(Bank.of(layout, df))"),
            ("policy", policy, Policy, 'policy=Policy("information")'),
            ("rule", rule, StoppingRule, "rule=StoppingRule(max_episodes=40)"),
        ):
            if not isinstance(given, kind) and (given is not None or kind is Bank):
                raise TypeError(
                    f"Learner: {name} is {of_kind(given)}, not {of_kind(kind)}; give {call}"
                )
        self.layout = bank.layout
        self.bank = bank
        self.policy = policy or Policy()
        self.rule = rule or StoppingRule()
        self.seed = seed
        self.rules = rules
        self._fallback = fallback
        self._determinism = determinism or _determinism_of(self.layout)
        endless = not self.policy.exposures and not self.rule.futility
        if self.rule.combine == "all" and endless and stopper is None:
            raise ValueError(
                'stop: with "all", repeats without limit and no futility a session may never end; '
                "give a futility above 0, a limit of repeats, or any"
            )
        self._rows = {name: row for row, name in enumerate(bank.names)}
        self._offer_of: dict[str, str] = {}
        self._made: dict[str, Floats] = {}
        self._aside: set[str] = set()
        self._drawn: dict[tuple[int, str], _ChoiceRecord] = {}
        self._selector = selector
        self._stopper = stopper or RuleStopper(self.layout, self.rule)
        self._rated = self.policy.name == "rate" and selector is None
        if self._rated and self.layout.outcomes[0].source != "success":
            raise ValueError(
                f'the policy "rate" is for a success rate, and layout {self.layout.name} has none: '
                "its first outcome is no success; take another policy or layout"
            )
        if self._rated and self.rule.target_width and self.rule.combine == "all":
            raise ValueError(
                'stop: under the policy "rate", target_width ends the session; give it with any'
            )
        ends_early = self.rule.max_seconds or self.rule.stop_at_alarm or self.rule.target_width
        counts_down = not ends_early if self._rated else self.rule.counts_down
        self._counts_down = stopper is None and counts_down
        self._exposure = exposure
        self._most = _most_likely(exposure, self.rule.max_episodes, len(bank))
        self._choose_from(bank)
        self._before_all = bank.played_before
        self._earlier = earlier
        self._begin()

    @property
    def n(self) -> int:
        """Number of outcomes told so far."""
        return len(self._evidence)

    @property
    def left(self) -> tuple[str, ...]:
        """Names of the bank's own instances that are not set aside, including played ones."""
        own = np.flatnonzero(~self._chooser.bank.offered)
        return tuple(self._chooser.bank.names[row] for row in own)

    def ask(
        self,
        pending: Sequence[str] = (),
        episode: int | None = None,
        *,
        played_before: int | None = None,
    ) -> Choice | None:
        """Choose the next instance; None if none is left.

        If the choice is an offer, make an instance for it and report the instance with `learn`.

        Args:
            pending: Instances that were asked for and whose outcomes were not told yet.
            episode: Number of the episode; it keys the randomness. By default the number of
                outcomes told plus the number of pending instances, or the next that is free. The
                choice says it.
            played_before: How many instances the agent will have played before, if the layout
                counts that; by default what was told and what is pending.

        Raises:
            ValueError: `pending` is one name instead of a list of names.
        """
        if isinstance(pending, str):
            raise ValueError(f"pending is {pending!r}; give a list of names, as [{pending!r}]")
        now = self.bank.played_before
        self._come_to(now + len(pending) if played_before is None else played_before)
        try:
            return self._asked(pending, episode)
        finally:
            self._come_to(now)

    def _asked(self, pending: Sequence[str], episode: int | None) -> Choice | None:
        number = self._free(self.n + len(pending)) if episode is None else episode
        distrust = self._fallback and self.contradicted
        examined = self._examination
        doubted = examined is not None and not examined.passes(last=False)
        telling = None if distrust else self._telling_of_cues(pending)
        wanted = self._of_chooser(examined.wanted) if examined is not None and doubted else None
        if wanted is None and self._judged_alone.end in CONFIRMED:
            wanted = telling
        choice = self._chooser.choose(
            self._posterior,
            self._history(pending),
            number,
            distrust=distrust,
            doubt=self._watch.doubt,
            bettor=self._bettor,
            wanted=wanted,
            telling=telling,
        )
        if choice is not None:
            self._drawn[number, choice.instance] = _ChoiceRecord(
                choice.reason == RANDOM, choice.wager, self.bank.played_before
            )
        return choice

    def tell(
        self,
        instance: str,
        outcome: Given,
        episode: int | None = None,
        *,
        random: bool | None = None,
        wager: Wager | None = None,
        played_before: int | None = None,
    ) -> None:
        """Take in the outcome of an episode that was asked for.

        The outcome of an episode for which `ask` chose nothing has to name its episode. So a call
        that is made twice by mistake is refused.

        Args:
            instance: Name of the instance.
            outcome: 1 for success or 0 for failure, the number of successful trials, or a score. If
                the layout has several outcomes: those that were observed, by name, or all in the
                layout's order with NaN where one is missing.
            episode: Number of the episode; each can be told once. By default the one for which
                `ask` chose the instance.
            random: Whether the instance was drawn at random; by default as `ask` chose it.
            wager: What was staked on it; by default as `ask` chose it.
            played_before: How many instances the agent had played before, if the layout counts
                that; by default as it was asked for, or all that was told.

        Raises:
            TellError: The instance is unknown or was not asked for, or the episode was told
                already.
            ValueError: An outcome is unknown or of the wrong kind, or there is none.
        """
        self._insist_known(instance)
        values = values_of(self.layout, outcome)
        y = self._check_values(values, self._features(instance))
        number = self._number(instance, episode)
        self._take_in(instance, values, y, number, random, wager, played_before)

    def tell_nothing(
        self,
        instance: str,
        episode: int | None = None,
        *,
        random: bool | None = None,
        wager: Wager | None = None,
        played_before: int | None = None,
    ) -> None:
        """Take in an episode in which nothing was observed.

        The instance counts as played and the episode counts, and the posterior does not change.
        The arguments and errors are those of `tell`.
        """
        self._insist_known(instance)
        nothing = self._check_values(self._nothing, self._features(instance))
        missing = np.full(len(self.layout.outcomes), np.nan)
        number = self._number(instance, episode)
        self._take_in(instance, missing, nothing, number, random, wager, played_before)

    def _take_in(
        self,
        instance: str,
        values: Floats,
        y: Outcome,
        number: int,
        random: bool | None,
        wager: Wager | None,
        before: int | None,
    ) -> None:
        """Take in the checked values of an episode; those of one that showed nothing are NaN."""
        observed = bool(np.isfinite(values).any())
        name = self._offer_of.get(instance, instance)
        drawn = self._drawn.get((number, name), _ChoiceRecord())
        random = drawn.random if random is None else random
        wager = drawn.wager if wager is None else wager
        after = self.bank.played_before
        if before is None:
            before = after if drawn.before is None else drawn.before
        self._come_to(before)
        columns = self._prepare_columns(instance)
        chance = self._weigh_in(instance, columns, y, number, random) if observed else 1.0
        first = bool(np.isfinite(values[0])) and instance not in self._evidence
        if first and self._bettor is not None and not self.bank.offered[self._rows[name]]:
            self._bettor.learn(self._forecasts[-1].predicted[0], bool(values[0]))
        moves = self._posterior.moves
        weight = self._evidence.tell(instance, y, chance, observed)
        group = self._evidence.group
        if weight is None and self._evidence.many:
            self._posterior.update_groups(columns, y, number, group, self._evidence.groups)
        elif weight is None:  # a repeat, by which all outcomes may count anew
            weights = self._evidence.weights
            self._posterior.update_checked(columns, y, number, float(weights[-1]), group)
            self._posterior.reweigh(self._with_earlier(weights))
        else:
            self._posterior.update_checked(columns, y, number, weight, group)
        if self._posterior.moves > moves and self._may_be_lost:
            self._posterior.restart()
            self._restarted = self.n
        given = tuple(values.tolist())
        self._told[number] = _Observation(number, instance, given, random, wager, before)
        self._note_played(instance, y, observed)
        self._come_to(max(after, before + 1))
        self._drawn = {at: record for at, record in self._drawn.items() if at[0] != number}
        self._standing = self._stands()

    def learn(self, instance: str, offer: str, features: npt.ArrayLike) -> None:
        """Add an instance that was made for an offer, before it is told or set aside.

        Args:
            instance: Name of the instance.
            offer: Name of the offer.
            features: (features,), as measured on the instance, in the layout's order and units.

        Raises:
            ValueError: There is no such offer, or a feature is out of range.
        """
        if offer not in self._rows:
            raise ValueError(f"{offer!r} is not on offer")
        self._made[instance] = self.layout.check_features(
            np.atleast_2d(np.asarray(features, np.float64)), played=False
        )
        self._offer_of[instance] = offer

    def set_aside(self, *instances: str) -> None:
        """Exclude instances that were not told yet, and their offers, from being chosen."""
        open_ones = [name for name in instances if name not in self._evidence]
        names = {self._offer_of.get(name, name) for name in open_ones} & self._places.keys()
        if names:
            self._aside |= names
            self._choose_from(self.bank.without(self._aside))
            self._place_all()

    def invalidate(self, episode: int) -> None:
        """Forget an outcome as if it had never been told, but keep how its instance was chosen.

        Reseeds whose draws knew the outcome are dropped too.

        Args:
            episode: Number of the episode.

        Raises:
            TellError: The episode was not told.
        """
        if episode not in self._told:
            raise TellError(f"episode {episode} was not told")
        gone = list(self._told).index(episode)
        kept = [told for number, told in self._told.items() if number != episode]
        reseeds = [
            reseed._replace(told=reseed.told - (reseed.told > gone))
            for reseed in self._reseeds
            if reseed.n <= gone
        ]
        lost, after = self._told[episode], self.bank.played_before
        name = self._offer_of.get(lost.instance, lost.instance)
        self._begin()
        self._replay(kept, reseeds)
        self._come_to(after)
        self._drawn[episode, name] = _ChoiceRecord(lost.random, lost.wager, lost.before)

    def verdict(self, seconds: float = 0.0, *, settles: bool = True) -> StopVerdict:
        """Decide whether to stop, with the status of every capability.

        Args:
            seconds: How long the agent has played.
            settles: Whether to stop once every capability is known or given up; under the policy
                "rate" nothing does, but its width.
        """
        settles = settles and not self._rated
        alone = self._judged_alone
        if alone.facts is not None and self.contradicted == self._alarm_stands:
            verdict = alone.judged(seconds=seconds, settles=settles)
        else:
            verdict = self._stopper.verdict(
                self._posterior,
                self._chooser,
                self._history(),
                seconds=seconds,
                contradicted=self.contradicted,
                settles=settles,
            )
        if verdict.facts and (narrow := self._narrow_rate):
            return verdict.judged(other=OtherEnd("ended", narrow))
        untried = verdict.end in CONFIRMED and not self._is_last and self._telling is not None
        if verdict.facts and (untried or self._unproven):
            return verdict.judged(doubted=True)
        return verdict

    def verdict_by(self, rule: StoppingRule) -> StopVerdict:
        """Decide by another stopping rule; nothing of the test changes.

        Args:
            rule: The rule.
        """
        return RuleStopper(self.layout, rule).verdict(
            self._posterior, self._chooser, self._history(), contradicted=self.contradicted
        )

    def summary(self) -> list[NodeSummary]:
        """Every node of the live posterior."""
        return self._posterior.summary()

    def profile(self, provenance: Mapping[str, Any] | None = None, seconds: float = 0.0) -> Profile:
        """Make the profile of the live posterior, with the status of each capability.

        Args:
            provenance: Further facts to store with it, JSON-ready.
            seconds: How long the agent has played.
        """
        status = self.verdict(seconds).status
        return Profile.of_live(self._posterior, status, provenance or {})

    def to_frame(self) -> pd.DataFrame:
        """The estimates as a table, in the units in which nodes are read.

        Returns:
            A row for each node: kind, estimate, low and high ends of the 90 % interval, unit,
            status and note. Where next to nothing was learnt, the three numbers are missing.
        """
        return _verdict_maker().learner_frame(self)

    def __repr__(self) -> str:
        told = f"{self.n} outcomes of {len(self.bank)} items"
        return f"<Learner for {self.layout.name}: {'; '.join((told, *self.bank.assumed))}>"

    def _repr_html_(self) -> str:
        return _verdict_maker().learner_html(self)

    def data(self, *, own: bool = False) -> Data:
        """All outcomes so far, with the weights that repeats now have.

        Args:
            own: Whether to leave out what earlier tests found; else it comes first.
        """
        features = np.ascontiguousarray(self._columns.rows[:, : len(self.layout.features)])
        told = Data(features, self._evidence.outcomes, self._evidence.weights)
        if own or self._earlier is None:
            return told
        return Data(*(np.concatenate(pair) for pair in zip(self._earlier, told, strict=True)))

    def features_of(self, instance: str, played_before: int | None = None) -> Floats:
        """Features of an instance of the bank, or of one that was made, (features,).

        Args:
            instance: Its name.
            played_before: How many instances the agent had played before, if the layout counts
                that; by default as many as by now.

        Raises:
            KeyError: There is no such instance.
        """
        now = self.bank.played_before if played_before is None else played_before
        return self.layout.count_on(self._features(instance), now)[0]

    @property
    def reseeded(self) -> bool:
        """Whether its posterior was restarted from draws that it was given."""
        return bool(self._reseeds)

    @property
    def played(self) -> list[int]:
        """Rows in the bank of the instances told, in the order of `data(own=True)`."""
        return self._played.rows.tolist()

    @property
    def seen(self) -> tuple[Seen, ...]:
        """What the outcomes told show of each latent node, in the layout's order."""
        return self._seen

    def reseed(self, draws: npt.ArrayLike, n: int) -> None:
        """Restart the posterior from draws given the first n outcomes.

        Args:
            draws: (draws, latents), in the units of the latents.
            n: Number of outcomes that the draws know.
        """
        array = np.array(draws, np.float64)
        weights = self._with_earlier(self._evidence.first(n).weights)
        self._posterior.reseed(array, len(weights), weights)
        self._reseeds.append(_Reseed(array, n, self.n))

    def information_bounds(self) -> list[InformationBound]:
        """Compute how precisely the bank's own instances can measure each capability at best.

        It changes no choice and may run beside other calls. It is empty if instances are made on
        demand, since these have no limit, and where earlier tests have told of the examinee.
        """
        if self.policy.generate or self._earlier is not None:
            return []
        plays = self.policy.exposures or self.rule.max_episodes
        return information_bounds(self._chooser.bank, self.rule, plays)

    @property
    def misfit(self) -> str:
        """Where predictions fail, in words, if the layout does not describe the agent.

        It is empty if what was played does not contradict the layout.
        """
        if not self.contradicted:
            return ""
        suspects = self.suspects[:MOST]
        where = _describe_course(suspects) + "; ".join(map(_describe_suspect, suspects))
        if not self._alarm_stands:
            return f"by the check after episode {self.n}: {where}"
        where = where or "predictions fail, in no stratum above all"
        return f"since episode {self._watch.raised_at}: {where}"

    @property
    def suspects(self) -> list[Suspect]:
        """Strata in which predictions fail, those with the most evidence first.

        It is empty if what was played does not contradict the layout. Where the alarm does not
        stand, they are those of the check before the last word.
        """
        if self._alarm_stands:
            return self._watch.suspects()
        examined = self._examination
        return list(examined.suspects) if self.contradicted and examined is not None else []

    @property
    def forecasts(self) -> Sequence[Forecast]:
        """Predictions one step ahead with their outcomes, in the order told; without repeats."""
        return self._forecasts

    @property
    def contradicted(self) -> bool:
        """Whether what was played contradicts the layout: by the alarm, or by the last check."""
        if self._alarm_stands:
            return True
        examined = self._examination
        return examined is not None and examined.contradicts

    @property
    def doubted(self) -> bool:
        """Whether all is precise and nothing more is played, but rivals explain it better.

        Then no ability is to be named, though the evidence is too little for an alarm.
        """
        return self._is_last and self._unproven

    @property
    def raised_at(self) -> int | None:
        """Number of episodes after which the alarm was raised; None if it was not."""
        return self._watch.raised_at

    @property
    def alarm(self) -> dict[str, Any] | None:
        """When the alarm was raised, and whether it stands in hindsight; None if not raised."""
        if self.raised_at is None:
            return None
        return {"raised_at": self.raised_at, "stands": self._alarm_stands}

    @property
    def retest(self) -> dict[str, Any] | None:
        """What repeats show about the agent's randomness, as JSON values; None without repeats."""
        retest = self._evidence.retest
        if not retest.pairs:
            return None
        return {
            "repeats": retest.pairs,
            "agreements": retest.agreements,
            "determinism": retest.determinism,
            "determinism_sd": retest.sd,
            "weight_of_a_repeat": float(retest.weights(1)),
        }

    @property
    def posterior(self) -> LivePosterior:
        """The live posterior; do not change it."""
        return self._posterior

    @property
    def battery_rate(self) -> BatteryRate:
        """The success rate if every instance of the battery were played once.

        One interval is what the layout predicts. The other holds also where the layout is wrong. It
        is exact where draws were even and the number of episodes was set beforehand, and else valid
        at any time.
        """
        own = ~self.bank.offered
        size = int(np.count_nonzero(own))
        if self._bettor is None:
            return BatteryRate(size, 0, 0, None, None, None, why="the first outcome is no success")
        plays: dict[int, tuple[Wager | None, bool | None]] = {}
        for play in sorted(self._told.values(), key=lambda observation: observation.episode):
            row = self._row(play.instance)
            if not own[row]:
                continue
            wager, success = plays.get(row, (play.wager, None))
            if success is None and np.isfinite(play.values[0]):
                success = bool(play.values[0])
            plays[row] = wager, success
        rest = own.copy()
        rest[[row for row, (_, success) in plays.items() if success is not None]] = False
        bank, posterior = self.bank, self._posterior
        each = bank.evaluator.by_instance(posterior.particles, bank.distinct, np.float64)
        predicted = np.asarray(portable.dot(each, posterior.weights))[bank.place[rest]]
        expected = float(self._bettor.mixed(predicted).sum())
        layouts_own = None
        if plays and not self.contradicted:
            count = np.bincount(bank.place[rest], minlength=len(each)).astype(np.float64)
            passed = sum(success is True for _, success in plays.values())
            layouts_own = predict_rate(each, count, posterior.weights, passed, size)
        return battery_rate(size, plays.values(), expected, layouts_own)

    @property
    def _narrow_rate(self) -> str:
        """That the interval of the success rate is as narrow as the rule wants; empty if not."""
        if not (self._rated and self.rule.target_width):
            return ""
        rate = self.battery_rate
        if rate.low is None or rate.high is None or rate.high - rate.low > self.rule.target_width:
            return ""
        return f"the interval of the success rate is {rate.high - rate.low:.2g} wide"

    @property
    def _succeeds(self) -> bool:
        """Whether success is what the layout is about, and nothing else."""
        return isinstance(self.layout.outcome, Bernoulli) and len(self.layout.outcomes) == 1

    def save(self) -> bytes:
        """Serialise what was told and what was chosen; `restore` continues from it."""
        reseeds = {f"reseed{i}": reseed.draws for i, reseed in enumerate(self._reseeds)}
        rows = {f"made{i}": row[0] for i, row in enumerate(self._made.values())}
        message = {
            "made_with": self._settings,
            "told": list(self._told.values()),
            "drawn": [(*at, *record) for at, record in self._drawn.items()],
            "reseeds": [(reseed.n, reseed.told) for reseed in self._reseeds],
            "made": [(name, self._offer_of[name]) for name in self._made],
            "aside": sorted(self._aside),
        }
        return messages.pack(message, {**reseeds, **rows})

    def restore(self, saved: bytes) -> None:
        """Continue from what a learner with the same arguments saved.

        Everything is told again, so it takes as long as the first time.

        Args:
            saved: The bytes that `save` returned.

        Raises:
            ValueError: The bytes are damaged, or come from a learner with other arguments.
        """
        text, payload = messages.lengths(saved[: messages.HEADER.size])
        start = messages.HEADER.size
        message, arrays = messages.unpack(
            saved[start : start + text], saved[start + text : start + text + payload]
        )
        for what, value in self._settings.items():
            if message["made_with"].get(what) != value:
                raise ValueError(f"this was saved with another {what}; make the learner as then")
        for i, (name, offer) in enumerate(message["made"]):
            self.learn(name, offer, arrays[f"made{i}"])
        self._aside = set(message["aside"])
        self._choose_from(self.bank.without(self._aside))
        self._begin()
        self._drawn = {
            (number, name): _ChoiceRecord(random, _wager(wager), before)
            for number, name, random, wager, before in message["drawn"]
        }
        self._replay(
            [
                _Observation(episode, name, tuple(values), random, _wager(wager), before)
                for episode, name, values, random, wager, before in message["told"]
            ],
            [
                _Reseed(arrays[f"reseed{i}"], n, before)
                for i, (n, before) in enumerate(message["reseeds"])
            ],
        )

    @property
    def _may_be_lost(self) -> bool:
        """Whether particles may have been lost that are wanted now, and it is time to look again.

        The posterior follows every outcome as long as none is a great surprise, so this may happen
        where the layout is contradicted.
        """
        grown = _GROWN if self._succeeds else _GROWN_SLOWLY
        return self.n >= grown * self._restarted and self._alarm_stands

    def _come_to(self, played_before: int) -> None:
        """Look at all instances as they are for an agent that has played so many."""
        before = self.bank
        self.bank = before.at(played_before)
        if self.bank is not before:
            own = self._chooser.bank
            self._make_chooser(self.bank if own is before else own.at(played_before))

    def _begin(self) -> None:
        self._come_to(self._before_all)
        self._posterior = LivePosterior(self.layout, self.seed)
        self._watch: LayoutWatch = BettingWatch(self.bank.evaluator, self.bank.stratifications)
        self._forecasts: list[Forecast] = []
        own = int(np.count_nonzero(~self.bank.offered))
        planned = self.rule.max_episodes if self._counts_down else 0
        known = self.layout.outcomes[0].source == "success"
        self._bettor = RateBettor(own, planned, weighing=self._rated) if known else None
        self._evidence: WeightedOutcomes[str] = WeightedOutcomes(
            self._determinism, len(self.layout.outcomes)
        )
        self._told: dict[int, _Observation] = {}
        self._played = Growing(np.int64)
        self._columns = Growing(np.float64, self.bank.evaluator.width)
        self._seen = (NOTHING_SEEN,) * len(self.layout.latents)
        self._place_all()
        self._reseeds: list[_Reseed] = []
        self._standing: bool | _Hindsight = False
        self._looked: _Hindsight | None = None
        self._kept_verdict: _KeptVerdict | None = None
        self._kept_examination: tuple[StopVerdict, Examination | None] | None = None
        self._restarted = 0
        if self._earlier is not None:
            self._take_in_earlier(self._earlier)

    def _take_in_earlier(self, earlier: Data) -> None:
        """Tell the posterior what earlier tests found, by numbers of episodes below 0."""
        columns = self.bank.evaluator.columns(earlier.features)
        touched = self.bank.evaluator.touched(columns)
        for k, (row, y, weight) in enumerate(zip(*earlier, strict=True)):
            self._posterior.update(row, y, k - len(columns), weight)
            self._see(columns[k : k + 1], touched[k], y if weight else np.nan)

    def _with_earlier(self, weights: Floats) -> Floats:
        """The weights of all that the posterior knows, of those of what was told here."""
        known = self._earlier
        return weights if known is None else np.concatenate([known.weights, weights])

    def _replay(self, observations: Sequence[_Observation], reseeds: Sequence[_Reseed]) -> None:
        waiting = list(reseeds)
        for count in range(len(observations) + 1):
            while waiting and waiting[0].told == count:
                observation = waiting.pop(0)
                self.reseed(observation.draws, observation.n)
            if count < len(observations):
                observation = observations[count]
                values = np.array(observation.values, np.float64)
                shown = values if np.isfinite(values).any() else self._nothing
                y = self._check_values(shown, self._features(observation.instance))
                self._take_in(
                    observation.instance,
                    values,
                    y,
                    observation.episode,
                    observation.random,
                    observation.wager,
                    observation.before,
                )

    def _insist_known(self, instance: str) -> None:
        if not isinstance(instance, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TellError(
                f"{instance!r} is not the name of an instance; name it as `ask` does: "
                "choice.instance"
            )
        if instance not in self._rows and instance not in self._offer_of:
            raise TellError(
                f"instance {instance!r} is not in the bank, and no instance was made with that name"
            )

    def _number(self, instance: str, episode: int | None) -> int:
        """Number of the episode that is told: as it is given, or as it was asked for."""
        name = self._offer_of.get(instance, instance)
        if episode is None:
            numbers = sorted(number for number, asked in self._drawn if asked == name)
            if not numbers:
                raise TellError(self._why_not_open(instance))
            if len(numbers) > 1:
                raise TellError(
                    f"{instance!r} was asked for as episodes {', '.join(map(str, numbers))}; say "
                    f"which one this is, as episode={numbers[0]}"
                )
            return numbers[0]
        if isinstance(episode, bool) or not isinstance(episode, int | np.integer):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TellError(f"episode {episode!r} is not a number; give a whole number")
        if episode in self._told:
            raise TellError(f"episode {episode} was told already; invalidate it first")
        asked = sorted(other for number, other in self._drawn if number == episode)
        if asked and name not in asked:
            raise TellError(
                f"episode {episode} was asked for {asked[-1]!r}, and {instance!r} is told; give "
                f"the outcome of {asked[-1]!r}, or another number of episode"
            )
        return int(episode)

    def _why_not_open(self, instance: str) -> str:
        before = [number for number, told in self._told.items() if told.instance == instance]
        was = f"was told already, as episode {before[-1]}" if before else "was not asked for"
        free = self._free(self.n)
        return (
            f"{instance!r} {was}, and no ask for it is open. Ask first; or name the episode if the "
            f"outcome is from elsewhere, as episode={free}"
        )

    def _free(self, number: int) -> int:
        """The first number from this one on that was not told."""
        while number in self._told:
            number += 1
        return number

    def _check_values(self, values: Floats, features: Floats) -> Outcome:
        """Check the values and convert them to the form that the posterior takes."""
        row = self.layout.check_outcomes(values[np.newaxis], features)
        return float(row[0]) if row.ndim == 1 else tuple(row[0].tolist())

    @cached_property
    def _nothing(self) -> Floats:
        """Placeholder values, of weight 0, for an episode in which nothing was observed."""
        first = self.layout.outcomes[0].likelihood
        rest = [np.nan] * (len(self.layout.outcomes) - 1)
        return np.array([0.5 if isinstance(first, Beta) else 0.0, *rest])

    def _weigh_in(
        self, instance: str, columns: Floats, y: Outcome, number: int, drawn: bool
    ) -> float:
        """Let the watch see an outcome, and return the probability that was predicted for it."""
        evaluator, posterior = self.bank.evaluator, self._posterior
        evidence = self._forecast(instance, columns, y, drawn)
        if instance not in self._evidence:  # the layout does not predict repeats
            self._forecasts.append(evidence)
            play = Play(
                posterior=posterior,
                columns=columns,
                row=self._row(instance),
                outcome=y,
                predicted=evidence.predicted,
                observed=evidence.observed,
                episode=number,
                number=self.n + 1,
            )
            self._watch.update(play)
        if self._succeeds:
            (predicted,) = evidence.predicted
            return predicted if y else 1.0 - predicted
        for node, value in zip(self.layout.outcomes, np.atleast_1d(y), strict=True):
            kind = node.likelihood
            if isinstance(kind, Beta) and kind.edge < value < 1.0 - kind.edge:
                return 0.0  # a score inside the ends never recurs by chance
        each = evaluator.pointwise(posterior.particles, columns, np.array([y]))
        return float(portable.dot(posterior.weights, portable.exp(each[0])))

    def _forecast(self, instance: str, columns: Floats, y: Outcome, drawn: bool) -> Forecast:
        """What the posterior predicts of an episode whose outcome it does not know yet."""
        observed = tuple(
            float(value / trials_of(self.layout, outcome.likelihood, columns)[0])
            for outcome, value in zip(self.layout.outcomes, np.atleast_1d(y), strict=True)
        )
        features = self._features(instance)[0]
        posterior = self._posterior
        predicted = predict_instance(
            posterior.particles, posterior.weights, self.bank.evaluator, columns
        )
        return Forecast(features, predicted, observed, drawn)

    def _choose_from(self, bank: Bank) -> None:
        self._places = {name: row for row, name in enumerate(bank.names)}
        self._make_chooser(bank)

    def _make_chooser(self, bank: Bank) -> None:
        self._chooser = Chooser(
            bank, self.policy, selector=self._selector, aside=self._aside, most=self._most
        )

    def _place_all(self) -> None:
        """Find what was told in the chooser's bank, which has changed."""
        self._rows_played = Growing(np.int64)
        self._counts = np.zeros(len(self._places), np.int64)
        for instance in self._evidence.instances:
            self._place(instance)

    def _place(self, instance: str) -> None:
        for row in self._places_of([instance]):
            self._rows_played.append(row)
            self._counts[row] += 1

    def _note_played(self, instance: str, y: Outcome, observed: bool) -> None:
        """Keep what is asked again and again of all episodes, as far as it can be summed up."""
        columns, row = self._prepare_columns(instance), self._row(instance)
        self._played.append(row)
        self._columns.append(columns[0])
        self._place(instance)
        made = instance in self._made
        touched = self.bank.evaluator.touched(columns)[0] if made else self.bank.touched[row]
        self._see(columns, touched, y if observed else np.nan)

    def _see(self, columns: Floats, touched: Mask, y: Outcome | Floats) -> None:
        """Sum up what an episode shows of each node; NaN: nothing was observed."""
        given = np.broadcast_to(np.reshape(y, (1, -1)), (1, len(self.layout.outcomes)))
        shares = as_shares(self.layout, columns, given)
        self._seen = add_episode(self._seen, self._parts, touched, shares[0])

    @cached_property
    def _parts(self) -> Mask:
        return parts_of(self.layout)

    def _history(self, pending: Sequence[str] = ()) -> History:
        retest = None if self.policy.exposures == 1 else self._evidence.retest
        played = Rows(self._rows_played.rows)
        return History(played, self._places_of(pending), retest, self._counts)

    def _places_of(self, instances: Sequence[str]) -> list[int]:
        names = (self._offer_of.get(name, name) for name in instances)
        return [self._places[name] for name in names if name in self._places]

    def _row(self, instance: str) -> int:
        """Row of an instance in the whole bank, including those set aside."""
        return self._rows[self._offer_of.get(instance, instance)]

    def _features(self, instance: str) -> Floats:
        """Features of an instance, (1, features)."""
        row = self._made.get(instance)
        if row is None:
            return self.bank.features[[self._rows[instance]]]
        return self.layout.count_on(row, self.bank.played_before)

    def _prepare_columns(self, instance: str) -> Floats:
        """Prepared columns of an instance, (1, columns)."""
        if instance in self._made:
            return self.bank.evaluator.columns(self._features(instance))
        place = self.bank.place[self._rows[instance]]
        return self.bank.distinct[place : place + 1]

    @property
    def _alarm_stands(self) -> bool:
        """Whether the alarm stands."""
        standing = self._standing
        return standing.fails if isinstance(standing, _Hindsight) else standing

    def _stands(self) -> bool | _Hindsight:
        """Whether the layout is contradicted, by the episodes that were observed first.

        Hindsight takes long, as it looks at every episode, and often nobody asks for it. So it is
        only noted what it would look at. From `_EACH` outcomes on, it looks again as their number
        has grown by `_FEW_MORE`, so that an episode of a long session costs no more than of a short
        one; one outcome more in a hundred changes little.
        """
        standing = self._watch.standing
        if standing is not None:
            return standing
        looked = self._looked
        if looked is None or self.n <= _EACH or self.n >= _FEW_MORE * looked.n:
            belief = Belief(self._posterior.particles, self._posterior.weights)
            looked = self._looked = _Hindsight(self, belief)
        return looked

    def fails(self, belief: Belief, first: int) -> bool:
        """Whether the layout fails in hindsight.

        Args:
            belief: What was known after some of the episodes.
            first: How many of these were observed and no repeats.
        """
        return self._watch.fails(belief, *self._first_plays(first))

    @property
    def observed_first(self) -> int:
        """How many episodes were observed and no repeats."""
        return len(self._evidence.fresh)

    def _first_plays(self, most: int | None = None) -> tuple[Floats, Floats, Ints]:
        """Columns, outcomes and rows of the episodes observed first."""
        first = self._evidence.fresh[:most]
        outcomes = self._evidence.outcomes[first]
        return self._columns.rows[first], outcomes, self._played.rows[first]

    def _everything_played(self) -> Played | None:
        """What the check of the layout is told; None if nothing was observed."""
        if not self.observed_first:
            return None
        history = self._history()
        own = np.array([self._rows[name] for name in self._chooser.bank.names])
        expected = np.full(len(self.bank), np.nan)
        playable = np.zeros(len(self.bank), np.bool_)
        expected[own] = self._chooser.scores(self._posterior, history).predicted
        playable[own] = self._chooser.available(history, distrust=True)
        expected[self.bank.offered] = np.nan
        features = self.bank.features
        return Played(*self._first_plays(), features, expected, playable, self.seed)

    @property
    def _telling(self) -> Floats | None:
        """Which instances tell of a cue that is not certain yet; None if none is wanted."""
        return self._telling_of_cues(())

    def _telling_of_cues(self, pending: Sequence[str]) -> Floats | None:
        """Which instances of the chooser do, while others are being played."""
        if not self.layout.cues or self.n < QUIET or not self._succeeds:
            return None
        bank = self._chooser.bank
        findings = [
            self._finding_of(cue) for cue in self.layout.cues if cue.name in self.bank.misleading
        ]
        misleading = [bank.misleading[one.cue.name] == 1.0 for one in findings if one.uncertain]
        playable = self._chooser.available(self._history(pending)) & ~bank.offered
        asked = playable & np.any(misleading, axis=0) if misleading else np.zeros(0, np.bool_)
        if not asked.any():
            return None
        success = np.full(len(bank), np.nan)
        success[asked] = self._expect_success(bank.features[asked])
        return instances_to_try(findings, bank.misleading, success, asked)

    def _finding_of(self, cue: Cue) -> CueFinding:
        """What was played tells of a cue, by what the posterior expects now."""
        misleads = self.bank.misleading[cue.name][self._played.rows]
        there = np.flatnonzero((misleads == 1.0) & (self._evidence.weights > 0.0))
        features = self._columns.rows[there, : len(self.layout.features)]
        outcomes = self._evidence.outcomes[there]
        return cue_finding(cue, misleads[there], outcomes, self._expect_success(features))

    def _expect_success(self, features: Floats) -> Floats:
        """Success that the posterior expects of instances, (instances,)."""
        evaluator, posterior = self.bank.evaluator, self._posterior
        columns = evaluator.columns(features)
        each = evaluator.by_instance(posterior.particles, columns, np.float64)
        return np.asarray(portable.dot(each, posterior.weights))

    def _of_chooser(self, values: Floats) -> Floats:
        """The values of the whole bank's instances that may be chosen."""
        return values[[self._rows[name] for name in self._chooser.bank.names]]

    @property
    def _unproven(self) -> bool:
        """Whether all is precise, and the check lets no session end as precise yet."""
        examined = self._examination
        return examined is not None and self.settled and not examined.passes(last=self._is_last)

    @property
    def _is_last(self) -> bool:
        """Whether nothing more is to be played by the rule's number of episodes or the battery."""
        if self.n >= self.rule.max_episodes:
            return True
        return not self._chooser.available(self._history(), distrust=True).any()

    @property
    def settled(self) -> bool:
        """Whether the test would end since every capability is known, if the layout holds."""
        alone = self._judged_alone
        return alone.end in CONFIRMED and alone.facts is not None and alone.facts.settled

    @property
    def _judged_alone(self) -> StopVerdict:
        """The verdict that follows from the posterior and the alarm."""
        key = self._posterior.particles, self._posterior.weights, self._chooser
        kept = self._kept_verdict
        if kept is None or kept.n != self.n or any(map(is_not, kept.key, key)):
            verdict = self._stopper.verdict(
                self._posterior, self._chooser, self._history(), contradicted=self._alarm_stands
            )
            kept = self._kept_verdict = _KeptVerdict(key, self.n, verdict)
        return kept.verdict

    @property
    def _examination(self) -> Examination | None:
        """How the layout's rivals fare, where all is precise or nothing more is played.

        It follows from what was told alone, and costs nothing as long as something is open.
        """
        if self._alarm_stands or not (self.settled or self.n >= self.rule.max_episodes):
            return None
        key = self._judged_alone
        if self._kept_examination is None or self._kept_examination[0] is not key:
            played = self._everything_played()
            examined = None if played is None else self._watch.examine(played)
            self._kept_examination = key, examined
        return self._kept_examination[1]

    @cached_property
    def _settings(self) -> dict[str, Any]:
        """All that determines the state beside what was told, as JSON values."""
        bank = self.bank.at(self._before_all)
        known = hashlib.sha256(bank.features.tobytes())
        known.update(json.dumps([bank.names, bank.paradigms]).encode())
        rest = hashlib.sha256(json.dumps([list(bank.outside), bank.control_of]).encode())
        for column in (*bank.outside.values(), bank.seconds, bank.variants, bank.gives[bank.place]):
            rest.update(column.tobytes())
        settings: dict[str, Any] = {
            "layout": self.layout.digest,
            "layout identity": self.layout.identity,
            "bank": known.hexdigest(),
            "rest of the bank": rest.hexdigest(),
            "fallback": self._fallback,
            "policy": asdict(self.policy),
            "rule": asdict(self.rule),
            "selector": _identity(self._selector),
            "stopper": _identity(self._stopper),
            "seed": self.seed,
            "version of the rules": self.rules,
            "determinism": asdict(self._determinism),
            "earlier": self._earlier and evidence_digest(*self._earlier),
        }
        if self._exposure < 1.0:
            settings["exposure"] = self._exposure
        return json.loads(json.dumps(settings))


def _verdict_maker() -> Any:
    """What shows a learner: it stands above the learner, so it is looked up when it is needed."""
    return import_module("animalcat.layouts.fitting.estimates")


def _determinism_of(layout: Layout) -> DeterminismPrior:
    """What a layout knows of how random agents are."""
    calibration = layout.calibration
    if calibration is None or calibration.determinism is None:
        return UNKNOWN
    return DeterminismPrior(*calibration.determinism)


def _most_likely(exposure: float, episodes: int, size: int) -> float:
    """The greatest probability of a choice under which few enough agents are asked an instance.

    Raises:
        ValueError: There are too few instances for so many episodes.
    """
    if exposure >= 1.0:
        return 1.0
    left = max(size - episodes, 0) + 1
    least = 1.0 - scalars.power(1.0 - 1.0 / left, episodes)
    if exposure < least:
        raise ValueError(
            f"an exposure of {exposure:g} cannot be kept with up to {episodes} choices among "
            f"{size}: give {least:.2g} or more, or stop earlier"
        )
    return float(1.0 - scalars.power(1.0 - exposure, 1.0 / episodes))


def _identity(given: Selector | Stopper | None) -> str:
    """What tells a selector or stopper from others: its class and, if it is data, its fields."""
    named = f"{type(given).__module__}.{type(given).__qualname__}"
    return f"{named} {given}" if is_dataclass(given) else named


def _wager(saved: Sequence[Any] | None) -> Wager | None:
    """A wager that was saved; None if there was none."""
    if saved is None:
        return None
    before, failure, success, *rest = saved
    return Wager(before, tuple(failure), tuple(success), *rest)


def _describe_suspect(suspect: Suspect) -> str:
    """A suspect in words, with its figures."""
    return (
        f"{'more' if suspect.more else 'less'} success than predicted {suspect.where} "
        f"({suspect.observed:.3g} of {suspect.episodes}, predicted {suspect.predicted:.1f}; "
        f"bets on it won {_fold(suspect.evidence)})"
    )


def _describe_course(suspects: Sequence[Suspect]) -> str:
    """Say that the agent changed, where predictions fail before or after an episode above all."""
    where = suspects[0].where if suspects else ""
    if not where.startswith(("after episode", "until episode")):
        return ""
    better = suspects[0].more == where.startswith("after")
    return f"it got {'better' if better else 'worse'} as the session went on, with "


def _fold(evidence: float) -> str:
    """By how much a stake has grown, in words; beyond a million nobody reads the digits."""
    return "over a million-fold" if evidence > 1e6 else f"{evidence:.3g}-fold"
