"""Who may do what: tokens, tickets, TLS, and the table of every call and role."""

from __future__ import annotations

import asyncio
import json
import pkgutil
import sqlite3
import stat
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import grpc
import pytest
import pytest_asyncio
from google.protobuf import message_factory
from typer.testing import CliRunner

import animalcat
from animalcat import v1
from animalcat.cli.main import build
from animalcat.client.connection import AuthorisedChannel
from animalcat.client.direct import DirectPlay
from animalcat.errors import AnimalcatError
from animalcat.service.access import rates as limits
from animalcat.service.access.callers import MACHINE, Role
from animalcat.service.access.certificates import self_signed
from animalcat.service.access.gate import Gate
from animalcat.service.access.private_files import make_private, private_folder
from animalcat.service.access.rates import Rates
from animalcat.service.access.rules import RULES, Own
from animalcat.service.access.tickets import Tickets
from animalcat.service.access.tokens import TokenError, Tokens
from animalcat.service.errors import Code, ServiceError
from animalcat.service.host.lock import local_address
from animalcat.service.host.private import proof_for_own
from animalcat.service.host.settings import ExposureError, Settings, check_tls
from animalcat.service.rpc.access import is_this_machine
from animalcat.service.rpc.server import SERVICES
from animalcat.v1 import (
    access_pb2,
    campaigns_pb2,
    gateway_pb2,
    results_pb2,
    sessions_pb2,
    types_pb2,
)

from .conftest import AGENT, NOW, Guarded, Service, Stream, action

pytestmark = pytest.mark.asyncio(loop_scope="session")

FILES = [
    import_module(f"animalcat.v1.{module.name}")
    for module in pkgutil.iter_modules(v1.__path__)
    if module.name.endswith("_pb2")
]
"""Whatever there is on the wire, so that a new call is in no table and fails the tests."""
METHODS = {
    f"/{service.full_name}/{method.name}": method
    for file in FILES
    for service in file.DESCRIPTOR.services_by_name.values()
    for method in service.methods
}


class Callers:
    """A guarded server and a caller of each role."""

    def __init__(self, connected: Callable[[str], Service], data: Path) -> None:
        self.tokens = Tokens(data)
        self.data = data
        self.connected = connected
        self.operator = self.of(Role.OPERATOR, subject="otto")
        self.viewer = self.of(Role.VIEWER, subject="vera")
        self.researcher = self.of(Role.RESEARCHER, subject="ann")
        self.administrator = self.of(Role.ADMINISTRATOR, subject="ada")
        self.agent = self.of(Role.AGENT, agent=AGENT)

    def of(self, role: Role, **fields: Any) -> Service:
        return self.connected(self.tokens.create(role, **fields)[1])


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def callers(
    guarded: Guarded, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Callers]:
    data = tmp_path_factory.mktemp("guarded")
    async with guarded(data) as connected:
        yield Callers(connected, data)


async def refusal(call: Any) -> tuple[grpc.StatusCode, str, str]:
    """The status, the code and the text of a call that fails."""
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await call
    told = dict(failed.value.trailing_metadata() or ())
    return failed.value.code(), str(told["animalcat-code"]), failed.value.details() or ""


def test_the_table_has_every_call_and_no_other() -> None:
    assert {method.split("/")[1] for method in METHODS} == {*SERVICES}
    ours = {method for method in RULES if method.startswith("/animalcat.")}
    assert ours == set(METHODS)
    for method, rule in RULES.items():
        assert rule.public != bool(rule.roles), method
        # An agent is kept to its sessions wherever it may call at all.
        assert (Role.AGENT in rule.roles) == (rule.own is not None), method
    assert {m.rpartition("/")[2] for m, r in RULES.items() if Role.AGENT in r.roles} == {
        "Evaluate",
        "GetSession",
        "ListSessions",
    }
    changes = ("Create", "Cancel", "Delete", "Pause", "Resume", "Invalidate", "Import", "Build")
    changes = (*changes, "Judge", "Dismiss", "Extend", "HandOver", "End", "GetTicket", "Note")
    for method, rule in RULES.items():
        # What changes something is audited, and nothing that a viewer may call does.
        changed = method.rpartition("/")[2].startswith((*changes, "Evaluate"))
        assert changed == (rule.audited is not None), method
        assert not (changed and Role.VIEWER in rule.roles), method
        if rule.about is None and rule.roles and rule.audited is not None:
            # The servicer asks the gate, as what is named comes in a frame or is worked out.
            assert method.endswith(("/Evaluate", "/ImportBattery", "/BuildBattery")), method
    assert {rule.own for rule in RULES.values()} == {None, *Own}


