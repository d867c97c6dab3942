"""`animalcat arena`: check, measure, draw and play arena files."""

from __future__ import annotations

import csv
import os
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import numpy as np
import typer
from rich.progress import Progress

from animalcat.arena_configs.builds import BUILDS, NEWEST, Build, build_named
from animalcat.arena_configs.checks import check_loaded
from animalcat.arena_configs.draws import OWN, UNITY, Draws, draws_by_name
from animalcat.arena_configs.features.definition import MeasuredFeatures
from animalcat.arena_configs.features.registry import FEATURES
from animalcat.arena_configs.features.start import bearing
from animalcat.arena_configs.loader import load_config
from animalcat.arena_configs.model import Arena, ArenaConfig, ArenaError, Problem
from animalcat.arena_configs.placement import Placement
from animalcat.arena_configs.reading import check_drawn
from animalcat.arena_configs.returns import max_return
from animalcat.arena_configs.sequence import arena_numbers, episode_arenas, episodes, merge_arenas
from animalcat.arenas.arena_files import same_names
from animalcat.cli.arena.families import make
from animalcat.cli.arena.files import found_files, instance_name, named_files, tell_problems
from animalcat.cli.shared.common import common, without
from animalcat.cli.shared.output import (
    FAILED,
    complain,
    console,
    fail,
    print_json,
    print_table,
    progress_console,
    say,
    wrote,
)
from animalcat.cli.shared.progress import progress
from animalcat.cli.shared.table import Column
from animalcat.cli.shared.tables import column_of, there
from animalcat.envs.types import CameraSpec, ObservationSpec
from animalcat.machine.kept import KeptTexts
from animalcat.machine.marks import mark
from animalcat.service.batteries.drafts import Draft, fixed_arena
from animalcat.service.batteries.file_features import FeatureRow, Plan, measure_files, place_by_plan
from animalcat.service.batteries.findings import alike
from animalcat.text.counts import count_of

if TYPE_CHECKING:
    from PIL.Image import Image

app = typer.Typer(help="Check, measure, draw and play arena files.", no_args_is_help=True)
app.command("make")(make)

MOST_ROWS: Final = 40
"""Problems that are listed one by one; more are grouped by kind."""
MOST_TOLD: Final = 20
"""Arenas of which it is said why they could not be measured."""

Seed = Annotated[
    int,
    typer.Option(metavar="NUMBER", min=0, help="The seed of what an arena leaves to chance."),
]
Rng = Annotated[
    str,
    typer.Option(
        "--rng",
        metavar="NAME",
        help="How chance is drawn: animalcat; or unity, as the build of Animal-AI draws it in a "
        "process with this seed.",
    ),
]
BuildName = Annotated[
    str,
    typer.Option(
        "--build",
        metavar="NAME",
        help=f"The build of Animal-AI that this is about: {', '.join(BUILDS)}; or its version, "
        "such as 4.3.1.",
    ),
]
Paths = Annotated[
    list[Path],
    typer.Argument(metavar="PATH", help="Arena files, or folders of them.", show_default=False),
]
File = Annotated[Path, typer.Argument(metavar="FILE", help="An arena file.", show_default=False)]
Number = Annotated[
    int | None,
    typer.Option(
        "--arena",
        metavar="NUMBER",
        help="The arena of this number in the file.",
        show_default="the first",
    ),
]


@app.command("check")
@without("--server", "--data")
def check_files(
    paths: Paths,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Refuse what the loader otherwise tolerates."),
    ] = False,
    seed: Seed = 0,
    rng: Rng = OWN,
    build: Annotated[
        str | None,
        typer.Option(
            "--build",
            metavar="NAME",
            help=f"The build of Animal-AI that is to read and play them: {', '.join(BUILDS)}; or "
            "its version, such as 4.3.1. Without it, what clients of 2.x wrote is tolerated.",
            show_default=NEWEST,
        ),
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="List every problem, however many there are.")
    ] = False,
) -> None:
    """Say what is wrong or doubtful in arena files, and in a battery that is made of a folder.

    More than 40 problems are grouped by kind, each with an example, unless --all is given. The
    exit code is 1 when there is an error.
    """
    chance = chance_of(rng, seed, build or NEWEST)
    results = _check_all(paths, strict, chance, by_build=build is not None)
    problems = [problem for _, _, problems_of in results for problem in problems_of]
    errors = sum(problem.severity == "error" for problem in problems)
    if common().as_json:
        print_json(
            [
                {
                    "file": name,
                    "loaded": loaded,
                    "problems": [_without_file(p) for p in problems_of],
                }
                for name, loaded, problems_of in results
            ]
        )
    else:
        if len(problems) > MOST_ROWS and not every:
            columns = ["severity", "code", "problems", "files", "for example"]
            print_table(_kinds(problems), columns)
        elif problems:
            columns = ["file", "line", Column("field", 2), "severity", Column("code", 1), "message"]
            print_table([asdict(p) for p in problems], columns)
        clean = sum(not problems_of for _, _, problems_of in results)
        say(
            f"{count_of(len(results), 'file')}: {clean} clean, {count_of(errors, 'error')}, "
            f"{count_of(len(problems) - errors, 'warning')}{_by_code(problems)}"
        )
    if errors:
        raise typer.Exit(FAILED)


