"""Plays one attempt at an episode, step by step, between agent, worker and recorder."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

from animalcat.arena_configs.model import ArenaError
from animalcat.arena_configs.outcome import EpisodeMonitor
from animalcat.codec import encode, number
from animalcat.envs.agents.base import Allowance
from animalcat.envs.answers import Note
from animalcat.envs.types import EndedBy, Phase, Step
from animalcat.envs.worker_client import Worker, WorkerFault
from animalcat.layouts.inference.randomness import rng
from animalcat.service.batteries.battery import Battery
from animalcat.service.measuring.generation import played_arena, played_instance
from animalcat.service.recording import EpisodeRecorder, read_episode
from animalcat.service.recording.difference import compare_step
from animalcat.service.recording.writer import left_behind
from animalcat.service.session.direct import GONE, Played, Terms
from animalcat.service.session.link import AgentLeftError, AgentLink, EpisodeOpening, Offer
from animalcat.service.session.notes import size_of
from animalcat.service.session.parts import Parts
from animalcat.service.session.spending import Meter
from animalcat.service.session.turns import note_from_proto
from animalcat.service.storage.artefacts import recording_path
from animalcat.v1 import types_pb2
from animalcat.values import (
    BY_DEFAULT,
    ENDS,
    Cause,
    Episode,
    EpisodeHeader,
    Outcome,
    Ruling,
    SessionSpec,
    Whose,
)

log = logging.getLogger(__name__)

BATCH: Final = 100
"""Actions sent to a worker at once; a tenth of that with a camera, as each brings an image."""

TICKET_BYTES: Final = 32
"""Size of the secret with which an agent is admitted by a worker."""

_Load: TypeAlias = Callable[[], Coroutine[Any, Any, Step]]
"""Starts an attempt's arena, anew every time."""


@dataclass(slots=True)
class Playthrough:
    """How an attempt has gone so far.

    Attributes:
        watch: Collects what is observed for the outcome.
        steps: Number of decisions taken.
        episode_return: Sum of all rewards.
        ended_by: Why the episode ended; None if it has not, or the agent left.
        reward: Reward since the agent's last observation.
        last: The last step; None before the first.
        fault: What went wrong with the backend; empty if nothing did.
        left: Why the agent can no longer play; None if it can.
        detail: What else is known of that, in words.
        meter: What the agent has spent.
        exceeded: Which allowance it exceeded, so that the attempt is a failure; empty for none.
    """

    watch: EpisodeMonitor
    steps: int = 0
    episode_return: float = 0.0
    ended_by: EndedBy | None = None
    reward: float = 0.0
    last: Step | None = None
    fault: str = ""
    left: Cause | None = None
    detail: str = ""
    meter: Meter = field(default_factory=Meter)
    exceeded: str = ""

    def take(self, steps: Sequence[Step]) -> None:
        """Add one or more steps that were played."""
        rewards = [step.reward for step in steps]
        self.steps += len(steps)
        self.reward += sum(rewards)
        for step in steps:
            self.episode_return += step.reward  # one by one, so that the sum equals the recorder's
            self.watch.see(step.reward, step.reached)
        self._end_with(steps[-1])

    def take_played(self, played: Played) -> None:
        """Add what was played without the server."""
        for reward in played.trace:
            self.steps += 1
            self.episode_return += reward
            self.watch.see(reward, played.last.reached)
        self.reward = played.reward
        self._end_with(played.last)

    def _end_with(self, last: Step) -> None:
        self.last = last
        if last.phase is Phase.LAST:
            self.ended_by = last.ended_by
            if self.ended_by is EndedBy.FAULT:
                self.fault = "the backend ended the episode with a fault"


