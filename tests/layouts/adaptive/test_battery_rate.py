"""The success rate of the whole battery: fair bets, intervals that hold, and what they tell."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import hypergeom

from animalcat.layouts.adaptive.bank import Bank
from animalcat.layouts.adaptive.battery_rate import (
    BatteryRate,
    RateBettor,
    Wager,
    battery_rate,
    predict_rate,
)
from animalcat.layouts.adaptive.learner import Learner
from animalcat.layouts.adaptive.plan import Name, Policy, StoppingRule
from animalcat.layouts.library import load_layout
from animalcat.layouts.model.instances import Instances

LAYOUT = load_layout("one-capability", "success")


def instances(size: int) -> Instances:
    """Instances of growing difficulty."""
    difficulty = np.linspace(1.0, 9.0, size)[:, np.newaxis]
    return Instances(("difficulty",), difficulty, (), tuple(f"i{k}" for k in range(size)))


def learner_of(size: int, policy: Policy | None = None, seed: int = 1) -> Learner:
    return Learner(Bank.of(LAYOUT, instances(size)), policy, seed=seed)


def passes(choice_index: int) -> float:
    """Passes what is in the first half, and every third of the rest."""
    return float(choice_index < 15 or choice_index % 3 == 0)


@pytest.mark.parametrize(("shut", "weighing"), [(0, False), (2, False), (0, True)])
def test_no_arrangement_of_the_true_number_of_successes_makes_bets_win(
    shut: int, weighing: bool
) -> None:
    """Expected factors are at most 1, for any outcomes of the instances left; some reach it.

    What draws for the rate estimate is the number of successes, on average.
    """
    g = np.random.default_rng(shut)
    size = 5
    most = 0.0
    for _ in range(20):
        p = g.uniform(0.0, 1.0, size)
        q = np.maximum(g.dirichlet(np.full(size, 0.4)), 1e-7)
        q /= q.sum()
        bettor = RateBettor(size + shut, weighing=weighing)
        for outcome in (True, True, False):
            bettor.learn(0.8, outcome)
        bettor.played = bettor.passed = 0  # what it learnt was of another battery
        wagers = [bettor.wager(p, q, i, 0) for i in range(size)]
        for outcomes in product((0, 1), repeat=size + shut):
            total = sum(outcomes)
            factors = [
                np.exp((w.success if y else w.failure)[total])
                for w, y in zip(wagers, outcomes[:size], strict=True)
            ]
            most = max(most, float(q @ factors))
            if weighing:
                each = [w.weighed[y] for w, y in zip(wagers, outcomes, strict=True)]
                assert q @ each == pytest.approx(total)
    assert 0.999 < most <= 1.0 + 1e-6


@pytest.mark.parametrize("policy", [Policy(), Policy("random"), Policy(sharpness=0.0)])
def test_a_battery_that_was_played_whole_has_its_rate(policy: Policy) -> None:
    learner = learner_of(30, policy)
    widths: list[float] = []
    found = learner.battery_rate
    while (choice := learner.ask()) is not None:
        learner.tell(choice.instance, passes(choice.index))
        found = learner.battery_rate
        assert found.low is not None
        assert found.high is not None
        assert found.value is not None
        assert 0.0 <= found.low <= found.value <= found.high <= 1.0
        widths.append(found.high - found.low)
    rate = sum(map(passes, range(30))) / 30
    assert (found.value, found.low, found.high) == (rate, rate, rate)
    assert found.words(30) == (
        "Success rate over the whole battery of 30 arenas: 67 % (all were played)."
    )
    some = "Success rate over the 30 arenas that the layout covers, of 45 in the battery: 67 %"
    assert found.words(45).startswith(some)
    assert widths == sorted(widths, reverse=True)


def test_intervals_of_a_session_hold_together() -> None:
    """Agents of whom the layout knows nothing, all intervals of nine in ten hold."""
    held: list[bool] = []
    for seed in range(20):
        outcomes = np.random.default_rng(seed).random(20) < 0.6
        learner = learner_of(20, seed=seed)
        inside = True
        while (choice := learner.ask()) is not None:
            learner.tell(choice.instance, float(outcomes[choice.index]))
            found = learner.battery_rate
            assert found.low is not None
            assert found.high is not None
            inside &= found.low - 1e-9 <= outcomes.mean() <= found.high + 1e-9
        held.append(inside)
    assert np.mean(held) >= 0.8


def test_without_what_could_have_been_chosen_nothing_can_be_told() -> None:
    assert "cannot be estimated without the layout, since nothing was played" in learner_of(
        20
    ).battery_rate.words(20)
    old = learner_of(20)
    for k in range(5):
        old.tell(f"i{k}", 1.0, k)  # nothing was staked on it
    found = old.battery_rate
    assert (found.played, found.passed, found.value, found.low) == (5, 5, None, None)
    assert found.predicted is not None
    assert found.words(20) == (
        "Success rate over the whole battery of 20 arenas: cannot be estimated without the "
        "layout, since none of the arenas played was drawn at random (5 were played, 5 passed). "
        f"It is {100 * found.predicted[0]:.0f} to {100 * found.predicted[1]:.0f} % (90 %) if the "
        "layout holds."
    )


def test_what_the_layout_predicts_has_what_it_knows_and_the_chance_of_the_rest() -> None:
    generator = np.random.default_rng(1)
    each = generator.beta([[2.0], [8.0]], [[6.0], [2.0]], (2, 500))
    weights = generator.uniform(0.5, 1.5, 500)
    count = np.array([30.0, 50.0])
    particle = generator.choice(500, size=20_000, p=weights / weights.sum())
    drawn = 12 + generator.binomial(count.astype(int)[:, None], each[:, particle]).sum(axis=0)
    found = predict_rate(each, count, weights, 12, 100)
    assert found == pytest.approx(np.quantile(drawn, [0.05, 0.95]) / 100, abs=0.015)
    assert predict_rate(each, np.zeros(2), weights, 12, 100) == (0.12, 0.12)


def test_a_learner_that_is_restored_or_told_again_says_the_same() -> None:
    first, again = learner_of(20), learner_of(20)
    for number in range(8):
        choice = first.ask()
        assert choice is not None
        first.tell(choice.instance, passes(choice.index))
        again.tell(choice.instance, passes(choice.index), number, random=False, wager=choice.wager)
    other = learner_of(20)
    other.restore(first.save())
    assert first.battery_rate == other.battery_rate == again.battery_rate
    assert first.battery_rate.low is not None
    one, two = first.ask(), other.ask()
    assert one is not None
    assert two is not None
    assert one.wager == two.wager


def test_the_value_is_what_is_expected_within_the_interval() -> None:
    """Of totals 0 to 4, the stakes reject 4, and 0 is refuted by the success."""
    stakes = tuple(np.log([1.0, 1.0, 0.5, 4.0, 100.0]))
    plays = [(Wager(0, stakes, stakes), True)]
    values = [battery_rate(4, plays, expected).value for expected in (0.0, 1.2, 3.0)]
    assert values == pytest.approx([0.25, 0.55, 0.75])
    assert (battery_rate(4, plays, 1.2).low, battery_rate(4, plays, 1.2).high) == (0.25, 0.75)


def test_even_draws_of_a_number_that_was_set_beforehand_have_the_exact_interval() -> None:
    """For every number of successes among 20, the interval of 8 draws misses it at most 5 + 5 %."""
    for total in range(21):
        hits = 0.0
        for passed in range(max(0, total - 12), min(8, total) + 1):
            plays = [(Wager(k, (0.0,) * 21, (0.0,) * 21, True, 8), k < passed) for k in range(8)]
            found = battery_rate(20, plays, 6.0)
            assert found.exact
            assert found.low is not None
            assert found.high is not None
            assert found.value is not None
            assert found.low <= found.value <= found.high
            inside = found.low - 1e-9 <= total / 20 <= found.high + 1e-9
            hits += inside * hypergeom.pmf(passed, 20, total, 8)
        assert hits >= 0.9


def count_up(episodes: int) -> StoppingRule:
    """A rule that only counts."""
    return StoppingRule(episodes, target_sd=0.0, futility=0.0)


def play_out(
    policy: Policy, rule: StoppingRule, episodes: int, answer: Callable[[int], float] = passes
) -> BatteryRate:
    """The success rate after some episodes."""
    learner = Learner(Bank.of(LAYOUT, instances(30)), policy, rule, seed=2)
    for _ in range(episodes):
        choice = learner.ask()
        assert choice is not None
        learner.tell(choice.instance, answer(choice.index))
    other = Learner(Bank.of(LAYOUT, instances(30)), policy, rule, seed=2)
    other.restore(learner.save())
    assert other.battery_rate == learner.battery_rate
    return learner.battery_rate


@pytest.mark.parametrize(
    ("policy", "rule", "episodes", "since"),
    [
        ("random", count_up(12), 12, ""),
        ("random", count_up(12), 11, "the 12 episodes that were set beforehand are not all played"),
        ("random", StoppingRule(12), 12, "the number of episodes was not set beforehand"),
        ("variance", count_up(12), 12, "arenas were not drawn evenly"),
    ],
)
def test_an_interval_says_whether_it_is_exact(
    policy: Name, rule: StoppingRule, episodes: int, since: str
) -> None:
    found = play_out(Policy(policy), rule, episodes)
    assert found.exact == (not since)
    words = found.words(30)
    if since:
        assert f"second interval is valid at any time, since {since}." in words
    else:
        end = "exact, since arenas were drawn evenly and their number, 12, was set beforehand."
        assert words.endswith(end)
        exact, anytime = (
            play_out(Policy(policy), one, episodes, lambda index: float(index % 2))
            for one in (rule, StoppingRule(12))
        )
        assert anytime.value == exact.value
        assert (exact.low, exact.high) != (anytime.low, anytime.high)


def test_draws_for_the_rate_have_an_interval_for_a_number_that_was_set_beforehand() -> None:
    found = play_out(Policy("rate"), StoppingRule(20), 20)  # targets of capabilities do not count
    assert found.approximate
    assert found.words(30).endswith(
        "The second interval is approximate, since arenas were drawn for the rate and their "
        "number, 20, was set beforehand."
    )
    early = play_out(Policy("rate"), StoppingRule(20), 19)
    few = play_out(Policy("rate"), StoppingRule(12), 12)
    for other, since in ((early, "are not all played"), (few, "fewer than 20 were drawn")):
        assert not other.approximate
        assert other.since.endswith(since)


def test_a_session_for_the_rate_ends_when_its_interval_is_narrow() -> None:
    bank, rule = Bank.of(LAYOUT, instances(30)), StoppingRule(30, target_width=0.4)
    learner = Learner(bank, Policy("rate"), rule, seed=2)
    while not learner.verdict().stop and (choice := learner.ask()) is not None:
        learner.tell(choice.instance, passes(choice.index))
    found, verdict = learner.battery_rate, learner.verdict()
    assert learner.n < 30
    assert not found.approximate
    assert found.low is not None
    assert found.high is not None
    assert found.high - found.low <= 0.4
    assert (verdict.end, verdict.reason) == (
        "ended",
        f"the interval of the success rate is {found.high - found.low:.2g} wide",
    )
    with pytest.raises(ValueError, match="target_width ends the session"):
        Learner(bank, Policy("rate"), StoppingRule(target_width=0.4, combine="all"))
    scores = Bank.of(load_layout("one-capability", "score"), instances(30))
    with pytest.raises(ValueError, match="its first outcome is no success"):
        Learner(scores, Policy("rate"))


@pytest.mark.slow
@pytest.mark.parametrize("wrong", [False, True])
def test_intervals_of_draws_for_the_rate_cover(wrong: bool) -> None:
    """Nine in ten hold, less what 200 leave to luck, also where predictions are upside down."""
    generator, size, episodes = np.random.default_rng(1), 120, 30
    held: list[bool] = []
    for _ in range(200):
        p = expit(generator.normal(0.5, 1.5, size))
        outcomes = generator.random(size) < p
        predicted = 1.0 - p if wrong else p
        bettor, left = RateBettor(size, episodes, weighing=True), np.arange(size)
        plays: list[tuple[Wager | None, bool | None]] = []
        for before in range(episodes):
            odds = np.sqrt(predicted[left] * (1.0 - predicted[left]))
            odds = 0.7 * odds / odds.sum() + 0.3 / len(left)
            drawn = int(generator.choice(len(left), p=odds))
            success = bool(outcomes[left[drawn]])
            plays.append((bettor.wager(predicted[left], odds, drawn, before), success))
            bettor.learn(float(predicted[left[drawn]]), success)
            left = np.delete(left, drawn)
        found = battery_rate(size, plays, 0.0)
        assert found.approximate
        assert found.low is not None
        assert found.high is not None
        held.append(found.low - 1e-9 <= outcomes.mean() <= found.high + 1e-9)
    assert np.mean(held) >= 0.86


def test_after_an_outcome_was_taken_back_later_wagers_do_not_count() -> None:
    learner = learner_of(20, Policy("random"))
    for _ in range(12):
        choice = learner.ask()
        assert choice is not None
        learner.tell(choice.instance, passes(choice.index))
    before = learner.battery_rate
    learner.invalidate(1)
    after = learner.battery_rate
    assert (before.played, after.played) == (12, 11)
    assert before.low is not None
    assert before.high is not None
    assert after.low is not None
    assert after.high is not None
    assert after.high - after.low > before.high - before.low
    learner.invalidate(0)
    assert learner.battery_rate.value is None  # no wager is left that counts


def test_where_nothing_was_observed_later_wagers_count_and_the_instance_is_unknown() -> None:
    learner = learner_of(30, Policy("random"))
    highs: list[float] = []
    while (choice := learner.ask()) is not None:
        unseen = learner.n in (0, 3)
        if unseen:
            learner.tell_nothing(choice.instance)
        else:
            learner.tell(choice.instance, float(choice.index < 15))
        found = learner.battery_rate
        highs.append(2.0 if found.high is None else found.high)
        if learner.n == 20:
            assert found.played == 18
            assert found.high is not None
            assert found.high < (30 - found.played + found.passed) / 30  # bets tell
    found = learner.battery_rate
    assert (found.played, found.passed) == (28, 14)
    assert (found.low, found.high) == (14 / 30, 16 / 30)
    assert highs == sorted(highs, reverse=True)


def test_an_outcome_that_was_not_observed_counts_as_that_which_wins_less() -> None:
    """Hiding the outcomes against which bets lose does not make them win."""
    for seed in range(6):
        learner = learner_of(20, Policy("random"), seed)
        while (choice := learner.ask()) is not None:
            if choice.index % 2:
                learner.tell(choice.instance, 1.0)
            else:
                learner.tell_nothing(choice.instance)
            found = learner.battery_rate
            assert found.low is None or found.low <= 0.5
