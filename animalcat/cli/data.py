"""`animalcat data`: say what a store takes, look through it, back it up, and make room.

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
from animalcat.cli.shared.output import BAD_INPUT, FAILED, UNREACHABLE, fail, print_json, print_rows
from animalcat.cli.shared.progress import Tell, progress
from animalcat.cli.shared.remote import AsJson, Data, data_folder, timestamp
from animalcat.cli.shared.table import Column
from animalcat.data import Loss, Part, Plan
from animalcat.errors import AnimalcatError
from animalcat.values import SessionState

app = typer.Typer(
    help="Say what a store takes, look through it, back it up, and make room.",
    no_args_is_help=True,
)

_AGE: Final = re.compile(r"(\d+)\s*([hdwmy])")
_HOURS: Final = {"h": 1, "d": 24, "w": 7 * 24, "m": 30 * 24, "y": 365 * 24}
_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?", re.IGNORECASE)
_SHOWN: Final = 20
"""Sessions that are named before something is removed."""


@app.command()
def show(
    limit: Annotated[
        int,
        typer.Option(
            metavar="NUMBER", min=0, help="Show so many sessions and batteries, the largest first."
        ),
    ] = 10,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Say what takes how much room, and how much is free.

    That is by kind, by battery and by session. With --json all sessions and batteries are listed.
    """
    with _work("adding up") as tell:
        used = stores.show(data_folder(data), tell=tell)
    if as_json:
        print_json(
            {
                "store": used.place,
                "total": used.total,
                "free": used.free,
                "kinds": used.kinds,
                "caches": used.caches,
                "batteries": [{**asdict(b), "total": b.total} for b in used.batteries],
                "sessions": [
                    {
                        **asdict(s),
                        "created": timestamp(s.created),
                        "changed": timestamp(s.changed),
                        "total": s.total,
                    }
                    for s in used.sessions
                ],
            }
        )
        return
    rows = [{"what": kind, "takes": size(n)} for kind, n in used.kinds.items() if n]
    rows += [{"what": "together", "takes": size(used.total)}]
    print_rows(rows, ("what", "takes"), as_json=False, title=f"{used.place}")
    if used.caches:
        rows = [{"cache": kind, "takes": size(n)} for kind, n in used.caches.items()]
        print_rows(rows, ("cache", "takes"), as_json=False, title="of this user; may be deleted")
    batteries = [
        {
            "battery": " ".join(b.names) or f"(earlier) {b.digest[:12]}",
            "sessions": b.sessions,
            "episodes": b.episodes,
            "arenas": size(b.arenas),
            "its sessions": size(b.of_sessions),
        }
        for b in used.batteries[:limit]
    ]
    columns = ["battery", "sessions", Column("episodes", 1), Column("arenas", 2), "its sessions"]
    _of("batteries", batteries, len(used.batteries), columns)
    sessions = [
        {
            "session": s.session,
            "state": s.state,
            "episodes": s.episodes,
            "rows": size(s.rows),
            "recordings": size(s.recordings),
            "fits": size(s.fits),
            "takes": size(s.total),
        }
        for s in used.sessions[:limit]
    ]
    names = ["session", Column("state", 4), Column("episodes", 3), Column("rows", 2)]
    names += [Column("recordings", 1), Column("fits", 1), "takes"]
    _of("sessions", sessions, len(used.sessions), names)
    typer.echo(f"free on that disk: {size(used.free)}")


@app.command()
def verify(data: Data = None, as_json: AsJson = False) -> None:
    """Look whether all of a store is as it was stored.

    That is the database, every session with its chain, recordings and fits, all batteries, layouts
    and campaigns. Everything that was changed, is gone or cannot be read is named with what to do,
    and the exit code is 1 then. The store may be in use. When it was interrupted, the next call
    reads only those files again that were written since.
    """
    with _work("looking through the store") as tell:
        found = stores.verify(data_folder(data), tell=tell)
    if as_json:
        print_json({**asdict(found), "notes": [list(note) for note in found.notes]})
    else:
        for one in found.damage:
            typer.echo(f"{one.where}: {one.what}\n  to do: {one.remedy}")
        for where, note in found.notes:
            typer.echo(f"note: {where}: {note}")
        stands = f"{len(found.damage)} things are not" if found.damage else "all is"
        known = f", and {found.known} read before are the same" if found.known else ""
        typer.echo(
            f"{stands} as it was stored: {found.sessions} sessions, {found.batteries} batteries; "
            f"{found.files} files were read{known}"
        )
    if found.damage:
        raise typer.Exit(FAILED)


