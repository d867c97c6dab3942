"""The adaptive evaluation of one model, without inspect_ai: what is chosen, and what is told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, Final, TypeAlias

from animalcat.doors.inspect.logs import Came, LogError, came_of
from animalcat.doors.inspect.plan import Plan
from animalcat.layouts.adaptive.learner import Learner
from animalcat.layouts.adaptive.policy import RANDOM, Choice

Run: TypeAlias = tuple[str, int]
"""The id of a sample, as text, and its epoch."""

IN_A_ROW: Final = 10
"""So many voids in a row end an evaluation: whatever causes them is no property of the model."""


class NothingCountsError(RuntimeError):
    """One sample after another came to nothing; the message says why, and what to do."""


class Session:
    """Chooses samples and is told what came of them, in the order of choosing.

    Choice k uses the outcomes of the choices 1 to k - at_once, whatever has come beyond them. So
    the same outcomes give the same choices, in whatever order samples finish, and when some or all
    of them are told once more. A running task, one that is tried again, and a log that is read are
    the same to it: `came` says what is known, and `choose` goes on as far as that allows.

    Attributes:
        plan: What the evaluation consists of.
        learner: Knows the outcomes that have been told.
        choices: What was chosen; the `episode` of a choice is its place in this list.
        runs: The runs of each choice: a sample that is chosen again goes on with its next epochs.
        told: How many choices have been told to the learner.
        end: Why nothing more is chosen; empty as long as it goes on.
    """

    def __init__(self, plan: Plan) -> None:
        """Begin before the first choice."""
        self.plan = plan
        self.learner = plan.learner()
        self.choices: list[Choice] = []
        self.runs: list[list[Run]] = []
        self.told = 0
        self.end = ""
        self._came: dict[Run, Came] = {}
        self._asked: Counter[str] = Counter()

    def came(self, run: Run, came: Came) -> None:
        """Take in what came of a run. The first word on it stands for choices that follow."""
        before = self._came.get(run)
        if before is not None and before.outcome is None and came.outcome is not None:
            came = came._replace(late=True)  # it was run again after it had been told as void
        self._came[run] = came

    def choose(self) -> Choice | None:
        """Make the next choice; None if it waits for outcomes, or there is none to be made.

        Raises:
            NothingCountsError: One sample after another is void.
            LogError: The score is none of the layout's.
        """
        while not self.end and self.told < len(self.choices) + 1 - self.plan.at_once:
            if not self._tell():
                return None
        self.end = self.end or self._why_over()
        if not self.end:
            pending = [choice.instance for choice in self.choices[self.told :]]
            chosen = self.learner.ask(pending, len(self.choices))
            if chosen is not None:
                return self._next_choice(chosen)
            self.end = "every sample that may be chosen was chosen"
        while self._tell():
            pass
        return None

    def _next_choice(self, choice: Choice) -> Choice:
        first = self._asked[choice.instance] * self.plan.epochs + 1
        self._asked[choice.instance] += 1
        self.choices.append(choice)
        self.runs.append([(choice.instance, first + k) for k in range(self.plan.epochs)])
        return choice

    @property
    def open(self) -> list[Run]:
        """Runs that were asked for and of which nothing came yet."""
        return [run for runs in self.runs for run in runs if run not in self._came]

    def came_of(self, choice: Choice) -> list[Came]:
        """What came of the runs of a choice; nothing as long as one is open."""
        runs = self.runs[choice.episode]
        return [self._came[run] for run in runs] if all(r in self._came for r in runs) else []

    @property
    def ended(self) -> list[Choice]:
        """The choices whose runs have all come to an end."""
        return [choice for choice in self.choices if self.came_of(choice)]

    def outcome(self, choice: Choice, *, late: bool = True) -> float | None:
        """The outcome of a choice as the layout has it; None for a void, and while it is open.

        Args:
            choice: The choice.
            late: Whether one counts that failed in an earlier attempt at the task.

        Raises:
            LogError: The score is none of the layout's.
        """
        runs = self.came_of(choice)
        scores = [run.outcome for run in runs if late or not run.late]
        each = [self.plan.outcome(score) for score in scores if score is not None]
        if not runs or len(each) < len(runs):
            return None
        return sum(each) if self.plan.most > 1 else sum(each) / len(each)

    def _tell(self) -> bool:
        """Tell the next outcome in the order of choosing; False if it has not come."""
        if self.told == len(self.choices) or not self.came_of(self.choices[self.told]):
            return False
        choice = self.choices[self.told]
        _tell(self.learner, choice, self.outcome(choice, late=False))
        self.told += 1
        return True

    def _why_over(self) -> str:
        """Why nothing more is to be chosen, by what was told; empty if it goes on."""
        self._insist_something_counts()
        plan, rule = self.plan, self.plan.rule
        runs = self.all_runs(self.choices[: self.told])
        if rule.combine == "any" and len(self.choices) >= rule.max_episodes:
            return f"budget: {rule.max_episodes} samples"
        if plan.max_tokens and sum(run.tokens for run in runs) >= plan.max_tokens:
            return f"budget: {plan.max_tokens} tokens"
        if plan.max_cost and sum(run.cost for run in runs) >= plan.max_cost:
            return f"budget: {plan.max_cost:g} dollars"
        verdict = self.learner.verdict(self.seconds)
        return verdict.reason if verdict.stop else ""

    def all_runs(self, choices: Iterable[Choice]) -> list[Came]:
        """What came of the runs of choices."""
        return [run for choice in choices for run in self.came_of(choice)]

    @property
    def seconds(self) -> float:
        """How long the samples that were told took, added up."""
        return sum(run.seconds for run in self.all_runs(self.choices[: self.told]))

    def _insist_something_counts(self) -> None:
        last = self.choices[max(0, self.told - IN_A_ROW) : self.told]
        if len(last) < IN_A_ROW or any(self.outcome(choice) is not None for choice in last):
            return
        why = Counter(run.void for run in self.all_runs(last) if run.void)
        said = ", ".join(f"{count} {word}" for word, count in why.most_common())
        raise NothingCountsError(
            f"the last {IN_A_ROW} samples came to nothing ({said}), so nothing is being measured; "
            "fix the cause and go on with `inspect eval-retry LOG`: what was measured is kept"
        )

    @property
    def final(self) -> Learner:
        """The learner that also knows outcomes which came too late to be chosen by."""
        told = self.choices[: self.told]
        if not any(run.late for run in self.all_runs(told)):
            return self.learner
        learner = self.plan.learner()
        for choice in told:
            _tell(learner, choice, self.outcome(choice))
        return learner


def _tell(learner: Learner, choice: Choice, outcome: float | None) -> None:
    """Tell a learner the outcome of a choice, which another may have made."""
    random, wager = choice.reason == RANDOM, choice.wager
    if outcome is None:
        learner.tell_nothing(choice.instance, choice.episode, random=random, wager=wager)
    else:
        learner.tell(choice.instance, outcome, choice.episode, random=random, wager=wager)


def replay_session(plan: Plan, samples: Iterable[Any]) -> Session:
    """Go through an evaluation again, by what its log has of each sample.

    Args:
        plan: What it consisted of.
        samples: Samples of inspect_ai, or summaries of them.

    Raises:
        LogError: The samples are not those that this plan chooses.
    """
    session = Session(plan)
    there = {(str(one.id), int(one.epoch)): came_of(one, plan.score) for one in samples}
    for run, came in there.items():
        session.came(run, came)
    try:
        while session.choose() is not None:
            pass
    except NothingCountsError as error:
        session.end = str(error)
    while session.runs and there.keys().isdisjoint(session.runs[-1]):
        session.choices.pop()  # it was chosen and did not come to its end
        session.runs.pop()
    chosen = {run for runs in session.runs for run in runs}
    if stray := sorted(there.keys() - chosen):
        raise LogError(
            f"{len(stray)} samples of this log are not those that its plan chooses, of which the "
            f"first is {stray[0][0]!r}: it was changed, or made by another version of animalcat or "
            "on another platform. Its outcomes can be read by `animalcat.doors.inspect.read_logs`"
        )
    return session
