"""Tries mistakes of users by the command line and in Python, and says what becomes of each.

`python -m tests.hunt` tries those of docs/design/hunted.csv, or those whose numbers are given.
Each is *refused* with a sentence, *said* in the result, without *effect*, *right*, or a *fault*:
taken in silence, or ended by a traceback.
"""

from __future__ import annotations

import asyncio
import contextlib
import csv
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import gymnasium
import xarray

import animalcat as ac
from animalcat.errors import AnimalcatError
from tests.command_line import call
from tests.service.test_own_layouts import CALIBRATED

ROOT: Final = Path(__file__).resolve().parents[1]
TABLE: Final = ROOT / "docs" / "design" / "hunted.csv"
READING: Final = ROOT / "docs" / "examples" / "reading.yaml"
GALLERY: Final = ROOT / "docs" / "data" / "gallery"
ARENA: Final = """!ArenaConfig
arenas:
  0: !Arena
    timeLimit: 100
    passMark: 0
    items:
    - !Item
      name: Agent
      positions: [!Vector3 {x: 20, y: 0, z: 5}]
      rotations: [0]
    - !Item
      name: GoodGoal
      positions: [!Vector3 {x: 20, y: 0, z: 20}]
      sizes: [!Vector3 {x: 1, y: 1, z: 1}]
"""
WALL: Final = """    - !Item
      name: Wall
      positions: [!Vector3 {x: 20, y: 0, z: 5}]
      rotations: [0]
      sizes: [!Vector3 {x: 4, y: 4, z: 4}]
      colors: [!RGB {r: 0.5, g: 0.2, b: 0.9}]
"""
AGENT: Final = """class Mine:
    def reset(self, info): ...
    def act(self, observation):
        return 3
"""


@dataclass(frozen=True)
class Met:
    """What became of a mistake.

    Attributes:
        kind: "refused", "said", "no effect", "right" or "fault".
        words: What was said.
    """

    kind: str
    words: str


class Forward:
    """Runs straight on."""

    def reset(self, info: Any) -> None:
        """Forget nothing."""

    def act(self, observation: Any) -> int:
        """Run."""
        return 3


class Ground:
    """A folder to make mistakes in, and sessions to make them with."""

    def __init__(self, folder: Path) -> None:
        """Begin.

        Args:
            folder: An empty folder.
        """
        self.folder = folder
        self.data = folder / "data"

    def write(self, name: str, text: str | bytes) -> Path:
        """Write a file, and return where it is."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    @cached_property
    def lab(self) -> ac.Lab:
        """A lab with its data in the folder."""
        return ac.local(self.data)

    @cached_property
    def battery(self) -> Any:
        """Six arenas."""
        return self.lab.battery(
            {f"g{d}": ac.Arena.goal(distance=d, size=1, angle=0) for d in range(4, 28, 4)},
            name="mine",
        )

    def session(self, name: str, **options: Any) -> Any:
        """A session of three episodes, by its agent's name."""
        return self.lab.measure(
            Forward(), self.battery, layout="aaio", max_episodes=3, name=name, certify=False,
            progress=False, **options,
        )  # fmt: skip

    def command(self, *words: object, said: str = "", right: str = "", effect: str = "") -> Met:
        """Run a command.

        Args:
            *words: Its words.
            said: What has to be in its output if it is done, where that says the mistake.
            right: Why it is no mistake, if it is done.
            effect: Why it has no effect, if it is done.
        """
        here = Path.cwd()
        os.chdir(self.folder)
        try:
            done = call(*words)
        except asyncio.CancelledError as error:
            return Met("fault", f"CancelledError: {error}")
        finally:
            os.chdir(here)
        words_of_all = " ".join(done.output.split())
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            return Met("fault", f"{type(done.exception).__name__}: {done.exception}")
        if done.exit_code:
            return Met("refused" if len(words_of_all) > 20 else "fault", words_of_all)
        return _judge(words_of_all, said, right, effect)


