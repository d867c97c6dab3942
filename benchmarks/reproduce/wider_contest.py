"""Two wider layouts of the Melting Pot contest, which its paper leaves to future work.

Tesic et al. 2025 name two things that their layout leaves out: the substrates, which may bias what
an entry shows, and demands whose scores rise with them, which may be capabilities if turned round.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.checking.predict import FittedLayout, split
from animalcat.layouts.checking.scores import r2
from animalcat.layouts.checking.screening import screen_demands
from animalcat.layouts.inference.fit import FitRequest, fit
from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.model.instances import Instances, OutcomeTable
from animalcat.layouts.model.spec import Layout, from_dict, to_dict
from animalcat.layouts.simulation.simulate import LayoutAgent
from benchmarks.reproduce.contest_table import INVERTED, OF_SUBSTRATE, ContestTable, simulated_table
from benchmarks.reproduce.cooperation import CONTEST, demands_of

Floats: TypeAlias = npt.NDArray[np.float64]
Wider: TypeAlias = Literal["substrates", "inverted"]

SUBSTRATES: Final = (
    "allelopathic_harvest",
    "clean_up",
    "prisoners_dilemma",
    "territory",
)
"""Substrates of the simulated contest, as many as the real one's; the first has no bias."""
TURNED: Final = "alone"
"""A demand of the simulated contest whose scores rise with it."""
_HELPED: Final = 20
"""In how many of 51 scenarios it is present."""
_DUPLICATES: Final[Mapping[str, str]] = {
    "partner_choice": "time_pressure",
    "ostracism": "time_pressure",
    "sanctioning": "teaching",
}
"""Demands that are in the same scenarios as another, as section 3.2 says."""
_SHARE: Final = (0.55, 1.0)
"""Share of the score that simulated submissions keep on a substrate, or without help."""
_DRAWS: Final = 500


def with_gates(layout: Layout, gates: Mapping[str, str], kind: str, variant: str) -> Layout:
    """A layout whose score is multiplied by a share of its own wherever a feature is 1.

    Args:
        layout: A layout of the contest.
        gates: Name of the share by name of the feature.
        kind: Kind of the shares: "bias" or "capability".
        variant: Name of the variant.
    """
    data: dict[str, Any] = to_dict(layout)
    for feature, node in gates.items():
        data["features"][feature] = {"unit": "1", "low": 0, "high": 1, "about": feature}
        data["latents"][node] = {
            "kind": kind,
            "unit": "1",
            "prior": {"scaled_beta": {"low": 0, "high": 1}},
            "about": f"share of the score that is kept where {feature} is 1",
        }
        data["derived"][f"of_{node}"] = {"link": {"gate": {"input": node, "when": feature}}}
        data["derived"]["score"]["link"]["product"]["inputs"].append(f"of_{node}")
    return from_dict({**data, "variant": variant, "about": f"{layout.about}; {variant}"})


def with_substrates(layout: Layout, names: Sequence[str]) -> Layout:
    """A layout with a bias for each substrate but the first, with which the others are compared."""
    gates = {f"{OF_SUBSTRATE}{name}": f"kept_{name}" for name in names[1:]}
    return with_gates(layout, gates, "bias", "with substrates")


def with_inverted(layout: Layout, names: Sequence[str]) -> Layout:
    """A layout with a capability for each demand that is turned round: doing without it."""
    gates = {f"{INVERTED}{name}": f"{INVERTED}{name}_ability" for name in names}
    return with_gates(layout, gates, "capability", "with inverted demands")


def rising(table: OutcomeTable, demands: Sequence[str]) -> list[str]:
    """Demands with which scores rise, of which screening keeps the turned-round form."""
    found = screen_demands(table.instances, table.outcomes, demands, repeats=200)
    no_demand = [one.name for one in found.demands if one.verdict == "no demand"]
    turned = [f"{INVERTED}{name}" for name in no_demand]
    if not turned:
        return []
    again = screen_demands(table.instances, table.outcomes, turned, repeats=200)
    kept = {
        one.name
        for one in again.demands
        if one.verdict == "kept" and one.correlation is not None and one.correlation.high < 0.0
    }
    return [name for name in no_demand if f"{INVERTED}{name}" in kept]


@dataclass(frozen=True, eq=False)
class SimulatedContest:
    """A contest of simulated submissions.

    Attributes:
        table: Its scores.
        layout: The layout that made them.
        truth: (submissions, latents of that layout).
    """

    table: ContestTable
    layout: Layout
    truth: Floats


