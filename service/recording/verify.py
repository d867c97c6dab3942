"""Plays a recorded episode again, to compare every number or to show the camera's view."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any, Final

import numpy as np

from animalcat.arena_configs import looks as camera_looks
from animalcat.arena_configs.loader import load_text
from animalcat.arena_configs.model import Arena
from animalcat.arena_configs.outcome import MarkedPlace
from animalcat.arena_configs.sequence import merge_arenas
from animalcat.envs.backends import make_environment
from animalcat.envs.places import can_watch, watchable
from animalcat.envs.replay import replay
from animalcat.envs.sim import rules
from animalcat.envs.types import CameraSpec, EndedBy, Environment, ObservationSpec, Step
from animalcat.service.recording.difference import (
    IMAGE_FIELDS,
    FirstDifference,
    compare_numbers,
    compare_step,
)
from animalcat.service.recording.reader import Recording
from animalcat.service.versions import LOOKS, MOTION, ChangedVersion, changed_versions, versions
from animalcat.v1 import results_pb2
from animalcat.wire.codec import decode
from animalcat.wire.steps import ended_by_from_proto, spec_from_proto

Make = Callable[[str, ObservationSpec], Environment]
"""Makes an environment from the name of a backend and an observation spec."""

SIMULATOR: Final = "sim"


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of comparing a recording with its replay.

    Attributes:
        steps: Number of steps compared, including the first observation.
        difference: The first difference; None if every recorded number was reproduced.
        versions: Versions that differ between the recording and the replay.
        backend: The backend that replayed the episode.
        comparison: How far apart the two are, if the backend differs from the recorded one; None
            otherwise.
        looks: The looks of the recorded images and those here, if they differ: the images are then
            not compared. None otherwise.
        motion: The rules of motion of the recording and those here, if they differ: the replay is
            then another course, and only the recording's own end is checked. None otherwise.
    """

    steps: int
    difference: FirstDifference | None
    versions: tuple[ChangedVersion, ...]
    backend: str
    comparison: BackendComparison | None = None
    looks: ChangedVersion | None = None
    motion: ChangedVersion | None = None

    def __repr__(self) -> str:
        if self.difference is not None:
            first = self.difference
            return (
                f"<Verification: differs at step {first.step}: {first.field} was {first.recorded}, "
                f"now {first.replayed}>"
            )
        if self.motion is not None:
            return (
                f"<Verification: not compared, since it was played under rules of motion "
                f"{self.motion.recorded}, which are {self.motion.here} here>"
            )
        return f"<Verification: all numbers of {self.steps} steps were reproduced>"


@dataclass(frozen=True, slots=True)
class BackendComparison:
    """An episode replayed on another backend, compared with its recording.

    Attributes:
        metres: The greatest distance between the agent's positions at the same step.
        ended_by: Why the recording and the replay ended; None for one that did not.
        episode_return: Sum of rewards, recorded and replayed.
        steps: Number of decisions, recorded and replayed.
    """

    metres: float
    ended_by: tuple[EndedBy | None, EndedBy | None]
    episode_return: tuple[float, float]
    steps: tuple[int, int]


