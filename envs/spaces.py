"""The contract in Gymnasium's terms: spaces and observations as their elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, cast

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from animalcat.envs.answers import TURNS, read_answer
from animalcat.envs.types import ACTIONS, Observation, ObservationSpec

SENSORS: Final = ("camera", "rays", "health", "velocity", "position")
"""The parts of an observation, in the order of the Dict space."""

_FARTHEST: Final = 10_000.0
"""Bound of velocities (m/s) and positions (metres) in the spaces."""

_INTEGER: Final = np.dtype(np.int64)
_PAIRS: Final = {
    np.array(divmod(n, TURNS), _INTEGER).tobytes(): bytes((n,)) for n in range(ACTIONS)
}
"""The byte of each action, by the bytes of its pair."""

GymObservation = dict[str, npt.NDArray[Any]] | npt.NDArray[Any]
"""A dict of arrays by sensor, or a single array if only one sensor is on."""


def choose_sensors(spec: ObservationSpec, wanted: Sequence[str] | None = None) -> tuple[str, ...]:
    """Choose the sensors to show, in the order of `SENSORS`.

    Args:
        spec: Specification of the observations.
        wanted: Names of sensors; None for all.

    Raises:
        ValueError: A name is unknown, its sensor is off, or the list is empty.
    """
    off = {"camera": spec.camera is None, "rays": spec.rays is None}
    there = tuple(name for name in SENSORS if not off.get(name, False))
    if wanted is None:
        return there
    absent = sorted(set(wanted) - set(there))
    if absent or not wanted:
        raise ValueError(f"sensors {list(wanted)}: choose from {', '.join(there)}")
    return tuple(name for name in there if name in wanted)


def observation_space(spec: ObservationSpec, sensors: Sequence[str]) -> spaces.Space[Any]:
    """A Dict with one Box per sensor; a plain Box if there is only one sensor.

    camera: uint8 (height, width, channels). rays: float32 (RaySpec.size,), 0 to 1. health: float32
    (1,), 0 to 100. velocity: float32 (3,), m/s. position: float32 (3,), metres.
    """
    boxes: dict[str, spaces.Space[Any]] = {name: _box(spec, name) for name in sensors}
    return boxes[sensors[0]] if len(boxes) == 1 else spaces.Dict(boxes)


def to_gym(observation: Observation, sensors: Sequence[str]) -> GymObservation:
    """Convert an observation to an element of `observation_space`, without copying arrays."""
    arrays = {name: _array(observation, name) for name in sensors}
    return arrays[sensors[0]] if len(arrays) == 1 else arrays


def action_space(*, flat: bool) -> spaces.Space[Any]:
    """MultiDiscrete([3, 3]) = (move, turn), or flat Discrete(9) = 3 x move + turn."""
    return spaces.Discrete(ACTIONS) if flat else spaces.MultiDiscrete([TURNS, TURNS])


def read_pair(action: Any, space: spaces.Space[Any]) -> Any:
    """An action; a list as the pair that it is where the space is of pairs."""
    if type(action) is list and isinstance(space, spaces.MultiDiscrete):
        return tuple(cast("list[Any]", action))
    return cast("Any", action)


def read_actions(action: Any, space: spaces.Space[Any]) -> bytes:
    """The actions of an answer, a byte each, as `read_answer` reads what `read_pair` gives.

    The pairs that the space itself gives are looked up: to read them takes four times as long.
    """
    if type(action) is np.ndarray:
        array: npt.NDArray[Any] = action
        if array.dtype is _INTEGER and array.shape == (2,) and array.tobytes() in _PAIRS:
            return _PAIRS[array.tobytes()]
    return read_answer(read_pair(action, space)).actions


def _box(spec: ObservationSpec, name: str) -> spaces.Box:
    match name:
        case "camera" if spec.camera is not None:
            return spaces.Box(0, 255, spec.camera.shape, np.uint8)
        case "rays" if spec.rays is not None:
            return spaces.Box(0.0, 1.0, (spec.rays.size,), np.float32)
        case "health":
            return spaces.Box(0.0, 100.0, (1,), np.float32)
        case "velocity" | "position":
            # Gymnasium's checker warns of infinite bounds; these are beyond what can happen.
            return spaces.Box(-_FARTHEST, _FARTHEST, (3,), np.float32)
        case _:
            raise ValueError(f"there is no sensor {name!r} in {spec}")


def _array(observation: Observation, name: str) -> npt.NDArray[Any]:
    if name == "health":
        return np.array([observation.health], np.float32)
    array = getattr(observation, name)
    if array is None:
        raise ValueError(f"the observation has no {name}")
    return array
