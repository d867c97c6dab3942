"""Where the agents of a campaign run besides processes of this machine: on what a door knows."""

from __future__ import annotations

from typing import Protocol

from animalcat.cli.shared.output import fail
from animalcat.client import Client
from animalcat.extending.doorways import entries
from animalcat.values import Session


class Running(Protocol):
    """An agent that runs somewhere, as `animalcat.apart.process.AgentProcess` does here."""

    @property
    def note(self) -> str:
        """What is to be said of how it runs; empty for nothing."""
        ...

    @property
    def ended(self) -> bool:
        """Whether its process has ended."""
        ...

    @property
    def how(self) -> str:
        """How it ended, in words."""
        ...

    def close(self) -> None:
        """End it if it still runs."""
        ...

    def output(self) -> str:
        """Return the last lines that it printed."""
        ...


class Hosts(Protocol):
    """Machines that run agents."""

    def check(self, server: str, agents: int) -> None:
        """End the command where so many agents have no room or no way to the server."""
        ...

    def start(
        self, client: Client, session: Session, reference: str, *, same_agent: bool
    ) -> Running:
        """Start the agent of a session."""
        ...

    def close(self) -> None:
        """Leave them."""
        ...


def hosts(where: str, address: str, cpus: float, gpus: float) -> Hosts:
    """Join machines that run agents; ends the command where that is not possible.

    Args:
        where: The name by which a door adds them.
        address: Where they are.
        cpus: What each agent needs.
        gpus: What each agent needs.
    """
    way = entries("hosts").get(where)
    if way is None:
        fail(f"agents cannot run on {where}: the door that knows it was taken away")
    return way.load()(address, cpus, gpus)
