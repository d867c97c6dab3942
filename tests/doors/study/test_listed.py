"""What a person has played is listed."""

from __future__ import annotations

import json

from animalcat.arena_configs.model import Arena
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
