"""Tries mistakes of users by the command line and in Python, and says what becomes of each.

`python -m tests.hunt` tries those of docs/design/hunted.csv, or those whose numbers are given.
Each is *refused* with a sentence, *said* in the result, without *effect*, *right*, or a *fault*:
taken in silence, or ended by a traceback.
"""

from __future__ import annotations

import asyncio
import contextlib
import csv
import math
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import gymnasium
import numpy as np
import pandas as pd
import xarray

import animalcat as ac
from animalcat.errors import AnimalcatError
from animalcat.layouts import Bank
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
GOAL: Final = "!Vector3 {x: 20, y: 0, z: 20}"
ABILITY: Final = "{kind: capability, unit: fact, prior: {scaled_beta: {low: 0, high: 6}}, about: x}"
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


def arena(ground: Ground, old: str, new: str, said: str = "") -> Met:
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
    "H51": lambda g: fit(g, reading() + ",,,\n,,,\n", effect="empty rows are no rows"),
    "H52": lambda g: cell(g, "40%"),
    "H53": lambda g: cell(g, "2-Jan"),
    "H54": lambda g: _worse(cell(g, "1'234"), cell(g, "1 234")),
    "H55": lambda g: fit(g, re.sub(r"(t\d*[02468]),\d+", r"\1,", reading()), said="no words"),
    "H56": lambda g: fit(g, reading().replace("\n", "\n,kiloword,fact,\n", 1)),
    "H57": lambda g: cell(g, "#DIV/0!", 3),
    "H58": lambda g: cell(g, "12 m"),
    "H59": lambda g: _spread_names(g),
    "H60": lambda g: g.command(
        *("layout", "fit", READING, "--table", g.write("t.csv", reading()), "--agent", "words")
    ),
    "H61": lambda g: arena(g, "rotations: [0]", "rotations: [1.5708]", "in radians"),
    "H62": lambda g: arena(g, GOAL, "!Vector3 {x: -10, y: 0, z: 20}", "below 0"),
    "H63": lambda g: arena(g, GOAL, "!vector3 {x: 20, y: 0, z: 20}"),
    "H64": lambda g: arena(g, "GoodGoal", "goodgoal"),
    "H65": lambda g: g.command(
        *("arena", "check"),
        g.write("a.yaml", ARENA + WALL.replace("x: 4, y: 4", "x: 400, y: 4")),
        said="clamped",
    ),
    "H66": lambda g: arena(g, "arenas:\n  0: !Arena\n", ""),
    "H67": lambda g: arena(g, GOAL, "[20, 0, 20]"),
    "H68": lambda g: arena(g, "    timeLimit", "\ttimeLimit"),
    "H69": lambda g: arena(g, "timeLimit: 100", "timeLimit: 250s"),
    "H70": lambda g: arena(g, "    passMark: 0", "    items: []", "the last one wins"),
    "H71": lambda g: arena(g, "passMark: 0", "passMark: 0\n    blackouts: [20, 10]"),
    "H72": lambda g: fit(
        g, reading(lambda k: (easy(k)[0] / 1000, *easy(k)[1:])), said="in another unit"
    ),
    "H73": lambda g: layout(g, "latents:\n", f"latents:\n  unused: {ABILITY}\n"),
    "H74": lambda g: layout(g, "  reasoning:", "  span:"),
    "H75": lambda g: layout(g, "[reading, combining]", "[raeding, combining]"),
    "H76": lambda g: layout(g, "{scaled_beta: {low: 0, high: 32}}", "{normal: {mean: 0, sd: -3}}"),
    "H77": lambda g: layout(g, "ability: span, demand: words", "ability: words, demand: span"),
    "H78": lambda g: python(lambda: g.lab.resume("f0", Forward(), decision_period=20)),  # pyright: ignore
    "H79": lambda g: _imported_anew(g),
    "H80": lambda g: _kept(g, "observation.rays[...] = 0"),
    "H81": lambda g: _kept(g, "self.n = getattr(self, 'n', 0) + 1"),
    "H82": lambda g: _kept(g, "import time; return time.time_ns() // 1000 % 9"),
    "H83": lambda g: _kept(g, "import os; os.chdir('/')"),
    "H84": lambda g: _run(g, f"{g.write('bad.py', AGENT.replace(': ...', ': self.n'))}:Mine"),
    "H85": lambda g: _recorded(g, "cut", lambda own, other: own[: len(own) // 2]),
    "H86": lambda g: _recorded(g, "flip", lambda own, _: own[:500] + b"?" + own[501:]),
    "H87": lambda g: _recorded(g, "swap", lambda own, other: other),
    "H88": lambda g: _edited(g),
    "H89": lambda g: _worse(
        python(_measured(g, target_sd=True)),
        python(_measured(g, seed=np.float64(2))),
        python(lambda: g.session("numpy", seed=np.int64(2)), right="numpy's whole numbers are"),
    ),
    "H90": lambda g: python(
        lambda: Bank.of("one-capability", pd.DataFrame({"difficulty": [1.0, pd.NA]})),
        said="1 of 2 instances have no difficulty: 5 is taken",
    ),
    "H91": lambda g: python(lambda: g.lab.measure(g.battery, Forward())),
    "H92": lambda g: python(
        lambda: [g.lab.battery(of) for of in ([ac.Arena.goal(distance=5)], {"a": ARENA})],
        right="each gives arenas their names",
    ),
    "H93": lambda g: _worse(
        python(lambda: ac.Arena.goal(distance="12")),  # pyright: ignore
        python(lambda: ac.Arena.goal(distance=math.nan)),
    ),
    "H94": lambda g: _worse(
        *(python(lambda name=name: g.session(name)) for name in (" x ", 7, "a\nb"))
    ),
}
"""How each mistake is made."""


def cell(ground: Ground, text: str, column: int = 1) -> Met:
    """Fit a table in which one cell is something else."""
    rows = [line.split(",") for line in reading().splitlines()]
    rows[3][column] = text
    return fit(ground, "\n".join(map(",".join, rows)) + "\n")


def layout(ground: Ground, old: str, new: str) -> Met:
    """Show the layout of reading with something replaced."""
    text = READING.read_text()
    assert old in text
    return ground.command("layout", "show", ground.write("l.yaml", text.replace(old, new, 1)))


def _spread_names(ground: Ground) -> Met:
    path = ground.write("numbered/001.yaml", ARENA)
    ground.command("battery", "import", path.parent, "--data", ground.data)
    return ground.command(
        *("layout", "fit", "aaio", "--battery", path.parent),
        *("--outcomes", ground.write("rewards.csv", "instance,me\n1,0.9\n")),
    )


def _imported_anew(ground: Ground) -> Met:
    path = ground.write("anew/a.yaml", ARENA)
    words = ("battery", "import", path.parent, "--data", ground.data)
    ground.command(*words)
    ground.write("anew/a.yaml", ARENA.replace("z: 20", "z: 30"))
    return ground.command(*words)


def _kept(ground: Ground, line: str) -> Met:
    """Measure an agent that does something odd, and play again what it did."""
    path = ground.write("odd.py", AGENT.replace("return 3", f"{line}\n        return 3"))
    session = ground.lab.measure(
        *(f"{path}:Mine", ground.battery), name=f"odd{len(line)}", max_episodes=2, certify=False,
        progress=False,
    )  # fmt: skip
    return ground.command(
        *("episode", "replay", session.id, "--verify", "--data", ground.data),
        effect="what was played comes out again",
    )


def _recorded(ground: Ground, name: str, change: Callable[[bytes, bytes], bytes]) -> Met:
    folder = ground.data / "recordings" / ground.session(name).id
    own, other = sorted(folder.iterdir())[:2]
    own.write_bytes(change(own.read_bytes(), other.read_bytes()))
    return ground.command("episode", "replay", folder.name, "--verify", "--data", ground.data)


def _edited(ground: Ground) -> Met:
    text = (GALLERY / "class.json").read_text()
    edited = ground.write("edited.json", re.sub(r'("mean": )(\d)', r"\g<1>9\2", text))
    return ground.command("profile", "compare", edited, GALLERY / "class.json")


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
