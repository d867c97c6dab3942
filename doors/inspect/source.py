"""A task of inspect_ai whose samples are chosen while it runs, and what its log keeps of that."""

from __future__ import annotations

import hashlib
import json
import logging
import math
import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from functools import wraps
from itertools import count
from typing import Any, Final, cast
from weakref import WeakValueDictionary

import anyio
from anyio.to_thread import run_sync
from inspect_ai import SampleSource, Task, enqueue_sample
from inspect_ai.dataset import Sample
from inspect_ai.hooks import Hooks, SampleAttemptStart, TaskEnd, TaskStart, hooks
from inspect_ai.log import (
    EvalLog,
    EvalSample,
    EvalSpec,
    HeadlineMetric,
    MetadataEdit,
    ProvenanceData,
    edit_eval_log,
    write_eval_log_async,
)
from inspect_ai.scorer import (
    Metric,
    SampleScore,
    Score,
    Scorer,
    Target,
    Value,
    metric,
    value_to_float,
)
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.util import materialize_media, registry_info

from animalcat.doors.inspect.earlier import teach
from animalcat.doors.inspect.logs import KEY, Came, came_of, inside, metadata_of, record_of
from animalcat.doors.inspect.plan import Demands, Plan, PlanError, Stop, make_plan
from animalcat.doors.inspect.report import (
    METRICS,
    accuracy_of,
    as_json,
    profile_of,
    rows_of,
    summary_of,
)
from animalcat.doors.inspect.results import CHOICES, PROFILE, SUMMARY
from animalcat.doors.inspect.session import Session
from animalcat.layouts.adaptive.policy import Choice
from animalcat.layouts.library import LayoutSource
from animalcat.layouts.model.nodes import Beta

DEMANDS: Final = f"{KEY}_demands"
"""The key under which a sample's metadata has what it demands."""
_sources: WeakValueDictionary[str, AdaptiveSource] = WeakValueDictionary()
_numbers: Final = count(1)
_tries: Final[dict[str, int]] = {}
"""How often a sample that runs now was begun, by its uuid, where that is more than once."""
_log: Final = logging.getLogger(__name__)


class SharedSourceError(RuntimeError):
    """One adaptive task is run for several models at once; the message has the remedy."""


class AdaptiveSource(SampleSource):
    """Gives a task the samples that a session chooses, and tells the session what came of them.

    The learner works in a thread, so that samples run on meanwhile.
    """

    def __init__(self, plan: Plan, samples: Sequence[Sample]) -> None:
        """Prepare it for one model at a time, with the task's own samples."""
        self.plan = plan
        text = json.dumps(plan.to_dict(), sort_keys=True)
        self.key = f"{hashlib.sha256(text.encode()).hexdigest()[:12]}-{next(_numbers)}"
        self.session = Session(plan)
        self._samples = {str(one.id): one for one in samples}
        self._run = self._task = self._model = ""
        self._shared = False
        self._choosing = anyio.Lock()
        self._learning = threading.Lock()
        self._accuracy: dict[str, float] = dict.fromkeys(METRICS, math.nan)
        _sources[self.key] = self

    def begin(self, run: str, task: str, model: str) -> None:
        """Begin an evaluation from the first choice on; tried again, its task has the same id."""
        self._shared = self._run == run and self._task != task
        self._run, self._task, self._model = run, task, model
        self.session = Session(self.plan)
        self._choosing = anyio.Lock()
        self._accuracy = dict.fromkeys(METRICS, math.nan)

    async def next_samples(self) -> list[Sample] | None:
        """Called while nothing runs: chooses on, and ends the task when nothing is left."""
        self._insist_alone()
        taught = self.plan.layout.calibration
        if taught is not None and self._model in taught.agents:
            raise RuntimeError(
                f"{self._model} is one of the models whose logs say how hard the samples are, so "
                "its own outcomes would count twice: leave its logs out of earlier="
            )
        if waiting := self.session.open:
            raise RuntimeError(
                f"{len(waiting)} samples were chosen and not run, of which the first is "
                f"{waiting[0][0]!r}: --sample-id leaves them out, and a choice goes over all "
                "samples of the task. Give a task with fewer samples instead"
            )
        return [] if await self._go_on() else None

    async def sample_complete(self, sample: EvalSample) -> list[Sample] | None:
        """Take in what came of a sample, and choose on as far as that allows."""
        self._insist_alone()
        self.session.came((str(sample.id), sample.epoch), came_of(sample, self.plan.score))
        await self._go_on()
        return None

    async def sample_abandoned(self, sample: Sample, epoch: int) -> list[Sample] | None:
        """Take in that an operator cancelled a sample before it ran."""
        self._insist_alone()
        self.session.came((str(sample.id), epoch), Came(None, "cancelled"))
        await self._go_on()
        return None

    async def _go_on(self) -> bool:
        """Make and enqueue all choices that can be made; whether there were any."""
        made = False
        async with self._choosing:
            while (choice := await run_sync(self._choose)) is not None:
                self._insist_alone()  # another model may have begun meanwhile
                made, sample = True, await self._sample(choice)
                for _, epoch in self.session.runs[choice.episode]:
                    enqueue_sample(sample, epoch=epoch)
        return made

    def _insist_alone(self) -> None:
        if self._shared:
            raise SharedSourceError(
                "one adaptive task was given several models, and what it asks depends on who "
                "answers. Make a task for each model, as "
                "eval([adaptive(..., model=m) for m in models]), or run `inspect eval` once for "
                "each"
            )

    def _choose(self) -> Choice | None:
        with self._learning:
            return self.session.choose()

    def accuracy(self) -> dict[str, float]:
        """What `accuracy_of` says, or said last while the learner is at work in its thread."""
        if self._learning.acquire(blocking=False):
            try:
                self._accuracy = accuracy_of(self.session)
            finally:
                self._learning.release()
        return self._accuracy

    def chose(self, samples: set[str]) -> bool:
        """Whether samples were chosen by it, and are not of another log."""
        return samples <= {choice.instance for choice in self.session.choices}

    async def _sample(self, choice: Choice) -> Sample:
        """The task's own sample, which says why it was chosen."""
        sample = self._samples[choice.instance]
        record = {
            "choice": choice.episode + 1,
            "reason": choice.reason,
            "propensity": choice.propensity,
            "predicted": choice.predicted,
            "gain": choice.score,
        }
        asked = {KEY: record, DEMANDS: dict(self.plan.demands[choice.instance])}
        metadata = {**metadata_of(sample), **asked}
        return await inline_media(sample.model_copy(update={"metadata": metadata}))


