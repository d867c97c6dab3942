"""Every value reaches the wire whole and comes back from it, and nothing is left out in silence."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, is_dataclass, replace
from datetime import UTC, datetime
from typing import Any, get_args

import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st

from animalcat import values
from animalcat.arena_configs.instance import Instance
from animalcat.arena_configs.outcome import MarkedPlace
from animalcat.envs.agents.fingerprint import AgentFingerprint
from animalcat.envs.types import CameraSpec, EndedBy, ObservationSpec, RaySpec
from animalcat.extending.plugins import KINDS, Plugin
from animalcat.layouts.adaptive.battery_rate import Wager
from animalcat.layouts.adaptive.peers import Peers
from animalcat.layouts.adaptive.plan import Policy, StoppingRule
from animalcat.service.access.gate import known_to_agent
from animalcat.service.errors import Code, ServiceError
from animalcat.service.rpc.asked import asked_spec
from animalcat.text import names
from animalcat.v1 import results_pb2, sessions_pb2, types_pb2
from animalcat.values import (
    Alternative,
    CampaignSpec,
    CapabilityStatus,
    Decision,
    Earlier,
    Episode,
    Identity,
    MadeAs,
    MadeInstance,
    MeasuringStatus,
    Opponent,
    Outcome,
    Ruling,
    Session,
    SessionSpec,
    SessionState,
    Spent,
)
from animalcat.wire import codec
from animalcat.wire.codec import Pair, decode, encode
from animalcat.wire.steps import step_from_proto

Field = FieldDescriptor
SPEC = ObservationSpec(CameraSpec(4, grayscale=True), RaySpec(1), privileged=True)

text = st.text(max_size=30)
component = st.text("abcXYZ0189._-", min_size=1, max_size=30).filter(lambda t: t not in (".", ".."))
number = st.floats(allow_nan=False, allow_infinity=False)
share = st.floats(0, 1)
count = st.integers(0, 2**31)

made = st.builds(
    MadeInstance,
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
    made_as=st.sampled_from(MadeAs),
)
decisions = st.builds(
    Decision,
    instance=text,
    score=number,
    propensity=share,
    predicted=share,
    margins=st.dictionaries(text, number, max_size=3),
    reason=st.sampled_from(["informative", "random", "person"]),
    because=text,
    peers=st.none() | st.builds(Peers, count, share, share, st.booleans()),
    played_before=st.none() | st.integers(0, 2**32 - 1),
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
    spent=st.builds(Spent, number, count, count, st.dictionaries(text, number, max_size=2)),
    ruling=st.none() | st.sampled_from(Ruling),
    seen=st.booleans(),
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
    agent=st.text("abcXYZ é:/+.", min_size=1, max_size=200).filter(
        lambda t: t[0] != "+" and t == t.strip()
    ),
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
    status=st.sampled_from(get_args(MeasuringStatus)),
    episodes_needed=st.none() | count,
    best_sd=st.none() | number,
    limit=text,
)
fingerprints = st.builds(
    AgentFingerprint,
    source=st.sampled_from(["unknown", "computed"]),
    name=text,
    options=st.dictionaries(text, text, max_size=2),
    process=text,
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
    paused=st.booleans(),
    practised=count,
    spent=st.builds(Spent, number, count, count, st.dictionaries(text, number, max_size=2)),
    unjudged=st.lists(count, max_size=2).map(tuple),
    identity=st.builds(
        Identity,
        fingerprint=st.none() | fingerprints,
        others=st.lists(fingerprints, max_size=2).map(tuple),
        changes=st.lists(text, max_size=2).map(tuple),
        simulator=st.dictionaries(text, text, max_size=2),
    ),
)
campaigns = st.builds(
    CampaignSpec,
    agents=st.just(("a", "b")),
    session=specs,
    budget=st.integers(1, 1000),
    common=st.integers(1, 9),
    take=st.integers(1, 99),
)

TWO = {
    Field.CPPTYPE_BOOL: (True, False),
    Field.CPPTYPE_STRING: ("x1", "x2"),
    Field.CPPTYPE_DOUBLE: (0.5, 0.25),
    Field.CPPTYPE_FLOAT: (0.5, 0.25),
}
"""Two values of a kind; of numbers 1 and 2."""
SPECIAL: dict[str, tuple[Any, Any]] = {
    "Battery.name": ("batteries/x1", "batteries/x2"),
    "Campaign.name": ("campaigns/x1", "campaigns/x2"),
    "CameraSpec.resolution": (8, 9),
    "EpisodeHeader.name": ("sessions/x1/episodes/1-1", "sessions/x2/episodes/1-1"),
    "EpisodeSummary.name": ("sessions/x1/episodes/1-1", "sessions/x2/episodes/1-1"),
    "Observation.camera": (bytes(16), bytes(15) + b"1"),
    "Observation.rays": (bytes(168), bytes(164) + b"1111"),
    "Observation.state": (bytes(96), bytes(92) + b"1111"),
    "Observation.position": ([1.0, 2.0, 3.0], [1.0, 2.0, 4.0]),
    "Observation.velocity": ([1.0, 2.0, 3.0], [1.0, 2.0, 4.0]),
    "Operation.name": ("operations/x1", "operations/x2"),
    "RaySpec.tags": (12, 18),
    "RecordedStep.camera_digest": (b"1", b"2"),
    "Earlier.session": ("sessions/x1", "sessions/x2"),
    "Opponent.session": ("sessions/x1", "sessions/x2"),
    "PlacedWorker.session": ("sessions/x1", "sessions/x2"),
    "WaitingSession.session": ("sessions/x1", "sessions/x2"),
    "Session.name": ("sessions/x1", "sessions/x2"),
    "SessionSpec.battery": ("batteries/x1", "batteries/x2"),
    "Timestamp.nanos": (1_000, 2_000),
}
"""Two values of fields that are checked more closely."""
LEFT_OUT = {
    "Note.slot",  # always 0 in recordings
    "Error.fatal",  # of streams, not of operations
    "Layout.name",  # made of the digest
    "EpisodeSummary.instance",  # the decision's
    "ObservationSpec.ray_tags",  # the first of all tags, as many as the rays tell
    "EpisodeSummary.cause_kind",  # made of the cause
    "SessionSpec.layout_definition",  # of requests alone
}


def key(field: Any) -> str:
    return f"{field.containing_type.name}.{field.name}"


def two(field: Any) -> tuple[Any, Any]:
    if key(field) in SPECIAL:
        return SPECIAL[key(field)]
    if field.enum_type is not None:
        return field.enum_type.values[1].number, field.enum_type.values[2].number
    return TWO.get(field.cpp_type, (1, 2))


def is_map(field: Any) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def put(message: Any, field: Any, which: int) -> None:
    """Set a field that holds no message to the first or the second of its values."""
    value = two(field)[which] if not is_map(field) else None
    if is_map(field):
        getattr(message, field.name)["x1"] = two(field.message_type.fields_by_name["value"])[which]
    elif field.is_repeated:
        del getattr(message, field.name)[:]
        getattr(message, field.name).extend(value if isinstance(value, list) else [value])
    else:
        setattr(message, field.name, value)


def fill(message: Any) -> Any:
    """Set every field; of a oneof the last."""
    for field in message.DESCRIPTOR.fields:
        if field.message_type is None or is_map(field):
            put(message, field, 0)
        elif field.is_repeated:
            fill(getattr(message, field.name).add())
        else:
            getattr(message, field.name).SetInParent()
            fill(getattr(message, field.name))
    return message


def differences(message: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[str, list[Any], Any]]:
    """For every field its name, the way to its message, and the field."""
    for field in message.DESCRIPTOR.fields:
        if field.message_type is None or is_map(field):
            yield key(field), list(path), field
        else:
            inner = getattr(message, field.name)
            yield from differences(inner[0] if field.is_repeated else inner, (*path, field))


def at(message: Any, path: list[Any]) -> Any:
    for field in path:
        message = getattr(message, field.name)
        message = message[0] if field.is_repeated else message
    return message


def test_every_field_of_every_message_and_value_has_its_partner() -> None:
    codec.check()
    kinds = {pair.kind for pair in codec.PAIRS}
    told = {one for one in vars(values).values() if isinstance(one, type)}
    # What is made of JSON, of other values or of nothing on the wire has no message of its own.
    alone = {
        values.PosteriorDraws,
        values.Cause,
        values.Whose,
        values.End,
        values.Verdict,
        values.RecipeText,
        Identity,
    }
    alone |= {values.RecordedStep}
    alone |= {one for one in told if issubclass(one, str)}
    assert told - kinds == alone


@dataclass(frozen=True)
class Odd:
    """A feature whose attributes are not quite those of its message."""

    name: str
    unit: str = ""
    description: str = ""
    version: str = ""
    measured_by: values.MeasuredBy | None = None
    colour: str = ""


@dataclass(frozen=True)
class Dear:
    """What was spent, in whole numbers, where nothing that is said means 1."""

    costs: Mapping[str, int]
    thinking_seconds: float = 1.0
    tokens_in: int = 0
    tokens_out: int = 0


@pytest.mark.parametrize(
    ("pair", "words"),
    [
        (Pair(Odd, sessions_pb2.Feature), "version: the attribute has another type"),
        (
            Pair(Odd, sessions_pb2.Feature, ignored=frozenset({"version"}), kept={"version": ""}),
            "attributes without a partner: colour",
        ),
        (Pair(values.Feature, sessions_pb2.Battery), "no attribute for the field digest"),
        (
            Pair(values.Feature, sessions_pb2.Feature, moved={"title": "name"}),
            "fields without a partner: title",
        ),
        (
            Pair(values.Feature, sessions_pb2.Feature, kept={"colour": ""}),
            "attributes without a partner: colour",
        ),
        (Pair(values.PlacedFit, sessions_pb2.Alternative), "no attribute for the field instance"),
        (
            Pair(Dear, sessions_pb2.Spent, ignored=frozenset({"costs"}), kept={"costs": {}}),
            "thinking_seconds has to be optional: its default is 1.0",
        ),
        (
            Pair(
                Dear,
                sessions_pb2.Spent,
                ignored=frozenset({"thinking_seconds"}),
                kept={"thinking_seconds": 1.0},
            ),
            "costs: the attribute has another type",
        ),
    ],
)
def test_what_has_no_partner_is_an_error(
    pair: Pair, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    codec._plan.cache_clear()  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(codec, "_pairs", lambda: {pair.kind: pair})
    with pytest.raises(TypeError, match=words):
        codec._plan(pair.kind)  # pyright: ignore[reportPrivateUsage]
    codec._plan.cache_clear()  # pyright: ignore[reportPrivateUsage]


@given(episodes)
def test_episodes(value: Episode) -> None:
    assert decode(Episode, encode(value), strict=True) == value


@given(sessions)
def test_sessions(value: Session) -> None:
    """All that they wait for stands in one text on the wire, and being paused in one word."""
    found = decode(Session, encode(value), strict=True)
    paused = value.paused or bool(value.unjudged)
    assert found.waits_for == value.waits_for
    assert replace(found, hindrance="") == replace(value, paused=paused)


@given(campaigns)
def test_campaigns(value: CampaignSpec) -> None:
    assert decode(CampaignSpec, encode(value), strict=True) == value


READ: dict[type[Message], Callable[[Any], Any]] = {
    **{pair.message: lambda message, kind=pair.kind: decode(kind, message) for pair in codec.PAIRS},
    results_pb2.RecordedStep: lambda step: step_from_proto(step, SPEC, pixels=True),
}
"""Every message with what reads it."""


@pytest.mark.parametrize("kind", READ, ids=lambda kind: kind.DESCRIPTOR.name)
def test_no_field_is_dropped(kind: type[Message]) -> None:
    """Another value of any field gives another value of the client's."""
    read, full = READ[kind], fill(kind())
    dropped = set[str]()
    for name, path, field in differences(full):
        first, second = kind(), kind()
        for which, message in enumerate((first, second)):
            message.CopyFrom(full)
            put(at(message, path), field, which)
        one, other = read(first), read(second)
        if show_value(one) == show_value(other) and (
            kind is results_pb2.RecordedStep or one == other
        ):
            dropped.add(name)  # arrays are compared by what they show
    assert dropped <= LEFT_OUT


