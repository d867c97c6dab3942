"""Between the service's values and the wire's messages; what agents see is in `animalcat.wire`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC
from typing import TYPE_CHECKING, Literal, cast

from animalcat import names
from animalcat.arena_configs.features import FEATURES
from animalcat.envs.types import ObservationSpec
from animalcat.layouts.adaptive.peers import Peers
from animalcat.layouts.adaptive.plan import Policy, StoppingRule
from animalcat.service.battery import Instance
from animalcat.service.errors import Code, ServiceError
from animalcat.service.model import (
    BatteryRecord,
    CapabilityStatus,
    Decision,
    Episode,
    Made,
    Outcome,
    Session,
    SessionSpec,
    SessionState,
)
from animalcat.v1 import results_pb2, sessions_pb2, types_pb2
from animalcat.wire import ended_by_from_proto, ended_by_to_proto, spec_from_proto, spec_to_proto

if TYPE_CHECKING:
    from animalcat.layouts.adaptive.plan import Name

MAX_EPISODES = 100_000
"""Most episodes of one session."""
MAX_SLOTS = 64
"""Most episodes of one session at once."""


def decision_to_proto(decision: Decision) -> sessions_pb2.Decision:
    """The wire form of a decision."""
    return sessions_pb2.Decision(
        instance=decision.instance,
        score=decision.score,
        propensity=decision.propensity,
        predicted=decision.predicted,
        margins=decision.margins,
        reason=decision.reason,
        alternatives=[
            sessions_pb2.Alternative(instance=name, score=score)
            for name, score in decision.alternatives
        ],
        because=decision.because,
        made=None if decision.made is None else _made_to_proto(decision.made),
        pending=decision.pending,
        peers=None if decision.peers is None else sessions_pb2.Peers(**asdict(decision.peers)),
    )


def decision_from_proto(message: sessions_pb2.Decision) -> Decision:
    """The decision that a message holds."""
    return Decision(
        instance=message.instance,
        score=message.score,
        propensity=message.propensity,
        predicted=message.predicted,
        margins=dict(message.margins),
        reason=message.reason,
        alternatives=tuple((other.instance, other.score) for other in message.alternatives),
        because=message.because,
        made=_made_from_proto(message) if message.HasField("made") else None,
        pending=message.pending,
        peers=_peers_from_proto(message.peers) if message.HasField("peers") else None,
    )


def episode_to_proto(episode: Episode) -> sessions_pb2.EpisodeSummary:
    """The wire form of an attempt; what it says of the agent's process stays here."""
    return sessions_pb2.EpisodeSummary(
        name=names.episode_name(episode.session, episode.number, episode.attempt),
        episode=episode.number,
        attempt=episode.attempt,
        instance=episode.decision.instance,
        outcome=types_pb2.Outcome.ValueType(episode.outcome or 0),
        episode_return=episode.episode_return,
        steps=episode.steps,
        ended_by=ended_by_to_proto(episode.ended_by),
        decision=decision_to_proto(episode.decision),
        cause=episode.cause or episode.unreadable,
        seconds=episode.seconds,
        outcomes=episode.outcomes,
        versions=episode.versions,
    )


def episode_from_proto(message: sessions_pb2.EpisodeSummary) -> Episode:
    """The attempt that a message holds.

    Raises:
        animalcat.names.BadNameError: Its name does not parse.
    """
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
    )


def spec_of_session_to_proto(spec: SessionSpec) -> sessions_pb2.SessionSpec:
    """The wire form of what defines a session."""
    return sessions_pb2.SessionSpec(
        agent=spec.agent,
        battery=names.battery_name(spec.battery) if spec.battery else "",
        battery_digest=spec.battery_digest,
        layout=spec.layout,
        layout_variant=spec.layout_variant,
        policy=_policy_to_proto(spec.policy),
        stop=sessions_pb2.StoppingRule(**asdict(spec.stop)),
        seed=spec.seed,
        backend=spec.backend,
        observation_spec=spec_to_proto(spec.observation_spec),
        action_timeout_seconds=spec.action_timeout_seconds,
        record_pixels=spec.record_pixels,
        certify=spec.certify,
        slots=spec.slots,
        layout_digest=spec.layout_digest,
        rules=spec.rules,
    )


