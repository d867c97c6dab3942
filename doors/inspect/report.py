"""What an adaptive evaluation has found out: estimated accuracy, profile, choices, voids."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

import numpy as np

from animalcat.doors.inspect.logs import Came
from animalcat.doors.inspect.session import Session
from animalcat.doors.speech.speaking import CURRENCY
from animalcat.layouts.adaptive.learner import Learner
from animalcat.layouts.explaining.session import verdict_of
from animalcat.layouts.explaining.wording import SAMPLES
from animalcat.layouts.inference.fit import FitResult
from animalcat.layouts.model.nodes import Bernoulli
from animalcat.layouts.reporting.profile import Profile
from animalcat.service.measuring.profile_words import token_words
from animalcat.service.measuring.voids import counted_voids, voids_to_dict

SHARE: Final = 0.9
"""Probability of intervals."""
METRICS: Final = ("accuracy", "accuracy_low", "accuracy_high", "accuracy_of_chosen")
_WORDS: Final = {"arena": "sample", "episode": "sample", "battery": "dataset", "agent": "model"}
"""What the words of layouts are for samples."""
_WORD: Final = re.compile(rf"\b({'|'.join(_WORDS)})(s?)\b")


def rate_of(session: Session) -> dict[str, Any]:
    """The mean outcome over all samples that the layout covers, as profiles have it.

    For right and wrong it is `Learner.battery_rate`, whose interval holds also where the layout is
    wrong. For scores and counts it is what the layout predicts, and holds if the layout does.
    """
    learner, size = session.final, session.plan.size
    rate = learner.battery_rate.to_dict(size)
    if isinstance(session.plan.layout.outcome, Bernoulli) or not learner.n:
        return rate
    mean, low, high = _predict_mean(learner, _shares(session))
    text = (
        f"Mean score on the {len(session.plan.items)} of {size} samples that the layout covers: "
        f"{mean:.0%} ({SHARE:.0%}: {low:.0%} to {high:.0%}). The interval is of the layout's "
        "predictions, and holds if the layout does."
    )
    return {**rate, "value": mean, "low": low, "high": high, "text": text}


def accuracy_of(session: Session) -> dict[str, float]:
    """What `rate_of` says, and the mean outcome of what was chosen, by the names of `METRICS`.

    It is not a number where nothing can be told.
    """
    rate, shares = rate_of(session), _shares(session)
    chosen = np.mean([one for many in shares.values() for one in many]) if shares else None
    found = rate["value"], rate["low"], rate["high"], chosen
    values = (math.nan if one is None else float(one) for one in found)
    return dict(zip(METRICS, values, strict=True))


def _shares(session: Session) -> dict[str, list[float]]:
    """The outcomes of each sample as shares of the most that they may be."""
    shares: dict[str, list[float]] = {}
    for choice in session.choices:
        if (value := session.outcome(choice)) is not None:
            shares.setdefault(choice.instance, []).append(value / session.plan.most)
    return shares


def _predict_mean(
    learner: Learner, known: Mapping[str, Sequence[float]]
) -> tuple[float, float, float]:
    """Mean score over all samples with its interval, by what is predicted of the rest."""
    bank, posterior = learner.bank, learner.posterior
    rest = np.array([name not in known for name in bank.names])
    each = bank.evaluator.by_instance(posterior.particles, bank.distinct, np.float64)
    sure = sum(float(np.mean(many)) for many in known.values())
    means = (sure + each[bank.place[rest]].sum(axis=0)) / len(bank)
    order = np.argsort(means)
    ends = np.array([0.5 * (1.0 - SHARE), 0.5 * (1.0 + SHARE)])
    places = np.searchsorted(np.cumsum(posterior.weights[order]), ends).clip(max=len(order) - 1)
    low, high = means[order[places]].tolist()
    return float(means @ posterior.weights), low, high


def profile_of(
    session: Session, model: str, task: str, log: str = "", fitted: FitResult | None = None
) -> dict[str, Any]:
    """The profile, as JSON values by the schema `profile`.

    Args:
        session: What was asked and what came.
        model: Who answered.
        task: Name of the task.
        log: Name of the log; empty while there is none.
        fitted: A fit by NUTS of the same outcomes; without one it is of the live posterior.
    """
    learner, plan = session.final, session.plan
    counted = [one for many in _shares(session).values() for one in many]
    runs = session.all_runs(session.choices)
    limits = Counter(run.limit for run in runs if run.limit and run.outcome is not None)
    gaps = {"left_out": dict(plan.left_out), "covered": len(plan.items), "of": plan.size}
    about = {
        "session": log,
        "agent": model,
        "battery": task,
        "demands_digest": plan.demands_digest,
        "reason": session.end or "it goes on",
        "ended": learner.verdict(session.seconds).end,
        "episodes": len(counted),
        "successes": sum(value >= 1.0 for value in counted),
        "mean_outcome": sum(counted) / len(counted) if counted else None,
        "voids": len(session.ended) - len(counted),
        "voids_by_demand": voids_of(session),
        "limits_reached": dict(limits),
        "refusals": sum(run.refused and run.outcome is not None for run in runs),
        "coverage": {**gaps, "warnings": [*filter(None, (plan.counting,)), *plan.notes]},
        "seed": plan.seed,
        "at_once": plan.at_once,
        "misfit": learner.misfit,
        "alarm": learner.alarm,
        "retest": learner.retest,
        "saved": _savings(session),
        "spent": _spent(runs),
    }
    labels = [f"layout contradicted: it does not describe this model {learner.misfit}"]
    profile = {
        **profile_part(learner, about, session.seconds, fitted),
        "labels": labels * bool(learner.misfit) + ["unfinished"] * (not session.end),
        "battery_rate": rate_of(session),
        "controls": [],
        "what_now": [],
    }
    return as_json(of_samples(profile))


def summary_of(profile: Mapping[str, Any]) -> str:
    """What a profile says first, in sentences."""
    about: Mapping[str, Any] = profile["provenance"]
    saved, refused = about["saved"], about["refusals"]
    spent = token_words(about["spent"])
    held = f"A filter held back {refused} of the answers, which count as they were scored."
    parts = (
        profile["battery_rate"]["text"],
        *profile["verdict"]["sentences"],
        about["voids_by_demand"]["words"],
        held if refused else "",
        *about["coverage"]["warnings"],
        f"Spent: {spent}." if spent else "",
        f"{saved['not_run']} of {saved['of']} samples were not run. Why it ended: "
        f"{about['reason']}.",
    )
    return " ".join(part for part in parts if part)


def profile_part(
    learner: Learner,
    about: Mapping[str, Any],
    seconds: float = 0.0,
    fitted: FitResult | None = None,
) -> dict[str, Any]:
    """The part of a profile that every test has; `about` is what else is known of it."""
    status, draws = learner.verdict(seconds).status, None
    profile = Profile.of_live(learner.posterior, status, about)
    if fitted is not None:
        profile, draws = Profile.of_fit(fitted, status, about), fitted.flat_draws
    profile, judged = verdict_of(learner, profile, draws, words=SAMPLES)
    return {**profile.to_dict(), "verdict": judged.to_dict()}


def rows_of(session: Session) -> list[dict[str, Any]]:
    """Every choice that has come to its end, as JSON values: why it was made, and what came."""
    return [
        {
            "choice": choice.episode + 1,
            "sample": choice.instance,
            "outcome": session.outcome(choice),
            "void": next((run.void for run in session.came_of(choice) if run.void), ""),
            "limit": next((run.limit for run in session.came_of(choice) if run.limit), ""),
            "propensity": choice.propensity,
            "predicted": choice.predicted,
            "gain": choice.score,
            "reason": choice.reason,
            "because": of_samples(choice.because),
        }
        for choice in session.ended
    ]


def voids_of(session: Session) -> dict[str, Any]:
    """How many runs are void and why, and whether that goes with what their samples demand."""
    bank = session.plan.bank
    rows = dict(zip(bank.names, bank.features.tolist(), strict=True))
    ended = [
        (run, rows[choice.instance]) for choice in session.ended for run in session.came_of(choice)
    ]
    why = Counter(run.void for run, _ in ended if run.void)
    told = ", ".join(f"{count} {word}" for word, count in why.most_common())
    found = counted_voids(bank.layout, rows, [(bool(run.void), row) for run, row in ended])
    said = voids_to_dict(found, f"Runs that do not count ({told})")
    return {**said, "count": why.total(), "why": dict(why)}


def _spent(runs: Sequence[Came]) -> dict[str, Any]:
    """Tokens and costs of all runs, as the profiles of sessions have them."""
    returned, cost = sum(run.returned for run in runs), sum(run.cost for run in runs)
    return {
        "tokens_in": sum(run.tokens for run in runs) - returned,
        "tokens_out": returned,
        "costs": {CURRENCY: cost} if cost else {},
    }


def _savings(session: Session) -> dict[str, Any]:
    """What was not run, beside running every sample once, and what that would have used."""
    runs, size = session.all_runs(session.choices), session.plan.size
    samples = len({choice.instance for choice in session.choices})
    share = (size - samples) / max(samples, 1)
    return {
        "of": size,
        "chosen": samples,
        "not_run": size - samples,
        "tokens": round(share * sum(run.tokens for run in runs)),
        "seconds": round(share * sum(run.seconds for run in runs), 3),
        "cost": round(share * sum(run.cost for run in runs), 6),
    }


def of_samples(value: Any) -> Any:
    """What layouts say of arenas and episodes, said of samples: all sentences in a JSON value."""
    if isinstance(value, str):  # what has no blank is a name
        return _WORD.sub(lambda w: _WORDS[w[1]] + w[2], value) if " " in value else value
    if isinstance(value, dict):
        return {key: of_samples(one) for key, one in cast("dict[str, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [of_samples(one) for one in cast("list[Any]", value)]
    return value


def as_json(value: Any) -> Any:
    """A value as JSON has it."""
    return json.loads(json.dumps(value))
