"""Every value survives the wire."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC
from typing import Any

import pytest
from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st

from animalcat import names
from animalcat.arena_configs.outcome import MarkedPlace
from animalcat.envs.types import CameraSpec, EndedBy, ObservationSpec, RaySpec
from animalcat.layouts.adaptive.peers import Peers
from animalcat.layouts.adaptive.plan import Policy, StoppingRule
from animalcat.plugins import KINDS, Plugin
from animalcat.service import converters
from animalcat.service.batteries.instance import Instance
from animalcat.service.errors import Code, ServiceError
from animalcat.service.model import (
    BatteryRecord,
    CapabilityStatus,
    Cause,
    Decision,
    Episode,
    Made,
    Opponent,
    Outcome,
    Session,
    SessionSpec,
    SessionState,
)
from animalcat.service.operations import Kind, State
from animalcat.v1 import operations_pb2, sessions_pb2, types_pb2
from animalcat.words import (
    COMBINES,
    MADE_AS,
    OPERATIONS,
    OUTCOMES,
    POLICIES,
    REASONS,
    STATES,
    STATUSES,
)

from .from_proto import battery_from_proto, episode_from_proto, session_from_proto

text = st.text(max_size=30)
component = st.text("abcXYZ0189._-", min_size=1, max_size=30).filter(lambda t: t not in (".", ".."))
number = st.floats(allow_nan=False, allow_infinity=False)
share = st.floats(0, 1)
count = st.integers(0, 2**31)

made = st.builds(
    Made,
    offer=text,
    instance=st.builds(
        Instance,
        name=text,
        paradigm=text,
        features=st.dictionaries(text, number, max_size=4),
        pass_mark=number,
        time_limit_steps=count,
        seed=st.integers(0, 2**63 - 1),
        arena=st.just(""),
        missing=st.dictionaries(text, text, max_size=2),
        places=st.lists(
            st.builds(MarkedPlace, st.booleans(), number, number, number), max_size=2
        ).map(tuple),
    ),
    arena_yaml=text,
)
decisions = st.builds(
    Decision,
    instance=text,
    score=number,
    propensity=share,
    predicted=share,
    margins=st.dictionaries(text, number, max_size=3),
    reason=st.sampled_from(sorted(REASONS)),
    because=text,
    peers=st.none() | st.builds(Peers, count, share, share, st.booleans()),
) | made.map(lambda made: Decision(made.instance.name, 1.0, 0.7, 0.5, {}, "generated", made=made))
episodes = st.builds(
    Episode,
    session=component,
    number=st.integers(0, 99_999),
    attempt=st.integers(0, 99),
    decision=decisions,
    agent_instance=st.just(""),
    outcome=st.none() | st.sampled_from(Outcome),
    episode_return=number,
    steps=count,
    ended_by=st.none() | st.sampled_from(EndedBy),
    cause=text,
    outcomes=st.dictionaries(text, number, max_size=3),
    versions=st.dictionaries(text, text, max_size=3),
    invalid=text,
)
observation_specs = st.builds(
    ObservationSpec,
    camera=st.none() | st.builds(CameraSpec, st.integers(4, 512), st.booleans()),
    rays=st.builds(
        RaySpec, st.integers(1, 50), st.floats(0.5, 180, width=32), st.sampled_from([12, 18])
    ),
    decision_period=st.integers(1, 20),
)
below_one = st.floats(0, 1, exclude_max=True)
policies = (
    st.builds(
        Policy,
        name=st.sampled_from(["variance", "information", "threshold", "stratified", "random"]),
        random_share=share,
        sharpness=st.floats(0, 100),
        exposures=st.integers(0, 9),
        cool_down=st.integers(0, 9),
        per_second=st.booleans(),
        enough=share,
        probes=share,
    )
    | st.just(Policy(generate=True))
    | st.builds(Policy, st.just("plugin"), plugin=st.text(min_size=1, max_size=9))
    | st.builds(Policy, st.just("listed"), order=st.lists(text, min_size=1, max_size=3).map(tuple))
)
specs = st.builds(
    SessionSpec,
    agent=st.text("abcXYZ é:/+.", min_size=1, max_size=200).filter(lambda t: t[0] != "+"),
    battery=component,
    battery_digest=text,
    layout=st.text(min_size=1, max_size=30),
    layout_variant=text,
    policy=policies,
    stop=st.builds(
        StoppingRule,
        max_episodes=st.integers(1, 100_000),
        target_sd=below_one,
        targets=st.dictionaries(text, below_one, max_size=2),
        target_width=st.just(0.0) | share,
        futility=below_one,
        max_seconds=st.floats(0, 1e9),
        stop_at_alarm=st.booleans(),
    )
    | st.just(StoppingRule(target_width=0.3, combine="all")),
    seed=st.integers(0, 2**64 - 1),
    backend=st.text(min_size=1, max_size=9),
    observation_spec=observation_specs,
    action_timeout_seconds=st.floats(0.001, 86_400),
    record_pixels=st.booleans(),
    certify=st.booleans(),
    layout_digest=text,
    rules=st.integers(1, 9),
    plugins=st.lists(
        st.builds(Plugin, st.sampled_from(KINDS), text, text, text, text), max_size=2
    ).map(tuple),
)
capabilities = st.builds(
    CapabilityStatus,
    name=text,
    mean=number,
    sd=number,
    unit=text,
    status=st.sampled_from(sorted(STATUSES)),
    episodes_needed=st.none() | count,
    best_sd=st.none() | number,
    limit=text,
)
sessions = st.builds(
    Session,
    id=component,
    spec=specs,
    state=st.sampled_from(SessionState),
    reason=text,
    created=st.datetimes(timezones=st.just(UTC)),
    episodes=count,
    successes=count,
    capabilities=st.lists(capabilities, max_size=3).map(tuple),
    misfit=text,
    allowed=st.none() | count,
    paused=st.booleans(),
)
batteries = st.builds(BatteryRecord, component, text, count, st.lists(text, max_size=3).map(tuple))


@given(episodes)
def test_episodes(value: Episode) -> None:
    assert episode_from_proto(converters.episode_to_proto(value)) == value


@given(sessions)
def test_sessions(value: Session) -> None:
    assert session_from_proto(converters.session_to_proto(value)) == value


@given(batteries)
def test_batteries(value: BatteryRecord) -> None:
    assert battery_from_proto(converters.battery_to_proto(value)) == value


@pytest.mark.parametrize(
    "changes",
    [
        {},
        # A message that is there, with nothing set, means no more than one that is not.
        {
            "policy": sessions_pb2.SelectionPolicy(),
            "stop": sessions_pb2.StoppingRule(),
            "observation_spec": types_pb2.ObservationSpec(rays=types_pb2.RaySpec()),
        },
        {"policy": sessions_pb2.SelectionPolicy(name=sessions_pb2.POLICY_NAME_VARIANCE)},
    ],
)
def test_what_is_left_out_has_the_default_of_the_domain(changes: dict[str, Any]) -> None:
    message = sessions_pb2.SessionSpec(agent="a", battery=names.battery_name("b"), **changes)
    assert converters.spec_of_session_from_proto(message) == SessionSpec("a", "b")


def test_a_camera_alone_has_its_defaults() -> None:
    camera = types_pb2.ObservationSpec(camera=types_pb2.CameraSpec())
    message = sessions_pb2.SessionSpec(
        agent="a", battery=names.battery_name("b"), observation_spec=camera
    )
    spec = converters.spec_of_session_from_proto(message)
    assert spec.observation_spec == ObservationSpec(camera=CameraSpec(), rays=None)


def test_answers_have_every_field_of_a_spec_set() -> None:
    full = SessionSpec(
        "a",
        "b",
        battery_digest="0",
        layout="l",
        layout_variant="v",
        stop=StoppingRule(targets={"x": 0.1}),
        policy=Policy("listed", order=("one",)),
        observation_spec=ObservationSpec(camera=CameraSpec()),
        layout_digest="1",
        rules=1,
        twins_of="campaign-1",
        against=Opponent("s", "other", {"one": 1.0}),
        plugins=(Plugin("family", "a", "package", "1.0", "2"),),
    )
    message = converters.spec_of_session_to_proto(full)
    assert missing(message) == {
        "layout_definition"  # what the caller sent, as text; kept by its digest
    }
    assert missing(message.policy) == {"about", "plugin"}  # they go with other policies
    assert missing(message.stop) == missing(message.observation_spec) == set()


def missing(message: Message) -> set[str]:
    """Fields of a message that are not set."""
    return {f.name for f in message.DESCRIPTOR.fields} - {f.name for f, _ in message.ListFields()}


@pytest.mark.parametrize(
    ("words", "enum"),
    [
        (POLICIES, sessions_pb2.PolicyName),
        (COMBINES, sessions_pb2.Combine),
        (STATES, sessions_pb2.SessionState),
        (STATUSES, sessions_pb2.MeasuringStatus),
        (REASONS, sessions_pb2.Reason),
        (MADE_AS, sessions_pb2.MadeAs),
        (OUTCOMES, types_pb2.Outcome),
        (OPERATIONS, operations_pb2.OperationState),
    ],
)
def test_every_value_of_an_enum_has_its_word(words: dict[str, int], enum: Any) -> None:
    assert sorted(words.values()) == sorted(set(enum.values()) - {0})


@pytest.mark.parametrize(
    ("ours", "wire"),
    [
        (SessionState, sessions_pb2.SessionState),
        (Outcome, types_pb2.Outcome),
        (State, operations_pb2.OperationState),
        (Kind, operations_pb2.OperationKind),
    ],
)
def test_enums_of_the_service_have_the_numbers_of_the_wire(ours: Any, wire: Any) -> None:
    prefix = wire.Name(0).removesuffix("UNSPECIFIED")
    assert {f"{prefix}{one.name}": int(one) for one in ours} == dict(wire.items()[1:])


def test_every_cause_has_a_kind() -> None:
    kinds = {converters.cause_kind(cause) for cause in Cause}
    assert kinds | {types_pb2.CAUSE_UNSPECIFIED} == set(types_pb2.Cause.values())
    assert len(kinds) == len(Cause)
    assert converters.cause_kind(None) == types_pb2.CAUSE_UNSPECIFIED


@given(specs, st.floats())
def test_shares_are_checked(spec: SessionSpec, value: float) -> None:
    message = converters.spec_of_session_to_proto(replace(spec, policy=Policy()))
    message.policy.random_share = value
    if 0 <= value <= 1:
        assert converters.spec_of_session_from_proto(message).policy.random_share == value
    else:
        with pytest.raises(ServiceError, match=r"policy: random_share") as caught:
            converters.spec_of_session_from_proto(message)
        assert caught.value.code is Code.INVALID_REQUEST
