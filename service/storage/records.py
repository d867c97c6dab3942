"""Converts values to stored records and back, and upgrades records of older versions.

Stored records become domain values here and nowhere else. A record is strict: an unknown or missing
field makes it unreadable, so that a renamed field can never silently turn into a default. To change
a record, change its model, increase its version, and add to its table of upgrades the step from the
previous version.

Records of version 1 are older than the version number and do not carry one. They lack the fields
that were added later; those are filled in with what held at the time, not with the defaults of
today.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Annotated, Any, Final, Generic, Literal, TypeVar, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import from_json, to_json

from animalcat import names
from animalcat.arena_configs.origin import Origin
from animalcat.arena_configs.outcome import MarkedPlace
from animalcat.envs.agents.base import Allowance
from animalcat.envs.agents.fingerprint import AgentFingerprint, Source
from animalcat.envs.types import CameraSpec, ObservationSpec, RaySpec
from animalcat.layouts.adaptive.battery_rate import Wager
from animalcat.layouts.adaptive.peers import Peers
from animalcat.layouts.adaptive.plan import (
    Allocation,
    Name,
    Policy,
    StoppingRule,
    insist_on_rules,
)
from animalcat.service.batteries.instance import Instance
from animalcat.service.model import (
    CampaignSpec,
    CapabilityStatus,
    Decision,
    Identity,
    Made,
    MadeAs,
    Opponent,
    SessionSpec,
    Spent,
)
from animalcat.service.storage.base import UnreadableError

Values = dict[str, Any]
Count = Annotated[int, Field(ge=0, lt=2**31)]
Seed = Annotated[int, Field(ge=0, lt=2**64)]
Upgrades = Mapping[int, Callable[[Values], Values]]


class Record(BaseModel):
    """Base of all records: no missing field, no unknown one, and none of another type."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    @property
    def values(self) -> Values:
        """The fields by name, except the version; nested records stay records."""
        return {name: getattr(self, name) for name in type(self).model_fields if name != "version"}


class PolicyRecord(Record):
    """Stored form of `Policy`, by which a session chooses instances."""

    name: Name
    random_share: float
    sharpness: float
    exposures: Count
    probes: float
    cool_down: Count
    per_second: bool
    about: tuple[str, ...]
    order: tuple[str, ...]
    generate: bool
    enough: float


class StoppingRecord(Record):
    """Stored form of `StoppingRule`, by which a session stops."""

    max_episodes: Count
    target_sd: float
    targets: dict[str, float]
    target_width: float
    futility: float
    max_seconds: float
    stop_at_alarm: bool
    combine: Literal["any", "all"]


class CameraRecord(Record):
    """Stored form of `CameraSpec`."""

    resolution: Count
    grayscale: bool


class RaysRecord(Record):
    """Stored form of `RaySpec`."""

    per_side: Count
    max_degrees: float
    tags: Count


class ObservationRecord(Record):
    """Stored form of `ObservationSpec`, which says what an agent sees."""

    camera: CameraRecord | None
    rays: RaysRecord | None
    decision_period: Count
    privileged: bool = False

    def value(self) -> ObservationSpec:
        """Return the domain value."""
        return ObservationSpec(
            None if self.camera is None else CameraSpec(**self.camera.values),
            None if self.rays is None else RaySpec(**self.rays.values),
            self.decision_period,
            self.privileged,
        )


class OpponentRecord(Record):
    """Stored form of `Opponent`, with whom a session is compared."""

    session: str
    agent: str
    outcomes: dict[str, float]


class AllowanceRecord(Record):
    """Stored form of `Allowance`, which says what an agent may spend."""

    episode_seconds: float
    decision_tokens: Annotated[int, Field(ge=0)]
    episode_tokens: Annotated[int, Field(ge=0)]


