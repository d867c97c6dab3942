"""Whether what is said of a group of persons, and of an agent beside it, is true as often as said.

Persons are drawn around a typical one, normal where the layout's priors are, which is not quite the
scale of the fit. Each plays 20 random arenas. The agent plays 60. It is as able as the typical
person, or differs in one capability by just the margin. Beside it stands the mean of persons'
posterior means with a t interval, for the mean of all who are like them. Intervals of shares are
exact ones of 90 %.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from animalcat.layouts.calibrating.group import GroupSampler
from animalcat.layouts.checking.calibration import spread
from animalcat.layouts.checking.compare import Posterior, compare_agents
from animalcat.layouts.explaining.wording import scale_of
from animalcat.layouts.inference.backend.nuts import SamplerSettings
from animalcat.layouts.inference.evaluator import Evaluator
from animalcat.layouts.inference.fit import FitData
from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.library import load_layout
from benchmarks.curves import row, share
from benchmarks.rounds import Rows

Floats: TypeAlias = npt.NDArray[np.float64]

SEED: Final = 68
RUNS: Final = (150, 6)
"""Groups, and with --quick."""
PERSONS: Final = 12
EPISODES: Final = (20, 60)
"""Of a person, and of the agent."""
TYPICAL: Final = ("of the prior", "weak", "able")
"""Who is typical, in turn: drawn from the prior, or by one standard deviation from its middle."""
SPREADS: Final = (0.3, 0.6, 1.0)
"""Standard deviations within a group, in turn."""
MARGINS: Final = {"navigationAbility": 30.0, "visualAbility": 0.8}
"""In metres: what asks of the agent to be well known beside the group."""
_DRAWS: Final = 8000


def run(quick: bool) -> Rows:
    """Measure all of it.

    Args:
        quick: Fewer groups.
    """
    layout = load_layout("aaio", "metres-15")
    evaluator = Evaluator(layout)
    arenas = spread(layout, 300, rng(0, "spread", 0))
    prior = layout.from_standard(rng(SEED, "prior", 0).standard_normal((_DRAWS, 4)))
    scales = {node: scale_of(layout, layout.latent_names.index(node), arenas) for node in MARGINS}
    hits: dict[str, list[bool]] = {}

    def play(theta: Floats, episodes: int, generator: np.random.Generator) -> FitData:
        rows = arenas[generator.permutation(len(arenas))[:episodes]]
        drawn = evaluator.simulate(theta[np.newaxis], evaluator.columns(rows), generator)
        return FitData(rows, drawn[:, 0])

    def weights(data: FitData) -> Floats:
        logs = evaluator.log_likelihood(prior, evaluator.columns(data.features), data.outcomes)
        weight = np.exp(logs - logs.max())
        return weight / weight.sum()

    for number in range(RUNS[quick]):
        generator = rng(SEED, "group", number)
        kind, wide = TYPICAL[number % 3], SPREADS[number // 3 % 3]
        z = generator.standard_normal(4)
        if kind != "of the prior":
            z = np.array([1.0, 1.0, 0.0, 0.0]) * (1.0 if kind == "able" else -1.0) - [0, 0, 0, 1.0]
        people = layout.from_standard(z + wide * generator.standard_normal((PERSONS, 4)))
        everybody = layout.from_standard(z + wide * generator.standard_normal((_DRAWS, 4)))
        persons = [play(person, EPISODES[0], generator) for person in people]
        settings = SamplerSettings(number, 4, 400, 300, 0.9, 2)
        typical = GroupSampler(persons).sample(layout, None, None, settings).draws.reshape(-1, 4)
        means = np.array([weights(data) @ prior for data in persons])
        group = Posterior.of_draws("group", layout, typical)
        true = layout.from_standard(z[np.newaxis])[0]
        for k, (node, margin) in enumerate(MARGINS.items()):
            low, high = group.intervals[k]
            inside = bool(low <= true[k] <= high)
            for who in (f"typical {kind}", f"spread {wide:g}", "all"):
                hits.setdefault(f"{node}, {who}: inside", []).append(inside)
            half = float(stdtrit(PERSONS - 1, 0.95)) * means[:, k].std(ddof=1) / PERSONS**0.5
            missed = abs(means[:, k].mean() - everybody[:, k].mean()) > half
            for who in (f"typical {kind}", "all"):
                hits.setdefault(f"{node}, {who}: mean of means, inside", []).append(not missed)
            for off in (0.0, margin):
                other = true.copy()
                if off:
                    ends = (layout.latents[k].prior.low, layout.latents[k].prior.high)
                    values = np.linspace(*ends, 4001)
                    apart = scales[node].converted(values) - scales[node].convert(float(true[k]))
                    other[k] = values[np.argmin(abs(abs(apart) - off))]
                    if abs(apart).max() < off:
                        continue  # nobody can differ by so much
                data = play(other, EPISODES[1], generator)
                rows = generator.choice(_DRAWS, 4000, p=weights(data))
                agent = Posterior.of_draws("agent", layout, prior[rows])
                found = compare_agents([group, agent], scales=scales, within=MARGINS)
                (said,) = (one.behind for one in found if one.node == node and one.behind)
                told = "differs by the margin" if off else "equal"
                hits.setdefault(f"{node}, {told}: alike", []).append("alike" in said.verdict)
                if not off:
                    hits.setdefault(f"{node}, {told}: apart", []).append("apart" in said.verdict)
    aims = {"all: inside": (0.86, None), "margin: alike": (None, 0.05), "apart": (None, 0.1)}
    made: Rows = []
    for name, each in sorted(hits.items()):
        aim = next((aims[end] for end in aims if name.endswith(end)), (None, None))
        note = f"{len(each)} groups of {PERSONS} persons"
        made.append(row(name, share(each), at_least=aim[0], at_most=aim[1], note=note))
    return made
