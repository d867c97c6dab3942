"""Tasks of inspect_ai that choose their samples by what was answered."""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import numpy as np
import pytest
from inspect_ai import Task, eval, eval_retry, eval_set
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import EvalLog, list_eval_logs, read_eval_log, write_eval_log
from inspect_ai.model import ModelOutput, get_model
from inspect_ai.scorer import Score, Target, includes, match, mean, scorer
from inspect_ai.solver import Generate, TaskState, generate, solver
from inspect_ai.util import sandbox

from animalcat.doors.inspect import adaptive, early_stopping
from animalcat.doors.inspect.logs import KEY, Came, LogError, open_log
from animalcat.doors.inspect.plan import Plan, PlanError
from animalcat.doors.inspect.report import accuracy_of, profile_of
from animalcat.doors.inspect.results import CHOICES, PROFILE, SUMMARY
from animalcat.doors.inspect.session import Session, replay_session
from animalcat.doors.inspect.sheets import read_sheet
from animalcat.layouts import load_layout
from tests.doors.inspect.slow_sums import chosen, plain
from tests.doors.inspect.sums import adder, answer, model_output, samples, sums

HERE = Path(__file__).parent
SLOW = HERE / "slow_sums.py"
LAYOUT = load_layout("one-capability", "success")


def run(task: Task, folder: Path, **options: Any) -> EvalLog:
    """Evaluate a task with the model that adds up."""
    options = {"model": adder(), "display": "none", **options}
    (log,) = eval(task, log_dir=str(folder), **options)
    return log


def choices(log: EvalLog) -> list[tuple[str, float]]:
    """Which samples were chosen in which order, with their propensities."""
    return [(one["sample"], one["propensity"]) for one in log.metadata[CHOICES]]


def test_the_log_has_the_estimated_accuracy_and_every_choice(tmp_path: Path) -> None:
    log = run(adaptive(sums(), LAYOUT, {"difficulty": "length"}, stop=16), tmp_path)
    assert log.status == "success"
    assert log.results is not None
    metrics = {name: one.value for name, one in log.results.scores[0].metrics.items()}
    assert set(metrics) == {"accuracy", "accuracy_low", "accuracy_high", "accuracy_of_chosen"}
    assert metrics["accuracy_low"] <= metrics["accuracy"] <= metrics["accuracy_high"]
    scored = {s.id: s.scores["match"].value == "C" for s in log.samples or () if s.scores}
    assert len(scored) == 16
    assert metrics["accuracy_of_chosen"] == pytest.approx(np.mean(list(scored.values())))
    assert log.results.headline is not None
    assert log.results.headline.metric == "accuracy"
    rows = log.metadata[CHOICES]
    assert [row["choice"] for row in rows] == list(range(1, 17))
    assert all(0.0 < row["propensity"] <= 1.0 for row in rows)
    assert {row["sample"]: row["outcome"] == 1.0 for row in rows} == scored
    profile = log.metadata[PROFILE]
    assert profile["provenance"]["saved"]["not_run"] == 48 - 16
    assert profile["provenance"]["coverage"]["left_out"] == {"difficulty above 10": 8}
    spent = {"tokens_in": 160, "tokens_out": 32, "costs": {}}
    assert profile["provenance"]["spent"] == spent
    assert "Spent: 160 tokens given, 32 returned." in log.metadata[SUMMARY]
    assert "arena" not in json.dumps(profile["verdict"])
    said = profile["battery_rate"]["text"]
    assert "the 40 samples that the layout covers, of 48 in the dataset" in said
    on_disk = read_eval_log(log.location)
    assert on_disk.metadata[PROFILE] == profile
    # Where the hook did not run, the samples alone give the same.
    read = open_log(log.location)
    again = replay_session(Plan.from_dict(read.header.eval.metadata[KEY]), read.samples)
    assert [(c.instance, c.propensity) for c in again.choices] == choices(log)
    assert profile_of(again, log.eval.model, log.eval.task) == profile


