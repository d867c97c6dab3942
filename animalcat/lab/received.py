"""A battery of a server, as the code that measures and reports takes it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from animalcat import values
from animalcat.arena_configs.instance import Instance
from animalcat.arena_configs.origin import Origin
from animalcat.client import Client

if TYPE_CHECKING:
    from animalcat.service.batteries.battery import Battery, NamedLayout

Tell = Callable[[str, int, int], None]
"""Told what is being done, how much is done, and how much there is."""


def tell_instances(
    instances: Iterable[values.Instance], known: values.Battery, what: str, tell: Tell
) -> Iterator[values.Instance]:
    """The instances of a battery as they come, telling of progress."""
    for done, instance in enumerate(instances, 1):
        yield instance
        tell(what, done, known.instances)


def receive_battery(client: Client, name: str) -> Battery:
    """A battery of a server, without its arenas."""
    return battery_of(client.get_battery(name), client.instances(name))


def named_layout(known: values.Battery) -> NamedLayout | None:
    """The layout that a battery of a server names; None for none."""
    from animalcat.service.batteries.battery import NamedLayout  # brings YAML, which clients lack

    named: Mapping[str, Any] = known.manifest.get("layout") or {}
    return NamedLayout(named["name"], named["variant"] or "") if named.get("named") else None


def battery_of(known: values.Battery, received: Iterable[values.Instance]) -> Battery:
    """A battery as the server has it, without the arenas' folder and the episodes' seeds.

    The instances are taken as they come, and are held as columns.
    """
    from animalcat.service.batteries.battery import Battery  # brings YAML, which clients lack
    from animalcat.service.batteries.columns import InstanceColumns

    validity: Mapping[str, Any] = known.manifest.get("validity") or {}
    return Battery(
        digest=known.digest,
        units={feature.name: feature.unit for feature in known.features},
        instances=InstanceColumns.of(
            (
                Instance(
                    name=instance.name,
                    paradigm=instance.paradigm,
                    features=instance.features,
                    pass_mark=instance.pass_mark,
                    time_limit_steps=instance.time_limit_steps,
                    seed=0,
                    arena="",
                    missing=instance.missing,
                    places=instance.places,
                    origin=None if instance.origin is None else Origin(**asdict(instance.origin)),
                    suite=instance.suite,
                    task_name=instance.task,
                    variant=instance.variant,
                    control=instance.control,
                    control_of=instance.control_of,
                )
                for instance in received
            ),
            [feature.name for feature in known.features],
        ),
        problems=known.problems,
        folder=Path(),
        versions={f.name: f.version for f in known.features if f.version},
        recipe=known.manifest.get("recipe") or {},
        unsolved=validity.get("unsolved"),
        drawn=known.manifest.get("drawn") or {},
        doubles=known.manifest.get("same_arena") or {},
        layout=named_layout(known),
    )