def simulated_contest(
    layout: Layout,
    seed: int,
    *,
    submissions: int = 26,
    fewer: int = 8,
    episodes: tuple[int, int] = (80, 20),
    wider: Wider | None = None,
) -> SimulatedContest:
    """Simulate a contest in the form of the real one, episode by episode.

    Args:
        layout: The layout of the contest.
        seed: Seed of everything.
        submissions: Number of submissions; the real one's Table 1 has 26.
        fewer: How many of them played fewer episodes.
        episodes: Episodes of each scenario, of most and of these.
        wider: What else scores depend on: the substrate, or a demand that helps; None for neither.
    """
    generator = rng(seed, f"simulated contest {wider}", 0)
    demands = demands_of(layout, generator)
    scenarios = len(next(iter(demands.values())))
    demands |= {name: demands[twin] for name, twin in _DUPLICATES.items()}
    helped = np.zeros(scenarios)
    helped[generator.choice(scenarios, _HELPED, replace=False)] = 1.0
    demands[TURNED] = helped
    order: list[int] = generator.permutation(scenarios).tolist()
    substrates = [SUBSTRATES[i % len(SUBSTRATES)] for i in order]
    if wider == "substrates":
        layout = with_substrates(layout, SUBSTRATES)
    elif wider == "inverted":
        layout = with_inverted(layout, [TURNED])
    columns = {
        **demands,
        f"{INVERTED}{TURNED}": 1.0 - helped,
        **{
            f"{OF_SUBSTRATE}{name}": np.array([float(own == name) for own in substrates])
            for name in SUBSTRATES
        },
    }
    instances = Instances(tuple(columns), np.stack(list(columns.values()), axis=1))
    truth = np.stack(
        [
            generator.uniform(*CONTEST.get(node.name, _range_of(node.name)), submissions)
            for node in layout.latents
        ],
        axis=1,
    )
    size = truth[:, layout.latent_names.index("sampleSize")]
    table = simulated_table(
        seed,
        scenarios=demands,
        substrates=substrates,
        expected=np.stack([LayoutAgent(layout, one).probability(instances) for one in truth]),
        size=size,
        episodes=[episodes[0]] * (submissions - fewer) + [episodes[1]] * fewer,
    )
    return SimulatedContest(table, layout, truth)


def _range_of(node: str) -> tuple[float, float]:
    return (0.3, 1.0) if node.startswith("ability") else _SHARE


@dataclass(frozen=True, slots=True)
class WiderFit:
    """A submission by the plain layout and by the wider one.

    Attributes:
        name: The submission.
        plain_r2: R2 of the plain layout on a fifth of the blocks.
        wider_r2: R2 of the wider one on the same.
        plain_error: Root mean squared error of the abilities by the plain layout, where a truth is
            known; else None.
        wider_error: The same by the wider one.
        found: Posterior mean of each node that the wider one adds.
        true: Its true value, where it is known.
    """

    name: str
    plain_r2: float
    wider_r2: float
    plain_error: float | None
    wider_error: float | None
    found: dict[str, float]
    true: dict[str, float]


def compare_wider(
    plain: Layout,
    wider: Layout,
    table: OutcomeTable,
    seed: int,
    *,
    count: int,
    truth: Mapping[str, Floats] | None = None,
    done: Callable[[], object] | None = None,
) -> list[WiderFit]:
    """Fit submissions by both layouts, by NUTS on 80 % of the blocks, and predict the others.

    Args:
        plain: The layout as printed.
        wider: The wider one.
        table: Blocks of scores.
        seed: Seed of splits and fits.
        count: How many submissions, from the first.
        truth: True values of the first submissions, by node.
        done: Called after each submission.
    """
    known = truth or {}
    rows: list[WiderFit] = []
    for i, name in enumerate(table.agents[:count]):
        instances, scores = table.of(name)
        part = split(len(scores), seed)
        r2s: list[float] = []
        means: list[dict[str, float]] = []
        for layout in (plain, wider):
            request = FitRequest(
                layout,
                instances.rows(part.train).features(layout),
                scores[part.train],
                seed,
                draws=_DRAWS,
                tune=_DRAWS,
            )
            found = fit(request)
            draws = found.flat_draws
            fitted = FittedLayout(layout, draws, np.full(len(draws), 1.0 / len(draws)))
            r2s.append(r2(fitted.predict(instances.rows(part.test)), scores[part.test]))
            means.append({node.name: node.mean for node in found.nodes})
        abilities = [n for n in plain.latent_names if n.startswith("ability") and n in known]
        plain_error, wider_error = (_error(mean, known, abilities, i) for mean in means)
        added = [n for n in wider.latent_names if n not in plain.latent_names]
        rows.append(
            WiderFit(
                name,
                r2s[0],
                r2s[1],
                plain_error,
                wider_error,
                {n: means[1][n] for n in added},
                {n: float(known[n][i]) for n in added if n in known},
            )
        )
        if done is not None:
            done()
    return rows


def _error(
    mean: Mapping[str, float], known: Mapping[str, Floats], nodes: Sequence[str], row: int
) -> float | None:
    """Root mean squared error over nodes; None without any."""
    if not nodes:
        return None
    return float(np.sqrt(np.mean([(mean[name] - known[name][row]) ** 2 for name in nodes])))
