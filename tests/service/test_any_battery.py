"""Shipped layouts beside `aaio`, live, on arenas that were made for none of them."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from animalcat.layouts.library import load_layout
from animalcat.v1 import sessions_pb2

from .conftest import FILES, Service

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def import_one(
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


async def play_out(service: Service, session: str, episodes: int) -> sessions_pb2.Session:
    """The session after so many episodes straight ahead, before its last fit, which is slow."""
    async with service.agent(session) as stream:
        await stream.receive("welcome")
        for _ in range(episodes):
            await stream.episode(lambda _: 3)
        return await service.get(session)


async def test_melting_pots_form_runs_on_a_battery_with_its_demands(service: Service) -> None:
    layout = load_layout("melting-pot")
    assert {outcome.kind for outcome in layout.outcomes} == {"score"}
    files = FILES[::3][:7]  # the goal is straight ahead
    lines = ["instance," + ",".join(f"{name} [1]" for name in layout.feature_names)]
    for k, (path, _) in enumerate(files):
        asked = (str(int((k >> bit) & 1)) for bit in range(len(layout.feature_names)))
        lines.append(",".join([path.removesuffix(".yaml"), *asked]))
    await import_one(service, "pot", files, "\n".join(lines))
    session = await service.create(7, battery="batteries/pot", layout="melting-pot")
    found = await play_out(service, session, 6)
    scores = [dict(e.outcomes)["return"] for e in await service.list_episodes(session) if e.outcome]
    assert len(scores) == found.episodes == 6
    assert all(0.0 <= score <= 1.0 for score in scores)
    assert len(set(scores)) > 1
    means = {c.name: c.mean for c in found.capabilities}
    priors = {layout.latents[k].name: layout.latents[k].prior.mean for k in layout.capabilities}
    assert means.keys() == priors.keys()
    assert max(abs(means[name] - priors[name]) for name in means) > 0.02
