"""Re-analysis: what an adaptive session says of the whole battery, whatever its layout is worth."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from animalcat.layouts.adaptive.bank import Bank, History
from animalcat.layouts.adaptive.peers import Peers
from animalcat.layouts.adaptive.plan import Policy
from animalcat.layouts.adaptive.policy import Chooser
from animalcat.layouts.checking.reanalysis import DrawnEpisode, Reanalysis, reanalyse
from animalcat.layouts.inference.evaluator import Evaluator
from animalcat.layouts.inference.live import LivePosterior
from animalcat.layouts.model.spec import Layout

Floats = npt.NDArray[np.float64]
Draw = Callable[[int, int], Floats]


def draw_some(
    outcome: float, *, left: int, predicted: float = 0.5, chance: float = 0.0
) -> DrawnEpisode:
    """A draw from `left` instances, even unless a chance is given."""
    peers = Peers(left, 0.5, 0.5, open=True)
    return DrawnEpisode("p", outcome, predicted, 0.5 * (chance or 1.0 / left), peers)


def test_even_draws_give_the_plain_mean_and_its_interval() -> None:
    draws = [draw_some(y, left=1000 - k) for k, y in enumerate([1.0, 1.0, 1.0, 0.0] * 10)]
    found = reanalyse(draws, {"p": 1000}).paradigms[0]
    assert found.rate == 0.75
    assert found.success.value == pytest.approx(0.75, abs=0.01)
    assert found.success.sd == pytest.approx(np.sqrt(0.25 * 0.75 / 39), rel=0.1)
    assert found.residual.value == pytest.approx(0.25)
    assert found.success.low is not None
    assert found.success.high is not None
    assert found.success.low < 0.75 < found.success.high


def test_draws_weigh_as_much_as_they_were_unlikely() -> None:
    """Successes were sought: drawn with nine times the chance of an even draw."""
    sought = [draw_some(1.0, left=1000, predicted=0.5, chance=9 / 1000) for _ in range(90)]
    even = [draw_some(0.0, left=1000, predicted=0.5, chance=1 / 1000) for _ in range(10)]
    found = reanalyse([*sought, *even], {"p": 1000})
    assert found.paradigms[0].rate == 0.9
    (only,) = found.calibration
    assert only.observed.value == pytest.approx(0.5)
    assert (only.predicted, only.draws) == (0.5, 100)
    assert found.brier == pytest.approx(0.25)


def test_what_cannot_be_told_is_said() -> None:
    closed = DrawnEpisode("p", 1.0, 0.5, 0.5, Peers(10, 0.5, 0.5, open=False))
    repeat = DrawnEpisode("p", 1.0, 0.5, 0.1, None)
    found = reanalyse([closed, repeat], {"p": 10, "q": 5})
    assert [p.success.value for p in found.paradigms] == [None, None]
    assert found.battery.success.value is None
    assert found.brier is None
    assert "1 episodes are left out: repeats" in found.notes[0]
    assert found.notes[1].endswith("the whole is without them: p, q")
    half = reanalyse([draw_some(1.0, left=8 - k) for k in range(8)], {"p": 8, "q": 5})
    assert (half.battery.instances, half.battery.success.value) == (8, 1.0)
    single = reanalyse([draw_some(1.0, left=10)], {"p": 10}).paradigms[0].success
    assert single.value == 1.0
    assert single.low is None
    nothing = reanalyse([], {})
    assert nothing.battery.success.value is None
    assert nothing.to_dict()["battery"]["instances"] == 0


def session(layout: Layout, features: Floats, y: Floats, seed: int) -> Reanalysis:
    """An adaptive session of 30 episodes, re-analysed."""
    paradigms = ["a" if k % 3 else "b" for k in range(len(y))]
    bank = Bank(layout, features, paradigms)
    chooser, posterior = Chooser(bank, Policy()), LivePosterior(layout, seed, particles=200)
    rows: list[int] = []
    draws: list[DrawnEpisode] = []
    for episode in range(30):
        choice = chooser.choose(posterior, History(rows), episode)
        assert choice is not None
        row = choice.index
        assert choice.peers is not None
        chance = chooser.propensities(posterior, History(rows))
        fresh = [k for k in bank.members[paradigms[row]] if k not in rows]
        assert choice.peers.left == len(fresh)
        assert choice.peers.propensity == pytest.approx(chance[fresh].sum())
        draws.append(
            DrawnEpisode(paradigms[row], y[row], choice.predicted, choice.propensity, choice.peers)
        )
        posterior.update(features[row], y[row], episode)
        rows.append(row)
    return reanalyse(draws, {name: len(rows) for name, rows in bank.members.items()})


def test_it_is_right_where_the_layout_is_wrong(aaio: Layout, draw_instances: Draw) -> None:
    """An agent that fails one paradigm altogether, which the layout has no word for.

    The success rate of what was played is far off, the estimate is not; its intervals cover.
    """
    features = draw_instances(90, 1)
    p = Evaluator(aaio).probability([[4.5, 1.6, 0.0, 0.0]], features)[0]
    y = (np.random.default_rng(0).random(90) < p).astype(np.float64)
    y[::3] = 0.0
    truth = float(y.mean())
    values: list[float] = []
    rates: list[float] = []
    covered: list[bool] = []
    for seed in range(30):
        found = session(aaio, features, y, seed).battery
        if found.instances < 90:
            continue  # too few random draws in a paradigm
        assert found.success.value is not None
        assert found.success.low is not None
        assert found.success.high is not None
        assert found.rate is not None
        values.append(found.success.value)
        rates.append(found.rate)
        covered.append(found.success.low <= truth <= found.success.high)
    assert len(values) >= 26
    error = float(np.std(values)) / np.sqrt(len(values))
    assert abs(np.mean(values) - truth) < 3.0 * error + 0.01
    assert np.mean(covered) >= 0.8
