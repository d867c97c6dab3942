"""What the stored outcomes of a session say: they are told by number, the same live and later."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from animalcat.layouts.adaptive.stopping import Verdict
from animalcat.layouts.inference.fit import FitError, FitResult
from animalcat.service.batteries.battery import Battery
from animalcat.service.library.layouts import layout_of
from animalcat.service.measuring.certificates import CertificateMissingError, Certifier
from animalcat.service.measuring.measurement import Measurement, OneAtATime
from animalcat.service.measuring.report import (
    Report,
    SecondReading,
    exported_profile,
    live_profile,
)
from animalcat.service.model import Cause, Decision, Episode, Outcome, Session, StoredCertificate
from animalcat.service.session.ledger import Ledger
from animalcat.service.session.parts import Parts
from animalcat.service.session.record import Progress, SessionRecord
from animalcat.service.storage.base import readable

log = logging.getLogger(__name__)

AHEAD: Final = 2
"""Episodes that each other slot may play while one is still at its own."""


def lag(slots: int) -> int:
    """Outcomes that a decision does not wait for: those of so many episodes just before it.

    It is fixed, and not "whatever is known by now": so decisions follow from outcomes alone, and
    never from which slot was quicker. A slot waits only for one that plays a single episode while
    every other plays `AHEAD`.
    """
    return AHEAD * (slots - 1)


class Evidence:
    """A session's attempts, its measurement and its certificates, which go together.

    Outcomes are told in order of number, whichever slot ended first. Whoever reads `measurement`
    itself, and not by a method of this class, does so where nothing is told meanwhile.

    Attributes:
        ledger: The attempts.
        measurement: What they have told.
    """

    def __init__(
        self,
        session: Session,
        measurement: Measurement,
        attempts: Sequence[Episode],
        parts: Parts,
    ) -> None:
        """Begin before the first outcome; `load` brings it to where the store is."""
        self.measurement = measurement
        self.ledger = Ledger(attempts)
        self._think = OneAtATime()
        self._certify = session.spec.certify
        self._lag = lag(session.spec.slots)
        self._versions = parts.versions
        self._reach: asyncio.Task[None] | None = None
        self._certifier = Certifier(
            session, measurement.learner, self._think, parts.store, parts.fitter, parts.data
        )

    @classmethod
    async def load(cls, session: Session, battery: Battery, parts: Parts) -> Evidence:
        """What is stored of a session says.

        Attempts that were open when an earlier server ended are closed as faults first.
        """
        attempts = readable(await asyncio.to_thread(parts.store.episodes, session.id))
        for k, episode in enumerate(attempts):
            if episode.outcome is None:
                attempts[k] = replace(
                    episode, outcome=Outcome.FAULT, cause=Cause.SERVER_STOPPED.value
                )
                await asyncio.to_thread(parts.store.finish_episode, attempts[k])
        layout = await asyncio.to_thread(layout_of, session.spec, parts.store)
        measurement = await asyncio.to_thread(Measurement, session.spec, battery, layout)
        for episode in attempts:
            measurement.learn(episode.decision)
        found = cls(session, measurement, attempts, parts)
        await found._certifier.load()
        try:
            await found.take_in_due()
        except CertificateMissingError as error:  # it can be looked at, and is due before a choice
            log.warning("session %s: %s", session.id, error)
        for instance in found.ledger.set_aside:
            await found.set_aside(instance)
        return found

    def close(self) -> None:
        """Give up what is under way beside the episodes."""
        self._certifier.close()
        if self._reach is not None:
            self._reach.cancel()

    def begin_to_find_reach(self, record: SessionRecord) -> None:
        """Work out what the battery can tell at most, which no episode needs to wait for.

        Args:
            record: Shows it once it is known.
        """
        self._reach = asyncio.create_task(
            self._find_reach(record), name=f"limits of session {record.session.id}"
        )

    async def wait_for_reach(self) -> None:
        """Wait until it is known what the battery can tell at most, if that can be known."""
        if self._reach is not None:
            await self._reach

    def due(self, number: int) -> int:
        """How many outcomes a decision for a number knows."""
        return max(0, number - self._lag)

    async def take_in_due(self) -> None:
        """Tell what the next new decision is to know."""
        await self.take_in(self.due(self.ledger.begun))

    async def take_in(self, before: int) -> None:
        """Tell the outcomes of the numbers below one, up to the first that has none.

        They are told the same way live and after a restart: by number, each with the certificate
        that is due.

        Raises:
            CertificateMissingError: One cannot be had now; what follows it is not told.
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
        """Tell all that counts, as the session ends.

        Args:
            certify: Apply the certificates that are due, which may have to be waited for.
        """
        if certify:
            try:
                await self.take_in(self.ledger.begun)
            except CertificateMissingError as error:  # no decision is left to be changed
                log.warning("the session ends without a certificate: %s", error)
        for episode in self.ledger.rest:  # beyond a number that will never be played
            await self._tell(episode)

    async def set_aside(self, instance: str) -> None:
        """Never choose an instance again."""
        await self._think(self.measurement.learner.set_aside, instance)

    async def choose(self, number: int) -> Decision | None:
        """What to play as a number; None where nothing is left."""
        return await self._think(self.measurement.choose, number, self.ledger.pending(number))

    async def verdict(self) -> Verdict:
        """Whether it is enough, by what was told."""
        return await self._think(self.measurement.learner.verdict, self.ledger.seconds)

    async def progress(self) -> Progress:
        """What follows from all that counts, for the session's record."""
        verdict = await self.verdict()
        counted = self.ledger.counted
        return Progress(
            episodes=len(counted),
            successes=sum(e.outcome is Outcome.SUCCESS for e in counted),
            capabilities=await self._think(self.measurement.capabilities, verdict),
            misfit=self.measurement.learner.misfit,
        )

    async def live_report(self, session: Session) -> Report:
        """The profile as the live posterior has it."""
        return await self._think(
            live_profile, session, self.measurement, self.ledger.attempts, self._versions
        )

    async def exported_report(
        self,
        session: Session,
        fit: FitResult | FitError,
        certificates: Mapping[int, StoredCertificate],
        second: SecondReading | None,
    ) -> Report:
        """The profile as NUTS has it, for a session that ends; see `exported_profile`."""
        return await self._think(
            exported_profile,
            session,
            self.measurement,
            fit,
            self.ledger.attempts,
            certificates,
            self._versions,
            second,
        )

    async def _find_reach(self, record: SessionRecord) -> None:
        try:
            await asyncio.to_thread(self.measurement.find_reach)
        except Exception:  # a profile without limits is a profile
            log.exception("the limits of session %s cannot be found", record.session.id)
        else:
            record.show_capabilities(self.measurement.with_reach(record.session.capabilities))

    async def _tell(self, episode: Episode) -> None:
        await self._think(self.measurement.tell, episode)
        self.ledger.tell(episode.number)
