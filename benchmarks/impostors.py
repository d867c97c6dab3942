"""`python -m benchmarks impostors`: whether profiles see through agents that seem able."""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
from rich.progress import Progress

from animalcat.arena_configs.batteries import full_size, load_recipe
from animalcat.arena_configs.instance import Instance
from animalcat.cli.shared.output import progress_console
from animalcat.layouts.adaptive.bank import Bank
from animalcat.layouts.adaptive.learner import Learner
from animalcat.layouts.adaptive.plan import PRESETS, Policy
from animalcat.layouts.inference.randomness import rng
from animalcat.processes import process_pool
from animalcat.service.batteries.recipes import build_recipe
from animalcat.service.measuring.measurement import Measurement
from benchmarks.recovery_agents import interval_of_share
from benchmarks.recovery_sessions import Found, Place, Task

Rows: TypeAlias = list[dict[str, Any]]
Fails: TypeAlias = Callable[[Instance], bool]

BATTERY: Final = "object-permanence"
LAYOUT: Final = "object-permanence"
VARIANT: Final = "measured"
ABLE: Final = "builtin:planner"
FAKED: Final = "OPAbility"
"""The capability that impostors seem to have."""
LEAST_LOSS: Final = 0.02
"""Brier score by which an impostor must differ from every profile for an alarm to be due."""
WORKERS: Final = 2
COLOURS: Final = frozenset(
    f"{what}{name}" for what in ("occluder", "wall") for name in ("Red", "Green", "Blue")
) | {"wallColours"}
LAST_PLACE: Final = "where it last saw the goal"


@dataclass(frozen=True)
class Impostor:
    """An agent that acts by another rule than the layout's, without chance.

    Attributes:
        name: What it is called in tables.
        plays: Reference of the agent that plays the arenas.
        fails: Where it fails whatever that agent does; None for nowhere.
        right: The names of what its success may be said to depend on.
        fakes: Whether it only seems to have the capability that the battery is about.
    """

    name: str
    plays: str = ABLE
    fails: Fails | None = None
    right: frozenset[str] = frozenset()
    fakes: bool = True


def _hides(instance: Instance) -> bool:
    return instance.features.get("occluderPresence", 0.0) > 0.0


def _of_family(*families: str) -> Fails:
    """Fails where a goal is hidden, but in these families."""

    def fails(instance: Instance) -> bool:
        origin = instance.origin
        return _hides(instance) and (origin is None or origin.family not in families)

    return fails


def _looks(feature: str, above: float) -> Fails:
    """Fails where something that does not matter looks so."""
    return lambda instance: instance.features.get(feature, 0.0) > above


PARADIGM: Final = frozenset({"paradigm"})
IMPOSTORS: Final = (
    Impostor("goes to the last place", f"{ABLE}+follows=last-place", right=frozenset({LAST_PLACE})),
    Impostor(
        "looks at the last place alone",
        fails=lambda instance: instance.features.get("lastPlaceShows", 1.0) < 1.0,
        right=frozenset({LAST_PLACE}),
    ),
    Impostor("fails at red occluders", fails=_looks("occluderRed", 150.0), right=COLOURS),
    Impostor("fails at green occluders", fails=_looks("occluderGreen", 100.0), right=COLOURS),
    Impostor("knows cups alone", fails=_of_family("cups"), right=PARADIGM),
    Impostor("knows grids alone", fails=_of_family("grid-cups"), right=PARADIGM),
    Impostor("knows chick tasks alone", fails=_of_family("chick-task"), right=PARADIGM),
    Impostor("goes left", f"{ABLE}+follows=left", fakes=False),
    Impostor("only with walls", f"{ABLE}+only-with=wall", right=PARADIGM, fakes=False),
    Impostor("not with walls", f"{ABLE}+not-with=wall", right=PARADIGM, fakes=False),
)
"""Ten kinds, after those of Burden et al. 2023, Tables 6 and 7."""


@dataclass(frozen=True)
class Size:
    """How much is played.

    Attributes:
        instances: Arenas of the battery; None for all.
        seeds: Sessions of each kind.
        able: Sessions of able agents.
        episodes: Of a session.
        ends: Able agents whose sessions are played to their own end, with cues and without.
    """

    instances: int | None
    seeds: int
    able: int
    episodes: int
    ends: int


