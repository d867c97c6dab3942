"""Says what is in a battery, where it comes from, what it measures and what was not solved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

from animalcat.arena_configs.instance import Instance
from animalcat.layouts.library import load_layout
from animalcat.layouts.model.codec import SpecificationError
from animalcat.service.batteries.battery import USUAL_LAYOUT, Battery
from animalcat.service.batteries.naming import task_of, variant_of
from animalcat.service.errors import ServiceError
from animalcat.service.measuring.coverage import coverage

VERSION: Final = 1
"""Version of the manifest; readers refuse newer ones."""


def manifest(name: str, battery: Battery) -> dict[str, Any]:
    """Describe a battery as JSON values: the same for the same battery.

    Args:
        name: Name of the battery.
        battery: The battery.

    Returns:
        Values as documented by the schema `battery_manifest`.
    """
    recipe = dict(battery.recipe)
    return {
        "version": VERSION,
        "battery": name,
        "digest": battery.digest,
        "instances": len(battery.instances),
        "recipe": recipe or None,
        "licence": recipe.get("licence") or None,
        "counts": _counts(battery),
        "parts": _parts(battery),
        "pairs": sum(bool(one.origin and one.origin.control_of) for one in battery.instances),
        "demands": _demands(battery),
        "validity": _validity(battery),
        "layout": _layout(battery),
        "problems": list(battery.problems),
        "drawn": {name: list(fields) for name, fields in battery.drawn.items()},
        "same_arena": dict(battery.same_arena),
        **battery.marks.to_dict(),
        "notes": list(battery.marks.sentences),
    }


def _counts(battery: Battery) -> dict[str, dict[str, int]]:
    """Numbers of instances by where they come from; empty for arena files."""
    origins = [one.origin for one in battery.instances if one.origin]

    def count(values: Iterable[str]) -> dict[str, int]:
        return dict(sorted(Counter(values).items()))

    return {
        "entry": count(one.entry for one in origins if one.entry),
        "family": count(one.family for one in origins),
        "paradigm": count(one.paradigm for one in battery.instances),
        "part": count(one.part for one in origins),
        "variant": count(one.variant or "plain" for one in origins),
        "control": count(one.control or "none" for one in origins),
    }


def _parts(battery: Battery) -> list[dict[str, str | int]]:
    """How much there is of every suite and paradigm."""
    found: dict[tuple[str, str], list[Instance]] = {}
    for one in battery.instances:
        found.setdefault((one.suite, one.paradigm), []).append(one)
    return [
        {
            "suite": suite,
            "paradigm": paradigm,
            "instances": len(these),
            "tasks": len({task_of(one) for one in these} - {""}),
            "variants": len({variant_of(one) for one in these} - {""}),
            "groups": len({battery.groups[one.name] for one in these}),
        }
        for (suite, paradigm), these in sorted(found.items())
    ]


def _demands(battery: Battery) -> dict[str, dict[str, Any]]:
    return {
        name: {
            "unit": unit,
            "version": battery.versions.get(name, 0),
            "measured": sum(name in one.features for one in battery.instances),
            "missing": _missing(battery, name),
        }
        for name, unit in sorted(battery.units.items())
    }


def _missing(battery: Battery, name: str) -> dict[str, int]:
    """Why a demand is not measured, with numbers of instances."""
    reasons = Counter(
        one.missing.get(name, "not measured")
        for one in battery.instances
        if name not in one.features
    )
    return dict(sorted(reasons.items()))


def _validity(battery: Battery) -> dict[str, Any] | None:
    """What the planner solved; None where it did not play."""
    if battery.unsolved is None:
        return None
    number = len(battery.instances)
    return {
        "by": "planner, in the simulator",
        "played": number,
        "solved": number - len(battery.unsolved),
        "unsolved": dict(battery.unsolved),
    }


def _layout(battery: Battery) -> dict[str, Any]:
    """What the layout covers by which sessions measure on the battery if they name none."""
    name, variant = battery.layout or USUAL_LAYOUT
    about: dict[str, Any] = {
        "name": name,
        "variant": variant or None,
        "named": battery.layout is not None,
    }
    try:
        layout = load_layout(name, variant)
        about["variant"] = layout.variant or None
        found = coverage(layout, battery)
    except (SpecificationError, ServiceError) as error:
        return {**about, "problem": str(error)}
    demands = {
        one.name: {
            "measured": sum(one.name in instance.features for instance in battery.instances),
            "missing": _missing(battery, one.name),
        }
        for one in layout.features
    }
    return {**about, **found.to_dict(), "demands": demands}
