"""Clients of the Model Context Protocol play sessions and read profiles, on a real server."""

from __future__ import annotations

import io
import json
import socket
import subprocess
import sys
import time
from base64 import b64decode
from functools import partial
from typing import Any

import anyio
import httpx
import pytest
from PIL import Image

import animalcat
from animalcat.client.remote_episodes import RemoteEpisodes
from animalcat.doors.speech import Tongue
from tests.client.conftest import MakeSession, Server

mcp = pytest.importorskip("mcp")

from mcp import Client as McpClient  # noqa: E402
from mcp import StdioServerParameters, stdio_client  # noqa: E402

from animalcat.doors.mcp.looking import operator_server  # noqa: E402
from animalcat.doors.mcp.playing import NOT_BEGUN, Trials, agent_server, fingerprint  # noqa: E402

TONGUE = Tongue(picture=64, answers=6)
TOOLS = {"look", "go", "turn", "wait", "next_arena"}


def test_a_client_plays_a_session_to_its_end(server: Server, make_session: MakeSession) -> None:
    session = make_session(camera=64)
    trials = trials_of(server, session, TONGUE, fingerprint=fingerprint(TONGUE))

    async def play() -> list[Any]:
        async with McpClient(agent_server(trials)) as client:
            tools = (await client.list_tools()).tools
            assert {tool.name for tool in tools} == TOOLS
            assert [tool.name for tool in tools if _reads(tool)] == ["look"]
            early = await client.call_tool("go", {"metres": 1})
            assert early.is_error
            assert NOT_BEGUN in _text(early)
            return [await _trial(client) for _ in range(2)] + [
                await client.call_tool("next_arena", {})
            ]

    try:
        *played, last = anyio.run(play)
    finally:
        trials.close()
    assert "There is no further trial" in _text(last)
    with animalcat.connect(server.address) as client:
        assert client.get_session(session).state == "finished"
        rows = client.episodes(session)
        profile = client.profile(session)
    assert [row.outcome in ("success", "failure") for row in rows] == [True, True]
    for shown in played:
        _insist_on_silence(shown, rows, profile)
    known = profile["provenance"]["agent_fingerprint"]
    assert (known["name"], known["options"]["picture"]) == ("mcp", "64")


def test_what_a_client_did_is_recorded_beside_the_steps(
    server: Server, make_session: MakeSession
) -> None:
    session = make_session(max_episodes=1)
    trials = trials_of(server, session, Tongue(picture=0, answers=2))

    async def play() -> None:
        async with McpClient(agent_server(trials)) as client:
            await client.call_tool("next_arena", {})
            for name, arguments in (("turn", {"degrees": 12}), ("go", {"metres": 400})):
                result = await client.call_tool(name, arguments)
            assert "over" in _text(result)
            assert result.is_error

    try:
        anyio.run(play)
    finally:
        trials.close()
    with animalcat.connect(server.address) as client:
        recorded = list(client.stream_episode(session, 0))
    steps = [part for part in recorded if isinstance(part, animalcat.values.RecordedStep)]
    notes = [note.text for step in steps for note in step.notes]
    assert notes == ["turn(12)", "go(400)"]


def test_a_trial_that_rests_is_over_and_the_next_call_begins_anew(
    server: Server, make_session: MakeSession
) -> None:
    session = make_session(max_episodes=1, action_timeout_seconds=2.0)
    trials = trials_of(server, session, Tongue(picture=0, answers=1))

    async def play(*calls: str) -> list[str]:
        async with McpClient(agent_server(trials)) as client:
            assert "more than 2 s" in (client.instructions or "")
            return [_text(await client.call_tool(name, {})) for name in calls]

    time.sleep(2.5)  # before the first trial nobody is waited for
    begun, again = anyio.run(play, "next_arena", "next_arena")
    assert begun.startswith("A trial begins.")
    assert "open already" in again
    time.sleep(2.5)
    try:
        (anew,) = anyio.run(play, "next_arena")  # of another client
        assert anew.startswith("The trial before rested for more than 2 s, and is over. A trial")
    finally:
        trials.close()
    with animalcat.connect(server.address) as client:
        assert len(client.episodes(session)) == 2


