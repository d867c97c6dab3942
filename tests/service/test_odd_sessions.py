"""Sessions that cannot go well: each ends, says why, and still says it when it is over."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import grpc
import numpy as np
import pytest

from animalcat.layouts.adaptive.statuses import EXHAUSTED
from animalcat.layouts.library import text_of
from animalcat.service.measuring.measurement import Measurement
from animalcat.service.rpc.gateway import GrpcLink
from animalcat.service.session.link import AgentLeftError
from animalcat.v1 import gateway_pb2, results_pb2, sessions_pb2, types_pb2
from animalcat.values import Cause

pytestmark = pytest.mark.asyncio(loop_scope="session")

STAY, AHEAD = 0, 3


def arena(z: float, *, wall: bool = False, steps: int = 24) -> bytes:
    """The goal straight ahead of the agent; behind a wall nobody gets it."""
    items = [("Agent", 3.0, 1.0), ("GoodGoal", z, 2.0)]
    if wall:
        items.append(("Wall", z - 2.0, 20.0))
    text = "".join(
        f"""
    - !Item
      name: {name}
      positions: [!Vector3 {{x: 20, y: 0, z: {at}}}]
      rotations: [0]
      sizes: [!Vector3 {{x: {size}, y: {max(1.0, size / 2)}, z: 1}}]"""
        for name, at, size in items
    )
    head = f"!ArenaConfig\narenas:\n  0: !Arena\n    pass_mark: 0\n    t: {steps}\n    items:"
    return f"{head}{text}\n".encode()


def near(count: int) -> list[tuple[str, bytes]]:
    return [(f"navigation-{k:02}.yaml", arena(6 + k)) for k in range(count)]


def many(action: int, step: int = 0) -> gateway_pb2.EvaluateRequest:
    """The same action over and over, to the end of the episode."""
    return gateway_pb2.EvaluateRequest(
        action=gateway_pb2.Action(
            step=step, list=gateway_pb2.ActionList(actions=bytes([action]), repeat=1000)
        )
    )


async def play_constantly(service: Any, session: str, action: int) -> sessions_pb2.Session:
    """Let an agent play that always does the same."""
    async with service.agent(session) as stream:
        await stream.receive("welcome")
        while not isinstance(frame := await stream.receive(), gateway_pb2.SessionEnd):
            assert not isinstance(frame, types_pb2.Error), frame
            if isinstance(frame, gateway_pb2.EpisodeEnd):
                continue
            step = 0 if isinstance(frame, gateway_pb2.EpisodeStart) else frame.step
            await stream.send(many(action, step))
    return await service.get(session)


async def make_session(
    service: Any, name: str, arenas: list[tuple[str, bytes]], **changes: Any
) -> sessions_pb2.Session:
    await service.import_files(arenas, name)
    fields = {"battery": f"batteries/{name}", "certify": False, **changes}
    return await service.get(await service.create(**fields))


async def profile_of(service: Any, session: str) -> dict[str, Any]:
    request = results_pb2.GetProfileRequest(name=f"{session}/profile")
    return json.loads((await service.profiles.GetProfile(request)).profile_json)


def rule(episodes: int = 100, **rest: Any) -> sessions_pb2.StoppingRule:
    fields: dict[str, Any] = {"target_sd": 0.0, "futility": 0.0, **rest}
    return sessions_pb2.StoppingRule(max_episodes=episodes, **fields)


async def test_an_exhausted_battery_ends_the_session(service: Any) -> None:
    session = await make_session(service, "three", near(3), stop=rule(target_sd=0.01))
    found = await play_constantly(service, session.name, AHEAD)
    assert found.state == sessions_pb2.SESSION_STATE_FINISHED
    assert (found.episodes, found.reason) == (3, EXHAUSTED)
    assert {c.status for c in found.capabilities} == {sessions_pb2.MEASURING_STATUS_USED_UP}


@pytest.mark.parametrize(("action", "successes"), [(AHEAD, 6), (STAY, 0)])
async def test_an_agent_that_always_or_never_succeeds(
    service: Any, action: int, successes: int
) -> None:
    session = await make_session(service, "six", near(6), stop=rule(), seed=action)
    found = await play_constantly(service, session.name, action)
    assert (found.state, found.successes) == (sessions_pb2.SESSION_STATE_FINISHED, successes)
    profile = await profile_of(service, session.name)
    (note,) = profile["diagnostics"]["notes"]
    assert f"all {found.episodes} outcomes are {bool(successes):d}" in note
    assert "the evidence is from one side only" in note


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"stop": rule(target_sd=1.5)}, r"target_sd 1.5 is out of range; give 0 to less than 1"),
        (
            {"stop": rule(target_width=0.5, combine=sessions_pb2.COMBINE_ALL)},
            "target_width needs a target_sd",
        ),
        (
            {"stop": rule(combine=99)},
            "stop.combine: 99 is unknown to this server; it knows any, all",
        ),
        ({"stop": rule(targets={"courage": 0.1})}, "courage: no capability"),
        (
            {
                "stop": rule(combine=sessions_pb2.COMBINE_ALL, target_sd=0.1),
                "policy": sessions_pb2.SelectionPolicy(exposures=0),
            },
            "may never end",
        ),
    ],
)
async def test_contradictory_rules_are_refused_at_the_start(
    service: Any, changes: dict[str, Any], words: str
) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await make_session(service, "three", near(3), **changes)
    assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert words in str(refused.value.details())


async def test_a_target_out_of_reach_is_said_while_it_plays_and_ever_after(service: Any) -> None:
    session = await make_session(service, "three", near(3), stop=rule(target_sd=0.02))
    name = session.name
    found = await play_constantly(service, name, AHEAD)
    for c in found.capabilities:
        assert c.limit.startswith(
            "cannot be reached with this battery for 19 of 20 agents drawn from the layout's priors"
        )
        assert c.best_sd > 0.02 * 1.9
    profile = await profile_of(service, name)
    assert profile["provenance"]["limits"] == {c.name: c.limit for c in found.capabilities}
    stored = service.running.engines.parts.store.session(name.split("/")[1])
    assert [c.limit for c in stored.capabilities] == [c.limit for c in found.capabilities]


async def test_a_session_ends_well_though_nobody_knows_what_its_battery_can_tell(
    service: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def singular(self: Measurement) -> None:
        raise np.linalg.LinAlgError("Singular matrix")

    monkeypatch.setattr(Measurement, "find_reach", singular)
    session = await make_session(service, "three", near(3), stop=rule(2))
    found = await play_constantly(service, session.name, AHEAD)
    assert found.state == sessions_pb2.SESSION_STATE_FINISHED
    assert (await profile_of(service, session.name))["provenance"]["limits"] == {}
    assert "Singular matrix" in caplog.text


async def contradict_layout(service: Any, **changes: Any) -> sessions_pb2.Session:
    """Of arenas that ask the same, the agent passes those of one paradigm, and no other."""
    open_ones = [(f"01-01-{k:02}.yaml", arena(8 + k % 5 + k / 100)) for k in range(16)]
    walled = [(f"01-02-{k:02}.yaml", arena(8 + k % 5 + k / 100, wall=True)) for k in range(16)]
    # The layout of AAIO, were it said to describe arenas with walls in the way too.
    blind = text_of("aaio").replace("name: aaio", "name: blind")
    blind = blind.replace("  wallsInWay: {above: 0}\n", "")
    own = {"layout": "", "layout_definition": blind}
    return await make_session(service, "contradicted", open_ones + walled, **own, **changes)


@pytest.mark.slow
async def test_what_the_alarm_found_is_known_when_the_session_is_over(service: Any) -> None:
    session = await contradict_layout(service, stop=rule(32, stop_at_alarm=True))
    found = await play_constantly(service, session.name, AHEAD)
    assert found.reason == "layout contradicted: it does not describe this agent"
    assert found.misfit.startswith("since episode ")
    assert "paradigm is 01-0" in found.misfit
    assert {c.status for c in found.capabilities} == {
        sessions_pb2.MEASURING_STATUS_LAYOUT_CONTRADICTED
    }
    stored = service.running.engines.parts.store.session(session.name.split("/")[1])
    assert stored.misfit == found.misfit


async def test_a_session_that_has_enough_ends_without_its_agent(
    service: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent knows how many episodes there are, and may leave the moment the last one ends."""

    async def leave_it(link: GrpcLink, number: int, *_: Any) -> None:
        raise AgentLeftError(Cause.AGENT_LEFT)

    session = await service.create(2, seed=31, certify=False)
    found = await service.get(session)
    for number, state in enumerate(("WAITING", "FINISHED")):
        with monkeypatch.context() as leaves:
            leaves.setattr(GrpcLink, "end", leave_it)
            async with service.agent(session) as stream:
                await stream.receive("welcome")
                assert (await stream.receive("episode_start")).episode == number
                await stream.send(many(AHEAD))
                found = await service.settled(session, state, asyncio.sleep)
    assert (found.episodes, found.reason) == (2, "the budget of 2 episodes is used up")
