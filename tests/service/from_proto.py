"""What a message holds, as the service's values: the way back of `service/converters.py`."""

from __future__ import annotations

from datetime import UTC

from animalcat import names
from animalcat.arena_configs.outcome import MarkedPlace
from animalcat.layouts.adaptive.peers import Peers
from animalcat.service.batteries.instance import Instance
from animalcat.service.converters import spec_of_session_from_proto
from animalcat.service.model import (
    BatteryRecord,
    CapabilityStatus,
    Decision,
    Episode,
    Made,
    MadeAs,
    Outcome,
    Session,
    SessionState,
    Spent,
)
from animalcat.v1 import sessions_pb2
from animalcat.wire import ended_by_from_proto
from animalcat.words import MADE_AS, REASONS, STATUSES, word


def decision_from_proto(message: sessions_pb2.Decision) -> Decision:
    """The decision that a message holds."""
    return Decision(
        instance=message.instance,
        score=message.score,
        propensity=message.propensity,
        predicted=message.predicted,
        margins=dict(message.margins),
        reason=word(message.reason, REASONS),
        alternatives=tuple((other.instance, other.score) for other in message.alternatives),
        because=message.because,
        made=made_from_proto(message) if message.HasField("made") else None,
        pending=message.pending,
        peers=peers_from_proto(message.peers) if message.HasField("peers") else None,
    )


def episode_from_proto(message: sessions_pb2.EpisodeSummary) -> Episode:
    """The attempt that a message holds."""
    return Episode(
        session=names.parse_episode(message.name).session,
        number=message.episode,
        attempt=message.attempt,
        decision=decision_from_proto(message.decision),
        outcome=Outcome(message.outcome) if message.outcome else None,
        episode_return=message.episode_return,
        steps=message.steps,
        ended_by=ended_by_from_proto(message.ended_by),
        cause=message.cause,
        seconds=message.seconds,
        outcomes=dict(message.outcomes),
        versions=dict(message.versions),
        invalid=message.invalid,
        spent=Spent(
            message.spent.thinking_seconds,
            message.spent.tokens_in,
            message.spent.tokens_out,
            dict(message.spent.costs),
        ),
    )


def capability_from_proto(message: sessions_pb2.CapabilityStatus) -> CapabilityStatus:
    """How well a capability is known, as a message says."""
    return CapabilityStatus(
        name=message.name,
        mean=message.mean,
        sd=message.sd,
        unit=message.unit,
        status=word(message.status, STATUSES),
        episodes_needed=message.episodes_needed if message.HasField("episodes_needed") else None,
        best_sd=message.best_sd if message.HasField("best_sd") else None,
        limit=message.limit,
    )


def session_from_proto(message: sessions_pb2.Session) -> Session:
    """The session that a message holds."""
    return Session(
        id=names.parse_session(message.name),
        spec=spec_of_session_from_proto(message.spec),
        state=SessionState(message.state),
        reason=message.reason,
        created=message.create_time.ToDatetime(UTC),
        episodes=message.episodes,
        successes=message.successes,
        capabilities=tuple(capability_from_proto(status) for status in message.capabilities),
        misfit=message.misfit,
        allowed=message.allowed if message.HasField("allowed") else None,
        paused=message.paused,
    )


def battery_from_proto(message: sessions_pb2.Battery) -> BatteryRecord:
    """The battery that a message holds."""
    return BatteryRecord(
        names.parse_battery(message.name),
        message.digest,
        message.instances,
        tuple(message.problems),
    )


def made_from_proto(decision: sessions_pb2.Decision) -> Made:
    made = decision.made
    instance = Instance(
        name=decision.instance,
        paradigm=made.paradigm,
        features=dict(made.features),
        pass_mark=made.pass_mark,
        time_limit_steps=made.time_limit_steps,
        seed=made.seed,
        arena="",
        missing=dict(made.missing),
        places=tuple(MarkedPlace(p.right, p.x, p.z, p.radius) for p in made.places),
    )
    made_as = MadeAs(word(made.made_as, MADE_AS))
    return Made(made.offer, instance, made.arena_yaml, made_as, made.distance, made.note)


def peers_from_proto(peers: sessions_pb2.Peers) -> Peers:
    return Peers(peers.left, peers.propensity, peers.predicted, peers.open)
