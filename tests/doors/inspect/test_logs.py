"""Logs of inspect_ai as a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from inspect_ai import Task, eval
from inspect_ai.log import EvalLog, read_eval_log, write_eval_log
from inspect_ai.scorer import Score, Target, match, mean, scorer
from inspect_ai.solver import TaskState, generate

from animalcat.doors.inspect.logs import LogError
from animalcat.doors.inspect.tables import read_logs
from tests.doors.inspect.sums import adder, samples, sums


def run(task: Task, folder: Path, **options: Any) -> EvalLog:
    """Evaluate a task with the model that adds up."""
    options = {"model": adder(), "display": "none", **options}
    (log,) = eval(task, log_dir=str(folder), **options)
    return log


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("logs")
    run(sums(12), place, epochs=2)
    return place


@scorer(metrics={"right": [mean()], "shown": [mean()]})
def two() -> Any:
    async def score(state: TaskState, target: Target) -> Score:
        right = float(state.output.completion == target.text)
        return Score(value={"right": right, "shown": 0.5})

    return score


def test_a_log_is_a_table_of_outcomes_and_demands(folder: Path) -> None:
    frame = read_logs(folder)
    assert len(frame) == 24
    assert sorted(set(frame["epoch"])) == [1, 2]
    first = frame[(frame["instance"] == "sum-00") & (frame["epoch"] == 1)].iloc[0]
    assert (first["agent"], first["outcome"], first["length"]) == ("mockllm/model", 1.0, 1.0)
    assert first["void"] == first["limit"] == ""
    assert set(frame["outcome"]) == {0.0, 1.0}
    pd.testing.assert_frame_equal(read_logs(folder, demands=["length"]), frame)


def test_errors_and_limits_of_time_are_voids_and_limits_of_messages_are_outcomes(
    tmp_path: Path,
) -> None:
    def fails(input: list[Any], *rest: Any) -> Any:
        raise RuntimeError("the provider is down")

    failed = run(sums(2), tmp_path / "error", model=adder(fails), fail_on_error=False)
    frame = read_logs(failed.location)
    assert list(frame["void"]) == ["error", "error"]
    assert frame["outcome"].isna().all()
    short = run(sums(2), tmp_path / "messages", message_limit=1)
    frame = read_logs(short.location)
    assert list(frame["limit"]) == ["message", "message"]
    assert list(frame["outcome"]) == [0.0, 0.0]
    timed = run(sums(2), tmp_path / "time", time_limit=0)
    assert set(read_logs(timed.location)["void"]) == {"limit of time"}


def test_what_cannot_be_read_says_why(folder: Path, tmp_path: Path) -> None:
    several = run(
        Task(dataset=samples(2), solver=generate(), scorer=two(), name="two"), tmp_path / "several"
    )
    with pytest.raises(LogError, match=r"several scores: two.right, two.shown; say which"):
        read_logs(several.location)
    assert list(read_logs(several.location, "two.right")["outcome"]) == [1.0, 1.0]
    with pytest.raises(LogError, match=r"there is no score 'three'; there are: two.right"):
        read_logs(several.location, "three")
    with pytest.raises(LogError, match=r"no sample has 'depth' in its metadata .* length"):
        read_logs(folder, demands=["depth"])
    with pytest.raises(LogError, match="there is no log"):
        read_logs(tmp_path / "none.eval")
    (tmp_path / "empty").mkdir()
    with pytest.raises(LogError, match="has no logs"):
        read_logs(tmp_path / "empty")


def test_a_sample_with_other_demands_in_another_log_is_refused(
    folder: Path, tmp_path: Path
) -> None:
    made_anew = [one.model_copy(update={"metadata": {"length": 9}}) for one in samples(2)]
    other = run(Task(made_anew, generate(), scorer=match(), name="sums"), tmp_path)
    with pytest.raises(LogError, match=r"sample 'sum-00' of sums has length 1 in .* and 9 in"):
        read_logs([folder, other.location])


def test_damaged_empty_and_newer_logs_are_refused(folder: Path, tmp_path: Path) -> None:
    log = read_eval_log(str(next(folder.glob("*.eval"))))
    cut = tmp_path / "cut.eval"
    cut.write_bytes(next(folder.glob("*.eval")).read_bytes()[:-400])
    with pytest.raises(LogError, match="cut short"):
        read_logs(cut)
    newer = tmp_path / "newer.json"
    write_eval_log(log, str(newer))
    newer.write_text(newer.read_text().replace('"version": 2', '"version": 9', 1))
    with pytest.raises(LogError, match="newer version"):
        read_logs(newer)
    log.samples = []
    empty = tmp_path / "none.eval"
    write_eval_log(log, str(empty))
    with pytest.raises(LogError, match=r"no sample was run in none.eval"):
        read_logs(empty)
