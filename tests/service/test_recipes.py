"""Batteries from recipes: built, kept, described and exported; what is wrong reaches the caller."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import jsonschema
import pandas as pd
import pytest
from typer.testing import CliRunner

from animalcat import AnimalcatError, Client, connect
from animalcat.arena_configs.batteries.language import Recipe
from animalcat.arena_configs.batteries.reader import read_recipe
from animalcat.cli.main import build as command_line
from animalcat.layouts.library import load_layout
from animalcat.service.batteries import battery as batteries
from animalcat.service.batteries import recipes
from animalcat.service.batteries.battery import Battery, build_family
from animalcat.service.batteries.estimate import with_estimate
from animalcat.service.batteries.recipes import build_recipe
from animalcat.service.host.private import server_for
from animalcat.service.measuring.twins import Twins
from animalcat.service.reporting.instance_table import csv_text, parquet_bytes
from animalcat.service.reporting.manifest import manifest
from animalcat.values import MadeAs, RecipeText

RECIPE = """
name: small
about: To see what becomes of a recipe.
licence: CC0-1.0
seed: 3
layout: object-permanence
variant: measured
entries:
  - name: walk
    suite: controls/introduction
    family: introductory
    paradigms: [food, ramp]
    count: 3
    controls: [bare]
  - {family: closed.yaml, count: 1}
"""
CLOSED = """
name: closed
description: Food behind walls on all sides, which nobody can reach.
parameters:
  z: {uniform: [20, 30]}
arena:
  timeLimit: 30
  items:
    - {name: Agent, positions: [[20, 5]]}
    - {name: GoodGoal, positions: [[20, z]], sizes: [1]}
    - {name: Wall, positions: [[20, z - 2]], sizes: [[5, 6, 0.4]]}
    - {name: Wall, positions: [[20, z + 2]], sizes: [[5, 6, 0.4]]}
    - {name: Wall, positions: [[17, z]], sizes: [[0.4, 6, 5]]}
    - {name: Wall, positions: [[23, z]], sizes: [[0.4, 6, 5]]}
allow: [unreachable-goal]
"""
OPEN = """
name: open
description: Food in an empty arena.
parameters:
  z: {uniform: [20, 30]}
  x: {uniform: [18, 22]}
arena:
  timeLimit: 300
  items:
    - {name: Agent, positions: [[x, 5]]}
    - {name: GoodGoal, positions: [[x, z]], sizes: [1]}
