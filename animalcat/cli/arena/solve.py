"""`animalcat arena solve`: the planner plays arenas, to find those that cannot be solved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from animalcat.arena_configs.model import ArenaError
from animalcat.arena_configs.reading import read_played
from animalcat.cli.arena.files import arena_files, tell_problems
from animalcat.cli.arena.options import AsJson, Paths
from animalcat.cli.shared.output import FAILED, print_json, print_rows
from animalcat.cli.shared.progress import progress
from animalcat.cli.shared.table import Column
from animalcat.machine.processes import process_pool


@dataclass(frozen=True, slots=True)
class SolvedRow:
    """How the planner fared in an arena with one seed.

    Attributes:
        file: Of the arena.
        instance: Name of the arena.
        seed: Of what it leaves to chance.
        solved: Whether the planner passed it.
        episode_return: What it returned; None where the arena cannot be built.
        pass_mark: The arena's pass mark; None where it cannot be read.
        steps: Decisions taken.
        reason: Why it is not solved; empty if it is.
        problems: What is doubtful in the file.
    """

    file: str
    instance: str
    seed: int
    solved: bool
    episode_return: float | None
    pass_mark: float | None
    steps: int
    reason: str
    problems: tuple[str, ...] = ()


def solve_arenas(
    paths: Paths,
    seeds: Annotated[
        int,
        typer.Option(
            metavar="NUMBER",
            min=1,
            help="Play each arena with so many seeds of what it leaves to chance: 0, 1, ...",
        ),
    ] = 1,
    processes: Annotated[
        int,
        typer.Option(
            metavar="NUMBER",
            min=1,
            max=64,
            help="How many processes play.",
        ),
    ] = 1,
    every: Annotated[
        bool, typer.Option("--all", help="List the arenas that are solved, too.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Find out which arenas can be solved: the planner plays each in the simulator.

    The planner knows where everything is. An arena that it solves can be solved; one that it does
    not solve is listed with the reason, and may be beyond the planner rather than beyond everyone.
    The exit code is 1 when an arena is not solved, cannot be read or cannot be built.
    """
    files = arena_files(paths)
    jobs = [(path, seed) for path in files for seed in range(seeds)]
    rows: dict[tuple[Path, int], SolvedRow] = {}
    with progress("solving arenas") as tell:
        for job, row in _solved(jobs, min(processes, len(jobs))):
            rows[job] = row
            tell("solving arenas", len(rows), len(jobs))
    ordered = [rows[job] for job in jobs]
    tell_problems(problem for row in ordered for problem in row.problems)
    solved = sum(row.solved for row in ordered)
    if as_json:
        print_json([asdict(row) for row in ordered])
    else:
        shown = [asdict(row) for row in ordered if every or not row.solved]
        if shown:
            columns = [
                "instance",
                Column("seed", 2),
                "solved",
                Column("episode_return", 1),
                Column("pass_mark", 1),
                Column("steps", 3),
                "reason",
            ]
            print_rows(shown, columns, as_json=False)
        typer.echo(f"{solved} of {len(ordered)} solved{_most_common(ordered)}")
    if solved < len(ordered):
        raise typer.Exit(FAILED)


def _most_common(rows: Sequence[SolvedRow]) -> str:
    """The commonest reasons of failure, in words."""
    reasons = Counter(row.reason for row in rows if not row.solved).most_common(3)
    listed = ", ".join(f"{reason} ({number})" for reason, number in reasons)
    return f"; most often: {listed}" if listed else ""


def _solved(
    jobs: Sequence[tuple[Path, int]], processes: int
) -> Iterator[tuple[tuple[Path, int], SolvedRow]]:
    if processes <= 1:
        for job in jobs:
            yield job, solve_file(*job)
        return
    with process_pool(processes) as pool:
        waiting = {pool.submit(solve_file, *job): job for job in jobs}
        for done in as_completed(waiting):
            yield waiting[done], done.result()


def solve_file(path: Path, seed: int) -> SolvedRow:
    """Let the planner play the first arena of a file, with those that it merges with."""
    from animalcat.envs.agents.planner.solving import solve  # it loads the simulator

    try:
        arena, problems = read_played(path)
        solution = solve(arena, seed)
    except ArenaError as error:
        return SolvedRow(str(path), path.stem, seed, False, None, None, 0, str(error))
    return SolvedRow(
        str(path),
        path.stem,
        seed,
        solution.solved,
        round(solution.episode_return, 6),
        solution.pass_mark,
        solution.steps,
        solution.reason,
        tuple(map(str, problems)),
    )
