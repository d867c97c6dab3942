"""The adaptive evaluation of one model, without inspect_ai: what is chosen, told, and found out."""

from __future__ import annotations

import math
import re
import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias, cast

import numpy as np

from animalcat.inspect.logs import KEY, LogError, limit_of, scored_of, tokens_of
from animalcat.inspect.plan import Plan
from animalcat.layouts.adaptive.learner import Learner
from animalcat.layouts.explaining.session import verdict_of
from animalcat.layouts.explaining.wording import SAMPLES
from animalcat.layouts.inference.fit import FitResult
from animalcat.layouts.model.nodes import Bernoulli, Beta
from animalcat.layouts.reporting.profile import Profile

Run: TypeAlias = tuple[str, int]
"""The id of a sample, as text, and its epoch."""

IN_A_ROW: Final = 10
"""So many voids in a row end an evaluation: whatever causes them is no property of the model."""
SHARE: Final = 0.9
"""Probability of intervals."""
METRICS: Final = ("accuracy", "accuracy_low", "accuracy_high", "accuracy_of_chosen")


_ARENAS: Final = re.compile(r"\b(?:arena|episode)s?\b")


class NothingCountsError(RuntimeError):
    """One sample after another came to nothing; the message says why, and what to do."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A sample that was chosen.

    Attributes:
        number: Its number, from 1.
        item: Id of the sample, as text.
        epochs: The epochs as which it is run.
        knew: How many outcomes had been told.
        propensity: Probability with which it was chosen.
        predicted: Predicted probability of success, or mean score.
        gain: Expected drop of variance, summed over capabilities as shares of their squared range.
        reason: The kind of draw.
        because: Why this sample, in words; empty if there is no more to say.
    """

    number: int
    item: str
    epochs: tuple[int, ...]
    knew: int
    propensity: float
    predicted: float
    gain: float
    reason: str
    because: str = ""

    def to_dict(self, demands: Mapping[str, float]) -> dict[str, Any]:
        """Convert to what a sample's metadata keeps of it."""
        return {
            "choice": self.number,
            "knew": self.knew,
            "propensity": self.propensity,
            "predicted": self.predicted,
            "gain": self.gain,
            "reason": self.reason,
            **({"because": self.because} if self.because else {}),
            "demands": dict(demands),
        }


class Came(NamedTuple):
    """What came of one run of a sample.

    Attributes:
        outcome: Its score; None for a void.
        void: Why it does not count; empty if it does.
        late: Whether it failed in an earlier attempt at the task, so that choices that stand rest
            on its being void; its outcome counts in the end.
        limit: The kind of limit that ended it; empty for none.
        refused: Whether the model's content filter ended it.
        tokens: Tokens used.
        cost: Dollars spent.
        seconds: Time it took.
    """

    outcome: float | None
    void: str = ""
    late: bool = False
    limit: str = ""
    refused: bool = False
    tokens: int = 0
    cost: float = 0.0
    seconds: float = 0.0

    @classmethod
    def of(cls, sample: Any, score: str) -> Came:
        """Read it from a sample of inspect_ai, or from its summary in a log.

        Raises:
            LogError: There is no such score, or it is no number.
        """
        outcome, void = scored_of(sample, score)
        metadata: Mapping[str, Any] = sample.metadata or {}
        record: Mapping[str, Any] = metadata.get(KEY) or {}
        errors = getattr(sample, "error_retries", None)
        before = len(errors or ()) if errors is not None else (getattr(sample, "retries", 0) or 0)
        used: Mapping[str, Any] = sample.model_usage or {}
        said = getattr(getattr(sample, "output", None), "choices", None) or ()
        return cls(
            outcome,
            void,
            before > int(record.get("tries", 1)) - 1,
            limit_of(sample),
            any(one.stop_reason == "content_filter" for one in said),
            tokens_of(sample),
            sum(usage.total_cost or 0.0 for usage in used.values()),
            sample.total_time or 0.0,
        )


