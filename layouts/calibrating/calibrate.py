"""From a layout and the outcomes of several agents to a calibrated layout."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.calibrating.population import (
    CalibrationError,
    Effort,
    NotConvergedError,
    Population,
    PopulationModel,
    check_layout,
)
from animalcat.layouts.model.calibration import (
    EASINESS,
    MOST,
    SHARPEST,
    SHARPNESS,
    Calibration,
    Eased,
    features_digest,
)
from animalcat.layouts.model.instances import OutcomeTable
from animalcat.layouts.model.links import LogisticMargin, OddsShift, Scaled
from animalcat.layouts.model.nodes import Bernoulli, Derived, Feature, Latent, OutcomeNode
from animalcat.layouts.model.priors import MovedBeta, Normal, Prior, ScaledBeta
from animalcat.layouts.model.spec import Layout

Floats: TypeAlias = npt.NDArray[np.float64]

VARIANT: Final = "calibrated"
"""Variant of every calibrated layout."""


def calibrate(
    layout: Layout,
    table: OutcomeTable,
    name: str,
    seed: int,
    *,
    effort: Effort | None = None,
    versions: Sequence[tuple[str, str]] = (),
    determinism: tuple[float, float] | None = None,
    held_out: Callable[[PopulationModel], Sequence[tuple[str, float]]] | None = None,
) -> Layout:
    """Calibrate a layout by the outcomes of several agents.

    Args:
        layout: The layout as written.
        table: Outcomes of the agents; instances have names.
        name: Name of the calibrated layout.
        seed: Seed of the fit.
        effort: How long to sample.
        versions: Versions of what fits, by name, for the provenance.
        determinism: Shares of agents that are fully random and fully deterministic, if known.
        held_out: Judges the model by agents that are held out; what it finds is kept.

    Raises:
        CalibrationError: The outcomes do not do.
        NotConvergedError: The fit did not converge.
        ValueError: A feature of the layout is missing or out of range.
    """
    model = population_model(layout, table)
    found = model.fit(seed, effort)
    if not found.converged:
        reasons = found.diagnostics["reasons"]
        raise NotConvergedError(
            f"the fit did not converge, so nothing is kept: {'; '.join(reasons[:3])}"
            f"{f' and {len(reasons) - 3} more' * (len(reasons) > 3)}. Give it more draws, or "
            "outcomes of more agents"
        )
    judged = held_out(model) if held_out is not None else ()
    quality = [
        ("rhat", float(found.diagnostics["rhat"])),
        ("ess_bulk", float(found.diagnostics["ess_bulk"])),
        ("divergences", float(found.diagnostics["divergences"])),
        *judged,
    ]
    return calibrated_layout(
        layout, table, found, name, versions=versions, determinism=determinism, fit=quality
    )


def population_model(layout: Layout, table: OutcomeTable) -> PopulationModel:
    """The hierarchical model of a layout for a table of outcomes.

    Raises:
        CalibrationError: Instances have no names or the same one twice, or a latent node has a
            prior that cannot be moved; and as for `PopulationModel`.
        ValueError: A feature of the layout is missing or out of range.
    """
    check_layout(layout)
    names = table.instances.names
    if not names:
        raise CalibrationError("instances have no names; calibration tells them apart by name")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise CalibrationError(f"instance {twice} has several rows; one is wanted")
    for node in layout.latents:
        _moved(node, 0.0, 1.0)
    return PopulationModel(layout, table.instances.features(layout), table.outcomes)


def calibrated_layout(
    layout: Layout,
    table: OutcomeTable,
    population: Population,
    name: str,
    *,
    without: Sequence[int] = (),
    versions: Sequence[tuple[str, str]] = (),
    determinism: tuple[float, float] | None = None,
    fit: Sequence[tuple[str, float]] = (),
) -> Layout:
    """Write down what a population says as a layout of its own.

    It is the layout as written with moved priors, other slopes and scales, and features `easiness`
    and `sharpness` that change the odds of success of every instance it knows. So whatever takes a
    layout takes a calibrated one.

    Args:
        layout: The layout as written.
        table: The outcomes to which the population was fitted.
        population: The population.
        name: Name of the calibrated layout.
        without: Indices of agents that were left out.
        versions: Versions of what fitted it, by name.
        determinism: Shares of agents that are fully random and fully deterministic, if known.
        fit: Quality of the fit, by name.
    """
    derived = [node for old in layout.derived for node in _calibrated(old, layout, population)]
    root = layout.outcome.parents[0]
    latents = tuple(_population_latent(layout, population, i) for i in range(len(layout.latents)))
    shifted = f"{root}Calibrated"
    derived.append(Derived(shifted, "1", OddsShift(root, EASINESS, SHARPNESS)))
    kept = [i for i in range(len(table.agents)) if i not in set(without)]
    own = table.instances.features(layout)
    easiness = np.clip(population.easiness.mean(axis=0), -MOST, MOST)
    sharpness = np.clip(_middle(population.sharpness), 1.0 / SHARPEST, SHARPEST)
    played = np.count_nonzero(np.isfinite(table.outcomes[kept]), axis=0)
    rows = tuple(
        (
            table.instances.names[i],
            Eased(
                round(float(easiness[i]), 4), features_digest(row), round(float(sharpness[i]), 4)
            ),
        )
        for i, row in enumerate(own.tolist())
        if played[i]
    )
    agents = tuple(table.agents[i] for i in kept)
    taught = (
        Feature(
            EASINESS,
            "1",
            -MOST,
            MOST,
            "logits by which the instance is easier than its demands say, from earlier agents",
            if_missing=0.0,
        ),
        Feature(
            SHARPNESS,
            "1",
            1.0 / SHARPEST,
            SHARPEST,
            "factor of the logit by which it tells agents apart, from earlier agents",
            if_missing=1.0,
        ),
    )
    return Layout(
        name=name,
        variant=VARIANT,
        features=(*layout.features, *taught),
        latents=latents,
        derived=tuple(derived),
        outcomes=(OutcomeNode.of(Bernoulli(shifted)),),
        excludes=layout.excludes,
        source=layout.source,
        about=f"{layout.name} ({layout.variant}), calibrated by {len(agents)} agents",
        calibration=Calibration(
            name=name,
            base=(layout.name, layout.variant, layout.digest),
            agents=agents,
            episodes=int(np.isfinite(table.outcomes[kept]).sum()),
            outcomes=outcomes_digest(table, kept),
            instances=rows,
            determinism=determinism,
            versions=tuple(versions),
            fit=tuple((key, round(value, 6)) for key, value in fit),
        ),
    )


def outcomes_digest(table: OutcomeTable, agents: Sequence[int]) -> str:
    """SHA-256 of the outcomes of some agents, whatever the order of agents and instances."""
    names = table.instances.names
    rows = sorted(
        f"{table.agents[i]}\t{names[j]}\t{table.outcomes[i, j]:g}"
        for i in agents
        for j in np.flatnonzero(np.isfinite(table.outcomes[i])).tolist()
    )
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()


def _population_latent(layout: Layout, population: Population, i: int) -> Latent:
    """A latent node with the prior that a further agent of the population has.

    Its scale counts that the location is not known exactly. So it is wider where agents are few.
    """
    location = population.location[:, i]
    scale = float(np.sqrt(np.mean(population.scale[:, i] ** 2) + np.var(location)))
    node = layout.latents[i]
    return replace(node, prior=_moved(node, round(float(location.mean()), 4), round(scale, 4)))


def _moved(node: Latent, location: float, scale: float) -> Prior:
    match node.prior:
        case ScaledBeta(low, high, alpha, beta):
            return MovedBeta(low, high, location, scale, alpha, beta)
        case Normal(mean, sd):
            return Normal(mean + sd * location, sd * scale)
        case _:
            raise CalibrationError(
                f"node {node.name} has the prior {node.prior}, which calibration cannot move; give "
                "it a scaled_beta or normal prior"
            )


def _calibrated(node: Derived, layout: Layout, population: Population) -> list[Derived]:
    """A derived node as calibrated, after the scaled demand that it needs if it is a margin."""
    link = node.link
    if not isinstance(link, LogisticMargin):
        return [node]
    slope = link.slope * float(_middle(population.slopes[node.name]))
    units = {n.name: n.unit for n in (*layout.features, *layout.derived)}
    demand = f"{node.name}Demand"
    scaled = Scaled(link.demand, round(float(_middle(population.demands[node.name])), 6))
    changed = replace(link, demand=demand, slope=float(f"{slope:.6g}"))
    return [
        Derived(demand, units[link.demand], scaled),
        Derived(node.name, node.unit, changed),
    ]


def _middle(draws: Floats) -> Floats:
    """Geometric mean of positive draws, over the first axis."""
    return np.asarray(np.exp(np.log(draws).mean(axis=0)), np.float64)
