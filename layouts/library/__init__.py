"""The layouts that are shipped, as YAML with variants; files and plugins have the same form.

`choice` takes the variant that covers most, where none is named.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from animalcat.extending import plugins
from animalcat.layouts.model.codec import SpecificationError, as_mapping, as_names, check_choices
from animalcat.text.marked_yaml import Marked, YamlError, load_yaml, read_text

if TYPE_CHECKING:
    from animalcat.layouts.model.spec import Layout

LAYOUTS: Final = (
    "aaio",
    "object-permanence",
    "melting-pot",
    "one-capability",
    "navigation-speed",
    "testbed",
    "spoken",
)
"""Names of the shipped layouts; each is a file here."""

CALIBRATED: Final = "olympics"
"""Variant of a shipped layout that the entrants of the Animal-AI Olympics calibrated. It is a file
of its own, which `battery calibrate` made. Sessions take it where nine tenths of the arenas are
those that were played (`service.measuring.coverage`), unless they name a variant."""
CALIBRATIONS: Final = ("aaio", "testbed")
"""Names of the shipped layouts that have this variant."""

LayoutSource: TypeAlias = "str | Path | Mapping[str, Any] | Layout"
"""What a layout is loaded from: a name, a file, a text, what a text says, or a layout itself."""
_TAGGED: Final = ("link", "prior", "outcome")
_DEFAULT: Final = "default_variant"
"""Key of a layout's text that names the variant which is meant where none is named; without it,
that is the layout without changes."""
_CHOICES: Final = "choose_from"
"""Key of a layout's text that lists the variants which are for measuring, the preferred first.
Others only repeat a publication, or show what a change is worth."""


def variants(name: str | Path) -> tuple[str, ...]:
    """List the variants of a layout, the default first.

    Args:
        name: One of `LAYOUTS`, a plugin, or a YAML file of the same form.

    Raises:
        SpecificationError: There is no such layout, or the file is wrong.
    """
    return _ordered_variants(_read(name).data)


def abouts(name: str) -> dict[str, str]:
    """What a layout that has a name says of each of its variants, the default first.

    Args:
        name: One of `LAYOUTS`.
    """
    marked = _read(name)
    told = {each: _variant_of(marked, each).data for each in _ordered_variants(marked.data)}
    return {each: str(data.get("about", "")) for each, data in told.items()}


def load_layout(source: LayoutSource, variant: str = "") -> Layout:
    """Load a shipped layout, one of another package, or one of your own.

    Args:
        source: One of `LAYOUTS`, the name of a plugin (`animalcat.extending.plugins`), a YAML file
            of the same form (its name ends in .yaml or .yml), the text of one, or what such a text
            says as a dict; or what `Client.get_layout` returns. A layout is returned as it is.
        variant: Name of a variant; empty for the default.

    Raises:
        SpecificationError: There is no such layout or variant, or the file is wrong.
        TypeError: The source is none of these.
    """
    from animalcat.layouts.model.spec import Layout
    from animalcat.layouts.model.tables import of_kind

    if isinstance(source, Layout):
        if variant not in ("", source.variant):
            raise SpecificationError(
                f"this layout is the variant {source.variant!r} already; load another by "
                f"load_layout(NAME, {variant!r})"
            )
        return source
    if isinstance(text := getattr(source, "text", None), str) and text:
        return parse_layout(text, variant)
    if isinstance(source, Mapping):
        return _make_variant(Marked(as_mapping(source, "layout")), variant)
    if isinstance(source, str) and source in CALIBRATIONS and variant == CALIBRATED:
        return _shipped_calibration(source)
    if not isinstance(source, str | Path):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(
            f"load_layout: source is {of_kind(source)}; give the name of a layout, a file "
            "NAME.yaml, its text, or a dict of what it says"
        )
    if isinstance(source, str) and "\n" in source.strip():
        return parse_layout(source, variant)
    try:
        return _make_variant(_read(source), variant)
    except SpecificationError as error:
        if str(source) in ("", *LAYOUTS) or str(error).startswith(f"{source}:"):
            raise
        raise SpecificationError(f"{source}: {error}") from None


def parse_layout(text: str, variant: str = "") -> Layout:
    """Make a layout from the text of a file.

    Args:
        text: YAML of the same form as the shipped files.
        variant: Name of a variant; empty for the default.

    Raises:
        SpecificationError: The text is not YAML or not a layout, or has no such variant.
    """
    return _make_variant(_parse(text, "layout"), variant)


def text_of(name: str, variant: str = "") -> str:
    """The YAML text of a layout that has a name, with all its variants.

    Args:
        name: One of `LAYOUTS`, or the name of a plugin.
        variant: The variant that is meant; one that is calibrated has a text of its own.

    Raises:
        SpecificationError: It is a plugin that cannot be loaded.
    """
    if name not in LAYOUTS:
        return _text_of_plugin(name)
    file = f"{name}-{variant}.yaml" if variant == CALIBRATED else f"{name}.yaml"
    return resources.files(__name__).joinpath(file).read_text(encoding="utf-8")


def is_file(name: str | Path) -> bool:
    """Whether the name of a layout is that of a file."""
    return isinstance(name, Path) or name.lower().endswith((".yaml", ".yml"))


def _read(name: str | Path) -> Marked:
    if is_file(name):
        try:
            return _parse(read_text(Path(name)), str(name))
        except YamlError as error:
            raise SpecificationError(str(error)) from None
    return _shipped_text(str(name)) if name in LAYOUTS else _of_plugin(str(name))


def is_plugin(name: str) -> bool:
    """Whether a layout of this name is another package's. Nothing of it is run.

    Raises:
        SpecificationError: Several packages have one.
    """
    try:
        return name not in LAYOUTS and plugins.find("layout", name) is not None
    except plugins.PluginError as error:
        raise SpecificationError(str(error)) from None


def _text_of_plugin(name: str) -> str:
    try:
        return plugins.text("layout", name)
    except plugins.PluginError as error:
        raise SpecificationError(str(error)) from error


def _of_plugin(name: str) -> Marked:
    """What the text of another package's layout says.

    Raises:
        SpecificationError: There is none of this name, or it cannot be used.
    """
    if not is_plugin(name):
        valid = ", ".join((*LAYOUTS, *plugins.names("layout")))
        raise SpecificationError(f"layout {name!r} is unknown; valid: {valid}, or a file NAME.yaml")
    marked = _parse(_text_of_plugin(name), name)
    if (own := marked.data.get("name")) != name:
        raise SpecificationError(
            f"the plugin of the layout {name!r} calls itself {own!r} in its text; both have to be "
            "the same name"
        )
    return marked


@cache
def _shipped_text(name: str) -> Marked:
    """What the text of a shipped layout says; read once for all of its variants."""
    return _parse(text_of(name), name)


@cache
def _shipped_calibration(name: str) -> Layout:
    """The calibrated variant of a shipped layout; read once."""
    return parse_layout(text_of(name, CALIBRATED), CALIBRATED)


def _parse(text: str, name: str) -> Marked:
    """What YAML text says."""
    try:
        marked = load_yaml(text, name)
    except YamlError as error:
        raise SpecificationError(str(error)) from None
    as_mapping(marked.data, name)
    return marked


def _default_of(definition: Mapping[str, Any]) -> str:
    """The variant that is meant where none is named."""
    return str(definition.get(_DEFAULT) or definition.get("variant") or "")


def _ordered_variants(definition: Mapping[str, Any]) -> tuple[str, ...]:
    """The variants that a layout's text has, the default first."""
    default, plain = _default_of(definition), str(definition.get("variant", ""))
    known = (plain, *as_mapping(definition.get("variants") or {}, "variants"))
    return (default, *(variant for variant in known if variant != default))


