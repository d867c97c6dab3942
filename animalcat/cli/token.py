"""`animalcat token`: tokens by which callers of a server prove who they are.

They are made in the server's data directory, whether or not it runs: whoever can write there rules.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any

import typer

from animalcat.cli.shared.common import common, without
from animalcat.cli.shared.output import fail, print_rows, say
from animalcat.cli.shared.remote import data_folder, timestamp
from animalcat.cli.shared.table import Column
from animalcat.data import settings_for
from animalcat.service.access.audit import note_by_command
from animalcat.service.access.callers import Role
from animalcat.service.access.tokens import USUAL_DAYS, Token, TokenError, Tokens
from animalcat.text import names

app = typer.Typer(
    help="Make, list and revoke tokens, with which callers of a server prove who they are.",
    no_args_is_help=True,
)


@app.command()
@without("--server")
def create(
    role: Annotated[
        Role,
        typer.Option(
            help="agent plays its sessions and learns nothing else; viewer reads what is its "
            "subject's; researcher makes and runs its own; operator sees and runs everything; "
            "administrator does everything."
        ),
    ] = Role.AGENT,
    agent: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="For an agent: the name that its sessions are for.",
            show_default="",
        ),
    ] = "",
    session: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SESSION",
            help="For an agent: only this session. Repeat it for several.",
            show_default="all that are for its name",
        ),
    ] = None,
    subject: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Whose it is: what is made with it belongs to this subject. An agent's token "
            "plays the sessions of this subject alone.",
            show_default="of an agent: sessions of everybody; else the token itself",
        ),
    ] = "",
    note: Annotated[
        str, typer.Option(metavar="WORDS", help="Whose it is, for the list.", show_default="")
    ] = "",
    days: Annotated[
        float,
        typer.Option(metavar="DAYS", min=0, help="It expires after this many days. 0: never."),
    ] = USUAL_DAYS,
) -> None:
    """Make a token, and print it once.

    It is stored nowhere: the server keeps only its digest. It is valid at once, even for a
    running server.
    """
    with _errors():
        only = [names.parse_session(name) if "/" in name else name for name in session or ()]
        only = [names.check_component(name, "session") for name in only]
        token, text = _tokens().create(
            role,
            note=note,
            agent=agent,
            sessions=only,
            days=days,
            subject=subject,
        )
    if common().as_json:
        say(json.dumps({"token": text, **_row(token)}, indent=2))
    else:
        say(text)
        ends = "does not expire" if token.expires is None else f"ends {timestamp(token.expires)}"
        say(f"token {token.id} for {_for(token)}; it {ends}", err=True)


@app.command("list")
@without("--server")
def list_tokens() -> None:
    """List tokens, oldest first.

    Those that ended stay on the list for 30 days.
    """
    with _errors():
        rows = [_row(token) for token in Tokens(data_folder()).all()]
    columns = [
        "id",
        "role",
        Column("subject", 2),
        Column("plays", 1),
        Column("note", 3),
        "state",
        Column("created", 4),
        Column("expires", 2),
    ]
    print_rows(rows, columns)


@app.command()
@without("--server")
def revoke(
    token: Annotated[
        str, typer.Argument(metavar="ID", help="The id of a token, from `token list`.")
    ],
) -> None:
    """Revoke a token.

    It is refused from the next call on, and streams that were opened with it end within seconds.
    """
    with _errors():
        revoked = _tokens().revoke(token)
    if common().as_json:
        say(json.dumps(_row(revoked), indent=2))
    else:
        say(f"token {revoked.id} for {_for(revoked)} is revoked")


@app.command()
@without("--server")
def link(
    token: Annotated[
        str,
        typer.Argument(
            metavar="[ID]",
            help="The id of a token, from `token list`, whose owner the browser acts for. Without "
            "it, the browser may do what this machine's own user may.",
        ),
    ] = "",
    path: Annotated[
        str, typer.Option(metavar="PATH", help="The page that it leads to.", show_default="")
    ] = "",
) -> None:
    """Make a link to the web pages of the server that runs, which lets one browser in, once.

    It is valid for a quarter of an hour, and contains no token.
    """
    from animalcat.service.host.lock import web_address
    from animalcat.service.web.visits import link_to, visits_of

    home = data_folder()
    url = web_address(home)
    if not url:
        fail(f"no server of {home} has web pages: start one with `animalcat serve --web 8080`")
    try:
        if token and not Tokens(home).good(token):
            fail(f"no valid token has the id {token!r}; list them to see their ids")
        made = link_to(url, visits_of(home).ticket(token), path)
    except TokenError as error:
        fail(str(error))
    say(json.dumps({"link": made}) if common().as_json else made)


def _tokens() -> Tokens:
    """The tokens of a data directory; what is changed is written into its audit log."""
    home = data_folder()
    return Tokens(home, note=partial(note_by_command, home, settings_for(home).store))


@contextmanager
def _errors() -> Generator[None]:
    try:
        yield
    except (TokenError, names.BadNameError) as error:
        fail(str(error))
    except OSError as error:
        fail(f"{error.filename}: {error.strerror}")


def _for(token: Token) -> str:
    """Whom a token is for, in words."""
    if token.role is not Role.AGENT:
        return f"{token.role.words}, {token.subject}"
    return f"the agent that plays {_plays(token)}"


def _plays(token: Token) -> str:
    if token.sessions:
        return " ".join(token.sessions)
    return f"sessions for {token.agent!r}" if token.agent else ""


def _row(token: Token) -> dict[str, Any]:
    """A token as lists and JSON show it, without its digest."""
    return {
        "id": token.id,
        "role": token.role.value,
        "agent": token.agent,
        "sessions": list(token.sessions),
        "subject": token.subject,
        "plays": _plays(token),
        "note": token.note,
        "state": token.ended(datetime.now(UTC)) or "good",
        "created": timestamp(token.created),
        "expires": None if token.expires is None else timestamp(token.expires),
        "revoked": None if token.revoked is None else timestamp(token.revoked),
    }
