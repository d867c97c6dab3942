from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from PIL import Image

from animalcat.machine.kept import KeptTexts
from animalcat.service.batteries.battery import ArenaFile, import_files
from tests.command_line import call

GOOD = """!ArenaConfig
arenas:
  0: !Arena
    t: 250
    pass_mark: 0
    items:
    - !Item
      name: Agent
      positions:
      - !Vector3 {x: 20, y: 0, z: 5}
      rotations: [0]
    - !Item
      name: GoodGoal
      positions:
      - !Vector3 {x: 20, y: 0, z: 25}
      sizes:
      - !Vector3 {x: 1, y: 1, z: 1}
"""
LENIENT = GOOD.replace("t: 250", "t: 250\n    t: 500")
UNREACHABLE = GOOD.replace("pass_mark: 0", "pass_mark: 3")
RANDOM = GOOD.replace("x: 20, y: 0, z: 25", "x: -1, y: 0, z: 25")
BARE = GOOD[: GOOD.index("    - !Item\n      name: GoodGoal")]


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> KeptTexts:
    """A cache of the test's own."""
    base = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("XDG_CACHE_HOME", str(base))
    return KeptTexts(base / "animalcat")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in {
        "bad/unreachable.yaml": UNREACHABLE,
        "bad/broken.yml": "!ArenaConfig\narenas: [",
        "good.yml": GOOD,
        "lenient.yaml": LENIENT,
        "notes.txt": "no arena",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return tmp_path


def run(*arguments: object, code: int = 0) -> str:
    result = call("arena", *arguments)
    assert result.exit_code == code, result.output
    # How far it is, which slow machines are told on standard error, is no JSON.
    return result.stdout if "--json" in arguments else result.output


def check_it(schema: str, text: str) -> list[dict[str, Any]]:
    value = json.loads(text)
    published = files("animalcat").joinpath(f"schemas/{schema}.schema.json").read_text("utf-8")
    validator = jsonschema.Draft202012Validator(json.loads(published))
    validator.check_schema(validator.schema)
    validator.validate(value)
    return value


def test_check_json_has_every_file(folder: Path) -> None:
    entries = check_it("arena_check", run("check", folder, "--json", code=1))
    seen = {
        str(Path(entry["file"]).relative_to(folder)): (
            entry["loaded"],
            [(problem["line"], problem["code"]) for problem in entry["problems"]],
        )
        for entry in entries
    }
    assert seen == {
        "bad/broken.yml": (False, [(2, "not-yaml")]),
        "bad/unreachable.yaml": (True, [(5, "unreachable-pass-mark")]),
        "good.yml": (True, []),
        "lenient.yaml": (True, [(5, "duplicate-key")]),
    }


def test_check_exit_code_and_strict(folder: Path) -> None:
    assert "1 clean" in run("check", folder / "good.yml")
    table = run("check", folder / "lenient.yaml")
    assert "duplicate-key" in table
    assert "0 errors, 1 warning" in table
    (entry,) = check_it(
        "arena_check", run("check", folder / "lenient.yaml", "--strict", "--json", code=1)
    )
    assert not entry["loaded"]
    assert [p["severity"] for p in entry["problems"]] == ["error"]


def test_check_of_many_problems_groups_them(tmp_path: Path) -> None:
    for number in range(45):
        one = LENIENT.replace("z: 25", f"z: {20 + number / 4}")
        (tmp_path / f"{number:02}.yml").write_text(one if number else UNREACHABLE)
    table = run("check", tmp_path, code=1)
    assert "45 files: 0 clean, 1 error, 44 warnings" in table
    assert "(duplicate-key 44, unreachable-pass-mark 1)" in table
    rows = [line.split() for line in table.splitlines() if line.startswith(("error", "warning"))]
    assert [row[:4] for row in rows] == [
        ["error", "unreachable-pass-mark", "1", "1"],
        ["warning", "duplicate-key", "44", "44"],
    ]
    assert "01.yml:5: " in table
    everything = run("check", tmp_path, "--all", code=1)
    assert sum(line.startswith(str(tmp_path)) for line in everything.splitlines()) == 45


def test_check_of_nothing(tmp_path: Path) -> None:
    assert "no such file" in run("check", tmp_path / "absent.yml", code=2)
    assert "so no arenas" in run("check", tmp_path, code=2)


def test_what_is_doubtful_is_said_wherever_an_arena_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.yml").write_text(GOOD.replace("name: GoodGoal", "name: GodGoal"))
    (tmp_path / "b.yml").write_text(GOOD)
    for command in ("features", "features", "show"):  # at the second time from what was kept
        paths = [tmp_path / "a.yml"] if command == "show" else [tmp_path]
        said = [line for line in run(command, *paths).splitlines() if "Did you mean" in line]
        assert len(said) == 1
        assert said[0].startswith(f"warning: {tmp_path / 'a.yml'}")
    rows = check_it("arena_features", run("features", tmp_path, "--json"))
    assert [len(row["problems"]) for row in rows] == [1, 0]


def test_features(tmp_path: Path) -> None:
    (tmp_path / "a.yml").write_text(GOOD)
    (tmp_path / "b.yml").write_text(RANDOM)
    rows = check_it("arena_features", run("features", tmp_path, "--json", "--seed", 3))
    assert [row["instance"] for row in rows] == ["a", "b"]
    found = rows[0]["features"]
    assert found["rewardDistance"] == pytest.approx(20.0)
    assert (found["rewardSize"], found["rewards"], found["timeLimit"]) == (1.0, 1.0, 25.0)
    assert rows[0]["drawn"] == {}
    assert list(rows[1]["drawn"]) == ["items[1].positions[0].x"]
    again, other = (
        json.loads(run("features", tmp_path / "b.yml", "--json", "--seed", seed)) for seed in (3, 4)
    )
    assert again == rows[1:]
    assert other[0]["features"] != rows[1]["features"]
    # A battery that is made of the folder draws the same.
    files = [ArenaFile("a.yml", GOOD), ArenaFile("b.yml", RANDOM)]
    made = import_files(files, 3, tmp_path / "store")
    assert [dict(one.features) for one in made.instances] == [row["features"] for row in rows]
    assert made.drawn == {"b": ["items[1].positions[0].x"]}
    text = run("features", tmp_path / "a.yml", tmp_path / "b.yml", "--seed", 3)
    assert "from seed 3, as batteries draw it; 1 of 2 arenas leaves something to it" in text


ROLLING = """!ArenaConfig
arenas:
  0: !Arena
    timeLimit: 250
    items:
    - !Item
      name: Agent
      positions: [!Vector3 {x: 20, y: 0, z: 5}]
      rotations: [0]
    - !Item
      name: GOAL
      WHERE
"""
LEFT = {
    "rotation": "positions: [!Vector3 {x: 20, y: 0, z: 25}]",
    "minus": "{positions: [!Vector3 {x: 24, y: 0, z: 20}], rotations: [-1]}",
    "position": "rotations: [90]",
    "size": "{positions: [!Vector3 {x: 15, y: 3, z: 20}], sizes: [!Vector3 {x: -1, y: -1, z: -1}]}",
    "all": "positions: [!Vector3 {x: -1, y: 0, z: -1}]",
}


@pytest.mark.parametrize(
    "goal",
    [
        "GoodGoalBounce",
        *(pytest.param(g, marks=pytest.mark.slow) for g in ("GoodGoalMultiBounce", "GrowGoal")),
    ],
)
def test_one_measurement_gives_one_answer_everywhere(tmp_path: Path, goal: str) -> None:
    files: list[ArenaFile] = []
    for name, where in LEFT.items():
        fields = where.strip("{}") if where.startswith("{") else where
        lines = fields.replace("], ", "]\n      ")
        text = ROLLING.replace("GOAL", goal).replace("WHERE", lines)
        files.append(ArenaFile(f"{name}.yml", text))
        (tmp_path / f"{name}.yml").write_text(text)
    rows = check_it("arena_features", run("features", tmp_path, "--json", "--seed", 7))
    made = {one.name: one for one in import_files(files, 7, tmp_path / "store").instances}
    moved = 0
    for row in rows:
        path = tmp_path / f"{row['instance']}.yml"
        shown = json.loads(run("show", path, "--json", "--seed", 7))
        assert shown["features"] == row["features"] == made[row["instance"]].features
        assert shown["missing"] == row["missing"] == made[row["instance"]].missing
        assert shown["drawn"] == row["drawn"]
        moved += row["features"]["goalTravel"] > 1.0
        words = run("show", path, "--seed", 7).split()
        way = row["features"]["wayLength"]
        assert words[words.index("wayLength") + 1] == f"{way:.4g}"
    assert moved >= (0 if goal == "GrowGoal" else 4)
    run("show", tmp_path / "rotation.yml", "--features", "--seed", 7, "-o", tmp_path / "map.svg")
    assert ("at rest" in (tmp_path / "map.svg").read_text()) == (goal != "GrowGoal")


def test_features_explained(tmp_path: Path) -> None:
    path = tmp_path / "a.yml"
    wall = """    - !Item
      name: Wall
      positions:
      - !Vector3 {x: 20, y: 0, z: 15}
      rotations: [0]
      sizes:
      - !Vector3 {x: 20, y: 3, z: 1}
"""
    path.write_text(GOOD + wall)
    [row] = check_it("arena_features", run("features", path, "--explain", "--json"))
    told = row["explanation"]
    assert told["goal"] == {"name": "GoodGoal", "item": 1, "copy": 0, "at": [20.0, 0.509, 25.0]}
    assert [thing["name"] for thing in told["occluders"]] == ["Wall"]
    assert told["way"][0] == [20.0, 0.49, 5.0]
    assert len(told["turns"]) == row["features"]["wayTurns"] == 1
    assert told["seen"][-1][1] > 15
    text = run("features", path, "--explain")
    for part in ("The goal is GoodGoal at (20, 25)", "It turns", "Hidden by: Wall at (20, 15)"):
        assert part in text
    (tmp_path / "bare.yml").write_text(BARE)
    assert "There is no reward." in run("features", tmp_path / "bare.yml", "--explain")


def test_show(tmp_path: Path) -> None:
    path = tmp_path / "a.yml"
    path.write_text(GOOD)
    text = run("show", path, "-o", tmp_path / "map.png")
    for part in ("time limit 250 (25 s)", "agent at (20, 5)", "GoodGoal", "0.999", "XPos 0"):
        assert part in text
    with Image.open(tmp_path / "map.png") as image:
        colors = {color for _, color in image.convert("RGB").getcolors(1 << 20) or []}
    assert (129, 191, 65) in colors  # the goal
    assert (31, 119, 180) in colors  # the agent
    described = json.loads(run("show", path, "--json"))
    assert [thing["name"] for thing in described["objects"]] == ["GoodGoal"]
    assert described["agent"]["position"] == [20.0, 0.51, 5.0]


def test_show_names_what_there_are_many_of_once(tmp_path: Path) -> None:
    path = tmp_path / "a.svg"
    places = "".join(f"      - !Vector3 {{x: {4 * n + 4}, y: 0, z: 30}}\n" for n in range(8))
    text = f"{GOOD}    - !Item\n      name: Wall\n      positions:\n{places}"
    text += "      sizes:\n" + "      - !Vector3 {x: 1, y: 1, z: 1}\n" * 8
    (tmp_path / "a.yml").write_text(text)
    run("show", tmp_path / "a.yml", "-o", path)
    drawn = path.read_text()
    assert drawn.count("<!-- 8 Wall -->") == 1
    assert "<!-- Wall -->" not in drawn
    assert "<!-- 20.0 m, +0° -->" in drawn


def test_show_what_the_agent_sees(tmp_path: Path) -> None:
    path, picture = tmp_path / "a.yml", tmp_path / "frame.png"
    path.write_text(GOOD)
    assert "view -> " in run("show", path, "--first-person", "--resolution", 64, "-o", picture)
    with Image.open(picture) as image:
        assert image.size == (64, 64)
        sky, floor = (image.convert("RGB").getpixel((32, row)) for row in (4, 60))
    assert isinstance(sky, tuple)
    assert isinstance(floor, tuple)
    assert sky[2] > sky[0]  # blue
    assert floor[2] < floor[0]  # brown
    assert "say where it goes" in run("show", path, "--first-person", code=2)


def test_chance_is_drawn_as_unity_draws_it(tmp_path: Path) -> None:
    """A real agent's first heading in a process with seed 0 (reference/unity-random.md)."""
    file = tmp_path / "random.yaml"
    file.write_text(RANDOM.replace("rotations: [0]", "rotations: [-1]"))
    headings = {
        (name, build): json.loads(
            run("show", file, "--rng", name, "--build", build, "--seed", 0, "--json")
        )["agent"]["yaw"]
        for name, build in (("unity", "4.3.1"), ("unity", "3.1.3"), ("animalcat", "4.x"))
    }
    heading = headings["unity", "4.3.1"]
    assert heading == headings["unity", "3.1.3"] == pytest.approx(149.7097, abs=5e-5)
    assert headings["animalcat", "4.x"] != heading
    options = ("--rng", "unity", "--build", "4.1.0", "--seed", 0)
    [row] = json.loads(run("features", file, *options, "--json"))
    assert row["drawn"]["items[0].rotations[0]"] == heading
    assert (row["rng"], row["build"], row["seed"]) == ("unity", "4.1", 0)
    assert "drawn by unity, build 4.1, from seed 0" in run("features", file, *options)
    assert "drawn by animalcat, from seed 3" in run("features", file, "--seed", 3)
    assert "1 file" in run("check", file, "--rng", "unity")
    assert "there is no build" in run("check", file, "--build", "2.0", code=2)
    assert "name a build by itself" in run("check", file, "--rng", "unity:4.1", code=2)
    picture = tmp_path / "view.png"
    run("show", file, *options, "--first-person", "--resolution", 8, "-o", picture)
    with Image.open(picture) as seen:
        assert seen.size == (8, 8)


def test_show_says_what_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "a.yml"
    path.write_text(GOOD)
    assert "no arena 7" in run("show", path, "--arena", 7, code=2)
    assert "cannot write" in run("show", path, "-o", tmp_path / "map.doc", code=2)
    assert "no such file" in run("show", tmp_path / "b.yml", code=2)
    path.write_text("!ArenaConfig\narenas: {0: !Arena {t: soon}}\n")
    assert "a.yml:2: arenas[0].t: expected a whole number" in run("show", path, code=2)
