"""`animalcat audit`: who did what on a server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Annotated, Any

import typer

from animalcat.cli.shared.common import common
from animalcat.cli.shared.output import fail, print_table, remark, say
from animalcat.cli.shared.remote import client_for, timestamp
from animalcat.cli.shared.table import Column
from animalcat.values import AuditLine

_SHOWN = 50


def command(
    subject: Annotated[
        str,
        typer.Option(metavar="SUBJECT", help="Only what this subject did.", show_default="all"),
    ] = "",
    action: Annotated[
        str,
        typer.Option(
            metavar="ACTION", help="Only this, such as CancelSession.", show_default="all"
        ),
    ] = "",
    about: Annotated[
        str,
        typer.Option(
            "--object",
            metavar="NAME",
            help="Only what was done to this: sessions/ID, campaigns/ID, tokens/ID, ...",
            show_default="all",
        ),
    ] = "",
    since: Annotated[
        str,
        typer.Option(
            metavar="TIME",
            help="Only since then: a time such as 2026-11-27T13:00, in UTC unless it names a zone; "
            "or how long ago, such as 90m, 24h or 7d.",
            show_default="all",
        ),
    ] = "",
    limit: Annotated[
        int,
        typer.Option(
            metavar="NUMBER",
            min=0,
            help="Show at most this many lines, the latest. 0 sets no limit.",
        ),
    ] = _SHOWN,
) -> None:
    """Show who did what on a server, to what, from where, and with what result; the latest first.

    With --json each line is an object of its own. Only administrators may ask.
    """
    after = _time(since)
    with client_for() as client:
        lines = client.audit(subject=subject, action=action, about=about, since=after)
        _print(lines, limit)


def _print(lines: Iterator[AuditLine], limit: int) -> None:
    rows: list[dict[str, Any]] = []
    for line in islice(lines, limit or None):
        row = {**asdict(line), "created": timestamp(line.created)}
        if common().as_json:
            say(json.dumps(row))
        else:
            who = row["subject"] or row["caller"]
            rows.append(row | {"time": f"{line.created:%Y-%m-%d %H:%M:%S}", "who": who})
    if common().as_json:
        return
    columns = [
        *("time", "who", "action"),
        Column("object", 1),
        "result",
        Column("times", 5),
        Column("peer", 3),
        Column("request", 4),
        Column("words", 2),
    ]
    print_table(rows, columns)
    if limit and next(lines, None) is not None:
        remark("there are more lines; --limit 0 shows all, and --since those from a time on")


def _time(text: str) -> datetime | None:
    """The time that is meant; fails with a sentence if it is none."""
    if not text:
        return None
    units = {"m": "minutes", "h": "hours", "d": "days"}
    if text[-1] in units and text[:-1].isdecimal():
        try:
            return datetime.now(UTC) - timedelta(**{units[text[-1]]: int(text[:-1])})
        except OverflowError:
            fail(f"--since {text} is too long ago")
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        fail(f"--since {text!r} is not a time; give for example 2026-11-27T13:00, 24h or 7d")
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)
