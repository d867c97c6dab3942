"""The table of O-PIAAGETS as its authors ship it: sub-suites, tasks, and controls of glass."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from animalcat.layouts.library import load_layout
from animalcat.layouts.model.tables import TableError
from animalcat.service.batteries.battery import ArenaFile, import_files
from animalcat.service.batteries.feature_table import TableRow
from animalcat.service.batteries.naming import ControlLink, TaskKind, kinds_of, links_of
from animalcat.service.batteries.piaagets import metadata_of, read_metadata
from tests.arena_configs.test_pass_marks import ARENA

HEAD = (
    "InstanceName,Suite,SubSuite,Paradigm,Task,Instance,ColorVariant,AgentRotationVariant,"
    "OccluderVariant,Extension\n"
)
TABLE = HEAD + (
    "t-OPQ.yml,STC,Allo,Classic,FC,Left,Beige,0,OPQ,.yml\n"
    "t-Grey.yml,STC,Allo,Classic,FC,Left,Grey,0,OPQ,.yml\n"
    "c.yml,Room,Allo,Classic,FCTrans,Left,NA,0,Trans,.yml\n"
    "lone.yml,Room,Allo,Classic,FCTrans,Right,NA,0,Trans,.yml\n"
    "away.yml,Room,Allo,Classic,FC,Right,NA,0,OPQ,.yml\n"
    "t-OPQ.yml,STC,Allo,Classic,FC,Left,Beige,0,OPQ,.yml\n"
)


def test_an_import_takes_kinds_and_controls_from_it_and_says_what_has_no_partner(
    tmp_path: Path,
) -> None:
    text = ARENA.format(limit=250, mark=0, goal="GoodGoal", size=1)
    names = ("OP/t-OPQ", "OP/t-Grey", "OP/c", "OP/lone", "OP/new-1")
    files = [ArenaFile(f"{name}.yml", text) for name in names]
    battery = import_files(files, 0, tmp_path, TABLE)
    known = battery.index
    assert {name: battery.instances[known[name]].control_of for name in names} == {
        **dict.fromkeys(names, ""),
        "OP/c": "OP/t-Grey",
    }
    one = battery.instances[known["OP/t-OPQ"]]
    assert (one.suite, one.paradigm, one.task_name, one.variant) == (
        *("STC/Allo", "Classic", "FC-Left", "Beige-0-OPQ"),
    )
    assert battery.instances[known["OP/lone"]].control == "glass"
    said = " ".join(battery.problems)
    assert "arenas without a row go by their names (1): 'OP/new-1'" in said
    assert "rows name no arena here (1): 'away'" in said


def test_what_contradicts_itself_is_refused_and_other_tables_are_no_such_table() -> None:
    assert metadata_of("instance,noise\na,1\n") is None
    sheet = metadata_of(TABLE + "c.yml,Room,Ego,Classic,FCTrans,Left,NA,0,Trans,.yml\n")
    assert sheet is not None
    with pytest.raises(TableError, match=r"line 8: c\.yml was on line 4"):
        read_metadata(sheet, ["c"])


def test_the_whole_table_says_what_its_files_are(data_dir: Path) -> None:
    folder = data_dir / "o-piaagets"
    sheet = metadata_of((folder / "metadata.csv").read_text())
    assert sheet is not None
    names = sorted(path.stem for path in folder.glob("*.yml"))
    table, problems = read_metadata(sheet, names)
    assert [problem.code for problem in problems] == ["no-row"]
    suites = Counter(kind.suite for kind in kinds_of(names, table.kinds).values())
    assert suites["Spatio-Temporal-Continuity/Egocentric-OP"] == 254
    assert suites[""] == 3
    links = links_of(names, table.links)
    assert len(links) == 77
    assert Counter(bool(link.control_of) for link in links.values()) == {True: 50, False: 27}
    assert table.rows[names[0]] != TableRow(0, {}, (), TaskKind(), ControlLink())


def test_a_layout_says_what_several_foods_ask_for() -> None:  # I9
    one, several = (
        load_layout("object-permanence", variant) for variant in ("measured", "several-foods")
    )
    assert "rewards" in {limit.feature for limit in one.excludes}
    assert "rewards" not in {limit.feature for limit in several.excludes}
    assert {*several.latent_names} - {*one.latent_names} == {"choiceAbility"}
