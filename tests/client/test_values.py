"""What a server tells reaches the client's values whole, and what it asks reaches the wire."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import FrozenInstanceError
from datetime import UTC, datetime
from typing import Any, get_args

import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

import animalcat
from animalcat import words
from animalcat.client import converters, values
from animalcat.client.async_client import merged
from animalcat.client.values import Policy, StoppingRule
from animalcat.envs.types import CameraSpec, ObservationSpec, RaySpec
from animalcat.errors import AnimalcatError
from animalcat.v1 import (
    campaigns_pb2,
    layouts_pb2,
    operations_pb2,
    results_pb2,
    sessions_pb2,
    types_pb2,
)

Field = FieldDescriptor
SPEC = ObservationSpec(CameraSpec(4, grayscale=True), RaySpec(1), privileged=True)

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
    "Opponent.session": ("sessions/x1", "sessions/x2"),
    "Session.name": ("sessions/x1", "sessions/x2"),
    "SessionSpec.battery": ("batteries/x1", "batteries/x2"),
    "Timestamp.nanos": (1_000, 2_000),
}
"""Two values of fields that are checked more closely."""
LEFT_OUT = {
    "Note.slot",  # always 0 in recordings
    "Error.fatal",  # of streams, not of operations
    "Layout.name",  # made of the digest
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


READ: dict[type[Message], Callable[[Any], Any]] = {
    sessions_pb2.WatchSessionResponse: converters.event_from_proto,
    sessions_pb2.Battery: converters.battery_from_proto,
    sessions_pb2.Feature: converters.feature_from_proto,
    sessions_pb2.Instance: converters.instance_from_proto,
    campaigns_pb2.Campaign: converters.campaign_from_proto,
    operations_pb2.Operation: converters.operation_from_proto,
    layouts_pb2.Layout: converters.layout_from_proto,
    results_pb2.EpisodeHeader: converters.header_from_proto,
    results_pb2.RecordedStep: lambda step: converters.step_from_proto(step, SPEC, pixels=True),
    results_pb2.EpisodeFooter: converters.footer_from_proto,
}
"""Every message that a client shows, with what reads it; sessions and episodes are in the first."""


@pytest.mark.parametrize("kind", READ, ids=lambda kind: kind.DESCRIPTOR.name)
def test_no_field_is_dropped(kind: type[Message]) -> None:
    """Another value of any field gives another value of the client's."""
    read, full = READ[kind], fill(kind())
    dropped = set[str]()
    checked = 0
    for name, path, field in differences(full):
        first, second = kind(), kind()
        for which, message in enumerate((first, second)):
            message.CopyFrom(full)
            put(at(message, path), field, which)
        if repr(read(first)) == repr(read(second)):
            dropped.add(name)
        checked += 1
    assert checked >= len(kind.DESCRIPTOR.fields) - 2  # messages within are checked by their fields
    assert dropped <= LEFT_OUT


@pytest.mark.parametrize("kind", READ, ids=lambda kind: kind.DESCRIPTOR.name)
def test_what_is_not_set_is_told_from_zero(kind: type[Message]) -> None:
    read, full = READ[kind], fill(kind())
    for name, path, field in differences(full):
        if not field.has_presence or (path and path[0].name == "observation"):
            continue
        if key(field).split(".")[0] in ("CameraSpec", "RaySpec", "ObservationSpec", "Error"):
            continue  # what is not set there has a default; an error comes whole
        if field.type == Field.TYPE_STRING:
            continue  # no text of these is empty
        unset, zero = kind(), kind()
        for message in (unset, zero):
            message.CopyFrom(full)
            at(message, path).ClearField(field.name)
        setattr(at(zero, path), field.name, 0)
        assert repr(read(unset)) != repr(read(zero)), name


@pytest.mark.parametrize(
    ("message", "there_and_back"),
    [
        (
            sessions_pb2.SessionSpec(),
            lambda m: converters.session_spec_to_proto(converters.session_spec_from_proto(m)),
        ),
        (
            campaigns_pb2.CampaignSpec(),
            lambda m: converters.campaign_spec_to_proto(
                converters.campaign_from_proto(
                    campaigns_pb2.Campaign(name="campaigns/x1", spec=m)
                ).spec
            ),
        ),
    ],
    ids=["session", "campaign"],
)
def test_what_is_asked_for_reaches_the_wire(message: Message, there_and_back: Any) -> None:
    fill(message)
    assert there_and_back(message) == message


