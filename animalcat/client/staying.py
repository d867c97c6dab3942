"""Keeps an agent at a server: it comes back after whatever passes, and ends for what does not."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from animalcat.client.blocking_client import Client
from animalcat.client.evaluation import EvaluationSummary
from animalcat.errors import AnimalcatError

FIRST_PAUSE: Final = 1.0
"""Seconds before the first attempt to come back; each pause is twice the one before."""
LONGEST_PAUSE: Final = 60.0
"""Most seconds between two attempts, unless the server says when to come again."""
CALM_SECONDS: Final = 60.0
"""An attempt that lasted so long has gone well, and the pauses begin anew."""
LASTING: Final = frozenset(
    {
        *("NO_TOKEN", "BAD_TOKEN", "FORBIDDEN", "UNAUTHENTICATED", "PERMISSION_DENIED"),
        *("CLIENT_REFUSED", "UNIMPLEMENTED", "INVALID_NAME", "INVALID_REQUEST", "INVALID_ARGUMENT"),
        *("AGENT_MISMATCH", "AGENT_CHANGED", "OBSERVATION_MISMATCH", "UNKNOWN_SESSION"),
        *("SESSION_OVER", "ACTION_OUT_OF_RANGE", "TOO_MANY_BAD_FRAMES", "TOO_LARGE", "DISMISSED"),
        *("UNREADABLE", "NOT_COVERED", ""),
    }
)
"""Codes of errors that no waiting mends: somebody has to change what is asked, or by whom.

The empty one is of what is wrong on this side, such as a file that is not there.
"""


@dataclass(slots=True)
class Pauses:
    """Pauses that grow, and of which no two agents have the same.

    Attributes:
        chance: Returns a number from 0 to 1.
        next: The longest that the next pause can be, in seconds.
    """

    chance: Callable[[], float] = random.random
    next: float = FIRST_PAUSE

    def take(self, least: float | None = None) -> float:
        """Return the seconds of the next pause, from half of `next` to all of it.

        Args:
            least: Seconds that the server asks for; None if it asks for none.
        """
        pause = self.next * (1.0 + self.chance()) / 2.0
        self.next = min(2.0 * self.next, LONGEST_PAUSE)
        return max(pause, least or 0.0)

    def begin_anew(self) -> None:
        """Let the next pause be short again, since all went well meanwhile."""
        self.next = FIRST_PAUSE


@dataclass(slots=True)
class Wish:
    """Which session an agent that stays plays next.

    Attributes:
        name: The agent's name.
        session: The only session that it plays; empty for every one that is for its name.
        last: The one that it has played last.
        alone: Whether none was waiting the last time.
    """

    name: str
    session: str = ""
    last: str = ""
    alone: bool = False

    def choose(self, client: Client) -> str | None:
        """Return the session to play: the one that it has not ended, or the oldest that waits.

        One that is said to run comes last. A server that was killed may have left it so; if another
        agent plays it, the server refuses this one.
        """
        if self.session:
            return self.session
        going_on = [*client.sessions(agent=self.name, states=["waiting", "running"])]
        waiting = [session for session in going_on if session.state == "waiting"]
        mine = [session for session in going_on if session.id == self.last]
        left = going_on if self.alone else []  # an agent whose connection broke may be coming back
        self.alone = not waiting
        for found in (mine, waiting, left):
            if found:
                self.last = found[-1].id
                return self.last
        return None


@dataclass(slots=True)
class Stay:
    """An agent that stays.

    Attributes:
        play: Connects, and plays one session to its end.
        tell: Is called with why it waits, and for how many seconds.
        pauses: How long it waits.
        sleep: Waits for seconds.
        now: Clock in seconds that no one sets.
    """

    play: Callable[[], EvaluationSummary | None]
    tell: Callable[[str, float], None] = lambda words, seconds: None
    pauses: Pauses = field(default_factory=Pauses)
    sleep: Callable[[float], None] = time.sleep
    now: Callable[[], float] = time.monotonic

    def one(self) -> EvaluationSummary:
        """Play one session to its end, however often that has to be begun again.

        Raises:
            AnimalcatError: Something is wrong that no waiting mends.
            Exception: Whatever the agent's code raises.
        """
        while True:
            began = self.now()
            try:
                if (summary := self.play()) is not None:
                    self.pauses.begin_anew()
                    return summary
                words, least = "no session waits for this agent", None
            except AnimalcatError as error:
                if error.code in LASTING:
                    raise
                words, least = str(error), error.retry_seconds
            if self.now() - began >= CALM_SECONDS:
                self.pauses.begin_anew()
            pause = self.pauses.take(least)
            self.tell(words, pause)
            self.sleep(pause)

    def all(self) -> Iterable[EvaluationSummary]:
        """Play one session after another, without end; see `one`."""
        while True:
            yield self.one()
