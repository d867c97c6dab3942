"""The server's part in playing an attempt: it loads the arena, and carries what is said.

The turns themselves are taken in the worker (`player`).
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Final, TypeAlias

from animalcat.envs.answers import Note
from animalcat.envs.messages import MessageKind, Reply
from animalcat.envs.types import Step
from animalcat.envs.worker_client import Worker, WorkerFault
from animalcat.service.recording.difference import compare_step
from animalcat.service.recording.reader import Recording
from animalcat.service.recording.writer import left_behind
from animalcat.service.session.link import AgentLeftError, AgentLink, Answer, EpisodeOpening, Offer
from animalcat.service.session.notes import size_of
from animalcat.service.session.player import PlayReport, Question, Terms, pack_answer
from animalcat.service.session.playthrough import Playthrough
from animalcat.service.session.spending import Meter
from animalcat.service.session.turns import note_from_proto
from animalcat.values import ENDS, Cause, Spent, Whose

log = logging.getLogger(__name__)

BATCH: Final = 100
"""Actions sent at once to a worker that restores an arena; a tenth of that with a camera, as each
brings an image."""
TICKET_BYTES: Final = 32
"""Size of the secret with which an agent is admitted by a worker."""

Load: TypeAlias = Callable[[], Coroutine[Any, Any, Step]]
"""Starts an attempt's arena, anew every time."""


