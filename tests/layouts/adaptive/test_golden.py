"""The learner's golden sessions: every policy and kind of outcome, decided as it was before.

`tests/golden.py` says how they are recorded anew, and how strictly they are compared.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass, field
from functools import cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pytest

from animalcat.layouts.adaptive.bank import Bank
from animalcat.layouts.adaptive.learner import Learner
from animalcat.layouts.adaptive.plan import POLICIES, Policy, StoppingRule
from animalcat.layouts.adaptive.policy import Choice
from animalcat.layouts.adaptive.retest import DeterminismPrior
from animalcat.layouts.checking.calibration import spread
from animalcat.layouts.library import load_layout
from animalcat.layouts.model.instances import Instances
from benchmarks.sessions import Task, World, players, simulate, use
from benchmarks.synthetic import op_battery
from tests.golden import DIGEST, FILES, hold, hold_titles
from tests.layouts.adaptive.vectors import DemandVectorGenerator

Floats = npt.NDArray[np.float64]

GOLDEN: Final = FILES[0]
EVER: Final = StoppingRule(1000, target_sd=0.0, futility=0.0)
DEFAULT: Final = Policy()
NAMES: Final = tuple(f"i{k:02}" for k in range(60))
NAN: Final = float("nan")

Act = Callable[[Learner], None]
Agent = Callable[[Bank, Floats, str, int], Floats]
"""(bank, features of an instance, its name, episode) -> the outcomes; NaN where one is missing."""


def _predictions(bank: Bank, features: Floats, key: list[int]) -> Floats:
    latents = bank.layout.latents
    theta = np.array([[float(n.prior.from_standard(np.array([0.4]))[0]) for n in latents]])
    columns = bank.evaluator.columns(features[np.newaxis])
    return np.ravel(bank.evaluator.simulate(theta, columns, np.random.default_rng(key)))


def like_layout(bank: Bank, features: Floats, name: str, episode: int) -> Floats:
    """An agent that the layout describes, somewhat abler than the mean."""
    return _predictions(bank, features, [episode, 1])


def deterministic(bank: Bank, features: Floats, name: str, episode: int) -> Floats:
    """The same, but the same instance always gives the same."""
    return _predictions(bank, features, [*name.encode()])


def missing(bank: Bank, features: Floats, name: str, episode: int) -> Floats:
    """The same; every fifth episode shows nothing, and of others one outcome is missing."""
    y = like_layout(bank, features, name, episode)
    y[[k for k in range(len(y)) if episode % 5 == 0 or (k and episode % 5 == 1)]] = NAN
    return y


def waking(bank: Bank, features: Floats, name: str, episode: int) -> Floats:
    """An agent that fails everything for thirty episodes, and then nothing."""
    return np.array([float(episode >= 30)])


def able(bank: Bank, features: Floats, name: str, episode: int) -> Floats:
    """An agent that passes everything."""
    return np.ones(1)


def blind_to_colour(bank: Bank, features: Floats, name: str, episode: int) -> Floats:
    """An agent that passes by what the layout does not know: one colour of three."""
    return np.array([float(bank.outside["colour"][bank.names.index(name)] == 1.0)])


@dataclass(frozen=True)
class Scenario:
    """One session.

    Attributes:
        policy: How it chooses.
        stop: When it ends.
        bank: What it chooses from, one of those that `bank` makes.
        agent: Who answers.
        episodes: How many episodes are played at most.
        slots: How many are played at once.
        acts: What is done before an episode, by its number.
        options: Further arguments of the learner.
    """

    policy: Policy = DEFAULT
    stop: StoppingRule = EVER
    bank: str = "aaio"
    agent: Agent = like_layout
    episodes: int = 25
    slots: int = 1
    acts: Mapping[int, Act] = field(default_factory=dict[int, Act])
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])


@cache
def bank(name: str) -> Bank:
    generator = np.random.default_rng(7)
    if name == "object permanence":
        layout, battery = load_layout("object-permanence"), op_battery(0)
        part = battery.rows(np.arange(0, len(battery), 20))
        return Bank(layout, part.features(layout), part.paradigms, names=part.names)
    if name in ("many", "hard"):
        of = load_layout("aaio")
        features = spread(of, 400 if name == "many" else 120, generator)
        if name == "hard":  # distances and sizes that only the able master
            features[:, 0] = generator.uniform(20.0, 55.0, len(features))
            features[:, 1] = generator.uniform(0.5, 2.0, len(features))
        return Bank(of, features, ["ab"[k % 2] for k in range(len(features))])
    layout, _, variant = name.partition(" ")
    of = load_layout(layout, variant or ("scaled" if layout == "aaio" else ""))
    features = spread(of, len(NAMES), generator)
    features[10:20] = features[:10]  # variants of one another
    return Bank(
        of,
        features,
        ["abb"[k % 3] for k in range(len(NAMES))],
        names=NAMES,
        seconds=generator.uniform(1.0, 20.0, len(NAMES)),
        outside={"colour": [float(k % 3) for k in range(len(NAMES))]},
    )


@cache
def offering(name: str) -> Bank:
    """The same bank, with offers."""
    own = bank(name)
    return Bank(
        own.layout,
        own.features,
        own.paradigms,
        names=own.names,
        seconds=own.seconds,
        offers=DemandVectorGenerator(own.features, 100).offers(own.layout),
    )


def sample_fit(learner: Learner) -> None:
    """A fit of the first eight outcomes has come."""
    z = 0.5 * np.random.default_rng(1).standard_normal((300, len(learner.layout.latents)))
    draws = [n.prior.from_standard(z[:, i]) for i, n in enumerate(learner.layout.latents)]
    learner.reseed(np.stack(draws, axis=1), 8)


def without_the_next(learner: Learner) -> None:
    choice = learner.ask()
    assert choice is not None
    learner.set_aside(choice.instance)


SCENARIOS: Final[Mapping[str, Scenario]] = {
    **{name: Scenario(Policy(name)) for name in POLICIES if name not in ("listed", "plugin")},
    "listed": Scenario(Policy("listed", order=NAMES[30:42])),
    "first, then per second": Scenario(Policy(order=NAMES[5:8], per_second=True)),
    "information about one": Scenario(Policy("information", about=("visualAbility",))),
    "the best, cooling down": Scenario(Policy("information", sharpness=0.0, cool_down=3)),
    "repeats": Scenario(Policy(exposures=0, probes=0.3), episodes=40),
    "repeats, deterministic": Scenario(
        Policy(exposures=3), bank="aaio", agent=deterministic, episodes=40
    ),
    "repeats, known to be random": Scenario(
        Policy(exposures=0), options={"determinism": DeterminismPrior(0.9, 0.05)}
    ),
    "made on demand": Scenario(Policy(generate=True, random_share=0.1)),
    "three slots": Scenario(slots=3),
    "set aside, sampled, invalidated": Scenario(
        acts={6: without_the_next, 12: sample_fit, 18: lambda learner: learner.invalidate(15)}
    ),
    "nothing seen at times": Scenario(agent=missing),
    "until it is precise": Scenario(
        stop=StoppingRule(60, target_sd=0.2, target_width=0.6, futility=0.02), episodes=60
    ),
    "all conditions": Scenario(
        stop=StoppingRule(
            12, target_sd=0.0, targets={"visualAbility": 0.2}, max_seconds=90.0, combine="all"
        ),
        episodes=60,
    ),
    "counts": Scenario(bank="one-capability trials"),
    "scores": Scenario(bank="one-capability score", episodes=15),
    "scores of gates": Scenario(bank="melting-pot", episodes=12),
    "two outcomes": Scenario(bank="navigation-speed", agent=missing, episodes=12),
    "large battery": Scenario(bank="object permanence", episodes=20),
    "most among the best": Scenario(Policy(random_share=0.1), bank="many", episodes=12),
    "abler than the ranges": Scenario(bank="hard", agent=able, episodes=80),
    "sampled anew": Scenario(bank="object permanence", agent=waking, episodes=50),
    "an alarm without fallback": Scenario(
        agent=blind_to_colour, episodes=50, options={"fallback": False}
    ),
    "ended by an alarm": Scenario(
        stop=StoppingRule(60, target_sd=0.0, futility=0.0, stop_at_alarm=True),
        agent=blind_to_colour,
        episodes=60,
    ),
}


def play_scenario(scenario: Scenario) -> dict[str, Any]:
    """Play a session; its choices, outcomes and end."""
    own = (offering if scenario.policy.generate else bank)(scenario.bank)
    learner = Learner(own, scenario.policy, scenario.stop, 3, **scenario.options)
    rows: list[list[Any]] = []
    details = hashlib.sha256()
    waiting: list[tuple[Choice, str]] = []
    for episode in range(scenario.episodes):
        if act := scenario.acts.get(episode):
            act(learner)
        pending = [name for _, name in waiting]
        if learner.verdict(10.0 * episode).stop or not (choice := learner.ask(pending, episode)):
            break
        name = choice.instance
        if choice.offered:
            name = f"{choice.instance}.{episode}"
            learner.learn(name, choice.instance, own.features[choice.index])
        waiting.append((choice, name))
        rows.append([name, choice.reason, choice.score, choice.propensity, choice.predicted])
        details.update(repr_of(choice))
        if len(waiting) == scenario.slots:
            answer(learner, scenario.agent, *waiting.pop(0))
    while waiting:
        answer(learner, scenario.agent, *waiting.pop(0))
    return {"choices": rows, "end": ending_of(learner, 10.0 * len(rows), details)}


def answer(learner: Learner, agent: Agent, choice: Choice, name: str) -> None:
    y = agent(learner.bank, learner.features_of(name), name, choice.episode)
    if np.isnan(y).all():
        learner.tell_nothing(name, choice.episode)
    else:
        learner.tell(name, y.tolist() if len(y) > 1 else float(y[0]), choice.episode)


def repr_of(choice: Choice) -> bytes:
    """What a choice says beside the row of its session."""
    peers = choice.peers and [*astuple(choice.peers)]
    wager = choice.wager and [part for part in choice.wager if part != ()]
    rest = (choice.margins, choice.alternatives, choice.because, peers, wager)
    return json.dumps(rest).encode()


def ending_of(learner: Learner, seconds: float, details: Any) -> dict[str, Any]:
    """What is known and said at the end."""
    verdict, posterior = learner.verdict(seconds), learner.posterior
    for one in (posterior.particles, posterior.weights, learner.data().outcomes):
        details.update(one.tobytes())
    rate = learner.battery_rate
    return {
        "outcomes": np.nan_to_num(learner.data().outcomes, nan=-1.0).tolist(),
        "weights": learner.data().weights.tolist(),
        "nodes": [[n.name, n.mean, n.sd, *n.hdi] for n in learner.summary()],
        "verdict": [verdict.stop, verdict.reason, dict(verdict.status)],
        "expected": [dict(verdict.expected_fall), dict(verdict.episodes_needed)],
        "alarm": learner.alarm,
        "misfit": learner.misfit,
        "suspects": [[one.stratification, one.stratum, one.corrected] for one in learner.suspects],
        "retest": learner.retest,
        "battery rate": [rate.played, rate.passed, rate.value, rate.low, rate.high],
        DIGEST: details.hexdigest(),
    }


@pytest.mark.parametrize("title", SCENARIOS)
def test_a_session_is_decided_as_it_was(title: str) -> None:
    hold(GOLDEN, title, play_scenario(SCENARIOS[title]))


ONCE: Final = Policy()
TASKS: Final[Mapping[str, tuple[Any, ...]]] = {
    "benchmark": ("op", ONCE, (10, 30), True),
    "benchmark, random order": ("op", None, (25,)),
    "benchmark, repeats": ("op", Policy(exposures=0, probes=0.3), (30,), False, None, False),
    "benchmark, made on demand": ("op on demand", Policy(generate=True), (20,)),
    "benchmark, ended": ("trials", ONCE, (30,), False, StoppingRule(12, target_sd=0.05)),
}
"""By title, the world of a simulated session, and what follows the seed in its task."""


@pytest.mark.parametrize("title", TASKS)
def test_a_simulated_session_goes_as_it_went(title: str) -> None:
    world, policy, *rest = TASKS[title]
    layout, op = load_layout("one-capability", "trials"), load_layout("object-permanence")
    part = op_battery(0)
    part = part.rows(np.arange(0, len(part), 40))
    values = spread(layout, 30, np.random.default_rng(0))
    worlds = {
        "op": World(op, part),
        "op on demand": World(op, part, DemandVectorGenerator(part.features(op), 500)),
        "trials": World(layout, Instances(layout.feature_names, values)),
    }
    use(worlds)
    made = simulate(Task(world, players(worlds[world], 2)[1], policy, 3, *rest))
    points = [[one.episodes, *one.mean, *one.sd, one.stands] for one in made.points]
    brier = [float(np.nan_to_num(one.brier, nan=-1.0)) for one in made.points]
    inside = list(map(bool, made.inside))
    hold(GOLDEN, title, {"points": points, "brier": brier, "end": [made.episodes, inside]})


def test_every_record_is_of_a_session() -> None:
    hold_titles(GOLDEN, {*SCENARIOS, *TASKS})
