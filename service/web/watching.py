"""The pages on which sessions and campaigns are listed, watched, steered and compared."""

from __future__ import annotations

import re
import time
from collections.abc import AsyncGenerator
from typing import Any, Final
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.routing import Route

from animalcat.client.async_client import AsyncClient
from animalcat.errors import AnimalcatError
from animalcat.service.access.callers import Caller
from animalcat.service.web.feed import Feeds, because, letter
from animalcat.service.web.guard import WHOLE_PAGE
from animalcat.service.web.site import Part, Site, while_asked
from animalcat.v1 import (
    campaigns_pb2,
    campaigns_pb2_grpc,
    results_pb2,
    results_pb2_grpc,
    sessions_pb2,
    sessions_pb2_grpc,
)
from animalcat.values import Campaign, Episode, Session, SessionState
from animalcat.wire.codec import decode, number

WATCH: Final = "/animalcat.v1.Sessions/WatchSession"
"""The call of the wire that shows as much as the stream of a page."""
PAGE: Final = 50
"""Rows of a list."""
MOST_COMPARED: Final = 12
REVIEW_SECONDS: Final = 1.0
"""How often it is looked whether who watches may still do so."""


def watching(site: Site) -> Part:
    """Return the part that shows and steers sessions and campaigns."""
    assert site.served is not None, "it is a server's"
    site.templates.filters |= {"because": because, "letter": letter}
    feeds = Feeds(site.served.engines, site.templates.get_template("told.html.j2").render)
    gate = site.served.gate

    async def sessions(request: Request) -> Response:
        values: dict[str, Any] = {
            "agent": _query_value(request, "agent"),
            "state": _query_value(request, "state"),
            "states": _STATES,
        }
        wanted = sessions_pb2.ListSessionsRequest(agent=values["agent"])
        if values["state"] in _STATES:
            wanted.states.append(number(sessions_pb2.SessionState, values["state"]))
        stub = sessions_pb2_grpc.SessionsStub(site.channel(request))
        return await list_page(request, Session, "sessions", stub.ListSessions, wanted, **values)

    async def list_page(
        request: Request, kind: type[Any], what: str, call: Any, wanted: Any, **values: Any
    ) -> Response:
        wanted.page_size, wanted.page_token = PAGE, _query_value(request, "page")
        answer = await call(wanted)
        values[what] = [decode(kind, message) for message in getattr(answer, what)]
        following = _next(request, answer.next_page_token)
        return site.page(request, f"{what}.html.j2", following=following, **values)

    async def session(request: Request) -> Response:
        client = site.client(request)
        shown = await client.get_session(_id(request))
        notes = await client.session_notes(shown)
        runs = site.caller(request).runs
        return site.page(request, "session.html.j2", session=shown, notes=notes, runs=runs)

    async def events(request: Request) -> Response:
        name = _id(request)
        caller = await site.check(request, WATCH, f"sessions/{name}")
        await site.client(request).get_session(name)
        stream = _watch_while_admitted(feeds.watch(name), caller)
        headers = {"x-accel-buffering": "no"}  # or a proxy keeps back what is to be seen now
        return StreamingResponse(stream, headers=headers, media_type="text/event-stream")

    async def _watch_while_admitted(
        messages: AsyncGenerator[bytes], caller: Caller
    ) -> AsyncGenerator[bytes]:
        looked = time.monotonic()
        try:
            yield b"retry: 2000\n\n"
            async for message in messages:
                yield message
                if time.monotonic() - looked > REVIEW_SECONDS:
                    looked = time.monotonic()
                    if not gate.admits(caller):
                        return
        finally:
            await messages.aclose()

    async def steer(request: Request) -> Response:
        name, form = _id(request), site.asked(request).form
        await _steer(site.client(request), name, form)
        return site.go(request, f"/sessions/{name}")

    async def episodes(request: Request) -> Response:
        stub = results_pb2_grpc.EpisodesStub(site.channel(request))
        name, call = _id(request), stub.ListEpisodes
        wanted = results_pb2.ListEpisodesRequest(parent=f"sessions/{name}", newest_first=True)
        return await list_page(request, Episode, "episodes", call, wanted, session=name)

    async def report(request: Request) -> Response:
        page = await while_asked(request, site.client(request).export_profile(_id(request), "html"))
        return HTMLResponse(page, headers={"content-security-policy": WHOLE_PAGE})

    async def campaigns(request: Request) -> Response:
        stub = campaigns_pb2_grpc.CampaignsStub(site.channel(request))
        wanted = campaigns_pb2.ListCampaignsRequest()
        return await list_page(request, Campaign, "campaigns", stub.ListCampaigns, wanted)

    async def campaign(request: Request) -> Response:
        shown = await site.client(request).get_campaign(request.path_params["campaign"])
        query = urlencode([("session", one.id) for one in shown.sessions])
        return site.page(request, "campaign.html.j2", campaign=shown, query=query)

    async def compare(request: Request) -> Response:
        client, ids = site.client(request), request.query_params.getlist("session")
        found = [await client.get_session(name) for name in ids[:MOST_COMPARED]]
        nodes = list(dict.fromkeys(c.name for one in found for c in one.capabilities))
        return site.page(request, "compare.html.j2", sessions=found, nodes=nodes, range=_range)

    at = "/sessions/{session}"
    routes = [
        Route("/", sessions),
        Route("/compare", compare),
        Route("/campaigns", campaigns),
        Route("/campaigns/{campaign}", campaign),
        Route(at, session),
        Route(f"{at}/events", events),
        Route(f"{at}/do", steer, methods=["POST"]),
        Route(f"{at}/report", report),
        Route(f"{at}/episodes", episodes),
    ]
    return Part(routes, bar={"/": "Sessions", "/campaigns": "Campaigns"}, stop=feeds.stop)


