"""Reading the rays of an observation: what each met, where, and how far away."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from animalcat.arena_configs.tags import LOGGED_TAGS, MISSED, RAY_TAGS, TAG_OF, UNLISTED
from animalcat.envs.types import RAY_LENGTH, RaySpec

OTHER: Final = "other"
"""What a ray met that the observation has no column for."""

_DEFAULT: Final = RaySpec()
_KINDS: Final[dict[int, str | None]] = {MISSED: None, UNLISTED: OTHER, **dict(enumerate(RAY_TAGS))}


class Ray(NamedTuple):
    """One ray.

    Attributes:
        angle: Degrees to the right of the heading; negative to the left.
        distance: Metres that the agent's body could move this way before it touches what was met;
            200 if nothing was.
        kind: The tag of what was met (`RaySpec.columns`), "other" if there is no column for it,
            None if nothing was met.
    """

    angle: float
    distance: float
    kind: str | None


class Rays:
    """The rays of an observation: `Rays(observation.rays, info.observation_spec.rays)`.

    They are in the order of the observation: the middle one, the first to the right, the first to
    the left, the second to the right, and so on. `rays[0]` is a `Ray`, and `for ray in rays` goes
    through them.

    Attributes:
        spec: The specification of the rays.
        table: (n, tags + 2) float32, the values with a row for each ray; `spec.columns` names the
            columns. It is a view of the values.
    """

    __slots__ = ("spec", "table")

    def __init__(
        self, values: npt.NDArray[np.float32] | None, spec: RaySpec | None = _DEFAULT
    ) -> None:
        """Read the rays of an observation.

        Args:
            values: (spec.size,) `Observation.rays`.
            spec: What the agent is told of them when an episode begins: `observation_spec.rays`.
                Left out, it is five rays to 60 degrees with 12 tags, as sessions have by default.

        Raises:
            ValueError: There are no rays, or these are not of this specification.
        """
        if values is None or spec is None:
            raise ValueError("the observation has no rays: turn them on for session or environment")
        if values.shape != (spec.size,):
            raise ValueError(
                f"an array of shape {values.shape} where {2 * spec.per_side + 1} rays with "
                f"{spec.tags} tags make ({spec.size},): give Rays the specification that the agent "
                "is told, which is info.observation_spec.rays"
            )
        self.spec = spec
        self.table = values.reshape(-1, spec.tags + 2)

    @property
    def angles(self) -> list[float]:
        """Degrees of each ray to the right of the heading."""
        return self.spec.angles

    @property
    def distances(self) -> npt.NDArray[np.float64]:
        """(n,) metres that the body could move along each ray; 200 where nothing was met."""
        return self.table[:, -1].astype(np.float64) * RAY_LENGTH

    @property
    def tags(self) -> npt.NDArray[np.int64]:
        """(n,) index in `RAY_TAGS` of what each ray met, or `UNLISTED`, or `MISSED`."""
        marks = self.table[:, : self.spec.tags]
        without = np.where(self.table[:, -2] > 0.0, MISSED, UNLISTED)
        return np.where(marks.any(axis=1), marks.argmax(axis=1), without)

    def __len__(self) -> int:
        """How many there are."""
        return len(self.table)

    def __getitem__(self, index: int) -> Ray:
        """One of them, by its number in the observation."""
        row = self.table[index]
        hit = int(row[:-2].argmax())
        kind = RAY_TAGS[hit] if row[hit] else None if row[-2] else OTHER
        return Ray(self.spec.angles[index], float(row[-1]) * RAY_LENGTH, kind)

    def __iter__(self) -> Iterator[Ray]:
        """Each in turn."""
        tags: list[int] = self.tags.tolist()
        for angle, distance, tag in zip(self.angles, self.distances.tolist(), tags, strict=True):
            yield Ray(angle, distance, _KINDS[tag])

    def nearest(self, *kinds: str) -> Ray | None:
        """Find the ray that met any of some kinds of objects at the shortest distance.

        Args:
            kinds: Names of objects as arena files have them ("GoodGoal", "Wall"), names of columns
                ("goodGoal", "arena"), or "other".

        Returns:
            The ray, or None if no ray met any of them.

        Raises:
            ValueError: There is no such kind, or these rays cannot tell it.
        """
        wanted = {self._kind_of(name) for name in kinds}
        met = [ray for ray in self if ray.kind in wanted]
        return min(met, key=lambda ray: ray.distance, default=None)

    def _kind_of(self, name: str) -> str:
        """The column in which a kind of object is told."""
        tag = TAG_OF.get(name, name)
        if tag == OTHER or tag in RAY_TAGS[: self.spec.tags]:
            return tag
        if tag in LOGGED_TAGS:
            more = ", or have rays with 18 tags" if tag in RAY_TAGS else ""
            raise ValueError(
                f'rays with {self.spec.tags} tags do not tell {name}: ask for "{OTHER}", which is '
                f"all that they do not tell{more}"
            )
        known = sorted({*TAG_OF, *RAY_TAGS[: self.spec.tags], OTHER})
        near = difflib.get_close_matches(name, known, 1)
        meant = f"; did you mean {near[0]}?" if near else f"; there are {', '.join(known)}"
        raise ValueError(f"no ray tells {name!r}{meant}")