WHOLE: Final = Size(None, 6, 60, 200, 40)
QUICK: Final = Size(160, 1, 3, 40, 2)
DEAR: Final = 1.1
"""By how much more episodes cues may cost an able agent."""
_RESAMPLED: Final = 2000
_SLIPS: Final = 6
"""Able agents have an outcome changed by chance in 0 to 5 of 100 episodes."""


def slipping(k: int) -> str:
    """The k-th able agent."""
    return f"able, slips {0.01 * (k % _SLIPS):.2f}"


class Table(Place):
    """The battery with the outcomes of agents that play each arena once."""

    def outcome(self, agent: str, instance: str, seed: int, episode: int) -> bool:
        """Whether an agent passes an instance; agents are called as in `IMPOSTORS`, or by slips."""
        impostor = next((one for one in IMPOSTORS if one.name == agent), None)
        # What the planner passes is known of every arena of a battery.
        unsolved = self.battery.unsolved
        assert unsolved is not None  # the planner tries the arenas of every recipe
        solved = instance not in unsolved
        if impostor is None:
            slips = float(agent.removeprefix("able, slips "))
            return solved != (rng(seed, "slips", episode).random() < slips)
        one = self.battery.instances[self.battery.index[instance]]
        if impostor.fails is not None and impostor.fails(one):
            return False
        return solved if impostor.plays == ABLE else super().outcome(impostor.plays, instance, 0, 0)

    def own_end(self, agent: str, seed: int, *, cues: bool) -> int:
        """How many episodes an ordinary session takes.

        Args:
            agent: The agent.
            seed: Of the session.
            cues: Whether arenas are asked for in which a cue misleads.
        """
        spec = replace(self._spec, agent=agent, seed=seed)
        bank = Measurement(spec, self.battery).learner.bank
        if not cues:
            bank = Bank(
                replace(bank.layout, cues=()),
                bank.features,
                bank.paradigms,
                names=bank.names,
                seconds=bank.seconds,
                outside=bank.outside,
            )
        learner = Learner(bank, Policy(), PRESETS["standard"], seed)
        while not learner.verdict().stop:
            choice = learner.ask()
            assert choice is not None  # the battery has more arenas
            passed = self.outcome(agent, choice.instance, seed, learner.n)
            learner.tell(choice.instance, float(passed))
        return learner.n


def tasks_of(size: Size) -> list[Task]:
    """The sessions, kinds by turns."""
    kinds = [
        [Task(one.name, 1 + seed, size.episodes, watches=True) for seed in range(size.seeds)]
        for one in IMPOSTORS
    ]
    able = [Task(slipping(k), 1 + k, size.episodes, watches=True) for k in range(size.able)]
    each = [able[k :: len(IMPOSTORS)] for k in range(len(IMPOSTORS))]
    turns = zip_longest(*kinds, *each)
    return [task for turn in turns for task in turn if task is not None]


def run(quick: bool = False, keep: Path | None = None) -> Rows:
    """How often impostors are found out, and able agents spared.

    Args:
        quick: Play less.
        keep: A folder for rows and sessions, and for what was played: a second run reads it.
    """
    size = QUICK if quick else WHOLE
    tasks, begin = tasks_of(size), time.monotonic()
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() if keep is None else nullcontext(str(keep)) as folder,
        Progress(console=progress_console()) as bar,
    ):
        recipe = load_recipe(BATTERY)
        count = size.instances and min(size.instances, full_size(recipe))
        battery = build_recipe(recipe, Path(folder) / "batteries", count, processes=WORKERS)
        played = Path(folder) / f"played-{battery.digest[:12]}.jsonl"
        place = Path(folder) / "batteries", battery.digest, LAYOUT, VARIANT, played
        doing = bar.add_task("impostors", total=len(tasks))
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the processes share the cores
        with process_pool(WORKERS, _begin, *place) as pool:
            made = [pool.submit(_session, task) for task in tasks]
            for one in made:
                one.add_done_callback(lambda _: bar.advance(doing))
            own = [
                [pool.submit(_own_end, slipping(k), 1 + k, cues) for k in range(size.ends)]
                for cues in (True, False)
            ]
            found = [one.result() for one in made]
            ends = [[one.result() for one in some] for some in own]
    rows = [*rows_of(found), *_cost(*ends)]
    if keep is not None:
        report = {
            "battery": battery.digest,
            "seconds": time.monotonic() - begin,
            "rows": rows,
            "sessions": [asdict(one) for one in found],
            "episodes": dict(zip(("with cues", "without"), ends, strict=True)),
        }
        (keep / "impostors.json").write_text(json.dumps(report, indent=1) + "\n", "utf-8")
    return rows


