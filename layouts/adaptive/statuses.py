"""What a session says of its end and of every capability: one pure function of both posteriors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, TypeAlias

from animalcat.layouts.adaptive.plan import StoppingRule
from animalcat.layouts.inference.summary import NodeSummary
from animalcat.layouts.model.spec import Layout
from animalcat.layouts.reporting.profile import NOT_READ

Status: TypeAlias = Literal[
    "measuring",
    "precise, if the layout holds",
    "budget",
    "used up",
    "limited by the battery",
    "limited by noise",
    "ended",
    "cancelled",
    "layout contradicted",
    "not to be read",
]
"""Where measuring a capability stands."""
End: TypeAlias = Literal[
    "precise",
    "budget",
    "used up",
    "nothing left to learn",
    "layout contradicted",
    "ended",
    "cancelled",
]
"""Why a session ended, in a word."""

PRECISE: Final[Status] = "precise, if the layout holds"
"""Status of a capability whose target is reached: as good as the layout is."""
CONTRADICTED: Final[Status] = "layout contradicted"
"""Status of every capability while an alarm stands."""
HORIZON: Final = 25
"""Number of episodes that futility looks ahead."""
EXHAUSTED: Final = "the battery is used up"
"""Why a session ends that has played all that there is."""
CONFIRMED: Final[frozenset[End]] = frozenset({"precise", "nothing left to learn"})
"""Ends that rest on a posterior, which the last fit must confirm."""

_OF_THE_REST: Final[Mapping[End, Status]] = {
    "budget": "budget",
    "used up": "used up",
    "ended": "ended",
    "cancelled": "cancelled",
}
"""Status of the capabilities that are not precise, by the end, where it alone decides."""


class OtherEnd(NamedTuple):
    """An end that no posterior decides.

    Attributes:
        word: The end in a word: "ended" or "cancelled".
        reason: Why, in words.
    """

    word: End
    reason: str


@dataclass(frozen=True, slots=True)
class Facts:
    """All that the end of a session and the statuses of its capabilities follow from.

    Attributes:
        rule: The stopping rule.
        played: How many episodes were played.
        seconds: How long the agent has played.
        left: Whether there is anything left to play.
        live: Whether each capability reaches its target by the live posterior.
        futile: Whether no further episodes are expected to tell much more of each capability.
        noisy: Whether that is due to the agent's own noise; capabilities that are absent are not.
        fit: Whether each capability reaches its target by the last fit; None while there is none.
        contradicted: Whether what was played contradicts the layout: then standard deviations mean
            nothing.
        doubted: Whether what was played does not show yet that the layout holds, so that no session
            ends as precise.
        readable: Whether the layout predicts the agent well enough; if not, standard deviations
            mean nothing either.
        settles: Whether to stop once every capability is known or given up.
        other: An end that neither rule nor posterior decides; None where there is none.
    """

    rule: StoppingRule
    played: int
    seconds: float
    left: bool
    live: Mapping[str, bool]
    futile: Mapping[str, bool]
    noisy: Mapping[str, bool] = field(default_factory=dict[str, bool])
    fit: Mapping[str, bool] | None = None
    contradicted: bool = False
    doubted: bool = False
    readable: bool = True
    settles: bool = True
    other: OtherEnd | None = None

    @property
    def meaningless(self) -> bool:
        """Whether nothing may be read from standard deviations."""
        return self.contradicted or not self.readable

    @property
    def precise(self) -> Mapping[str, bool]:
        """Whether each capability reaches its target, by the fit if there is one."""
        reached = self.live if self.fit is None else self.fit
        return {name: is_reached and not self.meaningless for name, is_reached in reached.items()}


@dataclass(frozen=True, slots=True)
class SessionJudgement:
    """What a session says of itself.

    Attributes:
        end: Why it ended, in a word; None while it goes on.
        reason: The same in words, with that word among them; empty while it goes on.
        status: Status of each capability.
    """

    end: End | None
    reason: str
    status: Mapping[str, Status]


def judge(facts: Facts) -> SessionJudgement:
    """Tell whether and why a session ends, and where every capability stands.

    Both are told from the same facts at once, so that neither can say what the other denies. No
    session is "precise" of which one capability is not, for example, and the status "budget" is
    there only where the budget is used up.
    """
    precise = facts.precise
    end, reason = _end(facts, all(precise.values()))
    return SessionJudgement(
        end, reason, {name: _status(facts, end, name, precise[name]) for name in facts.live}
    )


def reached(layout: Layout, rule: StoppingRule, nodes: Sequence[NodeSummary]) -> dict[str, bool]:
    """Whether each capability reaches its target by the summaries of a posterior.

    Args:
        layout: The layout.
        rule: The stopping rule, with the targets.
        nodes: Summaries of the nodes, in the layout's order.
    """
    precise: dict[str, bool] = {}
    for i in layout.capabilities:
        node, span = nodes[i], layout.latents[i].prior.span
        width = node.hdi[1] - node.hdi[0]
        narrow = not rule.target_width or width <= rule.target_width * span
        precise[node.name] = bool(node.sd <= rule.target(node.name) * span and narrow)
    return precise


def _end(facts: Facts, all_precise: bool) -> tuple[End | None, str]:
    if facts.other is not None:
        return facts.other
    if facts.contradicted and facts.rule.stop_at_alarm:
        return "layout contradicted", "layout contradicted: it does not describe this agent"
    known = _known(facts, all_precise) if _may_settle(facts) else None
    if known and known[0] == "precise" and facts.doubted:
        known = None
    used = _used(facts.rule, facts.played, facts.seconds)
    if facts.rule.combine == "all":
        met = ([known] if known else []) + used
        wanted = 1 + bool(facts.rule.max_seconds) + _may_settle(facts)
        end = (met[0][0], "; ".join(why for _, why in met)) if len(met) == wanted else None
    else:
        end = used[0] if used else known
    if not facts.left:
        end = "used up", EXHAUSTED
    if end and known and known[0] == "precise" and facts.rule.combine == "any":
        return known  # whatever else would end it by now
    return end or (None, "")


def _may_settle(facts: Facts) -> bool:
    """Whether precision, or that it cannot be had, is a condition of the rule."""
    rule = facts.rule
    return (
        facts.settles and not facts.meaningless and (rule.wants_measures or rule.combine == "any")
    )


def _known(facts: Facts, all_precise: bool) -> tuple[End, str] | None:
    if all_precise:
        return "precise", "every capability is precise, if the layout holds"
    if all(is_precise or facts.futile[name] for name, is_precise in facts.precise.items()):
        return (
            "nothing left to learn",
            f"nothing left to learn: {HORIZON} more episodes are expected to lower no standard "
            f"deviation that is still above its target by {facts.rule.futility:.1%}",
        )
    return None


def _used(rule: StoppingRule, played: int, seconds: float) -> list[tuple[End, str]]:
    """The budgets that are used up."""
    used: list[tuple[End, str]] = []
    if played >= rule.max_episodes:
        used.append(("budget", f"the budget of {rule.max_episodes} episodes is used up"))
    if 0.0 < rule.max_seconds <= seconds:
        used.append(("budget", f"the budget of {rule.max_seconds:g} s is used up"))
    return used


def _status(facts: Facts, end: End | None, name: str, precise: bool) -> Status:
    if facts.contradicted:
        return CONTRADICTED
    if not facts.readable:
        return NOT_READ
    if precise and not (facts.doubted and end in _OF_THE_REST):
        return PRECISE
    if end is None:
        return "measuring"
    if end == "nothing left to learn":
        return "limited by noise" if facts.noisy.get(name) else "limited by the battery"
    return _OF_THE_REST[end]
