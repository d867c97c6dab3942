"""Plays a recorded episode again, to compare every number or to see it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any, Final

import numpy as np

from animalcat.arena_configs.loader import load_text
from animalcat.arena_configs.model import Arena
from animalcat.arena_configs.sequence import merged
from animalcat.envs.backends import make_environment
from animalcat.envs.replay import replay
from animalcat.envs.types import CameraSpec, EndedBy, Environment, ObservationSpec, Step
from animalcat.service.recording.reader import Recording
from animalcat.service.recording.writer import recorded_step
from animalcat.service.versions import Difference as VersionDifference
from animalcat.service.versions import differences as version_differences
from animalcat.service.versions import versions
from animalcat.v1 import results_pb2, types_pb2
from animalcat.wire import ended_by_from_proto, spec_from_proto

Make = Callable[[str, ObservationSpec], Environment]
"""Makes an environment from a backend's name and a specification."""

SIMULATOR: Final = "sim"
_STEP_FIELDS: Final = ("reward", "ended_by", "camera_digest")
_SEEN_FIELDS: Final = ("health", "velocity", "position", "rays", "camera")


@dataclass(frozen=True, slots=True)
class Difference:
    """Where a replay first departs from its recording.

    Attributes:
        step: Decisions taken before it; for the footer, all of them.
        field: Name of the field, with the index of the number in it: `observation.rays[12]`.
        recorded: What the recording says.
        replayed: What the replay gave.
    """

    step: int
    field: str
    recorded: str
    replayed: str


@dataclass(frozen=True, slots=True)
class Verification:
    """What a comparison found.

    Attributes:
        steps: Steps compared, the first observation included.
        difference: The first difference; None where every recorded number came out again.
        versions: Versions that differ between the recording and what played it again.
        backend: What played it again.
        course: How far apart the two courses are, where something else played than is recorded.
    """

    steps: int
    difference: Difference | None
    versions: tuple[VersionDifference, ...]
    backend: str
    course: Course | None = None


@dataclass(frozen=True, slots=True)
class Course:
    """An episode played again on another backend, beside its recording.

    Attributes:
        metres: The greatest distance between the agent's positions at the same step.
        ended_by: Why each ended, recorded and replayed; None for one that did not.
        episode_return: Sum of rewards, recorded and replayed.
        steps: Decisions taken, recorded and replayed.
    """

    metres: float
    ended_by: tuple[EndedBy | None, EndedBy | None]
    episode_return: tuple[float, float]
    steps: tuple[int, int]


def verify(recording: Recording, make: Make = make_environment, backend: str = "") -> Verification:
    """Play an episode again and compare every recorded number, bit by bit.

    Args:
        recording: The episode; one that was cut is compared as far as it goes.
        make: What makes the environment.
        backend: What is to play it; by default see `stage`.

    Raises:
        ArenaError: The recorded arena cannot be built.
        ValueError: The backend is unknown here, or the header is malformed.
    """
    header = recording.header
    spec = spec_from_proto(header.observation_spec)
    chosen = stage(header, backend)
    environment = _environment(header, chosen, spec, make)
    here = {**versions(), **getattr(environment, "versions", {})}
    total = 0.0
    compared = 0
    found: Difference | None = None
    for number, (recorded, step) in enumerate(
        zip_longest(recording.steps, _replayed(recording, environment))
    ):
        if recorded is None or step is None:
            found = Difference(number, "step", _there(recorded), _there(step))
            break
        action = recorded.action if recorded.HasField("action") else None
        again = recorded_step(number, step, action, pixels=header.pixels)
        found = _compare_steps(number, recorded, again)
        if found is not None:
            break
        total += step.reward
        compared += 1
    if found is None and recording.footer is not None:
        found = _compare_footer(recording.footer, compared, total)
    course = None
    if chosen != header.backend:
        again = _replayed(recording, _environment(header, chosen, spec, make))
        course = _course(recording, list(again))
    differences = version_differences(header.versions, here)
    return Verification(compared, found, differences, chosen, course)


def stage(header: results_pb2.EpisodeHeader, backend: str = "") -> str:
    """The backend that plays an episode again: the one that is asked for, else its own.

    The path of a Unity build that a recording names is not run unasked, since recordings come
    from anywhere: the simulator plays instead.
    """
    if backend:
        return backend
    return SIMULATOR if header.backend.startswith("unity:") else header.backend


