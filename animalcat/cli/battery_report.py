"""Makes the report on a battery from what a server has of it; this takes the server extra."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from animalcat import values as client_values
from animalcat.cli.layout.show import load
from animalcat.cli.shared.output import fail
from animalcat.client import Client
from animalcat.errors import AnimalcatError
from animalcat.files import write_whole
from animalcat.lab.received import battery_of, named_layout
from animalcat.layouts.model.spec import Layout
from animalcat.service.errors import ServiceError
from animalcat.service.reporting.battery_report import BatteryReport, battery_report
from animalcat.service.reporting.page import html_page

Tell = Callable[[str, int, int], None]
"""Told what is being done, how much is done, and how much there is."""


def reported(
    client: Client, name: str, layout: str, variant: str, maps: int, tell: Tell, *, page: bool
) -> tuple[BatteryReport, str]:
    """Report on a battery of a server.

    Args:
        client: Of the server.
        name: Name of the battery.
        layout: Name or file of the layout; empty for the one that the battery names, if any.
        variant: Its variant; empty for that of new sessions.
        maps: Most maps.
        tell: Told of progress.
        page: Whether the page is wanted.

    Returns:
        The report and its page; the page is empty unless it is wanted.
    """
    known = client.get_battery(name)
    chosen = _layout(known, layout, variant)
    received: list[client_values.Instance] = []
    for instance in client.instances(name, arenas=page):
        received.append(instance)
        tell("reading arenas", len(received), known.instances)
    tell("looking at demands", 0, 0)
    try:
        report = battery_report(
            name,
            battery_of(known, received),
            chosen,
            maps,
            lambda done, total: tell("simulating agents", done, total),
        )
    except ServiceError as error:
        fail(str(error))
    if not page:
        return report, ""
    arenas = {instance.name: instance.arena_yaml for instance in received if instance.arena_yaml}
    return report, html_page(report, arenas, lambda done, total: tell("drawing maps", done, total))


def write(text: str, path: Path) -> None:
    """Write a page, either completely or not at all.

    Raises:
        AnimalcatError: The file cannot be written.
    """
    try:
        write_whole(path, text.encode())
    except OSError as error:
        raise AnimalcatError(f"{path}: cannot be written: {error.strerror}") from error


def _layout(known: client_values.Battery, name: str, variant: str) -> Layout | None:
    if name:
        return load(name, variant)
    if own := named_layout(known):
        return load(own.name, variant or own.variant)
    if variant:
        fail("--variant goes with --layout, as the battery names no layout")
    return None
