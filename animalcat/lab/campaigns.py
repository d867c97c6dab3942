"""Several agents on one battery, measured and compared from Python."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from animalcat.errors import AnimalcatError
from animalcat.lab.agents import GivenAgent
from animalcat.lab.progress import Progress
from animalcat.lab.result import Result
from animalcat.text.showing import line_html, stacked_html
from animalcat.values import Campaign

if TYPE_CHECKING:
    from animalcat.apart import Bounds
    from animalcat.client import AsyncClient, Client
    from animalcat.service.reporting.comparison import Comparison

_LOOK_SECONDS: Final = 0.5
"""How often it is looked how far the campaign is."""


class CampaignResult(Mapping[str, Result]):
    """What a campaign found out: the result of each agent by its name, and how they compare.

    At the end of a notebook's cell it shows ranks and differences.

    Attributes:
        campaign: The campaign, as it stood when this was made.
    """

    def __init__(self, lab: Client, campaign: Campaign) -> None:
        """Make the result of a campaign, also of one that goes on.

        Args:
            lab: Where it is kept.
            campaign: The campaign.
        """
        self.campaign = campaign
        self._results = {s.spec.agent: Result(lab, s) for s in campaign.sessions}

    def __getitem__(self, agent: str) -> Result:
        if agent not in self._results:
            raise KeyError(f"no agent is called {agent!r}; there are: {', '.join(self._results)}")
        return self._results[agent]

    def __iter__(self) -> Any:
        return iter(self._results)

    def __len__(self) -> int:
        return len(self._results)

    @cached_property
    def comparison(self) -> Comparison:
        """Ranks of the agents that have played, and their differences."""
        played = [result for result in self._results.values() if result.session.episodes]
        if len(played) < 2:
            raise AnimalcatError(f"{len(played)} agents have played, and two are needed")
        first, *others = played
        return first.compare(*others)

    def __repr__(self) -> str:
        return f"{self.campaign.about}\n{self.comparison!r}"

    def to_html(self) -> str:
        """What a notebook shows."""
        return stacked_html(line_html(self.campaign.about), self.comparison.to_html())

    _repr_html_ = to_html


def agent_names(given: Sequence[GivenAgent]) -> list[str]:
    """The names of the agents of a campaign.

    Raises:
        AnimalcatError: Two have the same, or there are fewer than two.
    """
    names = [agent.name for agent in given]
    double = sorted({name for name in names if names.count(name) > 1})
    if double or len(names) < 2:
        raise AnimalcatError(
            f"two agents are called {double[0]!r}; give them names, as in {{'slow': ..., "
            "'fast': ...}}"
            if double
            else f"a campaign compares two agents at least; {len(names)} is given",
            "INVALID_REQUEST",
        )
    return names


def play(
    lab: Client,
    campaign: Campaign,
    given: Sequence[GivenAgent],
    bounds: Bounds,
    shown: Progress,
) -> Campaign:
    """Let the agents of a campaign play until it is over.

    Args:
        lab: Where it is kept.
        campaign: The campaign.
        given: Its agents.
        bounds: Within what processes of agents play.
        shown: Shows how far it is.

    Raises:
        AnimalcatError: An agent ended before its session; the same call goes on.
        Exception: What an agent of this process raises.
    """
    from animalcat.apart import AgentProcess

    by_name = {agent.name: agent for agent in given}
    open_sessions = [session for session in campaign.sessions if not session.over]
    with ExitStack() as stack:
        processes = {
            session.id: stack.enter_context(
                AgentProcess(lab, session, by_name[session.spec.agent].reference, bounds)
            )
            for session in open_sessions
            if by_name[session.spec.agent].reference
        }
        here = {
            session.id: by_name[session.spec.agent]
            for session in open_sessions
            if session.id not in processes
        }
        lab.run(_playing(lab.aio, campaign, processes, here, shown))
    return lab.get_campaign(campaign.id)


async def _playing(
    client: AsyncClient,
    campaign: Campaign,
    processes: Mapping[str, Any],
    here: Mapping[str, GivenAgent],
    shown: Progress,
) -> None:
    """Wait for the end of a campaign, while the agents of this process play."""
    tasks = {
        session: asyncio.ensure_future(
            client.evaluate(agent.player, session, fingerprint=agent.fingerprint)
        )
        for session, agent in here.items()
        if agent.player is not None
    }
    try:
        while True:
            now = await client.get_campaign(campaign.id)
            shown.phase(now.about)
            if now.over:
                return
            for task in tasks.values():
                if task.done() and task.exception() is not None:
                    task.result()
            for session in now.sessions:
                process = processes.get(session.id)
                if process is not None and process.ended and not session.over:
                    await client.dismiss_agents(session, process.how)
                    raise AnimalcatError(
                        f"the agent {session.spec.agent} ended before its session {session.id} "
                        f"did\n{process.output()}".rstrip()
                    )
            waiting = [session for session in now.sessions if not session.over]
            if all(session.held for session in waiting):
                words = "; ".join(f"{s.spec.agent}: {s.waits_for}" for s in waiting)
                raise AnimalcatError(f"the campaign waits for a person: {words}")
            await asyncio.sleep(_LOOK_SECONDS)
    finally:
        for task in tasks.values():
            task.cancel()
        await asyncio.gather(*tasks.values(), return_exceptions=True)
