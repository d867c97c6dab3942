"""A recorded episode step by step, as viewers of scenes want it: image, numbers, places, rays.

Places are in a right-handed frame that viewers share: x points east, y north, z up, in metres. It
is Unity's frame with y and z exchanged.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from typing import Any, Final, Literal, NamedTuple, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from animalcat.arena_configs.tags import LOGGED_TAGS
from animalcat.envs.rays import OTHER, Rays
from animalcat.envs.sim.scene import Shape
from animalcat.envs.state import AGENT, Column
from animalcat.envs.types import PHYSICS_STEP, EndedBy, RaySpec, Step
from animalcat.maps.shapes import ZONES
from animalcat.service.recording.about import NOTABLE, colour_of
from animalcat.service.recording.reader import Recording, RecordingError
from animalcat.service.recording.verify import replay_with_camera
from animalcat.v1 import results_pb2
from animalcat.wire.steps import ended_by_from_proto, spec_from_proto

Point: TypeAlias = tuple[float, float, float]
Quaternion: TypeAlias = tuple[float, float, float, float]
Mesh: TypeAlias = tuple[npt.NDArray[np.float32], npt.NDArray[np.uint32]]

BODY: Final = 0.5
"""Radius of the agent's body in metres."""
_FACES: Final = 24
"""Sides of the polygon that stands for a tunnel's round wall."""
_THIN: Final = 0.96
"""A tunnel's inner radius, as a share of its outer one."""
_NEAR: Final = 1e-3
"""Metres by which something must move to be told again."""


class Thing(NamedTuple):
    """An object of the arena.

    Attributes:
        number: Keeps it apart from others for the whole episode.
        tag: What it is to the agent's rays; empty for what rays do not tell.
        shape: Its shape.
        centre: Of it.
        half: Half extents along its own axes; a ball's radius first.
        turn: From its own axes to the arena's: x, y, z, w.
        colour: Red, green, blue, alpha, 0 to 255.
    """

    number: int
    tag: str
    shape: Literal["box", "ball", "wedge", "tunnel"]
    centre: Point
    half: Point
    turn: Quaternion
    colour: tuple[int, int, int, int]


class RayHit(NamedTuple):
    """What one ray of the agent met.

    Attributes:
        degrees: Its angle to the agent's heading, to the right.
        metres: How far it went.
        tag: What it met; empty for nothing, and for what has no tag.
    """

    degrees: float
    metres: float
    tag: str


class Moment(NamedTuple):
    """One step of an episode.

    Attributes:
        number: Decisions taken.
        seconds: Simulation time.
        action: The action that led here; None at number 0.
        reward: Since the moment before.
        total: Sum of the rewards so far.
        health: 0 to 100.
        speed: In m/s.
        place: Of the agent's centre.
        heading: Degrees to the left of east, as of y in mathematics; None where nothing tells it.
        rays: From the leftmost to the rightmost.
        image: What its camera shows, uint8 (height, width, 1 or 3); None once the replay is over.
        changed: Objects that are new or have moved.
        gone: Numbers of objects that are there no longer.
        ended_by: Why the episode ended here, if it did.
        notes: What the agent remarked.
    """

    number: int
    seconds: float
    action: int | None
    reward: float
    total: float
    health: float
    speed: float
    place: Point
    heading: float | None
    rays: tuple[RayHit, ...]
    image: npt.NDArray[np.uint8] | None
    changed: tuple[Thing, ...]
    gone: tuple[int, ...]
    ended_by: EndedBy | None
    notes: tuple[str, ...]


