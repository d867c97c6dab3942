"""Drives an unmodified `animalai` environment by a plan, and writes down what it saw.

Runs in the client's own interpreter, Python 3.9 or later, and knows nothing of animalcat:

    python drive.py PLAN.json SEEN.npz

The plan holds `environment` (keyword arguments of `AnimalAIEnvironment`), `commands` (each
`["step", move, turn]`, `["reset", path]`, where an empty path sends no new arenas, or
`["wait", path]`, until there is such a file; beginning to wait makes a file PATH.waiting) and, for
tests of bad input, what to change in this process: `patch`, attributes of `UnityEnvironment`, and
`package_version`.
Prints one line of JSON: versions, behaviours, and the exception that ended it, if any.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from typing import Any

import mlagents_envs
import mlagents_envs.environment
import numpy as np
from animalai.environment import AnimalAIEnvironment
from mlagents_envs.base_env import ActionTuple
from mlagents_envs.environment import UnityEnvironment


class Diary:
    """What came of each command: arrays of `animalai`'s decision and terminal steps."""

    def __init__(self) -> None:
        self.arrays: dict[str, Any] = {}
        self.count = 0

    def note(self, env: AnimalAIEnvironment, behaviour: str) -> None:
        """Write down the message that the environment holds now."""
        decision, terminal = env.get_steps(behaviour)
        for kind, steps in (("decision", decision), ("terminal", terminal)):
            for row in range(len(steps)):
                name = f"{self.count}/{kind}/{row}"
                self.arrays[f"{name}/reward"] = steps.reward[row]
                self.arrays[f"{name}/agent_id"] = steps.agent_id[row]
                for index, sensor in enumerate(steps.obs):
                    self.arrays[f"{name}/obs/{index}"] = sensor[row]
        for row in range(len(terminal)):
            self.arrays[f"{self.count}/terminal/{row}/interrupted"] = terminal.interrupted[row]
        self.count += 1


def command(env: AnimalAIEnvironment, behaviour: str, verb: str, *values: Any) -> None:
    """Do one command of the plan."""
    if verb == "reset":
        env.reset(*values)
        return
    if verb == "wait":
        open(f"{values[0]}.waiting", "w").close()
        while not os.path.exists(values[0]):
            time.sleep(0.05)
        return
    awaiting = len(env.get_steps(behaviour)[0])
    if awaiting:
        actions = np.array([values] * awaiting, dtype=np.int32)
        env.set_actions(behaviour, ActionTuple(discrete=actions))
    env.step()


def facts(env: AnimalAIEnvironment) -> dict[str, Any]:
    """The behaviours as the client understands them."""
    return {
        name: {
            "branches": [int(size) for size in spec.action_spec.discrete_branches],
            "continuous": spec.action_spec.continuous_size,
            "names": [sensor.name for sensor in spec.observation_specs],
            "shapes": [list(sensor.shape) for sensor in spec.observation_specs],
        }
        for name, spec in env.behavior_specs.items()
    }


def main(plan_path: str, seen_path: str) -> None:
    """Play the plan to its end, or to the first exception."""
    with open(plan_path) as file:
        plan = json.load(file)
    for name, value in plan.get("patch", {}).items():
        setattr(UnityEnvironment, name, value)
    if "package_version" in plan:
        mlagents_envs.__version__ = plan["package_version"]
    diary, env = Diary(), None
    report: dict[str, Any] = {
        "python": sys.version.split()[0],
        "package": mlagents_envs.__version__,
    }
    try:
        env = AnimalAIEnvironment(**plan["environment"])
        report["behaviours"] = facts(env)
        (behaviour,) = env.behavior_specs
        diary.note(env, behaviour)
        for verb, *values in plan["commands"]:
            command(env, behaviour, verb, *values)
            diary.note(env, behaviour)
    except Exception as error:  # noqa: BLE001  whatever a user would have got
        report["error"] = [type(error).__name__, str(error)]
    finally:
        # Without a close the client library hangs at exit.
        if env is not None:
            process = env._process
            env.close()
            report["returncode"] = process.returncode if process else None
    np.savez(seen_path, **diary.arrays)
    print(json.dumps(report))


if __name__ == "__main__":
    # A shell that starts tests in the background has its children ignore Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    main(*sys.argv[1:])
