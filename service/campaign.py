"""Conducts one campaign: looks where its agents overlap, and lets those play on."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

import numpy as np

from animalcat.layouts.adaptive.campaign import Standing, next_round, overlapping
from animalcat.layouts.spec import Layout
from animalcat.service.coverage import find_layout
from animalcat.service.engines import Engines
from animalcat.service.errors import ServiceError
from animalcat.service.model import Campaign, Session

log = logging.getLogger(__name__)


class Conductor:
    """Hands out the episodes of one campaign.

    What was handed out stands in the sessions (`Session.allowed`), stored before anybody plays, so
    a conductor that starts anew goes on where the last one was. A round begins when all that was
    handed out has been played; so it follows from outcomes alone, never from who was quicker.
    """

    def __init__(self, campaign: Campaign, engines: Engines) -> None:
        self.campaign = campaign
        self._engines = engines
        spec = campaign.spec.session
        self._layout = find_layout(spec.layout, spec.layout_variant)
        self._news = asyncio.Event()

    async def run(self) -> None:
        """Hand out until the campaign has ended, then have every session's profile made."""
        listening = asyncio.create_task(self._listen())
        try:
            while not self.campaign.reason:
                self._news.clear()
                sessions = await self._sessions()
                if all(_waits(session) for session in sessions):
                    await self._hand_out(sessions)
                else:
                    await self._news.wait()
        finally:
            listening.cancel()
        await self._conclude()

    async def _listen(self) -> None:
        with self._engines.parts.bus.watch(*self.campaign.sessions) as events:
            while True:
                self._news.set()
                await events.get()

    async def end(self, reason: str) -> None:
        """Hand out no more."""
        self.campaign = await asyncio.to_thread(
            self._engines.parts.store.end_campaign, self.campaign.id, reason
        )
        self._news.set()

    async def _sessions(self) -> list[Session]:
        return [await self._engines.session(session) for session in self.campaign.sessions]

    async def _measured(self, session: Session) -> Session:
        if session.state.over:
            return session
        engine = await self._engines.get(session.id)
        return await engine.current()

    async def _hand_out(self, sessions: Sequence[Session]) -> None:
        rule = self.campaign.spec.allocation
        sessions = [await self._measured(session) for session in sessions]
        standings = [standing(session, self._layout) for session in sessions]
        left = rule.budget - sum(session.episodes for session in sessions)
        given = next_round(standings, rule, left)
        for place, episodes in given.items():
            engine = await self._engines.get(sessions[place].id)
            await engine.allow(sessions[place].episodes + episodes)
        if not given:
            pairs = int(overlapping(standings, rule).any(axis=2).sum()) // 2
            if pairs == 0:
                reason = "all agents are told apart, or known to be alike"
            elif left <= 0:
                reason = f"the budget of {rule.budget} episodes is used up"
            else:
                reason = "none of the agents that overlap can play on"
            await self.end(reason)

    async def _conclude(self) -> None:
        for session in await self._sessions():
            if session.state.over:
                continue
            engine = await self._engines.get(session.id)
            try:
                if session.episodes:
                    await engine.conclude(self.campaign.reason)
                else:
                    await engine.cancel()
            except ServiceError as error:
                log.error("campaign %s, session %s: %s", self.campaign.id, session.id, error)


class Conductors:
    """The conductors of a server; used on one event loop only."""

    def __init__(self, engines: Engines) -> None:
        self._engines = engines
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._conductors: dict[str, Conductor] = {}

    async def resume(self) -> None:
        """Go on with every campaign that has sessions left to play or to conclude."""
        for campaign in await asyncio.to_thread(self._engines.parts.store.campaigns):
            sessions = [await self._engines.session(session) for session in campaign.sessions]
            if not all(session.state.over for session in sessions):
                self.start(campaign)

    def start(self, campaign: Campaign) -> None:
        """Conduct a campaign, unless that is being done."""
        task = self._tasks.get(campaign.id)
        if task is None or task.done():
            conductor = self._conductors[campaign.id] = Conductor(campaign, self._engines)
            task = asyncio.create_task(conductor.run(), name=f"campaign {campaign.id}")
            task.add_done_callback(_log_failure)
            self._tasks[campaign.id] = task

    async def end(self, campaign: Campaign, reason: str) -> None:
        """End a campaign, and wait until its sessions are over."""
        self.start(campaign)
        await self._conductors[campaign.id].end(reason)
        await asyncio.shield(self._tasks[campaign.id])

    async def close(self) -> None:
        """Stop conducting; what was handed out is stored."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)


def standing(session: Session, layout: Layout) -> Standing:
    """What is known of a session's agent, in shares of the capabilities' ranges."""
    nodes = [layout.latents[i] for i in layout.capabilities]
    spans = np.array([node.prior.span for node in nodes])
    prior = np.array([node.prior.sd for node in nodes]) / spans
    known = {status.name: status for status in session.capabilities}
    mean, sd = np.array([node.prior.mean for node in nodes]) / spans, prior.copy()
    for k, node in enumerate(nodes):
        if node.name in known:
            mean[k] = known[node.name].mean / spans[k]
            sd[k] = known[node.name].sd / spans[k]
    return Standing(mean, sd, prior, session.episodes, open=not session.state.over)


def _waits(session: Session) -> bool:
    """Whether a session has played what it was given."""
    return session.state.over or session.episodes >= (session.allowed or 0)


def _log_failure(task: asyncio.Task[None]) -> None:
    error = None if task.cancelled() else task.exception()
    if error is not None:
        log.error("%s stopped: %s", task.get_name(), error, exc_info=error)
