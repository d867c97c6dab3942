"""The verdict: sentences and kinds, for agents whose kind is known."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from importlib import resources
from typing import Any, TypeAlias

import jsonschema
import numpy as np
import numpy.typing as npt
import pytest

from animalcat.layouts.adaptive.bank import Bank
from animalcat.layouts.adaptive.learner import Learner
from animalcat.layouts.adaptive.plan import Policy, StoppingRule
from animalcat.layouts.explaining import kinds
from animalcat.layouts.explaining.kinds import (
    KINDS,
    AgentKind,
    PlayedEpisodes,
    RivalExplanation,
    find_kind,
)
from animalcat.layouts.explaining.limits import costs, thinned
from animalcat.layouts.explaining.session import verdict_of
from animalcat.layouts.explaining.verdict import (
    Verdict,
    _value,  # pyright: ignore[reportPrivateUsage]
)
from animalcat.layouts.explaining.wording import (
    Scale,
    figure,
    for_informed,
    plain_scale,
    scale_of,
    words_of,
)
from animalcat.layouts.inference.evaluator import Evaluator
from animalcat.layouts.inference.live import LivePosterior
from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.inference.summary import NodeSummary
from animalcat.layouts.library import LAYOUTS, load_layout, variants
from animalcat.layouts.model.calibration import Calibration
from animalcat.layouts.model.codec import SpecificationError
from animalcat.layouts.model.instances import Instances
from animalcat.layouts.model.likelihood import as_shares
from animalcat.layouts.model.spec import Layout, from_dict, to_dict
from animalcat.layouts.model.units import plain_unit
from animalcat.layouts.reporting.profile import NodeWords, Profile
from benchmarks.synthetic import HIDDEN, op_battery, synthetic_agents

Floats: TypeAlias = npt.NDArray[np.float64]
LOOK = "goalRedness"


def arenas(n: int = 120) -> Instances:
    g = np.random.default_rng(3)
    columns = ("rewardDistance", "rewardSize", "rewardBehind", "XPos", LOOK)
    values = np.column_stack(
        [
            g.uniform(2, 36, n),
            g.choice([1, 2, 4, 5], n),
            g.choice([0, 0.5, 1], n),
            g.choice([-1, 0, 1], n),
            g.choice([0, 1], n),
        ]
    )
    return Instances(columns, values, tuple("ab"[i % 2] for i in range(n)))


def judged(passes: Callable[[Instances], Floats], episodes: int = 60) -> tuple[Profile, Verdict]:
    table = arenas()
    learner = Learner(
        Bank.of(load_layout("aaio", "metres-15"), table), None, StoppingRule(200), seed=4
    )
    passed = passes(table)
    for i in range(episodes):
        if np.isnan(passed[i]):
            learner.tell_nothing(str(i), i)
        else:
            learner.tell(str(i), float(passed[i]), i)
    return verdict_of(learner, learner.profile())


def judged_several(*outcomes: float, episodes: int = 12) -> tuple[Profile, Verdict]:
    """Every episode of `navigation-speed` gives these: reached, and share of time left."""
    g = np.random.default_rng(3)
    rows = np.column_stack([g.uniform(2, 50, episodes), g.uniform(18, 22, episodes)])
    layout = load_layout("navigation-speed", "reward")
    bank = Bank(layout, rows, ["open"] * episodes, names=[str(i) for i in range(episodes)])
    learner = Learner(bank, None, StoppingRule(200), seed=4)
    for i in range(episodes):
        learner.tell(str(i), outcomes, i)
    return verdict_of(learner, learner.profile())


def test_an_able_agent_is_bounded_from_below() -> None:
    profile, found = judged(lambda t: np.ones(len(t)))
    assert found.found.kind == "able"
    note = profile.notes["navigationAbility"]
    assert note.side == "at least"
    assert note.text.endswith("no failure was seen")
    assert re.fullmatch(
        r"no limit found: at least [0-9.]+ m", profile.words["navigationAbility"].estimate
    )
    assert re.fullmatch(
        r"no limit found: [0-9.]+ m or less", profile.words["visualAbility"].estimate
    )
    node = profile.nodes_dict()["navigationAbility"]
    assert node["bound"] == note.bound
    assert 0.5 < node["contraction"] < 1.0
    assert re.search(r"finds goals up to [0-9.]+ m away at least \(no limit was found", found.text)
    assert "expects it to" not in found.text  # the success rate says that
    assert "passed all 60" in found.text


def test_one_that_fails_everywhere_is_bounded_from_above_and_of_no_kind() -> None:
    profile, found = judged(lambda t: np.zeros(len(t)))
    assert found.found.kind == "unclear"
    assert profile.notes["visualAbility"].side == "at most"
    assert "passed none of 60" in found.text
    both = "no ability was shown in any of navigationAbility and visualAbility."
    assert f"What makes it fail is open: {both}" in found.text


def test_what_makes_it_fail_is_open_where_another_ability_is_not_known() -> None:
    _, found = judged(lambda t: np.zeros(len(t)), 12)
    assert found.blamed == "navigationAbility"
    assert (
        "What makes it fail is open: no ability was shown in navigationAbility, and visualAbility "
        "is not known yet."
    ) in found.text


def test_what_was_not_observed_is_no_failure() -> None:
    profile, found = judged(lambda t: np.where(np.arange(len(t)) % 3, 1.0, np.nan), 30)
    assert "It passed all 20 arenas, so its limits were not found" in found.text
    assert profile.notes["navigationAbility"].side == "at least"


def test_nothing_observed_is_said_so() -> None:
    _, found = judged(lambda t: np.full(len(t), np.nan), 10)
    assert found.sentences[0] == "Nothing was observed, so this is what was assumed before."
    assert found.found.kind == "unclear"
    assert "0 episodes are too few" in found.text


def test_of_several_outcomes_all_count() -> None:
    """It always arrives, but with half of its time gone."""
    profile, found = judged_several(1.0, 0.5)
    assert profile.notes["navigationAbility"].side == "at least"
    assert profile.notes["speed"].side is None
    assert "It passed all 12 arenas (reached) and reached 50 % of what could be" in found.text
    assert "12 arenas (timeLeft)" in found.text
    assert "not found" not in found.text
    assert "makes it fail" not in found.text  # it failed nowhere, whatever it was slow at


def test_a_first_outcome_that_was_never_observed_is_left_out() -> None:
    profile, found = judged_several(np.nan, 0.5)
    assert found.sentences[0].startswith("It reached 50 % of what could be reached in 12 arenas (t")
    assert "passed" not in found.sentences[0]
    assert "this is the prior" in profile.notes["navigationAbility"].text
    assert profile.notes["speed"].text == "its prior already leans towards 7 m/s"
    nodes = profile.nodes_dict()
    assert [nodes[name]["informative"] for name in ("navigationAbility", "speed")] == [False, True]


def test_scores_at_an_end_are_at_that_end() -> None:
    layout = load_layout("navigation-speed", "reward")
    columns = Evaluator(layout).columns([[10.0, 20.0]] * 4)
    y = layout.check_outcomes([[1, 1], [0, np.nan], [1, 0.4], [1, 0]], columns[:, :2])
    assert y[0, 1] == 0.99
    np.testing.assert_array_equal(
        as_shares(layout, columns, y), [[1, 1], [0, np.nan], [1, 0.4], [1, 0]]
    )
    profile, found = judged_several(1.0, 1.0)
    assert profile.notes["speed"].side == "at least"
    assert "passed all 12 arenas (timeLeft), so its limits were not found" in found.text


def test_arenas_that_were_played_again_are_counted_as_episodes() -> None:
    table = arenas(5)
    bank = Bank.of(load_layout("aaio", "metres-15"), table)
    learner = Learner(bank, Policy(exposures=0), StoppingRule(200), seed=4)
    for i in range(7):
        learner.tell(str(i % 5), 1.0, i)
    _, found = verdict_of(learner, learner.profile())
    assert "It passed all 7 episodes" in found.text
    assert "7 episodes are too few" in found.text


def test_a_kind_is_told_by_a_rival_of_that_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two looks make it a fraudster together, though a demand is likelier than either."""
    rates = (0.0, 1.0)
    rivals = [
        RivalExplanation("demand", "XPos", 0.4, "0", "1", rates),
        RivalExplanation("irrelevant", "redness", 0.28, "0", "1", rates),
        RivalExplanation("irrelevant", "blueness", 0.32, "0", "1", rates),
    ]
    monkeypatch.setattr(kinds, "_rivals", lambda *_: (rivals, 0.0))
    layout = load_layout("aaio", "metres-15")
    rows = np.array([[10.0, 2.0, 0.0, 0.0]] * 10)
    draws = np.tile([node.prior.mean for node in layout.latents], (20, 1))
    cost = costs(layout, draws, rows)
    found = find_kind(layout, draws, PlayedEpisodes(rows, np.ones(10)), cost)
    assert found.kind == "fraudster"
    assert found.rival is not None
    assert found.rival.name == "blueness"
    rivals[0] = replace(rivals[0], probability=0.45)
    few = find_kind(layout, draws, PlayedEpisodes(rows[:3], np.ones(3)), cost)
    assert few.kind == "unclear"
    assert few.rival == rivals[0]  # the likeliest of all


