from __future__ import annotations

import http.client
import json
import os
import pty
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
from mcap.reader import make_reader

from animalcat.arena_configs.loader import load_text
from animalcat.arena_configs.model import Arena
from animalcat.arena_configs.sequence import merged
from animalcat.envs.testing import start, thing
from animalcat.envs.types import EndedBy
from animalcat.service.person import Game, PageServer, WebGame
from animalcat.service.person.terminal import picture
from animalcat.service.person.terminal import play_in_terminal as play_keys
from animalcat.service.recording import read_episode, verify
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
TOKEN = "a-token-of-a-test"


def arena() -> Arena:
    return load_text(TEXT, "test").config.first


def game(data: Path, resolution: int = 16) -> Game:
    return Game(arena(), 7, session="play-test", instance="goal", data=data, resolution=resolution)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[PageServer]:
    page = PageServer(lambda: WebGame(game(tmp_path)), TOKEN)
    thread = threading.Thread(target=page.serve)
    thread.start()
    yield page
    page.stop()
    thread.join()
    page.close()


class Answer:
    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status, self.body = response.status, response.read()
        self.headers = response.headers
        self.state: dict[str, Any] = json.loads(self.headers.get("X-Animalcat-State", "{}"))


def request(
    server: PageServer, method: str, path: str, body: bytes | object = b"", **headers: str
) -> Answer:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    sent = {"Host": f"127.0.0.1:{server.port}", "X-Animalcat-Token": TOKEN}
    sent |= {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        connection.request(method, path, data, {k: v for k, v in sent.items() if v})
        return Answer(connection.getresponse())
    finally:
        connection.close()


def step(server: PageServer, state: dict[str, Any], action: int) -> Answer:
    body = {"episode": state["episode"], "step": state["step"], "action": action}
    return request(server, "POST", "/step", body)


def test_a_person_plays_two_episodes_over_http(server: PageServer, tmp_path: Path) -> None:
    answer = request(server, "POST", "/state", {})
    assert answer.status == 200
    assert answer.state["health"] == 100
    assert answer.state["seconds_left"] == 3.0
    pictures = [answer.body]
    answer = step(server, answer.state, 3)
    assert answer.state["seconds_left"] == pytest.approx(3.0 - 0.06, abs=1e-4)
    while answer.state["ended_by"] is None:
        answer = step(server, answer.state, 3)
        assert answer.status == 200
        pictures.append(answer.body)
    assert answer.state["ended_by"] == "goal"
    assert answer.state["passed"] is True
    assert answer.state["return"] > 0.5
    assert all(len(seen) == 16 * 16 * 3 for seen in pictures)
    assert len(set(pictures)) > 5  # it moves
    steps = answer.state["step"]
    after = step(server, answer.state, 3)  # over is over
    assert after.state == answer.state
    answer = request(server, "POST", "/restart", {"episode": 0})
    assert (answer.state["episode"], answer.state["step"], answer.state["ended_by"]) == (1, 0, None)
    for _ in range(5):
        answer = step(server, answer.state, 1)
    request(server, "POST", "/restart", {"episode": 1})
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
    arenas = merged(load_text(text, "two").config)
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


def test_arenas_come_one_after_another(tmp_path: Path) -> None:
    """R goes on where an episode is over, and begins the same arena again where it is not."""
    near, far = (Arena(items=(start(z=5.0), thing("GoodGoal", 20, 0, z))) for z in (7.0, 12.0))
    others = [("far", far)]
    playing = Game(
        near, 1, session="play-both", instance="near", data=tmp_path, others=others, resolution=16
    )
    titles = [playing.title]
    playing.act(3)
    playing.restart()
    titles.append(playing.title)
    for _ in range(2):
        while playing.view.ended_by is None:
            playing.act(3)
        playing.restart()
        titles.append(playing.title)
    playing.close()
    near_title, far_title = "near (1 of 2)", "far (2 of 2)"
    assert titles == [near_title, near_title, far_title, near_title]
    recorded = sorted((tmp_path / "recordings" / "play-both").iterdir())
    assert [read_episode(one).header.instance for one in recorded] == ["near", "near", "far"]


def test_what_was_not_played_is_not_recorded(tmp_path: Path) -> None:
    playing = game(tmp_path)
    playing.restart()
    playing.close()
    assert not list(tmp_path.rglob("*.mcap"))


def test_the_page_is_whole_and_needs_no_network(server: PageServer) -> None:
    answer = request(server, "GET", "/", X_Animalcat_Token="")
    assert answer.status == 200
    page = answer.body.decode()
    assert "<canvas" in page
    assert not re.search(r"(https?:)?//[a-z]|@import|url\(", page.replace("// ", ""))
    assert TOKEN not in page
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert server.url == f"http://127.0.0.1:{server.port}/#{TOKEN}"
    assert request(server, "GET", "/etc/passwd").status == 404


@pytest.mark.parametrize(
    "headers",
    [
        {"X_Animalcat_Token": ""},
        {"X_Animalcat_Token": TOKEN[:-1]},
        {"X_Animalcat_Token": "\xe9"},
        {"Host": "evil.example"},
        {"Host": "127.0.0.1:1"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
    ],
)
def test_strangers_cannot_play(server: PageServer, headers: dict[str, str]) -> None:
    body = {"episode": 0, "step": 0, "action": 3}
    answer = request(server, "POST", "/step", body, **headers)
    assert answer.status == 403
    assert not answer.state
    assert request(server, "POST", "/state", {}).state["step"] == 0


@pytest.mark.parametrize("twice", ["Host", "Origin"])
def test_a_header_that_comes_twice_is_refused(server: PageServer, twice: str) -> None:
    own = f"127.0.0.1:{server.port}"
    said = {"Host": own, "Origin": f"http://{own}"}
    lines = ["POST /state HTTP/1.1", f"X-Animalcat-Token: {TOKEN}", "Content-Length: 2"]
    lines += [f"{name}: {value}" for name, value in said.items()]
    answers: list[bytes] = []
    for more in ([], [f"{twice}: {said[twice]}"]):
        with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
            connection.sendall("\r\n".join([*lines, *more, "", "{}"]).encode())
            answers.append(connection.recv(20).split()[1])
    assert answers == [b"200", b"403"]


def test_a_foreign_page_gets_no_leave_to_send_the_token(server: PageServer) -> None:
    answer = request(server, "OPTIONS", "/step", Origin="http://evil.example")
    assert answer.status == 501
    assert not [name for name in answer.headers if name.lower().startswith("access-control")]


def test_its_own_page_may_play(server: PageServer) -> None:
    origin = f"http://127.0.0.1:{server.port}"
    assert request(server, "POST", "/state", {}, Origin=origin).status == 200
    local = f"localhost:{server.port}"
    assert request(server, "POST", "/state", {}, Host=local, Origin=f"http://{local}").status == 200


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        ("/step", {"episode": 0, "step": 0, "action": 9}, "action is 9"),
        ("/step", {"episode": 0, "step": 0, "action": -1}, "action is -1"),
        ("/step", {"episode": 0, "step": 0, "action": True}, "action is True"),
        ("/step", {"episode": 0, "step": 0}, "action is None"),
        ("/step", [3], "not a JSON object"),
        ("/step", b"\xff{", "not a JSON object"),
        ("/step", b"[" * 900, "not a JSON object"),
        ("/step", b" " * 1001, "length is '1001'"),
        ("/restart", {}, "episode is None"),
        ("/fly", {}, "no call 'fly'"),
    ],
)
def test_nonsense_is_named(server: PageServer, path: str, body: object, message: str) -> None:
    answer = request(server, "POST", path, body)
    assert answer.status == 400
    assert message in answer.body.decode()
    assert request(server, "POST", "/state", {}).state["step"] == 0


