"""Puts values on the wire and reads them from it, by the descriptors of their messages.

A field of a message is the attribute of its value that has the same name. `PAIRS` says which value
goes with which message, and where the two differ. What it leaves open is an error when a pair is
first used: no field of a message and no attribute of a value is ever left out in silence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from datetime import UTC, datetime
from enum import StrEnum
from functools import cache, reduce
from operator import attrgetter
from types import NoneType, UnionType
from typing import (
    Any,
    Final,
    Literal,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from google.protobuf.timestamp_pb2 import Timestamp

from animalcat import values
from animalcat.arena_configs.origin import Origin
from animalcat.arena_configs.outcome import MarkedPlace
from animalcat.arena_configs.tags import RAY_TAGS
from animalcat.envs.agents.base import Allowance
from animalcat.envs.agents.fingerprint import AgentFingerprint
from animalcat.envs.answers import Note
from animalcat.envs.types import CameraSpec, ObservationSpec, RaySpec
from animalcat.extending.plugins import Plugin
from animalcat.layouts.adaptive.peers import Peers
from animalcat.layouts.adaptive.plan import Policy, StoppingRule
from animalcat.text import names
from animalcat.v1 import (
    access_pb2,
    campaigns_pb2,
    layouts_pb2,
    operations_pb2,
    results_pb2,
    sessions_pb2,
    types_pb2,
)

V = TypeVar("V")


class WireError(ValueError):
    """A message holds what its value does not take.

    Attributes:
        path: The field, with those that it is in, such as "policy.name"; empty for the whole.
        words: What is wrong.
    """

    def __init__(self, path: str, words: str) -> None:
        super().__init__(f"{path}: {words}" if path else words)
        self.path, self.words = path, words


@dataclass(frozen=True)
class Pair:
    """A value and its message, and where they differ.

    Attributes:
        kind: Class of the value.
        message: Class of the message.
        moved: The attribute that a field is, by field, where it has another name. Either may be
            within something, such as "progress.done" or "allocation.budget".
        told: What a field is given, by field, where it is no attribute as it stands.
        unread: Fields that say once more what others say.
        ignored: Fields of which the value has nothing, neither read nor written.
        kept: Attributes that are not on the wire, and what they are read as.
        extra: Further attributes, and what gives them of a message.
    """

    kind: type
    message: type[Any]
    moved: Mapping[str, str] = field(default_factory=dict[str, str])
    told: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict[str, Any])
    unread: frozenset[str] = frozenset()
    ignored: frozenset[str] = frozenset()
    kept: Mapping[str, Any] = field(default_factory=dict[str, Any])
    extra: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict[str, Any])


PAIRS: Final = (
    Pair(Allowance, types_pb2.Allowance),
    Pair(CameraSpec, types_pb2.CameraSpec),
    Pair(RaySpec, types_pb2.RaySpec),
    Pair(
        ObservationSpec,
        types_pb2.ObservationSpec,
        told={"ray_tags": lambda spec: RAY_TAGS[: spec.rays.tags] if spec.rays else ()},
        unread=frozenset({"ray_tags"}),
    ),
    Pair(AgentFingerprint, types_pb2.AgentFingerprint),
    Pair(Note, types_pb2.Note, ignored=frozenset({"slot"})),
    Pair(MarkedPlace, sessions_pb2.MarkedPlace),
    Pair(Origin, sessions_pb2.Origin),
    Pair(Policy, sessions_pb2.SelectionPolicy),
    Pair(StoppingRule, sessions_pb2.StoppingRule),
    Pair(Plugin, sessions_pb2.Plugin),
    Pair(
        values.Earlier,
        sessions_pb2.Earlier,
        kept={"told": (), "arenas": ()},  # of the store alone
    ),
    Pair(values.Opponent, sessions_pb2.Opponent),
    Pair(
        values.SessionSpec,
        sessions_pb2.SessionSpec,
        ignored=frozenset({"layout_definition"}),  # of requests alone; kept by its digest
    ),
    Pair(values.CapabilityStatus, sessions_pb2.CapabilityStatus),
    Pair(
        values.Session,
        sessions_pb2.Session,
        moved={
            "name": "id",
            "create_time": "created",
            "waits_for": "hindrance",
            "agent_fingerprint": "identity.fingerprint",
            "other_fingerprints": "identity.others",
            "agent_changes": "identity.changes",
            "simulator_environment": "identity.simulator",
            "unconfined": "identity.unconfined",
        },
        told={
            "paused": lambda session: session.paused or bool(session.unjudged),
            "waits_for": attrgetter("waits_for"),
        },
    ),
    Pair(values.SessionEvent, sessions_pb2.WatchSessionResponse),
    Pair(values.SessionNote, sessions_pb2.SessionNote, moved={"create_time": "created"}),
    Pair(values.SessionVerification, sessions_pb2.VerifySessionResponse),
    Pair(
        values.Ticket,
        access_pb2.GetTicketResponse,
        moved={"ticket": "text", "expire_time": "expires"},
    ),
    Pair(values.OwnerFilter, types_pb2.OwnerFilter),
    Pair(values.Ownership, access_pb2.Ownership),
    Pair(values.AuditLine, access_pb2.AuditLine, moved={"create_time": "created"}),
    Pair(values.Spent, sessions_pb2.Spent),
    Pair(Peers, sessions_pb2.Peers),
    Pair(values.Alternative, sessions_pb2.Alternative),
    Pair(
        values.MadeInstance,
        sessions_pb2.MadeInstance,
        moved={
            name: f"instance.{name}"
            for name in (
                *("paradigm", "features", "missing", "pass_mark", "time_limit_steps", "seed"),
                "places",
            )
        },
        kept={
            **dict.fromkeys(("instance.name", "instance.arena", "instance.suite"), ""),
            **dict.fromkeys(("instance.task_name", "instance.variant"), ""),
            **dict.fromkeys(("instance.control", "instance.control_of"), ""),
            "instance.origin": None,
        },
    ),
    Pair(
        values.Decision,
        sessions_pb2.Decision,
        told={"made": lambda decision: decision.made and encode(decision.made)},
        unread=frozenset({"made"}),
        kept={"wager": None},
        extra={"made": lambda message: _made_instance(message)},
    ),
    Pair(
        values.Episode,
        sessions_pb2.EpisodeSummary,
        moved={"name": "session", "episode": "number"},
        told={
            "name": attrgetter("name"),
            "instance": attrgetter("instance"),
            "cause": lambda episode: episode.cause or episode.unreadable,
            "cause_kind": attrgetter("cause_kind"),
        },
        unread=frozenset({"instance", "cause_kind"}),
        kept={"agent_instance": "", "unreadable": ""},
    ),
    Pair(values.CampaignSpec, campaigns_pb2.CampaignSpec),
    Pair(
        values.Campaign,
        campaigns_pb2.Campaign,
        moved={"name": "id", "create_time": "created"},
    ),
    Pair(values.Feature, sessions_pb2.Feature),
    Pair(
        values.Battery,
        sessions_pb2.Battery,
        moved={"name": "id"},
        kept={"features": (), "manifest": {}},  # `GetBatteryResponse` has them beside it
    ),
    Pair(values.Instance, sessions_pb2.Instance),
    Pair(
        values.Layout,
        layouts_pb2.Layout,
        told={"name": attrgetter("name")},
        unread=frozenset({"name"}),
    ),
    Pair(
        values.Operation,
        operations_pb2.Operation,
        moved={
            "name": "id",
            "progress.done": "done",
            "progress.total": "total",
            "progress.message": "message",
            "error.code": "error_code",
            "error.message": "error",
            "create_time": "created",
            "end_time": "ended",
        },
        ignored=frozenset({"error.fatal"}),  # of streams
        kept={"request_id": "", "asked": "", "owner": ""},
    ),
    Pair(values.PlacedWorker, operations_pb2.PlacedWorker),
    Pair(values.PlacedFit, operations_pb2.PlacedFit),
    Pair(values.Refusal, operations_pb2.Refusal, moved={"last_time": "last"}),
    Pair(values.ServerStanding, operations_pb2.ServerStanding),
    Pair(
        values.ProcessPlacement,
        operations_pb2.GetPlacementResponse,
        told={
            "backlog": lambda placement: [
                operations_pb2.WaitingSession(session=names.session_name(name), waits_for=words)
                for name, words in placement.backlog.items()
            ]
        },
        unread=frozenset({"backlog"}),
        extra={
            "backlog": lambda message: {
                names.parse_session(one.session): one.waits_for for one in message.backlog
            }
        },
    ),
    Pair(
        values.EpisodeHeader,
        results_pb2.EpisodeHeader,
        moved={"name": "session"},
        told={"name": attrgetter("name")},
        extra={"number": lambda message: names.parse_episode(message.name).number},
    ),
    Pair(values.EpisodeFooter, results_pb2.EpisodeFooter),
)
"""Every value with its message."""


def _made_instance(decision: Any) -> values.MadeInstance | None:
    """What was made for a decision, which says the instance's name."""
    if not decision.HasField("made"):
        return None
    made = decode(values.MadeInstance, decision.made)
    return replace(made, instance=replace(made.instance, name=decision.instance))