@app.command()
@without("--server", "--data")
def features(
    paths: Paths,
    seed: Seed = 0,
    rng: Rng = OWN,
    build: BuildName = NEWEST,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", "--out", metavar="FILE.csv", help="Write a CSV file here."),
    ] = None,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain", help="Say why: the way, its turns and choices, and what hides the goal."
        ),
    ] = False,
    processes: Annotated[
        int,
        typer.Option(
            metavar="NUMBER",
            min=1,
            help="How many processes measure.",
            show_default="as many as there are processors",
        ),
    ] = os.cpu_count() or 1,
    cache: Annotated[
        bool,
        typer.Option(
            help="Reuse what was measured before of a file with this content, by the same "
            "definitions, and keep what is measured now (in ~/.cache/animalcat)."
        ),
    ] = True,
) -> None:
    """Measure the meta-features of arenas: what they demand, and what is in them.

    These are for example how long and winding the way to the nearest reward is, and from where the
    reward is seen. What an arena leaves to chance is drawn from the seed first. One arena is shown
    with the reason where a feature does not apply; for several, the table leaves out features that
    none of them has. The exit code is 1 when an arena cannot be read or built.
    """
    chance = chance_of(rng, seed, build)
    files = named_files(paths)
    with progress("measuring arenas") as tell:
        rows = measure_files(
            [path for path, _ in files],
            Plan(chance.seed, chance.rng, chance.build, explain),
            names=[name for _, name in files],
            processes=processes,
            cache=KeptTexts() if cache else None,
            tick=lambda done, total: tell("measuring arenas", done, total),
        )
    tell_problems(problem for row in rows for problem in row.problems)
    if output:
        _write_csv(output, rows)
        measured = sum(row.error is None for row in rows)
        number = count_of(len(rows), "row")
        wrote(number if measured == len(rows) else f"{number}, {measured} of them measured", output)
    if common().as_json:
        print_json([row.as_dict() for row in rows])
    elif explain or (len(rows) == 1 and not output):
        for row in rows:
            _print_demands(row)
    elif not output:
        shown = there([row.features or {} for row in rows])
        columns = ["instance", *shown, "drawn", "error"]
        print_table([_flat(row) for row in rows], columns)
    if not common().as_json:
        drawn = sum(bool(row.drawn) for row in rows)
        who = f"{drawn} of {count_of(len(rows), 'arena')} leave{'s' * (drawn == 1)} something to it"
        say(f"{chance.told()}; {who}", err=output is not None)
    if failed := [row for row in rows if row.error]:
        complain(_failures(failed, len(rows)))
        raise typer.Exit(FAILED)


