"""What the wire has grown by: clients of other versions, pauses, invalid outcomes, costs."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
from pathlib import Path

import grpc
import pytest

from animalcat.v1 import gateway_pb2, sessions_pb2
from animalcat.wire.protocol import OLDEST, PROTOCOL, refusal, server_refusal, version

from .conftest import Service, action

pytestmark = pytest.mark.asyncio(loop_scope="session")

FINISHED = sessions_pb2.SESSION_STATE_FINISHED
PROTOS = Path(__file__).resolve().parents[2] / "protos"


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (0, ["too old", f"animalcat {version()} or newer"]),
        (PROTOCOL + 1, ["too new", f"install animalcat {version()} where"]),
    ],
)
async def test_a_client_of_another_protocol_is_told_what_to_do(
    service: Service, number: int, words: list[str]
) -> None:
    session = await service.create(1)
    async with service.agent(session, protocol=number, client_version="9.9") as stream:
        error = await stream.refused("CLIENT_REFUSED")
    for word in (*words, "animalcat 9.9", f"protocol {number}", f"speaks {PROTOCOL}"):
        assert word in error.message
    # The session waits for a client that fits.
    assert (await service.get(session)).state == sessions_pb2.SESSION_STATE_WAITING


async def test_every_protocol_that_is_spoken_is_let_in() -> None:
    assert [refusal(number, "") for number in range(OLDEST, PROTOCOL + 1)] == [""] * (
        PROTOCOL + 1 - OLDEST
    )
    assert server_refusal(PROTOCOL, "") == ""
    assert "update the older of the two" in server_refusal(PROTOCOL + 1, "9.9")


async def pause(service: Service, session: str) -> sessions_pb2.Session:
    request = sessions_pb2.PauseSessionRequest(name=session)
    return (await service.sessions.PauseSession(request)).session


async def resume(service: Service, session: str) -> sessions_pb2.Session:
    request = sessions_pb2.ResumeSessionRequest(name=session)
    return (await service.sessions.ResumeSession(request)).session


async def test_a_paused_session_begins_no_episode(service: Service) -> None:
    session = await service.create(3)
    async with service.agent(session) as stream:
        await stream.receive("welcome")
        await stream.receive("episode_start")
        assert (await pause(service, session)).paused
        # What has begun is played to its end; nothing follows it.
        await stream.send(action(0, 3))
        while not isinstance(frame := await stream.receive(), gateway_pb2.EpisodeEnd):
            await stream.send(action(frame.step, 3))
        waiting = asyncio.create_task(stream.receive())
        assert not (await asyncio.wait({waiting}, timeout=0.3))[0]
        assert (await pause(service, session)).paused
        found = await service.get(session)
        assert (found.paused, found.episodes) == (True, 1)
        assert not (await resume(service, session)).paused
        assert isinstance(await waiting, gateway_pb2.EpisodeStart)
        await pause(service, session)
    await resume(service, session)
    end = await service.play(session)
    assert (end.state, end.episodes) == (FINISHED, 3)
    with pytest.raises(grpc.aio.AioRpcError, match="finished"):
        await pause(service, session)


async def invalidate(
    service: Service,
    session: str,
    episode: int,
    reason: str = "a cat on the keyboard",
    request_id: str = "",
) -> sessions_pb2.EpisodeSummary:
    request = sessions_pb2.InvalidateEpisodeRequest(
        name=f"{session}/episodes/{episode}", reason=reason, request_id=request_id
    )
    return (await service.sessions.InvalidateEpisode(request)).episode


async def test_an_invalid_outcome_counts_no_longer(service: Service) -> None:
    session = await service.create(4)
    async with service.agent(session) as stream:
        await stream.receive("welcome")
        for _ in range(2):
            await stream.episode(lambda _: 3)
        with pytest.raises(grpc.aio.AioRpcError, match="is being played or ended"):
            await invalidate(service, session, 1)
    await service.settled(session, "WAITING", asyncio.sleep)
    before = {e.name: e for e in await service.list_episodes(session) if e.outcome <= 2}
    told = await invalidate(service, session, 1)
    assert told.invalid == "a cat on the keyboard"
    assert (await invalidate(service, session, 1, "another reason")).invalid == told.invalid
    assert (await service.get(session)).episodes == 1
    after = {e.name: e for e in await service.list_episodes(session)}
    assert [name for name, e in after.items() if e.invalid] == [told.name]
    assert before[told.name].instance == after[told.name].instance

    with pytest.raises(grpc.aio.AioRpcError, match="no attempt at episode 9"):
        await invalidate(service, session, 9)
    with pytest.raises(grpc.aio.AioRpcError, match="say why"):
        await invalidate(service, session, 0, "  ")

    end = await service.play(session)
    assert (end.state, end.episodes) == (FINISHED, 4)
    played = await service.list_episodes(session)
    assert sum(e.outcome in (1, 2) and not e.invalid for e in played) == 4
    with pytest.raises(grpc.aio.AioRpcError, match="finished"):
        await invalidate(service, session, 0)


async def test_a_late_repetition_does_not_invalidate_what_was_played_since(
    service: Service,
) -> None:
    session = await service.create(2, agent="growth:late")
    async with service.agent(session, agent="growth:late") as stream:
        await stream.receive("welcome")
        await stream.episode(lambda _: 3)
    await service.settled(session, "WAITING", asyncio.sleep)
    told = await invalidate(service, session, 0, request_id="late")
    async with service.agent(session, agent="growth:late") as stream:
        await stream.receive("welcome")
        await stream.episode(lambda _: 3)
    await service.settled(session, "WAITING", asyncio.sleep)
    assert await invalidate(service, session, 0, request_id="late") == told
    played = await service.list_episodes(session)
    assert [e.episode for e in played if e.outcome in (1, 2) and not e.invalid] == [0]
    with pytest.raises(grpc.aio.AioRpcError, match="used for another request"):
        await invalidate(service, session, 0, "another reason", request_id="late")


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("gateway", "bytes lease = 9;", ""),
        ("types", "CAUSE_BAD_FRAMES = 5;", "CAUSE_BAD_FRAME = 5;"),
    ],
)
async def test_what_once_was_on_the_wire_stays(
    tmp_path: Path, file: str, old: str, new: str
) -> None:
    folder = tmp_path / "protos"
    shutil.copytree(PROTOS, folder)
    compare = [Path(sys.executable).parent / "buf", "breaking", "--against", "wire.binpb.gz"]
    subprocess.run(compare, cwd=folder, check=True)
    path = folder / "animalcat" / "v1" / f"{file}.proto"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    done = subprocess.run(compare, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 100, done.stderr
