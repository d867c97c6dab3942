"""Whether the layout predicts the agent: e-values on random draws, and what flat priors say."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from animalcat.layouts.adaptive.bank import Bank
from animalcat.layouts.adaptive.learner import Forecast, Learner
from animalcat.layouts.adaptive.plan import Policy, StoppingRule
from animalcat.layouts.adaptive.statuses import BOUNDED, LEANS
from animalcat.layouts.explaining.flat import flat_posteriors
from animalcat.layouts.explaining.prediction import AVERAGE, LEVEL, PredictionTest, predicts
from animalcat.layouts.explaining.session import prediction_of, verdict_of
from animalcat.layouts.explaining.wording import scale_of
from animalcat.layouts.inference.evaluator import Evaluator
from animalcat.layouts.inference.fit import FitData
from animalcat.layouts.library import load_layout
from animalcat.layouts.model.calibration import Calibration
from animalcat.layouts.model.priors import ScaledBeta
from animalcat.layouts.model.spec import from_dict, to_dict

Floats = npt.NDArray[np.float64]
LAYOUT = load_layout("one-capability", "success")
PRIOR = np.stack(
    [
        node.prior.from_standard(np.random.default_rng(i).standard_normal(200))
        for i, node in enumerate(LAYOUT.latents)
    ],
    axis=1,
)


def compare_some(
    seed: int,
    predicted: float,
    truth: float,
    random: bool = True,
    episodes: int = 100,
    draws: Floats | None = None,
) -> PredictionTest:
    """The layout predicts one value; success has another rate."""
    g = np.random.default_rng(seed)
    low, high = np.array([[f.low, f.high] for f in LAYOUT.features]).T
    high = np.minimum(high, low + 10.0)
    forecasts = [
        Forecast(
            low + (high - low) * g.random(len(low)),
            (predicted,),
            (float(g.random() < truth),),
            random,
        )
        for _ in range(episodes)
    ]
    return predicts(LAYOUT, forecasts, PRIOR if draws is None else draws)


def test_true_predictions_are_hardly_ever_called_worse() -> None:
    called = [compare_some(seed, 0.7, 0.7).rivals[0].e_worse >= LEVEL for seed in range(30)]
    assert sum(called) <= 2


def test_bad_predictions_are_called_worse_than_the_average() -> None:
    found = compare_some(1, 0.3, 0.9)
    assert found.rivals[0].name == AVERAGE
    assert found.rivals[0].e_worse > LEVEL
    assert found.rivals[0].brier > found.rivals[0].rival_brier
    assert found.rivals[0].log_score > found.rivals[0].rival_log_score


def test_what_was_chosen_for_what_it_tells_is_not_scored() -> None:
    found = compare_some(1, 0.3, 0.9, random=False)
    assert (found.standing, found.draws, found.hindsight) == ("cannot be told", 0, None)
    assert "Nothing was drawn at random from the 9th episode on" in found.text


def session(rate: float, layout: str, variant: str, episodes: int = 90) -> Learner:
    """An agent of one rate, played 90 random arenas of the Olympics."""
    g = np.random.default_rng(2)
    n = 100
    columns = [
        g.uniform(2, 36, n),
        g.choice([1, 2, 4, 5], n),
        g.choice([0, 0.5, 1], n),
        g.choice([-1, 0, 1], n),
    ]
    bank = Bank(load_layout(layout, variant), np.column_stack(columns), ("arenas",) * n)
    learner = Learner(bank, Policy("random"), StoppingRule(n), seed=2)
    for _ in range(episodes):
        choice = learner.ask()
        assert choice is not None
        learner.tell(choice.instance, float(g.random() < rate))
    return learner


@pytest.fixture(scope="module")
def nearly_perfect() -> Learner:
    return session(0.98, "aaio", "scaled")


def test_a_profile_that_predicts_worse_is_not_to_be_read(nearly_perfect: Learner) -> None:
    profile, made = verdict_of(nearly_perfect, nearly_perfect.profile())
    assert profile.predicts is not None
    assert profile.predicts["standing"] == "worse"
    assert set(profile.status.values()) == {"not to be read"}
    assert profile.judgement is not None
    assert profile.judgement["standing"] == "not described"
    assert made.sentences[0] == profile.judgement["text"]
    assert profile.judgement["evidence"] == [profile.predicts["text"]]
    assert made.sentences[0].endswith("its capabilities are not to be read.")
    assert profile.to_dict()["predicts"] == profile.predicts


def test_an_able_agent_that_the_layout_can_describe_may_be_read() -> None:
    learner = session(0.98, "aaio", "metres-15")
    found = prediction_of(learner)
    assert found.draws == 82
    assert found.standing == "cannot be told"


def test_a_restored_learner_knows_what_was_drawn_at_random(nearly_perfect: Learner) -> None:
    again = Learner(
        nearly_perfect.bank, nearly_perfect.policy, nearly_perfect.rule, nearly_perfect.seed
    )
    again.restore(nearly_perfect.save())
    assert prediction_of(again) == prediction_of(nearly_perfect)


def test_the_regression_is_on_demands_and_not_on_what_a_calibration_taught() -> None:
    feature = LAYOUT.features[0].name
    text = json.dumps(to_dict(LAYOUT)).replace(f'"{feature}"', '"easiness"')
    made = Calibration("c", ("one-capability", "success", ""), (), 0, "", ())
    layout = replace(from_dict(json.loads(text)), calibration=made)
    forecasts = [
        Forecast(np.array([i % 10.0]), (0.5,), (float(i % 10 > 4),), True) for i in range(60)
    ]
    known = predicts(LAYOUT, forecasts, PRIOR).rivals[1]
    taught = predicts(layout, forecasts, PRIOR).rivals[1]
    assert known.rival_brier < 0.1
    assert taught.rival_brier > 0.2


def test_who_was_unknown_at_first_but_is_described_well_is_said_so() -> None:
    """One step ahead it was predicted badly, by draws of the agent as it is known now well."""
    able = PRIOR.copy()
    for k, node in enumerate(LAYOUT.latents):
        if node.kind == "capability":
            able[:, k] = node.prior.high
    able[:, LAYOUT.latent_names.index("noiseLevel")] = 0.4
    found = compare_some(1, 0.3, 0.8, draws=able)
    assert found.rivals[0].e_worse > LEVEL
    assert (found.standing, found.rivals[0].standing) == ("cannot be told", "cannot be told")
    assert "One step ahead it predicted worse" in found.text
    assert "is required" not in found.text


def told(prior: ScaledBeta, outcomes: dict[float, float]) -> Learner:
    """A test of one capability with this prior, whose noise is small, by outcomes of demands."""
    noise = replace(LAYOUT.latents[1], prior=ScaledBeta(0.0, 1.0, 0.1, 10.0))
    layout = replace(LAYOUT, latents=(replace(LAYOUT.latents[0], prior=prior), noise))
    rows = np.array([*outcomes])[:, np.newaxis]
    bank = Bank(layout, rows, ("arenas",) * len(rows))
    learner = Learner(bank, Policy("random"), StoppingRule(40), seed=2)
    for k, outcome in enumerate(outcomes.values()):
        learner.tell(str(k), outcome, k)
    return learner


MIXED = {6.0: 1.0, 7.0: 1.0, 7.9: 0.0, 8.0: 1.0, 8.5: 0.0, 9.0: 1.0}


@pytest.mark.parametrize(
    "prior",
    [ScaledBeta(0.0, 15.0, 1.0, 0.25), ScaledBeta(0.0, 15.0, 400.0, 80.0)],
    ids=["reweighted", "refitted"],
)
def test_flat_posteriors_are_those_of_a_grid(prior: ScaledBeta) -> None:
    """A narrow prior has hardly a draw where the likelihood is, so there is a second posterior."""
    learner = told(prior, MIXED)
    layout, data = learner.layout, learner.data()
    draws = learner.posterior.resampled()
    scales = [scale_of(layout, k, data.features) for k in range(2)]
    found = flat_posteriors(layout, draws, scales, FitData(*data))
    assert list(found) == ["ability"]
    flat = found["ability"]
    assert np.shares_memory(flat.values, draws) == (prior.alpha == 1.0)
    grid = np.linspace(0.0, 15.0, 601)
    noise = layout.latents[1].prior.from_standard(np.linspace(-3.0, 3.0, 41))
    z = np.exp(-0.5 * np.linspace(-3.0, 3.0, 41) ** 2)
    theta = np.stack(np.meshgrid(grid, noise, indexing="ij"), axis=-1).reshape(-1, 2)
    p = Evaluator(layout).probability(theta, data.features)
    likelihood = np.prod(np.where(data.outcomes > 0.0, p, 1.0 - p), axis=1).reshape(601, 41) @ z
    exact = likelihood / likelihood.sum()
    sd = np.sqrt(exact @ (grid - exact @ grid) ** 2)
    assert flat.weights @ flat.values == pytest.approx(exact @ grid, abs=0.15 * sd)
    low, high = np.interp([0.1, 0.9], np.cumsum(exact), grid)
    assert flat.quantile(0.1) == pytest.approx(low, abs=0.2 * sd)
    assert flat.quantile(0.9) == pytest.approx(high, abs=0.2 * sd)


@pytest.mark.parametrize(("passed", "leans"), [(4, True), (40, False)])
def test_what_is_said_of_a_limit_holds_under_a_flat_prior_or_leans(
    passed: int, leans: bool
) -> None:
    """Who passed four platforms masters them 60 % of the time at least, and not 90 %."""
    layout = load_layout("object-permanence", "measured")
    easy = {"goalDistance": 2.0, "goalSize": 4.0, "platformNeeded": 1.0}
    row = [easy.get(name, 0.0) if name != "numPositions" else 1.0 for name in layout.feature_names]
    bank = Bank(layout, np.tile(row, (passed, 1)), ("arenas",) * passed)
    learner = Learner(bank, Policy("random"), StoppingRule(90), seed=2)
    for k in range(passed):
        learner.tell(str(k), 1.0, k)
    draws = learner.posterior.resampled()[:, layout.latent_names.index("platformAbility")]
    alone = float(np.quantile(draws, 0.1))
    status = {"platformAbility": BOUNDED, "memoryAbility": "budget"}
    profile, made = verdict_of(learner, replace(learner.profile(), status=status))
    note = profile.notes["platformAbility"]
    assert note.bound == pytest.approx(0.1 ** (1.0 / (passed + 1)), abs=0.1)
    assert alone > (note.bound or 0.0) + 0.01
    assert note.leans == leans == ("leans on its prior" in note.text) == ("leans" in made.text)
    assert profile.status == status | {"platformAbility": LEANS if leans else BOUNDED}
    assert profile.to_dict()["nodes"]["platformAbility"]["flat"] == list(note.flat or ())
    assert not profile.notes["memoryAbility"].known


def test_flat_is_over_the_scale_that_is_spoken_of() -> None:
    """Sizes are seen by their logarithm: what is uniform in it leans to small ones in metres."""
    layout = load_layout("aaio", "metres-15")
    scale = scale_of(layout, 1)
    values = np.array([0.5, 1.5, 2.5])
    steps = np.abs(scale.converted(values + 1e-3) - scale.converted(values - 1e-3)) / 2e-3
    assert scale.stretch(values) == pytest.approx(steps, rel=0.05)
    assert scale.stretch(values)[0] > 2.0 * scale.stretch(values)[2]
