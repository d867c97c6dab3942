"""`animalcat profile`: show and export cognitive profiles."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from animalcat.cli.shared.output import print_json, status, wrote
from animalcat.cli.shared.remote import AsJson, Data, Server, SessionArgument, client_for
from animalcat.cli.shared.tables import print_profile

app = typer.Typer(
    help="Show and export what sessions have found out: cognitive profiles and outcomes.",
    no_args_is_help=True,
)


@app.command()
def show(
    session: SessionArgument, server: Server = None, data: Data = None, as_json: AsJson = False
) -> None:
    """Show what a session has found out about its agent.

    A finished session has a certified profile; before that, the estimate so far is shown.
    """
    with client_for(server, data) as client, status("reading the profile"):
        profile = client.profile(session)
    if as_json:
        print_json(profile)
        return
    about = profile["provenance"]
    engine = "NUTS" if profile["diagnostics"]["engine"] == "nuts" else "live, not certified"
    print_profile(
        profile,
        f"{about['agent']} on {about['battery']}: {about['successes']} of "
        f"{about['episodes']} episodes passed ({engine})",
    )


@app.command()
def export(
    session: SessionArgument,
    form: Annotated[
        Literal["json", "html", "csv", "reanalysis"],
        typer.Option(
            "--format",
            help="json and html are the profile. csv is the table of outcomes, and reanalysis "
            "what `session reanalyse --json` prints.",
        ),
    ] = "json",
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Write to this file, not to standard output."
        ),
    ] = None,
    server: Server = None,
    data: Data = None,
) -> None:
    """Write a session's profile or outcomes to a file."""
    with client_for(server, data) as client:
        with status("writing it"):
            content = client.export_profile(session, form)
        if output is not None:
            output.parent.mkdir(parents=True, exist_ok=True)
            output.write_bytes(content)
            wrote("outcomes" if form == "csv" else "profile", output)
            return
    sys.stdout.buffer.write(content)
