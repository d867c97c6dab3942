"""The layouts that are shipped, each a YAML file with its variants."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from typing import Any, Final, cast

import yaml

from animalcat.layouts.codec import SpecificationError, as_mapping, check_choices
from animalcat.layouts.spec import Layout, from_dict

LAYOUTS: Final = ("aaio", "object-permanence", "melting-pot", "one-capability")
"""Names of the shipped layouts; each is a file here."""

_TAGGED: Final = ("link", "prior", "outcome")


def variants(name: str) -> tuple[str, ...]:
    """Variants of a shipped layout, the default first.

    Raises:
        SpecificationError: No such layout.
    """
    data = _read(name)
    return (str(data["variant"]), *as_mapping(data.get("variants", {}), "variants"))


def load_layout(name: str, variant: str = "") -> Layout:
    """A shipped layout.

    Args:
        name: One of `LAYOUTS`.
        variant: One of its variants; the default one where empty.

    Raises:
        SpecificationError: No such layout or variant.
    """
    data = dict(_read(name))
    changes = as_mapping(data.pop("variants", {}), "variants")
    if variant and variant != data["variant"]:
        check_choices({variant: None}, {str(data["variant"]): None, **changes}, "variant")
        data = _merged(data, as_mapping(changes[variant], variant)) | {"variant": variant}
    return from_dict(data)


def _read(name: str) -> Mapping[str, Any]:
    if name not in LAYOUTS:
        raise SpecificationError(f"layout {name!r} is unknown; valid: {', '.join(LAYOUTS)}")
    text = resources.files(__name__).joinpath(f"{name}.yaml").read_text(encoding="utf-8")
    return as_mapping(yaml.safe_load(text), name)


def _merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """The base with changes on top.

    Another link, prior or outcome replaces the old one whole; what is empty is taken away.
    """
    result = dict(base)
    for key, value in changes.items():
        old = base.get(key)
        if isinstance(old, dict) and isinstance(value, dict):
            new = cast("dict[str, Any]", value)
            if key in _TAGGED and not new.keys() & old.keys():
                result[key] = new
            else:
                result[key] = _merged(cast("dict[str, Any]", old), new)
        elif value is None and isinstance(old, dict):
            del result[key]
        else:
            result[key] = value
    return result
