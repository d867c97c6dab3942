"""Predictions against outcomes: characteristic curves and reliability."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from scipy.special import betaincinv, stdtrit

from animalcat.layouts.checking.scores import murphy, reliability_curve
from animalcat.layouts.inference.evaluator import Evaluator
from animalcat.layouts.inference.fit import FitData, FitResult
from animalcat.layouts.model.likelihood import trials_of
from animalcat.layouts.model.spec import Bernoulli, Beta, Layout
from animalcat.layouts.model.tables import guess
from animalcat.plots.given import Subject, fit_of, insist_list, table_of, title_of
from animalcat.plots.style import (
    INK,
    MAIN,
    PAPER,
    PRIOR,
    SOFT,
    Floats,
    canvas,
    panels,
    plain,
    tidy,
    with_unit,
)

if TYPE_CHECKING:
    import pandas as pd

OBSERVED: Final = "observed"
"""Column of a table of outcomes whose predictions are of something else than success."""

_DRAWS: Final = 500
"""Draws that curves and bands are made of."""
MOST_AVERAGED: Final = 2000
"""Most episodes over which predictions are averaged: beyond, some at even distances."""
_BINS: Final = 6
_FEW: Final = 8
"""A demand with at most so many values is shown value by value."""


def characteristic(
    what: Subject, demands: Sequence[str] = (), *, ax: Any = None, key: bool = True
) -> Figure:
    """Draw success by each demand: the curve that the layout gives, its band, and what was seen.

    The curve is the mean prediction over the episodes played, each with this one demand changed;
    of more than 2,000 episodes, over so many at even distances.
    Points are shares of success with 90 % intervals (Jeffreys), or mean scores with 90 % intervals
    (Student's t), and their numbers of episodes.

    Args:
        what: A fit, a learner, or results, with the outcomes.
        demands: Names of the demands to draw; all by default.
        ax: An axis for each demand to draw on; by default a new figure has them.
        key: Whether the picture says what its parts are.

    Returns:
        The figure that was drawn on.

    Raises:
        TypeError: There are no draws.
        ValueError: There are no outcomes, the layout's first outcome is no success and no score,
            or there is no such demand.
    """
    fitted = fit_of(what, "characteristic")
    data, outcomes = _data_and_outcomes(fitted)
    layout = fitted.layout
    scores = _is_score(layout)
    chosen = _columns(layout, demands, "characteristic")
    drawn = panels(ax, "characteristic", len(chosen), 2, 3.4, 2.3)
    evaluator = Evaluator(layout)
    draws, some = _thin_draws(fitted), data.features[_spread(len(outcomes), MOST_AVERAGED)]
    for panel, k in zip(drawn.axes, chosen, strict=True):
        feature = layout.features[k]
        values = data.features[:, k]
        places = _places(values)
        band = np.empty((len(places), 3))
        for i, place in enumerate(places):
            changed = some.copy()
            changed[:, k] = place
            mean = evaluator.probability(draws, changed).mean(axis=1)
            band[i] = np.quantile(mean, [0.05, 0.5, 0.95])
        discrete = len(np.unique(values)) <= _FEW
        if discrete:
            error = [band[:, 1] - band[:, 0], band[:, 2] - band[:, 1]]
            panel.errorbar(places, band[:, 1], error, fmt="_", color=MAIN, lw=6, alpha=0.35, ms=14)
        else:
            panel.fill_between(places, band[:, 0], band[:, 2], color=MAIN, alpha=0.2, lw=0)
            panel.plot(places, band[:, 1], color=MAIN, lw=1.8)
        for at, rows in _bins(values):
            _point(panel, at, outcomes[rows], scores=scores)
        panel.set(ylim=(-0.08, 1.14), yticks=[0, 0.5, 1])
        panel.set_xlabel(plain(with_unit(feature.name, feature.unit)), fontsize=9, color=INK)
        tidy(panel)
        panel.margins(x=0.08)
        if not key or not drawn.own:
            panel.set_ylabel("score" if scores else "success", fontsize=8, color=SOFT)
    if key and drawn.own:
        seen = "mean score" if scores else "share of success"
        words = "score" if scores else "probability of success"
        drawn.figure.supylabel(words, fontsize=9, color=INK)
        drawn.below(
            f"line and band: the layout's mean prediction, 90 %; points: {seen}, 90 %, "
            "with numbers of episodes"
        )
    drawn.entitle(*title_of(what))
    return drawn.figure


def main_demands(fitted: FitResult) -> list[str]:
    """The demands on which success depends, by how much it changes over what was played.

    Args:
        fitted: The draws, with the data that they were fitted to.

    Raises:
        ValueError: The fit has no outcomes, or the layout's first outcome is no success and no
            score.
    """
    data, _ = _data_and_outcomes(fitted)
    layout = fitted.layout
    evaluator, draws = Evaluator(layout), _thin_draws(fitted, 100)
    rows = data.features[:: max(1, len(data.features) // 100)]
    swing: dict[str, float] = {}
    for k, name in enumerate(layout.feature_names):
        values = data.features[:, k]
        if np.ptp(values) == 0.0:
            continue
        means: list[float] = []
        # Values that were played: a gate is 0 or 1, and nothing between.
        for place in np.quantile(values, [0.0, 0.5, 1.0], method="nearest"):
            changed = rows.copy()
            changed[:, k] = place
            means.append(float(evaluator.probability(draws, changed).mean()))
        swing[name] = max(means) - min(means)
    return sorted(swing, key=lambda name: -swing[name])


def add_observed(table: pd.DataFrame, fitted: FitResult) -> pd.DataFrame:
    """Return a table of outcomes with what its predictions are to be compared with.

    A decision predicts the first outcome of the layout, as a share of the most that it can be. If
    that is success, the table says what came of it, and is returned as it is. Otherwise the column
    `OBSERVED` has the share that was observed; it is missing where nothing was.

    Args:
        table: A table of outcomes, with the number of each attempt's episode.
        fitted: What the episodes that count were fitted to.
    """
    layout, data = fitted.layout, fitted.data
    first = layout.outcomes[0]
    if first.source == "success":
        return table
    shares: dict[int, float] = {}
    if data is not None and data.episodes:
        values = data.outcomes.reshape(len(data.features), -1)[:, 0]
        share = values / trials_of(layout, first.likelihood, data.features)
        shares = dict(zip(data.episodes, share.tolist(), strict=True))
    return table.assign(**{OBSERVED: [shares.get(int(n), np.nan) for n in table["episode"]]})


class PredictionRecord(NamedTuple):
    """The prediction made before each episode that counts, and what was then observed.

    Attributes:
        predicted: (episodes,), in [0, 1].
        observed: (episodes,): 1 where an episode was passed, else 0; or shares of another outcome.
        success: Whether it is success that was predicted.
    """

    predicted: Floats
    observed: Floats
    success: bool


def judge_predictions(table: pd.DataFrame) -> PredictionRecord:
    """Return predictions with what came of them.

    Args:
        table: A table of outcomes, as `add_observed` returns it; attempts that do not count are
            left out.

    Raises:
        ValueError: No episode that counts has a prediction.
    """
    success = OBSERVED not in table
    if len(table):
        counts = table["outcome"].isin(["success", "failure"]) & table["predicted"].notna()
        table = table[counts if success else counts & table[OBSERVED].notna()]
    if not len(table):
        raise ValueError("no episode that counts has a prediction")
    seen = table["outcome"] == "success" if success else table[OBSERVED]
    predicted = np.asarray(table["predicted"], np.float64)
    return PredictionRecord(predicted, np.asarray(seen, np.float64), success=success)


def reliability(what: Subject, ax: Any = None) -> Figure:
    """Draw how often episodes were passed against how often that was predicted beforehand.

    The predictions are those of the decisions, made before each episode was played. If they are of
    something else than success, its mean shares are drawn.

    Args:
        what: A table of outcomes, as `add_observed` returns it, or results, which have one;
            attempts that do not count are left out.
        ax: An axis to draw on; by default a new figure has one.

    Returns:
        The figure that was drawn on.

    Raises:
        TypeError: It is no such table.
        ValueError: No episode that counts has a prediction.
    """
    predicted, passed, success = judge_predictions(table_of(what, "reliability"))
    drawn = canvas(ax, "reliability", (4.6, 4.8))
    (axes,) = drawn.axes
    axes.plot([0, 1], [0, 1], color=PRIOR, lw=1.5, zorder=1)
    for point in reliability_curve(predicted, passed):
        axes.plot([point.predicted] * 2, [point.low, point.high], color=MAIN, lw=2, zorder=2)
        size = 4 + 2 * np.sqrt(point.count)
        axes.plot([point.predicted], [point.observed], "o", color=MAIN, ms=size, zorder=3)
        axes.annotate(
            str(point.count),
            (point.predicted, point.observed),
            xytext=(3 + size / 2, 4),
            textcoords="offset points",
            fontsize=8,
            color=SOFT,
        )
    parts = murphy(predicted, passed)
    words = (
        f"Brier {parts.brier:.3f} = reliability {parts.reliability:.3f} − resolution "
        f"{parts.resolution:.3f}\n+ uncertainty {parts.uncertainty:.3f} + within "
        f"{parts.within:.3f}".replace("-", "−")
    )
    axes.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), aspect="equal")
    axes.set_xlabel(f"predicted before the episode\n{words}", fontsize=9, color=INK)
    words = "passed (share" if success else "observed (mean share"
    axes.set_ylabel(f"{words}, 90 % interval, number)", fontsize=9, color=INK)
    tidy(axes)
    drawn.entitle(*title_of(what))
    return drawn.figure


def _columns(layout: Layout, demands: Sequence[str], call: str) -> list[int]:
    """Columns of the demands that are asked for."""
    insist_list(demands, "demands", call)
    for name in demands:
        if name not in layout.feature_names:
            known = layout.feature_names
            raise ValueError(
                f"{call}: no demand {name!r}; demands: {', '.join(known)}.{guess(str(name), known)}"
            )
    return [k for k, name in enumerate(layout.feature_names) if not demands or name in demands]


def _spread(count: int, most: int) -> slice | npt.NDArray[np.int64]:
    """Rows at even distances, all if there are no more than `most`."""
    return slice(None) if count <= most else np.linspace(0, count - 1, most).astype(np.int64)


def _firsts(data: FitData) -> Floats:
    """The first outcome of each episode, NaN where it is missing."""
    return data.outcomes.reshape(len(data.features), -1)[:, 0]


def _thin_draws(fitted: FitResult, most: int = _DRAWS) -> Floats:
    """Draws at equal distances, at most about as many as asked for."""
    return fitted.flat_draws[:: max(1, len(fitted.flat_draws) // most)]


def _is_score(layout: Layout) -> bool:
    """Whether the first outcome is a score from 0 to 1, and not a success."""
    return isinstance(layout.outcomes[0].likelihood, Beta)


def _data_and_outcomes(fitted: FitResult) -> tuple[FitData, Floats]:
    """The data of a fit, and the first outcome of each episode."""
    if not isinstance(fitted.layout.outcomes[0].likelihood, Bernoulli | Beta):
        raise ValueError(
            "this picture is of successes or scores; the layout's first outcome is neither"
        )
    data = fitted.data
    if data is None or not len(data.outcomes):
        raise ValueError("there is no outcome yet, so there is nothing to draw")
    first = _firsts(data)
    seen = np.isfinite(first)
    return data._replace(features=data.features[seen]), first[seen]


def _places(values: Floats) -> Any:
    there: Any = _distinct(values)
    if len(there) <= _FEW:
        return there
    return np.linspace(float(there[0]), float(there[-1]), 40)


def _distinct(values: Floats) -> Any:
    return np.unique(values)


def _bins(values: Floats) -> list[tuple[float, Any]]:
    """Where points are drawn, and which episodes each stands for."""
    there = np.unique(values)
    if len(there) <= _FEW:
        return [(float(value), values == value) for value in there]
    edges = np.unique(np.quantile(values, np.linspace(0, 1, _BINS + 1)))
    which = np.clip(np.searchsorted(edges, values, "right") - 1, 0, len(edges) - 2)
    return [
        (float(values[which == k].mean()), which == k)
        for k in range(len(edges) - 1)
        if (which == k).any()
    ]


def _interval(outcomes: Floats, *, scores: bool) -> tuple[float, float]:
    """The 90 % interval of a mean: of scores by Student's t, of successes by Jeffreys.

    Scores that are all equal do not say how far scores scatter, nor does one alone. They are then
    taken for shares of success, which scatter more than any scores of this mean.
    """
    count, passed = len(outcomes), float(outcomes.sum())
    if scores and np.ptp(outcomes) > 0.0:
        half = float(stdtrit(count - 1, 0.95)) * float(outcomes.std(ddof=1)) / np.sqrt(count)
        return max(0.0, passed / count - half), min(1.0, passed / count + half)
    low = 0.0 if passed == 0 else float(betaincinv(passed + 0.5, count - passed + 0.5, 0.05))
    high = 1.0 if passed == count else float(betaincinv(passed + 0.5, count - passed + 0.5, 0.95))
    return low, high


def _point(axes: Any, at: float, outcomes: Floats, *, scores: bool) -> None:
    count, passed = len(outcomes), float(outcomes.sum())
    low, high = _interval(outcomes, scores=scores)
    axes.plot([at, at], [low, high], color=INK, lw=1.2, zorder=4)
    axes.plot([at], [passed / count], "o", color=PAPER, mec=INK, ms=5, mew=1.3, zorder=5)
    axes.annotate(
        str(count),
        (at, high),
        xytext=(0, 5),
        textcoords="offset points",
        ha="center",
        fontsize=7,
        color=SOFT,
        zorder=6,
        path_effects=[withStroke(linewidth=2.5, foreground=PAPER)],  # on a band
    )