def python(do: Callable[[], Any], *, said: str = "", right: str = "", effect: str = "") -> Met:
    """Call a function: errors of a kind that names what is wrong are refusals."""
    try:
        found = do()
    except (AnimalcatError, ValueError, TypeError, LookupError, OSError, RuntimeError) as error:
        words = str(error)
        return Met(
            "refused" if len(words.split()) > 4 else "fault", f"{type(error).__name__}: {words}"
        )
    except Exception as error:  # noqa: BLE001
        return Met("fault", f"{type(error).__name__}: {error}")
    return _judge(str(found), said, right, effect)


def _judge(words: str, said: str, right: str, effect: str) -> Met:
    if said:
        return Met("said" if said in words else "fault", words)
    if right or effect:
        return Met("right" if right else "no effect", right or effect)
    return Met("fault", f"in silence: {words}")


def arena(ground: Ground, old: str, new: str, said: str) -> Met:
    """Check an arena in which something is replaced."""
    assert old in ARENA + WALL
    text = (ARENA + WALL if old in WALL and old not in ARENA else ARENA).replace(old, new, 1)
    return ground.command("arena", "check", ground.write("a.yaml", text), said=said)


def fit(ground: Ground, table: str | bytes, *more: object, **outcome: str) -> Met:
    """Fit the layout of reading to a table with an agent a."""
    path = ground.write("t.csv", table)
    return ground.command(
        "layout", "fit", READING, "--table", path, "--agent", "a", *more, **outcome
    )


def easy(k: int) -> tuple[object, ...]:
    """A row of a table of reading, which an agent of some ability passes up to a length."""
    words, facts = 1 + k, 1 + k % 5
    return words, facts, int(words + 2 * facts < 20)


def reading(row: Callable[[int], tuple[object, ...]] = easy) -> str:
    """A table of reading with 24 rows."""
    rows = [",".join(map(str, (f"t{k}", *row(k)))) for k in range(24)]
    return "\n".join(["instance,words,facts,a", *rows]) + "\n"


def _stepped_early() -> object:
    env = gymnasium.make("animalcat/Arena-v0", disable_env_checker=True).unwrapped
    return env.step(3)


def _stepped_on() -> object:
    env = gymnasium.make("animalcat/Arena-v0", disable_env_checker=True).unwrapped
    env.reset(seed=0)
    for _ in range(3000):
        *_, terminated, truncated, _ = env.step(0)
        if terminated or truncated:
            break
    return env.step(0)


def _foreign(ground: Ground) -> Path:
    path = ground.folder / "theirs.nc"
    xarray.Dataset({"mu": ("draw", [0.1, 0.2])}).to_netcdf(path, engine="h5netcdf")
    return path


