"""Calibration by earlier agents: the model, the layout that comes of it, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import typer
from scipy.special import expit, logit

from animalcat.cli.session.options import calibrated_layout as calibrated_layout_of
from animalcat.cli.shared.common import Common, keep_common
from animalcat.layouts.calibrating.assessment import CALIBRATED, WRITTEN, judge, mean_scores
from animalcat.layouts.calibrating.calibrate import (
    calibrate,
    calibrated_layout,
    population_model,
)
from animalcat.layouts.calibrating.population import (
    CalibrationError,
    Population,
)
from animalcat.layouts.inference.evaluator import Evaluator
from animalcat.layouts.library import load_layout
from animalcat.layouts.model.codec import SpecificationError
from animalcat.layouts.model.instances import Instances, OutcomeTable
from animalcat.layouts.model.spec import Layout, from_dict, to_dict
from tests.command_line import call

LAYOUT = load_layout("one-capability", "success")


@cache
def simulate_agents(agents: int, instances: int) -> tuple[OutcomeTable, np.ndarray, np.ndarray]:
    """Agents of a narrow population, instances with an easiness: outcomes, easiness, ability."""
    g = np.random.default_rng(7)
    difficulty = g.uniform(2.0, 8.0, instances)
    easiness = g.normal(0.0, 1.5, instances)
    ability = g.normal(6.0, 1.0, agents).clip(0.5, 9.5)
    theta = np.column_stack([ability, np.full(agents, 0.05)])
    p = Evaluator(LAYOUT).probability(theta, difficulty[:, np.newaxis])
    y = (g.random(p.shape) < expit(logit(p) + easiness)).astype(np.float64)
    names = tuple(f"a{i}" for i in range(instances))
    who = tuple(f"agent {i}" for i in range(agents))
    table = OutcomeTable(Instances(("difficulty",), difficulty[:, np.newaxis], (), names), who, y)
    return table, easiness, ability


def make_up_population(instances: int) -> Population:
    g = np.random.default_rng(3)
    easiness, doubt = g.normal(0.0, 1.0, instances), g.uniform(0.3, 0.9, instances)
    return Population(easiness, doubt, 1.0)


@cache
def make_one() -> Layout:
    table, _, _ = simulate_agents(6, 10)
    return calibrated_layout(
        LAYOUT, table, make_up_population(10), "trained", determinism=(0.5, 0.4)
    )


def test_a_calibrated_layout_is_a_layout_like_any_other() -> None:
    layout = make_one()
    again = from_dict(to_dict(layout))
    assert again == layout
    assert again.identity == layout.identity
    assert layout.calibration is not None
    assert layout.calibration.base == ("one-capability", "success", LAYOUT.digest)
    assert layout.calibration.agents == tuple(f"agent {i}" for i in range(6))
    assert layout.calibration.episodes == 60


def test_sharpness_is_found_like_easiness_and_is_1_where_nothing_is_known() -> None:
    table, _, _ = simulate_agents(6, 10)
    layout = make_one()
    at = layout.feature_names.index("sharpness")
    known = dict(layout.calibration.instances) if layout.calibration else {}
    found = table.instances.features(layout)[:, at].tolist()
    assert found == [known[name].sharpness for name in table.instances.names]
    assert len(set(found)) > 1
    other = replace(table.instances, values=table.instances.values + 0.5)
    assert (other.features(layout)[:, at] == 1.0).all()


@pytest.mark.parametrize("sharpness", [0.0, 11.0, -1.0])
def test_a_sharpness_out_of_range_is_refused(sharpness: float) -> None:
    data = to_dict(make_one())
    data["calibration"]["instances"]["a0"] = [0.0, "x", sharpness]
    with pytest.raises(SpecificationError, match=r"instances\.a0\[2\]: Input should be"):
        from_dict(data)
    data = to_dict(make_one())
    data["features"]["sharpness"]["low"] = 0.0
    with pytest.raises(SpecificationError, match="sharpness"):
        from_dict(data)


def test_what_is_not_certain_predicts_less_boldly_and_priors_are_as_written() -> None:
    table, _, _ = simulate_agents(6, 10)
    drawn = make_up_population(10)
    certain = calibrated_layout(LAYOUT, table, replace(drawn, doubt=np.zeros(10)), "certain")
    layout = make_one()
    assert certain.calibration is not None
    assert layout.calibration is not None
    assert [one.sharpness for _, one in certain.calibration.instances] == [1.0] * 10
    for (_, bold), (_, unsure) in zip(
        certain.calibration.instances, layout.calibration.instances, strict=True
    ):
        assert unsure.sharpness < 1.0
        assert abs(unsure.easiness) < abs(bold.easiness)
    assert layout.latents[:-1] == LAYOUT.latents


def test_a_strange_agent_is_predicted_by_the_layout_as_written() -> None:
    table, _, _ = simulate_agents(6, 10)
    layout = make_one()
    theta = [[6.0, 0.1, strange] for strange in (0.0, 1.0)]
    taught, strange = Evaluator(layout).probability(theta, table.instances.features(layout))
    written = Evaluator(LAYOUT).probability([[6.0, 0.1]], table.instances.features(LAYOUT))[0]
    np.testing.assert_allclose(strange, written, atol=1e-4)
    assert np.abs(taught - written).max() > 0.1


def test_identity_spans_what_was_taught_and_digest_the_model() -> None:
    layout = make_one()
    calibration = layout.calibration
    assert calibration is not None
    (name, first), *rest = calibration.instances
    moved = ((name, first._replace(easiness=first.easiness + 0.1)), *rest)
    other = replace(layout, calibration=replace(calibration, instances=moved))
    assert other.digest == layout.digest
    assert other.identity != layout.identity


def test_a_calibration_without_its_feature_is_refused() -> None:
    data = to_dict(make_one())
    with pytest.raises(SpecificationError, match="easiness"):
        from_dict({**to_dict(LAYOUT), "calibration": data["calibration"]})
    data["calibration"]["instances"]["a0"] = [99.0, "x"]
    with pytest.raises(SpecificationError, match="less than or equal to 8"):
        from_dict(data)


def test_outcomes_that_teach_nothing_are_refused() -> None:
    table, _, _ = simulate_agents(6, 10)
    alone = OutcomeTable(table.instances, ("one",), table.outcomes[:1])
    with pytest.raises(CalibrationError, match="1 agent with outcomes"):
        population_model(LAYOUT, alone)
    able = replace(table, outcomes=np.ones_like(table.outcomes))
    with pytest.raises(CalibrationError, match="all 60 outcomes are successes"):
        population_model(LAYOUT, able)
    with pytest.raises(CalibrationError, match="no names"):
        population_model(LAYOUT, replace(table, instances=replace(table.instances, names=())))
    twice = replace(table.instances, names=("a", *"abcdefghi"))
    with pytest.raises(CalibrationError, match="several rows"):
        population_model(LAYOUT, replace(table, instances=twice))
    with pytest.raises(CalibrationError, match="calibrated already"):
        population_model(make_one(), table)
    scores = load_layout("one-capability", "score")
    with pytest.raises(CalibrationError, match="other outcomes than success"):
        population_model(scores, table)


def test_calibration_finds_the_population_and_what_is_easy() -> None:
    table, easiness, _ = simulate_agents(24, 30)
    model = population_model(LAYOUT, table)
    population = model.fit(1)
    assert np.corrcoef(population.easiness, easiness)[0, 1] > 0.7
    assert 1.0 < population.spread < 2.0  # 1.5 in truth
    # Agents that were held out are predicted better than by the layout as written.
    found = dict(judge(LAYOUT, table, 3)(model))
    assert found["held_out"] == 24
    assert found["brier_15"] < found["brier_15_as_written"]
    calibrated = calibrate(LAYOUT, table, "trained", 1)
    assert calibrated == calibrate(LAYOUT, table, "trained", 1)


def test_easiness_is_finite_where_nobody_or_everybody_passed() -> None:
    table, _, _ = simulate_agents(24, 30)
    outcomes = table.outcomes.copy()
    outcomes[:, 0], outcomes[:, 1], outcomes[:, 2] = 1.0, 0.0, np.nan
    population = population_model(LAYOUT, replace(table, outcomes=outcomes)).fit(1)
    assert 0.0 < population.easiness[0] < 6.0
    assert -6.0 < population.easiness[1] < 0.0
    assert population.easiness[2] == 0.0
    assert population.doubt[2] == pytest.approx(population.spread, rel=0.05)
    assert (population.doubt[3:] < population.doubt[2]).all()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "where are the outcomes"),
        (["--outcomes", "a.csv", "--sessions", "b"], "where are the outcomes"),
        (["--sessions", "b", "--pass-marks", "a.csv"], "--pass-marks goes with --outcomes"),
        (["--sessions", "b", "--layout", "nothing"], "layout 'nothing' is unknown"),
        (["--sessions", "b", "--determinism", "0.8,0.4"], "two shares"),
        (["--sessions", "b", "--name", "aaio"], "name of a shipped layout"),
        (["--sessions", "b", "--name", "none"], "stands for no calibration"),
        (["--sessions", "b", "--name", "a/b"], "give letters"),
    ],
)
def test_what_the_command_cannot_use_is_named(options: list[str], said: str) -> None:
    result = call("battery", "calibrate", "navigation", *options)
    assert result.exit_code == 2
    assert said in " ".join(result.output.split())


def test_agents_with_few_episodes_are_left_out_of_what_needs_more() -> None:
    brier = {(CALIBRATED, 15): 0.1, (WRITTEN, 15): 0.2}
    scored = [brier, {**brier, (CALIBRATED, 15): 0.15, (WRITTEN, 30): 0.3}, {}]
    found = dict(mean_scores(scored))
    assert found == pytest.approx({"brier_15": 0.125, "brier_15_as_written": 0.2})


def test_a_calibration_is_found_by_name_or_says_which_there_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "calibrations"
    folder.mkdir()
    (folder / "trained.yaml").write_text("name: trained\n")
    keep_common(Common(data=tmp_path))
    assert calibrated_layout_of("", "", "trained") == str(folder / "trained.yaml")
    assert (
        calibrated_layout_of("aaio", "", "") == calibrated_layout_of("aaio", "", "none") == "aaio"
    )
    with pytest.raises(typer.Exit):
        calibrated_layout_of("", "", "other")
    assert "there are: trained" in capsys.readouterr().err
    with pytest.raises(typer.Exit):
        calibrated_layout_of("aaio", "", "trained")
    assert "names the layout too" in capsys.readouterr().err
