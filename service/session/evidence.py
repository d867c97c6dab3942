"""Keeps the attempts of a session, and tells their outcomes to its measurement."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final

from animalcat.layouts.adaptive.stopping import StopVerdict
from animalcat.layouts.inference.fit import FitError, FitResult
from animalcat.service.batteries.battery import Battery
from animalcat.service.library.layouts import layout_of
from animalcat.service.measuring.certificates import (
    CertificateMissingError,
    Certifier,
    Waiting,
    untold,
)
from animalcat.service.measuring.earlier import earlier_of
from animalcat.service.measuring.explaining import keep_explanation
from animalcat.service.measuring.faults import MAX_FAULTS
from animalcat.service.measuring.measurement import Measurement, OneAtATime
from animalcat.service.measuring.report import (
    Report,
    exported_profile,
    live_profile,
)
from animalcat.service.model import StoredCertificate
from animalcat.service.session.parts import Parts
from animalcat.service.session.record import Progress, SessionRecord
from animalcat.service.storage.errors import readable
from animalcat.values import Cause, Decision, Earlier, Episode, Outcome, Session

log = logging.getLogger(__name__)

AHEAD: Final = 2
"""Episodes that every other slot may play while one slot is still at a single episode."""
MAX_FAULTS_IN_A_ROW: Final = 9
"""Backend faults in a row, of any instances, after which the session pauses."""


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

    Episodes are numbered in the order in which they begin, and outcomes are told in order of that
    number, whichever slot ended first. Code that reads `measurement` directly, rather than by a
    method of this class, must do so while nothing is being told.

    Attributes:
        attempts: The attempts that are over.
        playing: Numbers of the episodes that are being played.
        left: The attempts that are open and that nobody plays, each as it is stored if no process
            of its agent goes on with it.
        untold: The lowest number whose outcome has not been told.
        measurement: What the outcomes have told so far.
    """

    def __init__(
        self,
        session: Session,
        measurement: Measurement,
        attempts: Sequence[Episode],
        parts: Parts,
        waiting: Waiting = untold,
        left: Collection[Episode] = (),
    ) -> None:
        """Start before the first outcome; `load` also tells what is stored.

        Args:
            session: The session.
            measurement: Its measurement, to which nothing has been told.
            attempts: The stored attempts, all of them over, in order of number and attempt.
            parts: What the engines of the server share.
            waiting: Shows that the session waits for a certificate.
            left: Those that are open in the store, with an end that is not stored yet.
        """
        self.measurement = measurement
        self.attempts: list[Episode] = []
        self.playing: set[int] = set()
        self.left: dict[int, Episode] = {}
        self.untold = session.spec.practice
        self._practice = session.spec.practice
        self._told: set[int] = set()
        self._counted: dict[int, Episode] = {}
        self._open: set[int] = set()
        self._decisions: dict[int, Decision] = {}
        self._tries: Counter[int] = Counter()
        self._tried: dict[int, list[Episode]] = {}
        self._seconds = 0.0
        self._practised = self._successes = 0
        self._played_before = session.spec.played_before
        self._faults: Counter[str] = Counter()
        self._replaces = session.spec.replace_voids
        self._shown: set[str] = set()
        for episode in attempts:
            self.begin(episode)
            (self.leave if episode in left else self.end)(episode)
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
            parts.memory,
        )

    @classmethod
    async def load(
        cls,
        session: Session,
        battery: Battery,
        parts: Parts,
        open_because: Cause = Cause.SERVER_STOPPED,
        waiting: Waiting = untold,
    ) -> Evidence:
        """Build the evidence of a session from what is stored.

        Attempts that are still open, though nobody plays them, are first closed as faults, unless
        another process of the agent may go on with them.

        Args:
            session: The session.
            battery: Its battery.
            parts: What the engines of the server share.
            open_because: Why an attempt may be open.
            waiting: Shows that the session waits for a certificate.
        """
        attempts = readable(await asyncio.to_thread(parts.store.episodes, session.id))
        left: list[Episode] = []
        for k, episode in enumerate(attempts):
            if episode.outcome is not None:
                continue
            attempts[k] = replace(episode, outcome=Outcome.FAULT, cause=open_because.value)
            if session.spec.resumable:
                left.append(attempts[k])
            else:
                await asyncio.to_thread(parts.store.finish_episode, attempts[k], parts.files)
        layout = await asyncio.to_thread(layout_of, session.spec, parts.store)
        measurement = await asyncio.to_thread(
            Measurement, session.spec, battery, layout, session=session.id
        )
        for episode in attempts:
            measurement.learn(episode.decision)
        evidence = cls(session, measurement, attempts, parts, waiting, left)
        await evidence._certifier.load()
        # The last decision may have known more than was due: all, where it was for a last look.
        last = max(attempts, key=lambda e: e.number, default=None)
        known = 0 if last is None else last.number - last.decision.pending
        try:
            await evidence.take_in(max(known, evidence.due(evidence.begun)))
        except CertificateMissingError as error:  # it may still be read; a choice will ask again
            log.warning("session %s: %s", session.id, error)
        for instance in evidence.set_aside:
            await evidence.exclude(instance)
        return evidence

    @property
    def busy(self) -> bool:
        """Whether an attempt is open, or a fit or another computation is under way."""
        reaching = self._reach is not None and not self._reach.done()
        return bool(self.playing) or reaching or self._certifier.busy

    @property
    def begun(self) -> int:
        """How many episodes were begun, which is also the next new number."""
        return len(self._decisions)

    @property
    def idle(self) -> int | None:
        """The lowest number that was begun, is not settled yet, and is not being played."""
        return min(self._open - self.playing, default=None)

    @property
    def seconds(self) -> float:
        """Seconds played in all but for practice, including attempts that did not count."""
        return self._seconds

    @property
    def practised(self) -> int:
        """Number of practice episodes that are over."""
        return self._practised

    @property
    def set_aside(self) -> set[str]:
        """Names of the instances whose backend failed too often, or that are not shown again."""
        return self._shown | {name for name, count in self._faults.items() if count >= MAX_FAULTS}

    def replaces(self, episode: Episode) -> bool:
        """Whether another instance is played after an attempt, which its agent remembers."""
        unseen = episode.kind in (Cause.WITHDREW, Cause.DISMISSED)
        return self._replaces and not episode.settled and not unseen

    @property
    def backend_fails(self) -> bool:
        """Whether the last `MAX_FAULTS_IN_A_ROW` attempts all failed because of the backend."""
        latest = self.attempts[-MAX_FAULTS_IN_A_ROW:]
        return len(latest) == MAX_FAULTS_IN_A_ROW and all(e.backend_fault for e in latest)

    @property
    def counted(self) -> list[Episode]:
        """The episodes that count, in order of number."""
        return [self._counted[number] for number in sorted(self._counted)]

    def tries(self, number: int) -> int:
        """Return how many attempts at this number were begun."""
        return self._tries[number]

    def decision(self, number: int) -> Decision | None:
        """Return the decision made for this number; None if its instance was set aside since."""
        decision = self._decisions[number]
        return None if decision.instance in self.set_aside else decision

    def pending(self, number: int) -> list[str]:
        """List the instances of all other numbers whose outcomes have not been told."""
        return [
            self._decisions[k].instance
            for k in range(self.untold, self.begun)
            if k != number
            and k not in self._told
            and (k in self._counted or self.decision(k) is not None)
        ]

    def begin(self, episode: Episode) -> None:
        """Note that an attempt, already stored, begins."""
        self._decisions[episode.number] = episode.decision
        self._tries[episode.number] += 1
        self._open.add(episode.number)
        self.playing.add(episode.number)

    def leave(self, episode: Episode) -> None:
        """Note that an attempt stays open though nobody plays it; see `left`."""
        self.playing.discard(episode.number)
        self.left[episode.number] = episode

    def resume(self) -> Episode:
        """Note that an attempt of `left` goes on; returns it as it is open."""
        number = min(self.left)
        self.playing.add(number)
        return replace(self.left[number], outcome=None, cause="", ruling=None)

    def end(self, episode: Episode) -> None:
        """Note that an attempt, already stored, is over."""
        self.playing.discard(episode.number)
        self.left.pop(episode.number, None)
        self.attempts.append(episode)
        self._tried.setdefault(episode.number, []).append(episode)
        self._played_before += episode.practises
        if not episode.practice:
            self._seconds += episode.seconds
        if episode.settled:
            self._open.discard(episode.number)
            self._practised += episode.practice
            if episode.counts:
                self._counted[episode.number] = episode
                self._successes += episode.outcome is Outcome.SUCCESS
        elif episode.backend_fault:
            self._faults[episode.decision.instance] += 1
        if self.replaces(episode):
            self._shown.add(episode.instance)

    def drop(self, number: int) -> None:
        """Note that this number is no longer played, even if its end could not be stored."""
        self.playing.discard(number)

    def voided_before(self, episode: Episode) -> bool:
        """Return whether the agent voided an earlier attempt at this number and instance."""
        return any(e.warns for e in self._before(episode.number, episode.decision))

    def seen_before(self, number: int, decision: Decision) -> bool:
        """Return whether the agent saw this arena, and its code failed there or it withdrew."""
        before = self._before(number, decision)
        return any(e.ruling is not None or e.kind is Cause.LOOKED for e in before)

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
        await self.take_in(self.due(self.begun))

    async def take_in(self, before: int) -> None:
        """Tell the outcomes of the episodes numbered below `before`, up to the first without one.

        They are told by number, each with the certificate that is due, both live and after a
        restart.

        Raises:
            CertificateMissingError: A certificate cannot be made now; the outcomes after it stay
                untold.
        """
        await self._certifier.apply_due()
        while self.untold < before:
            episode = self._counted.get(self.untold)
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
                await self.take_in(self.begun)
            except CertificateMissingError as error:  # no decision follows that it could change
                log.warning("the session ends without a certificate: %s", error)
        for episode in self.counted:
            if episode.number not in self._told:  # it follows a number that will never be played
                await self._tell(episode)

    async def exclude(self, instance: str) -> None:
        """Exclude an instance from all further choices."""
        await self._think(self.measurement.learner.set_aside, instance)

    def counted_on(self, decision: Decision) -> Decision:
        """Say in a decision how much the agent has played before, if the layout counts that.

        It is said anew of each attempt: a repeat comes after what was played meanwhile.
        """
        if not self.measurement.learner.layout.counted:
            return decision
        return replace(decision, played_before=self._played_before)

    async def choose(self, number: int) -> Decision | None:
        """Choose the instance for an episode number; None if none is left.

        Practice changes nothing of what is chosen later, since randomness is keyed by the number
        among the episodes that count. No arena is practised on that another slot has begun.
        """
        if number < self._practice:
            return await self._think(self.measurement.practise, self._names_begun())
        pending = self.pending(number)
        return await self._think(
            self.measurement.choose, number - self._practice, pending, self._played_before
        )

    async def verdict(self) -> StopVerdict:
        """Return the stopping rule's verdict on the outcomes told so far."""
        return await self._think(self.measurement.verdict, self.seconds)

    async def last_verdict(self, fit: FitResult | FitError) -> StopVerdict:
        """Return what both posteriors say together; see `Measurement.last_verdict`."""
        return await self._think(self.measurement.last_verdict, self.seconds, fit)

    async def progress(self) -> Progress:
        """Summarise all outcomes that count, for the session's record."""
        verdict = await self.verdict()
        return Progress(
            episodes=len(self._counted),
            successes=self._successes,
            capabilities=await self._think(self.measurement.capabilities, verdict),
            misfit=self.measurement.learner.misfit,
            practised=self.practised,
        )

    async def known(self, session: Session) -> Earlier:
        """Return all that is known, for a session that goes on from this one."""
        return await self._think(earlier_of, session, self.measurement, self.attempts)

    async def live_report(self, session: Session) -> Report:
        """Return the profile according to the live posterior."""
        return await self._think(
            live_profile, session, self.measurement, self.attempts, self._versions
        )

    async def keep_explanation(self, session: Session, parts: Parts) -> None:
        """Keep what explains the episodes of the session, which is over."""
        learner = self.measurement.learner
        try:
            await self._think(keep_explanation, parts.store, parts.files, session, learner)
        except Exception:  # a session can do without what only saves time
            log.exception("what explains the episodes of session %s is not kept", session.id)

    async def live_fit(self) -> FitResult:
        """Return the live posterior with draws, in the form of a fit."""
        return await self._think(self.measurement.learner.posterior.as_fit)

    async def exported_report(
        self,
        session: Session,
        stop: StopVerdict,
        fit: FitResult | FitError,
        certificates: Mapping[int, StoredCertificate],
    ) -> Report:
        """Return the profile by NUTS for a session that ends; see `exported_profile`."""
        return await self._think(
            exported_profile,
            session,
            self.measurement,
            stop,
            fit,
            self.attempts,
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
        self._told.add(episode.number)
        while self.untold in self._told:
            self.untold += 1

    def _names_begun(self) -> set[str]:
        """Return the names of the battery's instances of which an attempt was begun."""
        over = (episode.decision for episode in self.attempts)
        return {decision.chosen for decision in (*self._decisions.values(), *over)}

    def _before(self, number: int, decision: Decision) -> list[Episode]:
        """Return the attempts at this number and instance that are over."""
        tried = self._tried.get(number, ())
        return [e for e in tried if e.decision.instance == decision.instance]