@app.command()
@without("--server", "--data")
def show(
    file: File,
    number: Number = None,
    seed: Seed = 0,
    rng: Rng = OWN,
    build: BuildName = NEWEST,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Draw a map, as FILE.png, FILE.svg or FILE.pdf.",
        ),
    ] = None,
    with_features: Annotated[
        bool,
        typer.Option(
            "--features", help="Draw the way to the nearest reward, its turns and choices too."
        ),
    ] = False,
    first_person: Annotated[
        bool,
        typer.Option("--first-person", help="Draw what the agent sees after one step, not a map."),
    ] = False,
    resolution: Annotated[
        int,
        typer.Option(
            metavar="PIXELS",
            min=4,
            max=512,
            help="With --first-person: width and height of the picture, in pixels.",
        ),
    ] = 512,
) -> None:
    """Show what stands where in an arena, or draw it."""
    if with_features and output is None:
        fail("--features draws on the map: say where it goes, for example -o map.png")
    if first_person and output is None:
        fail("--first-person draws a picture: say where it goes, for example -o frame.png")
    from animalcat.envs.measure import measure_episode  # it loads the simulator

    chance = chance_of(rng, seed, build)
    config = _load(file, chance.build)
    arena = _arena(config, number)
    if arena.merge_next_arena:
        words = (
            "note: this arena merges with the next into one episode; --arena shows that one, and "
            "`arena features` measures the episode"
        )
        say(words, err=True)
    chosen = min(config.arenas) if number is None else number
    try:
        instance, episode, place = _episode_of(config, chosen, file.stem)
        placed, played_by = place_by_plan(
            episode, instance, Plan(chance.seed, chance.rng, chance.build)
        )
        placement = placed[place]
        measurement = measure_episode([placement], played_by)
    except ArenaError as error:
        fail(f"{file}: {error}")
    if common().as_json:
        measured = {
            "features": measurement.features.values,
            "missing": measurement.features.missing,
        }
        print_json({**_description(placement), **measured})
    else:
        _print_summary(file, placement, chance, measurement.features)
    if output is None:
        return
    try:
        if first_person:
            if chance.rng == OWN:  # the same as on the map
                fixed = fixed_arena(Draft(instance, "", episode, played_by))
                arena = episode_arenas(fixed)[place]
            arena = arena.model_copy(update={"merge_next_arena": False})
            _first_view(arena, chance, resolution).save(output)
        else:
            from animalcat.maps.figure import draw_map  # matplotlib takes a while to import

            at_rest = measurement.played[0].at_rest if with_features else None
            draw_map(placement, output, title=file.name, survey=at_rest)
        mark(output.parent)
    except (OSError, ValueError) as error:
        fail(f"cannot write {output}: {error}")
    wrote("view" if first_person else "map", output)


class Chance(NamedTuple):
    """How what arenas leave to chance is drawn."""

    rng: str
    seed: int
    build: Build

    def draws(self) -> Draws:
        """The source of the draws of one arena, at its beginning."""
        return draws_by_name(self.rng, self.seed, self.build)

    def told(self) -> str:
        """Say so in a sentence."""
        who = f"unity, build {self.build}" if self.rng == UNITY else self.rng
        words = f"what arenas leave to chance is drawn by {who}, from seed {self.seed}"
        return f"{words}{', as batteries draw it' * (self.rng == OWN)}"


def chance_of(rng: str, seed: int, build: str) -> Chance:
    """Return how chance is drawn; ends the command where it cannot be drawn so."""
    try:
        chance = Chance(rng, seed, build_named(build))
    except ValueError as error:
        fail(f"--build {build}: {error}")
    try:
        chance.draws()
    except ValueError as error:
        fail(f"--rng {rng}: {error}")
    return chance


def _load(path: Path, build: Build) -> ArenaConfig:
    if not path.is_file():
        fail(f"no such file: {path}")
    try:
        loaded = load_config(path)
    except ArenaError as error:
        fail(str(error))
    for problem in check_drawn(loaded, str(path), build):
        say(f"{problem.severity}: {problem}", err=True, fg=typer.colors.YELLOW)
    return loaded.config


def episodes_of(file: Path, name: str, number: int | None, build: Build) -> list[tuple[str, Arena]]:
    """The episodes of a file with their names, or the one that begins with an arena's number."""
    config = _load(file, build)
    try:
        if number is not None:
            return [(f"{name}-{number}", merge_arenas(config, number))]
        arenas = episodes(config)
        if not arenas:
            raise ArenaError("the configuration has no arena")
    except ArenaError as error:
        fail(f"{file}: {error}")
    return [(name if len(arenas) == 1 else f"{name}.{k}", arena) for k, arena in arenas.items()]


def _arena(config: ArenaConfig, number: int | None) -> Arena:
    if number is None:
        return config.first
    if number not in config.arenas:
        fail(f"no arena {number} in it; there are: {', '.join(map(str, sorted(config.arenas)))}")
    return config.arenas[number]


