"""Converts the service's values to and from wire messages; `animalcat.wire` has observations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final

from animalcat import names
from animalcat.arena_configs.features import FEATURES
from animalcat.envs.agents.base import Allowance
from animalcat.layouts.adaptive.plan import Policy, StoppingRule
from animalcat.service.batteries.battery import Battery
from animalcat.service.batteries.instance import Instance
from animalcat.service.batteries.naming import task_of, variant_of
from animalcat.service.errors import Code, ServiceError
from animalcat.service.model import (
    BatteryRecord,
    CapabilityStatus,
    Cause,
    Decision,
    Episode,
    Made,
    Opponent,
    Session,
    SessionSpec,
    SessionState,
)
from animalcat.service.operations import Operation
from animalcat.v1 import operations_pb2, results_pb2, sessions_pb2, types_pb2
from animalcat.wire import (
    ended_by_to_proto,
    fingerprint_to_proto,
    given,
    spec_from_proto,
    spec_to_proto,
)
from animalcat.words import (
    CAUSES,
    COMBINES,
    MADE_AS,
    POLICIES,
    REASONS,
    STATUSES,
    word,
)

_MEASURED: Final[Mapping[str, sessions_pb2.MeasuredBy.ValueType]] = {
    "placement": sessions_pb2.MEASURED_BY_PLACEMENT,
    "playing": sessions_pb2.MEASURED_BY_PLAYING,
}
MAX_REQUEST_ID = 200
"""Most characters of a request id."""


def decision_to_proto(decision: Decision) -> sessions_pb2.Decision:
    """Convert a decision to its message."""
    return sessions_pb2.Decision(
        instance=decision.instance,
        score=decision.score,
        propensity=decision.propensity,
        predicted=decision.predicted,
        margins=decision.margins,
        reason=REASONS.get(decision.reason, sessions_pb2.REASON_UNSPECIFIED),
        alternatives=[
            sessions_pb2.Alternative(instance=name, score=score)
            for name, score in decision.alternatives
        ],
        because=decision.because,
        made=None if decision.made is None else _made_to_proto(decision.made),
        pending=decision.pending,
        peers=None if decision.peers is None else sessions_pb2.Peers(**asdict(decision.peers)),
    )


def cause_kind(cause: Cause | None) -> types_pb2.Cause.ValueType:
    """Convert the cause that kept an attempt from its end."""
    return types_pb2.CAUSE_UNSPECIFIED if cause is None else CAUSES[cause.name.lower()]


def episode_to_proto(episode: Episode) -> sessions_pb2.EpisodeSummary:
    """Convert an attempt to its message, without the id of the agent's process."""
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
        cause_kind=cause_kind(episode.kind),
        invalid=episode.invalid,
        spent=sessions_pb2.Spent(
            thinking_seconds=episode.spent.thinking_seconds,
            tokens_in=episode.spent.tokens_in,
            tokens_out=episode.spent.tokens_out,
            costs=episode.spent.costs,
        ),
        ruling=types_pb2.Ruling.ValueType(episode.ruling or 0),
        seen=episode.seen,
    )


def spec_of_session_to_proto(spec: SessionSpec) -> sessions_pb2.SessionSpec:
    """Convert a session's specification to its message."""
    return sessions_pb2.SessionSpec(
        agent=spec.agent,
        battery=names.battery_name(spec.battery) if spec.battery else "",
        battery_digest=spec.battery_digest,
        layout=spec.layout,
        layout_variant=spec.layout_variant,
        policy=_policy_to_proto(spec.policy),
        stop=_stop_to_proto(spec.stop),
        seed=spec.seed,
        backend=spec.backend,
        observation_spec=spec_to_proto(spec.observation_spec),
        action_timeout_seconds=spec.action_timeout_seconds,
        record_pixels=spec.record_pixels,
        certify=spec.certify,
        slots=spec.slots,
        layout_digest=spec.layout_digest,
        rules=spec.rules,
        fresh=spec.fresh,
        twins_of=spec.twins_of,
        against=None if spec.against is None else _opponent_to_proto(spec.against),
        lease_seconds=spec.lease_seconds,
        allowance=allowance_to_proto(spec.allowance),
        practice=spec.practice,
        keep_unpassable=spec.keep_unpassable,
        secret=spec.secret,
    )


def allowance_to_proto(allowance: Allowance) -> types_pb2.Allowance:
    """Convert what an agent may spend to its message."""
    return types_pb2.Allowance(**asdict(allowance))


def _opponent_to_proto(opponent: Opponent) -> sessions_pb2.Opponent:
    return sessions_pb2.Opponent(
        session=names.session_name(opponent.session),
        agent=opponent.agent,
        outcomes=opponent.outcomes,
    )