def _session_of(episode: str) -> str:
    return names.parse_episode(episode).session


_RESOURCES: Final[Mapping[str, tuple[Callable[[str], str], Callable[[str], str]]]] = {
    "Battery.name": (names.battery_name, names.parse_battery),
    "Campaign.name": (names.campaign_name, names.parse_campaign),
    "Earlier.session": (names.session_name, names.parse_session),
    "EpisodeHeader.name": (str, _session_of),
    "EpisodeSummary.name": (str, _session_of),
    "Operation.name": (names.operation_name, names.parse_operation),
    "Opponent.session": (names.session_name, names.parse_session),
    "PlacedWorker.session": (names.session_name, names.parse_session),
    "Session.name": (names.session_name, names.parse_session),
    "SessionSpec.battery": (names.battery_name, names.parse_battery),
}
"""Fields that hold a resource name where the value has an id: what makes one of the other."""
_WORDS: Final[Mapping[str, Mapping[str, str]]] = {
    "MeasuringStatus": {
        "MEASURED": "precise, if the layout holds",
        "LEANS_ON_PRIOR": "leans on its prior",
        "USED_UP": "used up",
        "LIMITED_BY_BATTERY": "limited by the battery",
        "LIMITED_BY_NOISE": "limited by noise",
        "LAYOUT_CONTRADICTED": "layout contradicted",
        "NOT_READ": "not to be read",
    },
    "FingerprintSource": {"UNSPECIFIED": "unknown"},
}
"""Words for values of enums that are not their names."""
_ALSO_UNSPECIFIED: Final = frozenset({"FingerprintSource"})
"""Enums of which a value may say in a word that nothing is said."""


