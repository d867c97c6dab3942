"""The audit log tells who did what, and forgets nothing."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import pytest
from typer.testing import CliRunner

import animalcat
from animalcat.cli.main import build
from animalcat.service import calls
from animalcat.service.access.audit import LINES_A_MINUTE, OF_STRANGERS, Audit, note_by_command
from animalcat.service.access.callers import Caller, Role
from animalcat.service.access.tokens import TokenError, Tokens
from animalcat.service.errors import Code, ServiceError
from animalcat.service.host.listeners import host_of
from animalcat.service.storage.audit import AuditFilter, AuditLog
from animalcat.service.storage.listing import Page
from animalcat.service.storage.sql import SqlStore
from animalcat.v1 import sessions_pb2
from animalcat.values import AuditLine
from tests import postgres

from .conftest import AGENT, NOW, Guarded, Service, action

FULL = "CREATE TRIGGER full BEFORE INSERT ON audit BEGIN SELECT RAISE(FAIL, 'disk is full'); END"
"""What the database says where the disk has no room for a line, and for nothing else."""


def change(data: Path, *statements: str) -> None:
    with closing(sqlite3.connect(data / "animalcat.sqlite")) as db, db:
        for statement in statements:
            db.execute(statement)


def line(k: int, **changes: Any) -> AuditLine:
    about = ("r", f"person {k % 2}", "token x", "researcher", "CancelSession")
    return replace(AuditLine(NOW + timedelta(minutes=k), *about, f"sessions/s{k}"), **changes)


def fill_log(data: Path, lines: int = 6) -> SqlStore:
    store = SqlStore.in_directory(data)
    assert store.audit.write([line(k) for k in range(lines)]) == [*range(1, lines + 1)]
    return store


def test_lines_are_told_by_what_they_are_about(tmp_path: Path) -> None:
    log = fill_log(tmp_path).audit
    both = line(9, object="sessions/s1 campaigns/c_1", result="begun")
    assert log.write([both]) == [7]

    def numbers_told(page: Page = Page(), **wanted: Any) -> list[int]:
        return [one.seq for one in log.lines(AuditFilter(**wanted), page)]

    assert numbers_told() == [7, 6, 5, 4, 3, 2, 1]
    assert numbers_told(subject="person 1") == [7, 6, 4, 2]
    assert numbers_told(action="DeleteSession") == []
    assert numbers_told(object="sessions/s1") == [7, 2]
    assert numbers_told(object="campaigns/c_1") == [7]
    assert numbers_told(object="campaigns/cx1") == numbers_told(object="sessions/s") == []
    assert numbers_told(since=NOW + timedelta(minutes=5)) == [7, 6]
    first = log.lines(page=Page(3))
    assert [one.seq for one in first] == [7, 6, 5]
    assert numbers_told(Page(9, first.next)) == [4, 3, 2, 1]
    # What was begun is told by what came of it, once that is known.
    log.write([replace(both, seq=7, result="done", words="quickly")])
    assert numbers_told() == [7, 6, 5, 4, 3, 2, 1]
    assert (log.lines()[0].result, log.lines()[0].words) == ("done", "quickly")


def write_at_once(logs: Sequence[AuditLog], each: int) -> None:
    """Have several write at once."""

    def write(writer: int) -> list[int]:
        return [number for k in range(each) for number in logs[writer].write([line(k)])]

    with ThreadPoolExecutor(len(logs)) as pool:
        numbers = [number for mine in pool.map(write, range(len(logs))) for number in mine]
    assert sorted(numbers) == [*range(1, each * len(logs) + 1)]


def test_a_server_and_commands_write_one_log_of_a_postgresql() -> None:
    with postgres.running() as database, postgres.schema(database) as url:
        stores = [SqlStore(url) for _ in range(2)]
        write_at_once([store.audit for store in stores], 20)
        assert [one.seq for one in stores[0].audit.lines(page=Page(3))] == [40, 39, 38]
        for store in stores:
            store.close()


def of_session(lines: Sequence[AuditLine], session: str) -> list[tuple[str, str, str, str]]:
    found = [one for one in lines if session in one.object.split()]
    return [(one.subject, one.role, one.action, one.result) for one in reversed(found)]


@pytest.mark.asyncio(loop_scope="session")
async def test_who_did_what_is_told_and_no_secret(guarded: Guarded, tmp_path: Path) -> None:
    tokens = Tokens(tmp_path, lambda: NOW, partial(note_by_command, tmp_path, ""))
    texts = {
        name: tokens.create(role, subject=name, note="secret note")[1]
        for name, role in (("ann", Role.RESEARCHER), ("eve", Role.RESEARCHER))
    }
    texts["otto"] = tokens.create(Role.OPERATOR, subject="otto")[1]
    texts["ada"] = tokens.create(Role.ADMINISTRATOR, subject="ada")[1]
    texts["agent"] = tokens.create(Role.AGENT, agent=AGENT)[1]
    async with guarded(tmp_path) as connected:
        who: dict[str, Service] = {name: connected(text) for name, text in texts.items()}
        session = await who["ann"].create(2)
        await who["agent"].play(session)
        cancel = sessions_pb2.CancelSessionRequest(name=session)
        delete = sessions_pb2.DeleteSessionRequest(name=session)
        for name, call, asked in (
            ("eve", "CancelSession", cancel),
            ("otto", "DeleteSession", delete),
            ("agent", "DeleteSession", delete),
        ):
            with pytest.raises(grpc.aio.AioRpcError):
                await getattr(who[name].sessions, call)(asked)
        given = (("animalcat-request-id", "mine-7"),)
        bare = grpc.aio.insecure_channel(who["ann"].running.address)
        shown = (("authorization", f"Bearer {texts['ann']}"), *given)
        call = bare.unary_unary(
            "/animalcat.v1.Sessions/DeleteSession",
            request_serializer=sessions_pb2.DeleteSessionRequest.SerializeToString,
        )
        await call(delete, metadata=shown)
        with pytest.raises(grpc.aio.AioRpcError) as gone:
            await call(delete, metadata=shown)
        told = dict(gone.value.trailing_metadata() or ())
        assert told["animalcat-request-id"] == "mine-7"
        with pytest.raises(grpc.aio.AioRpcError) as unknown:
            await connected("acat_0000000000_guess").get(session)
        made = str(dict(unknown.value.trailing_metadata() or ())["animalcat-request-id"])
        revoked = tokens.revoke(texts["eve"]).id
        await bare.close()
        pending = animalcat.aconnect(who["ada"].running.address, token=texts["ada"])
        async with pending as client:
            lines = [one async for one in client.audit()]
            await client.audit(about=session).aclose()
            assert [one.action async for one in client.audit(subject="otto")] == ["DeleteSession"]
    # A refusal is written after its caller is told, so not always before the next call.
    assert sorted(of_session(lines, session)) == sorted(
        [
            ("ann", "researcher", "CreateSession", "done"),
            ("", "agent", "Evaluate", "done"),
            ("eve", "researcher", "CancelSession", "UNKNOWN_SESSION"),
            ("otto", "operator", "DeleteSession", "FORBIDDEN"),
            ("", "agent", "DeleteSession", "FORBIDDEN"),
            ("ann", "researcher", "DeleteSession", "done"),
            ("ann", "researcher", "DeleteSession", "UNKNOWN_SESSION"),
        ]
    )
    attached = next(one for one in lines if one.action == "Evaluate")
    assert attached.words == f"agent {AGENT}, process process 1"
    assert attached.caller.startswith("token ")
    assert {one.request for one in lines if one.action == "DeleteSession"} >= {"mine-7"}
    stranger = next(one for one in lines if one.request == made)
    assert (stranger.subject, stranger.role, stranger.result) == ("", "", "BAD_TOKEN")
    assert stranger.peer == "127.0.0.1"
    of_tokens = [(one.action, one.object) for one in lines if one.object.startswith("tokens/")]
    assert of_tokens[0] == ("RevokeToken", f"tokens/{revoked}")
    assert [action for action, _ in of_tokens[1:]] == ["CreateToken"] * 5
    # Nothing by which one could be somebody else.
    whole = "\n".join(map(repr, lines))
    secrets = [text.split("_", 2)[2] for text in (*texts.values(), "acat_0000000000_guess")]
    assert not [secret for secret in (*secrets, "secret note") if secret in whole]


@pytest.mark.asyncio(loop_scope="session")
async def test_a_full_disk_refuses_what_must_be_told_and_lets_play(
    start: Callable[[Path], Any], tmp_path: Path
) -> None:
    async with start(tmp_path) as service:
        session = await service.create(2)
        other = await service.create(2, seed=6)
        async with service.agent(session) as stream:
            await stream.receive("welcome")
            await stream.receive("episode_start")
            change(tmp_path, FULL)
            for name, request in (
                ("CancelSession", sessions_pb2.CancelSessionRequest(name=other)),
                ("DeleteSession", sessions_pb2.DeleteSessionRequest(name=other)),
            ):
                with pytest.raises(grpc.aio.AioRpcError, match="cannot write its audit log") as no:
                    await getattr(service.sessions, name)(request)
                assert dict(no.value.trailing_metadata() or ())["animalcat-code"] == "AUDIT_CLOSED"
            for step in range(2):
                await stream.send(action(step, 3))
                await stream.receive("ask")
            await stream.send(action(2, *[3] * 10))
            await stream.receive()
        assert (await service.get(other)).state == sessions_pb2.SESSION_STATE_WAITING
        # Another agent may come, and play to the end; the log tells of both when it can again.
        assert (await service.play(session)).episodes == 2
        change(tmp_path, "DROP TRIGGER full")
        await service.sessions.CancelSession(sessions_pb2.CancelSessionRequest(name=other))
        async with animalcat.aconnect(service.running.address) as client:
            lines = [one async for one in client.audit()]
    assert of_session(lines, session)[1:] == [("", "administrator", "Evaluate", "done")] * 2
    assert of_session(lines, other)[1:] == [("", "administrator", "CancelSession", "done")]


class Broken:
    """A log of which the database fails as long as one likes."""

    def __init__(self, log: AuditLog) -> None:
        self.log, self.fails = log, False

    def write(self, lines: Sequence[AuditLine]) -> list[int]:
        if self.fails:
            raise OSError(28, "No space left on device")
        return self.log.write(lines)


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0


async def test_what_cannot_be_written_waits_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("animalcat.service.access.audit.MOST_WAITING", 5)
    store = SqlStore.in_directory(tmp_path)
    broken, clock = Broken(store.audit), Clock()
    audit = Audit(broken, "here", lambda: NOW, host_of, lambda: clock.seconds)  # pyright: ignore[reportArgumentType]
    calls.begin_call("/animalcat.v1.Sessions/CancelSession", None, "ipv4:192.0.2.7:50000")
    ann = Caller("1", Role.RESEARCHER, subject="ann")
    broken.fails = True
    with pytest.raises(ServiceError, match="The server's disk is full") as refused:
        await audit.begin(ann)
    assert refused.value.code is Code.AUDIT_CLOSED
    for k in range(7):
        audit.note(ann, "done", f"words {k}")
    await audit.close()
    broken.fails = False
    await audit.lines(store.audit.lines)
    await audit.lines(store.audit.lines)
    lines = list(reversed(store.audit.lines()))
    assert [one.words for one in lines[:5]] == [f"words {k}" for k in range(5)]
    assert [(one.action, one.times) for one in lines[5:]] == [("LoseLines", 2)]
    assert (lines[0].peer, lines[0].server) == ("192.0.2.7", "here")


async def test_who_is_refused_often_fills_no_log(tmp_path: Path) -> None:
    store, clock = SqlStore.in_directory(tmp_path), Clock()
    audit = Audit(store.audit, "here", lambda: NOW, host_of, lambda: clock.seconds)
    ann, bob = (Caller(name, Role.RESEARCHER, subject=name) for name in ("ann", "bob"))
    error = ServiceError(Code.FORBIDDEN, "no")

    def refuse(caller: Caller | None, k: int, peer: str = "ipv4:192.0.2.7:1") -> None:
        call = calls.begin_call("/animalcat.v1.Sessions/CancelSession", None, peer)
        call.about = (f"sessions/s{k}",)
        audit.refused(caller, error)

    for k in range(200):
        refuse(ann, k)
        refuse(None, k, f"ipv4:192.0.{k}.7:1")
    refuse(bob, 0)
    await audit.close()
    lines = store.audit.lines()
    by = [sum(one.subject == name for one in lines) for name in ("ann", "bob", "")]
    assert by[:2] == [LINES_A_MINUTE + 1, 1]
    assert by[2] == OF_STRANGERS + 1  # however many machines they come from
    clock.seconds += 60.0
    refuse(ann, 0)
    refuse(ann, 500)
    await audit.close()
    assert sum(one.subject == "ann" for one in store.audit.lines()) == LINES_A_MINUTE + 3


def noting(data: Path) -> Tokens:
    return Tokens(data, note=partial(note_by_command, data, ""))


def test_two_administrators_at_once_lose_nothing(tmp_path: Path) -> None:
    def work(k: int) -> str:
        tokens = noting(tmp_path)
        made = tokens.create(Role.RESEARCHER, subject=f"person {k}")[0].id
        if k % 2:
            tokens.revoke(made)
        return made

    with ThreadPoolExecutor(8) as pool:
        ids = [*pool.map(work, range(24))]
    assert {token.id for token in Tokens(tmp_path).all()} == set(ids)
    with closing(SqlStore.in_directory(tmp_path)) as store:
        lines = store.audit.lines()
    assert len(lines) == 36
    assert {one.object for one in lines} == {f"tokens/{one}" for one in ids}


def test_a_token_that_cannot_be_told_of_is_not_made(tmp_path: Path) -> None:
    tokens = noting(tmp_path)
    kept = tokens.create(Role.OPERATOR)[0]
    change(tmp_path, FULL)
    with pytest.raises(TokenError, match=r"cannot be written, so nothing was changed: .*is full"):
        tokens.create(Role.OPERATOR)
    assert Tokens(tmp_path).all() == [kept]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can leave files to others")
def test_what_root_makes_belongs_to_whom_the_directory_does(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    os.chown(data, 12345, 12345)
    tokens = noting(data)
    tokens.create(Role.OPERATOR)
    tokens.create(Role.OPERATOR)
    assert (data / "animalcat.sqlite").stat().st_uid == 12345
    owners = {path.name: path.stat().st_uid for path in (data / "access").iterdir()}
    assert owners == dict.fromkeys(("tokens.json", "tokens.lock"), 12345)
    assert (data / "access").stat().st_uid == 12345


def test_the_command_tells(tmp_path: Path) -> None:
    def run(*words: str) -> Any:
        words = (*words, "--data", str(tmp_path))
        return CliRunner().invoke(build([*words]), words, catch_exceptions=False)

    run("token", "create", "--role", "researcher", "--subject", "ann")
    run("battery", "build", "navigation", "--instances", "4", "--name", "small")
    done = run("audit", "--json")
    lines = [json.loads(text) for text in done.stdout.splitlines()]
    actions = ["StartServer", "StopServer", "BuildBattery", "StartServer", "CreateToken"]
    assert [one["action"] for one in lines] == actions
    assert lines[2]["object"] == "batteries/small"
    assert "subject ann" in lines[4]["words"]
    shown = run("audit", "--action", "BuildBattery", "--since", "1h").stdout
    assert "batteries/small" in shown
    assert "CreateToken" not in shown
    assert run("audit", "--since", "2999-01-01").stdout.count("Build") == 0
    assert run("audit", "--since", "yesterday").exit_code == 2
