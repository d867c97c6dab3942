"""Makes the report on a battery from what a server has of it; this takes the server extra."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from animalcat import values as client_values
from animalcat.arena_configs.instance import Instance
from animalcat.arena_configs.origin import Origin
from animalcat.cli.layout.show import load
from animalcat.cli.shared.output import fail
from animalcat.client import Client
from animalcat.errors import AnimalcatError
from animalcat.files import write_whole
from animalcat.layouts.model.spec import Layout
from animalcat.service.batteries.battery import Battery, NamedLayout
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


def received(client: Client, name: str) -> Battery:
    """A battery of a server, without its arenas."""
    return battery_of(client.get_battery(name), client.instances(name))


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


def named_layout(known: client_values.Battery) -> NamedLayout | None:
    """The layout that a battery of a server names; None for none."""
    named: Mapping[str, Any] = known.manifest.get("layout") or {}
    return NamedLayout(named["name"], named["variant"] or "") if named.get("named") else None


def battery_of(known: client_values.Battery, received: Iterable[client_values.Instance]) -> Battery:
    """A battery as the server has it, without the arenas' folder and the episodes' seeds."""
    validity: Mapping[str, Any] = known.manifest.get("validity") or {}
    return Battery(
        digest=known.digest,
        units={feature.name: feature.unit for feature in known.features},
        instances=tuple(
            Instance(
                name=instance.name,
                paradigm=instance.paradigm,
                features=instance.features,
                pass_mark=instance.pass_mark,
                time_limit_steps=instance.time_limit_steps,
                seed=0,
                arena="",
                missing=instance.missing,
                places=instance.places,
                origin=None if instance.origin is None else Origin(**asdict(instance.origin)),
                suite=instance.suite,
                task_name=instance.task,
                variant=instance.variant,
            )
            for instance in received
        ),
        problems=known.problems,
        folder=Path(),
        versions={f.name: f.version for f in known.features if f.version},
        recipe=known.manifest.get("recipe") or {},
        unsolved=validity.get("unsolved"),
        drawn=known.manifest.get("drawn") or {},
        doubles=known.manifest.get("same_arena") or {},
        layout=named_layout(known),
    )