def encode(value: Any) -> Any:
    """The message of a value."""
    plan = _plan(value.__class__)
    message = plan.pair.message()
    for part in plan.parts:
        part.put(message, part.told(value))
    return message


def decode(kind: type[V], message: Any, *, strict: bool = False) -> V:
    """The value of a message. What is not set has the value's default.

    Args:
        kind: Class of the value.
        message: Its message.
        strict: Whether the value is checked, as of what a caller asks for. What a server tells is
            taken as it is, since a newer one may know more than this version.

    Raises:
        WireError: The value does not take it; only if strict.
        animalcat.text.names.BadNameError: A resource name cannot be parsed.
    """
    plan = _plan(kind)
    found: dict[str, Any] = {**plan.pair.kept}
    found |= {name: read(message) for name, read in plan.pair.extra.items()}
    for part in plan.parts:
        if part.attribute:
            try:
                read = part.read(message, strict)
            except WireError as error:
                path = f"{part.name}.{error.path}" if error.path else part.name
                raise WireError(path, error.words) from error
            if read is not _LEFT_OUT:
                found[part.attribute] = read
    for inner, inner_kind in plan.inner.items():
        own = {name: found.pop(name) for name in [*found] if name.startswith(f"{inner}.")}
        short = {name.removeprefix(f"{inner}."): part for name, part in own.items()}
        found[inner] = _make_value(inner_kind, short, strict)
    return cast("V", _make_value(kind, found, strict))


