"""Describes lists of the store: which items are wanted, and which page of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

from animalcat.values import Outcome, SessionState

T = TypeVar("T")


class BadPageError(ValueError):
    """The token of a page did not come from the store."""


@dataclass(frozen=True, slots=True)
class Page:
    """Which page of a list is wanted.

    Attributes:
        limit: Most items of the page; 0 for all items that follow.
        after: The `Listing.next` of the previous page; empty for the first page.
    """

    limit: int = 0
    after: str = ""

    def __post_init__(self) -> None:
        if self.limit < 0:
            raise ValueError(f"limit {self.limit} is below 0")


class Listing(list[T]):
    """One page of a list.

    Items that are added or deleted between two pages cause no other item to be repeated or left
    out.

    Attributes:
        next: Token of the next page; empty on the last page.
    """

    def __init__(self, items: Iterable[T] = (), next_page: str = "") -> None:
        super().__init__(items)
        self.next = next_page


@dataclass(frozen=True, slots=True)
class WhoseFilter:
    """Which items are wanted, by whose they are; an empty field accepts all.

    Attributes:
        owner: Subject of the owner.
        mine: The same, and of batteries and layouts also what belongs to nobody.
        seen_by: Subject of the caller who may see only what is its own, and batteries and layouts
            that belong to nobody; None for one who may see everything.
    """

    owner: str = ""
    mine: str = ""
    seen_by: str | None = None

    def takes(self, owner: str, *, common: bool) -> bool:
        """Return whether an item is wanted.

        Args:
            owner: Subject to whom it belongs; empty for nobody.
            common: Whether all may see what belongs to nobody.
        """
        ownerless = common and not owner
        if self.owner not in ("", owner) or (self.mine not in ("", owner) and not ownerless):
            return False
        return self.seen_by is None or ownerless or (bool(owner) and owner == self.seen_by)


@dataclass(frozen=True, slots=True)
class SessionFilter:
    """Which sessions are wanted; an empty field accepts all.

    Attributes:
        agent: Name of the agent.
        battery: Id of the battery.
        states: The states that are accepted.
        whose: To whom they belong, and who asks.
    """

    agent: str = ""
    battery: str = ""
    states: tuple[SessionState, ...] = ()
    whose: WhoseFilter = WhoseFilter()


@dataclass(frozen=True, slots=True)
class CampaignFilter:
    """Which campaigns are wanted; an empty field accepts all.

    Attributes:
        battery: Id of the battery.
        whose: To whom they belong, and who asks.
    """

    battery: str = ""
    whose: WhoseFilter = WhoseFilter()


@dataclass(frozen=True, slots=True)
class EpisodeFilter:
    """Which attempts are wanted; an empty field accepts all.

    Attributes:
        outcomes: The outcomes that are accepted.
        over: Whether the attempt has ended; None to accept both.
        number: Number of the episode; None to accept all.
    """

    outcomes: tuple[Outcome, ...] = ()
    over: bool | None = None
    number: int | None = None