def _check_all(
    paths: Iterable[Path], strict: bool, chance: Chance, *, by_build: bool
) -> list[_FileReport]:
    """The files of all paths with their problems; a path is held for a battery of its own."""
    folders = [found_files(path) for path in paths]
    number = sum(len(folder.files) for folder in folders)
    results: list[_FileReport] = []
    with Progress(console=progress_console(), transient=True) as progress:
        task = progress.add_task("checking", total=number)
        for folder in folders:
            here: list[_FileReport] = []
            arenas: list[tuple[str, str, Arena]] = []
            for name, path in folder.files:
                result, known = _check_file(path, strict, chance, by_build=by_build)
                here.append(result)
                called = instance_name(name)
                arenas += [
                    (str(path), called if len(known) == 1 else f"{called}.{key}", arena)
                    for key, arena in known.items()
                ]
                progress.advance(task)
            same = [
                Problem(str(path), None, "", "error", "same-name", message)
                for path, message in same_names(folder)
            ]
            more = [*same, *alike(arenas)]
            results += [
                report._replace(
                    problems=(*report.problems, *(p for p in more if p.file == report.file))
                )
                for report in here
            ]
    return results


def _check_file(
    path: Path, strict: bool, chance: Chance, *, by_build: bool
) -> tuple[_FileReport, dict[int, Arena]]:
    """A file with its problems, and the arenas that its episodes start with, by number."""
    name = str(path)
    try:
        loaded = load_config(path, strict=strict, by_build=by_build)
    except ArenaError as error:
        return _FileReport(name, False, error.problems), {}
    problems = check_loaded(loaded, chance.draws(), file=name, build=chance.build)
    try:
        known = episodes(loaded.config)
    except ArenaError:
        known = dict[int, Arena]()  # one merges with a next one that is not there, which was said
    return _FileReport(name, True, problems), known


class _FileReport(NamedTuple):
    """A file, whether it could be read, and its problems."""

    file: str
    loaded: bool
    problems: tuple[Problem, ...]


def _kinds(problems: list[Problem]) -> list[dict[str, Any]]:
    """One row for each kind of problem, errors first, then the most frequent."""
    kinds: dict[tuple[str, str], list[Problem]] = defaultdict(list)
    for problem in problems:
        kinds[problem.severity, problem.code].append(problem)
    return [
        {
            "severity": severity,
            "code": code,
            "problems": len(these),
            "files": len({problem.file for problem in these}),
            "for example": _example(these[0]),
        }
        for (severity, code), these in sorted(
            kinds.items(), key=lambda kind: (kind[0][0], -len(kind[1]))
        )
    ]


def _example(problem: Problem) -> str:
    line = f":{problem.line}" if problem.line is not None else ""
    return f"{Path(problem.file).name}{line}: {problem.message}"


def _by_code(problems: list[Problem]) -> str:
    """How many there are of each code, the most frequent first; empty where there are none."""
    counts = Counter(problem.code for problem in problems).most_common()
    return f" ({', '.join(f'{code} {number}' for code, number in counts)})" if counts else ""


def _without_file(problem: Problem) -> dict[str, Any]:
    return {key: value for key, value in asdict(problem).items() if key != "file"}


def _failures(failed: list[FeatureRow], total: int) -> str:
    """Say how many rows have no features, and why the first of them."""
    whys = [
        row.error if row.error and row.file in row.error else f"{row.file}: {row.error}"
        for row in failed[:MOST_TOLD]
    ]
    more = len(failed) - len(whys)
    rest = [f"and {more} more; `animalcat arena check` says why"] if more else []
    lines = "".join(f"\n  {line}" for line in [*whys, *rest])
    return f"{len(failed)} of {total} could not be measured:{lines}"


def _print_demands(row: FeatureRow) -> None:
    """Print one arena's features, one below the other."""
    if row.features is None:
        console().print(f"{row.instance}: {row.error}", highlight=False)
        return
    if row.explanation is not None:
        console().print(row.instance, style="bold", highlight=False)
        for sentence in row.explanation["words"]:
            console().print(sentence, highlight=False)
    shown = [
        {
            "about": feature.group,
            "feature": name,
            "value": row.features.get(name, row.missing.get(name)),
            "unit": feature.unit,
        }
        for name, feature in FEATURES.items()
    ]
    columns = ["about", "feature", "value", "unit"]
    print_table(shown, columns, title=row.instance)


def _flat(row: FeatureRow) -> dict[str, Any]:
    values: dict[str, Any] = dict.fromkeys(FEATURES) | (row.features or {})
    start = {"instance": row.instance, "file": row.file, "arena": row.arena, "seed": row.seed}
    start |= {"rng": row.rng, "build": row.build}
    missing = "; ".join(f"{name}: {why}" for name, why in row.missing.items())
    return start | values | {"drawn": len(row.drawn), "missing": missing, "error": row.error}


