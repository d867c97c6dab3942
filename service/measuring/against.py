"""Compares the agent of a session with another agent that has played the same arenas."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from typing import Any, Final

from animalcat.alike import conditions_of, differing
from animalcat.layouts.adaptive.paired import (
    ERROR,
    CommonInstances,
    PairedComparison,
    common_instances,
    compare,
    p_value,
)
from animalcat.service.errors import Code, ServiceError
from animalcat.values import Episode, Opponent, Outcome, Session, SessionSpec

DRAWN: Final = frozenset({"listed", "random"})
"""Reasons of decisions that earlier outcomes had no say in."""


def facing(spec: SessionSpec, other: Session, attempts: Iterable[Episode]) -> Opponent:
    """Return the outcomes that a session is to be compared with, in the order played.

    They are those before the first arena that earlier outcomes had a say in, since only arenas that
    were drawn are a sample of the battery. Of an arena that the other agent played more than once,
    its first outcome counts.

    Args:
        spec: The session that is to be created, with the digest of its battery.
        other: The other agent's session.
        attempts: All attempts of the other session.

    Raises:
        ServiceError: The two sessions have no arena in common, or arenas are not the same in both.
    """
    theirs = other.spec
    both = {"mine": conditions_of(asdict(spec)), "theirs": conditions_of(asdict(theirs))}
    for difference in differing(both):
        if difference.forbids("pool"):
            raise _refusal(
                other,
                f"the {difference.what} is {difference.values['mine']!r}, and there it is "
                f"{difference.values['theirs']!r}; give the session the same",
            )
    if spec.fresh or theirs.fresh:
        raise _refusal(other, "fresh sessions play arenas of their own; create it without fresh")
    policy = spec.policy
    if policy.generate or policy.order or policy.exposures != 1 or policy.pairs:
        raise _refusal(
            other,
            "the other session determines which arenas are played; leave out generate, order, "
            "repeats and pairs",
        )
    outcomes: dict[str, float] = {}
    for episode in sorted(attempts, key=lambda attempt: (attempt.number, attempt.attempt)):
        if episode.decision.reason not in DRAWN:
            break
        if episode.counts and episode.decision.made is None:
            success = float(episode.outcome is Outcome.SUCCESS)
            outcomes.setdefault(episode.decision.instance, success)
    return Opponent(other.id, theirs.agent, outcomes)


def specify_comparison(
    spec: SessionSpec, opponent: Opponent, covered: Sequence[str]
) -> SessionSpec:
    """Return the specification of a session that plays what its opponent has played.

    The arenas come in the order in which the opponent played them. So a pair of equal agents is a
    fair bet, also where their number depended on the opponent's outcomes. The session ends when the
    agents are told apart, when every common arena is played, or when its budget is used up, and for
    no other reason: its targets only say what is known of each capability.

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
            "covers and that was drawn before any was chosen by what it had passed; let it play "
            "first, with --policy random, or choose another session or layout",
        )
    return replace(
        spec,
        against=replace(opponent, outcomes={name: opponent.outcomes[name] for name in common}),
        policy=replace(spec.policy, order=tuple(common)),
        stop=replace(
            spec.stop,
            max_episodes=min(spec.stop.max_episodes, len(common)),
            combine="any",
            stop_at_alarm=False,
        ),
    )


class Comparison:
    """The pairs of outcomes of a session and of its opponent, as they come in.

    Attributes:
        opponent: The other agent's outcomes.
    """

    def __init__(self, opponent: Opponent) -> None:
        self.opponent = opponent
        self._mine: dict[str, float] = {}

    def tell(self, instance: str, success: float) -> None:
        """Take in an outcome; of an arena that is played again, the first one counts."""
        if instance in self.opponent.outcomes:
            self._mine.setdefault(instance, success)

    @property
    def apart(self) -> bool:
        """Whether the agents are told apart."""
        return p_value(self._differences, len(self.opponent.outcomes)) <= ERROR

    @property
    def shared(self) -> CommonInstances:
        """Who passed which arenas."""
        theirs = {name: bool(outcome) for name, outcome in self.opponent.outcomes.items()}
        return common_instances(
            {name: bool(outcome) for name, outcome in self._mine.items()}, theirs
        )

    @property
    def words(self) -> str:
        """What the pairs say so far, in a sentence."""
        other = self.opponent.agent
        shared = self.shared.words("this agent", other)
        return f"this agent and {other} are {self._rates.words}; {shared}"

    def to_dict(self) -> dict[str, Any]:
        """Return what profiles have of it, as JSON values."""
        both = self.shared
        return {
            "session": self.opponent.session,
            "agent": self.opponent.agent,
            "both_passed": list(both.both_passed),
            "both_failed": list(both.both_failed),
            "only_this": list(both.only_first),
            "only_other": list(both.only_second),
            **self._rates.to_dict(),
            "words": self.words,
        }

    @property
    def _rates(self) -> PairedComparison:
        return compare(self._differences, len(self.opponent.outcomes))

    @property
    def _differences(self) -> list[float]:
        return [own - self.opponent.outcomes[name] for name, own in self._mine.items()]


def _refusal(other: Session, why: str) -> ServiceError:
    return ServiceError(Code.INVALID_REQUEST, f"against {other.id}: {why}")