async def outcome_of_call(service: Service, method: str, request: bytes = b"") -> tuple[str, str]:
    """The code and the words of what comes of a call; both empty if it is answered."""
    kind = METHODS[method]
    name = ("stream" if kind.client_streaming else "unary") + (
        "_stream" if kind.server_streaming else "_unary"
    )
    multi = getattr(service.channel, name)(method)
    call = multi() if kind.client_streaming else multi(request, timeout=20)
    try:
        if kind.client_streaming:
            await call.write(request)
            await call.done_writing()
        if kind.server_streaming:
            first = await call.read()
            if first is not grpc.aio.EOF and not kind.client_streaming:
                return "", ""  # it is told, and may be for long
            if await call.code() is not grpc.StatusCode.OK:
                code = dict(await call.trailing_metadata() or ())["animalcat-code"]
                return str(code), await call.details() or ""
        else:
            await call
    except grpc.aio.AioRpcError as error:
        if "execute_batch" in (error.debug_error_string() or ""):
            # It was refused while the client still wrote, and gRPC then forgets the refusal.
            return await outcome_of_call(service, method, request)
        code = dict(error.trailing_metadata() or ())["animalcat-code"]
        return str(code), error.details() or ""
    finally:
        call.cancel()
    return "", ""


async def attempt(service: Service, method: str, request: bytes = b"") -> str:
    """The code of what comes of a call; empty if it is answered."""
    return (await outcome_of_call(service, method, request))[0]


@pytest.mark.parametrize("method", sorted(METHODS))
async def test_each_role_may_call_what_the_table_says(callers: Callers, method: str) -> None:
    assert await attempt(callers.connected(""), method) == "NO_TOKEN"
    assert await attempt(callers.connected("acat_0000000000_x"), method) == "BAD_TOKEN"
    for role in Role:
        found = await attempt(getattr(callers, role.value), method)
        assert found not in ("NO_TOKEN", "BAD_TOKEN", "INTERNAL"), role
        assert (found == "FORBIDDEN") == (role not in RULES[method].roles), (role, found)


LINES = {
    "ask for the server's health": (),
    "play": ("AgentGateway/Evaluate",),
    "ask for the state of a session": ("Sessions/GetSession",),
    "see which sessions there are": ("Sessions/ListSessions",),
    "see what was measured, decided and recorded, or follow it": (
        *("Sessions/WatchSession", "Sessions/VerifySession", "Profiles/GetProfile"),
        *("Profiles/ExportProfile", "Episodes/ListEpisodes", "Episodes/StreamEpisode"),
        *("Episodes/ExplainEpisode", "Profiles/GetDraws", "Sessions/ListNotes"),
    ),
    "see batteries with their arenas, layouts, campaigns, and what makes them": (
        *("Batteries/GetBattery", "Batteries/ListBatteries", "Batteries/ListInstances"),
        *("Layouts/ListLayouts", "Layouts/GetLayout"),
        *("Campaigns/GetCampaign", "Campaigns/ListCampaigns"),
        *("Operations/GetOperation", "Operations/ListOperations", "Operations/WatchOperation"),
    ),
    "see where simulators run, and whom the server refused": ("Operations/GetPlacement",),
    "make sessions and campaigns of batteries": (
        *("Sessions/CreateSession", "Campaigns/CreateCampaign"),
    ),
    "pause, resume, extend or cancel sessions, write notes on them": (
        *("Sessions/PauseSession", "Sessions/ResumeSession", "Sessions/ExtendSession"),
        *("Sessions/CancelSession", "Sessions/NoteSession"),
    ),
    "say what an episode counts as, disconnect agents, get a ticket for a session": (
        *("Sessions/InvalidateEpisode", "Sessions/JudgeFailure", "Sessions/DismissAgents"),
        "Access/GetTicket",
    ),
    "make batteries": ("Batteries/ImportBattery", "Batteries/BuildBattery"),
    "cancel the making of a battery": ("Operations/CancelOperation",),
    "delete sessions, campaigns and batteries": (
        *("Sessions/DeleteSession", "Campaigns/DeleteCampaign", "Batteries/DeleteBattery"),
    ),
    "hand something over, read the audit log": (*("Access/HandOver", "Access/ListAudit"),),
}
"""Calls of each line of the table in docs/security.md."""
OWN_CELLS = ("its session", "sessions for its name")
LET_IN = {
    "no": [False, False],
    "yes": [True, True],
    "own": [True, False],
    "its session": [True, False],
    "sessions for its name": [True, False],
}
"""Whether a call is let in about what is the caller's own, and what is others'."""


def page_table() -> dict[str, list[str]]:
    """The cells of the table "who can do what to whom" by the first of each line."""
    page = (Path(__file__).parents[2] / "docs" / "security.md").read_text()
    _, _, rest = page.partition("### Who can do what to whom")
    lines = [line for line in rest.partition("\n- ")[0].splitlines() if line.startswith("| ")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]
    return {row[0]: row[1:] for row in rows}


