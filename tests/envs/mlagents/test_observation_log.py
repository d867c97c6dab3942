"""The observation logs of the stand-in, against those of the real build and by themselves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path

import pytest

from animalcat.arena_configs.model import (
    Arena,
    ArenaConfig,
    EndEpisode,
    FreezeAgent,
    Item,
    Operation,
    ToggleObject,
    Vector3,
)
from animalcat.envs.mlagents.observation_log import COLUMNS, ObservationLog
from animalcat.envs.mlagents.source import ConfigSource
from animalcat.envs.sim.environment import SimEnvironment
from animalcat.envs.types import ObservationSpec, Phase, RaySpec
from tests.small import FORWARD, NOOP, RIGHT, start

SEES = ObservationSpec(rays=RaySpec(4, 30.0))
BLIND = ObservationSpec(rays=None)
NOW = datetime(2026, 3, 4, 5, 6, 7).astimezone()
NAMES = COLUMNS.split(",")
RESET = -1
RAYS = NAMES.index("CombinedRaycastData")
NEAR = 1.5e-7
"""Greatest difference of a ray's share of 200 m from PhysX's own, whose sweep is iterative."""


def at(name: str, x: float, z: float, **fields: object) -> Item:
    return Item.model_validate({"name": name, "positions": (Vector3(x=x, y=0, z=z),), **fields})


def zone(z: float, ident: str, *operations: Operation) -> Item:
    size = Vector3(x=10, y=0, z=2)
    fields = {"sizes": (size,), "rotations": (0.0,), "trigger_zone_id": (ident,)}
    return at("DataZone", 10, z, **fields, operations=operations)


def goal(x: float, z: float) -> Item:
    return at("GoodGoal", x, z, sizes=(Vector3(x=1, y=1, z=1),), rotations=(0.0,))


def play_out(
    folder: Path,
    arenas: Sequence[Arena],
    actions: Iterable[int],
    spec: ObservationSpec = BLIND,
    *,
    build: str = "4.x",
) -> list[str]:
    """Lines of the log of a process; the end of an episode ends the actions' turn for one step."""
    log = ObservationLog(folder, spec.rays, lambda: NOW)
    environment = SimEnvironment(spec, build, "unity", 0, log)
    source = ConfigSource(environment, ArenaConfig(arenas=dict(enumerate(arenas))), 0, log)
    turn = source.reset()
    for action in actions:
        if action == RESET:
            turn = source.reset()
        else:
            ended = turn.step.phase is Phase.LAST
            turn = source.restart() if ended else source.step(action)
        if turn.due:
            turn = source.restart()
    source.close()
    [path] = folder.iterdir()
    return path.read_text().splitlines()


def rows(lines: Sequence[str]) -> list[dict[str, str]]:
    """The rows by column, without the header and the lines between episodes."""
    return [dict(zip(NAMES, line.split(","), strict=True)) for line in lines[1:] if "," in line]


def column(lines: Sequence[str], name: str) -> list[str]:
    return [row[name] for row in rows(lines)]


UNMERGED = [Arena(time_limit=50, items=(goal(20, z), start(20, 20))) for z in (25.0, 15.0)]
ZONES = [
    Arena(
        time_limit=100,
        items=(start(10, 5), *(zone(5 + 5 * i, f"D{i}") for i in range(1, 6)), goal(10, 35)),
    )
]
OVERLAP = [
    Arena(time_limit=100, items=(start(10, 5), zone(10, "D1"), zone(10, "D2"), goal(10, 15)))
] * 2


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "arenas", "decisions"),
    [
        ("observations", UNMERGED, 9),
        ("datazones", ZONES, 28),
        ("overlappingDatazonesShouldCombineMessages_1", OVERLAP, 14),
    ],
)
def test_rows_are_those_of_the_real_build(
    data_dir: Path, tmp_path: Path, name: str, arenas: list[Arena], decisions: int
) -> None:
    """To the last digit, but for rays; after the end the real build writes on for a while."""
    real = (data_dir / "unity-logs" / f"Template_{name}.csv").read_text().splitlines()
    ours = play_out(tmp_path, arenas, [NOOP, *[FORWARD] * decisions], SEES)
    assert ours[0] == real[0] == COLUMNS
    assert ours[-1] == real[-1] == "Positive Goals Collected: 0"
    whole = real.index("Positive Goals Collected: 1")
    # Every line to the first of the next episode, and as many more as both have.
    count = min(len(ours), len(real)) - 1
    assert count > whole + 1
    for line, wanted in zip(ours[1:count], real[1:count], strict=True):
        cells, asked = line.split(","), wanted.split(",")
        assert cells[:RAYS] + cells[RAYS + 1 :] == asked[:RAYS] + asked[RAYS + 1 :]
        if len(cells) == 1:
            continue
        hits, sought = (part[RAYS].split(";") for part in (cells, asked))
        for hit, seen in zip(hits, sought, strict=True):
            (share, tag), (real_share, real_tag) = hit.split(":"), seen.split(":")
            assert tag == real_tag
            assert float(share) == pytest.approx(float(real_share), abs=NEAR)