def put(kind: type, message: Any, places: Mapping[str, Any]) -> None:
    """Set single fields of a message, and leave the others open.

    Args:
        kind: Class of the message's value.
        message: The message.
        places: What attributes are to be, by their paths, such as "stop.max_episodes".
    """
    parts = {part.attribute: part for part in _plan(kind).parts}
    for path, value in places.items():
        if path in parts:
            parts[path].put(message, value)
            continue
        head, _, rest = path.partition(".")
        inner = _item_type(get_type_hints(kind)[head], repeated=False)
        put(inner, getattr(message, parts[head].name), {rest: value})


def word(enum: Any, number: int) -> str:
    """The word for a number of an enum of the wire; empty for one that is not set or not known."""
    found = _words(enum.DESCRIPTOR)
    return next((text for text, known in found.items() if known == number), "")


def number(enum: Any, text: str, what: str = "word") -> Any:
    """The number of an enum of the wire that a word stands for.

    Args:
        enum: The enum, such as `sessions_pb2.SessionState`.
        text: The word.
        what: What it names, for the error.

    Raises:
        ValueError: There is no such word; the message lists those that there are.
    """
    found = _words(enum.DESCRIPTOR)
    if text not in found:
        raise ValueError(f"no {what} is named {text!r}; there are: {', '.join(found)}")
    return found[text]


def check() -> None:
    """Check every pair.

    Raises:
        TypeError: A field or an attribute has no partner, or one that it does not fit.
    """
    for pair in PAIRS:
        _plan(pair.kind)


_LEFT_OUT: Final = object()
"""What is read where the value has its default."""
_PLAIN: Final = {1: int, 2: int, 3: int, 4: int, 5: float, 6: float, 7: bool}
"""Types by number of `FieldDescriptor.CPPTYPE_`: whole numbers, double, float and bool."""


@dataclass(frozen=True)
class _Part:
    """One field of a message, and what it is of the value.

    Attributes:
        inside: What the field is in; nothing as a rule.
        last: Name of the field there.
        holds: What it holds: one plain item or message, several, or a map.
        sparse: Whether it is set only where there is something.
        presence: Whether it can be told from 0 that it is not set.
        told: Gives what a value has for it.
        attribute: The attribute that it is read into; empty for none.
        write: Makes what the wire has of one item.
        item: Makes an item of what the wire has.
        optional: Whether the attribute may be None.
        default: Whether the attribute has a default.
    """

    inside: tuple[str, ...]
    last: str
    holds: Literal["plain", "message", "several", "map"]
    sparse: bool
    presence: bool
    told: Callable[[Any], Any]
    attribute: str
    write: Callable[[Any], Any]
    item: Callable[[Any, bool], Any]
    optional: bool
    default: bool

    @property
    def name(self) -> str:
        return ".".join((*self.inside, self.last))

    def put(self, message: Any, given: Any) -> None:
        """Set the field; None, and what is empty where only something is ever set, leave it."""
        if given is None or (self.sparse and not given):
            return
        holder = reduce(getattr, self.inside, message)
        match self.holds:
            case "plain":
                setattr(holder, self.last, self.write(given))
            case "message":
                getattr(holder, self.last).CopyFrom(self.write(given))
            case "several":
                getattr(holder, self.last).extend(map(self.write, given))
            case "map":
                getattr(holder, self.last).update(given)

    def read(self, message: Any, strict: bool) -> Any:
        """What the attribute is; `_LEFT_OUT` for its default."""
        holder = reduce(getattr, self.inside, message)
        raw = getattr(holder, self.last)
        if self.holds == "map":
            return dict(sorted(raw.items()))
        if self.holds == "several":
            return tuple(self.item(one, strict) for one in raw)
        there = holder.HasField(self.last) if self.presence else bool(raw)
        if not there and (self.optional or self.default):
            return None if self.optional else _LEFT_OUT
        return self.item(raw, strict)


@dataclass(frozen=True)
class _Plan:
    """How a value is put on the wire and read from it.

    Attributes:
        pair: What is said of it.
        parts: Its fields.
        inner: Attributes whose own attributes are fields, and their classes.
    """

    pair: Pair
    parts: tuple[_Part, ...]
    inner: Mapping[str, type]


