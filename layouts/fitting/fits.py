"""Fits a layout to a pandas table of outcomes, and predicts the rows of another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.adaptive.learner import Learner
from animalcat.layouts.adaptive.signs import wrong_way_round
from animalcat.layouts.checking.predict import predict as predict_rows
from animalcat.layouts.explaining.kinds import PlayedEpisodes
from animalcat.layouts.explaining.readings import with_readings
from animalcat.layouts.fitting.estimates import (
    estimates_frame,
    nodes_html,
    nodes_text,
    scales_of,
    with_words,
)
from animalcat.layouts.fitting.exports import insist_success, of_export
from animalcat.layouts.inference.fit import FitRequest, FitResult
from animalcat.layouts.inference.fit import fit as fit_by_nuts
from animalcat.layouts.inference.summary import NodeSummary
from animalcat.layouts.library import LayoutSource, load_layout
from animalcat.layouts.library.choice import load_for
from animalcat.layouts.model.frames import insist_frame, instances_in, outcomes_in
from animalcat.layouts.model.instances import (
    Instances,
    TableError,
    left_out,
    told_gaps,
    with_average_chance,
)
from animalcat.layouts.model.spec import Layout
from animalcat.layouts.model.tables import guess, of_kind
from animalcat.layouts.reporting.profile import NOT_READ, Profile
from animalcat.outcomes import COLUMNS, check_outcomes

if TYPE_CHECKING:
    import pandas as pd

Floats: TypeAlias = npt.NDArray[np.float64]

SUCCESS: Final = "success"
AGENT: Final = "agent"
"""The column that says who played."""
_EXPORT: Final = frozenset({"instance", "outcome", "session"})
"""Columns by which a table in the form of `profile export --format csv` is known."""
_DRAWS: Final = 2000


@dataclass(frozen=True, eq=False, repr=False)
class Fit(FitResult):
    """A layout fitted to one agent's outcomes; a notebook shows its table.

    Attributes:
        agent: Who played; empty if that is not known.
        instances: The name of each row that was fitted.
        paradigms: The kind of test that each is; empty if unknown.
        misleading: By the name of each cue of the layout of which that is known, whether it
            misleads in each, as `Instances.misleading` has it.
        reasons: For every row that was given, why it was left out; empty if it was not.
        notes: What is assumed, in sentences.
        inverted: Which demands are met more often where more is asked for, in a sentence.
    """

    agent: str = ""
    instances: tuple[str, ...] = ()
    paradigms: tuple[str, ...] = ()
    misleading: Mapping[str, Floats] = field(default_factory=dict[str, Floats])
    reasons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    inverted: str = ""

    @classmethod
    def of(cls, fitted: FitResult, **about: Any) -> Fit:
        """Make one of a posterior.

        Args:
            fitted: The posterior, as `plots.read_results` reads it.
            **about: Further attributes, by name.
        """
        return cls(**{f.name: getattr(fitted, f.name) for f in fields(FitResult)}, **about)

    @cached_property
    def posterior(self) -> Any:
        """The draws as ArviZ has them: an `InferenceData`, or a `DataTree` from ArviZ 1 on.

        A node that is read in another unit than the layout's own is there a second time, with
        `_read` added to its name.
        """
        from animalcat.layouts.inference.arviz_data import to_arviz

        constants = {"instance": self.instances} if self.instances else None
        return to_arviz(with_readings(self.datasets(constants), self.layout, self._features))

    @cached_property
    def profile(self) -> Profile:
        """The profile: every node with its interval, and what it means."""
        played = PlayedEpisodes(
            np.empty((0, len(self.layout.features))) if self.data is None else self.data.features,
            np.empty(0) if self.data is None else self.data.outcomes,
            None if self.data is None else self.data.weights,
            self.paradigms,
            misleading=self.misleading,
        )
        about: dict[str, Any] = {"agent": self.agent or "agent", "episodes": len(played)}
        failed = not self.converged and self.diagnostics["engine"] != "smc"
        told = "not converged" if failed else NOT_READ if self.inverted else ""
        status = dict.fromkeys(self._capabilities, told) if told else {}
        profile = Profile.of_fit(self, status, about)
        thin = self.flat_draws[:: max(1, len(self.flat_draws) // _DRAWS)]
        return with_words(profile, thin, played)

    def to_frame(self) -> pd.DataFrame:
        """The estimates as a table, in the units in which nodes are read.

        Returns:
            A row for each node: kind, estimate, low and high ends of the 90 % interval, unit,
            status and note. Where next to nothing was learnt, the three numbers are missing.
        """
        return estimates_frame(self.profile.nodes_dict(), scales_of(self.layout, self._features))

    def summary(self) -> list[NodeSummary]:
        """Every node in the layout's own unit, as `Learner.summary` has them."""
        return list(self.nodes)

    def __repr__(self) -> str:
        return "\n".join([nodes_text(self.profile.nodes_dict(), self._title), *self.remarks])

    def _repr_html_(self) -> str:
        return nodes_html(self.profile.nodes_dict(), self._title, self.remarks)

    @property
    def remarks(self) -> tuple[str, ...]:
        """What has to be known of the fit, in sentences: what was left out, assumed or failed."""
        gone = left_out(self.reasons)
        said = [f"Left out: {told_gaps(gone, len(self.reasons))}."] * bool(gone)
        told = (self.inverted, *self.notes, *self._caveats)
        said += [f"{note[0].upper()}{note[1:]}." for note in told if note]
        if not self.converged and self.diagnostics["engine"] != "smc":
            said.append(f"It has not converged: {'; '.join(self.diagnostics['reasons'])}.")
        return tuple(said)

    @property
    def _caveats(self) -> Sequence[str]:
        return self.diagnostics.get("notes", ())

    @property
    def _capabilities(self) -> list[str]:
        return [self.layout.latent_names[k] for k in self.layout.capabilities]

    @property
    def _features(self) -> Floats | None:
        there = self.data is not None and len(self.data.features)
        return self.data.features if self.data is not None and there else None

    @property
    def _title(self) -> str:
        known = self.diagnostics
        quality = "live, not certified"
        if known["engine"] != "smc":
            sure = "converged" if self.converged else "NOT converged"
            ess = min(known["ess_bulk"], known["ess_tail"])
            quality = f"{sure} (R-hat {known['rhat']:.3f}, ESS {ess:.0f})"
        variant = f" ({self.layout.variant})" if self.layout.variant else ""
        title = f"{self.agent}: {self.layout.name}{variant}".removeprefix(": ")
        return f"{title}, {known['outcomes']} outcomes, {quality}"