def test_a_step_for_another_moment_changes_nothing(server: PageServer) -> None:
    state = request(server, "POST", "/state", {}).state
    assert step(server, state, 3).state["step"] == 1
    again = step(server, state, 3)
    assert (again.status, again.state["step"]) == (409, 1)
    assert request(server, "POST", "/restart", {"episode": 4}).status == 409


def test_in_a_terminal(tmp_path: Path) -> None:
    playing = game(tmp_path, 32)
    shown: list[str] = []
    play_keys(playing, ["w", "?", "\x1b[C", "r", "\x1b[A", *"W" * 40, "x", "r"], shown.append)
    assert "\x1b[2J" in shown[0]
    assert "health 100.0   reward   0.000   time left   3.0 s" in shown[0]
    assert shown[1] == shown[2]  # `?` is no key
    assert "over: goal, passed; R goes on" in shown[-1]
    assert len(shown) == 1 + 4 + 1 + 40  # nothing after X
    playing.close()
    actions = read_episode(tmp_path / "recordings/play-test/0-0.mcap").actions
    assert actions == bytes([3, 3, 3, 1, 1, 1])


def test_half_blocks() -> None:
    image = np.arange(4 * 2 * 3, dtype=np.uint8).reshape(4, 2, 3)
    rows = picture(image)
    assert len(rows) == 2
    assert rows[0] == "\x1b[38;2;0;1;2;48;2;6;7;8m▀\x1b[38;2;3;4;5;48;2;9;10;11m▀"


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
    line = process.stdout.readline()
    port, token = re.fullmatch(r"play at http://127\.0\.0\.1:(\d+)/#(\S{32})\n", line).groups()  # type: ignore[union-attr]
    connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=20)
    body = json.dumps({"episode": 0, "step": 0, "action": 4})
    connection.request("POST", "/step", body, {"X-Animalcat-Token": token})
    answer = Answer(connection.getresponse())
    assert (answer.status, answer.state["title"]) == (200, "goal one")
    process.send_signal(signal.SIGINT)
    rest, _ = process.communicate(timeout=20)
    assert process.returncode == 0
    session = re.search(r"episode replay (play-goal-one-\d{8}-\d{6}) --verify --data", rest)
    assert session, rest
    path = tmp_path / "data" / "recordings" / session[1] / "0-0.mcap"
    recording = read_episode(path)
    assert recording.footer is not None
    assert recording.footer.outcome == types_pb2.OUTCOME_VOID
    assert verify(recording).difference is None


