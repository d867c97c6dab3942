"""What a session knows and wants to know next: a pure function of what was stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.adaptive import widening
from animalcat.layouts.adaptive.alarm import MOST, Alarm, Scheme, Suspect, log_factors, schemes
from animalcat.layouts.adaptive.bank import Bank, History
from animalcat.layouts.adaptive.bound import Reach, reach
from animalcat.layouts.adaptive.evidence import Evidence
from animalcat.layouts.adaptive.offers import Offers
from animalcat.layouts.adaptive.policy import Chooser
from animalcat.layouts.adaptive.stopping import Stopper, Verdict
from animalcat.layouts.evaluator import Evaluator
from animalcat.layouts.live import LivePosterior
from animalcat.layouts.profile import Profile
from animalcat.layouts.spec import Layout
from animalcat.layouts.summary import NodeSummary
from animalcat.service.battery import Battery
from animalcat.service.coverage import covered_features, find_layout, what_it_covers
from animalcat.service.errors import Code, ServiceError
from animalcat.service.generation import InstanceSource, source_for
from animalcat.service.model import CapabilityStatus, Decision, SessionSpec

Floats: TypeAlias = npt.NDArray[np.float64]

FIRST_CHECKPOINT: Final = 16
"""Episodes before the first certificate; the next ones are at twice as many each."""
CERTIFICATE_DELAY: Final = 8
"""Episodes after its checkpoint at which a certificate counts."""


def is_checkpoint(n: int) -> bool:
    """Whether NUTS looks at the first n episodes: n = 16, 32, 64, ..."""
    return n >= FIRST_CHECKPOINT and n & (n - 1) == 0


class Data(NamedTuple):
    """What a fit is given: features (n, features), outcomes (n,) and their weights (n,)."""

    features: Floats
    outcomes: Floats
    weights: Floats


class Widened(NamedTuple):
    """What to fit again after an alarm: the layout with a way out, its data, and where that is."""

    layout: Layout
    data: Data
    where: str


class Measurement:
    """Live posterior, chooser and stopper of one session.

    Its state follows from the spec, the battery and what was told in order; so telling the same
    again after a restart gives the same choices. One thread at a time; calls take milliseconds and
    do not belong on an event loop.
    """

    def __init__(
        self,
        spec: SessionSpec,
        battery: Battery,
        find_source: Callable[[Layout], InstanceSource] = source_for,
    ) -> None:
        """Start before the first episode.

        Args:
            spec: What the session is to be.
            battery: What there is.
            find_source: Finds who makes instances for a layout, where the policy wants some made.

        Raises:
            ServiceError: Layout or policy are unknown, no instance is covered, or none can be made.
        """
        self.layout = find_layout(spec.layout, spec.layout_variant)
        self._battery = battery
        self._policy = spec.policy
        self._features = covered_features(self.layout, battery)
        if not self._features:
            raise ServiceError(
                Code.NOT_COVERED,
                f"layout {spec.layout!r} covers none of the {len(battery.instances)} instances of "
                f"battery {spec.battery!r}; it covers {what_it_covers(self.layout)}",
            )
        if spec.stop.combine == "all" and not spec.policy.exposures and not spec.stop.futility:
            raise ServiceError(
                Code.INVALID_REQUEST,
                'stop: with "all", repeats without limit and no futility a session may never end; '
                "give a futility above 0, a limit of repeats, or any",
            )
        self._posterior = LivePosterior(self.layout, spec.seed)
        self._evaluator = Evaluator(self.layout)
        self._candidates = sorted(self._features)
        self._seed = spec.seed
        self._source: InstanceSource | None = None
        self._offers: Offers | None = None
        self._offer_of: dict[str, str] = {}
        self._aside: set[str] = set()
        if spec.policy.generate:
            try:
                self._source = find_source(self.layout)
                self._offers = self._source.offers(self.layout)
            except ValueError as error:
                raise ServiceError(Code.INVALID_REQUEST, f"generate: {error}") from error
        self._evidence: Evidence[str] = Evidence()
        self._reach: Mapping[str, Reach] = {}
        self._stop = spec.stop
        offered = () if self._offers is None else self._offers.names
        self._rows = {name: row for row, name in enumerate([*self._candidates, *offered])}
        self._alarm = Alarm(self._strata())
        self._contradicted = False
        try:
            self._stopper = Stopper(self.layout, spec.stop)
            self._build_chooser()
        except ValueError as error:
            raise ServiceError(Code.INVALID_REQUEST, str(error)) from error

    @property
    def n(self) -> int:
        """Episodes told so far."""
        return len(self._evidence)

    @property
    def candidates(self) -> dict[str, str]:
        """Instances of the battery that can be chosen, and the paradigm of each."""
        index = self._battery.index
        return {name: self._battery.instances[index[name]].paradigm for name in self._candidates}

    @property
    def covered(self) -> int:
        """How many instances of the battery can be chosen, played ones among them."""
        return len(self._candidates) - len(self._aside.intersection(self._candidates))

    def tell(self, number: int, instance: str, success: bool) -> None:
        """Take in the outcome of an episode.

        Args:
            number: Number of the episode.
            instance: Name of the instance.
            success: Whether it was one.
        """
        features = self._features[instance]
        columns = self._evaluator.columns([features])
        if instance not in self._evidence:  # a repeat is not what the layout predicts
            bets = log_factors(self._posterior, self._evaluator, columns, float(success), number)
            self._alarm.update(self._row(instance), bets)
        p = self._evaluator.by_instance(self._posterior.particles, columns, np.float64)[0]
        predicted = float(self._posterior.weights @ p)
        chance = predicted if success else 1.0 - predicted
        self._evidence.tell(instance, float(success), chance)
        weights = self._evidence.weights
        self._posterior.update(features, success, number, weights[-1])
        self._posterior.reweigh(weights)
        self._contradicted = self._alarm.raised and self._fails_in_hindsight()

    def learn(self, decision: Decision) -> None:
        """Know an instance that was made on demand; before it is told of or set aside."""
        made = decision.made
        if made is None:
            return
        self._offer_of[decision.instance] = made.offer
        row = [made.instance.features.get(f.name, np.nan) for f in self.layout.features]
        self._features[decision.instance] = self.layout.check_features([row])[0].tolist()

    def set_aside(self, instance: str) -> None:
        """Never choose an instance that was not told of, nor make another of its offer."""
        name = self._offer_of.get(instance, instance)
        if instance not in self._evidence and name in self._place:
            self._aside.add(name)
            self._build_chooser()

    def choose(self, number: int, pending: Sequence[str] = ()) -> Decision | None:
        """The next instance; None where none is left.

        Args:
            number: Number of the episode that it is for; it keys the randomness.
            pending: Instances of earlier episodes whose outcomes were not told yet.
        """
        choice = self._chooser.choose(
            self._posterior, self._history(pending), number, distrust=self._contradicted
        )
        if choice is None:
            return None
        names = self._chooser.bank.names
        name, made = names[choice.index], None
        if self._source is not None and self._chooser.bank.offered[choice.index]:
            made = self._source.make(name, self._seed, number)
            name = made.instance.name
        decision = Decision(
            instance=name,
            score=choice.score,
            propensity=choice.propensity,
            predicted=choice.predicted,
            margins=dict(choice.margins),
            reason=choice.reason,
            alternatives=tuple((names[i], score) for i, score in choice.alternatives),
            because=choice.because,
            made=made,
            pending=len(pending),
            peers=choice.peers,
        )
        self.learn(decision)
        return decision

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

    @property
    def misfit(self) -> str:
        """Where predictions fail, if the layout does not describe the agent.

        Empty where the alarm was not raised, or does not stand in hindsight.
        """
        if not self._contradicted:
            return ""
        where = _named(self._alarm.suspects()[:MOST]) or "predictions fail, in no stratum above all"
        return f"since episode {self._alarm.raised_at}: {where}"

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

    def summary(self) -> list[NodeSummary]:
        """Every node of the live posterior."""
        return self._posterior.summary()

    def live_profile(self, status: Mapping[str, str], provenance: Mapping[str, Any]) -> Profile:
        """The profile of the live posterior."""
        return Profile.of_live(self._posterior, status, provenance)

    def find_reach(self) -> None:
        """Work out what the battery can tell at most; it changes no choice.

        It may run beside other calls. Where instances are made on demand the battery is no limit.
        """
        if self._policy.generate:
            return
        plays = self._policy.exposures or self._stop.max_episodes
        found = reach(self._chooser.bank, self._stop, plays)
        self._reach = {one.name: one for one in found}

    @property
    def limits(self) -> dict[str, str]:
        """By capability, that its target cannot be reached with this battery, in words."""
        return {name: one.limit for name, one in self._reach.items() if one.limit}

    def with_reach(self, statuses: Sequence[CapabilityStatus]) -> tuple[CapabilityStatus, ...]:
        """The same, each with what the battery can tell at most, as far as that is known yet."""
        return tuple(
            replace(status, best_sd=self._reach[status.name].best, limit=one.limit)
            if (one := self._reach.get(status.name))
            else status
            for status in statuses
        )

    def capabilities(self, verdict: Verdict) -> tuple[CapabilityStatus, ...]:
        """How well each capability is known."""
        return self.with_reach(
            [
                CapabilityStatus(
                    node.name,
                    node.mean,
                    node.sd,
                    node.unit,
                    verdict.status[node.name],
                    verdict.episodes_needed[node.name],
                )
                for node in self.summary()
                if node.name in verdict.status
            ]
        )

    def data(self) -> Data:
        """All outcomes so far, with the weights that repeats have by what is known now."""
        rows = [self._features[instance] for instance in self._evidence.instances]
        features = np.array(rows, np.float64).reshape(len(rows), len(self.layout.features))
        return Data(features, self._evidence.outcomes, self._evidence.weights)

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

    def reseed(self, draws: Floats, n: int) -> None:
        """Start anew from draws of the posterior of the first n episodes."""
        self._posterior.reseed(draws, n, self._evidence.first(n).weights)

    def _history(self, pending: Sequence[str] = ()) -> History:
        retest = None if self._policy.exposures == 1 else self._evidence.retest
        told = self._places(self._evidence.instances)
        return History(told, self._places(pending), retest)

    def _fails_in_hindsight(self) -> bool:
        fresh = self._evidence.fresh
        told = self._evidence.instances
        instances = [told[i] for i in fresh]
        return self._alarm.stands(
            self._posterior,
            self._evaluator,
            self._evaluator.columns([self._features[instance] for instance in instances]),
            self._evidence.outcomes[fresh],
            np.array([self._row(instance) for instance in instances]),
        )

    def _row(self, instance: str) -> int:
        """Place among all instances, of the battery and on offer, for the alarm."""
        return self._rows[self._offer_of.get(instance, instance)]

    def _places(self, instances: Sequence[str]) -> list[int]:
        names = (self._offer_of.get(name, name) for name in instances)
        return [self._place[name] for name in names if name in self._place]

    def _strata(self) -> tuple[Scheme, ...]:
        """Ways to part the instances: by paradigm, and by what the battery alone knows of them."""
        index = self._battery.index
        instances = [self._battery.instances[index[name]] for name in self._candidates]
        known = {feature for instance in instances for feature in instance.features}
        outside = {
            feature: [instance.features.get(feature, np.nan) for instance in instances]
            for feature in sorted(known.difference(self.layout.feature_names))
        }
        made = () if self._offers is None else self._offers.paradigms
        unknown = [np.nan] * len(made)
        return schemes(
            [*(instance.paradigm for instance in instances), *made],
            {feature: [*values, *unknown] for feature, values in outside.items()},
        )

    def _build_chooser(self) -> None:
        names = [name for name in self._candidates if name not in self._aside]
        instances = [self._battery.instances[self._battery.index[name]] for name in names]
        bank = Bank(
            self.layout,
            np.array([self._features[name] for name in names], np.float64),
            [instance.paradigm for instance in instances],
            names=names,
            seconds=[instance.time_limit_steps for instance in instances],
            offers=None if self._offers is None else self._offers.without(self._aside),
        )
        self._place = {name: k for k, name in enumerate(bank.names)}
        order = tuple(name for name in self._policy.order if name not in self._aside)
        self._chooser = Chooser(bank, replace(self._policy, order=order))


def _named(suspects: Sequence[Suspect]) -> str:
    return "; ".join(
        f"{'more' if s.more else 'less'} success than predicted where {s.scheme} is {s.stratum}"
        for s in suspects
    )
