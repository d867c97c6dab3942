from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest
from mcap.reader import make_reader
from websockets.sync.client import connect

from animalcat.arena_configs.loader import load_text
from animalcat.arena_configs.model import Arena
from animalcat.arena_configs.sequence import merge_arenas
from animalcat.doors.study.game import Game, GameShow
from animalcat.envs.types import EndedBy
from animalcat.service.recording.reader import read_episode
from animalcat.service.recording.verify import verify
from animalcat.v1 import results_pb2, types_pb2

TEXT = """!ArenaConfig
arenas:
  0: !Arena
    timeLimit: 30
    passMark: 0.5
    items:
    - !Item
      name: Agent
      positions: [!Vector3 {x: 20, y: 0, z: 5}]
      rotations: [0]
    - !Item
      name: GoodGoal
      positions: [!Vector3 {x: 20, y: 0, z: 9}]
      sizes: [!Vector3 {x: 1, y: 1, z: 1}]
    - !Item
      name: Wall
      positions: [!Vector3 {x: -1, y: 0, z: 30}]
"""


def arena() -> Arena:
    return load_text(TEXT, "test").config.first


def game(data: Path, resolution: int = 16) -> Game:
    return Game(arena(), 7, session="play-test", instance="goal", data=data, resolution=resolution)


@pytest.fixture
def show(tmp_path: Path) -> Iterator[GameShow]:
    shown = GameShow(game(tmp_path))
    yield shown
    shown.close()


def test_a_person_plays_two_episodes(show: GameShow, tmp_path: Path) -> None:
    state, picture = show.state()
    assert (state["health"], state["seconds_left"]) == (100, 3.0)
    pictures = [picture]
    state, _ = show.act(3)
    assert state["seconds_left"] == pytest.approx(3.0 - 0.06, abs=1e-4)
    while state["ended_by"] is None:
        state, picture = show.act(3)
        pictures.append(picture)
    assert (state["ended_by"], state["passed"]) == ("goal", True)
    assert state["return"] > 0.5
    assert all(len(seen) == 16 * 16 * 3 for seen in pictures)
    assert len(set(pictures)) > 5  # it moves
    steps = state["step"]
    assert show.act(3).state == state  # over is over
    state, _ = show.restart()
    assert (state["episode"], state["step"], state["ended_by"]) == (1, 0, None)
    for _ in range(5):
        show.act(1)
    show.restart()
    folder = tmp_path / "recordings" / "play-test"
    assert sorted(path.name for path in folder.iterdir()) == ["0-0.mcap", "1-0.mcap"]
    first, second = (read_episode(folder / f"{number}-0.mcap") for number in (0, 1))
    assert first.footer is not None
    assert second.footer is not None
    assert first.footer.outcome == types_pb2.OUTCOME_SUCCESS
    assert second.footer.outcome == types_pb2.OUTCOME_VOID
    assert first.actions == bytes([3] * steps)
    assert first.header.agent == "person"
    assert (first.header.seed, second.header.seed) == (7, 8)
    assert first.header.arena_yaml != second.header.arena_yaml  # the wall's place is drawn
    for recording, length in ((first, steps + 1), (second, 6)):
        found = verify(recording)
        assert (found.difference, found.steps) == (None, length)


def test_time_runs_out_and_that_is_no_pass(tmp_path: Path) -> None:
    playing = game(tmp_path)
    while playing.view.ended_by is None:
        playing.act(0)
    assert playing.view.ended_by is EndedBy.TIME_LIMIT
    assert playing.view.passed is False
    assert playing.view.step in (50, 51)  # health is a float32, as in Unity
    footer = read_episode(playing.recording).footer
    assert footer is not None
    assert footer.outcome == types_pb2.OUTCOME_FAILURE
    playing.close()
    playing.close()


def test_merged_arenas_are_one_episode(tmp_path: Path) -> None:
    one = TEXT.split("  0: !Arena\n")[1]
    text = (
        TEXT.replace("    timeLimit", "    mergeNextArena: true\n    timeLimit")
        + "  1: !Arena\n"
        + one
    )
    arenas = merge_arenas(load_text(text, "two").config)
    playing = Game(arenas, 1, session="play-two", instance="two", data=tmp_path, resolution=16)
    left = [playing.view.seconds_left or 0.0]
    while playing.view.ended_by is None:
        left.append(playing.act(3).seconds_left or 0.0)
    assert playing.view.episode_return > 1.5  # both goals
    # The first goal, of 1 m, fills health up again: so much time is left in the second arena.
    entered = next(step for step in range(1, len(left)) if left[step] > left[step - 1])
    assert left[entered - 1] == pytest.approx(3.0 - 0.06 * (entered - 1), abs=1e-4)
    assert left[entered] == pytest.approx(3.0, abs=0.06)
    recording = read_episode(playing.recording)
    playing.close()
    found = verify(recording)
    assert (found.difference, found.steps) == (None, playing.view.step + 1)


