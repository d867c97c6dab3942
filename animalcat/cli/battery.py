"""`animalcat battery`: list, build and import batteries."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from animalcat import names
from animalcat.cli.output import fail, print_json, print_rows
from animalcat.cli.remote import AsJson, Data, Server, client_for
from animalcat.v1 import sessions_pb2

app = typer.Typer(help="List, build and import batteries.", no_args_is_help=True)

Seed = Annotated[int, typer.Option(min=0, help="Seed of what is left to chance.")]


@app.command("list")
def list_batteries(server: Server = None, data: Data = None, as_json: AsJson = False) -> None:
    """List batteries by name."""
    with client_for(server, data) as client:
        rows = [_row(battery) for battery in client.list_batteries()]
    if not as_json:
        rows = [{**row, "problems": len(row["problems"])} for row in rows]
    print_rows(rows, ["battery", "instances", "problems", "digest"], as_json=as_json)


@app.command()
def build(
    family: Annotated[str, typer.Argument(help="Family of arenas, for example navigation.")],
    instances: Annotated[int, typer.Option(min=1, help="How many.")] = 450,
    seed: Seed = 0,
    name: Annotated[str, typer.Option(help="Name of the battery; the family's if not given.")] = "",
    server: Server = None,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Build a battery from a family of arenas."""
    with client_for(server, data) as client:
        _show(client.build_battery(family, instances, seed=seed, name=name), as_json)


@app.command("import")
def import_(
    path: Annotated[Path, typer.Argument(help="A folder of arena files, or one file.")],
    name: Annotated[str, typer.Option(help="Name; made from the path if not given.")] = "",
    seed: Seed = 0,
    server: Server = None,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Make a battery of arena files; the same content gives the same battery."""
    if not path.exists():
        fail(f"{path}: no such file or folder")
    with client_for(server, data) as client:
        _show(client.import_battery(path, name or None, seed=seed), as_json)


def _row(battery: sessions_pb2.Battery) -> dict[str, Any]:
    return {
        "battery": names.parse_battery(battery.name),
        "instances": battery.instances,
        "digest": battery.digest,
        "problems": list(battery.problems),
    }


def _show(battery: sessions_pb2.Battery, as_json: bool) -> None:
    row = _row(battery)
    if as_json:
        print_json(row)
        return
    for problem in row["problems"]:
        typer.echo(f"note: {problem}", err=True)
    typer.echo(f"battery {row['battery']}: {row['instances']} instances, digest {row['digest']}")