class Relay:
    """What the server does while one attempt is played."""

    def __init__(
        self, played: Playthrough, link: AgentLink, worker: Worker, terms: Terms, load: Load
    ) -> None:
        """Begin before the arena is loaded.

        Args:
            played: Is told how the attempt has gone.
            link: The agent.
            worker: Plays the arena.
            terms: What the worker is told, but for how the agent comes to it.
            load: Starts the arena.
        """
        self._played = played
        self._link = link
        self._worker = worker
        self._terms = terms
        self._load = load
        self._elsewhere = False
        self._in_play = False
        self._thinking = 0.0

    async def play(self, opening: EpisodeOpening, recording: Recording | None = None) -> None:
        """Have the attempt played to its end.

        Args:
            opening: What the agent is told first.
            recording: What an earlier process of the agent has played, with which it goes on.

        Raises:
            AgentLeftError: The agent left.
            ArenaError: The arena cannot be built.
            OSError: The recording cannot be written.
            WorkerFault: The backend failed.
        """
        # Where the worker was lost or gave way, this may have to wait for room.
        if recording is None:
            self._played.last = await self._link.idle(self._load())
        try:
            if recording is not None:
                self._played.last = await self._link.idle(self._redo(recording))
                done, reward = len(recording.actions), sum(self._played.restored)
                opening = opening._replace(done=done, reward=reward)
            report, left = await self._play_to_report(opening)
        except WorkerFault:
            await asyncio.to_thread(self._take_recording)
            raise
        except AgentLeftError as error:  # and no worker can report
            await asyncio.to_thread(self._take_recording, error)
            raise
        except BaseException:
            self._worker.drop()  # it may be in the middle of the play
            raise
        self._take(report, left)

    def _take(self, report: PlayReport, left: AgentLeftError | None) -> None:
        """Take in how the worker says that it went."""
        played = self._played
        self._link.room.spend(report.noted)
        self._link.room.was_refused(report.refused)
        played.take(report)
        if report.disk:
            raise OSError(*report.disk)
        if report.fault:
            self._worker.drop()
            raise WorkerFault(f"worker ({self._worker.backend}): {report.fault}")
        if played.ended_by is not None or played.exceeded:
            return
        cause, detail = (Cause(report.left), "") if left is None else (left.cause, left.detail)
        if played.steps and cause is Cause.WITHDREW:
            cause = Cause.AGENT_LEFT  # its connection broke while the episode began
        self._leave(cause, report.overdue)
        raise AgentLeftError(cause, detail=detail)

    def _leave(self, cause: Cause, overdue: str) -> None:
        """Fail an attempt whose agent has spent too much, although it has left."""
        if ENDS[cause].whose is Whose.AGENT:
            self._played.exceeded = overdue

    async def _play_to_report(
        self, opening: EpisodeOpening
    ) -> tuple[PlayReport, AgentLeftError | None]:
        """Open the episode, have it played as far as it goes, and get the report.

        Returns:
            What the worker reports, and why the agent has left if it did.
        """
        link, worker, first = self._link, self._worker, self._played.last
        assert first is not None, "the arena is loaded"
        link.room.begin()
        ticket = secrets.token_bytes(TICKET_BYTES)
        self._terms = self._terms._replace(
            place=worker.place_for(link.direct_place),
            first=link.resumes,
            ticket=ticket.hex(),
            timeout=link.timeout,
            notes=link.room.rest,
        )
        reply, left, waiting = await worker.play(self._terms.to_json()), None, None
        if reply.kind is MessageKind.OFFERED:
            self._in_play = True
            offer = Offer(reply.body.decode(), ticket) if reply.body else None
            if offer is not None:
                self._elsewhere = True
                waiting = asyncio.ensure_future(worker.reply(link.timeout))
            try:
                await link.begin(opening, first, offer)
                reply = await self._by_server(waiting)
            except AgentLeftError as error:
                if not self._in_play:
                    raise
                try:
                    left, reply = error, await self._stop_play(error, waiting)
                except WorkerFault:
                    if self._elsewhere:
                        raise
                    raise error from None  # the worker was lost while nothing was asked of it
            except BaseException:
                if waiting is not None:
                    waiting.cancel()
                raise
        return PlayReport.unpack(reply.body, worker.spec), left

    async def _by_server(self, waiting: asyncio.Future[Reply] | None) -> Reply:
        """Carry answers to the worker and its questions to the agent, until it has played.

        Args:
            waiting: What the worker says of an agent that may have come to it; None if it may not.
        """
        link, done = self._link, max(0, self._terms.recorded - 1)
        before = done
        if waiting is not None:
            await link.while_elsewhere(waiting)
            if not waiting.done():
                self._worker.recall()
            reply = await waiting
            if reply.kind is MessageKind.PLAYED:
                return reply
            self._elsewhere = False
            question = self._read_question(reply)
            done = question.frame.ask.step
            if done > before or question.broke:
                await link.ask(question.frame, question.waited)
        while True:
            reply = await self._turn(await link.answer(done), done)
            if reply.kind is MessageKind.PLAYED:
                return reply
            question = self._read_question(reply)
            done = question.frame.ask.step
            await link.ask(question.frame)

    def _read_question(self, reply: Reply) -> Question:
        """Read a question, and take in what it says of the time at the worker."""
        question = Question.unpack(reply.body)
        self._thinking = question.thinking
        self._link.room.spend(question.noted)
        self._link.room.was_refused(question.refused)
        return question

    async def _stop_play(
        self, left: AgentLeftError, waiting: asyncio.Future[Reply] | None
    ) -> Reply:
        """End the play, since the agent has left, and return the report."""
        self._worker.stop(-1.0 if self._elsewhere else left.waited)
        if self._elsewhere and waiting is not None:
            reply = await waiting
        else:
            reply = await self._worker.reply(0.0)
        while reply.kind is not MessageKind.PLAYED:
            self._read_question(reply)  # it has crossed the request
            reply = await self._worker.reply(0.0)
        return reply

    async def _turn(self, answer: Answer, done: int) -> Reply:
        """Have the worker take an answer.

        A worker that died while the agent was away is made anew.
        """
        packed = pack_answer(answer)
        try:
            return await self._worker.turn(packed)
        except WorkerFault as fault:
            if not answer.returned or self._worker.backend.startswith("unity:"):
                raise
            recording = await asyncio.to_thread(left_behind, self._path)
            if len(recording.steps) != done + 1:  # it died in the middle of a turn
                raise
            log.warning("%s while the agent was away: the arena is restored", fault)
            self._in_play = False
            await self._link.idle(self._redo(recording))
            await self._worker.play(self._terms._replace(place="").to_json())
            self._in_play = True
            return await self._worker.turn(packed)

    async def _redo(self, recording: Recording) -> Step:
        """Bring an arena anew to where the recording stands, and compare every number.

        Raises:
            WorkerFault: The worker failed again, or the arena came out otherwise.
        """
        worker, actions, pixels = self._worker, recording.actions, recording.header.pixels
        batch = BATCH if worker.spec.camera is None else BATCH // 10
        steps, number, rewards = [await self._load()], 0, list[float]()
        while True:
            for step in steps:
                difference = compare_step(number, recording.steps[number], step, pixels=pixels)
                if difference is not None:
                    worker.drop()
                    raise WorkerFault(
                        f"worker ({worker.backend}): it was lost, and when its arena was restored "
                        f"it went differently after decision {number}: {difference.field} was "
                        f"{difference.recorded}, and is {difference.replayed}"
                    )
                rewards.append(step.reward)
                number += 1
            if number > len(actions):
                break
            steps = await worker.step(actions[number - 1 : number - 1 + batch])
        self._played.restored = rewards[1:]
        spent = self._meter(_notes(recording)).spent
        self._terms = self._terms._replace(recorded=number, spent=spent)
        return steps[-1]

    def _take_recording(self, left: AgentLeftError | None = None) -> None:
        """Take in what the recording knows, of a worker that can no longer report.

        Args:
            left: Why the agent has left; None if it did not.
        """
        recording = left_behind(self._path)
        self._played.take_recording(recording)
        notes = _notes(recording)
        meter = self._meter(notes)
        if left is not None:
            self._leave(left.cause, meter.take(left.waited))
        self._played.spent = meter.spent
        if self._elsewhere:
            self._link.room.spend(size_of([note.text for note in notes]))

    def _meter(self, notes: list[Note]) -> Meter:
        """Return what the agent has spent until it was asked last."""
        meter = Meter(self._terms.allowance, Spent(self._thinking))
        meter.take(0.0, notes)
        return meter

    @property
    def _path(self) -> Path:
        return Path(self._terms.recording)


def _notes(recording: Recording) -> list[Note]:
    return [note_from_proto(note) for step in recording.steps for note in step.notes]
