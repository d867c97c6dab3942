"""Shipped layouts beside `aaio`, live, on arenas that were made for none of them."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from animalcat.layouts.library import load_layout
from animalcat.v1 import sessions_pb2

from .conftest import FILES, Service

pytestmark = pytest.mark.asyncio(loop_scope="session")

# Walls all round the agent and a field of lava, which `aaio` knows nothing of.
ODD = b"""!ArenaConfig
arenas:
  0: !Arena
    t: 60
    items:
    - !Item {name: Agent, positions: [!Vector3 {x: 20, y: 0, z: 20}], rotations: [0]}
    - !Item {name: Wall, positions: [!Vector3 {x: 20, y: 0, z: 22}], sizes: [!Vector3 {x: 6, y: 3, z: 1}], rotations: [0]}
    - !Item {name: DeathZone, positions: [!Vector3 {x: 20, y: 0, z: 10}], sizes: [!Vector3 {x: 9, y: 0, z: 4}]}
    - !Item {name: GoodGoal, positions: [!Vector3 {x: 25, y: 0, z: 20}, !Vector3 {x: 15, y: 0, z: 20}]}
"""  # noqa: E501


async def imported(
    service: Service, name: str, files: list[tuple[str, bytes]], table: str
) -> sessions_pb2.Battery:
    async def frames() -> AsyncIterator[sessions_pb2.ImportBatteryRequest]:
        yield sessions_pb2.ImportBatteryRequest(header=sessions_pb2.BatteryHeader(name=name))
        for path, content in files:
            file = sessions_pb2.ArenaFile(path=path, content=content)
            yield sessions_pb2.ImportBatteryRequest(file=file)
        if table:
            own = sessions_pb2.FeatureTable(content=table.encode())
            yield sessions_pb2.ImportBatteryRequest(table=own)

    done = await service.done((await service.batteries.ImportBattery(frames())).operation)
    request = sessions_pb2.GetBatteryRequest(name=done.resource)
    return (await service.batteries.GetBattery(request)).battery


async def played(service: Service, session: str, episodes: int) -> sessions_pb2.Session:
    """The session after so many episodes straight ahead, before its last fit, which is slow."""
    async with service.agent(session) as stream:
        await stream.receive("welcome")
        for _ in range(episodes):
            await stream.episode(lambda _: 3)
        return await service.get(session)


async def test_one_capability_runs_on_any_battery(service: Service) -> None:
    layout = load_layout("one-capability")
    await imported(service, "odd", [(f"{k}.yml", ODD) for k in "abcd"], "")
    session = await service.create(4, battery="batteries/odd", layout="one-capability")
    found = await played(service, session, 3)
    assert (found.episodes, [c.name for c in found.capabilities]) == (3, ["ability"])
    assert found.capabilities[0].sd < layout.latents[layout.capabilities[0]].prior.sd


async def test_melting_pots_form_runs_on_a_battery_with_its_demands(service: Service) -> None:
    layout = load_layout("melting-pot")
    assert {outcome.kind for outcome in layout.outcomes} == {"score"}
    files = FILES[::3][:7]  # the goal is straight ahead
    lines = ["instance," + ",".join(f"{name} [1]" for name in layout.feature_names)]
    for k, (path, _) in enumerate(files):
        asked = (str(int((k >> bit) & 1)) for bit in range(len(layout.feature_names)))
        lines.append(",".join([path.removesuffix(".yaml"), *asked]))
    await imported(service, "pot", files, "\n".join(lines))
    session = await service.create(7, battery="batteries/pot", layout="melting-pot")
    found = await played(service, session, 6)
    scores = [dict(e.outcomes)["return"] for e in await service.list_episodes(session) if e.outcome]
    assert len(scores) == found.episodes == 6
    assert all(0.0 <= score <= 1.0 for score in scores)
    assert len(set(scores)) > 1
    means = {c.name: c.mean for c in found.capabilities}
    priors = {layout.latents[k].name: layout.latents[k].prior.mean for k in layout.capabilities}
    assert means.keys() == priors.keys()
    assert max(abs(means[name] - priors[name]) for name in means) > 0.02