def show_value(value: Any) -> str:
    """All that a value holds, as text; what it shows of itself may be less."""
    return (
        repr(asdict(value)) if is_dataclass(value) and not isinstance(value, type) else repr(value)
    )


@pytest.mark.parametrize("kind", READ, ids=lambda kind: kind.DESCRIPTOR.name)
def test_what_is_not_set_has_its_default(kind: type[Message]) -> None:
    """It is None where a value may be None, and what is set to 0 is 0."""
    read, full = READ[kind], fill(kind())
    for name, path, field in differences(full):
        if not field.has_presence or field.message_type is not None:
            continue
        if name.split(".")[0] in ("Error", "Operation", "CameraSpec", "RaySpec"):
            continue  # an error comes whole; 0 has no meaning there
        unset, zero = kind(), kind()
        for message in (unset, zero):
            message.CopyFrom(full)
            at(message, path).ClearField(field.name)
        setattr(at(zero, path), field.name, "" if field.type == Field.TYPE_STRING else 0)
        assert (show_value(read(unset)) == show_value(read(zero))) == (name in ZERO), name


ZERO = {
    *("SelectionPolicy.cool_down", "SelectionPolicy.per_second", "SelectionPolicy.generate"),
    "SelectionPolicy.pairs",
    *("StoppingRule.target_width", "StoppingRule.max_seconds", "StoppingRule.stop_at_alarm"),
    *("SessionSpec.seed", "SessionSpec.record_pixels", "SessionSpec.fresh"),
    *("SessionSpec.practice", "SessionSpec.keep_unpassable", "SessionSpec.secret"),
    *("SessionSpec.replace_voids", "SelectionPolicy.aim", "SessionSpec.played_before"),
    *("ObservationSpec.privileged", "Note.answer"),
}
"""Fields whose default is 0, nothing or False."""


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
    assert asked_spec(message) == SessionSpec("a", "b")