async def inline_media(sample: Sample) -> Sample:
    """A sample whose pictures, sounds and documents are data URLs.

    inspect_ai reads files for the samples that a task has from the start, and not for others.
    """
    if isinstance(sample.input, str):
        return sample
    messages = [message.model_copy() for message in sample.input]
    for message in messages:
        if not isinstance(message.content, str):
            message.content = [await _inline_part(part) for part in message.content]
    return sample.model_copy(update={"input": messages})


async def _inline_part(part: Any) -> Any:
    """A part of a message: an image has its place as `image`, a sound as `audio`, and so on."""
    place = getattr(part, part.type, None)
    if part.type not in ("image", "audio", "video", "document") or not isinstance(place, str):
        return part
    url = await materialize_media(place, getattr(part, "mime_type", None))
    return part.model_copy(update={part.type: url})


def adaptive(
    task: Task | str,
    layout: LayoutSource,
    demands: Demands = None,
    score: str = "",
    stop: Stop = None,
    seed: int = 0,
    *,
    model: Any = None,
    args: Mapping[str, Any] | None = None,
    earlier: Iterable[str | os.PathLike[str]] | str | os.PathLike[str] | None = None,
    **options: Any,
) -> Task:
    """Make a task adaptive: it runs the most informative samples, until the model is known.

        from animalcat.doors.inspect import adaptive

        eval(adaptive(my_task(), layout="layout.yaml", demands="demands.csv"), model="...")

    The samples keep their ids, so that others can be joined to them, and repeats are epochs. The
    metric `accuracy` is the estimated accuracy on all samples, with the ends of its 90 % interval;
    that of the samples that were chosen is `accuracy_of_chosen`. The log has the profile, and every
    choice with its propensity.

    A limit of messages, tokens or turns is an outcome as it is scored. What ends by a limit of time
    or cost, by an error or an operator is a void: it is counted and says nothing of the model.

    Args:
        task: The task, or FILE@NAME or the registered name of one. Its own epochs are not run.
        layout: The layout, or what `animalcat.layouts.load_layout` makes one of.
        demands: Where the demands of a sample are: keys of its metadata, keys by the layout's name
            of each, a CSV by sample id, or a function of a sample. By default the metadata has them
            under the layout's names.
        score: Name of the score that is the outcome, as "scorer" or "scorer.key"; may be left out
            where there is one.
        stop: When to stop: a `StoppingRule`, its attributes, "quick", "standard" or "thorough", or
            a number of samples; with `target="accuracy"` also a width of its interval, as 0.2.
            Seconds are those of the samples, added up.
        seed: Seed of all randomness.
        model: The model to evaluate; by default the one that inspect_ai is given.
        args: Arguments of the task, where it is named.
        earlier: Logs of the same samples by two or more other models, or folders of logs. They say
            how hard each sample is beyond its demands.
        **options: What else `animalcat.doors.inspect.plan.make_plan` takes: `at_once`, `epochs`,
            `pass_mark`, `falling`, `exposures`, `exposure`, `common`, `group`, `variant`,
            `partial`, `policy`, `target`, `max_tokens`, `max_cost`.

    Raises:
        PlanError: The task has no samples, ids are not unique, demands are missing or all alike.
        LogError: A log of `earlier` cannot be read, or is of other samples.
        ValueError: The layout, the policy or the rule is wrong, or a demand is out of range.
    """
    given = _load_task(task, args or {})
    if given.sample_source is not None or given.early_stopping is not None:
        what = "stops early" if given.sample_source is None else "chooses its samples itself"
        raise PlanError(f"the task {given.name} {what}; give one with a fixed set of samples")
    counts = _counting_scorer(given, score)
    samples = [
        one if one.id is not None else one.model_copy(update={"id": number})
        for number, one in enumerate(given.dataset, start=1)  # as inspect_ai counts them
    ]
    plan = make_plan(samples, layout, demands, score=score, stop=stop, seed=seed, **options)
    if plan.pass_mark is None and not isinstance(plan.layout.outcome, Beta):
        _insist_on_right_or_wrong((given.scorer or ())[counts], plan.layout.name)
    if earlier is not None:
        plan = teach(plan, {str(one.id): one for one in samples}, earlier)
    for note in plan.notes:
        _log.warning(note)
    source = AdaptiveSource(plan, samples)
    made = copy(given)
    # inspect_ai notes how to make a task again, and without us it would run all of its samples.
    made.__dict__ = {name: value for name, value in vars(given).items() if name[:2] != "__"}
    setup = given.setup if isinstance(given.setup, Sequence) else filter(None, [given.setup])
    task_with: Any = inside("_eval.task", "task_with")  # its types are not all known
    return task_with(
        made,
        name=f"{given.name.split('/')[-1]}-adaptive",
        dataset=source,
        setup=[note_tries(), *setup],
        scorer=[
            _measuring(one, measured(source.key if k == counts else "", plan.score))
            for k, one in enumerate(given.scorer or ())
        ],
        metrics=None,
        headline_metric=HeadlineMetric(metric="accuracy"),
        epochs=1,
        fail_on_error=False,
        continue_on_fail=True,
        metadata={**metadata_of(given), KEY: {**plan.to_dict(), "source": source.key}},
        **({} if model is None else {"model": model}),
    )


