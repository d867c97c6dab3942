"""The object permanence battery and the 30 synthetic agents of Burden et al. 2023, sections D.2-4.

The paper prints neither the battery nor the agents' code. The battery has the structure that the
paper prints (paradigms, counts, ranges of Table 4); what it leaves open is set so that the success
rates which Table 8 gives away (the Brier score of the aggregate is p (1 - p)) come out:
- instances: 598 cup, 430 grid, 639 chick, 521 basic. Section D.2 says 1,195 chick controls, which
  would be more than its total of 2,188; with 603, agents 19 to 30 come out as printed;
- positions: *alternative* places (Table 4): cups 2, grids of 4, 8 and 12 holes 3, 7 and 11, chicks
  1, and 1 where nothing is hidden, from agent 18;
- lava in all chick tasks, half of the cup tasks and a third of the basic ones (agents 6 and 10);
- ramps in all cup and grid tasks and some basic ones (agents 9, 19); platforms in all grid and
  chick tasks and nowhere else (agent 23, whom the paper predicts nearly without error);
- occluders also stand in a third of the controls, without hiding anything (agents 7, 8); their
  colours are the six of O-PIAAGETS, and random.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.model.instances import Instances

Floats: TypeAlias = npt.NDArray[np.float64]
Mask: TypeAlias = npt.NDArray[np.bool_]
AgentClass: TypeAlias = Literal["reference", "achilles heel", "fraudster", "context-specific"]

PARADIGMS: Final[dict[str, int]] = {
    "cup-op": 359,
    "cup-control": 239,
    "grid-op": 191,
    "grid-control": 239,
    "chick-op": 36,
    "chick-control": 603,
    "basic": 521,
}
"""Instances of each paradigm: 2,188 together."""

FEATURES: Final = (
    "rampPresence",
    "lavaPresence",
    "platformPresence",
    "goalDistance",
    "goalSize",
    "rightLeftPosition",
    "occluderPresence",
    "timeUnderOcc",
    "numPositions",
)
"""Meta-features of Table 5, in its order."""
HIDDEN: Final = (
    "rewardVisibility",
    "occluderRedness",
    "occluderGreenness",
    "occluderBlueness",
    "lastSeenMisleads",
)
"""What only the agents are told: those of Table 4 with an asterisk, and whether going to where the
reward was last seen ends in lava. Colours are 0 where there is no occluder."""

TASKS: Final = ("cupTask", "gridTask", "chickTask")
"""Which apparatus an instance is, as `with_tasks` says it: what the paper's layout is not told."""

_COLOURS: Final = (
    (1, 1, 153),
    (153, 153, 153),
    (1, 100, 1),
    (236, 195, 153),
    (248, 253, 212),
    (102, 51, 1),
)
"""DarkBlue, Grey, DarkGreen, Beige, OffWhite and Brown of the O-PIAAGETS files."""


