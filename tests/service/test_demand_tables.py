"""Batteries of tables of demands, which have no arenas."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import grpc
import pandas as pd
import pytest

import animalcat
from animalcat.arena_configs.demand_text import demand_text
from animalcat.arena_configs.model import ArenaError
from animalcat.envs.places import watchable
from animalcat.envs.sim.environment import SimEnvironment
from animalcat.envs.types import ObservationSpec
from animalcat.envs.worker import begin
from animalcat.layouts.model.tables import TableError
from animalcat.service.batteries.battery import Battery
from animalcat.service.batteries.demand_table import import_demands
from animalcat.service.batteries.writing import digest_on_disk
from animalcat.v1 import sessions_pb2

from .conftest import Service

pytestmark = pytest.mark.asyncio(loop_scope="session")

HEAD = "instance,rewardDistance [cm],noise [dB],suite\n"


def made(content: str | bytes | pd.DataFrame, folder: Path) -> Battery:
    """The battery of a table."""
    table = folder / "table"
    if isinstance(content, pd.DataFrame):
        content.to_parquet(table)
    else:
        table.write_bytes(content if isinstance(content, bytes) else content.encode())
    with table.open("rb") as file:
        return import_demands(file, 3, folder / "batteries")


async def test_rows_are_instances_in_the_units_of_what_is_measured(tmp_path: Path) -> None:
    battery = made(HEAD + "b-1-x,150,3,s\na/x,200,,\n", tmp_path)
    assert [one.name for one in battery.instances] == ["a/x", "b-1-x"]
    first, second = battery.instances
    assert (first.features, first.missing) == (
        {"rewardDistance": 2.0},
        {"noise": "empty in the table"},
    )
    assert (second.features, second.suite) == ({"rewardDistance": 1.5, "noise": 3.0}, "s")
    assert (first.paradigm, second.paradigm) == ("a", "b-1")
    assert battery.units == {"rewardDistance": "m", "noise": "dB"}
    assert not battery.has_arenas
    assert digest_on_disk(battery.folder) == battery.digest
    assert [file.name for file in battery.folder.iterdir()] == ["battery.parquet"]
    with pytest.raises(FileNotFoundError, match="a/x has demands and no arena"):
        battery.arena_yaml(first)
    again = made(HEAD + "a/x,200,,\nb-1-x,150,3,s\n", tmp_path)
    assert again.digest == battery.digest
    assert made(HEAD + "a/x,201,,\nb-1-x,150,3,s\n", tmp_path).digest != battery.digest
    frame = pd.DataFrame(
        {
            "rewardDistance [cm]": [150, 200],
            "noise [dB]": [3.0, float("nan")],
            "suite": ["s", None],
        },
        pd.Index(["b-1-x", "a/x"], name="instance"),
    )
    assert made(frame, tmp_path).digest == battery.digest


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (HEAD + "a,x,1,\n", "column #1.*invalid value 'x'"),
        (HEAD + "a,1,1,\na,2,2,\n", "'a' has two rows"),
        (HEAD + "a,1,1,\n,2,2,\n", "row 2: the column instance is empty"),
        (HEAD + "=a,1,1,\n", "begins with ="),
        (HEAD + "a/../b,1,1,\n", "neither empty"),
        (HEAD + "a,1,inf,\n", "'a', column noise .dB.: it is no finite number"),
        (HEAD, "no rows"),
        ("instance,rewardDistance [dB]\na,1\n", "dB"),
        ("instance,choices\na,right 1 2 3\n", "it is for arenas"),
        ("instance,suite [m],x\na,b,1\n", "has no unit"),
        ("instance,suite\na,b\n", "no column of a feature"),
        ("instance,x,x\na,1,1\n", "there 2 times"),
        ("name,x\na,1\n", "no column `instance`"),
        ("", "empty"),
        (b"\xff\xfe\x00bad", "neither Parquet nor CSV"),
        (b"PAR1 and no more", "no whole Parquet"),
        (pd.DataFrame({"instance": ["a"], "x": [1.0]}, [7]), "row numbers"),
    ],
)
async def test_what_is_no_table_of_demands_is_refused_with_its_place(
    content: Any, said: str, tmp_path: Path
) -> None:
    with pytest.raises(TableError, match=said):
        made(content, tmp_path)


async def test_a_table_comes_in_pieces_and_only_a_plugin_plays_what_has_no_arena(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("animalcat.client.async_client._PIECE", 1000)
    text = io.StringIO("instance,rewardDistance,rewardSize,rewardBehind,XPos,rewards\n")
    text.seek(0, io.SEEK_END)
    for k in range(300):
        text.write(f"coin-{k:03},{5 + k / 10},1,0,1,1\n")
    (tmp_path / "vectors.csv").write_text(text.getvalue())
    async with animalcat.aconnect(service.running.address) as client:
        battery = await client.import_demands(tmp_path / "vectors.csv")
        assert (battery.id, battery.instances) == ("vectors", 300)
        (first, *rest) = [one async for one in client.instances("vectors", arenas=True)]
    assert (first.name, first.arena_yaml, len(rest)) == ("coin-000", "", 299)
    assert first.features["rewardDistance"] == 5.0
    with pytest.raises(ArenaError, match="coin-000 has demands and no arena"):
        begin(watchable(SimEnvironment(ObservationSpec())), demand_text("coin-000", {"x": 1.0}), 0)
    for changed, said in (
        ({}, "has no arenas, and the backend sim plays arenas alone"),
        ({"backend": "coins"}, "coins"),
    ):
        spec = sessions_pb2.SessionSpec(
            agent="tests:agent", battery="batteries/vectors", layout="aaio", **changed
        )
        with pytest.raises(grpc.aio.AioRpcError, match=said):
            await service.sessions.CreateSession(sessions_pb2.CreateSessionRequest(spec=spec))
