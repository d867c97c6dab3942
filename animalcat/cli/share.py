"""`animalcat share`: share things on a server with groups, and give them another owner."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from animalcat import names
from animalcat.cli.shared.output import fail, print_json
from animalcat.cli.shared.remote import AsJson, Data, Server, client_for

_KINDS = ("sessions", "campaigns", "batteries", "layouts")


def command(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="The id of a session; or campaigns/ID, batteries/NAME, or layouts/DIGEST.",
        ),
    ],
    group: Annotated[
        list[str] | None,
        typer.Option(
            "--with",
            metavar="GROUP",
            help="Share it with this group, whose researchers may run it and whose viewers may "
            "read it. `everyone` stands for all. Repeat it for several.",
            show_default="",
        ),
    ] = None,
    no_longer: Annotated[
        list[str] | None,
        typer.Option(
            "--not-with",
            metavar="GROUP",
            help="Share it with this group no longer. Repeat it for several.",
            show_default="",
        ),
    ] = None,
    owner: Annotated[
        str | None,
        typer.Option(
            metavar="SUBJECT",
            help="For administrators: give it this owner. An empty text stands for nobody.",
            show_default="",
        ),
    ] = None,
    server: Server = None,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Share something of yours with groups, or no longer, and say with whom it is shared.

    With a session go its battery and its layout, and with a campaign its sessions too, as far as
    they are yours.
    """
    full = name if "/" in name else f"sessions/{name}"
    try:
        kind, _, key = full.partition("/")
        names.check_component(key, kind)
    except names.BadNameError as error:
        fail(str(error))
    if kind not in _KINDS:
        fail(f"{name!r} names nothing that can be shared; give one of {', '.join(_KINDS)}/...")
    with client_for(server, data) as client:
        shared = client.hand_over(full, owner) if owner is not None else None
        if shared is None or group or no_longer:
            shared = client.share(full, group or (), no_longer or ())
    if as_json:
        print_json(asdict(shared))
        return
    whose = f"belongs to {shared.owner}" if shared.owner else "belongs to nobody"
    with_whom = f"is shared with {', '.join(shared.groups)}" if shared.groups else "is not shared"
    typer.echo(f"{shared.name} {whose} and {with_whom}")