def op_battery(seed: int) -> Instances:
    """Make the object permanence battery: 2,188 instances, with `FEATURES` and `HIDDEN`."""
    generator = np.random.default_rng(seed)
    paradigms = np.repeat(list(PARADIGMS), list(PARADIGMS.values()))
    n = len(paradigms)
    suite = np.array([name.split("-")[0] for name in paradigms])
    hidden = np.char.endswith(paradigms, "-op")
    cup, grid, chick, basic = (suite == name for name in ("cup", "grid", "chick", "basic"))

    def some(share: float) -> Mask:
        return generator.random(n) < share

    def pick(values: npt.ArrayLike) -> Floats:
        return generator.choice(np.asarray(values, dtype=np.float64), n)

    positions = np.select([cup, grid], [np.full(n, 2.0), pick([3, 7, 11])], 1.0)
    # Rows of holes and ramps stand at a few distances; basic tasks are anywhere.
    distance = np.select(
        [grid, cup], [pick([16, 22, 28]), pick(np.arange(18, 37))], pick(np.arange(2, 57))
    )
    sides = np.where(chick, pick([-1, 1]), pick([-1, 0, 1]))
    occluder = hidden | (~basic & some(1 / 3))
    colours = np.array(_COLOURS, dtype=np.float64)[generator.integers(len(_COLOURS), size=n)]
    colours = np.where(
        some(1 / (len(_COLOURS) + 1))[:, np.newaxis], generator.integers(256, size=(n, 3)), colours
    )
    misleads = np.zeros(n)
    misleads[
        generator.permutation(np.flatnonzero(chick & hidden))[: PARADIGMS["chick-op"] // 2]
    ] = 1
    columns = {
        "rampPresence": cup | grid | (basic & some(0.38)),
        "lavaPresence": chick | (cup & some(0.5)) | (basic & some(0.35)),
        "platformPresence": grid | chick,
        "goalDistance": distance,
        "goalSize": np.where(basic, pick(np.arange(1, 9) / 2), pick(np.arange(1, 7) / 2)),
        "rightLeftPosition": sides,
        "occluderPresence": hidden,
        "timeUnderOcc": np.where(hidden, pick(np.arange(1, 9) / 2), 0.0),
        "numPositions": np.where(hidden, positions, 1.0),
        "rewardVisibility": ~hidden,
        "occluderRedness": np.where(occluder, colours[:, 0], 0.0),
        "occluderGreenness": np.where(occluder, colours[:, 1], 0.0),
        "occluderBlueness": np.where(occluder, colours[:, 2], 0.0),
        "lastSeenMisleads": misleads,
    }
    assert tuple(columns) == (*FEATURES, *HIDDEN)
    values = np.stack([np.asarray(c, dtype=np.float64) for c in columns.values()], axis=1)
    counts = dict.fromkeys(PARADIGMS, 0)
    names: list[str] = []
    for paradigm in paradigms:
        counts[str(paradigm)] += 1
        names.append(f"{paradigm}-{counts[str(paradigm)]:03d}")
    return Instances(tuple(columns), values, tuple(str(p) for p in paradigms), tuple(names))


def with_tasks(battery: Instances) -> Instances:
    """Add the columns `TASKS`: 1 for the apparatus of an instance's paradigm, otherwise 0."""
    suites = [paradigm.split("-")[0] for paradigm in battery.paradigms]
    tasks = [[float(f"{suite}Task" == task) for task in TASKS] for suite in suites]
    values = np.column_stack([battery.values, np.array(tasks)])
    return Instances((*battery.columns, *TASKS), values, battery.paradigms, battery.names)


@dataclass(frozen=True, eq=False)
class SyntheticAgent:
    """One of the 30 agents.

    Attributes:
        number: Its number in Tables 6 and 7.
        group: Its class.
        about: What it does.
        rule: Computes the probability of success from the instances.
        truth: Its capabilities as shares of their ranges, where the description settles them. The
            paper does not print them: 1 means no limit, and a limit is where success is as likely
            as failure.
        known: Whether the description uses only what the layout knows ("included" in Table 1).
    """

    number: int
    group: AgentClass
    about: str
    rule: Callable[[Instances], Floats]
    truth: Mapping[str, float]
    known: bool

    @property
    def name(self) -> str:
        """Its name in the paper."""
        return f"Agent {self.number}"

    def probability(self, instances: Instances, episode: int = 0, outcome: int = 0) -> Floats:
        """Probability of success, (instances,); it does not depend on the episode."""
        return np.broadcast_to(self.rule(instances), len(instances)).astype(np.float64)


_CONTEXTS: Final = (
    ("chick",),
    ("grid",),
    ("cup",),
    ("chick", "grid"),
    ("cup", "grid"),
    ("chick", "cup"),
)
"""What the context-specific agents solve, two agents each."""

CAPABILITIES: Final = (
    "OPAbility",
    "memoryAbility",
    "visualAbility",
    "rampAbility",
    "lavaAbility",
    "platformAbility",
    "flatNavAbility",
)
"""Capabilities of Table 5."""


def synthetic_agents() -> list[SyntheticAgent]:
    """The 30 agents of Tables 6 and 7.

    Where the paper contradicts itself or is silent:
    - agent 7 fails at red occluders alone, as section E and the success rate of Table 8 say;
      Table 6 adds lava, which half of the battery has;
    - agent 10 passes nearer grids more often (0.6, 0.5, 0.4), as its reason says;
    - agent 14 guesses among the positions where something is hidden;
    - agent 17 passes with 0.1 where the reward is hidden for more than 1.25 s;
    - what agents 2, 3 and 4 could do if they tried is not settled, so they have no truth.
    """
    return [
        _agent(1, "reference", "passes every instance", lambda i: np.float64(1.0)),
        _agent(2, "reference", "passes with 0.5", lambda i: np.float64(0.5), truth=None),
        _agent(3, "reference", "passes with 0.1", lambda i: np.float64(0.1), truth=None),
        _agent(
            4,
            "reference",
            "walks at random: passes 0.04 where nothing is dangerous, else 0.01",
            lambda i: np.where(_any(i, "lavaPresence", "platformPresence"), 0.01, 0.04),
            truth=None,
        ),
        _agent(5, "reference", "passes with 0.9", lambda i: np.float64(0.9)),
        _agent(
            6,
            "achilles heel",
            "0.95, but 0.1 with lava",
            lambda i: np.where(_any(i, "lavaPresence"), 0.1, 0.95),
            truth={"lavaAbility": 0.1 / 0.95},
        ),
        _agent(
            7,
            "achilles heel",
            "0.95, but 0.1 with an occluder whose redness is above 200",
            lambda i: np.where(i.column("occluderRedness") > 200, 0.1, 0.95),
            known=False,
        ),
        _agent(
            8,
            "achilles heel",
            "0.95, but 0.1 with an occluder whose greenness is above 200",
            lambda i: np.where(i.column("occluderGreenness") > 200, 0.1, 0.95),
            known=False,
        ),
        _agent(
            9,
            "achilles heel",
            "0.95, but 0.1 with a ramp",
            lambda i: np.where(_any(i, "rampPresence"), 0.1, 0.95),
            truth={"rampAbility": 0.1 / 0.95},
        ),
        _agent(
            10,
            "achilles heel",
            "0.8, but 0.5 with lava, and less at far grids",
            _clumsy,
            truth={"lavaAbility": 0.5 / 0.8},
        ),
        _agent(
            11,
            "achilles heel",
            "from 0.1 at goals of 0.5 to 0.9 at goals of 3 and more",
            lambda i: np.interp(
                i.column("goalSize"), [0.5, 1, 1.5, 2, 2.5, 3], [0.1, 0.3, 0.5, 0.7, 0.8, 0.9]
            ),
            # Even at a goal of 1.5, whose demand is 5 - 1.5 on [0, 6].
            truth={"visualAbility": 3.5 / 6},
        ),
        _agent(12, "achilles heel", "0.95 to the right, 0.6 ahead, 0.3 left", _side_function(+1)),
        _agent(13, "achilles heel", "0.95 to the left, 0.6 ahead, 0.3 right", _side_function(-1)),
        _agent(
            14,
            "achilles heel",
            "0.95, but guesses where several positions look alike",
            lambda i: np.where(
                i.column("occluderPresence") > 0, 1.0 / (i.column("numPositions") + 1.0), 0.95
            ),
            known=False,
        ),
        _agent(
            15,
            "fraudster",
            "goes to where the reward was last seen: passes wherever that works",
            lambda i: 1.0 - i.column("lastSeenMisleads"),
            truth={"OPAbility": 0.0},
            known=False,
        ),
        _agent(
            16,
            "fraudster",
            "goes to where the reward was last seen: 0.95 where that works, else 0.25",
            lambda i: np.where(i.column("lastSeenMisleads") > 0, 0.25, 0.95),
            truth={"OPAbility": 0.0},
            known=False,
        ),
        _agent(
            17,
            "achilles heel",
            "0.95, but 0.1 where the reward is hidden for more than 1.25 s",
            lambda i: np.where(i.column("timeUnderOcc") > 1.25, 0.1, 0.95),
            truth={"memoryAbility": 1.25 / 4.4},
        ),
        _agent(
            18,
            "achilles heel",
            "from 0.95 at fewer than 3 other positions to 0.3 at more than 10",
            _confusion,
            # Even between 7 and 11 positions, times 4, on [0, 48.4].
            truth={"OPAbility": 4 * (7 + 4 * (0.6 - 0.475) / 0.3) / 48.4},
        ),
        *(agent for k in range(6) for agent in _context_specific(19 + 2 * k, _CONTEXTS[k])),
    ]


def _agent(
    number: int,
    group: AgentClass,
    about: str,
    rule: Callable[[Instances], Floats | np.float64],
    truth: Mapping[str, float] | None = MappingProxyType({}),
    known: bool = True,
) -> SyntheticAgent:
    """Make an agent with no limits but those of `truth`; None if nothing is settled."""
    settled = {} if truth is None else dict.fromkeys(CAPABILITIES, 1.0) | dict(truth)
    return SyntheticAgent(number, group, about, lambda i: np.asarray(rule(i)), settled, known)


def _context_specific(number: int, solved: tuple[str, ...]) -> list[SyntheticAgent]:
    """Two agents that solve basic tasks and some paradigms, and fail the others."""
    passed = {"basic", *solved}
    truth = {"OPAbility": len(solved) / 3}

    def rule(high: float, low: float) -> Callable[[Instances], Floats]:
        return lambda i: np.array([high if p.split("-")[0] in passed else low for p in i.paradigms])

    words = " and ".join(("basic", *solved))
    return [
        _agent(number, "context-specific", f"solves {words} only", rule(1.0, 0.0), truth, False),
        _agent(
            number + 1,
            "context-specific",
            f"0.75 at {words}, else 0.1",
            rule(0.75, 0.1),
            truth,
            False,
        ),
    ]


def _any(instances: Instances, *columns: str) -> Mask:
    return np.asarray((instances.select(columns) > 0).any(axis=1))


def _clumsy(instances: Instances) -> Floats:
    grid = np.array([p == "grid-op" for p in instances.paradigms])
    p = np.where(
        grid, np.interp(instances.column("goalDistance"), [16, 22, 28], [0.6, 0.5, 0.4]), 0.8
    )
    return np.where(_any(instances, "lavaPresence"), 0.5, p)


def _side_function(side: int) -> Callable[[Instances], Floats]:
    return lambda i: np.interp(side * i.column("rightLeftPosition"), [-1, 0, 1], [0.3, 0.6, 0.95])


def _confusion(instances: Instances) -> Floats:
    others = instances.column("numPositions")
    return np.select([others > 10, others >= 5, others >= 3], [0.3, 0.6, 0.75], 0.95)
