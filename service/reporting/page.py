"""The report on a battery as one HTML page, which loads nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
from markupsafe import Markup

from animalcat.maps.small import arena_map
from animalcat.service.reporting import charts
from animalcat.service.reporting.additions import Addition, words
from animalcat.service.reporting.battery_report import RULES, BatteryReport, summary
from animalcat.service.reporting.precision import UNKNOWN, NodePrecision
from animalcat.service.reporting.spread import Gap, Spread
from animalcat.service.reporting.templates import templates

GROUPS: Final[Mapping[str, str]] = {
    "arena": "What stands in the arena at the start",
    "way": "The way to the goal",
    "sight": "Sight of the goal",
    "rewards": "Rewards",
    "look": "Looks, which should not matter",
    "object permanence": "Object permanence, as Burden et al. 2023 define it",
    "hiding": "Hiding",
    "your own": "From your own table",
}
"""Headings of the groups of demands."""

Tick = Callable[[int, int], None]
"""Told how many maps are drawn, of how many."""


def html_page(
    report: BatteryReport, arenas: Mapping[str, str], tick: Tick = lambda done, total: None
) -> str:
    """Make the page of a report.

    Args:
        report: The report.
        arenas: Arenas by instance, as YAML; an instance without one has no map.
        tick: Told of progress.

    Returns:
        An HTML document.
    """
    shown = report.shown
    maps: dict[str, Markup] = {}
    for done, name in enumerate(shown):
        tick(done, len(shown))
        if name in arenas:
            maps[name] = Markup(arena_map(arenas[name], name))
    environment = templates()
    filters: dict[str, Callable[..., Any]] = {
        "number": charts.number,
        "signed": charts.signed,
        "of_node": _of_node,
        "scaled": _scaled,
        "unit": _unit,
        "histogram": _drawn(charts.histogram),
        "bar": _drawn(charts.precision_bar),
        "gaps": _gaps,
        "values": _values(report),
        "wanted": _wanted(report),
    }
    environment.filters.update(filters)
    known = report.precision
    pictured = [report.correlations.names.index(name) for name in report.picture.names]
    return environment.get_template("battery_report.html.j2").render(
        report=report,
        summary=list(summary(report)),
        rules=RULES,
        groups=[
            (GROUPS[group], [s for s in report.spreads if s.demand.group == group])
            for group in dict.fromkeys(s.demand.group for s in report.spreads)
        ],
        units={s.demand.name: s.demand.unit for s in report.spreads},
        abouts={s.demand.name: s.demand.about for s in report.spreads},
        maps=maps,
        without_map=len(shown) - sum(map(bool, maps.values())),
        heat=Markup(
            charts.heat_map(
                report.picture.names,
                report.correlations.rho[pictured][:, pictured],
                "Spearman's correlations between demands; the closest pairs are listed in words",
            )
        )
        if len(pictured) > 1
        else "",
        parted=_parted(report),
        known=known,
        reliability=report.reliability_rows,
        nodes={} if known is None else {node.name: node for node in known.nodes},
        unknown=UNKNOWN,
        tangled=Markup(
            charts.heat_map(
                [node.name for node in known.nodes],
                known.correlations,
                "Posterior correlations between the nodes of the layout",
            )
        )
        if known is not None
        else "",
    )


def _parted(report: BatteryReport) -> Markup:
    """A picture of how far demands of the layout go together; empty where fewer than two vary."""
    together = () if report.separation is None else report.separation.together
    names = list(dict.fromkeys(name for pair in together for name in (pair.one, pair.other)))
    if not names:
        return Markup("")
    at = {name: k for k, name in enumerate(names)}
    rho = np.eye(len(names))
    for pair in together:
        rho[at[pair.one], at[pair.other]] = rho[at[pair.other], at[pair.one]] = pair.ranks
    label = "Spearman's correlations between the layout's demands"
    return Markup(charts.heat_map(names, rho, label))


def _of_node(value: float, node: NodePrecision) -> str:
    return f"{_scaled(value, node)} {node.reads_in}".rstrip()


def _scaled(value: float, node: NodePrecision) -> str:
    """A deviation of a node as it is read, in a unit that stands elsewhere."""
    return charts.number(node.read(value))


def _unit(node: NodePrecision) -> str:
    return node.reads_in


def _drawn(chart: Callable[[Any], str]) -> Callable[[Any], Markup]:
    return lambda value: Markup(chart(value))


def _gaps(spread: Spread) -> str:
    """The gaps of a demand in words."""
    return "; ".join(map(_gap, spread.gaps))


def _gap(gap: Gap) -> str:
    low, high = charts.number(gap.low), charts.number(gap.high)
    return low if low == high else f"{low} to {high}"


def _values(report: BatteryReport) -> Callable[[Mapping[str, float]], str]:
    """Demands with values and units in words."""
    units = {s.demand.name: s.demand.unit for s in report.spreads}

    def told(values: Mapping[str, float]) -> str:
        return ", ".join(_quantity(name, value, units) for name, value in values.items())

    return told


def _wanted(report: BatteryReport) -> Callable[[Addition], list[str]]:
    units = {s.demand.name: s.demand.unit for s in report.spreads}
    if report.precision is not None:
        units |= {
            feature.name: "" if feature.unit == "1" else feature.unit
            for feature in report.precision.layout.features
        }
    return lambda addition: list(words(addition, units))


def _quantity(name: str, value: float, units: Mapping[str, str]) -> str:
    return f"{name} {charts.number(value)} {units.get(name, '')}".rstrip()