def _make_variant(marked: Marked, variant: str) -> Layout:
    """Make the layout of one variant."""
    from animalcat.layouts.model.spec import from_dict

    data = marked.data
    variant = variant or _default_of(data)
    choices = as_names(data.get(_CHOICES) or [], _CHOICES)
    valid = {str(data.get("variant", "")): None, **_changes(data)}
    check_choices({variant: None}, valid, "variant")
    check_choices(dict.fromkeys(choices), valid, f"{_CHOICES}: variant")
    return from_dict(
        _variant_of(marked, variant),
        tuple(filter(None, _ordered_variants(data))),
        tuple(from_dict(_variant_of(marked, choice)) for choice in choices),
    )


def _changes(definition: Mapping[str, Any]) -> Mapping[str, Any]:
    """What variants change, by their names."""
    return as_mapping(definition.get("variants") or {}, "variants")


def _variant_of(marked: Marked, name: str) -> Marked:
    """What a layout's text says of one of its variants."""
    several = ("variants", _CHOICES, _DEFAULT)
    data = {key: value for key, value in marked.data.items() if key not in several}
    if name == str(data.get("variant", "")):
        return replace(marked, data=data)
    changes = as_mapping(_changes(marked.data)[name], name)
    own = {path[2:]: n for path, n in marked.lines.items() if path[:2] == ("variants", name)}
    changed = _merge_changes(data, changes) | {"variant": name}
    return Marked(changed, marked.file, marked.lines | own)


def _merge_changes(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Apply changes on top of a base.

    A changed link, prior or outcome of another type replaces the old one entirely; an empty entry
    removes it.
    """
    result = dict(base)
    for key, value in changes.items():
        old = base.get(key)
        if isinstance(old, dict) and isinstance(value, dict):
            new = cast("dict[str, Any]", value)
            if key in _TAGGED and not new.keys() & old.keys():
                result[key] = new
            else:
                result[key] = _merge_changes(cast("dict[str, Any]", old), new)
        elif value is None and isinstance(old, dict):
            del result[key]
        else:
            result[key] = value
    return result