_STATES: Final = [s.value for s in SessionState if s is not SessionState.UNREADABLE]


async def _steer(client: AsyncClient, session: str, form: dict[str, str]) -> None:
    """Do what an operator asks for, by the call of the wire that does it."""
    plain = {
        "pause": client.pause_session,
        "resume": client.resume_session,
        "cancel": client.cancel_session,
        "dismiss": client.dismiss_agents,
    }
    match form.get("what", ""):
        case what if what in plain:
            await plain[what](session)
        case "note":
            await client.note_session(session, form.get("text", ""))
        case "judge":
            ruling: Any = form.get("ruling", "")
            await client.judge_failure(session, ruling)
        case "invalidate":
            said = re.fullmatch(r"(\d+)(?:-(\d+))?", form.get("episode", ""), re.ASCII)
            if said is None:
                raise AnimalcatError("say which episode, by its number", "INVALID_REQUEST")
            tried = None if said[2] is None else int(said[2])
            await client.invalidate_episode(session, int(said[1]), form.get("reason", ""), tried)
        case "extend":
            most = form.get("episodes", "")
            if not re.fullmatch(r"\d{1,6}", most, re.ASCII):
                raise AnimalcatError("say how many episodes, in digits", "INVALID_REQUEST")
            await client.extend_session(session, int(most))
        case other:
            raise AnimalcatError(f"there is nothing like {other[:40]!r} to do", "INVALID_REQUEST")


def _id(request: Request) -> str:
    return str(request.path_params["session"])


def _query_value(request: Request, field: str) -> str:
    return request.query_params.get(field, "")[:500]


def _next(request: Request, token: str) -> str:
    """Return the query of the next page; empty on the last one."""
    if not token:
        return ""
    kept = [(k, v) for k, v in request.query_params.multi_items() if k != "page"]
    return urlencode([*kept, ("page", token)])


def _range(sessions: list[Session], node: str) -> tuple[float, float]:
    """Return the ends of a scale on which a capability of several sessions is drawn."""
    known = [c for one in sessions for c in one.capabilities if c.name == node]
    low = min(c.mean - 2.0 * c.sd for c in known)
    high = max(c.mean + 2.0 * c.sd for c in known)
    return low, max(high, low + 1e-9)
