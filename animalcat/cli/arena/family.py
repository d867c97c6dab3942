"""One family of arenas as a command shows it: paradigms, parameters and controls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import typer

from animalcat.arena_configs.families import AnyFamily, Family
from animalcat.arena_configs.families.language import Paradigm
from animalcat.arena_configs.families.polar_template import (
    LogUniformRange,
    NumberChoice,
    UniformRange,
)
from animalcat.arena_configs.families.polar_template import Range as PolarRange
from animalcat.arena_configs.families.ranges import (
    Categorical,
    Constant,
    Interval,
    Range,
    TruncatedNormal,
)
from animalcat.arena_configs.families.scope import Value
from animalcat.cli.shared.output import console, print_rows

AnyRange: TypeAlias = Range | PolarRange


def show_family(family: AnyFamily, row: Mapping[str, Any]) -> None:
    """Print one family: what its arenas ask for, and all by which they differ."""
    console().print(f"{family.name}: {family.description.strip()}", highlight=False)
    share = sum(one.weight for one in family.paradigms)
    paradigms = [
        {"paradigm": one.name, "share": f"{100 * one.weight / share:.0f} %", "where": _where(one)}
        for one in family.paradigms
    ]
    columns = ["paradigm", "share", *(["where"] if any(one["where"] for one in paradigms) else [])]
    print_rows(paradigms, columns, as_json=False, title="Paradigms")
    parameters = [
        {"parameter": name, "drawn from": range_words(drawn)} for name, drawn in _drawn(family)
    ]
    title = "Parameters; `arena make --set NAME=VALUE` sets one" * isinstance(family, Family)
    columns = ["parameter", "drawn from"]
    print_rows(parameters, columns, as_json=False, title=title or "What is drawn")
    controls = [{"control": name, "about": about} for name, about in row["controls"].items()]
    if controls:
        title = "Controls; `arena make --control NAME` makes one after each instance"
        print_rows(controls, ["control", "about"], as_json=False, title=title)
    if row["claims"]:
        typer.echo(f"makes claims about: {', '.join(row['claims'])}")
    for layout, nodes in row["nodes"].items():
        typer.echo(f"is to measure: {', '.join(nodes)} of the layout {layout}")


def _drawn(family: AnyFamily) -> list[tuple[str, AnyRange]]:
    """What a family's instances are drawn from, by name."""
    if isinstance(family, Family):
        return list(family.parameters.items())
    return [("distance", family.distance), ("size", family.size)]


def _where(paradigm: Any) -> str:
    """What a paradigm draws otherwise than its family."""
    if isinstance(paradigm, Paradigm):
        own = paradigm.parameters
    else:
        own = {"angle": paradigm.angle, "distance": paradigm.distance, "size": paradigm.size}
    return "; ".join(f"{name} {range_words(drawn)}" for name, drawn in own.items() if drawn)


def range_words(drawn: AnyRange) -> str:
    """What a parameter is drawn from, in words."""
    match drawn:
        case Constant(formula):
            return formula.text
        case Interval(low, high, kind):
            how = {"integers": ", whole numbers", "log_uniform": ", uniform in the logarithm"}
            return f"{low.text} to {high.text}{how.get(kind, '')}"
        case TruncatedNormal(mean, sd, low, high):
            return f"{low.text} to {high.text}, normal with mean {mean.text} and sd {sd.text}"
        case Categorical(options, weights):
            even = len(set(weights)) == 1
            shares = [f" ({100 * w / sum(weights):.0f} %)" * (not even) for w in weights]
            named = zip(map(_value, options), shares, strict=True)
            return "one of " + ", ".join(f"{option}{share}" for option, share in named)
        case UniformRange(uniform=(low, high)):
            return f"{low:g} to {high:g}"
        case LogUniformRange(log_uniform=(low, high)):
            return f"{low:g} to {high:g}, uniform in the logarithm"
        case NumberChoice(choice=options):
            return f"one of {', '.join(f'{one:g}' for one in options)}"
        case _:
            return f"{drawn:g}" if isinstance(drawn, float) else str(drawn)


def _value(option: Value) -> str:
    return f"{option:g}" if isinstance(option, float) else str(option)
