"""Puts steps into the form in which recordings keep them."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import cache
from hashlib import blake2b
from typing import Final, NamedTuple

from mcap.opcode import Opcode

from animalcat.envs.answers import Note
from animalcat.envs.types import Step
from animalcat.service.recording.channels import NANOSECONDS_PER_PHYSICS_STEP, Channel, log_time
from animalcat.service.recording.live import LiveFile
from animalcat.v1 import results_pb2
from animalcat.wire.codec import encode
from animalcat.wire.steps import ended_by_to_proto, observation_to_proto

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
_SHORT: Final = 1 << 7
"""Numbers below it take one byte in protobuf."""
_LONG: Final = 1 << 14
"""Numbers below it take at most two: the lower seven bits, marked as not the last, and the rest."""


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
    observation = step.observation
    if observation.state is not None:
        # The state follows from arena, seed and actions, and would outweigh all the rest.
        observation = observation._replace(state=None)
    message = results_pb2.RecordedStep(
        step=number,
        action=action,  # pyright: ignore[reportArgumentType]  None: not set
        reward=step.reward,
        observation=observation_to_proto(observation, camera=pixels),
        camera_digest=camera_digest(step),
    )
    if step.ended_by is not None:
        message.ended_by = ended_by_to_proto(step.ended_by)
    if notes:
        message.notes.extend(map(encode, notes))
    return message


class StepWriter:
    """Adds the steps of an episode to its recording; not safe across threads.

    A step is the one message that is made while an agent waits. So a usual one, of an agent that
    has rays alone, is not put together by protobuf but packed in place. When the simulator has
    been at work, nothing of this is in the processor's cache, so each object that is looked at
    costs more than it seems to: what is the same from step to step is looked at as one.
    """

    def __init__(self, file: LiveFile, decision_period: int, pixels: bool) -> None:
        """Begin, or go on after another writer.

        Args:
            file: The recording.
            decision_period: Physics steps per decision.
            pixels: Whether to keep the camera's images.
        """
        self._file = file
        self._period = decision_period
        self._pixels = pixels
        self._ticks = decision_period * NANOSECONDS_PER_PHYSICS_STEP
        self._form = _Form(0, 0.0, struct.pack_into, 0, b"", b"")

    def add(self, number: int, step: Step, action: int | None, notes: Sequence[Note]) -> None:
        """Add `recorded_step`.

        Args:
            number: Number of decisions taken so far.
            step: The step that the environment returned.
            action: The action that led to it; None at number 0.
            notes: The agent's notes since the previous step.

        Raises:
            OSError: There is no room for it.
        """
        _, reward, ended_by, (health, velocity, position, rays, _, _), _ = step
        until, of_reward, pack_into, size, earned, begun = self._form
        if number >= until or reward != of_reward or ended_by is not None or notes or not health:
            form = _form(number, step, notes)
            if form is None:
                recorded = recorded_step(number, step, action, pixels=self._pixels, notes=notes)
                data = recorded.SerializeToString(deterministic=True)
                self._file.add(OPCODE, message(Channel.STEP, number, self._period, data))
                return
            self._form = form
            _, _, pack_into, size, earned, begun = form
        assert rays is not None
        file = self._file
        start = file.size + 1
        if start + size > file.room:
            file.grow(start + size)
        time = number * self._ticks
        pack_into(
            file.memory, start, size - _LENGTH, _STEP, number, time, time,
            0x08, number if number < _SHORT else number << 1 & 0x7F00 | number & 0x7F | 0x80,
            0x10, action, earned, begun, rays.tobytes(),
            0x1D, health, b"\x22\x0c", velocity.tobytes(), b"\x2a\x0c", position.tobytes(),
        )  # fmt: skip
        file.end_record(OPCODE, size)


class _Form(NamedTuple):
    """How usual steps are packed; what the sensors see has one size in an episode.

    Attributes:
        until: Number of the first step that takes another form.
        reward: The reward of all.
        pack_into: Packs one.
        size: Bytes of one, without its first.
        earned: The field of the reward, which protobuf leaves out if it is 0.
        begun: Beginnings of the observation and of its rays.
    """

    until: int
    reward: float
    pack_into: Callable[..., None]
    size: int
    earned: bytes
    begun: bytes


def _form(number: int, step: Step, notes: Sequence[Note]) -> _Form | None:
    """Return the form of a step and of usual ones after it; None if this one is not usual."""
    _, reward, ended_by, (health, velocity, position, rays, camera, _), _ = step
    if (
        not 0 < number < _LONG
        or ended_by is not None
        or notes
        or not health  # which protobuf leaves out then
        or rays is None
        or camera is not None
        or not velocity.nbytes == position.nbytes == _VECTOR
    ):
        return None
    count, until = ("B", _SHORT) if number < _SHORT else ("H", _LONG)
    earned = _SCALAR.pack(0x1D, reward) if reward else b""
    begun = b"\x12" + _varint(rays.nbytes)
    begun = b"\x22" + _varint(len(begun) + rays.nbytes + _REST) + begun
    layout = _layout(count, len(earned), len(begun), rays.nbytes)
    return _Form(until, reward, layout.pack_into, layout.size, earned, begun)


@cache
def _layout(count: str, reward: int, begun: int, rays: int) -> struct.Struct:
    """How usual steps are packed, by the format of their number and the lengths of other parts."""
    return struct.Struct(
        f"{_MESSAGE.format}B{count}BB{reward}s{begun}s{rays}sBf2s{_VECTOR}s2s{_VECTOR}s"
    )


def _varint(number: int) -> bytes:
    """A whole number as protobuf writes it: seven bits a byte, the lowest first."""
    if number < _SHORT:
        return bytes((number,))
    return bytes((number & 0x7F | 0x80,)) + _varint(number >> 7)


def camera_digest(step: Step) -> bytes:
    """Return the BLAKE2b digest (16 bytes) of a step's camera image; empty without a camera."""
    image = step.observation.camera
    return b"" if image is None else blake2b(image.tobytes(), digest_size=16).digest()
