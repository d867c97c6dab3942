"""`animalcat profile`: show and export cognitive profiles."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from animalcat.cli.shared.output import print_json
from animalcat.cli.shared.remote import AsJson, Data, Server, SessionArgument, client_for
from animalcat.cli.shared.tables import print_profile

app = typer.Typer(help="Show and export cognitive profiles.", no_args_is_help=True)


@app.command()
def show(
    session: SessionArgument, server: Server = None, data: Data = None, as_json: AsJson = False
) -> None:
    """Show a session's profile: the certified one when it is finished, else the live one."""
    with client_for(server, data) as client:
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
            help="csv: the table of outcomes; reanalysis: as `session reanalyse --json`.",
        ),
    ] = "json",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File; standard output if not given.")
    ] = None,
    server: Server = None,
    data: Data = None,
) -> None:
    """Write a session's profile to a file."""
    with client_for(server, data) as client:
        content = client.export_profile(session, form)
        if output is not None:
            output.parent.mkdir(parents=True, exist_ok=True)
            output.write_bytes(content)
            typer.echo(str(output), err=True)
            return
    sys.stdout.buffer.write(content)
