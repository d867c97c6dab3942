"""The figures of a session's report, each with a sentence that says what it shows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from animalcat.layouts.checking.scores import murphy
from animalcat.layouts.explaining.wording import percent
from animalcat.layouts.inference.fit import FitResult
from animalcat.layouts.model.nodes import Beta
from animalcat.plots import posterior, prediction
from animalcat.plots.graph import graph
from animalcat.plots.style import Floats

if TYPE_CHECKING:
    import pandas as pd


class Drawn(NamedTuple):
    """A figure of the report.

    Attributes:
        part: The part of the report that it belongs to: "densities", "course", "demands",
            "reliability" or "graph".
        figure: The figure; None where it cannot be drawn.
        alt: What it shows, in a sentence; or why it cannot be drawn.
    """

    part: str
    figure: Figure | None
    alt: str


def session_figures(
    fitted: FitResult, table: pd.DataFrame, estimates: Mapping[str, str]
) -> Iterator[Drawn]:
    """Draw all figures.

    Args:
        fitted: The posterior, with the data that it was fitted to.
        table: Table of outcomes with the predictions made before each episode, as
            `prediction.add_observed` returns it.
        estimates: What is known of each node, in words, by node.
    """
    names = fitted.layout.latent_names
    for name in names:
        yield _draw_part(
            "densities",
            lambda name=name: posterior.densities(fitted, nodes=[name], key=False),
            f"Posterior density of {name} over that of its prior. {estimates.get(name, '')}",
        )
    yield from _course(fitted, estimates)
    yield from _demands(fitted)
    yield _draw_part("reliability", lambda: prediction.reliability(table), _reliability(table))
    yield _draw_part(
        "graph",
        lambda: graph(fitted),
        f"Graph of the layout {fitted.layout.name}: what an instance asks for on the left, what "
        "was inferred with its posterior, and how these give the outcome on the right.",
    )


def _course(fitted: FitResult, estimates: Mapping[str, str]) -> Iterator[Drawn]:
    try:
        course = posterior.course_of(fitted)
    except ValueError as error:
        yield Drawn("course", None, str(error))
        return
    for k, name in enumerate(fitted.layout.latent_names):
        widths = np.ptp(course.ends[:, k], axis=1)
        yield _draw_part(
            "course",
            lambda name=name: posterior.trajectory(fitted, nodes=[name], course=course, key=False),
            f"Estimate of {name} with its 90 % interval over {course.after[-1]} episodes: "
            f"{_say_narrowing(widths)}. {estimates.get(name, '')}",
        )


def _say_narrowing(widths: Floats) -> str:
    if len(widths) < 2 or not widths[0]:
        return "nothing was played yet"
    share = widths[-1] / widths[0]
    return f"at the end the interval is {percent(share)} as wide as at the start"


def _demands(fitted: FitResult) -> Iterator[Drawn]:
    try:
        main = prediction.main_demands(fitted)
    except ValueError as error:
        yield Drawn("demands", None, str(error))
        return
    what = "Score" if scores(fitted) else "Success"
    for name in main:
        yield _draw_part(
            "demands",
            lambda name=name: prediction.characteristic(fitted, demands=[name], key=False),
            f"{what} by {name}: the curve that the layout predicts with its 90 % band, and "
            f"{_say_passes(fitted, name)}.",
        )


def scores(fitted: FitResult) -> bool:
    """Whether the first outcome of the layout is a score from 0 to 1."""
    return isinstance(fitted.layout.outcomes[0].likelihood, Beta)


def _draw_part(part: str, draw: Callable[[], Figure], alt: str) -> Drawn:
    try:
        return Drawn(part, draw(), alt)
    except ValueError as error:
        return Drawn(part, None, str(error))


def _say_passes(fitted: FitResult, demand: str) -> str:
    """How many episodes were passed, or the mean score, in both halves of a demand's values."""
    data: Any = fitted.data
    values = data.features[:, fitted.layout.feature_names.index(demand)]
    passed = data.outcomes.reshape(len(values), -1)[:, 0]
    values, passed = values[np.isfinite(passed)], passed[np.isfinite(passed)]

    def words_of_rate(some: Floats) -> str:
        if scores(fitted):
            return f"a mean score of {some.mean():.2f} in {len(some)} episodes"
        return f"{some.sum():.0f} of {len(some)} episodes passed"

    if np.ptp(values) == 0.0:
        return f"{words_of_rate(passed)}, all at {values[0]:g}"
    middle = float(np.median(values))
    above = bool((values > middle).any())
    low = values <= middle if above else values < middle
    ends = ("up to", "above") if above else ("below", "from")
    return " and ".join(
        f"{words_of_rate(passed[rows])} {words} {middle:g}"
        for rows, words in ((low, ends[0]), (~low, ends[1]))
    )


def _reliability(table: pd.DataFrame) -> str:
    try:
        predicted, observed, success = prediction.judge_predictions(table)
    except ValueError:
        return ""
    parts = murphy(predicted, observed)
    what = "Share of episodes passed" if success else "Mean share observed"
    return (
        f"{what} against the share predicted before them, over {len(observed)} episodes in "
        f"{parts.groups} groups; the Brier score is {parts.brier:.3f}."
    )
