"""`python -m benchmarks recovery`: whether profiles find what was planted in agents that act."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from rich.progress import Progress

from animalcat.arena_configs.batteries.library import load_recipe
from animalcat.arena_configs.batteries.sizing import full_size
from animalcat.cli.shared.output import progress_console
from animalcat.layouts.library import load_layout
from animalcat.service.batteries.recipes import build_recipe
from benchmarks import recovery_agents as agents
from benchmarks.recovery_agents import SITES, Plant, Site
from benchmarks.recovery_sessions import Found, Task, run_sessions

Rows: TypeAlias = list[dict[str, Any]]

WORKERS: Final = 2
LONG: Final = 200
"""Episodes of a session in which the alarm is watched."""
LEAST_LOSS: Final = 0.02
"""Brier score by which an impostor must differ from every profile for the alarm to be due."""


class Kind(NamedTuple):
    """Sessions of which is counted in how many an alarm stands at the end.

    Attributes:
        title: What is counted.
        target: The share that is wanted.
        aim: Whether that is at least or at most so much.
    """

    title: str
    target: float
    aim: str


IMPOSTORS: Final = Kind("alarm stands for agents of another rule", 0.9, "at least")
SPARED: Final = Kind("alarm stands for able agents", 0.05, "at most")


@dataclass(frozen=True)
class Size:
    """How much is played.

    Attributes:
        instances: Share of each battery's arenas.
        strengths: How many of the ten strengths, evenly chosen; 0 leaves these rows out.
        seeds: Sessions of each strength.
        episodes: Share of a session's episodes.
        weak: Agents with a single weakness, for both sites together; 0 leaves these rows out.
        impostors: Seeds of each agent that acts by another rule.
        able: Able agents at each site.
        long: Episodes in which the alarm is watched.
        seconds: After which no session is begun.
    """

    instances: float
    strengths: int
    seeds: int
    episodes: float
    weak: int
    impostors: int
    able: int
    long: int
    seconds: float


WHOLE: Final = Size(1.0, 10, 2, 1.0, 60, 2, 6, LONG, 1680.0)
QUICK: Final = Size(0.25, 4, 1, 0.5, 9, 1, 2, 40, 140.0)


def run(quick: bool = False, sites: Sequence[str] | None = None, size: Size | None = None) -> Rows:
    """All parts of the table, at all sites.

    Args:
        quick: Play less.
        sites: Names of sites; None for all.
        size: How much is played; None for what `quick` says.
    """
    size = size or (QUICK if quick else WHOLE)
    chosen = list(sites or SITES)
    rows: Rows = []
    begin = time.monotonic()
    weights = {name: len(SITES[name].plants) + 2 for name in chosen}
    for k, name in enumerate(chosen):
        # What a site leaves of its time goes to those after it.
        left = size.seconds - (time.monotonic() - begin)
        share = weights[name] / sum(weights[other] for other in chosen[k:])
        rows += site_rows(name, size, time.monotonic() + left * share)
    return rows + (_together(rows) if len(chosen) > 1 else [])


def site_rows(name: str, size: Size, end: float) -> Rows:
    """The rows of one site.

    Args:
        name: One of `SITES`.
        size: How much is played.
        end: Time by `time.monotonic` after which no session is begun.
    """
    site = SITES[name]
    weak = agents.weak_agents(site, _weak_count(name, size.weak), name)
    planted = [_planted_tasks(site, plant, size) for plant in site.plants]
    singles = [
        (plant, Task(agent, 1 + k, _episodes(site, size))) for k, (plant, agent) in enumerate(weak)
    ]
    frauds = [
        [Task(agent, 1 + k, size.long, watches=True) for k in range(size.impostors)]
        for agent in site.impostors
    ]
    able = [
        Task(agent, seed, size.long, watches=True) for agent, seed in agents.able_agents(size.able)
    ]
    kinds = [[task for one, task in singles if one is plant] for plant in site.plants]
    tasks = in_turn([*planted, *kinds, *frauds, able])
    with tempfile.TemporaryDirectory() as folder, Progress(console=progress_console()) as bar:
        recipe = load_recipe(site.battery)
        count = max(40, round(full_size(recipe) * size.instances))
        whole = None if size.instances == 1.0 else count
        battery = build_recipe(recipe, Path(folder), whole, processes=WORKERS)
        played = Path(folder) / "played.jsonl"
        place = Path(folder), battery.digest, site.layout, site.variant, played
        doing = bar.add_task(name, total=len(tasks))
        made = run_sessions(place, tasks, end, lambda: bar.advance(doing), WORKERS)
    found = {one.task: one for one in made}
    rows = _capability_rows(name, site, planted, found) if size.strengths else []
    rows += _weak_rows(name, singles, found) if size.weak else []
    tried = [task for group in frauds for task in group]
    rows += _alarm_rows(name, tried, able, found)
    return rows + _kind_rows(name, singles, able, found)


def in_turn(rows: Sequence[Sequence[Task]]) -> list[Task]:
    """The sessions of all rows by turns, so that time that runs out takes some from each row."""
    return [task for turn in zip_longest(*rows) for task in turn if task is not None]


def _weak_count(name: str, total: int) -> int:
    """A site's part of the agents with a single weakness, by its number of capabilities."""
    plants = sum(len(site.plants) for site in SITES.values())
    return -(-total * len(SITES[name].plants) // plants)


def _episodes(site: Site, size: Size) -> int:
    return max(12, round(site.episodes * size.episodes))


def _planted_tasks(site: Site, plant: Plant, size: Size) -> list[Task]:
    last, parts = len(plant.strengths) - 1, max(size.strengths - 1, 1)
    at = sorted({round(k * last / parts) for k in range(size.strengths)})
    return [
        Task(plant.agent(plant.strengths[k]), seed, _episodes(site, size))
        for seed in range(1, size.seeds + 1)
        for k in at
    ]


def _capability_rows(
    name: str, site: Site, planted: Sequence[Sequence[Task]], found: Mapping[Task, Found]
) -> Rows:
    """Whether each capability follows its limit, and which other one does most."""
    layout = load_layout(site.layout, site.variant) if site.variant else load_layout(site.layout)
    capabilities = [layout.latents[k].name for k in layout.capabilities]
    rows: Rows = []
    for plant, tasks in zip(site.plants, planted, strict=True):
        strength = {plant.agent(s): plant.planted(s) for s in plant.strengths}
        done = [found[task] for task in tasks if task in found]
        if len({one.task.agent for one in done}) < 3:
            rows.append({"name": f"{name}: {plant.node}", "note": "not played: no time was left"})
            continue
        x = [strength[one.task.agent] for one in done]
        rho, low, high = agents.interval_of_correlation(x, [one.means[plant.node] for one in done])
        order = sorted(range(len(x)), key=x.__getitem__)
        third = max(1, len(done) // 3)
        weakest, ablest = order[:third], order[-third:]
        moves = {
            other: abs(
                float(np.mean([done[k].means[other] for k in ablest]))
                - float(np.mean([done[k].means[other] for k in weakest]))
            )
            for other in capabilities
        }
        leak = max((o for o in capabilities if o != plant.node), key=lambda other: moves[other])
        limit = plant.limit.partition("=")[0]
        rows += [
            {
                "name": f"{name}: {plant.node} by {limit}, Spearman",
                "value": rho,
                "low": low,
                "high": high,
                "target": 0.8,
                "aim": "low at least",
                "met": low >= 0.8,
                "note": f"{len(done)} sessions; moves by {moves[plant.node]:.2f} of its range",
            },
            {
                "name": f"{name}: what {limit} moves besides",
                "value": moves[leak],
                "target": 1 / 3,
                "aim": "at most",
                "met": moves[leak] <= 1 / 3,
                "note": leak,
            },
        ]
    return rows


def _weak_rows(name: str, weak: Sequence[tuple[Plant, Task]], found: Mapping[Task, Found]) -> Rows:
    """For how many agents the planted weakness has the lowest standing."""
    done = [(plant, found[task]) for plant, task in weak if task in found]
    if not done:
        return [{"name": f"{name}: single weakness", "note": "not played: no time was left"}]
    nodes = [plant.node for plant in SITES[name].plants]
    missed: list[str] = []
    for plant, one in done:
        lowest = min(nodes, key=lambda node: one.means[node])
        if lowest != plant.node:
            missed.append(f"{plant.node} taken for {lowest}")
    hits = len(done) - len(missed)
    low, high = agents.interval_of_share(hits, len(done))
    often = {text: missed.count(text) for text in sorted(set(missed))}
    return [
        {
            "name": f"{name}: single weakness has the lowest standing",
            "value": hits / len(done),
            "low": low,
            "high": high,
            "target": 0.9,
            "aim": "at least",
            "met": hits / len(done) >= 0.9,
            "note": f"{len(done)} agents"
            + "".join(f"; {count} x {text}" for text, count in often.items()),
        }
    ]


def _alarm_rows(
    name: str, frauds: Sequence[Task], able: Sequence[Task], found: Mapping[Task, Found]
) -> Rows:
    """How often an alarm stands, for agents of another rule and for able ones."""
    due = [found[task] for task in frauds if task in found]
    told_apart = [one for one in due if one.loses is not None and one.loses >= LEAST_LOSS]
    rows: Rows = [
        {
            "name": f"{name}: alarm stands for {one.task.agent.partition('+')[2]}",
            "value": float(one.stands),
            "note": f"the best profile loses {one.loses:.3f} of Brier; passed "
            f"{one.successes} of {one.task.episodes}",
        }
        for one in due
    ]
    spared = [found[task] for task in able if task in found]
    for kind, ones in ((IMPOSTORS, told_apart), (SPARED, spared)):
        rows.append(_share_row(name, kind, sum(one.stands for one in ones), len(ones)))
    return rows


def _together(rows: Rows) -> Rows:
    """How often an alarm stands at all sites."""
    made: Rows = []
    for kind in (IMPOSTORS, SPARED):
        ones = [row for row in rows if row["name"].endswith(f": {kind.title}") and "of" in row]
        hits, of = (sum(row[key] for row in ones) for key in ("hits", "of"))
        made.append(_share_row("together", kind, hits, of))
    return made


def _share_row(name: str, kind: Kind, hits: int, of: int) -> dict[str, Any]:
    if not of:
        return {"name": f"{name}: {kind.title}", "note": "there are none"}
    share = hits / of
    low, high = agents.interval_of_share(hits, of)
    return {
        "name": f"{name}: {kind.title}",
        "value": share,
        "low": low,
        "high": high,
        "target": kind.target,
        "aim": kind.aim,
        "met": share >= kind.target if kind.aim == "at least" else share <= kind.target,
        "note": f"{of} sessions",
        "hits": hits,
        "of": of,
    }


def _kind_rows(
    name: str,
    weak: Sequence[tuple[Plant, Task]],
    able: Sequence[Task],
    found: Mapping[Task, Found],
) -> Rows:
    """How often the verdict names the kind of agents whose kind is known."""
    singles = [(plant.node, found[task]) for plant, task in weak if task in found]
    rows: Rows = []
    for title, right in (
        (
            "verdict names the single weakness",
            [one.kind == "single weakness" and one.weakness == node for node, one in singles],
        ),
        ("verdict names able agents", [found[t].kind == "able" for t in able if t in found]),
    ):
        if right:
            low, high = agents.interval_of_share(sum(right), len(right))
            share = sum(right) / len(right)
            row = {"name": f"{name}: {title}", "value": share, "low": low, "high": high}
            rows.append(row | {"note": f"{len(right)} agents"})
    return rows
