"""`animalcat config`: check the configuration file of a server, and show what holds and why."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from animalcat.cli.shared.output import fail, print_json, print_rows, remark
from animalcat.cli.shared.remote import AsJson
from animalcat.cli.shared.table import Column
from animalcat.service.access.certificates import CertificateError
from animalcat.service.host.configuration import SettingsError
from animalcat.service.host.serving import read_identity
from animalcat.service.host.settings import (
    ExposureError,
    Settings,
    check_exposure,
    check_tls,
    table_of,
)

app = typer.Typer(
    help="Check the configuration file of a server, and show its settings.", no_args_is_help=True
)
File = Annotated[
    Path | None,
    typer.Argument(metavar="FILE", help="The file.", show_default="ANIMALCAT_CONFIG, else no file"),
]


@app.callback()
def config() -> None:
    """Check the configuration file of a server, and show its settings."""


@app.command()
def check(file: File = None, as_json: AsJson = False) -> None:
    """Say whether a server could start with a file, as far as that can be seen without starting.

    Looks at keys, values, what goes together, and at the certificates that the file names. The
    environment counts before the file, as it does for `animalcat serve`.
    """
    settings = _read(file)
    try:
        check_exposure(settings.host, credentials=settings.tls)
        check_tls(settings)
        if not settings.self_signed:
            read_identity(settings)
    except (ExposureError, CertificateError) as error:
        fail(f"{_where(settings)}: {error}")
    except OSError as error:
        fail(f"{_where(settings)}: {error.filename}: {error.strerror}")
    rows = _said(settings)
    if as_json:
        print_json({"file": str(settings.config or ""), "settings": rows})
        return
    print_rows(rows, ["key", Column("value", 1), "from"], as_json=False)
    typer.echo(f"{_where(settings)} is good: a server can start with it.")


@app.command()
def show(file: File = None, as_json: AsJson = False) -> None:
    """List all settings with the value that holds and where it comes from; secrets are masked."""
    settings = _read(file)
    print_rows(
        table_of(settings, _given(file)), ["key", Column("value", 1), "from"], as_json=as_json
    )
    if not as_json:
        remark("options of `animalcat serve` count before the environment, and that before a file")


def _given(file: Path | None) -> dict[str, Any]:
    return {} if file is None else {"config": file}


def _read(file: Path | None) -> Settings:
    try:
        return Settings(**_given(file))
    except SettingsError as error:
        fail(str(error))


def _said(settings: Settings) -> list[dict[str, Any]]:
    """What is not a default."""
    return [row for row in table_of(settings, {}) if row["from"] != "default"]


def _where(settings: Settings) -> str:
    return "the environment" if settings.config is None else str(settings.config)
