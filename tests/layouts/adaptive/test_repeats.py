"""Repeats in a session: probed, allowed and weighted by how random the agent is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

from animalcat.layouts.adaptive import outcomes
from animalcat.layouts.adaptive.bank import Bank, History
from animalcat.layouts.adaptive.learner import Learner
from animalcat.layouts.adaptive.outcomes import WeightedOutcomes
from animalcat.layouts.adaptive.plan import Policy, StoppingRule
from animalcat.layouts.adaptive.policy import WORTHWHILE, Chooser
from animalcat.layouts.adaptive.retest import DeterminismPrior, Retest
from animalcat.layouts.adaptive.selectors import SETTLED
from animalcat.layouts.adaptive.statuses import EXHAUSTED
from animalcat.layouts.adaptive.stopping import RuleStopper, StopVerdict
from animalcat.layouts.inference.evaluator import Evaluator
from animalcat.layouts.inference.live import LivePosterior
from animalcat.layouts.model.spec import Layout
from tests.layouts.adaptive.several import chances_of

Floats = npt.NDArray[np.float64]
Draw = Callable[[int, int], Floats]
TRUTH = [3.0, 1.2, 0.0, 0.1]


class Played(NamedTuple):
    """A session that was simulated."""

    verdict: StopVerdict
    posterior: LivePosterior
    evidence: WeightedOutcomes[int]
    reasons: Counter[str]

    @property
    def rows(self) -> Sequence[int]:
        return self.evidence.instances

    @property
    def retest(self) -> Retest:
        return self.evidence.retest

    @property
    def worth(self) -> float:
        return sum(tell.weight for tell in self.posterior.tells)


def play_out(
    layout: Layout, features: Floats, policy: Policy, *, random: bool, most: int = 120
) -> Played:
    """A session of an agent that draws anew in every episode, or once for every instance."""
    bank = Bank(layout, features, ["p"] * len(features))
    chooser, posterior = Chooser(bank, policy), LivePosterior(layout, 3)
    evidence: WeightedOutcomes[int] = WeightedOutcomes()
    stopper = RuleStopper(layout, StoppingRule(max_episodes=most, target_sd=0.01, futility=0.0))
    p = Evaluator(layout).probability([TRUTH], features)[0]
    generator = np.random.default_rng(8)
    fixed = generator.random(len(p))
    reasons: Counter[str] = Counter()
    while True:
        history = History(evidence.instances, retest=evidence.retest)
        verdict = stopper.verdict(posterior, chooser, history)
        choice = chooser.choose(posterior, history, len(evidence))
        if verdict.stop or choice is None:
            return Played(verdict, posterior, evidence, reasons)
        row = choice.index
        y = bool((generator.random() if random else fixed[row]) < p[row])
        evidence.tell(row, y, choice.predicted if y else 1.0 - choice.predicted)
        posterior.update(features[row], y, len(evidence) - 1)
        posterior.reweigh(evidence.weights)
        reasons[choice.reason] += 1


def test_a_deterministic_agent_is_recognised_and_its_battery_exhausted(
    aaio: Layout, draw_instances: Draw
) -> None:
    found = play_out(aaio, draw_instances(20, 1), Policy(exposures=0), random=False)
    assert found.verdict.reason == EXHAUSTED
    assert set(found.rows) == set(range(20))
    assert found.retest.agreements == found.retest.pairs > 0
    repeats = len(found.rows) - 20
    assert repeats < 25
    # In the end all repeats together count as hardly anything.
    assert found.worth < 20 + 1.0
    assert repeats * found.retest.weights([1])[0] < 1.0


def test_a_random_agent_may_be_asked_again_and_is_known_better_for_it(
    aaio: Layout, draw_instances: Draw
) -> None:
    features = draw_instances(20, 1)
    once = play_out(aaio, features, Policy(), random=True)
    often = play_out(aaio, features, Policy(exposures=0), random=True)
    assert often.verdict.reason == "the budget of 120 episodes is used up"
    assert often.retest.determinism < 0.4
    assert 40.0 < often.worth < 120.0
    assert often.reasons["probe"] > 0
    for before, after in zip(once.posterior.summary()[:2], often.posterior.summary(), strict=False):
        assert after.sd < 0.9 * before.sd
    capped = play_out(aaio, features, Policy(exposures=2), random=True)
    assert max(Counter(capped.rows).values()) == 2
    assert capped.verdict.reason == EXHAUSTED


def history_of(retest: Retest, rows: list[int]) -> History:
    return History(rows, retest=retest)


def test_probes_have_their_share_until_the_agent_is_known(
    aaio: Layout, draw_instances: Draw, posterior: LivePosterior
) -> None:
    chooser = Chooser(Bank(aaio, draw_instances(10, 2), ["p"] * 10), Policy(exposures=0))
    retest, rows = Retest(), [2, 5, 7]
    history = history_of(retest, rows)
    chances = chances_of(chooser, posterior, history)
    assert chances.sum() == pytest.approx(1.0)
    reasons = Counter(
        choice.reason
        for episode in range(2000)
        if (choice := chooser.choose(posterior, history, episode)) is not None
    )
    assert reasons["probe"] / 2000 == pytest.approx(0.1, abs=0.03)
    for _ in range(60):
        retest.update(same=True, chance=0.5)
    assert retest.sd < SETTLED
    assert retest.weights([1])[0] < WORTHWHILE
    assert (chances_of(chooser, posterior, history)[rows] == 0.0).all()
    assert not chooser.available(history)[rows].any()


def test_what_repeats_tell_shrinks_with_their_weight(
    aaio: Layout, draw_instances: Draw, posterior: LivePosterior
) -> None:
    chooser = Chooser(Bank(aaio, draw_instances(10, 2), ["p"] * 10), Policy(exposures=0))
    retest = Retest()
    retest.update(same=False, chance=0.5)
    plain = chooser.scores(posterior, History([2, 2, 5]))
    counted = chooser.scores(posterior, history_of(retest, [2, 2, 5]))
    expected = retest.weights([0, 0, 2, 0, 0, 1, 0, 0, 0, 0])
    assert 0.0 < expected[2] < expected[5] < 1.0
    np.testing.assert_allclose(counted.total, plain.total * expected)
    np.testing.assert_allclose(counted.drops[2], plain.drops[2] * expected[2])


def test_a_learner_may_be_told_how_random_agents_are(aaio: Layout, draw_instances: Draw) -> None:
    bank = Bank(aaio, draw_instances(10, 2), ["p"] * 10)
    often = Policy(exposures=0)
    told, others = (
        Learner(bank, often, determinism=DeterminismPrior(0.0, 1.0)),
        Learner(bank, often),
    )
    for learner in (told, others):
        learner.tell("0", 1.0, 0)
        learner.tell("0", 1.0, 1)
    assert told.data().weights == pytest.approx([1.0, 0.0], abs=1e-3)
    assert others.data().weights[1] > 0.2
    with pytest.raises(ValueError, match="another determinism"):
        Learner(bank, often).restore(told.save())


def test_later_plays_of_an_instance_share_groups_that_keep_the_sum_of_their_weights() -> None:
    edges = outcomes.EDGES
    width = np.diff(edges)
    assert (width > 0).all()
    assert (width[: outcomes.ALONE] == 1).all()
    assert (width <= np.ceil(edges[:-1] * (2 ** (1 / 16) - 1)) + 1).all()
    most = int(edges[outcomes.ALONE + 40])
    assert most > 1400
    evidence: WeightedOutcomes[int] = WeightedOutcomes()
    generator = np.random.default_rng(5)
    before: list[int] = []
    groups: list[int] = []
    for play in range(most):
        evidence.tell(0, float(generator.random() < 0.8), 0.8)
        before.append(play)
        groups.append(evidence.group)
        if play < 5:
            evidence.tell(1, 1.0, 0.5, observed=False)
            assert evidence.group == -1
            before.append(0)
            groups.append(-1)
    there = np.array(groups) >= 0
    group, played_before = np.array(groups)[there], np.array(before)[there]
    assert (edges[group] <= played_before).all()
    assert (played_before < edges[group + 1]).all()
    assert len(evidence.groups) == group.max() + 1 == outcomes.ALONE + 40
    single, shared = evidence.weights[there], evidence.groups[group]
    # The last group is full, so that every group has the mean of its plays.
    for one in range(len(evidence.groups)):
        assert shared[group == one].sum() == pytest.approx(single[group == one].sum(), rel=1e-9)
    assert evidence.weights[~there].sum() == 0.0


def test_groups_that_grow_by_one_outcome_tell_what_all_outcomes_at_once_do(
    aaio: Layout, draw_instances: Draw, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outcomes, "ALONE", 4)
    edges = np.concatenate([np.arange(4), np.round(4 * 2.0 ** (np.arange(40) / 4))])
    monkeypatch.setattr(outcomes, "EDGES", edges.astype(np.int64))
    features = draw_instances(3, 1)
    grown, anew = LivePosterior(aaio, 4, 400), LivePosterior(aaio, 4, 400)
    evaluator = Evaluator(aaio)
    columns, p = evaluator.columns(features), evaluator.probability([TRUTH], features)[0]
    evidence: WeightedOutcomes[int] = WeightedOutcomes()
    generator = np.random.default_rng(3)
    groups: list[int] = []
    before: Floats = np.empty(0)
    for episode in range(90):
        row = int(generator.integers(3))
        y = float(generator.random() < p[row])
        evidence.tell(row, y, p[row] if y else 1.0 - p[row])
        groups.append(evidence.group)
        grown.update_groups(columns[[row]], y, episode, evidence.group, evidence.groups)
        # The other one adds up nothing: it is told anew how much every outcome counts by now.
        known = before if evidence.group < len(before) else evidence.groups
        anew.update_checked(columns[[row]], y, episode, float(known[evidence.group]))
        weights, before = evidence.groups[groups], evidence.groups
        anew.reweigh(weights)
        assert grown.moves == anew.moves
        assert [tell.weight for tell in grown.tells] == pytest.approx(weights.tolist())
        assert grown.weights == pytest.approx(anew.weights, rel=1e-6, abs=1e-12)
        assert grown.particles == pytest.approx(anew.particles, rel=1e-6, abs=1e-9)
    assert max(Counter(groups).values()) > 5 * 2  # some groups hold several plays of an instance
    assert grown.moves > 3
