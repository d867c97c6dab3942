"""Change over training: each node of one agent as a random walk over its checkpoints.

Checkpoints that were measured independently have wide intervals, although an agent is seldom far
from where it was one checkpoint before. Here each node walks over the checkpoints (Brownian motion,
the continuous form of a local-level state-space model; Harvey 1989, Forecasting, structural time
series models and the Kalman filter). How fast it walks is not assumed: it is integrated out.

A node is taken in coordinates without ends: the probit of its share of the range, or the logarithm
of its distance from the only end. There each checkpoint's posterior is approximated by a normal
distribution; without its prior that is what its session said.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

from animalcat.layouts.checking.compare import Posterior, Trajectory, drawn_for
from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.inference.summary import hdi
from animalcat.layouts.model.spec import Layout, finite_range

Floats: TypeAlias = npt.NDArray[np.float64]

_DRAWS: Final = 4000
_RATES: Final = np.exp(np.linspace(math.log(0.02), math.log(4.0), 24))
"""How far a node may walk over all checkpoints, in standard deviations of its prior; equally
probable on the logarithm."""
_EDGE: Final = 1e-4
"""Least distance of a share of the range from 0 and 1."""
_LEAST_GAIN: Final = 1e-3
"""Least part of the prior's precision that a session adds; it keeps noise of draws out."""


@dataclass(frozen=True, slots=True)
class Start:
    """What is known of a node before the first checkpoint.

    Attributes:
        low: Lower end of its range; None if there is none.
        high: Upper end of its range; None if there is none.
        mean: Mean of its prior.
        sd: Standard deviation of its prior.
    """

    low: float | None
    high: float | None
    mean: float
    sd: float

    @classmethod
    def of_layout(cls, layout: Layout) -> dict[str, Start]:
        """The start of every node of a layout, by name."""
        return {
            node.name: cls(
                finite_range(node.prior)[0],
                finite_range(node.prior)[1],
                node.prior.mean,
                node.prior.sd,
            )
            for node in layout.latents
        }

    @classmethod
    def of_profile(cls, profile: Mapping[str, Any]) -> dict[str, Start]:
        """The start of every node of a profile's JSON, by name.

        Raises:
            ValueError: The data is not a profile.
        """
        try:
            return {
                name: cls(
                    node["range"][0],
                    node["range"][1],
                    float(node["prior_mean"]),
                    float(node["prior_sd"]),
                )
                for name, node in profile["nodes"].items()
            }
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"the profile does not say its priors: {error!r}") from None

    def free(self, values: Floats) -> Floats:
        """Map values to coordinates without ends."""
        if self.low is None:
            return values
        if self.high is None:
            return np.log(np.maximum(values - self.low, _EDGE * self.sd))
        share = (values - self.low) / (self.high - self.low)
        return ndtri(np.clip(share, _EDGE, 1.0 - _EDGE))

    def back(self, coordinates: Floats) -> Floats:
        """Map coordinates without ends to values."""
        if self.low is None:
            return coordinates
        if self.high is None:
            return self.low + np.exp(coordinates)
        return self.low + (self.high - self.low) * ndtr(coordinates)


def walked(
    posteriors: Sequence[Posterior], steps: Sequence[float], starts: Mapping[str, Start]
) -> list[Trajectory]:
    """Follow a profile over checkpoints, each node as a walk.

    Args:
        posteriors: One for each checkpoint, measured independently with one layout.
        steps: When each was taken, in ascending order.
        starts: What was known of every node before the first checkpoint.

    Raises:
        ValueError: The numbers differ, steps do not ascend, layouts differ, or a node is unknown.
    """
    if len(steps) != len(posteriors) or any(b <= a for a, b in itertools.pairwise(steps)):
        raise ValueError(f"{len(posteriors)} checkpoints want as many rising steps: {steps}")
    if len({posterior.layout for posterior in posteriors}) != 1:
        raise ValueError("checkpoints were measured with different layouts")
    paths: list[Trajectory] = []
    even = np.full(_DRAWS, 1.0 / _DRAWS)
    for node, unit in zip(posteriors[0].nodes, posteriors[0].units, strict=True):
        if node not in starts:
            raise ValueError(f"nothing says where {node} starts")
        drawn = _walk(
            starts[node], [posterior.column(node) for posterior in posteriors], steps, node
        )
        intervals = [hdi(column, even) for column in drawn.T]
        paths.append(
            Trajectory(
                node,
                unit,
                tuple(float(step) for step in steps),
                tuple(drawn.mean(axis=0).tolist()),
                tuple(low for low, _ in intervals),
                tuple(high for _, high in intervals),
                (None, *np.mean(np.diff(drawn, axis=1) > 0.0, axis=0).tolist()),
            )
        )
    return paths


def _walk(start: Start, columns: Sequence[Floats], steps: Sequence[float], node: str) -> Floats:
    """Draws (draws, checkpoints) of a node's walk."""
    before = start.free(drawn_for(start.mean, start.sd, start.low, start.high, rng(0, node, 0)))
    mean, variance = float(before.mean()), float(before.var())
    free = [start.free(column) for column in columns]
    after = np.array([x.var() for x in free])
    gained = np.maximum(1.0 / after - 1.0 / variance, _LEAST_GAIN / variance)
    said = (np.array([x.mean() for x in free]) / after - mean / variance) / gained
    at = np.array(steps, np.float64)
    passed = (at - at[0]) / max(at[-1] - at[0], 1e-12)
    together = np.minimum(passed[:, np.newaxis], passed)
    logs, means, roots = list[float](), list[Floats](), list[Floats]()
    for rate in _RATES:
        prior: Floats = variance * (1.0 + rate**2 * together)
        whole = prior + np.diag(1.0 / gained)
        inverse = np.asarray(np.linalg.inv(whole), np.float64)
        off: Floats = said - mean
        size = float(np.linalg.slogdet(whole)[1])
        logs.append(-0.5 * (float(off @ inverse @ off) + size))
        means.append(mean + prior @ inverse @ off)
        covariance: Floats = prior - prior @ inverse @ prior + 1e-9 * variance * np.eye(len(at))
        roots.append(np.asarray(np.linalg.cholesky(covariance), np.float64))
    shares = np.exp(np.array(logs) - max(logs))
    generator = rng(0, f"walk of {node}", len(at))
    which = generator.choice(len(_RATES), _DRAWS, p=shares / shares.sum())
    noise = generator.standard_normal((_DRAWS, len(at)))
    drawn = np.array(means)[which] + np.einsum("dij,dj->di", np.array(roots)[which], noise)
    return start.back(drawn)