def fit(
    layout: LayoutSource,
    df: pd.DataFrame,
    outcome: str | Sequence[str] = SUCCESS,
    *,
    agent: str = "",
    seed: int = 0,
    chains: int = 4,
    draws: int = 1000,
    tune: int = 1000,
) -> Fit:
    """Fit a layout to the outcomes of one agent, by NUTS.

    The table has a row for each instance, a column for each meta-feature of the layout, perhaps
    with a unit in brackets, and a column of outcomes; what was not played is empty there. Rows are
    called as the column `instance` says, or else the index. A table as
    `profile export --format csv` and `Client.outcomes` have it is taken as it is, and
    what was played again counts as less.

    Rows that the layout does not describe are left out, and the fit says how many and why.

    Args:
        layout: The layout, or what `load_layout` makes one of.
        df: The table.
        outcome: The column of outcomes: 1 and 0, True and False, success and failure, numbers of
            successful trials, or scores, as the layout has them. For a layout of several outcomes,
            its columns in the layout's order; by default they are called as the outcomes are.
        agent: Whose rows are taken, if the table has several agents.
        seed: Seed of the fit.
        chains: Number of chains.
        draws: Draws of each chain.
        tune: Tuning draws of each chain, which are discarded.

    Raises:
        TypeError: The table is no pandas table.
        ValueError: A column is missing, a cell does not fit, or the layout describes no row.
    """
    load_layout(layout)  # what is no layout is told before the table is looked at
    if not isinstance(outcome, str | list | tuple):
        raise TypeError(
            f"fit: outcome is {of_kind(outcome)}; name the column of df that has the outcomes, as "
            'outcome="success"'
        )
    sampling: dict[str, Any] = {"seed": seed, "chains": chains, "draws": draws, "tune": tune}
    frame = insist_frame(df, 'fit(layout, df, outcome="COLUMN")')
    layout = load_for(layout, frame, [outcome] if isinstance(outcome, str) else outcome)
    if _is_export(frame) and outcome in (SUCCESS, "outcome") and SUCCESS not in frame.columns:
        return _fit_export(layout, frame, agent, sampling)
    who = agent
    if AGENT in frame.columns and outcome != AGENT:
        who = _only_agent(frame, agent)
        frame = frame[frame[AGENT] == who] if who else frame
    columns = [outcome] if isinstance(outcome, str) else list(outcome)
    if len(layout.outcomes) > 1 and outcome == SUCCESS:
        columns = list(layout.outcome_names)
    if len(columns) != len(layout.outcomes):
        each = f". Several agents are fitted one by one: fit(layout, df, outcome={columns[0]!r})"
        raise TableError(
            f"fit: outcome names {len(columns)} columns, {', '.join(map(repr, columns))}, and "
            f"layout {layout.name} has {len(layout.outcomes)}: {', '.join(layout.outcome_names)}"
            + each
            * (len(layout.outcomes) == 1)
        )
    values = outcomes_in(frame, columns)
    played = [bool(np.isfinite(row).any()) for row in values]
    if not any(played):
        raise TableError(f"column {columns[0]!r} is empty: there is no outcome to fit")
    instances = instances_in(frame[played], layout, columns)
    name = who or (columns[0] if len(columns) == 1 and outcome != SUCCESS else "")
    told = values[played, 0] if len(columns) == 1 else values[played]
    return fit_instances(layout, instances, told, agent=name, **sampling)


