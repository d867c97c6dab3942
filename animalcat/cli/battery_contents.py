"""What `animalcat battery show` prints and `battery export` writes; this takes the server extra."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, Final

from animalcat.cli.shared.output import fail, print_table, say
from animalcat.client import Client
from animalcat.errors import AnimalcatError
from animalcat.lab.received import Tell, battery_of, tell_instances
from animalcat.machine.marks import mark
from animalcat.values import Instance

LISTED: Final = 20
"""Values of a count, or unsolved instances, that are printed at most."""


def export(client: Client, name: str, folder: Path, tell: Tell) -> int:
    """Write a battery: manifest, table and arenas.

    Args:
        client: Of the server.
        name: Name of the battery.
        folder: Where to write.
        tell: Told of progress.

    Returns:
        Number of instances.

    Raises:
        AnimalcatError: There is no such battery, or a file cannot be written.
    """
    from animalcat.service.reporting.instance_table import csv_text, parquet_bytes

    known = client.get_battery(name)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        mark(folder)
        written = (
            _write_instance(folder / "arenas", instance)
            for instance in tell_instances(
                client.instances(name, arenas=True), known, "writing arenas", tell
            )
        )
        battery = battery_of(known, written)
        tell("writing the table", 0, 0)
        text = json.dumps(known.manifest, indent=1, ensure_ascii=False) + "\n"
        (folder / "manifest.json").write_text(text, "utf-8")
        (folder / "table.csv").write_text(csv_text(battery), "utf-8")
        (folder / "table.parquet").write_bytes(parquet_bytes(battery))
    except OSError as error:
        raise AnimalcatError(f"{folder}: cannot be written: {error.strerror}") from error
    return len(battery.instances)


def _write_instance(folder: Path, instance: Instance) -> Instance:
    """Write the arena of an instance, and give the instance back."""
    path = PurePosixPath(f"{instance.name}.yaml")
    if path.is_absolute() or ".." in path.parts:
        fail(f"instance {instance.name!r}: this name is not a file inside {folder}")
    target = folder / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(instance.arena_yaml, "utf-8")
    return instance


def show(manifest: Mapping[str, Any]) -> None:
    """Print what is in a battery, in words."""
    recipe: Mapping[str, Any] = manifest["recipe"] or {}
    say(f"battery {manifest['battery']}: {manifest['instances']} instances")
    if recipe:
        say(recipe["about"])
        say(f"recipe: {recipe['name']}, seed {recipe['seed']}")
    say(f"licence: {manifest['licence'] or 'none is given'}")
    say(f"digest: {manifest['digest']}")
    _show_parts(manifest.get("parts") or [])
    for what, counts in manifest["counts"].items():
        if counts:
            say(f"{what}: {_join_counts(counts)}")
    say(f"pairs: {manifest['pairs']} instances are controls of others in the battery")
    for what, instances in (
        ("set aside, since no play can pass", manifest.get("set_aside", {})),
        ("cannot be failed", manifest.get("cannot_fail", {})),
    ):
        if instances:
            few = ", ".join(list(instances)[:LISTED]) + (", ..." if len(instances) > LISTED else "")
            say(f"{what}: {len(instances)} ({few})")
    _show_layout(manifest["layout"])
    _show_validity(manifest["validity"])


def _show_parts(parts: Sequence[Mapping[str, Any]]) -> None:
    """Print how much there is of every suite and paradigm, where names or a table say it."""
    optional = ("suite", "tasks", "variants")
    if any(part[what] for part in parts for what in optional):
        columns = ("suite", "paradigm", "instances", "tasks", "variants", "groups")
        used = [c for c in columns if c not in optional or any(part[c] for part in parts)]
        print_table(parts, used)


def _join_counts(counts: Mapping[str, int]) -> str:
    shown = [f"{name} {number}" for name, number in list(counts.items())[:LISTED]]
    more = len(counts) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _show_layout(layout: Mapping[str, Any] | None) -> None:
    if layout is None:
        return
    called = layout["name"] + (f", variant {layout['variant']}" if layout["variant"] else "")
    if "problem" in layout:
        say(f"layout {called}: {layout['problem']}")
        return
    whose = "" if layout["named"] else " (the battery names none)"
    say(f"layout {called}{whose}: covers {layout['covered']} of {layout['of']} instances")
    for why, number in layout["left_out"].items():
        say(f"  left out: {number}, {why}")
    for demand, counts in layout["demands"].items():
        for why, number in counts["missing"].items():
            say(f"  {demand} does not apply to {number}: {why}")
    for cue, found in layout["cues"].items():
        say(
            f"  {found['misleads']} tell an agent that relies on {cue} from one that has "
            f"{found['instead_of']}: there it misleads"
        )


def _show_validity(validity: Mapping[str, Any] | None) -> None:
    if validity is None:
        say("validity: the planner has not played these arenas")
        return
    say(f"validity: the planner solves {validity['solved']} of {validity['played']}")
    unsolved = list(validity["unsolved"].items())
    for name, why in unsolved[:LISTED]:
        say(f"  not solved: {name}: {why}")
    if len(unsolved) > LISTED:
        say(f"  and {len(unsolved) - LISTED} more, which --json lists")
