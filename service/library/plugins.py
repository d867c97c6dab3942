"""Says what of other packages a session uses, and whether that is still what it was."""

from __future__ import annotations

from collections.abc import Mapping

from animalcat.arena_configs.families.library import FAMILIES
from animalcat.envs.backends import is_plugin as is_backend_plugin
from animalcat.extending import plugins
from animalcat.extending.plugins import Kind, Plugin, PluginNotAllowedError
from animalcat.layouts.library import LAYOUTS
from animalcat.service.batteries.battery import Battery
from animalcat.service.errors import Code, ServiceError
from animalcat.values import SessionSpec


def usable(kind: Kind, name: str) -> Plugin | None:
    """Return a plugin once its code is loaded; None if there is none of this name.

    Raises:
        PluginError: This server may not run its code, or it cannot be used.
    """
    found = plugins.find(kind, name)
    if found is not None:
        plugins.load(kind, name)
    return found


def plugins_of(spec: SessionSpec, battery: Battery, *, own_layout: bool) -> tuple[Plugin, ...]:
    """Return what of other packages runs in the server for a session, and load it.

    A family counts if it drew arenas of the battery. Where the server may not run it, the session
    does without, unless it makes arenas of its own.

    Args:
        spec: The session's specification, with the layout that it stands for.
        battery: Its battery.
        own_layout: Whether the layout is the caller's own, whatever its name.

    Raises:
        PluginError: This server may not run one of them, or it cannot be used.
    """
    wanted: list[tuple[Kind, str]] = []
    if spec.policy.plugin:
        wanted.append(("policy", spec.policy.plugin))
    if is_backend_plugin(spec.backend):
        wanted.append(("backend", spec.backend))
    if spec.layout not in LAYOUTS and not own_layout:
        wanted.append(("layout", spec.layout))
    used = [usable(kind, name) for kind, name in wanted]
    origins = (instance.origin for instance in battery.instances)
    families = {origin.family for origin in origins if origin is not None and origin.family}
    for family in sorted(families.difference(FAMILIES)):
        try:
            used.append(usable("family", family))
        except PluginNotAllowedError:
            if spec.fresh or spec.policy.generate:
                raise
    return tuple(plugin for plugin in used if plugin is not None)


def insist_unchanged(spec: SessionSpec) -> None:
    """Refuse to go on with a session whose plugins are not what they were, and load them.

    Raises:
        ServiceError: One is gone, or is another version or has other files.
        PluginError: This server may not run one of them, or it cannot be used.
    """
    for known in spec.plugins:
        if why := plugins.words_of_change(known):
            raise ServiceError(
                Code.PLUGIN_CHANGED,
                f"{why}. A session goes on with what it began with alone: bring back "
                f"{known.source}, or create a new session",
            )
        usable(known.kind, known.name)


def insist_on_worker(spec: SessionSpec, versions: Mapping[str, str]) -> None:
    """Refuse to play with a worker that has another plugin, as a node of a cluster may.

    Args:
        spec: The session's specification.
        versions: What the worker says of itself.

    Raises:
        ServiceError: Its plugin is not the one that the session began with.
    """
    for known in spec.plugins:
        stamp = versions.get(known.distribution, "nothing")
        if known.kind == "backend" and stamp != known.stamp:
            raise ServiceError(
                Code.PLUGIN_CHANGED,
                f"the {known.words} is meant, and the machine that plays has {stamp} of that "
                "package: install the same on all machines of the cluster",
            )
