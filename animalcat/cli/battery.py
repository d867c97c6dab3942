"""`animalcat battery`: list, build and import batteries, show what is in them, report on them."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from animalcat.cli.shared.output import fail, print_json, print_rows, wrote
from animalcat.cli.shared.progress import operation_progress, progress
from animalcat.cli.shared.remote import AsJson, Data, Server, client_for
from animalcat.cli.shared.tables import headed, there
from animalcat.client.values import Battery, Feature, Instance

app = typer.Typer(
    help="List, build and import batteries, and show their features.", no_args_is_help=True
)

CHOICES: Final = "choices"
"""The column of a table that says which places are choices."""

Seed = Annotated[
    int,
    typer.Option(metavar="NUMBER", min=0, help="The seed of everything that is left to chance."),
]
BatteryArgument = Annotated[
    str, typer.Argument(metavar="BATTERY", help="The name of a battery, from `battery list`.")
]


@app.command("list")
def list_batteries(server: Server = None, data: Data = None, as_json: AsJson = False) -> None:
    """List batteries by name."""
    with client_for(server, data) as client:
        rows = [_row(battery) for battery in client.list_batteries()]
    if not as_json:
        rows = [{**row, "problems": len(row["problems"])} for row in rows]
    print_rows(rows, ["battery", "instances", "problems", "digest"], as_json=as_json)


@app.command()
def build(
    family: Annotated[
        str,
        typer.Argument(metavar="FAMILY", help="A family of arenas, for example navigation."),
    ],
    instances: Annotated[
        int | None,
        typer.Option(metavar="NUMBER", min=1, help="How many arenas to make.", show_default="450"),
    ] = None,
    seed: Seed = 0,
    name: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="The name of the battery.", show_default="that of the family"
        ),
    ] = "",
    server: Server = None,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Make a battery of arenas that are drawn from a family."""
    with client_for(server, data) as client:
        with operation_progress(f"building {name or family}") as tell:
            made = client.build_battery(family, instances, seed=seed, name=name, on_progress=tell)
        _show(made, as_json)


@app.command("import")
def import_(
    path: Annotated[
        Path, typer.Argument(metavar="PATH", help="A folder of arena files, or one arena file.")
    ],
    name: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="The name of the battery.", show_default="made from the path"
        ),
    ] = "",
    seed: Seed = 0,
    features: Annotated[
        Path | None,
        typer.Option(
            metavar="TABLE.csv",
            help="A table with meta-features of your own. It has a column `instance` and one "
            "column for each feature, with the unit in brackets as in `noise [dB]`. A column "
            "`choices` says which places are choices.",
        ),
    ] = None,
    server: Server = None,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Make a battery of your own arena files.

    The same content always gives the same battery.
    """
    if not path.exists():
        fail(f"{path}: no such file or folder")
    with client_for(server, data) as client:
        with operation_progress(f"importing {path}") as tell:
            made = client.import_battery(
                path, name or None, seed=seed, features=features, on_progress=tell
            )
        _show(made, as_json)


@app.command()
def features(
    name: BatteryArgument,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE.csv", help="Write a CSV file here."),
    ] = None,
    server: Server = None,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Show the meta-features of a battery's arenas.

    What no arena could be measured for is said with the reason. The table on the screen leaves out
    features that no arena has. The CSV file has all of them, in the form that `battery import
    --features` reads.
    """
    with client_for(server, data) as client:
        known = client.get_battery(name).features
        instances = list(client.instances(name))
    if as_json:
        print_json(_features_json(name, known, instances))
        return
    heads = {f.name: headed(f.name, f.unit) for f in known}
    chosen = [CHOICES] if any(one.places for one in instances) else []
    if output is not None:
        _write(output, heads, instances, chosen)
        wrote(f"{len(instances)} instances", output)
        return
    shown = there([one.features for one in instances])
    rows = [
        {
            "instance": one.name,
            **{heads[key]: one.features.get(key) for key in shown},
            CHOICES: _choices(one),
        }
        for one in instances
    ]
    print_rows(rows, ["instance", *(heads[key] for key in shown), *chosen], as_json=False)
    reasons = Counter((why, key) for one in instances for key, why in one.missing.items())
    for why, keys in groupby(sorted(reasons), key=lambda pair: pair[0]):
        named = [key for _, key in keys]
        typer.echo(f"{why}: no {', '.join(named)} in {reasons[why, named[0]]} of {len(instances)}")


@app.command()
def report(
    name: BatteryArgument,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE.html",
            help="Write the page here. With --json there is a page only if this is given.",
            show_default="BATTERY.html",
        ),
    ] = None,
    layout: Annotated[
        str,
        typer.Option(
            metavar="NAME_OR_FILE",
            help="Say what this layout could at best know of an agent after the whole battery: a "
            "name from `layout list`, or a YAML file.",
            show_default="none",
        ),
    ] = "",
    variant: Annotated[
        str,
        typer.Option(metavar="NAME", help="A variant of the layout.", show_default="the first"),
    ] = "",
    maps: Annotated[
        int, typer.Option(metavar="NUMBER", min=0, help="How many maps to draw at most.")
    ] = 360,
    server: Server = None,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Report on a battery: its arenas, what they demand, and what could be known after it.

    The page shows maps of the arenas by paradigm, how far each demand is covered and where the gaps
    are, which demands go together, and which instances to add. It loads nothing from elsewhere. The
    server extra is needed on this machine too.
    """
    from animalcat.cli.battery_report import reported, write

    path = output or (None if as_json else Path(f"{name}.html"))
    with client_for(server, data) as client:
        with progress(f"reporting on {name}") as tell:
            made, page = reported(client, name, layout, variant, maps, tell, page=path is not None)
        if as_json:
            print_json(made.to_dict())
        if path is not None:
            write(page, path)
            wrote(f"report on {name}", path)


def _features_json(
    name: str, known: Iterable[Feature], instances: Iterable[Instance]
) -> dict[str, Any]:
    return {
        "battery": name,
        "features": [{"name": f.name, "unit": f.unit, "about": f.description} for f in known],
        "instances": [
            {
                "instance": one.name,
                "paradigm": one.paradigm,
                "features": dict(sorted(one.features.items())),
                "missing": dict(sorted(one.missing.items())),
                "choices": [
                    {"right": place.right, "x": place.x, "z": place.z, "radius": place.radius}
                    for place in one.places
                ],
            }
            for one in instances
        ],
    }


def _write(
    path: Path,
    heads: Mapping[str, str],
    instances: Iterable[Instance],
    chosen: Sequence[str],
) -> None:
    try:
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["instance", *heads.values(), *chosen])
            for one in instances:
                values = [one.features.get(key, "") for key in heads]
                writer.writerow([one.name, *values, *(_choices(one) for _ in chosen)])
    except OSError as error:
        fail(f"{path}: cannot be written: {error.strerror}")


def _choices(instance: Instance) -> str:
    """The places that are choices, in the form of the column `choices`."""
    return "; ".join(
        f"{'right' if place.right else 'wrong'} "
        + " ".join(str(v).removesuffix(".0") for v in (place.x, place.z, place.radius))
        for place in instance.places
    )


def _row(battery: Battery) -> dict[str, Any]:
    return {
        "battery": battery.id,
        "instances": battery.instances,
        "digest": battery.digest,
        "problems": list(battery.problems),
    }


def _show(battery: Battery, as_json: bool) -> None:
    row = _row(battery)
    if as_json:
        print_json(row)
        return
    for problem in row["problems"]:
        typer.echo(f"note: {problem}", err=True)
    typer.echo(f"battery {row['battery']}: {row['instances']} instances, digest {row['digest']}")
