"""Limits of what an agent sees."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

import numpy as np
import numpy.typing as npt

from animalcat.envs.rays import Rays
from animalcat.portable.products import product

if TYPE_CHECKING:
    from animalcat.envs.agents.base import EpisodeInfo
    from animalcat.envs.types import Observation, ObservationSpec, RaySpec

FIELD_OF_VIEW: Final = 100.0
"""Degrees of the camera's picture, across and upright."""


class SensorLimit(Protocol):
    """A limit on what an agent sees: it may take something away from each observation."""

    def begin(self, info: EpisodeInfo) -> None:
        """Prepare for an episode.

        Raises:
            ValueError: The observation lacks what the limit acts on.
        """
        ...

    def see(self, observation: Observation) -> Observation:
        """What is left of an observation."""
        ...


class Sight:
    """Rays end after some metres, as if nothing were beyond."""

    def __init__(self, metres: float) -> None:
        """Set the limit.

        Args:
            metres: How far rays reach.
        """
        self._metres = metres

    def begin(self, info: EpisodeInfo) -> None:
        """Prepare for an episode.

        Raises:
            ValueError: The observation has no rays, or a camera, which sees at every distance.
        """
        self._rays = check_sight(info.observation_spec)

    def see(self, observation: Observation) -> Observation:
        """The same, with shorter rays."""
        assert observation.rays is not None
        rays = Rays(observation.rays.copy(), self._rays)
        far = rays.distances > self._metres
        rays.table[far] = 0.0
        rays.table[far, -2:] = 1.0
        return observation._replace(rays=rays.table.reshape(-1))


class Resolution:
    """Rays and pixels that are nearer to each other than an angle show the same."""

    def __init__(self, degrees: float) -> None:
        """Set the limit.

        Args:
            degrees: The angle.
        """
        self._degrees = degrees

    def begin(self, info: EpisodeInfo) -> None:
        """Prepare for an episode.

        Raises:
            ValueError: The observation has neither rays nor a camera.
        """
        spec = info.observation_spec
        check_resolution(spec)
        self._rays = None if spec.rays is None else self._telling_rays(spec.rays)
        self._spec = spec.rays
        self._block = 1
        if spec.camera is not None:
            pixel = FIELD_OF_VIEW / spec.camera.resolution
            self._block = max(1, round(self._degrees / pixel))

    def see(self, observation: Observation) -> Observation:
        """The same, coarser."""
        rays, camera = observation.rays, observation.camera
        if rays is not None and self._rays is not None:
            rays = Rays(rays, self._spec).table[self._rays].reshape(-1)
        if camera is not None and self._block > 1:
            camera = _coarser(camera, self._block)
        return observation._replace(rays=rays, camera=camera)

    def _telling_rays(self, spec: RaySpec) -> npt.NDArray[np.int64]:
        """For each ray, the ray that tells for it: the nearest to the middle of its angle."""
        angle = np.array(spec.angles)
        middle = np.round(angle / self._degrees) * self._degrees
        return np.abs(angle[None, :] - middle[:, None]).argmin(axis=1)


def check_sight(spec: ObservationSpec) -> RaySpec:
    """Check that `sight` can act on observations, and say what their rays are.

    Raises:
        ValueError: It cannot.
    """
    if spec.camera is not None:
        raise ValueError(
            "sight ends rays after some metres, and the camera would show what is beyond: play "
            "without a camera, or limit resolution instead"
        )
    if spec.rays is None:
        raise ValueError("sight ends rays after some metres, and the observation has none")
    return spec.rays


def check_resolution(spec: ObservationSpec) -> None:
    """Check that `resolution` can act on observations.

    Raises:
        ValueError: It cannot.
    """
    if spec.rays is None and spec.camera is None:
        raise ValueError("resolution acts on rays and camera, and the observation has neither")


def _coarser(image: npt.NDArray[np.uint8], block: int) -> npt.NDArray[np.uint8]:
    """A square image whose square blocks of pixels have their mean colour."""
    number = np.arange(len(image)) // block
    same = (number[:, None] == number[None, :]).astype(np.float64)
    mean = same / same.sum(axis=1, keepdims=True)
    coarse = np.empty_like(image)
    for channel in range(image.shape[2]):
        layer = image[:, :, channel].astype(np.float64)
        coarse[:, :, channel] = np.round(product(product(mean, layer), mean.T))
    return coarse
