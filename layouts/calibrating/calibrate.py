"""From a layout and the outcomes of several agents to a calibrated layout."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from animalcat.layouts.calibrating.population import (
    CalibrationError,
    Population,
    PopulationModel,
    check_layout,
)
from animalcat.layouts.model.calibration import (
    EASINESS,
    MOST,
    SHARPEST,
    SHARPNESS,
    STRANGENESS,
    Calibration,
    InstanceCalibration,
    features_digest,
)
from animalcat.layouts.model.instances import OutcomeTable, check_chances
from animalcat.layouts.model.links import Formula, OddsShift
from animalcat.layouts.model.nodes import Bernoulli, Derived, Feature, Latent, OutcomeNode
from animalcat.layouts.model.priors import ScaledBeta
from animalcat.layouts.model.spec import Layout

VARIANT: Final = "calibrated"
"""Variant of every calibrated layout."""
_STRANGE: Final = Latent(
    STRANGENESS,
    "bias",
    "1",
    ScaledBeta(0.0, 1.0),
    "0 where it finds the same arenas hard as earlier agents, 1 where what they taught of arenas "
    "does not hold of it",
)
"""Agents of another kind find other arenas easy, so what was taught holds wholly or hardly at all.
With odds that grow more slowly from one to the other, all agents are predicted worse
(docs/research/layouts.md)."""
_OWN_NODES: Final = (
    Derived("likeness", "1", Formula(f"logistic(20 * (0.5 - {STRANGENESS}))")),
    Derived("ownEasiness", "1", Formula(f"{EASINESS} * likeness")),
    Derived("ownSharpness", "1", Formula(f"exp(likeness * log({SHARPNESS}))")),
)


def calibrate(
    layout: Layout,
    table: OutcomeTable,
    name: str,
    seed: int,
    *,
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
        versions: Versions of what fits, by name, for the provenance.
        determinism: Shares of agents that are fully random and fully deterministic, if known.
        held_out: Judges the model by agents that are held out (`assessment.judge`); the layout
            keeps what it finds.

    Raises:
        CalibrationError: The layout cannot be calibrated by these outcomes.
        ValueError: A feature of the layout is missing or out of range.
    """
    if layout.counted:
        raise CalibrationError(
            f"layout {layout.name} ({layout.variant}) counts what an agent has played before. That "
            "is not a property of an instance; calibrate another variant"
        )
    model = population_model(layout, table)
    population = model.fit(seed)
    judged = held_out(model) if held_out is not None else ()
    quality = [("spread", population.spread), *judged]
    return calibrated_layout(
        layout, table, population, name, versions=versions, determinism=determinism, fit=quality
    )


def population_model(layout: Layout, table: OutcomeTable) -> PopulationModel:
    """The hierarchical model of a layout for a table of outcomes.

    Raises:
        CalibrationError: Instances have no names or the same one twice; and as for
            `PopulationModel`.
        ValueError: A feature of the layout is missing or out of range.
    """
    check_layout(layout)
    names = table.instances.names
    if not names:
        raise CalibrationError("instances have no names; calibration tells them apart by name")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise CalibrationError(f"instance {twice} has several rows; one is expected")
    columns = zip(table.instances.columns, table.instances.values.T, strict=True)
    check_chances(layout, [name for name, c in columns if np.isfinite(c).any()], "a calibration")
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

    It is the layout as written with features `easiness` and `sharpness` that change the odds of
    success of every instance it knows, unless the agent is a stranger. So whatever takes a layout
    takes a calibrated one.

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
    root = layout.outcome.parents[0]
    shifted = Derived(
        f"{root}Calibrated", "1", OddsShift(root, *[node.name for node in _OWN_NODES[1:]])
    )
    kept = [i for i in range(len(table.agents)) if i not in set(without)]
    own = table.instances.features(layout)
    # What is known of an instance from a few agents is not certain. Odds that are nearer to even
    # predict as the mean over what it may be does (MacKay 1992).
    sharpness = 1.0 / np.sqrt(1.0 + np.pi / 8.0 * population.doubt**2)
    easiness = np.clip(sharpness * population.easiness, -MOST, MOST)
    played = np.count_nonzero(np.isfinite(table.outcomes[kept]), axis=0)
    rows = tuple(
        (
            table.instances.names[i],
            InstanceCalibration(
                round(float(easiness[i]), 3), features_digest(row), round(float(sharpness[i]), 3)
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
        latents=(*layout.latents, _STRANGE),
        derived=(*layout.derived, *_OWN_NODES, shifted),
        outcomes=(OutcomeNode.of(Bernoulli(shifted.name)),),
        excludes=layout.excludes,
        cues=layout.cues,
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
