"""The environment contract: what is observed, what a step holds, and what a backend must do."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum, auto
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from animalcat.arena_configs.tags import RAY_TAGS
from animalcat.text.ranges import Range, check_ranges

if TYPE_CHECKING:
    from animalcat.arena_configs.model import Arena

ACTIONS: Final = 9
"""Number of actions: 3 x move + turn; move none, forward, backward; turn none, right, left."""

PHYSICS_STEP: Final = 0.02
"""Seconds of one physics step (Unity's fixed timestep in Animal-AI)."""

RAY_LENGTH: Final = 200.0
"""Metres that a ray reaches; the unit of the distances in an observation."""

RAY_RADIUS: Final = 0.5
"""Metres: radius of the sphere that is moved along a ray, that of the agent's body."""

STATE_COLUMNS: Final = 24
"""Numbers that describe one object in a privileged observation; `envs.state` names them."""


class Phase(IntEnum):
    """The phase of an episode to which a step belongs."""

    FIRST = 0
    MID = 1
    LAST = 2


class EndedBy(StrEnum):
    """Why an episode ended.

    A build ends an episode without saying why when health is used up, by whatever. It counts as a
    time limit if in the last decision and in the one before it nothing but time took health; else
    it is a death.
    """

    GOAL = auto()
    DEATH = auto()
    TIME_LIMIT = auto()
    FAULT = auto()

    @property
    def number(self) -> int:
        """Its number on the wire and in memory, from 1."""
        return _ENDS.index(self) + 1

    @staticmethod
    def of(number: int) -> EndedBy | None:
        """The one that has a number; None for 0, where nothing has ended.

        Raises:
            ValueError: None has that number.
        """
        if not 0 <= number <= len(_ENDS):
            raise ValueError(f"no end has the number {number}")
        return _ENDS[number - 1] if number else None


_ENDS: Final = tuple(EndedBy)


@dataclass(frozen=True, slots=True)
class CameraSpec:
    """A square camera image: its side in pixels (4 to 512), and whether it has one channel."""

    resolution: Annotated[int, Range(4, 512)] = 84
    grayscale: bool = False

    def __post_init__(self) -> None:
        check_ranges(self)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Height, width and channels."""
        return (self.resolution, self.resolution, 1 if self.grayscale else 3)


@dataclass(frozen=True, slots=True)
class RaySpec:
    """Sphere-cast rays: number on each side, angle of the outermost in degrees, number of tags.

    Without any on a side there is the middle one alone. `animalcat.Rays` reads what they tell.
    """

    per_side: Annotated[int, Range(0, 50)] = 2
    max_degrees: Annotated[float, Range(0, 180)] = 60.0
    tags: int = 12

    def __post_init__(self) -> None:
        check_ranges(self)
        if self.tags not in (12, 18):
            raise ValueError(f"{self.tags} ray tags: builds have 12 (to 4.3) or 18 (from 4.4)")

    @property
    def spacing(self) -> float:
        """Degrees from each ray to the next."""
        return self.max_degrees / max(1, self.per_side)

    @property
    def angles(self) -> list[float]:
        """Degrees of the rays to the right of the heading, in their order: 0, right, left, ..."""
        sides = [(i + 1) // 2 if i % 2 else -(i // 2) for i in range(2 * self.per_side + 1)]
        return [side * self.max_degrees / max(1, self.per_side) for side in sides]

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the numbers that each ray has: its tags, "missed" and "distance"."""
        return (*RAY_TAGS[: self.tags], "missed", "distance")

    @property
    def size(self) -> int:
        """Length of the observation: (tags + 2) numbers for each of 2 x per_side + 1 rays."""
        return (self.tags + 2) * (2 * self.per_side + 1)


@dataclass(frozen=True, slots=True)
class ObservationSpec:
    """What an agent perceives, and how many physics steps one decision lasts (1 to 20).

    An agent of a *privileged* specification is also shown the arena's true state (`envs.state`),
    which an agent that is measured must not know.
    """

    camera: CameraSpec | None = None
    rays: RaySpec | None = RaySpec()
    decision_period: Annotated[int, Range(1, 20)] = 3
    privileged: bool = False

    def __post_init__(self) -> None:
        check_ranges(self)

    def validate(self, observation: Observation) -> None:
        """Check that an observation conforms to this specification.

        Raises:
            ValueError: A part has another shape, type or range; the message says what.
        """
        if not 0.0 <= observation.health <= 100.0:
            raise ValueError(f"health {observation.health} is not in 0..100")
        _validate("velocity", observation.velocity, (3,), np.float32)
        _validate("position", observation.position, (3,), np.float32)
        for name, shape, dtype, high in self._optional():
            _validate(name, getattr(observation, name), shape, dtype, high)
        shape = (len(observation.state), STATE_COLUMNS) if observation.state is not None else (0, 0)
        _validate("state", observation.state, shape if self.privileged else None, np.float32)

    def generate(self, rng: np.random.Generator) -> Observation:
        """Generate a random observation that conforms to this specification."""
        drawn: dict[str, npt.NDArray[Any] | None] = {}
        for name, shape, dtype, high in self._optional():
            drawn[name] = None
            if shape is not None:
                drawn[name] = (rng.random(shape) * (high + (high > 1.0))).astype(dtype)
        velocity, position = rng.normal(0.0, 10.0, (2, 3)).astype(np.float32)
        health = float(rng.uniform(0.0, 100.0))
        state = None
        if self.privileged:
            state = rng.normal(0.0, 10.0, (3, STATE_COLUMNS)).astype(np.float32)
        return Observation(
            health, velocity.copy(), position.copy(), drawn["rays"], drawn["camera"], state
        )

    def _optional(self) -> tuple[tuple[str, tuple[int, ...] | None, type[np.generic], float], ...]:
        """Name, shape (None if off), type and greatest value of rays and camera."""
        return (
            ("rays", self.rays and (self.rays.size,), np.float32, 1.0),
            ("camera", self.camera and self.camera.shape, np.uint8, 255.0),
        )


class Observation(NamedTuple):
    """One observation, which owns its arrays.

    A named tuple because one is made at every decision, and a frozen dataclass takes three times
    as long to make.

    Attributes:
        health: 0 to 100.
        velocity: (3,) float32, m/s in the agent's coordinate frame: right, up, forward.
        position: (3,) float32, metres in the arena's coordinate frame: x, y (up), z.
        rays: (RaySpec.size,) float32, or None without rays. `RaySpec.columns` names the numbers
            of each ray, and the rays are in the order of `RaySpec.angles`: the middle one, the
            first to the right, the first to the left, ... A ray has 1 in the column of what it met,
            or in "missed" if it met nothing, and in "distance" metres / 200. `animalcat.Rays`
            reads them.
        camera: CameraSpec.shape uint8, or None without a camera.
        state: (n, STATE_COLUMNS) float32, what is in the arena as `envs.state` describes it; None
            unless the specification is privileged.
    """

    health: float
    velocity: npt.NDArray[np.float32]
    position: npt.NDArray[np.float32]
    rays: npt.NDArray[np.float32] | None = None
    camera: npt.NDArray[np.uint8] | None = None
    state: npt.NDArray[np.float32] | None = None


def _validate(
    name: str,
    array: npt.NDArray[Any] | None,
    shape: tuple[int, ...] | None,
    dtype: type[np.generic],
    high: float | None = None,
) -> None:
    """Raise unless an array has this shape and type, is finite, and in [0, high] if given."""
    if array is None or shape is None:
        if array is not None or shape is not None:
            raise ValueError(f"{name}: {'missing' if array is None else 'not asked for'}")
        return
    if array.shape != shape or array.dtype != dtype:
        actual = f"{array.dtype} {array.shape}"
        raise ValueError(f"{name}: {actual} where {np.dtype(dtype)} {shape} belongs")
    if not np.isfinite(array).all():
        raise ValueError(f"{name}: a number is not finite")
    if high is not None and (array.min() < 0 or array.max() > high):
        raise ValueError(f"{name}: {array.min()} to {array.max()} is not within 0 to {high:g}")


class Step(NamedTuple):
    """The result of loading an arena or of a decision.

    Attributes:
        phase: FIRST after `load`, LAST when the episode is over, otherwise MID.
        reward: Sum of rewards since the previous step; 0.0 for FIRST.
        ended_by: Why the episode is over; None unless LAST.
        observation: What the agent now observes.
        reached: Number, from 1, of the marked place that the agent was in first since the arena was
            loaded; 0 if it has been in none, or nothing is watched (`envs.places`).
    """

    phase: Phase
    reward: float
    ended_by: EndedBy | None
    observation: Observation
    reached: int = 0


class Environment(Protocol):
    """A backend that plays one arena at a time."""

    @property
    def spec(self) -> ObservationSpec:
        """Specification of the observations."""
        ...

    def load(self, arena: Arena, seed: int) -> Step:
        """Build an arena and start an episode; the phase of the step is FIRST.

        Args:
            arena: The arena. What it leaves to chance is drawn from `seed`.
            seed: Seed of all randomness in the episode.

        Raises:
            arena_configs.model.ArenaError: The arena cannot be built.
        """
        ...

    def step(self, action: int) -> Step:
        """Take one decision.

        Args:
            action: 3 x move + turn, 0 to 8.

        Raises:
            ValueError: The action is out of range.
            RuntimeError: No episode is open.
        """
        ...

    def close(self) -> None:
        """Release what the backend holds; it may be called twice."""
        ...