"""
SCHEMA = json.loads(
    files("animalcat").joinpath("schemas/battery_manifest.schema.json").read_text("utf-8")
)


def recipe(text: str = RECIPE) -> Recipe:
    return read_recipe(text, "small.yaml", {"closed.yaml": CLOSED})


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cache of this module's own: what one test builds, others find."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("cache")
        patch.setenv("XDG_CACHE_HOME", str(folder))
        yield folder


@pytest.fixture(scope="module")
def battery(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Battery:
    return build_recipe(recipe(), tmp_path_factory.mktemp("store"))


@pytest.fixture(scope="module")
def client(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with server_for(None, tmp_path_factory.mktemp("home")) as address, connect(address) as client:
        yield client


def test_a_battery_has_what_its_recipe_says(battery: Battery) -> None:
    names = [one.name for one in battery.instances]
    assert names == [
        *("closed-1", "walk-food-1", "walk-food-2", "walk-ramp-1", "walk-ramp-1.bare"),
    ]
    by_name = dict(zip(names, battery.instances, strict=True))
    bare = by_name["walk-ramp-1.bare"]
    assert bare.origin is not None
    assert (bare.origin.control, bare.origin.control_of) == ("bare", "walk-ramp-1")
    assert bare.seed == by_name["walk-ramp-1"].seed
    assert battery.recipe["licence"] == "CC0-1.0"
    assert [one.suite for one in battery.instances] == ["", *["controls/introduction"] * 4]
    described = manifest("small", battery)
    assert described["counts"]["suite"] == {"controls/introduction": 4}
    assert [(part["suite"], part["paradigm"]) for part in described["parts"]] == [
        ("", "closed"),
        ("controls/introduction", "walk-food"),
        ("controls/introduction", "walk-ramp"),
    ]


def test_what_the_planner_does_not_solve_is_named_with_the_reason(battery: Battery) -> None:
    assert battery.unsolved == {"closed-1": "time ran out: no way to any reward"}


def test_the_same_recipe_and_seed_give_the_same_bytes(battery: Battery, tmp_path: Path) -> None:
    """Also without what was kept of the first build, where every arena is drawn again."""
    (tmp_path / "cache").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        again = build_recipe(recipe(), tmp_path / "store")
    first, second = (
        {p.relative_to(one.folder): p.read_bytes() for p in one.folder.rglob("*.*")}
        for one in (battery, again)
    )
    assert first == second
    assert csv_text(battery) == csv_text(again)
    assert parquet_bytes(battery) == parquet_bytes(again)


def test_an_instance_of_a_family_of_ones_own_has_twins(tmp_path: Path) -> None:
    """They are drawn as the recipe's entry says, with its ranges instead of the family's."""
    text = RECIPE.replace("closed.yaml", "open.yaml").replace(
        "count: 3\n    controls: [bare]", "count: 1\n    with: {distance: {uniform: [25, 26]}}"
    )
    battery = build_recipe(read_recipe(text, "small.yaml", {"open.yaml": OPEN}), tmp_path)
    maker = Twins(battery, load_layout("object-permanence", "measured"))
    for name in ("open-1", "walk-food-1"):
        own = battery.arena_yaml(battery.instances[battery.index[name]])
        one = maker.twin(name, "a")
        assert one.made_as is MadeAs.TWIN
        assert one.arena_yaml != own
        assert one.distance < 0.1
    assert one.instance.features["goalDistance"] > 24.9  # of walk-food-1
    assert dataclasses.replace(battery, folder=tmp_path).entries == {}


def test_a_battery_that_was_built_is_not_built_again(
    battery: Battery, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*args: object) -> None:
        raise AssertionError("drawn again")

    monkeypatch.setattr(recipes, "draw", never)
    assert build_recipe(recipe(), tmp_path).digest == battery.digest
    with pytest.raises(AssertionError, match="drawn again"):
        build_recipe(recipe(), tmp_path, seed=4)


def test_a_battery_of_one_family_is_not_built_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = build_family("cups", 2, 0, tmp_path / "first")
    monkeypatch.setattr(batteries, "drawing", lambda *_: [])
    again = build_family("cups", 2, 0, tmp_path / "again")
    assert again.digest == first.digest
    assert [*again.instances] == [*first.instances]
    with pytest.raises(ValueError, match="at least one arena"):
        build_family("cups", 2, 1, tmp_path / "again")


def test_the_manifest_says_what_is_there(battery: Battery) -> None:
    made = manifest("mine", battery)
    jsonschema.validate(made, SCHEMA)
    assert made["counts"]["family"] == {"closed": 1, "introductory": 4}
    assert made["counts"]["control"] == {"bare": 1, "none": 4}
    assert made["pairs"] == 1
    assert made["validity"]["solved"] == 4
    assert made["layout"]["covered"] + sum(made["layout"]["left_out"].values()) == 5
    hidden = made["demands"]["timeUnderOcc"]
    assert hidden["measured"] + sum(hidden["missing"].values()) == 5


def test_a_battery_of_one_family_has_a_manifest_too(tmp_path: Path) -> None:
    made = manifest("cups", build_family("cups", 2, 0, tmp_path))
    jsonschema.validate(made, SCHEMA)
    assert made["counts"]["family"] == {"cups": 2}
    assert made["validity"] is None
    assert made["recipe"] is None


def test_the_tables_have_every_instance_with_units(battery: Battery) -> None:
    rows = list(csv.DictReader(io.StringIO(csv_text(battery))))
    frame = pd.read_parquet(io.BytesIO(parquet_bytes(battery)))
    assert list(frame.columns) == list(rows[0])
    assert [row["instance"] for row in rows] == list(frame["instance"])
    for row, instance in zip(rows, battery.instances, strict=True):
        assert float(row["rewardDistance [m]"]) == instance.features["rewardDistance"]
        assert (row["timeUnderOcc [s]"] == "") == ("timeUnderOcc" not in instance.features)
    assert list(frame["solved"]) == [False, True, True, True, True]
    assert list(frame["rewardSize [m]"]) == [i.features["rewardSize"] for i in battery.instances]


def test_a_recipe_of_ones_own_is_built_by_a_server(client: Client, battery: Battery) -> None:
    sent = RecipeText("small.yaml", RECIPE, {"closed.yaml": CLOSED})
    made = client.build_battery(sent)
    assert (made.id, made.digest) == ("small", battery.digest)
    jsonschema.validate(made.manifest, SCHEMA)
    origins = [one.origin for one in client.instances("small")]
    assert [one and one.family for one in origins] == ["closed", *["introductory"] * 4]


def test_sessions_measure_by_the_layout_that_a_recipe_names(client: Client) -> None:
    sent = RecipeText("small.yaml", RECIPE, {"closed.yaml": CLOSED})
    made = client.build_battery(sent, 2, seed=4)
    assert made.id == "small-2-seed4"
    found = made.manifest["layout"]
    session = client.create_session(agent="any", battery=made.id)
    assert (session.spec.layout, session.spec.layout_variant) == (found["name"], found["variant"])
    assert (found["name"], found["variant"]) == ("object-permanence", "measured")
    covered = client.profile(session)["provenance"]["coverage"]
    assert (covered["covered"], covered["of"]) == (found["covered"], found["of"])


def test_what_is_wrong_in_a_recipe_reaches_the_caller(client: Client) -> None:
    wrong = RecipeText("mine.yaml", RECIPE.replace("introductory", "introductry"))
    with pytest.raises(AnimalcatError, match=r"mine.yaml:11: entries\[0\].family: .*introductory"):
        client.build_battery(wrong)
    with pytest.raises(AnimalcatError, match="fewer than its 2 entries"):
        client.build_battery(RecipeText("m.yaml", RECIPE, {"closed.yaml": CLOSED}), 1)


@pytest.mark.slow
def test_the_commands_build_show_and_export(tmp_path: Path, battery: Battery) -> None:
    (tmp_path / "small.yaml").write_text(RECIPE)
    (tmp_path / "closed.yaml").write_text(CLOSED)

    def run(*words: str) -> str:
        line = [*words, "--data", str(tmp_path / "home")]
        done = CliRunner().invoke(command_line(line), line)
        assert done.exit_code == 0, done.output
        return done.output

    built = run("battery", "build", str(tmp_path / "small.yaml"), "--name", "mine")
    assert battery.digest in built
    assert "does not solve 1 of 5 instances: closed-1" in built
    shown = run("battery", "show", "mine")
    assert "licence: CC0-1.0" in shown
    assert "not solved: closed-1: time ran out" in shown
    out = tmp_path / "out"
    run("battery", "export", "mine", "-o", str(out))
    assert json.loads((out / "manifest.json").read_text()) == manifest("mine", battery)
    assert (out / "table.csv").read_text() == csv_text(battery)
    assert (out / "table.parquet").read_bytes() == parquet_bytes(battery)
    arenas = {p.stem: p.read_text() for p in (out / "arenas").iterdir()}
    assert arenas == {one.name: battery.arena_yaml(one) for one in battery.instances}


def test_progress_says_how_long_it_will_take() -> None:
    told: list[str] = []
    seconds = iter([0.0, 2.0, 10.0, 20.0, 21.0])
    tick = with_estimate(lambda done, total, message: told.append(message), lambda: next(seconds))
    for done in (0, 1, 5, 10):
        tick(done, 40, "measuring")
    tick(1, 2, "writing")
    assert told == [
        *("measuring", "measuring", "measuring, about 1 min left", "measuring, about 1 min left"),
        "writing",
    ]