def calibrated() -> Layout:
    """`aaio` with XPos as what a calibration taught."""
    text = json.dumps(to_dict(load_layout("aaio", "metres-15"))).replace('"XPos"', '"easiness"')
    base = ("aaio", "metres-15", "")
    return replace(from_dict(json.loads(text)), calibration=Calibration("c", base, (), 0, "", ()))


def test_what_a_calibration_taught_is_no_demand() -> None:
    layout, table = calibrated(), arenas()
    rows = table.features(load_layout("aaio", "scaled"))
    bank = Bank(layout, rows, table.paradigms, names=[str(i) for i in range(len(rows))])
    learner = Learner(bank, None, StoppingRule(200), seed=4)
    for i in range(60):
        learner.tell(str(i), float(rows[i, layout.feature_names.index("easiness")] > 0), i)
    _, found = verdict_of(learner, learner.profile())
    assert found.found.rival is None or found.found.rival.name != "easiness"
    assert "easiness" not in found.text


def test_a_weakness_is_named_in_metres() -> None:
    profile, found = judged(lambda t: (t.column("rewardDistance") < 18).astype(float), 120)
    assert found.found.kind == "single weakness"
    assert found.fails.by == "navigationAbility"
    assert found.fails.without < found.fails.share
    assert re.search(
        r"Mostly its limit of navigationAbility makes it fail: without that limit, the layout "
        r"expects [5-9][0-9] % fewer failures",
        found.text,
    )
    metres = re.search(r"finds goals up to ([0-9.]+) m away", found.text)
    assert metres is not None
    assert 10 < float(metres[1]) < 26
    assert profile.notes["navigationAbility"].side is None