def frame(data: str | bytes) -> dict[str, Any]:
    """What a frame of the socket says beside its picture."""
    assert isinstance(data, bytes)
    return json.loads(data[4 : 4 + int.from_bytes(data[:4], "little")])


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "animalcat", "arena", "play", *map(str, arguments)]


def test_the_command_serves_until_it_is_interrupted(tmp_path: Path) -> None:
    (tmp_path / "goal one.yml").write_text(TEXT)
    process = subprocess.Popen(
        command(tmp_path / "goal one.yml", "--no-browser", "--data", tmp_path / "data"),
        stdout=subprocess.PIPE,
        text=True,
        # Whoever runs the tests in the background has made their children deaf to it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert process.stdout is not None
    link = process.stdout.readline().removeprefix("play at ").strip()
    base, _, ticket = link.partition("/enter#")
    with httpx.Client(base_url=base, headers={"accept": "text/html"}) as browser:
        forgery = re.search(r'name="forgery" value="([^"]+)"', browser.get("/enter").text)
        assert forgery is not None
        fields = {"ticket": ticket, "forgery": forgery[1]}
        browser.post("/enter", data=fields, headers={"origin": base})
        assert 'data-socket="/play"' in browser.get("/").text
        cookies = "; ".join(f"{cookie.name}={cookie.value}" for cookie in browser.cookies.jar)
    url, shown = base.replace("http", "ws") + "/play", {"cookie": cookies}
    with connect(url, origin=base, additional_headers=shown) as socket:  # pyright: ignore[reportArgumentType]
        first = frame(socket.recv(20))
        assert (first["title"], first["step"], first["number"]) == ("goal one", 0, 0)
        socket.send(json.dumps({"clock": 5.0}))
        assert json.loads(socket.recv(20))["clock"] == 5.0
        socket.send(json.dumps({"key": "ahead", "down": True, "at": 1.0}))
        socket.send(json.dumps({"do": "start"}))
        assert [frame(socket.recv(20))["step"] for _ in range(3)] == [1, 2, 3]
    process.send_signal(signal.SIGINT)
    rest, _ = process.communicate(timeout=20)
    assert process.returncode == 0
    session = re.search(r"episode replay (play-goal-one-\d{8}-\d{6}) --verify --data", rest)
    assert session, rest
    path = tmp_path / "data" / "recordings" / session[1] / "0-0.mcap"
    recording = read_episode(path)
    assert recording.footer is not None
    assert recording.footer.outcome == types_pb2.OUTCOME_VOID
    assert set(recording.actions) == {3}
    assert verify(recording).difference is None


@pytest.mark.asyncio(loop_scope="session")
async def test_a_damaged_recording_breaks_no_listing(service: Any) -> None:
    for session in ("play-a", "play-b"):
        playing = Game(arena(), 7, session=session, instance="goal", data=service.data)
        for _ in range(2):
            playing.act(3)
            playing.restart()
        playing.act(3)
        playing.close()
    folder = service.data / "recordings" / "play-a"
    content = bytearray((folder / "0-0.mcap").read_bytes())
    summary = make_reader(BytesIO(content)).get_summary()
    assert summary is not None
    (chunk,) = summary.chunk_indexes
    content[chunk.chunk_start_offset + chunk.chunk_length // 2] ^= 1
    (folder / "0-0.mcap").write_bytes(content)
    content = bytearray((folder / "1-0.mcap").read_bytes())
    content[-40] ^= 1  # behind it
    (folder / "1-0.mcap").write_bytes(content)

    # The server is shared, so that there are other tests' episodes as well.
    listed = [e for e in await service.list_episodes("sessions/-") if "/play-" in e.name]
    assert [e.name.split("/")[1] for e in listed] == ["play-a"] * 3 + ["play-b"] * 3
    broken, damaged, *whole = listed
    assert "cannot be read" in broken.cause
    assert "its recording is damaged: the check sum" in damaged.cause
    assert damaged.steps == 1
    assert not any(episode.cause for episode in whole)

    request = results_pb2.StreamEpisodeRequest(name="sessions/play-a/episodes/1")
    call = service.episodes.StreamEpisode(request)
    for kind in ("header", "step", "step", "footer"):
        assert (await call.read()).WhichOneof("frame") == kind
    with pytest.raises(grpc.aio.AioRpcError) as status:
        await call.read()
    assert status.value.code() is grpc.StatusCode.DATA_LOSS
