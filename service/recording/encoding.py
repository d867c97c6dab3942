"""Puts steps into the form in which recordings keep them."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import cache, lru_cache
from hashlib import blake2b
from typing import Final

from mcap.opcode import Opcode

from animalcat.envs.agents.base import Note
from animalcat.envs.types import Step
from animalcat.service.recording.channels import NANOSECONDS_PER_PHYSICS_STEP, Channel, log_time
from animalcat.service.recording.live import LiveFile
from animalcat.v1 import results_pb2, types_pb2
from animalcat.wire import ended_by_to_proto, observation_to_proto

OPCODE: Final = int(Opcode.MESSAGE)
"""First byte of an mcap message."""

_MESSAGE: Final = struct.Struct("<QHIQQ")
"""What follows it: length of the rest, channel, sequence, log time, publish time."""
_LENGTH: Final = 8
"""Bytes of that length, which it does not count."""
_SCALAR: Final = struct.Struct("<Bf")
"""A field of protobuf that holds a float32: tag and value."""
_VECTOR: Final = 12
"""Bytes of velocity and of position: three float32."""
_REST: Final = _SCALAR.size + 2 * (2 + _VECTOR)
"""Bytes of an observation after its rays: health, velocity and position with their tags."""
_STEP: Final = Channel.STEP.number


def message(channel: Channel, number: int, decision_period: int, data: bytes) -> bytes:
    """Return an mcap message without its first byte.

    Args:
        channel: Where it belongs.
        number: Number of decisions taken so far.
        decision_period: Physics steps per decision.
        data: Its content.
    """
    time = log_time(number, decision_period)
    length = _MESSAGE.size - _LENGTH + len(data)
    return _MESSAGE.pack(length, channel.number, number, time, time) + data


def recorded_step(
    number: int, step: Step, action: int | None, *, pixels: bool, notes: Sequence[Note] = ()
) -> results_pb2.RecordedStep:
    """Return the recorded form of a step.

    Args:
        number: Number of decisions taken so far.
        step: The step that the environment returned.
        action: The action that led to it; None at number 0.
        pixels: Whether to keep the camera's image; its digest is always kept.
        notes: The agent's notes since the previous step.
    """
    seen = step.observation
    if seen.state is not None:
        # The state follows from arena, seed and actions, and would outweigh all the rest.
        seen = seen._replace(state=None)
    message = results_pb2.RecordedStep(
        step=number,
        action=action,  # pyright: ignore[reportArgumentType]  None: not set
        reward=step.reward,
        observation=observation_to_proto(seen, camera=pixels),
        camera_digest=camera_digest(step),
    )
    if step.ended_by is not None:
        message.ended_by = ended_by_to_proto(step.ended_by)
    if notes:
        message.notes.extend(types_pb2.Note(**asdict(note)) for note in notes)
    return message


def add_step(
    file: LiveFile,
    number: int,
    decision_period: int,
    step: Step,
    action: int | None,
    pixels: bool,
    notes: Sequence[Note] = (),
) -> None:
    """Add `recorded_step` to a recording.

    This is the one message that is made while an agent waits. So a usual step, of an agent that has
    rays alone, is not put together by protobuf but packed in place, in a fifth of the time.

    Args:
        file: The recording.
        number: As for `recorded_step`, as are all others.
        decision_period: Physics steps per decision.
        step: The step.
        action: The action.
        pixels: Whether to keep the image.
        notes: The notes.

    Raises:
        OSError: There is no room for it.
    """
    _, reward, ended_by, (health, velocity, position, rays, camera, _) = step
    if (
        rays is None
        or camera is not None
        or action is None
        or ended_by is not None
        or notes
        or not (number and health and velocity.nbytes == position.nbytes == _VECTOR)
    ):
        made = recorded_step(number, step, action, pixels=pixels, notes=notes)
        data = made.SerializeToString(deterministic=True)
        file.add(OPCODE, message(Channel.STEP, number, decision_period, data))
        return
    seen = rays.tobytes()
    count = _varint(number)
    earned = _reward(reward)
    pack_into, size, begun = _layout(len(count), len(earned), len(seen))
    time = number * decision_period * NANOSECONDS_PER_PHYSICS_STEP
    memory, start = file.reserve(size)
    pack_into(
        memory, start, size - _LENGTH, _STEP, number, time, time, 0x08, count, 0x10, action, earned,
        begun, seen, 0x1D, health, b"\x22\x0c", velocity.tobytes(), b"\x2a\x0c", position.tobytes(),
    )  # fmt: skip
    file.commit(OPCODE, size)


@cache
def _layout(count: int, reward: int, rays: int) -> tuple[Callable[..., None], int, bytes]:
    """How usual steps are packed, by the lengths of the parts that differ.

    Args:
        count: Bytes of the step's number.
        reward: Bytes of the reward with its tag.
        rays: Bytes of the rays.

    Returns:
        What packs them, how many bytes that makes, and the beginnings of the observation and its
        rays.
    """
    begun = b"\x12" + _varint(rays)
    begun = b"\x22" + _varint(len(begun) + rays + _REST) + begun
    layout = struct.Struct(
        f"{_MESSAGE.format}B{count}sBB{reward}s{len(begun)}s{rays}sBf2s{_VECTOR}s2s{_VECTOR}s"
    )
    return layout.pack_into, layout.size, begun


@lru_cache(maxsize=1024)
def _reward(reward: float) -> bytes:
    """The field of the reward, which protobuf leaves out where there is none."""
    return _SCALAR.pack(0x1D, reward) if reward else b""


@lru_cache(maxsize=4096)
def _varint(number: int) -> bytes:
    """A whole number as protobuf writes it: seven bits a byte, the lowest first."""
    if number < 0x80:
        return bytes((number,))
    if number < 0x4000:  # also found by what follows, in more time
        return bytes((number & 0x7F | 0x80, number >> 7))
    return bytes((number & 0x7F | 0x80,)) + _varint(number >> 7)


def camera_digest(step: Step) -> bytes:
    """Return the BLAKE2b digest (16 bytes) of a step's camera image; empty without a camera."""
    image = step.observation.camera
    return b"" if image is None else blake2b(image.tobytes(), digest_size=16).digest()
