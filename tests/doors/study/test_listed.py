"""What a person has played is listed, and what a study leaves out is said before."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from animalcat.arena_configs.model import Arena
from animalcat.doors.study.file import Study
from animalcat.doors.study.game import Game
from tests.client.conftest import Server, server
from tests.command_line import call
from tests.small import start, thing

__all__ = ["server"]  # the fixture


def episode(*words: str):
    return call("episode", *words)


def test_what_a_person_played_is_listed_marked_and_streamed(server: Server) -> None:
    arena = Arena(items=(start(z=5.0), thing("GoodGoal", 20, 0, 9)))
    played = Game(arena, 3, session="play-here", instance="ball", data=server.home, resolution=16)
    while played.view.ended_by is None:
        played.act(3)
    played.restart()
    played.act(0)
    played.close()
    (server.home / "recordings" / "play-here" / "9-0.mcap").write_bytes(b"cut")
    (server.home / "recordings" / "play-never").mkdir()

    expected = [
        ("play-here", 0, "success", "person"),
        ("play-here", 1, "void", "person"),
        ("play-here", 9, "open", "person"),
    ]
    for which in (["play-here"], []):
        listed = episode("list", *which, "--server", server.address, "--json")
        assert listed.exit_code == 0, listed.output
        rows = [row for row in json.loads(listed.stdout) if row["session"] == "play-here"]
        assert [(r["session"], r["episode"], r["outcome"], r["reason"]) for r in rows] == expected
        assert [bool(row["cause"]) for row in rows] == [False, False, True]
    again = episode("replay", "play-here", "0", "--server", server.address, "--verify", "--json")
    assert again.exit_code == 0, again.output
    missing = episode("list", "play-never", "--server", server.address)
    assert missing.exit_code == 2
    assert "play-never" in missing.stderr


def test_what_the_layout_leaves_out_is_said_before_anybody_comes(
    server: Server, written: Callable[..., Study], tmp_path: Path
) -> None:
    file, found = str(tmp_path / "study.yaml"), dict[str, str]()
    for name in ("navigation, layout: aaio", "navigation, layout: object-permanence", "tiny"):
        written(("battery: tiny", f"battery: {name}"))
        told = call("study", "run", file, "--check", "--data", str(server.home), "--json")
        assert told.exit_code == 0, told.output
        found |= json.loads(told.stdout)["left_out"]
    where = "arenas of navigation that the layout {} leaves out"
    assert found.pop(where.format("aaio")) == "2 of 12: wallsInWay above 0; 1: hotZones above 0"
    assert found.pop(where.format("object-permanence")).endswith("hotZones above 0")
    assert {*found} == {"battery tiny"}  # which is not built
