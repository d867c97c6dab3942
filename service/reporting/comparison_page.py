"""A comparison of agents as one HTML page, which loads nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from markupsafe import Markup
from matplotlib.figure import Figure

from animalcat import plots
from animalcat.layouts.adaptive.paired import compare_each
from animalcat.layouts.checking.compare import TOLD_APART
from animalcat.layouts.checking.side_by_side import (
    cluster_rows,
    compare_agents,
    difference_rows,
    rank_rows,
)
from animalcat.layouts.explaining.wording import few_of, percent
from animalcat.plots.agents import node_comparison, node_ranks
from animalcat.plots.given import table_of
from animalcat.plots.inline import inline_svg
from animalcat.plots.readings import NodeReading
from animalcat.service.reporting import session_report as told
from animalcat.service.reporting.comparison import Compared
from animalcat.service.reporting.templates import templates

Row = Mapping[str, Any]

FEW: Final = 24
"""Agents up to which each has a row, a column or a mark of its own in the pictures."""


def comparison_page(
    known: Compared,
    title: str,
    intro: Sequence[str] = (),
    common: Mapping[str, Sequence[bool | None]] | None = None,
    against: str = "",
    *,
    pairs: bool = False,
) -> str:
    """Make the page of a comparison.

    Args:
        known: The agents side by side.
        title: Its title.
        intro: Sentences below the title.
        common: Whether each agent passed the arenas that all play; None: not played yet.
        against: The agent with which the others are compared on these; empty for none.
        pairs: Whether the difference of every two agents is on it; of two it always is.

    Returns:
        An HTML document.
    """
    nodes_of = {name: profile["nodes"] for name, profile in known.profiles.items()}
    every = "every" if pairs else None
    report = compare_agents(known.posteriors, pairs=every, scales=known.scales, nodes=nodes_of)
    missing: list[str] = []
    drawn = _Pictures(missing)
    words = {(row["node"], row["agent"]): row["interval"] for row in rank_rows(report, every=True)}
    nodes = [drawn.of(*node_figure) for node_figure in _nodes(known, words)]
    names = few_of(list(known.results))
    profiles, tables = (
        known.profiles,
        {name: table_of(result, "comparison") for name, result in known.results.items()},
    )
    plane = drawn.of(
        lambda: plots.population(profiles, scales=known.scales),
        f"{names} by two capabilities, with intervals; size is noise, shade the share passed.",
    )
    wide, success = (), (plane,)
    if len(profiles) <= FEW:
        wide = (
            drawn.of(
                lambda: plots.heat(profiles, scales=known.scales),
                f"Table of means and SDs of {names} by node.",
            ),
        )
        success = (plane, *(drawn.of(draw, said) for draw, said in _successes(tables, names)))
    else:
        missing.append(
            f"Pictures with a row or a mark for each agent are drawn of at most {FEW} agents."
        )
    return (
        templates()
        .get_template("comparison.html.j2")
        .render(
            title=title,
            intro=intro,
            labels=known.labels(),
            differences=known.differences,
            agents=[_agent(name, result.profile) for name, result in known.results.items()],
            common=common or {},
            against=against,
            paired=compare_each(common, against) if common and against else {},
            nodes=[picture for picture in nodes if picture],
            wide=[picture for picture in wide if picture],
            success=[picture for picture in success if picture],
            missing=missing,
            ranks=rank_rows(report, every=True),
            clusters=cluster_rows(report, every=True),
            told_apart=percent(TOLD_APART),
            rows=difference_rows(report, every=bool(report["differences"])),
            every=bool(report["differences"]),
            falling=[node for node in known.nodes if not known.scales[node].rising],
        )
    )


def _successes(tables: Mapping[str, Any], names: str) -> Iterator[tuple[Callable[[], Figure], str]]:
    yield (
        lambda: plots.brier(tables),
        f"Brier score of predictions against success of {names}.",
    )
    yield lambda: plots.categories(tables), f"Success of {names} by paradigm, a table."
    yield lambda: plots.radar(tables), f"Success of {names} by paradigm, a radar."
    yield (
        lambda: plots.generality(tables),
        f"Spread of the successes of {names} over difficulty, against capability.",
    )


class _Pictures:
    """Draws pictures, and notes why one cannot be drawn."""

    def __init__(self, missing: list[str]) -> None:
        self._missing = missing
        self._count = 0

    def of(self, draw: Callable[[], Figure], alt: str) -> Markup:
        """A picture as SVG; empty where it cannot be drawn."""
        self._count += 1
        try:
            return Markup(inline_svg(draw(), f"f{self._count}", alt))
        except ValueError as error:
            text = str(error)
            self._missing.append(f"{text[:1].upper()}{text[1:]}.")
            return Markup()


def _nodes(
    known: Compared, words: Mapping[tuple[str, str], str]
) -> Iterator[tuple[Callable[[], Figure], str]]:
    for node in known.nodes:
        reading = NodeReading(node, known.scales[node])
        if len(known.profiles) > FEW:
            yield (
                lambda node=node, reading=reading: node_ranks(known.profiles, node, reading),
                f"90 % intervals of {node}, from the greatest mean to the least.",
            )
            continue
        said = "; ".join(f"{name} {words[node, name]}" for name in known.profiles)
        yield (
            lambda node=node, reading=reading: node_comparison(
                known.profiles, node, known.posteriors, reading
            ),
            f"90 % intervals of {node}: {said}.",
        )


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
        "played_on": told.played_on(profile),
        "observation": told.observation_words(about.get("observation_spec") or {}),
        "episodes": about.get("episodes", 0),
        "successes": about.get("successes", 0),
        "verdict": "" if verdict is None else " ".join(verdict["sentences"]),
        "reason": about.get("reason") or "not yet",
        "whole": told.whole({k: v for k, v in about.items() if k != "paradigms"}),
    }
