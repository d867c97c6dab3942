"""Meta-features of one's own: joined by instance, with units, and errors that name the place."""

from __future__ import annotations

from pathlib import Path

import pytest

from animalcat.arena_configs.outcome import MarkedPlace
from animalcat.layouts.library import load_layout
from animalcat.service.batteries.battery import ArenaFile, import_files, load
from animalcat.service.batteries.feature_table import TableError
from animalcat.service.errors import ServiceError
from animalcat.service.measuring.coverage import coverage

from .conftest import arena

FILES = [ArenaFile("a.yaml", arena(0)), ArenaFile("b.yaml", arena(1))]
TABLE = """instance,noise [dB],difficulty,choices,rewardSize [m]
a,40,3,right 10 20 2; wrong 30 20 2.5,1
b,,4.5,,2
"""


def test_columns_are_joined_and_kept(tmp_path: Path) -> None:
    made = import_files(FILES, 0, tmp_path, TABLE)
    a, b = load(made.digest, tmp_path).instances
    assert (a.features["noise"], a.features["difficulty"], a.features["rewards"]) == (40, 3, 1)
    assert a.places == (MarkedPlace(True, 10, 20, 2), MarkedPlace(False, 30, 20, 2.5))
    assert ("noise" in b.features, b.missing["noise"]) == (False, "empty in the table")
    assert (b.places, made.units["noise"], made.units["difficulty"]) == ((), "dB", "")
    assert "noise" not in made.versions
    assert made.digest != import_files(FILES, 0, tmp_path).digest
    found = coverage(load_layout("one-capability"), made)
    assert dict(found.features) == {"a": [3.0], "b": [4.5]}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("b,,4.5", "c,,4.5"), r"line 3: the battery has no instance 'c'; it has 'a', 'b'"),
        (("b,,4.5,,2\n", ""), r"no row for 'b'; give every instance a row"),
        (("b,,4.5", "a,,4.5"), r"line 3: instance 'a' was on line 2"),
        (
            ("40", "loud"),
            r"line 2, column noise: 'loud' is not a finite number.*Text stands in",
        ),
        (("40", "inf"), r"line 2, column noise: 'inf' is not a finite number"),
        (("b,,4.5,,2", "b,,4.5,,3"), r"line 3, column rewardSize: 3 m, but .* is 2 m"),
        (("rewardSize [m]", "rewardSize [cm]"), r"line 2, column rewardSize: 1 cm, but .* 1 m"),
        (("right 10", "maybe 10"), r"line 2, column choices: 'maybe 10 20 2'"),
        (("right 10 20 2", "right 10 60 2"), r"x and z from 0 to 40"),
        (("instance,", "name,"), r"no column `instance`; columns: name, noise"),
        (("difficulty", "noise"), r"column noise is there 2 times"),
        (("noise [dB]", "noise (dB)"), r"column 'noise \(dB\)'.*`noise \[dB\]`"),
        (("40,3,", "40,"), r"line 2: 4 cells; the header has 5"),
        ((TABLE, TABLE.replace(";", "").replace(",", ";")), "line 1: commas are expected between"),
        (("40,3,", '"40,5",3,'), r"line 2, column noise: '40,5' is not a .* write it with a point"),
        (("40,3,", "40,5,3,"), r"line 2: 6 cells; the header has 5.* written with a point"),
        (("40", "1_000"), r"line 2, column noise: '1_000' is not a finite number"),
        (("rewardSize [m]", "rewardSize [s]"), r"column rewardSize \[s\]: the unit 's' is another"),
        (("difficulty", ""), r"column 3 has no name"),
        ((",choices,", ",choices [m],"), r"column `choices \[m\]`: choices is text"),
    ],
)
def test_what_does_not_fit_names_the_place(
    tmp_path: Path, change: tuple[str, str], words: str
) -> None:
    with pytest.raises(TableError, match=words):
        import_files(FILES, 0, tmp_path, TABLE.replace(*change))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("head", "of"), [("[cm]", 100), ("(cm)", 100), ("[km]", 0.001), ("", 1), ("[ m ]", 1)]
)
def test_a_measured_feature_may_be_given_in_another_unit(
    tmp_path: Path, head: str, of: float
) -> None:
    table = TABLE.replace("rewardSize [m]", f"rewardSize {head}")
    table = table.replace("2.5,1", f"2.5,{of}").replace(",,2", f",,{2 * of}")
    made = import_files(FILES, 0, tmp_path, table)
    assert [one.features["rewardSize"] for one in made.instances] == [1, 2]
    assert made.units["rewardSize"] == "m"
    assert made.digest == import_files(FILES, 0, tmp_path, TABLE).digest


@pytest.mark.parametrize("unit", ["dB", "%"])
def test_a_layout_wants_its_own_unit(tmp_path: Path, unit: str) -> None:
    """Also of one that could be told in its own: twins and made arenas are in the battery's."""
    made = import_files(FILES, 0, tmp_path, TABLE.replace("difficulty", f"difficulty [{unit}]"))
    with pytest.raises(ServiceError, match=f"difficulty in '1', the battery in '{unit}'"):
        coverage(load_layout("one-capability"), made)
