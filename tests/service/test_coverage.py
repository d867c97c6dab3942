"""What a layout covers of a battery, by what stands in the arenas and not by their names."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest

from animalcat.layouts.library import load_layout
from animalcat.layouts.model.spec import Exclusion
from animalcat.service.batteries.battery import ArenaFile, Battery, import_files, load, read_files
from animalcat.service.batteries.columns import ColumnsWriter, read_head
from animalcat.service.batteries.marks import UNPASSABLE
from animalcat.service.batteries.writing import TABLE
from animalcat.service.errors import Code, ServiceError
from animalcat.service.measuring.coverage import coverage, covered_features
from benchmarks.papers.olympics import INSTANCES

from .conftest import arena

WALL = """
    - !Item
      name: Wall
      positions: [!Vector3 {x: 20, y: 0, z: 4.5}]
      rotations: [0]
      sizes: [!Vector3 {x: 1, y: 1, z: 0.2}]
"""

Make = Callable[..., Battery]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    def make_one(**texts: str) -> Battery:
        files = [ArenaFile(f"{name}.yaml", text) for name, text in texts.items()]
        return import_files(files, 0, tmp_path)

    return make_one


def test_what_is_not_covered_is_told_by_reason_and_count(make: Make) -> None:
    none = arena(0).replace("GoodGoal", "BadGoal")
    battery = make(a=none, b=none, c=arena(0) + WALL, d=arena(0))
    aaio = load_layout("aaio")
    found = coverage(aaio, battery)
    assert found.gaps == f"2 of 4: {UNPASSABLE}; 1: wallsInWay above 0"
    assert list(found.features) == ["d"]
    assert "battery export" in found.advice
    with pytest.raises(ServiceError, match="none of the 2 instances") as error:
        covered_features(aaio, make(a=none, c=arena(0) + WALL))
    assert error.value.code is Code.NOT_COVERED
    assert f"1 of 2: {UNPASSABLE}; 1: wallsInWay above 0. `animalcat" in error.value.message


def test_columns_that_nobody_measures_are_asked_for(make: Make) -> None:
    with pytest.raises(ServiceError, match=r"3 of 3: no prosocial_newcomers.*--features") as error:
        covered_features(load_layout("melting-pot"), make(a=arena(0), b=arena(1), c=arena(2)))
    assert "columns instance, prosocial_newcomers, visitor" in error.value.message
    assert len(covered_features(load_layout("one-capability"), make(a=arena(0)))) == 1


@pytest.mark.parametrize(
    ("exclusion", "words"),
    [
        (Exclusion("walls", above=0), "'walls', which is neither measured nor a column"),
        (Exclusion("timeLimit", below=1), "timeLimit in '1', the battery in 's'"),
        (Exclusion("darkness", above=2), "darkness at 2, which is out of its range, 0 to 1"),
    ],
)
def test_conditions_are_checked_by_the_registry(
    make: Make, exclusion: Exclusion, words: str
) -> None:
    layout = dataclasses.replace(load_layout("aaio"), excludes=(exclusion,))
    with pytest.raises(ServiceError, match=words):
        coverage(layout, make(a=arena(0)))


def test_a_battery_of_another_version_is_refused(make: Make) -> None:
    battery = make(a=arena(0))
    table = battery.folder / TABLE
    head = read_head(table)
    with ColumnsWriter(table, [*battery.units]) as writer:
        writer.finish({**head, "version": 9})
    with pytest.raises(ValueError, match=r"has version 9, and this animalcat reads version \d"):
        load(battery.folder.name, battery.folder.parent)


@pytest.mark.slow
def test_aaio_covers_the_69_instances_of_the_paper_and_nothing_else_of_theirs(
    data_dir: Path, tmp_path: Path
) -> None:
    """The 36 others that its features describe hold what it does not know."""
    files = [
        file
        for file in read_files(data_dir / "animal-ai-competition")
        if file.path[:2] in ("01", "07")
    ]
    found = coverage(load_layout("aaio"), import_files(files, 0, tmp_path))
    assert set(found.features) == set(INSTANCES)
    assert len(found.reasons) == 37
    assert sum(why == "no reward" for why in found.reasons.values()) == 1
