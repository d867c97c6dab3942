"""Observations in ML-Agents' form: which sensors, in which order and shape.

Source: reference/animal-ai.md sections 5.1 and 6.5.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from animalcat.envs.mlagents.arguments import Encoding
from animalcat.envs.mlagents.v1 import communicator_pb2 as pb
from animalcat.envs.types import Phase, Step

CAMERA: Final = "CameraSensor"
RAYS: Final = "RayPerceptionSensor"
VECTOR: Final = "VectorSensor_size7"

_NONE: Final = 1
_TRANSLATION: Final = 2
"""ML-Agents' dimension properties: nothing special; equivariant under translation."""
_LONGEST_BLOCK: Final = 65_535
"""Bytes of a block in zlib's format."""
_SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"


class Encoder:
    """Converts steps to a client's messages."""

    def __init__(self, *, channels_first: bool, encoding: Encoding = "png") -> None:
        """Choose the form of camera images.

        Args:
            channels_first: Whether images are declared as (C, H, W) instead of (H, W, C).
            encoding: How images are sent.
        """
        self._channels_first = channels_first
        self._raw = encoding == "raw"

    def write(self, step: Step, info: pb.AgentInfo) -> None:
        """Write a step into a message for the client; LAST is the end of an episode.

        Sensors are ordered by name: camera, rays, vector; those that are off are absent. The
        message is filled in place, since each copy of an image costs time.
        """
        info.reward = step.reward
        info.done = step.phase is Phase.LAST
        seen = step.observation
        if seen.camera is not None:
            self._write_camera(seen.camera, info.observations.add())
        if seen.rays is not None:
            _write_numbers(RAYS, seen.rays.shape, seen.rays.tolist(), info.observations.add())
        vector = (seen.health, *seen.velocity.tolist(), *seen.position.tolist())
        _write_numbers(VECTOR, (len(vector),), vector, info.observations.add())

    def _write_camera(self, image: npt.NDArray[np.uint8], into: pb.Observation) -> None:
        shape, properties = image.shape, (_TRANSLATION, _TRANSLATION, _NONE)
        if self._channels_first:
            shape, properties = (shape[2], *shape[:2]), (_NONE, _TRANSLATION, _TRANSLATION)
        if self._raw:
            floats = image.astype(np.float32) / np.float32(255.0)
            if self._channels_first:
                floats = np.moveaxis(floats, 2, 0)
            _write_numbers(CAMERA, shape, floats.ravel().tolist(), into, properties)
            return
        into.name = CAMERA
        into.shape.extend(shape)
        into.dimension_properties.extend(properties)
        into.compression_type = pb.COMPRESSION_TYPE_PNG
        into.compressed_data = png(image)


def _write_numbers(
    name: str,
    shape: Sequence[int],
    values: Iterable[float],
    into: pb.Observation,
    properties: Sequence[int] = (_NONE,),
) -> None:
    into.name = name
    into.shape.extend(shape)
    into.dimension_properties.extend(properties)
    into.compression_type = pb.COMPRESSION_TYPE_NONE
    into.float_data.data.extend(values)


def png(image: npt.NDArray[np.uint8]) -> bytes:
    """Encode an RGB picture as PNG, neither filtered nor compressed: fast to write and to read.

    A client averages the channels of a PNG if it expects one channel, and cannot read a PNG that
    has only one. (`zlib.compress` would do for the blocks at level 0, but it first prepares to
    compress.)

    Args:
        image: (height, width, 1 or 3) uint8.
    """
    height, width, _ = image.shape
    rows = np.zeros((height, 1 + 3 * width), np.uint8)  # each row begins with its filter: none
    rows[:, 1:].reshape(height, width, 3)[...] = image
    data = rows.data.cast("B")
    parts: list[bytes | memoryview] = [b"\x78\x01"]  # zlib's head: nothing is compressed
    for start in range(0, len(data), _LONGEST_BLOCK):
        block = data[start : start + _LONGEST_BLOCK]
        size, last = len(block), start + len(block) == len(data)
        parts += (struct.pack("<?HH", last, size, size ^ 0xFFFF), block)
    parts.append(struct.pack(">I", zlib.adler32(data)))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"".join(
        (_SIGNATURE, *_chunk(b"IHDR", head), *_chunk(b"IDAT", *parts), *_chunk(b"IEND"))
    )


def _chunk(kind: bytes, *parts: bytes | memoryview) -> tuple[bytes, ...]:
    content = b"".join((kind, *parts))
    size, checksum = len(content) - len(kind), zlib.crc32(content)
    return struct.pack(">I", size), content, struct.pack(">I", checksum)
