"""`animalcat serve`: start the server of a data directory."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from typing import Annotated, Any, Final

import typer

from animalcat.cli.shared.output import BAD_INPUT, UNREACHABLE, fail
from animalcat.cli.shared.remote import AllowBuild, Data
from animalcat.service.host.lock import DirectoryInUseError
from animalcat.service.host.settings import ExposureError, Settings
from animalcat.service.rpc.server import PortInUseError, serve
from animalcat.service.storage.migrate import StoreTooNewError

LISTENING: Final = "Where it listens"
LIMITS: Final = "What it waits for"
"""Groups of options."""


def command(
    port: Annotated[
        int | None,
        typer.Option(
            metavar="PORT",
            min=0,
            max=65535,
            help="The port to listen at. 0 takes any free one.",
            show_default="50051",
            rich_help_panel=LISTENING,
        ),
    ] = None,
    host: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="The address to listen at. Only addresses of this machine are allowed.",
            show_default="127.0.0.1",
            rich_help_panel=LISTENING,
        ),
    ] = None,
    data: Data = None,
    allow_build: AllowBuild = None,
    worker_quiet_seconds: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            min=0.001,
            help="End a simulator process that neither answers nor works for so long.",
            show_default="30",
            rich_help_panel=LIMITS,
        ),
    ] = None,
    worker_cpu_seconds: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            min=0.001,
            help="The most CPU time that a simulator process may take for one answer.",
            show_default="300",
            rich_help_panel=LIMITS,
        ),
    ] = None,
    fit_quiet_seconds: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            min=0.001,
            help="End the fitting process when it neither answers nor works for so long.",
            show_default="60",
            rich_help_panel=LIMITS,
        ),
    ] = None,
    fit_cpu_seconds: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            min=0.001,
            help="The most CPU time that one fit may take.",
            show_default="3600",
            rich_help_panel=LIMITS,
        ),
    ] = None,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Say in JSON where it listens.", rich_help_panel=LISTENING),
    ] = False,
    private: Annotated[
        bool, typer.Option(hidden=True, help="End with standard input; implies --json.")
    ] = False,
) -> None:
    """Serve a data directory to agents, operators and viewers, until SIGTERM or Ctrl-C."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
    given: dict[str, Any] = {
        "port": port,
        "host": host,
        "home": data,
        "allowed_builds": allow_build,
        "worker_quiet_seconds": worker_quiet_seconds,
        "worker_cpu_seconds": worker_cpu_seconds,
        "fit_quiet_seconds": fit_quiet_seconds,
        "fit_cpu_seconds": fit_cpu_seconds,
    }
    settings = Settings(**{key: value for key, value in given.items() if value is not None})

    def ready(address: str) -> None:
        if as_json or private:
            typer.echo(json.dumps({"address": address, "data": str(settings.home.absolute())}))
        else:
            typer.echo(f"animalcat serves {settings.home} at {address}; Ctrl-C stops it")
        sys.stdout.flush()

    try:
        asyncio.run(serve(settings, ready, with_stdin=private))
    except ExposureError as error:
        fail(str(error), BAD_INPUT)
    except StoreTooNewError as error:
        fail(str(error), BAD_INPUT)
    except (DirectoryInUseError, PortInUseError) as error:
        fail(str(error), UNREACHABLE)
    except OSError as error:
        fail(f"{error.filename or settings.home}: {error.strerror or error}", UNREACHABLE)
