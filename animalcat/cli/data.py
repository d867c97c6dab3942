"""`animalcat data`: look through a store, back it up, and remove what is old or somebody's.

It works on the data directory itself, whether or not a server runs: whoever can write there rules.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from animalcat import data as stores
from animalcat.cli.shared.common import common, without
from animalcat.cli.shared.output import (
    BAD_INPUT,
    FAILED,
    UNREACHABLE,
    fail,
    print_json,
    print_table,
    say,
)
from animalcat.cli.shared.progress import Tell, progress
from animalcat.cli.shared.remote import data_folder, timestamp
from animalcat.cli.shared.table import Column
from animalcat.data import Plan
from animalcat.errors import AnimalcatError
from animalcat.text.counts import count_of

app = typer.Typer(
    help="Check a store, back it up, and remove what is old or belongs to somebody.",
    no_args_is_help=True,
)

_AGE: Final = re.compile(r"(\d+)\s*([hdwmy])")
_HOURS: Final = {"h": 1, "d": 24, "w": 7 * 24, "m": 30 * 24, "y": 365 * 24}
_SHOWN: Final = 20
"""Sessions that are named before something is removed."""


@app.command()
@without("--server")
def verify() -> None:
    """Check that everything in a store is as it was stored.

    That is the database, every session with its chain, recordings and fits, all batteries, layouts
    and campaigns. Everything that was changed, is gone or cannot be read is named with what to do;
    the exit code is then 1. The store may be in use.
    """
    with _work("looking through the store") as tell:
        found = stores.verify(data_folder(), tell=tell)
    if common().as_json:
        print_json({**asdict(found), "notes": [list(note) for note in found.notes]})
    else:
        for one in found.damage:
            say(f"{one.where}: {one.what}\n  to do: {one.remedy}")
        for where, note in found.notes:
            say(f"note: {where}: {note}")
        stands = f"{count_of(len(found.damage), 'thing')} not" if found.damage else "everything"
        held = f"{count_of(found.sessions, 'session')}, batteries: {found.batteries}"
        say(f"{stands} as it was stored: {held}")
    if found.damage:
        raise typer.Exit(FAILED)


@app.command()
@without("--server")
def backup(
    to: Annotated[
        Path,
        typer.Argument(metavar="DEST", help="An archive whose name ends in .tar or .tar.gz."),
    ],
    with_keys: Annotated[
        bool,
        typer.Option(
            "--with-keys",
            help="Put tokens and keys of the server into it too. Whoever has such a backup can do "
            "all that the server can.",
        ),
    ] = False,
) -> None:
    """Back up a store, which may be in use, to an archive that only you may read.

    Nothing looks like a backup before it is complete. Ends with code 1 if files of the store are
    gone or were changed.
    """
    with _work("backing up") as tell:
        made = stores.backup(data_folder(), to, with_keys=with_keys, tell=tell)
    if common().as_json:
        print_json({**asdict(made), "path": str(made.path)})
    else:
        for problem in made.damaged:
            say(problem)
        say(
            f"{count_of(made.sessions, 'session')} with {count_of(made.files, 'file')} "
            f"({size(made.bytes)}) -> {made.path}"
        )
        say(
            "Tokens and keys of the server are in it: whoever has it can do all that the server can"
            if made.keys
            else "No token and no key of the server is in it; --with-keys puts them in"
        )
    if made.damaged:
        raise typer.Exit(FAILED)


@app.command()
@without("--server")
def restore(
    source: Annotated[Path, typer.Argument(metavar="SOURCE", help="A backup.")],
) -> None:
    """Restore a backup into an empty data directory, and PostgreSQL if it is of one.

    ANIMALCAT_STORE names that then. Everything is compared with its digest first; if anything
    fails, the place is as it was. Tokens and keys that the directory has stay.
    """
    with _work("restoring") as tell:
        done = stores.restore(source, data_folder(), tell=tell)
    if common().as_json:
        print_json(asdict(done))
        return
    for problem in done.damaged:
        say(f"note: it was so when the backup was made: {problem}")
    if not done.keys:
        say("note: no token is in the backup; `animalcat token create` makes others")
    say(
        f"{count_of(done.sessions, 'session')} with {count_of(done.files, 'file')} of {done.made} "
        f"-> {done.place}"
    )


@app.command()
@without("--server")
def prune(
    older_than: Annotated[
        str,
        typer.Option(
            metavar="AGE",
            help="Sessions to which nothing was written for this long: 12h, 30d, 8w, 6m or 1y.",
        ),
    ] = "",
    owner: Annotated[
        str, typer.Option(metavar="SUBJECT", help="Sessions that belong to this subject.")
    ] = "",
    audit: Annotated[
        bool,
        typer.Option(
            "--audit", help="Lines of the audit log that are this old, instead of sessions."
        ),
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Remove it; otherwise only say what would go.")
    ] = False,
) -> None:
    """Remove sessions by age or owner: say what would be lost, and with --yes remove it.

    A session has to meet all conditions that are given. What is being played stays. A campaign is
    removed with its sessions where all of them are over and chosen; otherwise they stay. `animalcat
    delete` removes by name.
    """
    folder = data_folder()
    with _work("looking") as tell:
        plan = stores.plan(folder, older_than=_age(older_than), owner=owner, audit=audit, tell=tell)
    if not common().as_json:
        _show_plan(plan)
    if not yes:
        if common().as_json:
            print_json(_plan_rows(plan))
        elif plan.losses or plan.lines:
            say("nothing was removed; the same command with --yes removes it")
        return
    with _work("removing") as tell:
        done = stores.prune(folder, plan, tell=tell)
    if common().as_json:
        print_json(
            {**_plan_rows(plan), "done": done.done, "removed": done.bytes, "left": done.kept}
        )
    else:
        for name, why in done.kept.items():
            say(f"{name} stays: {why}")
        lines = count_of(plan.lines, "line of the audit log")
        sessions = f"{count_of(done.done, 'session')}: {size(done.bytes)}"
        say(f"removed {lines if audit else sessions}")
    if done.kept:
        raise typer.Exit(FAILED)


@contextmanager
def _work(title: str) -> Generator[Tell]:
    """Show progress, and say errors as one sentence."""
    try:
        with progress(title) as tell:
            yield tell
    except AnimalcatError as error:
        fail(str(error), UNREACHABLE if error.code == "UNAVAILABLE" else BAD_INPUT)


def size(number: int) -> str:
    """Bytes for people."""
    if number < 1024:
        return f"{number} B"
    power = min((number.bit_length() - 1) // 10, 4)
    value = number / 1024**power
    unit = ("B", "KiB", "MiB", "GiB", "TiB")[power]
    return f"{value:.3g} {unit}" if value < 1000 else f"{value:.0f} {unit}"


def _age(text: str) -> timedelta:
    if not text:
        return timedelta()
    found = _AGE.fullmatch(text.strip())
    if not found:
        fail(f"{text!r} is not an age; give a number and a letter, such as 12h, 30d, 8w, 6m or 1y")
    return timedelta(hours=int(found[1]) * _HOURS[found[2]])


def _plan_rows(plan: Plan) -> dict[str, Any]:
    return {
        "bytes": plan.bytes,
        "sessions": [{**asdict(loss), "changed": timestamp(loss.changed)} for loss in plan.losses],
        "kept": plan.kept,
        "campaigns": list(plan.campaigns),
        "lines": plan.lines,
    }


def _show_plan(plan: Plan) -> None:
    losses = sorted(plan.losses, key=lambda loss: -loss.bytes)
    rows = [
        {**asdict(loss), "last written": f"{loss.changed:%Y-%m-%d}", "takes": size(loss.bytes)}
        for loss in losses[:_SHOWN]
    ]
    if rows:
        columns = ["session", Column("state", 2), Column("last written", 3), "episodes", "files"]
        more = f", of which these {_SHOWN} take most" if len(losses) > _SHOWN else ""
        title = f"to be removed: {count_of(len(losses), 'session')}{more}"
        print_table(rows, [*columns, "takes"], title=title)
    for campaign in plan.campaigns:
        say(f"campaign {campaign} goes with its sessions")
    if plan.before is not None:
        lines = count_of(plan.lines, "line of the audit log")
        say(f"to be removed: {lines}, before {plan.before:%Y-%m-%d}")
        say("note: `animalcat audit --limit 0 --json` writes them out first")
    for name, why in list(plan.kept.items())[:_SHOWN]:
        say(f"{name} stays: {why}")
    if len(plan.kept) > _SHOWN:
        say(f"{len(plan.kept) - _SHOWN} more stay; --json has all")
    if losses:
        say(f"together {size(plan.bytes)}")
    elif plan.before is None:
        say("nothing is chosen; say what may go with --older-than or --owner")
