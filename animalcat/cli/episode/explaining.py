"""`animalcat episode explain`: why an episode ended as it did."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from animalcat.cli.shared.common import common
from animalcat.cli.shared.output import console, print_json, print_table, status
from animalcat.cli.shared.remote import client_for, parse_episode

COLUMNS: Final = ("node", "asks for", "has", "decided", "without")
"""Columns of the table of what was asked for."""
_LEAST: Final = 0.01
"""Share from which a node has a row in the table; JSON has them all."""


def explain_one(episode: str) -> None:
    """Print the explanation of one episode.

    Args:
        episode: SESSION/NUMBER[-ATTEMPT], or the whole resource name.
    """
    session, number, attempt = parse_episode(episode)
    with client_for() as client, status("explaining"):
        explanation = client.explain_episode(session, number, attempt)
    if common().as_json:
        print_json(explanation)
        return
    sentences = " ".join(explanation["sentences"])
    if explanation["contradicted"]:  # what the nodes ask for explains nothing then
        console().print(sentences, highlight=False)
        return
    asked = ", ".join(
        f"{name} {value:.3g}" for name, value in explanation["demands"].items() if value
    )
    print_table(
        [_row(need) for need in explanation["needs"] if _matters(need, explanation["expected"])],
        COLUMNS,
        title=f"{explanation['instance']}: {asked}",
    )
    if explanation["discriminators"]:
        rows = [_candidate(candidate) for candidate in explanation["discriminators"]]
        title = "What would tell the candidates apart, with success predicted by each"
        print_table(rows, tuple(rows[0]), title=title)
    console().print(sentences, highlight=False)


def _matters(need: Mapping[str, Any], expected: float) -> bool:
    """Whether it might have decided, or success would be another without it."""
    return need["decided"] >= _LEAST or need["without"]["mean"] - expected >= _LEAST


def _row(need: Mapping[str, Any]) -> dict[str, Any]:
    without = need["without"]
    changed = ", ".join(f"{name} {value:g}" for name, value in need["changed"].items())
    return {
        "node": need["node"],
        "asks for": need["asks"],
        "has": need["has"],
        "decided": f"{100 * need['decided']:.0f} %",
        "without": f"{100 * without['mean']:.0f} % with {changed or 'it at its best'}",
    }


def _candidate(candidate: Mapping[str, Any]) -> dict[str, Any]:
    each = {name: f"{100 * p:.0f} %" for name, p in candidate["predicted"].items()}
    return {"instance": candidate["instance"], "bits": f"{candidate['bits']:.2f}", **each}
