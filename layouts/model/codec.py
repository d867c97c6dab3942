"""Converts frozen dataclasses of layouts to plain dicts, and says how they are read from text."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, cast

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, create_model
from pydantic_core import CoreSchema, core_schema

STRICT: Final = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)
"""Text is no number, true is none either, and what is not known is refused."""


class SpecificationError(ValueError):
    """A layout's specification is wrong; the message names the node and the valid choices."""


def encode(value: Any) -> dict[str, Any]:
    """Convert a dataclass of numbers, strings and tuples of them to a plain dict."""
    data = {f.name: getattr(value, f.name) for f in fields(value)}
    return {
        name: list(cast("tuple[object, ...]", item)) if isinstance(item, tuple) else item
        for name, item in data.items()
    }


def encode_model(value: Any, without: Collection[str] = ()) -> dict[str, Any]:
    """Like `encode`, but without fields at their defaults and without those in `without`."""
    plain = {f.name for f in fields(value) if getattr(value, f.name) == f.default}
    return {k: v for k, v in encode(value).items() if k not in plain and k not in without}


@dataclass(frozen=True, eq=False)
class Tagged:
    """Says of a type that it is read as one of several dataclasses, from `{tag: fields}`."""

    choices: Mapping[str, type[Any]]

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """The schema of one optional field for each choice, of which the one given is taken."""
        options: Any = {tag: (choice | None, None) for tag, choice in self.choices.items()}
        model = create_model("Tagged", __config__=STRICT, **options)
        return core_schema.no_info_after_validator_function(self._one, handler(model))

    def _one(self, model: BaseModel) -> Any:
        given = [value for _, value in model if value is not None]
        if len(given) != 1:
            raise ValueError(f"give exactly one of {', '.join(self.choices)}")
        return given[0]


def as_mapping(data: object, where: str) -> Mapping[str, object]:
    """Require a mapping, and return it with string keys.

    Raises:
        SpecificationError: The data is something else.
    """
    if not isinstance(data, Mapping):
        raise SpecificationError(f"{where}: expected a mapping, not {data!r}")
    return {str(key): value for key, value in cast("Mapping[object, object]", data).items()}


def as_names(data: object, where: str) -> tuple[str, ...]:
    """Require a list of different names.

    Raises:
        SpecificationError: The data is something else.
    """
    names = cast("list[object]", data) if isinstance(data, list) else []
    if not isinstance(data, list) or not all(isinstance(name, str) and name for name in names):
        raise SpecificationError(f"{where}: expected a list of names, not {data!r}")
    told = tuple(map(str, names))
    if len(set(told)) < len(told):
        raise SpecificationError(f"{where}: a name occurs twice: {', '.join(told)}")
    return told


def check_choices(names: Mapping[str, object], valid: Mapping[str, object], what: str) -> None:
    """Check that every name is a valid choice.

    Raises:
        SpecificationError: A name is not; the message lists the valid ones.
    """
    for name in names:
        if name not in valid:
            raise SpecificationError(f"{what} {name!r} is unknown; valid: {', '.join(valid)}")
