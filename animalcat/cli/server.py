"""`animalcat server`: say how a server is, and what it does."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import asdict
from typing import Any, Final

import grpc
import typer

from animalcat.cli.shared.output import UNREACHABLE, fail, print_json, print_rows
from animalcat.cli.shared.remote import (
    AsJson,
    Data,
    Server,
    client_for,
    data_folder,
    timestamp,
)
from animalcat.cli.shared.table import Column
from animalcat.client import AsyncClient, Client
from animalcat.errors import AnimalcatError
from animalcat.values import ProcessPlacement

app = typer.Typer(help="Say how a server is, and what it does.", no_args_is_help=True)

SERVICES: Final = (
    "AgentGateway",
    "Access",
    "Sessions",
    "Batteries",
    "Layouts",
    "Campaigns",
    "Profiles",
    "Episodes",
    "Operations",
)
UNTOLD: Final = ProcessPlacement("", (), 0, 0, {}, (), 0)
"""What is known of simulators and fits of a server that does not tell."""
_SECONDS: Final = 10.0
"""How long to wait for what rests on the database."""
_WORDS: Final = {b"\x08\x01": "serving", b"\x08\x02": "not serving"}
# HealthCheckResponse by its bytes, because its package is not in the base install.


@app.callback()
def server() -> None:
    """Say how a server is, and what it does."""


@app.command()
def status(server: Server = None, data: Data = None, as_json: AsJson = False) -> None:
    """Say whether a server and its services are well, and count its sessions and operations.

    Says where its simulators and fits are too, and what sessions wait for.

    Says last what was refused since the server started, and to whom.

    Ends with code 4 if no server runs, and with 1 if one of its services is not well, or if it
    lacks memory or room on the disk.
    """
    if not server:
        from animalcat.service.host.lock import running_server

        folder = data_folder(data)
        holder = running_server(folder)
        if holder is None:
            fail(
                f"no server uses {folder}; start one with `animalcat serve`, or name another "
                "with --server HOST:PORT",
                UNREACHABLE,
            )
    with client_for(server, data) as client:
        current = _status(client)
    serving = all(state == "serving" for state in current["services"].values())
    well = current["answers"] and serving and not current["lacks"]
    if as_json:
        print_json(current)
    else:
        print_rows(
            [{"service": name, "health": state} for name, state in current["services"].items()],
            ("service", "health"),
            as_json=False,
            title=f"server at {current['address']}, answers in {current['milliseconds']:.0f} ms",
        )
        if not current["answers"]:
            typer.echo(
                f"the server does not say within {_SECONDS:g} s which sessions it has: its "
                "database does not answer. Look at that, and at the server's log"
            )
            raise typer.Exit(1)
        counted = [{"sessions": k, "number": v} for k, v in current["sessions"].items()]
        print_rows(counted, ("sessions", "number"), as_json=False)
        typer.echo(f"operations under way: {current['operations']}")
        _show_placement(current)
        _show_refusals(current)
        for lack in current["lacks"]:
            typer.echo(f"nothing new begins: {lack}", err=True)
    if not well:
        raise typer.Exit(1)


def _show_placement(placement: dict[str, Any]) -> None:
    """Print where simulators and fits are, and for what sessions wait."""
    limits = [
        f"{words} {placement[key]}"
        for key, words in (("max_workers", "at most"), ("campaign_workers", "of one campaign"))
        if placement[key]
    ]
    typer.echo(", ".join([f"simulators: engine {placement['engine']}", *limits]))
    busy = Counter(worker["node"] for worker in placement["workers"] if worker["session"])
    idle = Counter(worker["node"] for worker in placement["workers"] if not worker["session"])
    nodes = [{"node": n, "playing": busy[n], "idle": idle[n]} for n in sorted(busy | idle)]
    if nodes:
        print_rows(nodes, ("node", "playing", "idle"), as_json=False)
    fits = Counter(
        (fit["node"] or "not placed yet", "fitting" if fit["busy"] else "idle")
        for fit in placement["fits"]
    )
    nodes = [
        {"node": node, "fitting": fits[node, "fitting"], "idle": fits[node, "idle"]}
        for node in sorted({node for node, _ in fits})
    ]
    if nodes:
        print_rows(nodes, ("node", "fitting", "idle"), as_json=False)
    if placement["fits_waiting"]:
        typer.echo(f"fits that wait: {placement['fits_waiting']}")
    waiting = Counter(session["waits_for"] for session in placement["backlog"])
    if waiting:
        rows = [{"sessions wait for": what, "number": k} for what, k in waiting.most_common()]
        print_rows(rows, ("sessions wait for", "number"), as_json=False)


def _show_refusals(placement: dict[str, Any]) -> None:
    """Print what was refused, and to whom."""
    rows = [
        {**refusal, "refused": refusal["what"], "times": refusal["number"], "to": refusal["who"]}
        for refusal in placement["refusals"]
    ]
    if rows:
        print_rows(rows, ["refused", "to", "times", Column("last", 1)], as_json=False)


def _status(client: Client) -> dict[str, Any]:
    start = time.perf_counter()
    services = {name: client.run(_health(client, name)) for name in SERVICES}
    milliseconds = (time.perf_counter() - start) * 1000 / len(SERVICES)
    try:
        counted: dict[str, Any] = client.run(_in_time(_counted(client.aio)))
    except TimeoutError:
        counted = {"answers": False, "sessions": {}, "operations": 0, **asdict(UNTOLD)}
    return {
        "address": client.address,
        "milliseconds": milliseconds,
        "services": services,
        **counted,
        "backlog": [{"session": k, "waits_for": v} for k, v in counted["backlog"].items()],
    }


async def _in_time(asked: Coroutine[Any, Any, dict[str, Any]]) -> dict[str, Any]:
    """What a server answers.

    Raises:
        TimeoutError: It does not for too long.
    """
    task = asyncio.ensure_future(asked)
    if not (await asyncio.wait([task], timeout=_SECONDS))[0]:
        task.cancel()
        with suppress(AnimalcatError, asyncio.CancelledError):
            await task
        raise TimeoutError
    return task.result()


async def _counted(client: AsyncClient) -> dict[str, Any]:
    """What the server has and does; where its database hangs, so does this."""
    sessions = Counter(session.state or "unreadable" for session in await client.list_sessions())
    placed = asdict(await _placement(client))
    operations = [operation async for operation in client.operations(states=["running"])]
    return {
        "answers": True,
        "sessions": dict(sorted(sessions.items())),
        "operations": len(operations),
        **placed,
        "refusals": [
            {**refusal, "last": timestamp(refusal["last"].replace(microsecond=0))}
            for refusal in placed["refusals"]
        ],
    }


async def _placement(client: AsyncClient) -> ProcessPlacement:
    """Where simulators and fits are; nothing for a caller who may not know."""
    try:
        return await client.placement()
    except AnimalcatError as error:
        if error.code != "FORBIDDEN":
            raise
        return UNTOLD


async def _health(client: Client, service: str) -> str:
    name = f"animalcat.v1.{service}".encode()
    check: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = client.aio.channel.unary_unary(
        "/grpc.health.v1.Health/Check"
    )
    try:
        answer = await check(bytes((0x0A, len(name))) + name, timeout=_SECONDS)
    except grpc.aio.AioRpcError as error:
        return error.code().name.lower().replace("_", " ")
    return _WORDS.get(answer, "unknown")
