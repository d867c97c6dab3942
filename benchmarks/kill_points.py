"""The moments at which `python -m benchmarks kill` strikes, and the plan that spreads them."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

Target = Literal["server", "worker", "agent", "conductor", "database"]
Blow = Literal["kill", "stop"]
"""SIGKILL, or SIGSTOP and after a while SIGCONT."""

PLAYING: Final = ("start", "step", "acted", "end")
"""Moments that the agent knows: an episode has begun, before an action, after it was sent, and once
the end of the episode was told."""
STORING: Final = (
    *("before open_episode", "commit of open_episode", "after open_episode"),
    *("before finish_recording", "after finish_recording"),
    *("before finish_episode", "commit of finish_episode", "after finish_episode"),
)
"""Moments within the server: around the two writes of an episode, just before each is committed,
and around the end of the recording (`finish_recording`)."""
OUTSIDE: Final = tuple(moment for moment in STORING if not moment.startswith("commit"))

MOMENTS: Final[Mapping[Target, Sequence[str]]] = {
    "server": (*PLAYING, *STORING),
    "worker": PLAYING,
    "agent": PLAYING,
    "conductor": PLAYING,
    "database": (*PLAYING, *OUTSIDE),
}
"""When each target may be struck."""
MOST_STEP: Final = 5
"""Latest decision at which the moments of a step are placed; episodes have more."""


@dataclass(frozen=True, slots=True)
class Point:
    """One blow.

    Attributes:
        target: Which process it meets.
        blow: What happens to it.
        moment: When, one of `MOMENTS[target]`.
        episode: Number of the episode.
        step: Decisions taken in it, for the moments `step` and `acted`; else 0.
    """

    target: Target
    blow: Blow
    moment: str
    episode: int
    step: int = 0

    def meets(self, moment: str, episode: int, step: int) -> bool:
        """Return whether its moment has come."""
        return (moment, episode) == (self.moment, self.episode) and step >= self.step


def plan(
    number: int, first: int, last: int, seed: int, kills: Sequence[Target]
) -> list[list[Point]]:
    """Spread points over targets, blows, moments and episodes.

    An episode is struck once at most: an agent that voids an episode twice fails it by the rules,
    which is another outcome than that of the undisturbed session.

    Args:
        number: How many points.
        first: First episode that may be struck.
        last: Last one.
        seed: Of the order, the episodes and the steps.
        kills: Targets that can be killed; others are only stopped.

    Returns:
        The points of each session. A session with a conductor is struck at that alone, because
        conductors have an agent and a server of their own.
    """
    rng = random.Random(seed)
    kinds: list[tuple[Target, Blow, str]] = [
        (target, blow, moment)
        for target, moments in MOMENTS.items()
        for blow in ("kill", "stop")
        for moment in moments
        if blow == "stop" or target in kills
    ]
    drawn: list[tuple[Target, Blow, str]] = []
    while len(drawn) < number:
        rng.shuffle(kinds)
        drawn += kinds
    del drawn[number:]
    places = range(first, last + 1)
    sessions: list[list[Point]] = []
    for alone in (False, True):
        chosen = [kind for kind in drawn if (kind[0] == "conductor") is alone]
        for start in range(0, len(chosen), len(places)):
            part = chosen[start : start + len(places)]
            episodes = sorted(rng.sample(places, len(part)))
            sessions.append(
                [
                    Point(
                        *kind, episode, rng.randint(0, MOST_STEP) if kind[2] in PLAYING[1:3] else 0
                    )
                    for kind, episode in zip(part, episodes, strict=True)
                ]
            )
    return sessions