@pytest.mark.parametrize("at_once", [1, 4])
def test_choices_do_not_follow_the_order_of_arrival(at_once: int, tmp_path: Path) -> None:
    """Answers take as long as chance says, and twice the same is chosen."""

    @solver
    def dawdles(seed: int) -> Any:
        chance = random.Random(seed)

        async def solve(state: TaskState, generate: Generate) -> TaskState:
            await anyio.sleep(chance.random() * 0.03)
            length = state.metadata["difficulty"]
            state.output = ModelOutput.from_content("none", "yes" if length < 6 else "no")
            return state

        return solve

    def once(seed: int) -> EvalLog:
        items = [
            Sample(input="?", target="yes", id=i, metadata={"difficulty": i % 10})
            for i in range(1, 50)
        ]
        task = Task(dataset=MemoryDataset(items), solver=dawdles(seed), scorer=includes())
        return run(adaptive(task, LAYOUT, stop=20, at_once=at_once), tmp_path / str(seed))

    first, second = once(1), once(2)
    assert choices(first) == choices(second)
    assert len(choices(first)) == 20
    assert {type(one.id) for one in first.samples or ()} == {int}  # ids stay what they were


@scorer(metrics={"share": [mean()], "other": [mean()]})
def partly() -> Any:
    async def score(state: TaskState, target: Target) -> Score:
        return Score(value={"share": 0.5, "other": 1.0})

    return score


def test_partial_credit_and_a_pass_mark(tmp_path: Path) -> None:  # I7
    def task() -> Task:
        return Task(dataset=MemoryDataset(samples(12)), solver=generate(), scorer=partly())

    of = {"difficulty": "length"}
    share = adaptive(task(), "one-capability", of, "partly.share", 6, variant="score")
    log = run(share, tmp_path)
    assert log.status == "success"
    assert {row["outcome"] for row in log.metadata[CHOICES]} == {0.5}
    assert log.results is not None
    metrics = {name: one.value for name, one in log.results.scores[0].metrics.items()}
    assert metrics["accuracy_of_chosen"] == 0.5
    assert 0.0 < metrics["accuracy_low"] < metrics["accuracy"] < metrics["accuracy_high"] < 1.0
    log = run(adaptive(task(), LAYOUT, of, "partly.share", 6, pass_mark=0.5), tmp_path)
    assert {row["outcome"] for row in log.metadata[CHOICES]} == {1.0}
    assert "A score of 0.5 or more is right" in log.metadata[SUMMARY]
    wrong = adaptive(task(), LAYOUT, of, "partly.other", 6, falling=True)
    assert {row["outcome"] for row in run(wrong, tmp_path).metadata[CHOICES]} == {0.0}
    log = run(adaptive(task(), LAYOUT, of, "partly.share", 6), tmp_path)
    assert log.error is not None
    assert "takes right or wrong" in log.error.message
    two = Task(dataset=MemoryDataset(samples(12)), solver=generate(), scorer=[match(), partly()])
    log = run(adaptive(two, LAYOUT, of, "match", 6), tmp_path)
    assert log.results is not None
    first, second = ({*one.metrics} for one in log.results.scores)
    assert first - second == {"accuracy", "accuracy_low", "accuracy_high"}
    assert log.results.scores[1].metrics["accuracy_of_chosen"].value == 0.5
    log = run(adaptive(task(), LAYOUT, of, "partly.none", 6), tmp_path)
    assert log.error is not None
    assert "there is no score 'partly.none'; there are: partly.share, partly.other" in (
        log.error.message
    )


