"""A client that knows the protos and nothing else sees food, and finds its way to it."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest

from animalcat.v1 import gateway_pb2, sessions_pb2, types_pb2

from .conftest import action

ROOT = Path(__file__).resolve().parents[2]
ARENA = """!ArenaConfig
arenas:
  0: !Arena
    pass_mark: 0
    t: 1000
    items:
    - !Item
      name: Agent
      positions: [!Vector3 {{x: 20, y: 0, z: 20}}]
      rotations: [0]
    - !Item
      name: {food}
      positions: [!Vector3 {{x: {x}, y: 0, z: {z}}}]
      sizes: [!Vector3 {{x: 2, y: 2, z: 2}}]
"""
FOOD = {"goodGoal": "GoodGoal", "goodGoalMulti": "GoodGoalMulti"}
PLACES = {"right": (34, 26), "left": (8, 24), "behind": (21, 6)}
RIGHT, LEFT, FORWARD, FORWARD_RIGHT, FORWARD_LEFT = 1, 2, 3, 4, 5


def angle_to_food(
    spec: types_pb2.ObservationSpec, observation: types_pb2.Observation
) -> float | None:
    """Degrees to the right of the heading of the nearest food; None where none is seen."""
    width = spec.rays.tags + 2
    numbers = struct.unpack(f"<{len(observation.rays) // 4}f", observation.rays)
    assert len(numbers) == width * (2 * spec.rays.per_side + 1)
    spacing, seen = spec.rays.max_degrees / spec.rays.per_side, list[tuple[float, float]]()
    for k in range(2 * spec.rays.per_side + 1):
        *tags, missed, distance = numbers[k * width : (k + 1) * width]
        assert sum(tags) + missed <= 1
        assert not missed or distance == 1
        side = (k + 1) // 2 if k % 2 else -(k // 2)
        if any(tags) and spec.ray_tags[tags.index(1)] in FOOD:
            seen.append((distance * 200, side * spacing))
    return min(seen)[1] if seen else None


def towards(angle: float | None) -> int:
    if angle is None or angle > 20:
        return RIGHT
    if angle < -20:
        return LEFT
    return FORWARD if angle == 0 else FORWARD_RIGHT if angle > 0 else FORWARD_LEFT


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("tags", [12, 18])
async def test_food_is_found_by_what_the_wire_says(service: Any, tags: int) -> None:
    files = [
        (f"{tag}-{place}.yaml", ARENA.format(food=food, x=x, z=z).encode())
        for tag, food in FOOD.items()
        for place, (x, z) in PLACES.items()
    ]
    await service.import_files(files, "food")
    rays = types_pb2.RaySpec(per_side=5, tags=tags)
    session = await service.create(
        len(files),
        battery="batteries/food",
        policy=sessions_pb2.SelectionPolicy(name=sessions_pb2.POLICY_NAME_RANDOM, exposures=1),
        observation_spec=types_pb2.ObservationSpec(rays=rays),
    )
    async with service.agent(session) as stream:
        spec = (await stream.receive("welcome")).observation_spec
        assert len(spec.ray_tags) == spec.rays.tags == tags
        while not isinstance(frame := await stream.receive(), gateway_pb2.SessionEnd):
            if isinstance(frame, gateway_pb2.EpisodeEnd):
                continue
            angle = angle_to_food(spec, frame.observation)
            step = frame.step if isinstance(frame, gateway_pb2.Ask) else 0
            await stream.send(action(step, towards(angle)))
    outcomes = [episode.outcome for episode in await service.list_episodes(session)]
    assert outcomes == [types_pb2.OUTCOME_SUCCESS] * len(files)


@pytest.mark.asyncio(loop_scope="session")
async def test_the_names_of_tags_are_told_and_not_asked_for(service: Any) -> None:
    rays = types_pb2.RaySpec(tags=18)
    asked = types_pb2.ObservationSpec(rays=rays, ray_tags=["something", "else"])
    session = await service.get(await service.create(observation_spec=asked))
    told = list(session.spec.observation_spec.ray_tags)
    camera = types_pb2.ObservationSpec(camera=types_pb2.CameraSpec())
    seeing = await service.get(await service.create(observation_spec=camera))
    assert not seeing.spec.observation_spec.ray_tags
    # What is told is what proto and page say, in the same order.
    words = (ROOT / "protos" / "animalcat" / "v1" / "types.proto").read_text()
    page = (ROOT / "docs" / "protocol.md").read_text()
    places = [words.index(f" {number} {tag}") for number, tag in enumerate(told)]
    assert places == sorted(places)
    listed = page[page.index("`arena`") : page.index("`agent`") + len("`agent`")]
    assert listed.split("`")[1::2] == told
