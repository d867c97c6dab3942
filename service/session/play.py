"""Plays one attempt at an episode, and judges how it went."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from animalcat.arena_configs.model import ArenaError
from animalcat.arena_configs.outcome import EpisodeMonitor
from animalcat.envs.types import PHYSICS_STEP, EndedBy
from animalcat.envs.worker_client import Worker, WorkerFault
from animalcat.layouts.inference.randomness import rng
from animalcat.service.batteries.battery import Battery
from animalcat.service.measuring.generation import played_arena, played_instance
from animalcat.service.recording.writer import begin_recording, finish_recording, read_unfinished
from animalcat.service.session.link import AgentLeftError, AgentLink, EpisodeOpening
from animalcat.service.session.parts import Parts
from animalcat.service.session.player import Terms
from animalcat.service.session.playthrough import Playthrough
from animalcat.service.session.relay import Relay
from animalcat.service.storage.artefacts import recording_path
from animalcat.v1 import results_pb2, types_pb2
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
from animalcat.wire.codec import encode
from animalcat.wire.codec import number as wire_number
from animalcat.wire.steps import ended_by_to_proto


async def play_attempt(
    episode: Episode,
    spec: SessionSpec,
    battery: Battery,
    parts: Parts,
    link: AgentLink,
    worker: Worker,
    *,
    second_chance: bool,
    closed: Episode | None = None,
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
        closed: How it is stored if it cannot go on, where an earlier process left it open; None for
            one that is new.

    Returns:
        The attempt with its outcome, and how it went.
    """
    instance = played_instance(battery, episode.decision)
    arena_yaml = await asyncio.to_thread(played_arena, battery, episode.decision)
    versions = {**parts.versions, **worker.versions}
    period = spec.observation_spec.decision_period
    path = recording_path(parts.data, episode.session, episode.number, episode.attempt)
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
    recording, done = None, 0
    if closed is None:
        await asyncio.to_thread(begin_recording, path, encode(header))
    else:
        recording = await asyncio.to_thread(read_unfinished, path, encode(header))
        if recording is None:
            return closed, Playthrough(EpisodeMonitor(instance.task))
        done = len(recording.actions)
    opening = EpisodeOpening(
        episode.number,
        instance.time_limit_steps,
        _agent_seed(spec, episode),
        episode.practice,
    )
    began = parts.monotonic() - done * period * PHYSICS_STEP  # by the arena's time, as for people
    played = Playthrough(EpisodeMonitor(instance.task))
    terms = Terms(str(path), header.pixels, period, allowance=spec.allowance)
    load = partial(worker.load, arena_yaml, instance.seed, instance.places)
    try:
        await Relay(played, link, worker, terms, load).play(opening, recording)
    except AgentLeftError as left:
        played.left, played.detail = left.cause, left.detail
    except (WorkerFault, ArenaError) as fault:
        played.fault = str(fault)
        played.starved = isinstance(fault, WorkerFault) and parts.memory.was_it(fault.died_of)
        played.ended_by = EndedBy.FAULT
    seconds = parts.monotonic() - began
    judgement = judge(played, period, second_chance=second_chance)
    failed = judgement.outcome is Outcome.VOID and played.left is Cause.AGENT_FAILED
    finished = replace(
        episode,
        outcome=judgement.outcome,
        ruling=Ruling.AWAITED if failed else None,
        episode_return=played.episode_return,
        steps=played.steps,
        ended_by=played.ended_by,
        cause=judgement.cause,
        outcomes=judgement.outcomes,
        seconds=seconds,
        versions=versions,
        spent=played.spent,
    )
    last = None if played.last is None else played.last.ended_by
    footer = results_pb2.EpisodeFooter(
        outcome=wire_number(types_pb2.Outcome, judgement.outcome),
        episode_return=played.episode_return,
        steps=played.steps,
        ended_by=ended_by_to_proto(last),
        outcomes=judgement.outcomes,
    )
    if played.left is None or not link.leaves_open(played.left):
        await asyncio.to_thread(finish_recording, path, footer, period)
    return finished, played


def _agent_seed(spec: SessionSpec, episode: Episode) -> int:
    """Draw the agent's seed: the same for what counts, whatever was practised before."""
    practised = episode.practice
    purpose, number = ("practice agent", 0) if practised else ("agent", -spec.practice)
    return int(rng(spec.root_of("agent"), purpose, episode.number + number).integers(2**63))


@dataclass(frozen=True, slots=True)
class AttemptJudgement:
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


def judge(played: Playthrough, decision_period: int, *, second_chance: bool) -> AttemptJudgement:
    """Return the outcome of an attempt.

    Args:
        played: How the attempt went.
        decision_period: Physics steps per decision.
        second_chance: Whether the agent voided an earlier attempt; if so, another void is a
            failure.
    """
    left = played.left
    if played.fault:
        cause = Cause.OUT_OF_MEMORY if played.starved else Cause.BACKEND
        return AttemptJudgement(Outcome.FAULT, f"{cause.value}: {played.fault}")
    if left is not None and ENDS[left].whose is not Whose.AGENT:
        return AttemptJudgement(ENDS[left].first, left.value)
    outcomes = played.watch.outcomes(played.episode_return, played.steps * decision_period)
    if played.exceeded:
        outcomes["success"] = 0.0
        outcomes.pop("time_left", None)  # only who passes has some left
        return AttemptJudgement(Outcome.FAILURE, played.exceeded, outcomes)
    if left is None:
        return AttemptJudgement(
            Outcome.SUCCESS if outcomes["success"] else Outcome.FAILURE, outcomes=outcomes
        )
    if second_chance and ENDS[left].warns:
        cause = f"{left.value}, for the second time: it counts as a failure"
        return AttemptJudgement(ENDS[left].again, cause, BY_DEFAULT)
    return AttemptJudgement(ENDS[left].first, f"{left.value}: {played.detail}".removesuffix(": "))
