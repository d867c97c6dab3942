"""Lets `animalai`'s own agents play, in the loop of its documentation; prints what came of it.

python agents.py {braitenberg|random} EXECUTABLE PORT ARENA EPISODES
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from animalai.environment import AnimalAIEnvironment

RAYS = 15


def braitenberg() -> Callable[[Any], Any]:
    """Goes where the rays show food."""
    from animalai.agents.braitenberg import Braitenberg

    agent = Braitenberg(RAYS)
    return lambda seen: agent.get_action(seen["rays"]).action_tuple


def random() -> Callable[[Any], Any]:
    """Repeats an action for a while, then draws another."""
    from animalai.actions import AAIActions
    from animalai.agents.randomActionAgent import RandomActionAgent

    np.random.seed(3)
    agent, queue = RandomActionAgent(max_step_length=5), []

    def act(seen: Any) -> Any:
        if not queue:
            queue.extend(agent.get_num_steps(agent.get_new_action(AAIActions().NOOP)))
        return queue.pop().action_tuple

    return act


def main(name: str, executable: str, port: str, arena: str, episodes: str) -> None:
    """Play, and print the return and the number of steps of every episode."""
    act = {"braitenberg": braitenberg, "random": random}[name]()
    env = AnimalAIEnvironment(
        file_name=executable,
        base_port=int(port),
        arenas_configurations=arena,
        useCamera=False,
        useRayCasts=True,
        raysPerSide=RAYS // 2,
        rayMaxDegrees=100,
    )
    played = []
    try:
        behaviour = next(iter(env.behavior_specs))
        for _ in range(int(episodes)):
            env.step()  # to the first decision, as in animalai's own examples
            decision, terminal = env.get_steps(behaviour)
            total, steps = 0.0, 0
            while True:
                env.set_actions(behaviour, act(env.get_obs_dict(decision.obs)))
                env.step()
                steps += 1
                decision, terminal = env.get_steps(behaviour)
                if len(terminal):
                    played.append({"return": total + float(terminal.reward[0]), "steps": steps})
                    break
                total += float(decision.reward[0])
    finally:
        env.close()
    print(json.dumps(played))


if __name__ == "__main__":
    main(*sys.argv[1:])
