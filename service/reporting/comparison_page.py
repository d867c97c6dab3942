"""A comparison of agents as one HTML page, which loads nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from animalcat.layouts.checking.compare import FEW
from animalcat.plots.agents import compared_nodes
from animalcat.plots.style import embed_figure
from animalcat.service.reporting import session_report as told
from animalcat.service.reporting.comparison import Comparison
from animalcat.service.reporting.templates import templates

Row = Mapping[str, Any]


def comparison_page(known: Comparison, title: str, intro: Sequence[str] = ()) -> str:
    """Make the page of a comparison.

    Args:
        known: The agents side by side.
        title: Its title.
        intro: Sentences below the title.

    Returns:
        An HTML document.
    """
    return (
        templates()
        .get_template("comparison.html.j2")
        .render(
            title=title,
            intro=intro,
            labels=known.labels(),
            differences=known.differences,
            agents=[_agent(name, profile) for name, profile in known.profiles.items()],
            figures=[_figure(known, node) for node in known.nodes],
            few=len(known.profiles) <= FEW,
            rows=[row.cells() for row in known.standings],
            remarks=known.remarks(),
        )
    )


def _figure(known: Comparison, node: str) -> Markup:
    """The agents' intervals of a node."""
    words = "90 % intervals of many agents, from the greatest mean to the least."
    if len(known.profiles) <= FEW:
        each = (f"{r.agent} {r.words.interval}" for r in known.standings if r.node == node)
        words = f"90 % intervals: {'; '.join(each)}."
    figure = compared_nodes(known.profiles, known.standings, known.scales, [node])
    return Markup(embed_figure(figure, f"{node}, {words}"))


def _agent(name: str, profile: Row) -> dict[str, Any]:
    about: Row = profile.get("provenance", {})
    layout: Row = profile["layout"]
    verdict: Row | None = profile.get("verdict")  # a fit of a table has none
    return {
        "agent": name,
        "session": str(about.get("session", "")).removeprefix("sessions/"),
        "battery": about.get("battery", ""),
        "battery_digest": str(about.get("battery_digest", ""))[:12],
        "layout": f"layout {layout['name']} ({layout['variant'] or 'default'})",
        "layout_digest": layout["digest"][:12],
        "played_on": told.words_of_backend(profile),
        "observation": told.observation_words(about.get("observation_spec") or {}),
        "episodes": about.get("episodes", 0),
        "successes": about.get("successes", 0),
        "verdict": "" if verdict is None else " ".join(verdict["sentences"]),
        "reason": about.get("reason") or "not yet",
    }