def _fit_export(
    layout: Layout, frame: pd.DataFrame, agent: str, sampling: Mapping[str, Any]
) -> Fit:
    """Fit a table in the form of `profile export --format csv`."""
    insist_success(layout)
    who = _only_agent(frame, agent)
    table, noted = of_export(check_outcomes(frame.reset_index(drop=True)), [who] if who else [])
    (who,) = table.agents
    instances, outcomes = table.of(who)
    weights = table.weights_of(who)
    return fit_instances(
        layout, instances, outcomes, weights=weights, agent=who, notes=noted, **sampling
    )


def fit_instances(
    layout: Layout,
    instances: Instances,
    outcomes: Floats,
    *,
    weights: Floats | None = None,
    agent: str = "",
    notes: Sequence[str] = (),
    **sampling: Any,
) -> Fit:
    """Fit what a layout describes of instances with their outcomes.

    Args:
        layout: The layout.
        instances: The instances.
        outcomes: (instances,), or (instances, outcomes) for a layout of several.
        weights: (instances,): how many outcomes each counts as; None for one each.
        agent: Who played.
        notes: What was assumed or left out before, in sentences.
        **sampling: Seed and further settings of `FitRequest`.

    Raises:
        ValueError: An outcome does not fit, or the layout describes no instance.
    """
    instances, chance = with_average_chance(instances, layout, outcomes)
    covered = instances.covered(layout)
    rows, kept = covered.rows, covered.instances
    if not rows:
        raise TableError(f"layout {layout.name} describes none of the rows: {covered.gaps}")
    features, results = kept.features(layout), outcomes[rows]
    own = None if weights is None else weights[rows]
    request = FitRequest(layout, features, results, weights=own, **sampling)
    return Fit.of(
        fit_by_nuts(request),
        agent=agent,
        instances=kept.names,
        paradigms=kept.paradigms,
        misleading=kept.misleading(layout),
        reasons=covered.reasons,
        notes=(*notes, *chance, *covered.notes),
        inverted=wrong_way_round(layout, features, results, own),
    )


def predict(fitted: FitResult | Learner, df: pd.DataFrame) -> pd.DataFrame:
    """Predict the rows of a table from what is known of an agent.

    Args:
        fitted: The fit, or a learner with what it was told.
        df: The table, with a column for each meta-feature of the layout.

    Returns:
        A row for each of the table's, with its index: `predicted`, the probability of success, or
        the expected share of trials or score; `low` and `high`, its 90 % interval, which says how
        well the agent is known and not how an episode may end; and `left_out`, why the layout does
        not describe a row, which then has no prediction.

    Raises:
        TypeError: The table is no pandas table, or the fit is none.
        ValueError: A column is missing, or a cell does not fit.
    """
    import pandas as pd

    if isinstance(fitted, Learner):
        draws, weights = fitted.posterior.particles, fitted.posterior.weights
    elif isinstance(fitted, FitResult):  # pyright: ignore[reportUnnecessaryIsInstance]
        draws, weights = fitted.flat_draws, None
    else:
        raise TypeError(
            f"predict: fitted is {of_kind(fitted)}; give what fit(layout, df) returned, or "
            "a Learner"
        )
    layout = fitted.layout
    frame = insist_frame(df, "predict(fitted, df)")
    without = tuple(COLUMNS) if _is_export(frame) else ()
    instances = instances_in(frame, layout, without)
    if isinstance(fitted, FitResult) and fitted.data is not None:
        instances, _ = with_average_chance(instances, layout, np.asarray(fitted.data.outcomes))
    covered = instances.covered(layout)
    cells = np.full((len(frame), 3), np.nan)
    if covered.rows:
        found = predict_rows(layout, draws, covered.instances.features(layout), weights)
        cells[covered.rows] = np.stack([found.mean, found.low, found.high], axis=1)
    made = pd.DataFrame(cells, index=frame.index, columns=["predicted", "low", "high"])
    return made.assign(left_out=list(covered.reasons))


def _is_export(frame: pd.DataFrame) -> bool:
    return set(frame.columns) >= _EXPORT


def _only_agent(frame: pd.DataFrame, agent: str) -> str:
    """The one agent of a table that is meant; empty where the table names none.

    Raises:
        TableError: There are several, or none of this name.
    """
    known = sorted({str(name) for name in frame[AGENT].dropna() if str(name).strip()})
    if agent and known and agent not in known:
        raise TableError(f"no agent {agent!r}; agents: {', '.join(known)}.{guess(agent, known)}")
    if not agent and len(known) > 1:
        raise TableError(
            f"the table has {len(known)} agents, and a fit is of one: {', '.join(known)}. Say "
            f"which: fit(layout, df, agent={known[0]!r})"
        )
    return agent or (known[0] if known else "")
