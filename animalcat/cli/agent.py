"""`animalcat agent`: run an agent against a server; needs nothing but the base install."""

from __future__ import annotations

import traceback
from dataclasses import asdict
from typing import Annotated

import typer

from animalcat.cli.shared.output import (
    BAD_INPUT,
    FAILED,
    UNREACHABLE,
    fail,
    print_json,
    progress_console,
)
from animalcat.client import connect
from animalcat.client.evaluation import PlayedEpisode
from animalcat.envs.agents import AgentLoadError, load_agent
from animalcat.errors import AnimalcatError

app = typer.Typer(help="Run an agent against a server.", no_args_is_help=True)


@app.callback()
def agent() -> None:
    """Run an agent against a server."""


@app.command()
def run(
    server: Annotated[
        str, typer.Option("--connect", metavar="HOST:PORT", help="The server to play on.")
    ],
    reference: Annotated[
        str,
        typer.Option(
            "--agent",
            metavar="REFERENCE",
            help="The agent: builtin:NAME, or path/to/file.py:Class. The file is run, so name "
            "only one that you trust.",
        ),
    ],
    session: Annotated[
        str,
        typer.Option(
            metavar="SESSION",
            help="The session to play. It may be left out when one session alone waits for an "
            "agent.",
        ),
    ] = "",
    name: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="The name of the agent, which must be the one that the session is for.",
            show_default="what --agent says",
        ),
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Play a session to its end, on a server that runs already."""
    progress = progress_console()

    def tell(episode: PlayedEpisode) -> None:
        fault = ", a fault of the backend" if episode.fault else ""
        progress.print(
            f"episode {episode.episode}: return {episode.episode_return:.3f} "
            f"in {episode.steps} decisions{fault}"
        )

    try:
        loaded = load_agent(reference)
        with connect(server) as client:
            summary = client.evaluate(loaded, session, name=name or reference, on_episode=tell)
    except AgentLoadError as error:
        fail(str(error))
    except AnimalcatError as error:
        fail(str(error), UNREACHABLE if error.code == "UNAVAILABLE" else BAD_INPUT)
    except Exception as error:  # noqa: BLE001  the agent is foreign code
        traceback.print_exc()
        fail(f"agent {reference}: {type(error).__name__}: {error}", FAILED)
    if as_json:
        print_json(asdict(summary))
    else:
        typer.echo(
            f"{summary.session} {summary.state}: {summary.counted} episodes counted, "
            f"{len(summary.episodes)} played here"
        )
    if summary.state != "finished":
        raise typer.Exit(FAILED)