class Session:
    """Chooses samples and is told what came of them, in the order of choosing.

    Choice k uses the outcomes of the choices 1 to k - at_once, whatever has come beyond them. So
    the same outcomes give the same choices, in whatever order samples finish, and when some or all
    of them are told once more.
    """

    def __init__(self, plan: Plan) -> None:
        """Begin before the first choice."""
        self.plan = plan
        self.learner = plan.learner()
        self.choices: list[Choice] = []
        self.end = ""
        self._came: dict[Run, Came] = {}
        self._told = 0
        self._seconds = 0.0
        self._settled: tuple[int, Learner] | None = None
        self._asked: Counter[str] = Counter()
        self._known: tuple[Any, dict[str, float]] = None, dict.fromkeys(METRICS, math.nan)
        self._lock = threading.RLock()

    def came(self, run: Run, came: Came) -> None:
        """Take in what came of a run. The first word on it stands for choices that follow."""
        before = self._came.get(run)
        if before is not None and before.outcome is None and came.outcome is not None:
            came = came._replace(late=True)  # it was run again after it had been told as void
        self._came[run] = came
        self._settled = None

    def choose(self) -> Choice | None:
        """Make the next choice; None if it waits for outcomes, or there is none to be made.

        Raises:
            NothingCountsError: One sample after another is void.
        """
        with self._lock:
            return self._chosen()

    def _chosen(self) -> Choice | None:
        while not self.end and self._told < len(self.choices) + 1 - self.plan.at_once:
            if not self._tell():
                return None
        if self.end or self._over():
            while self._tell():
                pass
            return None
        pending = [choice.item for choice in self.choices[self._told :]]
        number = len(self.choices)
        chosen = self.learner.ask(pending, number)
        if chosen is None:
            self.end = "every sample that may be chosen was chosen"
            return self._chosen()
        before, n = self._asked[chosen.instance], self.plan.epochs
        self._asked[chosen.instance] += 1
        choice = Choice(
            number + 1,
            chosen.instance,
            tuple(range(before * n + 1, before * n + n + 1)),
            self._told,
            chosen.propensity,
            chosen.predicted,
            chosen.score,
            chosen.reason,
            chosen.because,
        )
        self.choices.append(choice)
        return choice

    @property
    def open(self) -> list[Run]:
        """Runs that were asked for and of which nothing came yet."""
        every = (run for choice in self.choices for run in _runs_of(choice))
        return [run for run in every if run not in self._came]

    def runs(self, choice: Choice) -> list[Came] | None:
        """What came of a choice; None as long as something is open."""
        each = [self._came.get(run) for run in _runs_of(choice)]
        return [one for one in each if one is not None] if None not in each else None

    def outcome(self, choice: Choice, *, late: bool = True) -> float | None:
        """The outcome of a choice as the layout has it; None for a void, and while it is open.

        Args:
            choice: The choice.
            late: Whether one counts that failed in an earlier attempt at the task.

        Raises:
            LogError: The score is none of the layout's.
        """
        runs = self.runs(choice)
        if runs is None or any(run.outcome is None or (run.late and not late) for run in runs):
            return None
        each = [self._single(float(run.outcome or 0.0)) for run in runs]
        return sum(each) if self.plan.trials else sum(each) / len(each)

    def _single(self, score: float) -> float:
        """One run's score as the layout has it: success or failure, or a share."""
        mark, kind = self.plan.pass_mark, self.plan.layout.outcome
        if mark is not None:
            return float(score >= mark)
        if not isinstance(kind, Beta) and score not in (0.0, 1.0):
            raise LogError(
                f"a score is {score:g}, and layout {self.plan.layout.name} takes right or wrong: "
                "say from which score on it is right, as pass_mark=0.5; or give a layout whose "
                "outcome is a score (beta)"
            )
        if not 0.0 <= score <= 1.0:
            raise LogError(f"a score is {score:g}, and one from 0 to 1 is wanted")
        return score

    def _tell(self) -> bool:
        """Tell the next outcome in the order of choosing; False if it has not come."""
        if self._told >= len(self.choices):
            return False
        choice = self.choices[self._told]
        runs = self.runs(choice)
        if runs is None:
            return False
        value = self.outcome(choice, late=False)
        if value is None:
            self.learner.tell_nothing(choice.item, choice.number - 1)
        else:
            self.learner.tell(choice.item, value, choice.number - 1)
        self._seconds += sum(run.seconds for run in runs)
        self._told += 1
        return True

    def _over(self) -> bool:
        """Whether nothing more is chosen, by what was told; `end` then says why."""
        plan, rule = self.plan, self.plan.rule
        self._insist_something_counts()
        told = self.choices[: self._told]
        runs = self._all_runs(told)
        if rule.combine == "any" and len(self.choices) >= rule.max_episodes:
            self.end = f"budget: {rule.max_episodes} samples"
        elif plan.tokens and sum(run.tokens for run in runs) >= plan.tokens:
            self.end = f"budget: {plan.tokens} tokens"
        elif plan.cost and sum(run.cost for run in runs) >= plan.cost:
            self.end = f"budget: {plan.cost:g} dollars"
        else:
            verdict = self.learner.verdict(self._seconds)
            self.end = verdict.reason if verdict.stop else ""
        return bool(self.end)

    def _all_runs(self, choices: Iterable[Choice]) -> list[Came]:
        return [run for choice in choices for run in self.runs(choice) or ()]

    def _insist_something_counts(self) -> None:
        last = self.choices[max(0, self._told - IN_A_ROW) : self._told]
        if len(last) < IN_A_ROW or any(self.outcome(choice) is not None for choice in last):
            return
        why = Counter(run.void for run in self._all_runs(last) if run.void)
        said = ", ".join(f"{count} {word}" for word, count in why.most_common())
        raise NothingCountsError(
            f"the last {IN_A_ROW} samples came to nothing ({said}), so nothing is being measured; "
            "see to the cause and go on by `inspect eval-retry LOG`: what was measured is kept"
        )

    @property
    def final(self) -> Learner:
        """The learner that also knows outcomes which came too late to be chosen by."""
        late = [
            choice
            for choice in self.choices[: self._told]
            if self.outcome(choice, late=False) is None and self.outcome(choice) is not None
        ]
        if not late:
            return self.learner
        if self._settled is None or self._settled[0] != self._told:
            learner = self.plan.learner()
            learner.restore(self.learner.save())
            for choice in late:
                value = self.outcome(choice)
                assert value is not None
                learner.invalidate(choice.number - 1)
                learner.tell(choice.item, value, choice.number - 1)
            self._settled = self._told, learner
        return self._settled[1]

    def accuracy(self) -> dict[str, float]:
        """The mean outcome over all samples that the layout covers, with its interval.

        For right and wrong it is that of `Learner.battery_rate`, which holds also where the layout
        is wrong. Scores and counts have no such interval: theirs is of the layout's predictions,
        and holds if the layout does.

        Returns:
            `accuracy`, `accuracy_low`, `accuracy_high` and `accuracy_of_chosen`; not a number where
            nothing can be told.
        """
        key = self._told, len(self._came)
        # inspect_ai asks for it while the next sample is being chosen in another thread.
        if self._known[0] != key and self._lock.acquire(blocking=False):
            try:
                self._known = key, self._accuracy()
            finally:
                self._lock.release()
        return self._known[1]

    def _accuracy(self) -> dict[str, float]:
        learner = self.final
        shares = [
            value / self._most for value in map(self.outcome, self.choices) if value is not None
        ]
        raw = float(np.mean(shares)) if shares else math.nan
        rate = learner.battery_rate
        if rate.value is not None and rate.low is not None and rate.high is not None:
            ends = rate.value, rate.low, rate.high
        elif learner.n and not isinstance(self.plan.layout.outcome, Bernoulli):
            ends = self._predicted(learner)
        else:
            ends = math.nan, math.nan, math.nan
        return dict(zip(METRICS, (*ends, raw), strict=True))

    def _predicted(self, learner: Learner) -> tuple[float, float, float]:
        """Mean score over all samples with its interval, by what is predicted of the rest."""
        bank, posterior = learner.bank, learner.posterior
        known: dict[str, list[float]] = {}
        for choice in self.choices:
            value = self.outcome(choice)
            if value is not None:
                known.setdefault(choice.item, []).append(value / self._most)
        rest = np.array([name not in known for name in bank.names])
        each = bank.evaluator.by_instance(posterior.particles, bank.distinct, np.float64)
        played = sum(float(np.mean(values)) for values in known.values())
        means = (played + each[bank.place[rest]].sum(axis=0)) / len(bank)
        order = np.argsort(means)
        shares = np.cumsum(posterior.weights[order])
        low, high = (
            float(means[order[min(int(np.searchsorted(shares, p)), len(order) - 1)]])
            for p in (0.5 * (1.0 - SHARE), 0.5 * (1.0 + SHARE))
        )
        return float(means @ posterior.weights), low, high

    @property
    def _most(self) -> int:
        """The most that an outcome may be."""
        return self.plan.epochs if self.plan.trials else 1

    @property
    def saved(self) -> dict[str, Any]:
        """What was not run, beside running every sample once, and what that would have used."""
        runs = self._all_runs(self.choices)
        samples = len({choice.item for choice in self.choices})
        share = (self.plan.size - samples) / max(samples, 1)
        return {
            "of": self.plan.size,
            "chosen": samples,
            "not_run": self.plan.size - samples,
            "tokens": round(share * sum(run.tokens for run in runs)),
            "seconds": round(share * sum(run.seconds for run in runs), 3),
            "cost": round(share * sum(run.cost for run in runs), 6),
        }

    @property
    def voids(self) -> dict[str, Any]:
        """How many runs are void and why, and what their samples demanded in the mean."""
        gone = [
            (choice, run)
            for choice in self.choices
            for run in self.runs(choice) or ()
            if run.outcome is None
        ]
        why = Counter(run.void for _, run in gone)
        rows = {name: k for k, name in enumerate(self.plan.items)}
        features = self.plan.features
        asked = features[[rows[choice.item] for choice, _ in gone]]
        names = self.plan.layout.feature_names
        means = {
            name: {"voids": float(asked[:, k].mean()), "all": float(features[:, k].mean())}
            for k, name in enumerate(names)
            if gone
        }
        said = ", ".join(f"{count} {word}" for word, count in why.most_common())
        most = sorted(names, key=lambda name: -_apart(means, name, features[:, names.index(name)]))
        words = f"{len(gone)} runs do not count: {said}." if gone else ""
        if gone and most:
            name = most[0]
            words += (
                f" Their samples ask for {name} {means[name]['voids']:.3g} in the mean, and all "
                f"samples for {means[name]['all']:.3g}."
            )
        return {"count": len(gone), "why": dict(why), "demands": means, "words": words}

    def profile(self, agent: str, task: str, fitted: FitResult | None = None) -> dict[str, Any]:
        """The profile, as JSON values by the schema `profile`.

        Args:
            agent: Who answered.
            task: Name of the task.
            fitted: A fit by NUTS of the same outcomes; without one it is of the live posterior.
        """
        learner, plan = self.final, self.plan
        stop = learner.verdict(self._seconds)
        came = [self.outcome(one) for one in self.choices if self.runs(one) is not None]
        counted = [value for value in came if value is not None]
        runs = self._all_runs(self.choices)
        limits = Counter(run.limit for run in runs if run.limit and run.outcome is not None)
        refused = sum(run.refused for run in runs)
        gaps = {"left_out": dict(plan.left_out), "covered": len(plan.items), "of": plan.size}
        about: dict[str, Any] = {
            "session": "",
            "agent": agent,
            "battery": task,
            "reason": self.end or "it goes on",
            "ended": stop.end,
            "episodes": len(counted),
            "successes": sum(value >= self._most for value in counted),
            "mean_outcome": sum(counted) / self._most / len(counted) if counted else None,
            "voids": len(came) - len(counted),
            "voids_by_demand": self.voids,
            "limits_reached": dict(limits),
            "refusals": refused,
            "coverage": {**gaps, "warnings": list(plan.notes)},
            "seed": plan.seed,
            "at_once": plan.at_once,
            "misfit": learner.misfit,
            "alarm": learner.alarm,
            "retest": learner.retest,
            "saved": self.saved,
        }
        if fitted is None:
            profile = Profile.of_live(learner.posterior, stop.status, about)
        else:
            profile = Profile.of_fit(fitted, stop.status, about)
        draws = None if fitted is None else fitted.flat_draws
        profile, judged = verdict_of(learner, profile, draws, words=SAMPLES)
        labels = [f"layout contradicted: it does not describe this model {learner.misfit}"]
        said = of_samples({**profile.to_dict(), "verdict": judged.to_dict()})
        return {
            **said,
            "labels": labels * bool(learner.misfit) + ["unfinished"] * (not self.end),
            "battery_rate": self.rate(),
            "controls": [],
            "what_now": [],
        }

    def rate(self) -> dict[str, Any]:
        """The accuracy as profiles have it, with a sentence of items."""
        rate, found = self.final.battery_rate, self.accuracy()
        size, of = len(self.plan.items), self.plan.size
        what = f"all {of} samples" if size == of else f"the {size} of {of} samples with demands"
        value, low, high = (found[name] for name in METRICS[:3])
        ends = {"value": value, "low": low, "high": high}
        if math.isnan(value):
            ends = dict.fromkeys(ends)
            text = f"Accuracy on {what}: cannot be told, since {rate.why or 'nothing came yet'}."
        else:
            text = (
                f"Accuracy on {what}: {value:.0%} ({SHARE:.0%}: {low:.0%} to {high:.0%}). Of those "
                f"chosen it is {found['accuracy_of_chosen']:.0%}. "
            )
            text += (
                "The interval is of the layout's predictions, and holds if the layout does."
                if rate.value is None
                else "The interval holds whether or not the layout describes the model."
            )
        return {**rate.to_dict(of), **ends, "text": text}


