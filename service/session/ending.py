"""Ends a session with a profile fitted by NUTS, or else with what the live posterior knows."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import replace
from functools import partial
from typing import Any, Final

from animalcat.layouts.adaptive.statuses import OtherEnd
from animalcat.layouts.inference.fit import FitError, FitResult
from animalcat.service.errors import Code, ServiceError
from animalcat.service.measuring.certificates import OutOfMemoryError
from animalcat.service.measuring.faults import reason_with_lost, unplayable
from animalcat.service.measuring.kept_fits import load_fit
from animalcat.service.session.final_fits import FinalFits
from animalcat.service.session.parts import Parts
from animalcat.service.session.record import SessionRecord
from animalcat.service.session.scheduling import Schedule
from animalcat.values import Cause, Session, SessionState

log = logging.getLogger(__name__)

NOTHING_LEFT: Final = OtherEnd("used up", "used up: nothing is left to play")
"""How a session ends whose rule would go on: all that was listed is played, for example."""


class SessionEnder:
    """Ends one session exactly once, however many callers ask for it.

    A session ends for what its live posterior knows only if the last fit knows it too. Else
    `finish` lets it go on.
    """

    def __init__(self, record: SessionRecord, schedule: Schedule, parts: Parts) -> None:
        self._record = record
        self._schedule = schedule
        self._parts = parts
        self._fits = FinalFits(record.session, parts, record.waiting)
        self._task: asyncio.Task[Session] | None = None

    def warm(self) -> None:
        """Start compiling the layouts that the last fits will need, while episodes are played."""
        learner = self._schedule.evidence.measurement.learner
        self._fits.warm(learner.layout)

    @property
    def under_way(self) -> bool:
        """Whether the session is being ended."""
        return self._task is not None and not self._task.done()

    @property
    def busy(self) -> bool:
        """Whether the session is being ended, or a fit or a compilation is under way."""
        return self.under_way or self._fits.busy

    def close(self) -> None:
        """Cancel the fits that are under way, because the server is stopping."""
        self._fits.close()

    async def finish(self) -> Session:
        """Fit by NUTS, store the profile and end the session, unless the fit says to go on."""
        return await self._once(self._finish)

    async def cancel(self) -> Session:
        """End a cancelled session with the profile that the live posterior gives."""
        return await self._surely(SessionState.CANCELLED, Cause.CANCELLED.value)

    async def fail(self, reason: str) -> None:
        """End a session that cannot go on with the profile that the live posterior gives."""
        await self._surely(SessionState.FAILED, reason)

    async def posterior(self) -> FitResult:
        """Return the posterior with its draws: the kept fit, the last fit made again, or the live.

        Only a finished session has a last fit. Where it cannot be made, the live posterior stands
        in, as in the profile.
        """
        evidence, session = self._schedule.evidence, self._record.session
        learner = evidence.measurement.learner
        if session.state is SessionState.FINISHED:
            kept = await asyncio.to_thread(load_fit, self._parts.files, session.id, learner.layout)
            try:
                return kept or await self._fits.profile(learner)
            except FitError as error:
                log.warning("session %s has no last fit: %s", session.id, error)
        return await evidence.live_fit()

    async def _surely(self, state: SessionState, reason: str) -> Session:
        session = await self._once(partial(self._end_live, state, reason))
        while not session.state.over:  # a fit that was under way let it go on
            session = await self._once(partial(self._end_live, state, reason))
        return session

    async def _once(self, end: Callable[[], Coroutine[Any, Any, Session]]) -> Session:
        """Run `end`, or wait for the caller that started it first; nothing more begins."""
        if self._task is None:
            self._schedule.close()
            self._task = asyncio.create_task(end())
            self._task.add_done_callback(self._look)
        return await asyncio.shield(self._task)

    def _look(self, task: asyncio.Task[Session]) -> None:
        if task.cancelled() or task.exception() is not None or not task.result().state.over:
            self._task = None  # the next agent tries again
            self._schedule.reopen()

    async def _finish(self) -> Session:
        await self._schedule.settle(certify=self._record.session.spec.certify)
        evidence, session = self._schedule.evidence, self._record.session
        learner = evidence.measurement.learner
        await evidence.wait_for_reach()
        with self._record.waiting(self._fits.words):
            try:
                fit = await self._fits.profile(learner)
            except OutOfMemoryError as error:  # the next agent, or who resumes it, tries again
                raise ServiceError(
                    Code.SESSION_FAILED,
                    "the fit for the session's profile ran out of memory repeatedly: "
                    f"{error}. Every outcome is kept; give the server more memory, then resume "
                    "the session",
                ) from error
            except FitError as error:
                # All episodes are played: keep what is known, marked as not certified.
                log.warning("session %s ends without its last fit: %s", session.id, error)
                fit = error
        verdict = await evidence.last_verdict(fit)
        if not verdict.stop:
            if self._schedule.go_on():
                log.info("session %s goes on: its fit does not say that it is enough", session.id)
                return self._record.session
            verdict = verdict.judged(other=NOTHING_LEFT)
        certificates = await asyncio.to_thread(self._parts.store.certificates, session.id)
        reason = reason_with_lost(verdict.reason, unplayable(evidence.attempts))
        report = await evidence.exported_report(
            replace(self._record.session, reason=reason), verdict, fit, certificates
        )
        kept = await self._fits.kept()
        await self._record.end(SessionState.FINISHED, reason, report, learner.misfit, kept)
        await evidence.keep_explanation(self._record.session, self._parts)
        return self._record.session

    async def _end_live(self, state: SessionState, reason: str) -> Session:
        await self._schedule.settle(certify=False)
        evidence = self._schedule.evidence
        session = replace(self._record.session, state=state, reason=reason)
        report = await evidence.live_report(session)
        await self._record.end(state, reason, report, evidence.measurement.learner.misfit)
        await evidence.keep_explanation(self._record.session, self._parts)
        return self._record.session
