"""Makes the table of instances that a layout covers from a folder of arena files."""

from __future__ import annotations

from pathlib import Path, PurePath
from tempfile import TemporaryDirectory

import pandas as pd
import typer

from animalcat.arena_configs.model import ArenaError
from animalcat.cli.shared.outcome_table import pass_marks_of
from animalcat.cli.shared.output import fail
from animalcat.errors import AnimalcatError
from animalcat.layouts.model.spec import Layout
from animalcat.service.batteries.battery import import_files, read_files
from animalcat.service.errors import ServiceError
from animalcat.service.measuring.coverage import coverage


def covered_instances(
    layout: Layout, battery: Path, rewards: pd.DataFrame, pass_marks: Path | None = None
) -> pd.DataFrame:
    """Features and pass marks of the instances with outcomes, a file, and a layout for them.

    Ends the command where there are none, or a file is wrong.

    Args:
        layout: The layout; its features become columns.
        battery: Folder of arena files, `INSTANCE.yaml`.
        rewards: Final rewards, instances as the index.
        pass_marks: Table of pass marks; None for those of the files.

    Returns:
        One row an instance, with all its features and `pass_mark`.
    """
    if not battery.is_dir():
        fail(f"{battery}: no such folder")
    played = set(rewards.index)
    try:
        files = [f for f in read_files(battery) if PurePath(f.path).stem in played]
        if not files:
            fail(f"{battery}: no arena file of an instance with outcomes ({rewards.index[0]}, ...)")
        with TemporaryDirectory() as store:
            made = import_files(files, 0, Path(store))
        if pass_marks is not None:
            names = [one.name for one in made.instances]
            made = made.marked(pass_marks_of(pass_marks, names, played))
        found = coverage(layout, made)
    except (AnimalcatError, ArenaError, OSError, ValueError) as error:
        fail(str(error))
    except ServiceError as error:
        fail(f"{battery}: {error.message}")
    covered = [i for i in made.instances if i.name in found.features and i.name in played]
    if not covered:
        fail(f"{battery}: {layout.name} covers none of the instances with outcomes: {found.gaps}")
    if found.reasons:
        typer.echo(f"note: {layout.name} does not cover {found.gaps}", err=True)
    if missing := len(played) - len(made.instances):
        typer.echo(f"note: {missing} instances with outcomes have no file in {battery}", err=True)
    names = list(layout.feature_names)
    table = pd.DataFrame(  # without a value where the layout's rule says what holds
        [[i.features.get(name, float("nan")) for name in names] for i in covered],
        index=[i.name for i in covered],
        columns=names,
    )
    table["pass_mark"] = [i.pass_mark for i in covered]
    return table