def test_of_an_agent_that_failed_nowhere_no_failure_is_explained() -> None:
    """What is known of it is the prior, by which it may have any weakness."""
    layout = load_layout("object-permanence")
    g = np.random.default_rng(1)
    draws = layout.from_standard(g.standard_normal((300, len(layout.latents))))
    rows = np.tile([0.5 * (f.low + f.high) for f in layout.features], (16, 1)).round()
    for passed in (1.0, 0.0):
        played = PlayedEpisodes(rows, np.full(16, passed))
        found = find_kind(layout, draws, played, costs(layout, draws, rows))
        assert found.kind == "unclear"
        assert found.why.startswith("it failed nowhere") == bool(passed)


def test_an_interval_that_goes_on_where_nothing_asks_for_more_is_no_limit() -> None:
    """It fails four arenas by chance, near ones and far ones, and can do everything."""
    profile, found = judged(lambda t: (np.arange(len(t)) % 15 != 7).astype(float), 60)
    assert "passed 56 of 60" in found.text
    words = profile.words["navigationAbility"]
    assert words.estimate.startswith("no limit found: at least ")
    assert words.interval == "over 35.1 m"  # the farthest that was asked, which may lie behind
    assert words.estimate == "no limit found: at least 35.1 m"
    note = profile.notes["navigationAbility"]
    assert (note.side, note.text) == ("at least", "what is beyond 35.1 m is not measured")
    assert "Its weaker side" not in found.text