def moments(recording: Recording, resolution: int = 84, backend: str = "") -> Iterator[Moment]:
    """Play an episode again and tell of every step.

    Numbers are the recorded ones. Images are, too, where the recording holds them. What it does not
    hold is as it is when the actions are played again: images, objects and the agent's heading.

    Args:
        recording: The episode; a cut one is told as far as it goes.
        resolution: Side of the camera's square images in pixels, 4 to 512.
        backend: What plays it again; empty for the default of `verify.stage`.

    Raises:
        ArenaError: The recorded arena cannot be built.
        RecordingError: No step is recorded.
        ValueError: The backend is unknown here, the resolution is out of range, or a step does not
            hold what the header says.
    """
    if not recording.steps:
        raise RecordingError("no step is recorded, so there is nothing to show")
    spec = spec_from_proto(recording.header.observation_spec)
    period = spec.decision_period * PHYSICS_STEP
    shape = spec.camera.shape if spec.camera is not None and recording.header.pixels else None
    things = _Things()
    total = 0.0
    again = replay_with_camera(recording, resolution, backend=backend, state=True)
    for step, played in zip_longest(recording.steps, again):
        observation, total = step.observation, total + step.reward
        x, y, z = _three(observation.position, step.step)
        state = played.observation.state if played is not None else None
        changed, gone = things.update(state) if state is not None else ((), ())
        yield Moment(
            number=step.step,
            seconds=step.step * period,
            action=step.action if step.HasField("action") else None,
            reward=step.reward,
            total=total,
            health=observation.health,
            speed=float(np.linalg.norm(_three(observation.velocity, step.step))),
            place=(x, z, y),
            heading=_heading(state),
            rays=_rays(observation.rays, spec.rays, step.step),
            image=_image(step, shape, played),
            changed=changed,
            gone=gone,
            ended_by=ended_by_from_proto(step.ended_by),
            notes=tuple(note.text for note in step.notes if note.text),
        )


def course(recording: Recording) -> npt.NDArray[np.float32]:
    """The recorded places of the agent, (steps, 3)."""
    places = [_three(step.observation.position, step.step) for step in recording.steps]
    return np.array(places, np.float32).reshape(-1, 3)[:, [0, 2, 1]]


def ray_ends(moment: Moment) -> list[Point]:
    """Where the rays of a moment end; none where nothing tells the agent's heading."""
    if moment.heading is None:
        return []
    x, y, z = moment.place
    angles = np.radians([moment.heading - ray.degrees for ray in moment.rays])
    return [
        (x + ray.metres * float(np.cos(angle)), y + ray.metres * float(np.sin(angle)), z)
        for ray, angle in zip(moment.rays, angles, strict=True)
    ]


def moment_lines(moment: Moment) -> list[str]:
    """What is worth a line at this moment: rewards, remarks and the end."""
    lines = [f"the agent remarks: {note}" for note in moment.notes]
    if abs(moment.reward) > NOTABLE:
        lines.append(f"reward {moment.reward:+.3f}, {moment.total:+.3f} in all")
    if moment.ended_by is not None:
        lines.append(f"ended by {moment.ended_by.name.lower().replace('_', ' ')}")
    return lines


def turn_left(degrees: float) -> Quaternion:
    """The rotation about the upright axis, to the left."""
    half = np.radians(degrees) / 2.0
    return (0.0, 0.0, float(np.sin(half)), float(np.cos(half)))


def mesh_of(thing: Thing) -> Mesh:
    """Corners (n, 3) and triangles (m, 3) of a wedge or a tunnel, along its own axes."""
    a, b, c = thing.half
    if thing.shape == "wedge":  # full height at -y, none at y
        corners = [(-a, -b, -c), (a, -b, -c), (a, b, -c), (-a, b, -c), (-a, -b, c), (a, -b, c)]
        faces = [(0, 2, 1), (0, 3, 2), (0, 1, 5), (0, 5, 4), (4, 5, 2), (4, 2, 3), (0, 4, 3)]
        return np.array(corners, np.float32), np.array([*faces, (1, 2, 5)], np.uint32)
    angles = np.arange(_FACES) * (2 * np.pi / _FACES)
    rings = [
        np.stack([scale * a * np.cos(angles), 0 * angles + end, scale * c * np.sin(angles)], 1)
        for scale, end in ((1.0, -b), (1.0, b), (_THIN, b), (_THIN, -b))
    ]
    triangles: list[tuple[int, int, int]] = []
    for ring in range(4):
        ring_start, next_start = ring * _FACES, (ring + 1) % 4 * _FACES
        for k in range(_FACES):
            after = (k + 1) % _FACES
            triangles += [
                (ring_start + k, next_start + k, next_start + after),
                (ring_start + k, next_start + after, ring_start + after),
            ]
    return np.concatenate(rings).astype(np.float32), np.array(triangles, np.uint32)


class _Things:
    """Knows where everything was, and so what has changed."""

    def __init__(self) -> None:
        self._rows: npt.NDArray[np.float32] | None = None
        self._there: dict[int, npt.NDArray[np.float32]] = {}

    def update(self, state: npt.NDArray[np.float32]) -> tuple[tuple[Thing, ...], tuple[int, ...]]:
        """What is new or has moved, and the numbers of what is gone."""
        rows = state[AGENT + 1 :, : Column.REWARD]
        before, self._rows = self._rows, rows.copy()
        if before is not None and before.shape == rows.shape and (before == rows).all():
            return (), ()
        changed: list[Thing] = []
        numbers: set[int] = set()
        for row in self._rows:
            number = round(float(row[Column.NUMBER]))
            numbers.add(number)
            was = self._there.get(number)
            if was is None or float(np.abs(was - row).max()) > _NEAR:
                self._there[number] = row
                changed.append(_thing(row))
        gone = tuple(sorted(self._there.keys() - numbers))
        for number in gone:
            del self._there[number]
        return tuple(changed), gone


