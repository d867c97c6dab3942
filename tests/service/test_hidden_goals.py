"""Object permanence, live: arenas in which the goal is hidden, measured and played."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from animalcat.layouts.library import load_layout, text_of
from animalcat.service.batteries.battery import ArenaFile, NamedLayout, import_files
from animalcat.service.library.layouts import layout_on, meant_layout, own_layout, variant_said
from animalcat.service.measuring.coverage import coverage

LAYOUT = load_layout("object-permanence", "measured")


def item(name: str, x: float, z: float, *size: float, y: float = 0) -> str:
    sizes = f", sizes: [!Vector3 {{x: {size[0]}, y: {size[1]}, z: {size[2]}}}]" if size else ""
    place = f"positions: [!Vector3 {{x: {x}, y: {y}, z: {z}}}]"
    return f"    - !Item {{name: {name}, {place}{sizes}, rotations: [0]}}\n"


def arena(*items: str, wait: float = 0, head: str = "") -> str:
    """The agent looks ahead from the middle of one side, and has to wait first."""
    agent = (
        "    - !Item {name: Agent, positions: [!Vector3 {x: 20, y: 0, z: 4}], rotations: [0], "
        f"frozenAgentDelays: [{wait}]}}\n"
    )
    start = f"!ArenaConfig\narenas:\n  0: !Arena\n    pass_mark: 0\n    t: 120\n{head}    items:\n"
    return start + agent + "".join(items)


def behind(x: float, wait: float, screens: int = 2, size: float = 1) -> str:
    """The goal falls behind one of some screens."""
    walls = [item("Wall", 8 + 24 * k / max(1, screens - 1), 16, 5, 4, 1) for k in range(screens)]
    return arena(*walls, item("GoodGoal", x, 18, size, size, size, y=8), wait=wait)


GOAL = item("GoodGoal", 20, 14, 1, 1, 1)
BOX = "".join(item("Wall", x, z, *s) for x, z, *s in (
    (20, 20, 9, 4, 1), (20, 28, 9, 4, 1), (16, 24, 1, 4, 6.9), (24, 24, 1, 4, 6.9)
))  # fmt: skip
ARENAS = {
    "screen-left-1": behind(8, 0),
    "screen-left-5": behind(8, 5, size=2),
    "screen-right-6": behind(32, 6),
    "screen-three-7": behind(20, 7, screens=3),
    "plain-near": arena(GOAL),
    "plain-far": arena(item("GoodGoal", 24, 24, 2, 2, 2)),
    "dark-long": arena(GOAL, head="    blackouts: [10, 55]\n", wait=5.5),
    "many-two": arena(GOAL, item("GoodGoalMulti", 30, 20, 1, 1, 1)),
    "many-bad": arena(GOAL, item("BadGoal", 30, 20, 1, 1, 1)),
    "shut-box": arena(BOX, item("GoodGoal", 20, 24, 1, 1, 1, y=8)),
}
UNSEEN = "the hidden goal is not seen from anywhere that the agent can safely get to"


def test_what_the_layout_covers(tmp_path: Path) -> None:
    battery = import_files([ArenaFile(f"{n}.yml", t) for n, t in ARENAS.items()], 0, tmp_path)
    found = coverage(LAYOUT, battery)
    assert found.reasons == {
        "many-two": "rewards above 1",
        "many-bad": "badGoals above 0",
        "shut-box": UNSEEN,
    }
    assert found.to_dict() == {
        "covered": 7,
        "of": 10,
        "left_out": {"badGoals above 0": 1, "rewards above 1": 1, UNSEEN: 1},
        "unpassable": 0,
        "cannot_fail": 0,
    }
    table = {
        name: dict(zip(LAYOUT.feature_names, row, strict=True))
        for name, row in found.features.items()
    }
    hidden = {name: row["timeUnderOcc"] for name, row in table.items() if row["occluderPresence"]}
    assert hidden.keys() == {name for name in table if not name.startswith("plain")}
    # Who is frozen longer has it out of sight longer, since the goal falls after a second.
    assert 0.5 < hidden["screen-left-1"] < 2.5
    assert 4.0 < hidden["screen-left-5"] < hidden["screen-right-6"] < hidden["screen-three-7"] < 9.0
    assert hidden["dark-long"] == pytest.approx(4.5, abs=0.13)
    assert [table[name]["rightLeftPosition"] for name in ("screen-left-1", "screen-right-6")] == [
        -1,
        1,
    ]
    assert table["screen-three-7"]["numPositions"] == 2
    # The paper's ranges end at 4 s.
    assert "timeUnderOcc above 4 s" in coverage(load_layout("object-permanence"), battery).gaps
    # So the layout that is asked for by name is taken by the variant that covers most, and a
    # battery's own variant or one that is asked for comes before.
    assert meant_layout(battery, "object-permanence") == LAYOUT
    assert meant_layout(battery, "object-permanence", "sharp").variant == "sharp"
    assert meant_layout(battery, own=own_layout(text_of("object-permanence"))) == LAYOUT
    assert layout_on(battery, "object-permanence") == LAYOUT
    said, better = variant_said(battery, load_layout("object-permanence"))
    assert said.endswith("is used in its variant refined, chosen by name.")
    assert better.startswith("The variant measured of object-permanence covers 7 of 10 arenas")
    naming = replace(battery, layout=NamedLayout("object-permanence", "by-way"))
    assert meant_layout(naming, "object-permanence").variant == "by-way"
    assert variant_said(naming, meant_layout(naming))[0].endswith(
        "by-way, which the battery names."
    )
