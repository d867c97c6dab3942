"""Batteries, their instances, and the layouts that measure on them, as a server tells of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from animalcat.arena_configs.origin import Origin
from animalcat.arena_configs.outcome import MarkedPlace
from animalcat.text import names

MeasuredBy: TypeAlias = Literal["placement", "playing", "caller"]
"""How a meta-feature is measured."""


@dataclass(frozen=True, slots=True)
class Feature:
    """What a meta-feature is.

    Attributes:
        name: As layouts ask for it.
        unit: Unit; empty for codes and counts.
        description: What it says; empty for a feature that the server does not know.
        version: Version of the definition by which the battery was measured; 0: not kept.
        measured_by: How it was measured; None where that is not known.
    """

    name: str
    unit: str
    description: str
    version: int
    measured_by: MeasuredBy | None


@dataclass(frozen=True, slots=True)
class Battery:
    """A named set of instances.

    Attributes:
        id: Names it in commands and calls.
        digest: SHA-256 of the content, in hexadecimal.
        instances: How many instances it has.
        problems: Problems that were found in its files, one sentence each.
        suites: Number of its instances by suite; without those that are of none.
        features: Meta-features that its instances may have, by name; empty in lists.
        manifest: What is in it, where it comes from and what was not solved, as the schema
            `battery_manifest` has it; empty in lists.
        owner: Subject to whom it belongs; empty: to nobody, and all may read it.
    """

    id: str
    digest: str
    instances: int
    problems: tuple[str, ...]
    suites: Mapping[str, int] = field(default_factory=dict[str, int])
    features: tuple[Feature, ...] = ()
    manifest: Mapping[str, Any] = field(default_factory=dict[str, Any], compare=False)
    owner: str = ""

    def __repr__(self) -> str:
        return f"<Battery {self.id}: {self.instances} arenas, digest {self.digest[:12]}>"

    @property
    def name(self) -> str:
        """Resource name, "batteries/{id}"."""
        return names.battery_name(self.id)

    @property
    def set_aside(self) -> Mapping[str, str]:
        """Why no play can pass an arena, by its name; sessions set such arenas aside."""
        return self.manifest.get("set_aside", {})

    @property
    def layout(self) -> str:
        """The layout that it names, which measures where none is asked for; empty for none."""
        measured_by: Mapping[str, Any] = self.manifest.get("layout") or {}
        return measured_by["name"] if measured_by.get("named") else ""

    @property
    def notes(self) -> tuple[str, ...]:
        """What whoever plays its arenas has to know, one sentence each; empty in lists."""
        return tuple(self.manifest.get("notes", ()))


@dataclass(frozen=True, slots=True)
class RecipeText:
    """The texts that a recipe of one's own consists of.

    Attributes:
        file: Name of its file, for messages.
        text: The recipe, YAML.
        families: Texts of families of one's own, by the name that the recipe gives their files.
    """

    file: str
    text: str
    families: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Instance:
    """One arena of a battery, with every value fixed.

    Attributes:
        name: Within the battery.
        paradigm: What kind of task it is.
        features: Meta-features, in their units.
        missing: Why any other feature of the battery does not apply, by feature.
        pass_mark: Return that an episode must exceed to be a success.
        time_limit_steps: Physics steps until the time limit; 0: none.
        places: Places that are choices.
        arena_yaml: Its arena, YAML with every value fixed; empty unless it was asked for.
        origin: Where it comes from; None for an arena file.
        suite: The suite of tasks that it belongs to; empty where nothing says it.
        task: The task of which it is a variant; empty where nothing says it.
        variant: Which variant of its task it is; empty where nothing says it.
        group: Its group of variants, called after the first of them: of the same suite, paradigm
            and task, and with equal demands.
        control: The control that it is of another instance; empty for none.
        control_of: Name of that instance; empty where it is not in the battery.
    """

    name: str
    paradigm: str
    features: Mapping[str, float]
    missing: Mapping[str, str]
    pass_mark: float
    time_limit_steps: int
    places: tuple[MarkedPlace, ...]
    arena_yaml: str = ""
    origin: Origin | None = None
    suite: str = ""
    task: str = ""
    variant: str = ""
    group: str = ""
    control: str = ""
    control_of: str = ""


@dataclass(frozen=True, slots=True)
class Layout:
    """A measurement layout.

    Attributes:
        title: What it calls itself, for example "aaio".
        variant: Its variant; empty where it has none.
        digest: SHA-256 of the model that it defines, in hexadecimal; names it in calls.
        shipped: Whether it came with the server; else a session brought it.
        text: YAML; empty in lists.
        owner: Subject to whom it belongs; empty: to nobody, and all may read it.
    """

    title: str
    variant: str
    digest: str
    shipped: bool
    text: str
    owner: str = ""

    @property
    def name(self) -> str:
        """Resource name, "layouts/{digest}"."""
        return names.layout_name(self.digest)
