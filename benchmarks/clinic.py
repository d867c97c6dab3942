"""`python -m benchmarks.clinic SETS`: how often the clinic names sound items, and finds faults.

Each set has 40 items of a Rasch model, a demand that says how hard they are but for 0.2 logits, and
two groups of agents of equal ability. Half of the sets are sound. In the others each of seven more
items has a fault of its own.
"""

from __future__ import annotations

import sys
from collections import Counter

import numpy as np
from scipy.special import expit

from animalcat.doors.clinic.examining import FAULTS, Responses, clinic

ITEMS = 40
PLANTED = {
    "floor": "floor",
    "reversed": "reversed",
    "coin": "tells little",
    "twin": "twin",
    "mislabelled": "against its demands",
    "unequal": "differs by group",
}


def responses(agents: int, seed: int, faulty: bool) -> Responses:
    """Outcomes of agents, with faults or without."""
    g = np.random.default_rng(seed)
    ability, difficulty = g.standard_normal(agents), g.normal(0.0, 1.0, ITEMS)
    group = np.arange(agents) % 2
    p = [expit(1.2 * (ability - one)) for one in difficulty]
    levels = [*difficulty]
    names = [f"i{k}" for k in range(ITEMS)]
    if faulty:
        names += PLANTED
        levels += [2.0, 0.0, 0.9, difficulty[0], 1.5, 0.0]
        p += [np.zeros(agents), expit(-1.2 * ability), np.full(agents, 0.25), p[0]]
        p += [expit(1.2 * (ability + 1.5)), expit(1.2 * ability + 2.4 * (group - 0.5))]
    outcomes = np.array([g.random(agents) < one for one in p], np.float64).T
    if faulty:
        twin = names.index("twin")
        outcomes[:, twin] = np.where(g.random(agents) < 0.05, 1 - outcomes[:, 0], outcomes[:, 0])
    told = np.array(levels) + g.normal(0.0, 0.2, len(levels))
    return Responses(
        tuple(f"a{k}" for k in range(agents)), tuple(names), outcomes,
        tuple("AB"[k] for k in group), told[:, np.newaxis], ("level",),
    )  # fmt: skip


def main() -> int:
    """Print how often each kind was named: of sound items, and of those planted."""
    sets = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    for agents in (30, 100, 300):
        false: Counter[str] = Counter()
        found: Counter[str] = Counter()
        touched, sound, unequal = 0, 0, 0
        for seed in range(sets):
            for faulty in (False, True):
                made = clinic(responses(agents, 2 * seed + faulty, faulty), length=5)
                by_group = {one.item for one in made.items if "differs by group" in one.kinds}
                unequal += bool(by_group - {"unequal"})
                for item in made.items:
                    if item.item in PLANTED:
                        found[item.item] += PLANTED[item.item] in item.kinds
                    elif not (faulty and item.item == "i0"):  # the twin of the planted one
                        sound += 1
                        touched += bool(item.faults)
                        false.update(kind for kind in item.kinds if kind in FAULTS)
        print(f"{agents} agents: {touched} of {sound} sound items named {dict(false)}")
        print(f"  sets with a sound item that differs by group: {unequal} of {2 * sets}")
        print(f"  planted, found of {sets}: {dict(found)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
