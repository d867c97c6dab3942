"""Writes values as stored records and reads them back.

A record is strict: an unknown or missing field makes it unreadable, also where the value has a
default for it, so that a renamed field can never silently turn into a default.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any, Final, Generic, TypeVar, cast

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic_core import SchemaSerializer, SchemaValidator, from_json, to_json

from animalcat.layouts.adaptive.plan import insist_on_rules
from animalcat.service.storage.errors import UnreadableError
from animalcat.text import names
from animalcat.values import CampaignSpec, CapabilityStatus, Decision, Identity, SessionSpec, Spent

VERSION: Final = 1
"""Version of the records. It rises when a record is no longer what it was, and what reads records
then has to tell the versions apart."""
_STRICT: Final = ConfigDict(extra="forbid", strict=True, revalidate_instances="always")
_SHOWN: Final = 3
"""Most problems of a record that are told one by one."""

V = TypeVar("V")
E = TypeVar("E", bound=Enum)


@dataclass(frozen=True)
class Record(Generic[V]):
    """How values of one kind are stored: as JSON objects of their fields and a version.

    Attributes:
        what: What they are, for error messages.
        kind: Their class, a dataclass.
        check: Raises `ValueError` for a value of which nothing can be made any more.
    """

    what: str
    kind: type[V]
    check: Callable[[V], None] = lambda _: None

    def write(self, value: V) -> dict[str, Any]:
        """Return the record of a value."""
        checked = self._form[0].validate_python((value,))
        return {"version": VERSION, **self._form[1].to_python(checked, mode="json")[0]}

    def read(self, text: str) -> V:
        """Return the value of a record.

        Raises:
            UnreadableError: The text is no such record.
        """
        try:
            fields = to_json((_fields(text),))
            value = cast("V", self._form[0].validate_json(fields)[0])
            self.check(value)
        except ValidationError as error:
            raise UnreadableError(f"{self.what}: {_problems(error)}") from error
        except ValueError as error:
            raise UnreadableError(f"{self.what}: {error}") from error
        return value

    @cached_property
    def _form(self) -> tuple[SchemaValidator, SchemaSerializer]:
        """What checks and what writes; in a tuple, since pydantic configures no bare dataclass."""
        alone: Any = cast("Any", tuple)[self.kind]
        schema = _without_defaults(TypeAdapter[Any](alone, config=_STRICT).core_schema)
        return SchemaValidator(schema), SchemaSerializer(schema)


def _without_defaults(schema: Any) -> Any:
    """Return a schema of pydantic's in which every field has to be there."""
    if isinstance(schema, list):
        return [_without_defaults(part) for part in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    parts = cast("dict[str, Any]", schema)
    if parts.get("type") == "default":
        return _without_defaults(parts["schema"])
    return {name: _without_defaults(part) for name, part in parts.items()}


def _fields(text: str) -> dict[str, Any]:
    """Return what a record holds, without its version."""
    try:
        value = from_json(text)
    except ValueError as error:
        raise ValueError(f"it is damaged: {error}") from error
    if not isinstance(value, dict):
        raise ValueError("it is not a record")
    fields = cast("dict[str, Any]", value)
    version = fields.pop("version", None)
    if version != VERSION:
        is_what = "missing" if version is None else repr(version)
        raise ValueError(
            f"version: it is {is_what}, and this animalcat reads version {VERSION}; update "
            "animalcat if a newer one wrote it"
        )
    return fields


def _problems(error: ValidationError) -> str:
    shown = [
        f"{'.'.join(map(str, problem['loc'][1:]))}: {_problem(problem)}".removeprefix(": ")
        for problem in error.errors(include_url=False)
    ]
    more = f", and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN else ""
    return "; ".join(shown[:_SHOWN]) + more


def _problem(problem: Any) -> str:
    if problem["type"] == "value_error":  # a value that rejects its content
        return str(problem["ctx"]["error"])
    if problem["type"] == "unexpected_keyword_argument":
        return "extra field, which is not permitted"
    return problem["msg"].lower()


def _check_spec(spec: SessionSpec) -> None:
    names.check_component(spec.battery, "battery")
    insist_on_rules(spec.rules)


def _check_campaign(spec: CampaignSpec) -> None:
    _check_spec(spec.session)


@dataclass(frozen=True, slots=True)
class Capabilities:
    """How well all capabilities of a session are known."""

    capabilities: tuple[CapabilityStatus, ...] = ()


SPEC: Final = Record("spec", SessionSpec, _check_spec)
CAMPAIGN: Final = Record("spec", CampaignSpec, _check_campaign)
DECISION: Final = Record("decision", Decision)
CAPABILITIES: Final = Record("capabilities", Capabilities)
SPENT: Final = Record("spent", Spent)
IDENTITY: Final = Record("identity", Identity)


def read_json(what: str, text: str) -> Any:
    """Parse JSON values that have no record.

    Args:
        what: What they are, for the error message.
        text: The JSON text.

    Raises:
        UnreadableError: The text is damaged.
    """
    try:
        return from_json(text)
    except ValueError as error:
        raise UnreadableError(f"{what}: {error}") from error


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
