"""What a profile says in words, and the draws that it rests on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.text.showing import line_html

AgentKind: TypeAlias = Literal[
    "able", "single weakness", "single strength", "fraudster", "context", "unclear"
]
"""Kinds of agents, as verdicts name them."""


class PosteriorDraws(NamedTuple):
    """The draws of a session's posterior, with the profile that rests on them.

    Attributes:
        profile: The profile, by the schema "profile".
        layout: The layout as plain data, in the form of a YAML file.
        draws: (chains, draws, nodes), in the order of the layout's latent nodes.
        features: (episodes, features) of what it rests on, in the order of the layout's features.
        passed: By instance that was played, whether it was passed the first time; empty unless it
            was asked for.
    """

    profile: Mapping[str, Any]
    layout: Mapping[str, Any]
    draws: npt.NDArray[np.float64]
    features: npt.NDArray[np.float64]
    passed: Mapping[str, bool]


def without_chance(profile: Mapping[str, Any]) -> dict[str, Any]:
    """Return a profile without seed and secret, from which a session's next arenas follow."""
    about: Mapping[str, Any] = profile.get("provenance", {})
    kept = {name: value for name, value in about.items() if name not in ("seed", "secret")}
    return {**profile, "provenance": kept}


def profile_row(profile: Mapping[str, Any]) -> dict[str, Any]:
    """Return a profile as one row of a table, to stand beside those of other agents.

    Args:
        profile: By the schema "profile".

    Returns:
        `agent`; `battery`; `episodes` that count; `success rate` on the whole battery with the ends
        of its 90 % interval (`low`, `high`) and of that which the layout predicts (`predicted low`,
        `predicted high`); each capability with its ends, in its unit; `tokens` and `costs` that
        were spent; and `labels`, among them that the layout is contradicted.
    """
    about: Mapping[str, Any] = profile["provenance"]
    rate: Mapping[str, Any] = profile["battery_rate"]
    predicted = rate["predicted"] or (None, None)
    spent: Mapping[str, Any] = about.get("spent") or {}
    row = {name: about[name] for name in ("agent", "battery", "episodes")}
    row |= {"success rate": rate["value"], "low": rate["low"], "high": rate["high"]}
    row |= {"predicted low": predicted[0], "predicted high": predicted[1]}
    for name, node in profile["nodes"].items():
        if node["kind"] == "capability":
            low, high = node["hdi"]
            row |= {name: node["mean"], f"{name} low": low, f"{name} high": high}
    tokens = spent["tokens_in"] + spent["tokens_out"] if spent else None
    costs: Mapping[str, float] = spent.get("costs", {})
    said = ", ".join(f"{amount:.4g} {currency}" for currency, amount in costs.items())
    return {**row, "tokens": tokens, "costs": said, "labels": "; ".join(profile["labels"])}


@dataclass(frozen=True, slots=True)
class TriedCue:
    """What was played tells of a cue by which an agent may go instead of having a capability.

    Attributes:
        goes_by: What it may go by: "where it last saw the goal".
        instead_of: The capability that it then only seems to have.
        episodes: Episodes in which the cue misleads.
        passed: What was reached in them, summed, as shares of the outcome's maximum.
        factor: Bayes factor of an agent that goes by the cue beside one that does not.
        standing: "ruled out", "open", or "likely" that it goes by the cue.
    """

    goes_by: str
    instead_of: str
    episodes: int
    passed: float
    factor: float
    standing: str


@dataclass(frozen=True, slots=True, repr=False)
class Verdict:
    """What a profile says about its agent, in words.

        print(client.verdict(session).text)

    Attributes:
        sentences: Two to five sentences.
        kind: The kind of agent, "unclear" where none is likely enough.
        probability: Probability of the kind.
        probabilities: Of all kinds; they sum to 1.
        why_unclear: Why the kind is unclear; else empty.
        weakness: The node that is most likely the single weakness; else empty.
        fails: Expected share of the battery that the agent fails.
        fails_by: The node whose limit costs most; empty if none matters.
        fails_without: Expected share that it would fail without that limit.
        cues: What was played tells of each cue by which it may go.
    """

    sentences: tuple[str, ...]
    kind: AgentKind
    probability: float
    probabilities: Mapping[str, float]
    why_unclear: str
    weakness: str
    fails: float
    fails_by: str
    fails_without: float
    cues: tuple[TriedCue, ...] = ()

    @property
    def text(self) -> str:
        """The sentences as one paragraph."""
        return " ".join(self.sentences)

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return line_html(self.text)


def verdict_of(profile: Mapping[str, Any]) -> Verdict:
    """The verdict of a session's profile.

    Args:
        profile: By the schema "profile".
    """
    found: Mapping[str, Any] = profile["verdict"]
    fails = found["fails"]
    return Verdict(
        tuple(found["sentences"]),
        found["kind"],
        found["probability"],
        found["probabilities"],
        found["why_unclear"],
        found["weakness"],
        fails["share"],
        fails["by"],
        fails["without"],
        tuple(TriedCue(**cue) for cue in found["cues"]),
    )
