"""Connects the learner of a session's layout to its battery and its episodes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Final, ParamSpec, TypedDict, TypeVar, cast

import numpy as np

from animalcat.arena_configs.instance import Instance
from animalcat.envs.places import can_watch
from animalcat.layouts.adaptive.bank import Bank
from animalcat.layouts.adaptive.battery_rate import Wager
from animalcat.layouts.adaptive.bound import InformationBound
from animalcat.layouts.adaptive.learner import Data, Learner
from animalcat.layouts.adaptive.plan import RulesError
from animalcat.layouts.adaptive.policy import RANDOM
from animalcat.layouts.adaptive.statuses import BOUNDED, CONFIRMED, PRECISE, OtherEnd, knowledge_of
from animalcat.layouts.adaptive.stopping import StopVerdict
from animalcat.layouts.adaptive.telling import values_of
from animalcat.layouts.explaining.asking import asking_instances, hardly_asked
from animalcat.layouts.explaining.limits import Mask
from animalcat.layouts.explaining.session import notes_of, prediction_of
from animalcat.layouts.explaining.wording import Scale, scale_of
from animalcat.layouts.inference.fit import FitError, FitResult
from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.inference.summary import NodeSummary
from animalcat.layouts.model.instances import check_chances
from animalcat.layouts.model.likelihood import as_shares
from animalcat.layouts.model.spec import Layout
from animalcat.layouts.reporting.profile import NodeNote, Profile, learnt
from animalcat.service.batteries.battery import Battery
from animalcat.service.batteries.naming import joined_groups, link_of
from animalcat.service.errors import Code, ServiceError
from animalcat.service.library.layouts import meant_layout, variant_said
from animalcat.service.measuring.against import Comparison
from animalcat.service.measuring.coverage import Coverage, calibration_hint, some_coverage
from animalcat.service.measuring.gate import power_of
from animalcat.service.measuring.generation import InstanceSource, source_for
from animalcat.service.measuring.twins import Twins
from animalcat.values import (
    PRACTICE,
    Alternative,
    CapabilityStatus,
    Decision,
    Earlier,
    Episode,
    MadeInstance,
    MeasuringStatus,
    Outcome,
    SessionSpec,
)

_P = ParamSpec("_P")
_T = TypeVar("_T")

FIRST_CHECKPOINT: Final = 16
"""Number of episodes before the first certificate; each later checkpoint is at twice as many."""
_MOST_TARGET: Final = 0.99
"""Greatest target of a standard deviation, as a share of a range that may have no ends."""
CERTIFICATE_DELAY: Final = 8
"""Number of episodes after its checkpoint at which a certificate takes effect."""


def is_checkpoint(n: int) -> bool:
    """Return whether NUTS refits the first n episodes: at n = 16, 32, 64, ..."""
    return n >= FIRST_CHECKPOINT and n & (n - 1) == 0


class _Drawn(TypedDict):
    """What the learner is told of a decision with its outcome."""

    random: bool
    wager: Wager | None
    played_before: int | None


class OneAtATime:
    """Calls functions in threads, one at a time, so that what they share needs no other lock."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()

    async def __call__(self, function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Call a function once all earlier calls have ended, and return its result."""
        async with self._lock:
            return await asyncio.to_thread(function, *args, **kwargs)


class Measurement:
    """The learner of one session, with its instances translated for it.

    Use it from one thread at a time. Calls take milliseconds and do not belong on an event loop.

    Attributes:
        learner: Chooses instances and is told outcomes.
        battery: The battery to choose from.
        coverage: What the layout covers of the battery, and why it leaves out the rest.
        candidates: Paradigm of every instance of the battery that can be chosen, by its name.
        suites: Their suites, the same way.
        comparison: What tells the agent from another one; None in a session that only measures.
    """

    def __init__(
        self,
        spec: SessionSpec,
        battery: Battery,
        layout: Layout | None = None,
        find_source: Callable[[Layout, Battery], InstanceSource] = source_for,
        session: str = "",
    ) -> None:
        """Start before the first episode.

        Args:
            spec: The session's specification.
            battery: The battery to choose from.
            layout: The session's layout (`library.layouts.layout_of`); None for the shipped one
                that the specification means on this battery (`library.layouts.meant_layout`).
            find_source: Finds a source of instances for a layout and a battery; used if the policy
                makes some on demand.
            session: Id of the session, for which twins are drawn; empty before there is one.

        Raises:
            ServiceError: The layout, the policy or the version of the rules is unknown; or no
                instance is covered, or none can be made.
        """
        layout = layout or meant_layout(battery, spec.layout, spec.layout_variant)
        _check_choice(spec, layout)
        _check_order(spec, layout)
        try:
            check_chances(layout, {f for i in battery.instances for f in i.features}, "a session")
        except ValueError as error:
            raise ServiceError(Code.INVALID_REQUEST, str(error)) from error
        self.battery = battery
        self.coverage = some_coverage(
            layout,
            battery,
            keep_unpassable=spec.keep_unpassable,
        )
        if spec.prior is not None:
            self.coverage = _without_played(self.coverage, battery, spec.prior)
        covered = self.coverage.features
        self._battery = battery
        for name in spec.policy.order:
            if why := self.coverage.reasons.get(name):
                raise ServiceError(
                    Code.INVALID_REQUEST, f"the list names {name!r}, which is left out: {why}"
                )
        self._seed = spec.root
        self._source: InstanceSource | None = None
        offers = None
        if spec.policy.generate:
            try:
                self._source = find_source(layout, battery)
                offers = self._source.offers(layout)
            except ValueError as error:
                raise ServiceError(Code.INVALID_REQUEST, f"generate: {error}") from error
        self._practice = practice_order(spec, battery, covered)
        kept = set(self._practice[: spec.practice])
        names = sorted(set(covered) - kept)
        if not names:
            raise ServiceError(
                Code.INVALID_REQUEST,
                f"practice: {spec.practice} arenas to practise on leave none of the "
                f"{len(covered)} that the layout covers; practise less, or take a larger battery",
            )
        instances = [battery.instances[battery.index[name]] for name in names]
        observes = [
            [outcome.source in instance.task.observes for outcome in layout.outcomes]
            for instance in instances
        ]
        alike = [(*covered[i.name], *gives) for i, gives in zip(instances, observes, strict=True)]
        bank = Bank(
            layout,
            np.array([covered[name] for name in names], np.float64),
            [instance.paradigm for instance in instances],
            names=names,
            variants=joined_groups([battery.groups[name] for name in names], alike)
            if spec.policy.cool_down
            else (),
            seconds=[battery.expected_steps[name] for name in names],
            offers=offers,
            outside=_outside(layout, instances),
            observes=observes,
            control_of=[link_of(instance).control_of for instance in instances],
            played_before=spec.played_before,
        )
        if spec.policy.pairs:
            _check_pairs(spec, bank)
        try:
            self.learner = Learner(
                bank,
                spec.policy,
                spec.stop,
                spec.root,
                rules=spec.rules,
                earlier=spec.prior and _data_of(spec.prior, layout),
            )
        except RulesError as error:
            raise ServiceError(Code.SESSION_FAILED, str(error)) from error
        except ValueError as error:
            raise ServiceError(Code.INVALID_REQUEST, str(error)) from error
        self._twins = Twins(battery, layout) if spec.fresh else None
        self._key = f"{spec.root}/{spec.twins_of or session}"
        self._twin_of: dict[str, MadeInstance] = {}
        self.candidates = {instance.name: instance.paradigm for instance in instances}
        self.suites = {instance.name: instance.suite for instance in instances}
        self.comparison = None if spec.against is None else Comparison(spec.against)
        self._reach: Mapping[str, InformationBound] = {}

    def covers(self) -> dict[str, Any]:
        """Return what the layout covers of the battery, by which variant, and what it hardly asks.

        Returns:
            JSON values: those of `Coverage.to_dict`; `variant`, a sentence; `asked`, the number of
            arenas and of episodes so far that ask for each capability that the layout is about;
            and `warnings`, what should be known before a session, in sentences.
        """
        layout, bank = self.learner.layout, self.learner.bank
        own = bank.features[~bank.offered]
        arenas = {name: int(asks.sum()) for name, asks in self._asks.items()}
        played = asking_instances(layout, self.learner.data(own=True).features, bank.evaluator)
        episodes = {name: int(asks.sum()) for name, asks in played.items()}
        variant, better = self._variant
        return {
            **self.coverage.to_dict(),
            "variant": variant,
            "asked": {n: {"arenas": arenas[n], "episodes": episodes[n]} for n in arenas},
            "warnings": [
                *filter(None, (better,)),
                *(f"{note[0].upper()}{note[1:]}." for note in self.coverage.assumed),
                *hardly_asked(layout, arenas, len(own), episodes, self.learner.n),
            ],
        }

    def learn(self, decision: Decision) -> None:
        """Add an instance that was made on demand, before it is told or set aside.

        What was practised on is not chosen again.
        """
        made = decision.made
        if decision.reason == PRACTICE:
            self.learner.set_aside(decision.chosen)
            return
        if made is not None:
            features = made.instance.features
            row = [features.get(f.name, np.nan) for f in self.learner.layout.features]
            self.learner.learn(decision.instance, made.offer, row)
            self._twin_of[made.offer] = made

    def choose(
        self, number: int, pending: Sequence[str] = (), played_before: int | None = None
    ) -> Decision | None:
        """Choose the next instance, and make it if it is an offer or to be played as a twin.

        A repeat plays the twin again that was played before.

        Args:
            number: Number of the episode that it is for; it keys the randomness.
            pending: Instances of earlier episodes whose outcomes have not been told yet.
            played_before: How many arenas the agent has played before, if the layout counts them.

        Returns:
            The decision; None if no instance is left.
        """
        choice = self.learner.ask(pending, number, played_before=played_before)
        if choice is None:
            return None
        made_instance = None
        if choice.offered and self._source is not None:
            made_instance = self._source.make(choice.instance, self._seed, number)
        elif self._twins is not None:
            made_instance = self._twin_of.get(choice.instance) or self._twins.twin(
                choice.instance, self._key
            )
        decision = Decision(
            instance=choice.instance if made_instance is None else made_instance.instance.name,
            score=choice.score,
            propensity=choice.propensity,
            predicted=choice.predicted,
            margins=dict(choice.margins),
            reason=choice.reason,
            alternatives=tuple(Alternative(*alternative) for alternative in choice.alternatives),
            because=choice.because,
            made=made_instance,
            pending=len(pending),
            peers=choice.peers,
            wager=choice.wager,
        )
        self.learn(decision)
        return decision

    def practise(self, used: Container[str]) -> Decision | None:
        """Choose the next instance to practise on; None if none is left.

        Args:
            used: Names of the battery's instances of which an attempt was begun.
        """
        name = next((name for name in self._practice if name not in used), None)
        if name is None:
            return None
        made_instance = None if self._twins is None else self._twins.twin(name, self._key)
        played = name if made_instance is None else made_instance.instance.name
        decision = Decision(played, 0.0, 0.0, 0.0, {}, PRACTICE, made=made_instance)
        self.learn(decision)
        return decision

    def tell(self, episode: Episode) -> None:
        """Tell the learner what was observed in an episode that counts.

        An outcome whose source gave no value is missing.
        """
        observed, known = self._observations_of(episode)
        decision, number = episode.decision, episode.number
        drawn: _Drawn = {
            "random": decision.reason == RANDOM,
            "wager": decision.wager,
            "played_before": decision.played_before,
        }
        if known:
            self.learner.tell(decision.instance, known, number, **drawn)
        else:
            self.learner.tell_nothing(decision.instance, number, **drawn)
        if self.comparison is not None:
            self.comparison.tell(episode.decision.instance, observed["success"])

    def share(self, episode: Episode) -> float:
        """Return the first outcome of an episode that counts, as a share of its maximum."""
        layout, evaluator = self.learner.layout, self.learner.bank.evaluator
        features = self.learner.features_of(episode.decision.instance)[np.newaxis]
        values = values_of(layout, self._observations_of(episode)[1])
        told = layout.check_outcomes(values[np.newaxis], features)
        return float(as_shares(layout, evaluator.columns(features), told)[0, 0])

    def _observations_of(self, episode: Episode) -> tuple[dict[str, float], dict[str, float]]:
        """What was observed in an episode, by source and by the layout's outcome."""
        observed = {"success": float(episode.outcome is Outcome.SUCCESS), **episode.outcomes}
        known = {
            outcome.name: observed[outcome.source]
            for outcome in self.learner.layout.outcomes
            if outcome.source in observed
        }
        return observed, known

    def verdict(self, seconds: float) -> StopVerdict:
        """Return whether to stop: by the stopping rule, or since two agents are told apart.

        Args:
            seconds: Duration of all episodes so far.
        """
        if self.comparison is None:
            verdict = self.learner.verdict(seconds)
            if verdict.end in CONFIRMED and not self._readable(None):
                return verdict.judged(readable=False)
            return verdict
        verdict = self.learner.verdict(seconds, settles=False)
        if self.comparison.apart:
            return verdict.judged(other=OtherEnd("ended", self.comparison.words))
        return replace(verdict, reason=self.comparison.words) if verdict.stop else verdict

    def last_verdict(self, seconds: float, fitted: FitResult | FitError) -> StopVerdict:
        """Return what the session says of itself at its end, by both posteriors.

        Args:
            seconds: Duration of all episodes.
            fitted: The last fit; or its error, and then the live posterior stands alone.

        Returns:
            The verdict. It says not to stop where the fit does not confirm the live posterior.
        """
        verdict = live = self.verdict(seconds)
        if isinstance(fitted, FitResult) and live.facts is not None:
            learner = self.learner
            fit = knowledge_of(learner.layout, learner.rule, fitted.nodes, live.facts.asked)
            verdict = live.judged(fit=fit, readable=self._readable(fitted))
        return verdict if self.comparison is None else replace(verdict, reason=live.reason)

    def _readable(self, fitted: FitResult | None) -> bool:
        """Return whether the layout predicts the agent well enough for estimates to be read."""
        draws = None if fitted is None else fitted.flat_draws
        if self.learner.contradicted:  # which says more
            return True
        if prediction_of(self.learner, draws).standing == "worse":
            return False
        power = power_of(self.learner, self._seed)
        return power is None or power.readable

    def needed_to_narrow(self, profile: Profile, share: float) -> dict[str, int | None]:
        """Return how many more episodes make each capability's standard deviation that share.

        Args:
            profile: Says how large it is now.
            share: Of that.

        Returns:
            By capability; None where what is left of the battery does not suffice.
        """
        layout = self.learner.layout
        sds = {node.name: node.sd for node in profile.nodes}
        targets = {
            node.name: min(share * sds[node.name] / node.prior.span, _MOST_TARGET)
            for node in (layout.latents[k] for k in layout.capabilities)
        }
        rule = replace(self.learner.rule, targets=targets, target_width=0.0)
        return dict(self.learner.verdict_by(rule).episodes_needed)

    def find_reach(self) -> None:
        """Compute the best that the battery can tell; no choice depends on it."""
        self._reach = {bound.name: bound for bound in self.learner.information_bounds()}

    def limits(self, status: Mapping[str, str]) -> dict[str, str]:
        """Return why targets are out of the battery's reach, by capability.

        An agent may reach one all the same, and then nothing is said of it.

        Args:
            status: Status of each capability.
        """
        return {
            name: bound.limit
            for name, bound in self._reach.items()
            if bound.limit and status.get(name) not in (PRECISE, BOUNDED)
        }

    def with_reach(self, statuses: Sequence[CapabilityStatus]) -> tuple[CapabilityStatus, ...]:
        """Add to each status the best that the battery can tell, if that is known yet."""
        limits = self.limits({status.name: status.status or "" for status in statuses})
        return tuple(
            replace(
                status, best_sd=self._reach[status.name].best, limit=limits.get(status.name, "")
            )
            if status.name in self._reach
            else status
            for status in statuses
        )

    def capabilities(self, verdict: StopVerdict) -> tuple[CapabilityStatus, ...]:
        """Return how well each capability is known."""
        nodes = self.learner.summary()
        noted = notes_of(self.learner, nodes, self._scales)
        return self._statuses(nodes, verdict.status, verdict.episodes_needed, noted)

    def exported(self, profile: Profile) -> tuple[CapabilityStatus, ...]:
        """Return how well each capability is known by a profile."""
        return self._statuses(profile.nodes, profile.status, {}, profile.notes)

    def _statuses(
        self,
        nodes: Sequence[NodeSummary],
        status: Mapping[str, str],
        needed: Mapping[str, int | None],
        noted: Mapping[str, NodeNote],
    ) -> tuple[CapabilityStatus, ...]:
        latents = self.learner.layout.latents
        priors = {latent.name: latent.prior.sd for latent in latents}
        scales = {latent.name: one for latent, one in zip(latents, self._scales, strict=True)}
        return self.with_reach(
            [
                CapabilityStatus(
                    node.name,
                    node.mean,
                    node.sd,
                    node.unit,
                    cast("MeasuringStatus", status[node.name]),
                    needed.get(node.name),
                    value=words.estimate,
                    interval=words.interval,
                )
                for node in nodes
                if node.name in status
                for words in [
                    scales[node.name].brief(
                        node.mean,
                        *node.hdi,
                        known=learnt(node.sd, priors[node.name])
                        and noted.get(node.name, NodeNote()).known,
                        note=noted.get(node.name, NodeNote()),
                    )
                ]
            ]
        )

    @cached_property
    def _asks(self) -> dict[str, Mask]:
        """Which arenas of the battery ask for each capability that the layout is about."""
        bank = self.learner.bank
        return asking_instances(self.learner.layout, bank.features[~bank.offered], bank.evaluator)

    @cached_property
    def _variant(self) -> tuple[str, str]:
        """Which variant of the layout this is and why, and whether another covers many more."""
        layout = self.learner.layout
        taught = calibration_hint(self._battery, layout)
        if taught and layout.calibration:
            return taught, ""
        said, better = variant_said(self._battery, layout)
        return said, better or taught

    @cached_property
    def _scales(self) -> list[Scale]:
        """How the values of all nodes are read, by what the battery asks for."""
        layout, bank = self.learner.layout, self.learner.bank
        asked = bank.features[~bank.offered]
        return [scale_of(layout, k, asked) for k in range(len(layout.latents))]


def _without_played(covered: Coverage, battery: Battery, prior: Earlier) -> Coverage:
    """Leave out what earlier sessions have played, which is no new evidence.

    Raises:
        ServiceError: Nothing is left.
    """
    known, why = set(prior.arenas), f"session {prior.session}, or one before it, has played it"
    arenas = battery.identities
    seen = [name for name in covered.features if "/".join(arenas.get(name, ())) in known]
    if len(seen) == len(covered.features):
        raise ServiceError(
            Code.INVALID_REQUEST,
            f"prior {prior.session}: it has played all arenas of the battery that the layout "
            "covers; take another battery, or fresh arenas (--fresh)",
        )
    rest = {name: row for name, row in covered.features.items() if name not in seen}
    return replace(covered, features=rest, reasons={**covered.reasons, **dict.fromkeys(seen, why)})


def _data_of(prior: Earlier, layout: Layout) -> Data:
    """Return what earlier sessions found, as the learner takes it."""
    table = np.array(prior.told, np.float64)  # None becomes NaN
    features, outcomes, weights = np.split(table, [len(layout.features), -1], axis=1)
    return Data(features, outcomes if len(layout.outcomes) > 1 else outcomes[:, 0], weights[:, 0])


def _check_choice(spec: SessionSpec, layout: Layout) -> None:
    """Refuse a layout of choices where the agent is not seen at every physics step."""
    choices = [outcome.name for outcome in layout.outcomes if outcome.source == "choice"]
    if choices and not can_watch(spec.backend, spec.observation_spec):
        raise ServiceError(
            Code.INVALID_REQUEST,
            f"layout {spec.layout}: its outcome {choices[0]} is a choice, the first marked place "
            f"that the agent reaches. The backend {spec.backend} shows where the agent is only "
            f"once a decision, and at a decision period of {spec.observation_spec.decision_period} "
            "it may run through a place unseen; use a decision period of 1, or the backend sim",
        )


def _check_order(spec: SessionSpec, layout: Layout) -> None:
    """Refuse to count what an agent has played before where its copies play at once."""
    if layout.counted and spec.slots > 1:
        raise ServiceError(
            Code.INVALID_REQUEST,
            f"layout {layout.name}: it counts the arenas that the agent has played before, and "
            f"{spec.slots} copies that play at once have no common order; use 1 slot",
        )


def _check_pairs(spec: SessionSpec, bank: Bank) -> None:
    """Refuse pairs where there are none, or where an arena would be another when it is played."""
    if spec.fresh:
        raise ServiceError(
            Code.INVALID_REQUEST,
            "pairs: a fresh arena and a fresh control are not a pair, since each is drawn "
            "separately; leave out fresh or pairs",
        )
    if len(np.unique(bank.sets)) == len(bank):
        raise ServiceError(
            Code.INVALID_REQUEST,
            "pairs: the layout covers no arena of the battery together with a control of it; take "
            "a battery whose recipe has `controls`, or link arenas of your own when they are "
            "imported (`battery import --table`, with the columns instance, control, control_of)",
        )


def practice_order(spec: SessionSpec, battery: Battery, covered: Iterable[str]) -> list[str]:
    """Return in which order a session would practise on the instances that it may choose.

    Those that their families set apart for practice come first. What the session is to play in any
    case is left out.

    Args:
        spec: The session's specification.
        battery: Its battery.
        covered: Names of the instances that the layout covers.
    """
    if not spec.practice:
        return []
    wanted = {*spec.policy.order, *(spec.against.outcomes if spec.against else ())}
    pool = sorted(set(covered) - wanted)
    order = rng(spec.root, PRACTICE, 0).permutation(len(pool)).tolist()
    drawn = [pool[int(k)] for k in order]

    def is_scored(name: str) -> bool:
        origin = battery.instances[battery.index[name]].origin
        return origin is None or origin.part != "practice"

    if spec.practice > len(drawn):
        raise ServiceError(
            Code.INVALID_REQUEST,
            f"practice: {spec.practice} arenas are asked for, and there are {len(drawn)}; practise "
            "less, or take a larger battery",
        )
    return sorted(drawn, key=is_scored)


def _outside(layout: Layout, instances: Sequence[Instance]) -> dict[str, list[float]]:
    """Return the features that the layout does not use, by which the alarm looks for misfits."""
    known = {feature for instance in instances for feature in instance.features}
    return {
        feature: [instance.features.get(feature, np.nan) for instance in instances]
        for feature in sorted(known.difference(layout.feature_names))
    }
