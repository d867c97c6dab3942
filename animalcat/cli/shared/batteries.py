"""Finds the battery that a command is to use, and says which one it is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Final

import typer

from animalcat.arenas import battery_reference
from animalcat.arenas.arena_files import battery_files, battery_id
from animalcat.arenas.battery_reference import Meant
from animalcat.cli.shared.output import fail, say
from animalcat.cli.shared.progress import operation_progress
from animalcat.cli.shared.tables import calibration_words, variant_words, words_of_coverage
from animalcat.client import Client
from animalcat.errors import AnimalcatError
from animalcat.machine.compiling import SIMULATOR, while_compiling
from animalcat.text import names
from animalcat.text.counts import count_of
from animalcat.values import Battery, Session

NOTES: Final = 5
"""Problems of arena files that are printed at most."""
VariantOfBattery = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="A variant of the layout.",
        show_default="the battery's, else the one that covers most",
    ),
]


def find_battery(client: Client, battery: str, features: Path | None = None, *, where: str) -> str:
    """Id of the battery that is meant; files are read as they are now, a shipped one is built.

    Which one was taken is said on standard error, with its digest.

    Args:
        client: Of the server.
        battery: A name, or a path to arena files.
        features: Table of meta-features that goes with a path.
        where: Where the server keeps batteries, in words (`remote.place`).

    Raises:
        AnimalcatError: There is none, or the name means two things; the message says what to do.
    """
    stored = {known.id: known for known in client.list_batteries()}
    try:
        meant = battery_reference.resolve(battery, stored, client.shipped_batteries())
    except AnimalcatError as error:
        _say_if_not_allowed(client, battery, error)
        raise
    if meant.path is None:
        if features is not None:
            fail(f"--features goes with a folder of arena files, and there is none at {battery}")
        if meant.kind == "shipped":
            with operation_progress(f"building {meant.name}") as tell:
                record = client.build_battery(meant.name, on_progress=tell)
            _say(record, "it was built now")
        else:
            record = client.get_battery(meant.name)
            _say(record, f"it is stored {where}")
        return meant.name
    return _of_files(client, battery, meant, meant.path, stored, features)


def _say_if_not_allowed(client: Client, battery: str, error: AnimalcatError) -> None:
    """Raise what the server says of an unknown battery, if a plugin that it may not run has it."""
    name = battery_reference.spelling_of(battery).name
    if error.code == "UNKNOWN_BATTERY" and name:
        try:
            client.get_battery(name)
        except AnimalcatError as refusal:
            if refusal.code.startswith("PLUGIN_"):
                raise refusal from None


def _of_files(
    client: Client,
    battery: str,
    meant: Meant,
    path: Path,
    stored: Mapping[str, Battery],
    features: Path | None,
) -> str:
    """Make a battery of files, and say whether its name stood for others before."""
    own = battery_id(path)
    name = meant.name or (f"{own}-files" if own in client.shipped_batteries() else own)
    for note in battery_files(path).notes:
        say(f"note: {path}: {note}", err=True)
    try:
        words = f"importing {path}"
        with operation_progress(while_compiling(words, SIMULATOR)) as tell:
            imported = client.import_battery(
                path,
                name,
                features=features,
                replace=meant.kind == "files",
                on_progress=tell,
            )
    except AnimalcatError as error:
        if error.code != "NAME_TAKEN":
            raise
        before = names.short_digest(stored[name].digest)
        raise battery_reference.either(
            battery,
            f"the stored battery {name} (digest {before})",
            "Their contents differ: the files were changed since, or imported with other options",
        ) from error
    what = f"the {'folder' if path.is_dir() else 'file'} {path.absolute()}"
    before = stored.get(name)
    if meant.kind == "both":
        what += ", which is as it was stored"
    elif before is not None and before.digest != imported.digest:
        what += (
            f" as it is now; before, the name stood for other content (digest "
            f"{names.short_digest(before.digest)}), which earlier sessions keep"
        )
    _say(imported, what)
    tell_problems(imported.problems, NOTES)
    return imported.id


def say_layout(client: Client, battery: str, asked: str = "") -> None:
    """Say on standard error by which layout sessions on a battery measure, if none is asked for.

    Args:
        client: Of the server.
        battery: Id of the battery.
        asked: The layout that is asked for; empty for none.
    """
    if asked or not (named := client.get_battery(battery).manifest.get("layout")):
        return
    called = named["name"] + (f" ({named['variant']})" if named["variant"] else "")
    whose = "the battery names it" if named["named"] else "the battery names none"
    say(f"layout {called}: {whose}; --layout takes another", err=True)


def say_coverage(client: Client, session: Session, *, variant: bool) -> None:
    """Say on standard error what a session that has not begun will not measure.

    Args:
        client: Of the server.
        session: The session.
        variant: Whether to say which variant of the layout it takes too, and why.
    """
    profile = client.profile(session)
    if variant and (words := variant_words(profile)):
        say(words, err=True)
    if calibrated := calibration_words(profile):
        say(calibrated, err=True)
    if gaps := words_of_coverage(profile):
        say(f"note: {gaps}", err=True)


def tell_problems(problems: Iterable[str], most: int) -> None:
    """Print problems of arena files on standard error, as many as may be."""
    lines = list(problems)
    for problem in lines[:most]:
        say(f"note: {problem}", err=True)
    if len(lines) > most:
        more = len(lines) - most
        say(f"note: and {more} more; `animalcat battery show --check` lists them", err=True)


def _say(battery: Battery, where: str) -> None:
    number = count_of(battery.instances, "instance")
    digest = names.short_digest(battery.digest)
    say(f"battery {battery.id}: {number}, digest {digest}; {where}", err=True)
    for note in battery.notes:
        say(f"note: {note}", err=True)
