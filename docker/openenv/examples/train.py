"""Train a small policy through OpenEnv for two minutes, and let animalcat measure what it can.

    .clients/openenv/bin/python docker/openenv/examples/train.py --seconds 120 --measure

The policy reads the words that it is told: in which direction the nearest food is felt, and whether
the way ahead is barred. It is a table of what seven answers are worth in each of twelve cases,
learned by Q-learning. Nothing of it knows of animalcat but the words.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import numpy as np
from animalcat_openenv import (
    AnimalcatAction,
    AnimalcatEnv,
    AnimalcatObservation,
    AnimalcatState,
)
from openenv.core.sync_client import SyncEnvClient

ANSWERS = ("Go(4)", "Go(1)", "Turn(30)", "Turn(-30)", "Turn(90)", "Turn(-90)", "Turn(180)")
DIRECTIONS = ("60° left", "30° left", "ahead", "30° right", "60° right")
FEELS = re.compile(r"(ahead|\d+° (?:left|right)) ([^;.]+?) at ([\d.]+) m")
Env = SyncEnvClient[AnimalcatAction, AnimalcatObservation, AnimalcatState]
FOOD = ("a green ball", "a yellow ball")
TONGUE = "script,answers=25,picture=0"


def case(text: str) -> int:
    """What the words say, as one of twelve cases: where the nearest food is, and a bar."""
    felt = [(where, what, float(metres)) for where, what, metres in FEELS.findall(text)]
    food = [(metres, DIRECTIONS.index(where)) for where, what, metres in felt if what in FOOD]
    barred = any(where == "ahead" and metres < 3 for where, _, metres in felt)
    return 2 * (min(food)[1] if food else len(DIRECTIONS)) + barred


class Policy:
    """What each answer is worth in each case."""

    def __init__(self, seed: int) -> None:
        self.worth = np.full((2 * len(DIRECTIONS) + 2, len(ANSWERS)), 0.3)
        self.tried = np.zeros_like(self.worth)
        self.chance = np.random.default_rng(seed)

    def answer(self, text: str, curiosity: float = 0.02) -> int:
        """The best answer as far as it is known, or with some probability any."""
        if self.chance.random() < curiosity:
            return int(self.chance.integers(len(ANSWERS)))
        worth = self.worth[case(text)]
        return int(np.argmax(worth + 1e-6 * self.chance.random(len(worth))))

    def learn(self, before: str, answer: int, reward: float, after: str, done: bool) -> None:
        """Take in what an answer has led to (Q-learning, Watkins 1989; discount 0.9)."""
        place = case(before), answer
        self.tried[place] += 1
        target = reward if done else 0.9 * self.worth[case(after)].max()
        rate = max(0.03, self.tried[place] ** -0.7)
        self.worth[place] += rate * (target - self.worth[place])


def train(env: Env, policy: Policy, seconds: float) -> list[float]:
    """Play and learn until the time is up; return the rewards of all episodes."""
    rewards: list[float] = []
    began = time.monotonic()
    while (spent := (time.monotonic() - began) / seconds) < 1:
        result = env.reset(split="navigation", seed=len(rewards), tongue=TONGUE)
        while not result.done:
            before = result.observation.text
            answer = policy.answer(before, 0.02 + 0.3 * (1 - spent))
            result = env.step(AnimalcatAction(answer=ANSWERS[answer]))
            after = result.observation.text
            policy.learn(before, answer, result.reward or 0.0, after, result.done)
        rewards.append(result.reward or 0.0)
        if len(rewards) % 100 == 0:
            share = np.mean(rewards[-100:])
            print(f"{len(rewards):5} episodes, the last hundred passed: {share:.0%}")
    return rewards


def measure(env: Env, policy: Policy) -> int:
    """Play a session to its end; return how many episodes it had."""
    for episodes in range(10_000):
        result = env.reset()
        if result.done:
            return episodes
        while not result.done:
            answer = policy.answer(result.observation.text)
            result = env.step(AnimalcatAction(answer=ANSWERS[answer]))
    raise RuntimeError("the session does not end")


@contextmanager
def running(*command: str, ready: str) -> Generator[None]:
    """A server, from when it answers until the block ends."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            for _ in range(600):
                if server.poll() is not None:
                    raise RuntimeError(f"{command[0]} ended with {server.returncode}")
                try:
                    urlopen(ready, timeout=1)
                    break
                except URLError:
                    time.sleep(0.2)
            yield
        finally:
            server.terminate()


def main() -> None:
    """Train, and let both the trained and the untrained policy be measured."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--measure", action="store_true", help="in a session of 30 episodes each")
    parser.add_argument("--episodes", type=int, default=30, help="of each session")
    given = parser.parse_args()
    bin_ = Path(sys.executable).parent
    url = f"http://127.0.0.1:{given.port}"
    serve = (str(bin_ / "animalcat-openenv"), "--port", str(given.port))
    policy = Policy(given.seed)
    with running(*serve, ready=f"{url}/health"), AnimalcatEnv(base_url=url).sync() as env:
        rewards = train(env, policy, given.seconds)
    print(f"{len(rewards)} episodes; passed of the first fifty {np.mean(rewards[:50]):.0%}, of the "
          f"last fifty {np.mean(rewards[-50:]):.0%}")  # fmt: skip
    if not given.measure:
        return
    import animalcat

    folder = Path(tempfile.mkdtemp(prefix="animalcat-openenv-"))
    untrained = Policy(given.seed)
    with animalcat.local(folder) as lab:
        for name, one in (("untrained", untrained), ("trained", policy)):
            session = lab.create_session(
                agent=name, battery="navigation", layout="aaio", max_episodes=given.episodes, seed=1
            )
            connect = ("--connect", lab.address, "--session", session.id, "--tongue", TONGUE)
            with (
                running(*serve, *connect, ready=f"{url}/health"),
                AnimalcatEnv(base_url=url).sync() as env,
            ):
                played = measure(env, one)
            print(f"\n{name}: session {session.id}, {played} episodes, data in {folder}")
            show = [str(bin_ / "animalcat"), "profile", "show", session.id, "--data", str(folder)]
            subprocess.run(show, check=True)


if __name__ == "__main__":
    main()