def _cut(ground: Ground) -> Path:
    whole = (GALLERY / "class.json").read_bytes()
    return ground.write("cut.json", whole[: len(whole) // 2])


def _closed(ground: Ground) -> object:
    lab = ac.local(ground.folder / "other")
    lab.close()
    return lab.list_batteries()


def _answers(k: int) -> str:
    return "".join(f"a{k},{name},{(k + n) % 2}\n" for n, name in enumerate(("1", "01", "2", "3")))


def _measured(ground: Ground, **options: Any) -> Callable[[], object]:
    return lambda: ground.session("wrong", **options)


def _ids(ground: Ground, *options: dict[str, Any]) -> list[str]:
    return [ground.session(f"f{k}", **some).id for k, some in enumerate(options)]


def _two_periods(ground: Ground) -> Met:
    first, other = (ground.session(f"p{n}", decision_period=n) for n in (3, 20))
    return python(lambda: first.compare(other))


def _calibrated(ground: Ground, sessions: Sequence[str], **outcome: str) -> Met:
    given = [word for session in sessions for word in ("--sessions", session)]
    return ground.command(
        *("battery", "calibrate", "mine", "--no-check", "--layout", "aaio", "--draws", "100"),
        *(*given, "--data", ground.data),
        **outcome,
    )


def _run(ground: Ground, agent: object, *more: object, **outcome: str) -> Met:
    assert ground.battery
    return ground.command(
        *("session", "run", "--agent", agent, "--battery", "mine"),
        *("--max-episodes", "2", "--no-certify", "--data", ground.data, *more),
        **outcome,
    )


ATTEMPTS: Final[dict[str, Callable[[Ground], Met]]] = {
    "H1": lambda g: g.command("arena", "check", g.write("a.yaml", ARENA.encode("utf-16"))),
    "H2": lambda g: _odd_name(g),
    "H3": lambda g: arena(g, "{x: 1, y: 1, z: 1}", "{x: 0,5, y: 1, z: 1}", "0.5"),
    "H4": lambda g: arena(g, "timeLimit: 100", "time: 250", "unknown-field"),
    "H5": lambda g: arena(g, "{x: 20, y: 0, z: 20}", "{x: 10, y: 20, z: 0}", "m above"),
    "H6": lambda g: arena(g, "{x: 20, y: 0, z: 20}", "{x: 45, y: 0, z: 20}", "40"),
    "H7": lambda g: g.command(
        "arena", "check", g.write("a.yaml", ARENA + WALL), said="overlap the agent"
    ),
    "H8": lambda g: arena(
        g, "z: 5}]\n      rotations: [0]\n      sizes", "z: 30}]\n      sizes", "255"
    ),
    "H9": lambda g: g.command(
        "arena",
        "check",
        g.write("a.yaml", ARENA + ARENA[ARENA.index("    - !Item") :]),
        said="Agent",
    ),
    "H10": lambda g: arena(
        g,
        "sizes: [!Vector3 {x: 1, y: 1, z: 1}]",
        "sizes: [!Vector3 {x: 1, y: 1, z: 1}, !Vector3 {x: 2, y: 2, z: 2}]",
        "sizes",
    ),
    "H11": lambda g: arena(g, "passMark: 0", "passMark: .nan", "nan"),
    "H12": lambda g: arena(g, "passMark: 0", "passMark: 0.999", "no play can pass"),
    "H13": lambda g: fit(g, ARENA),
    "H14": lambda g: g.command("layout", "fit", READING, "--table", g.folder, "--agent", "a"),
    "H15": lambda g: g.command(
        *("layout", "fit", READING, "--agent", "a", "--table"),
        g.write("t.csv", reading().replace(",a\n", ",Zoë\n", 1).encode("latin-1")),
    ),
    "H16": lambda g: fit(
        g,
        reading(lambda k: (easy(k)[0] * (100 if k % 2 else 1), *easy(k)[1:])),
        said="left out",
    ),
    "H17": lambda g: fit(g, reading(lambda k: (4, 2, k % 2)), said="span not known yet"),
    "H18": lambda g: fit(g, reading(lambda k: (*easy(k)[:2], 1)), said="at least"),
    "H19": lambda g: fit(
        g, reading(lambda k: (32 - easy(k)[0], 6 - easy(k)[1], easy(k)[2])), said="wrong way"
    ),
    "H20": lambda g: fit(g, reading(), "-o", g.folder),
    "H21": lambda g: fit(g, reading(), "-o", g.folder / "missing" / "x.json", said="x.json"),
    "H22": lambda g: fit(g, reading(), "-o", g.folder / "t.csv"),
    "H23": lambda g: g.command("profile", "compare", _cut(g), GALLERY / "class.json"),
    "H24": lambda g: g.command("profile", "compare", _foreign(g), GALLERY / "forward.nc"),
    "H25": lambda g: g.command(
        *("profile", "compare", GALLERY / "forward.nc"),
        shutil.copy(GALLERY / "forward.nc", g.folder / "again.nc"),
    ),
    "H26": lambda g: g.command(
        "profile", "compare", GALLERY / "class.json", GALLERY / "forward.nc"
    ),
    "H27": _two_periods,
    "H28": lambda g: _calibrated(g, [*_ids(g, {}, {}), *_ids(g, {})], said="already"),
    "H29": lambda g: _calibrated(g, _ids(g, {}, {"privileged": True})),
    "H30": lambda g: _run(
        g,
        "builtin:braitenberg",
        "--calibration",
        g.write("others.yaml", CALIBRATED),
        said="have no row in it",
    ),
    "H31": lambda g: g.command(
        *("layout", "show"),
        g.write("l.yaml", READING.read_text().replace("latents:", "capabilites:", 1)),
    ),
    "H32": lambda g: g.command(
        *("layout", "show"),
        g.write("l.yaml", READING.read_text().replace("low: 0, high: 32", "low: 32, high: 0")),
    ),
    "H33": lambda g: g.command(
        *("layout", "show"),
        g.write(
            "l.yaml", READING.read_text().replace("[reading, combining]", "[understanding]", 1)
        ),
    ),
    "H34": lambda g: _run(g, f"{g.write('bad.py', AGENT.replace('3', '3)'))}:Mine"),
    "H35": lambda g: _run(
        g,
        f"{g.write('leave.py', AGENT.replace('return 3', 'raise SystemExit(0)'))}:Mine",
        said="exit",
    ),
    "H36": lambda g: python(
        lambda: g.lab.measure(
            lambda observation: 3, g.battery, layout="aaio", max_episodes=2, progress=False
        )
    ),
    "H37": lambda g: python(_measured(g, max_episode=20)),
    "H38": lambda g: python(
        lambda: g.lab.measure(Forward(), g.battery, layout="aaio", max_episodes="20")
    ),
    "H39": lambda g: python(lambda: _closed(g), right="using a lab opens it again"),
    "H40": lambda g: g.command("battery", "show", "--data", g.write("file", "text")),
    "H41": lambda g: g.command("session", "list", "--server", "http://localhost:50051/"),
    "H42": lambda g: python(_measured(g, target_sd=10)),
    "H43": lambda g: python(lambda: g.session("f0").explain(99)),
    "H44": lambda g: g.command("profile", "plot", GALLERY / "forward.nc", "-o", "picture.docx"),
    "H45": lambda g: _worse(python(_stepped_early), python(_stepped_on)),
    "H46": lambda g: python(
        lambda: gymnasium.make("animalcat/Arena-v0", arena=str(g.folder / "missing.yaml"))
    ),
    "H47": lambda g: _worse(
        g.command("arena", "make", "navigation", "--demand", "distance=twelve"),
        g.command(*("arena", "make", "navigation", "--demand", "distance=-3"), said="asked -3"),
    ),
    "H48": lambda g: g.command(
        *("campaign", "run", "--battery", "navigation", "--budget", "4", "--data", g.data),
        *("--agent", "builtin:random", "--agent", "builtin:random"),
    ),
    "H49": lambda g: g.command(
        *("battery", "import", g.write("arenas/a.yaml", ARENA).parent, "--data", g.data),
        *("--features", g.write("f.csv", "instance,noise\na,1\nb,2\n")),
        said="'b'",
    ),
    "H50": lambda g: g.command(
        *("battery", "clinic"),
        g.write("c.csv", "agent,item,outcome\n" + "".join(_answers(k) for k in range(12))),
        right="1 and 01 are two items",
    ),
}
"""How each mistake is made."""


def _odd_name(ground: Ground) -> Met:
    path = os.fsencode(ground.folder / "odd") + b"/caf\xe9.yaml"
    os.makedirs(os.path.dirname(path), exist_ok=True)
    Path(os.fsdecode(path)).write_text(ARENA)
    return _worse(
        ground.command("arena", "check", ground.folder / "odd", said="name"),
        ground.command(
            "battery", "import", ground.folder / "odd", "--data", ground.data, said="name"
        ),
        ground.command("arena", "features", ground.folder / "odd", said="name"),
    )


def _worse(*met: Met) -> Met:
    """The first fault, or else the first of all."""
    return next((one for one in met if one.kind == "fault"), met[0])


def rows() -> dict[str, list[str]]:
    """The rows of the table, by number: what the mistake is, and what happens."""
    with TABLE.open(newline="") as file:
        return {row[0]: row[1:] for row in list(csv.reader(file))[1:]}


@contextlib.contextmanager
def ground() -> Iterator[Ground]:
    """A folder that is away afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        made = Ground(Path(folder))
        yield made
        if "lab" in vars(made):
            made.lab.close()


def main(numbers: Sequence[str]) -> int:
    """Try mistakes, and say what became of each; 1 if any is a fault."""
    faults = 0
    with ground() as here:
        for number, (mistake, *_) in rows().items():
            if not numbers or number in numbers:
                met = ATTEMPTS[number](here)
                faults += met.kind == "fault"
                print(f"{number} {mistake}\n    {met.kind}: {met.words[:400]}", flush=True)
    return int(faults > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
