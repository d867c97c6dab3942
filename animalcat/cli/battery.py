"""`animalcat battery`: list, build, import, show and export batteries, and report on them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from animalcat.arenas.arena_files import battery_files, is_yaml
from animalcat.cli.calibrate import calibrate
from animalcat.cli.shared.batteries import VariantOfBattery, find_battery, tell_problems
from animalcat.cli.shared.common import common, without
from animalcat.cli.shared.outcome_options import Seed
from animalcat.cli.shared.output import (
    FAILED,
    fail,
    print_json,
    print_rows,
    print_table,
    say,
    wrote,
)
from animalcat.cli.shared.progress import operation_progress, progress
from animalcat.cli.shared.remote import AllowPlugin, client_for, place
from animalcat.cli.shared.table import Column
from animalcat.cli.shared.whose import Everybodys, OfOwner, owner_column, whose
from animalcat.errors import AnimalcatError
from animalcat.machine.files import write_whole
from animalcat.text.counts import count_of
from animalcat.values import Battery, RecipeText

app = typer.Typer(help="List, build, import, show and export batteries.", no_args_is_help=True)
app.command()(calibrate)

TOLD: Final = 20
"""Problems of arena files that an import prints at most."""

BatteryArgument = Annotated[
    str,
    typer.Argument(
        metavar="BATTERY",
        help="The name of a battery, from `battery show`, or a path to arena files, of which a "
        "battery is made.",
    ),
]
Replace = Annotated[
    bool,
    typer.Option(
        "--replace",
        help="Let the name stand for this from now on, if it stands for other content. Sessions "
        "keep the content that they began with.",
    ),
]


def _list(batteries: Iterable[Battery]) -> None:
    """Print one row for each battery; in JSON also how many instances each suite has."""
    rows = [_row(battery) | {"suites": dict(battery.suites)} for battery in batteries]
    if not common().as_json:
        rows = [{**row, "problems": len(row["problems"])} for row in rows]
    columns = ["battery", owner_column(1), "instances", Column("problems", 1)]
    print_rows(rows, [*columns, Column("digest", 2)])


@app.command()
def build(
    source: Annotated[
        str,
        typer.Argument(
            metavar="NAME_OR_FILE",
            help="A recipe by its name, such as basics, the file of a recipe of your own, "
            "or a family of arenas, for example navigation.",
        ),
    ],
    size: Annotated[
        int | None,
        typer.Option(
            "--size",
            "--instances",
            metavar="NUMBER",
            min=1,
            help="How many arenas to make. The counts of a recipe are scaled in proportion, and "
            "every entry keeps at least one.",
            show_default="what the recipe says; 450 of a family",
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER",
            min=0,
            help="The seed of everything that is left to chance.",
            show_default="that of the recipe; 0 for a family",
        ),
    ] = None,
    name: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="The name of the battery.",
            show_default="that of the recipe or family; with another size or seed also these, as "
            "in navigation-60",
        ),
    ] = "",
    replace: Replace = False,
    allow_plugin: AllowPlugin = None,
) -> None:
    """Make a battery from a recipe, or from a family of arenas.

    A recipe says which families give how many arenas. Where a recipe and a family have the same
    name, the recipe is meant. The planner plays every arena of a recipe, and those that it does not
    solve are named.
    """
    asked = _recipe(source)
    with client_for(plugins=allow_plugin or ()) as client:
        with operation_progress(f"building {name or source}") as tell:
            battery = client.build_battery(
                asked, size, seed=seed, name=name, replace=replace, on_progress=tell
            )
        _show(battery)


def _recipe(source: str) -> str | RecipeText:
    """What to build: a name as it is, or the texts of a file."""
    if not is_yaml(source):
        return source
    from animalcat.arena_configs.batteries.library import recipe_files
    from animalcat.arena_configs.model import ArenaError
    from animalcat.text.names import BadNameError, check_unicode

    try:
        files = recipe_files(Path(check_unicode(source)))
    except (ArenaError, BadNameError) as error:
        fail(str(error))
    return RecipeText(files.file, files.text, files.families)


@app.command()
def show(
    name: Annotated[
        str,
        typer.Argument(
            metavar="BATTERY",
            help="The name of a battery, or a path to arena files, of which a battery is made.",
            show_default="all",
        ),
    ] = "",
    everybodys: Everybodys = False,
    owner: OfOwner = "",
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Say what is wrong or doubtful in it instead, as `arena check` does for files.",
        ),
    ] = False,
) -> None:
    """Show what is in a battery: counts, licence, what is measured and what was not solved.

    With --json it is the manifest, as documented by the schema `battery_manifest`. The server extra
    is needed on this machine too. --check lists arenas that no play can pass, or that every play
    passes, with their pass marks; the exit code is 1 where sessions would set an arena aside.

    Without a name, your batteries and those that belong to nobody are listed.
    """
    from animalcat.cli.battery_contents import show as shown

    with client_for() as client:
        if not name:
            _list(client.list_batteries(whose(everybodys, owner)))
            return
        battery = client.get_battery(find_battery(client, name, where=place()))
    if check:
        _check(battery)
    elif common().as_json:
        print_json(battery.manifest)
    else:
        shown(battery.manifest)


def _check(battery: Battery) -> None:
    """Print what is wrong or doubtful in a battery; exit code 1 if arenas are set aside."""
    sure: Mapping[str, str] = battery.manifest.get("cannot_fail", {})
    if common().as_json:
        about = {"battery": battery.id, "digest": battery.digest, "instances": battery.instances}
        about |= {"set_aside": dict(battery.set_aside), "cannot_fail": dict(sure)}
        print_json({**about, "problems": list(battery.problems)})
    else:
        rows = [
            {"instance": instance, "what": what, "why": why}
            for what, these in (("set aside", battery.set_aside), ("cannot fail", sure))
            for instance, why in these.items()
        ]
        if rows:
            print_table(rows, ["instance", "what", "why"])
        for problem in battery.problems:
            say(problem)
        say(
            f"battery {battery.id}: {count_of(battery.instances, 'instance')}, "
            f"{len(battery.set_aside)} set aside, {len(sure)} that cannot be failed, "
            f"{count_of(len(battery.problems), 'note')} on its files"
        )
    if battery.set_aside:
        raise typer.Exit(FAILED)


@app.command()
@without("--json")
def export(
    name: BatteryArgument,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FOLDER", help="Write into this folder."),
    ],
) -> None:
    """Write a battery: its manifest, the table of its instances, and its arenas.

    The folder gets manifest.json, table.csv, table.parquet and arenas/. The tables have one row for
    each instance and one column for each demand, with its unit. The same battery gives the same
    bytes. The server extra is needed on this machine too.
    """
    from animalcat.cli.battery_contents import export as exported

    with client_for() as client:
        name = find_battery(client, name, where=place())
        with progress(f"exporting {name}") as tell:
            number = exported(client, name, output, tell)
    wrote(f"{number} instances", output)


@app.command("import")
def import_(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="PATH",
            help="A folder of arena files, or one arena file.",
        ),
    ],
    name: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="The name of the battery.", show_default="made from the path"
        ),
    ] = "",
    seed: Seed = 0,
    table: Annotated[
        Path | None,
        typer.Option(
            "--table",
            "--features",
            metavar="TABLE.csv",
            help="A table that says more about the arenas. It has a column `instance`, any of "
            "`suite`, `paradigm`, `task` and `variant`, and one column for each meta-feature of "
            "your own, with the unit in brackets as in `noise [dB]`. A column `choices` says which "
            "places are choices.",
        ),
    ] = None,
    layout: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="The layout that measures on this battery where a session names none: a name from "
            "`layout show` that is shipped.",
            show_default="none, and aaio measures",
        ),
    ] = "",
    variant: Annotated[
        str,
        typer.Option(metavar="NAME", help="A variant of it.", show_default="the usual one"),
    ] = "",
    replace: Replace = False,
) -> None:
    """Make a battery of your own arena files.

    The same content always gives the same battery. Arenas of the same suite, paradigm and task that
    have equal demands are kept together as a group of variants. Arenas that no play can pass are
    named; sessions set them aside.
    """
    if is_yaml(layout):
        fail(f"--layout {layout}: a layout of your own is named when a session is created")
    try:
        notes = battery_files(path).notes
    except AnimalcatError as error:
        fail(str(error))
    for note in notes:
        say(f"note: {path}: {note}", err=True)
    with client_for() as client:
        with operation_progress(f"importing {path}") as tell:
            battery = client.import_battery(
                path,
                name or None,
                seed=seed,
                features=table,
                layout=layout,
                layout_variant=variant,
                replace=replace,
                on_progress=tell,
            )
        _show(battery)


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
            help="Say what this layout could at best know about an agent after the whole battery: "
            "a name from `layout show`, or a YAML file.",
            show_default="the one that the battery names",
        ),
    ] = "",
    variant: VariantOfBattery = "",
    maps: Annotated[
        int, typer.Option(metavar="NUMBER", min=0, help="Draw at most this many maps.")
    ] = 360,
) -> None:
    """Report on a battery: what is in it, and what it could tell.

    The page shows maps of the arenas by paradigm and what they demand, whether they can be passed,
    what a layout could at best know about an agent, how reliable sessions of some lengths are, and
    which agents could pass by relying on a cue. It needs no network. The server extra is needed on
    this machine too.
    """
    from animalcat.lab.battery_report import report_battery

    with client_for() as client:
        name = find_battery(client, name, where=place())
        path = output or (None if common().as_json else Path(f"{name}.html"))
        with progress(f"reporting on {name}") as tell:
            found = report_battery(client, name, layout, variant, maps, tell, page=path is not None)
            drawing = partial(tell, "drawing maps")
            page = "" if path is None else found.page(drawing)
        if common().as_json:
            print_json(found.to_dict())
        else:
            _say_impostors([one.to_dict() for one in found.report.impostors])
        rows = found.report.reliability_rows
        if rows and not common().as_json:
            title = "Standard error (and reliability) of each capability by number of episodes"
            print_table(rows, list(rows[0]), title=title)
        if path is not None:
            try:
                write_whole(path, page.encode())
            except OSError as error:
                fail(f"{path}: cannot be written: {error.strerror}")
            wrote(f"report on {name}", path)


def _say_impostors(impostors: Iterable[Mapping[str, Any]]) -> None:
    """Print by which cues an agent could pass, and in how many arenas that shows."""
    heads = {"an agent that": "agent", "arenas that tell": "parting", "it": "verdict"}
    rows = [{head: one[key] for head, key in heads.items()} for one in impostors]
    if rows:
        title = "Agents that rely on a cue, and in how many arenas that shows"
        print_table(rows, list(rows[0]), title=title)


def _left_to_chance(battery: Battery) -> Mapping[str, Sequence[str]]:
    """What a battery's files left to chance beside looks, by instance."""
    return battery.manifest.get("drawn") or {}


