"""Train a small policy through OpenEnv for two minutes, and let animalcat measure what it can.

    .clients/openenv/bin/python docker/openenv/examples/train.py --seconds 120 --measure

The policy reads the words that it is told: which way a green ball is felt, and which ways are
barred. It is a softmax over seven answers, trained by REINFORCE with a baseline. Nothing of it
knows of animalcat but the words.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import numpy as np
import numpy.typing as npt
from animalcat_openenv import AnimalcatAction, AnimalcatEnv

ANSWERS = ("Go(4)", "Go(1)", "Turn(30)", "Turn(-30)", "Turn(90)", "Turn(-90)", "Turn(180)")
DIRECTIONS = ("60° left", "30° left", "ahead", "30° right", "60° right")
FEELS = re.compile(r"(ahead|\d+° (?:left|right)) ([^;.]+?) at ([\d.]+) m")
Floats = npt.NDArray[np.float64]


def features(text: str) -> Floats:
    """What the words say: of each of five directions, whether food is there, a bar, and how near."""
    seen = np.zeros((len(DIRECTIONS), 3))
    for where, what, metres in FEELS.findall(text):
        near = 1.0 / (1.0 + float(metres))
        food = what in ("a green ball", "a yellow ball")
        seen[DIRECTIONS.index(where)] = [food, food * near, (not food) * near]
    return np.append(seen.ravel(), [seen[:, 0].any(), "something is in the way" in text, 1.0])


class Policy:
    """Probabilities of the answers, from the words."""

    def __init__(self, seed: int) -> None:
        self.weights = np.zeros((len(ANSWERS), len(features(""))))
        self.chance = np.random.default_rng(seed)

    def chances(self, seen: Floats) -> Floats:
        """The probability of each answer."""
        logits = self.weights @ seen
        odds = np.exp(logits - logits.max())
        return odds / odds.sum()

    def answer(self, text: str) -> tuple[str, Floats]:
        """An answer that is drawn, and what the weights gain by it (the gradient of its log)."""
        seen = features(text)
        chances = self.chances(seen)
        drawn = int(self.chance.choice(len(ANSWERS), p=chances))
        return ANSWERS[drawn], np.outer(np.eye(len(ANSWERS))[drawn] - chances, seen)


def train(env: AnimalcatEnv, policy: Policy, seconds: float, rate: float = 0.3) -> list[float]:
    """Play and learn until the time is up; return the rewards of all episodes."""
    rewards: list[float] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        result = env.reset(split="navigation", seed=len(rewards), tongue="script,answers=25,picture=0")
        gains: list[Floats] = []
        while not result.done:
            said, gain = policy.answer(result.observation.text)
            gains.append(gain)
            result = env.step(AnimalcatAction(answer=said))
        rewards.append(float(result.reward))
        # Early answers count for less in an episode that was passed late.
        worth = rewards[-1] - float(np.mean(rewards[-50:]))
        discounts = 0.95 ** np.arange(len(gains))[::-1]
        policy.weights += rate * worth * np.tensordot(discounts, gains, 1) / len(gains) ** 0.5
        if len(rewards) % 50 == 0:
            print(f"{len(rewards):5} episodes, the last fifty passed: {np.mean(rewards[-50:]):.0%}")
    return rewards


def measure(env: AnimalcatEnv, policy: Policy) -> int:
    """Play a session to its end; return how many episodes it had."""
    for episodes in range(10_000):
        result = env.reset()
        if result.done:
            return episodes
        while not result.done:
            said, _ = policy.answer(result.observation.text)
            result = env.step(AnimalcatAction(answer=said))
    raise RuntimeError("the session does not end")


@contextmanager
def running(*command: str, ready: str) -> Iterator[None]:
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
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
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
            connect = ("--connect", lab.address, "--session", session.id)
            with running(*serve, *connect, ready=f"{url}/health"):
                with AnimalcatEnv(base_url=url).sync() as env:
                    played = measure(env, one)
            print(f"\n{name}: session {session.id}, {played} episodes, data in {folder}")
            show = [str(bin_ / "animalcat"), "profile", "show", session.id, "--data", str(folder)]
            subprocess.run(show, check=True)


if __name__ == "__main__":
    main()
