"""Where calibrated layouts are kept: in the data directory, by name."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from animalcat.arenas.arena_files import is_yaml
from animalcat.cli.shared.output import fail
from animalcat.cli.shared.remote import data_folder

CALIBRATIONS: Final = "calibrations"
"""Folder of calibrated layouts within the data directory."""
NO_CALIBRATION: Final = "none"
"""Says, in the place of a name, that no calibration is wanted."""


def calibration_file(name: str) -> Path:
    """The file of a calibration: a path as it is, or a name in the data directory.

    Ends the command where there is none.
    """
    path = Path(name) if is_yaml(name) else data_folder() / CALIBRATIONS / f"{name}.yaml"
    if not path.is_file():
        known = sorted(p.stem for p in path.parent.glob("*.yaml"))
        there = f"; there are: {', '.join(known)}" if known else "; make one by `battery calibrate`"
        fail(f"no calibration {name!r} ({path}){there}")
    return path
