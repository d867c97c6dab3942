"""Observations as ML-Agents sends them: which sensors, in which order and shape.

Source: reference/animal-ai.md sections 5.1 and 6.5.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from animalcat.envs.mlagents.arguments import Encoding
from animalcat.envs.mlagents.v1 import communicator_pb2 as pb
from animalcat.envs.types import Observation, Phase, Step

CAMERA: Final = "CameraSensor"
RAYS: Final = "RayPerceptionSensor"
VECTOR: Final = "VectorSensor_size7"

_NONE: Final = 1
_TRANSLATION: Final = 2
"""ML-Agents' dimension properties: nothing special; equivariant under translation."""
_STORED: Final = 0
"""zlib's level without compression: within one machine bytes are cheaper than packing them."""


class Encoder:
    """Turns steps into a client's messages."""

    def __init__(self, *, channels_first: bool, encoding: Encoding = "png") -> None:
        """Choose the form of camera images.

        Args:
            channels_first: Whether images are declared as (C, H, W) instead of (H, W, C).
            encoding: How they are sent.
        """
        self._channels_first = channels_first
        self._raw = encoding == "raw"

    def info(self, step: Step) -> pb.AgentInfo:
        """What the client is told of a step; LAST is the end of an episode."""
        return pb.AgentInfo(
            reward=step.reward,
            done=step.phase is Phase.LAST,
            observations=self._observations(step.observation),
        )

    def _observations(self, seen: Observation) -> list[pb.Observation]:
        """By the names of the sensors: camera, rays, vector; what is off is absent."""
        found: list[pb.Observation] = []
        if seen.camera is not None:
            found.append(self._camera(seen.camera))
        if seen.rays is not None:
            found.append(_numbers(RAYS, seen.rays))
        vector = np.array((seen.health, *seen.velocity, *seen.position), np.float32)
        found.append(_numbers(VECTOR, vector))
        return found

    def _camera(self, image: npt.NDArray[np.uint8]) -> pb.Observation:
        shape, properties = image.shape, (_TRANSLATION, _TRANSLATION, _NONE)
        if self._channels_first:
            shape, properties = (shape[2], *shape[:2]), (_NONE, _TRANSLATION, _TRANSLATION)
        if not self._raw:
            return pb.Observation(
                name=CAMERA,
                shape=shape,
                dimension_properties=properties,
                compression_type=pb.COMPRESSION_TYPE_PNG,
                compressed_data=png(image),
            )
        floats = image.astype(np.float32) / np.float32(255.0)
        if self._channels_first:
            floats = np.moveaxis(floats, 2, 0)
        return _numbers(CAMERA, floats, properties)


def png(image: npt.NDArray[np.uint8]) -> bytes:
    """An RGB picture as PNG, neither filtered nor compressed: quick to write and to read.

    A client averages the channels of a PNG where it expects one, and cannot read a PNG that has
    but one.

    Args:
        image: (height, width, 1 or 3) uint8.
    """
    height, width, _ = image.shape
    rows = np.zeros((height, 1 + 3 * width), np.uint8)  # each row begins with its filter: none
    rows[:, 1:].reshape(height, width, 3)[...] = image
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    data = zlib.compress(rows.data, _STORED)
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        _chunk(kind, body) for kind, body in ((b"IHDR", head), (b"IDAT", data), (b"IEND", b""))
    )


def _chunk(kind: bytes, body: bytes) -> bytes:
    content = kind + body
    return struct.pack(">I", len(body)) + content + struct.pack(">I", zlib.crc32(content))


def _numbers(
    name: str, array: npt.NDArray[np.float32], properties: Sequence[int] = (_NONE,)
) -> pb.Observation:
    return pb.Observation(
        name=name,
        shape=array.shape,
        dimension_properties=properties,
        compression_type=pb.COMPRESSION_TYPE_NONE,
        float_data=pb.Observation.FloatData(data=array.ravel().tolist()),
    )
