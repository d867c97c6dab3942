"""What the report on a session costs beside its figures alone, and how large it is."""

from __future__ import annotations

import io
import statistics
import time
from typing import Any, Final

import numpy as np

from animalcat.layouts.explaining.kinds import PlayedEpisodes
from animalcat.layouts.explaining.verdict import verdict
from animalcat.layouts.inference.evaluator import Evaluator
from animalcat.layouts.inference.fit import FitData, FitResult
from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.inference.summary import summarise
from animalcat.layouts.library import load_layout
from animalcat.layouts.reporting.profile import Profile

EPISODES: Final = 500
TARGET: Final = 2.0
"""Most that a report may cost, as a multiple of its figures alone."""
_ARENA: Final = """!ArenaConfig
arenas:
  0: !Arena
    t: 250
    items:
    - !Item
      name: GoodGoal
      positions: [!Vector3 {{x: {x:.3f}, y: 0, z: {z:.3f}}}]
      sizes: [!Vector3 {{x: {size:.3f}, y: 1, z: 1}}]
    - !Item
      name: Wall
      positions: [!Vector3 {{x: 5, y: 0, z: {z:.3f}}}, !Vector3 {{x: 35, y: 0, z: {z:.3f}}}]
      sizes: [!Vector3 {{x: 8, y: 3, z: 1}}, !Vector3 {{x: 8, y: 3, z: 1}}]
    - !Item
      name: Agent
      positions: [!Vector3 {{x: 20, y: 0, z: 5}}]
      rotations: [{x:.1f}]
"""


def run(quick: bool) -> list[dict[str, Any]]:
    """Measure CPU seconds of a report on a simulated session, and of its figures alone."""
    from animalcat.plots.style import save_bytes
    from animalcat.service.reporting.session_figures import session_figures
    from animalcat.service.reporting.session_page import session_page

    profile, fitted, rows = simulated(EPISODES)
    arenas = {
        row["instance"]: _ARENA.format(x=5 + k % 30, z=10 + k % 25, size=0.5 + k % 5)
        for k, row in enumerate(rows)
    }
    told = dict.fromkeys(fitted.layout.latent_names, "")
    alone: list[float] = []
    whole: list[float] = []
    page = ""
    for repeat in range(2 if quick else 4):  # the first one warms up
        start = time.process_time()
        for drawn in session_figures(fitted, rows_table(rows), told):
            if drawn.figure is not None:
                io.BytesIO(save_bytes(drawn.figure, ".svg"))
        middle = time.process_time()
        page = session_page(profile, fitted, rows, arenas)
        if repeat:
            alone.append(middle - start)
            whole.append(time.process_time() - middle)
    ratio = statistics.median(whole) / statistics.median(alone)
    return [
        {
            "name": f"report of {EPISODES} episodes",
            "median": statistics.median(whole),
            "unit": "s of CPU",
            "baseline": statistics.median(alone),
            "ratio": ratio,
            "target": f"at most {TARGET:g}",
            "met": ratio <= TARGET,
            "note": f"{len(page) / 1e6:.1f} MB; baseline: its matplotlib figures alone",
        }
    ]


def rows_table(rows: list[dict[str, Any]]) -> Any:
    """The table of outcomes of such rows."""
    from animalcat.outcomes import outcomes_frame

    return outcomes_frame(rows)


def simulated(episodes: int) -> tuple[dict[str, Any], FitResult, list[dict[str, Any]]]:
    """A session of a simulated agent: its profile, draws near the truth, and rows of outcomes."""
    layout = load_layout("aaio")
    generator = rng(0, "bench report", 0)
    low = np.array([feature.low for feature in layout.features])
    high = np.array([feature.high for feature in layout.features])
    features = low + (high - low) * generator.uniform(size=(episodes, len(low)))
    z = 0.5 * generator.standard_normal((4000, len(layout.latents)))
    draws = layout.from_standard(z)
    evaluator = Evaluator(layout)
    expected = evaluator.probability(draws[:100], features).mean(axis=0)
    outcomes = (generator.uniform(size=episodes) < expected).astype(np.float64)
    even = np.full(len(draws), 1.0 / len(draws))
    nodes = summarise(layout, draws, even, np.full(len(layout.latents), 4000.0))
    diagnostics: dict[str, Any] = {
        "engine": "nuts", "converged": True, "reasons": [], "outcomes": episodes,
        "prior_only": False, "chains": 4, "draws": 1000, "tune": 1000,
    }  # fmt: skip
    data = FitData(features, outcomes, None, tuple(range(episodes)))
    fitted = FitResult(layout, draws.reshape(4, 1000, -1), nodes, diagnostics, data)
    made = Profile.of_fit(fitted, {}, {"agent": "simulated", "battery": "simulated"})
    told = verdict(made, fitted.flat_draws, PlayedEpisodes(features, outcomes), features)
    rate = {"text": f"Success rate over {episodes} arenas: {outcomes.mean():.0%}."}
    profile = made.to_dict() | {"verdict": told.to_dict(), "battery_rate": rate}
    rows: list[dict[str, Any]] = [
        {
            "episode": k,
            "attempt": 0,
            "instance": f"arena-{k:03}",
            "paradigm": "simulated",
            "outcome": "success" if outcomes[k] else "failure",
            "return": float(outcomes[k]),
            "steps": 100,
            "predicted": float(expected[k]),
            "reason": "informative",
            "session": "simulated",
            "features": dict(zip(layout.feature_names, features[k].tolist(), strict=True)),
        }
        for k in range(episodes)
    ]
    return profile, fitted, rows
