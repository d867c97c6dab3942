"""How to choose and when to stop, from the options of `session run`; and why it chose as it did."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

from animalcat.envs.agents.base import Allowance
from animalcat.layouts.model.units import plain_unit
from animalcat.service.measuring.profile_words import token_words
from animalcat.text.counts import count_of
from animalcat.values import (
    CapabilityStatus,
    Decision,
    Episode,
    Spent,
)


def unreachable(capability: CapabilityStatus) -> str:
    """That a capability's target is out of the battery's reach, or is reached all the same."""
    if not capability.limit:
        return (
            f"{capability.name}: its target is reached after all: this agent is one of the few "
            "that can"
        )
    return f"{capability.name}: its target {capability.limit}"


def why(episode: Episode, units: Mapping[str, str]) -> str:
    """Why an episode's instance was chosen, in a line or two.

    Args:
        episode: The episode.
        units: Unit of each capability.
    """
    decision = episode.decision
    margins = [
        " ".join(
            filter(
                None,
                (
                    name,
                    _distance(abs(margin), units.get(name, "")),
                    f"{'above' if margin >= 0 else 'below'} the demand",
                ),
            )
        )
        for name, margin in sorted(decision.margins.items())
    ]
    reason = decision.reason
    if episode.practice:
        first = f"episode {episode.number}: {decision.instance}, for practice: it does not count"
        return "\n".join([first, *_because(decision), *_ending_words(episode)])
    lines = [
        f"episode {episode.number}: {decision.instance}, {reason}, with probability "
        # Of the layout's first outcome: the probability of success, or the mean share.
        f"{decision.propensity:.2g}; outcome predicted {decision.predicted:.2f}",
        *_because(decision),
        f"  score {decision.score:.3g}" + "".join(f", {margin}" for margin in margins),
    ]
    lines += _ending_words(episode)
    if decision.pending:
        lines.append(
            f"  outcomes still pending: those of {count_of(decision.pending, 'earlier episode')}"
        )
    if decision.alternatives:
        others = ", ".join(f"{a.instance} {a.score:.3g}" for a in decision.alternatives)
        lines.append(f"  instead: {others}")
    return "\n".join(lines)


def _ending_words(episode: Episode) -> list[str]:
    """How it ended early, what a person said of that, and whether its arena was seen before."""
    lines = [f"  {episode.outcome}: {episode.cause}"] if episode.cause else []
    if episode.ruling == "awaited":
        lines.append("  a person has to say what it counts as: animalcat session resume ID --as")
    elif episode.ruling:
        lines.append(f"  judged by a person: {episode.ruling}")
    if episode.seen:
        lines.append("  its arena was seen before: the agent's code failed there, or it withdrew")
    return lines


def allowance_words(allowance: Allowance) -> str:
    """What an agent may spend, in words; empty for any amount."""
    seconds, tokens = allowance.episode_seconds, allowance.episode_tokens
    parts = [
        f"{seconds:g} s of thinking in an episode" if seconds else "",
        f"{tokens} tokens in an episode" if tokens else "",
        f"{allowance.decision_tokens} tokens in a decision" if allowance.decision_tokens else "",
    ]
    return ", ".join(filter(None, parts))


def spent_words(spent: Spent) -> str:
    """What an agent spent, in words: its time, and what its notes say of tokens and costs."""
    parts = [f"{spent.thinking_seconds:.3g} s of thinking"]
    if spent.answers:
        parts.append(f"{spent.answers} answers in words")
    return ", ".join(filter(None, (*parts, token_words(asdict(spent)))))


def _distance(value: float, unit: str) -> str:
    factor, name = plain_unit(unit)
    # A difference of logarithms is no quantity that a reader knows.
    return "" if "(" in name else f"{factor * value:.2g} {name}".rstrip()


def _because(decision: Decision) -> list[str]:
    """Why it was made, and what for; nothing where it is in the battery."""
    instance = decision.made
    if instance is None:
        return []
    note = [f"  {instance.note}"] if instance.note else []
    if instance.made_as != "offer":
        return [f"  a {instance.made_as} of {instance.offer}", *note]
    demands = ", ".join(f"{k} {v:.4g}" for k, v in sorted(instance.instance.features.items()))
    return [f"  {decision.reason} because {decision.because}; made for {demands}", *note]
