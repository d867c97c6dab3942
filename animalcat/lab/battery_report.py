"""The report on a battery of a lab or a server; this takes the server extra."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from animalcat.client import Client
from animalcat.errors import AnimalcatError
from animalcat.lab.received import Tell, battery_of, tell_instances
from animalcat.layouts.model.codec import SpecificationError
from animalcat.layouts.model.spec import Layout
from animalcat.machine.files import write_whole
from animalcat.service.batteries.battery import Battery
from animalcat.service.errors import ServiceError
from animalcat.service.library.layouts import layout_on
from animalcat.service.reporting.battery_report import (
    MAPS,
    BatteryReport,
    battery_report,
    summary,
)
from animalcat.service.reporting.page import html_page
from animalcat.text.showing import line_html, stacked_html, table_html

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class ReportedBattery:
    """What is in a battery, whether it can be passed, and what it could tell of agents.

    Attributes:
        report: The report as data.
        arenas: The arenas that the page has maps of by name, as YAML.
    """

    report: BatteryReport
    arenas: Mapping[str, str] = field(repr=False)

    @property
    def summary(self) -> tuple[str, ...]:
        """What should be known first, in sentences."""
        return tuple(summary(self.report))

    def to_frame(self) -> pd.DataFrame:
        """Standard errors and reliabilities of each capability; empty without a layout.

        Returns:
            A row for each capability, way to choose ("chosen" by the default policy, or "at
            random") and number of episodes, with the columns `unit`, `standard_error`, in that
            unit, and `reliability`.
        """
        import pandas as pd

        index = ["capability", "arenas", "episodes"]
        columns = [*index, "unit", "standard_error", "reliability"]
        return pd.DataFrame(self.report.reliability_values, columns=columns).set_index(index)

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON values, as `animalcat battery report --json` prints it."""
        return self.report.to_dict()

    def save(self, path: str | Path) -> Path:
        """Write it to a file: .html is the page, .json the data.

        Args:
            path: The file.

        Raises:
            AnimalcatError: The ending is neither of these; it cannot be written.
        """
        target = Path(path)
        if target.suffix not in (".html", ".json"):
            raise AnimalcatError(
                f"{target}: call it .html or .json; the ending says what is written",
                "INVALID_REQUEST",
            )
        as_data = target.suffix == ".json"
        text = json.dumps(self.to_dict(), indent=1) + "\n" if as_data else self.page()
        try:
            write_whole(target, text.encode())
        except OSError as error:
            raise AnimalcatError(f"{target}: cannot be written: {error.strerror}") from None
        return target

    def page(self, tick: Callable[[int, int], None] = lambda done, total: None) -> str:
        """The page as HTML, which loads nothing from elsewhere.

        Args:
            tick: Told how many maps are drawn, of how many.
        """
        return html_page(self.report, self.arenas, tick)

    def __repr__(self) -> str:
        return "\n".join(self.summary)

    def _repr_html_(self) -> str:
        rows = self.report.reliability_rows
        table = [tuple(row.values()) for row in rows]
        shown = [table_html(tuple(rows[0]), table, "Standard error (reliability)")] if rows else []
        return stacked_html(*map(line_html, self.summary), *shown)


def report_battery(
    client: Client,
    name: str,
    layout: Any,
    variant: str,
    maps: int = MAPS,
    tell: Tell = lambda what, done, total: None,
    *,
    page: bool = True,
) -> ReportedBattery:
    """Report on a battery of a server.

    Args:
        client: Of the server.
        name: Name of the battery.
        layout: A layout, or the name or file of one; empty for the one that the battery names, if
            any.
        variant: Its variant; empty for that of new sessions.
        maps: Most maps.
        tell: Told of progress.
        page: Whether the page is wanted, and so the arenas.

    Raises:
        AnimalcatError: There is no such battery or layout, or the layout does not fit.
    """
    known = client.get_battery(name)
    try:
        battery = battery_of(
            known, tell_instances(client.instances(name), known, "reading demands", tell)
        )
        tell("looking at demands", 0, 0)
        report = battery_report(
            name,
            battery,
            _layout(battery, layout, variant),
            maps,
            lambda done, total: tell("simulating agents", done, total),
        )
    except (ServiceError, SpecificationError) as error:
        raise AnimalcatError(str(error), "INVALID_REQUEST") from error
    shown = {*report.shown} if page else set[str]()
    arenas = {
        instance.name: instance.arena_yaml
        for instance in (client.instances(name, arenas=True) if shown else ())
        if instance.name in shown and instance.arena_yaml
    }
    return ReportedBattery(report, arenas)


def _layout(battery: Battery, given: Any, variant: str) -> Layout | None:
    if given or battery.layout is not None:
        return layout_on(battery, given, variant)
    if variant:
        raise AnimalcatError(
            "a variant goes with a layout, as the battery names no layout", "INVALID_REQUEST"
        )
    return None
