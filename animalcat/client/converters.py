"""Between the client's values and the wire's messages; what agents see is in `animalcat.wire`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp

from animalcat import names
from animalcat.battery_reference import battery_name
from animalcat.client.values import (
    Alternative,
    Battery,
    Campaign,
    CampaignSpec,
    Capability,
    Decision,
    Episode,
    EpisodeFooter,
    EpisodeHeader,
    Feature,
    Instance,
    Layout,
    MadeInstance,
    Operation,
    Opponent,
    Origin,
    Peers,
    PlacedFit,
    PlacedWorker,
    Policy,
    ProcessPlacement,
    RecordedStep,
    Refusal,
    Session,
    SessionEvent,
    SessionSpec,
    Spent,
    StoppingRule,
    Ticket,
    Verdict,
)
from animalcat.envs.agents.base import Allowance
from animalcat.envs.answers import Note
from animalcat.envs.types import ObservationSpec
from animalcat.errors import AnimalcatError
from animalcat.v1 import (
    access_pb2,
    campaigns_pb2,
    layouts_pb2,
    operations_pb2,
    results_pb2,
    sessions_pb2,
    types_pb2,
)
from animalcat.wire import (
    fingerprint_from_proto,
    given,
    observation_from_proto,
    places_from_proto,
    plugin_from_proto,
    plugin_to_proto,
    spec_from_proto,
    spec_to_proto,
)
from animalcat.words import (
    CAUSES,
    COMBINES,
    ENDED_BY,
    KINDS,
    MADE_AS,
    MEASURED_BY,
    OPERATIONS,
    OUTCOMES,
    POLICIES,
    REASONS,
    RULINGS,
    STATES,
    STATUSES,
    word,
)


def session_from_proto(message: sessions_pb2.Session) -> Session:
    """A session."""
    return Session(
        id=names.parse_session(message.name),
        spec=session_spec_from_proto(message.spec),
        state=_word(message.state, STATES),
        episodes=message.episodes,
        successes=message.successes,
        capabilities=tuple(map(capability_from_proto, message.capabilities)),
        reason=message.reason,
        created=_time(message.create_time),
        misfit=message.misfit,
        allowed=message.allowed if message.HasField("allowed") else None,
        creator=message.creator,
        paused=message.paused,
        waits_for=message.waits_for,
        practised=message.practised,
        unjudged=tuple(message.unjudged),
        withheld=message.withheld,
        agent_fingerprint=fingerprint_from_proto(message.agent_fingerprint)
        if message.HasField("agent_fingerprint")
        else None,
        agent_changes=tuple(message.agent_changes),
        simulator_environment=dict(message.simulator_environment),
        other_fingerprints=tuple(map(fingerprint_from_proto, message.other_fingerprints)),
    )


def placement_from_proto(message: operations_pb2.GetPlacementResponse) -> ProcessPlacement:
    """Where simulators and fits are."""
    return ProcessPlacement(
        engine=message.engine,
        workers=tuple(
            PlacedWorker(names.parse_session(worker.session) if worker.session else "", worker.node)
            for worker in message.workers
        ),
        max_workers=message.max_workers,
        campaign_workers=message.campaign_workers,
        backlog={
            names.parse_session(waiting.session): waiting.waits_for for waiting in message.backlog
        },
        fits=tuple(PlacedFit(fit.node, fit.busy) for fit in message.fits),
        fits_waiting=message.fits_waiting,
        lacks=tuple(message.lacks),
        refusals=tuple(
            Refusal(
                refusal.what, refusal.who, refusal.number, _time(refusal.last_time), refusal.words
            )
            for refusal in message.refusals
        ),
    )


def ticket_from_proto(message: access_pb2.GetTicketResponse) -> Ticket:
    """A ticket."""
    return Ticket(
        text=message.ticket,
        expires=_time(message.expire_time),
        local_address=message.local_address,
        folder=message.folder,
    )


def session_spec_from_proto(message: sessions_pb2.SessionSpec) -> SessionSpec:
    """What defines a session."""
    return SessionSpec(
        agent=message.agent,
        battery=names.parse_battery(message.battery) if message.battery else "",
        battery_digest=message.battery_digest,
        layout=message.layout,
        layout_variant=message.layout_variant,
        layout_digest=message.layout_digest,
        layout_definition=message.layout_definition,
        policy=_policy_from_proto(message.policy),
        stop=_stop_from_proto(message.stop),
        backend=message.backend,
        observation_spec=spec_from_proto(message.observation_spec)
        if message.HasField("observation_spec")
        else None,
        twins_of=message.twins_of,
        plugins=tuple(map(plugin_from_proto, message.plugins)),
        against=Opponent(
            names.parse_session(message.against.session),
            message.against.agent,
            dict(message.against.outcomes),
        )
        if message.HasField("against")
        else None,
        allowance=allowance_from_proto(message.allowance)
        if message.HasField("allowance")
        else None,
        **given(
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
        ),
    )


def allowance_from_proto(message: types_pb2.Allowance) -> Allowance:
    """What an agent may spend."""
    return Allowance(message.episode_seconds, message.decision_tokens, message.episode_tokens)


def session_spec_to_proto(spec: SessionSpec) -> sessions_pb2.SessionSpec:
    """The wire form of what defines a session; what is None is not set.

    Raises:
        AnimalcatError: There is no such policy, or no such way to combine.
    """
    policy, stop = spec.policy, spec.stop
    return sessions_pb2.SessionSpec(
        agent=spec.agent,
        battery=battery_name(spec.battery) if spec.battery else "",
        battery_digest=spec.battery_digest,
        layout=spec.layout,
        layout_variant=spec.layout_variant,
        layout_digest=spec.layout_digest,
        layout_definition=spec.layout_definition,
        policy=sessions_pb2.SelectionPolicy(
            name=number(policy.name, POLICIES, "policy"),
            random_share=policy.random_share,
            exposures=policy.exposures,
            cool_down=policy.cool_down,
            per_second=policy.per_second,
            about=policy.about,
            order=policy.order,
            generate=policy.generate,
            enough=policy.enough,
            probes=policy.probes,
            sharpness=policy.sharpness,
            plugin=policy.plugin,
        ),
        stop=sessions_pb2.StoppingRule(
            max_episodes=stop.max_episodes,
            target_sd=stop.target_sd,
            futility=stop.futility,
            targets=stop.targets,
            target_width=stop.target_width,
            max_seconds=stop.max_seconds,
            stop_at_alarm=stop.stop_at_alarm,
            combine=number(stop.combine, COMBINES, "way to combine stopping rules"),
        ),
        seed=spec.seed,
        backend=spec.backend,
        observation_spec=spec_to_proto(spec.observation_spec) if spec.observation_spec else None,
        action_timeout_seconds=spec.action_timeout_seconds,
        record_pixels=spec.record_pixels,
        certify=spec.certify,
        slots=spec.slots,
        rules=spec.rules,
        fresh=spec.fresh,
        twins_of=spec.twins_of,
        against=None
        if spec.against is None
        else sessions_pb2.Opponent(
            session=names.session_name(spec.against.session),
            agent=spec.against.agent,
            outcomes=spec.against.outcomes,
        ),
        lease_seconds=spec.lease_seconds,
        allowance=None if spec.allowance is None else types_pb2.Allowance(**asdict(spec.allowance)),
        practice=spec.practice,
        keep_unpassable=spec.keep_unpassable,
        secret=spec.secret,
        plugins=map(plugin_to_proto, spec.plugins),
    )


def capability_from_proto(message: sessions_pb2.CapabilityStatus) -> Capability:
    """How well a capability is known."""
    return Capability(
        name=message.name,
        mean=message.mean,
        sd=message.sd,
        unit=message.unit,
        status=_word(message.status, STATUSES),
        episodes_needed=message.episodes_needed if message.HasField("episodes_needed") else None,
        best_sd=message.best_sd if message.HasField("best_sd") else None,
        limit=message.limit,
        value=message.value,
        interval=message.interval,
    )


def event_from_proto(message: sessions_pb2.WatchSessionResponse) -> SessionEvent:
    """What happened in a session."""
    return SessionEvent(
        session_from_proto(message.session),
        episode_from_proto(message.episode) if message.HasField("episode") else None,
    )


def episode_from_proto(message: sessions_pb2.EpisodeSummary) -> Episode:
    """An attempt at an episode."""
    return Episode(
        session=names.parse_episode(message.name).session,
        number=message.episode,
        attempt=message.attempt,
        instance=message.instance,
        outcome=_word(message.outcome, OUTCOMES),
        episode_return=message.episode_return,
        steps=message.steps,
        ended_by=_word(message.ended_by, ENDED_BY),
        decision=decision_from_proto(message.decision),
        cause=message.cause,
        cause_kind=_word(message.cause_kind, CAUSES),
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
        ruling=_word(message.ruling, RULINGS),
        seen=message.seen,
    )


def decision_from_proto(message: sessions_pb2.Decision) -> Decision:
    """Why an instance was chosen."""
    return Decision(
        instance=message.instance,
        score=message.score,
        propensity=message.propensity,
        predicted=message.predicted,
        margins=dict(message.margins),
        reason=_word(message.reason, REASONS),
        because=message.because,
        alternatives=tuple(Alternative(a.instance, a.score) for a in message.alternatives),
        made=_made_from_proto(message.made) if message.HasField("made") else None,
        pending=message.pending,
        peers=_peers_from_proto(message.peers) if message.HasField("peers") else None,
    )


def battery_from_proto(message: sessions_pb2.Battery) -> Battery:
    """A battery, without its features."""
    return Battery(
        id=names.parse_battery(message.name),
        digest=message.digest,
        instances=message.instances,
        problems=tuple(message.problems),
    )


def feature_from_proto(message: sessions_pb2.Feature) -> Feature:
    """What a meta-feature is."""
    return Feature(
        name=message.name,
        unit=message.unit,
        description=message.description,
        version=message.version,
        measured_by=_word(message.measured_by, MEASURED_BY),
    )


def instance_from_proto(message: sessions_pb2.Instance) -> Instance:
    """An instance of a battery."""
    return Instance(
        name=message.name,
        paradigm=message.paradigm,
        features=dict(message.features),
        missing=dict(message.missing),
        pass_mark=message.pass_mark,
        time_limit_steps=message.time_limit_steps,
        places=places_from_proto(message.places),
        arena_yaml=message.arena_yaml,
        origin=_origin(message.origin) if message.HasField("origin") else None,
        suite=message.suite,
        task=message.task,
        variant=message.variant,
        group=message.group,
    )


def _origin(message: sessions_pb2.Origin) -> Origin:
    return Origin(
        entry=message.entry,
        family=message.family,
        paradigm=message.paradigm,
        part=message.part,
        task=message.task,
        variant=message.variant,
        control=message.control,
        control_of=message.control_of,
    )


def campaign_from_proto(message: campaigns_pb2.Campaign) -> Campaign:
    """A campaign."""
    spec = message.spec
    return Campaign(
        id=names.parse_campaign(message.name),
        spec=CampaignSpec(
            agents=tuple(spec.agents),
            session=session_spec_from_proto(spec.session),
            budget=spec.budget,
            **given(spec, "common", "block", "at_once", "alike", "confidence", "take"),
        ),
        sessions=tuple(map(session_from_proto, message.sessions)),
        reason=message.reason,
        created=_time(message.create_time),
        max_workers=message.max_workers,
        waits_for=message.waits_for,
    )


def campaign_spec_to_proto(spec: CampaignSpec) -> campaigns_pb2.CampaignSpec:
    """The wire form of what defines a campaign; what is None is not set.

    Raises:
        AnimalcatError: There is no such policy.
    """
    return campaigns_pb2.CampaignSpec(
        agents=spec.agents,
        session=session_spec_to_proto(spec.session),
        budget=spec.budget,
        common=spec.common,
        block=spec.block,
        at_once=spec.at_once,
        alike=spec.alike,
        confidence=spec.confidence,
        take=spec.take,
    )


def operation_from_proto(message: operations_pb2.Operation) -> Operation:
    """Something that takes long."""
    return Operation(
        id=names.parse_operation(message.name),
        kind=_word(message.kind, KINDS),
        subject=message.subject,
        state=_word(message.state, OPERATIONS),
        done=message.progress.done,
        total=message.progress.total,
        message=message.progress.message,
        error=message.error.message,
        error_code=message.error.code,
        resource=message.resource,
        created=_time(message.create_time),
        ended=_time(message.end_time) if message.HasField("end_time") else None,
    )


def layout_from_proto(message: layouts_pb2.Layout) -> Layout:
    """A measurement layout."""
    return Layout(
        title=message.title,
        variant=message.variant,
        digest=message.digest,
        shipped=message.shipped,
        text=message.text,
    )


def header_from_proto(message: results_pb2.EpisodeHeader) -> EpisodeHeader:
    """How a recorded episode began."""
    session, episode, _ = names.parse_episode(message.name)
    return EpisodeHeader(
        session=session,
        number=episode,
        attempt=message.attempt,
        instance=message.instance,
        arena_yaml=message.arena_yaml,
        seed=message.seed,
        observation_spec=spec_from_proto(message.observation_spec),
        backend=message.backend,
        versions=dict(message.versions),
        decision=decision_from_proto(message.decision),
        agent=message.agent,
        pixels=message.pixels,
        protocol=message.protocol,
        places=places_from_proto(message.places),
    )


def step_from_proto(
    message: results_pb2.RecordedStep, spec: ObservationSpec, *, pixels: bool
) -> RecordedStep:
    """One decision of a recorded episode.

    Args:
        message: The step.
        spec: What the agent saw, as the header says.
        pixels: Whether steps hold camera images, as the header says.
    """
    return RecordedStep(
        step=message.step,
        action=message.action if message.HasField("action") else None,
        reward=message.reward,
        observation=observation_from_proto(message.observation, spec, camera=pixels),
        ended_by=_word(message.ended_by, ENDED_BY),
        camera_digest=message.camera_digest,
        notes=tuple(map(note_from_proto, message.notes)),
    )


def note_from_proto(message: types_pb2.Note) -> Note:
    """What an agent remarked."""
    told = given(message, "tokens_in", "tokens_out", "cost")
    return Note(
        text=message.text,
        tokens_in=told.get("tokens_in"),
        tokens_out=told.get("tokens_out"),
        cost=told.get("cost"),
        currency=message.currency,
    )


def footer_from_proto(message: results_pb2.EpisodeFooter) -> EpisodeFooter:
    """How a recorded episode ended."""
    return EpisodeFooter(
        outcome=_word(message.outcome, OUTCOMES),
        episode_return=message.episode_return,
        steps=message.steps,
        ended_by=_word(message.ended_by, ENDED_BY),
        outcomes=dict(message.outcomes),
    )


def number(text: str | None, words: Mapping[str, int], what: str) -> Any:
    """The number of an enum that a word stands for; unspecified for None.

    Args:
        text: The word.
        words: Those of the enum.
        what: What it names, for the error.

    Raises:
        AnimalcatError: There is no such word; the message lists those that there are.
    """
    if text is None:
        return 0
    if text not in words:
        raise AnimalcatError(f"no {what} is named {text!r}; there are: {', '.join(words)}")
    return words[text]


def _policy_from_proto(message: sessions_pb2.SelectionPolicy) -> Policy:
    return Policy(
        name=_word(message.name, POLICIES),
        about=tuple(message.about),
        order=tuple(message.order),
        plugin=message.plugin,
        **given(
            message,
            "random_share",
            "exposures",
            "cool_down",
            "per_second",
            "generate",
            "enough",
            "probes",
            "sharpness",
        ),
    )


def _stop_from_proto(message: sessions_pb2.StoppingRule) -> StoppingRule:
    return StoppingRule(
        targets=dict(message.targets),
        combine=_word(message.combine, COMBINES),
        **given(
            message,
            "max_episodes",
            "target_sd",
            "futility",
            "target_width",
            "max_seconds",
            "stop_at_alarm",
        ),
    )


def _made_from_proto(message: sessions_pb2.MadeInstance) -> MadeInstance:
    return MadeInstance(
        offer=message.offer,
        paradigm=message.paradigm,
        features=dict(message.features),
        missing=dict(message.missing),
        pass_mark=message.pass_mark,
        time_limit_steps=message.time_limit_steps,
        seed=message.seed,
        arena_yaml=message.arena_yaml,
        places=places_from_proto(message.places),
        made_as=_word(message.made_as, MADE_AS) or "offer",
        distance=message.distance,
        note=message.note,
    )


def _peers_from_proto(message: sessions_pb2.Peers) -> Peers:
    return Peers(message.left, message.propensity, message.predicted, message.open)


def _time(message: Timestamp) -> datetime:
    return message.ToDatetime(UTC)


def _word(value: int, words: Mapping[str, int]) -> Any:
    """The word for a number; None where it is not set, or is a newer server's."""
    return word(value, words) or None


def verdict_from_profile(profile: Mapping[str, Any]) -> Verdict:
    """The verdict of a session's profile.

    Args:
        profile: By the schema "profile".
    """
    found: Mapping[str, Any] = profile["verdict"]
    fails = found["fails"]
    return Verdict(
        tuple(found["sentences"]),
        found["kind"],
        found["probability"],
        found["probabilities"],
        found["why_unclear"],
        found["weakness"],
        fails["share"],
        fails["by"],
        fails["without"],
    )