@pytest.mark.parametrize(
    ("literal", "table", "enum"),
    [
        (values.PolicyName, words.POLICIES, sessions_pb2.PolicyName),
        (values.Combine, words.COMBINES, sessions_pb2.Combine),
        (values.SessionState, words.STATES, sessions_pb2.SessionState),
        (values.MeasuringStatus, words.STATUSES, sessions_pb2.MeasuringStatus),
        (values.Reason, words.REASONS, sessions_pb2.Reason),
        (values.Outcome, words.OUTCOMES, types_pb2.Outcome),
        (values.EndedBy, words.ENDED_BY, types_pb2.EndedBy),
        (values.Cause, words.CAUSES, types_pb2.Cause),
        (values.MeasuredBy, words.MEASURED_BY, sessions_pb2.MeasuredBy),
        (values.OperationKind, words.KINDS, operations_pb2.OperationKind),
        (values.OperationState, words.OPERATIONS, operations_pb2.OperationState),
    ],
)
def test_a_type_has_the_words_of_its_enum(literal: Any, table: dict[str, int], enum: Any) -> None:
    assert get_args(literal) == tuple(table)
    assert sorted(table.values()) == sorted(set(enum.values()) - {0})


def test_times_are_utc_and_values_do_not_change() -> None:
    message = fill(sessions_pb2.Session())
    message.create_time.FromDatetime(datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC))
    session = converters.session_from_proto(message)
    assert session.created == datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC)
    with pytest.raises(FrozenInstanceError):
        session.paused = False  # pyright: ignore[reportAttributeAccessIssue]


def test_a_word_of_a_newer_server_is_none() -> None:
    message = sessions_pb2.Session(name="sessions/s")
    message.state = 99  # pyright: ignore[reportAttributeAccessIssue]
    session = converters.session_from_proto(message)
    assert session.state is None
    assert not session.over


@pytest.mark.parametrize("state", get_args(values.SessionState))
def test_a_session_that_plays_or_waits_is_not_over(state: values.SessionState) -> None:
    message = sessions_pb2.Session(name="sessions/s")
    message.state = converters.number(state, words.STATES, "state")
    assert converters.session_from_proto(message).over == (state not in ("waiting", "running"))


def public(kind: type) -> dict[str, Any]:
    return {name: one for name, one in vars(kind).items() if not name.startswith("_")}


def test_both_clients_have_the_same_calls() -> None:
    aio, blocking = public(animalcat.AsyncClient), public(animalcat.Client)
    assert blocking.keys() - aio.keys() == {"address", "iterate", "run"}
    assert aio.keys() <= blocking.keys()
    for name in aio.keys() - {"close", "evaluate"}:
        ours, theirs = inspect.signature(blocking[name]), inspect.signature(aio[name])
        assert ours.parameters == theirs.parameters
        assert blocking[name].__doc__ == aio[name].__doc__
        assert ours.return_annotation == theirs.return_annotation.replace(
            "AsyncGenerator", "Iterator"
        )


def test_no_message_of_the_wire_is_seen() -> None:
    for name, method in public(animalcat.AsyncClient).items():
        assert "pb2" not in str(inspect.signature(method)), name


def test_public_names_are_there_and_documented() -> None:
    for name in animalcat.__all__:
        assert (getattr(animalcat, name).__doc__ or "").strip(), name
    assert {*animalcat.__all__, "__version__"} <= set(dir(animalcat))
    with pytest.raises(AttributeError, match="nonsense"):
        animalcat.nonsense  # pyright: ignore[reportAttributeAccessIssue]  # noqa: B018


def test_an_option_that_is_given_twice_is_the_same_or_refused() -> None:
    """A stopping rule beside `max_episodes`, and a policy beside `random_share`."""
    rule = StoppingRule(targets={"visualAbility": 0.05})
    assert merged(rule, "stop", {"max_episodes": 3, "futility": None}) == StoppingRule(
        max_episodes=3, targets={"visualAbility": 0.05}
    )
    assert merged(StoppingRule(3), "stop", {"max_episodes": 3}).max_episodes == 3
    with pytest.raises(AnimalcatError, match="max_episodes is given as 3, and stop says 100"):
        merged(StoppingRule(100), "stop", {"max_episodes": 3})
    with pytest.raises(AnimalcatError, match=r"random_share is given as .*, and policy says"):
        merged(Policy("random", 0.1), "policy", {"random_share": 0.5})
    assert merged(Policy("random"), "policy", {"random_share": 0.5}).random_share == 0.5
