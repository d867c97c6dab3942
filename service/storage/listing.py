"""Parts of lists: what is wanted of a store, page by page."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

from animalcat.service.model import Outcome, SessionState

T = TypeVar("T")


class BadPageError(ValueError):
    """The token of a page is none that a store gave."""


@dataclass(frozen=True, slots=True)
class Page:
    """Which part of a list is wanted.

    Attributes:
        limit: How many at most; 0: all that follow.
        after: `Listing.next` of the page before; empty: from the start.
    """

    limit: int = 0
    after: str = ""

    def __post_init__(self) -> None:
        if self.limit < 0:
            raise ValueError(f"limit {self.limit} is below 0")


class Listing(list[T]):
    """One page of a list.

    What is added or deleted while one turns the pages neither repeats nor hides anything else.

    Attributes:
        next: Token of the page that follows; empty where nothing follows.
    """

    def __init__(self, items: Iterable[T] = (), next_page: str = "") -> None:
        super().__init__(items)
        self.next = next_page


@dataclass(frozen=True, slots=True)
class SessionFilter:
    """Which sessions are wanted; what is empty does not matter.

    Attributes:
        agent: Name of the agent.
        battery: Id of the battery.
        states: One of these.
    """

    agent: str = ""
    battery: str = ""
    states: tuple[SessionState, ...] = ()


@dataclass(frozen=True, slots=True)
class CampaignFilter:
    """Which campaigns are wanted; what is empty does not matter.

    Attributes:
        battery: Id of the battery.
        going_on: Whether more is handed out; None: either.
    """

    battery: str = ""
    going_on: bool | None = None


@dataclass(frozen=True, slots=True)
class EpisodeFilter:
    """Which attempts are wanted; what is empty does not matter.

    Attributes:
        outcomes: One of these.
        over: Whether the attempt has ended; None: either.
    """

    outcomes: tuple[Outcome, ...] = ()
    over: bool | None = None
