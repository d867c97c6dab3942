"""Says what is in a battery, where it comes from, what it measures and what was not solved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from math import nan
from typing import Any, Final

from animalcat.layouts.model.codec import SpecificationError
from animalcat.service.batteries.battery import USUAL_LAYOUT, Battery
from animalcat.service.batteries.naming import link_of, task_of, variant_of
from animalcat.service.errors import ServiceError
from animalcat.service.library.layouts import layout_on
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
        "pairs": sum(bool(link_of(instance).control_of) for instance in battery.instances),
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
    origins = [instance.origin for instance in battery.instances if instance.origin]

    def count(values: Iterable[str]) -> dict[str, int]:
        return dict(sorted(Counter(values).items()))

    suites = count(instance.suite for instance in battery.instances if instance.suite)
    return {
        **({"suite": suites} if origins and suites else {}),
        "entry": count(origin.entry for origin in origins if origin.entry),
        "family": count(origin.family for origin in origins),
        "paradigm": count(instance.paradigm for instance in battery.instances),
        "part": count(origin.part for origin in origins),
        "variant": count(origin.variant or "plain" for origin in origins),
        "control": count(origin.control or "none" for origin in origins),
    }


def _parts(battery: Battery) -> list[dict[str, str | int]]:
    """How much there is of every suite and paradigm."""
    counts = Counter[tuple[str, str]]()
    kinds: dict[tuple[str, str], tuple[set[str], set[str], set[str]]] = {}
    for instance in battery.instances:
        part = (instance.suite, instance.paradigm)
        counts[part] += 1
        tasks, variants, groups = kinds.setdefault(part, (set(), set(), set()))
        tasks.add(task_of(instance))
        variants.add(variant_of(instance))
        groups.add(battery.groups[instance.name])
    return [
        {
            "suite": suite,
            "paradigm": paradigm,
            "instances": counts[suite, paradigm],
            "tasks": len(tasks - {""}),
            "variants": len(variants - {""}),
            "groups": len(groups),
        }
        for (suite, paradigm), (tasks, variants, groups) in sorted(kinds.items())
    ]


def _demands(battery: Battery) -> dict[str, dict[str, Any]]:
    found = _count_measured(battery, [*battery.units])
    return {
        name: {"unit": unit, "version": battery.versions.get(name, 0), **found[name]}
        for name, unit in sorted(battery.units.items())
    }


def _count_measured(battery: Battery, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """In how many instances demands are measured, and why not in the others, by name."""
    measured = Counter[str]()
    reasons: dict[str, Counter[str]] = {name: Counter() for name in names}
    for instance in battery.instances:
        for name in names:
            if name in instance.features:
                measured[name] += 1
            else:
                reasons[name][instance.missing.get(name, "not measured")] += 1
    return {
        name: {"measured": measured[name], "missing": dict(sorted(reasons[name].items()))}
        for name in names
    }


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
        layout = layout_on(battery, name)
        about["variant"] = layout.variant or None
        covered = coverage(layout, battery)
    except (SpecificationError, ServiceError) as error:
        return {**about, "problem": str(error)}
    demands = _count_measured(battery, layout.feature_names)
    rows = [one.features for one in battery.instances if one.name in covered.features]
    cues = {
        cue.name: {
            "instead_of": cue.mimics,
            "misleads": int(sum(cue.misleads([row.get(cue.feature, nan) for row in rows]) == 1.0)),
        }
        for cue in layout.cues
    }
    return {**about, **covered.to_dict(), "demands": demands, "cues": cues}
