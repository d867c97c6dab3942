"""Assessors beside a layout: predictions of held-out outcomes on one table, in the same parts."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.checking.baselines import Aggregate, GradientBoosting, Linear, Logistic
from animalcat.layouts.checking.population import PopulationIRT
from animalcat.layouts.checking.predict import (
    Assessor,
    HeldOutPredictions,
    LayoutAssessor,
    Split,
    as_shares,
    held_out,
    insist_on_one_outcome,
    splits,
)
from animalcat.layouts.checking.scores import Estimate, bootstrap, murphy
from animalcat.layouts.checking.screening import Screening, screen_demands
from animalcat.layouts.library import LayoutSource
from animalcat.layouts.library.choice import load_for
from animalcat.layouts.model.frames import insist_frame, instances_in, outcomes_in
from animalcat.layouts.model.instances import Instances, OutcomeTable
from animalcat.layouts.model.spec import Layout
from animalcat.layouts.model.tables import TableError

if TYPE_CHECKING:
    import pandas as pd

Floats: TypeAlias = npt.NDArray[np.float64]
Rows: TypeAlias = npt.NDArray[np.int64]

REPEATS: Final = 5
"""How often a part is held out unless another number is asked for."""
SHARE: Final = 0.2
"""Share of the instances that is held out, as Burden et al. (2023) do."""
_FEWEST: Final = 10
"""With fewer outcomes an agent is left out: nothing can be held out."""
_POPULATION: Final = 3
"""Fewest agents for the population model, which needs two others."""
_CLUSTERS: Final = 5
"""Fewest agents that are resampled for the interval of a difference; of fewer, outcomes are."""


@dataclass(frozen=True, slots=True)
class AgentScore:
    """How well one assessor predicts one agent.

    Attributes:
        agent: The agent.
        passed: Share of its outcomes that it passed, or its mean score.
        brier: Brier score of its held-out outcomes; of scores, the mean squared error.
    """

    agent: str
    passed: float
    brier: float


@dataclass(frozen=True, slots=True)
class AssessorScore:
    """How well one assessor predicts.

    Attributes:
        name: The assessor.
        brier: Mean over agents of their Brier scores.
        calibration: Mean over agents of Murphy's reliability, 0 where predictions come true.
        refinement: Mean over agents of what is left of the Brier score.
        behind: Brier score less that of the layout, mean over agents, with its 90 % interval; None
            of the layout itself.
        agents: Its scores by agent.
    """

    name: str
    brier: float
    calibration: float
    refinement: float
    behind: Estimate | None
    agents: tuple[AgentScore, ...]


@dataclass(frozen=True, eq=False)
class Assessment:
    """A layout and other assessors on the same held-out outcomes.

    Attributes:
        layout: The layout.
        scores: Of the layout first, then of the others.
        screening: Which of the layout's demands are demands; None where outcomes are all equal.
        notes: What was left out, and what one assessor knows that others do not, in sentences.
        repeats: How often a part was held out.
        instances: Number of instances.
    """

    layout: Layout
    scores: tuple[AssessorScore, ...]
    screening: Screening | None
    notes: tuple[str, ...]
    repeats: int
    instances: int

    def to_dict(self) -> dict[str, Any]:
        """Convert to JSON values."""
        return {
            "layout": {
                "name": self.layout.name,
                "variant": self.layout.variant,
                "digest": self.layout.digest,
            },
            "instances": self.instances,
            "repeats": self.repeats,
            "share": SHARE,
            "assessors": [asdict(score) for score in self.scores],
            "screening": [] if self.screening is None else [*map(asdict, self.screening.demands)],
            "notes": list(self.notes),
        }

    def to_frame(self) -> pd.DataFrame:
        """A row for each assessor and agent: `assessor`, `agent`, `passed` and `brier`."""
        import pandas as pd

        return pd.DataFrame(
            [
                {"assessor": score.name, **asdict(one)}
                for score in self.scores
                for one in score.agents
            ]
        )


def assess(
    layout: LayoutSource,
    df: pd.DataFrame,
    agents: Sequence[str],
    *,
    repeats: int = REPEATS,
    seed: int = 0,
) -> Assessment:
    """Compare a layout with assessors that do not explain, on held-out outcomes of a table.

    The table has a row for each instance, a column for each meta-feature of the layout, and a
    column of outcomes for each agent; what was not played is empty there.

    Args:
        layout: The layout, or what `load_layout` makes one of.
        df: The table.
        agents: The columns of outcomes.
        repeats: How often a fifth of the instances is held out.
        seed: Seed of the parts and of all fits.

    Raises:
        TypeError: The table is no pandas table.
        ValueError: A column is missing, a cell does not fit, or the layout describes no row.
    """
    frame = insist_frame(df, "assess(layout, df, agents)")
    taken = load_for(layout, frame, agents)
    instances = instances_in(frame, taken, agents)
    table = OutcomeTable(instances, tuple(agents), outcomes_in(frame, agents).T)
    covered = table.covered([taken])
    return assess_table(taken, covered.table, repeats=repeats, seed=seed)


def assess_table(
    layout: Layout,
    table: OutcomeTable,
    *,
    repeats: int = REPEATS,
    seed: int = 0,
    tick: Callable[[str, int, int], None] = lambda what, done, total: None,
) -> Assessment:
    """Compare a layout with assessors that do not explain, on held-out outcomes of a table.

    All of them predict the same outcomes: the same instances are held out for all agents, as in
    Burden et al. (2023). The assessors beside the layout are given its demands, and nothing else.

    Args:
        layout: The layout, with one outcome.
        table: Outcomes on instances that it describes.
        repeats: How often a fifth of the instances is held out.
        seed: Seed of the parts and of all fits.
        tick: Told what is fitted, how much is done, and of how much.

    Raises:
        ValueError: The layout has several outcomes, or no agent has enough of them.
    """
    insist_on_one_outcome(layout)
    features = table.instances.features(layout)
    names = table.instances.names or tuple(f"instance {k + 1}" for k in range(len(features)))
    told = [k for k in range(features.shape[1]) if k not in layout.taught]
    demands = Instances(
        tuple(layout.feature_names[k] for k in told),
        features[:, told],
        table.instances.paradigms,
        names,
    )
    shares = np.full(table.outcomes.shape, np.nan)
    for row, outcomes in enumerate(table.outcomes):
        played = np.isfinite(outcomes)
        if played.any():
            shares[row, played] = as_shares(layout, outcomes[played], features[played])
    counts = np.isfinite(shares).sum(axis=1)
    chosen = np.flatnonzero(counts >= _FEWEST).tolist()
    if not chosen:
        raise TableError(f"no agent has {_FEWEST} outcomes or more: nothing can be held out")
    notes = [
        f"{table.agents[row]} is left out: it has {counts[row]} outcomes, and {_FEWEST} are needed."
        for row in range(len(counts))
        if row not in chosen
    ]
    binary = bool(np.isin(shares[np.isfinite(shares)], (0.0, 1.0)).all())
    crowd = OutcomeTable(demands, table.agents, shares)
    parts = [*splits(len(features), seed, repeats, SHARE)]
    found: dict[str, list[HeldOutPredictions]] = {}
    for done, row in enumerate(chosen):
        agent = table.agents[row]
        played = np.flatnonzero(np.isfinite(shares[row]))
        own = [part for split in parts if (part := _among(split, played))]
        pairs: list[tuple[Assessor, Instances, Floats]] = [
            (LayoutAssessor(layout, seed, by="live"), table.instances, table.outcomes[row])
        ]
        pairs += [(one, demands, shares[row]) for one in _beside(crowd, agent, seed, binary=binary)]
        for assessor, instances, outcomes in pairs:
            tick(f"{agent}: {assessor.name}", done, len(chosen))
            kept = held_out(assessor, instances.rows(played), outcomes[played], own)
            scored = HeldOutPredictions(
                kept.rows, kept.predicted, shares[row][played][kept.rows], kept.repeat
            )
            found.setdefault(assessor.name, []).append(scored)
    passed = [float(shares[row][np.isfinite(shares[row])].mean()) for row in chosen]
    agents = [table.agents[row] for row in chosen]
    first = next(iter(found.values()))
    scores = [
        _scored(name, own, None if own is first else first, agents, passed, seed)
        for name, own in found.items()
    ]
    if len(table.agents) >= _POPULATION and binary:
        notes.append(
            "The population model is told what the other agents did on the held-out instances too; "
            "the others know only their demands."
        )
    if binary and importlib.util.find_spec("xgboost") is None:
        notes.append("Boosting is left out: it takes the extra `assessors`.")
    screening = None
    if np.ptp(shares[np.isfinite(shares)]) > 0.0:
        screening = screen_demands(demands, shares[chosen], seed=seed)
    return Assessment(layout, tuple(scores), screening, tuple(notes), repeats, len(features))


def _beside(crowd: OutcomeTable, agent: str, seed: int, *, binary: bool) -> list[Assessor]:
    """The assessors beside the layout, as far as the outcomes and this machine allow them."""
    if not binary:
        return [Aggregate(), Linear()]
    beside: list[Assessor] = [Aggregate(), Logistic()]
    if importlib.util.find_spec("xgboost") is not None:
        beside.append(GradientBoosting(seed=seed))
    if len(crowd.agents) >= _POPULATION:
        others = [k for k, name in enumerate(crowd.agents) if name != agent]
        rest = OutcomeTable(
            crowd.instances, tuple(crowd.agents[k] for k in others), crowd.outcomes[others]
        )
        beside.append(PopulationIRT(rest))
    return beside


def _among(split: Split, played: Rows) -> Split | None:
    """The part of a split that an agent played, by its own rows; None if one side is empty."""
    train = np.flatnonzero(np.isin(played, split.train))
    test = np.flatnonzero(np.isin(played, split.test))
    return Split(train, test) if len(train) and len(test) else None


def _difference(ours: Floats, theirs: Floats) -> float:
    return float(np.mean(ours - theirs))


def _scored(
    name: str,
    own: Sequence[HeldOutPredictions],
    first: Sequence[HeldOutPredictions] | None,
    agents: Sequence[str],
    passed: Sequence[float],
    seed: int,
) -> AssessorScore:
    parts = [murphy(kept.predicted, kept.outcomes) for kept in own]
    behind = None
    if first is not None:
        others = [murphy(kept.predicted, kept.outcomes).brier for kept in first]
        if len(parts) >= _CLUSTERS:
            behind = bootstrap(_difference, [part.brier for part in parts], others, seed)
        else:
            ours, theirs = (
                np.concatenate([(kept.predicted - kept.outcomes) ** 2 for kept in each])
                for each in (own, first)
            )
            # What is held out several times is one outcome.
            most = 1 + max(int(kept.rows.max()) for kept in own)
            each = np.concatenate([k * most + kept.rows for k, kept in enumerate(own)])
            behind = bootstrap(_difference, ours, theirs, seed, instances=each)
    return AssessorScore(
        name,
        float(np.mean([part.brier for part in parts])),
        float(np.mean([part.calibration for part in parts])),
        float(np.mean([part.refinement for part in parts])),
        behind,
        tuple(
            AgentScore(agent, share, part.brier)
            for agent, share, part in zip(agents, passed, parts, strict=True)
        ),
    )
