"""Records as they are stored: models with a version, and the way up from each older version.

Domain values are made of records here and nowhere else. A record is strict: what it does not know,
or lacks, makes it unreadable, so that a renamed field can never become a default in silence. To
change a record, change its model, count its version up, and say in the table of its upgrades how
one of the version before becomes one of the new.

Records of version 1 are older than versions: they carry none, and lack what came while they were
written. It is filled in with what held for them then, not with the defaults of today.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Annotated, Any, Final, Generic, Literal, TypeVar, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import from_json, to_json

from animalcat import names
from animalcat.arena_configs.outcome import MarkedPlace
from animalcat.envs.types import CameraSpec, ObservationSpec, RaySpec
from animalcat.layouts.adaptive.peers import Peers
from animalcat.layouts.adaptive.plan import Allocation, Name, Policy, StoppingRule
from animalcat.service.batteries.instance import Instance
from animalcat.service.model import (
    CampaignSpec,
    CapabilityStatus,
    Decision,
    Made,
    SessionSpec,
)
from animalcat.service.storage.base import UnreadableError

Values = dict[str, Any]
Count = Annotated[int, Field(ge=0, lt=2**31)]
Seed = Annotated[int, Field(ge=0, lt=2**64)]
Upgrades = Mapping[int, Callable[[Values], Values]]


class Record(BaseModel):
    """What all records hold by: no field too many or too few, none of another type."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    @property
    def values(self) -> Values:
        """The fields by name, records within as records."""
        return {name: getattr(self, name) for name in type(self).model_fields if name != "version"}


class PolicyRecord(Record):
    """How a session chooses."""

    name: Name
    random_share: float
    sharpness: float
    balance: Count | None
    exposures: Count
    probes: float
    cool_down: Count
    per_second: bool
    about: tuple[str, ...]
    order: tuple[str, ...]
    generate: bool
    enough: float


class StoppingRecord(Record):
    """When a session stops."""

    max_episodes: Count
    target_sd: float
    targets: dict[str, float]
    target_width: float
    futility: float
    max_seconds: float
    stop_at_alarm: bool
    combine: Literal["any", "all"]


class CameraRecord(Record):
    """A camera."""

    resolution: Count
    grayscale: bool


class RaysRecord(Record):
    """Rays."""

    per_side: Count
    max_degrees: float
    tags: Count


class ObservationRecord(Record):
    """What an agent sees."""

    camera: CameraRecord | None
    rays: RaysRecord | None
    decision_period: Count

    def value(self) -> ObservationSpec:
        """The value that it stands for."""
        return ObservationSpec(
            None if self.camera is None else CameraSpec(**self.camera.values),
            None if self.rays is None else RaySpec(**self.rays.values),
            self.decision_period,
        )


class SessionSpecRecord(Record):
    """What a session was made with."""

    version: Literal[2] = 2
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

    def value(self) -> SessionSpec:
        """The value that it stands for."""
        names.check_component(self.battery, "battery")
        parts: Values = {
            "policy": Policy(**self.policy.values),
            "stop": StoppingRule(**self.stop.values),
            "observation_spec": self.observation_spec.value(),
        }
        return SessionSpec(**{**self.values, **parts})


class AllocationRecord(Record):
    """How a campaign hands out."""

    budget: Count
    common: Count
    block: Count
    at_once: Count
    alike: float
    confidence: float


class CampaignSpecRecord(Record):
    """What a campaign was made with."""

    version: Literal[2] = 2
    agents: tuple[str, ...]
    session: SessionSpecRecord
    allocation: AllocationRecord

    def value(self) -> CampaignSpec:
        """The value that it stands for."""
        return CampaignSpec(self.agents, self.session.value(), Allocation(**self.allocation.values))


class InstanceRecord(Record):
    """An instance that was made on demand."""

    name: str
    paradigm: str
    features: dict[str, float]
    pass_mark: float
    time_limit_steps: Count
    seed: Seed
    arena: str
    missing: dict[str, str]
    places: tuple[tuple[bool, float, float, float], ...]

    def value(self) -> Instance:
        """The value that it stands for."""
        places: Values = {"places": tuple(MarkedPlace(*place) for place in self.places)}
        return Instance(**{**self.values, **places})


class MadeRecord(Record):
    """An instance with its arena."""

    offer: str
    instance: InstanceRecord
    arena_yaml: str

    def value(self) -> Made:
        """The value that it stands for."""
        return Made(self.offer, self.instance.value(), self.arena_yaml)


class PeersRecord(Record):
    """What stood beside a chosen instance."""

    left: Count
    propensity: float
    predicted: float
    open: bool


class DecisionRecord(Record):
    """Why an instance was chosen."""

    version: Literal[2] = 2
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

    def value(self) -> Decision:
        """The value that it stands for."""
        parts: Values = {
            "made": None if self.made is None else self.made.value(),
            "peers": None if self.peers is None else Peers(**self.peers.values),
        }
        return Decision(**{**self.values, **parts})


class CapabilityRecord(Record):
    """How well one capability is known."""

    name: str
    mean: float
    sd: float
    unit: str
    status: str
    episodes_needed: Count | None
    best_sd: float | None
    limit: str


class CapabilitiesRecord(Record):
    """How well all are known."""

    version: Literal[2] = 2
    capabilities: tuple[CapabilityRecord, ...]

    def value(self) -> tuple[CapabilityStatus, ...]:
        """The value that it stands for."""
        return tuple(CapabilityStatus(**one.values) for one in self.capabilities)


