"""Tells the outcomes of a session to its measurement, live and after a restart alike."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Final

from animalcat.layouts.adaptive.stopping import Verdict
from animalcat.layouts.inference.fit import FitError, FitResult
from animalcat.service.batteries.battery import Battery
from animalcat.service.library.layouts import layout_of
from animalcat.service.measuring.certificates import CertificateMissingError, Certifier, Waiting
from animalcat.service.measuring.measurement import Measurement, OneAtATime
from animalcat.service.measuring.report import (
    Report,
    exported_profile,
    live_profile,
)
from animalcat.service.model import StoredCertificate
from animalcat.service.session.ledger import Ledger
from animalcat.service.session.parts import Parts
from animalcat.service.session.play import recording_key
from animalcat.service.session.record import Progress, SessionRecord
from animalcat.service.storage.base import readable
from animalcat.values import Cause, Decision, Episode, Outcome, Session

log = logging.getLogger(__name__)

AHEAD: Final = 2
"""Episodes that every other slot may play while one slot is still at a single episode."""


def lag(slots: int) -> int:
    """Return how many of the latest episodes a decision does not wait for.

    The number is fixed, rather than depending on what is known by now. Decisions therefore follow
    from outcomes alone, and never from which slot was quicker. The others wait for a slot only if
    they have each played `AHEAD` episodes while it is still playing one.

    Args:
        slots: Number of slots of the session.
    """
    return AHEAD * (slots - 1)


class Evidence:
    """A session's attempts, its measurement and its certificates, kept consistent.

    Outcomes are told in order of episode number, whichever slot ended first. Code that reads
    `measurement` directly, rather than by a method of this class, must do so while nothing is being
    told.

    Attributes:
        ledger: The attempts.
        measurement: What the outcomes have told so far.
    """

    def __init__(
        self,
        session: Session,
        measurement: Measurement,
        attempts: Sequence[Episode],
        parts: Parts,
        waiting: Waiting = nullcontext,
    ) -> None:
        """Start before the first outcome; `load` also tells what is stored."""
        self.measurement = measurement
        self.ledger = Ledger(attempts, session.spec.practice)
        self._practice = session.spec.practice
        self._think = OneAtATime()
        self._certify = session.spec.certify
        self._lag = lag(session.spec.slots)
        self._versions = parts.versions
        self._reach: asyncio.Task[None] | None = None
        self._certifier = Certifier(
            session,
            measurement.learner,
            self._think,
            parts.store,
            parts.fitter,
            parts.files,
            waiting,
        )

    @classmethod
    async def load(
        cls,
        session: Session,
        battery: Battery,
        parts: Parts,
        open_because: Cause = Cause.SERVER_STOPPED,
        waiting: Waiting = nullcontext,
    ) -> Evidence:
        """Build the evidence of a session from what is stored.

        Attempts that are still open, though nobody plays them, are first closed as faults.

        Args:
            session: The session.
            battery: Its battery.
            parts: What the engines of the server share.
            open_because: Why an attempt may be open.
            waiting: Shows that the session waits for a certificate.
        """
        attempts = readable(await asyncio.to_thread(parts.store.episodes, session.id))
        for k, episode in enumerate(attempts):
            if episode.outcome is None:
                attempts[k] = replace(episode, outcome=Outcome.FAULT, cause=open_because.value)
                await asyncio.to_thread(finish, parts, attempts[k])
        layout = await asyncio.to_thread(layout_of, session.spec, parts.store)
        measurement = await asyncio.to_thread(
            Measurement, session.spec, battery, layout, session=session.id
        )
        for episode in attempts:
            measurement.learn(episode.decision)
        found = cls(session, measurement, attempts, parts, waiting)
        await found._certifier.load()
        # The last decision may have known more than was due: all, where it was for a last look.
        last = max(attempts, key=lambda e: e.number, default=None)
        known = 0 if last is None else last.number - last.decision.pending
        try:
            await found.take_in(max(known, found.due(found.ledger.begun)))
        except CertificateMissingError as error:  # it may still be read; a choice will ask again
            log.warning("session %s: %s", session.id, error)
        for instance in found.ledger.set_aside:
            await found.set_aside(instance)
        return found

    def close(self) -> None:
        """Cancel the computations that run beside the episodes."""
        self._certifier.close()
        if self._reach is not None:
            self._reach.cancel()

    def begin_to_find_reach(self, record: SessionRecord) -> None:
        """Start computing the best that the battery can tell, without holding up any episode.

        Args:
            record: Where the result is shown once it is known.
        """
        self._reach = asyncio.create_task(
            self._find_reach(record), name=f"limits of session {record.session.id}"
        )

    async def wait_for_reach(self) -> None:
        """Wait until the computation of `begin_to_find_reach` has ended, if it has begun."""
        if self._reach is not None:
            await self._reach

    def due(self, number: int) -> int:
        """Return how many outcomes the decision for this episode number knows."""
        return max(0, number - self._lag)

    async def take_in_due(self) -> None:
        """Tell the outcomes that the next new decision is to know."""
        await self.take_in(self.due(self.ledger.begun))

    async def take_in(self, before: int) -> None:
        """Tell the outcomes of the episodes numbered below `before`, up to the first without one.

        They are told by number, each with the certificate that is due, both live and after a
        restart.

        Raises:
            CertificateMissingError: A certificate cannot be made now; the outcomes after it stay
                untold.
        """
        await self._certifier.apply_due()
        while (number := self.ledger.untold) < before:
            episode = self.ledger.outcome(number)
            if episode is None:
                return
            await self._tell(episode)
            if self._certify:
                await self._certifier.after_episode()

    async def take_in_all(self, *, certify: bool) -> None:
        """Tell every outcome that counts, as the session ends.

        Args:
            certify: Whether to apply the certificates that are due, and wait for them if need be.
        """
        if certify:
            try:
                await self.take_in(self.ledger.begun)
            except CertificateMissingError as error:  # no decision follows that it could change
                log.warning("the session ends without a certificate: %s", error)
        for episode in self.ledger.rest:  # those after a number that will never be played
            await self._tell(episode)

    async def set_aside(self, instance: str) -> None:
        """Exclude an instance from all further choices."""
        await self._think(self.measurement.learner.set_aside, instance)

    async def choose(self, number: int) -> Decision | None:
        """Choose the instance for an episode number; None if none is left.

        What is practised has no say in what is chosen later: randomness is keyed by the number
        among the episodes that count. It is nothing that another slot may have begun already.
        """
        if number < self._practice:
            return await self._think(self.measurement.practise, self.ledger.chosen())
        pending = self.ledger.pending(number)
        return await self._think(self.measurement.choose, number - self._practice, pending)

    async def verdict(self) -> Verdict:
        """Return the stopping rule's verdict on the outcomes told so far."""
        return await self._think(self.measurement.verdict, self.ledger.seconds)

    async def progress(self) -> Progress:
        """Summarise all outcomes that count, for the session's record."""
        verdict = await self.verdict()
        counted = self.ledger.counted
        return Progress(
            episodes=len(counted),
            successes=sum(e.outcome is Outcome.SUCCESS for e in counted),
            capabilities=await self._think(self.measurement.capabilities, verdict),
            misfit=self.measurement.learner.misfit,
            practised=self.ledger.practised,
        )

    async def live_report(self, session: Session) -> Report:
        """Return the profile according to the live posterior."""
        return await self._think(
            live_profile, session, self.measurement, self.ledger.attempts, self._versions
        )

    async def live_fit(self) -> FitResult:
        """Return the live posterior with draws, in the form of a fit."""
        return await self._think(self.measurement.learner.posterior.as_fit)

    async def exported_report(
        self,
        session: Session,
        fit: FitResult | FitError,
        certificates: Mapping[int, StoredCertificate],
    ) -> Report:
        """Return the profile by NUTS for a session that ends; see `exported_profile`."""
        return await self._think(
            exported_profile,
            session,
            self.measurement,
            fit,
            self.ledger.attempts,
            certificates,
            self._versions,
        )

    async def _find_reach(self, record: SessionRecord) -> None:
        try:
            await asyncio.to_thread(self.measurement.find_reach)
        except Exception:  # a profile can do without limits
            log.exception("the limits of session %s cannot be found", record.session.id)
        else:
            record.show_capabilities(self.measurement.with_reach(record.session.capabilities))

    async def _tell(self, episode: Episode) -> None:
        await self._think(self.measurement.tell, episode)
        self.ledger.tell(episode.number)


def finish(parts: Parts, episode: Episode) -> None:
    """Store an attempt's recording, then how it ended, with the recording's digest.

    Raises:
        ArtefactsError: The recording cannot be stored; the attempt stays open.
        NotOwnerError: Another server has the session by now; nothing is written.
    """
    parts.store.check_owned(episode.session)
    recording = recording_key(episode.session, episode.number, episode.attempt)
    digest = parts.files.digest(recording)
    parts.files.put(recording)
    parts.store.finish_episode(episode, digest)
