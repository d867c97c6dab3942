"""Writes batteries to disk, by the digest of their content."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from animalcat.arena_configs.batteries import Recipe
from animalcat.arena_configs.features import FEATURES
from animalcat.arena_configs.instance import Instance
from animalcat.service.batteries.drafts import Fixed
from animalcat.service.batteries.naming import LINK

TABLE: Final = "battery.json"
"""File of a battery's table, in its folder."""
RECIPE: Final = "recipe.json"
"""File of the recipe that a battery was built from, in its folder."""
TABLE_VERSION: Final = 2
"""Version of a battery's table on disk, and part of its digest."""


def write_battery(
    fixed: Sequence[Fixed],
    units: Mapping[str, str],
    store: Path,
    problems: Sequence[str] = (),
    recipe: Mapping[str, Any] | None = None,
    source: Recipe | None = None,
    drawn: Mapping[str, Sequence[str]] | None = None,
    layout: tuple[str, str] | None = None,
) -> str:
    """Write a battery; of one that exists already only the table, where that is another.

    The digest is of the arenas, their features and where these come from. What a recipe says of the
    battery is part of it, and so is then where each instance comes from. What the planner solved is
    not part of it.

    Args:
        fixed: The instances in order of name.
        units: Unit by meta-feature.
        store: Folder that holds batteries by digest.
        problems: Problems found in files, one line each.
        recipe: What the battery's recipe says of it; None without one.
        source: The recipe, from which twins of the instances can be drawn; no part of the digest.
        drawn: What files left to chance beside looks, by instance; no part of the digest.
        layout: Name and variant of the layout that the battery names; None for none, or where the
            recipe says it.

    Returns:
        The digest.
    """
    versions = {name: feature.version for name, feature in FEATURES.items()}
    rows = [_row(item.instance) for item in fixed]
    table: dict[str, Any] = {
        "version": TABLE_VERSION,
        "units": units,
        "versions": versions,
        "problems": list(problems),
    }
    if recipe is not None:
        table["recipe"] = recipe
    if layout is not None:
        table["layout"] = list(layout)
    if any(item.verdict for item in fixed):
        table["unsolved"] = {
            item.instance.name: item.verdict.reason
            for item in fixed
            if item.verdict and not item.verdict.solved
        }
    if drawn:
        table["drawn"] = {name: list(fields) for name, fields in drawn.items()}
    table["instances"] = rows
    digest = _digest(table, [item.text.encode() for item in fixed])
    text = json.dumps(table, indent=1)
    folder = store / digest
    if not folder.exists():
        _write_folder(fixed, text, folder, source)
    elif (folder / TABLE).read_text("utf-8") != text:
        _write_table(text, folder)
    return digest


def digest_on_disk(folder: Path) -> str:
    """Return the digest of a battery as it is on the disk: the name of its folder, if it is whole.

    Args:
        folder: The battery's folder.

    Raises:
        OSError: A file is gone, or cannot be read.
        ValueError: Its table cannot be read.
    """
    try:
        table: dict[str, Any] = json.loads((folder / TABLE).read_text("utf-8"))
        files = [folder / row["arena"] for row in table["instances"]]
        return _digest(table, [file.read_bytes() for file in files])
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{TABLE} is no table of a battery: {error!r}") from error


def _digest(table: Mapping[str, Any], arenas: Iterable[bytes]) -> str:
    """The digest of a battery, by its table and its arenas in the order of the instances."""
    rows = table["instances"]
    content: dict[str, Any] = {
        "version": table["version"],
        "units": table["units"],
        "versions": table["versions"],
        "instances": [{k: v for k, v in row.items() if k != "origin"} for row in rows],
        "arenas": [hashlib.sha256(arena).hexdigest() for arena in arenas],
    }
    if "recipe" in table:
        content["recipe"] = table["recipe"]
        content["origins"] = [row.get("origin") for row in rows]
    if "layout" in table:
        content["layout"] = table["layout"]
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _row(instance: Instance) -> dict[str, Any]:
    """Return an instance as a row of the table on disk."""
    row = asdict(instance)
    for name in ("places", "origin", "suite", "task_name", "variant", *LINK):
        if not row[name]:
            del row[name]
    return row


def _write_folder(fixed: Sequence[Fixed], table: str, folder: Path, source: Recipe | None) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=".new-", dir=folder.parent))
    try:
        (temporary / "arenas").mkdir()
        for item in fixed:
            (temporary / item.instance.arena).write_text(item.text, "utf-8")
        if source is not None:
            kept = {"text": source.text, "families": {**source.families}}
            (temporary / RECIPE).write_text(json.dumps(kept, sort_keys=True), "utf-8")
        _write_table(table, temporary)
        into_place(temporary, folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _write_table(table: str, folder: Path) -> None:
    """Write a table as a whole: readers see the old one or the new one."""
    handle, name = tempfile.mkstemp(prefix=".new-", dir=folder)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(table)
        file.flush()
        os.fsync(file.fileno())
    Path(name).replace(folder / TABLE)


def into_place(temporary: Path, folder: Path) -> None:
    """Give a battery's folder its name."""
    try:
        temporary.rename(folder)
    except OSError:
        if not folder.exists():  # otherwise another thread stored the same content first
            raise
