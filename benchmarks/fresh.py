"""Two fresh sessions of one agent: how many arenas they share, and whether they agree.

Simulated agents of the layout's prior play two sessions each. Every instance is played as a twin,
which is made as a live session makes it: the first sessions of all agents draw their twins for one
key, the second sessions for another. Outcomes are drawn from the layout, by the demands that were
measured on the twins. If twins are worth what their instances are worth, the standardised
difference of two estimates has mean 0 and at most SD 1 (less, since both start from one prior).
"""

from __future__ import annotations

import math
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from animalcat.arena_configs.batteries import load_recipe
from animalcat.layouts.adaptive.learner import Learner
from animalcat.layouts.adaptive.plan import Policy, StoppingRule
from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.library import load_layout
from animalcat.layouts.model.instances import Instances
from animalcat.layouts.model.spec import Layout
from animalcat.layouts.simulation.simulate import LayoutAgent, prior_agents
from animalcat.service.batteries.battery import Battery, build_family
from animalcat.service.batteries.recipes import build_recipe
from animalcat.service.measuring.measurement import Measurement
from animalcat.service.measuring.twins import Twins
from animalcat.values import MadeInstance, SessionSpec

AGENTS: Final = 200
"""Simulated agents, of which each plays two sessions."""
EPISODES: Final = 30
"""Episodes of a session."""


class Setting(NamedTuple):
    """A battery and a layout.

    Attributes:
        family: Family or recipe of the battery.
        instances: Number of its instances.
        layout: Name of the layout.
        variant: Variant of the layout.
        recipe: Whether the recipe of this name is meant, scaled to this many instances.
    """

    family: str
    instances: int
    layout: str
    variant: str = ""
    recipe: bool = False


SETTINGS: Final = (
    Setting("navigation", 450, "aaio"),
    Setting("object-permanence", 60, "object-permanence", "measured"),
    Setting("object-permanence", 60, "object-permanence", "measured", recipe=True),
)
"""What is measured; the quick run takes the first one."""


def run(quick: bool) -> list[dict[str, Any]]:
    """Measure."""
    with tempfile.TemporaryDirectory() as folder:
        rows: list[dict[str, Any]] = []
        for setting in SETTINGS[:1] if quick else SETTINGS:
            rows += _of(setting, Path(folder), 4 if quick else AGENTS)
        return rows


@dataclass(slots=True)
class _Twins:
    """The twins of one key, each made once."""

    maker: Twins
    key: str
    made: dict[str, MadeInstance] = field(default_factory=dict[str, MadeInstance])

    def of(self, name: str) -> MadeInstance:
        """The twin of an instance."""
        if name not in self.made:
            self.made[name] = self.maker.twin(name, self.key)
        return self.made[name]


def _of(setting: Setting, folder: Path, agents: int) -> list[dict[str, Any]]:
    layout = load_layout(setting.layout, setting.variant)
    if setting.recipe:
        battery = build_recipe(load_recipe(setting.family), folder, setting.instances)
    else:
        battery = build_family(setting.family, setting.instances, 0, folder)
    bank = Measurement(_spec(setting), battery, layout).learner.bank
    maker = Twins(battery, layout)
    keys = [_Twins(maker, "first"), _Twins(maker, "second")]
    shared: list[float] = []
    gaps: list[list[float]] = []
    for k, agent in enumerate(prior_agents(layout, agents, rng(0, "fresh", 0))):
        learners = [
            Learner(bank, Policy(), StoppingRule(EPISODES), 2 * k + session) for session in range(2)
        ]
        played = [
            _play(learner, agent, twins) for learner, twins in zip(learners, keys, strict=True)
        ]
        shared.append(len(played[0] & played[1]) / EPISODES)
        one, other = (learner.summary() for learner in learners)
        gaps.append(
            [
                (one[i].mean - other[i].mean) / math.hypot(one[i].sd, other[i].sd)
                for i in layout.capabilities
            ]
        )
    kind = "battery " * setting.recipe
    where = f"{kind}{setting.family}, {agents} agents, two fresh sessions of {EPISODES} episodes"
    return [
        {
            "name": f"{where}: arenas that both played",
            "value": max(shared),
            "target": "at most 0.1",
            "met": max(shared) <= 0.1,
            "note": _told(battery, keys),
        },
        *_agreement(where, layout, np.array(gaps)),
    ]


def _agreement(where: str, layout: Layout, gaps: np.ndarray[Any, Any]) -> list[dict[str, Any]]:
    """Mean and SD of the standardised differences, over agents and capabilities."""
    names = [layout.latents[i].name for i in layout.capabilities]
    means, sds = gaps.mean(axis=0), gaps.std(axis=0)
    told = [f"{name} {m:+.3f}" for name, m in zip(names, means.tolist(), strict=True)]
    spread = [f"{name} {s:.2f}" for name, s in zip(names, sds.tolist(), strict=True)]
    mean, sd = float(gaps.mean()), float(sds.max())
    return [
        {
            "name": f"{where}: mean of (m1 - m2) / sqrt(s1^2 + s2^2)",
            "value": mean,
            "target": "within 0.1 of 0",
            "met": abs(mean) <= 0.1,
            "note": f"by capability: {', '.join(told)}",
        },
        {
            "name": f"{where}: largest SD of it, of any capability",
            "value": sd,
            "target": "at most 1.1",
            "met": sd <= 1.1,
            "note": f"by capability: {', '.join(spread)}",
        },
    ]


def _play(learner: Learner, agent: LayoutAgent, twins: _Twins) -> set[str]:
    """Play a session; the arenas that it played."""
    layout = learner.layout
    luck = rng(learner.seed, "luck", 0)
    played: set[str] = set()
    for _ in range(EPISODES):
        choice = learner.ask()
        if choice is None:
            break
        made = twins.of(choice.instance)
        has = made.instance.features
        row = layout.check_features([[has.get(f.name, np.nan) for f in layout.features]])
        learner.learn(made.instance.name, choice.instance, row[0])
        chance = float(agent.probability(Instances(layout.feature_names, row))[0])
        learner.tell(made.instance.name, float(luck.random() < chance))
        played.add(made.arena_yaml)
    return played


def _told(battery: Battery, keys: list[_Twins]) -> str:
    """How many twins were made, and how near their demands are."""
    made = [one for twins in keys for one in twins.made.values()]
    kinds = {kind: sum(one.made_as == kind for one in made) for kind in {m.made_as for m in made}}
    far = [one.distance for one in made]
    noted = sum("nearest" in one.note for one in made)
    counts = ", ".join(f"{number} of kind {kind}" for kind, number in sorted(kinds.items()))
    return (
        f"{counts}, of a battery of {len(battery.instances)}; demands differ by "
        f"{float(np.mean(far)):.3f} on average, at most {max(far):.3f}; {noted} of them are only "
        "the nearest that were found"
    )


def _spec(setting: Setting) -> SessionSpec:
    return SessionSpec(
        "simulated", setting.family, layout=setting.layout, layout_variant=setting.variant
    )