def _write_csv(path: Path, rows: Iterable[FeatureRow]) -> None:
    heads = {name: column_of(name, feature.unit) for name, feature in FEATURES.items()}
    columns = [
        "instance",
        *FEATURES,
        "drawn",
        "seed",
        "rng",
        "build",
        "file",
        "arena",
        "missing",
        "error",
    ]
    try:
        mark(path.parent)
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, columns)
            writer.writerow({name: heads.get(name, name) for name in columns})
            writer.writerows(_flat(row) for row in rows)
    except OSError as error:
        fail(f"cannot write {path}: {error.strerror}")


def _first_view(arena: Arena, chance: Chance, resolution: int) -> Image:
    """What the agent sees after one step in which it does nothing."""
    # PhysX takes a while to import.
    from PIL.Image import fromarray

    from animalcat.envs.sim.environment import SimEnvironment

    spec = ObservationSpec(CameraSpec(resolution), None)
    rng = UNITY if chance.rng == UNITY else OWN
    environment = SimEnvironment(spec, chance.build, rng, chance.seed, tell=False)
    try:
        environment.load(arena, chance.seed)
        image = environment.step(0).observation.camera
    finally:
        environment.close()
    assert image is not None  # there is a camera
    return fromarray(image)


def _description(placement: Placement) -> dict[str, Any]:
    """An arena at its start, as plain data."""
    start = placement.agent
    best = max_return(placement)
    return {
        "time_limit": placement.time_limit,
        "pass_mark": placement.pass_mark,
        "best_return": best if np.isfinite(best) else None,
        "blackouts": list(placement.blackouts),
        "agent": {
            "position": list(start.position),
            "yaw": start.yaw,
            "frozen_seconds": start.frozen_seconds,
        },
        "objects": [
            {
                "name": thing.name,
                "position": list(thing.position),
                "yaw": thing.yaw % 360.0,
                "size": list(thing.size),
                "reward": thing.reward,
            }
            for thing in placement.objects
        ],
        "skipped": [{"name": s.name, "reason": s.reason} for s in placement.skipped],
        "drawn": dict(placement.drawn),
    }


def _episode_of(config: ArenaConfig, number: int, name: str) -> tuple[str, Arena, int]:
    """The episode that an arena belongs to: what a battery calls it, itself, the arena's place."""
    known = episodes(config)
    first = max(begin for begin in known if begin <= number)
    called = name if len(known) == 1 else f"{name}.{first}"
    return called, known[first], arena_numbers(config, first).index(number)


def _print_summary(
    file: Path, placement: Placement, chance: Chance, features: MeasuredFeatures
) -> None:
    start, out = placement.agent, console()
    seconds = placement.time_limit / 10
    limit = f"{placement.time_limit} ({seconds:g} s)" if placement.time_limit else "none"
    out.print(f"{file}", style="bold", highlight=False)
    out.print(
        f"time limit {limit}   pass mark {placement.pass_mark:g}   "
        f"best return below {max_return(placement):.4g}"
    )
    if placement.blackouts:
        out.print(f"blackouts {list(placement.blackouts)}")
    frozen = f", frozen for {start.frozen_seconds:g} s" if start.frozen_seconds else ""
    out.print(
        f"agent at ({start.position.x:.4g}, {start.position.z:.4g}), heading "
        f"{start.yaw:.4g} degrees{frozen}"
    )
    rows = [
        {
            "name": thing.name,
            "x": thing.position.x,
            "y": thing.position.y,
            "z": thing.position.z,
            "yaw": thing.yaw % 360.0,
            "size": " x ".join(f"{extent:.3g}" for extent in thing.size),
            "reward": thing.reward or None,
            "bearing": bearing(placement, thing),
        }
        for thing in placement.objects
    ]
    if rows:
        print_table(rows, list(rows[0]))
    cornered = {thing.source for thing in placement.objects if thing.cornered}
    for skipped in placement.skipped:
        what = "without a place" if skipped.source in cornered else "not spawned"
        out.print(f"{what}: {skipped.name}: {skipped.reason}")
    if placement.drawn:
        out.print(f"left to chance: {', '.join(placement.drawn)} ({chance.told()})")
    measured = features.values
    values = (f"{name} {measured[name]:.4g}" for name in there([measured]))
    out.print("   ".join(values), highlight=False)