EPISODES = ("InvalidateEpisode", "StreamEpisode", "ExplainEpisode")
KINDS = {"Batteries": "batteries", "Campaigns": "campaigns", "Layouts": "layouts"}


def request_about(method: str, name: str) -> bytes:
    """A request about the session, campaign, battery, layout or operation of an id."""
    service, _, call = method.removeprefix("/animalcat.v1.").partition("/")
    kind = {**KINDS, "Operations": "operations"}.get(service, "sessions")
    full = f"{kind}/{name}"
    if call == "Evaluate":
        hello = gateway_pb2.Hello(session=full, agent="another", instance="x", protocol=1)
        return gateway_pb2.EvaluateRequest(hello=hello).SerializeToString()
    if call == "CreateSession":
        spec = sessions_pb2.SessionSpec(battery=f"batteries/{name}")
        return sessions_pb2.CreateSessionRequest(spec=spec).SerializeToString()
    if call == "CreateCampaign":
        spec = sessions_pb2.SessionSpec(battery=f"batteries/{name}")
        wanted = campaigns_pb2.CampaignSpec(session=spec)
        return campaigns_pb2.CreateCampaignRequest(spec=wanted).SerializeToString()
    if call == "GetTicket":
        return access_pb2.GetTicketRequest(session=full).SerializeToString()
    if call in ("ListEpisodes", "ListInstances"):
        return results_pb2.ListEpisodesRequest(parent=full).SerializeToString()
    if call == "ImportBattery":
        return b""
    more = "/episodes/1" if call in EPISODES else "/profile" * (service == "Profiles")
    request = message_factory.GetMessageClass(METHODS[method].input_type)()
    if "name" in METHODS[method].input_type.fields_by_name:
        request = type(request)(name=full + more)
    return request.SerializeToString()


async def let_in(service: Service, method: str, name: str) -> bool:
    """Whether a call about something by its name is let in, whatever becomes of it."""
    code, words = await outcome_of_call(service, method, request_about(method, name))
    if code in ("NO_TOKEN", "BAD_TOKEN", "FORBIDDEN"):
        return False
    return not words.startswith(("nothing named", "no session named"))


def owned_ids(data: Path, subject: str) -> list[str]:
    """Ids under which something of each kind is a subject's own, and others'."""
    ids = [f"{subject}-s", f"not-{subject}-s"]
    with closing(sqlite3.connect(data / "animalcat.sqlite")) as db, db:
        for kind in ("sessions", *KINDS.values()):
            for name, owner in zip(ids, (subject, "someone"), strict=True):
                row = (f"{kind}/{name}", owner)
                db.execute("INSERT OR IGNORE INTO owners VALUES (?, ?)", row)
    return ids


async def test_the_page_of_security_is_true_line_by_line(callers: Callers) -> None:
    table = page_table()
    assert table.keys() == LINES.keys()
    named = [f"/animalcat.v1.{method}" for methods in LINES.values() for method in methods]
    assert sorted(named) == sorted(METHODS)
    mine, other = await callers.operator.create(2), await callers.operator.create(2, agent="x:y")
    get_ticket = callers.operator.channel.unary_unary("/animalcat.v1.Access/GetTicket")
    asked = access_pb2.GetTicketRequest(session=mine).SerializeToString()
    ticket = access_pb2.GetTicketResponse.FromString(await get_ticket(asked)).ticket
    sessions = [name.partition("/")[2] for name in (mine, other)]
    people = {"vera": "viewer", "ann": "researcher", "otto": "operator", "ada": "administrator"}
    who: list[tuple[Service, list[str]]] = [
        (callers.connected(ticket), sessions),
        (callers.agent, sessions),
        *((getattr(callers, role), owned_ids(callers.data, name)) for name, role in people.items()),
        (callers.connected(""), sessions),
    ]
    for line, cells in table.items():
        for (service, ids), cell in zip(who, cells, strict=True):
            for method in LINES[line]:
                full = f"/animalcat.v1.{method}"
                if method == "Sessions/ListSessions" and cell in OWN_CELLS:
                    listed = await service.sessions.ListSessions(sessions_pb2.ListSessionsRequest())
                    found = {one.name for one in listed.sessions}
                    assert (mine in found, other in found) == (True, False)
                    continue
                expected = LET_IN[cell]
                if RULES[full].about is None and not full.endswith("/Evaluate"):
                    expected = [cell != "no"] * 2  # what is shown of it is tested apart
                if method.startswith("Operations/") and cell == "own":  # none is anybody's here
                    expected = [not RULES[full].about] * 2
                found = [await let_in(service, full, name) for name in ids]
                assert found == expected, (line, cell, method)
    health = "/grpc.health.v1.Health/Check"
    for (service, _), cell in zip(who, table["ask for the server's health"], strict=True):
        assert cell == "yes"
        assert await service.channel.unary_unary(health)(b"") == b"\x08\x01"


