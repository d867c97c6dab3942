"""Reads the arena that is to be played: what is wrong is raised, and what is doubtful is said."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np

from animalcat.arena_configs.builds import NEWEST, Build
from animalcat.arena_configs.checks import OF_BATTERY, check_loaded
from animalcat.arena_configs.loader import LoadedConfig, load_config, load_text
from animalcat.arena_configs.model import Arena, ArenaConfig, ArenaError, ArenaWarning, Problem
from animalcat.arena_configs.sequence import ArenaSequence, arena_numbers, merge_arenas

UNPASSABLE: Final = "unreachable-pass-mark"
"""Code of the error that no play exceeds the pass mark."""
_DRAWS: Final = 5
"""What an arena leaves to chance may be at fault in one draw: an error is one in so many."""
_MOST: Final = 5
"""Most problems that a message lists."""


def read_arena(
    source: Arena | Path | str,
    *,
    build: Build = NEWEST,
    keep_unpassable: bool = False,
) -> Arena:
    """Read an arena and check it, as `animalcat arena check` does.

    What is doubtful, such as an object that Animal-AI does not know, is warned of.

    Args:
        source: An arena, the path of a file, or YAML text (which has a line break). Of several
            arenas the first is read, together with those that it merges with.
        build: The build that is to play it.
        keep_unpassable: Whether an arena is read also where no play exceeds its pass mark.

    Raises:
        ArenaError: It cannot be read, or there is an error in it; `problems` has all that was
            found.
    """
    arena, problems = read_played(source, build)
    allowed = {UNPASSABLE} if keep_unpassable else set[str]()
    errors = [
        problem
        for problem in problems
        if problem.severity == "error" and problem.code not in allowed
    ]
    doubts = [problem for problem in problems if problem.severity == "warning"]
    if errors:
        passes = any(problem.code == UNPASSABLE for problem in errors)
        remedy = "\n  Add what can be earned, or lower passMark" if passes else "\n  Mend the file"
        kept = "; with keep_unpassable it is played all the same" if passes else ""
        text = f"{_list_problems([*errors, *doubts])}{remedy}{kept}."
        raise ArenaError(text, (*errors, *doubts))
    if doubts:
        # The place is here, so that it is said once for each file, whoever reads it.
        warnings.warn(_list_problems(doubts), ArenaWarning, stacklevel=1)
    return arena


def read_played(
    source: Arena | Path | str, build: Build = NEWEST
) -> tuple[Arena, tuple[Problem, ...]]:
    """Read the arena that is played, and find what is wrong or doubtful in it.

    Args:
        source: As for `read_arena`.
        build: The build that is to play it.

    Raises:
        ArenaError: It cannot be read.
    """
    name, loaded = _load_source(source)
    arena = source if isinstance(source, Arena) else merge_arenas(loaded.config)
    return arena, _episode_problems(name, loaded, build)


def check_drawn(loaded: LoadedConfig, file: str, build: Build = NEWEST) -> tuple[Problem, ...]:
    """Check a file by several draws of what it leaves to chance.

    Args:
        loaded: The loaded file.
        file: Its name, for the problems.
        build: The build that is to play it.

    Returns:
        The problems of the first draw, without those that concern batteries alone (`OF_BATTERY`).
        An error of the first draw becomes a warning where another draw does not have it.
    """
    first = check_loaded(loaded, np.random.default_rng(0), file=file, build=build)
    problems = [problem for problem in first if problem.code not in OF_BATTERY]
    errors = {(problem.field, problem.code) for problem in problems if problem.severity == "error"}
    for seed in range(1, _DRAWS):
        if not errors:
            break
        again = check_loaded(loaded, np.random.default_rng(seed), file=file, build=build)
        errors &= {
            (problem.field, problem.code) for problem in again if problem.severity == "error"
        }
    return tuple(
        replace(problem, severity="error" if (problem.field, problem.code) in errors else "warning")
        for problem in problems
    )


def _load_source(source: Arena | Path | str) -> tuple[str, LoadedConfig]:
    if isinstance(source, Arena):
        config = (
            source.config()
            if isinstance(source, ArenaSequence)
            else ArenaConfig(arenas={0: source})
        )
        return "", LoadedConfig(config, (), {})
    if isinstance(source, str) and "\n" in source:
        name = "the arena given as text"
        return name, load_text(source, name)
    return str(source), load_config(Path(source))


def _episode_problems(name: str, loaded: LoadedConfig, build: Build) -> tuple[Problem, ...]:
    """What is found in the arenas that are played, and that there are others."""
    arenas = loaded.config.arenas
    played = arena_numbers(loaded.config, min(arenas))
    paths = tuple(f"arenas[{number}]" for number in played)
    here = loaded.config.model_copy(
        update={"arenas": {number: arenas[number] for number in played}}
    )
    met = tuple(
        problem
        for problem in loaded.problems
        if not problem.field.startswith("arenas[") or problem.field.startswith(paths)
    )
    problems = check_drawn(replace(loaded, config=here, problems=met), name, build)
    if left := len(arenas) - len(played):
        message = (
            f"there are {len(arenas)} arenas: arena {played[0]} is played"
            f"{' with those that it merges with' if played[1:] else ''}, and the other {left} are "
            "not; give them one by one"
        )
        problems += (Problem(name, None, "arenas", "warning", "not-played", message),)
    return problems


def _list_problems(problems: Iterable[Problem]) -> str:
    """Problems, one a line, the first few in full."""
    first, *rest = problems
    shown = [str(first), *(f"  {problem}" for problem in rest[: _MOST - 1])]
    if (more := len(rest) - (_MOST - 1)) > 0:
        shown.append(f"  and {more} more, which `animalcat arena check` lists")
    return "\n".join(shown)