def spec_of_session_from_proto(message: sessions_pb2.SessionSpec) -> SessionSpec:
    """What defines a session, checked; what is left out gets its default.

    The text of a layout of the caller's own is no part of it: whoever asked takes it from the
    message.

    Raises:
        ServiceError: A value is out of its range; the message says which and what is right.
        animalcat.names.BadNameError: The battery's name does not parse.
    """
    if not 1 <= len(message.agent) <= 200:
        raise _bad("agent", "1 to 200 characters")
    if not 1 <= message.stop.max_episodes <= MAX_EPISODES:
        raise _bad("stop.max_episodes", f"1 to {MAX_EPISODES}")
    if message.slots > MAX_SLOTS:
        raise _bad("slots", f"1 to {MAX_SLOTS}")
    timeout = message.action_timeout_seconds or 60.0
    if not 0.0 < timeout <= 86_400.0:
        raise _bad("action_timeout_seconds", "above 0 and at most 86400")
    try:
        seen = (
            spec_from_proto(message.observation_spec)
            if message.HasField("observation_spec")
            else ObservationSpec()
        )
    except ValueError as error:
        raise ServiceError(Code.INVALID_REQUEST, f"observation_spec: {error}") from error
    if seen.camera is None and seen.rays is None:
        raise _bad("observation_spec", "a camera, rays or both")
    return SessionSpec(
        agent=message.agent,
        battery=names.parse_battery(message.battery),
        battery_digest=message.battery_digest,
        layout=message.layout,
        layout_variant=message.layout_variant,
        policy=_policy_from_proto(message.policy) if message.HasField("policy") else Policy(),
        stop=_stop_from_proto(message.stop),
        seed=message.seed,
        backend=message.backend or "sim",
        observation_spec=seen,
        action_timeout_seconds=timeout,
        record_pixels=message.record_pixels,
        certify=message.certify,
        slots=message.slots or 1,
        layout_digest=message.layout_digest,
        rules=message.rules or 1,
    )


def capability_to_proto(status: CapabilityStatus) -> sessions_pb2.CapabilityStatus:
    """The wire form of how well a capability is known."""
    return sessions_pb2.CapabilityStatus(
        name=status.name,
        mean=status.mean,
        sd=status.sd,
        unit=status.unit,
        status=status.status,
        episodes_needed=status.episodes_needed,
        best_sd=status.best_sd,
        limit=status.limit,
    )


def capability_from_proto(message: sessions_pb2.CapabilityStatus) -> CapabilityStatus:
    """How well a capability is known, as a message says."""
    return CapabilityStatus(
        name=message.name,
        mean=message.mean,
        sd=message.sd,
        unit=message.unit,
        status=message.status,
        episodes_needed=message.episodes_needed if message.HasField("episodes_needed") else None,
        best_sd=message.best_sd if message.HasField("best_sd") else None,
        limit=message.limit,
    )


def session_to_proto(session: Session) -> sessions_pb2.Session:
    """The wire form of a session."""
    message = sessions_pb2.Session(
        name=names.session_name(session.id),
        spec=spec_of_session_to_proto(session.spec),
        state=sessions_pb2.SessionState.ValueType(session.state),
        episodes=session.episodes,
        successes=session.successes,
        capabilities=[capability_to_proto(status) for status in session.capabilities],
        reason=session.reason,
        misfit=session.misfit,
        allowed=session.allowed,
    )
    message.create_time.FromDatetime(session.created)
    return message


def session_from_proto(message: sessions_pb2.Session) -> Session:
    """The session that a message holds.

    Raises:
        ServiceError: Its spec is out of range.
        animalcat.names.BadNameError: Its name does not parse.
    """
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
    )


def battery_to_proto(battery: BatteryRecord) -> sessions_pb2.Battery:
    """The wire form of a battery."""
    return sessions_pb2.Battery(
        name=names.battery_name(battery.id),
        digest=battery.digest,
        instances=battery.instances,
        problems=battery.problems,
    )


def battery_from_proto(message: sessions_pb2.Battery) -> BatteryRecord:
    """The battery that a message holds.

    Raises:
        animalcat.names.BadNameError: Its name does not parse.
    """
    return BatteryRecord(
        names.parse_battery(message.name),
        message.digest,
        message.instances,
        tuple(message.problems),
    )