def test_an_interval_that_begins_where_nothing_asks_for_less_shows_no_ability() -> None:
    """It passes four arenas by chance, near ones and far ones, and can do nothing."""
    profile, found = judged(lambda t: (np.arange(len(t)) % 15 == 7).astype(float), 60)
    assert "passed 4 of 60" in found.text
    words, note = profile.words["navigationAbility"], profile.notes["navigationAbility"]
    bound = re.fullmatch(r"no ability shown: at most ([0-9.]+ m)", words.estimate)
    assert bound is not None
    assert note.side == "at most"
    assert words.interval == f"0 to {bound[1]}"  # one number, however it is said
    assert f"finds goals up to {bound[1]} away at most (no ability was shown)" in found.text
    assert "Its weaker side" not in found.text
    sizes = profile.words["visualAbility"].estimate
    assert re.match(r"(no ability shown: [0-9.]+ m or more|not known yet \()", sizes)


def test_noise_that_may_be_none_is_bounded() -> None:
    profile, _ = judged(lambda t: np.ones(len(t)))
    words = profile.words["noiseLevel"]
    bound = re.fullmatch(r"no noise shown: at most ([0-9.]+) %", words.estimate)
    assert bound is not None
    assert words.interval == f"0 to {bound[1]} %"


def test_a_bound_is_the_same_number_wherever_it_is_said() -> None:
    profile, found = judged(lambda t: np.ones(len(t)))
    nodes = {node.name: node for node in profile.nodes}
    for k, name in enumerate(("navigationAbility", "visualAbility")):
        words, scale = profile.words[name], found.scales[k]
        number = re.search(r"[0-9.]+ m", words.estimate)
        assert number is not None
        node, note = nodes[name], profile.notes[name]
        brief = scale.brief(node.mean, *node.hdi, note=note)
        assert brief == scale.of_profile(profile.nodes_dict()[name])
        assert words.estimate == f"no limit found: {brief.estimate}"
        assert brief.estimate == scale.told(node.mean, *node.hdi, known=True, note=note)
        assert words.interval == brief.interval
        said = number[0].removesuffix(" m")
        assert said in words.interval.split()
        assert said in found.text


def test_where_more_ability_is_a_smaller_value_its_end_is_smaller() -> None:
    profile, _ = judged(lambda t: (t.column("rewardDistance") < 30).astype(float))
    sizes = profile.notes["visualAbility"]
    assert (sizes.side, sizes.text) == ("at least", "what is smaller than 1 m is not measured")


def test_what_an_agent_is_told_of_it_does_not_see() -> None:
    layout = load_layout("aaio", "metres-15")
    informed = for_informed(layout)
    assert informed.digest == layout.digest
    phrases = [scale_of(informed, k).phrase for k in (0, 1)]
    assert phrases == [
        "finds goals up to {} away",
        "is told of goals and finds them down to {} across",
    ]
    assert for_informed(informed) == informed
    bare = replace(layout, latents=tuple(replace(node, reads="") for node in layout.latents))
    assert [scale_of(for_informed(bare), k).phrase for k in (0, 1)] == phrases
    table = arenas()
    learner = Learner(Bank.of(informed, table), None, StoppingRule(200), seed=4)
    for i in range(20):
        learner.tell(str(i), 1.0, i)
    _, found = verdict_of(learner, learner.profile({"privileged": True}))
    assert found.sentences[0].startswith("Told where everything is, it passed all 20 arenas")
    assert "sees goals" not in found.text


