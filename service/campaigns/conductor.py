"""Conducts campaigns: compares their agents, and gives more episodes to those that overlap."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import numpy as np

from animalcat.layouts.adaptive.campaign import Standing, next_round, overlapping
from animalcat.layouts.adaptive.statuses import OtherEnd
from animalcat.layouts.model.spec import Layout
from animalcat.service.library.layouts import layout_of
from animalcat.service.model import StoredCampaign
from animalcat.service.session.engines import Engines
from animalcat.values import Session

log = logging.getLogger(__name__)


FIRST_DELAY_SECONDS: Final = 1.0
"""Seconds before the first retry after an error; every further wait is twice as long."""
MOST_DELAY_SECONDS: Final = 60.0
"""Most seconds between two retries."""


class Conductor:
    """Hands out the episodes of one campaign.

    Episodes are handed out in rounds, and stored in the sessions (`Session.allowed`) before anybody
    plays them. A conductor that restarts therefore goes on where the last one stopped. A round
    begins once everything handed out has been played, so that it follows from outcomes alone, never
    from who was quicker.

    Attributes:
        campaign: The campaign as it stands.
        concluded: Set once the campaign has ended and it was tried to end each of its sessions,
            even if that failed or is still to be tried again.
        waits_for: Why no agent can play on until a person does something; empty where some can.
    """

    def __init__(self, campaign: StoredCampaign, engines: Engines) -> None:
        self.campaign = campaign
        self.concluded = asyncio.Event()
        self.waits_for = ""
        self._engines = engines
        self._news = asyncio.Event()

    async def run(self) -> None:
        """Hand out episodes until the campaign has ended, then have every session make its profile.

        An error ends nothing. It is logged and the same is tried again, because a full disk or a
        lost file may be repaired meanwhile, and a round follows from outcomes alone.
        """
        listening = asyncio.create_task(self._listen())
        delay, last_error = FIRST_DELAY_SECONDS, ""
        try:
            while True:
                self._news.clear()
                try:
                    if await self._go_on():
                        return
                    delay, last_error, patience = FIRST_DELAY_SECONDS, "", None
                except Exception as error:
                    # Log the traceback only once; an error that stays would fill the log with it.
                    known, last_error = last_error == repr(error), repr(error)
                    log.error(
                        "campaign %s: %s; will try again in %g s",
                        self.campaign.id,
                        error,
                        delay,
                        exc_info=None if known else error,
                    )
                    delay, patience = min(2 * delay, MOST_DELAY_SECONDS), delay
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._news.wait(), patience)
        finally:
            self.concluded.set()
            listening.cancel()

    async def _go_on(self) -> bool:
        """Do what can be done now, and return whether nothing is left to do."""
        sessions = await self._sessions()
        self.waits_for = ""
        if not self.campaign.reason and all(_waits(session) for session in sessions):
            await self._hand_out(sessions)
        if not self.campaign.reason:
            return False
        try:
            await self._conclude()
        finally:
            self.concluded.set()
        return True

    async def _listen(self) -> None:
        with self._engines.parts.bus.watch(*self.campaign.sessions) as events:
            while True:
                self._news.set()
                await events.get()

    async def end(self, reason: str) -> None:
        """End the campaign, so that no more episodes are handed out."""
        self.concluded.clear()
        self.campaign = await asyncio.to_thread(
            self._engines.parts.store.end_campaign, self.campaign.id, reason
        )
        self._news.set()

    async def _sessions(self) -> list[Session]:
        return await self._engines.sessions_of(self.campaign.sessions)

    async def _measured(self, session: Session) -> Session:
        if session.state.over:
            return session
        engine = await self._engines.get(session.id)
        return await engine.current()

    async def _hand_out(self, sessions: Sequence[Session]) -> None:
        rule, spec = self.campaign.spec.allocation, self.campaign.spec.session
        layout = await asyncio.to_thread(layout_of, spec, self._engines.parts.store)
        sessions = [await self._measured(session) for session in sessions]
        standings = [standing(session, layout) for session in sessions]
        left = rule.budget - sum(session.episodes for session in sessions)
        held = [session for session in sessions if session.held]
        kept = sum(reserve(session, rule.budget // len(sessions)) for session in held)
        given = next_round(standings, rule, max(0, left - kept))
        await self._engines.allow(
            {
                sessions[place].id: sessions[place].episodes + episodes
                for place, episodes in given.items()
            }
        )
        if not given and held:
            self.waits_for = "; ".join(f"{s.spec.agent}: {s.waits_for}" for s in held)
        elif not given:
            pairs = int(overlapping(standings, rule).any(axis=2).sum()) // 2
            if pairs == 0:
                reason = "all agents are told apart, or known to be alike"
            elif left <= 0:
                reason = f"the budget of {rule.budget} episodes is used up"
            else:
                reason = "none of the agents that overlap can play on"
            await self.end(reason)

    async def _conclude(self) -> None:
        """End every session that is not over; a failure of one does not stop the others."""
        errors: list[Exception] = []
        sessions = await self._sessions()
        played = sum(session.episodes for session in sessions)
        spent = played >= self.campaign.spec.allocation.budget
        end = OtherEnd("budget" if spent else "ended", self.campaign.reason)
        for session in sessions:
            if session.state.over:
                continue
            try:
                engine = await self._engines.get(session.id)
                if session.episodes:
                    await engine.conclude(end)
                else:
                    await engine.cancel()
            except Exception as error:  # noqa: BLE001  raised below, with those of the others
                error.add_note(f"session {session.id}")
                errors.append(error)
        if errors:
            raise ExceptionGroup(f"{len(errors)} sessions could not be ended", errors)


class Conductors:
    """The conductors of a server; used on one event loop only."""

    def __init__(self, engines: Engines) -> None:
        self._engines = engines
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._conductors: dict[str, Conductor] = {}

    async def resume(self) -> None:
        """Go on with every campaign that has sessions left to play or to conclude."""
        for campaign in await asyncio.to_thread(self._engines.parts.store.unfinished_campaigns):
            self.start(campaign)

    def start(self, campaign: StoredCampaign) -> None:
        """Conduct a campaign, unless that is being done already or its record is unreadable."""
        if campaign.unreadable:
            log.error("campaign %s is %s", campaign.id, campaign.unreadable)
            return
        self._engines.parts.workers.group(campaign.id, campaign.sessions, campaign.max_workers)
        task = self._tasks.get(campaign.id)
        if task is None or task.done():
            conductor = self._conductors[campaign.id] = Conductor(campaign, self._engines)
            task = asyncio.create_task(conductor.run(), name=f"campaign {campaign.id}")
            task.add_done_callback(_log_failure)
            self._tasks[campaign.id] = task

    def waits(self, campaign: str) -> bool:
        """Return whether a conductor has found that a campaign waits for a person."""
        conductor = self._conductors.get(campaign)
        return conductor is not None and bool(conductor.waits_for)

    def waits_for(self, campaign: str, sessions: Sequence[Session]) -> str:
        """Return why no agent of a campaign can play on until a person does something.

        Args:
            campaign: Its id.
            sessions: Its sessions as they stand; a conductor looks a moment later.
        """
        conductor = self._conductors.get(campaign)
        return conductor.waits_for if conductor is not None and all(map(_waits, sessions)) else ""

    async def end(self, campaign: StoredCampaign, reason: str) -> None:
        """End a campaign, and wait until its sessions are over or cannot be ended for now."""
        self.start(campaign)
        conductor = self._conductors[campaign.id]
        await conductor.end(reason)
        await conductor.concluded.wait()

    async def close(self) -> None:
        """Stop conducting; everything handed out is stored."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)


