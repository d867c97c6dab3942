"""A read-only server of MCP by which an operator's client reads sessions and profiles."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import Any, Final, TypeVar

import anyio.to_thread
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations

from animalcat.client import Client
from animalcat.errors import AnimalcatError
from animalcat.wire.protocol import version

MOST: Final = 100
"""The most rows that a list tells."""
_T = TypeVar("_T")


def operator_server(client: Client) -> MCPServer[Any]:
    """Make a server by which a client reads sessions, profiles, explanations and predictions.

    It changes nothing. What it may read is what the token of its connection may.

    Args:
        client: A connection. It is used by one call at a time.
    """
    server: MCPServer[Any] = MCPServer(
        "animalcat-operator",
        title="animalcat: sessions and profiles",
        version=version(),
        log_level="WARNING",  # else the address, which is a secret, is printed with each call
        instructions="Read what animalcat has measured. A profile says what an agent can do, with "
        "90 % intervals; heed its labels and its verdict before you quote a number.",
    )
    reads = server.tool(annotations=ToolAnnotations(read_only_hint=True))
    turn = anyio.Lock()

    async def ask_in_turn(call: Callable[[], _T]) -> _T:
        async with turn:
            try:
                return await anyio.to_thread.run_sync(call)
            except (AnimalcatError, ValueError) as error:
                raise ToolError(str(error)) from None

    @reads
    async def sessions(most: int = 20) -> list[dict[str, Any]]:
        """List the latest sessions: id, agent, battery, layout, state and counted episodes."""
        return await ask_in_turn(partial(_sessions, client, most))

    @reads
    async def profile(session: str) -> dict[str, Any]:
        """What a session has found out of its agent: estimates, verdict, labels, provenance."""
        return await ask_in_turn(partial(client.profile, session))

    @reads
    async def episodes(session: str, most: int = 20) -> list[dict[str, Any]]:
        """List the first episodes of a session: arena, outcome, return and why it ended."""
        return await ask_in_turn(partial(_episodes, client, session, most))

    @reads
    async def explain_episode(session: str, episode: int) -> dict[str, Any]:
        """Why an episode of a session ended as it did, and what it tells of the agent."""
        return await ask_in_turn(partial(client.explain_episode, session, episode))

    @reads
    async def predict(session: str, battery: str = "", top: int = 5) -> dict[str, Any]:
        """Which arenas of a battery the session's agent is expected to pass.

        Without a battery that of the session is meant. The table of all arenas is left out.
        """
        return await ask_in_turn(partial(_prediction_of, client, session, battery, top))

    return server


def _sessions(client: Client, most: int) -> list[dict[str, Any]]:
    return [
        {
            "session": session.id,
            "agent": session.spec.agent,
            "battery": session.spec.battery.removeprefix("batteries/"),
            "layout": session.spec.layout,
            "state": session.state,
            "episodes": session.episodes,
            "created": session.created.isoformat(),
        }
        for session in client.list_sessions()[: min(most, MOST)]
    ]


def _episodes(client: Client, session: str, most: int) -> list[dict[str, Any]]:
    told: list[dict[str, Any]] = []
    for episode in client.iter_episodes(session):
        if len(told) == min(most, MOST):
            break
        row = asdict(episode)
        told.append({name: row[name] for name in row if isinstance(row[name], str | int | float)})
    return told


def _prediction_of(client: Client, session: str, battery: str, top: int) -> dict[str, Any]:
    # They load arrays and plots, which nobody needs who only lists sessions.
    from animalcat.lab.forecast import forecast_report
    from animalcat.lab.received import receive_battery
    from animalcat.plots.results import received_results

    results = received_results(client, session)
    name = battery or str(results.profile["provenance"]["battery"])
    report = forecast_report(results, name, receive_battery(client, name), min(top, MOST))
    return {key: value for key, value in report.items() if key != "predictions"}
