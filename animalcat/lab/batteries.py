"""Batteries of a lab: made of arenas at hand, of files, of a recipe, or found by their name."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias, cast

from animalcat.arenas import battery_reference
from animalcat.arenas.arena_files import battery_id
from animalcat.errors import AnimalcatError
from animalcat.text.showing import line_html, stacked_html, table_html
from animalcat.values import Battery, Instance

if TYPE_CHECKING:
    import pandas as pd

    from animalcat.client import Client
    from animalcat.lab.arena import Arena
    from animalcat.lab.battery_report import ReportedBattery

Arenas: TypeAlias = "str | os.PathLike[str] | Battery | Mapping[str, Any] | Iterable[Any]"
"""What a battery may be made of."""

_SHOWN: Final = 12
"""Most demands that a battery's table lists."""


@dataclass(frozen=True, repr=False)
class LabBattery(Battery):
    """A battery that a lab has: its arenas, and what they ask for.

    At the end of a notebook's cell it shows what its arenas ask for, from where to where.

    Attributes:
        lab: Where it is kept.
        said: What is to be known of how it was made, one sentence each.
    """

    lab: Client = field(kw_only=True, repr=False, compare=False)
    said: tuple[str, ...] = field(default=(), kw_only=True, repr=False, compare=False)

    @classmethod
    def of(cls, battery: Battery, lab: Client, said: Iterable[str] = ()) -> Self:
        """A battery, with where it is kept."""
        known = {each.name: getattr(battery, each.name) for each in fields(Battery)}
        return cls(**known, lab=lab, said=tuple(said))

    @cached_property
    def _instances(self) -> tuple[Instance, ...]:
        return tuple(self.lab.instances(self.id))

    def __len__(self) -> int:
        return self.instances

    def to_frame(self) -> pd.DataFrame:
        """Its arenas, one row each by name.

        Returns:
            The columns `paradigm`, `control`, `control_of`, `pass_mark` and `time_limit` (seconds;
            0 is none), and one for each demand, its unit in brackets; missing where it does not
            apply. `control` says which control an arena is of that in `control_of`; empty for none.
        """
        import pandas as pd

        units = {each.name: each.unit for each in self.features}
        rows = [
            {
                "instance": instance.name,
                "paradigm": instance.paradigm,
                "control": instance.control,
                "control_of": instance.control_of,
                "pass_mark": instance.pass_mark,
                "time_limit": instance.time_limit_steps / 50.0,
                **{
                    f"{name} [{units[name]}]" if units.get(name) else name: value
                    for name, value in instance.features.items()
                },
            }
            for instance in self._instances
        ]
        return pd.DataFrame(rows).set_index("instance")

    def arena(self, instance: str) -> Arena:
        """One of its arenas, with every value fixed as it is played.

        Raises:
            AnimalcatError: It has none of that name.
        """
        from animalcat.lab.arena import Arena

        for each in self.lab.instances(self.id, arenas=True):
            if each.name == instance and not each.arena_yaml:
                raise AnimalcatError(
                    f"{instance} has demands and no arena: battery {self.id} was made of a table",
                    "INVALID_REQUEST",
                )
            if each.name == instance:
                return Arena(each.arena_yaml)
        raise AnimalcatError(
            f"battery {self.id} has no arena {instance!r}; battery.to_frame().index names them",
            "UNKNOWN_INSTANCE",
        )

    def report(self, layout: Any = "", layout_variant: str = "") -> ReportedBattery:
        """What is in it, whether it can be passed, what it could tell, how reliably, and impostors.

        `report.to_frame()` has the standard error and the reliability of each capability by number
        of episodes; `report.save("report.html")` writes the page. It takes the server extra, and
        half a minute.

        Args:
            layout: A layout, or the name or file of one; by default the one that the battery names,
                if any. Without a layout nothing is said of what could be known.
            layout_variant: Variant of it.

        Raises:
            AnimalcatError: There is no such layout, or it does not fit.
        """
        from animalcat.lab.battery_report import report_battery

        return report_battery(self.lab, self.id, layout, layout_variant)

    def _repr_html_(self) -> str:
        frame = self.to_frame().drop(columns=["paradigm", "pass_mark", "time_limit"])
        rows = [
            (str(name), float(column.min()), float(column.max()), int(column.nunique()))
            for name, column in frame.items()
            if column.nunique() > 1
        ]
        title = f"Battery {self.id}: {self.instances} arenas"
        heads, note = ("demand", "least", "most", "values"), f"digest {self.digest[:12]}"
        if len(rows) > _SHOWN:
            note = f"{len(rows) - _SHOWN} more differ, which to_frame() has; {note}"
        table = table_html(heads, rows[:_SHOWN], title, note)
        return stacked_html(table, *map(line_html, (*self.said, *self.notes)))


