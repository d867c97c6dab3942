"""`python -m benchmarks spoken`: whether profiles find what was planted in agents that speak.

Scripted speakers play sessions through the whole chain: arena, camera, PNG, words, inspect_ai's
model API, their answers as scripts or calls of tools, service and profile. Each session is a line
of a file as soon as it is over, and one that is there is not played again.
"""

from __future__ import annotations

import json
import resource
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
from rich.progress import Progress

import animalcat
from animalcat.cli.shared.output import progress_console
from animalcat.doors.speech import Form, Tongue
from animalcat.doors.speech.speaking import ModelAgent
from animalcat.lab.lab import Lab
from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.library import load_layout
from animalcat.service.host.private import server_for
from animalcat.service.measuring.report import REPEATED
from benchmarks.recovery_agents import interval_of_correlation, interval_of_share
from benchmarks.spoken_agents import Speaker

Rows: TypeAlias = list[dict[str, Any]]

EPISODES: Final = 30
CAMERA: Final = 128
ANSWERS: Final = 24
ALL: Final = 40
"""Pictures that a speaker keeps whose memory is not graded."""
SEED: Final = 20261127
"""Of what parrots say, which was fixed before any of them played."""
SIGHT, MEMORY, MALFORMED = "sight", "pictures remembered", "malformed answers"
PARROT, ABLE = "parrot", "able"
NODES: Final = {SIGHT: "sightAbility", MEMORY: "memoryAbility"}
STRENGTHS: Final[dict[str, tuple[float, ...]]] = {
    SIGHT: (15, 17, 19, 21, 23, 25, 27, 29, 31, 33),
    MEMORY: (3, 4, 5, 6, 7, 8, 9, 10, 11, 12),
    MALFORMED: (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5),
    PARROT: tuple(range(10)),
    ABLE: tuple(range(10)),
}
"""Metres, pictures and shares; parrots and able speakers have numbers.

Who does not see as far as the screens stand, 16 to 18 m, shows nothing of its memory.
"""
NAMED: Final = ("fraudster", "context")


@dataclass(frozen=True)
class Task:
    """A session.

    Attributes:
        series: What is graded.
        strength: How much of it.
        seed: Of the session; odd ones answer by scripts, even ones by tools.
    """

    series: str
    strength: float
    seed: int

    @property
    def speaker(self) -> Speaker:
        """Who plays it."""
        form: Form = "script" if self.seed % 2 else "tools"
        seed = self.seed
        match self.series:
            case "sight":
                return Speaker(form, sight=self.strength, seed=seed)
            case "malformed answers":
                return Speaker(form, malformed=self.strength, seed=seed)
            case "parrot":
                draws = rng(SEED, "parrots", round(10 * self.seed + self.strength))
                bearing = 30.0 * float(draws.integers(-1, 2)) + float(draws.uniform(-3, 3))
                return Speaker(form, parrots=(("turn", bearing), ("go", 35.0)), seed=seed)
            case _:
                return Speaker(form, seed=seed)

    @property
    def tongue(self) -> Tongue:
        """How it is told."""
        kept = int(self.strength) if self.series == MEMORY else ALL
        # Half of the answers may be none, and yet there must be enough to get there.
        most = 2 * ANSWERS if self.series == MALFORMED else ANSWERS
        return Tongue(self.speaker.form, picture=CAMERA, history=kept, answers=most)


def tasks(quick: bool) -> list[Task]:
    """All sessions, the series by turns."""
    seeds, step = ((1,), 4) if quick else ((1, 2), 1)
    of = range(0, 10, step)
    return [Task(name, STRENGTHS[name][k], s) for s in seeds for k in of for name in STRENGTHS]


def run(quick: bool = False, keep: Path | None = None) -> Rows:
    """Play what is not played yet, and make the rows.

    Args:
        quick: Play less.
        keep: Folder of the file with a line for each session; None to keep nothing.
    """
    episodes = 12 if quick else EPISODES
    with tempfile.TemporaryDirectory() as folder:
        file = (keep or Path(folder)) / "sessions.jsonl"
        file.parent.mkdir(parents=True, exist_ok=True)
        wanted = tasks(quick)
        missing = [one for one in wanted if one not in {known for known, _ in _known(file)}]
        with (
            server_for(None, Path(folder) / "data") as address,
            animalcat.connect(address) as client,
            Progress(console=progress_console()) as bar,
            file.open("a") as lines,
        ):
            client.battery("spoken")
            for task in bar.track(missing, description="sessions"):
                lines.write(json.dumps({**asdict(task), **_played(client, task, episodes)}) + "\n")
                lines.flush()
        found = {task: row for task, row in _known(file) if task in set(wanted)}
    return made_rows(found)