def feature_to_proto(name: str, unit: str) -> sessions_pb2.Feature:
    """The wire form of what a meta-feature is."""
    known = FEATURES.get(name)
    return sessions_pb2.Feature(
        name=name, unit=unit, description="" if known is None else known.description
    )


def instance_to_proto(instance: Instance) -> sessions_pb2.Instance:
    """The wire form of an instance."""
    return sessions_pb2.Instance(
        name=instance.name,
        paradigm=instance.paradigm,
        features=instance.features,
        missing=instance.missing,
        pass_mark=instance.pass_mark,
        time_limit_steps=instance.time_limit_steps,
    )


def episode_header(
    episode: Episode, spec: SessionSpec, arena_yaml: str, seed: int, versions: Mapping[str, str]
) -> results_pb2.EpisodeHeader:
    """The header of an attempt's recording.

    Args:
        episode: The attempt.
        spec: What its session was made with.
        arena_yaml: Its arena, fixed.
        seed: Seed of the episode.
        versions: Versions of what could change the numbers, by package.
    """
    return results_pb2.EpisodeHeader(
        name=names.episode_name(episode.session, episode.number, episode.attempt),
        attempt=episode.attempt,
        instance=episode.decision.instance,
        arena_yaml=arena_yaml,
        seed=seed,
        observation_spec=spec_to_proto(spec.observation_spec),
        backend=spec.backend,
        versions=versions,
        decision=decision_to_proto(episode.decision),
        agent=spec.agent,
        pixels=spec.record_pixels,
    )


def _peers_from_proto(peers: sessions_pb2.Peers) -> Peers:
    return Peers(peers.left, peers.propensity, peers.predicted, peers.open)


def _made_to_proto(made: Made) -> sessions_pb2.MadeInstance:
    instance = made.instance
    return sessions_pb2.MadeInstance(
        offer=made.offer,
        paradigm=instance.paradigm,
        features=instance.features,
        pass_mark=instance.pass_mark,
        time_limit_steps=instance.time_limit_steps,
        seed=instance.seed,
        arena_yaml=made.arena_yaml,
    )


def _made_from_proto(decision: sessions_pb2.Decision) -> Made:
    made = decision.made
    instance = Instance(
        name=decision.instance,
        paradigm=made.paradigm,
        features=dict(made.features),
        pass_mark=made.pass_mark,
        time_limit_steps=made.time_limit_steps,
        seed=made.seed,
        arena="",
    )
    return Made(made.offer, instance, made.arena_yaml)


def _policy_to_proto(policy: Policy) -> sessions_pb2.SelectionPolicy:
    fields = asdict(policy)
    balance = fields.pop("balance")
    return sessions_pb2.SelectionPolicy(**fields, balance=-1 if balance is None else balance)


def _policy_from_proto(message: sessions_pb2.SelectionPolicy) -> Policy:
    default = Policy()
    balance = message.balance if message.HasField("balance") else -1
    name = message.name or default.name
    try:
        return Policy(
            cast("Name", name),  # the policy itself checks it
            random_share=message.random_share,
            sharpness=message.sharpness if message.HasField("sharpness") else default.sharpness,
            balance=None if balance < 0 else balance,
            exposures=message.exposures if message.HasField("exposures") else default.exposures,
            cool_down=message.cool_down,
            per_second=message.per_second,
            about=tuple(message.about),
            order=tuple(message.order),
            generate=message.generate,
            enough=message.enough if message.HasField("enough") else default.enough,
            probes=message.probes if message.HasField("probes") else default.probes,
        )
    except ValueError as error:
        raise ServiceError(Code.INVALID_REQUEST, f"policy: {error}") from error


def _stop_from_proto(message: sessions_pb2.StoppingRule) -> StoppingRule:
    try:
        return StoppingRule(
            max_episodes=message.max_episodes,
            target_sd=message.target_sd,
            targets=dict(message.targets),
            target_width=message.target_width,
            futility=message.futility,
            max_seconds=message.max_seconds,
            stop_at_alarm=message.stop_at_alarm,
            combine=cast("Literal['any', 'all']", message.combine or "any"),  # it checks that
        )
    except ValueError as error:
        raise ServiceError(Code.INVALID_REQUEST, f"stop: {error}") from error


def _bad(field: str, wanted: str) -> ServiceError:
    return ServiceError(Code.INVALID_REQUEST, f"{field} is out of range; give {wanted}")
