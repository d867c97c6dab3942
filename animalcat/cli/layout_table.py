"""Makes the table of instances that a layout covers from a folder of arena files."""

from __future__ import annotations

from pathlib import Path, PurePath
from tempfile import TemporaryDirectory

import pandas as pd
import typer

from animalcat.arena_configs.model import ArenaError
from animalcat.cli.output import fail
from animalcat.layouts.spec import Layout
from animalcat.service.battery import import_files, read_files


def covered_instances(layout: Layout, battery: Path, rewards: pd.DataFrame) -> pd.DataFrame:
    """Features and pass marks of the instances with outcomes, a file, and a layout for them.

    Ends the command where there are none, or a file is wrong.

    Args:
        layout: The layout; its features become columns.
        battery: Folder of arena files, `INSTANCE.yaml`.
        rewards: Final rewards, instances as the index.

    Returns:
        One row an instance, with all its features and `pass_mark`.
    """
    if not battery.is_dir():
        fail(f"{battery}: no such folder")
    covered = [name for name in rewards.index if name in layout.covers]
    try:
        files = [f for f in read_files(battery) if PurePath(f.path).stem in layout.covers]
        with TemporaryDirectory() as store:
            made = import_files(files, 0, Path(store)) if files else None
    except (ArenaError, OSError, ValueError) as error:
        fail(str(error))
    found = {i.name: i for i in made.instances if i.name in rewards.index} if made else {}
    if not found:
        globs = ", ".join((*layout.covers.instances, *layout.covers.families))
        fail(f"{battery}: no arena file of an instance that {layout.name} covers ({globs})")
    if missing := len(covered) - len(found):
        typer.echo(f"warning: {missing} covered instances have no file in {battery}", err=True)
    rows = {name: {**i.features, "pass_mark": i.pass_mark} for name, i in found.items()}
    table = pd.DataFrame.from_dict(rows, orient="index")
    features = list(layout.feature_names)
    needed = {f.name for f in layout.features if f.if_missing is None and not f.only_with}
    if bad := [n for n, i in found.items() if not needed <= i.features.keys()]:
        why = next((p for p in made.problems if p.startswith(bad[0])), bad[0]) if made else bad[0]
        fail(f"{battery}: {why}; the layout needs {', '.join(sorted(needed))}")
    for name in set(features).difference(table.columns):
        table[name] = float("nan")  # the layout's rule says what holds
    try:
        layout.check_features(table[features].to_numpy())
    except ValueError as error:
        fail(f"{battery}: {error}")
    return table
