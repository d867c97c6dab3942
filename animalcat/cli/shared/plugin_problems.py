"""Finds the plugins that are installed, and why a name stands for none of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress

from animalcat.extending import plugins
from animalcat.extending.plugins import KINDS, Kind, Plugin


def plugins_with_problems() -> Iterable[tuple[Plugin, str]]:
    """All plugins, each with why its name stands for something else; empty if it does not."""
    every = plugins.every()
    times = Counter((plugin.kind, plugin.name) for plugin in every)
    ours = _own_names({plugin.kind for plugin in every})
    for plugin in every:
        others = [p.distribution for p in every if (p.kind, p.name) == (plugin.kind, plugin.name)]
        if plugin.name in ours.get(plugin.kind, ()):
            yield (
                plugin,
                f"never used: a {plugin.kind} of animalcat itself has this name; rename it",
            )
        elif times[plugin.kind, plugin.name] > 1:
            packages = " and ".join(sorted(others))
            yield plugin, f"not used: {packages} have one of this name; uninstall all but one"
        else:
            yield plugin, ""


def _own_names(kinds: Iterable[Kind]) -> Mapping[Kind, Iterable[str]]:
    """The names of our own of some kinds; agents have another form, so that none has theirs."""
    built_in: dict[Kind, Iterable[str]] = {}
    for kind in sorted(kinds, key=KINDS.index):
        with suppress(ModuleNotFoundError):  # the base install alone, which has none of them
            built_in[kind] = _names(kind)
    return built_in


def _names(kind: Kind) -> Iterable[str]:
    match kind:
        case "policy":
            from animalcat.layouts.adaptive.plan import POLICIES

            return POLICIES
        case "backend":
            return ("sim", "unity")
        case "export":
            from animalcat.wire.words import FORMATS

            return FORMATS
        case "layout":
            from animalcat.layouts.library import LAYOUTS

            return LAYOUTS
        case "family":
            from animalcat.arena_configs.batteries.library import RECIPES
            from animalcat.arena_configs.families.library import FAMILIES

            return (*RECIPES, *FAMILIES)
        case "agent":
            return ()