class SessionSpecRecord(Record):
    """Stored form of `SessionSpec`."""

    version: Literal[7] = 7
    agent: str
    battery: str
    battery_digest: str
    layout: str
    layout_variant: str
    policy: PolicyRecord
    stop: StoppingRecord
    seed: Seed
    backend: str
    observation_spec: ObservationRecord
    action_timeout_seconds: float
    record_pixels: bool
    certify: bool
    slots: Count
    layout_digest: str
    rules: Count
    fresh: bool
    twins_of: str
    against: OpponentRecord | None
    lease_seconds: float
    allowance: AllowanceRecord
    practice: Count
    keep_unpassable: bool = False
    secret: str = ""

    def value(self) -> SessionSpec:
        """Return the domain value."""
        names.check_component(self.battery, "battery")
        insist_on_rules(self.rules)
        parts: Values = {
            "policy": Policy(**self.policy.values),
            "stop": StoppingRule(**self.stop.values),
            "observation_spec": self.observation_spec.value(),
            "against": None if self.against is None else Opponent(**self.against.values),
            "allowance": Allowance(**self.allowance.values),
        }
        return SessionSpec(**{**self.values, **parts})


class AllocationRecord(Record):
    """Stored form of `Allocation`, by which a campaign hands out episodes."""

    budget: Count
    common: Count
    block: Count
    at_once: Count
    alike: float
    confidence: float


class CampaignSpecRecord(Record):
    """Stored form of `CampaignSpec`."""

    version: Literal[7] = 7
    agents: tuple[str, ...]
    session: SessionSpecRecord
    allocation: AllocationRecord
    take: Count = 1

    def value(self) -> CampaignSpec:
        """Return the domain value."""
        allocation = Allocation(**self.allocation.values)
        return CampaignSpec(self.agents, self.session.value(), allocation, self.take)


class OriginRecord(Record):
    """Stored form of `Origin`, which says where an instance comes from."""

    entry: str
    family: str
    paradigm: str
    part: str
    task: str
    variant: str
    control: str
    control_of: str


class InstanceRecord(Record):
    """Stored form of an `Instance` that a session made."""

    name: str
    paradigm: str
    features: dict[str, float]
    pass_mark: float
    time_limit_steps: Count
    seed: Seed
    arena: str
    missing: dict[str, str]
    places: tuple[tuple[bool, float, float, float], ...]
    origin: OriginRecord | None
    suite: str
    task_name: str
    variant: str

    def value(self) -> Instance:
        """Return the domain value."""
        parts: Values = {
            "places": tuple(MarkedPlace(*place) for place in self.places),
            "origin": None if self.origin is None else Origin(**self.origin.values),
        }
        return Instance(**{**self.values, **parts})


class MadeRecord(Record):
    """Stored form of `Made`, an instance that a session made, with its arena."""

    offer: str
    instance: InstanceRecord
    arena_yaml: str
    made_as: Literal["offer", "twin", "variation"]
    distance: float
    note: str

    def value(self) -> Made:
        """Return the domain value."""
        parts: Values = {"instance": self.instance.value(), "made_as": MadeAs(self.made_as)}
        return Made(**{**self.values, **parts})


class PeersRecord(Record):
    """Stored form of `Peers`, the instances of one paradigm that a choice was made from."""

    left: Count
    propensity: float
    predicted: float
    open: bool


class DecisionRecord(Record):
    """Stored form of `Decision`."""

    version: Literal[4] = 4
    instance: str
    score: float
    propensity: float
    predicted: float
    margins: dict[str, float]
    reason: str
    alternatives: tuple[tuple[str, float], ...]
    because: str
    made: MadeRecord | None
    pending: Count
    peers: PeersRecord | None
    wager: tuple[Count, tuple[float, ...], tuple[float, ...]] | None

    def value(self) -> Decision:
        """Return the domain value."""
        parts: Values = {
            "made": None if self.made is None else self.made.value(),
            "peers": None if self.peers is None else Peers(**self.peers.values),
            "wager": None if self.wager is None else Wager(*self.wager),
        }
        return Decision(**{**self.values, **parts})


