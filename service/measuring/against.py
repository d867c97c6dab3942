"""Compares the agent of a session with another agent that has played the same arenas."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from typing import Any

from animalcat.layouts.adaptive.paired import DECISIVE, Paired, compare, e_value
from animalcat.layouts.adaptive.plan import StoppingRule
from animalcat.service.errors import Code, ServiceError
from animalcat.service.model import Episode, Opponent, Outcome, Session, SessionSpec


def facing(spec: SessionSpec, other: Session, attempts: Iterable[Episode]) -> Opponent:
    """Return the outcomes that a session is to be compared with, in the order played.

    Of an arena that the other agent played more than once, its first outcome counts.

    Args:
        spec: The session that is to be created, with the digest of its battery.
        other: The other agent's session.
        attempts: All attempts of the other session.

    Raises:
        ServiceError: The two sessions have no arena in common, or arenas are not the same in both.
    """
    theirs = other.spec
    differ = [
        f"{what} is {mine!r}, and there it is {its!r}"
        for what, mine, its in (
            ("battery", spec.battery, theirs.battery),
            ("battery's digest", spec.battery_digest, theirs.battery_digest),
            ("backend", spec.backend, theirs.backend),
            ("decision period", _period(spec), _period(theirs)),
        )
        if mine != its
    ]
    if differ:
        raise _refused(other, f"the {differ[0]}; give the session the same")
    if spec.fresh or theirs.fresh:
        raise _refused(other, "fresh sessions play arenas of their own; create it without fresh")
    if spec.policy.generate or spec.policy.order or spec.policy.exposures != 1:
        raise _refused(
            other,
            "the other session says which arenas are played; leave out generate, order and repeats",
        )
    outcomes: dict[str, float] = {}
    for episode in sorted(attempts, key=lambda one: (one.number, one.attempt)):
        if episode.counts and episode.decision.made is None:
            success = float(episode.outcome is Outcome.SUCCESS)
            outcomes.setdefault(episode.decision.instance, success)
    return Opponent(other.id, theirs.agent, outcomes)


def compared(spec: SessionSpec, opponent: Opponent, covered: Sequence[str]) -> SessionSpec:
    """Return the specification of a session that plays what its opponent has played.

    The arenas come in the order in which the opponent played them. An arena was then chosen by
    earlier outcomes alone, so a pair of equal agents is a fair bet, also where the opponent's
    arenas and their number depended on its outcomes. In another order, outcomes that are still to
    come have a say in which arenas there are. The session ends when the agents are told apart, when
    every common arena is played, or when its budget is used up, and for no other reason.

    Args:
        spec: The specification that was asked for.
        opponent: What `facing` returned.
        covered: Names of the instances that the session can choose.

    Raises:
        ServiceError: No arena is left.
    """
    known = set(covered)
    common = [name for name in opponent.outcomes if name in known]
    if not common:
        raise ServiceError(
            Code.INVALID_REQUEST,
            f"against {opponent.session}: it has no finished episode of an arena that this layout "
            "covers; let it play first, or choose another session or layout",
        )
    return replace(
        spec,
        against=replace(opponent, outcomes={name: opponent.outcomes[name] for name in common}),
        policy=replace(spec.policy, order=tuple(common)),
        stop=StoppingRule(
            min(spec.stop.max_episodes, len(common)),
            target_sd=0.0,
            futility=0.0,
            max_seconds=spec.stop.max_seconds,
        ),
    )


class Comparison:
    """The pairs of outcomes of a session and of its opponent, as they come in.

    Attributes:
        opponent: The other agent's outcomes.
    """

    def __init__(self, opponent: Opponent) -> None:
        self.opponent = opponent
        self._differences: dict[str, float] = {}

    def tell(self, instance: str, success: float) -> None:
        """Take in an outcome; of an arena that is played again, the first one counts."""
        if instance in self.opponent.outcomes:
            difference = success - self.opponent.outcomes[instance]
            self._differences.setdefault(instance, difference)

    @property
    def apart(self) -> bool:
        """Whether the agents are told apart."""
        return e_value(list(self._differences.values())) >= DECISIVE

    @property
    def found(self) -> Paired:
        """What the pairs say so far."""
        return compare(list(self._differences.values()))

    @property
    def words(self) -> str:
        """What the pairs say so far, in a sentence."""
        found, other = self.found, self.opponent.agent
        counts = (
            f"of {found.pairs} arenas that both played, only this agent passed {found.ahead} and "
            f"only {other} passed {found.behind}"
        )
        figures = (
            f"the success rates differ by {found.difference:+.2f}, 95 % interval {found.low:+.2f} "
            f"to {found.high:+.2f} if that is the same on every arena; e-value {found.e_value:.3g}"
        )
        verdict = "told apart from" if found.apart else "cannot be told from"
        return f"{verdict} {other}: {counts} ({figures})"

    def to_dict(self) -> dict[str, Any]:
        """Return what profiles have of it, as JSON values."""
        found = self.found
        return {
            "session": self.opponent.session,
            "agent": self.opponent.agent,
            **asdict(found),
            "apart": found.apart,
            "words": self.words,
        }


def _period(spec: SessionSpec) -> int:
    return spec.observation_spec.decision_period


def _refused(other: Session, why: str) -> ServiceError:
    return ServiceError(Code.INVALID_REQUEST, f"against {other.id}: {why}")
