"""Loops as code for `animalai` 6 has them, which know nothing of animalcat.

    python animalai_loop.py {reset|restart|gymnasium|leave|wait} EXECUTABLE PORT [KEY=VALUE ...]

Plays the package's Braitenberg agent until the environment has nothing more, and prints one line
of JSON for every episode, and one for what ended it. `leave` breaks the first episode off by a
reset, `wait` stops within it until it is killed. KEY=VALUE go to the environment.
"""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterator
from typing import Any

from animalai.agents.braitenberg import Braitenberg
from animalai.environment import AnimalAIEnvironment
from animalai.wrappers import AnimalAIGymnasiumWrapper
from mlagents_envs.exception import UnityCommunicatorStoppedException

RAYS = 5
LEFT_AFTER = 4

Episode = dict[str, float]


def printed_episode(rewards: list[float]) -> Episode:
    """An episode as it is printed."""
    return {"return": sum(rewards), "steps": len(rewards)}


def episode(env: AnimalAIEnvironment, most: int = sys.maxsize) -> Episode:
    """Play from the decision that is due to the end of the episode."""
    [behaviour] = env.behavior_specs
    agent, rewards = Braitenberg(RAYS), list[float]()
    decision, terminal = env.get_steps(behaviour)
    while not len(terminal) and len(rewards) < most:
        seen = env.get_obs_dict(decision.obs)
        env.set_actions(behaviour, agent.get_action(seen["rays"]).action_tuple)
        env.step()
        decision, terminal = env.get_steps(behaviour)
        rewards.append(float((terminal if len(terminal) else decision).reward[0]))
    return printed_episode(rewards)


def by_reset(env: AnimalAIEnvironment) -> Iterator[Episode]:
    """A reset before every episode."""
    while True:
        env.reset()
        yield episode(env)


def by_restart(env: AnimalAIEnvironment) -> Iterator[Episode]:
    """Steps alone: one episode follows upon the other."""
    while True:
        yield episode(env)
        env.step()


def by_leaving(env: AnimalAIEnvironment) -> Iterator[Episode]:
    """The first episode is given up."""
    yield episode(env, LEFT_AFTER)
    yield from by_reset(env)


def by_waiting(env: AnimalAIEnvironment) -> Iterator[Episode]:
    """The first episode is begun."""
    yield episode(env, LEFT_AFTER)
    signal.pause()


def by_gymnasium(env: AnimalAIEnvironment) -> Iterator[Episode]:
    """Through the package's own wrapper."""
    wrapped = AnimalAIGymnasiumWrapper(env)
    while True:
        seen, _ = wrapped.reset(seed=3)
        agent, rewards, done = Braitenberg(RAYS), list[float](), False
        while not done:
            [action] = agent.get_action(seen["rays"]).action_tuple.discrete
            seen, reward, terminated, truncated, _ = wrapped.step(action)
            rewards.append(reward)
            done = terminated or truncated
        yield printed_episode(rewards)


LOOPS = {
    "reset": by_reset,
    "restart": by_restart,
    "leave": by_leaving,
    "wait": by_waiting,
    "gymnasium": by_gymnasium,
}


def main(loop: str, executable: str, port: str, *settings: str) -> None:
    """Play until there is nothing more."""
    options: dict[str, Any] = {"useCamera": False, "useRayCasts": True}
    options |= {key: json.loads(value) for key, value in (s.split("=", 1) for s in settings)}
    env = AnimalAIEnvironment(file_name=executable, base_port=int(port), **options)
    try:
        for one in LOOPS[loop](env):
            print(json.dumps(one), flush=True)
    except UnityCommunicatorStoppedException as stopped:
        print(json.dumps({"ended": type(stopped).__name__}))
    finally:
        env.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