FULL = SessionSpec(
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
    prior=Earlier("s", {"s": 3}),
    secret="nobody knows",
    plugins=(Plugin("family", "a", "package", "1.0", "2"),),
)


def test_answers_have_every_field_of_a_spec_set() -> None:
    message = encode(FULL)
    assert missing(message) == {
        "layout_definition"  # what the caller sent, as text; kept by its digest
    }
    assert missing(message.policy) == {"about", "plugin"}  # they go with other policies
    assert missing(message.stop) == missing(message.observation_spec) == set()


def missing(message: Message) -> set[str]:
    """Fields of a message that are not set."""
    return {f.name for f in message.DESCRIPTOR.fields} - {f.name for f, _ in message.ListFields()}


def paths(message: Any, before: str = "") -> set[str]:
    """Fields of a message that are set, with those within."""
    found = set[str]()
    for field, value in message.ListFields():
        inner = field.message_type is not None and not field.is_repeated and not is_map(field)
        found |= paths(value, f"{before}{field.name}.") if inner else {before + field.name}
    return found


def test_an_agent_is_told_of_its_session_what_its_welcome_says_and_no_more() -> None:
    session = Session("s", FULL, SessionState.FAILED, "why", datetime(2026, 2, 3, tzinfo=UTC), 3)
    whole = encode(replace(session, identity=Identity(AgentFingerprint("computed", "mine"))))
    assert whole.spec.secret == FULL.secret  # an operator's, who may have it played again
    shown = known_to_agent(whole)
    assert paths(shown) == {
        *("name", "state", "episodes", "create_time.seconds", "withheld"),
        *("spec.agent", "spec.slots", "spec.action_timeout_seconds", "spec.stop.max_episodes"),
        *("spec.observation_spec.camera.resolution", "spec.observation_spec.camera.grayscale"),
        *("spec.observation_spec.rays.per_side", "spec.observation_spec.rays.max_degrees"),
        *("spec.observation_spec.rays.tags", "spec.observation_spec.decision_period"),
        *("spec.observation_spec.ray_tags", "spec.observation_spec.privileged"),
    }
    assert FULL.secret not in str(decode(Session, shown))
    assert FULL.secret not in repr(session) + repr(session.spec)


