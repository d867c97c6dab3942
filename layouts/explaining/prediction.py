"""Whether the layout predicts this agent, told by bets on its own one-step-ahead predictions.

Before each random draw three forecasts are made of it: by the layout's live posterior, by the
average of the earlier random draws, and by a logistic regression on the demands of everything that
was played before. Two of them have a point of indifference between their predictions: if success is
likelier than that, the higher prediction is expected to score better, else the lower one. A bet
that the rival is right multiplies its stake by the likelihood of the outcome over that at the point
of indifference. If the layout is never expected to score worse than the rival, that stake is a test
martingale, so by Ville's inequality it exceeds 20 in at most 5 % of sessions, whenever one looks
(Henzi and Ziegel 2022, Valid sequential inference on probability forecast performance, Biometrika
109; betting as in Waudby-Smith and Ramdas 2024, Estimating means of bounded random variables by
betting). Random draws are used alone, since choices for what they tell are no fair sample.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.adaptive.learner import Forecast
from animalcat.layouts.explaining.limits import leave_one_out
from animalcat.layouts.explaining.regression import RunningRegression
from animalcat.layouts.inference.evaluator import Evaluator
from animalcat.layouts.model.spec import Layout
from animalcat.layouts.watching.alarm import QUIET
from animalcat.portable import arrays as portable
from animalcat.text.counts import count_of

Floats: TypeAlias = npt.NDArray[np.float64]
Standing: TypeAlias = Literal["better", "cannot be told", "worse"]

LEVEL: Final = 20.0
"""E-value from which the one or the other is said."""
SINCE: Final = f"from the {QUIET + 1}th episode on"
"""From where on predictions are scored; what was drawn at random before is left out."""
AVERAGE: Final = "its own average"
LOGISTIC: Final = "a logistic regression on the demands"
_STRENGTHS: Final = (0.5, 1.0, 2.0)
"""How far from the point of indifference success is bet on, in distances of the rival."""
_EDGE: Final = 0.01
"""Forecasts are kept this far from 0 and 1, so that no single outcome decides."""
_MATTERS: Final = 0.02
"""By how much the layout's Brier score must be worse in hindsight too."""


@dataclass(frozen=True)
class RivalForecast:
    """The scores of the layout's predictions and of one rival's, on random draws.

    Attributes:
        name: The rival.
        standing: Whether the layout predicts better or worse than it.
        brier: Brier score of the layout; lower is better.
        rival_brier: That of the rival.
        log_score: Mean of -ln P(outcome) of the layout, in nats; lower is better.
        rival_log_score: That of the rival.
        e_better: E-value that the layout predicts better: the mean of those by both scores.
        e_worse: E-value that it predicts worse, the same way.
    """

    name: str
    standing: Standing
    brier: float
    rival_brier: float
    log_score: float
    rival_log_score: float
    e_better: float
    e_worse: float


@dataclass(frozen=True)
class PredictionTest:
    """Whether the layout predicts this agent.

    Attributes:
        standing: That against the agent's own average; only "worse" forbids reading the profile.
        draws: Number of random draws that were scored, from the 9th episode on.
        hindsight: Brier score of the layout less that of the average, on the random draws, each
            predicted from all others; None without random draws. An agent that is rare in the
            prior is predicted badly before it is known. So "worse" needs that this is above 0.02.
        rivals: The rivals; the average is the first.
        text: All of this in a sentence.
    """

    standing: Standing
    draws: int
    hindsight: float | None
    rivals: tuple[RivalForecast, ...]
    text: str

    def to_dict(self) -> dict[str, Any]:
        """Convert to JSON values, as the schema "profile" documents them."""
        return {**asdict(self), "rivals": [asdict(rival) for rival in self.rivals]}


def predicts(layout: Layout, forecasts: Sequence[Forecast], draws: Floats) -> PredictionTest:
    """Compare a session's one-step-ahead predictions with those of simple rivals.

    Args:
        layout: The layout.
        forecasts: What was predicted, in the order told; see `Learner.forecasts`.
        draws: (draws, latents) of the posterior that knows all outcomes, for hindsight; they weigh
            the same.
    """
    scored = [i for i, forecast in enumerate(forecasts) if forecast.random and i >= QUIET]
    if not scored:
        return PredictionTest("cannot be told", 0, None, (), _say_why_unscored(len(forecasts)))
    ours = np.array([forecast.predicted for forecast in forecasts], np.float64)
    y = np.array([forecast.observed for forecast in forecasts], np.float64)
    random = np.array([forecast.random for forecast in forecasts])
    features = np.array([forecast.features for forecast in forecasts], np.float64)
    hindsight = _hindsight(layout, features[random], y[random], draws)
    demands = np.delete(features, layout.taught, axis=1)
    rivals = [
        _rival(AVERAGE, ours[scored], _averages(y, random)[scored], y[scored]),
        _rival(LOGISTIC, ours[scored], _regressions(demands, y, scored), y[scored]),
    ]
    first = rivals[0]
    overruled = first.standing == "worse" and hindsight <= _MATTERS
    standing = "cannot be told" if overruled else first.standing
    rivals = [replace(first, standing=standing), *rivals[1:]]
    text = _text(standing, len(scored), first, overruled)
    return PredictionTest(standing, len(scored), hindsight, tuple(rivals), text)


def _say_why_unscored(episodes: int) -> str:
    """Why no prediction could be scored."""
    if episodes <= QUIET:
        played = f"{episodes or 'none'} {'was' if episodes == 1 else 'were'} played"
        return f"Its predictions are scored {SINCE}, and {played}."
    return f"Nothing was drawn at random {SINCE}, so its predictions cannot be scored."