def test_a_client_plays_over_standard_input_and_output(
    server: Server, make_session: MakeSession
) -> None:
    session = make_session(max_episodes=1)
    arguments = ["-m", "animalcat", "mcp", "--connect", server.address, "--session", session.id]
    parameters = StdioServerParameters(
        command=sys.executable, args=[*arguments, "--tongue", "tools,answers=1,picture=0"]
    )

    async def play() -> str:
        async with McpClient(stdio_client(parameters)) as client:
            begun = await client.call_tool("next_arena", {})
            assert "Your health is 100 of 100." in _text(begun)
            return _text(await client.call_tool("wait", {"seconds": 1}))

    assert "The trial is over." in anyio.run(play)
    with animalcat.connect(server.address) as client:
        assert client.get_session(session).episodes == 1


def test_an_operator_s_client_reads_and_changes_nothing(
    server: Server, make_session: MakeSession
) -> None:
    session = make_session()
    with animalcat.connect(server.address) as client:
        client.evaluate(animalcat.envs.agents.simple.ForwardAgent(), session)

        async def read() -> dict[str, Any]:
            answers: dict[str, Any] = {}
            async with McpClient(operator_server(client)) as reader:
                tools = (await reader.list_tools()).tools
                assert all(_reads(tool) for tool in tools)
                for name, more in (
                    ("sessions", {}),
                    ("profile", {"session": session.id}),
                    ("episodes", {"session": session.id, "most": 1}),
                    ("explain_episode", {"session": session.id, "episode": 0}),
                    ("predict", {"session": session.id, "top": 2}),
                    ("profile", {"session": "nobody"}),
                ):
                    result = await reader.call_tool(name, more)
                    answers[name + ("!" if result.is_error else "")] = _text(result)
            return answers

        told = anyio.run(read)
    assert session.id in told["sessions"]
    assert json.loads(told["profile"])["provenance"]["session"] == session.name
    assert len(told["predict"]) > 0
    assert "nobody" in told["profile!"]
    assert {"episodes", "explain_episode"} <= told.keys()


def test_over_http_the_address_with_its_secret_alone_lets_in(server: Server) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = ["mcp", "--connect", server.address, "--operator", "--http", str(port)]
    asked = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    with subprocess.Popen(
        [sys.executable, "-m", "animalcat", *words], stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stderr is not None
            address = process.stderr.readline().split()[-1]
            guesses = [f"http://127.0.0.1:{port}{path}" for path in ("/mcp", "/", "/x/mcp")]
            with httpx.Client(transport=httpx.HTTPTransport(retries=10)) as browser:
                for at, known in {**dict.fromkeys(guesses, False), address: True}.items():
                    assert (browser.post(at, json=asked).status_code != 404) is known

            async def read() -> bool:
                async with McpClient(address) as reader:
                    return all(_reads(tool) for tool in (await reader.list_tools()).tools)

            assert anyio.run(read)
        finally:
            process.terminate()
        assert address.rpartition("/mcp")[0].rpartition("/")[2] not in process.stderr.read()


def trials_of(server: Server, session: Any, tongue: Tongue, **options: Any) -> Trials:
    return Trials(partial(RemoteEpisodes, server.address, session, **options), session, tongue)


async def _trial(client: Any) -> list[Any]:
    shown = [await client.call_tool("next_arena", {})]
    with Image.open(io.BytesIO(b64decode(shown[0].content[1].data))) as seen:
        assert seen.size == (64, 64)
    while "over" not in _text(shown[-1]):
        for name, arguments in (("look", {}), ("turn", {"degrees": 30}), ("go", {"metres": 6})):
            shown.append(await client.call_tool(name, arguments))
            if "over" in _text(shown[-1]):
                break
    return shown


def _insist_on_silence(shown: list[Any], rows: Any, profile: dict[str, Any]) -> None:
    """Nothing that an agent may not know is told."""
    told = " ".join(map(_text, shown))
    secret = [row.instance for row in rows] + list(profile["nodes"])
    assert not [word for word in (*secret, "reward", "score", "demand") if word in told]


def _reads(tool: Any) -> bool:
    return bool(tool.annotations and tool.annotations.read_only_hint)


def _text(result: Any) -> str:
    return " ".join(part.text for part in result.content if part.type == "text")