class CapabilityRecord(Record):
    """Stored form of `CapabilityStatus`."""

    name: str
    mean: float
    sd: float
    unit: str
    status: str
    episodes_needed: Count | None
    best_sd: float | None
    limit: str
    value: str = ""
    interval: str = ""


class CapabilitiesRecord(Record):
    """Stored form of how well all capabilities of a session are known."""

    version: Literal[2] = 2
    capabilities: tuple[CapabilityRecord, ...]

    def value(self) -> tuple[CapabilityStatus, ...]:
        """Return the domain value."""
        return tuple(CapabilityStatus(**one.values) for one in self.capabilities)


class SpentRecord(Record):
    """Stored form of `Spent`; what is 0 is left out, so that nothing is an empty record."""

    thinking_seconds: float = 0.0
    tokens_in: Annotated[int, Field(ge=0, lt=2**63)] = 0
    tokens_out: Annotated[int, Field(ge=0, lt=2**63)] = 0
    costs: tuple[tuple[str, float], ...] = ()


class FingerprintRecord(Record):
    """Stored form of `AgentFingerprint`, which says what an agent is."""

    source: Source
    name: str
    version: str
    options: dict[str, str]
    files: dict[str, str]
    environment: dict[str, str]
    process: str

    def value(self) -> AgentFingerprint:
        """Return the domain value."""
        return AgentFingerprint(**self.model_dump())  # its version is not that of a record


class IdentityRecord(Record):
    """Stored form of `Identity`; an empty record is nobody."""

    fingerprint: FingerprintRecord | None = None
    others: tuple[FingerprintRecord, ...] = ()
    changes: tuple[str, ...] = ()
    simulator: dict[str, str] = {}

    def value(self) -> Identity:
        """Return the domain value."""
        first = None if self.fingerprint is None else self.fingerprint.value()
        others = tuple(other.value() for other in self.others)
        return Identity(first, others, self.changes, self.simulator)


def _spec_from_1(old: Values) -> Values:
    policy: Values = {
        "sharpness": 0.0,
        "exposures": 1,
        "probes": 0.0,
        "cool_down": 0,
        "per_second": False,
        "about": [],
        "order": [],
        "generate": False,
        "enough": 0.8,
        **_within(old, "policy"),
    }
    stop: Values = {
        "targets": {},
        "target_width": 0.0,
        "max_seconds": 0.0,
        "stop_at_alarm": False,
        "combine": "any",
        **_within(old, "stop"),
    }
    later = {"slots": 1, "layout_digest": "", "rules": 1}
    return {**later, **old, "policy": policy, "stop": stop}


def _spec_from_2(old: Values) -> Values:
    return {"fresh": False, "twins_of": "", **old}


def _spec_from_3(old: Values) -> Values:
    return {"against": None, **old}


def _spec_from_4(old: Values) -> Values:
    # There were no leases. One changes no decision and no outcome, so old sessions get it too.
    return {"lease_seconds": 30.0, **old}


def _spec_from_5(old: Values) -> Values:
    anything: Values = {"episode_seconds": 0.0, "decision_tokens": 0, "episode_tokens": 0}
    return {"allowance": anything, **old}


def _spec_from_6(old: Values) -> Values:
    return {"practice": 0, **old}


def _campaign_from_1(old: Values) -> Values:
    return {**old, "session": {**_spec_from_1(_within(old, "session")), "version": 2}}


def _campaign_from_2(old: Values) -> Values:
    return {**old, "session": {**_spec_from_2(_within(old, "session")), "version": 3}}


def _campaign_from_3(old: Values) -> Values:
    return {**old, "session": {**_spec_from_3(_within(old, "session")), "version": 4}}


def _campaign_from_4(old: Values) -> Values:
    return {**old, "session": {**_spec_from_4(_within(old, "session")), "version": 5}}


def _campaign_from_5(old: Values) -> Values:
    return {**old, "session": {**_spec_from_5(_within(old, "session")), "version": 6}}


