"""Scores of the Melting Pot contest, one row an episode, as its analysis has them.

Tesic et al. 2025 (sections 3.1 and 3.2) describe what their table has: the submission, the scenario
and its substrate, the number of the episode, the normalised score per head of the focal population,
and a column of 0 and 1 for each of the demands. The table itself is not at hand, so the names of
columns are those of the paper's text: `Submission ID`, `Episode No`, `scenario`, `substrate` and
`normalized score`. Case, blanks and underscores do not matter. Every other column of 0 and 1 alone
is a demand.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.model.instances import Instances, OutcomeTable, TableError

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]

_WANTED: Final[Mapping[str, tuple[str, ...]]] = {
    "submission": ("submissionid", "submission"),
    "scenario": ("scenario", "scenarioname"),
    "episode": ("episodeno", "episode"),
    "score": ("normalizedscore", "normalisedscore", "score"),
    "substrate": ("substrate", "substratename"),
}
"""What a column is, and the names by which it is known; `substrate` may be absent."""
OF_SUBSTRATE: Final = "substrate_"
"""How the column of a substrate begins that `blocks` makes."""
INVERTED: Final = "without_"
"""How the column begins that `blocks` makes of a demand turned round."""


@dataclass(frozen=True, eq=False)
class ContestTable:
    """Scores of a contest.

    Attributes:
        submissions: Names of the submissions.
        scenarios: Names of the scenarios.
        substrates: (scenarios,), the substrate of each; empty names where it is not known.
        demands: Names of the demands.
        present: (scenarios, demands), 1 where a scenario has a demand.
        submission: (episodes,), row of the submission.
        scenario: (episodes,), row of the scenario.
        episode: (episodes,), number of the episode, from 1.
        score: (episodes,), normalised score.
    """

    submissions: tuple[str, ...]
    scenarios: tuple[str, ...]
    substrates: tuple[str, ...]
    demands: tuple[str, ...]
    present: Floats
    submission: Ints
    scenario: Ints
    episode: Ints
    score: Floats


def read_contest(path: Path) -> ContestTable:
    """Read a table of the contest's scores.

    Raises:
        TableError: It cannot be read, lacks a column, has a value that is no number, or a scenario
            with two sets of demands.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise TableError(f"{path}: cannot be read as CSV: {error}") from None
    if not rows:
        raise TableError(f"{path}: no rows")
    names = _columns(path, list(rows[0]))
    others = [name for name in rows[0] if name and name not in names.values()]
    demands = [name for name in others if all(row[name] in _BINARY for row in rows)]
    if not demands:
        raise TableError(f"{path}: no column of 0 and 1 alone, which a demand is")
    submissions, submission = _numbered([row[names["submission"]] for row in rows])
    scenarios, scenario = _numbered([row[names["scenario"]] for row in rows])
    present = np.full((len(scenarios), len(demands)), np.nan)
    substrates = [""] * len(scenarios)
    episodes: list[float] = []
    scores: list[float] = []
    for line, (row, place) in enumerate(zip(rows, scenario, strict=True), 2):
        asked = np.array([float(row[name]) for name in demands])
        where = row[names["substrate"]] if "substrate" in names else ""
        if np.isnan(present[place, 0]):
            present[place], substrates[place] = asked, where
        elif (present[place] != asked).any() or substrates[place] != where:
            raise TableError(
                f"{path}:{line}: scenario {scenarios[place]} has other demands, or another "
                "substrate, than in an earlier row"
            )
        episodes.append(_number(path, line, names["episode"], row))
        scores.append(_number(path, line, names["score"], row))
    return ContestTable(
        submissions,
        scenarios,
        tuple(substrates),
        tuple(demands),
        present,
        submission,
        scenario,
        np.array(episodes).astype(np.int64),
        np.array(scores),
    )


_BINARY: Final = frozenset({"0", "1", "0.0", "1.0"})


def _columns(path: Path, given: Sequence[str]) -> dict[str, str]:
    """Which column is what."""
    plain = {name: name.lower().replace(" ", "").replace("_", "") for name in given if name}
    found: dict[str, str] = {}
    for what, known in _WANTED.items():
        named = [name for name, short in plain.items() if short in known]
        if len(named) > 1:
            raise TableError(f"{path}: both {named[0]!r} and {named[1]!r} may be the {what}")
        if named:
            found[what] = named[0]
        elif what != "substrate":
            raise TableError(f"{path}: no column {known[0]!r}; there are {', '.join(given)}")
    return found