def _load_task(task: Task | str, args: Mapping[str, Any]) -> Task:
    if isinstance(task, Task):
        return task
    if not isinstance(task, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise PlanError(f"task is a {type(task).__name__}; give a Task, or FILE@NAME of one")
    found: list[Task] = inside("_eval.loader", "load_tasks")([task], dict(args))
    if len(found) != 1:
        names = ", ".join(one.name for one in found)
        raise PlanError(f"{task} has {len(found)} tasks ({names}); name one, as {task}@NAME")
    return found[0]


def _counting_scorer(task: Task, score: str) -> int:
    """Which of a task's scorers gives the score that counts, by what a log calls them.

    Raises:
        PlanError: None does.
    """
    unique, names = inside("scorer._scorer", "unique_scorer_name"), list[str]()
    for one in task.scorer or ():
        names.append(unique(one, names))
    there = ", ".join(names)
    if not names:
        raise PlanError(f"the task {task.name} has no scorer, so nothing says what is right")
    if not score and len(names) > 1:
        raise PlanError(f"the task has several scorers: {there}; name one, as score=NAME")
    if score and not {score, score.split(".")[0]} & {*names}:
        raise PlanError(f"the task has no scorer {score!r}; there are: {there}")
    return names.index(score if score in names else score.split(".")[0]) if score else 0


def _insist_on_right_or_wrong(scorer: Scorer, layout: str) -> None:
    """Refuse a scorer that says itself that it gives parts of the whole.

    Raises:
        PlanError: It does.
    """
    info = registry_info(scorer)
    asked: dict[str, Any] = inside("_util.registry", "registry_params")(scorer)
    listed: Any = info.metadata.get("metrics", ())
    each = [one for one in listed if callable(one)] if type(listed) in (list, tuple) else []
    names = {registry_info(one).name.split("/")[-1] for one in each}
    if asked.get("partial_credit") or ("mean" in names and "accuracy" not in names):
        raise PlanError(
            f"the scorer {info.name} gives partial scores, and layout {layout} takes right or "
            "wrong: say by pass_mark= from which score on an answer is right (1 where it gives 0 "
            "and 1 alone), or give a layout whose outcome is a score (beta)"
        )


def _measuring(scorer: Scorer, metric: Metric) -> Scorer:
    """A scorer with another metric; the given one, which other tasks may have too, stays.

    It notes in the sample whether a filter held the answer back, which summaries of logs leave out.
    """

    @wraps(scorer)
    async def score(state: TaskState, target: Target) -> Score | None:
        if state.output.choices and state.output.stop_reason == "content_filter":
            state.metadata[KEY] = {**record_of(state), "refused": True}
        return await scorer(state, target)

    info = registry_info(scorer)
    own = info.model_copy(update={"metadata": {**info.metadata, "metrics": [metric]}})
    vars(score)["__registry_info__"] = own
    return cast("Scorer", score)


@solver
def note_tries() -> Solver:
    """Note in a sample how often it was begun in this attempt at the task."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        if (tries := _tries.pop(state.uuid, 1)) > 1:
            state.metadata[KEY] = {**record_of(state), "tries": tries}
        return state

    return solve


@metric
def measured(source: str, score: str = "") -> Metric:
    """The estimated accuracy on all samples with its interval, and that of the chosen ones.

    The scores of a scorer that does not count have no source.
    """
    part = score.partition(".")[2]

    def compute(scores: list[SampleScore]) -> Value:
        made = _sources.get(source)
        if made is not None and made.chose({str(one.sample_id) for one in scores}):
            return cast("Value", made.accuracy())
        each = [_mean_of(one.score, part) for one in scores]  # another scorer's, or another log's
        return {"accuracy_of_chosen": sum(each) / len(each) if each else 0.0}

    return cast("Metric", compute)


def _mean_of(score: Score, part: str) -> float:
    value: Any = score.value
    if isinstance(value, dict):
        parts = cast("dict[str, Any]", value)
        value = parts.get(part, next(iter(parts.values()), 0.0))
    return value_to_float()(value)


class AdaptiveHooks(Hooks):
    """Follows the tasks that we made, and no others."""

    async def on_task_start(self, data: TaskStart) -> None:
        """Begin an evaluation, or another attempt at one."""
        if (source := _source_of(data.spec)) is not None:
            source.begin(data.run_id, data.spec.task_id, data.spec.model)

    async def on_sample_attempt_start(self, data: SampleAttemptStart) -> None:
        """Note that a sample is begun again."""
        if data.attempt > 1:
            _tries[data.sample_id] = data.attempt

    async def on_task_end(self, data: TaskEnd) -> None:
        """Write profile and choices into the log of one of our tasks."""
        log = data.log
        if (source := _source_of(log.eval)) is not None:
            session = source.session
            session.end = session.end or "inspect_ai ended the task, as by --limit"
            profile = await run_sync(profile_of, session, log.eval.model, log.eval.task)
            kept = {SUMMARY: summary_of(profile), PROFILE: profile, CHOICES: rows_of(session)}
            await write_into(log, kept)


_hooked: Final[Any] = hooks(
    name="adaptive", description="Keeps the profiles of adaptive tasks in their logs."
)
_hooked(AdaptiveHooks)


async def write_into(log: EvalLog, metadata: Mapping[str, Any]) -> None:
    """Add to a log's metadata, in its file too; the log is changed."""
    edit = MetadataEdit(metadata_set=as_json(metadata))
    reason = "what adaptive evaluation found out"
    edited = edit_eval_log(log, [edit], ProvenanceData(author=KEY, reason=reason))
    log.log_updates = edited.log_updates
    log.recompute_tags_and_metadata()
    if log.location:
        await write_eval_log_async(log, log.location, header_only=True)


def _source_of(one: EvalSpec) -> AdaptiveSource | None:
    """The source of a task of ours; None for the tasks of others."""
    return _sources.get(str(record_of(one).get("source")))
