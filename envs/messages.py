"""Messages between a worker and its parent: steps as packed numbers, the rest as JSON, no pickle.

In both directions a message is a header (`<IB`: length of the body, kind) and the body. The worker
answers every request with one message, in order. While an agent plays over a connection of its own,
the worker sends one message unasked: when the agent has played to the end, or goes on through the
parent.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import asdict
from enum import IntEnum
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from animalcat.envs.types import (
    STATE_COLUMNS,
    CameraSpec,
    EndedBy,
    Observation,
    ObservationSpec,
    Phase,
    RaySpec,
    Step,
)

HEADER: Final = struct.Struct("<IB")
"""Length of the body in bytes, and kind of the message."""

SECONDS: Final = struct.Struct("<d")
"""A number of seconds."""
_STEP: Final = struct.Struct("<BB2xIdd3f3f")
_ROWS: Final = struct.Struct("<I")
# Phase, why it ended (0: it did not), marked place that was reached, reward, health, velocity,
# position; arrays follow.


class MessageKind(IntEnum):
    """The kind of a message; those below 16 are requests, the others answers."""

    OPEN = 1
    """JSON {backend, spec}: make the environment; answered by DONE with its versions."""
    LOAD = 2
    """JSON {arena, seed, places}: arena is YAML with the arena of an episode, and those that it
    merges with; places are marked ones, as lists; answered by STEPS with one step."""
    STEP = 3
    """One byte an action; answered by STEPS, fewer than the actions where one is LAST."""
    PLAY = 4
    """JSON of `session.player.Terms`: play the episode with its agent; answered by OFFERED, or by
    PLAYED where the recording cannot be written. Until PLAYED, only the next three may follow."""
    TURN = 5
    """What `session.player.pack_answer` packs, an answer that the agent gave the parent; answered
    by ASK or PLAYED."""
    RECALL = 6
    """Nothing: the agent goes on by the parent, whether it has come or not; ASK follows, unless it
    or PLAYED is on its way."""
    STOP = 7
    """A double, the seconds that the agent has had for the action that is due, below 0 where the
    worker looks at the clock: end the play; PLAYED follows, unless it is on its way."""
    DONE = 16
    """Nothing; upon OPEN, JSON of what else than this installation plays: name -> version."""
    STEPS = 17
    """Packed steps."""
    ERROR = 18
    """JSON {arena: bool, message}: arena is true where the arena was at fault, not the backend."""
    OFFERED = 19
    """Text: where the worker waits for the agent; empty where the agent has to go by the parent."""
    ASK = 20
    """What `session.player.Question` packs, for the agent."""
    PLAYED = 21
    """What `session.player.PlayReport` packs, of an episode that is played no more."""


class Reply(NamedTuple):
    """An answer of a worker that plays with an agent.

    Attributes:
        kind: OFFERED, ASK or PLAYED.
        body: What it says.
    """

    kind: MessageKind
    body: bytes


def pack_steps(steps: Sequence[Step]) -> bytes:
    """Pack steps as bytes: for each a fixed part, then rays, camera and state if there are any.

    Rays are float32, the camera is uint8, and the state float32 after its number of rows.
    """
    parts: list[bytes] = []
    for step in steps:
        seen = step.observation
        parts.append(
            _STEP.pack(
                step.phase,
                step.ended_by.number if step.ended_by else 0,
                step.reached,
                step.reward,
                seen.health,
                *seen.velocity.tolist(),
                *seen.position.tolist(),
            )
        )
        if seen.rays is not None:
            parts.append(seen.rays.tobytes())
        if seen.camera is not None:
            parts.append(seen.camera.tobytes())
        if seen.state is not None:
            parts += [_ROWS.pack(len(seen.state)), seen.state.tobytes()]
    return b"".join(parts)


def unpack_steps(data: bytes, spec: ObservationSpec) -> list[Step]:
    """Unpack what `pack_steps` packed; the arrays are read-only views of `data`.

    Raises:
        ValueError: `data` is not a whole number of steps of this specification.
    """
    rays = spec.rays.size if spec.rays else 0
    shape = spec.camera.shape if spec.camera else (0, 0, 0)
    pixels = shape[0] * shape[1] * shape[2]
    size = _STEP.size + 4 * rays + pixels
    if len(data) % size and not spec.privileged:
        raise ValueError(f"{len(data)} bytes are not a whole number of steps of {size} bytes")
    steps: list[Step] = []
    start = 0
    while start < len(data):
        phase, ended_by, reached, reward, health = _STEP.unpack_from(data, start)[:5]
        vectors = np.frombuffer(data, np.float32, 6, start + _STEP.size - 24)
        after = start + _STEP.size
        start += size
        state = None
        if spec.privileged:
            state = _unpack_state(data, start)
            start += _ROWS.size + state.nbytes
        observation = Observation(
            health=health,
            velocity=vectors[:3],
            position=vectors[3:],
            rays=np.frombuffer(data, np.float32, rays, after) if rays else None,
            camera=(
                np.frombuffer(data, np.uint8, pixels, after + 4 * rays).reshape(shape)
                if pixels
                else None
            ),
            state=state,
        )
        cause = EndedBy.of(ended_by)
        steps.append(Step(Phase(phase), reward, cause, observation, reached))
    return steps


def _unpack_state(data: bytes, start: int) -> npt.NDArray[np.float32]:
    """The state that begins at a byte.

    Raises:
        ValueError: It is not all there.
    """
    try:
        (rows,) = _ROWS.unpack_from(data, start)
    except struct.error as error:
        raise ValueError(f"the state at byte {start} is cut off") from error
    numbers = np.frombuffer(data, np.float32, rows * STATE_COLUMNS, start + _ROWS.size)
    return numbers.reshape(rows, STATE_COLUMNS)


def spec_to_json(spec: ObservationSpec) -> dict[str, Any]:
    """Convert a specification to plain data."""
    return asdict(spec)


def spec_from_json(data: dict[str, Any]) -> ObservationSpec:
    """Make a specification from what `spec_to_json` returned."""
    camera, rays = data["camera"], data["rays"]
    return ObservationSpec(
        CameraSpec(**camera) if camera else None,
        RaySpec(**rays) if rays else None,
        data["decision_period"],
        data.get("privileged", False),
    )