def spec_of_session_from_proto(message: sessions_pb2.SessionSpec) -> SessionSpec:
    """Convert a message to a session's specification, with defaults for what it leaves out.

    The text of a caller's own layout is not part of the result; the caller of this function takes
    it from the message.

    Raises:
        ServiceError: A value is out of its range; the message says which, and what is allowed.
        animalcat.names.BadNameError: The battery's name cannot be parsed.
    """
    names.check_label(message.agent, "agent")
    fields = given(
        message,
        "seed",
        "action_timeout_seconds",
        "record_pixels",
        "certify",
        "slots",
        "rules",
        "fresh",
        "lease_seconds",
        "practice",
        "keep_unpassable",
        "secret",
    )
    # An empty text means that the field was left out.
    texts = ("battery_digest", "layout", "layout_variant", "backend", "layout_digest", "twins_of")
    fields |= {name: text for name in texts if (text := getattr(message, name))}
    if message.HasField("policy"):
        fields["policy"] = _policy_from_proto(message.policy)
    if message.HasField("stop"):
        fields["stop"] = _stop_from_proto(message.stop)
    if message.HasField("observation_spec"):
        try:
            fields["observation_spec"] = spec_from_proto(message.observation_spec)
        except ValueError as error:
            raise ServiceError(Code.INVALID_REQUEST, f"observation_spec: {error}") from error
    if message.HasField("allowance"):
        most = message.allowance
        fields["allowance"] = Allowance(
            most.episode_seconds, most.decision_tokens, most.episode_tokens
        )
    if message.HasField("against"):
        other = message.against
        session = names.parse_session(other.session)
        fields["against"] = Opponent(session, other.agent, dict(other.outcomes))
    battery = names.parse_battery(message.battery)
    try:
        return SessionSpec(message.agent, battery, **fields)
    except ValueError as error:
        raise ServiceError(Code.INVALID_REQUEST, str(error)) from error


def capability_to_proto(status: CapabilityStatus) -> sessions_pb2.CapabilityStatus:
    """Convert a capability's status to its message."""
    return sessions_pb2.CapabilityStatus(
        name=status.name,
        mean=status.mean,
        sd=status.sd,
        unit=status.unit,
        status=STATUSES.get(status.status, sessions_pb2.MEASURING_STATUS_UNSPECIFIED),
        episodes_needed=status.episodes_needed,
        best_sd=status.best_sd,
        limit=status.limit,
        value=status.value,
        interval=status.interval,
    )


def session_to_proto(session: Session) -> sessions_pb2.Session:
    """Convert a session to its message."""
    known = session.identity.fingerprint
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
        paused=session.paused or bool(session.unjudged),
        unjudged=session.unjudged,
        waits_for=session.waits_for,
        practised=session.practised,
        agent_fingerprint=None if known is None else fingerprint_to_proto(known),
        agent_changes=session.identity.changes,
        simulator_environment=session.identity.simulator,
        other_fingerprints=map(fingerprint_to_proto, session.identity.others),
    )
    message.create_time.FromDatetime(session.created)
    return message


def state_from_proto(number: int) -> SessionState:
    """Return the session state that a number stands for.

    Raises:
        ServiceError: The number stands for no state.
    """
    try:
        return SessionState(number)
    except ValueError as error:
        raise ServiceError(Code.INVALID_REQUEST, f"there is no state {number}") from error


def battery_to_proto(battery: BatteryRecord) -> sessions_pb2.Battery:
    """Convert a battery to its message."""
    return sessions_pb2.Battery(
        name=names.battery_name(battery.id),
        digest=battery.digest,
        instances=battery.instances,
        problems=battery.problems,
    )


def checked_id(request_id: str) -> str:
    """Return a call's request id, which may be empty, after checking its length.

    Raises:
        ServiceError: The id is too long.
    """
    if len(request_id) > MAX_REQUEST_ID:
        raise ServiceError(
            Code.INVALID_REQUEST, f"request_id has more than {MAX_REQUEST_ID} characters"
        )
    return request_id


def features_to_proto(battery: Battery) -> list[sessions_pb2.Feature]:
    """Describe the meta-features of a battery as messages, in order of name."""
    return [
        sessions_pb2.Feature(
            name=name,
            unit=unit,
            description=FEATURES[name].description if name in FEATURES else "",
            version=battery.versions.get(name, 0),
            measured_by=_MEASURED[FEATURES[name].measured]
            if name in FEATURES
            else sessions_pb2.MEASURED_BY_CALLER,
        )
        for name, unit in sorted(battery.units.items())
    ]


