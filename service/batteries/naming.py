"""Says what kind of task an instance is and of which it is a control: by names or by a table."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Final, NamedTuple

from animalcat.arena_configs.features.registry import FEATURES
from animalcat.arena_configs.instance import Instance

MOST: Final = 200
"""Most characters of what a table says of an instance in one cell."""
LOOK: Final = "look"
"""The group of meta-features that are no demands: colours and patterns."""
DIGITS: Final = 6
"""Significant digits by which demands of variants are compared."""

_SUFFIX: Final = re.compile(r"\.ya?ml$", re.IGNORECASE)
_FEW: Final = 3


class NamesError(ValueError):
    """Names that could mean two things; the message says which."""


class TaskKind(NamedTuple):
    """What kind of task an instance is; empty text where nothing is said.

    Attributes:
        suite: The suite of tasks that it belongs to.
        paradigm: The kind of task; selection is balanced over paradigms.
        task: The task of which it is a variant.
        variant: Which variant of its task it is.
    """

    suite: str = ""
    paradigm: str = ""
    task: str = ""
    variant: str = ""


KIND: Final = TaskKind._fields
"""Columns of a table that say what kind of task an instance is."""


class ControlLink(NamedTuple):
    """Of which instance another one is a control.

    Attributes:
        control: Name of the control; empty for an instance that is none.
        control_of: Name of the instance; empty where it is not in the battery.
    """

    control: str = ""
    control_of: str = ""


LINK: Final = ControlLink._fields
"""Columns of a table that say of which instance another one is a control."""
UNNAMED_CONTROL: Final = "control"
"""What a control is called of which nothing says the name."""
_CONTROL: Final = re.compile(r"(.+)\.([A-Za-z][\w-]*)")
"""The name of a control of another instance, as in `cups-1.glass`."""


class KnownNames:
    """Finds instances by what a table calls them: by name, by file, or by file without folders."""

    def __init__(self, names: Iterable[str]) -> None:
        """Know instances by their names."""
        self._names = sorted(set(names))
        self._known = set(self._names)
        self._files: dict[str, list[str]] = {}
        self._folded: dict[str, str] = {}
        for name in self._names:
            self._files.setdefault(PurePosixPath(name).name, []).append(name)
            for called in (name, PurePosixPath(name).name):
                self._folded.setdefault(called.casefold(), called)

    def find(self, given: str) -> str:
        """The name of an instance; empty if there is no such instance.

        Raises:
            NamesError: There are several, or the name is one's but for upper and lower case.
        """
        if given in self._known:
            return given
        bare = _SUFFIX.sub("", given)
        if bare in self._known:
            return bare
        alike = self._files.get(bare, [])
        if len(alike) > 1:
            raise NamesError(f"{given!r} is {some(alike)}; give the folder too")
        if not alike and (near := self._folded.get(bare.casefold())):
            raise NamesError(f"there is no instance {given!r}. Did you mean {near!r}?")
        return alike[0] if alike else ""

    def find_all(self, given: Iterable[str]) -> dict[str, str]:
        """The names of several instances, by what they are called; empty where there is none.

        Raises:
            NamesError: As for `find`, or two of them are one instance.
        """
        names: dict[str, str] = {}
        taken: dict[str, str] = {}
        for called in given:
            name = names[called] = self.find(called)
            if name and taken.setdefault(name, called) != called:
                raise NamesError(f"{taken[name]!r} and {called!r} are one instance, {name!r}")
        return names


def paradigm_of(name: str) -> str:
    """Return the paradigm that an instance's name stands for if nothing else says it.

    The name is split at '-'. Of three or more components it is the first two ("01-13" of
    "01-13-02"), of two components the first, and a name of one component takes its folder.
    """
    path = PurePosixPath(name)
    parts = path.name.split("-")
    if len(parts) == 1:
        return path.parent.name or "all"
    return "-".join(parts[: min(2, len(parts) - 1)])


def kinds_of(names: Sequence[str], by_table: Mapping[str, TaskKind]) -> dict[str, TaskKind]:
    """Return what kind of task every instance is: as a table says, its paradigm else by its name.

    Args:
        names: Names of the instances.
        by_table: What a table says of some instances, by name.
    """
    said = {name: by_table.get(name, TaskKind()) for name in names}
    return {
        name: kind if kind.paradigm else kind._replace(paradigm=paradigm_of(name))
        for name, kind in said.items()
    }


def links_of(
    names: Sequence[str], by_table: Mapping[str, ControlLink] | None = None
) -> dict[str, ControlLink]:
    """Return of which instance every other one is a control.

    A table that has one of the columns `LINK` alone says it. Else names do: `cups-1.glass` is the
    control glass of `cups-1`, if that is there.

    Args:
        names: Names of the instances.
        by_table: What a table says, by name; None where it has no such column.

    Returns:
        By instance; of those that are controls alone.

    Raises:
        NamesError: A control is one of itself, of what is not there, or of another control.
    """
    if by_table is None:
        known = set(names)
        found = {name: _CONTROL.fullmatch(name) for name in names}
        links = {
            name: ControlLink(match[2], match[1])
            for name, match in found.items()
            if match and match[1] in known
        }
        advice = "say which in a table with the columns instance, control and control_of"
    else:
        links = _by_table(names, by_table)
        advice = "a control belongs to an arena that is not itself a control"
    for name, link in links.items():
        if link.control_of in links:
            raise NamesError(
                f"controls: {name!r} would be a control of {link.control_of!r}, which is a control "
                f"of {links[link.control_of].control_of!r}; {advice}"
            )
    return links


def _by_table(names: Sequence[str], rows: Mapping[str, ControlLink]) -> dict[str, ControlLink]:
    """The links of a table, with instances called by their names."""
    known = KnownNames(names)
    links: dict[str, ControlLink] = {}
    for name, (control, of) in rows.items():
        if not control and not of:
            continue
        found = known.find(of) if of else ""
        if of and not found:
            raise NamesError(
                f"controls: {name!r} is to be a control of {of!r}, and there is no such instance; "
                f"there are {some(sorted(names))}"
            )
        if found == name:
            raise NamesError(f"controls: {name!r} is given as a control of itself; name another")
        links[name] = ControlLink(control or UNNAMED_CONTROL, found)
    return links


def link_of(instance: Instance) -> ControlLink:
    """Return of which instance another one is a control; empty for none."""
    drawn = instance.origin
    if instance.control or drawn is None:
        return ControlLink(instance.control, instance.control_of)
    return ControlLink(drawn.control, drawn.control_of)


def groups_of(instances: Iterable[Instance]) -> dict[str, str]:
    """Return the group of variants that every instance belongs to.

    Variants of one another are of the same suite, paradigm and task, and have equal demands: they
    differ in looks, or in nothing that is measured.

    Args:
        instances: The instances of a battery.

    Returns:
        By instance name, the name of the first instance of its group.
    """
    first: dict[tuple[object, ...], str] = {}
    return {
        instance.name: first.setdefault(
            (instance.suite, instance.paradigm, task_of(instance), *_demands(instance.features)),
            instance.name,
        )
        for instance in instances
    }


def task_of(instance: Instance) -> str:
    """Return the task of which an instance is a variant; empty if nothing says it."""
    drawn = instance.origin
    return instance.task_name or (drawn.task if drawn else "")


def variant_of(instance: Instance) -> str:
    """Return which variant of its task an instance is; empty if nothing says it."""
    drawn = instance.origin
    return instance.variant or (drawn.variant if drawn else "")


def joined_groups(groups: Sequence[str], alike: Sequence[Hashable]) -> list[str]:
    """Return groups that also hold together what something else cannot tell apart.

    Args:
        groups: The group of every instance.
        alike: What is equal where instances cannot be told apart.

    Returns:
        For every instance, the name of the larger group.
    """
    parent: dict[Hashable, Hashable] = {}

    def root(node: Hashable) -> Hashable:
        while (above := parent.setdefault(node, node)) != node:
            node = above
        return node

    nodes = [("group", group) for group in groups]
    for node, same in zip(nodes, alike, strict=True):
        parent[root(("alike", same))] = root(node)
    first: dict[Hashable, str] = {}
    return [first.setdefault(root(node), group) for node, group in zip(nodes, groups, strict=True)]


def _demands(features: Mapping[str, float]) -> Iterable[tuple[str, str]]:
    """An instance's demands, rounded so that equal ones are equal."""
    for name in sorted(features):
        feature = FEATURES.get(name)
        if feature is None or feature.group != LOOK:
            yield name, f"{round(features[name], DIGITS) + 0.0:.{DIGITS}g}"


def some(names: Sequence[str]) -> str:
    """Return the first few of some names, and how many more there are."""
    first = ", ".join(map(repr, names[:_FEW]))
    return f"{first} and {len(names) - _FEW} more" if len(names) > _FEW else first
