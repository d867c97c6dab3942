"""What a session says of its end and of every capability: one pure function of both posteriors."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Final, Literal, NamedTuple, TypeAlias

from animalcat.layouts.adaptive.plan import StoppingRule
from animalcat.layouts.inference.summary import NodeSummary
from animalcat.layouts.model.links import LogisticMargin
from animalcat.layouts.model.nodes import Latent
from animalcat.layouts.model.spec import Layout
from animalcat.layouts.reporting.profile import LEARNT, NOT_READ, learnt

Status: TypeAlias = Literal[
    "measuring",
    "precise, if the layout holds",
    "bounded",
    "leans on its prior",
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
Known: TypeAlias = Literal["precise", "bounded", "open"]
"""What a posterior knows of a capability: "precise" at its target, with data and from both sides;
"bounded" from one side, and the battery ends there; "open" else."""

PRECISE: Final[Status] = "precise, if the layout holds"
"""Status of a capability whose target is reached: as good as the layout is."""
BOUNDED: Final[Status] = "bounded"
"""Status of a capability that is known from one side, where the battery ends."""
LEANS: Final[Status] = "leans on its prior"
"""Status of a capability that is precise or bounded by the layout's prior, of which a flat one says
far less."""
CONTRADICTED: Final[Status] = "layout contradicted"
"""Status of every capability while an alarm stands."""
HORIZON: Final = 25
"""Number of episodes that futility looks ahead, and that are played at least before bounds alone
end a session."""
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


class Asked(NamedTuple):
    """The ends of what a battery asks of a capability, where they were really asked.

    Attributes:
        easiest: The least demand that there is, in the capability's unit, if three arenas that were
            played asked for as little, give or take the target; else minus infinity.
        hardest: The greatest demand that there is, if three of them asked for as much; else
            infinity.
    """

    easiest: float = -inf
    hardest: float = inf


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
        live: What the live posterior knows of each capability.
        futile: Whether no further episodes are expected to tell much more of each capability.
        noisy: Whether that is due to the agent's own noise; capabilities that are absent are not.
        fit: What the last fit knows of each capability; None while there is none.
        asked: The ends of what the battery asks of each capability; some may be absent.
        contradicted: Whether what was played contradicts the layout: then standard deviations mean
            nothing.
        doubted: Whether what was played does not show yet that the layout holds, or that no cue is
            behind what the agent seems to have. Then no session ends because everything is known.
        readable: Whether the layout predicts the agent well enough; if not, standard deviations
            mean nothing either.
        settles: Whether to stop once every capability is known or given up.
        other: An end that neither rule nor posterior decides; None where there is none.
    """

    rule: StoppingRule
    played: int
    seconds: float
    left: bool
    live: Mapping[str, Known]
    futile: Mapping[str, bool]
    noisy: Mapping[str, bool] = field(default_factory=dict[str, bool])
    fit: Mapping[str, Known] | None = None
    asked: Mapping[str, Asked] = field(default_factory=dict[str, Asked])
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
    def known(self) -> Mapping[str, Known]:
        """What is known of each capability, by the fit if there is one."""
        known = self.live if self.fit is None else self.fit
        return dict.fromkeys(known, "open") if self.meaningless else known

    @property
    def settled(self) -> bool:
        """Whether every capability is precise or bounded."""
        return "open" not in self.known.values()

    @property
    def unproven(self) -> bool:
        """Whether every capability is known, if the layout holds, and that is doubted."""
        return self.doubted and self.settled


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
    session is "precise" of which one capability is open, for example, and the status "budget" is
    there only where the budget is used up.
    """
    known = facts.known
    end, reason = _end(facts)
    return SessionJudgement(
        end, reason, {name: _status(facts, end, name, known[name]) for name in facts.live}
    )


def lean_statuses(status: Mapping[str, str], leaning: Collection[str]) -> dict[str, str]:
    """The same statuses, but of what is known and leans on its prior that it does.

    Args:
        status: Status of each capability.
        leaning: Names of the nodes of which a flat prior says far less.
    """
    return {
        name: LEANS if name in leaning and word in (PRECISE, BOUNDED) else word
        for name, word in status.items()
    }


def target_sd(rule: StoppingRule, node: Latent) -> float:
    """The standard deviation, in the unit of a capability, at which it is at its target.

    It is no larger than what shows that something was learnt, so that no prior alone is at a
    target. 0 if there is no target.

    Args:
        rule: The stopping rule, with the targets.
        node: The capability.
    """
    return min(rule.target(node.name) * node.prior.span, LEARNT * node.prior.sd)


def knowledge_of(
    layout: Layout,
    rule: StoppingRule,
    nodes: Sequence[NodeSummary],
    asked: Mapping[str, Asked],
) -> dict[str, Known]:
    """What the summaries of a posterior know of each capability.

    A capability is precise if its standard deviation is at the target and below the prior's, and
    the evidence falls off on both sides of the estimate. A chance from 0 to 1 has ends of its own,
    beyond which there is nothing, so the first suffices. Where the evidence falls off on one side
    alone, a capability is bounded once the battery has nothing more to ask on the other. Its
    hardest demand was asked, and the standard deviation is at the target or the interval wholly
    above that demand. The same holds below its easiest demand.

    Args:
        layout: The layout.
        rule: The stopping rule, with the targets.
        nodes: Summaries of the nodes, in the layout's order.
        asked: The ends of what the battery asks of each capability; some may be absent.
    """
    margins = {
        node.link.ability for node in layout.derived if isinstance(node.link, LogisticMargin)
    }
    known: dict[str, Known] = {}
    for i in layout.capabilities:
        node, latent = nodes[i], layout.latents[i]
        low, high = node.hdi
        target, span = target_sd(rule, latent), latent.prior.span
        narrow = not rule.target_width or high - low <= rule.target_width * span
        two_sided = node.two_sided or (latent.is_share and node.name not in margins)
        ends = asked.get(node.name, Asked())
        known[node.name] = "open"
        if not target or not learnt(node.sd, latent.prior.sd):
            continue
        at_target = node.sd <= target
        nothing_harder = ends.hardest < inf and (at_target or low >= ends.hardest)
        nothing_easier = ends.easiest > -inf and (at_target or high <= ends.easiest)
        if two_sided and at_target and narrow:
            known[node.name] = "precise"
        elif (node.side == "at least" and nothing_harder) or (
            node.side == "at most" and nothing_easier
        ):
            known[node.name] = "bounded"
    return known


def _end(facts: Facts) -> tuple[End | None, str]:
    if facts.other is not None:
        return facts.other
    if facts.contradicted and facts.rule.stop_at_alarm:
        return "layout contradicted", "layout contradicted: it does not describe this agent"
    known = _end_by_facts(facts) if _may_settle(facts) and not facts.doubted else None
    used = _spent_budgets(facts.rule, facts.played, facts.seconds)
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


def _end_by_facts(facts: Facts) -> tuple[End, str] | None:
    known = facts.known
    words = set(known.values())
    if words == {"precise"}:
        return "precise", "every capability is precise, if the layout and its priors hold"
    if words == {"precise", "bounded"}:
        return (
            "precise",
            "every capability is precise, or bounded where the battery ends, if the layout and its "
            "priors hold",
        )
    if words == {"bounded"}:  # ends nothing soon; but later there is nothing more to ask
        if facts.played < HORIZON:
            return None
        return (
            "nothing left to learn",
            "nothing left to learn: every capability is only bounded, and the battery asks for "
            "nothing beyond",
        )
    if all(word != "open" or facts.futile[name] for name, word in known.items()):
        return (
            "nothing left to learn",
            f"nothing left to learn: {HORIZON} more episodes are not expected to lower any "
            f"standard deviation that is still above its target by {facts.rule.futility:.1%}",
        )
    return None


def _spent_budgets(rule: StoppingRule, played: int, seconds: float) -> list[tuple[End, str]]:
    """The budgets that are used up."""
    used: list[tuple[End, str]] = []
    if played >= rule.max_episodes:
        used.append(("budget", f"the budget of {rule.max_episodes} episodes is used up"))
    if 0.0 < rule.max_seconds <= seconds:
        used.append(("budget", f"the budget of {rule.max_seconds:g} s is used up"))
    return used


def _status(facts: Facts, end: End | None, name: str, known: Known) -> Status:
    if facts.contradicted:
        return CONTRADICTED
    if not facts.readable:
        return NOT_READ
    if known != "open" and not (facts.unproven and end in _OF_THE_REST):
        return PRECISE if known == "precise" else BOUNDED
    if end is None:
        return "measuring"
    if end == "nothing left to learn":
        return "limited by noise" if facts.noisy.get(name) else "limited by the battery"
    return _OF_THE_REST[end]
