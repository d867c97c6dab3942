"""The laws of the learner: what it answers follows from what it was told, and from nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from animalcat.layouts.adaptive.bank import Bank, History
from animalcat.layouts.adaptive.learner import Learner
from animalcat.layouts.adaptive.plan import RULES, Policy, RulesError, StoppingRule
from animalcat.layouts.adaptive.policy import Chooser
from animalcat.layouts.adaptive.selectors import Branch, SelectionContext
from animalcat.layouts.adaptive.stopping import StopVerdict
from animalcat.layouts.inference.live import LivePosterior, TellError
from animalcat.layouts.library import load_layout
from animalcat.layouts.model.instances import Instances
from animalcat.layouts.model.spec import Layout, from_dict
from benchmarks.synthetic import op_battery
from tests.layouts.adaptive.vectors import DemandVectorGenerator

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Draw = Callable[[int, int], Floats]

SIZE = 60
EVER = StoppingRule(1000, target_sd=0.0, futility=0.0)


@pytest.fixture
def bank(aaio: Layout, draw_instances: Draw) -> Bank:
    return Bank(
        aaio,
        draw_instances(SIZE, 1),
        ["ab"[k % 2] for k in range(SIZE)],
        names=[f"i{k:02}" for k in range(SIZE)],
        outside={"colour": [float(k % 3) for k in range(SIZE)]},
    )


def outcome(instance: str, episode: int = 0) -> float:
    """An agent that passes about half, whatever it is asked."""
    return float(np.random.default_rng([episode, *instance.encode()]).random() < 0.5)


def play(learner: Learner, episodes: int, *, anew: bool = False) -> list[str]:
    """Ask and tell; the instances that were chosen."""
    chosen: list[str] = []
    for _ in range(episodes):
        choice = learner.ask()
        assert choice is not None
        chosen.append(choice.instance)
        learner.tell(choice.instance, outcome(choice.instance, learner.n if anew else 0))
    return chosen


def same(one: Learner, other: Learner) -> None:
    """Two learners know the same, to the last bit, and choose the same."""
    np.testing.assert_array_equal(one.posterior.particles, other.posterior.particles)
    np.testing.assert_array_equal(one.posterior.weights, other.posterior.weights)
    assert one.summary() == other.summary()
    assert one.verdict() == other.verdict()
    assert one.misfit == other.misfit
    assert one.ask() == other.ask()
    assert one.ask(["i03", "i04"], 77) == other.ask(["i03", "i04"], 77)


@pytest.mark.parametrize(("first", "then", "word"), [(0.1, 0.95, "better"), (0.95, 0.1, "worse")])
def test_an_agent_that_changes_is_said_to_do_so(first: float, then: float, word: str) -> None:
    alike = Bank(load_layout("one-capability"), np.full((SIZE, 1), 5.0), ["a"] * SIZE,
                 names=[f"i{k:02}" for k in range(SIZE)])  # fmt: skip
    learner = Learner(alike, rule=EVER, seed=1)
    draws = np.random.default_rng(1).random(SIZE)
    for k, draw in enumerate(draws):
        learner.tell(f"i{k:02}", float(draw < (first if k < SIZE // 2 else then)), k)
    assert f": it got {word} as the session went on, with " in learner.misfit


def test_the_same_told_again_gives_the_same(bank: Bank) -> None:
    first, second = Learner(bank, seed=3, rule=EVER), Learner(bank, seed=3, rule=EVER)
    for episode, instance in enumerate(play(first, 25)):
        assert second.ask() is not None  # asking changes nothing
        second.tell(instance, outcome(instance), episode)
    same(first, second)


def test_while_an_alarm_stands_the_posterior_is_sampled_anew_now_and_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    at: list[int] = []
    once = LivePosterior.restart

    def restart(posterior: LivePosterior) -> None:
        at.append(len(posterior.tells))
        once(posterior)

    monkeypatch.setattr(LivePosterior, "restart", restart)
    layout = load_layout("object-permanence")
    battery = op_battery(0).features(layout)[::8]
    bank = Bank(layout, battery, [""] * len(battery))
    learner = Learner(bank, seed=3, rule=EVER)
    contradicted: list[int] = []
    for episode in range(70):  # it wakes after 30 episodes
        choice = learner.ask()
        assert choice is not None
        if learner.contradicted:
            contradicted.append(episode + 1)
        learner.tell(choice.instance, float(episode >= 30))
    assert learner.contradicted
    assert len(at) > 2
    assert {*at} <= {*contradicted}
    assert all(b >= 1.2 * a for a, b in pairwise(at))
    other = Learner(bank, seed=3, rule=EVER)
    other.restore(learner.save())
    np.testing.assert_array_equal(learner.posterior.particles, other.posterior.particles)
    assert learner.ask() == other.ask()


@pytest.mark.parametrize("policy", [Policy(), Policy(exposures=0, probes=0.3)])
def test_what_is_saved_goes_on_as_if_nothing_had_happened(bank: Bank, policy: Policy) -> None:
    first = Learner(bank, policy, EVER, 3)
    played = play(first, 20, anew=True)
    first.set_aside(next(name for name in bank.names if name not in played))
    draws = np.array([[node.mean] * 200 for node in first.summary()]).T
    play(first, 8, anew=True)
    first.reseed(draws, 20)
    second = Learner(bank, policy, EVER, 3)
    second.restore(first.save())
    assert play(first, 10, anew=True) == play(second, 10, anew=True)
    same(first, second)  # last, since it asks for what is never told


def test_what_was_saved_of_another_test_is_refused(bank: Bank, draw_instances: Draw) -> None:
    learner = Learner(bank, seed=3)
    play(learner, 3)
    saved = learner.save()
    other = bank.layout.with_prior("visualAbility", {"scaled_beta": {"low": 0, "high": 9}})
    other_layout = Bank(other, bank.features, bank.paradigms, names=bank.names)
    with pytest.raises(ValueError, match="another layout"):
        Learner(other_layout, seed=3).restore(saved)
    other_bank = Bank(bank.layout, draw_instances(SIZE, 2), bank.paradigms, names=bank.names)
    with pytest.raises(ValueError, match="another bank"):
        Learner(other_bank, seed=3).restore(saved)
    with pytest.raises(ValueError, match="another seed"):
        Learner(bank, seed=4).restore(saved)
    with pytest.raises(ValueError, match="another policy"):
        Learner(bank, Policy("random"), seed=3).restore(saved)
    with pytest.raises(ValueError):
        Learner(bank, seed=3).restore(saved[:-5])


def test_what_was_saved_under_other_rules_is_refused(
    bank: Bank, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("animalcat.layouts.adaptive.plan.RULES", RULES + 1)
        saved = Learner(bank, seed=3, rules=RULES + 1).save()
    with pytest.raises(ValueError, match="another version of the rules; make the learner as then"):
        Learner(bank, seed=3).restore(saved)


@pytest.mark.parametrize("meanwhile", ["save", "invalidate", "invalidate what was drawn"])
def test_what_was_chosen_is_not_forgotten_before_it_is_told(bank: Bank, meanwhile: str) -> None:
    policy = Policy("random")
    learner = Learner(bank, policy, EVER, 3)
    play(learner, 3)
    choice = learner.ask()
    assert choice is not None
    number = learner.n
    if meanwhile == "save":
        saved = learner.save()
        learner = Learner(learner.bank, policy, EVER, 3)
        learner.restore(saved)
        assert learner.save() == saved
    elif meanwhile == "invalidate":
        learner.invalidate(0)
    else:
        learner.tell(choice.instance, 0.0, number)
        learner.invalidate(number)
    learner.tell(choice.instance, 1.0, number)
    assert learner.forecasts[-1].random
    told = Learner(learner.bank, policy, EVER, 3)
    told.restore(learner.save())
    told.invalidate(number)
    told.tell(choice.instance, 1.0, number, random=True, wager=choice.wager)
    assert choice.wager is not None
    assert told.save() == learner.save()


@pytest.mark.parametrize("other", [RULES - 1, RULES + 1])
def test_other_rules_are_refused(bank: Bank, other: int) -> None:
    with pytest.raises(RulesError, match=f"began under decision rules of version {other}, and"):
        Learner(bank, rules=other)


@pytest.mark.parametrize("gone", [0, 7, 19])
def test_what_is_invalidated_was_never_told(bank: Bank, gone: int) -> None:
    told, never = Learner(bank, seed=3, rule=EVER), Learner(bank, seed=3, rule=EVER)
    for episode, instance in enumerate(play(told, 20)):
        if episode != gone:
            never.tell(instance, outcome(instance), episode)
    told.invalidate(gone)
    same(told, never)
    with pytest.raises(TellError, match="was not told"):
        told.invalidate(gone)


def test_draws_that_knew_what_is_invalidated_go_with_it(bank: Bank) -> None:
    told, never, kept = (Learner(bank, seed=3, rule=EVER) for _ in range(3))
    instances = play(told, 20)
    draws = np.array([[node.mean] * 200 for node in told.summary()]).T
    told.reseed(draws, 10)
    for episode, instance in enumerate(instances):
        if episode != 5:
            never.tell(instance, outcome(instance), episode)
        if episode != 15:
            kept.tell(instance, outcome(instance), episode)
    kept.reseed(draws, 10)
    again = Learner(bank, seed=3, rule=EVER)
    again.restore(told.save())
    told.invalidate(5)
    same(told, never)
    again.invalidate(15)
    same(again, kept)


def test_what_is_set_aside_is_not_chosen(bank: Bank) -> None:
    learner = Learner(bank, Policy("listed", order=("i07", "i08", "i09")), EVER, 3)
    learner.set_aside("i08")
    assert play(learner, 2) == ["i07", "i09"]
    learner.set_aside("i07")  # it was told of, so it stays
    assert (len(learner.left), "i08" in learner.left) == (SIZE - 1, False)
    assert learner.n == 2


def test_what_is_made_for_an_offer_is_told_by_what_it_is(
    aaio: Layout, draw_instances: Draw
) -> None:
    own = draw_instances(5, 1)
    offers = DemandVectorGenerator(own, 200).offers(aaio)
    bank = Bank(aaio, own, ["a"] * 5, names=list("vwxyz"), offers=offers)
    learner = Learner(bank, Policy(generate=True, random_share=0.0), EVER, 3)
    choice = learner.ask()
    assert choice is not None
    assert choice.offered
    features = bank.features[choice.index] * 0.5
    with pytest.raises(TellError, match="no instance was made with that name"):
        learner.tell("made", 1.0)
    learner.learn("made", choice.instance, features)
    learner.tell("made", 1.0)
    np.testing.assert_array_equal(learner.data().features, [features])
    asked = _ask_some(learner, 10)
    assert choice.instance not in asked  # one is made of an offer
    again = Learner(bank, Policy(generate=True, random_share=0.0), EVER, 3)
    again.restore(learner.save())
    assert _ask_some(again, 3) == _ask_some(learner, 3)
    with pytest.raises(ValueError, match="is not on offer"):
        learner.learn("other", "nothing", features)


def _ask_some(learner: Learner, count: int) -> list[str]:
    made: list[str] = []
    for episode in range(100, 100 + count):
        choice = learner.ask(episode=episode)
        assert choice is not None
        made.append(choice.instance)
    return made


def test_what_cannot_be_told_says_why(bank: Bank) -> None:
    learner = Learner(bank, seed=3)
    with pytest.raises(TellError, match="'i99' is not in the bank"):
        learner.tell("i99", 1.0)
    with pytest.raises(ValueError, match="success is 1, failure 0"):
        learner.tell("i01", 0.5)
    learner.tell("i01", 1.0, 4)
    with pytest.raises(TellError, match="episode 4 was told already"):
        learner.tell("i02", 1.0, 4)
    assert learner.n == 1


TWO = {
    "name": "two",
    "features": {"distance": {"unit": "m", "low": 0, "high": 40}},
    "latents": {
        "reach": {
            "kind": "capability",
            "unit": "m",
            "prior": {"scaled_beta": {"low": 0, "high": 40}},
        },
        "haste": {
            "kind": "capability",
            "unit": "m",
            "prior": {"scaled_beta": {"low": 0, "high": 40}},
        },
        "spread": {"kind": "robustness", "unit": "1", "prior": {"half_normal": {"scale": 20}}},
    },
    "derived": {
        "passing": {
            "link": {"logistic_margin": {"ability": "reach", "demand": "distance", "slope": 0.3}}
        },
        "quick": {
            "link": {"logistic_margin": {"ability": "haste", "demand": "distance", "slope": 0.1}}
        },
    },
    "outcomes": {
        "passed": {"kind": "success", "probability": "passing"},
        "left": {
            "kind": "score",
            "source": "time_left",
            "mean": "quick",
            "sample_size": "spread",
            "edge": 0.01,
        },
    },
}


@pytest.fixture
def two() -> Bank:
    layout = from_dict(TWO)
    distance = np.linspace(1.0, 39.0, 40)[:, np.newaxis]
    return Bank(layout, distance, ["a"] * 40, names=[f"d{k}" for k in range(40)])


def test_several_outcomes_are_told_by_name_or_in_order(two: Bank) -> None:
    by_name, in_order = Learner(two, seed=1, rule=EVER), Learner(two, seed=1, rule=EVER)
    for episode in range(12):
        choice = by_name.ask()
        assert choice is not None
        near = two.features[choice.index, 0] < 20.0
        by_name.tell(choice.instance, {"passed": 1.0, "left": 0.7} if near else {"passed": 0.0})
        in_order.tell(choice.instance, [1.0, 0.7] if near else [0.0, np.nan], episode)
    same(by_name, in_order)
    nodes = {node.name: node for node in by_name.summary()}
    assert 10.0 < nodes["reach"].mean < 30.0
    assert nodes["haste"].sd < 11.5  # of the prior
    assert np.isnan(by_name.data().outcomes[:, 1]).any()
    again = Learner(two, seed=1, rule=EVER)
    again.restore(by_name.save())
    same(by_name, again)
    with pytest.raises(ValueError, match="outcome 'lefts' is unknown; there are passed, left"):
        by_name.tell("d1", {"lefts": 1.0})
    with pytest.raises(ValueError, match="1 outcome given; layout two has 2: passed, left"):
        by_name.tell("d1", 1.0)


def test_rules_that_never_end_are_refused(bank: Bank) -> None:
    with pytest.raises(ValueError, match="may never end"):
        Learner(bank, Policy(exposures=0), StoppingRule(30, futility=0.0, combine="all"))


@pytest.mark.parametrize("variant", ["", "trials", "score"])
def test_a_test_of_something_else_ends_with_a_profile(variant: str) -> None:
    """A table of items is enough; what the layout does not know of them is watched by the alarm."""
    layout = load_layout("one-capability", variant)
    generator = np.random.default_rng(1)
    columns = (*layout.feature_names, "topic")
    rows = [
        [*(generator.uniform(f.low, min(f.high, f.low + 9.0)) for f in layout.features), k % 2]
        for k in range(40)
    ]
    values = np.array(rows)
    for k, feature in enumerate(layout.features):
        if feature.name == "trials":
            values[:, k] = np.ceil(values[:, k])
    items = Instances(columns, values, names=tuple(f"item {k}" for k in range(40)))
    learner = Learner(Bank.of(layout, items), rule=StoppingRule(25, target_sd=0.05), seed=1)
    assert set(learner.bank.outside) == {"topic"}
    while not learner.verdict().stop:
        choice = learner.ask()
        assert choice is not None
        trials = values[choice.index, columns.index("trials")] if variant == "trials" else 1.0
        given = generator.uniform(0.2, 0.9)
        learner.tell(choice.instance, given if variant == "score" else round(given * trials))
    profile = learner.profile({"agent": "a person"}).to_dict()
    (name,) = [layout.latents[i].name for i in layout.capabilities]
    # Outcomes are drawn whatever the difficulty is, which may contradict the layout.
    assert profile["nodes"][name]["status"] in ("bounded", "budget", "layout contradicted")
    assert profile["provenance"]["agent"] == "a person"
    assert 0 < learner.n <= 25
    assert _falls(learner, name)


def _falls(learner: Learner, name: str) -> bool:
    nodes: Sequence[float] = [n.sd for n in learner.summary() if n.name == name]
    prior = next(n.prior.sd for n in learner.layout.latents if n.name == name)
    return nodes[0] < 0.8 * prior


@dataclass(frozen=True)
class Easiest:
    """A selector of one's own: what is likeliest to be passed, in shares of all."""

    share: float = 1.0

    def branches(
        self, context: SelectionContext, allowed: npt.NDArray[np.bool_]
    ) -> tuple[Branch, ...]:
        best = np.where(allowed, context.scores.predicted, -1.0)
        return (Branch(self.share, "easiest", (np.arange(len(best)) == best.argmax()) * 1.0),)