def _campaign_from_6(old: Values) -> Values:
    return {**old, "session": {**_spec_from_6(_within(old, "session")), "version": 7}}


def _decision_from_1(old: Values) -> Values:
    later: Values = {"alternatives": [], "because": "", "made": None, "pending": 0, "peers": None}
    new = {**later, **old}
    if new["made"] is not None:
        made = _within(new, "made")
        instance: Values = {"missing": {}, "places": [], **_within(made, "instance")}
        new["made"] = {**made, "instance": instance}
    return new


def _decision_from_2(old: Values) -> Values:
    if old["made"] is None:
        return old
    made = _within(old, "made")
    later: Values = {"made_as": "offer", "distance": 0.0, "note": ""}
    unnamed: Values = {"origin": None, "suite": "", "task_name": "", "variant": ""}
    instance: Values = {**unnamed, **_within(made, "instance")}
    return {**old, "made": {**later, **made, "instance": instance}}


def _decision_from_3(old: Values) -> Values:
    return {"wager": None, **old}


def _capabilities_from_1(old: Values) -> Values:
    later = {"episodes_needed": None, "best_sd": None, "limit": ""}
    return {"capabilities": [{**later, **one} for one in old["capabilities"]]}


R = TypeVar("R", bound=Record)


@dataclass(frozen=True, slots=True)
class _Kind(Generic[R]):
    """A kind of record: its model, and the steps that upgrade older versions.

    Attributes:
        model: The present model.
        upgrades: By version, the step to the next version.
        bare: Name of the one field, if the record was first stored as the bare list in that field;
            empty otherwise.
    """

    model: type[R]
    upgrades: Upgrades
    bare: str = ""

    def read(self, text: str) -> R:
        """Parse a record, and upgrade it to the present version.

        Raises:
            UnreadableError: The text is not such a record.
        """
        try:
            found: Any = from_json(text)
            if self.bare and isinstance(found, list):
                found = {self.bare: cast("Any", found)}
            if not isinstance(found, dict):
                raise UnreadableError("it is not a record")
            values = cast("Values", found)
            version = values.get("version", 1)
            newest = 1 + len(self.upgrades)
            if not isinstance(version, int) or version < 1:
                raise UnreadableError(f"version: {version!r} is not a version")
            if version > newest:
                raise UnreadableError(
                    f"version: it is {version}, but this animalcat knows versions up to {newest}; "
                    "update animalcat"
                )
            if version < newest:
                for step in range(version, newest):
                    values = {**self.upgrades[step](values), "version": step + 1}
                text = to_json(values).decode()
            return self.model.model_validate_json(text)
        except ValidationError as error:
            raise UnreadableError(_problems(error)) from error
        except (ValueError, TypeError, KeyError) as error:
            raise (
                error
                if isinstance(error, UnreadableError)
                else UnreadableError(f"it is damaged: {error}")
            ) from error


_SPEC: Final = _Kind(
    SessionSpecRecord,
    {
        1: _spec_from_1,
        2: _spec_from_2,
        3: _spec_from_3,
        4: _spec_from_4,
        5: _spec_from_5,
        6: _spec_from_6,
    },
)
_CAMPAIGN: Final = _Kind(
    CampaignSpecRecord,
    {
        1: _campaign_from_1,
        2: _campaign_from_2,
        3: _campaign_from_3,
        4: _campaign_from_4,
        5: _campaign_from_5,
        6: _campaign_from_6,
    },
)
_DECISION: Final = _Kind(
    DecisionRecord, {1: _decision_from_1, 2: _decision_from_2, 3: _decision_from_3}
)
_CAPABILITIES: Final = _Kind(CapabilitiesRecord, {1: _capabilities_from_1}, "capabilities")


def read_spec(text: str) -> SessionSpec:
    """Parse a session's specification.

    Raises:
        UnreadableError: The record cannot be read.
    """
    return _value("spec", lambda: _SPEC.read(text).value())


