"""How to choose and when to stop, from the options of `session run`; and why it chose as it did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from animalcat.cli.shared.output import BAD_INPUT, fail
from animalcat.client.values import (
    Capability,
    Combine,
    Decision,
    Episode,
    Policy,
    PolicyName,
    Spent,
    StoppingRule,
)
from animalcat.envs.agents.base import Allowance
from animalcat.layouts.adaptive.plan import PRESETS
from animalcat.layouts.model.units import plain_unit
from animalcat.words import COMBINES, POLICIES


def stopping_rule(preset: str, targets: Sequence[str], given: Mapping[str, Any]) -> StoppingRule:
    """A preset, with what was given on the command line instead.

    Args:
        preset: Name of a preset; empty: the server's default rule.
        targets: Targets of single capabilities, each "NAME=SHARE".
        given: Fields of the rule; None: as the preset has it.
    """
    if preset and preset not in PRESETS:
        fail(f"there is no preset {preset!r}; there are: {', '.join(PRESETS)}", BAD_INPUT)
    fields: dict[str, Any] = {}
    if preset:
        chosen = PRESETS[preset]
        fields = {name: getattr(chosen, name) for name in ("max_episodes", "target_sd", "futility")}
    fields |= {name: value for name, value in given.items() if value is not None}
    shares: dict[str, float] = {}
    for target in targets:
        name, _, share = target.partition("=")
        if name in shares:
            fail(f"--target {target}: {name} has a target already; give it once", BAD_INPUT)
        try:
            shares[name] = float(share)
        except ValueError:
            fail(f"--target {target}: give NAME=SHARE, for example visualAbility=0.1", BAD_INPUT)
    return StoppingRule(**fields, targets=shares)


def policy_named(name: str, **fields: Any) -> Policy:
    """A policy by its name, or by that of a plugin, which the server knows.

    Args:
        name: The name; empty where none is given.
        fields: What else is said of it.
    """
    if name and name not in POLICIES:
        return Policy("plugin", plugin=name, **fields)
    return Policy(cast("PolicyName", name) if name else None, **fields)


def combine(name: str) -> Combine | None:
    """How the parts of a stopping rule go together; None where nothing is given."""
    if name and name not in COMBINES:
        fail(f"--stop {name!r}: give one of {', '.join(COMBINES)}", BAD_INPUT)
    return cast("Combine", name) if name else None


def unreachable(capability: Capability) -> str:
    """That a capability's target is out of the battery's reach."""
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
    reason = decision.reason or ""
    if episode.practice:
        first = f"episode {episode.number}: {decision.instance}, for practice: it does not count"
        return "\n".join([first, *_because(decision), *_ended(episode)])
    lines = [
        f"episode {episode.number}: {decision.instance}, {reason}, with probability "
        # Of the layout's first outcome: the probability of success, or the mean share.
        f"{decision.propensity:.2g}; outcome predicted {decision.predicted:.2f}",
        *_because(decision),
        f"  score {decision.score:.3g}" + "".join(f", {margin}" for margin in margins),
    ]
    lines += _ended(episode)
    if decision.pending:
        lines.append(f"  outcomes of {decision.pending} earlier episodes were still to come")
    if decision.alternatives:
        others = ", ".join(f"{a.instance} {a.score:.3g}" for a in decision.alternatives)
        lines.append(f"  instead: {others}")
    return "\n".join(lines)


def _ended(episode: Episode) -> list[str]:
    """How it ended early, what a person said of that, and whether its arena was seen before."""
    lines = [f"  {episode.outcome}: {episode.cause}"] if episode.cause else []
    if episode.ruling == "awaited":
        lines.append("  a person has to say what it counts as: animalcat session judge")
    elif episode.ruling:
        lines.append(f"  judged by a person: {episode.ruling}")
    if episode.seen:
        lines.append("  its arena was seen before: the agent's code failed there, or it withdrew")
    return lines


def allowance_words(allowance: Allowance | None) -> str:
    """What an agent may spend, in words; empty for any amount."""
    if allowance is None:
        return ""
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
    if spent.tokens_in or spent.tokens_out:
        parts.append(f"{spent.tokens_in} tokens in, {spent.tokens_out} out")
    parts += [f"{amount:.4g} {currency}" for currency, amount in spent.costs.items()]
    return ", ".join(parts)


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
    demands = ", ".join(f"{k} {v:.4g}" for k, v in sorted(instance.features.items()))
    reason = decision.reason or ""
    return [f"  {reason} because {decision.because}; made for {demands}", *note]