@cache
def _pairs() -> Mapping[type, Pair]:
    return {pair.kind: pair for pair in PAIRS}


@cache
def _plan(kind: type) -> _Plan:
    """Work out how a value is put on the wire, and insist that nothing is left out."""
    pair = _pairs()[kind]
    inner_names = {to.split(".")[0] for to in pair.moved.values() if "." in to}
    hints = get_type_hints(kind)
    inner = {name: cast("type", hints[name]) for name in sorted(inner_names)}
    attributes = {name: one for name, one in _attributes(kind).items() if name not in inner}
    for name, inner_kind in inner.items():
        within = _attributes(inner_kind).items()
        attributes |= {f"{name}.{attribute}": one for attribute, one in within}
    wire = _fields(pair)
    _insist(kind, "fields", {*pair.moved, *pair.told, *pair.unread, *pair.ignored} - wire.keys())
    parts: list[_Part] = []
    read = {*pair.kept, *pair.extra}
    for name, descriptor in wire.items():
        if name in pair.ignored:
            continue
        attribute = "" if name in pair.unread else pair.moved.get(name, name)
        if attribute and attribute not in attributes:
            raise TypeError(f"{kind.__name__} has no attribute for the field {name}")
        hint, default = attributes[attribute] if attribute else (object, MISSING)
        read.add(attribute)
        if isinstance(default, int | float) and default and not descriptor.has_presence:
            raise TypeError(f"{kind.__name__}: {name} has to be optional: its default is {default}")
        told = pair.told.get(name) or attrgetter(attribute)
        write, item = _conversion(descriptor, hint, f"{kind.__name__}: {name}")
        optional = NoneType in get_args(hint)
        *inside, last = name.split(".")
        group = descriptor.containing_oneof
        sparse = bool(inside) or (group is not None and len(group.fields) > 1)
        at = (tuple(inside), last, _holds(descriptor), sparse, descriptor.has_presence)
        has_default = default is not MISSING
        parts.append(_Part(*at, told, attribute, write, item, optional, has_default))
    _insist(kind, "attributes", attributes.keys() ^ (read - {""}))
    return _Plan(pair, tuple(parts), inner)


def _insist(kind: type, what: str, wrong: Iterable[str]) -> None:
    if known := sorted(wrong):
        raise TypeError(f"{kind.__name__}: {what} without a partner: {', '.join(known)}")


def _fields(pair: Pair) -> dict[str, Any]:
    """The fields of a message by name, and those of messages in it that are not values."""
    found: dict[str, Any] = {}
    within = {name.split(".")[0] for name in {*pair.moved, *pair.ignored} if "." in name}
    for one in pair.message.DESCRIPTOR.fields:
        if one.name in within:
            found |= {f"{one.name}.{inner.name}": inner for inner in one.message_type.fields}
        else:
            found[one.name] = one
    return found


def _attributes(kind: Any) -> dict[str, tuple[Any, Any]]:
    """The type and the default of each attribute of a dataclass or named tuple."""
    defaults: dict[str, Any]
    if hasattr(kind, "_fields"):
        defaults = {name: kind._field_defaults.get(name, MISSING) for name in kind._fields}
    else:
        known: tuple[Any, ...] = fields(kind)
        defaults = {o.name: o.default_factory if o.default is MISSING else o.default for o in known}
    hints = get_type_hints(kind)
    return {name: (hints[name], default) for name, default in defaults.items()}


def _holds(descriptor: Any) -> Literal["plain", "message", "several", "map"]:
    inner = descriptor.message_type
    if inner is not None and inner.GetOptions().map_entry:
        return "map"
    return "several" if descriptor.is_repeated else "plain" if inner is None else "message"


