"""How measured demands agree with what the O-PIAAGETS battery says of its own arenas.

The battery's table (data/o-piaagets/metadata.csv) repeats what is in the names of its files. Each
claim takes one value from them, and says for which arenas they tell it. Claims and exclusions were
written down before any arena was compared with them.

Left out are arenas that the table has twice, and arenas that the table or the folder lacks.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from animalcat.arena_configs.features import MeasuredFeatures
from animalcat.arena_configs.loader import load_config
from animalcat.arena_configs.model import ArenaError
from animalcat.arena_configs.placement import place
from animalcat.processes import process_pool
from benchmarks import fidelity

SEED: Final = 0
FOLDER: Final = "o-piaagets"
SHOWN: Final = 4
"""Disagreements that a row names."""

_NUMBERS: Final = ("Zero", "One", "Two", "Three", "Four", "Five")
_SIDES: Final = {"Left": -1.0, "Right": 1.0}


class Row(NamedTuple):
    """What the table says of an arena; the words are its own."""

    name: str
    suite: str
    sub_suite: str
    paradigm: str
    task: str
    instance: str
    rotation: str
    occluder: str

    @property
    def practice(self) -> bool:
        """Whether it is one of the controls, which ask for no object permanence."""
        return self.suite == "Room-Practice-Controls"

    @property
    def glass(self) -> bool:
        """Whether what would hide the goal is transparent."""
        return "Trans" in self.occluder or "Trans" in self.task

    @property
    def opaque(self) -> bool:
        """Whether the table says that what hides the goal is opaque."""
        return self.occluder in ("OPQ", "OpLava", "Opaque") and not self.glass


class Claim(NamedTuple):
    """One value that names tell.

    Attributes:
        feature: The meta-feature that is compared.
        rule: From what the value follows, in words.
        told: The value, or None where the names do not tell it.
        some: Whether only being greater than 0 is compared, as 1.
    """

    feature: str
    rule: str
    told: Callable[[Row], float | None]
    some: bool = False


class Cell(NamedTuple):
    """A told and a measured value.

    Attributes:
        name: The arena.
        told: The value that its name tells.
        found: The measured one, or why there is none.
    """

    name: str
    told: float
    found: float | str

    @property
    def agrees(self) -> bool:
        """Whether they are the same, to the digits that names have."""
        return not isinstance(self.found, str) and abs(self.found - self.told) < 1e-6


def _lava(row: Row) -> float | None:
    if "Lava" in row.occluder or "Lava" in row.task:
        return 1.0
    return 0.0 if "3Cup" in row.task and row.occluder == "OPQ" else None


def _glass(row: Row) -> float | None:
    return 1.0 if row.glass else None


def _tests_permanence(row: Row) -> float | None:
    if row.practice:
        return None
    return 0.0 if row.glass else 1.0 if row.opaque else None


def _by_itself(row: Row) -> float | None:
    if row.practice or row.glass or not row.opaque:
        return None
    return {"Allocentric-OP": 1.0, "Egocentric-OP": 0.0}.get(row.sub_suite)


def _on_the_way(row: Row) -> float | None:
    return 1.0 if row.sub_suite == "Egocentric-OP" and row.opaque and not row.practice else None


def _size(row: Row) -> float | None:
    if row.paradigm == "PCTB" and "3Cup" in row.task:  # 1G0.5LClose: one green goal of 0.5 m
        found = re.match(r"1[GY](\d(?:\.\d)?)[LMR]", row.instance)
    elif row.paradigm in ("PCTB", "Detour-Tasks"):  # G3.5CloseRightFar, G2BowtieYAhead
        found = re.match(r"G(\d(?:\.\d)?)[A-Z]", row.instance)
    elif row.paradigm == "What-Where-When-Style-Tasks":  # 3CG0.5M2Decoy
        found = re.match(r"\dCG(\d(?:\.\d)?)[LMR]", row.instance)
    else:
        found = None
    return float(found[1]) if found else None


def _side(row: Row) -> float | None:
    if row.paradigm != "PCTB" or row.rotation != "0":
        return None
    if "3Cup" in row.task:
        found = re.match(r"1[GY]\d(?:\.\d)?([LMR])(?:Close|Far)?$", row.instance)
        return {"L": -1.0, "M": 0.0, "R": 1.0}[found[1]] if found else None
    found = re.search(r"(?:Close|Far)(Left|Right)", row.instance)
    return _SIDES[found[1]] if found else None


def _places(row: Row) -> float | None:
    found = re.match(r"(\d+)Cup", row.task)
    return float(found[1]) if found and row.paradigm == "PCTB" and not row.practice else None


def _rewards(row: Row) -> float | None:
    if row.paradigm != "Numerosity-OP" or not re.match(f"({'|'.join(_NUMBERS)})", row.task):
        return None
    found = re.match(r"L(\d)R(\d)$", row.instance)
    return float(found[1]) + float(found[2]) if found else None


CLAIMS: Final = (
    Claim("lavaPresence", "lava in the variant or the task; 3Cup tasks with OPQ: none", _lava),
    Claim(
        "transparentPresence",
        "a transparent variant or task has a transparent wall",
        _glass,
    ),
    Claim(
        "occluderPresence",
        "tests of object permanence: opaque ones hide the goal, transparent ones do not",
        _tests_permanence,
    ),
    Claim(
        "hiddenStanding",
        "allocentric tests hide the goal by themselves, egocentric ones do not",
        _by_itself,
        some=True,
    ),
    Claim("hiddenMoving", "egocentric tests hide it on the way", _on_the_way, some=True),
    Claim("goalSize", "the number behind G or Y", _size),
    Claim("rightLeftPosition", "cups and grids: the side in the instance's name", _side),
    Claim("hidingPlaces", "cups and grids: the number of cups", _places),
    Claim("rewards", "numerosity: the goals on both sides", _rewards),
)


def table(folder: Path) -> dict[Path, Row]:
    """Read the rows of the arenas that are at hand.

    Args:
        folder: The folder of the battery, with `metadata.csv`.
    """
    with (folder / "metadata.csv").open(encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    often = Counter(line["InstanceName"] for line in lines)
    files = {path.name: path for path in sorted(folder.rglob("*.yml"))}
    return {
        files[line["InstanceName"]]: Row(
            line["InstanceName"].removesuffix(".yml"),
            line["Suite"],
            line["SubSuite"],
            line["Paradigm"],
            line["Task"],
            line["Instance"],
            line["AgentRotationVariant"],
            line["OccluderVariant"],
        )
        for line in lines
        if often[line["InstanceName"]] == 1 and line["InstanceName"] in files
    }


def measure(path: Path) -> MeasuredFeatures | str:
    """Measure an arena, also by playing it; or say why it cannot be measured."""
    from animalcat.envs.measure import measure_episode

    try:
        arena = load_config(path).config.first
        return measure_episode([place(arena, np.random.default_rng(SEED))]).features
    except (ArenaError, ValueError) as error:
        return str(error)


def compare(claim: Claim, rows: Mapping[Path, Row], found: Mapping[Path, Any]) -> list[Cell]:
    """Compare what names tell with what was measured, for one claim."""
    cells: list[Cell] = []
    for path, row in rows.items():
        told = claim.told(row)
        if told is None or path not in found:
            continue
        measured = found[path]
        if isinstance(measured, str):
            value: float | str = measured
        elif claim.feature in measured.values:
            value = measured.values[claim.feature]
        else:
            value = measured.missing.get(claim.feature, "not measured")
        if claim.some and not isinstance(value, str):
            value = float(value > 0.0)
        cells.append(Cell(row.name, told, value))
    return cells


def run(quick: bool = False) -> list[Mapping[str, Any]]:
    """Compare all arenas at hand with their names.

    Args:
        quick: Every fiftieth arena.
    """
    data_dir = fidelity.data_folder()
    if data_dir is None:
        return [{"name": "measured demands", "note": "no data: set ANIMALCAT_DATA"}]
    rows = dict(list(table(data_dir / FOLDER).items())[:: 50 if quick else 1])
    paths = [path for path, row in rows.items() if any(c.told(row) is not None for c in CLAIMS)]
    with process_pool() as pool:
        found = dict(zip(paths, pool.map(measure, paths, chunksize=8), strict=True))
    return list(_lines([(claim, compare(claim, rows, found)) for claim in CLAIMS]))


def _lines(compared: Sequence[tuple[Claim, list[Cell]]]) -> Iterator[dict[str, Any]]:
    total = [cell for _, cells in compared for cell in cells]
    for name, rule, cells in (
        ("all cells", "", total),
        *((claim.feature, claim.rule, cells) for claim, cells in compared),
    ):
        off = [cell for cell in cells if not cell.agrees]
        listed = "; ".join(f"{c.name}: {c.told:g}, found {_shown(c.found)}" for c in off[:SHOWN])
        more = f"; and {len(off) - SHOWN} more" if len(off) > SHOWN else ""
        yield {
            "name": name,
            "value": len(cells) - len(off),
            "unit": f"of {len(cells)}",
            "note": f"{rule}. {f'off: {listed}{more}' if off and rule else ''}".strip(". "),
        }


def _shown(found: float | str) -> str:
    return found if isinstance(found, str) else f"{found:g}"
