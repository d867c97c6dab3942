"""Puts observations and recorded steps on the wire; `codec` does so for other values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from animalcat.envs.answers import Note
from animalcat.envs.types import (
    STATE_COLUMNS,
    EndedBy,
    Observation,
    ObservationSpec,
)
from animalcat.v1 import results_pb2, types_pb2
from animalcat.values import RecordedStep
from animalcat.wire.codec import decode, encode

_Scalar = TypeVar("_Scalar", np.uint8, np.float32)


def spec_to_proto(spec: ObservationSpec) -> types_pb2.ObservationSpec:
    """The wire form of an observation specification; angles become float32."""
    return encode(spec)


def spec_from_proto(message: types_pb2.ObservationSpec) -> ObservationSpec:
    """The specification that a message holds; what is not set has its default.

    A camera or rays that are not set are not there.

    Raises:
        ValueError: A number is out of its range; the message says which.
    """
    return decode(ObservationSpec, message, strict=True)


def observation_to_proto(observation: Observation, *, camera: bool = True) -> types_pb2.Observation:
    """The wire form of an observation.

    Args:
        observation: What was perceived.
        camera: False leaves the image out.
    """
    image, rays, state = observation.camera, observation.rays, observation.state
    return types_pb2.Observation(
        camera=b"" if image is None or not camera else image.tobytes(),
        rays=b"" if rays is None else rays.tobytes(),
        health=observation.health,
        velocity=observation.velocity.tolist(),
        position=observation.position.tolist(),
        state=b"" if state is None else state.tobytes(),
    )


def observation_from_proto(
    message: types_pb2.Observation, spec: ObservationSpec, *, camera: bool = True
) -> Observation:
    """The observation that a message holds; its arrays are its own and writable.

    Args:
        message: The message.
        spec: What it should hold.
        camera: False where images were left out, as in recordings without pixels.

    Raises:
        ValueError: A field has another size than the specification says.
    """
    shape = spec.camera.shape if spec.camera is not None and camera else (0, 0, 0)
    image = _array("camera", message.camera, np.uint8, math.prod(shape))
    rays = _array("rays", message.rays, np.float32, spec.rays.size if spec.rays else 0)
    rows = len(message.state) // (4 * STATE_COLUMNS) if spec.privileged else 0
    state = _array("state", message.state, np.float32, rows * STATE_COLUMNS)
    return Observation(
        health=message.health,
        velocity=_vector("velocity", message.velocity[:]),
        position=_vector("position", message.position[:]),
        rays=rays if spec.rays else None,
        camera=image.reshape(shape) if image.size else None,
        state=state.reshape(rows, STATE_COLUMNS) if rows else None,
    )


def ended_by_to_proto(ended_by: EndedBy | None) -> types_pb2.EndedBy.ValueType:
    """The wire's number for why an episode ended; unspecified for None."""
    return types_pb2.EndedBy.ValueType(ended_by.number if ended_by else 0)


def ended_by_from_proto(value: types_pb2.EndedBy.ValueType) -> EndedBy | None:
    """Why an episode ended; None where the message does not say."""
    return EndedBy.of(value)


def step_from_proto(
    message: results_pb2.RecordedStep, spec: ObservationSpec, *, pixels: bool
) -> RecordedStep:
    """One decision of a recorded episode.

    Args:
        message: The step.
        spec: What the agent saw, as the header says.
        pixels: Whether steps hold camera images, as the header says.
    """
    return RecordedStep(
        step=message.step,
        action=message.action if message.HasField("action") else None,
        reward=message.reward,
        observation=observation_from_proto(message.observation, spec, camera=pixels),
        ended_by=ended_by_from_proto(message.ended_by),
        camera_digest=message.camera_digest,
        notes=tuple(decode(Note, note) for note in message.notes),
    )


def _array(field: str, data: bytes, dtype: type[_Scalar], size: int) -> npt.NDArray[_Scalar]:
    wanted = size * np.dtype(dtype).itemsize
    if len(data) != wanted:
        raise ValueError(f"observation.{field} has {len(data)} bytes where {wanted} are due")
    return np.frombuffer(data, dtype).copy()


def _vector(field: str, values: Sequence[float]) -> npt.NDArray[np.float32]:
    if len(values) != 3:
        raise ValueError(f"observation.{field} has {len(values)} numbers where 3 are due")
    return np.array(values, np.float32)
