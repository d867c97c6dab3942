"""The verdict: sentences and kinds, for agents whose kind is known."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from importlib import resources
from typing import TypeAlias

import jsonschema
import numpy as np
import numpy.typing as npt
import pytest

from animalcat.layouts.adaptive.bank import Bank
from animalcat.layouts.adaptive.learner import Learner
from animalcat.layouts.adaptive.plan import StoppingRule
from animalcat.layouts.explaining import kinds
from animalcat.layouts.explaining.kinds import (
    KINDS,
    AgentKind,
    PlayedEpisodes,
    RivalExplanation,
    find_kind,
)
from animalcat.layouts.explaining.limits import costs, thin_draws
from animalcat.layouts.explaining.session import verdict_of
from animalcat.layouts.explaining.verdict import (
    Verdict,  # pyright: ignore[reportPrivateUsage]
)
from animalcat.layouts.explaining.wording import (
    Scale,
    figure,
    plain_scale,
    scale_of,
    words_of,
)
from animalcat.layouts.inference.live import LivePosterior
from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.inference.summary import NodeSummary
from animalcat.layouts.library import LAYOUTS, load_layout, variants
from animalcat.layouts.model.instances import Instances
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


def judge_it(passes: Callable[[Instances], Floats], episodes: int = 60) -> tuple[Profile, Verdict]:
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
    profile, found = judge_it(lambda t: np.ones(len(t)))
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
    assert re.search(r"finds goals up to at least [0-9.]+ m away \(no limit was found", found.text)
    assert "expects it to" not in found.text  # the success rate says that
    assert "passed all 60" in found.text


def test_of_several_outcomes_all_count() -> None:
    """It always arrives, but with half of its time gone."""
    profile, found = judged_several(1.0, 0.5)
    assert profile.notes["navigationAbility"].side == "at least"
    assert profile.notes["speed"].side is None
    assert "It passed all 12 arenas (reached) and scored 50 % of what was possible" in found.text
    assert "12 arenas (timeLeft)" in found.text
    assert "not found" not in found.text
    assert "It fails" not in found.text  # it never failed, whatever it was slow at


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


def test_a_weakness_is_named_in_metres() -> None:
    profile, found = judge_it(lambda t: (t.column("rewardDistance") < 18).astype(float), 120)
    assert found.found.kind == "single weakness"
    assert found.fails.by == "navigationAbility"
    assert found.fails.without < found.fails.share
    assert re.search(
        r"It fails mostly because of its limit in navigationAbility: without that limit, the "
        r"layout expects [5-9][0-9] % fewer failures",
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
        assert found.why.startswith("it never failed") == bool(passed)


def test_an_interval_that_goes_on_where_nothing_asks_for_more_is_no_limit() -> None:
    """It fails four arenas by chance, near ones and far ones, and can do everything."""
    profile, found = judge_it(lambda t: (np.arange(len(t)) % 15 != 7).astype(float), 60)
    assert "passed 56 of 60" in found.text
    words = profile.words["navigationAbility"]
    assert words.estimate.startswith("no limit found: at least ")
    assert words.interval == "over 35.1 m"  # the farthest that was asked, which may lie behind
    assert words.estimate == "no limit found: at least 35.1 m"
    note = profile.notes["navigationAbility"]
    assert (note.side, note.text) == ("at least", "what is beyond 35.1 m is not measured")
    assert "Its weaker side" not in found.text


def test_a_bound_is_the_same_number_wherever_it_is_said() -> None:
    profile, found = judge_it(lambda t: np.ones(len(t)))
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


def test_json_follows_the_schema() -> None:
    text = (resources.files("animalcat") / "schemas" / "profile.schema.json").read_text("utf-8")
    rules: list[Callable[[Instances], Floats]] = [
        lambda t: t.column(LOOK),
        lambda t: np.zeros(len(t)),
        lambda t: (t.column("rewardSize") > 1).astype(float),
    ]
    for passes in rules:
        profile, found = judge_it(passes)
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


def test_values_are_read_in_the_unit_of_the_feature() -> None:
    layout = load_layout("aaio", "scaled")
    far, small = scale_of(layout, 0), scale_of(layout, 1)
    assert far.convert(2.1) == pytest.approx(21.0, abs=0.2)
    assert small.convert(1.9) == pytest.approx(0.5, abs=0.03)
    assert not small.rising
    node = NodeSummary("navigationAbility", "capability", "10 m", 2.1, 0.2, (1.8, 2.4), 500.0)
    assert far.say(node) == "finds goals up to 21 m away in half of its attempts (90 %: 18 to 24 m)"
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
    assert none.estimate.endswith("(the easiest there is) in less than half of its attempts")
    full = read(far, 4.8, 4.3, 5.2)
    assert full.estimate.endswith(
        "60 m away (the hardest that was asked) in more than half of its attempts"
    )
    assert none.interval == "under 1"


def test_the_shipped_layouts_say_how_their_capabilities_are_read() -> None:
    for name in LAYOUTS:
        for variant in variants(name):
            layout = load_layout(name, variant)
            for k in layout.capabilities:
                node = layout.latents[k]
                assert node.reads or node.about.startswith("chance to"), (name, variant, node.name)


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
    draws = thin_draws(posterior.particles, posterior.weights, 500)
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
