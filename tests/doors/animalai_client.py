"""The policy in an unmodified `animalai`, Python 3.9 or later, which knows nothing of animalcat.

Plays until the environment has nothing more.
"""

from __future__ import annotations

import numpy as np
from animalai.environment import AnimalAIEnvironment
from mlagents_envs.base_env import ActionTuple
from mlagents_envs.exception import UnityCommunicatorStoppedException
from policy import NUMBERS, pair

RAYS = 5


def main(executable: str, port: str) -> None:
    """Play one episode after the other."""
    env = AnimalAIEnvironment(
        file_name=executable, base_port=int(port), useCamera=False, useRayCasts=True
    )
    try:
        [behaviour] = env.behavior_specs
        while True:
            env.reset()
            decision, terminal = env.get_steps(behaviour)
            while not len(terminal):
                [rays] = [one[0] for one in decision.obs if one[0].size == RAYS * NUMBERS]
                action = np.array([pair(rays)], dtype=np.int32)
                env.set_actions(behaviour, ActionTuple(discrete=action))
                env.step()
                decision, terminal = env.get_steps(behaviour)
    except UnityCommunicatorStoppedException:
        pass
    finally:
        env.close()
