"""Selects of measured instances those among which demands do not go together.

Whole tasks are left out: an instance with its controls and variants. First go tasks with an
instance that the planner did not solve, then one by one the task without which demands go together
least.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Final

import numpy as np

from animalcat.arena_configs.instance import Instance
from animalcat.layouts.model.spec import Layout
from animalcat.service.batteries.separation import DemandRows, Floats

_POWER: Final = 4
"""Power of the correlations whose sum is made small: high, so that the largest count most."""
_DIGITS: Final = 9
"""Decimals to which sums are compared, so that processors that round differently choose alike."""


def select(
    layout: Layout, instances: Sequence[Instance], keep: int, unsolved: Collection[str] = ()
) -> set[str]:
    """Choose instances so that demands go together as little as possible.

    Tasks at the ends, in which all demands but one are easy, are not left out for the sake of
    correlations.

    Args:
        layout: The layout whose demands are meant.
        instances: Measured instances.
        keep: How many there are to be. Tasks are not torn apart, so a few more may remain.
        unsolved: Names of those that the planner did not solve.

    Returns:
        Names of the chosen instances.
    """
    tasks = {
        instance.name: instance.origin.task if instance.origin else instance.name
        for instance in instances
    }
    sizes = Counter(tasks.values())
    spare = len(instances) - keep
    dropped = set[str]()
    for task in dict.fromkeys(tasks[name] for name in sorted(unsolved)):
        if sizes[task] <= spare:
            dropped.add(task)
            spare -= sizes[task]
    left = [instance for instance in instances if tasks[instance.name] not in dropped]
    table = DemandRows.of(layout, left)
    ends = {tasks[name] for end in table.ends() for name in end.instances}
    dropped |= _least_together(table, sizes, ends, spare)
    return {name for name, task in tasks.items() if task not in dropped}


def _least_together(
    table: DemandRows, sizes: Mapping[str, int], fixed: Collection[str], spare: int
) -> set[str]:
    """The tasks to leave out, at most so many instances, so that demands go together least."""
    inside = np.flatnonzero(table.within)
    columns = [table.column(name)[inside] for name in table.varying]
    if len(columns) < 2:
        return set()
    from scipy.stats import rankdata  # a server that lists sessions need not load it

    ranks = np.column_stack([rankdata(column) for column in columns])
    ranks = (ranks - ranks.mean(axis=0)) / ranks.std(axis=0)
    moments: dict[str, Floats] = {}
    width = len(columns) + 1
    for row, k in zip(ranks, inside, strict=True):
        whole = np.array([1.0, *row])
        task = table.tasks[k]
        moments[task] = moments.get(task, np.zeros((width, width))) + np.outer(whole, whole)
    free = [task for task in moments if task not in fixed]
    everything: Floats = np.sum(list(moments.values()), axis=0)
    dropped = set[str]()
    while True:
        fits = [task for task in free if sizes[task] <= spare and task not in dropped]
        if not fits:
            return dropped
        losses = _losses(everything - np.stack([moments[task] for task in fits]))
        best = fits[int(np.argmin(losses.round(_DIGITS)))]
        everything = everything - moments[best]
        dropped.add(best)
        spare -= sizes[best]


def _losses(moments: Floats) -> Floats:
    """Summed powers of all correlations.

    Args:
        moments: (choices, 1 + demands, 1 + demands): number, sums, and sums of products.
    """
    number = moments[:, 0, 0][:, np.newaxis, np.newaxis]
    means = moments[:, 0, 1:] / number[:, 0]
    spread = moments[:, 1:, 1:] / number - means[:, :, np.newaxis] * means[:, np.newaxis, :]
    sd = np.sqrt(np.maximum(np.diagonal(spread, axis1=1, axis2=2), 1e-12))
    rho = spread / (sd[:, :, np.newaxis] * sd[:, np.newaxis, :])
    upper = np.triu_indices(rho.shape[1], 1)
    losses: Floats = (np.abs(rho[:, upper[0], upper[1]]) ** _POWER).sum(axis=1)
    return losses