def standing(session: Session, layout: Layout) -> Standing:
    """Return what is known of a session's agent, in units of each capability's range.

    Args:
        session: The session.
        layout: Its layout.
    """
    nodes = [layout.latents[i] for i in layout.capabilities]
    spans = np.array([node.prior.span for node in nodes])
    prior = np.array([node.prior.sd for node in nodes]) / spans
    known = {status.name: status for status in session.capabilities}
    mean, sd = np.array([node.prior.mean for node in nodes]) / spans, prior.copy()
    for k, node in enumerate(nodes):
        if node.name in known:
            mean[k] = known[node.name].mean / spans[k]
            sd[k] = known[node.name].sd / spans[k]
    return Standing(
        mean, sd, prior, session.episodes, open=not session.state.over and not session.held
    )


def reserve(session: Session, share: int) -> int:
    """Return how many episodes of the budget stay for a session that a person holds.

    The others go on meanwhile, but cannot use up what it was given, or its equal share.

    Args:
        session: The session.
        share: An agent's equal share of the budget.
    """
    return max(0, max(share, session.allowed or 0) - session.episodes)


def _waits(session: Session) -> bool:
    """Return whether a session is over or held, or has played everything handed out to it."""
    return session.state.over or session.held or session.episodes >= (session.allowed or 0)


def _log_failure(task: asyncio.Task[None]) -> None:
    error = None if task.cancelled() else task.exception()
    if error is not None:
        log.error("%s stopped: %s", task.get_name(), error, exc_info=error)