def of_samples(value: Any) -> Any:
    """What layouts say of arenas and episodes, said of samples."""
    if isinstance(value, str):
        return _ARENAS.sub(lambda word: f"sample{'s' * word[0].endswith('s')}", value)
    if isinstance(value, dict):
        return {key: of_samples(one) for key, one in cast("dict[str, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [of_samples(one) for one in cast("list[Any]", value)]
    return value


def replayed(plan: Plan, samples: Iterable[Any]) -> Session:
    """Go through an evaluation again, by what its log has of each sample.

    Args:
        plan: What it consisted of.
        samples: Samples of inspect_ai, or summaries of them.

    Raises:
        LogError: The samples are not those that this plan chooses.
    """
    session = Session(plan)
    there = {(str(one.id), int(one.epoch)): one for one in samples}
    for run, sample in there.items():
        session.came(run, Came.of(sample, plan.score))
    try:
        while session.choose() is not None:
            pass
    except NothingCountsError as error:
        session.end = str(error)
    while session.choices and not any(run in there for run in _runs_of(session.choices[-1])):
        session.choices.pop()  # it was chosen and did not come to its end
    chosen = {run for choice in session.choices for run in _runs_of(choice)}
    if stray := sorted(run for run in there if run not in chosen):
        raise LogError(
            f"{len(stray)} samples of this log are not those that its plan chooses, of which the "
            f"first is {stray[0][0]!r}: it was changed, or made by another version of animalcat or "
            "on another platform. Its outcomes can be read by `animalcat.inspect.logs.read_logs`"
        )
    return session


def _runs_of(choice: Choice) -> list[Run]:
    return [(choice.item, epoch) for epoch in choice.epochs]


def _apart(means: Mapping[str, Mapping[str, float]], name: str, column: Any) -> float:
    """By how many standard deviations voids differ from all samples."""
    sd = float(np.std(column))
    return abs(means[name]["voids"] - means[name]["all"]) / sd if sd and name in means else 0.0