def verify(recording: Recording, make: Make = make_environment, backend: str = "") -> Verification:
    """Play an episode again and compare every recorded number bit for bit.

    Images of the simulator that were drawn under other looks are left out. An episode that it
    played under other rules of motion is not compared number by number, since these rules alone
    change them; how far apart the two courses are is told instead.

    Args:
        recording: The episode; if it was cut, it is compared as far as it goes.
        make: Makes the environment.
        backend: The backend to replay on; empty for the default of `stage`.

    Raises:
        ArenaError: The recorded arena cannot be built.
        ValueError: The backend is unknown here, or the header is malformed.
    """
    header = recording.header
    spec = spec_from_proto(header.observation_spec)
    chosen = stage(header, backend)
    environment = _environment(header, chosen, spec, make)
    here = {**versions(), **getattr(environment, "versions", {})}
    differences = changed_versions(header.versions, here)
    total = 0.0
    motion = other_motion(header, chosen)
    if motion is not None:
        replayed = list(_replay(recording, environment))
        for step in recording.steps:
            total += step.reward
        footer, steps = recording.footer, len(recording.steps)
        own = None if footer is None else _compare_footer(footer, steps, total)
        course = _compare_courses(recording, replayed)
        return Verification(0, own, differences, chosen, course, motion=motion)
    looks: ChangedVersion | None = None
    if header.observation_spec.HasField("camera"):
        looks = _other(LOOKS, camera_looks.REVISION, header, chosen)
    skipped = IMAGE_FIELDS if looks else frozenset[str]()
    compared = reached = 0
    difference: FirstDifference | None = None
    for number, (recorded, step) in enumerate(
        zip_longest(recording.steps, _replay(recording, environment))
    ):
        if recorded is None or step is None:
            difference = FirstDifference(number, "step", _there(recorded), _there(step))
            break
        difference = compare_step(number, recorded, step, pixels=header.pixels, skipped=skipped)
        if difference is not None:
            break
        total += step.reward
        reached = step.reached
        compared += 1
    if difference is None and recording.footer is not None:
        difference = _compare_footer(recording.footer, compared, total)
        if difference is None and chosen == header.backend and can_watch(chosen, spec):
            difference = _compare_choice(recording, reached)
    comparison = None
    if chosen != header.backend:
        again = _replay(recording, _environment(header, chosen, spec, make))
        comparison = _compare_courses(recording, list(again))
    return Verification(compared, difference, differences, chosen, comparison, looks)


def stage(header: results_pb2.EpisodeHeader, backend: str = "") -> str:
    """Return the backend to replay on: the one that is asked for, or else the recorded one.

    A recording may come from anywhere, so the path of a Unity build that it names is not run unless
    asked for. The simulator plays instead.

    Args:
        header: The header of the recording.
        backend: The backend that is asked for; empty for the recorded one.
    """
    if backend:
        return backend
    return SIMULATOR if header.backend.startswith("unity:") else header.backend


def camera_images(
    recording: Recording, resolution: int, make: Make = make_environment, backend: str = ""
) -> Iterator[np.ndarray[Any, np.dtype[np.uint8]]]:
    """Yield what the agent's camera shows at every step, by playing the episode again.

    Args:
        recording: The episode.
        resolution: Side of the square images in pixels, 4 to 512.
        make: Makes the environment.
        backend: The backend to replay on; empty for the default of `stage`.

    Yields:
        Images, uint8 (resolution, resolution, 3).

    Raises:
        ArenaError: The recorded arena cannot be built.
        ValueError: The backend is unknown here, or the resolution is out of range.
    """
    for step in replay_with_camera(recording, resolution, make, backend):
        assert step.observation.camera is not None
        yield step.observation.camera


def replay_with_camera(
    recording: Recording,
    resolution: int,
    make: Make = make_environment,
    backend: str = "",
    *,
    state: bool = False,
) -> Generator[Step]:
    """Play an episode again with a camera; yields its steps.

    Args:
        recording: The episode.
        resolution: Side of the square images in pixels, 4 to 512.
        make: Makes the environment.
        backend: The backend to replay on; empty for the default of `stage`.
        state: Whether observations also tell where everything is, which the simulator can.

    Raises:
        ArenaError: The recorded arena cannot be built.
        ValueError: The backend is unknown here, or the resolution is out of range.
    """
    spec = spec_from_proto(recording.header.observation_spec)
    chosen = stage(recording.header, backend)
    privileged = state and chosen == SIMULATOR
    seeing = replace(spec, camera=CameraSpec(resolution), privileged=privileged or spec.privileged)
    yield from _replay(recording, _environment(recording.header, chosen, seeing, make))


def replay_episode(
    recording: Recording, make: Make = make_environment, backend: str = "", *, camera: bool = True
) -> Iterator[Step]:
    """Play an episode again with the agent's own sensors; yields its steps.

    Args:
        recording: The episode.
        make: Makes the environment.
        backend: The backend to replay on; empty for the default of `stage`.
        camera: False leaves out the camera, which takes most of the time.

    Raises:
        ArenaError: The recorded arena cannot be built.
        ValueError: The backend is unknown here.
    """
    header = recording.header
    spec = spec_from_proto(header.observation_spec)
    if not camera:
        spec = replace(spec, camera=None, privileged=False)
    yield from _replay(recording, _environment(header, stage(header, backend), spec, make))