def find(lab: Client, source: Arenas, name: str | None, **options: Any) -> LabBattery:
    """The battery that is meant; it is made where it is not there yet.

    Args:
        lab: Where it is to be.
        source: A name, a path, a battery, arenas by name, or arenas.
        name: Name of a battery that is made.
        **options: Options of `import_battery`.

    Raises:
        AnimalcatError: There is no such battery, or something in it is no arena.
    """
    if isinstance(source, Battery):
        return source if isinstance(source, LabBattery) else LabBattery.of(source, lab)
    if not isinstance(source, str | os.PathLike):
        return _of_arenas(lab, _texts(source), name, options)
    text = os.fspath(source)
    if "\n" in text:
        return _of_arenas(lab, _texts({name or "arena": text}), name, options)
    stored = {known.id: known for known in lab.list_batteries()}
    meant = battery_reference.resolve(text, stored, lab.shipped_batteries())
    if meant.path is None and not options:
        known = lab.build_battery(meant.name) if meant.kind == "shipped" else None
        return LabBattery.of(known or lab.get_battery(meant.name), lab)
    path = meant.path or Path(text)
    own = battery_id(path)
    called = name or meant.name or (f"{own}-files" if own in lab.shipped_batteries() else own)
    return _store_battery(lab, path, called, stored, options)


def _of_arenas(
    lab: Client, arenas: Mapping[str, str], name: str | None, options: Mapping[str, Any]
) -> LabBattery:
    stored = {known.id: known for known in lab.list_batteries()}
    return _store_battery(lab, arenas, name or "arenas", stored, options)


def _store_battery(
    lab: Client,
    source: Path | Mapping[str, str],
    name: str,
    stored: Mapping[str, Battery],
    options: Mapping[str, Any],
) -> LabBattery:
    made = lab.import_battery(source, name, replace=True, **options)
    said = list[str]()
    before = stored.get(name)
    if before is not None and before.digest != made.digest:
        said.append(
            f"The name {name} stood for other arenas before (digest {before.digest[:12]}), which "
            "earlier sessions keep."
        )
    return LabBattery.of(made, lab, [*said, *made.problems])


def _texts(source: Mapping[str, Any] | Iterable[Any]) -> dict[str, str]:
    """Arenas as YAML, by their names."""
    from animalcat.lab.arena import Arena

    named: Mapping[Any, Any]
    if hasattr(source, "columns"):
        raise AnimalcatError(
            "a battery is made of arenas, and this is a table: give arenas by their names, as in "
            "{name: Arena.goal(distance=d) for name, d in table['distance'].items()}; a table of "
            "more meta-features goes into features=",
            "INVALID_REQUEST",
        )
    if isinstance(source, Mapping):
        named = cast("Mapping[Any, Any]", source)
    else:
        try:
            listed = list(source)
        except TypeError:
            raise AnimalcatError(
                f"a battery is made of arenas by name, such as {{'near': Arena.goal(distance=3)}}, "
                f"of a path, or it is a name from lab.list_batteries(); this is of "
                f"{type(source).__name__}: {source!r:.60}",
                "INVALID_REQUEST",
            ) from None
        named = {f"arena-{number}": arena for number, arena in enumerate(listed)}
    if not named:
        raise AnimalcatError("a battery needs one arena at least", "INVALID_REQUEST")
    texts = dict[str, str]()
    for key, arena in named.items():
        try:
            texts[str(key)] = Arena(arena).to_yaml()
        except AnimalcatError as error:
            raise AnimalcatError(f"arena {key!r}: {error}", error.code) from None
    return texts
