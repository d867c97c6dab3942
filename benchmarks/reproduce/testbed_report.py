"""The part of `python -m benchmarks.reproduce` about the entrants on the whole testbed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from itertools import count
from pathlib import Path
from typing import Any, Final

import numpy as np
import typer

from animalcat.arena_configs.builds import NEWEST
from animalcat.arena_configs.draws import OWN
from animalcat.arena_configs.outcome import success
from animalcat.arena_files import find_arena_files
from animalcat.cli.shared.outcome_table import read_pass_marks, read_rewards
from animalcat.cli.shared.output import fail, print_rows
from animalcat.cli.shared.progress import Tell
from animalcat.kept import KeptTexts
from animalcat.layouts.checking.baselines import MissingPackageError
from animalcat.layouts.model.instances import Instances, OutcomeTable
from animalcat.layouts.model.spec import Layout
from animalcat.measuring import Plan, measure_files
from benchmarks.reproduce.testbed import (
    MIDDLE,
    EntrantResult,
    compare,
    in_the_middle,
    not_chosen_on,
    told_apart,
    with_categories,
    work_on,
    work_out,
)

QUICK_ENTRANTS: Final = 4
"""Number of entrants with --quick."""
QUICK_SPLITS: Final = 2
"""Number of splits by task with --quick."""
QUICK_PARTICLES: Final = 200
"""Number of particles of a fit with --quick."""
CORRELATED: Final = 0.3
"""Absolute posterior correlation from which on two nodes are listed as hard to tell apart."""

Report = dict[str, Any]


def report_testbed(
    layout: Layout,
    data: Path,
    seed: int,
    *,
    repeats: int,
    processes: int,
    quick: bool,
    tell: Tell,
) -> Report:
    """Compare a layout with its baselines on the entrants' outcomes; ends the command if it cannot.

    Args:
        layout: The layout.
        data: Folder with aaio/ and animal-ai-competition/.
        seed: Seed of splits and fits.
        repeats: Number of splits by task.
        processes: Number of processes.
        quick: Whether to take few entrants, few splits and few particles.
        tell: Told of progress.
    """
    table = read_testbed(layout, data, processes=processes, tell=tell)
    given: dict[str, int] = {"repeats": repeats}
    if quick:
        # Entrants from the whole range of success.
        order = np.argsort(np.nanmean(table.outcomes, axis=1), kind="stable")
        places = np.linspace(0, len(order) - 1, min(QUICK_ENTRANTS, len(order))).round()
        rows: list[int] = order[places.astype(int)].tolist()
        agents = tuple(table.agents[i] for i in rows)
        table = OutcomeTable(table.instances, agents, table.outcomes[rows])
        given = {"repeats": min(repeats, QUICK_SPLITS), "particles": QUICK_PARTICLES}
    try:
        tasks = work_on(layout, table, seed, **given)
        step = _stepper(tell, "predicting entrants", len(tasks))
        worked = work_out(tasks, processes=processes, done=step)
    except (MissingPackageError, ValueError) as error:
        fail(str(error))
    return {
        "layout": {"name": layout.name, "variant": layout.variant, "digest": layout.digest},
        "arenas": len(table.instances),
        "splits": given["repeats"],
        "quick": quick,
        **summarised(layout, table.instances, worked),
    }


def summarised(layout: Layout, instances: Instances, worked: list[EntrantResult]) -> Report:
    """What was worked out, as JSON has it."""
    every = {"all": worked, "middle": in_the_middle(worked), "others": not_chosen_on(worked)}
    groups = {name: group for name, group in every.items() if len(group) > 1}
    nodes, pairs = told_apart(layout, with_categories(instances, layout), worked)
    categories = sorted({name for one in worked for name in one.scores.each_category})
    means = {
        name: {
            assessor: float(np.mean([one.scores.each_category[name][assessor] for one in worked]))
            for assessor in worked[0].scores.by_category
        }
        for name in categories
    }
    return {
        "by_task": {
            name: asdict(compare([one.scores.by_task for one in group]))
            for name, group in groups.items()
        },
        "by_category": {
            name: asdict(compare([one.scores.by_category for one in group]))
            for name, group in groups.items()
        },
        "categories": means,
        "nodes": [asdict(node) for node in nodes],
        "correlations": [asdict(pair) for pair in pairs],
        "entrants": [asdict(one.scores) for one in worked],
    }


def read_testbed(
    layout: Layout, data: Path, *, processes: int = 1, tell: Tell | None = None
) -> OutcomeTable:
    """The entrants' outcomes on all arenas at hand that the layout covers, with measured features.

    Args:
        layout: The layout.
        data: Folder with aaio/ and animal-ai-competition/.
        processes: How many processes measure arenas; what was measured before is kept.
        tell: Told of progress.
    """
    rewards = read_rewards(data / "aaio" / "final_rewards.csv")
    marks = read_pass_marks(data / "aaio" / "pass_marks.csv")
    folder = data / "animal-ai-competition"
    if not folder.is_dir():
        fail(f"{folder}: no such folder")
    played = set(rewards.index) & set(marks.dropna().index)
    files = [path for _, path in find_arena_files(folder).files if path.stem in played]
    if not files:
        fail(f"{folder}: no arena file of an instance with outcomes ({rewards.index[0]}, ...)")
    plan = Plan(0, OWN, NEWEST)

    def tick(done: int, total: int) -> None:
        if tell is not None:
            tell("measuring arenas", done, total)

    measured = measure_files(files, plan, processes=processes, cache=KeptTexts(), tick=tick)
    names: list[str] = []
    values: list[list[float]] = []
    left: dict[str, list[str]] = {}
    for row in measured:
        features = row.features or {}
        why = row.error or layout.why_not(features, row.missing)
        if why:
            left.setdefault(why, []).append(row.instance)
            continue
        names.append(row.instance)
        values.append([features.get(name, float("nan")) for name in layout.feature_names])
    for why, which in left.items():
        typer.echo(f"note: {len(which)} arenas not covered ({which[0]}, ...): {why}", err=True)
    if not names:
        fail(f"{folder}: {layout.name} covers none of the {len(measured)} arenas")
    agents = tuple(map(str, rewards.columns))
    finals = rewards.reindex(names).to_numpy(float).T
    limits: list[float] = marks.reindex(names).tolist()
    columns: list[list[float]] = finals.tolist()
    passed = [[success(*pair) for pair in zip(one, limits, strict=True)] for one in columns]
    outcomes = np.where(np.isfinite(finals), np.array(passed, dtype=np.float64), np.nan)
    return OutcomeTable(
        Instances(layout.feature_names, np.array(values), names=tuple(names)), agents, outcomes
    )


def print_testbed(report: Mapping[str, Any]) -> None:
    """Print tables for people."""
    held = {
        "by_task": f"a fifth of the tasks held out, {report['splits']} splits",
        "by_category": "whole categories held out, each in turn",
    }
    words = {"all": "all entrants", "middle": "success {:g} to {:g}".format(*MIDDLE)}
    words["others"] = "entrants on whom nothing was chosen"
    name = f"{report['layout']['name']} ({report['layout']['variant']})"
    for part, how in held.items():
        for group, compared in report[part].items():
            rows = [{"predictor": name, "Brier": f"{compared['layout']:.4f}"}]
            rows += [
                {
                    "predictor": one["name"],
                    "Brier": f"{one['score']:.4f}",
                    "layout less it": f"{one['difference']:+.4f}",
                    "90 %": f"{one['low']:+.4f} to {one['high']:+.4f}",
                    "layout better for": f"{one['better']} of {compared['entrants']}",
                }
                for one in compared["others"]
            ]
            title = f"{words[group]} ({compared['entrants']}), {how}; {report['arenas']} arenas"
            print_rows(rows, list(rows[-1]), as_json=False, title=title)
    rows = [
        {"category": category, **{key: f"{value:.3f}" for key, value in scores.items()}}
        for category, scores in report["categories"].items()
    ]
    title = "Brier score in each category, while it is held out"
    print_rows(rows, list(rows[0]), as_json=False, title=title)
    rows = [
        {
            "node": node["node"],
            "unit": node["unit"],
            "arenas": node["arenas"],
            "contraction": f"{node['contraction']:.2f}",
            "sd": f"{node['sd']:.2f}",
            "spread": f"{node['spread']:.2f}",
        }
        for node in report["nodes"]
    ]
    title = "What the outcomes tell of each node (sd and spread as shares of its range)"
    print_rows(rows, list(rows[0]), as_json=False, title=title)
    near = [pair for pair in report["correlations"] if abs(pair["correlation"]) >= CORRELATED]
    if not near:
        most = report["correlations"][0]
        typer.echo(
            f"No two nodes are hard to tell apart: the largest mean correlation is "
            f"{most['correlation']:.2f} ({most['first']}, {most['second']})"
        )
        return
    rows = [{**pair, "correlation": f"{pair['correlation']:+.2f}"} for pair in near]
    title = f"Nodes that are hard to tell apart: mean posterior correlation of {CORRELATED} or more"
    print_rows(rows, list(rows[0]), as_json=False, title=title)


def _stepper(tell: Tell, words: str, total: int) -> Callable[[], None]:
    tell(words, 0, total)
    done = count(1)
    return lambda: tell(words, next(done), total)
