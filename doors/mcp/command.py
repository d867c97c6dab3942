"""`animalcat mcp`: a door for clients of the Model Context Protocol."""

from __future__ import annotations

import secrets
from functools import partial
from typing import Annotated, Any, Final

import typer

from animalcat.cli.shared.command_help import PlayedSession, SameAgent
from animalcat.cli.shared.common import without
from animalcat.cli.shared.output import BAD_INPUT, MISSING, UNREACHABLE, fail, say
from animalcat.client import connect
from animalcat.client.remote_episodes import RemoteEpisodes
from animalcat.doors.speech import Tongue
from animalcat.errors import AnimalcatError
from animalcat.extending.installing import install

HOST: Final = "127.0.0.1"


@without("--server", "--data", "--json")
def command(
    server: Annotated[
        str, typer.Option("--connect", metavar="HOST:PORT", help="The animalcat server.")
    ],
    session: PlayedSession = "",
    name: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="The name of the agent, which must be the one that the session is for.",
            show_default="the session's",
        ),
    ] = "",
    tongue: Annotated[
        str,
        typer.Option(
            metavar="OPTIONS",
            help="How the agent is told what it perceives, such as tools,words=no,picture=84. "
            "All of it is part of the agent's identity.",
        ),
    ] = "tools",
    operator: Annotated[
        bool,
        typer.Option(
            "--operator",
            help="Let the client read sessions, profiles and predictions, and play nothing.",
        ),
    ] = False,
    http: Annotated[
        int | None,
        typer.Option(
            "--http",
            metavar="PORT",
            min=1,
            max=65535,
            help="Speak HTTP on this port of this machine, at an address with a secret that is "
            "printed once.",
            show_default="standard input and output",
        ),
    ] = None,
    same_agent: SameAgent = False,
) -> None:
    """Let a client of the Model Context Protocol play a session, or read what was measured.

    A client that has a shell on the machine of the server can read its data. Let it play from
    another machine.
    """
    try:
        spoken = Tongue.of(tongue)
    except ValueError as error:
        fail(str(error))
    if spoken.form != "tools":
        fail(f"--tongue {tongue}: clients of MCP answer by tools, so its form is tools")
    if operator and (session or name):
        fail("--operator plays nothing, so leave --session and --name out")
    try:
        from animalcat.doors.mcp.looking import operator_server
        from animalcat.doors.mcp.playing import Trials, agent_server, fingerprint
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("animalcat"):
            raise
        fail(f"this needs the package {error.name}. Install the extra: {install('mcp')}", MISSING)
    try:
        if operator:
            with connect(server) as client:
                client.list_batteries()  # a wrong address or token is told before a client comes
                _run(operator_server(client), http)
            return
        with connect(server) as client:
            found = client.find_session(session)
        join = partial(
            RemoteEpisodes,
            server,
            found.name,
            agent=name or None,
            fingerprint=fingerprint(spoken),
            same_agent=same_agent,
        )
        trials = Trials(join, found, spoken)
        try:
            _run(agent_server(trials), http)
        finally:
            trials.close()
    except AnimalcatError as error:
        fail(str(error), UNREACHABLE if error.code == "UNAVAILABLE" else BAD_INPUT)


def _run(server: Any, http: int | None) -> None:
    if http is None:
        server.run("stdio")
    else:
        from animalcat.service.web.serving import serve_app

        # Every process of the machine reaches the port, so the address lets in who has read it.
        path = f"/{secrets.token_urlsafe(32)}/mcp"
        say(f"listening on http://{HOST}:{http}{path}", err=True)
        app = server.streamable_http_app(host=HOST, streamable_http_path=path)
        serve_app(app, HOST, http, path)