def instance_to_proto(
    instance: Instance, group: str = "", arena_yaml: str = ""
) -> sessions_pb2.Instance:
    """Convert an instance to its message.

    Args:
        instance: The instance.
        group: Its group of variants.
        arena_yaml: Its arena; empty unless the caller asked for arenas.
    """
    return sessions_pb2.Instance(
        name=instance.name,
        paradigm=instance.paradigm,
        features=instance.features,
        missing=instance.missing,
        pass_mark=instance.pass_mark,
        time_limit_steps=instance.time_limit_steps,
        places=_places_to_proto(instance),
        arena_yaml=arena_yaml,
        origin=None if instance.origin is None else sessions_pb2.Origin(**asdict(instance.origin)),
        suite=instance.suite,
        task=task_of(instance),
        variant=variant_of(instance),
        group=group,
    )


def operation_to_proto(operation: Operation) -> operations_pb2.Operation:
    """Convert an operation to its message."""
    message = operations_pb2.Operation(
        name=names.operation_name(operation.id),
        kind=operations_pb2.OperationKind.ValueType(operation.kind),
        subject=operation.subject,
        state=operations_pb2.OperationState.ValueType(operation.state),
        progress=operations_pb2.Progress(
            done=operation.done, total=operation.total, message=operation.message
        ),
    )
    message.create_time.FromDatetime(operation.created)
    if operation.error:
        message.error.code, message.error.message = operation.code, operation.error
    if operation.resource:
        message.resource = operation.resource
    if operation.ended is not None:
        message.end_time.FromDatetime(operation.ended)
    return message


def episode_header(
    episode: Episode,
    spec: SessionSpec,
    arena_yaml: str,
    instance: Instance,
    versions: Mapping[str, str],
) -> results_pb2.EpisodeHeader:
    """Return the header of an attempt's recording.

    Args:
        episode: The attempt.
        spec: Specification of its session.
        arena_yaml: Its fixed arena, as YAML.
        instance: What it plays.
        versions: Version by package, of every package that could change a result.
    """
    return results_pb2.EpisodeHeader(
        name=names.episode_name(episode.session, episode.number, episode.attempt),
        attempt=episode.attempt,
        instance=episode.decision.instance,
        arena_yaml=arena_yaml,
        seed=instance.seed,
        observation_spec=spec_to_proto(spec.observation_spec),
        backend=spec.backend,
        versions=versions,
        decision=decision_to_proto(episode.decision),
        agent=spec.agent,
        pixels=spec.record_pixels,
        places=_places_to_proto(instance),
    )


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
        missing=instance.missing,
        places=_places_to_proto(instance),
        made_as=MADE_AS[made.made_as],
        distance=made.distance,
        note=made.note,
    )


def _places_to_proto(instance: Instance) -> list[sessions_pb2.MarkedPlace]:
    return [sessions_pb2.MarkedPlace(**place._asdict()) for place in instance.places]


def _policy_to_proto(policy: Policy) -> sessions_pb2.SelectionPolicy:
    fields: dict[str, Any] = asdict(policy)
    fields["name"] = POLICIES[policy.name]
    return sessions_pb2.SelectionPolicy(**fields)


def _policy_from_proto(message: sessions_pb2.SelectionPolicy) -> Policy:
    fields = given(
        message,
        "random_share",
        "sharpness",
        "exposures",
        "probes",
        "cool_down",
        "per_second",
        "generate",
        "enough",
    )
    if message.name:
        fields["name"] = _word(message.name, POLICIES, "policy.name")
    try:
        return Policy(about=tuple(message.about), order=tuple(message.order), **fields)
    except ValueError as error:
        raise ServiceError(Code.INVALID_REQUEST, f"policy: {error}") from error


def _stop_to_proto(rule: StoppingRule) -> sessions_pb2.StoppingRule:
    fields: dict[str, Any] = asdict(rule)
    fields["combine"] = COMBINES[rule.combine]
    return sessions_pb2.StoppingRule(**fields)


def _stop_from_proto(message: sessions_pb2.StoppingRule) -> StoppingRule:
    fields = given(
        message,
        "max_episodes",
        "target_sd",
        "futility",
        "target_width",
        "max_seconds",
        "stop_at_alarm",
    )
    if message.combine:
        fields["combine"] = _word(message.combine, COMBINES, "stop.combine")
    try:
        return StoppingRule(targets=dict(message.targets), **fields)
    except ValueError as error:
        raise ServiceError(Code.INVALID_REQUEST, f"stop: {error}") from error


def _word(number: int, words: Mapping[str, int], field: str) -> str:
    """Return the word that a number of an enumeration stands for.

    Args:
        number: The number.
        words: The numbers by word.
        field: The field that has it, for the error message.

    Raises:
        ServiceError: The number is unknown, for example because the client is newer.
    """
    if found := word(number, words):
        return found
    raise ServiceError(
        Code.INVALID_REQUEST,
        f"{field} {number} is unknown to this server; it knows {', '.join(words)}",
    )