_SHAPES: Final = {
    Shape.BOX: "box",
    Shape.SPHERE: "ball",
    Shape.WEDGE: "wedge",
    Shape.SHELL: "tunnel",
}
_SWAP: Final = np.array([0, 2, 1])
"""Exchanges y and z."""


def _thing(row: npt.NDArray[np.float32]) -> Thing:
    tag_number = round(float(row[Column.TAG]))
    tag = LOGGED_TAGS[tag_number] if tag_number >= 0 else ""
    shape = _SHAPES[Shape(round(float(row[Column.SHAPE])))]
    x, z, y = map(float, row[Column.CENTER : Column.CENTER + 3])
    a, c, b = map(float, row[Column.HALF : Column.HALF + 3])
    matrix = row[Column.ROTATION : Column.ROTATION + 9].reshape(3, 3)[_SWAP][:, _SWAP]
    return Thing(
        round(float(row[Column.NUMBER])),
        tag,
        cast("Any", shape),
        (x, y, z),
        (a, a, a) if shape == "ball" else (a, b, c),
        _quaternion(matrix.astype(np.float64)),
        (*colour_of(tag), 140 if tag in ZONES else 255),
    )


def _quaternion(matrix: npt.NDArray[np.float64]) -> Quaternion:
    """The unit quaternion x, y, z, w of a rotation: the eigenvector of the greatest eigenvalue.

    Bar-Itzhack, "New method for extracting the quaternion from a rotation matrix" (2000).
    """
    m = matrix
    k = np.array(
        [
            [m[0, 0] - m[1, 1] - m[2, 2], m[0, 1] + m[1, 0], m[0, 2] + m[2, 0], m[2, 1] - m[1, 2]],
            [m[0, 1] + m[1, 0], m[1, 1] - m[0, 0] - m[2, 2], m[1, 2] + m[2, 1], m[0, 2] - m[2, 0]],
            [m[0, 2] + m[2, 0], m[1, 2] + m[2, 1], m[2, 2] - m[0, 0] - m[1, 1], m[1, 0] - m[0, 1]],
            [m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1], m[0, 0] + m[1, 1] + m[2, 2]],
        ]
    )
    vector = np.linalg.eigh(k)[1][:, -1]
    x, y, z, w = map(float, vector if vector[3] >= 0.0 else -vector)
    return x, y, z, w


def _heading(state: npt.NDArray[np.float32] | None) -> float | None:
    if state is None:
        return None
    turn = state[AGENT, Column.ROTATION : Column.ROTATION + 9]
    return float(np.degrees(np.arctan2(turn[8], turn[2])))


def _rays(data: bytes, spec: RaySpec | None, step: int) -> tuple[RayHit, ...]:
    """Rays from the leftmost to the rightmost; the observation has centre, right 1, left 1, ..."""
    if spec is None:
        return ()
    if len(data) != 4 * spec.size:
        raise ValueError(f"step {step}: its rays have {len(data)} bytes, not {4 * spec.size}")
    read = Rays(np.frombuffer(data, np.float32), spec)
    tags = ("" if ray.kind in (OTHER, None) else ray.kind for ray in read)
    return tuple(
        sorted(RayHit(r.angle, r.distance, tag) for r, tag in zip(read, tags, strict=True))
    )


def _image(
    step: results_pb2.RecordedStep, shape: tuple[int, int, int] | None, played: Step | None
) -> npt.NDArray[np.uint8] | None:
    if shape is None:
        return None if played is None else played.observation.camera
    data = step.observation.camera
    if len(data) != shape[0] * shape[1] * shape[2]:
        raise ValueError(f"step {step.step}: its image has {len(data)} bytes, not {shape}")
    return np.frombuffer(data, np.uint8).reshape(shape)


def _three(numbers: Any, step: int) -> Point:
    if len(numbers) != 3:
        raise ValueError(f"step {step}: a place or a velocity has {len(numbers)} numbers, not 3")
    return cast("Point", tuple(numbers))
