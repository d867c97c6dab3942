"""Reads the table of O-PIAAGETS as its authors ship it: sub-suites, tasks, variants, controls."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Final, NamedTuple

from animalcat.arena_configs.model import Problem
from animalcat.layouts.model.tables import Sheet, TableError, read_sheet
from animalcat.service.batteries.feature_table import FeatureTable, TableRow
from animalcat.service.batteries.naming import ControlLink, TaskKind, some

NAME: Final = "InstanceName"
_TASK: Final = ("Paradigm", "Task", "Instance")
_VARIANT: Final = ("ColorVariant", "AgentRotationVariant", "OccluderVariant")
COLUMNS: Final = (NAME, "Suite", "SubSuite", *_TASK, *_VARIANT)
"""Columns by which such a table is known."""
GLASS: Final = "glass"
"""What a control is called whose walls show what they hide."""
_GLASS: Final = re.compile("Trans(parent)?")
_HIDING: Final = ("", "OP", "OPQ", "Occluder", "1Occluder")
"""What stands in the name of a task where that of its control says that one sees through."""


class _Row(NamedTuple):
    line: int
    cells: Mapping[str, str]

    @property
    def kind(self) -> TaskKind:
        """What kind of task it is."""
        cells = self.cells
        return TaskKind(
            f"{cells['Suite']}/{cells['SubSuite']}",
            cells["Paradigm"],
            f"{cells['Task']}-{cells['Instance']}",
            "-".join(cells[name] for name in _VARIANT),
        )


def metadata_of(text: str) -> Sheet | None:
    """Return the table that O-PIAAGETS comes with; None of any other text."""
    if not text.lstrip("\ufeff").startswith(f"{NAME},"):
        return None
    sheet = read_sheet(text.encode(), units=False)
    return sheet if all(name in sheet for name in COLUMNS) else None


def read_metadata(sheet: Sheet, instances: Sequence[str]) -> tuple[FeatureTable, list[Problem]]:
    """Return what the table says of instances, and what of both has no partner.

    An arena whose walls show what they hide is a control of the one of the same paradigm and place
    whose walls hide it: of that in the same colours, if it is there, else of the first by name.

    Args:
        sheet: The table.
        instances: Names of the instances, each the path of a file without the suffix.

    Raises:
        TableError: It says two things of one name.
    """
    rows: dict[str, _Row] = {}
    columns = {name: sheet.column(name) for name in COLUMNS}
    for i, line in enumerate(sheet.lines):
        cells = {name: column[i] for name, column in columns.items()}
        known = rows.setdefault(re.sub(r"\.ya?ml$", "", cells[NAME]), _Row(line, cells))
        if known.cells != cells:
            raise TableError(f"line {line}: {cells[NAME]} was on line {known.line}, and otherwise")
    found = {name: rows[file] for name in instances if (file := PurePosixPath(name).name) in rows}
    links = _links(found)
    table = {name: TableRow(0, {}, ()) for name in instances} | {
        name: TableRow(row.line, {}, (), row.kind, links.get(name, ControlLink()))
        for name, row in found.items()
    }
    return FeatureTable({}, table, says_links=True), _unmatched_files(rows, found, instances)


def _links(found: Mapping[str, _Row]) -> dict[str, ControlLink]:
    """The controls, with what each is one of."""
    tests: dict[tuple[str, ...], list[str]] = {}
    for name, row in sorted(found.items()):
        tests.setdefault(tuple(row.cells[part] for part in _TASK), []).append(name)
    links: dict[str, ControlLink] = {}
    for name, row in found.items():
        paradigm, task, place = (row.cells[part] for part in _TASK)
        if not (glass := _GLASS.search(task)):
            continue
        begins, ends = task[: glass.start()], task[glass.end() :]
        for hiding in _HIDING:
            if of := tests.get((paradigm, f"{begins}{hiding}{ends}", place)):
                alike = [one for one in of if found[one].kind.variant == row.kind.variant]
                links[name] = ControlLink(GLASS, [*alike, *of][0])
                break
        else:
            links[name] = ControlLink(GLASS)
    return links


def _unmatched_files(
    rows: Mapping[str, _Row], found: Mapping[str, _Row], instances: Sequence[str]
) -> list[Problem]:
    """What is to be known of arenas without a row, and of rows without an arena."""
    bare = [name for name in instances if name not in found]
    used = {PurePosixPath(name).name for name in found}
    lost = [name for name in rows if name not in used]
    said = (
        ("no-row", bare, "arenas without a row go by their names"),
        ("no-arena", lost, "rows name no arena here"),
    )
    return [
        Problem("the table", None, "", "warning", code, f"{words} ({len(names)}): {some(names)}")
        for code, names, words in said
        if names
    ]