def test_the_file_is_named_by_the_clock_and_never_written_over(tmp_path: Path) -> None:
    first = play_out(tmp_path / "logs", UNMERGED, [NOOP])
    log = ObservationLog(tmp_path / "logs", None, lambda: NOW)
    log.begin([0])
    log.close()
    names = sorted(path.name for path in (tmp_path / "logs").iterdir())
    assert names == ["Observations_04-03-26_0506.csv", "Observations_04-03-26_0506_2.csv"]
    assert (tmp_path / "logs" / names[0]).read_text().splitlines() == first
    assert (tmp_path / "logs" / names[1]).read_text().splitlines()[1:] == [
        "Positive Goals Collected: 0"
    ]


def test_rows_tell_decisions_from_other_steps(tmp_path: Path) -> None:
    """A step with a decision shows the action before it; another one that which acts."""
    lines = play_out(tmp_path, [Arena(items=(start(20, 20),))], [FORWARD, RIGHT, NOOP])
    moves = column(lines, "ActionForwardWithDescription")
    none, forward = "0 (No Movement)", "1 (Move Forward)"
    assert moves == [none, forward, forward, forward, *[none] * 6]
    turns = column(lines, "ActionRotateWithDescription")
    still, right = "0 (No Rotation)", "1 (Rotate Right)"
    assert turns == [*[still] * 4, right, right, right, *[still] * 3]
    assert column(lines, "Step") == [str(number) for number in range(1, 11)]
    assert set(column(lines, "CombinedRaycastData")) == {""}


def test_a_time_out_a_frozen_agent_and_no_goal_are_told(tmp_path: Path) -> None:
    waits = start(20, 20).model_copy(update={"frozen_agent_delays": (0.1,)})
    lines = play_out(tmp_path, [Arena(time_limit=2, items=(waits,))], [NOOP] * 5)
    assert column(lines, "WasAgentFrozen?")[:7] == ["Yes"] * 5 + ["No"] * 2
    first = [row for row in rows(lines) if row["Episode"] == "1"]
    assert [row["Health"] for row in first[:7]] == ["100"] * 6 + ["90"]
    assert lines[1 + len(first)] == "Positive Goals Collected: 0"


def test_operations_and_zones_are_told_in_the_row_after_them(tmp_path: Path) -> None:
    spawn = ToggleObject(spawnable=goal(30, 30), spawn_and_forget=True)
    items = (start(10, 5), zone(8, "A", spawn, FreezeAgent(freeze_steps=4)))
    ends = zone(20, "B", EndEpisode(reward=0.5))
    lines = play_out(tmp_path, [Arena(items=(*items, ends))], [FORWARD] * 26)
    told = rows(lines)
    [entered] = [row for row in told if row["DataZoneMessage"] == "Agent was in DataZone: A"]
    assert entered["WasSpawnerButtonTriggered?"] == "Yes"
    assert entered["CombinedSpawnerInfo"] == (
        "SpawnerButtonID:A; Position:10;0.25975;8; RewardType:GoodGoal"
    )
    after = told[told.index(entered) :]
    assert [row["WasAgentFrozen?"] for row in after[:5]] == ["Yes"] * 4 + ["No"]
    assert (after[0]["ZVelocity"], after[0]["XVelocity"]) == ("0", "0")
    [ended] = [row for row in told if row["CollectedRewardType"] == "End Episode Operation"]
    assert (ended["Episode"], ended["Step"]) == ("2", "1")
    assert lines[1 + told.index(ended)] == "Positive Goals Collected: 0"