def _numbered(values: Sequence[str]) -> tuple[tuple[str, ...], Ints]:
    names = tuple(dict.fromkeys(values))
    place = {name: i for i, name in enumerate(names)}
    return names, np.array([place[value] for value in values], dtype=np.int64)


def _number(path: Path, line: int, column: str, row: Mapping[str, str]) -> float:
    try:
        value = float(row[column])
    except (TypeError, ValueError):
        value = float("nan")
    if not np.isfinite(value):
        raise TableError(f"{path}:{line}: {column} is {row[column]!r}; a number is wanted")
    return value


def blocks(table: ContestTable, of: int = 5) -> OutcomeTable:
    """Scores of blocks of episodes, min-max normalised, as the layout takes them (section 3.1).

    Beside the demands there are a column of each of them turned round, and one of each substrate.

    Args:
        table: The scores.
        of: Number of episodes in a block.
    """
    block = (table.episode - 1) // of
    count = int(block.max()) + 1
    place = table.scenario * count + block
    cells = len(table.scenarios) * count
    scores = np.full((len(table.submissions), cells), np.nan)
    for row in range(len(table.submissions)):
        own = table.submission == row
        played = np.bincount(place[own], minlength=cells)
        total = np.bincount(place[own], table.score[own], minlength=cells)
        scores[row] = np.where(played > 0, total / np.maximum(played, 1), np.nan)
    low, high = np.nanmin(scores), np.nanmax(scores)
    substrates = tuple(dict.fromkeys(name for name in table.substrates if name))
    on = np.array([[float(own == name) for name in substrates] for own in table.substrates])
    values = np.concatenate([table.present, 1.0 - table.present, on.reshape(len(on), -1)], axis=1)
    columns = (
        *table.demands,
        *(f"{INVERTED}{name}" for name in table.demands),
        *(f"{OF_SUBSTRATE}{name}" for name in substrates),
    )
    names = tuple(f"{name}-{b + 1:02d}" for name in table.scenarios for b in range(count))
    instances = Instances(columns, np.repeat(values, count, axis=0), names=names)
    return OutcomeTable(instances, table.submissions, (scores - low) / (high - low))


def simulated_table(
    seed: int,
    *,
    scenarios: Mapping[str, Floats],
    substrates: Sequence[str],
    expected: Floats,
    size: Floats,
    episodes: Sequence[int],
) -> ContestTable:
    """Scores of simulated submissions, in the form of the contest's.

    The scores of blocks of five scatter as a Beta variable of the submission's sample size does, so
    those of single episodes scatter five times as much.

    Args:
        seed: Seed of the scores.
        scenarios: (scenarios,) for each demand: 1 where it is present.
        substrates: (scenarios,).
        expected: (submissions, scenarios), expected score in (0, 1).
        size: (submissions,), sample size of a block of five.
        episodes: (submissions,), number of episodes of each scenario.
    """
    generator = rng(seed, "contest episodes", 0)
    count = len(substrates)
    rows: list[Ints] = []
    scenarios_of: list[Ints] = []
    numbers: list[Ints] = []
    scores: list[Floats] = []
    for row, played in enumerate(episodes):
        scenario = np.repeat(np.arange(count), played)
        single = max((float(size[row]) + 1.0) / 5.0 - 1.0, 0.2)
        p: Floats = np.clip(expected[row][scenario], 1e-3, 1.0 - 1e-3)
        rows.append(np.full(len(scenario), row))
        scenarios_of.append(scenario)
        numbers.append(np.tile(np.arange(1, played + 1), count))
        scores.append(generator.beta(p * single, (1.0 - p) * single))
    return ContestTable(
        tuple(f"simulated-{i + 1:02d}" for i in range(len(expected))),
        tuple(f"scenario-{i + 1:02d}" for i in range(count)),
        tuple(substrates),
        tuple(scenarios),
        np.stack(list(scenarios.values()), axis=1),
        np.concatenate(rows),
        np.concatenate(scenarios_of),
        np.concatenate(numbers),
        np.concatenate(scores),
    )