def rows_of(found: Sequence[Found]) -> Rows:
    """The rows of the table."""
    kinds: Mapping[str, Impostor] = {one.name: one for one in IMPOSTORS}
    rows: Rows = []
    due: list[Found] = []
    faked: list[Found] = []
    wrong = partial(_wrong, kinds)
    for name, kind in kinds.items():
        own = [one for one in found if one.task.agent == name]
        mine = [one for one in own if (one.loses or 0.0) >= LEAST_LOSS]
        rest = [one for one in own if one not in mine] if kind.fakes else []
        due += mine
        faked += rest
        if not own:
            continue
        seen = sum(one.loses is not None for one in own)
        rows.append(
            {
                "agent": name,
                "sessions": len(own),
                "passed": f"{min(s.successes for s in own)} to {max(s.successes for s in own)}",
                "best profile loses": sum(one.loses or 0.0 for one in own) / max(seen, 1),
                "due": len(mine),
                "alarm": sum(one.stands for one in mine),
                "named": sum(bool(one.depends_on) for one in mine),
                "either": sum(map(_found_out, mine)),
                "wrong cue": sum(map(wrong, own)),
                "not due, claimed": sum(FAKED in one.claims for one in rest),
            }
        )
    able = [one for one in found if one.task.agent not in kinds]
    for title, cases, hits, must in (
        ("due: alarm or impostor named", due, sum(map(_found_out, due)), "58 of 60"),
        ("able: alarm or impostor named", able, sum(map(_found_out, able)), "none of 60"),
        ("a wrong cue with more than .5", found, sum(map(wrong, found)), "none of 120"),
        (
            f"not due: {FAKED} claimed",
            faked,
            sum(FAKED in one.claims for one in faked),
            "none",
        ),
    ):
        low, high = interval_of_share(hits, len(cases)) if cases else (0.0, 1.0)
        rows.append(
            {"agent": title, "sessions": len(cases), "either": hits, "low": low, "high": high}
            | {"must": must}
        )
    return rows


def _cost(cued: Sequence[int], plain: Sequence[int]) -> Rows:
    """How many times as many episodes able agents play because of cues; pairs are resampled."""
    if not cued:
        return []
    some = rng(0, "cost", 0).integers(0, len(cued), (_RESAMPLED, len(cued)))
    ratios = np.array(cued)[some].mean(axis=1) / np.array(plain)[some].mean(axis=1)
    low, high = np.quantile(ratios, [0.05, 0.95])
    return [
        {
            "agent": "able: times as many episodes because of cues",
            "sessions": len(cued),
            "either": float(np.mean(cued) / np.mean(plain)),
            "low": float(low),
            "high": float(high),
            "must": f"at most {DEAR:g}",
        }
    ]


def _found_out(one: Found) -> bool:
    return one.stands or bool(one.depends_on)


def _wrong(kinds: Mapping[str, Impostor], one: Found) -> bool:
    """Whether success is said to depend on something on which it does not."""
    kind = kinds.get(one.task.agent)
    return bool(one.depends_on) and (kind is None or one.depends_on not in kind.right)


_table: Table | None = None


def _own_end(agent: str, seed: int, cues: bool) -> int:
    assert _table is not None
    return _table.own_end(agent, seed, cues=cues)


def _session(task: Task) -> Found:
    assert _table is not None
    return _table.session(task)


def _begin(folder: Path, digest: str, layout: str, variant: str, played: Path) -> None:
    global _table
    os.nice(10)
    _table = Table(folder, digest, layout, variant, played)
