"""Several agents at once: episodes a minute with an agent that thinks, and what waiting less costs.

Decisions allow for the episodes that are still open (`service.evidence.lag`), and so are made from
fewer outcomes than one after another would be. The second part plays simulated agents with one,
two and four slots and compares what is known after as many episodes.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

import animalcat
from animalcat.arena_configs.families import generate
from animalcat.arena_configs.features import measure_features
from animalcat.arena_configs.placement import place
from animalcat.envs.agents.base import Agent, EpisodeInfo
from animalcat.envs.agents.braitenberg import BraitenbergAgent
from animalcat.envs.types import Observation
from animalcat.layouts.adaptive.bank import Bank, History
from animalcat.layouts.adaptive.policy import Chooser
from animalcat.layouts.inference.live import LivePosterior
from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.library import load_layout
from animalcat.layouts.model.instances import Instances
from animalcat.layouts.simulation.simulate import LayoutAgent, prior_agents
from animalcat.service.host.private import server_for
from animalcat.service.session.evidence import lag

SLOTS: Final = (1, 2, 4)
THINKING: Final = 0.02
"""Seconds that the slow agent takes for a decision, without using the processor."""
EPISODES: Final = 40
"""Episodes of a simulated session."""


class SlowAgent(Agent):
    """Steers toward what it sees, and takes its time."""

    def __init__(self) -> None:
        self._quick = BraitenbergAgent()

    def reset(self, info: EpisodeInfo) -> None:
        """A new episode."""
        self._quick.reset(info)

    def act(self, observation: Observation) -> int:
        """Wait, then steer."""
        time.sleep(THINKING)
        return int(self._quick.act(observation))


def run(quick: bool) -> list[dict[str, Any]]:
    """Measure both."""
    return [*_speed(8 if quick else 24), *_knowledge(8 if quick else 60)]


def _speed(episodes: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    with (
        tempfile.TemporaryDirectory() as folder,
        server_for(None, Path(folder)) as address,
        animalcat.connect(address) as client,
    ):
        battery = client.build_battery("navigation", 200).id
        for slots in SLOTS:
            session = client.create_session(
                agent="slow",
                battery=battery,
                max_episodes=episodes,
                certify=False,
                slots=slots,
            )
            ends, steps = _played(client, session)
            # From the end of the first round on: before it, processes are started.
            rate = 60.0 * (len(ends) - slots) / (ends[-1] - ends[slots - 1])
            rows.append(
                {
                    "name": f"an agent that thinks {THINKING * 1e3:g} ms a decision, {slots} slots",
                    "median": rate,
                    "unit": "episodes/min",
                    "baseline": rows[0]["median"] if rows else rate,
                    "ratio": rate / rows[0]["median"] if rows else 1.0,
                    "note": f"{steps:.0f} decisions an episode",
                }
            )
    return rows


def _played(
    client: animalcat.Client, session: animalcat.values.Session
) -> tuple[list[float], float]:
    """When each episode ended, and decisions an episode."""
    ends: list[float] = []
    client.evaluate(SlowAgent, session, on_episode=lambda _: ends.append(time.perf_counter()))
    return ends, sum(episode.steps for episode in client.episodes(session)) / len(ends)


def _knowledge(agents: int) -> list[dict[str, Any]]:
    layout = load_layout("aaio")
    made = generate("navigation", 400, rng(0, "slots", 0))
    features: list[Mapping[str, float]] = [
        measure_features(place(one.arena, rng(0, "slots", k))).values for k, one in enumerate(made)
    ]
    columns = layout.feature_names
    values = np.array([[row.get(name, np.nan) for name in columns] for row in features])
    battery = Instances(columns, values, tuple(one.paradigm for one in made))
    chooser = Chooser(Bank(layout, values, battery.paradigms))
    crowd = prior_agents(layout, agents, rng(1, "slots", 0))
    sds = {
        slots: np.array(
            [_sd(chooser, battery, agent, k, lag(slots)) for k, agent in enumerate(crowd)]
        )
        for slots in SLOTS
    }
    rows: list[dict[str, Any]] = []
    for slots in SLOTS:
        ratios = sds[slots] / sds[1]
        draws = rng(0, "bootstrap", slots).integers(agents, size=(2000, agents))
        low, high = np.quantile(np.median(ratios[draws], axis=1), [0.05, 0.95])
        rows.append(
            {
                "name": f"SD after {EPISODES} episodes, {slots} slots, in shares of one slot's",
                "value": float(np.median(ratios)),
                "low": float(low),
                "high": float(high),
                "note": f"{agents} simulated agents; mean SD {sds[slots].mean():.3f} of the range",
            }
        )
    return rows


def _sd(chooser: Chooser, battery: Instances, agent: LayoutAgent, seed: int, behind: int) -> float:
    """Mean SD of the capabilities, in shares of their ranges, after a session."""
    layout, bank = chooser.bank.layout, chooser.bank
    features = battery.features(layout)
    posterior = LivePosterior(layout, seed)
    chances = agent.probability(battery)
    # The same luck at the same instance, however it came to be chosen.
    outcomes = rng(seed, "luck", 0).random(len(bank)) < chances
    begun: list[int] = []
    for number in range(EPISODES + 1):
        known = number - behind if number < EPISODES else EPISODES
        for k in range(len(posterior.tells), known):
            posterior.update(features[begun[k]], float(outcomes[begun[k]]), k)
        if number < EPISODES:
            told = len(posterior.tells)
            choice = chooser.choose(posterior, History(begun[:told], begun[told:]), number)
            assert choice is not None, "the battery is larger than a session"
            begun.append(choice.index)
    spans = np.array([layout.latents[i].prior.span for i in layout.capabilities])
    nodes = posterior.summary()
    sd = np.array([nodes[i].sd for i in layout.capabilities])
    return float(np.mean(sd / spans))