def _say_drawn(drawn: Mapping[str, Sequence[str]], instances: int) -> None:
    if drawn:
        first = next(iter(drawn))
        say(
            f"note: the files of {len(drawn)} of {instances} instances leave positions, rotations "
            f"or sizes to chance (the first is {first}: {drawn[first][0]}). They were drawn when "
            "the battery was made, and sessions play what was drawn. `arena features` with the "
            "same seed draws the same",
            err=True,
        )


def _row(battery: Battery) -> dict[str, Any]:
    return {
        "battery": battery.id,
        "instances": battery.instances,
        "digest": battery.digest,
        "problems": list(battery.problems),
        "owner": battery.owner,
    }


def _show(battery: Battery) -> None:
    row = _row(battery)
    if common().as_json:
        print_json({**row, "set_aside": dict(battery.set_aside), "notes": list(battery.notes)})
        return
    tell_problems(battery.problems, TOLD)
    _say_drawn(_left_to_chance(battery), row["instances"])
    validity: Mapping[str, Any] = battery.manifest.get("validity") or {}
    unsolved: Mapping[str, str] = validity.get("unsolved", {})
    if unsolved:
        few = ", ".join(list(unsolved)[:5]) + " and others" * (len(unsolved) > 5)
        say(
            f"note: the planner does not solve {len(unsolved)} of {row['instances']} instances: "
            f"{few}. `animalcat battery show {row['battery']}` says why.",
            err=True,
        )
    for note in battery.notes:
        say(f"note: {note}", err=True)
    aside = f", {len(battery.set_aside)} of them set aside" if battery.set_aside else ""
    say(f"battery {row['battery']}: {row['instances']} instances{aside}, digest {row['digest']}")