@pytest.mark.parametrize("part", ["against", "prior"])
async def test_a_session_is_made_of_sessions_that_its_caller_may_see(
    callers: Callers, part: str
) -> None:
    method, seen = "/animalcat.v1.Sessions/CreateSession", list[str]()
    for name in owned_ids(callers.data, "ann"):
        spec = sessions_pb2.SessionSpec(**{part: {"session": f"sessions/{name}"}})  # pyright: ignore
        asked = sessions_pb2.CreateSessionRequest(spec=spec).SerializeToString()
        seen.append((await outcome_of_call(callers.researcher, method, asked))[1])
    assert [words.startswith("nothing named") for words in seen] == [False, True], seen


async def test_health_is_open_and_reflection_is_not(callers: Callers) -> None:
    health = "/grpc.health.v1.Health/Check"
    assert await callers.connected("").channel.unary_unary(health)(b"") == b"\x08\x01"
    wrong = callers.connected("acat_0000000000_x").channel.unary_unary(health)(b"")
    assert (await refusal(wrong))[1] == "BAD_TOKEN"
    reflect = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
    for service, code in (("agent", "FORBIDDEN"), ("viewer", None)):
        call = getattr(callers, service).channel.stream_stream(reflect)()
        await call.done_writing()
        told = dict(await call.trailing_metadata() or ())
        assert told.get("animalcat-code") == code


async def test_an_agent_plays_its_sessions_and_learns_nothing_of_others(callers: Callers) -> None:
    mine = await callers.operator.create(2)
    other = await callers.operator.create(2, agent="tests:other")
    assert (await callers.agent.play(mine)).episodes == 2

    shown = await callers.agent.get(mine)
    known = {field.name for field, _ in shown.ListFields()}
    assert known == {"name", "spec", "state", "episodes", "create_time", "withheld"}
    fields = {field.name for field, _ in shown.spec.ListFields()}
    # What it may spend is the agent's to know, or it could not keep to it.
    own = {"agent", "stop", "observation_spec", "action_timeout_seconds", "allowance", "slots"}
    assert fields <= own
    listed = await callers.agent.sessions.ListSessions(sessions_pb2.ListSessionsRequest())
    assert mine in [one.name for one in listed.sessions]
    assert {one.spec.agent for one in listed.sessions} == {AGENT}
    elsewhere = sessions_pb2.ListSessionsRequest(agent="tests:other")
    listed = await callers.agent.sessions.ListSessions(elsewhere)
    assert {one.spec.agent for one in listed.sessions} == {AGENT}
    of_battery = sessions_pb2.ListSessionsRequest(battery="batteries/none")
    assert await callers.agent.sessions.ListSessions(of_battery) == listed

    # A session of others and one that does not exist are told apart by nothing.
    told = [
        (await refusal(callers.agent.get(name)))[1:] for name in (other, "sessions/does-not-exist")
    ]
    assert told[0][0] == told[1][0] == "UNKNOWN_SESSION"
    ids = [other.partition("/")[2], "does-not-exist"]
    assert told[0][1].replace(ids[0], "X") == told[1][1].replace(ids[1], "X")
    heard: list[str] = []
    for name in (other, "sessions/does-not-exist"):
        async with callers.agent.agent(name, agent="tests:other") as stream:
            heard.append((await stream.refused("UNKNOWN_SESSION")).message)
    assert heard[0].replace(ids[0], "X") == heard[1].replace(ids[1], "X")
    async with callers.agent.agent("", agent="tests:other") as stream:
        error = await stream.receive("error")  # its code depends on what of its own waits here
        assert error.fatal
        assert other not in error.message


