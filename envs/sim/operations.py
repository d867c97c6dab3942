"""Operations: what spawner buttons and data zones do (reference/animal-ai.md section 1.6)."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final, Protocol

from animalcat.arena_configs.model import (
    AnyOperation,
    EndEpisode,
    FreezeAgent,
    GrantContinuousReward,
    GrantReward,
    Item,
    LimitedInvocations,
    NoneOperation,
    OperationFromList,
    ToggleObject,
    Vector3,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from animalcat.arena_configs.draws import Draws
    from animalcat.arena_configs.placement import PlacedObject
    from animalcat.envs.sim.journal import Journal
    from animalcat.envs.sim.rules import EpisodeState
    from animalcat.envs.sim.stage import Prop

_ANYWHERE: Final = Vector3(x=-1.0, y=0.0, z=-1.0)
_GRANTED: Final = "End Episode Operation"
"""What a build's log calls the reward of grantReward, too (its sources)."""


class Host(Protocol):
    """What operations act on."""

    episode: EpisodeState
    rng: Draws
    journal: Journal

    def spawn_item(self, item: Item) -> list[Prop]:
        """Spawn the copies of an item that find room."""
        ...

    def despawn(self, prop: Prop) -> None:
        """Remove an object."""
        ...

    def halt(self) -> None:
        """Set the agent's speed to 0."""
        ...


class Effect:
    """An operation in action; most act only when they are executed."""

    def execute(self) -> None:
        """Act when the agent enters or presses."""

    def step(self) -> None:
        """Act in a physics step with the agent present, including that of `execute`."""

    def complete(self) -> None:
        """Finish when the agent leaves."""


def effect(operation: AnyOperation, host: Host, owner: PlacedObject) -> Effect:
    """Make an operation's effect, with new counts and toggles.

    Args:
        operation: The operation as data.
        host: What it acts on.
        owner: The button or zone that it belongs to.
    """
    match operation:
        case ToggleObject():
            return _ToggleEffect(operation, host, owner)
        case LimitedInvocations(operation=inner, max_invocations=limit):
            limited = effect(inner, host, owner) if inner is not None else Effect()
            return _LimitedEffect(limited, limit)
        case OperationFromList(operations=operations, operation_weights=weights):
            effects = [effect(part, host, owner) for part in operations]
            return _ChoiceEffect(effects, weights, host.rng)
        case NoneOperation():
            return Effect()
        case _:
            return _SimpleEffect(operation, host)


def button_operations(item: Item) -> tuple[AnyOperation, ...]:
    """A button's operations: those given, and its older fields expressed as operations.

    The older fields become a choice by weight among the rewards, each limited by its count; and,
    unless `spawnProbability` is 1, a choice between that and nothing.
    """
    if not item.reward_names:
        return item.operations
    place, size = item.reward_spawn_pos, item.spawned_reward_size
    at = _ANYWHERE if place is None or (place.x, place.y, place.z) == (0.0, 0.0, 0.0) else place
    rewards: list[AnyOperation] = []
    for index, name in enumerate(item.reward_names):
        reward: AnyOperation = ToggleObject(
            spawnable=Item(name=name, positions=(at,), sizes=(size or Vector3(x=1, y=1, z=1),)),
            spawn_and_forget=True,
        )
        if index < len(item.max_reward_counts) and item.max_reward_counts[index] >= 0:
            limit = item.max_reward_counts[index]
            reward = LimitedInvocations(max_invocations=limit, operation=reward)
        rewards.append(reward)
    chosen = OperationFromList(operations=tuple(rewards), operation_weights=item.reward_weights)
    chance = item.spawn_probability
    if chance is None or chance == 1.0:
        return (*item.operations, chosen)
    either = OperationFromList(
        operations=(chosen, NoneOperation()), operation_weights=(chance, 1.0 - chance)
    )
    return (*item.operations, either)


class _SimpleEffect(Effect):
    """Grants rewards, ends the episode, or freezes the agent."""

    def __init__(self, operation: AnyOperation, host: Host) -> None:
        self._operation, self._host = operation, host

    def execute(self) -> None:
        match self._operation:
            case GrantReward(reward=reward):
                self._host.journal.collect(_GRANTED, reward)
                self._host.episode.grant(reward)
            case EndEpisode(reward=reward):
                self._host.journal.collect(_GRANTED, reward)
                self._host.episode.grant(reward, completes=True)
            case FreezeAgent(freeze_steps=steps):
                self._host.episode.freeze(steps)
                self._host.halt()
            case _:
                pass

    def step(self) -> None:
        if isinstance(self._operation, GrantContinuousReward):
            self._host.episode.grant(self._operation.reward_per_step)


class _ToggleEffect(Effect):
    """Spawns and removes an item in turn; one without room is not spawned, and its turn is over."""

    def __init__(self, operation: ToggleObject, host: Host, owner: PlacedObject) -> None:
        self._host, self._item, self._owner = host, operation.spawnable, owner
        self._forget = operation.spawn_and_forget
        self._present = operation.object_initially_present
        self._props: list[Prop] = []
        if self._present:
            self._spawn()

    def execute(self) -> None:
        if self._forget:
            self._props.clear()
            self._spawn()
            return
        if self._present:
            for prop in self._props:
                self._host.despawn(prop)
            self._props.clear()
        else:
            self._spawn()
        self._present = not self._present

    def _spawn(self) -> None:
        if self._item is None:
            return
        for prop in self._host.spawn_item(self._item):
            self._host.journal.operate(self._owner, prop.thing)
            self._props.append(prop)


class _LimitedEffect(Effect):
    def __init__(self, inner: Effect, limit: int) -> None:
        self._inner, self._left = inner, limit
        self._running = False

    def execute(self) -> None:
        self._running = self._left != 0
        if self._running:
            self._left -= 1
            self._inner.execute()

    def step(self) -> None:
        if self._running:
            self._inner.step()

    def complete(self) -> None:
        if self._running:
            self._inner.complete()
        self._running = False


class _ChoiceEffect(Effect):
    """One of several operations: the first whose cumulative weight reaches a uniform draw."""

    def __init__(self, effects: Sequence[Effect], weights: Sequence[float], rng: Draws) -> None:
        self._effects, self._rng = effects, rng
        given = list(weights)[: len(effects)] or [1.0] * len(effects)
        self._sums = list(itertools.accumulate(given))
        self._chosen = Effect()

    def execute(self) -> None:
        if not self._sums:
            return
        draw = float(self._rng.uniform(0.0, max(0.0, self._sums[-1])))
        reached = (index for index, total in enumerate(self._sums) if total >= draw)
        self._chosen = self._effects[next(reached, 0)]
        self._chosen.execute()

    def step(self) -> None:
        self._chosen.step()

    def complete(self) -> None:
        self._chosen.complete()
        self._chosen = Effect()