def write_spec(spec: SessionSpec) -> Values:
    """Return the record of a session's specification."""
    return SessionSpecRecord.model_validate(asdict(spec)).model_dump(mode="json")


def read_campaign(text: str) -> CampaignSpec:
    """Parse a campaign's specification.

    Raises:
        UnreadableError: The record cannot be read.
    """
    return _value("spec", lambda: _CAMPAIGN.read(text).value())


def write_campaign(spec: CampaignSpec) -> Values:
    """Return the record of a campaign's specification."""
    return CampaignSpecRecord.model_validate(asdict(spec)).model_dump(mode="json")


def read_decision(text: str) -> Decision:
    """Parse a decision.

    Raises:
        UnreadableError: The record cannot be read.
    """
    return _value("decision", lambda: _DECISION.read(text).value())


def write_decision(decision: Decision) -> Values:
    """Return the record of a decision."""
    return DecisionRecord.model_validate(asdict(decision)).model_dump(mode="json")


def read_capabilities(text: str) -> tuple[CapabilityStatus, ...]:
    """Parse how well capabilities are known.

    Raises:
        UnreadableError: The record cannot be read.
    """
    return _value("capabilities", lambda: _CAPABILITIES.read(text).value())


def write_capabilities(capabilities: tuple[CapabilityStatus, ...]) -> Values:
    """Return the record of how well capabilities are known."""
    whole = {"capabilities": tuple(map(asdict, capabilities))}
    return CapabilitiesRecord.model_validate(whole).model_dump(mode="json")


def read_spent(text: str) -> Spent:
    """Parse what an agent spent on an attempt.

    Raises:
        UnreadableError: The record cannot be read.
    """
    return _value("spent", lambda: Spent(**SpentRecord.model_validate_json(text).values))


def write_spent(spent: Spent) -> Values:
    """Return the record of what an agent spent on an attempt."""
    record = SpentRecord.model_validate(spent._asdict())
    return record.model_dump(mode="json", exclude_defaults=True)


def read_identity(text: str) -> Identity:
    """Parse who plays a session.

    Raises:
        UnreadableError: The record cannot be read.
    """
    return _value("identity", lambda: IdentityRecord.model_validate_json(text).value())


def write_identity(identity: Identity) -> Values:
    """Return the record of who plays a session."""
    return IdentityRecord.model_validate(asdict(identity)).model_dump(mode="json")


def read_json(what: str, text: str) -> Any:
    """Parse JSON values that have no model.

    Args:
        what: What they are, for the error message.
        text: The JSON text.

    Raises:
        UnreadableError: The text is damaged.
    """
    return _value(what, lambda: from_json(text))


E = TypeVar("E", bound=Enum)


def read_name(what: str, kind: type[E], name: str) -> E:
    """Return the member of an enumeration that is stored by its name.

    Args:
        what: What it is, for the error message.
        kind: The enumeration.
        name: The stored name.

    Raises:
        UnreadableError: The enumeration has no such member.
    """
    if name not in kind.__members__:
        raise UnreadableError(
            f"{what}: {name!r} is unknown; update animalcat if a newer version wrote it"
        )
    return kind[name]


V = TypeVar("V")


def _value(what: str, read: Callable[[], V]) -> V:
    try:
        return read()
    except ValueError as error:  # also of a domain value that rejects its content
        raise UnreadableError(f"{what}: {error}") from error


def _within(values: Values, part: str) -> Values:
    found = values.get(part)
    if not isinstance(found, dict):
        raise UnreadableError(f"{part}: it is {'not a record' if part in values else 'missing'}")
    return cast("Values", found)


def _problems(error: ValidationError) -> str:
    shown = [
        f"{'.'.join(map(str, problem['loc']))}: {problem['msg'].lower()}"
        for problem in error.errors(include_url=False)
    ]
    more = f", and {len(shown) - 3} more" if len(shown) > 3 else ""
    return "; ".join(shown[:3]) + more
