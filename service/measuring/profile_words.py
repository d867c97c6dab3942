"""The words of profiles that commands and pages share."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from animalcat.layouts.model.units import NOT_KNOWN
from animalcat.wire.words import CONTRADICTED, NOT_CERTIFIED

STATUS_MEANS: Final = {
    "measuring": "its target is not reached yet.",
    "precise, if the layout holds": "the fit reaches its target, with data on both "
    "sides. This assumes that the layout describes the agent; the alarm and a last check test it.",
    "bounded": "only a lower or an upper bound is known, since the battery has nothing "
    "harder, or nothing easier.",
    "leans on its prior": "it would be precise or bounded, but under a flat prior far less is "
    "known. What is said of it holds under both.",
    "budget": "the budget was used up before the target was reached.",
    "used up": "everything was played before the target was reached.",
    "limited by the battery": "no remaining arena would show much more.",
    "limited by noise": "the agent's own randomness hides what more arenas could show.",
    "ended": "the session was ended before its target was reached; its reason says why.",
    "cancelled": "the session was cancelled before its target was reached.",
    "layout contradicted": "the alarm stands: the layout does not describe this agent.",
    "not to be read": "the layout predicts this agent worse than its own average does, or "
    "held-out scores too badly.",
}
"""What each status of a capability means."""

_SHOWN: Final = (CONTRADICTED, NOT_CERTIFIED)
"""Beginnings of the labels that are told in words of their own."""


def decimals(sd: float) -> int:
    """Return the number of decimals that shows a standard deviation to two significant figures."""
    return max(0, 1 - math.floor(math.log10(sd))) if sd > 0.0 else 2


def estimate(node: Mapping[str, Any], unit: str = "") -> str:
    """Return a node's estimate in words: mean and deviation, or the bound of one-sided evidence.

    Args:
        node: The node, as profiles have it.
        unit: What follows a number, with a space before it.
    """
    digits = decimals(node["sd"])
    if not node.get("known", True):
        low, high = node["hdi"]
        return f"{NOT_KNOWN} ({low:.{digits}f} to {high:.{digits}f}{unit})"
    if node.get("bound") is not None:
        return f"{node['side']} {node['bound']:.{digits}f}{unit}"
    return f"{node['mean']:.{digits}f} ± {node['sd']:.{digits}f}{unit}"


def control_cells(row: Mapping[str, Any]) -> dict[str, str]:
    """Return the cells, by column, of a comparison of arenas with a control of them.

    Args:
        row: One of a profile's `controls`.
    """
    signs = (f"{100.0 * row[key]:+.0f}".replace("-", "−") for key in ("difference", "low", "high"))
    difference, low, high = signs
    return {
        "arenas": row["paradigm"] or "all",
        "control": row["control"],
        "as they are": f"{row['plain_passed']} of {row['plain_episodes']}",
        "with control": f"{row['control_passed']} of {row['control_episodes']}",
        "pairs": str(row["pairs"]),
        "only arena": str(row["only_plain"]),
        "only control": str(row["only_changed"]),
        "difference, %": f"{difference} ({low} to {high})",
        "says": row["says"],
    }


def warnings(profile: Mapping[str, Any]) -> list[str]:
    """Return what must be known before any number of a profile is read."""
    made: list[str] = []
    judgement: Mapping[str, Any] = profile.get("judgement") or {}
    if judgement.get("standing") == "not described":
        made.append(" ".join((judgement["text"], *judgement["evidence"])))
    labels = (str(label) for label in profile.get("labels", []))
    made += [f"{one[0].upper()}{one[1:]}." for one in labels if not one.startswith(_SHOWN)]
    diagnostics: Mapping[str, Any] = profile.get("diagnostics", {})
    if not diagnostics.get("converged", True):
        reasons = "; ".join(map(str, diagnostics.get("reasons") or ["the fit did not converge"]))
        made.append(f"Not certified: {reasons}.")
    return made


def judgement_words(profile: Mapping[str, Any]) -> str:
    """Return whether the layout describes the agent, with the evidence; empty if warned of."""
    judgement: Mapping[str, Any] = profile.get("judgement") or {}
    if not judgement or judgement["standing"] == "not described":
        return ""
    return " ".join((judgement["text"], *judgement["evidence"]))


def token_words(spent: Mapping[str, Any] | None) -> str:
    """Return what an agent spent of tokens and money, in words; empty where nothing is known.

    Args:
        spent: As the provenance of profiles has it; None for those that have none.
    """
    if not spent:
        return ""
    given, returned = spent["tokens_in"], spent["tokens_out"]
    tokens = f"{given:,} tokens given, {returned:,} returned" * bool(given or returned)
    costs = (f"{amount:.4g} {currency}" for currency, amount in spent["costs"].items())
    return ", ".join(filter(None, (tokens, *costs)))


def battery_rate(profile: Mapping[str, Any]) -> str:
    """The success rate on the whole battery as a sentence."""
    return str(profile["battery_rate"]["text"])
