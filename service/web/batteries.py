"""The pages of batteries: what is in them, with maps of their arenas, and the report on each."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from animalcat.errors import AnimalcatError
from animalcat.extending.doorways import entries
from animalcat.maps.small import arena_map
from animalcat.service.library.bounded import make_bounded
from animalcat.service.web.guard import WHOLE_PAGE
from animalcat.service.web.site import Part, Site
from animalcat.v1 import sessions_pb2, sessions_pb2_grpc
from animalcat.values import Instance
from animalcat.wire.codec import decode

PAGE: Final = 48
"""Maps of a page."""
MOST_SHEETS: Final = 4
"""Reports that are kept; each takes a minute to make and a megabyte to keep."""
LEFT_SECONDS: Final = 30.0
"""A report that nobody has asked for in this time is made no further."""
MAPS: Final = 120
"""Maps of a report."""


def batteries(site: Site) -> Part:
    """Return the part that shows batteries."""
    assert site.served is not None, "it is a server's"
    engines = site.served.engines
    sheets = OrderedDict[str, asyncio.Task[str]]()
    waiting: dict[str, asyncio.TimerHandle] = {}

    async def every(request: Request) -> Response:
        found = await site.client(request).list_batteries()
        return site.page(request, "batteries.html.j2", batteries=found)

    async def one(request: Request) -> Response:
        name = str(request.path_params["battery"])
        battery = await site.client(request).get_battery(name)
        stub = sessions_pb2_grpc.BatteriesStub(site.channel(request))
        token = request.query_params.get("page", "")[:500]
        wanted = sessions_pb2.ListInstancesRequest(
            parent=f"batteries/{name}", page_size=PAGE, page_token=token, arenas=True
        )
        answer = await stub.ListInstances(wanted)
        instances = [decode(Instance, message) for message in answer.instances]
        maps = await asyncio.to_thread(_maps, instances)
        following = urlencode({"page": answer.next_page_token}) if answer.next_page_token else ""
        return site.page(
            request,
            "battery.html.j2",
            battery=battery,
            instances=instances,
            maps=maps,
            following=following,
            units={feature.name: feature.unit for feature in battery.features},
            plays="playing" in entries("pages"),
        )

    async def sheet(request: Request) -> Response:
        name = str(request.path_params["battery"])
        digest = (await site.client(request).get_battery(name)).digest
        if digest not in sheets:
            await engines.battery(digest)  # so that its files are on this machine
        if digest not in sheets or sheets[digest].cancelled():
            make = partial(_sheet, name, digest, engines.battery_folder)
            sheets[digest] = asyncio.create_task(make_bounded(make))
            while len(sheets) > MOST_SHEETS:
                sheets.popitem(last=False)[1].cancel()
        sheets.move_to_end(digest)
        making = sheets[digest]
        await asyncio.wait({making}, timeout=1.0)
        if (timer := waiting.pop(digest, None)) is not None:
            timer.cancel()
        if not making.done() or making.cancelled():
            loop = asyncio.get_running_loop()
            waiting[digest] = loop.call_later(LEFT_SECONDS, making.cancel)
            return site.page(request, "making.html.j2", battery=name)
        if (failed := making.exception()) is not None:
            sheets.pop(digest, None)
            raise AnimalcatError(f"the report cannot be made: {failed}", "INVALID_REQUEST")
        return HTMLResponse(making.result(), headers={"content-security-policy": WHOLE_PAGE})

    def stop() -> None:
        for task in sheets.values():
            task.cancel()

    routes = [
        Route("/batteries", every),
        Route("/batteries/{battery}", one),
        Route("/batteries/{battery}/sheet", sheet),
    ]
    return Part(routes, bar={"/batteries": "Batteries"}, stop=stop)


def _maps(instances: list[Instance]) -> dict[str, Any]:
    return {one.name: Markup(arena_map(one.arena_yaml, one.name)) for one in instances}


def _sheet(name: str, digest: str, folder: Path) -> str:
    """Make the report on a battery; in a process of its own, as it takes a minute."""
    from animalcat.service.batteries.battery import load
    from animalcat.service.library.layouts import layout_on
    from animalcat.service.reporting.battery_report import battery_report
    from animalcat.service.reporting.page import html_page

    battery = load(digest, folder)
    layout = layout_on(battery, "") if battery.layout is not None else None
    report = battery_report(name, battery, layout, MAPS)
    arenas = {one.name: battery.arena_yaml(one) for one in battery.instances}
    return html_page(report, arenas)