async def play_attempt(
    episode: Episode,
    spec: SessionSpec,
    battery: Battery,
    parts: Parts,
    link: AgentLink,
    worker: Worker,
    *,
    second_chance: bool,
) -> tuple[Episode, Playthrough]:
    """Play an attempt until the arena ends it, the backend fails, or the agent leaves.

    When this returns, the recording is on disk, and the agent has not been told of the end.

    Args:
        episode: The attempt, already begun in the store.
        spec: The session's specification.
        battery: The session's battery.
        parts: What the engines of the server share.
        link: The agent.
        worker: Plays the arena.
        second_chance: Whether the agent voided an earlier attempt at this episode. A second void
            counts as a failure.

    Returns:
        The attempt with its outcome, and how it went.
    """
    instance = played_instance(battery, episode.decision)
    arena_yaml = await asyncio.to_thread(played_arena, battery, episode.decision)
    versions = {**parts.versions, **worker.versions}
    header = EpisodeHeader(
        session=episode.session,
        number=episode.number,
        attempt=episode.attempt,
        instance=episode.decision.instance,
        arena_yaml=arena_yaml,
        seed=instance.seed,
        observation_spec=spec.observation_spec,
        backend=spec.backend,
        versions=versions,
        decision=episode.decision,
        agent=spec.agent,
        pixels=spec.record_pixels,
        places=instance.places,
    )
    recorder = await asyncio.to_thread(
        EpisodeRecorder,
        recording_path(parts.data, episode.session, episode.number, episode.attempt),
        encode(header),
    )
    opening = EpisodeOpening(
        episode.number,
        instance.time_limit_steps,
        _agent_seed(spec, episode),
        episode.practice,
    )
    began = parts.monotonic()
    with closing(recorder):  # whatever happens: a file held open would take room when deleted
        played = Playthrough(EpisodeMonitor(instance.task), meter=Meter(spec.allowance))
        try:
            load = partial(worker.load, arena_yaml, instance.seed, instance.places)
            await _play(played, link, worker, recorder, opening, load, spec.allowance)
        except AgentLeftError as left:
            played.left, played.detail = left.cause, left.detail
            exceeded = played.meter.take(left.waited)
            if ENDS[left.cause].whose is Whose.AGENT:
                played.exceeded = exceeded  # who has spent too much saves nothing by leaving
        except (WorkerFault, ArenaError) as fault:
            played.fault = str(fault)
            played.ended_by = EndedBy.FAULT
        seconds = parts.monotonic() - began
        verdict = judge(played, spec.observation_spec.decision_period, second_chance=second_chance)
        failed = verdict.outcome is Outcome.VOID and played.left is Cause.AGENT_FAILED
        finished = replace(
            episode,
            outcome=verdict.outcome,
            ruling=Ruling.AWAITED if failed else None,
            episode_return=played.episode_return,
            steps=played.steps,
            ended_by=played.ended_by,
            cause=verdict.cause,
            outcomes=verdict.outcomes,
            seconds=seconds,
            versions=versions,
            spent=played.meter.spent,
        )
        await asyncio.to_thread(end_recording, parts, episode, recorder, verdict)
        return finished, played


def end_recording(
    parts: Parts, episode: Episode, recorder: EpisodeRecorder, verdict: Judgement
) -> None:
    """Finish a recording, unless another server has the session and has said what became of it.

    Raises:
        NotOwnerError: It has; the recording stays as the other left it.
    """
    parts.store.check_owned(episode.session)
    recorder.finish(number(types_pb2.Outcome, verdict.outcome), verdict.outcomes)


def _agent_seed(spec: SessionSpec, episode: Episode) -> int:
    """Draw the agent's seed: the same for what counts, whatever was practised before."""
    practised = episode.practice
    purpose, number = ("practice agent", 0) if practised else ("agent", -spec.practice)
    return int(rng(spec.root_of("agent"), purpose, episode.number + number).integers(2**63))


@dataclass(frozen=True, slots=True)
class Judgement:
    """The outcome of an attempt, and its cause.

    Attributes:
        outcome: The outcome.
        cause: Why it is void, a fault, or a failure without having come to its end; empty
            otherwise.
        outcomes: Observed values by source.
    """

    outcome: Outcome
    cause: str = ""
    outcomes: Mapping[str, float] = field(default_factory=dict[str, float])


def judge(played: Playthrough, decision_period: int, *, second_chance: bool) -> Judgement:
    """Return the outcome of an attempt.

    Args:
        played: How the attempt went.
        decision_period: Physics steps per decision.
        second_chance: Whether the agent voided an earlier attempt; if so, another void is a
            failure.
    """
    left = played.left
    if played.fault:
        return Judgement(Outcome.FAULT, f"{Cause.BACKEND.value}: {played.fault}")
    if left is not None and ENDS[left].whose is not Whose.AGENT:
        return Judgement(ENDS[left].first, left.value)
    seen = played.watch.outcomes(played.episode_return, played.steps * decision_period)
    if played.exceeded:
        seen["success"] = 0.0
        seen.pop("time_left", None)  # only who passes has some left
        return Judgement(Outcome.FAILURE, played.exceeded, seen)
    if left is None:
        return Judgement(Outcome.SUCCESS if seen["success"] else Outcome.FAILURE, outcomes=seen)
    if second_chance and ENDS[left].warns:
        cause = f"{left.value}, for the second time: it counts as a failure"
        return Judgement(ENDS[left].again, cause, BY_DEFAULT)
    return Judgement(ENDS[left].first, f"{left.value}: {played.detail}".removesuffix(": "))


async def _play(
    played: Playthrough,
    link: AgentLink,
    worker: Worker,
    recorder: EpisodeRecorder,
    opening: EpisodeOpening,
    load: _Load,
    allowance: Allowance,
) -> None:
    # Where the worker was lost or gave way, this may have to wait for room.
    step = await link.idle(load())
    played.last = step
    recorder.step(step, None)
    place = worker.place_for(link.direct_place)
    if not place:
        await link.begin(opening, step, None)
    elif await _offer(played, link, worker, recorder, opening, step, place, allowance):
        return
    restore = partial(_restore, worker, recorder, load)
    await _relay(played, link, worker, recorder, restore)