def _spec_from_1(old: Values) -> Values:
    policy: Values = {
        "sharpness": 0.0,
        "balance": 1,
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


def _campaign_from_1(old: Values) -> Values:
    return {**old, "session": {**_spec_from_1(_within(old, "session")), "version": 2}}


def _decision_from_1(old: Values) -> Values:
    later: Values = {"alternatives": [], "because": "", "made": None, "pending": 0, "peers": None}
    new = {**later, **old}
    if new["made"] is not None:
        made = _within(new, "made")
        instance: Values = {"missing": {}, "places": [], **_within(made, "instance")}
        new["made"] = {**made, "instance": instance}
    return new


def _capabilities_from_1(old: Values) -> Values:
    later = {"episodes_needed": None, "best_sd": None, "limit": ""}
    return {"capabilities": [{**later, **one} for one in old["capabilities"]]}


R = TypeVar("R", bound=Record)


@dataclass(frozen=True, slots=True)
class _Kind(Generic[R]):
    """One kind of record: its model, and the steps from version to version.

    Attributes:
        model: What it must be now.
        upgrades: By version, the step to the next.
        bare: The field that the whole record was at first, where it was a list.
    """

    model: type[R]
    upgrades: Upgrades
    bare: str = ""

    def read(self, text: str) -> R:
        """The record that a text holds, brought to the version of today.

        Raises:
            UnreadableError: It is none.
        """
        try:
            found: Any = from_json(text)
            if self.bare and isinstance(found, list):
                found = {self.bare: cast("Any", found)}
            if not isinstance(found, dict):
                raise UnreadableError("it is no record")
            values = cast("Values", found)
            version = values.get("version", 1)
            newest = 1 + len(self.upgrades)
            if not isinstance(version, int) or version < 1:
                raise UnreadableError(f"version: {version!r} is none")
            if version > newest:
                raise UnreadableError(
                    f"version: it is {version}, and this animalcat knows up to {newest}; update "
                    "animalcat"
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


_SPEC: Final = _Kind(SessionSpecRecord, {1: _spec_from_1})
_CAMPAIGN: Final = _Kind(CampaignSpecRecord, {1: _campaign_from_1})
_DECISION: Final = _Kind(DecisionRecord, {1: _decision_from_1})
_CAPABILITIES: Final = _Kind(CapabilitiesRecord, {1: _capabilities_from_1}, "capabilities")


def read_spec(text: str) -> SessionSpec:
    """What a session was made with.

    Raises:
        UnreadableError: The record cannot be read.
    """
    return _value("spec", lambda: _SPEC.read(text).value())


def write_spec(spec: SessionSpec) -> Values:
    """The record of what a session is made with."""
    return SessionSpecRecord.model_validate(asdict(spec)).model_dump(mode="json")


def read_campaign(text: str) -> CampaignSpec:
    """What a campaign was made with.

    Raises:
        UnreadableError: The record cannot be read.
    """
    return _value("spec", lambda: _CAMPAIGN.read(text).value())


def write_campaign(spec: CampaignSpec) -> Values:
    """The record of what a campaign is made with."""
    return CampaignSpecRecord.model_validate(asdict(spec)).model_dump(mode="json")


def read_decision(text: str) -> Decision:
    """Why an instance was chosen.

    Raises:
        UnreadableError: The record cannot be read.
    """
    return _value("decision", lambda: _DECISION.read(text).value())


def write_decision(decision: Decision) -> Values:
    """The record of why an instance was chosen."""
    return DecisionRecord.model_validate(asdict(decision)).model_dump(mode="json")


def read_capabilities(text: str) -> tuple[CapabilityStatus, ...]:
    """How well capabilities are known.

    Raises:
        UnreadableError: The record cannot be read.
    """
    return _value("capabilities", lambda: _CAPABILITIES.read(text).value())


def write_capabilities(capabilities: tuple[CapabilityStatus, ...]) -> Values:
    """The record of how well capabilities are known."""
    whole = {"capabilities": tuple(map(asdict, capabilities))}
    return CapabilitiesRecord.model_validate(whole).model_dump(mode="json")


def read_json(what: str, text: str) -> Any:
    """JSON values that are nobody's record.

    Raises:
        UnreadableError: The text is damaged.
    """
    return _value(what, lambda: from_json(text))


E = TypeVar("E", bound=Enum)


def read_name(what: str, kind: type[E], name: str) -> E:
    """The member of an enumeration that is stored by its name.

    Raises:
        UnreadableError: There is none of that name.
    """
    if name not in kind.__members__:
        raise UnreadableError(f"{what}: {name!r} is unknown; update animalcat if it is newer")
    return kind[name]


V = TypeVar("V")


def _value(what: str, read: Callable[[], V]) -> V:
    try:
        return read()
    except ValueError as error:  # of the record, or of a value that refuses what it says
        raise UnreadableError(f"{what}: {error}") from error


def _within(values: Values, part: str) -> Values:
    found = values.get(part)
    if not isinstance(found, dict):
        raise UnreadableError(f"{part}: it is {'no record' if part in values else 'missing'}")
    return cast("Values", found)


def _problems(error: ValidationError) -> str:
    shown = [
        f"{'.'.join(map(str, problem['loc']))}: {problem['msg'].lower()}"
        for problem in error.errors(include_url=False)
    ]
    more = f", and {len(shown) - 3} more" if len(shown) > 3 else ""
    return "; ".join(shown[:3]) + more
