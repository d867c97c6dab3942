"""Persons as a group: one fit in which each tells of the others, and of who is typical of them.

A node of a person is normal around that of the typical person: by the logit of its share of a
range, by its logarithm where it is positive, and else as it is. The typical person has the layout's
prior, once for the whole group, so the group is not drawn to the prior once for each person, as the
mean of their profiles is. Persons are exchangeable, and their nodes vary independently.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit

from animalcat.layouts.inference.fit import FitData, FitRequest, FitResult, fit
from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.model.priors import HalfNormal, Normal, Prior, ScaledBeta
from animalcat.layouts.model.spec import Layout

if TYPE_CHECKING:
    from animalcat.layouts.inference.backend.engine import Trace

Floats: TypeAlias = npt.NDArray[np.float64]

LEAST_PERSONS: Final = 3
"""Fewest persons of a group; two alone do not tell how persons vary."""


def fit_group(
    layout: Layout, persons: Sequence[FitData], seed: int = 0, **sampling: Any
) -> tuple[FitResult, Floats]:
    """Fit a layout to all persons of a group at once, by NUTS.

    Args:
        layout: The layout.
        persons: What each has played.
        seed: Seed of the fit.
        **sampling: `chains`, `draws` and `tune`, as `FitRequest` has them.

    Returns:
        The posterior of the typical person, than whom half of the group have more, and draws of
        one more person of the group, (draws, latents).

    Raises:
        ValueError: There are fewer than three persons, or the layout has other outcomes than
            success.
    """
    from animalcat.layouts.inference.backend.density import covers

    if len(persons) < LEAST_PERSONS:
        raise ValueError(f"a group takes {LEAST_PERSONS} persons at least; here are {len(persons)}")
    if not covers(layout):
        raise ValueError(f"layout {layout.name} has other outcomes than success, and groups do not")
    engine: Any = GroupSampler(persons)
    whole: FitData = engine.whole
    sampling = {"draws": 2000, **sampling}
    request = FitRequest(layout, *whole[:2], seed, weights=whole.weights, **sampling)
    return fit(request, engine), engine.another


class GroupSampler:
    """Samples the typical person of a group, and one more, where an engine samples an agent."""

    def __init__(self, persons: Sequence[FitData]) -> None:
        weights = [np.ones(len(p.outcomes)) if p.weights is None else p.weights for p in persons]
        self.whole = FitData(
            np.concatenate([one.features for one in persons]),
            np.concatenate([one.outcomes for one in persons]),
            np.concatenate(weights),
        )
        self._persons = np.repeat(np.arange(len(persons)), [len(own) for own in weights])

    def sample(self, layout: Layout, *given: Any) -> Trace:
        """As `Engine.sample` does; of what is given the settings alone are used."""
        from animalcat.layouts.inference.backend import compat, density, engine, nuts

        model = density.model(layout, *self.whole[:3], self._persons)
        nodes, many = len(layout.latents), int(self._persons.max()) + 1
        names = [*layout.latent_names, *(str(k * (many + 1)) for k in range(nodes))]
        drawn, known = compat.from_arrow(nuts.sample(model, given[2]), names)
        typical, spread = np.split(drawn, 2, axis=-1)
        off = spread * rng(given[2].seed, "another", 0).standard_normal(spread.shape)
        each = [moved(n.prior, typical[..., k], off[..., k]) for k, n in enumerate(layout.latents)]
        self.another = np.stack(each, axis=-1).reshape(-1, nodes)
        return engine.Trace(typical, known["energy"], int(known["diverging"].sum()), known)


def moved(prior: Prior, typical: Floats, off: Floats) -> Floats:
    """Nodes of persons who are off the typical one, on the scale of `density`."""
    match prior:
        case Normal():
            return typical + prior.sd * off
        case HalfNormal():
            return typical * np.exp(off)
        case ScaledBeta():
            share = expit(logit((typical - prior.low) / prior.span) + off)
            return prior.low + prior.span * np.asarray(share, np.float64)
