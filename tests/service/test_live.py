"""A session as it goes on: the table of a terminal, the lines of a pipe, and watching others'."""

from __future__ import annotations

import asyncio
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from animalcat.cli.main import build
from animalcat.cli.session.live import LiveSession
from animalcat.text.plain_console import PlainConsole
from animalcat.v1 import sessions_pb2, types_pb2
from animalcat.values import CapabilityStatus, Episode, Session, SessionEvent
from animalcat.wire.codec import decode
from tests.service.conftest import Service

PASSED, FAILED = types_pb2.OUTCOME_SUCCESS, types_pb2.OUTCOME_FAILURE
PROTO = sessions_pb2.Session(
    name="sessions/mine-1a2b",
    spec=sessions_pb2.SessionSpec(
        agent="mine [/b]", stop=sessions_pb2.StoppingRule(max_episodes=20)
    ),
    state=sessions_pb2.SESSION_STATE_RUNNING,
)
SESSION = decode(Session, PROTO)


def capability(mean: float, limit: str = "") -> CapabilityStatus:
    value, interval = f"{10 * mean:.0f} m", f"{10 * mean - 8:.0f} to {10 * mean + 8:.0f} m"
    return CapabilityStatus(
        "sight [red]", mean, 0.5, "10 m", "measuring", 7, None, limit, value, interval
    )


def episode(number: int, outcome: types_pb2.Outcome.ValueType) -> Episode:
    return decode(
        Episode,
        sessions_pb2.EpisodeSummary(
            name=f"sessions/mine-1a2b/episodes/{number}-0",
            episode=number,
            instance=f"arena-[/b]{number}",
            outcome=outcome,
            episode_return=0.5,
            steps=12,
            decision=sessions_pb2.Decision(
                instance=f"arena-[/b]{number}", reason=sessions_pb2.REASON_INFORMATIVE
            ),
        ),
    )


def play_out(console: PlainConsole, **more: Any) -> LiveSession:
    """Six episodes were played, of which two failed."""
    shown = LiveSession(SESSION, console)
    for number in range(6):
        now = replace(
            SESSION,
            episodes=number + 1,
            successes=number + 1 - (number > 3),
            capabilities=(capability(1.0 + number, "too dark to see"),),
            **more,
        )
        shown.tell(SessionEvent(now, episode(number, FAILED if number > 3 else PASSED)))
    return shown


@pytest.mark.parametrize("width", [45, 120])
def test_the_table_has_estimate_and_interval(width: int) -> None:
    file = io.StringIO()
    console = PlainConsole(file=file, width=width, force_terminal=True)
    shown = play_out(console, misfit="in the dark")
    said = file.getvalue()
    assert said.count("too dark to see") == 1
    assert "episode   4  arena-[/b]4" in said
    file.truncate(0)
    console.print(shown._table())  # pyright: ignore[reportPrivateUsage]
    table = file.getvalue()
    assert "6 of at most 20 episodes, 5 passed, 14 left, about 7 needed" in " ".join(table.split())
    for part in ("sight [red]", "60 m", "52 to 68 m", "measuring"):
        assert part in table
    assert "10 m" not in table.replace("sight", "")
    assert ("needs" in table) == (width > 100)  # it goes first
    assert "the layout does not describe the agent in the dark" in " ".join(table.split())


def test_a_pipe_gets_a_line_at_each_tenth(capsys: pytest.CaptureFixture[str]) -> None:
    with play_out(PlainConsole(quiet=True)):
        pass
    out, said = capsys.readouterr()
    assert out == ""
    lines = said.splitlines()
    assert "too dark to see" in lines[0]
    assert lines[1:] == [
        f"{done} of 20 episodes: sight [red] {10 * done} m ({10 * done - 8} to {10 * done + 8} m)"
        for done in (2, 4, 6)
    ]


def test_what_was_said_to_be_out_of_reach_is_taken_back(capsys: pytest.CaptureFixture[str]) -> None:
    shown = LiveSession(SESSION, PlainConsole(file=io.StringIO(), quiet=True))
    for number, limit in enumerate(("is out of reach", "is out of reach", "", "", "is out")):
        now = replace(SESSION, episodes=number + 1, capabilities=(capability(1.0, limit),))
        shown.tell(SessionEvent(now, episode(number, PASSED)))
    notes = [line for line in capsys.readouterr().err.splitlines() if line.startswith("note: ")]
    assert notes == [
        "note: sight [red]: its target is out of reach",
        "note: sight [red]: its target is reached after all: this agent is one of the few that can",
        "note: sight [red]: its target is not reached any more",
    ]


@pytest.mark.asyncio(loop_scope="session")
async def test_a_session_that_somebody_else_runs_is_watched(service: Service) -> None:
    session = await service.create(3)
    name = session.removeprefix("sessions/")
    words = ["session", "show", "--follow", name, "--server", service.running.address]

    def watch(*more: str) -> Any:
        return CliRunner().invoke(build([*words, *more]), [*words, *more])

    watching = asyncio.create_task(asyncio.to_thread(watch, "--json"))
    await service.play(session)
    done = await asyncio.wait_for(watching, 60)
    assert done.exit_code == 0, done.stderr
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert events[-1]["session"]["state"] == "finished"
    ended = [event["ended"]["episode"] for event in events if event["ended"]]
    assert ended == sorted(ended)
    again = await asyncio.to_thread(watch)
    assert (again.exit_code, f"{name}: finished: " in again.stdout) == (0, True)
    words[3] = "nobody-0"
    unknown = await asyncio.to_thread(watch)
    assert (unknown.exit_code, "nobody-0" in unknown.stderr) == (2, True)


def test_where_no_server_works_nothing_is_watched(tmp_path: Path) -> None:
    words = ["session", "show", "--follow", "mine-1a2b", "--data", str(tmp_path)]
    done = CliRunner().invoke(build(words), words)
    assert done.exit_code == 4
    assert f"no server works on {tmp_path}" in done.stderr
    assert not list(tmp_path.iterdir())
