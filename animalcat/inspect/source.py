"""A task of inspect_ai whose samples are chosen while it runs, and what its log keeps of that."""

from __future__ import annotations

import base64
import hashlib
import json
import logging
import mimetypes
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from copy import copy
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any, Final, cast
from weakref import WeakValueDictionary

import anyio
from anyio.to_thread import run_sync
from inspect_ai import SampleSource, Task, enqueue_sample
from inspect_ai.dataset import Sample
from inspect_ai.hooks import Hooks, RunEnd, SampleAttemptStart, TaskEnd, TaskStart, hooks
from inspect_ai.log import (
    EvalLog,
    EvalSample,
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

from animalcat.inspect.logs import KEY
from animalcat.inspect.plan import Demands, Plan, PlanError, Stop, make_plan
from animalcat.inspect.results import CHOICES, PROFILE
from animalcat.inspect.session import Came, Choice, Session
from animalcat.layouts.adaptive.plan import Policy
from animalcat.layouts.library import LayoutSource

SETTING: Final = (
    "__registry_info__",
    "__registry_params__",
    "__task_file__",
    "__task_all_params__",
)
"""What inspect_ai notes on a task so that it can be made again: made again without us, a task would
run all of its samples."""
_MEDIA: Final = ("image", "audio", "video", "document")
_sources: WeakValueDictionary[str, AdaptiveSource] = WeakValueDictionary()
_numbers: Final = count(1)
_tries: Final[dict[str, int]] = {}
"""How often a sample that runs now was begun, by its uuid, where that is more than once."""
_running: ContextVar[str] = ContextVar("animalcat_running", default="")
"""Which evaluation a call belongs to."""
_task_with: Final[Any] = import_module("inspect_ai").task_with
_log: Final = logging.getLogger(__name__)


class SharedSourceError(RuntimeError):
    """One adaptive task is run for several models at once; the message has the remedy."""


class AdaptiveSource(SampleSource):
    """Gives a task the samples that a session chooses, and tells the session what came of them."""

    def __init__(self, plan: Plan, samples: Sequence[Sample]) -> None:
        """Prepare it for one model at a time.

        Args:
            plan: What the evaluation consists of.
            samples: The task's own samples, each with its id.
        """
        self.plan = plan
        text = json.dumps(plan.to_dict(), sort_keys=True)
        self.key = f"{hashlib.sha256(text.encode()).hexdigest()[:12]}-{next(_numbers)}"
        self.session = Session(plan)
        self._samples = {str(one.id): one for one in samples}
        self._of = ("", "", "")
        self._refused = False
        self._lock = anyio.Lock()
        _sources[self.key] = self

    def begin(self, run: str, task: str, evaluation: str) -> None:
        """Begin an evaluation, or another attempt at one, from the first choice on.

        Args:
            run: Id of the run.
            task: Id of the task, which stays when it is tried again.
            evaluation: Id of the attempt.
        """
        before_run, before_task, _ = self._of
        self._refused = before_run == run and before_task != task
        self._of = (run, task, evaluation)
        self.session = Session(self.plan)
        self._lock = anyio.Lock()
        _running.set(evaluation)

    def over(self, run: str) -> None:
        """Note that a run has ended."""
        if self._of[0] == run:
            self._of = ("", "", "")

    async def next_samples(self) -> list[Sample] | None:
        """Called while nothing runs: chooses on, and ends the task when nothing is left to choose.

        Raises:
            RuntimeError: Samples were chosen and not run.
            SharedSourceError: Several models are evaluated.
        """
        self._insist_alone()
        waiting = self.session.open
        if waiting:
            raise RuntimeError(
                f"{len(waiting)} samples were chosen and not run, of which the first is "
                f"{waiting[0][0]!r}: --sample-id leaves them out, and a choice goes over all "
                "samples of the task. Give a task with fewer samples instead"
            )
        return [] if await self._choose() else None

    async def sample_complete(self, sample: EvalSample) -> list[Sample] | None:
        """Take in what came of a sample, and choose on as far as that allows.

        Raises:
            LogError: It has no score of the name that was given.
            SharedSourceError: Several models are evaluated.
        """
        self._insist_alone()
        came = Came.of(sample, self.plan.score)
        self.session.came((str(sample.id), sample.epoch), came)
        await self._choose()
        return None

    async def sample_abandoned(self, sample: Sample, epoch: int) -> list[Sample] | None:
        """Take in that an operator cancelled a sample before it ran."""
        self._insist_alone()
        self.session.came((str(sample.id), epoch), Came(None, "cancelled"))
        await self._choose()
        return None

    async def _choose(self) -> bool:
        """Make and enqueue all choices that can be made; whether there were any."""
        made = False
        async with self._lock:
            session = self.session
            while (choice := await run_sync(session.choose)) is not None:
                made = True
                for epoch in choice.epochs:
                    enqueue_sample(self._sample(choice), epoch=epoch)
        return made

    def _sample(self, choice: Choice) -> Sample:
        """The task's own sample, which says why it was chosen."""
        sample = self._samples[choice.item]
        record = choice.to_dict(self.plan.demands_of(choice.item))
        metadata = {**(sample.metadata or {}), KEY: record}
        return inlined(sample.model_copy(update={"metadata": metadata}))

    def _insist_alone(self) -> None:
        if self._refused or (_running.get() and _running.get() != self._of[2]):
            raise SharedSourceError(
                "one adaptive task was given several models, and what it asks depends on who "
                "answers. Make a task for each model, as "
                "eval([adaptive(..., model=m) for m in models]), or run `inspect eval` once for "
                "each"
            )


def inlined(sample: Sample) -> Sample:
    """A sample whose pictures, sounds and documents are data URLs.

    inspect_ai reads files for the samples that a task has from the start, and not for others.
    """
    if isinstance(sample.input, str):
        return sample
    messages: list[Any] = []
    for message in sample.input:
        content: Any = message.content
        if not isinstance(content, str):
            content = [_inlined_part(part) for part in content]
        messages.append(message.model_copy(update={"content": content}))
    return sample.model_copy(update={"input": messages})


def _inlined_part(part: Any) -> Any:
    for name in _MEDIA:
        place = getattr(part, name, None)
        if isinstance(place, str) and not place.startswith(("data:", "http:", "https:")):
            path = Path(place.removeprefix("file://")).expanduser()
            if path.is_file():
                kind = getattr(part, "mime_type", None) or mimetypes.guess_type(path)[0]
                content = base64.b64encode(path.read_bytes()).decode()
                url = f"data:{kind or 'application/octet-stream'};base64,{content}"
                return part.model_copy(update={name: url})
    return part


def adaptive(
    task: Task | str,
    layout: LayoutSource,
    demands: Demands = None,
    score: str = "",
    stop: Stop = None,
    seed: int = 0,
    *,
    at_once: int = 1,
    epochs: int = 1,
    exposures: int = 1,
    exposure: float = 1.0,
    common: int = 0,
    group: str = "",
    variant: str = "",
    pass_mark: float | None = None,
    policy: Policy | Mapping[str, Any] | str | None = None,
    max_tokens: int = 0,
    max_cost: float = 0.0,
    model: Any = None,
    args: Mapping[str, Any] | None = None,
) -> Task:
    """Make a task adaptive: it runs the samples that tell most of a model, until that is known.

        from animalcat.inspect import adaptive

        eval(adaptive(my_task(), layout="layout.yaml", demands="demands.csv"), model="...")

    The samples keep their ids, so that others can be joined to them, and repeats are epochs. The
    metric `accuracy` is the estimated accuracy on all samples, with the ends of its 90 % interval;
    that of the samples that were chosen is `accuracy_of_chosen`. The log has the profile, and every
    choice with its propensity.

    A limit of messages, tokens or turns is an outcome as it is scored. What ends by a limit of time
    or cost, by an error or an operator is a void: it is counted and says nothing of the model.

    Args:
        task: The task, or FILE@NAME or the registered name of one.
        layout: The layout, or what `animalcat.layouts.load_layout` makes one of.
        demands: Where the demands of a sample are: keys of its metadata, keys by the layout's name
            of each, a CSV by sample id, or a function of a sample. By default the metadata has them
            under the layout's names.
        score: Name of the score that is the outcome, as "scorer" or "scorer.key"; may be left out
            where there is one.
        stop: When to stop: a `StoppingRule`, its attributes, "quick", "standard" or "thorough", or
            a number of samples. Seconds are those of the samples, added up.
        seed: Seed of all randomness.
        at_once: How many samples may run at once. Choice k uses the outcomes of the choices 1 to
            k - at_once, so that the same answers give the same choices.
        epochs: How often a sample is run for one choice: for layouts of counts ("k of n right") and
            of mean scores. The task's own epochs are not run.
        exposures: How often a sample may be chosen; 0 for any number of times.
        exposure: Share of the samples that may be chosen under one seed, so that not every model is
            asked the same few.
        common: Number of random samples that come first and are the same for every model.
        group: Key of the metadata that says what kind a sample is; random draws are balanced by it.
        variant: Variant of the layout; by default the one that is meant.
        pass_mark: From which score on an outcome is right; None where a score is right or wrong.
        policy: How to choose: a `Policy`, its attributes, or its name.
        max_tokens: How many tokens all samples may use together; 0 for any number.
        max_cost: How many dollars they may cost together; 0 for any.
        model: The model to evaluate; by default the one that inspect_ai is given.
        args: Arguments of the task, where it is named.

    Raises:
        PlanError: The task has no samples, ids are not unique, demands are missing or all alike.
        ValueError: The layout, the policy or the rule is wrong, or a demand is out of range.
    """
    given = _loaded(task, args or {})
    for name, what in (
        ("sample_source", "chooses its samples itself"),
        ("early_stopping", "stops early"),
    ):
        if getattr(given, name) is not None:
            raise PlanError(f"the task {given.name} {what}; give one with a fixed set of samples")
    samples = [
        one if one.id is not None else one.model_copy(update={"id": number})
        for number, one in enumerate(given.dataset, start=1)  # as inspect_ai counts them
    ]
    plan = make_plan(
        samples,
        layout,
        demands,
        stop=stop,
        policy=policy,
        exposures=exposures,
        common=common,
        group=group,
        variant=variant,
        score=_score_of(given, score),
        seed=seed,
        at_once=at_once,
        epochs=epochs,
        exposure=exposure,
        pass_mark=pass_mark,
        tokens=max_tokens,
        cost=max_cost,
    )
    for note in plan.notes:
        _log.warning(note)
    source = AdaptiveSource(plan, samples)
    made = copy(given)
    for name in SETTING:
        made.__dict__.pop(name, None)
    setup = given.setup
    before = [] if setup is None else [*setup] if isinstance(setup, Sequence) else [setup]
    made: Task = _task_with(
        made,
        name=f"{given.name.split('/')[-1]}-adaptive",
        dataset=source,
        setup=[note_tries(), *before],
        scorer=[_measuring(one, measured(source.key, plan.score)) for one in given.scorer or ()],
        metrics=None,
        headline_metric=HeadlineMetric(metric="accuracy"),
        epochs=1,
        fail_on_error=False,
        continue_on_fail=True,
        metadata={**(given.metadata or {}), KEY: {**plan.to_dict(), "source": source.key}},
    )
    return made if model is None else _task_with(made, model=model)


def _loaded(task: Task | str, args: Mapping[str, Any]) -> Task:
    if isinstance(task, Task):
        return task
    if not isinstance(task, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise PlanError(f"task is a {type(task).__name__}; give a Task, or FILE@NAME of one")
    loader: Any = import_module("inspect_ai._eval.loader")
    found: list[Task] = loader.load_tasks([task], dict(args))
    if len(found) != 1:
        names = ", ".join(one.name for one in found)
        raise PlanError(f"{task} has {len(found)} tasks ({names}); name one, as {task}@NAME")
    return found[0]


def _measuring(scorer: Scorer, metric: Metric) -> Scorer:
    """A scorer with another metric; the given one, which other tasks may have too, stays."""

    async def score(state: TaskState, target: Target) -> Score | None:
        return await scorer(state, target)

    vars(score).update(vars(scorer))
    info: Any = getattr(scorer, SETTING[0])
    metadata = {**info.metadata, "metrics": [metric]}
    setattr(score, SETTING[0], info.model_copy(update={"metadata": metadata}))
    return cast("Scorer", score)


def _score_of(task: Task, score: str) -> str:
    """The name of the score that is meant, as far as the scorers' names say it."""
    registry: Any = import_module("inspect_ai._util.registry")
    names = [str(registry.registry_unqualified_name(one)) for one in task.scorer or ()]
    if not names:
        raise PlanError(f"the task {task.name} has no scorer, so nothing says what is right")
    if not score and len(names) > 1:
        raise PlanError(
            f"the task has several scorers: {', '.join(names)}; say which one counts, as score=NAME"
        )
    if score and score not in names and score.split(".")[0] not in names:
        raise PlanError(f"the task has no scorer {score!r}; there are: {', '.join(names)}")
    return score


@solver
def note_tries() -> Solver:
    """Note in a sample how often it was begun in this attempt at the task."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        tries = _tries.pop(state.uuid, 1)
        record = (state.metadata or {}).get(KEY)
        if tries > 1 and isinstance(record, dict):
            state.metadata[KEY] = {**cast("dict[str, Any]", record), "tries": tries}
        return state

    return solve


@metric
def measured(source: str, score: str = "") -> Metric:
    """The estimated accuracy on all samples with its interval, and that of the chosen ones.

    Args:
        source: The source that chose the samples.
        score: The score that is the outcome.
    """

    def compute(scores: list[SampleScore]) -> Value:
        made = _sources.get(source)
        scorer, _, key = score.partition(".")
        if made is not None and _is_of(made.session, scores) and _named(scores, scorer):
            return cast("Value", made.session.accuracy())
        return {"accuracy_of_chosen": _mean(scores, key)}

    return cast("Metric", compute)


def _is_of(session: Session, scores: Sequence[SampleScore]) -> bool:
    """Whether scores are those of a session's samples, and not of another log."""
    chosen = {choice.item for choice in session.choices}
    return {str(one.sample_id) for one in scores} <= chosen


def _named(scores: Sequence[SampleScore], scorer: str) -> bool:
    return not scorer or all(one.scorer in (None, scorer) for one in scores)


def _mean(scores: Sequence[SampleScore], key: str) -> float:
    number = value_to_float()
    values: list[float] = []
    for one in scores:
        value: Any = one.score.value
        if isinstance(value, dict):
            parts = cast("dict[str, Any]", value)
            value = parts.get(key, next(iter(parts.values()), 0.0))
        values.append(number(value))
    return sum(values) / len(values) if values else 0.0


class AdaptiveHooks(Hooks):
    """Follows the tasks that we made, and no others."""

    async def on_task_start(self, data: TaskStart) -> None:
        """Begin an evaluation, or another attempt at one."""
        if (source := _source_of(data.spec.metadata)) is not None:
            source.begin(data.run_id, data.spec.task_id, data.eval_id)

    async def on_sample_attempt_start(self, data: SampleAttemptStart) -> None:
        """Note that a sample is begun again."""
        if data.attempt > 1:
            _tries[data.sample_id] = data.attempt

    async def on_task_end(self, data: TaskEnd) -> None:
        """Write profile and choices into the log of one of our tasks."""
        if (source := _source_of(data.log.eval.metadata)) is not None:
            await keep(data.log, source.session)

    async def on_run_end(self, data: RunEnd) -> None:
        """Note that a run has ended, however it did."""
        for source in list(_sources.values()):
            source.over(data.run_id)


_hooked: Final[Any] = hooks(
    name="adaptive", description="Keeps the profiles of adaptive tasks in their logs."
)
_hooked(AdaptiveHooks)


async def keep(log: EvalLog, session: Session) -> None:
    """Write what a session found out into its log.

    Args:
        log: The log; it is changed too.
        session: The session.
    """
    session.end = session.end or "inspect_ai ended the task, as by --limit"
    profile = await run_sync(session.profile, log.eval.model, log.eval.task)
    choices = [
        {
            **choice.to_dict({}),
            "sample": choice.item,
            "outcome": session.outcome(choice),
            "void": next((one.void for one in session.runs(choice) or () if one.void), ""),
        }
        for choice in session.choices
        if session.runs(choice) is not None
    ]
    await write_into(log, {PROFILE: profile, CHOICES: choices})


async def write_into(log: EvalLog, metadata: Mapping[str, Any]) -> None:
    """Add to a log's metadata, in its file too.

    Args:
        log: The log; it is changed.
        metadata: What to add, by key.
    """
    edit = MetadataEdit(metadata_set={key: _json(value) for key, value in metadata.items()})
    reason = "what adaptive evaluation found out"
    edited = edit_eval_log(log, [edit], ProvenanceData(author=KEY, reason=reason))
    log.log_updates = edited.log_updates
    log.recompute_tags_and_metadata()
    if log.location:
        await write_eval_log_async(log, log.location, header_only=True)


def _json(value: Any) -> Any:
    """A value as JSON has it."""
    return json.loads(json.dumps(value))


def _source_of(metadata: Mapping[str, Any] | None) -> AdaptiveSource | None:
    """The source of a task of ours; None for the tasks of others."""
    ours = (metadata or {}).get(KEY)
    return _sources.get(str(cast("Any", ours).get("source"))) if isinstance(ours, dict) else None
