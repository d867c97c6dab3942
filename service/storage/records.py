"""Converts values to stored records and back.

Stored records become domain values here and nowhere else. A record is strict: an unknown or missing
field makes it unreadable, so that a renamed field can never silently turn into a default.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from enum import Enum
from typing import Annotated, Any, Final, Literal, TypeVar, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import from_json

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
from animalcat.service.storage.errors import UnreadableError

Values = dict[str, Any]
Count = Annotated[int, Field(ge=0, lt=2**31)]
Seed = Annotated[int, Field(ge=0, lt=2**64)]
VERSION: Final = 1
"""Version of the records. It rises when a record is no longer what it was, and what reads records
then has to tell the versions apart."""


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
    privileged: bool

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

    version: Literal[1] = VERSION
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
    keep_unpassable: bool
    secret: str

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

    version: Literal[1] = VERSION
    agents: tuple[str, ...]
    session: SessionSpecRecord
    allocation: AllocationRecord
    take: Count

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

    version: Literal[1] = VERSION
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
    value: str
    interval: str


class CapabilitiesRecord(Record):
    """Stored form of how well all capabilities of a session are known."""

    version: Literal[1] = VERSION
    capabilities: tuple[CapabilityRecord, ...]

    def value(self) -> tuple[CapabilityStatus, ...]:
        """Return the domain value."""
        return tuple(CapabilityStatus(**one.values) for one in self.capabilities)


class SpentRecord(Record):
    """Stored form of `Spent`."""

    thinking_seconds: float
    tokens_in: Annotated[int, Field(ge=0, lt=2**63)]
    tokens_out: Annotated[int, Field(ge=0, lt=2**63)]
    costs: tuple[tuple[str, float], ...]


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
    """Stored form of `Identity`."""

    fingerprint: FingerprintRecord | None
    others: tuple[FingerprintRecord, ...]
    changes: tuple[str, ...]
    simulator: dict[str, str]

    def value(self) -> Identity:
        """Return the domain value."""
        first = None if self.fingerprint is None else self.fingerprint.value()
        others = tuple(other.value() for other in self.others)
        return Identity(first, others, self.changes, self.simulator)


R = TypeVar("R", bound=Record)


def _read(model: type[R], text: str) -> R:
    """Parse a record that carries its version.

    Raises:
        UnreadableError: The text is not such a record.
    """
    try:
        found: Any = from_json(text)
    except ValueError as error:
        raise UnreadableError(f"it is damaged: {error}") from error
    if not isinstance(found, dict):
        raise UnreadableError("it is not a record")
    version = cast("Values", found).get("version")
    if version != VERSION:
        is_what = "missing" if version is None else repr(version)
        raise UnreadableError(
            f"version: it is {is_what}, and this animalcat reads version {VERSION}; update "
            "animalcat if a newer one wrote it"
        )
    try:
        return model.model_validate_json(text)
    except ValidationError as error:
        raise UnreadableError(_problems(error)) from error


def read_spec(text: str) -> SessionSpec:
    """Parse a session's specification.

    Raises:
        UnreadableError: The record cannot be read.
    """
    return _value("spec", lambda: _read(SessionSpecRecord, text).value())


def write_spec(spec: SessionSpec) -> Values:
    """Return the record of a session's specification."""
    return SessionSpecRecord.model_validate(asdict(spec)).model_dump(mode="json")


def read_campaign(text: str) -> CampaignSpec:
    """Parse a campaign's specification.

    Raises:
        UnreadableError: The record cannot be read.
    """
    return _value("spec", lambda: _read(CampaignSpecRecord, text).value())


def write_campaign(spec: CampaignSpec) -> Values:
    """Return the record of a campaign's specification."""
    return CampaignSpecRecord.model_validate(asdict(spec)).model_dump(mode="json")


def read_decision(text: str) -> Decision:
    """Parse a decision.

    Raises:
        UnreadableError: The record cannot be read.
    """
    return _value("decision", lambda: _read(DecisionRecord, text).value())


def write_decision(decision: Decision) -> Values:
    """Return the record of a decision."""
    return DecisionRecord.model_validate(asdict(decision)).model_dump(mode="json")


def read_capabilities(text: str) -> tuple[CapabilityStatus, ...]:
    """Parse how well capabilities are known.

    Raises:
        UnreadableError: The record cannot be read.
    """
    return _value("capabilities", lambda: _read(CapabilitiesRecord, text).value())


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
    return SpentRecord.model_validate(spent._asdict()).model_dump(mode="json")


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


def _problems(error: ValidationError) -> str:
    shown = [
        f"{'.'.join(map(str, problem['loc']))}: {problem['msg'].lower()}"
        for problem in error.errors(include_url=False)
    ]
    more = f", and {len(shown) - 3} more" if len(shown) > 3 else ""
    return "; ".join(shown[:3]) + more
