"""Every table of the command line at several widths: ids are whole, and nothing is wider."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from rich.cells import cell_len
from typer.testing import CliRunner

import animalcat
from animalcat.cli.main import build
from animalcat.cli.shared import output
from animalcat.cli.shared.table import PADDED, Column, TableLines, lay_out

from .conftest import Server

AGENT: Final = "a-planner-that-remembers-where-food-went-version-7"
BATTERY: Final = "search-behind-screens-of-three-colours-2026"
ARENA: Final = """!ArenaConfig
arenas:
  0: !Arena
    pass_mark: 0
    t: 24
    t: 24
    items:
    - !Item {{name: Agent, positions: [!Vector3 {{x: 20, y: 0, z: 3}}], rotations: [0]}}
    - !Item {{name: GoodGoal, positions: [!Vector3 {{x: 20, y: 0, z: {z}}}]}}
"""


class Seen(NamedTuple):
    """A table as a command had it laid out."""

    rows: Sequence[Mapping[str, Any]]
    first: str
    width: int | None
    laid: TableLines


class Home(NamedTuple):
    """What commands look at."""

    address: str
    data: Path
    arenas: Path
    sessions: tuple[str, str]
    campaign: str


@pytest.fixture(scope="module")
def home(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    arenas = tmp_path_factory.mktemp("arenas-of-a-study-with-a-long-name") / BATTERY
    arenas.mkdir()
    for k in range(3):
        (arenas / f"screen-of-red-glass-and-two-ramps-{k:03}.yaml").write_text(
            ARENA.format(z=8 + 6 * k)
        )

    class Agent:
        def reset(self, info: object) -> None: ...

        def act(self, observation: object) -> int:
            return 3

    with animalcat.connect(server.address) as client:
        client.import_battery(arenas, BATTERY)
        played: list[str] = []
        for agent in (AGENT, f"{AGENT}-blind"):
            session = client.create_session(
                agent=agent, battery=BATTERY, max_episodes=2, certify=False
            )
            client.evaluate(Agent(), session, name=agent)
            played.append(session.id)
        first, second = played
        campaign = client.create_campaign(
            agents=[f"builtin:planner+sight={k}" for k in (2, 3)],
            battery=BATTERY,
            budget=4,
            common=1,
        )
        yield Home(server.address, server.home, arenas, (first, second), campaign.id)


def commands(home: Home) -> dict[str, Sequence[str | Path]]:
    """Commands that print tables, by whether they ask a server; what follows is an id they show."""
    first, second = home.sessions
    at = ("--server", home.address)
    data = ("--data", home.data)
    return {
        "session list": ("--all", *at),
        "session show": (first, *at),
        "episode list": ("--all", *at),
        "episode list of one": (first, *at),
        "episode explain": (f"{first}/0", *at),
        "battery show": (*at,),
        "battery show of one": (BATTERY, *at),
        "battery show --check of one": (BATTERY, *at),
        "campaign show": (*at,),
        "campaign show of one": (home.campaign, *at),
        "profile show": (first, *at),
        "profile show of one": (first, second, *at),
        "profile compare": (first, second, *at),
        "profile compare of one": (first, second, "-o", home.data / "page.html", *at),
        "layout show": (*data,),
        "layout show of one": ("object-permanence",),
        "token list": (*data,),
        "server status": (*at,),
        "arena check": (".",),
        "arena features": (".",),
        "arena features of one": (next(home.arenas.glob("*.yaml")), "--explain"),
        "arena show": (next(home.arenas.glob("*.yaml")),),
        "arena make of one": ("cups", "-n", "3"),
        "arena make": (),
        "arena make --about of one": ("cups",),
        "agent list": (),
        "doctor": (),
    }


@pytest.fixture
def laid(monkeypatch: pytest.MonkeyPatch) -> list[Seen]:
    """Every table that is printed, as it is laid out."""
    seen: list[Seen] = []

    def spy(
        rows: Sequence[Mapping[str, Any]], columns: Iterable[Column | str], width: Any
    ) -> TableLines:
        columns = list(columns)
        found = lay_out(rows, columns, width)
        first = columns[0]
        seen.append(Seen(rows, getattr(first, "name", str(first)), width, found))
        return found

    monkeypatch.setattr(output, "lay_out", spy)
    return seen


def check(seen: Seen, printed: str) -> None:
    """What holds of every table."""
    lines = [*seen.laid.head, *seen.laid.body]
    assert all(line in printed for line in lines)
    assert len(seen.laid.body) >= len(seen.rows)
    text = "\n".join(lines)
    for row in seen.rows if seen.first not in seen.laid.gone else ():
        for word in str(row[seen.first]).split():
            assert word in text  # whole, and on one line
    most = max(PADDED, *(len(str(row[seen.first])) for row in [*seen.rows, {seen.first: ""}]))
    for line in lines:
        assert line == line.rstrip()
        if seen.width is None:
            assert line.count(" ") <= (most + 3) * max(map(len, seen.rows), default=1)
        else:
            assert cell_len(line) <= seen.width


@pytest.mark.parametrize("width", [80])
def test_every_table_has_its_ids_whole_and_is_no_wider(
    width: int | None, home: Home, laid: list[Seen], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home.arenas)
    if width:
        monkeypatch.setenv("COLUMNS", str(width))
    for name, rest in commands(home).items():
        laid.clear()
        words = [*name.removesuffix(" of one").split(), *map(str, rest)]
        done = CliRunner().invoke(build(words), words)
        assert done.exit_code in (0, 1), (name, done.output)
        assert laid or name.endswith("of one"), f"{name}: {done.output}"
        for seen in laid:
            assert seen.width == width
            check(seen, done.stdout)
        ids = {
            "session list": home.sessions,
            "episode list": home.sessions,
            "battery show": (BATTERY,),
            "campaign show": (home.campaign,),
            "episode list of one": ("screen-of-red-glass-and-two-ramps-001",),
            "arena features": ("screen-of-red-glass-and-two-ramps-000",),
        }
        for one in ids.get(name, ()):
            assert one in done.stdout.split(), (name, done.stdout)


def test_columns_go_in_their_order_and_nothing_is_lost_in_blocks() -> None:
    rows = [{"id": "x" * 30, "agent": "y" * 30, "note": "few words more of it", "n": 2}]
    columns = ["id", Column("agent", 1), Column("note", 2), "n"]
    assert lay_out(rows, columns, 90).gone == []
    assert lay_out(rows, columns, 70).gone == ["note"]
    assert lay_out(rows, columns, 40).gone == ["agent", "note"]
    block = lay_out(rows, columns, 31)
    assert (block.head, block.gone) == ([], [])
    said = [line.strip() for line in block.body]
    assert said == ["x" * 30, "agent", "y" * 30, "note few words more of it", "n 2"]
    assert lay_out([], columns, 80).body == []


def test_any_table_fits() -> None:
    """Of words that fit into a line themselves."""
    chance = random.Random(0)
    for _ in range(300):
        width = chance.choice([40, 80, 120])
        names = [f"c{k}" for k in range(chance.randint(1, 30))]
        rows = [
            {
                name: " ".join("w" * chance.randint(1, 24) for _ in range(chance.randint(0, 12)))
                for name in names
            }
            for _ in range(3)
        ]
        columns = [Column(name, chance.randint(0, 3) if k else 0) for k, name in enumerate(names)]
        found = lay_out(rows, columns, width)
        assert all(cell_len(line) <= width for line in [*found.head, *found.body])
        kept = "\n".join(found.body).split()
        for row in rows:
            for name in names:
                if name not in found.gone:
                    assert set(row[name].split()) <= set(kept)