def other_looks(header: results_pb2.EpisodeHeader) -> str:
    """Why the camera's images cannot be drawn as the agent saw them, in words; empty if they can.

    Args:
        header: The header of the recording.
    """
    if header.backend.startswith("unity:"):
        return "a Unity build drew them"
    chosen = stage(header)
    other = other_motion(header, chosen) or _other(LOOKS, camera_looks.REVISION, header, chosen)
    if other is None:
        return ""
    return f"{other.name} was {other.recorded}, and is {other.here} here"


def load_arena(header: results_pb2.EpisodeHeader) -> Arena:
    """Return the arena of an episode, merged with those that follow it in the same episode.

    Raises:
        ArenaError: It cannot be built.
    """
    return merge_arenas(load_text(header.arena_yaml, header.name).config)


def _environment(
    header: results_pb2.EpisodeHeader, backend: str, spec: ObservationSpec, make: Make
) -> Environment:
    if backend == SIMULATOR and header.versions.get("unity-builds") == "kept":
        from animalcat.envs.unity.late import LateSimEnvironment  # brings the simulator

        return LateSimEnvironment(spec)
    return watchable(make(backend, spec))


def other_motion(header: results_pb2.EpisodeHeader, backend: str) -> ChangedVersion | None:
    """Rules of motion of a recording and those here, where the simulator now plays otherwise.

    Args:
        header: The header of the recording.
        backend: The backend that replays it.
    """
    return _other(MOTION, rules.REVISION, header, backend)


def _other(
    name: str, here: str, header: results_pb2.EpisodeHeader, backend: str
) -> ChangedVersion | None:
    """A revision of the simulator recorded and that here, where the simulator plays otherwise."""
    if not backend == header.backend == SIMULATOR:
        return None
    recorded = header.versions.get(name, "unknown")
    return None if recorded == here else ChangedVersion(name, recorded, here)


def _compare_courses(recording: Recording, replayed: Sequence[Step]) -> BackendComparison:
    recorded = recording.steps
    metres = 0.0
    for recorded_step, again in zip(recorded, replayed, strict=False):
        gap = np.subtract(recorded_step.observation.position, again.observation.position)
        metres = max(metres, float(np.linalg.norm(gap)))
    last = replayed[-1].ended_by if replayed else None
    return BackendComparison(
        metres,
        (ended_by_from_proto(recorded[-1].ended_by) if recorded else None, last),
        (sum(step.reward for step in recorded), sum(step.reward for step in replayed)),
        (max(0, len(recorded) - 1), max(0, len(replayed) - 1)),
    )


def _replay(recording: Recording, environment: Environment) -> Iterator[Step]:
    header = recording.header
    try:
        if recording.steps:
            places = tuple(decode(MarkedPlace, place) for place in header.places)
            yield from replay(
                environment, load_arena(header), header.seed, recording.actions, places
            )
    finally:
        environment.close()


def _compare_footer(
    footer: results_pb2.EpisodeFooter, steps: int, total: float
) -> FirstDifference | None:
    last = max(0, steps - 1)
    if footer.steps != last:
        return FirstDifference(last, "footer.steps", str(footer.steps), str(last))
    return compare_numbers(last, "footer.episode_return", footer.episode_return, total)


def _compare_choice(recording: Recording, reached: int) -> FirstDifference | None:
    """Compare the choice that was recorded with the marked place that the replay was in first."""
    places, steps = recording.header.places, recording.steps
    outcomes = {} if recording.footer is None else dict(recording.footer.outcomes)
    over = bool(outcomes) and bool(steps) and bool(steps[-1].ended_by)
    if not over and "choice" not in outcomes:
        return None  # where the agent left, or the backend failed, it may not have been told
    again = float(places[reached - 1].right) if reached else math.nan
    recorded = outcomes.get("choice", math.nan)
    return compare_numbers(len(steps) - 1, "footer.outcomes[choice]", recorded, again)


def _there(step: object) -> str:
    return "no such step" if step is None else "a step"
