"""Adaptive testing as ask and tell: which instance next, what came of it, whether it is enough."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import cached_property
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.adaptive import widening
from animalcat.layouts.adaptive.alarm import MOST, Alarm, Suspect, log_factors
from animalcat.layouts.adaptive.bank import Bank, History
from animalcat.layouts.adaptive.bound import InformationBound, information_bounds
from animalcat.layouts.adaptive.outcomes import Outcome, WeightedOutcomes
from animalcat.layouts.adaptive.plan import Policy, StoppingRule
from animalcat.layouts.adaptive.policy import Choice, Chooser
from animalcat.layouts.adaptive.stopping import Stopper, Verdict
from animalcat.layouts.inference import messages
from animalcat.layouts.inference.live import LivePosterior, TellError
from animalcat.layouts.inference.summary import NodeSummary
from animalcat.layouts.model.spec import Bernoulli, Beta, Layout
from animalcat.layouts.reporting.profile import Profile

Floats: TypeAlias = npt.NDArray[np.float64]

RULES: Final = 1
"""Version of the decision rules: what is told and asked in the same order gives the same choices
under one version. It grows when any of selection, posterior, alarm or stopping changes a choice."""
KNOWN_RULES: Final = (1,)
"""Versions that this code can still follow."""


class RulesError(ValueError):
    """Decision rules that this version of animalcat does not know."""


Given: TypeAlias = float | Sequence[float] | Mapping[str, float]
"""What is told of an episode: its only outcome; one for each outcome of the layout, in order, NaN
where one is missing; or those that there are by name."""


class Data(NamedTuple):
    """What a fit is given.

    Attributes:
        features: (n, features).
        outcomes: (n,), or (n, outcomes) of a layout with several, NaN where one is missing.
        weights: (n,), as how many outcomes each counts; 0 where nothing was observed.
    """

    features: Floats
    outcomes: Floats
    weights: Floats


class Widened(NamedTuple):
    """What to fit again after an alarm: the layout with a way out, its data, and where that is."""

    layout: Layout
    data: Data
    where: str


class _Told(NamedTuple):
    """A tell: its episode, its instance, and all outcomes; NaN: missing."""

    episode: int
    instance: str
    values: tuple[float, ...]


class _Reseed(NamedTuple):
    """Draws of the posterior of the first n outcomes, which came after some outcomes were told."""

    draws: Floats
    n: int
    told: int


class Learner:
    """One adaptive test: it is asked for the next instance and told what came of it.

    Its state follows from what it is made with and from what was told, in order, and from nothing
    else; so whoever tells the same again gets the same choices, bit by bit. It knows nothing of
    arenas, agents or storage. One thread at a time; calls take milliseconds.

    An adaptive test of one's own is a loop:

        learner = Learner(Bank.of(layout, instances), Policy(), StoppingRule(40), seed=1)
        while not learner.verdict().stop:
            choice = learner.ask()
            learner.tell(choice.instance, answer(choice.instance))
        print(learner.profile().to_json())
    """

    def __init__(
        self,
        bank: Bank,
        policy: Policy | None = None,
        rule: StoppingRule | None = None,
        seed: int = 0,
        *,
        rules: int = RULES,
        fallback: bool = True,
    ) -> None:
        """Start before the first episode.

        Args:
            bank: What can be asked for, and the layout that is measured with it.
            policy: How to choose; by default `Policy()`.
            rule: When to stop; by default `StoppingRule()`.
            seed: Seed of everything random.
            rules: Version of the decision rules, as kept with a test that goes on.
            fallback: Whether choices are stratified random while the alarm stands.

        Raises:
            RulesError: The rules are of a version that is not known.
            ValueError: Policy or rule do not go with the layout or the bank, or with each other.
        """
        if rules not in KNOWN_RULES:
            known = ", ".join(map(str, KNOWN_RULES))
            raise RulesError(
                f"decision rules of version {rules} are not known here, only {known}; go on with "
                "the version of animalcat that began, or begin anew"
            )
        self.layout = bank.layout
        self.bank = bank
        self.policy = policy or Policy()
        self.rule = rule or StoppingRule()
        self.seed = seed
        self.rules = rules
        self._fallback = fallback
        endless = not self.policy.exposures and not self.rule.futility
        if self.rule.combine == "all" and endless:
            raise ValueError(
                'stop: with "all", repeats without limit and no futility a session may never end; '
                "give a futility above 0, a limit of repeats, or any"
            )
        self._rows = {name: row for row, name in enumerate(bank.names)}
        self._offer_of: dict[str, str] = {}
        self._made: dict[str, Floats] = {}
        self._aside: set[str] = set()
        self._stopper = Stopper(self.layout, self.rule)
        self._choose_from(bank)
        self._begin()

    @property
    def n(self) -> int:
        """Outcomes told so far."""
        return len(self._evidence)

    @property
    def left(self) -> tuple[str, ...]:
        """Names of the bank's own instances that were not set aside, played ones among them."""
        own = np.flatnonzero(~self._chooser.bank.offered)
        return tuple(self._chooser.bank.names[row] for row in own)

    def ask(self, pending: Sequence[str] = (), episode: int | None = None) -> Choice | None:
        """The next instance; None where none is left.

        What an offer is chosen for is to be made, and `learn` to be told of it.

        Args:
            pending: Instances that were asked for and not told of yet.
            episode: Number of the episode that it is for; it keys the randomness. By default the
                number of outcomes told, plus what is pending.
        """
        number = self.n + len(pending) if episode is None else episode
        distrust = self._fallback and self._contradicted
        return self._chooser.choose(
            self._posterior, self._history(pending), number, distrust=distrust
        )

    def tell(self, instance: str, outcome: Given, episode: int | None = None) -> None:
        """Take in what came of an instance.

        Where nothing was observed (every outcome is missing) the instance counts as played, and
        the posterior stays what it is.

        Args:
            instance: Its name.
            outcome: Success 1 or failure 0, successes of the trials, or a score. Of a layout with
                several outcomes those that there are, by name or in its order with NaN for what is
                missing.
            episode: Number of the episode; each is told once. By default the number of outcomes
                told.

        Raises:
            TellError: The instance is unknown, or the episode was told already.
            ValueError: An outcome is of another kind, or unknown.
        """
        number = self.n if episode is None else episode
        if instance not in self._rows and instance not in self._offer_of:
            raise TellError(f"instance {instance!r} is not in the bank, and nothing made so")
        if any(told.episode == number for told in self._told):
            raise TellError(f"episode {number} was told already; invalidate it first")
        features = self._features(instance)
        values = self._values(outcome)
        observed = bool(np.isfinite(values).any())
        y = self._checked(values if observed else self._nothing, features)
        chance = self._weigh_in(instance, y, number) if observed else 1.0
        self._evidence.tell(instance, y, chance, observed)
        weights = self._evidence.weights
        self._posterior.update(features[0], y, number, weights[-1])
        self._posterior.reweigh(weights)
        self._told.append(_Told(number, instance, tuple(values.tolist())))
        self._contradicted = self._alarm.raised and self._fails_in_hindsight()

    def learn(self, instance: str, offer: str, features: npt.ArrayLike) -> None:
        """Know an instance that was made for an offer; before it is told of or set aside.

        Args:
            instance: Its name.
            offer: Name of the offer.
            features: (features,), those that it really has, in the layout's order and units.

        Raises:
            ValueError: There is no such offer, or a feature is out of range.
        """
        if offer not in self._rows:
            raise ValueError(f"{offer!r} is not on offer")
        self._made[instance] = self.layout.check_features(
            np.atleast_2d(np.asarray(features, np.float64))
        )
        self._offer_of[instance] = offer

    def set_aside(self, instance: str) -> None:
        """Never choose an instance that was not told of, nor make another of its offer."""
        name = self._offer_of.get(instance, instance)
        if instance not in self._evidence and name in self._places:
            self._aside.add(name)
            self._choose_from(self.bank.without(self._aside))

    def invalidate(self, episode: int) -> None:
        """Forget an outcome, as if it had never been told.

        Draws that the posterior was restarted from and that knew it are dropped with it.

        Args:
            episode: Its number.

        Raises:
            TellError: It was not told.
        """
        numbers = [told.episode for told in self._told]
        if episode not in numbers:
            raise TellError(f"episode {episode} was not told")
        gone = numbers.index(episode)
        told = [one for one in self._told if one.episode != episode]
        reseeds = [
            one._replace(told=one.told - (one.told > gone))
            for one in self._reseeds
            if one.n <= gone
        ]
        self._begin()
        self._replay(told, reseeds)

    def verdict(self, seconds: float = 0.0) -> Verdict:
        """Whether it is enough.

        Args:
            seconds: How long was played.
        """
        return self._stopper.verdict(
            self._posterior,
            self._chooser,
            self._history(),
            seconds=seconds,
            contradicted=self._contradicted,
        )

    def summary(self) -> list[NodeSummary]:
        """Every node of the live posterior."""
        return self._posterior.summary()

    def profile(self, provenance: Mapping[str, Any] | None = None, seconds: float = 0.0) -> Profile:
        """The profile of the live posterior, with the status of each capability.

        Args:
            provenance: What else is to be known, JSON-ready.
            seconds: How long was played.
        """
        status = self.verdict(seconds).status
        return Profile.of_live(self._posterior, status, provenance or {})

    def data(self) -> Data:
        """All outcomes so far, with the weights that repeats have by what is known now."""
        rows = [self._features(instance)[0] for instance in self._evidence.instances]
        features = np.array(rows, np.float64).reshape(len(rows), len(self.layout.features))
        return Data(features, self._evidence.outcomes, self._evidence.weights)

    def reseed(self, draws: npt.ArrayLike, n: int) -> None:
        """Start the posterior anew from draws of it after the first n outcomes told.

        Args:
            draws: (draws, latents), in the units of the latents.
            n: How many outcomes they know.
        """
        made = np.array(draws, np.float64)
        self._posterior.reseed(made, n, self._evidence.first(n).weights)
        self._reseeds.append(_Reseed(made, n, self.n))

    def information_bounds(self) -> list[InformationBound]:
        """What the bank's own instances can tell at most; it changes no choice.

        It may run beside other calls. Empty where instances are made on demand, which have no
        limit.
        """
        if self.policy.generate:
            return []
        plays = self.policy.exposures or self.rule.max_episodes
        return information_bounds(self._chooser.bank, self.rule, plays)

    @property
    def misfit(self) -> str:
        """Where predictions fail, if the layout does not describe the agent.

        Empty where the alarm was not raised, or does not stand in hindsight.
        """
        if not self._contradicted:
            return ""
        where = _named(self._alarm.suspects()[:MOST]) or "predictions fail, in no stratum above all"
        return f"since episode {self._alarm.raised_at}: {where}"

    @property
    def contradicted(self) -> bool:
        """Whether an alarm stands."""
        return self._contradicted

    @property
    def raised_at(self) -> int | None:
        """After how many outcomes the alarm was raised; None: it was not."""
        return self._alarm.raised_at

    @property
    def alarm(self) -> dict[str, Any] | None:
        """When the alarm was raised, and whether it stands in hindsight; None: it was not."""
        if not self._alarm.raised:
            return None
        return {"raised_at": self._alarm.raised_at, "stands": self._contradicted}

    @property
    def retest(self) -> dict[str, Any] | None:
        """What repeats have told of how random the agent is, as JSON values; None without any."""
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
        """The live posterior; to be looked at, not changed."""
        return self._posterior

    @cached_property
    def widened_layout(self) -> Layout:
        """The layout with a way out for outcomes of contradicted strata."""
        return widening.widened(self.layout)

    def widened(self) -> Widened | None:
        """What to fit again after an alarm; None without one, and where no stratum stands out."""
        suspects = self._alarm.contradicted() if self._contradicted else ()
        if not suspects:
            return None
        inside = self._alarm.inside(suspects)
        rows = [self._row(instance) for instance in self._evidence.instances]
        data = self.data()
        features = widening.with_strata(data.features, inside[rows])
        return Widened(self.widened_layout, data._replace(features=features), _named(suspects))

    def save(self) -> bytes:
        """What was told, as bytes; `restore` goes on from them."""
        reseeds = {f"reseed{i}": one.draws for i, one in enumerate(self._reseeds)}
        made = {f"made{i}": row[0] for i, row in enumerate(self._made.values())}
        message = {
            "made_with": self._made_with,
            "told": self._told,
            "reseeds": [(one.n, one.told) for one in self._reseeds],
            "made": [(name, self._offer_of[name]) for name in self._made],
            "aside": sorted(self._aside),
        }
        return messages.pack(message, {**reseeds, **made})

    def restore(self, saved: bytes) -> None:
        """Go on from what another learner saved that was made with the same.

        Everything is told again, which takes as long as it took.

        Args:
            saved: As `save` gave it.

        Raises:
            ValueError: It is damaged, or of a learner that was made with another layout, bank,
                policy, rule or seed, or by other rules.
        """
        text, payload = messages.lengths(saved[: messages.HEADER.size])
        start = messages.HEADER.size
        message, arrays = messages.unpack(
            saved[start : start + text], saved[start + text : start + text + payload]
        )
        for what, value in self._made_with.items():
            if message["made_with"].get(what) != value:
                raise ValueError(f"this was saved with another {what}; make the learner as then")
        for i, (name, offer) in enumerate(message["made"]):
            self.learn(name, offer, arrays[f"made{i}"])
        self._aside = set(message["aside"])
        self._choose_from(self.bank.without(self._aside))
        self._begin()
        self._replay(
            [_Told(episode, name, tuple(values)) for episode, name, values in message["told"]],
            [
                _Reseed(arrays[f"reseed{i}"], n, told)
                for i, (n, told) in enumerate(message["reseeds"])
            ],
        )

    def _begin(self) -> None:
        self._posterior = LivePosterior(self.layout, self.seed)
        self._alarm = Alarm(self.bank.stratifications)
        self._evidence: WeightedOutcomes[str] = WeightedOutcomes()
        self._told: list[_Told] = []
        self._reseeds: list[_Reseed] = []
        self._contradicted = False

    def _replay(self, told: Sequence[_Told], reseeds: Sequence[_Reseed]) -> None:
        waiting = list(reseeds)
        for count in range(len(told) + 1):
            while waiting and waiting[0].told == count:
                one = waiting.pop(0)
                self.reseed(one.draws, one.n)
            if count < len(told):
                self.tell(told[count].instance, told[count].values, told[count].episode)

    def _values(self, outcome: Given) -> Floats:
        """(outcomes,), NaN where one is missing."""
        names = [one.name for one in self.layout.outcomes]
        if isinstance(outcome, Mapping):
            if unknown := sorted(set(outcome) - set(names)):
                raise ValueError(f"outcome {unknown[0]!r} is unknown; there are {', '.join(names)}")
            return np.array([outcome.get(name, np.nan) for name in names], np.float64)
        values = np.atleast_1d(np.asarray(outcome, np.float64))
        if values.shape != (len(names),):
            raise ValueError(
                f"{values.size} outcomes are told; layout {self.layout.name} has {len(names)}: "
                f"{', '.join(names)}"
            )
        return values

    def _checked(self, values: Floats, features: Floats) -> Outcome:
        """The values as the posterior takes them."""
        row = self.layout.check_outcomes(values[np.newaxis], features)
        return float(row[0]) if row.ndim == 1 else tuple(row[0].tolist())

    @cached_property
    def _nothing(self) -> Floats:
        """Values that stand in where nothing was observed; they get no weight."""
        first = self.layout.outcomes[0].likelihood
        rest = [np.nan] * (len(self.layout.outcomes) - 1)
        return np.array([0.5 if isinstance(first, Beta) else 0.0, *rest])

    def _weigh_in(self, instance: str, y: Outcome, number: int) -> float:
        """Let the alarm bet on an outcome; gives its predicted probability, before it is known."""
        evaluator, posterior = self.bank.evaluator, self._posterior
        columns = evaluator.columns(self._features(instance))
        if instance not in self._evidence:  # a repeat is not what the layout predicts
            bets = log_factors(posterior, evaluator, columns, y, number)
            self._alarm.update(self._row(instance), bets)
        if isinstance(self.layout.outcome, Bernoulli) and len(self.layout.outcomes) == 1:
            p = evaluator.by_instance(posterior.particles, columns, np.float64)[0]
            predicted = float(posterior.weights @ p)
            return predicted if y else 1.0 - predicted
        for one, value in zip(self.layout.outcomes, np.atleast_1d(y), strict=True):
            kind = one.likelihood
            if isinstance(kind, Beta) and kind.edge < value < 1.0 - kind.edge:
                return 0.0  # no score within the ends comes again by chance
        each = evaluator.pointwise(posterior.particles, columns, np.array([y]))
        return float(posterior.weights @ np.exp(each[0]))

    def _choose_from(self, bank: Bank) -> None:
        self._places = {name: row for row, name in enumerate(bank.names)}
        order = tuple(name for name in self.policy.order if name not in self._aside)
        self._chooser = Chooser(bank, replace(self.policy, order=order))

    def _history(self, pending: Sequence[str] = ()) -> History:
        retest = None if self.policy.exposures == 1 else self._evidence.retest
        told = self._placed(self._evidence.instances)
        return History(told, self._placed(pending), retest)

    def _placed(self, instances: Sequence[str]) -> list[int]:
        names = (self._offer_of.get(name, name) for name in instances)
        return [self._places[name] for name in names if name in self._places]

    def _row(self, instance: str) -> int:
        """Place among all instances of the bank, those set aside among them."""
        return self._rows[self._offer_of.get(instance, instance)]

    def _features(self, instance: str) -> Floats:
        """(1, features)."""
        made = self._made.get(instance)
        return self.bank.features[[self._rows[instance]]] if made is None else made

    def _fails_in_hindsight(self) -> bool:
        fresh = self._evidence.fresh
        told = self._evidence.instances
        instances = [told[i] for i in fresh]
        features = np.concatenate([self._features(instance) for instance in instances])
        return self._alarm.stands(
            self._posterior,
            self.bank.evaluator,
            self.bank.evaluator.columns(features),
            self._evidence.outcomes[fresh],
            np.array([self._row(instance) for instance in instances]),
        )

    @cached_property
    def _made_with(self) -> dict[str, Any]:
        """What the state hangs on beside what was told, as JSON values."""
        bank = hashlib.sha256(self.bank.features.tobytes())
        bank.update(json.dumps([self.bank.names, self.bank.paradigms]).encode())
        made: dict[str, Any] = {
            "layout": self.layout.digest,
            "bank": bank.hexdigest(),
            "policy": asdict(self.policy),
            "rule": asdict(self.rule),
            "seed": self.seed,
            "rules": self.rules,
        }
        return json.loads(json.dumps(made))


def _named(suspects: Sequence[Suspect]) -> str:
    return "; ".join(
        f"{'more' if s.more else 'less'} success than predicted "
        f"where {s.stratification} is {s.stratum}"
        for s in suspects
    )
