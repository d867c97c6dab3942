"""How the cost of commands grows with what is stored: slopes on log-log axes beside their goals.

One short session is played, and its rows in the store are copied as often as a size asks for.
"""

from __future__ import annotations

import contextlib
import importlib
import itertools
import json
import math
import os
import pkgutil
import signal
import statistics
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from sqlalchemy import Table, create_engine, insert, select

from animalcat.arena_configs.loader import load_text
from animalcat.envs.sim.environment import SimEnvironment
from animalcat.envs.types import CameraSpec, ObservationSpec
from animalcat.service.recording.writer import EpisodeRecorder
from animalcat.service.storage.schema import metadata, sessions
from animalcat.service.storage.sql import DATABASE
from animalcat.service.versions import versions
from animalcat.values import Decision, EpisodeHeader
from animalcat.wire.codec import encode
from benchmarks.checkout import environment

WHOLE: Final = 1.05
"""Goal for the slope of what has to touch all of it."""
FLAT: Final = 0.1
"""Goal for the slope of the rest."""
EPISODES: Final = 5
"""Of the session that is played."""
RUNS: Final = 3
"""Runs of every command, of which the worst pair gives the upper bound of the slope."""
FLOOR: Final = 0.1
"""CPU seconds that a command counts at least: below, a slope is that of noise."""
START: Final = "start and stop a server"
"""Name of what is measured without a command."""


class Cost(NamedTuple):
    """What a command took, the server's processes among it.

    Attributes:
        cpu: CPU seconds.
        peak: The most memory of the server's processes and the command, in bytes.
    """

    cpu: float
    peak: int


@dataclass(frozen=True)
class Command:
    """A command that is measured.

    Attributes:
        name: What the table calls it.
        arguments: Arguments of `animalcat`; `{name}` stands for what the place says.
        goal: Goal for the slope.
        most: Most CPU seconds that it may take at a size.
    """

    name: str
    arguments: tuple[str, ...]
    goal: float = FLAT
    most: tuple[int, float] | None = None


@dataclass(frozen=True)
class Place:
    """A store that was filled, and what commands say of it.

    Attributes:
        home: Its data directory.
        words: Values of the names in the arguments of commands.
    """

    home: Path
    words: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class Axis:
    """Something that grows.

    Attributes:
        name: What grows, in the plural.
        sizes: Sizes that are tried.
        quick: The two that `--quick` tries.
        fill: Fills a data directory to a size.
        commands: What is measured at every size.
        start: Whether the start of a server is measured as well, with its goal.
    """

    name: str
    sizes: tuple[int, ...]
    quick: tuple[int, int]
    fill: Callable[[Path, int], Place]
    commands: tuple[Command, ...]
    start: float | None = None


def measure_growth(axis: Axis, sizes: Sequence[int], quick: bool) -> list[dict[str, Any]]:
    """Measure one axis.

    Args:
        axis: What grows.
        sizes: Sizes that are tried, the smallest first.
        quick: Whether everything is measured once.

    Returns:
        A row for each command.
    """
    runs = 1 if quick else RUNS
    spent: dict[str, dict[int, list[Cost]]] = {}
    with tempfile.TemporaryDirectory(prefix="animalcat-growth-") as folder:
        for size in sizes:
            place = axis.fill(Path(folder) / str(size), size)
            for name, cost in _measure_size(axis, place, runs):
                spent.setdefault(name, {}).setdefault(size, []).append(cost)
    goals = {one.name: (one.goal, one.most) for one in axis.commands} | {START: (axis.start, None)}
    return [row_of(axis, name, *goals[name], found) for name, found in spent.items()]


def warm() -> None:
    """Import what commands import, so that no command pays for it."""
    import animalcat.cli

    for module in pkgutil.walk_packages(animalcat.cli.__path__, "animalcat.cli."):
        importlib.import_module(module.name)


