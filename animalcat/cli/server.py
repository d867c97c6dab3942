"""`animalcat server`: say how a server is and what it does."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import timedelta
from typing import Any, Final

import grpc
import typer

from animalcat.cli.shared.common import common
from animalcat.cli.shared.output import UNREACHABLE, fail, print_json, print_table, say
from animalcat.cli.shared.remote import (
    client_for,
    data_folder,
    timestamp,
)
from animalcat.cli.shared.table import Column
from animalcat.client import AsyncClient, Client
from animalcat.errors import AnimalcatError
from animalcat.values import ProcessPlacement, ServerStanding

app = typer.Typer(help="Show the state of a server.", no_args_is_help=True)

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
_SILENT: Final[dict[str, Any]] = {"answers": False, "operations": 0}
"""What is known of operations where the database does not answer."""
_SECONDS: Final = 10.0
"""How long to wait for what rests on the database."""
_WORDS: Final = {b"\x08\x01": "serving", b"\x08\x02": "not serving"}
# HealthCheckResponse by its bytes, because its package is not in the base install.


@app.command()
def status() -> None:
    """Show whether a server and its services are healthy, and count its sessions and operations.

    Also shows where its simulators and fits are, what sessions wait for, and last what was refused
    since the server started, and to whom.

    Ends with code 4 if no server runs, and with 1 if one of its services is not healthy, or if it
    takes no work: its database is not written, it lacks memory or room on the disk, or it drains.
    """
    if not common().server:
        from animalcat.service.host.lock import running_server

        folder = data_folder()
        holder = running_server(folder)
        if holder is None:
            fail(
                f"no server uses {folder}; start one with `animalcat serve`, or name another "
                "with --server HOST:PORT",
                UNREACHABLE,
            )
    with client_for() as client:
        current = _status(client)
    serving = all(state == "serving" for state in current["services"].values())
    standing = current["standing"]
    well = current["answers"] and serving and standing["ready"] and not current["lacks"]
    if common().as_json:
        print_json(current)
    else:
        print_table(
            [{"service": name, "health": state} for name, state in current["services"].items()],
            ("service", "health"),
            title=f"server at {current['address']}, answers in {current['milliseconds']:.0f} ms",
        )
        _show_standing(standing)
        if not current["answers"]:
            say(
                f"the server does not say within {_SECONDS:g} s which sessions it has: its "
                "database does not answer. Look at that, and at the server's log"
            )
            raise typer.Exit(1)
        counted = [{"sessions": k, "number": v} for k, v in current["sessions"].items()]
        print_table(counted, ("sessions", "number"))
        say(f"operations under way: {current['operations']}")
        _show_placement(current)
        _show_refusals(current)
        for lack in current["lacks"]:
            say(f"nothing new begins: {lack}", err=True)
    if not well:
        raise typer.Exit(1)


def _show_standing(standing: dict[str, Any]) -> None:
    """Print how the server is as a whole."""
    if standing["version"]:
        up = timedelta(seconds=round(standing["uptime_seconds"]))
        say(
            f"animalcat {standing['version']}, up for {up}; disk: "
            f"{standing['disk_free_bytes'] >> 20} of {standing['disk_bytes'] >> 20} MiB free; "
            f"memory: {standing['memory_available_bytes'] >> 20} MiB available; "
            f"database: {standing['database_seconds'] * 1000:.0f} ms"
        )
    for words in standing["reasons"]:
        say(f"not ready: {words}", err=True)


def _show_placement(placement: dict[str, Any]) -> None:
    """Print where simulators and fits are, and for what sessions wait."""
    limits = [
        f"{words} {placement[key]}"
        for key, words in (("max_workers", "at most"), ("campaign_workers", "of one campaign"))
        if placement[key]
    ]
    if not placement["engine"]:
        return  # the caller may not know
    say(", ".join([f"simulators: engine {placement['engine']}", *limits]))
    busy = Counter(worker["node"] for worker in placement["workers"] if worker["session"])
    idle = Counter(worker["node"] for worker in placement["workers"] if not worker["session"])
    nodes = [{"node": n, "playing": busy[n], "idle": idle[n]} for n in sorted(busy | idle)]
    if nodes:
        print_table(nodes, ("node", "playing", "idle"))
    fits = Counter(
        (fit["node"] or "not placed yet", "fitting" if fit["busy"] else "idle")
        for fit in placement["fits"]
    )
    nodes = [
        {"node": node, "fitting": fits[node, "fitting"], "idle": fits[node, "idle"]}
        for node in sorted({node for node, _ in fits})
    ]
    if nodes:
        print_table(nodes, ("node", "fitting", "idle"))
    if placement["fits_waiting"]:
        say(f"fits that wait: {placement['fits_waiting']}")
    waiting = Counter(session["waits_for"] for session in placement["backlog"])
    if waiting:
        rows = [{"sessions wait for": what, "number": k} for what, k in waiting.most_common()]
        print_table(rows, ("sessions wait for", "number"))


def _show_refusals(placement: dict[str, Any]) -> None:
    """Print what was refused, and to whom."""
    rows = [
        {**refusal, "refused": refusal["what"], "times": refusal["number"], "to": refusal["who"]}
        for refusal in placement["refusals"]
    ]
    if rows:
        print_table(rows, ["refused", "to", "times", Column("last", 1)])


def _status(client: Client) -> dict[str, Any]:
    start = time.perf_counter()
    services = {name: client.run(_health(client.aio, f"animalcat.v1.{name}")) for name in SERVICES}
    milliseconds = (time.perf_counter() - start) * 1000 / len(SERVICES)
    nothing = asdict(UNTOLD)
    placed = client.run(_in_time(_show_place(client.aio), nothing))
    counted = {**_SILENT}
    if placed is not nothing:  # else it hangs, and another question would too
        counted = client.run(_in_time(_count_contents(client.aio), counted))
    return {
        "address": client.address,
        "milliseconds": milliseconds,
        "services": services,
        **counted,
        **placed,
        "backlog": [{"session": k, "waits_for": v} for k, v in placed["backlog"].items()],
    }


async def _in_time(
    asked: Coroutine[Any, Any, dict[str, Any]], otherwise: dict[str, Any]
) -> dict[str, Any]:
    """What a server answers; `otherwise` if it does not for too long."""
    task = asyncio.ensure_future(asked)
    if not (await asyncio.wait([task], timeout=_SECONDS))[0]:
        task.cancel()
        with suppress(AnimalcatError, asyncio.CancelledError):
            await task
        return otherwise
    return task.result()


async def _count_contents(client: AsyncClient) -> dict[str, Any]:
    """What the server has and does; where its database hangs, so does this."""
    operations = [operation async for operation in client.operations(states=["running"])]
    return {
        "answers": True,
        "operations": len(operations),
    }


async def _show_place(client: AsyncClient) -> dict[str, Any]:
    """Where its simulators and fits are, and how it is as a whole.

    A caller who may not know is told of the sessions that it may see and that are not over, and
    whether work is taken.
    """
    try:
        placed = asdict(await client.placement())
    except AnimalcatError as error:
        if error.code != "FORBIDDEN":
            raise
        seen = Counter[str]()
        async for session in client.sessions(states=["waiting", "running"]):
            seen[session.state] += 1
        ready = await _health(client, "readiness") == "serving"
        standing = ServerStanding(ready=ready)
        return asdict(replace(UNTOLD, sessions=dict(seen), standing=standing))
    refusals = [
        {**refusal, "last": timestamp(refusal["last"].replace(microsecond=0))}
        for refusal in placed["refusals"]
    ]
    return {**placed, "refusals": refusals}


async def _health(client: AsyncClient, service: str) -> str:
    name = service.encode()
    check: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = client.channel.unary_unary(
        "/grpc.health.v1.Health/Check"
    )
    try:
        answer = await check(bytes((0x0A, len(name))) + name, timeout=_SECONDS)
    except grpc.aio.AioRpcError as error:
        return error.code().name.lower().replace("_", " ")
    return _WORDS.get(answer, "unknown")
