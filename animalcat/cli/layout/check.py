"""`animalcat layout check`: does a layout describe outcomes, and predict those it has not seen?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Annotated, Any, Final

import typer

from animalcat.cli.layout.calibration import (
    Engine,
    Missing,
    Played,
    Simulated,
    check_calibration,
)
from animalcat.cli.layout.outcomes import (
    OUTCOMES,
    Agents,
    Table,
    fit_layouts,
    read_meant,
    say_what_was_left_out,
    warn_of_bad_fits,
)
from animalcat.cli.layout.show import Name, Variant, every_variant, load
from animalcat.cli.shared.common import common, without
from animalcat.cli.shared.outcome_options import Seed
from animalcat.cli.shared.output import FAILED, fail, print_json, print_table, say
from animalcat.cli.shared.progress import progress
from animalcat.layouts.checking.checks import posterior_predictive, prior_predictive, residuals
from animalcat.layouts.checking.predict import LayoutAssessor, as_shares, predict_held_out, splits
from animalcat.layouts.checking.scores import murphy
from animalcat.layouts.checking.screening import predictive_power
from animalcat.layouts.inference.fit import FitResult
from animalcat.layouts.model.instances import Instances, with_average_chance

LEVEL: Final = 0.05
"""Below this p-value, corrected for how many are looked at, the layout is contradicted."""
EVERY: Final = "all"
"""The variant that stands for all of them, for --simulated."""
_FEWEST: Final = 10
"""With fewer outcomes nothing is held out."""

Report = dict[str, Any]


@without("--server")
def command(
    name: Name,
    table: Table = None,
    variant: Variant = "",
    agent: Agents = None,
    by: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="Group residuals by this column. Repeat it for several.",
            show_default="every column",
            rich_help_panel=OUTCOMES,
        ),
    ] = None,
    repeats: Annotated[
        int,
        typer.Option(
            metavar="TIMES",
            min=0,
            help="How often 20 % of the outcomes are held out and predicted.",
            rich_help_panel=OUTCOMES,
        ),
    ] = 5,
    simulated: Simulated = 0,
    episodes: Played = 60,
    missing: Missing = 0.0,
    engine: Engine = "live",
    seed: Seed = 0,
) -> None:
    """Check whether a layout describes the outcomes of agents, or whether it is calibrated.

    With --table, predictive checks say whether the layout generates outcomes like these. Residuals
    say where it does not, and held-out outcomes say how well it predicts.

    With --simulated, agents are drawn from the layout's prior and measured, and the intervals must
    contain the true value as often as they claim. --variant all does so for every variant, and
    corrects the p-values for all of them together.

    The exit code is 1 when the layout fails a check.
    """
    if (table is None) == (simulated == 0):
        fail("give --table CSV for outcomes, or --simulated AGENTS for calibration")
    if table is None:
        run = every_variant(name) if variant == EVERY else [load(name, variant)]
        check_calibration(run, simulated, episodes, missing, engine, seed)
        return
    given, (layout,) = read_meant(table, agent or [], [(name, variant)])
    outcomes = given.table
    if unknown := sorted(set(by or ()) - {"paradigm", *outcomes.instances.columns}):
        columns = ", ".join(("paradigm", *outcomes.instances.columns))
        fail(f"--by {unknown[0]}: no such column; columns: {columns}")
    fits = fit_layouts([layout], outcomes, seed)
    bad = warn_of_bad_fits(fits)
    entries: list[Report] = []
    with progress("checking", wait=0.0) as tell:
        for done, (who, fitted) in enumerate(fits[0].items()):
            tell(f"checking {who}", done, len(fits[0]))
            played, y = outcomes.of(who)
            entries.append(
                {
                    "agent": who,
                    "coverage": given.coverage(who),
                    "notes": [*dict.fromkeys((*given.notes, *fitted.notes))],
                    **check(fitted, played, y, by or (), repeats, seed),
                }
            )
    if common().as_json:
        print_json(entries)
    else:
        for entry in entries:
            _print(entry)
            for note in entry["notes"][len(given.notes) :]:
                say(f"note: {note}")
        say_what_was_left_out(given)
    if bad or any(entry["contradicted"] for entry in entries):
        raise typer.Exit(FAILED)


def check(
    fitted: FitResult,
    instances: Instances,
    outcomes: Any,
    by: Sequence[str],
    repeats: int,
    seed: int,
) -> Report:
    """All checks of one agent, as JSON has them; ends the command where there are no outcomes."""
    layout, draws = fitted.layout, fitted.flat_draws
    if not len(outcomes):
        fail("no outcomes: there is nothing to check")
    instances, _ = with_average_chance(instances, layout, outcomes)
    features = instances.features(layout)
    prior = prior_predictive(layout, features, outcomes, seed)
    posterior = posterior_predictive(layout, draws, features, outcomes, seed)
    apart = residuals(layout, draws, instances, outcomes, seed, by)
    adjusted = [check.p_value * len(posterior) for check in posterior]
    adjusted += [row.adjusted for row in apart[:1]]
    return {
        "converged": fitted.converged,
        "outcomes": len(outcomes),
        "contradicted": min(adjusted) < LEVEL,
        "prior_predictive": [asdict(check) for check in prior],
        "posterior_predictive": [asdict(check) for check in posterior],
        "residuals": [asdict(row) for row in apart],
        "held_out": _predict_held_out(fitted, instances, outcomes, repeats, seed),
    }


def _predict_held_out(
    fitted: FitResult, instances: Instances, outcomes: Any, repeats: int, seed: int
) -> Report | None:
    if not repeats or len(outcomes) < _FEWEST:
        return None
    layout = fitted.layout
    assessor = LayoutAssessor(layout, seed, by="live")
    kept = predict_held_out(assessor, instances, outcomes, splits(len(outcomes), seed, repeats))
    shares = as_shares(layout, kept.outcomes, instances.rows(kept.rows).features(layout))
    power = predictive_power(type(kept)(kept.rows, kept.predicted, shares, kept.repeat), seed=seed)
    parts = murphy(kept.predicted, shares)
    known = power.r2.value == power.r2.value
    return {
        "repeats": repeats,
        "brier": parts.brier,
        "calibration": parts.calibration,
        "refinement": parts.refinement,
        "aggregate": parts.uncertainty,
        "r2": power.r2.value if known else None,
        "least_r2": power.least,
        "expected_brier": power.expected,
        "readable": power.readable,
        "reason": power.reason,
    }


def _print(entry: Mapping[str, Any]) -> None:
    rows = [
        {
            "check": f"{kind}: {row['name']}",
            "seen": f"{row['observed']:.3f}",
            "expected": f"{row['expected']:.3f}",
            "90 %": f"{row['low']:.3f} to {row['high']:.3f}",
            "p": f"{row['p_value']:.3f}",
        }
        for kind in ("prior", "posterior")
        for row in entry[f"{kind}_predictive"]
    ]
    title = f"{entry['agent']}: {entry['outcomes']} outcomes, predictive checks"
    print_table(rows, list(rows[0]), title=title)
    shown = [row for row in entry["residuals"] if row["adjusted"] < LEVEL] or entry["residuals"][:5]
    rows = [
        {
            "by": row["by"],
            "group": row["group"],
            "instances": row["count"],
            "seen": f"{row['observed']:.3f}",
            "expected": f"{row['expected']:.3f}",
            "90 %": f"{row['low']:.3f} to {row['high']:.3f}",
            "p (corrected)": f"{row['adjusted']:.3f}",
        }
        for row in shown
    ]
    if rows:
        title = f"{entry['agent']}: residuals, {len(rows)} of {len(entry['residuals'])} groups"
        print_table(rows, list(rows[0]), title=title)
    if held_out := entry["held_out"]:
        say(
            f"Held out (20 %, {held_out['repeats']} times): Brier score {held_out['brier']:.3f} "
            f"(calibration {held_out['calibration']:.3f}, refinement "
            f"{held_out['refinement']:.3f}), aggregate {held_out['aggregate']:.3f}; "
            f"{held_out['reason']}: "
            + (
                "the profile may be read"
                if held_out["readable"]
                else "the profile is not to be read"
            )
        )
    say(
        f"{entry['agent']}: the outcomes contradict the layout"
        if entry["contradicted"]
        else f"{entry['agent']}: nothing contradicts the layout"
    )
