"""Joins outcomes with a folder of arena files, as far as a layout covers them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from animalcat.arena_configs.model import ArenaError
from animalcat.cli.layout.show import load
from animalcat.cli.shared.arena_outcomes import (
    OnBattery,
    mark_battery,
    on_battery,
    outcomes_of_rewards,
)
from animalcat.cli.shared.outcome_options import As
from animalcat.cli.shared.outcome_table import INSTANCE, or_fail
from animalcat.cli.shared.output import fail
from animalcat.errors import AnimalcatError
from animalcat.layouts.model.instances import CoveredOutcomes
from animalcat.layouts.model.spec import Layout
from animalcat.layouts.model.tables import read_sheet
from animalcat.service.batteries.battery import Battery, import_files, read_files
from animalcat.service.library.layouts import chosen_variant


def outcomes_on_arenas(
    named: tuple[str, str],
    folder: Path,
    outcomes: Path,
    pass_marks: Path | None = None,
    agents: Sequence[str] = (),
    taken_as: As | None = None,
    *,
    keep_drawn: bool = False,
) -> tuple[CoveredOutcomes, Layout]:
    """Successes and failures on the arenas of a folder that a layout covers, and that layout.

    Ends the command where there are none, or a file is wrong.

    Args:
        named: Name or file of the layout, and its variant; empty for the one that is meant.
        folder: Folder of arena files.
        outcomes: Table of final rewards.
        pass_marks: Table of pass marks; None for what the arena files say.
        agents: Agents to take; without them, all.
        taken_as: What the numbers of the table are.
        keep_drawn: Whether arenas that leave something to chance count, as they are drawn here.
    """
    layout = load(*named)

    def read() -> tuple[OnBattery, Layout]:
        with TemporaryDirectory() as store:  # until it is known which arenas are the same
            names = read_sheet(outcomes).column(INSTANCE)
            battery = battery_of_folder(folder, names, Path(store))
            battery = mark_battery(battery, pass_marks, outcomes, taken_as)
            played = outcomes_of_rewards(battery, outcomes, agents, taken_as)
            meant = layout if named[1] else chosen_variant(battery, layout)
            return on_battery(meant, battery, played, keep_drawn=keep_drawn), meant

    found, meant = or_fail(outcomes, read)
    return found.outcomes, meant


def battery_of_folder(folder: Path, played: Collection[str], store: Path) -> Battery:
    """The battery of the arenas of a folder that were played; ends the command where it is wrong.

    Args:
        folder: Folder of arena files.
        played: Names of instances as a table has them.
        store: Folder to keep the battery in.
    """
    if not folder.is_dir():
        fail(f"{folder}: no such folder")
    wanted = {part for name in played for part in _files_of(name)}
    try:
        files = [file for file in read_files(folder) if set(_files_of(file.path)) & wanted]
        if not files:
            first = next(iter(played), "none")
            fail(f"{folder}: no arena file of an instance with outcomes ({first}, ...)")
        return import_files(files, 0, store)
    except (AnimalcatError, ArenaError, OSError, ValueError) as error:
        fail(str(error))


def _files_of(name: str) -> tuple[str, ...]:
    """What the file of an instance may be called, without folders and in lower case.

    An instance of a file with several arenas has the number of the arena after a point.
    """
    bare = PurePosixPath(name).name.casefold()
    bare = bare.removesuffix(".yaml").removesuffix(".yml")
    stem, point, number = bare.rpartition(".")
    return (bare, stem) if point and number.isdigit() else (bare,)
