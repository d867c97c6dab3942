"""Serves the training environment, or with `--connect` the evaluation of a session."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial

from animalcat_openenv.models import AnimalcatAction, AnimalcatObservation, AnimalcatState
from animalcat_openenv.server.evaluation import EvaluationEnvironment
from animalcat_openenv.server.spoken import SpokenEnvironment, read_tongue
from animalcat_openenv.server.training import TONGUE, TrainingEnvironment
from fastapi import FastAPI

from openenv.core.env_server.http_server import create_app
from openenv.core.env_server.types import ConcurrencyConfig, ServerMode

PORT = 8000
IDLE_SECONDS = 600.0
"""After how long without a word an agent's place is given to others; else places leak."""
PLACES = 8


def training(places: int = PLACES, idle_seconds: float = IDLE_SECONDS) -> FastAPI:
    """The application that serves the training environment.

    Args:
        places: How many agents play at a time, each in episodes of its own.
        idle_seconds: After how long without a word an agent has left.
    """
    return _serving(TrainingEnvironment, "animalcat", places, idle_seconds, None)


def evaluation(
    address: str,
    session: str = "",
    agent: str | None = None,
    tongue: str = TONGUE,
    idle_seconds: float = IDLE_SECONDS,
) -> FastAPI:
    """The application that serves a session to its agent, one at a time.

    It has no routes over HTTP by which an episode could be begun beside the agent's connection.

    Args:
        address: The animalcat server, "host:port".
        session: The session; empty: the one that waits for an agent.
        agent: The agent's name; None: the one that the session is for.
        tongue: How the agent is told and answers, which is part of its identity.
        idle_seconds: After how long without a word the agent has left, and its episode is void.

    Raises:
        ValueError: There is no such tongue.
    """
    made = partial(EvaluationEnvironment, address, session, agent, read_tongue(tongue))
    return _serving(made, "animalcat_evaluation", 1, idle_seconds, ServerMode.PRODUCTION)


def _serving(
    make: type[SpokenEnvironment] | partial[EvaluationEnvironment],
    name: str,
    places: int,
    idle_seconds: float,
    mode: ServerMode | None,
) -> FastAPI:
    return create_app(
        make,
        AnimalcatAction,
        AnimalcatObservation,
        env_name=name,
        concurrency_config=ConcurrencyConfig(
            max_concurrent_envs=places, session_timeout=idle_seconds
        ),
        state_cls=AnimalcatState,
        mode=mode,
    )


app = training()
"""What `openenv.yaml` names."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve one of the environments."""
    from animalcat.service.web.serving import serve_app

    parser = argparse.ArgumentParser(prog="animalcat-openenv", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1", help="there is no authentication")
    parser.add_argument("--port", type=int, default=PORT)
    parser.add_argument("--places", type=int, help=f"agents that train at a time ({PLACES})")
    parser.add_argument("--connect", metavar="HOST:PORT", help="play a session of this server")
    parser.add_argument("--session", default="", help="default: the one that waits for an agent")
    parser.add_argument("--agent", help="default: the name that the session is for")
    parser.add_argument("--tongue", default=TONGUE, help="how the agent of a session is told")
    given = parser.parse_args(arguments)
    if given.places is not None and (given.connect is not None or given.places < 1):
        parser.error("--places is 1 or more, and goes without --connect: a session has one place")
    if given.connect is None and (given.session or given.agent):
        parser.error("--session and --agent need --connect")
    served = app if given.places is None else training(given.places)
    if given.connect is not None:
        try:
            served = evaluation(given.connect, given.session, given.agent, given.tongue)
        except ValueError as error:
            parser.error(str(error))
    print(f"listening on http://{given.host}:{given.port}", flush=True)
    serve_app(served, given.host, given.port)


if __name__ == "__main__":
    main()