def _text(standing: Standing, draws: int, average: RivalForecast, overruled: bool) -> str:
    score = f"Brier score {average.brier:.2f} against {average.rival_brier:.2f}"
    on = f"on {count_of(draws, 'random draw')} {SINCE}"
    if overruled:
        return (
            f"One step ahead it predicted worse than the agent's own average ({score} {on}; bets "
            f"on that have multiplied their stake by {average.e_worse:.3g}), but now that it knows "
            "all outcomes it describes them about as well."
        )
    if standing == "cannot be told":
        return (
            "It is not clear whether the layout predicts better or worse than the agent's own "
            f"average: {score} {on}. Bets on better have multiplied their stake by "
            f"{average.e_better:.2g}, bets on worse by {average.e_worse:.2g}; a factor of "
            f"{LEVEL:g} is required."
        )
    evidence = average.e_better if standing == "better" else average.e_worse
    return (
        f"One step ahead it predicts {standing} than the agent's own average ({score} {on}; "
        f"{_say_gain(evidence)})."
    )


def _say_gain(evidence: float) -> str:
    return (
        f"bets on that have multiplied their stake by {evidence:.3g}; a factor of {LEVEL:g} is "
        "required"
    )


def _rival(name: str, ours: Floats, theirs: Floats, y: Floats) -> RivalForecast:
    """Compare two forecasts, all (episodes, outcomes); outcomes NaN where missing."""
    p, q = (np.clip(values, _EDGE, 1.0 - _EDGE) for values in (ours, theirs))
    worse, better = _e_value(p, q, y), _e_value(q, p, y)
    standing: Standing = "cannot be told"
    if worse >= LEVEL:
        standing = "worse"
    elif better >= LEVEL:
        standing = "better"
    brier, theirs_brier = (float(np.nanmean((predicted - y) ** 2)) for predicted in (p, q))
    log, theirs_log = (_log_score(y, predicted) for predicted in (p, q))
    return RivalForecast(name, standing, brier, theirs_brier, log, theirs_log, better, worse)


def _log_score(y: Floats, p: Floats) -> float:
    logs: Floats = portable.xlogy(y, p) + portable.xlogy(1.0 - y, 1.0 - p)
    return -float(np.nanmean(logs))


def _e_value(p: Floats, q: Floats, y: Floats) -> float:
    """E-value that q is expected to score better than p: the mean of those by both scores."""
    stakes = [_stake(p, q, y, point) for point in ((p + q) / 2.0, _log_indifference(p, q))]
    return float(np.mean(np.exp(np.minimum(stakes, 600.0))))


def _log_indifference(p: Floats, q: Floats) -> Floats:
    """Probability of success at which two forecasts have the same expected log score."""
    up, down = np.log(q / p), np.log((1.0 - p) / (1.0 - q))
    apart = np.abs(up + down) > 1e-9
    return np.where(apart, down / np.where(apart, up + down, 1.0), p)


def _stake(p: Floats, q: Floats, y: Floats, point: Floats) -> float:
    """Logarithm of the stake after all episodes: the mean over bets of several strengths.

    Outcomes are shares in [0, 1]; both scores are linear in them. So what is expected of a stake
    depends on the expected share alone, and it is 1 at the point of indifference. Of several
    outcomes of an episode the mean factor is taken, since they may depend on one another.
    """
    logs: list[float] = []
    for strength in _STRENGTHS:
        bet = np.clip(point + strength * (q - point), _EDGE / 2.0, 1.0 - _EDGE / 2.0)
        factor = y * bet / point + (1.0 - y) * (1.0 - bet) / (1.0 - point)
        logs.append(float(np.sum(np.log(np.nanmean(factor, axis=1)))))
    return float(np.logaddexp.reduce(logs)) - float(np.log(len(logs)))


def _averages(y: Floats, random: npt.NDArray[np.bool_]) -> Floats:
    """The running average of the random draws before each episode, (episodes, outcomes).

    It starts at 0.5, which counts as one outcome (Krichevsky and Trofimov 1981).
    """
    counted = random[:, np.newaxis] & np.isfinite(y)
    number, total = np.cumsum(counted, axis=0), np.cumsum(np.where(counted, y, 0.0), axis=0)
    first = np.zeros((1, y.shape[1]))
    before, sums = (np.concatenate([first, totals[:-1]]) for totals in (number, total))
    return (sums + 0.5) / (before + 1.0)


def _regressions(features: Floats, y: Floats, scored: Sequence[int]) -> Floats:
    """Forecasts by a logistic regression on what was played before, (scored, outcomes)."""
    regression, wanted = RunningRegression(y.shape[1]), set(scored)
    predictions: list[Floats] = []
    for i, (row, observed) in enumerate(zip(features, y, strict=True)):
        if i in wanted:
            predictions.append(regression.forecast(row))
        regression.learn(row, observed)
    return np.array(predictions)


def _hindsight(layout: Layout, features: Floats, y: Floats, draws: Floats) -> float:
    """Brier score of the layout less that of the average, each episode left out in turn.

    Args:
        layout: The layout.
        features: (episodes, features).
        y: (episodes, outcomes), as shares; NaN where missing.
        draws: (draws, latents) of the posterior that knows all of them.
    """
    evaluator = Evaluator(layout)
    columns = evaluator.columns(features)
    apart: list[Floats] = []
    for k, outcomes in enumerate(y.T):
        there = np.isfinite(outcomes)
        if not there.any():
            continue
        seen = outcomes[there]
        ours = leave_one_out(evaluator, draws, columns[there], seen, np.ones(len(seen)), k)
        average = (seen.sum() - seen + 0.5) / len(seen)
        apart.append((ours - seen) ** 2 - (average - seen) ** 2)
    return float(np.concatenate(apart).mean()) if apart else 0.0