def _known(file: Path) -> Iterator[tuple[Task, dict[str, Any]]]:
    if file.exists():
        for line in file.read_text().splitlines():
            row = json.loads(line)
            yield Task(row["series"], row["strength"], row["seed"]), row


def _played(client: Lab, task: Task, episodes: int) -> dict[str, Any]:
    """Play a session, and return what became of it."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    session = client.create_session(
        agent=f"{task.series.replace(' ', '-')}-{task.strength:g}-{task.seed}",
        battery="spoken",
        max_episodes=episodes,
        camera=CAMERA,
        target_sd=0,
        futility=0,
        certify=False,
        seed=task.seed,
    )
    client.evaluate(ModelAgent(task.speaker.model(), task.tongue), session)
    profile = client.profile(session)
    spent = client.get_session(session).spent
    verdict, about = profile["verdict"], profile["provenance"]
    depends = verdict["depends_on"]
    return {
        "episodes": about["episodes"],
        "passed": about["successes"],
        "answers": spent.answers,
        "unparseable": spent.unparseable,
        "refusals": spent.refusals,
        "repeats": spent.repeats,
        "means": {name: node["mean"] for name, node in profile["nodes"].items()},
        "sds": {name: node["sd"] for name, node in profile["nodes"].items()},
        "kind": verdict["kind"],
        "weakness": verdict["weakness"],
        "goes_by": depends["name"] if depends and verdict["kind"] in NAMED else "",
        "standing": profile["judgement"]["standing"],
        "labels": profile["labels"],
        "says": verdict["sentences"],
        "own_cpu_s": resource.getrusage(resource.RUSAGE_SELF).ru_utime - before,
    }


def made_rows(found: Mapping[Task, Mapping[str, Any]]) -> Rows:
    """The rows of sessions, by what became of each."""
    rows: Rows = []
    for series in (SIGHT, MEMORY, MALFORMED):
        done = [(task.strength, row) for task, row in found.items() if task.series == series]
        if len({strength for strength, _ in done}) > 2:
            rows += _graded(series, done)
    for series, title, target, aim in (
        (PARROT, "parrots are named", 0.9, "at least"),
        (ABLE, "able speakers are named", 0.0, "at most"),
    ):
        hits = [_named(row) for task, row in found.items() if task.series == series]
        if hits:
            share = sum(hits) / len(hits)
            low, high = interval_of_share(sum(hits), len(hits))
            met = share >= target if aim == "at least" else share <= target
            rows.append(
                {"name": title, "value": share, "low": low, "high": high, "target": target}
                | {"aim": aim, "met": met, "note": f"{sum(hits)} of {len(hits)} sessions"}
            )
    return rows


def _named(row: Mapping[str, Any]) -> bool:
    """Whether a profile says that what is shown may not matter, or names a fraudster."""
    return row["kind"] in NAMED or any(REPEATED in label for label in row["labels"])


def _graded(series: str, done: Sequence[tuple[float, Mapping[str, Any]]]) -> Rows:
    """What follows the strength of a series, and what it moves besides."""
    layout = load_layout("spoken")
    spans = {node.name: node.prior.span for node in layout.latents}
    names = [layout.latents[k].name for k in layout.capabilities]
    strengths = [strength for strength, _ in done]
    own = NODES.get(series)
    if own is None:
        title, y = (
            "share of unparseable answers",
            [r["unparseable"] / r["answers"] for _, r in done],
        )
    else:
        title, y = own, [row["means"][own] for _, row in done]
    rho, low, high = interval_of_correlation(strengths, y)
    order: list[int] = np.argsort(strengths, kind="stable").tolist()
    third = max(1, len(done) // 3)
    moves = {
        name: abs(
            float(np.mean([done[k][1]["means"][name] for k in order[-third:]]))
            - float(np.mean([done[k][1]["means"][name] for k in order[:third]]))
        )
        / spans[name]
        for name in names
    }
    leak = max((name for name in names if name != own), key=lambda name: moves[name])
    return [
        {
            "name": f"{title} by {series}, Spearman",
            "value": rho,
            "low": low,
            "high": high,
            "target": 0.8,
            "aim": "low at least",
            "met": low >= 0.8,
            "note": f"{len(done)} sessions",
        },
        {
            "name": f"what {series} moves besides",
            "value": moves[leak],
            "target": 1 / 3,
            "aim": "at most",
            "met": moves[leak] <= 1 / 3,
            "note": leak,
        },
    ]
