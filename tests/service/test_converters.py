"""Every value survives the wire."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC

import pytest
from hypothesis import given
from hypothesis import strategies as st

from animalcat import names
from animalcat.envs.types import CameraSpec, EndedBy, ObservationSpec, RaySpec
from animalcat.layouts.adaptive.peers import Peers
from animalcat.layouts.adaptive.plan import Policy, StoppingRule
from animalcat.service import converters
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
from animalcat.v1 import sessions_pb2

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
    reason=st.sampled_from(["informative", "random"]),
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
        name=st.sampled_from(["variance", "threshold", "stratified", "random"]),
        random_share=share,
        sharpness=st.floats(0, 100),
        balance=st.none() | st.integers(0, 9),
        exposures=st.integers(0, 9),
        cool_down=st.integers(0, 9),
        per_second=st.booleans(),
        enough=share,
        probes=share,
    )
    | st.just(Policy(generate=True))
    | st.builds(Policy, st.just("listed"), order=st.lists(text, min_size=1, max_size=3).map(tuple))
)
specs = st.builds(
    SessionSpec,
    agent=st.text(min_size=1, max_size=200),
    battery=component,
    battery_digest=text,
    layout=text,
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
    ),
    seed=st.integers(0, 2**64 - 1),
    backend=st.text(min_size=1, max_size=9),
    observation_spec=observation_specs,
    action_timeout_seconds=st.floats(0.001, 86_400),
    record_pixels=st.booleans(),
    certify=st.booleans(),
    layout_digest=text,
    rules=st.integers(1, 9),
)
capabilities = st.builds(CapabilityStatus, text, number, number, text, text, st.none() | count)
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
)
batteries = st.builds(BatteryRecord, component, text, count, st.lists(text, max_size=3).map(tuple))


@given(episodes)
def test_episodes(value: Episode) -> None:
    assert converters.episode_from_proto(converters.episode_to_proto(value)) == value


@given(sessions)
def test_sessions(value: Session) -> None:
    assert converters.session_from_proto(converters.session_to_proto(value)) == value


@given(batteries)
def test_batteries(value: BatteryRecord) -> None:
    assert converters.battery_from_proto(converters.battery_to_proto(value)) == value


def test_what_is_left_out_gets_its_default() -> None:
    message = sessions_pb2.SessionSpec(
        agent="a",
        battery=names.battery_name("b"),
        layout="aaio",
        stop=sessions_pb2.StoppingRule(max_episodes=5),
    )
    spec = converters.spec_of_session_from_proto(message)
    assert spec.observation_spec == ObservationSpec()
    assert spec.policy == Policy()
    assert (spec.backend, spec.action_timeout_seconds) == ("sim", 60.0)


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
