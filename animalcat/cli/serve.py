"""`animalcat serve`: start the server of a data directory."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from animalcat.cli.shared.output import BAD_INPUT, UNREACHABLE, fail
from animalcat.service.host.lock import DirectoryInUseError
from animalcat.service.host.settings import ExposureError, Settings
from animalcat.service.rpc.server import PortInUseError, serve
from animalcat.service.storage.migrate import StoreTooNewError


def command(
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Port; 0 for any free one. Default 50051.")
    ] = None,
    host: Annotated[str | None, typer.Option(help="Address to listen at.")] = None,
    data: Annotated[
        Path | None,
        typer.Option("--data", help="Data directory; else ANIMALCAT_HOME, .animalcat."),
    ] = None,
    allow_build: Annotated[
        list[Path] | None,
        typer.Option(help="Unity build that sessions may name by path; may be repeated."),
    ] = None,
    worker_quiet_seconds: Annotated[
        float | None,
        typer.Option(min=0.001, help="Silence and idleness of a worker that hangs: 30."),
    ] = None,
    worker_cpu_seconds: Annotated[
        float | None, typer.Option(min=0.001, help="Most CPU time of a worker for one answer: 300.")
    ] = None,
    fit_quiet_seconds: Annotated[
        float | None, typer.Option(min=0.001, help="The same of the process that fits by NUTS: 60.")
    ] = None,
    fit_cpu_seconds: Annotated[
        float | None, typer.Option(min=0.001, help="Most CPU time of a fit: 3600.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Say where it listens in JSON.")] = False,
    private: Annotated[
        bool, typer.Option(hidden=True, help="End with standard input; implies --json.")
    ] = False,
) -> None:
    """Serve agents, operators and viewers until SIGTERM or Ctrl-C."""
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