@pytest.mark.timeout(90)
def test_the_command_plays_in_a_terminal(tmp_path: Path) -> None:
    """A folder here, of which the first arena comes first."""
    arenas = tmp_path / "arenas"
    arenas.mkdir()
    for name in ("goal", "later"):
        (arenas / f"{name}.yml").write_text(TEXT)
    parent, child = pty.openpty()
    process = subprocess.Popen(
        command(arenas, "--terminal", "--data", tmp_path, "--resolution", 16),
        stdin=child,
        stdout=child,
        stderr=child,
    )
    os.close(child)
    shown = b""
    sent = False
    try:
        while piece := os.read(parent, 65536):
            shown += piece
            if b"X leaves" in shown and not sent:
                os.write(parent, b"w\x1b[Ax")
                sent = True
    except OSError:  # how a pty ends
        pass
    os.close(parent)
    assert process.wait(20) == 0
    assert "▀".encode() in shown
    assert b"goal (1 of 2)" in shown
    (path,) = tmp_path.rglob("*.mcap")
    assert read_episode(path).actions == bytes([3] * 6)


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


def test_the_command_says_what_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "goal.yml"
    path.write_text(TEXT)
    done = subprocess.run(
        command(path, "--terminal"), stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "--terminal needs a terminal" in done.stderr