def test_voids_are_counted_by_demand_and_no_outcome(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUMS_FAIL", "6,7,8")
    log = run(chosen(), tmp_path)
    assert log.status == "success"
    about = log.metadata[PROFILE]["provenance"]
    gone = [row for row in log.metadata[CHOICES] if row["void"] == "error"]
    assert about["voids"] == len(gone) > 0
    assert all(row["outcome"] is None for row in gone)
    assert about["episodes"] == 24 - len(gone)
    (asked,) = about["voids_by_demand"]["demands"]
    assert (asked["demand"], asked["voids_from"], asked["voids_below"]) == (
        "difficulty",
        len(gone),
        0,
    )
    assert (
        f"Runs that do not count ({len(gone)} error), by demand: {len(gone)} of"
        in (about["voids_by_demand"]["words"])
    )


def test_what_a_filter_held_back_is_counted_and_told(tmp_path: Path) -> None:
    def hold_it(input: list[Any], *_: Any) -> ModelOutput:
        output = answer(input)
        if len(re.findall(r"\d+", input[-1].text)) > 4:
            output.choices[0].stop_reason = "content_filter"
        return output

    task = adaptive(sums(), LAYOUT, {"difficulty": "length"}, stop=8)
    log = run(task, tmp_path, model=adder(hold_it))
    told = [(s.output.stop_reason == "content_filter") for s in log.samples or ()]
    profile = log.metadata[PROFILE]
    assert 0 < sum(told) < 8
    assert profile["provenance"]["refusals"] == sum(told)
    assert f"A filter held back {sum(told)} of the answers" in log.metadata[SUMMARY]
    read = open_log(log.location)
    again = replay_session(Plan.from_dict(read.header.eval.metadata[KEY]), read.samples)
    assert profile_of(again, log.eval.model, log.eval.task) == profile


def test_one_source_for_several_models_is_refused(tmp_path: Path) -> None:
    task = adaptive(sums(), LAYOUT, {"difficulty": "length"}, stop=8)
    logs = eval(task, model=[adder(), "mockllm/other"], log_dir=str(tmp_path), display="none")
    errors = [log.error.message for log in logs if log.error]
    assert len(errors) == 2
    assert all("Make a task for each model" in message for message in errors)
    # The same task again, for one model, begins anew.
    assert len(run(task, tmp_path).samples or ()) == 8


@solver
def writes_down() -> Any:
    async def solve(state: TaskState, generate: Generate) -> TaskState:
        numbers = [int(one) for one in (await sandbox().read_file("numbers.txt")).split()]
        wrong = len(numbers) > 4
        await sandbox().write_file("sum.txt", str(sum(numbers) + wrong))
        return state

    return solve


@scorer(metrics=[mean()])
def write_files() -> Any:
    async def score(state: TaskState, target: Target) -> Score:
        return Score(value=float(await sandbox().read_file("sum.txt") == target.text))

    return score


def test_files_are_copied_into_the_sandbox_of_each_chosen_sample(tmp_path: Path) -> None:
    items: list[Sample] = []
    for k in range(8):
        source = tmp_path / f"{k}.txt"
        source.write_text(" ".join(str(j + 10 * k) for j in range(k + 1)))
        items.append(
            Sample(
                input="Add up.",
                target=str(sum(j + 10 * k for j in range(k + 1))),
                id=f"file-{k}",
                files={"numbers.txt": str(source)},
                metadata={"difficulty": k + 1},
            )
        )
    task = Task(
        dataset=MemoryDataset(items), solver=writes_down(), scorer=write_files(), sandbox="local"
    )
    with pytest.raises(ValueError, match="pass_mark="):  # a mean may be of parts of the whole
        adaptive(task, LAYOUT, stop=6)
    log = run(adaptive(task, LAYOUT, stop=6, pass_mark=1.0), tmp_path / "logs")
    assert log.status == "success"
    came = {row["sample"]: row["outcome"] for row in log.metadata[CHOICES]}
    assert len(came) == 6
    assert came == {name: float(int(name[-1]) < 4) for name in came}
    assert {*came.values()} == {0.0, 1.0}


def test_an_exposure_cap_spares_the_same_few_samples() -> None:
    """Of equal models, no sample is asked of more than the cap says, and intervals stay narrow."""
    of = {"difficulty": "length"}

    def play_through(seed: int, **options: Any) -> Session:
        task = adaptive(sums(), LAYOUT, of, stop=12, seed=seed, **options)
        session = Session(task.sample_source.plan)  # pyright: ignore
        while (choice := session.choose()) is not None:
            (run,) = session.runs[choice.episode]
            session.came(run, Came(float(int(choice.instance[-2:]) % 12 < 6)))
        return session

    def most(sessions: list[Session]) -> int:
        counts = Counter(choice.instance for one in sessions for choice in one.choices)
        return counts.most_common(1)[0][1]

    free = [play_through(seed, policy={"sharpness": 0, "random_share": 0}) for seed in range(6)]
    capped = [play_through(seed, exposure=0.4) for seed in range(20)]
    assert most(free) == 6
    assert most(capped) <= 0.4 * 20 + 3 * (0.4 * 0.6 * 20) ** 0.5
    greatest = 1.0 - (1.0 - 0.4) ** (1 / 12)
    chances = [choice.propensity for one in capped for choice in one.choices]
    assert max(chances) == pytest.approx(greatest)
    found = accuracy_of(capped[0])
    assert found["accuracy_low"] <= 0.6 <= found["accuracy_high"]
    assert found["accuracy_high"] - found["accuracy_low"] < 0.6
    with pytest.raises(ValueError, match=r"exposure of 0.1 cannot be kept with up to 12 choices"):
        adaptive(sums(), LAYOUT, of, stop=12, exposure=0.1).sample_source  # noqa: B018


def test_early_stopping_leaves_out_what_tells_nothing(tmp_path: Path) -> None:
    stopping = early_stopping(LAYOUT, {"difficulty": "length"}, stop=20)
    task = Task(
        dataset=MemoryDataset(samples()),
        solver=generate(),
        scorer=match(numeric=True),
        early_stopping=stopping,
    )
    log = run(task, tmp_path, max_samples=1)
    assert log.results is not None
    summary = log.results.early_stopping
    assert summary is not None
    assert summary.manager == "animalcat"
    gone = {stop.id for stop in summary.early_stops}
    assert len(gone) == summary.metadata["left_out"] == 48 - len(log.samples or ())
    easy = {f"sum-{i:02d}" for i in range(12, 48) if i % 12 < 3}
    assert easy & gone  # once it has shown what it can
    assert not {f"sum-{i}" for i in (10, 11, 22, 23)} & gone  # beyond what the layout describes
    profile: Any = summary.metadata["profile"]
    assert profile["nodes"]["ability"]["mean"] > 5.0


# Kills and retries


def start_one(command: list[str], asked: Path, enough: int) -> None:
    """Run a command and kill it, with all its children, once so much was done."""
    process = subprocess.Popen(
        command,
        env={**os.environ, "SUMS_ASKED": str(asked)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        deadline = time.monotonic() + 1200.0
        while len(lines_of(asked)) < enough:
            assert process.poll() is None, "it ended before it was killed"
            assert time.monotonic() < deadline
            time.sleep(0.01)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def lines_of(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def inspect(*arguments: str) -> list[str]:
    return [str(Path(sys.executable).parent / "inspect"), *arguments]


def test_a_killed_evaluation_goes_on_as_if_it_had_not_been(tmp_path: Path) -> None:
    at_once = 3
    whole = run(chosen(at_once), tmp_path / "whole", model="mockllm/model")
    asked = tmp_path / "asked"
    command = inspect(
        *("eval", f"{SLOW}@chosen", "--model", "mockllm/model", "-T", f"at_once={at_once}"),
        *("--log-dir", str(tmp_path / "logs"), "--display", "none", "--log-buffer", "1"),
    )
    start_one(command, asked, 9)
    (cut,) = list_eval_logs(str(tmp_path / "logs"))
    kept = len(open_log(cut.name.removeprefix("file://")).samples)
    (log,) = eval_retry(cut, log_dir=str(tmp_path / "again"), display="none")
    assert log.status == "success"
    assert choices(log) == choices(whole)
    assert log.metadata[PROFILE]["nodes"] == whole.metadata[PROFILE]["nodes"]
    runs = [(str(s.id), s.epoch) for s in log.samples or ()]
    assert len(set(runs)) == len(runs) == 24
    assert kept > 0


def test_a_retry_runs_what_failed_again_and_keeps_all_choices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUMS_FAIL", "6,7")
    log = run(chosen(2), tmp_path / "first", model="mockllm/model")
    gone = [row["sample"] for row in log.metadata[CHOICES] if row["void"]]
    assert gone
    monkeypatch.setenv("SUMS_FAIL", "")
    monkeypatch.setenv("SUMS_ASKED", str(tmp_path / "asked"))
    (again,) = eval_retry(log, log_dir=str(tmp_path / "again"), display="none")
    assert choices(again) == choices(log)
    assert sorted(line.split()[0] for line in lines_of(tmp_path / "asked")) == sorted(gone)
    assert not [row for row in again.metadata[CHOICES] if row["void"]]
    assert again.metadata[PROFILE]["provenance"]["episodes"] == len(log.samples or ())
    # A third time nothing is run, and all stays.
    (third,) = eval_retry(again, log_dir=str(tmp_path / "third"), display="none")
    assert choices(third) == choices(log)
    assert third.metadata[PROFILE] == again.metadata[PROFILE]
    assert len(lines_of(tmp_path / "asked")) == len(gone)


def test_nothing_but_voids_ends_the_task_and_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUMS_FAIL", ",".join(map(str, range(12))))
    log = run(chosen(), tmp_path, model="mockllm/model")
    assert log.error is not None
    assert "the last 10 samples came to nothing (10 error)" in log.error.message
    monkeypatch.setenv("SUMS_FAIL", "")
    (again,) = eval_retry(log, log_dir=str(tmp_path / "again"), display="none")
    assert again.status == "success"
    assert again.metadata[PROFILE]["provenance"]["episodes"] == len(again.samples or ())


def test_told_again_in_any_order_a_session_chooses_the_same() -> None:
    task = adaptive(plain(), LAYOUT, stop=20, at_once=5)
    plan: Plan = task.sample_source.plan  # pyright: ignore

    def right(item: str) -> Came:
        return Came(float(int(item[-2:]) % 10 < 5))

    def go(shuffle: random.Random) -> list[tuple[str, float]]:
        session, waiting = Session(plan), []
        while True:
            while (choice := session.choose()) is not None:
                waiting += session.runs[choice.episode]
            assert len(waiting) <= 5
            if not waiting:
                return [(c.instance, c.propensity) for c in session.choices]
            run = waiting.pop(shuffle.randrange(len(waiting)))
            session.came(run, right(run[0]))
            if shuffle.random() < 0.3:
                session.came(run, right(run[0]))  # told twice

    assert go(random.Random(1)) == go(random.Random(2))


def test_the_accuracy_may_be_the_target() -> None:
    """After a number of samples its interval is approximate, by a width valid at any time."""

    def play_through(stop: float) -> tuple[Session, dict[str, Any]]:
        task = adaptive(sums(), LAYOUT, {"difficulty": "length"}, stop=stop, target="accuracy")
        session = Session(task.sample_source.plan)  # pyright: ignore
        while (choice := session.choose()) is not None:
            (run,) = session.runs[choice.episode]
            session.came(run, Came(float(int(choice.instance[-2:]) % 12 < 6)))
        return session, profile_of(session, "model", "task")["battery_rate"]

    counted, rate = play_through(24)
    assert len(counted.choices) == 24
    assert rate["approximate"]
    assert "samples were drawn for the rate and their number, 24, was set" in rate["text"]
    narrow, rate = play_through(0.4)
    assert len(narrow.choices) < 40
    assert 0.0 < rate["high"] - rate["low"] <= 0.4
    assert not rate["approximate"]
    assert narrow.end.startswith("the interval of the success rate is 0.")


def test_logs_of_earlier_models_say_how_hard_each_sample_is(tmp_path: Path) -> None:
    """Three models find one sum harder than its length says, and a fourth is told so."""

    hard = str(samples()[2].input)

    def of_length(most: int) -> Any:
        def told(asked: list[Any], *_: Any) -> ModelOutput:
            numbers = [int(one) for one in re.findall(r"\d+", asked[-1].text)]
            right = len(numbers) <= most and asked[-1].text != hard
            return model_output(str(sum(numbers) + (not right)))

        return told

    for most in (5, 7, 9):
        with_name = get_model("mockllm/model", custom_outputs=of_length(most))
        log = run(sums(), tmp_path / "earlier", model=with_name)
        log.eval.model = f"mockllm/{most}"
        write_eval_log(log, log.location)
    options: dict[str, Any] = {"layout": LAYOUT, "demands": {"difficulty": "length"}}
    task = adaptive(sums(), **options, earlier=tmp_path / "earlier")
    plan: Plan = task.sample_source.plan  # pyright: ignore
    assert plan.notes[-1].startswith("how hard 40 of 40 samples are was learnt from logs of 3")
    taught = dict(plan.layout.calibration.instances)  # pyright: ignore
    assert taught["sum-02"].easiness < taught["sum-03"].easiness - 1.0
    log = run(adaptive(sums(), **options, stop=8, earlier=tmp_path / "earlier"), tmp_path / "new")
    assert "learnt from logs of 3 models" in json.dumps(log.metadata[PROFILE])
    moved = [one.model_copy(update={"id": f"sum-{i:02d}"}) for i, one in enumerate(samples()[1:])]
    other = Task(dataset=MemoryDataset(moved), solver=generate(), scorer=match(numeric=True))
    with pytest.raises(LogError, match="its sample 'sum-00' is another one than in this task"):
        adaptive(other, **options, earlier=tmp_path / "earlier")
    own = run(sums(), tmp_path / "earlier")
    log = run(adaptive(sums(), **options, earlier=tmp_path / "earlier"), tmp_path / "own")
    assert log.error is not None
    assert f"{own.eval.model} is one of the models whose logs" in log.error.message


# Input that is wrong


def of(**columns: Any) -> Task:
    """A task whose samples have these columns in their metadata."""
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    items = [Sample(input="?", target="yes", metadata=row) for row in rows]
    return Task(dataset=MemoryDataset(items), scorer=includes())


TWO = """
name: two
features:
  a: {unit: "1", low: 0, high: 5, about: first}
  b: {unit: "1", low: 0, high: 5, about: second}
latents:
  first: {kind: capability, unit: "1", prior: {scaled_beta: {low: 0, high: 8}}, about: first}
  second: {kind: capability, unit: "1", prior: {scaled_beta: {low: 0, high: 8}}, about: second}
derived:
  one: {link: {logistic_margin: {ability: first, demand: a, slope: 2}}}
  other: {link: {logistic_margin: {ability: second, demand: b, slope: 2}}}
  both: {link: {product: {inputs: [one, other]}}}
outcome: {bernoulli: {probability: both}}
"""


def test_demands_that_are_missing_are_left_out_and_counted(tmp_path: Path) -> None:  # I2
    task = of(difficulty=[1, 2, None, 4, float("nan"), 6])
    plan = adaptive(task, LAYOUT, ["difficulty"]).sample_source.plan  # pyright: ignore
    assert plan.left_out == {"no difficulty": 2}
    assert list(plan.items.index) == ["1", "2", "4", "6"]
    table = tmp_path / "demands.csv"
    table.write_text("id,difficulty,benchmark\n1,3,sums\n2,5,sums\n9,9,other\n")
    with pytest.raises(PlanError, match=r"1 of its 3 rows .* \['9'\].* 4 of 6 samples have no row"):
        adaptive(task, LAYOUT, table)
    plan = adaptive(task, LAYOUT, table, partial=True).sample_source.plan  # pyright: ignore
    assert plan.left_out == {"without demands": 4}
    assert plan.notes[0] == "1 of 3 rows of demands.csv are of no sample."
    assert plan.demands == {"1": {"difficulty": 3.0}, "2": {"difficulty": 5.0}}
    digest = hashlib.sha256(b"?").hexdigest()
    table.write_text(f"id,difficulty,sha256\n1,3,{digest}\n2,5,{digest}\n3,4,\n")
    adaptive(of(difficulty=[1, 2, 3]), LAYOUT, table)
    table.write_text(f"id,difficulty,sha256\n1,3,{digest}\n2,5,{'0' * 64}\n3,4,\n")
    with pytest.raises(PlanError, match="the demands of sample '2' were made for another text"):
        adaptive(of(difficulty=[1, 2, 3]), LAYOUT, table)
    plan = adaptive(task, LAYOUT, lambda s: {"difficulty": 1 + s.id}).sample_source.plan  # pyright: ignore
    assert len(plan.items) == 6
    table.write_text("id,difficulty,left out\n1,3,1\n2,5,\n3,,2\n4,1,2\n5,2,\n6,3,4\n")
    plan = adaptive(task, LAYOUT, table).sample_source.plan  # pyright: ignore
    assert plan.left_out == {"no difficulty": 1}


def test_several_annotators_are_averaged_and_their_agreement_is_said(tmp_path: Path) -> None:
    rows = [(item, who, item + (who == "b") * (item % 2)) for item in range(6) for who in "ab"]
    long, wide = tmp_path / "long.csv", tmp_path / "wide.csv"
    lines = [
        f"{item},{who},{level},{5 - level if who == 'b' else level}" for item, who, level in rows
    ]
    long.write_text("\n".join(["id,annotator,difficulty,other", *lines]))
    table = read_sheet(long)[0]
    assert [row["difficulty"] for row in table.values()] == [0.0, 1.5, 2.0, 3.5, 4.0, 5.5]
    # Of quadratic weights: 1 - mean of (a - b)^2 by what two such raters have by chance.
    a, b = np.arange(6.0), np.arange(6.0) + np.arange(6) % 2
    kappa = 1.0 - 0.5 / np.mean((a[:, None] - b[None]) ** 2)
    plan: Any = adaptive(of(none=range(6)), LAYOUT, long, partial=True).sample_source
    assert any(
        f"weighted kappa of {kappa:.2f}, and their mean is off by" in n for n in plan.plan.notes
    )
    assert not any("other" in note for note in plan.plan.notes)  # the layout does not ask for it
    assert "other: annotators contradict each other" in read_sheet(long)[1]["other"]
    each = [
        "id,difficulty:a,difficulty:b",
        *(f"{x:g},{x:g},{y:g}" for x, y in zip(a, b, strict=True)),
    ]
    wide.write_text("\n".join(each))
    told = read_sheet(wide)
    assert {name: row["difficulty"] for name, row in told[0].items()} == {
        name: row["difficulty"] for name, row in table.items()
    }
    long.write_text("id,annotator,difficulty\n1,a,2\n1,b,I would say three\n")
    with pytest.raises(PlanError, match="of sample '1' is 'I would say three', which is not a nu"):
        read_sheet(long)
    long.write_text("id,difficulty\n1,2\n1,3\n")
    with pytest.raises(PlanError, match="where several said it, name them: annotator"):
        read_sheet(long)


@pytest.mark.parametrize(
    ("columns", "options", "words"),
    [
        (
            {"depth": [1, 2]},
            {},
            "needs the demand 'difficulty', which no sample has; there are: depth",
        ),
        ({"depth": [1, 2]}, {"demands": ["difficulty"]}, "no sample has the demand 'difficulty'"),
        ({"difficulty": [3, 3, 3]}, {}, "every sample asks for the same (difficulty)"),
        (
            {"difficulty": ["hard", 3]},
            {"demands": ["difficulty"]},
            "is 'hard', which is not a number",
        ),
        ({"difficulty": [99, 98]}, {}, "describes no sample (2 difficulty above 10)"),
        ({"difficulty": [1, 2]}, {"score": "none"}, "has no scorer 'none'; there are: includes"),
        ({"difficulty": [1, 2]}, {"stop": "soon"}, "'soon' is no preset; there are quick"),
        ({"difficulty": [1, 2]}, {"stop": 0.2}, 'goes with target="accuracy" alone'),
        ({"difficulty": [1, 2]}, {"target": "all"}, "target 'all' is unknown; give 'capabilities'"),
        (
            {"difficulty": [1, 2]},
            {"target": "accuracy", "policy": "random"},
            "leave policy out",
        ),
        ({"difficulty": [1, 2]}, {"epochs": 2}, "takes one success or failure, and a choice has 2"),
        ({"difficulty": [1, 2]}, {"at_once": 0}, "at_once 0 is out of range; give 1 or more"),
    ],
)
def test_what_cannot_be_measured_says_why(
    columns: Mapping[str, Any], options: Mapping[str, Any], words: str
) -> None:
    with pytest.raises(ValueError) as error:
        adaptive(of(**columns), LAYOUT, **options)
    assert words in str(error.value)


def test_ids_that_are_there_twice_and_tasks_without_samples_are_refused() -> None:
    items = [Sample(input="?", id=name, metadata={"difficulty": 1}) for name in ("1", 1)]
    task = Task(dataset=items[:1], scorer=includes())
    task.dataset = MemoryDataset(items)
    with pytest.raises(PlanError, match="as '1', which is there 2 times; give every sample an id"):
        adaptive(task, LAYOUT)
    task.dataset = MemoryDataset([])
    with pytest.raises(PlanError, match="no samples"):
        adaptive(task, LAYOUT)
    with pytest.raises(PlanError, match="no scorer"):
        adaptive(Task(dataset=samples(2)), LAYOUT)
    with pytest.raises(PlanError, match="chooses its samples itself"):
        adaptive(chosen(), LAYOUT)
    with pytest.raises(PlanError, match="counts by 'round' what was played before"):
        adaptive(of(wayLength=[3], round=[0]), load_layout("aaio", "people"))


def test_a_log_of_another_version_or_another_plan_is_refused(tmp_path: Path) -> None:
    log = run(adaptive(sums(), LAYOUT, {"difficulty": "length"}, stop=6), tmp_path)
    read = open_log(log.location)
    plan = dict(read.header.eval.metadata[KEY])
    with pytest.raises(LogError, match="version 9 of the format"):
        Plan.from_dict({**plan, "version": 9})
    other = Plan.from_dict({**plan, "seed": 7})
    with pytest.raises(LogError, match="are not those that its plan chooses"):
        replay_session(other, read.samples)


def test_an_eval_set_goes_on_after_a_kill(tmp_path: Path) -> None:
    whole = run(chosen(2), tmp_path / "whole", model="mockllm/model")
    asked, folder = tmp_path / "asked", str(tmp_path / "set")
    script = (
        "from inspect_ai import eval_set\n"
        f"eval_set({f'{SLOW}@chosen'!r}, {folder!r}, task_args=dict(at_once=2), log_buffer=1, "
        "model='mockllm/model', display='none')\n"
    )
    start_one([sys.executable, "-c", script], asked, 9)
    before = len(lines_of(asked))
    os.environ["SUMS_ASKED"] = str(asked)
    try:
        done, logs = eval_set(
            f"{SLOW}@chosen",
            folder,
            task_args={"at_once": 2},
            model="mockllm/model",
            display="none",
        )
    finally:
        del os.environ["SUMS_ASKED"]
    assert done
    log = read_eval_log(logs[0].location)
    assert choices(log) == choices(whole)
    assert len(lines_of(asked)) <= 24 + 4  # what ran when it was killed was answered again
    assert before >= 9