def _measure_size(axis: Axis, place: Place, runs: int) -> Iterator[tuple[str, Cost]]:
    """Measure every command at one size, each `runs` times; commands take turns."""
    for _ in range(runs):
        if axis.start is not None:
            yield START, _start(place)
    with _serving(place) as (address, server):
        nothing = min(_measure_cost(("--version",), place, server) for _ in range(RUNS)).cpu
        for number in range(runs):
            for one in axis.commands:
                cost = _measure_cost(_fill_in(one, place, address, number), place, server)
                yield one.name, Cost(max(0.0, cost.cpu - nothing), cost.peak)


def _fill_in(command: Command, place: Place, address: str, run: int) -> list[str]:
    """Arguments of a command; a word of several words becomes several arguments."""
    words = {"address": address, "home": str(place.home), "run": str(run), **place.words}
    return [part for word in command.arguments for part in word.format_map(words).split()]


def _measure_cost(arguments: Sequence[str], place: Place, server: int) -> Cost:
    """Run a command in a child that has imported everything already; returns what it took."""
    _forget_peaks(server)
    before = _cpu_used(server)
    child = os.fork()
    if not child:
        os._exit(_command(arguments, place))
    _, ended, usage = os.wait4(child, 0)
    if code := os.waitstatus_to_exitcode(ended):
        printed = (place.home / "growth.txt").read_text(errors="replace")[-2000:]
        raise RuntimeError(f"animalcat {' '.join(arguments)} ended with {code}: {printed}")
    cpu = usage.ru_utime + usage.ru_stime + _cpu_used(server) - before
    return Cost(cpu, usage.ru_maxrss * 1024 + _peak(server))


def _command(arguments: Sequence[str], place: Place) -> int:
    """Be a command: what it prints goes to a file."""
    from animalcat.cli.main import main

    with (place.home / "growth.txt").open("w") as out:
        os.dup2(out.fileno(), 1)
        os.dup2(out.fileno(), 2)
    os.environ["ANIMALCAT_HOME"] = str(place.home)
    sys.argv = ["animalcat", *arguments]
    try:
        main()
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except Exception:  # noqa: BLE001 - a child tells its parent of everything
        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return 0


