"""Says in a few lines what checks find in the arena files of a battery."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Final

import numpy as np

from animalcat.arena_configs.checks import OF_MARKS, check_loaded
from animalcat.arena_configs.loader import LoadedConfig
from animalcat.arena_configs.model import Arena, Problem

EACH: Final = 5
"""Problems of a kind that are told one by one; of more only their number and an example."""
_BY_MARKS: Final = (*OF_MARKS, "no-time-limit")
"""Kinds that `marks` finds in the instances, whose values are fixed."""


def problems_of(loaded: LoadedConfig, file: str, seed: int) -> list[Problem]:
    """The problems of a file, as `arena check` finds them, but for those of pass marks.

    Args:
        loaded: The file's content.
        file: Its name.
        seed: Seed of what it leaves to chance.
    """
    problems = check_loaded(loaded, np.random.default_rng(seed), file=file)
    return [problem for problem in problems if problem.code not in _BY_MARKS]


def in_lines(problems: Iterable[Problem]) -> list[str]:
    """Tell problems in lines: errors first, then the rarest kind."""
    kinds: dict[tuple[str, str], list[Problem]] = defaultdict(list)
    for problem in problems:
        kinds[problem.severity, problem.code].append(problem)
    lines: list[str] = []
    for (_, code), of_kind in sorted(kinds.items(), key=lambda item: (item[0][0], len(item[1]))):
        if len(of_kind) <= EACH:
            lines += map(str, of_kind)
        else:
            files = len({problem.file for problem in of_kind})
            lines.append(f"{code}: {len(of_kind)} times in {files} files, as in {of_kind[0]}")
    return lines


def alike(arenas: Iterable[tuple[str, str, Arena]]) -> list[Problem]:
    """Say which arenas are the same as others under another name.

    Args:
        arenas: The arenas of a battery, each after its file and the name of its instance.

    Returns:
        A warning for each arena of which there are several, on the second file that has it.
    """
    known: dict[Arena, list[tuple[str, str]]] = defaultdict(list)
    for file, name, arena in arenas:
        known[arena].append((file, name))
    problems: list[Problem] = []
    for same in known.values():
        if len(same) > 1:
            few = ", ".join(name for _, name in same[:3]) + (", ..." if len(same) > 3 else "")
            message = (
                f"{len(same)} arenas are one arena under several names ({few}): they differ only "
                "in what is left to chance, so outcomes on them say less than they seem to"
            )
            problems.append(Problem(same[1][0], None, "arenas", "warning", "same-arena", message))
    return problems
