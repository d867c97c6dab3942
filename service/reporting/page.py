"""The report on a battery as one HTML page, which loads nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from markupsafe import Markup

from animalcat.maps.small import arena_map
from animalcat.service.reporting.battery_report import (
    RULES,
    BatteryReport,
    number,
    show_correlation,
    summary,
)
from animalcat.service.reporting.precision import UNKNOWN
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
        "number": number,
        "signed": show_correlation,
        "values": _values(report),
    }
    environment.filters.update(filters)
    return environment.get_template("battery_report.html.j2").render(
        report=report,
        summary=list(summary(report)),
        rules=RULES,
        groups=[
            (GROUPS[group], [demand for demand in report.demands if demand.group == group])
            for group in dict.fromkeys(demand.group for demand in report.demands)
        ],
        marks=report.battery.marks,
        maps=maps,
        without_map=len(shown) - sum(map(bool, maps.values())),
        known=report.precision,
        reliability=report.reliability_rows,
        unknown=UNKNOWN,
    )


def _values(report: BatteryReport) -> Callable[[Mapping[str, float]], str]:
    """What puts demands with values and units in words."""
    units = {demand.name: demand.unit for demand in report.demands}

    def words(values: Mapping[str, float]) -> str:
        return ", ".join(
            f"{name} {number(value)} {units.get(name, '')}".rstrip()
            for name, value in values.items()
        )

    return words