def test_one_that_does_well_only_where_more_is_asked_for_has_a_strength_and_no_weakness() -> None:
    layout = load_layout("object-permanence")
    g = np.random.default_rng(1)
    rows = np.tile([0.5 * (f.low + f.high) for f in layout.features], (40, 1)).round()
    ramp = layout.feature_names.index("rampPresence")
    rows[:, ramp] = np.arange(40) % 2
    draws = layout.from_standard(g.standard_normal((300, len(layout.latents))))
    cost = costs(layout, draws, rows)
    only = find_kind(layout, draws, PlayedEpisodes(rows, rows[:, ramp]), cost)
    assert (only.kind, only.weakness) == ("single strength", "")
    assert only.rival is not None
    assert (only.rival.name, only.rival.low, only.rival.strength) == ("rampPresence", "0", True)
    never = find_kind(layout, draws, PlayedEpisodes(rows, 1.0 - rows[:, ramp]), cost)
    assert never.kind == "single weakness"
    unread = only.unread("the layout does not describe this agent")
    assert (unread.kind, unread.why) == ("unclear", "the layout does not describe this agent")
    assert unread.probabilities["single strength"] == 0.0
    assert sum(unread.probabilities.values()) == pytest.approx(1.0)


def test_success_by_a_colour_makes_a_fraudster_and_by_a_paradigm_a_context_agent() -> None:
    _, by_look = judged(lambda t: t.column(LOOK))
    assert by_look.found.kind == "fraudster"
    rival = by_look.found.rival
    assert rival is not None
    assert rival.name == LOOK
    assert rival.rates == (0.0, 1.0)
    assert LOOK in by_look.text
    _, by_place = judged(lambda t: np.array([float(p == "a") for p in t.paradigms]))
    assert by_place.found.kind == "context"


@pytest.mark.parametrize("episodes", [0, 1, 5])
def test_few_episodes_say_that_they_are_few(episodes: int) -> None:
    _, found = judged(lambda t: np.ones(len(t)), episodes)
    assert found.found.kind == "unclear"
    assert 2 <= len(found.sentences) <= 5
    assert "too" in found.found.why


def test_json_follows_the_schema() -> None:
    text = (resources.files("animalcat") / "schemas" / "profile.schema.json").read_text("utf-8")
    rules: list[Callable[[Instances], Floats]] = [
        lambda t: t.column(LOOK),
        lambda t: np.zeros(len(t)),
        lambda t: (t.column("rewardSize") > 1).astype(float),
    ]
    for passes in rules:
        profile, found = judged(passes)
        content = {**profile.to_dict(), "verdict": found.to_dict()}
        jsonschema.validate(json.loads(json.dumps(content)), json.loads(text))
        assert 2 <= len(found.sentences) <= 5
        assert sum(found.found.probabilities.values()) == pytest.approx(1.0)
        assert set(found.found.probabilities) == set(KINDS)


def test_a_standing_alarm_comes_first_and_no_ability_is_read() -> None:
    table = arenas()
    learner = Learner(
        Bank.of(load_layout("aaio", "scaled"), table), None, StoppingRule(200), seed=4
    )
    for i in range(100):
        learner.tell(str(i), table.column(LOOK)[i], i)
    assert learner.misfit
    _, found = verdict_of(learner, learner.profile())
    assert found.sentences[0].startswith("The layout does not describe this agent: ")
    assert found.judgement.evidence[0] == f"An alarm stands: {learner.misfit}."
    assert "finds goals" not in found.text


def test_a_fit_that_has_not_converged_is_not_relied_on() -> None:
    table = arenas()
    learner = Learner(
        Bank.of(load_layout("aaio", "scaled"), table), None, StoppingRule(200), seed=4
    )
    for i in range(20):
        learner.tell(str(i), 1.0, i)
    live = learner.profile()
    fitted = Profile(live.layout, live.nodes, {**live.diagnostics, "engine": "nuts"})
    _, found = verdict_of(learner, fitted)
    assert found.sentences[0].startswith("The fit has not converged")
    assert "finds goals" not in found.text


def test_values_are_read_in_the_unit_of_the_feature() -> None:
    layout = load_layout("aaio", "scaled")
    far, small = scale_of(layout, 0), scale_of(layout, 1)
    assert far.convert(2.1) == pytest.approx(21.0, abs=0.2)
    assert small.convert(1.9) == pytest.approx(0.5, abs=0.03)
    assert not small.rising
    node = NodeSummary("navigationAbility", "capability", "10 m", 2.1, 0.2, (1.8, 2.4), 500.0)
    assert far.say(node) == "finds goals up to 21 m away half of the time (90 %: 18 to 24 m)"
    lava = scale_of(load_layout("object-permanence"), 4)
    chance = NodeSummary("lavaAbility", "capability", "1", 0.12, 0.05, (0.04, 0.2), 500.0)
    assert lava.say(chance) == "masters lava 12 % of the time (90 %: 4 to 20 %)"
    assert plain_unit("10 m") == (10.0, "m")
    assert plain_unit("1.9 lg(5 m/d)")[0] == 1.0
    assert figure(-0.0001, 0.1) == "0"


