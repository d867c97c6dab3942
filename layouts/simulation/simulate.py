"""Simulated agents that play any table of instances, and wrappers that make them misbehave."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.inference.evaluator import Evaluator
from animalcat.layouts.model.instances import Instances
from animalcat.layouts.model.likelihood import draw_outcomes, trials_of
from animalcat.layouts.model.spec import Layout

Floats: TypeAlias = npt.NDArray[np.float64]


class SimulatedAgent(Protocol):
    """An agent with a known probability of success for every instance."""

    def probability(self, instances: Instances, episode: int = 0, outcome: int = 0) -> Floats:
        """Probability of success, or expected score, (instances,).

        Args:
            instances: Instances played one after another, in this order.
            episode: Number of the first of these episodes; the earlier ones were played too.
            outcome: Index of the outcome; an agent with a single outcome may ignore it.
        """
        ...


def simulate_outcomes(
    agent: SimulatedAgent,
    instances: Instances,
    generator: np.random.Generator,
    episode: int = 0,
    missing: float = 0.0,
) -> Floats:
    """Simulate an agent that plays instances one after another.

    Args:
        agent: The agent.
        instances: The instances, in the order played.
        generator: Source of randomness for the outcomes.
        episode: Number of the first of these episodes.
        missing: Share of outcomes that are dropped, see `lose`.

    Returns:
        (instances,): 1 for success, 0 for failure. For a `LayoutAgent`, also inside wrappers,
        outcomes of its layout's kind, and (instances, outcomes) if the layout has several.
    """
    origin = agent
    while isinstance(origin, LapsingAgent | DriftingAgent | ImpairedAgent):
        origin = origin.before if isinstance(origin, DriftingAgent) else origin.agent
    if not isinstance(origin, LayoutAgent):
        p = agent.probability(instances, episode)
        return (generator.random(len(p)) < p).astype(np.float64)
    drawn = [
        origin.outcomes(agent.probability(instances, episode, k), instances, generator, k)
        for k in range(len(origin.layout.outcomes))
    ]
    return drawn[0] if len(drawn) == 1 else lose(np.stack(drawn, axis=1), missing, generator)


def lose(outcomes: Floats, missing: float, generator: np.random.Generator) -> Floats:
    """Drop outcomes at random, but never all of an episode.

    Args:
        outcomes: (episodes, outcomes).
        missing: Probability that an outcome is dropped; one outcome of each episode is exempt.
        generator: Source of randomness.
    """
    if not missing:
        return outcomes
    lost = generator.random(outcomes.shape) < missing
    lost[np.arange(len(lost)), generator.integers(outcomes.shape[1], size=len(lost))] = False
    return np.where(lost, np.nan, outcomes)


@dataclass(frozen=True, eq=False)
class LayoutAgent:
    """An agent that behaves exactly as a layout says.

    Attributes:
        layout: The layout.
        theta: (latents,), in the layout's order and units.
    """

    layout: Layout
    theta: Floats

    @classmethod
    def of(cls, layout: Layout, values: Mapping[str, float]) -> LayoutAgent:
        """Make an agent from values by name of the node, for example from a profile.

        Raises:
            ValueError: A node is missing or unknown.
        """
        if set(values) != set(layout.latent_names):
            wrong = sorted(set(values) ^ set(layout.latent_names))
            raise ValueError(
                f"{', '.join(wrong)}: missing or unknown; layout {layout.name} has "
                f"{', '.join(layout.latent_names)}"
            )
        return cls(layout, np.array([values[name] for name in layout.latent_names]))

    @cached_property
    def _evaluator(self) -> Evaluator:
        return Evaluator(self.layout)

    def probability(self, instances: Instances, episode: int = 0, outcome: int = 0) -> Floats:
        """Probability of success, or expected score, (instances,), in any episode."""
        features = instances.features(self.layout)
        return self._evaluator.probability(self.theta[np.newaxis], features, outcome)[0]

    def outcomes(
        self,
        probability: Floats,
        instances: Instances,
        generator: np.random.Generator,
        outcome: int = 0,
    ) -> Floats:
        """Draw values of one of the layout's outcomes, (instances,), given expected values."""
        features = instances.features(self.layout)
        columns = self._evaluator.columns(features)
        size = self._evaluator.sample_sizes(self.theta[np.newaxis], columns, outcome)
        likelihood = self.layout.outcomes[outcome].likelihood
        trials = trials_of(self.layout, likelihood, features)
        return draw_outcomes(likelihood, probability[:, np.newaxis], size, trials, generator)[:, 0]


def prior_agents(layout: Layout, count: int, generator: np.random.Generator) -> list[LayoutAgent]:
    """Draw agents from a layout's prior."""
    z = generator.standard_normal((count, len(layout.latents)))
    return [LayoutAgent(layout, row) for row in layout.from_standard(z)]


@dataclass(frozen=True, slots=True)
class FeatureRange:
    """A condition on instances: a meta-feature lies in a range, both ends included."""

    column: str
    low: float = -np.inf
    high: float = np.inf

    def holds(self, instances: Instances) -> npt.NDArray[np.bool_]:
        """Which instances meet the condition, (instances,); not those with an unknown value."""
        values = instances.column(self.column)
        return (values >= self.low) & (values <= self.high)


@dataclass(frozen=True, slots=True)
class LapsingAgent:
    """An agent that sometimes does not attend, and then succeeds by chance alone.

    Attributes:
        agent: The agent without lapses.
        rate: Share of episodes with a lapse.
        chance: Probability of success in a lapse.
        where: Limits lapses to some instances, for example by a meta-feature that the layout does
            not use.
    """

    agent: SimulatedAgent
    rate: float
    chance: float = 0.5
    where: FeatureRange | None = None

    def probability(self, instances: Instances, episode: int = 0, outcome: int = 0) -> Floats:
        """Probability of success, (instances,)."""
        p = self.agent.probability(instances, episode, outcome)
        lapsed = (1.0 - self.rate) * p + self.rate * self.chance
        return lapsed if self.where is None else np.where(self.where.holds(instances), lapsed, p)


@dataclass(frozen=True, slots=True)
class DriftingAgent:
    """An agent that gradually turns into another one: it learns, or tires.

    Attributes:
        before: The agent at first.
        after: The agent at the end.
        start: Number of the episode in which it begins to change.
        episodes: Number of episodes that the change takes.
    """

    before: SimulatedAgent
    after: SimulatedAgent
    start: int = 0
    episodes: int = 100

    def probability(self, instances: Instances, episode: int = 0, outcome: int = 0) -> Floats:
        """Probability of success, (instances,)."""
        number = episode + np.arange(len(instances))
        share = np.clip((number - self.start) / max(self.episodes, 1), 0.0, 1.0)
        before = self.before.probability(instances, episode, outcome)
        after = self.after.probability(instances, episode, outcome)
        return (1.0 - share) * before + share * after


@dataclass(frozen=True, slots=True)
class ImpairedAgent:
    """An agent that is worse on some instances, which may differ by a feature no layout uses.

    Attributes:
        agent: The agent elsewhere.
        where: The instances concerned.
        factor: Factor of the probability of success on those instances.
    """

    agent: SimulatedAgent
    where: FeatureRange
    factor: float = 0.1

    def probability(self, instances: Instances, episode: int = 0, outcome: int = 0) -> Floats:
        """Probability of success, (instances,)."""
        p = self.agent.probability(instances, episode, outcome)
        return np.where(self.where.holds(instances), self.factor * p, p)
