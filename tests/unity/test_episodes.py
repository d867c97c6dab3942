"""Episodes begin, end and follow upon each other as in Unity, seen through an unmodified client."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from animalcat.arena_configs.model import Arena
from animalcat.envs.types import ObservationSpec
from tests.small import start, thing

from .arenas import FORWARD, near_goal, spot, write
from .compare import assert_same
from .conftest import Client, Command, Drive, Seen
from .expected import Game

IDLE: Command = ("step", 0, 0)
AGAIN: Command = ("reset", "")
HEALTH, V_UP, X, Y, Z = 0, 2, 4, 5, 6


def first_of(message: Seen) -> list[float]:
    """The vector observation of a message's decision."""
    assert message.decision is not None
    return [float(v) for v in message.decision.observations[-1]]


def place(message: Seen) -> int:
    """Where the agent stands in x."""
    return round(first_of(message)[X])


def test_what_the_first_observation_shows(newest: Client, drive: Drive, tmp_path: Path) -> None:
    """Section 4.6: nothing simulated on the very first; one physics step on after a reset."""
    arena = Arena(time_limit=500, items=(start(),))
    path = write(tmp_path, "arena.yml", arena)
    record = drive(newest, [IDLE, AGAIN], arenas_configurations=path, useCamera=False)
    first, _, again = record.messages
    assert first.decision is not None
    assert again.decision is not None
    vector = first_of(first)
    assert (vector[HEALTH], vector[V_UP], first.decision.reward) == (100.0, 0.0, 0.0)
    assert vector[Y] == pytest.approx(0.51)
    vector = first_of(again)
    assert vector[HEALTH] == pytest.approx(99.96)
    assert (vector[V_UP], vector[Y]) == pytest.approx((-0.1899216, 0.50620157))
    assert again.decision.reward == pytest.approx(-1 / 2500)


@pytest.mark.parametrize("period", [2, 5])
def test_an_end_comes_alone_or_with_the_next_decision(
    newest: Client, drive: Drive, tmp_path: Path, period: int
) -> None:
    """Goals and time-outs at every step of a decision; the client goes on by `step()`."""
    arenas = [spot(10, time_limit=3), spot(20, time_limit=4), near_goal(2.0), near_goal(2.3)]
    path = write(tmp_path, "arenas.yml", *arenas)
    commands: Sequence[Command] = [("step", *FORWARD)] * 120
    record = drive(
        newest,
        commands,
        arenas_configurations=path,
        useCamera=False,
        decisionPeriod=period,
    )
    game = Game(ObservationSpec(rays=None, decision_period=period), arenas)
    assert_same(newest, record.messages, game.follow(commands))
    ends = [message for message in record.messages if message.terminal is not None]
    assert {message.decision is None for message in ends} == {True, False}


def test_the_client_s_seed_decides_order_and_what_arenas_leave_to_chance(
    newest: Client, drive: Drive, tmp_path: Path
) -> None:
    """A random order plays each once before any again; every episode draws anew."""
    spots = [5, 10, 15, 20, 25, 30]
    arenas = (Arena(time_limit=50, items=(thing("Agent", x, 0, -1, yaw=0),)) for x in spots)
    path = write(tmp_path, "random.yml", *arenas, randomize_arenas=True)
    seeds = (1, 1, 2)
    records = [
        drive(newest, [AGAIN] * 11, arenas_configurations=path, useCamera=False, seed=seed)
        for seed in seeds
    ]
    orders = [[place(message) for message in record.messages] for record in records]
    assert orders[0] == orders[1] != orders[2]
    for played in orders:
        assert played[0] == spots[0]
        assert sorted(played[:6]) == spots
        assert all(a != b for a, b in pairwise(played))
    drawn = [[first_of(message)[Z] for message in record.messages] for record in records]
    assert drawn[0] == drawn[1]
    assert len({*drawn[0], *drawn[2]}) == 2 * 12