def frames(
    recording: Recording, resolution: int, make: Make = make_environment, backend: str = ""
) -> Iterator[np.ndarray[Any, np.dtype[np.uint8]]]:
    """What the agent's camera shows at every step, by playing the episode again.

    Args:
        recording: The episode.
        resolution: Side of the square images in pixels, 4 to 512.
        make: What makes the environment.
        backend: What is to play it; by default see `stage`.

    Returns:
        Images, uint8 (resolution, resolution, 3).

    Raises:
        ArenaError: The recorded arena cannot be built.
        ValueError: The backend is unknown here, the resolution out of range.
    """
    spec = spec_from_proto(recording.header.observation_spec)
    seeing = replace(spec, camera=CameraSpec(resolution))
    chosen = stage(recording.header, backend)
    environment = _environment(recording.header, chosen, seeing, make)
    for step in _replayed(recording, environment):
        assert step.observation.camera is not None
        yield step.observation.camera


def load_arena(header: results_pb2.EpisodeHeader) -> Arena:
    """The arena that an episode was played in, with those that it merges with."""
    return merged(load_text(header.arena_yaml, header.name).config)


def _environment(
    header: results_pb2.EpisodeHeader, backend: str, spec: ObservationSpec, make: Make
) -> Environment:
    if backend == SIMULATOR and header.versions.get("unity-builds") == "kept":
        from animalcat.envs.unity.late import LateSimEnvironment  # brings the simulator

        return LateSimEnvironment(spec)
    return make(backend, spec)


def _course(recording: Recording, replayed: Sequence[Step]) -> Course:
    recorded = recording.steps
    metres = 0.0
    for one, two in zip(recorded, replayed, strict=False):
        gap = np.subtract(one.observation.position, two.observation.position)
        metres = max(metres, float(np.linalg.norm(gap)))
    last = replayed[-1].ended_by if replayed else None
    return Course(
        metres,
        (ended_by_from_proto(recorded[-1].ended_by) if recorded else None, last),
        (sum(step.reward for step in recorded), sum(step.reward for step in replayed)),
        (max(0, len(recorded) - 1), max(0, len(replayed) - 1)),
    )


def _replayed(recording: Recording, environment: Environment) -> Iterator[Step]:
    header = recording.header
    try:
        if recording.steps:
            yield from replay(environment, load_arena(header), header.seed, recording.actions)
    finally:
        environment.close()


def _compare_steps(
    number: int, recorded: results_pb2.RecordedStep, again: results_pb2.RecordedStep
) -> Difference | None:
    for place, fields, a, b in (
        ("", _STEP_FIELDS, recorded, again),
        ("observation.", _SEEN_FIELDS, recorded.observation, again.observation),
    ):
        for field in fields:
            found = _compare(number, place + field, getattr(a, field), getattr(b, field))
            if found is not None:
                return found
    return None


def _compare_footer(
    footer: results_pb2.EpisodeFooter, steps: int, total: float
) -> Difference | None:
    last = max(0, steps - 1)
    if footer.steps != last:
        return Difference(last, "footer.steps", str(footer.steps), str(last))
    return _compare(last, "footer.episode_return", footer.episode_return, total)


def _compare(step: int, field: str, recorded: Any, again: Any) -> Difference | None:
    """The first number of a field that differs, if one does."""
    if field == "ended_by":
        names = types_pb2.EndedBy.Name
        same = recorded == again
        return None if same else Difference(step, field, names(recorded), names(again))
    if field == "camera_digest":
        same = recorded == again
        return None if same else Difference(step, field, recorded.hex(), again.hex())
    a, b = _numbers(field, recorded), _numbers(field, again)
    if a.shape != b.shape:
        return Difference(step, field, f"{a.size} numbers", f"{b.size} numbers")
    # By bits: -0.0 is not 0.0, and a NaN equals itself.
    (different,) = np.nonzero(a.view(f"u{a.itemsize}") != b.view(f"u{b.itemsize}"))
    if not different.size:
        return None
    first = int(different[0])
    place = f"{field}[{first}]" if a.size > 1 else field
    return Difference(step, place, repr(a[first].item()), repr(b[first].item()))


def _numbers(field: str, value: Any) -> np.ndarray[Any, Any]:
    match field:
        case "observation.camera":
            return np.frombuffer(value, np.uint8)
        case "observation.rays":
            return np.frombuffer(value, np.float32)
        case "footer.episode_return":
            return np.array([value], np.float64)
        case _:
            return np.atleast_1d(np.array(value, np.float32))


def _there(step: object) -> str:
    return "no such step" if step is None else "a step"