def _launch(place: Place) -> tuple[subprocess.Popen[str], str]:
    """Start a server on a place; returns its process and its address."""
    command = [sys.executable, "-P", "-m", "animalcat", "serve", "--json", "--port", "0"]
    with (place.home / "growth.log").open("w") as log:
        process = subprocess.Popen(
            [*command, "--data", str(place.home)],
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    assert process.stdout is not None  # a pipe
    line = process.stdout.readline()
    if not line:
        raise RuntimeError((place.home / "growth.log").read_text())
    return process, str(json.loads(line)["address"])


@contextlib.contextmanager
def _serving(place: Place) -> Generator[tuple[str, int]]:
    """Serve a place for the block; yields the address and the process id."""
    process, address = _launch(place)
    try:
        yield address, process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def _start(place: Place) -> Cost:
    """Start a server until it answers, and stop it."""
    process, _ = _launch(place)
    process.send_signal(signal.SIGTERM)
    _, _, usage = os.wait4(process.pid, 0)
    process.returncode = 0
    return Cost(usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)


def _tree(process: int) -> Iterator[Path]:
    """A process and all that it started, as folders of /proc."""
    waiting = [process]
    while waiting:
        folder = Path(f"/proc/{waiting.pop()}")
        with contextlib.suppress(OSError):
            waiting += map(int, (folder / "task" / folder.name / "children").read_text().split())
            yield folder


def _cpu_used(process: int) -> float:
    """CPU seconds of a process and of all that it started, those that have ended among them."""
    ticks = 0
    for folder in _tree(process):
        with contextlib.suppress(OSError):
            # After the name in brackets, which may hold blanks: utime, stime, cutime and cstime.
            ticks += sum(map(int, (folder / "stat").read_text().rpartition(")")[2].split()[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def _forget_peaks(process: int) -> None:
    for folder in _tree(process):
        with contextlib.suppress(OSError):
            (folder / "clear_refs").write_text("5")


def _peak(process: int) -> int:
    """The most memory of a server's processes since `_forget_peaks`, in bytes."""
    peak = 0
    for folder in _tree(process):
        with contextlib.suppress(OSError):
            for line in (folder / "status").read_text().splitlines():
                if line.startswith("VmHWM:"):
                    peak += int(line.split()[1]) * 1024
    return peak


def row_of(
    axis: Axis,
    name: str,
    goal: float | None,
    most: tuple[int, float] | None,
    found: Mapping[int, Sequence[Cost]],
) -> dict[str, Any]:
    """Say how a command grew between the two largest sizes that it was tried at."""
    assert goal is not None  # only what is measured has a row
    *_, small, large = sorted(found)
    wide = math.log(large / small)
    spent = {size: [max(FLOOR, cost.cpu) for cost in costs] for size, costs in found.items()}
    slope = math.log(statistics.median(spent[large]) / statistics.median(spent[small])) / wide
    upper = math.log(max(spent[large]) / min(spent[small])) / wide
    steady = max(spent[large]) <= FLOOR
    met = steady or upper <= goal
    note = ", ".join(
        f"{statistics.median(spent[size]):.3g} s at {size:,}" for size in sorted(spent)
    )
    peak = max(cost.peak for cost in found[large])
    if most is not None and most[0] in spent:
        met = met and max(spent[most[0]]) <= most[1]
        note += f" (at most {most[1]:g} s at {most[0]:,})"
    return {
        "name": f"{name}, {axis.name}",
        "value": slope,
        "high": upper,
        "unit": "slope",
        "target": f"at most {goal:g}",
        "met": met,
        "note": f"{note}; {peak / 2**20:,.0f} MiB",
        "cpu": {str(size): [cost.cpu for cost in costs] for size, costs in found.items()},
        "peak_bytes": {
            str(size): max(cost.peak for cost in costs) for size, costs in found.items()
        },
    }


_PLAY: Final = """
import sys, animalcat
with animalcat.local(sys.argv[1]) as lab:
    result = lab.measure("builtin:braitenberg", "navigation", layout="aaio",
                         max_episodes=int(sys.argv[2]), certify=False, progress=False)
print(result.profile["provenance"]["session"])
"""


def _play_session(home: Path) -> str:
    """Play one short session, and return its id; elsewhere, since this process forks."""
    command = [sys.executable, "-c", _PLAY, str(home), str(EPISODES)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout.split()[-1].removeprefix("sessions/")


def _copy(home: Path, session: str, change: Callable[[str, dict[str, Any], int], bool]) -> None:
    """Copy what a store has of a session until `change` says that it is enough.

    Args:
        home: The data directory.
        session: Id of the session.
        change: Alters a row, by the name of its table and the number of the copy, from 1 on, and
            returns whether it is to be written.
    """
    engine = create_engine(f"sqlite:///{home / DATABASE}")
    with engine.begin() as db:
        found: dict[Table, list[dict[str, Any]]] = {}
        for table in metadata.sorted_tables:
            key = table.c.get("id" if table is sessions else "session")
            if key is not None:
                rows = db.execute(select(table).where(key == session)).mappings()
                found[table] = [dict(row) for row in rows]
        for number in itertools.count(1):
            changed = {table: [dict(row) for row in rows] for table, rows in found.items()}
            kept = {
                table: [row for row in rows if change(table.name, row, number)]
                for table, rows in changed.items()
            }
            if not any(kept.values()):
                break
            for table, rows in kept.items():
                if rows:
                    db.execute(insert(table), rows)
    engine.dispose()


def _many_sessions(home: Path, size: int) -> Place:
    session = _play_session(home)

    def change(table: str, row: dict[str, Any], number: int) -> bool:
        if table == "sessions":
            row.pop("seq")
            row |= {"id": f"{session}-{number}", "request_id": None}
        else:
            row["session"] = f"{session}-{number}"
        return number < size

    _copy(home, session, change)
    return Place(home, {"session": session})


def _long_session(home: Path, size: int) -> Place:
    session = _play_session(home)

    def change(table: str, row: dict[str, Any], number: int) -> bool:
        if table != "episodes":
            return False
        row["number"] += number * EPISODES
        return (number + 1) * EPISODES <= size

    _copy(home, session, change)
    return Place(home, {"session": session})


def a_size(home: Path, size: int) -> Place:
    """Nothing but a size, for what makes something."""
    home.mkdir()
    return Place(home, {"size": str(size)})


def _a_long_episode(home: Path, size: int) -> Place:
    """A recording of so many decisions of an agent that walks in circles."""
    home.mkdir()
    spec = ObservationSpec(camera=CameraSpec(resolution=32))
    arena = load_text(ENDLESS, "endless").config.first
    header = EpisodeHeader(
        session="long",
        number=0,
        attempt=0,
        instance="endless",
        arena_yaml=ENDLESS,
        seed=0,
        observation_spec=spec,
        backend="sim",
        versions=versions(),
        decision=Decision("endless", 0.0, 1.0, 0.5, {}, "listed"),
        agent="circles",
        pixels=False,
        places=(),
    )
    recorder = EpisodeRecorder(home / "0-0.mcap", encode(header))
    environment = SimEnvironment(replace(spec, camera=None))
    recorder.step(environment.load(arena, 0), None)
    for _ in range(size):
        recorder.step(environment.step(CIRCLES), CIRCLES)
    environment.close()
    recorder.finish(1)
    return Place(home, {"recording": str(recorder.path)})


ASK: Final = ("--server", "{address}")
SMALL: Final = ("--resolution", "84")
ENDLESS: Final = """!ArenaConfig
arenas:
  0: !Arena
    t: 0
    items:
    - !Item {name: Agent, positions: [!Vector3 {x: 20, y: 0, z: 20}], rotations: [0]}
    - !Item {name: GoodGoal, positions: [!Vector3 {x: 2, y: 0, z: 2}], sizes: [!Vector3 {x: 1, y: 1, z: 1}]}
"""  # noqa: E501
"""An arena without a time limit, of which an agent in circles never meets the goal."""
CIRCLES: Final = 4
"""The action of going forward and to the right."""
AXES: Final = (
    Axis(
        "episodes of a session",
        (500, 5_000, 50_000),
        (500, 2_000),
        _long_session,
        (
            Command("session show", ("session", "show", "{session}", *ASK)),
            Command("profile show", ("profile", "show", "{session}", *ASK)),
            Command("episode list", ("episode", "list", "{session}", "--json", *ASK), WHOLE),
        ),
    ),
    Axis(
        "sessions",
        (100, 1_000, 10_000),
        (100, 1_000),
        _many_sessions,
        (
            Command("session list", ("session", "list", *ASK)),
            Command("session show", ("session", "show", "{session}", *ASK)),
            Command("server status", ("server", "status", *ASK)),
            Command(
                "session run --elsewhere",
                (
                    *(
                        "session",
                        "run",
                        "--elsewhere",
                        "--agent",
                        "builtin:random",
                        "--battery",
                        "navigation",
                    ),
                    *("--layout", "aaio", "--seed", "{run}", *ASK),
                ),
            ),
        ),
        start=FLAT,
    ),
    Axis(
        "instances that are built",
        (100, 1_000),
        (50, 200),
        a_size,
        (
            Command(
                "battery build",
                (
                    *("battery", "build", "fence", "--size", "{size}"),
                    *("--seed", "{run}", "--name", "built-{run}", *ASK),
                ),
                WHOLE,
            ),
        ),
    ),
    Axis(
        "decisions of an episode",
        (2_500, 25_000),
        (500, 2_500),
        _a_long_episode,
        tuple(
            Command(
                f"episode replay --video .{form}",
                ("episode", "replay", "{recording}", "--video", "{home}/{run}." + form, *SMALL),
                WHOLE,
            )
            for form in ("gif", "mp4")
        ),
    ),
)
"""What grows."""


def run(quick: bool) -> list[dict[str, Any]]:
    """Measure every axis.

    Args:
        quick: Two sizes of each, once each.

    Returns:
        A row for each command: its cost at every size, and its slope.
    """
    warm()
    return [
        row
        for axis in AXES
        for row in measure_growth(axis, axis.quick if quick else axis.sizes, quick)
    ]
