"""Says in a few lines what checks find in the arena files of a battery."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Final

import numpy as np

from animalcat.arena_configs.checks import check_loaded
from animalcat.arena_configs.loader import LoadedConfig
from animalcat.arena_configs.model import Arena, Problem
from animalcat.service.batteries.drafts import Draft

EACH: Final = 5
"""Problems of a kind that are told one by one; of more only their number and an example."""
_BY_MARKS: Final = ("unreachable-pass-mark", "sure-pass")
"""Kinds that `marks` finds in the instances, whose values are fixed."""


def found_in(loaded: LoadedConfig, file: str, seed: int) -> list[Problem]:
    """The problems of a file, as `arena check` finds them, but for those of pass marks.

    Args:
        loaded: The file's content.
        file: Its name.
        seed: Seed of what it leaves to chance.
    """
    found = check_loaded(loaded, np.random.default_rng(seed), file=file)
    return [problem for problem in found if problem.code not in _BY_MARKS]


def in_lines(problems: Iterable[Problem]) -> list[str]:
    """Tell problems in lines: errors first, then the rarest kind."""
    kinds: dict[tuple[str, str], list[Problem]] = defaultdict(list)
    for problem in problems:
        kinds[problem.severity, problem.code].append(problem)
    lines: list[str] = []
    for (_, code), found in sorted(kinds.items(), key=lambda one: (one[0][0], len(one[1]))):
        if len(found) <= EACH:
            lines += map(str, found)
        else:
            files = len({problem.file for problem in found})
            lines.append(f"{code}: {len(found)} times in {files} files, as in {found[0]}")
    return lines


def alike(drafts: Iterable[Draft]) -> list[str]:
    """Say how many arenas are the same as others under another name."""
    names: dict[Arena, list[str]] = defaultdict(list)
    for draft in drafts:
        names[draft.arena].append(draft.name)
    groups = [same for same in names.values() if len(same) > 1]
    if not groups:
        return []
    few = ", ".join(groups[0][:3]) + (", ..." if len(groups[0]) > 3 else "")
    return [
        f"{sum(map(len, groups))} arenas are only {len(groups)} under several names ({few}): they "
        "are the same but for what is left to chance, so outcomes on them tell less than they seem"
    ]