async def test_what_an_agent_is_not_told_is_no_number(
    callers: Callers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A list that said 0 successes, and an empty battery, would be believed."""
    mine = await callers.operator.create(2)
    await callers.agent.play(mine)
    monkeypatch.setenv("ANIMALCAT_TOKEN", callers.tokens.create(Role.AGENT, agent=AGENT)[1])
    words = ["session", "list", "--server", callers.operator.running.address]

    def run_list(*more: str) -> Any:
        return CliRunner().invoke(build(words), [*words, *more], catch_exceptions=False)

    done = await asyncio.to_thread(run_list, "--json")
    (row,) = [row for row in json.loads(done.stdout) if f"sessions/{row['session']}" == mine]
    assert (row["agent"], row["state"], row["episodes"]) == (AGENT, "finished", 2)
    hidden = {"successes", "battery", "layout", "reason", "seed", "capabilities", "misfit"}
    assert {row[name] for name in hidden} == {None}
    done = await asyncio.to_thread(run_list)
    head, *rows = done.stdout.splitlines()
    successes = head.split().index("successes")
    assert {line.split()[successes] for line in rows} == {"-"}
    assert "the token is an agent's" in done.stderr


async def test_a_ticket_is_for_one_session_and_its_door_for_tickets(callers: Callers) -> None:
    mine, twin = await callers.operator.create(2), await callers.operator.create(2)
    stub = callers.operator.channel.unary_unary(
        "/animalcat.v1.Access/GetTicket",
        request_serializer=access_pb2.GetTicketRequest.SerializeToString,
        response_deserializer=access_pb2.GetTicketResponse.FromString,
    )
    answer = await stub(access_pb2.GetTicketRequest(session=mine))
    assert answer.folder == str(callers.data)
    holder = callers.connected(answer.ticket)
    assert (await refusal(holder.get(twin)))[1] == "UNKNOWN_SESSION"
    listed = await holder.sessions.ListSessions(sessions_pb2.ListSessionsRequest())
    assert [one.name for one in listed.sessions] == [mine]
    assert (await holder.play(mine)).episodes == 2
    forged = answer.ticket.replace(mine.partition("/")[2], twin.partition("/")[2])
    assert (await refusal(callers.connected(forged).get(twin)))[1] == "BAD_TOKEN"
    # Over the socket of this machine a ticket is asked for even where the port is open.
    async with grpc.aio.insecure_channel(answer.local_address) as bare:
        local = Service(callers.operator.running, callers.data, bare)
        assert (await refusal(local.get(mine)))[1] == "NO_TOKEN"
        # Nothing else is taken there, whoever has got hold of it.
        tokens = Tokens(callers.data)
        for shown in (
            Tickets(callers.data).local_pass(),
            tokens.create(Role.ADMINISTRATOR)[1],
            tokens.create(Role.AGENT, agent=AGENT)[1],
        ):
            held = AuthorisedChannel(bare, (("authorization", f"Bearer {shown}"),))
            local = Service(callers.operator.running, callers.data, held)
            assert (await refusal(local.get(mine)))[1] == "BAD_TOKEN"
        # Who comes by it plays with the worker by a socket, too.
        third = await callers.operator.create(2)
        ticket = await stub(access_pb2.GetTicketRequest(session=third))
        shown = AuthorisedChannel(bare, (("authorization", f"Bearer {ticket.ticket}"),))
        local = Service(callers.operator.running, callers.data, shown)
        async with local.agent(third) as stream:
            await stream.receive("welcome")
            begun = await stream.receive("episode_start")
            (await DirectPlay.open(begun.direct)).close()


async def drain_call(call: Any) -> None:
    """Read a stream to its end."""
    while await call.read() is not grpc.aio.EOF:
        pass


async def begin_episode(stream: Stream) -> None:
    """Play two decisions of an episode."""
    await stream.receive("welcome")
    await stream.receive("episode_start")
    for step in range(2):
        await stream.send(action(step, 3))
        await stream.receive("ask")


@pytest.mark.parametrize("returns", [False, True])
async def test_a_revoked_token_ends_its_open_stream_and_blames_nobody(
    callers: Callers, monkeypatch: pytest.MonkeyPatch, returns: bool
) -> None:
    """A lease does not keep the place of an agent that may no longer play; twice in one arena."""
    monkeypatch.setattr("animalcat.service.access.gate.REVIEW_SECONDS", 0.02)
    agent = f"tests:revoked-{returns}"
    session = await callers.operator.create(2, agent=agent, lease_seconds=3600.0)
    for _ in range(3):
        token, text = callers.tokens.create(Role.AGENT, agent=agent)
        async with callers.connected(text).agent(session, agent=agent, returns=returns) as stream:
            await begin_episode(stream)
            callers.tokens.revoke(token.id)
            with pytest.raises(grpc.aio.AioRpcError) as ended:
                await drain_call(stream.call)
            assert ended.value.code() is grpc.StatusCode.UNAUTHENTICATED
        assert (await refusal(callers.connected(text).get(session)))[1] == "BAD_TOKEN"
        await callers.operator.settled(session, "WAITING", asyncio.sleep)
    found = [(e.outcome, e.cause_kind) for e in await callers.operator.list_episodes(session)]
    assert found == [(types_pb2.OUTCOME_VOID, types_pb2.CAUSE_TOKEN_ENDED)] * 3


async def test_a_token_that_expires_while_its_agent_plays_blames_nobody(
    guarded: Guarded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where its connection had broken, so that it could not come back by its lease."""
    now = [NOW]
    monkeypatch.setattr("animalcat.service.access.gate.REVIEW_SECONDS", 0.02)
    monkeypatch.setattr("animalcat.service.rpc.server.Gate", partial(Gate, clock=lambda: now[0]))
    tokens = Tokens(tmp_path, lambda: now[0])
    async with guarded(tmp_path) as connected:
        operator = connected(tokens.create(Role.OPERATOR, days=0)[1])
        session = await operator.create(2, lease_seconds=0.3)
        for breaks in (False, False, True, True):
            text = tokens.create(Role.AGENT, agent=AGENT, days=1)[1]
            async with connected(text).agent(session, returns=True) as stream:
                await begin_episode(stream)
                if not breaks:
                    now[0] += timedelta(days=2)
                    with pytest.raises(grpc.aio.AioRpcError):
                        await drain_call(stream.call)
            now[0] += timedelta(days=2)
            await operator.settled(session, "WAITING", asyncio.sleep)
        found = [(e.outcome, e.cause_kind) for e in await operator.list_episodes(session)]
        assert found == [(types_pb2.OUTCOME_VOID, types_pb2.CAUSE_TOKEN_ENDED)] * 4


async def test_whose_word_on_failures_is_believed(callers: Callers) -> None:
    """An agent's token gains nothing: two voids in one arena stay a failure, whatever it says."""
    failed = gateway_pb2.EvaluateRequest(leave=gateway_pb2.Leave(failure="LookupError: lost"))
    taken = gateway_pb2.EvaluateRequest(leave=gateway_pb2.Leave(dismissed=True))
    agent = "tests:believed"
    _, text = callers.tokens.create(Role.AGENT, agent=agent)
    session = await callers.operator.create(2, agent=agent)

    async def leaves(service: Service, frame: gateway_pb2.EvaluateRequest) -> Any:
        async with service.agent(session, agent=agent) as stream:
            await begin_episode(stream)
            await stream.send(frame)
            await stream.call.read()
        await callers.operator.settled(session, "WAITING", asyncio.sleep)
        return (await callers.operator.list_episodes(session))[-1]

    remote = callers.connected(text)
    first, second = [await leaves(remote, one) for one in (failed, taken)]
    assert (first.outcome, first.cause) == (types_pb2.OUTCOME_VOID, "the agent left")
    assert second.outcome == types_pb2.OUTCOME_FAILURE
    assert not (await callers.operator.get(session)).unjudged
    # A ticket, which operators make for the agents that they start: of its code, and no more.
    holder = callers.connected(Tickets(callers.data).issue(session.partition("/")[2])[0])
    third = await leaves(holder, taken)
    assert (third.episode, third.cause) == (1, "the agent left")
    fourth = await leaves(holder, failed)
    assert (fourth.cause_kind, fourth.ruling) == (
        types_pb2.CAUSE_AGENT_FAILED,
        types_pb2.RULING_AWAITED,
    )
    assert fourth.cause == "the agent's code failed: LookupError: lost"


def test_a_gate_knows_whose_token_is_still_good(tmp_path: Path) -> None:
    now = [NOW]
    gate = Gate(tmp_path, Any, lambda: now[0])  # pyright: ignore[reportArgumentType]
    token, text = gate.tokens.create(Role.AGENT, agent="a", days=1)
    ticket, ends = gate.tickets.issue("s")
    shown = [gate.identify(one, open_to_machine=False) for one in (text, ticket)]
    assert [caller.started for caller in shown] == [False, True]
    assert [gate.admits(caller) for caller in (*shown, MACHINE)] == [True] * 3
    now[0] += timedelta(days=1)
    assert [gate.admits(caller) for caller in shown] == [False, True]
    now[0] = ends
    assert [gate.admits(caller) for caller in (*shown, MACHINE)] == [False, False, True]
    now[0] = NOW
    gate.tokens.revoke(token.id)
    assert not gate.admits(shown[0])


async def test_who_calls_too_often_is_told_when_to_come_again(
    callers: Callers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "CALLS_PER_SECOND", 0.5)
    slow = callers.of(Role.VIEWER, subject="vera")
    request = sessions_pb2.ListSessionsRequest()
    await slow.sessions.ListSessions(request)
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await slow.sessions.ListSessions(request)
    assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert 0 < float(dict(refused.value.trailing_metadata())["animalcat-retry-seconds"]) <= 2
    assert "try again in" in (refused.value.details() or "")


def test_rates_fill_up_again(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(limits, "CALLS_PER_SECOND", 2.0)
    monkeypatch.setattr(limits, "STREAMS", 1)
    rates = Rates(lambda: now[0])
    for _ in range(4):
        rates.call("a")
    with pytest.raises(ServiceError) as refused:
        rates.call("a")
    assert refused.value.retry_seconds == pytest.approx(0.5)
    rates.call("b")
    now[0] += 0.5
    rates.call("a")
    with rates.stream("a"):
        again = rates.stream("a")
        with pytest.raises(ServiceError, match="1 streams"):
            again.__enter__()
    with rates.stream("a"):
        pass


def test_tokens_are_kept_as_digests_that_their_owner_alone_reads(tmp_path: Path) -> None:
    now = [datetime(2026, 1, 1, tzinfo=UTC)]
    tokens = Tokens(tmp_path, lambda: now[0])
    token, text = tokens.create(Role.AGENT, agent="one", days=1, note="hers")
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert all(text.split("_", 2)[2] not in path.read_text() for path in files)
    assert all(
        not path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO)
        for path in files
        if "json" in path.name
    )
    assert not (tmp_path / "access").stat().st_mode & 0o077
    other = Tokens(tmp_path, lambda: now[0])
    assert other.find(text) == token
    assert other.find(text[:-1]) is None
    assert other.find(f"acat_{token.id}_") is None
    now[0] += timedelta(days=1)
    found = other.find(text)
    assert found is not None
    assert found.ended(now[0]) == "expired"
    assert tokens.revoke(text).ended(now[0]) == "revoked"
    assert not other.good(token.id)
    for role, fields in ((Role.AGENT, {}), (Role.VIEWER, {"agent": "one"})):
        with pytest.raises(TokenError):
            tokens.create(role, **fields)
    (tmp_path / "access" / "tokens.json").write_text("[{")
    with pytest.raises(TokenError, match="cannot be read"):
        other.find(text)


async def test_a_server_with_tls_hides_its_directory_from_agents_of_its_machine(
    guarded: Guarded, tmp_path: Path
) -> None:
    async with guarded(tmp_path, host="0.0.0.0", self_signed=True) as connected:
        service = connected("")
        port = service.running.address.rpartition(":")[2]
        token = Tokens(tmp_path).create(Role.OPERATOR)[1]
        ca = self_signed(tmp_path).certificate
        async with animalcat.aconnect(f"localhost:{port}", token=token, ca=ca) as client:
            await client.build_battery("navigation", 3, name="small")
            session = await client.create_session(agent="a", battery="small")
            ticket = await client.get_ticket(session)
        assert ticket.folder == str(tmp_path)
        async with grpc.aio.insecure_channel(ticket.local_address) as bare:
            local = Service(service.running, tmp_path, bare)
            assert (await refusal(local.get(session.name)))[1] == "NO_TOKEN"


@pytest.mark.parametrize(
    ("peer", "here"),
    [
        ("unix:", True),
        ("unix:/tmp/x", True),
        ("ipv4:127.0.0.1:4000", True),
        ("ipv6:%5B::1%5D:4000", True),
        ("ipv6:%5B::ffff:127.0.0.1%5D:4000", True),
        ("ipv4:192.0.2.7:4000", False),  # addresses of documentation, which nobody has
        ("ipv6:%5B2001:db8::7%5D:4000", False),
        ("vsock:3:4000", False),
        ("", False),
    ],
)
def test_who_calls_from_this_machine(peer: str, here: bool) -> None:
    assert is_this_machine(peer) is here


def test_a_ticket_ends_and_cannot_be_stretched(tmp_path: Path) -> None:
    now = [datetime(2026, 1, 1, tzinfo=UTC)]
    tickets = Tickets(tmp_path, lambda: now[0])
    text, ends = tickets.issue("a.b-1")
    caller = tickets.caller(text)
    assert caller is not None
    assert caller.sessions == {"a.b-1"}
    stretched = text.replace(str(int(ends.timestamp())), str(int(ends.timestamp()) + 9))
    assert tickets.caller(stretched) is None
    assert Tickets(tmp_path / "other").caller(text) is None
    now[0] = ends
    assert tickets.caller(text) is None


@pytest.mark.parametrize("key", [b"", b"\0" * 32, b"short", b"x" * 33])
def test_a_key_that_everybody_may_know_makes_no_tickets(tmp_path: Path, key: bytes) -> None:
    """It would admit passes that anybody can sign."""
    private_folder(tmp_path / "access")
    file = tmp_path / "access" / "ticket.key"
    file.write_bytes(key)
    with pytest.raises(TokenError, match=r"key holds .* could be forged\. Restore .* delete it"):
        Tickets(tmp_path)
    if not key:
        words = ["serve", "--data", str(tmp_path), "--port", "0"]
        done = CliRunner().invoke(build(words), words)
        assert (done.exit_code, "passes could be forged" in done.stderr) == (2, True)
    file.unlink()
    assert Tickets(tmp_path).caller(Tickets(tmp_path).local_pass()) is MACHINE


def test_of_several_servers_one_makes_the_key(tmp_path: Path) -> None:
    for content in (b"first", b"second"):
        make_private(tmp_path / "key", content)
    assert [path.name for path in tmp_path.iterdir()] == ["key"]
    assert (tmp_path / "key").read_bytes() == b"first"
    assert not (tmp_path / "key").stat().st_mode & 0o077


def test_commands_make_list_and_revoke_tokens(tmp_path: Path) -> None:
    def run(*words: str) -> Any:
        words = ("token", *words, "--data", str(tmp_path), "--json")
        done = CliRunner().invoke(build([*words]), words, catch_exceptions=False)
        return done.exit_code, done.output

    code, printed = run("create", "--agent", "mine", "--note", "hers")
    made = json.loads(printed)
    assert (code, made["plays"]) == (0, "sessions for 'mine'")
    assert Tokens(tmp_path).find(made["token"]) is not None
    assert [one["id"] for one in json.loads(run("list")[1])] == [made["id"]]
    assert json.loads(run("revoke", made["id"])[1])["state"] == "revoked"
    code, printed = run("create")
    assert code != 0
    assert "give the agent's name or a session" in printed
    assert run("revoke", "nothing")[0] != 0


async def test_over_tls_the_client_knows_the_server(
    guarded: Guarded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "data"
    made = self_signed(data)
    assert not made.key.stat().st_mode & 0o077
    assert self_signed(data) == made
    assert self_signed(data, ["lab.example.org"]).fingerprint != made.fingerprint
    token = Tokens(data).create(Role.OPERATOR)[1]
    other = self_signed(tmp_path / "other").certificate
    async with guarded(data, require_token=False, self_signed=True, host="0.0.0.0") as connected:
        made = self_signed(data)
        address = f"localhost:{connected('').running.address.rpartition(':')[2]}"

        async def run_list(ca: str | Path | None, token: str | None = token) -> int:
            async with animalcat.aconnect(address, token=token, ca=ca) as client:
                return len([one async for one in client.sessions()])

        assert await run_list(ca=made.fingerprint) == 0
        assert await run_list(ca=made.certificate) == 0
        with pytest.raises(AnimalcatError, match="another certificate"):
            await run_list(ca="sha256:" + "0" * 64)
        with pytest.raises(AnimalcatError, match="you do not trust"):
            await run_list(ca=other)
        with pytest.raises(AnimalcatError, match="asks for a token"):
            await run_list(ca=made.certificate, token="")
        with pytest.raises(AnimalcatError, match="One that speaks TLS"):
            await run_list(ca="")
        monkeypatch.setenv("ANIMALCAT_TOKEN", token)
        monkeypatch.setenv("ANIMALCAT_CA", str(made.certificate))
        assert await run_list(None, None) == 0
        # Commands that can read the directory have a socket of their own, without TLS.
        own = local_address(data)
        async with animalcat.aconnect(own, **proof_for_own(data)) as client:
            assert [one async for one in client.sessions()] == []
        with pytest.raises(AnimalcatError, match="asks for a token"):
            async with animalcat.aconnect(own, token="", ca="") as client:
                await anext(client.sessions(), None)


@pytest.mark.parametrize(
    "settings",
    [
        {"tls_certificate": "a"},
        {"tls_key": "a"},
        {"tls_certificate": "a", "tls_key": "a", "self_signed": True},
    ],
)
def test_what_is_said_of_tls_goes_together(settings: dict[str, Any]) -> None:
    with pytest.raises(ExposureError):
        check_tls(Settings(**settings))


async def test_who_cannot_be_known_is_told_that(guarded: Guarded, tmp_path: Path) -> None:
    """And not that there is no server, as where root has made the file of tokens its own."""
    text = Tokens(tmp_path).create(Role.OPERATOR)[1]
    async with guarded(tmp_path) as connected:
        address = connected("").running.address
        file = tmp_path / "access" / "tokens.json"
        file.unlink()
        file.mkdir()  # what root may not read either
        with pytest.raises(AnimalcatError, match="cannot read its tokens") as refused:
            await animalcat.aconnect(address, token=text)
        assert refused.value.code == "ACCESS_CLOSED"


def test_a_damaged_token_file_admits_nobody(tmp_path: Path) -> None:
    gate = Gate(tmp_path, Any)  # pyright: ignore[reportArgumentType]
    _, text = gate.tokens.create(Role.OPERATOR)
    (tmp_path / "access" / "tokens.json").write_text("{")
    with pytest.raises(ServiceError) as refused:
        gate.identify(f"Bearer {text}", open_to_machine=True)
    assert refused.value.code is Code.ACCESS_CLOSED
