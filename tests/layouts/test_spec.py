"""The specification: what it says, what it refuses, and how it travels."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from animalcat.layouts.library import LAYOUTS, load_layout, variants
from animalcat.layouts.model.codec import SpecificationError
from animalcat.layouts.model.expressions import bounds
from animalcat.layouts.model.links import LogisticMargin, NoiseMixture
from animalcat.layouts.model.spec import Layout, from_dict, to_dict
from animalcat.text.formulas import FormulaError, parse_formula

Change = Callable[[dict[str, Any]], object]


def test_every_shipped_layout_survives_a_round_trip_through_json() -> None:
    for name in LAYOUTS:
        for variant in variants(name):
            layout = load_layout(name, variant)
            again = from_dict(json.loads(json.dumps(to_dict(layout))))
            assert again == layout
            assert again.digest == layout.digest
            assert layout.variant == variant


def test_aaio_is_table_3(aaio: Layout) -> None:
    latents = {node.name: (node.kind, str(node.prior)) for node in aaio.latents}
    assert latents == {
        "navigationAbility": ("capability", "Uniform(0, 5.3)"),
        "visualAbility": ("capability", "Uniform(0, 1.9)"),
        "rightLeftBias": ("bias", "Normal(0, 1)"),
        "noiseLevel": ("robustness", "Uniform(0, 1)"),
    }
    links = {node.name: node.link for node in aaio.derived}
    assert {"rightLeftEffect", "navigationPerformance", "visualPerformance"} <= set(links)
    navigation, visual = links["navigationPerformance"], links["visualPerformance"]
    assert isinstance(navigation, LogisticMargin)
    assert isinstance(visual, LogisticMargin)
    assert navigation.slope == pytest.approx(6.9 / 5.3)
    assert visual.slope == pytest.approx(6.9 / 1.9)
    assert isinstance(links["taskPerformance"], NoiseMixture)
    assert links["taskPerformance"].nu == 0.5


def test_as_printed_has_slope_1_and_its_chance_and_nothing_else_differs(aaio: Layout) -> None:
    printed = load_layout("aaio", "as-printed")
    margins = [n.link for n in printed.derived if isinstance(n.link, LogisticMargin)]
    assert [m.slope for m in margins] == [1.0, 1.0]
    assert printed.digest != aaio.digest
    data = to_dict(printed)
    for name in ("navigationPerformance", "visualPerformance"):
        link = data["derived"][name]["link"]["logistic_margin"]
        link["slope"] = to_dict(aaio)["derived"][name]["link"]["logistic_margin"]["slope"]
    assert data["features"].pop("chance")["if_missing"] == 0.5
    mixture = data["derived"]["taskPerformance"]["link"]["noise_mixture"]
    assert mixture.pop("nu") == "chance"
    mixture["nu"] = 0.5
    assert from_dict({**data, "variant": "scaled", "about": aaio.about}) == aaio


BARE = {"rewardDistance": 5.0, "rewardSize": 1.0, "rewardBehind": 0.0, "XPos": 0.0}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({}, ""),
        ({"wallsInWay": 1.0}, "wallsInWay above 0"),
        ({"rewards": 2.0}, "rewards above 1"),
        ({"darkness": 0.5}, ""),
        ({"rewardDistance": 61.0, "lava": 1.0}, "rewardDistance above 60 m"),
        ({"XPos": None}, "no reward"),  # what the battery says of it
        ({"rewardSize": None}, "no rewardSize"),
        ({"lava": None}, "lava not measured"),
    ],
)
def test_what_a_layout_does_not_describe(
    aaio: Layout, change: dict[str, float | None], why: str
) -> None:
    values = BARE | {e.feature: 0.0 for e in aaio.excludes} | change
    known = {name: value for name, value in values.items() if value is not None}
    assert aaio.why_not(known, {"XPos": "no reward"}) == why


def test_rules_for_what_is_missing_hold_for_coverage_too() -> None:
    layout = load_layout("object-permanence")
    row = {f.name: max(f.low, 0.0) for f in layout.features}
    assert layout.why_not(row, {}) == ""
    del row["timeUnderOcc"]
    assert layout.why_not(row, {}) == ""
    assert layout.why_not({**row, "occluderPresence": 1.0}, {}) == "no timeUnderOcc"
    assert (
        layout.why_not({**row, "occluderPresence": 0.5}, {}) == "occluderPresence neither 0 nor 1"
    )
    assert load_layout("one-capability").why_not({}, {}) == ""


def _margin(data: dict[str, Any]) -> dict[str, Any]:
    return data["derived"]["visualPerformance"]["link"]["logistic_margin"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: _margin(d).update(ability="sight"), ["visualPerformance", "sight", "visualAb"]),
        (lambda d: d["excludes"].update(lava={}), ["excludes.lava", "above, below"]),
        (lambda d: d["excludes"].update(lava={"over": 1}), ["lava.over", "above"]),
        (lambda d: d["excludes"].update(XPos={"above": 0}), ["XPos", "narrow its range"]),
        (lambda d: d["excludes"].update(lava={"above": 0, "below": 1}), ["leave nothing"]),
        (lambda d: d.update(covers={}), ["covers: there is no such key", "cues"]),
        (lambda d: _margin(d).update(slope=0), ["visualPerformance", "slope", "above 0"]),
        (lambda d: _margin(d).update(slope="steep"), ["slope", "'steep'"]),
        (lambda d: _margin(d).update(slope=10**400), ["slope", "finite number"]),
        (lambda d: _margin(d).update(slop=1), ["visualPerformance", "slop: there is", "'slope'"]),
        (lambda d: _margin(d).pop("demand"), ["visualPerformance", "demand: it is missing"]),
        (lambda d: _margin(d).update(demand="navigationDemand"), ["visualPerformance", "unit"]),
        (lambda d: _margin(d).update(demand="rightLeftEffect"), ["visualPerformance", "unit"]),
        (
            lambda d: d["derived"]["visualPerformance"].update(link={"sigmoid": {}}),
            ["visualPerformance", "sigmoid", "logistic_margin", "noise_mixture"],
        ),
        (lambda d: d["latents"]["noiseLevel"].update(kind="noise"), ["noiseLevel", "robustness"]),
        (
            lambda d: d["latents"]["noiseLevel"].update(prior={"gamma": {}}),
            ["noiseLevel", "gamma", "scaled_beta", "normal"],
        ),
        (
            lambda d: d["latents"]["noiseLevel"].update(
                prior={"scaled_beta": {"low": 1, "high": 0}}
            ),
            ["noiseLevel", "[1.0, 0.0]"],
        ),
        (
            lambda d: d["latents"].update(charm=d["latents"]["noiseLevel"]),
            ["charm", "no influence"],
        ),
        (lambda d: d["features"].update(colour=d["features"]["XPos"]), ["colour", "no influence"]),
        (
            lambda d: d["derived"]["behindFactor"]["link"].update(
                weighted_sum={"inputs": ["performance"], "weights": [1]}
            ),
            ["cycle", "behindFactor", "navigationDemand"],
        ),
        (lambda d: d["outcome"]["bernoulli"].update(probability="performanc"), ["'performanc'"]),
        (
            lambda d: d["outcome"]["bernoulli"].update(probability="rightLeftEffect"),
            ["rightLeftEffect", "[0, 1]"],
        ),
        (lambda d: d["outcome"].update(gauss={}), ["outcome", "gauss", "bernoulli", "beta"]),
        (lambda d: d.pop("latents"), ["latents: it is missing"]),
        (lambda d: d["features"].update(noiseLevel=d["features"]["XPos"]), ["'noiseLevel'", "2"]),
    ],
)
def test_a_wrong_specification_names_the_place_and_the_choices(
    aaio: Layout, change: Change, words: list[str]
) -> None:
    data = copy.deepcopy(to_dict(aaio))
    change(data)
    with pytest.raises(SpecificationError) as caught:
        from_dict(data)
    for word in words:
        assert word in str(caught.value)


def test_unknown_names_list_what_there_is() -> None:
    with pytest.raises(SpecificationError, match="'aiao' is unknown; valid: aaio"):
        load_layout("aiao")
    with pytest.raises(SpecificationError, match="'printed' is unknown; valid: scaled, metres-15"):
        load_layout("aaio", "printed")


@pytest.fixture(scope="module")
def op() -> Layout:
    return load_layout("object-permanence")


@pytest.mark.parametrize(
    ("node", "link", "words"),
    [
        (
            "OPPerformance",
            {"gate": {"input": "hiddenPerformance", "when": "numPositions"}},
            ["numPositions", "not a feature within [0, 1]", "occluderPresence"],
        ),
        (
            "OPPerformance",
            {"gate": {"input": "hiddenPerformance", "when": "noiseLevel"}},
            ["rampP"],
        ),
        ("OPDemand", {"gate": {"input": "numPositions", "when": "lavaPresence"}}, ["otherwise"]),
        ("visualDemand", {"weighted_sum": {"inputs": ["timeUnderOcc"], "weights": [1]}}, ["unit"]),
        ("performance", {"product": {"inputs": []}}, ["inputs"]),
        ("performance", {"product": {}}, ["inputs: it is"]),
        (
            "taskPerformance",
            {"noise_mixture": {"performance": "performance", "noise": "noiseLevel", "nu": 1.5}},
            ["nu 1.5"],
        ),
        (
            "taskPerformance",
            {
                "noise_mixture": {
                    "performance": "performance",
                    "noise": "noiseLevel",
                    "nu": "performance",
                }
            },
            ["not a feature within"],
        ),
        ("performance", {"formula": {"formula": "OPPerformance + goalSize"}}, ["mixes", "'m'"]),
        (
            "taskPerformance",
            {"formula": {"formula": "performance + 2 * noiseLevel"}},
            ["[0, 1]", "0 to 3"],
        ),
        ("performance", {"formula": {"formula": "log(OPPerformance)"}}, ["log", "above 0"]),
        ("performance", {"formula": {"formula": "1 / OPPerformance"}}, ["division"]),
        ("performance", {"formula": {"formula": "sqrt(noiseLevel - 1)"}}, ["below 0"]),
        ("performance", {"formula": {"formula": "exp(goalSize)"}}, ["exp", "unit 'm'"]),
        ("visualDemand", {"formula": {"formula": "goalSize * goalDistance"}}, ["product of m and"]),
        ("performance", {"formula": {"formula": "2 ** OPPerformance"}}, ["exponent"]),
        ("performance", {"formula": {"formula": "goodness"}}, ["'goodness'", "valid", "goalSize"]),
        ("performance", {"formula": {"formula": "1 +"}}, ["cannot be read", "clip(x, low, high)"]),
    ],
)
def test_a_wrong_link_names_the_node_and_what_is_wrong(
    op: Layout, node: str, link: dict[str, Any], words: list[str]
) -> None:
    data = copy.deepcopy(to_dict(op))
    data["derived"][node]["link"] = link
    with pytest.raises(SpecificationError) as caught:
        from_dict(data)
    for word in [node, *words]:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    "formula",
    [
        "__import__('os').system('true')",
        "goalSize.real",
        "[x for x in (1,)][0]",
        "lambda: 1",
        "open('x')",
        "logistic(x=1)",
        "1 if goalSize else 2",
        "'text'",
        "True",
        "1e999",
        "goalSize @ 2",
        "(" * 60 + "1" + ")" * 60 + " + " + "-" * 60 + "goalSize",
        "1+" * 600 + "1",
    ],
)
def test_a_formula_is_never_run(formula: str) -> None:
    with pytest.raises(FormulaError):
        parse_formula(formula)


def test_formulas_mean_what_they_say() -> None:
    text = "clip(sqrt(abs(a - 2)) / 4, 0, 1) + min(a, b, 3) * -max(b ** 2, 0.5)"
    assert bounds(parse_formula(text), {"a": (3.0, 3.0), "b": (0.5, 0.5)}) == pytest.approx(
        (0.0, 0.0)
    )


def test_missing_values_follow_the_declared_rule_and_no_other(op: Layout) -> None:
    hidden = [0, 0, 0, 20.0, 2.0, 0, 1, 2.0, 3.0]
    plain = [0, 0, 0, 20.0, 2.0, 0, 0, np.nan, np.nan]
    filled = op.check_features([hidden, plain])
    assert filled[0].tolist() == hidden
    assert filled[1, 7:].tolist() == [0.0, 1.0]
    with pytest.raises(ValueError, match="timeUnderOcc of row 0"):
        op.check_features([[*hidden[:7], np.nan, 3.0]])
    with pytest.raises(ValueError, match="occluderPresence of row 0"):
        op.check_features([[*hidden[:6], np.nan, np.nan, np.nan]])
    with pytest.raises(ValueError, match=r"rampPresence of row 0 is 0\.5.*0 or 1"):
        op.check_features([[0.5, *hidden[1:]]])
    printed = load_layout("object-permanence", "as-printed")
    assert printed.check_features([[*plain[:8], 1.0, np.nan]])[0, 7:].tolist() == [0.0, 1.0, 0.5]


def test_a_rule_for_missing_values_must_hold_in_the_graph(op: Layout) -> None:
    data = copy.deepcopy(to_dict(op))
    data["features"]["goalSize"]["only_with"] = "occluderPresence"
    with pytest.raises(SpecificationError, match=r"goalSize.*also plays a part where occ"):
        from_dict(data)
    data["features"]["goalSize"]["only_with"] = "goalDistance"
    with pytest.raises(
        SpecificationError, match=r"goalSize.*not the feature of a gate.*lavaPresence"
    ):
        from_dict(data)
    data["features"]["goalSize"].update(only_with="", if_missing=9)
    with pytest.raises(SpecificationError, match=r"if_missing 9.* is not in \[0.4, 5"):
        from_dict(data)


def test_scores_of_exactly_0_and_1_go_to_the_declared_edge_or_are_refused() -> None:
    layout = load_layout("one-capability", "score")
    features = np.full((3, 1), 3.0)
    assert layout.check_outcomes([0.0, 1.0, 0.9995], features).tolist() == [0.001, 0.999, 0.999]
    data = to_dict(layout)
    data["outcome"]["beta"]["edge"] = 0
    strict = from_dict(data)
    for bad in ([0.0, 0.5, 0.5], [1.0, 0.5, 0.5]):
        with pytest.raises(ValueError, match=r"outcome 0 is .*without its ends"):
            strict.check_outcomes(bad, features)


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        ({"binomial": {"probability": "taskPerformance", "trials": "tries"}}, ["tries", "diffic"]),
        (
            {"beta": {"mean": "taskPerformance", "sample_size": "difficulty"}},
            ["not a node", "ability"],
        ),
        ({"beta": {"mean": "taskPerformance", "sample_size": "noiseLevel", "edge": 1}}, ["edge"]),
        ({}, ["exactly one of bernoulli"]),
        (
            {"binomial": {"probability": "taskPerformance", "trials": "difficulty"}},
            ["difficulty may be 0", "without a trial", "set the low of difficulty to 1"],
        ),
    ],
)
def test_a_wrong_outcome_is_named(outcome: dict[str, Any], words: list[str]) -> None:
    data = copy.deepcopy(to_dict(load_layout("one-capability")))
    data["outcome"] = outcome
    with pytest.raises(SpecificationError) as caught:
        from_dict(data)
    for word in ["outcome", *words]:
        assert word in str(caught.value)


def _several() -> dict[str, Any]:
    """A layout with an outcome of each kind; two of them share a node."""
    data = to_dict(load_layout("one-capability", "trials"))
    del data["outcome"]
    data["latents"]["tightness"] = {
        "kind": "robustness",
        "unit": "1",
        "prior": {"half_normal": {"scale": 20}},
    }
    data["outcomes"] = {
        "passed": {"kind": "success", "probability": "taskPerformance"},
        "quick": {
            "kind": "score",
            "source": "time_left",
            "mean": "performance",
            "sample_size": "tightness",
            "edge": 0.01,
        },
        "eaten": {"kind": "count", "probability": "performance", "trials": "trials"},
        "first": {"kind": "choice", "probability": "taskPerformance"},
    }
    return data


def test_a_layout_names_several_outcomes() -> None:
    layout = from_dict(_several())
    assert layout.outcome_names == ("passed", "quick", "eaten", "first")
    assert [o.source for o in layout.outcomes] == ["success", "time_left", "rewards", "choice"]
    assert layout.outcome == layout.outcomes[0].likelihood
    again = from_dict(json.loads(json.dumps(to_dict(layout))))
    assert again == layout
    assert again.digest == layout.digest
    data = _several()
    data["outcomes"]["quick"]["source"] = "return"
    assert from_dict(data).digest != layout.digest
    one = to_dict(load_layout("one-capability"))
    named = {"outcomes": {"success": {"kind": "success", "probability": "taskPerformance"}}}
    short = {key: value for key, value in one.items() if key != "outcome"}
    assert from_dict({**short, **named}) == load_layout("one-capability")


def test_outcome_and_outcomes_together_are_refused(aaio: Layout) -> None:
    data = to_dict(aaio)
    none = {key: value for key, value in data.items() if key != "outcome"}
    for wrong in (none, {**data, "outcomes": _several()["outcomes"]}):
        with pytest.raises(SpecificationError, match="either outcomes or one outcome"):
            from_dict(wrong)


def test_outcomes_are_checked_one_by_one_and_may_be_missing() -> None:
    layout = from_dict(_several())
    features = layout.check_features([[3.0, 4.0], [5.0, 2.0]])
    nan = float("nan")
    got = layout.check_outcomes([[1, 0.001, 4, nan], [nan, nan, 0, nan]], features)
    np.testing.assert_array_equal(got, [[1.0, 0.01, 4.0, nan], [nan, nan, 0.0, nan]])
    for bad, words in (
        ([[1, 0.5, 4, 1], [nan] * 4], "row 1 has no outcome"),
        ([[1, 0.5, 4, 1], [1, 0.5, 3, 1]], "outcome eaten of row 1 is 3; .* 0 to trials"),
        ([[1, 0.5, 4, 1], [nan, nan, nan, 2]], "outcome first of row 1 is 2"),
        ([1.0, 1.0], r"\(instances, 4\).*passed, quick, eaten, first"),
    ):
        with pytest.raises(ValueError, match=words):
            layout.check_outcomes(bad, features)
    assert layout.check_outcomes([], features[:0]).shape == (0, 4)
    one = load_layout("one-capability")
    assert one.check_outcomes([[1.0], [0.0]], features[:, :1]).tolist() == [1.0, 0.0]
    with pytest.raises(ValueError, match="outcome 1 is nan"):
        one.check_outcomes([1.0, nan], features[:, :1])


def test_the_digest_spans_the_model_alone(aaio: Layout) -> None:
    data = to_dict(aaio)
    words = copy.deepcopy(data) | {"name": "mine", "variant": "v", "source": "s", "about": "a"}
    words["features"]["XPos"]["about"] = words["latents"]["noiseLevel"]["about"] = "another"
    assert from_dict(words).digest == aaio.digest
    changes: list[Change] = [
        lambda d: d["features"]["XPos"].update(if_missing=0.0),
        lambda d: d["features"].update(rewardSize=d["features"].pop("rewardSize")),  # the order
        lambda d: d["latents"]["noiseLevel"].update(noiseless=0.1),
        lambda d: d["latents"]["noiseLevel"].update(kind="bias"),
        lambda d: d["derived"]["taskPerformance"]["link"]["noise_mixture"].update(nu=0.4),
    ]
    digests = {aaio.digest}
    for change in changes:
        changed = copy.deepcopy(data)
        change(changed)
        digests.add(from_dict(changed).digest)
    assert len(digests) == 1 + len(changes)
    # Whatever is at its default is left out, so what is new later changes no digest.
    assert aaio.digest.startswith("24bc5c51b8d0")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda o: o["passed"].update(kind="luck"), ["outcomes.passed", "'luck'", "choice"]),
        (lambda o: o["eaten"].update(source="return"), ["outcomes.eaten", "'return'", "rewards"]),
        (lambda o: o["quick"].pop("mean"), ["outcomes.quick", "mean: it is missing"]),
        (lambda o: o["eaten"].update(trials="tries"), ["outcome eaten", "'tries'", "difficulty"]),
        (lambda o: o["first"].update(probability="ability"), ["outcome first", "'ability'"]),
        (lambda o: o.update({"a b": o.pop("first")}), ["outcomes.a b", "letter"]),
        (lambda o: o.pop("quick"), ["tightness", "no influence", "taskPerformance or performance"]),
        (lambda o: o.clear(), ["at least one"]),
    ],
)
def test_a_wrong_one_of_several_outcomes_is_named(change: Change, words: list[str]) -> None:
    data = _several()
    change(data["outcomes"])
    with pytest.raises(SpecificationError) as caught:
        from_dict(data)
    for word in words:
        assert word in str(caught.value)