@app.command()
def backup(
    to: Annotated[
        Path,
        typer.Argument(
            metavar="DEST",
            help="A folder, or an archive whose name ends in .tar.zst, .tar.gz or .zip.",
        ),
    ],
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Back up a store, which may be in use, to a folder or an archive.

    Into a folder in which an earlier backup is, only what is new is copied. Nothing looks like a
    backup before it is whole. Ends with code 1 if files of the store are gone or were changed.
    """
    with _work("backing up") as tell:
        made = stores.backup(data_folder(data), to, tell=tell)
    if as_json:
        print_json({**asdict(made), "path": str(made.path)})
    else:
        for problem in made.damaged:
            typer.echo(problem)
        typer.echo(
            f"{made.sessions} sessions with {made.episodes} attempts and {made.files} files "
            f"({size(made.bytes)}, {size(made.fresh)} of it new) -> {made.path}"
        )
    if made.damaged:
        raise typer.Exit(FAILED)


@app.command()
def restore(
    source: Annotated[Path, typer.Argument(metavar="SOURCE", help="A backup.")],
    repair: Annotated[
        bool,
        typer.Option(
            "--repair",
            help="Put files back that a store has lost, or that were changed in it, and leave the "
            "rest alone.",
        ),
    ] = False,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Restore a backup into an empty data directory, and PostgreSQL if ANIMALCAT_STORE names one.

    A backup of SQLite can be restored into PostgreSQL, and the other way round. Everything is
    compared with its digest first; if anything fails, the place is as it was.
    """
    folder = data_folder(data)
    if repair:
        with _work("repairing") as tell:
            repaired = stores.repair(source, folder, tell=tell)
        if as_json:
            print_json(asdict(repaired))
        else:
            for key in repaired.files:
                typer.echo(f"put back: {key}")
            for key in repaired.missing:
                typer.echo(f"the backup does not have it either: {key}")
            typer.echo(f"{len(repaired.files)} files put back, {len(repaired.missing)} missing")
        if repaired.missing:
            raise typer.Exit(FAILED)
        return
    with _work("restoring") as tell:
        done = stores.restore(source, folder, tell=tell)
    if as_json:
        print_json(asdict(done))
        return
    for problem in done.damaged:
        typer.echo(f"note: it was so when the backup was made: {problem}")
    typer.echo(
        f"{done.sessions} sessions with {done.episodes} attempts and {done.files} files of "
        f"{done.made} -> {done.place}"
    )


@app.command()
def prune(
    session: Annotated[
        list[str] | None, typer.Argument(metavar="SESSION", help="Ids of sessions.")
    ] = None,
    state: Annotated[
        list[SessionState] | None,
        typer.Option(
            metavar="STATE",
            help="Sessions in this state: waiting, finished, cancelled or failed. Repeat it for "
            "several.",
        ),
    ] = None,
    older_than: Annotated[
        str,
        typer.Option(
            metavar="AGE",
            help="Sessions of which nothing was written for so long: 12h, 30d, 8w, 6m or 1y.",
        ),
    ] = "",
    agent: Annotated[str, typer.Option(metavar="NAME", help="Sessions of this agent.")] = "",
    battery: Annotated[str, typer.Option(metavar="NAME", help="Sessions on this battery.")] = "",
    empty: Annotated[
        bool, typer.Option("--empty", help="Sessions of which no attempt counts.")
    ] = False,
    owner: Annotated[
        str, typer.Option(metavar="SUBJECT", help="Sessions that belong to this subject.")
    ] = "",
    larger_than: Annotated[
        str, typer.Option(metavar="SIZE", help="Sessions that take so much: 500MB, 2GiB.")
    ] = "",
    down_to: Annotated[
        str,
        typer.Option(
            metavar="SIZE",
            help="Of the sessions that are meant, only as many as have to go so that the store "
            "takes no more than this: those that were written longest ago.",
        ),
    ] = "",
    what: Annotated[
        Part,
        typer.Option(
            help="What of them goes: all of a session, its recordings, recordings of attempts that "
            "do not count, or the fit of its profile. `audit` means lines of the audit log "
            "instead, by --older-than."
        ),
    ] = Part.SESSIONS,
    with_campaigns: Annotated[
        bool,
        typer.Option(
            "--with-campaigns", help="Remove campaigns too all of whose sessions are meant."
        ),
    ] = False,
    leftovers: Annotated[
        bool,
        typer.Option(
            "--leftovers",
            help="Remove files that belong to nothing: of sessions that the database does not "
            "know, and arenas that no name and no session stands for.",
        ),
    ] = False,
    person: Annotated[
        str,
        typer.Option(
            metavar="SUBJECT",
            help="Remove all of a person's data: sessions and campaigns that belong to this "
            "subject, batteries and layouts that nobody else needs, and tokens.",
        ),
    ] = "",
    yes: Annotated[bool, typer.Option("--yes", help="Remove it; else it is only said.")] = False,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Make room, or forget a person: say what would be lost, and with --yes remove it.

    All that is said of sessions has to be so. A session that is being played stays, as do those of
    campaigns. Recordings and fits go from sessions that are over alone; the chain of the session
    says then that they were removed on purpose, and `data verify` finds nothing.
    """
    folder = data_folder(data)
    with _work("looking") as tell:
        plan = stores.plan(
            folder,
            sessions=session or (),
            states=state or (),
            agent=agent,
            battery=battery,
            older_than=_age(older_than),
            empty=empty,
            owner=owner,
            larger_than=_size(larger_than) or 0,
            down_to=_size(down_to),
            part=what,
            with_campaigns=with_campaigns,
            leftovers=leftovers,
            person=person,
            tell=tell,
        )
    if not yes:
        if as_json:
            print_json(_planned(plan))
        else:
            _show_plan(plan)
            if not plan.empty:
                typer.echo("nothing was removed; the same command with --yes removes it")
        return
    if not as_json:
        _show_plan(plan)
    with _work("removing") as tell:
        done = stores.prune(folder, plan, tell=tell)
    if as_json:
        print_json({**_planned(plan), "done": done.done, "removed": done.bytes, "left": done.kept})
    else:
        for name, why in done.kept.items():
            typer.echo(f"{name} stays: {why}")
        of = f"{plan.lines} lines of the audit log" if plan.lines else ""
        of = of or f"{what.value} of {done.done} sessions: {size(done.bytes)}"
        typer.echo(f"removed {of}")
    if done.kept:
        raise typer.Exit(FAILED)


@app.command()
def move(
    to: Annotated[
        str,
        typer.Option(
            metavar="FOLDER|URL",
            help="The data directory to move them to, or the URL of a PostgreSQL.",
            show_default=False,
        ),
    ],
    session: Annotated[
        list[str] | None,
        typer.Argument(metavar="SESSION", help="Ids of sessions, from `session list`."),
    ] = None,
    whole: Annotated[
        bool,
        typer.Option(
            "--all",
            help="Move the whole SQLite database into the empty PostgreSQL that --to names. Files "
            "stay in the data directory, and no server may use it meanwhile.",
        ),
    ] = False,
    to_data: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="With a URL: the data directory of that store."),
    ] = None,
    to_artefacts: Annotated[
        str,
        typer.Option(
            metavar="URL",
            help="The object storage of that store.",
            show_default="its data directory",
        ),
    ] = "",
    copy: Annotated[
        bool, typer.Option("--copy", help="Leave them where they are as well.")
    ] = False,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Move sessions to another store, under the same ids; or all, from SQLite to PostgreSQL.

    Each is compared with its chain there before it goes from here; its battery and layout come
    along. When this was interrupted, the same command again finishes it. Other stores may be of the
    other kind of database, and may be in use.
    """
    url = "://" in to
    if whole:
        _move_database(data_folder(data), to, as_json, others=bool(session or to_data or copy))
        return
    if not session:
        fail("name sessions to move, or --all")
    if url and to_data is None:
        fail("a store in a database has a data directory too: name it with --to-data")
    if not url and to_data is not None:
        fail("--to-data goes with the URL of a database")
    place = to_data if url and to_data is not None else Path(to)
    moved: list[dict[str, Any]] = []
    for name in session:
        with _work(f"moving {name}") as tell:
            done = stores.move(
                name,
                data_folder(data),
                place,
                keep=copy,
                to_store=to if url else "",
                to_artefacts=to_artefacts,
                tell=tell,
            )
        moved.append(asdict(done))
        if not as_json:
            verb = "moved" if done.removed else "copied"
            typer.echo(f"{verb} {name} with {done.files} files ({size(done.bytes)}), {done.head}")
            for note in done.notes:
                typer.echo(f"note: {note}")
    if as_json:
        print_json(moved)


def _move_database(folder: Path, to: str, as_json: bool, *, others: bool) -> None:
    if others or "://" not in to:
        fail("--all goes with --to postgresql://..., and with no session, --to-data or --copy")
    with _work("moving the database") as tell:
        done = stores.move_database(folder, to, tell=tell)
    if as_json:
        print_json(asdict(done))
        return
    typer.echo(
        f"moved {done.sessions} sessions, {done.rows} rows in all. Set ANIMALCAT_STORE to that URL "
        f"from now on; {done.aside} is what was there before, and may go"
    )


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


def _of(what: str, rows: list[dict[str, Any]], number: int, columns: list[Column | str]) -> None:
    if not rows:
        return
    title = f"{what}: the {len(rows)} largest of {number}" if len(rows) < number else what
    print_rows(rows, columns, as_json=False, title=title)


def _age(text: str) -> timedelta:
    if not text:
        return timedelta()
    found = _AGE.fullmatch(text.strip())
    if not found:
        fail(f"{text!r} is no age; give a number and a letter, such as 12h, 30d, 8w, 6m or 1y")
    return timedelta(hours=int(found[1]) * _HOURS[found[2]])


def _size(text: str) -> int | None:
    """The bytes that a text says; None if it says nothing."""
    if not text:
        return None
    found = _SIZE.fullmatch(text.strip())
    if not found:
        fail(f"{text!r} is no size; give a number and a unit, such as 500MB, 2GiB or 1.5TB")
    power = " kmgt".index(found[2].lower() or " ")
    return int(float(found[1]) * (1024 if found[3] else 1000) ** power)


def _planned(plan: Plan) -> dict[str, Any]:
    return {
        "what": plan.part.value,
        "bytes": plan.bytes,
        "sessions": [_loss(loss) for loss in plan.losses],
        "kept": plan.kept,
        "refer": list(plan.named),
        "campaigns": list(plan.campaigns),
        "things": list(plan.things),
        "lines": plan.lines,
        "leftovers": plan.strays,
    }


def _loss(loss: Loss) -> dict[str, Any]:
    use = loss.use
    return {
        "session": use.session,
        "agent": use.agent,
        "battery": use.battery,
        "state": use.state,
        "owner": use.owner,
        "changed": timestamp(use.changed),
        "episodes": use.episodes,
        "files": loss.files,
        "bytes": loss.bytes,
    }


def _show_plan(plan: Plan) -> None:
    rows = [{**_loss(loss), "takes": size(loss.bytes)} for loss in plan.losses[:_SHOWN]]
    for row in rows:
        row["last written"] = row["changed"][:10]
    columns = ["session", Column("state", 2), Column("last written", 3), "episodes", "files"]
    more = f", of which these {_SHOWN} take most" if len(plan.losses) > _SHOWN else ""
    if rows:
        title = f"{plan.part.value} of {len(plan.losses)} sessions go{more}"
        print_rows(rows, [*columns, "takes"], as_json=False, title=title)
    for campaign in plan.campaigns:
        typer.echo(f"campaign {campaign} goes with its sessions")
    if plan.lines:
        typer.echo(f"{plan.lines} lines of the audit log go, those before {plan.before:%Y-%m-%d}")
        typer.echo("note: `animalcat audit --limit 0 --json` writes them out first")
    for thing in plan.things:
        typer.echo(f"{thing} {'is revoked' if thing.startswith('tokens/') else 'goes'}")
    for key, taken in plan.strays.items():
        typer.echo(f"{key} belongs to nothing and goes: {size(taken)}")
    for name, why in list(plan.kept.items())[:_SHOWN]:
        typer.echo(f"{name} stays: {why}")
    if len(plan.kept) > _SHOWN:
        typer.echo(f"{len(plan.kept) - _SHOWN} more stay; --json has all")
    for said in plan.named[:_SHOWN]:
        typer.echo(f"note: {said}")
    if plan.person and not plan.empty:
        typer.echo("note: the audit log and backups keep what they say of them")
    if plan.losses or plan.strays:
        typer.echo(f"together {size(plan.bytes)}")
    elif plan.empty:
        typer.echo("nothing is meant that could go; say which sessions, or --leftovers")