class AtFailure:
    """A stopper of one's own: the first that is so unlikely to be passed is the last."""

    def verdict(
        self,
        posterior: LivePosterior,
        chooser: Chooser,
        history: History,
        **rest: object,
    ) -> StopVerdict:
        p = chooser.scores(posterior, history).predicted
        over = bool(history.played) and bool(p[list(history.played)].min() < 0.5)
        return StopVerdict(over, "too hard" * over, {}, {}, {})


def test_selectors_and_stoppers_of_ones_own_take_the_place_of_policy_and_rule(bank: Bank) -> None:
    learner = Learner(bank, seed=3, selector=Easiest(), stopper=AtFailure())
    while not learner.verdict().stop and (choice := learner.ask()):
        assert (choice.reason, choice.propensity) == ("easiest", 1.0)
        learner.tell(choice.instance, 0.0)
    assert learner.verdict().reason == "too hard"
    assert 1 <= learner.n < len(bank)
    saved = learner.save()
    again = Learner(bank, seed=3, selector=Easiest(), stopper=AtFailure())
    again.restore(saved)
    same(again, learner)
    with pytest.raises(ValueError, match="another selector"):
        Learner(bank, seed=3, stopper=AtFailure()).restore(saved)


@dataclass(frozen=True)
class Wrong:
    """A selector that gives every instance this number."""

    number: float
    size: int = SIZE

    def branches(self, context: SelectionContext, allowed: Mask) -> tuple[Branch, ...]:
        return (Branch(1.0, "wrong", np.full(self.size, self.number)),)


@pytest.mark.parametrize(
    ("selector", "words"),
    [
        (Easiest(0.5), r"Easiest: the shares of the branches sum to 0\.5; they must sum to 1"),
        (Wrong(0.1), "Wrong: the probabilities of the branch 'wrong' sum to 6; they must sum to 1"),
        (Wrong(float("nan")), "sum to nan"),
        (Wrong(-1.0), "has a probability below 0"),
        (Wrong(0.1, 10), r"has probabilities of shape \(10,\); give one for each of the 60"),
    ],
)
def test_chances_that_are_none_are_refused(bank: Bank, selector: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Learner(bank, selector=selector).ask()


def test_a_selector_cannot_choose_what_may_not_be_played(bank: Bank) -> None:
    everything = Wrong(1.0 / SIZE)
    learner = Learner(bank, selector=everything)
    first = learner.ask()
    assert first is not None
    learner.tell(first.instance, 1.0)
    with pytest.raises(ValueError, match=f"{first.instance!r} has a probability above 0 and may"):
        learner.ask()
    assert Learner(bank, Policy(exposures=2), selector=everything).ask([first.instance])
