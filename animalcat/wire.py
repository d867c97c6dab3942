"""Between the values of `animalcat.envs.types` and their wire messages: the one place."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt
from google.protobuf.message import Message

from animalcat.arena_configs.outcome import MarkedPlace
from animalcat.envs.agents.fingerprint import SOURCES, AgentFingerprint
from animalcat.envs.types import (
    STATE_COLUMNS,
    CameraSpec,
    EndedBy,
    Observation,
    ObservationSpec,
    RaySpec,
)
from animalcat.plugins import Kind, Plugin
from animalcat.v1 import sessions_pb2, types_pb2

_Scalar = TypeVar("_Scalar", np.uint8, np.float32)


def given(message: Message, *fields: str) -> dict[str, Any]:
    """Those of the named fields of a message that are set, by name.

    Args:
        message: The message.
        fields: Fields that have presence: optional ones, messages and members of a oneof.
    """
    return {name: getattr(message, name) for name in fields if message.HasField(name)}


def places_from_proto(messages: Iterable[sessions_pb2.MarkedPlace]) -> tuple[MarkedPlace, ...]:
    """Marked places, from their messages."""
    return tuple(MarkedPlace(one.right, one.x, one.z, one.radius) for one in messages)


def spec_to_proto(spec: ObservationSpec) -> types_pb2.ObservationSpec:
    """The wire form of an observation specification; angles become float32."""
    message = types_pb2.ObservationSpec(
        decision_period=spec.decision_period, privileged=spec.privileged
    )
    if spec.camera is not None:
        message.camera.resolution = spec.camera.resolution
        message.camera.grayscale = spec.camera.grayscale
    if spec.rays is not None:
        message.rays.per_side = spec.rays.per_side
        message.rays.max_degrees = spec.rays.max_degrees
        message.rays.tags = spec.rays.tags
    return message


def spec_from_proto(message: types_pb2.ObservationSpec) -> ObservationSpec:
    """The specification that a message holds; what is not set has its default.

    A camera or rays that are not set are not there.

    Raises:
        ValueError: A number is out of its range; the message says which.
    """
    camera = rays = None
    if message.HasField("camera"):
        camera = CameraSpec(**given(message.camera, "resolution", "grayscale"))
    if message.HasField("rays"):
        rays = RaySpec(**given(message.rays, "per_side", "max_degrees", "tags"))
    return ObservationSpec(camera, rays, **given(message, "decision_period", "privileged"))


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


def fingerprint_to_proto(fingerprint: AgentFingerprint) -> types_pb2.AgentFingerprint:
    """The wire form of what an agent is."""
    return types_pb2.AgentFingerprint(
        source=types_pb2.FingerprintSource.ValueType(SOURCES.index(fingerprint.source)),
        name=fingerprint.name,
        version=fingerprint.version,
        options=fingerprint.options,
        files=fingerprint.files,
        environment=fingerprint.environment,
        process=fingerprint.process,
    )


def plugin_to_proto(plugin: Plugin) -> sessions_pb2.Plugin:
    """The wire form of what another package adds."""
    return sessions_pb2.Plugin(**asdict(plugin))


def plugin_from_proto(message: sessions_pb2.Plugin) -> Plugin:
    """What another package adds, as a message says."""
    kind = cast("Kind", message.kind)
    return Plugin(kind, message.name, message.distribution, message.version, message.digest)


def fingerprint_from_proto(message: types_pb2.AgentFingerprint) -> AgentFingerprint:
    """What an agent is, as a message says.

    Raises:
        ValueError: The source is none of those that there are, or nothing stands beside a name.
    """
    if message.source >= len(SOURCES):
        raise ValueError(f"fingerprint.source: there is no source {message.source}")
    return AgentFingerprint(
        SOURCES[message.source],
        message.name,
        message.version,
        dict(sorted(message.options.items())),
        dict(sorted(message.files.items())),
        dict(sorted(message.environment.items())),
        message.process,
    )


def ended_by_to_proto(ended_by: EndedBy | None) -> types_pb2.EndedBy.ValueType:
    """The wire's number for why an episode ended; unspecified for None."""
    return types_pb2.EndedBy.ValueType(ended_by or 0)


def ended_by_from_proto(value: types_pb2.EndedBy.ValueType) -> EndedBy | None:
    """Why an episode ended; None where the message does not say."""
    return EndedBy(value) if value else None


def _array(field: str, data: bytes, dtype: type[_Scalar], size: int) -> npt.NDArray[_Scalar]:
    wanted = size * np.dtype(dtype).itemsize
    if len(data) != wanted:
        raise ValueError(f"observation.{field} has {len(data)} bytes where {wanted} are due")
    return np.frombuffer(data, dtype).copy()


def _vector(field: str, values: Sequence[float]) -> npt.NDArray[np.float32]:
    if len(values) != 3:
        raise ValueError(f"observation.{field} has {len(values)} numbers where 3 are due")
    return np.array(values, np.float32)
