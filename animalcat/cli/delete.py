"""`animalcat delete`: delete sessions, campaigns and batteries of a server by name."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from animalcat.cli.shared.common import common
from animalcat.cli.shared.output import FAILED, complain, fail, print_json, print_table, say
from animalcat.cli.shared.remote import client_for
from animalcat.client import Client
from animalcat.errors import AnimalcatError
from animalcat.text import names
from animalcat.text.counts import count_of

_ORDER = ("campaigns", "sessions", "batteries")
"""Kinds of things that can be deleted, each before what it needs."""


def command(
    name: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME", help="The id of a session; or campaigns/ID, or batteries/NAME."
        ),
    ],
    with_sessions: Annotated[
        bool, typer.Option("--with-sessions", help="With a campaign, delete its sessions too.")
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Delete it; otherwise only say what would go.")
    ] = False,
) -> None:
    """Show what deleting something would lose, and with --yes delete it.

    Owners and administrators may. What is being played stays, and so does a battery with which
    something that stays was made. `animalcat data prune` removes by age or owner.
    """
    with client_for() as client:
        rows: dict[str, dict[str, Any]] = {}
        for full in dict.fromkeys(map(_full, name)):
            rows[full] = _losses(client, full, with_sessions)
            for session in rows[full].pop("sessions"):
                rows[session] = _losses(client, session, with_sessions)
                del rows[session]["sessions"]
        order = sorted(rows, key=lambda full: _ORDER.index(full.partition("/")[0]))
        kept: dict[str, str] = {}
        for full in order if yes else ():
            try:
                _delete(client, full)
            except AnimalcatError as error:
                if error.code == "UNAVAILABLE":
                    raise
                kept[full] = str(error)
    listed = [{"name": full, **rows[full], "kept": kept.get(full)} for full in order]
    if common().as_json:
        print_json({"done": yes, "items": listed})
    else:
        verb = "deleted" if yes else "would be deleted"
        gone = [row for row in listed if row["kept"] is None]
        if gone:
            print_table(gone, ["name", "what is lost"], title=verb)
        for full, why in kept.items():
            complain(f"{full} stays: {why}")
        if not yes:
            say("nothing was deleted; the same command with --yes deletes it")
    if kept:
        raise typer.Exit(FAILED)


def _full(name: str) -> str:
    full = name if "/" in name else f"sessions/{name}"
    kind, _, key = full.partition("/")
    try:
        names.check_component(key, kind)
    except names.BadNameError as error:
        fail(str(error))
    if kind not in _ORDER:
        fail(f"{name!r} names nothing that can be deleted; give one of {', '.join(_ORDER)}/...")
    return full


def _losses(client: Client, full: str, with_sessions: bool) -> dict[str, Any]:
    """What goes with something, in words, and the names of sessions that go beside it."""
    kind, _, key = full.partition("/")
    if kind == "sessions":
        session = client.get_session(key)
        words = (
            f"{count_of(session.episodes, 'episode')} of {session.spec.agent} on "
            f"{session.spec.battery}, with their recordings and its profile; it is {session.state}"
        )
        return {"what is lost": words, "sessions": []}
    if kind == "campaigns":
        campaign = client.get_campaign(key)
        its_own = [names.session_name(session.id) for session in campaign.sessions]
        words = f"the campaign; its {len(its_own)} sessions {'go' if with_sessions else 'stay'}"
        return {"what is lost": words, "sessions": its_own if with_sessions else []}
    battery = client.get_battery(key)
    return {"what is lost": f"{battery.instances} arenas", "sessions": []}


def _delete(client: Client, full: str) -> None:
    kind, _, key = full.partition("/")
    if kind == "sessions":
        client.delete_session(key)
    elif kind == "campaigns":
        client.delete_campaign(key)
    else:
        client.delete_battery(key)