def read(scale: Scale, mean: float, low: float, high: float) -> NodeWords:
    return words_of(NodeSummary("n", "capability", "1", mean, 0.1, (low, high), 500.0), scale)


def test_values_beyond_what_any_arena_asks_for_are_marked() -> None:
    far = scale_of(load_layout("aaio", "metres-15"), 0)  # goals lie 0 to 60 m away
    assert read(far, 2.6, 1.6, 4.8).interval == "24 to over 60 m"
    assert read(far, 4.8, 4.3, 5.2).interval == "over 60 m"
    assert far.quantity(2.0, 1.9999, 2.0001) == "30.0 m"
    small = scale_of(load_layout("object-permanence"), 2)  # goals of 0.4 to 5 m, and 0 is 5.2 m
    assert read(small, 3.0, 1.8, 5.4).interval == "under 0.4 to 3.2 m"
    assert read(small, 3.0, 0.5, 5.9).interval == "under 0.4 to 4 m"  # and not "under 0"
    places = scale_of(load_layout("object-permanence"), 0)  # one hiding place at least
    none = read(places, 0.5, 0.0, 1.0)
    assert none.estimate.endswith("(the easiest there is) less than half of the time")
    full = read(far, 4.8, 4.3, 5.2)
    assert full.estimate.endswith(
        "60 m away (the hardest that was asked) more than half of the time"
    )
    assert none.interval == "under 1"


def test_a_demand_of_two_features_that_both_matter_keeps_its_own_unit() -> None:
    layout = load_layout("navigation-speed", "reward")
    speed = layout.latent_names.index("speed")
    rows = np.array([[10.0, 20.0], [40.0, 60.0], [20.0, 5.0]])
    assert scale_of(layout, speed, rows).unit == "m/s"
    assert scale_of(layout, speed).unit == "m/s"
    assert scale_of(layout, layout.latent_names.index("navigationAbility"), rows).unit == "m"


def test_a_phrase_for_readers_is_taken_as_it_is() -> None:
    layout = load_layout("one-capability", "success")
    ability = replace(layout.latents[0], reads="strolls up to {} in a T-maze, side-by-side")
    layout = replace(layout, latents=(ability, *layout.latents[1:]))
    assert read(scale_of(layout, 0), 5.0, 3.0, 7.0).estimate.startswith("strolls up to 5 in a T-m")
    assert to_dict(from_dict(to_dict(layout))) == to_dict(layout)
    assert layout.digest == load_layout("one-capability", "success").digest


@pytest.mark.parametrize("phrase", ["walks far", "walks {} to {}", "walks {metres}", "walks {} }"])
def test_a_phrase_without_one_place_for_the_value_is_refused(phrase: str) -> None:
    data = to_dict(load_layout("one-capability", "success"))
    data["latents"]["ability"]["reads"] = phrase
    with pytest.raises(SpecificationError, match=r"latent ability: reads .* exactly once"):
        from_dict(data)


def two_over_one_demand(**reads: str) -> dict[str, Any]:
    """A layout of two capabilities, both over the distance, and how each is read."""
    data = to_dict(load_layout("navigation-speed", "reward"))
    for name, node in data["latents"].items():
        node.pop("reads", None)
        if name in reads:
            node["reads"] = reads[name]
    data["derived"]["inTime"]["link"]["logistic_margin"] = {
        "ability": "speed", "demand": "far", "slope": 0.5
    }  # fmt: skip
    data["latents"]["speed"] |= {"unit": "m", "prior": {"scaled_beta": {"low": 1, "high": 60}}}
    data["derived"]["far"] = {
        "unit": "m", "link": {"scaled": {"input": "rewardDistance", "factor": 0.5}}
    }  # fmt: skip
    del data["derived"]["neededSpeed"]
    return data


