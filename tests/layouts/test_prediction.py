"""Whether the layout predicts the agent: e-values on random draws, and what a wider prior says."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from animalcat.layouts.adaptive.bank import Bank
from animalcat.layouts.adaptive.learner import Forecast, Learner
from animalcat.layouts.adaptive.plan import Policy, StoppingRule
from animalcat.layouts.explaining.prediction import AVERAGE, LEVEL, PredictionTest, predicts
from animalcat.layouts.explaining.session import prediction_of, verdict_of
from animalcat.layouts.explaining.wider import wider_prior, with_wider
from animalcat.layouts.library import load_layout
from animalcat.layouts.model.calibration import Calibration
from animalcat.layouts.model.nodes import Latent
from animalcat.layouts.model.priors import HalfNormal, MovedBeta, Normal, ScaledBeta
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


def test_priors_twice_as_wide() -> None:
    ability = LAYOUT.latents[LAYOUT.capabilities[0]]

    def wider(prior: ScaledBeta | Normal | HalfNormal, unit: str = "m") -> object:
        return wider_prior(Latent("ability", "capability", unit, prior))

    assert wider(ScaledBeta(0.0, 5.0, 2.0, 1.0)) == ScaledBeta(0.0, 10.0, 2.0, 1.0)
    assert wider(ScaledBeta(-1.0, 3.0)) == ScaledBeta(-3.0, 5.0)
    assert wider(Normal(1.0, 2.0)) == Normal(1.0, 4.0)
    assert wider(HalfNormal(2.0)) == HalfNormal(4.0)
    assert wider(ScaledBeta(0.0, 1.0), "1") is None  # no prior is wider
    assert wider(ScaledBeta(0.0, 1.0, 1.0, 9.0), "1") == ScaledBeta(0.0, 1.0, 1.0, 3.0)
    assert wider(ScaledBeta(0.0, 1.0, 0.25, 1.0), "1") == ScaledBeta(0.0, 1.0, 0.5, 1.0)
    assert wider_prior(ability) is not None
    noise = Latent("noise", "robustness", "1", ScaledBeta(0.0, 1.0, 1.0, 9.0))
    assert wider_prior(noise) == ScaledBeta(0.0, 1.0, 1.0, 3.0)
    assert wider_prior(replace(noise, kind="bias")) is None


def test_a_moved_prior_is_refitted_as_a_population_that_scatters_twice_as_far() -> None:
    layout = load_layout("one-capability", "success")
    prior = layout.latents[0].prior
    assert isinstance(prior, ScaledBeta)
    moved = replace(layout.latents[0], prior=MovedBeta(prior.low, prior.high, 0.3, 0.6))
    layout = replace(layout, latents=(moved, *layout.latents[1:]))
    bank = Bank(layout, np.linspace(1.0, 9.0, 20)[:, np.newaxis], ("arenas",) * 20)
    learner = Learner(bank, Policy("random"), StoppingRule(20), seed=2)
    for number in range(6):
        choice = learner.ask()
        assert choice is not None
        learner.tell(choice.instance, float(number % 2))
    profile = with_wider(learner.profile(), learner, learner.posterior.resampled(), 1)
    wide = profile.wider[moved.name]
    assert wide.how == "refitted"
    assert wide.sd > profile.nodes[0].sd
    assert wider_prior(moved) == MovedBeta(prior.low, prior.high, 0.3, 1.2)
    assert abs(wide.mean - profile.nodes[0].mean) < profile.nodes[0].sd


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


def test_the_prior_of_noise_is_varied_too() -> None:
    """An agent that passes half of all, near and far, is noisier where noise was likelier."""
    layout = load_layout("one-capability", "success")
    leaning = replace(layout.latents[1], prior=ScaledBeta(0.0, 1.0, 1.0, 19.0))
    layout = replace(layout, latents=(layout.latents[0], leaning))
    rows = np.tile(np.linspace(0.5, 9.5, 10), 4)[:, np.newaxis]
    learner = Learner(Bank(layout, rows, ("arenas",) * 40), Policy("random"), StoppingRule(40))
    for k in range(40):
        learner.tell(str(k), float(k % 2), k)
    draws = learner.posterior.resampled()
    profile = with_wider(learner.profile(), learner, draws, 1)
    noise, wide = profile.nodes[1], profile.wider["noiseLevel"]
    assert wide.mean > noise.mean + 0.25 * noise.sd
