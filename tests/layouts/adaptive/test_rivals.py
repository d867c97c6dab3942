"""Rivals of a layout: what they find, what they leave alone, and that they follow from outcomes."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pytest

from animalcat.layouts.adaptive.bank import Bank, History
from animalcat.layouts.adaptive.learner import Learner
from animalcat.layouts.adaptive.plan import Policy, StoppingRule
from animalcat.layouts.adaptive.policy import CHECK, Chooser
from animalcat.layouts.inference.live import LivePosterior
from animalcat.layouts.library import load_layout
from animalcat.layouts.model.spec import Layout
from animalcat.layouts.watching.rivals import Examination, examine

from .conftest import Draw

Floats = npt.NDArray[np.float64]
LAYOUT: Final = load_layout("one-capability", "success")
COUNT: Final = 120


@pytest.fixture(scope="module")
def bank() -> Bank:
    """Arenas of little difficulty; half are red, which the layout does not know."""
    generator = np.random.default_rng(0)
    difficulty = generator.uniform(0.0, 3.0, (COUNT, 1))
    red = (np.arange(COUNT) % 2).astype(np.float64)
    return Bank(LAYOUT, difficulty, ["easy"] * COUNT, outside={"red": red})


ORDER: Final = np.random.default_rng(1).permutation(COUNT)
"""The order in which arenas are played, so that colours do not take turns."""


def examine_bank(bank: Bank, outcomes: Floats, seed: int = 0) -> Examination:
    rows = ORDER[len(bank) > ORDER][: len(outcomes)]
    columns = bank.evaluator.columns(bank.features[rows])
    playable = ~np.isin(np.arange(len(bank)), rows)
    expected = np.full(len(bank), 0.9)
    ways = bank.stratifications
    return examine(
        bank.evaluator, columns, outcomes, rows, bank.features, ways, expected, playable, seed
    )


def test_an_able_agent_passes_and_contradicts_nothing(bank: Bank) -> None:
    found = examine_bank(bank, np.ones(40))
    assert found.passes(last=False)
    assert not found.contradicts


def test_an_agent_that_fails_by_a_colour_is_named_where_noise_would_explain_it(bank: Bank) -> None:
    failing = (ORDER[:40] % 2 == 0).astype(np.float64)
    found = examine_bank(bank, failing)
    assert found.contradicts
    assert not found.passes(last=True)
    assert found.suspects[0].stratification == "red"
    assert found.suspects[0].stratum == "1"
    red = found.wanted[1::2].sum()
    assert red > 0.5 * found.wanted.sum()  # it is looked at where the rival would show


def test_it_follows_from_what_was_told_and_wants_what_can_be_played(bank: Bank) -> None:
    outcomes = np.ones(20)
    first, again = examine_bank(bank, outcomes), examine_bank(bank, outcomes)
    assert first.log_evidence == again.log_evidence
    assert (first.wanted == again.wanted).all()
    assert not first.wanted[ORDER[:20]].any()
    assert (first.wanted[ORDER[20:]] > 0.0).all()


def test_who_makes_up_for_one_difficulty_by_another_is_named(
    aaio: Layout, draw_instances: Draw
) -> None:
    features = draw_instances(60, 2)
    bank = Bank(aaio, features, [f"p{k % 3}" for k in range(60)])
    apart = np.nan_to_num(bank.features - np.nanmean(bank.features, axis=0))
    whole = (apart / np.maximum(apart.std(axis=0), 1e-9)).sum(axis=1)
    rows = ORDER[ORDER < 60]
    found = examine_bank(bank, (whole <= np.median(whole)).astype(np.float64)[rows])
    assert found.contradicts
    assert found.suspects[0].where == "where several difficulties come together"
    assert found.suspects[0].observed < found.suspects[0].predicted


@pytest.mark.parametrize("variant", ["trials", "score"])
def test_counts_and_scores_are_examined_too(variant: str) -> None:
    layout = load_layout("one-capability", variant)
    features = np.tile([5.0, 4.0][: len(layout.features)], (20, 1))
    bank = Bank(layout, features, ["one"] * 20)
    best = 4.0 if variant == "trials" else 0.95
    found = examine_bank(bank, np.full(10, best))
    assert found.log_evidence < 0.0
    assert np.isfinite(found.wanted).all()


def test_an_agent_of_the_layout_hardly_ever_looks_wrong(aaio: Layout, draw_instances: Draw) -> None:
    """The mean Bayes factor is expected to be 1, or 2 at most, as half of the prior is its own."""
    features = draw_instances(60, 2)
    bank = Bank(aaio, features, [f"p{k % 3}" for k in range(60)])
    generator = np.random.default_rng(4)
    theta = aaio.from_standard(generator.standard_normal((30, len(aaio.latents))))
    chance = bank.evaluator.probability(theta, features)
    order = ORDER[ORDER < 60]
    found = [
        examine_bank(bank, (generator.random(60) < p[order]).astype(np.float64), seed=k)
        for k, p in enumerate(chance)
    ]
    assert not any(one.contradicts for one in found)
    assert np.mean(np.exp([one.log_evidence for one in found])) < 2.0


def test_what_is_drawn_for_the_check_has_its_reason_and_propensity(bank: Bank) -> None:
    posterior = LivePosterior(LAYOUT, 1, particles=500)
    wanted = np.where(np.arange(COUNT) < 10, np.arange(COUNT), 0.0)
    choice = Chooser(bank, Policy()).choose(posterior, History(), 1, wanted=wanted)
    assert choice is not None
    assert choice.reason == CHECK
    assert choice.because
    assert choice.propensity == pytest.approx(wanted[choice.index] / wanted.sum())
    for kept in (Policy("random"), Policy("stratified")):
        other = Chooser(bank, kept).choose(posterior, History(), 1, wanted=wanted)
        assert other is not None
        assert other.reason == "random"


def test_a_session_goes_on_by_the_check_and_replays_bit_by_bit(bank: Bank) -> None:
    rule = StoppingRule(max_episodes=60, target_sd=0.25)

    def play_out() -> tuple[list[tuple[str, str]], Learner]:
        learner = Learner(bank, rule=rule, seed=3)
        chosen: list[tuple[str, str]] = []
        while not learner.verdict().stop and (choice := learner.ask()):
            red = bank.outside["red"][choice.index] > 0.0
            chosen.append((choice.instance, choice.reason))
            learner.tell(choice.instance, float(not red), choice.episode)
        return chosen, learner

    chosen, learner = play_out()
    again, _ = play_out()
    assert chosen == again
    assert learner.contradicted or not learner.settled
    assert "red" in learner.misfit or not learner.contradicted
    other = Learner(bank, rule=rule, seed=3)
    other.restore(learner.save())
    assert other.contradicted == learner.contradicted
    assert other.misfit == learner.misfit
