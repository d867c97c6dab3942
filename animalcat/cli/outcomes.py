"""`animalcat outcomes`: tables of outcomes out of sessions, and into the data directory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from animalcat.cli.shared.common import common, without
from animalcat.cli.shared.exports import print_export
from animalcat.cli.shared.output import fail, print_json, status, to_standard_output
from animalcat.cli.shared.output import wrote as say_wrote
from animalcat.cli.shared.remote import client_for, data_folder
from animalcat.machine.files import write_whole
from animalcat.text import names

if TYPE_CHECKING:
    import pandas as pd

app = typer.Typer(
    help="Export, import and list tables of outcomes: one row an episode, as CSV or Parquet.",
    no_args_is_help=True,
)
FOLDER: Final = "outcomes"
"""Folder of imported tables within a data directory, one Parquet file each."""


@app.command()
@without("--json")
def export(
    what: Annotated[
        str,
        typer.Argument(
            metavar="SESSION|NAME",
            help="The id of a session, or the name of a table that was imported.",
        ),
    ],
    form: Annotated[
        Literal["csv", "parquet"] | None,
        typer.Option(
            "--format",
            help="The form of the file.",
            show_default="what the file's name ends in, and csv otherwise",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Write to this file, not to standard output."
        ),
    ] = None,
) -> None:
    """Write a table of outcomes: one row an attempt, with everything that is known of it."""
    if form is None:
        form = "parquet" if output is not None and output.suffix == ".parquet" else "csv"
    imported = None if common().server else _path(what)
    if imported is not None and imported.is_file():
        from animalcat.outcomes import outcomes_bytes

        content = outcomes_bytes(_read(imported), form)
        if output is None:
            to_standard_output(content, form)
            return
        _write(output, content)
    else:
        with client_for() as client:
            if output is None:
                print_export(client, what, form)
                return
            with status("reading the outcomes"):
                try:
                    client.save_profile(what, output, form)
                except OSError as error:
                    fail(f"{error.filename or output}: cannot be written: {error.strerror}")
    say_wrote("outcomes", output)


@app.command("import")
@without("--server")
def import_(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="The table, CSV or Parquet.", exists=False)
    ],
    name: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="What to call it here.", show_default="the file's own name"
        ),
    ] = "",
    replace: Annotated[
        bool, typer.Option("--replace", help="Take the place of a table of this name.")
    ] = False,
) -> None:
    """Check a table of outcomes against the schema, and keep it in the data directory.

    The table needs the columns `instance` and `outcome`. Of the other columns of the schema any may
    be missing, and every further column is a meta-feature.
    """
    from animalcat.outcomes import outcomes_bytes

    table = _read(file)
    wanted = name or names.to_component(file.stem)
    path = _path(wanted)
    if path is None:
        fail(f"--name {wanted!r}: 1 to 63 letters, digits, '.', '_' and '-'")
    if path.exists() and not replace:
        fail(f"a table {wanted!r} is there already; give --replace, or another --name")
    _write(path, outcomes_bytes(table, "parquet"))
    row = _row(wanted, table)
    if common().as_json:
        print_json(row)
    else:
        typer.echo(f"{wanted}: {row['attempts']} attempts, {row['successes']} successes")


def _row(name: str, table: pd.DataFrame) -> dict[str, Any]:
    from animalcat.outcomes import feature_units

    return {
        "name": name,
        "attempts": len(table),
        "successes": int((table["outcome"] == "success").sum()),
        "agents": int(table["agent"].nunique()),
        "meta_features": len(feature_units(table)),
    }


def _path(name: str) -> Path | None:
    """Where a table of this name is kept; None for what cannot be a name."""
    try:
        return data_folder() / FOLDER / f"{names.check_component(name)}.parquet"
    except names.BadNameError:
        return None


def _read(path: Path) -> pd.DataFrame:
    from animalcat.outcomes import OutcomesError, read_outcomes

    try:
        return read_outcomes(path)
    except OutcomesError as error:
        fail(f"{path}: {error}")
    except OSError as error:
        fail(f"{path}: {error.strerror or 'cannot be read'}")


def _write(path: Path, content: bytes) -> None:
    try:
        write_whole(path, content)
    except OSError as error:
        fail(f"{error.filename or path}: cannot be written: {error.strerror}")