async def _offer(
    played: Playthrough,
    link: AgentLink,
    worker: Worker,
    recorder: EpisodeRecorder,
    opening: EpisodeOpening,
    first: Step,
    place: str,
    allowance: Allowance,
) -> bool:
    """Open the episode, and let the agent play it with the worker, as far as it likes.

    Returns:
        Whether the episode is over; if not, the agent goes on over its link.
    """
    ticket = secrets.token_bytes(TICKET_BYTES)
    link.room.begin()
    notes = link.room.rest
    terms = Terms(ticket.hex(), link.timeout, recorder.hand_over(), place, allowance, notes)
    try:
        address = await worker.offer(terms.to_json())
    except WorkerFault:
        recorder.go_on(terms.recording)
        raise
    playing = asyncio.ensure_future(worker.played(link.timeout))
    left: AgentLeftError | None = None
    try:
        await link.begin(opening, first, Offer(address, ticket) if address else None)
        if address:
            await link.while_elsewhere(playing)
    except AgentLeftError as error:
        left = error
    if not playing.done():
        worker.recall()
    try:
        end = Played.unpack(await playing, worker.spec)
    except WorkerFault:
        recorder.go_on(await asyncio.to_thread(left_behind, recorder.path))
        played.steps, played.episode_return = recorder.steps, recorder.episode_return
        noted = await asyncio.to_thread(_noted, recorder.path)
        played.meter.take(0.0, noted)
        link.room.spend(size_of([note.text for note in noted]))
        raise
    recorder.go_on(end.recording)
    link.room.spend(end.noted)
    link.room.was_refused(end.refused)
    played.meter, played.exceeded = Meter(allowance, end.spent), end.exceeded
    if end.disk:
        raise OSError(*end.disk)
    if end.trace:
        played.take_played(end)
    if end.fault:
        worker.drop()
        raise WorkerFault(f"worker ({worker.backend}): {end.fault}")
    if played.ended_by is not None or played.exceeded:
        return True
    why = None if left is None else left.cause
    if why is None and end.left not in ("", GONE):
        why = Cause(end.left)
    if why is not None:
        if played.steps and why is Cause.WITHDREW:
            why = Cause.AGENT_LEFT  # it broke while the episode began
        raise AgentLeftError(why, end.waited, "" if left is None else left.detail)
    if played.steps or end.left == GONE:
        assert played.last is not None
        await link.ask(played.steps, played.reward, played.last, end.waited)
    return False


async def _relay(
    played: Playthrough,
    link: AgentLink,
    worker: Worker,
    recorder: EpisodeRecorder,
    restore: Callable[[], Coroutine[Any, Any, None]],
) -> None:
    """Carry an episode's actions and observations between agent and worker, to its end.

    A worker that died while the agent was away is made anew by `restore`.
    """
    batch = batch_of(worker)
    while True:
        actions, notes, seconds, returned = await link.answer(played.steps)
        played.exceeded = played.meter.take(seconds, notes)
        played.reward = 0.0
        if played.exceeded:
            return
        for start in range(0, len(actions), batch):
            part = actions[start : start + batch]
            try:
                steps = await worker.step(part)
            except WorkerFault as fault:
                if start or not returned or worker.backend.startswith("unity:"):
                    raise
                log.warning("%s while the agent was away: the arena is restored", fault)
                await link.idle(restore())
                steps = await worker.step(part)
            played.take(steps)
            more = played.ended_by is None and start + batch < len(actions)
            try:
                if played.ended_by is None and not more:
                    await link.ask(played.steps, played.reward, steps[-1])
            finally:
                # The agent thinks meanwhile. The worker stops at the end of the episode, so there
                # may be fewer steps than actions.
                for action, step in zip(part, steps, strict=False):
                    recorder.step(step, action, notes)
                    notes = ()
            if played.ended_by is not None:
                return


def batch_of(worker: Worker) -> int:
    """Return how many actions to send to a worker at once."""
    return BATCH if worker.spec.camera is None else BATCH // 10


async def _restore(worker: Worker, recorder: EpisodeRecorder, load: _Load) -> None:
    """Bring an arena anew to where the recording stands, and compare every number.

    Raises:
        WorkerFault: The worker failed again, or the arena came out otherwise.
    """
    recording = await asyncio.to_thread(read_episode, recorder.path)
    actions, pixels, batch = recording.actions, recording.header.pixels, batch_of(worker)
    steps, number = [await load()], 0
    while True:
        for step in steps:
            found = compare_step(number, recording.steps[number], step, pixels=pixels)
            if found is not None:
                worker.drop()
                raise WorkerFault(
                    f"worker ({worker.backend}): it was lost, and when its arena was restored it "
                    f"came out otherwise after decision {number}: {found.field} was "
                    f"{found.recorded}, and is {found.replayed}"
                )
            number += 1
        if number > len(actions):
            return
        steps = await worker.step(actions[number - 1 : number - 1 + batch])


def _noted(path: Path) -> list[Note]:
    """Return the notes of a recording, which tell what a worker that died can no longer tell."""
    return [note_from_proto(note) for step in read_episode(path).steps for note in step.notes]