def _conversion(
    descriptor: Any, hint: Any, where: str
) -> tuple[Callable[[Any], Any], Callable[[Any, bool], Any]]:
    """What makes the wire's item of a value's, and what makes the value's of the wire's.

    Raises:
        TypeError: The type of the attribute does not fit the field.
    """
    holds, inner = _holds(descriptor), descriptor.message_type
    one = _item_type(hint, repeated=holds == "several")
    if holds == "map":
        keys = [_plain(inner.fields_by_name[name]) for name in ("key", "value")]
        _insist_on(one is object or list(get_args(one)) == keys, where)
        return _same, _as_it_is
    if inner is not None and inner.full_name == Timestamp.DESCRIPTOR.full_name:
        _insist_on(one is datetime, where)
        return _timestamp, lambda raw, _: raw.ToDatetime(UTC)
    if inner is not None:
        known = _pairs().get(one)
        if one is object:
            return _same, _as_it_is
        _insist_on(known is not None and known.message.DESCRIPTOR is inner, where)
        return encode, lambda raw, strict: decode(one, raw, strict=strict)
    if descriptor.enum_type is not None:
        return _enum(descriptor.enum_type, one, where)
    if (key := f"{descriptor.containing_type.name}.{descriptor.name}") in _RESOURCES:
        to, back = _RESOURCES[key]
        return lambda text: text and to(text), lambda raw, _: raw and back(raw)
    texts = get_origin(one) is Literal and all(isinstance(text, str) for text in get_args(one))
    _insist_on((str if texts else one) in (_plain(descriptor), object), where)
    return _same, _as_it_is


def _plain(descriptor: Any) -> type:
    """The type of what a field holds that is neither message nor enum."""
    text = bytes if descriptor.type == descriptor.TYPE_BYTES else str
    return _PLAIN.get(descriptor.cpp_type, text)


def _same(item: Any) -> Any:
    return item


def _as_it_is(raw: Any, _: bool) -> Any:
    return raw


def _timestamp(time: datetime) -> Timestamp:
    message = Timestamp()
    message.FromDatetime(time)
    return message


def _insist_on(fits: bool, where: str) -> None:
    if not fits:
        raise TypeError(f"{where}: the attribute has another type than the field")


def _item_type(hint: Any, *, repeated: bool) -> Any:
    if hint is object:
        return hint
    if get_origin(hint) in (Union, UnionType):
        (hint,) = (one for one in get_args(hint) if one is not NoneType)
    return get_args(hint)[0] if repeated else hint


def _enum(
    enum: Any, hint: Any, where: str
) -> tuple[Callable[[Any], Any], Callable[[Any, bool], Any]]:
    """How a field that is an enum is converted, where the value has a `StrEnum`, or words."""
    known: dict[Any, int] = dict(_words(enum))
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        ours: Mapping[str, StrEnum] = hint.__members__
        stem = _stem(enum)
        known = {ours.get(v.name.removeprefix(stem)): v.number for v in enum.values if v.number}
        _insist_on(set(known) == set(ours.values()), where)
    elif get_origin(hint) is Literal:
        _insist_on(set(known) == set(get_args(hint)), where)
    back = {number: one for one, number in known.items()}

    def write(one: Any) -> int:
        return known.get(one, 0) if hint in (str, object) else known[one]

    def item(raw: int, strict: bool) -> Any:
        if strict and raw not in back:
            words = ", ".join(known)
            raise WireError("", f"{raw} is unknown to this server; it knows {words}")
        return back.get(raw)

    return write, item


@cache
def _words(enum: Any) -> Mapping[str, int]:
    """The numbers of an enum by word; that for what is not said is no word as a rule."""
    special, stem = _WORDS.get(enum.name, {}), _stem(enum)
    found: dict[str, int] = {one.name.removeprefix(stem): one.number for one in enum.values}
    return {
        special.get(name, name.lower()): number
        for name, number in found.items()
        if number or enum.name in _ALSO_UNSPECIFIED
    }


def _stem(enum: Any) -> str:
    return enum.values_by_number[0].name.removesuffix("UNSPECIFIED")


def _make_value(kind: type, found: Mapping[str, Any], strict: bool) -> Any:
    """Make a value, which need not take what it is made of unless it was asked for."""
    try:
        return kind(**found)
    except ValueError as error:
        if strict:
            raise WireError("", str(error)) from error
    value: Any = object.__new__(cast("Any", kind))
    for one in fields(cast("Any", kind)):
        made: Callable[[], Any] = cast("Any", one).default_factory
        default = made() if one.default is MISSING and made is not MISSING else one.default
        object.__setattr__(value, one.name, found.get(one.name, default))
    return value
