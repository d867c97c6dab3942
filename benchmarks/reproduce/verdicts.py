"""How often the verdict names the kind of agents whose kind is known.

The paper's team described 30 synthetic agents from their profiles, "around 75 %" of them rightly
(Burden et al. 2023, section 5.3). Here the kinds of `explaining.kinds` are compared with the
paper's classes, and with those of agents that are drawn anew.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.explaining.kinds import AgentKind, KindEstimate, PlayedEpisodes, find_kind
from animalcat.layouts.explaining.limits import costs, thinned
from animalcat.layouts.inference.live import LivePosterior
from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.model.instances import Instances
from animalcat.layouts.model.spec import Layout
from animalcat.layouts.simulation.synthetic import (
    CAPABILITIES,
    HIDDEN,
    SyntheticAgent,
    op_battery,
)

Floats: TypeAlias = npt.NDArray[np.float64]
Rule: TypeAlias = Callable[[Instances], Floats]
Truth: TypeAlias = Mapping[str, float]
"""Capabilities as shares of the paper's ranges, as `SyntheticAgent.truth` has them."""
Drawn: TypeAlias = tuple[str, Rule, Truth]
"""What a drawn agent does, in words and as a rule, and its truth."""

IRRELEVANT: Final = tuple(name for name in HIDDEN if name != "rewardVisibility")
"""Features of the battery that should not matter: colours, and where a cue leads. Visibility is the
opposite of the layout's occluder, and so a demand."""
_CLASSES: Final[dict[str, AgentKind]] = {
    "achilles heel": "single weakness",
    "fraudster": "fraudster",
    "context-specific": "context",
}
_BY_LOOKS: Final = (7, 8)
"""Agents of the paper that fail by a colour. It calls them Achilles heels; success that depends on
something that should not matter makes a fraudster here."""
_ABLE: Final = (1, 5)
"""The paper's reference agents that pass nearly everything; the others pass at random."""


@dataclass(frozen=True, eq=False)
class KnownAgent:
    """An agent whose kind is known.

    Attributes:
        name: Its name.
        about: What it does.
        kind: Its kind.
        rule: Probability of success, (instances,).
        truth: Its capabilities, where its rule settles them.
    """

    name: str
    about: str
    kind: AgentKind
    rule: Rule
    truth: Truth


@dataclass(frozen=True)
class KindScore:
    """What was found of one agent."""

    agent: KnownAgent
    found: KindEstimate

    @property
    def right(self) -> bool:
        """Whether its kind was named."""
        return self.found.kind == self.agent.kind


def paper_agents(agents: Sequence[SyntheticAgent]) -> list[KnownAgent]:
    """The paper's agents with their kinds.

    Args:
        agents: As `simulation.synthetic.synthetic_agents` returns them.
    """
    known_agents: list[KnownAgent] = []
    for agent in agents:
        kind = _CLASSES.get(agent.group, "able" if agent.number in _ABLE else "unclear")
        if agent.number in _BY_LOOKS:
            kind = "fraudster"
        rule, truth = agent.probability, agent.truth
        known_agents.append(KnownAgent(agent.name, agent.about, kind, rule, truth))
    return known_agents


def drawn_agents(seed: int, count: int) -> list[KnownAgent]:
    """Draw agents at random: a third with a single weakness, and a sixth of each other kind.

    Args:
        seed: Seed of the agents.
        count: Number of agents.
    """
    kinds: tuple[AgentKind, ...] = (
        "single weakness",
        "able",
        "fraudster",
        "single weakness",
        "context",
        "unclear",
    )
    known_agents: list[KnownAgent] = []
    for i in range(count):
        kind = kinds[i % len(kinds)]
        about, rule, truth = _DRAWN[kind](rng(seed, "known agent", i))
        known_agents.append(KnownAgent(f"drawn {i}", about, kind, rule, truth))
    return known_agents