def test_nobody_is_told_of_a_decision_what_the_service_keeps_to_itself() -> None:
    wager = Wager(1, (0.5,), (0.25,))
    made = Decision("i", 1.0, 0.5, 0.5, {"x": 1.0}, "random", (Alternative("j", 0.5),), wager=wager)
    episode = Episode("s", 0, 0, made, agent_instance="process")
    assert "wager" not in paths(encode(made))
    assert decode(Episode, encode(episode)).agent_instance == ""
    assert decode(Decision, encode(made)) == replace(made, wager=None)


@given(specs, st.floats())
def test_shares_are_checked(spec: SessionSpec, value: float) -> None:
    message = encode(replace(spec, policy=Policy()))
    message.policy.random_share = value
    if 0 <= value <= 1:
        assert asked_spec(message).policy.random_share == value
    else:
        with pytest.raises(ServiceError, match=r"policy: random_share") as caught:
            asked_spec(message)
        assert caught.value.code is Code.INVALID_REQUEST


def test_a_word_of_a_newer_server_is_none_and_of_a_newer_client_refused() -> None:
    message = sessions_pb2.Session(name="sessions/s")
    message.state = 99  # pyright: ignore[reportAttributeAccessIssue]
    message.spec.policy.name = 99  # pyright: ignore[reportAttributeAccessIssue]
    message.spec.slots = 99  # more than this version allows
    session = decode(Session, message)
    assert (session.state, session.spec.policy.name, session.spec.slots) == (None, None, 99)
    assert session.spec.policy.random_share == Policy().random_share
    assert not session.over
    with pytest.raises(codec.WireError, match=r"policy\.name: 99 is unknown.*it knows variance"):
        decode(SessionSpec, message.spec, strict=True)


def test_single_places_are_set_and_the_others_left_open() -> None:
    message = sessions_pb2.SessionSpec()
    places: Mapping[str, Any] = {"stop.max_episodes": 3, "policy.name": "random", "secret": ""}
    codec.put(SessionSpec, message, places)
    assert paths(message) == {"stop.max_episodes", "policy.name", "secret"}
    assert message.policy.name == sessions_pb2.POLICY_NAME_RANDOM
