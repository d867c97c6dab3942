"""How to choose and when to stop, from the options of `session run`; and why it chose as it did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from animalcat.cli.shared.output import BAD_INPUT, fail
from animalcat.layouts.adaptive.plan import PRESETS
from animalcat.v1 import sessions_pb2
from animalcat.words import COMBINES, POLICIES, REASONS, word


def stopping_rule(
    preset: str, targets: Sequence[str], given: Mapping[str, Any]
) -> sessions_pb2.StoppingRule:
    """A preset, with what was given on the command line instead.

    Args:
        preset: Name of a preset; empty: the server's default rule.
        targets: Targets of single capabilities, each "NAME=SHARE".
        given: Fields of the rule; None: as the preset has it.
    """
    if preset and preset not in PRESETS:
        fail(f"there is no preset {preset!r}; there are: {', '.join(PRESETS)}", BAD_INPUT)
    rule = sessions_pb2.StoppingRule()
    if preset:
        chosen = PRESETS[preset]
        rule.max_episodes = chosen.max_episodes
        rule.target_sd, rule.futility = chosen.target_sd, chosen.futility
    for field, value in given.items():
        if value is not None:
            setattr(rule, field, value)
    for target in targets:
        name, _, share = target.partition("=")
        try:
            rule.targets[name] = float(share)
        except ValueError:
            fail(f"--target {target}: give NAME=SHARE, for example visualAbility=0.1", BAD_INPUT)
    return rule


def policy_name(name: str) -> sessions_pb2.PolicyName.ValueType:
    """The policy of a name; unspecified where none is given."""
    if name and name not in POLICIES:
        fail(f"there is no policy {name!r}; there are: {', '.join(POLICIES)}", BAD_INPUT)
    return POLICIES.get(name, sessions_pb2.POLICY_NAME_UNSPECIFIED)


def combine(name: str) -> sessions_pb2.Combine.ValueType:
    """How the parts of a stopping rule go together; unspecified where nothing is given."""
    if name and name not in COMBINES:
        fail(f"--stop {name!r}: give one of {', '.join(COMBINES)}", BAD_INPUT)
    return COMBINES.get(name, sessions_pb2.COMBINE_UNSPECIFIED)


def unreachable(capability: sessions_pb2.CapabilityStatus) -> str:
    """That a capability's target is out of the battery's reach."""
    return f"{capability.name}: its target {capability.limit}"


def why(episode: sessions_pb2.EpisodeSummary) -> str:
    """Why an episode's instance was chosen, in a line or two."""
    decision = episode.decision
    margins = [
        f"{name} {abs(margin):.2g} {'above' if margin >= 0 else 'below'} the demand"
        for name, margin in sorted(decision.margins.items())
    ]
    reason = word(decision.reason, REASONS)
    lines = [
        f"episode {episode.episode}: {decision.instance}, {reason}, with probability "
        f"{decision.propensity:.2g}; success predicted {decision.predicted:.2f}",
        *_because(decision),
        f"  score {decision.score:.3g}" + "".join(f", {margin}" for margin in margins),
    ]
    if decision.pending:
        lines.append(f"  outcomes of {decision.pending} earlier episodes were still to come")
    if decision.alternatives:
        others = ", ".join(f"{a.instance} {a.score:.3g}" for a in decision.alternatives)
        lines.append(f"  instead: {others}")
    return "\n".join(lines)


def _because(decision: sessions_pb2.Decision) -> list[str]:
    """Why it was made on demand, and what for; nothing where it is in the battery."""
    if not decision.HasField("made"):
        return []
    demands = ", ".join(f"{k} {v:.4g}" for k, v in sorted(decision.made.features.items()))
    reason = word(decision.reason, REASONS)
    return [f"  {reason} because {decision.because}; made for {demands}"]
