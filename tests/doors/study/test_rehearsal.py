"""A rehearsal goes by the same rules as the study, and says what to expect of it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from animalcat.doors.study.file import Study
from animalcat.doors.study.rehearsal import rehearsal_values, rehearse
from animalcat.service.batteries.battery import ArenaFile, Battery, import_files
from tests.doors.study.conftest import STUDY
from tests.service.conftest import FILES

Write = Callable[..., Study]


@pytest.fixture(scope="module")
def battery(tmp_path_factory: pytest.TempPathFactory) -> Battery:
    files = [ArenaFile(name, text.decode()) for name, text in FILES]
    return import_files(files, 0, tmp_path_factory.mktemp("batteries"))


def test_what_is_expected_follows_the_file(written: Write, battery: Battery) -> None:
    found = rehearsal_values(rehearse(written(), lambda name: battery, 4, 0.0))
    assert {*found} == {"plain", "scored"}
    row = found["plain"]
    assert (row["done"], row["left"]) == (1.0, 0.0)
    assert row["rounds"] == [4.0, 4.0, 4.0]
    assert all(0.0 <= share <= 1.0 for share in row["known"].values())
    longer = rehearsal_values(
        rehearse(written(("title:", "slower: 10\ntitle:")), lambda name: battery, 4, 0.0)
    )
    assert longer["plain"]["minutes"][1] > 1.5 * row["minutes"][1]
    assert longer["plain"]["known"] == row["known"]


def test_blocks_are_played_whole_in_each_order(written: Write, battery: Battery) -> None:
    near, far = (f"[navigation-{k:02}, navigation-{k + 1:02}]" for k in (0, 12))
    blocks = ("trials: 2, minutes: 0", f"latin: {{near: {near}, far: {far}}}")
    study = written(blocks, text=STUDY.partition("conditions:")[0])
    found = rehearsal_values(rehearse(study, lambda name: battery, 2, 0.0))
    assert {name: row["rounds"] for name, row in found.items()} == {
        "near-far": [4.0, 4.0, 4.0],
        "far-near": [4.0, 4.0, 4.0],
    }


def test_who_has_no_patience_leaves(written: Write, battery: Battery) -> None:
    found = rehearsal_values(rehearse(written(), lambda name: battery, 6, 0.5))
    shares = [row["left"] for row in found.values()]
    assert sum(shares) > 0.5
    assert rehearsal_values(rehearse(written(), lambda name: battery, 6, 0.5)) == found