def test_two_capabilities_over_one_demand_read_apart() -> None:
    layout = from_dict(two_over_one_demand())
    phrases = [scale_of(layout, k).phrase for k in (0, 1)]
    assert phrases == [
        "finds goals up to {} away, by its navigationAbility",
        "finds goals up to {} away, by its speed",
    ]
    same = "finds goals up to {} away"
    with pytest.raises(SpecificationError, match="navigationAbility reads too"):
        from_dict(two_over_one_demand(navigationAbility=same, speed=same))
    said = from_dict(two_over_one_demand(navigationAbility=same, speed="runs {} in time"))
    assert [scale_of(said, k).phrase for k in (0, 1)] == [same, "runs {} in time"]


def test_the_shipped_layouts_say_how_their_capabilities_are_read() -> None:
    for name in LAYOUTS:
        for variant in variants(name):
            layout = load_layout(name, variant)
            for k in layout.capabilities:
                node = layout.latents[k]
                assert node.reads or node.about.startswith("chance to"), (name, variant, node.name)


def test_an_estimate_that_is_the_prior_is_not_said() -> None:
    profile, found = judged(lambda t: np.ones(len(t)), 1)
    node = profile.nodes_dict()["noiseLevel"]
    assert (node["known"], node["contraction"] < 0.3) == (False, True)
    assert node["words"]["estimate"] == f"not known yet ({node['words']['interval']})"
    assert "It passed the only arena that was played" in found.text
    assert "Not known yet: " in found.text


@pytest.mark.parametrize(
    ("number", "kind"),
    [(1, "able"), (6, "single weakness"), (7, "fraudster"), (21, "context")],
)
def test_kinds_of_known_agents_are_found(number: int, kind: AgentKind) -> None:
    layout, battery = load_layout("object-permanence"), op_battery(3)
    features = battery.features(layout)
    agent = synthetic_agents()[number - 1]
    generator = rng(3, "verdict", number)
    rows: list[int] = generator.permutation(len(battery))[:200].tolist()
    outcomes = (generator.random(200) < agent.probability(battery)[rows]).astype(np.float64)
    posterior = LivePosterior(layout, 3)
    posterior.update_all(features[rows], outcomes)
    draws = thinned(posterior.particles, posterior.weights, 500)
    played = PlayedEpisodes(
        features[rows],
        outcomes,
        None,
        [battery.paradigms[row] for row in rows],
        {name: battery.column(name)[rows] for name in HIDDEN},
        [name for name in HIDDEN if name != "rewardVisibility"],
    )
    found = find_kind(layout, draws, played, costs(layout, draws[:200], features[::7]))
    assert found.kind == kind
    assert number != 6 or found.weakness == "lavaAbility"


def test_a_table_says_estimates_and_differences_in_metres() -> None:
    layout = load_layout("aaio", "scaled")
    far, small = scale_of(layout, 0), scale_of(layout, 1)
    assert far.brief(2.1, 1.7, 2.5).estimate == "21 m"
    assert far.brief(2.1, 1.7, 2.5).interval == "17 to 25 m"
    near, further = np.full(400, 1.0), np.linspace(2.0, 3.0, 400)
    told = far.difference(near, further)
    assert told.estimate == "\u221215 m"
    assert told.interval.startswith("\u2212")
    assert far.difference(further, near).estimate == "+15 m"
    # Whoever has more of it sees smaller goals.
    assert not small.rising
    assert small.difference(np.full(400, 1.5), np.linspace(0.2, 0.4, 400)).estimate[0] == "\u2212"
    assert plain_scale("10 m").brief(0.21, 0.17, 0.25).estimate == "2.1 m"


def test_a_bias_is_said_in_metres() -> None:
    node = NodeSummary("rightLeftBias", "bias", "15 m", -3.5, 0.6, (-4.5, -2.6), 500.0)
    said = _value(node)
    assert said == "rightLeftBias \u221252 m (90 %: \u221268 to \u221239 m)"
