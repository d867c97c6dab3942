"""A campaign: several agents on one battery, each of which plays as many episodes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from animalcat.text import names
from animalcat.text.ranges import Range, check_ranges
from animalcat.text.showing import table_html
from animalcat.values.sessions import Session, SessionSpec

MAX_TAKE = 1_000_000
"""Largest number that tells apart campaigns that are otherwise the same."""


@dataclass(frozen=True, slots=True)
class CampaignSpec:
    """Everything that defines a campaign: several agents on one battery.

    Attributes:
        agents: Names of the agents, at least two and all different.
        session: Specification of their sessions, except for the agent and for what the campaign
            sets itself: the list of instances that come first, and the stopping rule.
        budget: Episodes of all agents together; each plays an equal share of them.
        common: Number of random instances that all agents play first, the same for all.
        take: Which of all that are otherwise the same, from 1.
    """

    agents: tuple[str, ...]
    session: SessionSpec
    budget: Annotated[int, Range(1)]
    common: Annotated[int, Range(1)] = 12
    take: Annotated[int, Range(1, MAX_TAKE)] = 1

    def __post_init__(self) -> None:
        check_ranges(self)

    @property
    def share(self) -> int:
        """Episodes of each agent."""
        return self.budget // len(self.agents)


@dataclass(frozen=True, slots=True, repr=False)
class Campaign:
    """Several agents on one battery.

    Attributes:
        id: Names it in commands and calls.
        spec: What it was made with.
        sessions: Its sessions, in the order of the agents; none in lists, which say how far they
            are.
        unreadable: Why its record cannot be read; empty if it can.
        created: When, in UTC.
        episodes: Episodes of all agents that counted.
        over: Whether no further episode will follow in any of its sessions.
        owner: Subject to whom it belongs, as its sessions do; empty where there is none.
    """

    id: str
    spec: CampaignSpec
    sessions: tuple[Session, ...]
    unreadable: str
    created: datetime
    episodes: int = 0
    over: bool = False
    owner: str = ""

    @property
    def name(self) -> str:
        """Resource name, "campaigns/{id}"."""
        return names.campaign_name(self.id)

    @property
    def about(self) -> str:
        """How many agents it has, on which battery, and how far it is, in a line."""
        session = self.spec.session
        return (
            f"{self.id}: {len(self.spec.agents)} agents on {session.battery}, {self.episodes} of "
            f"{self.spec.budget} episodes"
        )

    def __repr__(self) -> str:
        return f"<Campaign {self.about}>"

    def _repr_html_(self) -> str:
        rows = [(s.spec.agent, s.id, s.state, s.episodes, s.successes) for s in self.sessions]
        return table_html(("agent", "session", "state", "episodes", "passed"), rows, self.about)
