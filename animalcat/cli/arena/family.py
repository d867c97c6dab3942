"""One family of arenas as a command shows it: paradigms, parameters and controls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from animalcat.arena_configs.families.language import Family, Paradigm
from animalcat.arena_configs.families.ranges import (
    Categorical,
    Constant,
    Interval,
    Range,
    TruncatedNormal,
)
from animalcat.arena_configs.families.scope import Value
from animalcat.cli.shared.output import console, print_table, say


def show_family(family: Family, row: Mapping[str, Any]) -> None:
    """Print one family: what its arenas ask for, and all by which they differ."""
    console().print(f"{family.name}: {family.description.strip()}", highlight=False)
    share = sum(paradigm.weight for paradigm in family.paradigms)
    paradigms = [
        {
            "paradigm": paradigm.name,
            "share": f"{100 * paradigm.weight / share:.0f} %",
            "where": _where(paradigm),
        }
        for paradigm in family.paradigms
    ]
    columns = ["paradigm", "share", *(["where"] if any(row["where"] for row in paradigms) else [])]
    print_table(paradigms, columns, title="Paradigms")
    parameters = [
        {"parameter": name, "drawn from": range_words(drawn)}
        for name, drawn in family.parameters.items()
    ]
    title = "Parameters; `arena make --set NAME=VALUE` sets one"
    print_table(parameters, ["parameter", "drawn from"], title=title)
    controls = [{"control": name, "about": about} for name, about in row["controls"].items()]
    if controls:
        title = "Controls; `arena make --control NAME` makes one after each instance"
        print_table(controls, ["control", "about"], title=title)
    if row["claims"]:
        say(f"makes claims about: {', '.join(row['claims'])}")
    for layout, nodes in row["nodes"].items():
        say(f"is to measure: {', '.join(nodes)} of the layout {layout}")


def _where(paradigm: Paradigm) -> str:
    """What a paradigm draws otherwise than its family."""
    return "; ".join(f"{name} {range_words(drawn)}" for name, drawn in paradigm.parameters.items())


def range_words(drawn: Range) -> str:
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
        case _:
            return str(drawn)


def _value(option: Value) -> str:
    return f"{option:g}" if isinstance(option, float) else str(option)
