"""What the stored outcomes of a session say: they are told by number, the same live and later."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from animalcat.layouts.adaptive.stopping import Verdict
from animalcat.service.batteries.battery import Battery
from animalcat.service.library.layouts import layout_of
from animalcat.service.measuring.certificates import CertificateMissingError, Certifier
from animalcat.service.measuring.measurement import Measurement
from animalcat.service.model import Decision, Episode, Outcome, Session
from animalcat.service.session.ledger import Ledger
from animalcat.service.session.parts import Parts

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

    Outcomes are told in order of number, whichever slot ended first. The measurement is touched in
    threads, one at a time (`thinking`).

    Attributes:
        ledger: The attempts.
        measurement: What they have told.
        thinking: Held while the measurement is touched.
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
        self.thinking = asyncio.Lock()
        self._certify = session.spec.certify
        self._lag = lag(session.spec.slots)
        self._certifier = Certifier(
            session, measurement.learner, self.thinking, parts.store, parts.fitter, parts.data
        )

    @classmethod
    async def load(
        cls, session: Session, battery: Battery, attempts: Sequence[Episode], parts: Parts
    ) -> Evidence:
        """What a session's attempts say.

        Args:
            session: The session.
            battery: Its battery.
            attempts: Those that the store has, all of them over.
            parts: Of the server.
        """
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
        """Give up fits that are under way."""
        self._certifier.close()

    def due(self, number: int) -> int:
        """How many outcomes a decision for a number knows."""
        return max(0, number - self._lag)

    async def take_in_due(self) -> None:
        """Tell what the next new decision is to know."""
        await self.take_in(self.due(self.ledger.begun))

    async def take_in(self, before: int) -> None:
        """Tell the outcomes of the numbers below one, up to the first that has none.

        The same way live and after a restart: by number, each with the certificate that is due.

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
        async with self.thinking:
            await asyncio.to_thread(self.measurement.learner.set_aside, instance)

    async def choose(self, number: int) -> Decision | None:
        """What to play as a number; None where nothing is left."""
        pending = self.ledger.pending(number)
        async with self.thinking:
            return await asyncio.to_thread(self.measurement.choose, number, pending)

    async def verdict(self) -> Verdict:
        """Whether it is enough, by what was told."""
        async with self.thinking:
            return await asyncio.to_thread(self.measurement.learner.verdict, self.ledger.seconds)

    async def shown(self, session: Session) -> Session:
        """The session with its summary up to date."""
        verdict = await self.verdict()
        async with self.thinking:
            capabilities = await asyncio.to_thread(self.measurement.capabilities, verdict)
        counted = self.ledger.counted
        return replace(
            session,
            episodes=len(counted),
            successes=sum(e.outcome is Outcome.SUCCESS for e in counted),
            capabilities=capabilities,
            misfit=self.measurement.learner.misfit,
        )

    async def _tell(self, episode: Episode) -> None:
        async with self.thinking:
            await asyncio.to_thread(
                self.measurement.tell,
                episode,
            )
        self.ledger.tell(episode.number)
