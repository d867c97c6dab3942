"""Writes batteries to disk, by the digest of their content."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from animalcat.arena_configs.batteries.language import Recipe
from animalcat.arena_configs.features.registry import FEATURES
from animalcat.service.batteries.columns import ColumnsWriter, InstanceColumns, read_head, row_of
from animalcat.service.batteries.drafts import Fixed

TABLE: Final = "battery.parquet"
"""File of a battery's table, in its folder: a row an instance, and what is said of the whole."""
RECIPE: Final = "recipe.json"
"""File of the recipe that a battery was built from, in its folder."""
TABLE_VERSION: Final = 2
"""Version of a battery's table on disk, and part of its digest."""
UNFINISHED: Final = ".new-"
"""Begins the names of folders in which batteries are put together."""


def write_battery(
    fixed: Iterable[Fixed],
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
    not part of it. Instances are written as they come, and only some are held at a time.

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
    head: dict[str, Any] = {
        "version": TABLE_VERSION,
        "units": dict(units),
        "versions": {name: feature.version for name, feature in FEATURES.items()},
        "problems": list(problems),
    }
    if recipe is not None:
        head["recipe"] = recipe
    if layout is not None:
        head["layout"] = list(layout)
    if drawn:
        head["drawn"] = {name: list(fields) for name, fields in drawn.items()}
    store.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=UNFINISHED, dir=store))
    try:
        arenas: list[bytes] = []
        unsolved: dict[str, str] = {}
        tried = False
        with ColumnsWriter(temporary / TABLE, [*units]) as writer:
            for item in fixed:
                arenas.append(_write_arena(temporary, item))
                writer.add(row_of(item.instance))
                tried = tried or item.verdict is not None
                if item.verdict and not item.verdict.solved:
                    unsolved[item.instance.name] = item.verdict.reason
            if tried:
                head["unsolved"] = unsolved
            writer.finish(head)
        if source is not None:
            kept = {"text": source.text, "families": {**source.families}}
            (temporary / RECIPE).write_text(json.dumps(kept, sort_keys=True), "utf-8")
        digest = _digest(head, InstanceColumns(temporary / TABLE), arenas)
        folder = store / digest
        if not folder.exists():
            into_place(temporary, folder)
        elif (folder / TABLE).read_bytes() != (temporary / TABLE).read_bytes():
            (temporary / TABLE).replace(folder / TABLE)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return digest


def _write_arena(folder: Path, fixed: Fixed) -> bytes:
    """Write the arena of an instance, and return its digest."""
    path, content = folder / fixed.instance.arena, fixed.text.encode()
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    return hashlib.sha256(content).digest()


def digest_on_disk(folder: Path) -> str:
    """Return the digest of a battery as it is on the disk: the name of its folder, if it is whole.

    Args:
        folder: The battery's folder.

    Raises:
        OSError: A file is gone, or cannot be read.
        ValueError: Its table cannot be read.
    """
    try:
        head, rows = read_head(folder / TABLE), InstanceColumns(folder / TABLE)
        files = (rows.row(k)["arena"] for k in range(len(rows)))
        arenas = [hashlib.sha256((folder / file).read_bytes()).digest() for file in files]
        return _digest(head, rows, arenas)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{TABLE} is not a table of a battery: {error!r}") from error


def _digest(head: Mapping[str, Any], rows: InstanceColumns, arenas: Sequence[bytes]) -> str:
    """The digest of a battery: of one JSON text with sorted keys, made piece by piece.

    Args:
        head: What the table says of the whole.
        rows: The instances.
        arenas: The SHA-256 of each instance's arena.
    """
    digest = hashlib.sha256()
    parts: dict[str, Iterator[str] | str] = {
        "version": _text(head["version"]),
        "units": _text(head["units"]),
        "versions": _text(head["versions"]),
        "instances": (
            _text({k: v for k, v in rows.row(place).items() if k != "origin"})
            for place in range(len(rows))
        ),
        "arenas": (_text(arena.hex()) for arena in arenas),
    }
    if "recipe" in head:
        parts["recipe"] = _text(head["recipe"])
        parts["origins"] = (_text(rows.row(k).get("origin")) for k in range(len(rows)))
    if "layout" in head:
        parts["layout"] = _text(head["layout"])
    for number, (key, part) in enumerate(sorted(parts.items())):
        digest.update(f"{'{,'[number > 0]}{_text(key)}:".encode())
        if isinstance(part, str):
            digest.update(part.encode())
            continue
        for place, text in enumerate(part):
            digest.update(f"{'[,'[place > 0]}{text}".encode())
        digest.update(b"]")
    digest.update(b"}")
    return digest.hexdigest()


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def into_place(temporary: Path, folder: Path) -> None:
    """Give a battery's folder its name."""
    try:
        temporary.rename(folder)
    except OSError:
        if not folder.exists():  # otherwise another thread stored the same content first
            raise
