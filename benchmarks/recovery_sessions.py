"""Adaptive sessions of `recovery`: agents act in the simulator, and the learner is told."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path
from typing import Final, cast

import numpy as np

from animalcat.arena_configs.loader import load_text
from animalcat.arena_configs.model import STEPS_PER_UNIT, Arena
from animalcat.arena_configs.outcome import success
from animalcat.envs.agents.base import EpisodeInfo
from animalcat.envs.agents.limits.acting import limit_numbers
from animalcat.envs.agents.limits.catalogue import LIMITS
from animalcat.envs.agents.limits.reference import Reference, read_reference
from animalcat.envs.agents.load import make_agent
from animalcat.envs.sim.environment import SimEnvironment
from animalcat.envs.types import ObservationSpec
from animalcat.layouts.adaptive.plan import StoppingRule
from animalcat.layouts.explaining.kinds import KindEstimate
from animalcat.layouts.explaining.session import verdict_of
from animalcat.layouts.inference.evaluator import Evaluator
from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.watching.beyond import LIFTS, lift_capabilities
from animalcat.machine.processes import process_pool
from animalcat.service.batteries.battery import Battery, load
from animalcat.service.measuring.measurement import Measurement
from animalcat.service.measuring.report import irrelevant
from animalcat.values import SessionSpec
from benchmarks.agents import prior_agents
from benchmarks.recovery_outcomes import COMPARED, Outcomes, Strength

SPEC: Final = ObservationSpec(None, None, privileged=True)
LONGEST: Final = 6000
"""Decisions after which an episode without a time limit is given up."""
_CHANCE: Final = frozenset({"lapses", "tires", "learns", "days"})
"""Limits by which two episodes with the same arena differ."""


@dataclass(frozen=True)
class Task:
    """A session.

    Attributes:
        agent: Reference of the agent.
        seed: Of the session.
        episodes: How many.
        watches: Whether the alarm is watched, and the best profile looked for.
    """

    agent: str
    seed: int
    episodes: int
    watches: bool = False


@dataclass(frozen=True)
class Found:
    """What a session found.

    Attributes:
        task: The session.
        means: Posterior mean of each latent node, in shares of its range.
        sds: Standard deviations, the same way.
        successes: How many episodes were passed.
        stands: Whether an alarm stood at the end.
        loses: By how much the Brier score of the best profile exceeds that of the agent's own
            rule, over what was played; None if it was not looked for.
        kind: The kind that the verdict names.
        weakness: The node that it names as the single weakness; empty if there is none.
        depends_on: What the success of a fraudster or a context agent is said to depend on; empty
            if the agent is called neither.
        claims: The capabilities that the verdict says it has.
    """

    task: Task
    means: dict[str, float]
    sds: dict[str, float]
    successes: int
    stands: bool
    loses: float | None
    kind: str
    weakness: str
    depends_on: str = ""
    claims: tuple[str, ...] = ()


class Place:
    """A battery with its arenas, in which agents play."""

    def __init__(
        self,
        folder: Path,
        digest: str,
        layout: str,
        variant: str,
        played: Path | None = None,
        shown: ObservationSpec = SPEC,
    ) -> None:
        """Read the battery.

        Args:
            folder: Folder of batteries.
            digest: Of the battery.
            layout: Name of the layout.
            variant: Its variant.
            played: A file that other processes share, so that none plays what another has played.
            shown: What agents observe.
        """
        self.battery: Battery = load(digest, folder)
        self._spec = SessionSpec(
            "", digest, digest, layout, variant, stop=StoppingRule(100_000), certify=False
        )
        self._shown = shown
        self._environment = SimEnvironment(shown)
        self._arenas: dict[str, Arena] = {}
        self._outcomes = Outcomes(played)
        self.played = 0

    def session(self, task: Task) -> Found:
        """Play a session."""
        spec = replace(self._spec, agent=task.agent, seed=task.seed)
        measurement = Measurement(spec, self.battery)
        learner, told, successes = measurement.learner, list[tuple[str, bool]](), 0
        for episode in range(task.episodes):
            choice = learner.ask(episode=episode)
            if choice is None:
                break
            outcome = self.outcome(task.agent, choice.instance, task.seed, episode)
            learner.tell(choice.instance, float(outcome), episode)
            told.append((choice.instance, outcome))
            successes += outcome
        nodes = {node.name: node for node in learner.summary()}
        spans = {
            one.name: (one.prior.low if isfinite(one.prior.low) else 0.0, one.prior.span)
            for one in learner.layout.latents
        }
        _, verdict = verdict_of(learner, learner.profile(), irrelevant=irrelevant(learner))
        return Found(
            task,
            {name: (node.mean - spans[name][0]) / spans[name][1] for name, node in nodes.items()},
            {name: node.sd / spans[name][1] for name, node in nodes.items()},
            successes,
            learner.contradicted,
            self._loses(measurement, told) if task.watches else None,
            verdict.found.kind,
            verdict.found.weakness,
            _depends_on(verdict.found),
            verdict.claimed,
        )

    def outcome(self, agent: str, instance: str, seed: int, episode: int) -> bool:
        """Whether an agent passes an instance.

        What does not depend on chance is played once.
        """
        own = int(rng(seed, "agent", episode).integers(2**31))
        read, repeats = in_episode(agent, own)
        if not repeats:
            return self._play(read, instance, own, episode)
        key = f"{reference_of(read, without=COMPARED)} {instance}"
        strengths = {name: read.number(name, 0.0) for name in COMPARED & read.limits.keys()}
        known = self._outcomes.find(key, strengths)
        if known is None:
            asked = {name: Strength(value) for name, value in strengths.items()}
            noting = replace(read, limits={**read.limits, **cast("Mapping[str, float]", asked)})
            known = self._play(noting, instance, own, episode)
            self._outcomes.keep(key, asked, passed=known)
        return known

    def _play(self, agent: Reference, instance: str, seed: int, episode: int) -> bool:
        one = self.battery.instances[self.battery.index[instance]]
        if instance not in self._arenas:
            text = self.battery.arena_yaml(one)
            self._arenas[instance] = load_text(text, instance).config.first
        arena = self._arenas[instance]
        actor, environment = make_agent(agent), self._environment
        step = environment.load(arena, one.seed)
        limit = arena.time_limit * STEPS_PER_UNIT
        shown = self._shown
        actor.reset(EpisodeInfo(episode, seed, shown, -(-limit // shown.decision_period)))
        total, steps = 0.0, 0
        while step.ended_by is None and steps < LONGEST:
            action = actor.act(step.observation)
            assert isinstance(action, int)
            step = environment.step(action)
            total += step.reward
            steps += 1
        self.played += 1
        return success(total, one.pass_mark)

    def _loses(self, measurement: Measurement, told: Sequence[tuple[str, bool]]) -> float:
        """How much worse the best profile predicts what was played than the agent's own rule.

        The rule of an agent without chance predicts without error. The best profile is the best of
        many that are drawn from the prior, and of the posterior's. Those near the top of a range
        may be beyond it, as the alarm allows.
        """
        learner = measurement.learner
        layout = learner.layout
        generator = rng(measurement.learner.n, "profiles", 0)
        prior = np.array([one.theta for one in prior_agents(layout, 4000, generator)])
        known = learner.posterior.particles
        theta = np.vstack([prior, *(lift_capabilities(layout, known, lift) for lift in LIFTS)])
        rows = [measurement.coverage.features[name] for name, _ in told]
        outcomes = np.array([outcome for _, outcome in told], np.float64)
        evaluator = Evaluator(layout)
        p = evaluator.by_instance(theta, evaluator.columns(np.array(rows)), np.float64)
        p = np.clip(p, 0.0, 1.0)
        return float(((p - outcomes[:, None]) ** 2).mean(axis=0).min())


def _depends_on(found: KindEstimate) -> str:
    other = found.kind in ("fraudster", "context") and found.rival is not None
    return found.rival.name if other and found.rival else ""


def in_episode(agent: str, seed: int) -> tuple[Reference, bool]:
    """What an agent is in an episode: limits that act in a share of them act, or are not there.

    Args:
        agent: Its reference.
        seed: The agent's seed of the episode.

    Returns:
        What it is, and whether it does the same again in the same arena.
    """
    read = read_reference(agent)
    limits: dict[str, float | str] = {}
    for name, value in read.limits.items():
        if name in _CHANCE and not value:
            continue  # no decision is left to chance
        if LIMITS[name].unit != "share of episodes":
            limits[name] = value
        elif limit_numbers(name, seed).random() < read.number(name, 0.0):
            limits[name] = 1.0
    return replace(read, limits=limits), not _CHANCE & limits.keys()


def reference_of(read: Reference, without: Collection[str] = ()) -> str:
    """The text of a reference, without the strengths of some limits."""
    limits = (
        f"{name}" if name in without else f"{name}={value}" for name, value in read.limits.items()
    )
    return "+".join([f"{read.where}:{read.name}", *limits])


_place: Place | None = None


def _session(task: Task, end: float) -> Found | None:
    """Play a session in this process; None if no time is left."""
    assert _place is not None
    return None if time.monotonic() > end else _place.session(task)


def run_sessions(
    place: tuple[Path, str, str, str, Path],
    tasks: Sequence[Task],
    end: float,
    done: Callable[[], object],
    workers: int,
) -> list[Found]:
    """Play sessions in processes of their own.

    What they have in common is played once.

    Args:
        place: Arguments of `Place`.
        tasks: The sessions, in the order in which they begin.
        end: Time by `time.monotonic` after which no session is begun.
        done: Called after each session.
        workers: How many processes.

    Returns:
        What was found in those that were begun in time.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the processes share the cores
    with process_pool(workers, _begin, *place) as pool:
        made = [pool.submit(_session, task, end) for task in tasks]
        for one in made:
            one.add_done_callback(lambda _: done())
        return [found for one in made if (found := one.result()) is not None]


def _begin(folder: Path, digest: str, layout: str, variant: str, played: Path) -> None:
    global _place
    _place = Place(folder, digest, layout, variant, played)
