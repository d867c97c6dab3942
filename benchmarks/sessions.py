"""Simulated sessions: an agent, a battery, a layout, a policy and a seed give a trajectory."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import islice
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.adaptive.bank import Bank
from animalcat.layouts.adaptive.learner import Learner
from animalcat.layouts.adaptive.offers import InstanceGenerator, Offers
from animalcat.layouts.adaptive.plan import Policy, StoppingRule
from animalcat.layouts.explaining.session import standing_of
from animalcat.layouts.explaining.wording import scale_of
from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.model.instances import Instances
from animalcat.layouts.model.spec import Bernoulli, Layout
from animalcat.machine.processes import process_pool
from animalcat.portable import arrays as portable
from benchmarks.agents import LayoutAgent, prior_agents

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]

WORKERS: Final = 2
ENDLESS: Final = StoppingRule(max_episodes=100_000, target_sd=0.0, futility=0.0)
"""Of sessions that go on after all is known: nothing is checked before a last word then."""
_PLACES: Final = 4000
"""Values of a range from which flat agents have theirs."""
HELD_OUT: Final = 0.2
"""Share of the instances that Brier scores are worked out on, where they are."""


@dataclass(frozen=True, eq=False)
class World:
    """A layout, the battery it is measured with, and who makes instances on demand.

    Attributes:
        layout: The layout.
        instances: The battery.
        source: Who makes instances for policies that ask for some; None: nobody.
    """

    layout: Layout
    instances: Instances
    source: InstanceGenerator | None = None

    @cached_property
    def offers(self) -> Offers | None:
        """What could be made."""
        return None if self.source is None else self.source.offers(self.layout)

    @cached_property
    def playable(self) -> Instances:
        """The battery, and behind it what could be made."""
        if self.offers is None:
            return self.instances
        features = [self.instances.features(self.layout), self.offers.features]
        paradigms = self.instances.paradigms or ("",) * len(self.instances)
        return Instances(
            self.layout.feature_names,
            np.vstack(features),
            (*paradigms, *self.offers.paradigms),
        )

    def outside(self) -> dict[str, Floats]:
        """Meta-features that the layout does not know."""
        known = self.layout.feature_names
        return {c: self.instances.column(c) for c in self.instances.columns if c not in known}


@dataclass(frozen=True, eq=False)
class Player:
    """An agent as its probabilities of success; real outcomes are probabilities of 0 and 1.

    Attributes:
        name: Its name.
        before: (playable instances,); expected scores where outcomes are scores.
        after: (playable instances,): what it turns into; None: it stays what it is.
        start: Episode in which it begins to turn.
        episodes: How many episodes that takes.
        failures: After how many failures in a row it is `after`, until it passes; 0: it is not so.
        theta: (latents,): where it is as the layout says; counts and scores are drawn by it.
    """

    name: str
    before: Floats
    after: Floats | None = None
    start: int = 0
    episodes: int = 1
    theta: Floats | None = None
    failures: int = 0

    def probability(self, episode: int, failed: int = 0) -> Floats:
        """Probability of success in an episode, after failures in a row, (instances,)."""
        if self.after is None:
            return self.before
        if self.failures:
            return self.after if failed >= self.failures else self.before
        share = min(max((episode - self.start) / self.episodes, 0.0), 1.0)
        return (1.0 - share) * self.before + share * self.after


def players(world: World, count: int, seed: int = 0, *, flat: bool = False) -> list[Player]:
    """Agents drawn from the layout's prior.

    Args:
        world: The world.
        count: How many.
        seed: Seed of the draws.
        flat: Whether capabilities are drawn evenly over their ranges, as they are read.
    """
    generator = rng(seed, "agents", 0)
    agents = prior_agents(world.layout, count, generator)
    for k in world.layout.capabilities if flat else ():
        prior = world.layout.latents[k].prior
        values = prior.low + prior.span * (np.arange(_PLACES) + 0.5) / _PLACES
        share = scale_of(world.layout, k, world.instances.features(world.layout)).stretch(values)
        for agent in agents:
            agent.theta[k] = generator.choice(values, p=share / share.sum())
    return [
        Player(f"prior {i}", agent.probability(world.playable), theta=agent.theta)
        for i, agent in enumerate(agents)
    ]


@dataclass(frozen=True)
class Task:
    """One session to simulate.

    Attributes:
        world: Name of the world.
        player: Who plays.
        policy: How to choose; None: a random order without repeats, worked out without a posterior.
        seed: Everything follows from it; the same seed draws the same outcome of an instance under
            every policy.
        checkpoints: Episodes after which the posterior is looked at.
        held_out: Whether a fifth of the instances is kept for Brier scores.
        rule: When to stop; None: after the last checkpoint.
        fallback: Whether choices are random while an alarm stands.
        in_blocks: Whether a random order is told in blocks from checkpoint to checkpoint, without
            an alarm: much sooner, and equal but for rounding.
    """

    world: str
    player: Player
    policy: Policy | None
    seed: int
    checkpoints: tuple[int, ...]
    held_out: bool = False
    rule: StoppingRule | None = None
    fallback: bool = True
    in_blocks: bool = False


@dataclass(frozen=True)
class Point:
    """What is known after some episodes: per capability in shares of its range, and predictions.

    Attributes:
        episodes: How many.
        sd: Standard deviations.
        mean: Means.
        brier: Expected Brier score on held-out instances; NaN where none are.
        stands: Whether an alarm stands then, in hindsight.
    """

    episodes: int
    sd: tuple[float, ...]
    mean: tuple[float, ...]
    brier: float
    stands: bool


class Sentence(NamedTuple):
    """What is said of one capability of which enough was learnt.

    Attributes:
        leans: Whether it says that it leans on its prior.
        wrong: Whether the true value is not within what is said.
    """

    leans: bool
    wrong: bool


@dataclass(frozen=True)
class Trajectory:
    """A session that was simulated.

    Attributes:
        player: Who played.
        policy: The policy's name.
        seed: Its seed.
        points: At the checkpoints, as far as it went.
        raised_at: After how many episodes the alarm went off; None: never.
        episodes: How many were played.
        inside: Per latent, whether its 90 % interval contains the true value at the end.
        end: Why its rule ended it, in a word; empty if it has none, or would go on.
        warned: Whether what was played contradicts the layout at the end.
        doubted: Whether it ends without a word on abilities, since it did not pass its last check.
        settled: Whether every capability is known at the end, if the layout holds.
        settled_at: After how many episodes that was so first; None: never, or it has no rule.
        own: Logarithm of the likelihood ratio of who played beside the layout, over all outcomes.
        sentences: What is said of capabilities at the end, if it has a rule and a true value.
    """

    player: str
    policy: str
    seed: int
    points: tuple[Point, ...]
    raised_at: int | None
    episodes: int
    inside: tuple[bool, ...] = ()
    end: str = ""
    warned: bool = False
    doubted: bool = False
    settled: bool = False
    settled_at: int | None = None
    own: float = 0.0
    sentences: tuple[Sentence, ...] = ()


@dataclass(frozen=True, eq=False)
class _Ready:
    """What a session needs of a world, prepared once a process.

    Attributes:
        world: The world.
        rows: What can be played, by its place among all that is playable.
        test: Instances that are held out.
        bank: What can be played.
        asked: The instances held out, as the bank's evaluator has them.
    """

    world: World
    rows: Ints
    test: Ints
    bank: Bank
    asked: Floats


_worlds: Mapping[str, World] = {}


@cache
def _ready(name: str, split: int | None) -> _Ready:
    world = _worlds[name]
    n, offers = len(world.instances), world.offers
    order = np.arange(n) if split is None else rng(split, "held out", 0).permutation(n)
    kept = 0 if split is None else round(HELD_OUT * n)
    rows, test = np.sort(order[kept:]), np.sort(order[:kept])
    part = world.instances.rows(rows)
    bank = Bank(
        world.layout,
        part.features(world.layout),
        part.paradigms or ("",) * len(part),
        offers=offers,
        outside={k: v[rows] for k, v in world.outside().items()},
    )
    extra = 0 if offers is None else len(offers)
    asked = bank.evaluator.columns(world.playable.features(world.layout)[test])
    playable = np.concatenate([rows, np.arange(n, n + extra)])
    return _Ready(world, playable, test, bank, asked)


class _Luck:
    """What becomes of plays: drawn for all instances at once, so that no policy changes it."""

    def __init__(self, task: Task, ready: _Ready) -> None:
        self._task, self._world = task, ready.world
        self._drawn: dict[int, Floats] = {}

    def outcome(self, instance: int, count: int, episode: int, failed: int = 0) -> float:
        """Outcome of an instance that was played some number of times before, after failures."""
        player, layout = self._task.player, self._world.layout
        succeeds = isinstance(layout.outcome, Bernoulli)
        if count not in self._drawn:
            generator = rng(self._task.seed, "outcome", count)
            if succeeds:
                self._drawn[count] = generator.random(len(player.before))
            else:
                assert player.theta is not None  # counts and scores are drawn by the layout
                agent = LayoutAgent(layout, player.theta)
                self._drawn[count] = agent.outcomes(self._world.playable, generator)
        value = self._drawn[count][instance]
        if not succeeds:
            return float(value)
        return float(value < player.probability(episode, failed)[instance])


def simulate(task: Task) -> Trajectory:
    """Play one session, with the learner that the service plays by."""
    # Splits of large batteries hardly differ; a few of them serve all seeds.
    few = 5 if len(_worlds[task.world].instances) > 1000 else 1_000_000
    ready = _ready(task.world, task.seed % few if task.held_out else None)
    bank, luck = ready.bank, _Luck(task, ready)
    policy = task.policy or Policy("random")
    learner = Learner(bank, policy, task.rule or ENDLESS, task.seed, fallback=task.fallback)
    own = int(np.count_nonzero(~bank.offered))
    order = rng(task.seed, "order", 0).permutation(own)
    plays = np.zeros(len(bank), np.int64)
    points: list[Point] = []
    end, settled_at, odds, failed = "", None, 0.0, 0
    last = min(task.checkpoints[-1], own if _once(task) else task.checkpoints[-1])
    if task.policy is None and task.in_blocks:
        played = 0
        for episode in (n for n in task.checkpoints if n <= last):
            rows = order[played:episode]
            numbers = range(played + 1, episode + 1)
            outcomes = [
                luck.outcome(int(ready.rows[row]), 0, number)
                for row, number in zip(rows, numbers, strict=True)
            ]
            learner.posterior.update_all(bank.features[rows], outcomes, played + 1)
            played = episode
            points.append(_point(task, ready, learner, episode))
        return Trajectory(task.player.name, "random order", task.seed, tuple(points), None, played)
    for episode in range(1, last + 1):
        if task.policy is None:
            row = int(order[episode - 1])
        else:
            choice = learner.ask(episode=episode)
            if choice is None:
                break
            row = choice.index
        instance = int(ready.rows[row])
        outcome = luck.outcome(instance, int(plays[row]), episode, failed)
        if task.rule is not None and task.player.theta is None:
            truth = task.player.probability(episode, failed)[instance]
            odds += _log_ratio(outcome, truth, _predict(learner, row))
        failed = 0 if outcome >= 0.5 else failed + 1
        learner.tell(bank.names[row], outcome, episode, random=task.policy is None or None)
        plays[row] += 1
        if episode in task.checkpoints:
            points.append(_point(task, ready, learner, episode))
        if task.rule is not None:
            settled_at = settled_at or (episode if learner.settled else None)
            verdict = learner.verdict()
            if verdict.stop:
                end = verdict.end or ""
                break
    return Trajectory(
        task.player.name,
        "random order" if task.policy is None else task.policy.name,
        task.seed,
        tuple(points),
        learner.raised_at,
        learner.n,
        _inside(task.player, learner),
        end,
        learner.contradicted,
        learner.doubted,
        task.rule is not None and learner.settled,
        settled_at,
        odds,
        () if task.rule is None else _sentences(task.player, learner),
    )


def _predict(learner: Learner, row: int) -> float:
    """What a learner expects of an instance."""
    posterior, evaluator = learner.posterior, learner.bank.evaluator
    columns = evaluator.columns(learner.bank.features[row : row + 1])
    expected = evaluator.by_instance(posterior.particles, columns, np.float64)[0]
    return float(portable.dot(expected, posterior.weights))


def _log_ratio(outcome: float, truth: float, expected: float) -> float:
    """Logarithm of how much likelier an outcome is by one probability than by another."""
    p, q = np.clip([truth, expected], 1e-4, 1.0 - 1e-4)
    return float(np.log(p / q if outcome else (1.0 - p) / (1.0 - q)))


def run_tasks(
    tasks: Iterable[Task],
    worlds: Mapping[str, World],
    seconds: float,
    done: Callable[[], object],
) -> list[Trajectory]:
    """Simulate sessions in two processes, in order, as many as the time allows.

    Args:
        tasks: The sessions.
        worlds: What their worlds are.
        seconds: After this no session is begun.
        done: Called after each.

    Returns:
        Those of a first part of the tasks, in their order.
    """
    end = time.monotonic() + seconds
    todo = iter(tasks)
    made: list[Future[Trajectory]] = []
    open_ones: set[Future[Trajectory]] = set()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # two processes share two cores
    with process_pool(WORKERS, use, dict(worlds)) as pool:
        while True:
            if time.monotonic() < end:
                for task in islice(todo, 2 * WORKERS - len(open_ones)):
                    made.append(pool.submit(simulate, task))
                    open_ones.add(made[-1])
            if not open_ones:
                return [future.result() for future in made]
            finished, open_ones = wait(open_ones, return_when=FIRST_COMPLETED)
            for _ in finished:
                done()


def use(worlds: Mapping[str, World]) -> None:
    """Let this process simulate sessions in these worlds."""
    global _worlds
    _worlds = worlds
    _ready.cache_clear()


def _once(task: Task) -> bool:
    return task.policy is None or (task.policy.exposures == 1 and not task.policy.generate)


def _point(task: Task, ready: _Ready, learner: Learner, episode: int) -> Point:
    layout, posterior = learner.layout, learner.posterior
    capabilities: Sequence[int] = layout.capabilities
    theta, weights = posterior.particles[:, list(capabilities)], posterior.weights
    spans = np.array([layout.latents[i].prior.span for i in capabilities])
    mean = portable.dot(weights, theta)
    sd = np.sqrt(portable.dot(weights, (theta - mean) ** 2))
    score = float("nan")
    if len(ready.test):
        p = task.player.probability(episode + 1)[ready.test]
        q: Floats = portable.dot(
            ready.bank.evaluator.by_instance(posterior.particles, ready.asked, np.float64), weights
        )
        score = float(np.mean(p * (1.0 - p) + (p - q) ** 2))
    return Point(
        episode,
        tuple((sd / spans).tolist()),
        tuple((mean / spans).tolist()),
        score,
        learner.contradicted,
    )


def _inside(player: Player, learner: Learner) -> tuple[bool, ...]:
    if player.theta is None:
        return ()
    pairs = zip(learner.summary(), player.theta, strict=True)
    return tuple(bool(node.hdi[0] <= value <= node.hdi[1]) for node, value in pairs)


def _sentences(player: Player, learner: Learner) -> tuple[Sentence, ...]:
    if player.theta is None:
        return ()
    layout, nodes, notes = learner.layout, learner.summary(), standing_of(learner).notes
    made: list[Sentence] = []
    for k in layout.capabilities:
        note = notes[nodes[k].name]
        if note.known:
            scale = scale_of(layout, k, learner.data().features)
            low, high = sorted(map(scale.said, scale.spanned(note, *nodes[k].hdi)))
            inside = low <= scale.said(float(player.theta[k])) <= high
            made.append(Sentence(note.leans, not inside))
    return tuple(made)