def score_kinds(
    layout: Layout,
    agents: Sequence[KnownAgent],
    seed: int,
    episodes: int,
    done: Callable[[], object] | None = None,
) -> list[KindScore]:
    """Let agents play instances drawn at random, and find their kinds.

    Args:
        layout: A layout of object permanence.
        agents: The agents.
        seed: Seed of battery, choices and outcomes.
        episodes: How many of the 2,188 instances each plays, once each.
        done: Called after each agent.
    """
    battery = op_battery(seed)
    features = battery.features(layout)
    shown = features[:: max(1, len(features) // 300)]
    scores: list[KindScore] = []
    for i, agent in enumerate(agents):
        generator = rng(seed, "verdict", i)
        rows: list[int] = generator.permutation(len(battery))[:episodes].tolist()
        outcomes = (generator.random(len(rows)) < agent.rule(battery)[rows]).astype(np.float64)
        posterior = LivePosterior(layout, seed)
        posterior.update_all(features[rows], outcomes)
        draws = thinned(posterior.particles, posterior.weights, 500)
        played = PlayedEpisodes(
            features[rows],
            outcomes,
            None,
            [battery.paradigms[row] for row in rows],
            {name: battery.column(name)[rows] for name in HIDDEN},
            IRRELEVANT,
        )
        kind = find_kind(layout, draws, played, costs(layout, thinned(draws, None, 200), shown))
        scores.append(KindScore(agent, kind))
        if done is not None:
            done()
    return scores


def _rates(generator: np.random.Generator) -> tuple[float, float]:
    """Success where the agent does well, and where it does not."""
    return float(generator.uniform(0.85, 1.0)), float(generator.uniform(0.0, 0.2))


def _settled(**limits: float) -> Truth:
    """All capabilities without a limit, but for those that are given."""
    return dict.fromkeys(CAPABILITIES, 1.0) | limits


def _where(
    column: str, beyond: float, high: float, low: float, *, above: bool = True
) -> tuple[str, Rule]:
    word = "above" if above else "below"

    def rule(instances: Instances) -> Floats:
        values = instances.column(column)
        return np.where(values > beyond if above else values < beyond, low, high)

    return f"{high:.2f}, but {low:.2f} where {column} is {word} {beyond:g}", rule


def _draw_able(generator: np.random.Generator) -> Drawn:
    high, _ = _rates(generator)
    return f"passes with {high:.2f}", lambda i: np.full(len(i), high), _settled()


def _draw_weak(generator: np.random.Generator) -> Drawn:
    high, low = _rates(generator)
    which = int(generator.integers(8))
    if which < 3:
        what = ("lava", "ramp", "platform")[which]
        return (
            *_where(f"{what}Presence", 0.5, high, low),
            _settled(**{f"{what}Ability": low / high}),
        )
    if which == 3:
        limit = float(generator.uniform(0.75, 2.75))
        return *_where("timeUnderOcc", limit, high, low), _settled(memoryAbility=limit / 4.4)
    if which == 4:
        limit = float(generator.uniform(1.5, 6.0))
        return *_where("numPositions", limit, high, low), _settled(OPAbility=4.0 * limit / 48.4)
    if which == 5:
        limit = float(generator.uniform(18.0, 40.0))
        return *_where("goalDistance", limit, high, low), _settled(flatNavAbility=limit / 56.0)
    if which == 6:
        limit = float(generator.uniform(0.8, 2.2))
        return (
            *_where("goalSize", limit, high, low, above=False),
            _settled(visualAbility=(5.0 - limit) / 6.0),
        )
    side = -1 if generator.random() < 0.5 else 1
    about = f"{high:.2f} to {'the right' if side > 0 else 'the left'}, {low:.2f} to the other side"
    middle = (high + low) / 2.0

    def rule(instances: Instances) -> Floats:
        return np.interp(
            side * instances.column("rightLeftPosition"), [-1, 0, 1], [low, middle, high]
        )

    return about, rule, _settled()


def _draw_fraudster(generator: np.random.Generator) -> Drawn:
    high, low = _rates(generator)
    column = str(generator.choice(IRRELEVANT))
    if column == "lastSeenMisleads":
        return *_where(column, 0.5, high, low), _settled(OPAbility=0.0)
    return *_where(column, float(generator.uniform(60.0, 200.0)), high, low), _settled()


def _draw_context(generator: np.random.Generator) -> Drawn:
    high, low = _rates(generator)
    suites = ("cup", "grid", "chick")
    number = int(generator.integers(1, 3))
    order: list[int] = generator.permutation(3).tolist()
    passed = {"basic", *(suites[i] for i in order[:number])}

    def rule(instances: Instances) -> Floats:
        return np.array([high if p.split("-")[0] in passed else low for p in instances.paradigms])

    about = f"{high:.2f} at {', '.join(sorted(passed))}, else {low:.2f}"
    return about, rule, _settled(OPAbility=number / 3)


def _draw_unclear(generator: np.random.Generator) -> Drawn:
    rate = float(generator.uniform(0.1, 0.6))
    return f"passes with {rate:.2f}", lambda i: np.full(len(i), rate), {}


_DRAWN: Final[dict[str, Callable[[np.random.Generator], Drawn]]] = {
    "able": _draw_able,
    "single weakness": _draw_weak,
    "fraudster": _draw_fraudster,
    "context": _draw_context,
    "unclear": _draw_unclear,
}
