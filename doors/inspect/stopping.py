"""Leaves out of a task of inspect_ai what would tell nothing, in inspect_ai's own order."""

from __future__ import annotations

from typing import Any, Final

from anyio.to_thread import run_sync
from inspect_ai.dataset import Sample
from inspect_ai.log import EvalSpec
from inspect_ai.scorer import SampleScore
from inspect_ai.util import EarlyStop

from animalcat.doors.inspect.logs import KEY, number_of
from animalcat.doors.inspect.plan import Demands, Stop, make_plan
from animalcat.doors.inspect.report import as_json, of_samples, profile_part
from animalcat.layouts.adaptive.information import GainEstimator
from animalcat.layouts.library import LayoutSource

LEAST: Final = 0.1


class LayoutStopping:
    """An `EarlyStopping` of inspect_ai that follows a layout.

    A sample is left out if it would tell next to nothing, and all are once what can be known is
    known. What is known depends on which samples have ended, so under several at once the same
    answers may leave out others. It makes no random draws, so the accuracy on all samples has no
    interval: for that, and for choices that can be repeated, take `adaptive`.
    """

    def __init__(
        self,
        layout: LayoutSource,
        demands: Demands = None,
        score: str = "",
        stop: Stop = None,
        seed: int = 0,
        *,
        least: float = LEAST,
        variant: str = "",
    ) -> None:
        """Prepare it; a task takes it: `Task(..., early_stopping=early_stopping(...))`.

        Args:
            layout: The layout, or what `animalcat.layouts.load_layout` makes one of.
            demands: As for `adaptive`, like `score` and `stop`.
            score: Name of the score that is the outcome; may be left out where there is one.
            stop: When all that is left is left out.
            seed: Seed of the posterior.
            least: A sample is left out if it would contribute less than this share of the best
                one's contribution.
            variant: Variant of the layout; by default the one that is meant.
        """
        self._given: dict[str, Any] = {"layout": layout, "demands": demands, "stop": stop}
        self._given |= {"seed": seed, "variant": variant}
        self._score, self._least = score, least

    async def start_task(self, task: EvalSpec, samples: list[Sample], epochs: int) -> str:
        """Begin with a task; its samples are refused where they lack the demands."""
        some = task.config.limit is not None or task.config.sample_id is not None
        self._plan = make_plan(samples, **self._given, partial=some)
        self._learner = self._plan.learner()
        self._gains = GainEstimator(self._learner.bank)
        self._rows = {name: row for row, name in enumerate(self._plan.bank.names)}
        self._told = self._left_out = 0
        self._about = {"agent": task.model, "battery": task.task}
        return KEY

    async def schedule_sample(self, id: str | int, epoch: int) -> EarlyStop | None:
        """Say whether a sample is left out; one without demands never is."""
        row = self._rows.get(str(id))
        why = "" if row is None else await run_sync(self._why_not, row)
        self._left_out += bool(why)
        return EarlyStop(id=id, epoch=epoch, reason=why) if why else None

    async def complete_sample(
        self, id: str | int, epoch: int, scores: dict[str, SampleScore]
    ) -> None:
        """Take in the scores of a sample."""
        outcome = number_of({name: one.score for name, one in scores.items()}, self._score, id)
        if outcome is not None and str(id) in self._rows:
            self._learner.tell(str(id), outcome, self._told, random=False)
            self._told += 1

    async def complete_task(self) -> dict[str, Any]:
        """The profile of the live posterior, and how many samples were left out, for the log."""
        about = {**self._about, "episodes": self._learner.n}
        profile = as_json(of_samples(profile_part(self._learner, about)))
        gaps = dict(self._plan.left_out)
        return {"profile": profile, "left_out": self._left_out, "without_demands": gaps}

    def _why_not(self, row: int) -> str:
        verdict = self._learner.verdict()
        if verdict.stop:
            return verdict.reason
        told = self._gains.scores(self._learner.posterior).total
        if told[row] < self._least * told.max(initial=0.0):
            return (
                f"it would contribute less than {self._least:.0%} of what the best sample would "
                "contribute"
            )
        return ""


early_stopping = LayoutStopping
