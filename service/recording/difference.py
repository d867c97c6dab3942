"""Compares what is played again with its recording, number by number and bit for bit."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from animalcat.envs.types import Step
from animalcat.service.recording.encoding import recorded_step
from animalcat.v1 import results_pb2, types_pb2

_STEP_FIELDS: Final = ("reward", "ended_by", "camera_digest")
_SEEN_FIELDS: Final = ("health", "velocity", "position", "rays", "camera")
IMAGE_FIELDS: Final = frozenset({"camera_digest", "camera"})
"""Fields that hold what the camera saw."""


@dataclass(frozen=True, slots=True)
class FirstDifference:
    """Where a replay first differs from its recording.

    Attributes:
        step: Number of decisions before the difference; for the footer, all of them.
        field: Name of the field, with the index of the number in it, as in `observation.rays[12]`.
        recorded: The recorded value.
        replayed: The replayed value.
    """

    step: int
    field: str
    recorded: str
    replayed: str


def compare_step(
    number: int,
    recorded: results_pb2.RecordedStep,
    step: Step,
    *,
    pixels: bool,
    skipped: Set[str] = frozenset(),
) -> FirstDifference | None:
    """Return the first number in which a step differs from its recording; None if all are equal.

    Notes are the agent's, so they are not compared.

    Args:
        number: Number of decisions before the step.
        recorded: The recorded step.
        step: The step when the episode is played again.
        pixels: Whether the recording keeps the camera's images.
        skipped: Names of fields that are not compared, such as `IMAGE_FIELDS`.
    """
    action = recorded.action if recorded.HasField("action") else None
    again = recorded_step(number, step, action, pixels=pixels)
    for place, fields, a, b in (
        ("", _STEP_FIELDS, recorded, again),
        ("observation.", _SEEN_FIELDS, recorded.observation, again.observation),
    ):
        for field in fields:
            if field in skipped:
                continue
            difference = compare_numbers(
                number, place + field, getattr(a, field), getattr(b, field)
            )
            if difference is not None:
                return difference
    return None


def compare_numbers(step: int, field: str, recorded: Any, again: Any) -> FirstDifference | None:
    """Return the first number of a field that differs in any bit; None if all are equal."""
    if field == "ended_by":
        names = types_pb2.EndedBy.Name
        same = recorded == again
        return None if same else FirstDifference(step, field, names(recorded), names(again))
    if field == "camera_digest":
        same = recorded == again
        return None if same else FirstDifference(step, field, recorded.hex(), again.hex())
    a, b = _numbers(field, recorded), _numbers(field, again)
    if a.shape != b.shape:
        return FirstDifference(step, field, f"{a.size} numbers", f"{b.size} numbers")
    # Compare bits: -0.0 differs from 0.0, and a NaN equals itself.
    (different,) = np.nonzero(a.view(f"u{a.itemsize}") != b.view(f"u{b.itemsize}"))
    if not different.size:
        return None
    first = int(different[0])
    place = f"{field}[{first}]" if a.size > 1 else field
    return FirstDifference(step, place, repr(a[first].item()), repr(b[first].item()))


def _numbers(field: str, value: Any) -> np.ndarray[Any, Any]:
    match field:
        case "observation.camera":
            return np.frombuffer(value, np.uint8)
        case "observation.rays":
            return np.frombuffer(value, np.float32)
        case "footer.episode_return" | "footer.outcomes[choice]":
            return np.array([value], np.float64)
        case _:
            return np.atleast_1d(np.array(value, np.float32))
