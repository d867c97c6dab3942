"""Describes an episode's present state for privileged agents."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from animalcat.arena_configs.tags import LOGGED_TAGS
from animalcat.envs.sim.physics import AGENT_RADIUS
from animalcat.envs.sim.scene import Shape
from animalcat.envs.state import AGENT, Column
from animalcat.envs.types import STATE_COLUMNS
from animalcat.portable import scalars

if TYPE_CHECKING:
    from animalcat.envs.sim.world import World
    from animalcat.envs.state import State


def state_of(world: World) -> State:
    """What is in the arena now; see `animalcat.envs.state`."""
    scene, stage = world.scene, world.stage
    rows = np.flatnonzero(scene.active)
    state = np.zeros((len(rows) + 1, STATE_COLUMNS), np.float32)
    things = state[1:]
    things[:, Column.NUMBER] = rows
    things[:, Column.SHAPE] = scene.kind[rows]
    things[:, Column.TAG] = scene.tag[rows]
    things[:, Column.CENTER : Column.CENTER + 3] = scene.center[rows]
    things[:, Column.HALF : Column.HALF + 3] = scene.half[rows]
    things[:, Column.ROTATION : Column.ROTATION + 9] = scene.rotation[rows].reshape(-1, 9)
    things[:, Column.HIDES] = (scene.color[rows, 3] >= 1.0) & ~scene.overlap_ok[rows]
    place = {row: k + 1 for k, row in enumerate(rows.tolist())}
    for row, pickup in stage.pickups():
        if row in place:
            ends = pickup.ends or pickup.needs == 1.0
            state[place[row], Column.HIDES] = 0.0
            state[place[row], Column.REWARD : Column.FINAL + 1] = (
                pickup.reward,
                ends,
                pickup.reward,
            )
    for prop in stage.props:
        item, kind = prop.thing.item, prop.thing.kind
        if kind.reward in ("size", "value") and prop.rows[0] in place:
            final, rate = item.final_values[0], item.change_rates[0]
            state[place[prop.rows[0]], Column.FINAL : Column.WAIT + 1] = (
                final if kind.reward == "size" else min(final, prop.thing.reward),
                rate if kind.reward == "size" else -abs(rate),
                max(0.0, item.delays[0] - world.episode.steps),
            )
    agent = world.agent
    sin, cos = scalars.sin(math.radians(agent.yaw)), scalars.cos(math.radians(agent.yaw))
    about = state[AGENT]
    about[Column.NUMBER] = -1
    about[Column.SHAPE] = Shape.SPHERE
    about[Column.TAG] = LOGGED_TAGS.index("agent")
    about[Column.CENTER : Column.CENTER + 3] = agent.position
    about[Column.HALF : Column.HALF + 3] = AGENT_RADIUS
    about[Column.ROTATION : Column.ROTATION + 9] = (cos, 0, sin, 0, 1, 0, -sin, 0, cos)
    about[Column.WAIT] = world.episode.frozen_next
    about[Column.HIDES] = world.dark
    return state
