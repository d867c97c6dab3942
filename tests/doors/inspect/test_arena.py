"""Arenas as a task of inspect_ai, on a real server: one sample an attempt."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from inspect_ai import Task
from inspect_ai.agent import react
from inspect_ai.log import EvalLog, list_eval_logs
from inspect_ai.model import Model, ModelAPI, ModelOutput, ModelUsage, get_model, modelapi
from typer.testing import CliRunner

import animalcat
from animalcat.cli.main import build
from animalcat.doors.inspect.arenas import KEY, arena, arena_tools
from animalcat.doors.inspect.results import PROFILE, read_profile
from animalcat.doors.inspect.tables import read_logs
from animalcat.doors.speech import speaking
from animalcat.service.host.private import server_for
from animalcat.service.reporting.session_report import provenance_facts

NAME = "mockllm/model"
RUNS: Any = import_module("inspect_ai")  # its types are not known in full
Say = Callable[[], Any]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    home = tmp_path_factory.mktemp("home")
    with server_for(None, home) as address:
        with animalcat.connect(address) as client:
            client.build_battery("navigation", 12, seed=1, name="few", replace=True)
        yield home


def speaker(*answers: Any) -> tuple[Model, list[int]]:
    """A model that says these in turn, and what it was asked, as the number of messages."""
    asked: list[int] = []

    def answer(messages: list[Any], *_: Any) -> ModelOutput:
        given = answers[len(asked) % len(answers)]
        asked.append(len(messages))
        if isinstance(given, Exception):
            raise given
        output = given if isinstance(given, ModelOutput) else ModelOutput.from_content(NAME, given)
        usage = ModelUsage(input_tokens=50, output_tokens=5, total_tokens=55)
        return output.model_copy(update={"usage": usage}, deep=True)

    return get_model(NAME, custom_outputs=answer, memoize=False), asked


def call(name: str, **arguments: Any) -> ModelOutput:
    return ModelOutput.for_tool_call(NAME, name, arguments)


def task(home: Path, **options: Any) -> Task:
    tongue = options.pop("tongue", "script,picture=0,answers=3")
    fields: dict[str, Any] = {"max_episodes": 3, "certify": False, **options}
    return arena("few", tongue=tongue, data=str(home), **fields)


def run(made: Task, folder: Path, model: Model, **options: Any) -> EvalLog:
    (log,) = RUNS.eval(made, model=model, log_dir=str(folder), display="none", **options)
    return log


def stored_rows(home: Path, log: EvalLog) -> list[tuple[str, int, str]]:
    """Number, attempt from 1 and outcome of what the store has of a log's session."""
    with server_for(None, home) as address, animalcat.connect(address) as client:
        episodes = client.episodes(log.metadata[PROFILE]["provenance"]["session"])
    return [(str(one.number), one.attempt + 1, str(one.outcome)) for one in episodes]


def samples(log: EvalLog) -> list[tuple[str, int, str]]:
    """The same of the log itself."""
    words = {"C": "success", "I": "failure", "": "void"}
    scored = [
        (str(one.id), one.epoch, words[str(one.scores["outcome"].value) if one.scores else ""])
        for one in log.samples or ()
    ]
    return sorted(scored)


def test_a_session_is_played_and_its_profile_stands_in_the_log(
    home: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model, asked = speaker("Go(30)", "Hm.", "Turn(110);Go(30)", "Turn(-50);Go(30)")
    made = task(home, at_once=2, max_episodes=4, tongue="script,picture=0,answers=9")
    log = run(made, tmp_path, model)
    assert log.status == "success"
    assert samples(log) == sorted(stored_rows(home, log))
    assert len(log.samples or ()) == 4
    assert 4 <= len(asked) <= 36
    profile = log.metadata[PROFILE]
    assert profile["provenance"]["agent_fingerprint"]["options"]["form"] == "script"
    assert log.results is not None
    metrics = {name: one.value for name, one in log.results.scores[0].metrics.items()}
    assert metrics["accuracy"] == profile["battery_rate"]["value"]
    right = sum(word == "success" for _, _, word in samples(log))
    assert metrics["accuracy_of_chosen"] == right / 4 > 0.0
    assert "Headline" not in caplog.text
    assert read_profile(log.location) == profile
    words = ["profile", "show", log.location]
    shown = CliRunner().invoke(build(words), words).output
    said = f"Spent: {50 * len(asked):,} tokens given, {5 * len(asked)} returned."
    assert said in shown
    words = ["profile", "compare", log.location, "reference:scout@basics", "--mixed"]
    compared = CliRunner().invoke(build(words), words)
    assert compared.exit_code == 0, compared.output
    assert "navigationAbility" in compared.output
    page = dict(provenance_facts(profile, ""))
    assert page["it spent"] in said
    assert log.results.headline is not None
    assert log.results.headline.metric == "accuracy"
    frame = read_logs(log.location)
    assert frame["instance"].str.startswith("navigation").all()  # I12
    assert (frame["rewardDistance [m]"] > 0).all()
    sample = (log.samples or [])[0]
    assert sample.scores is not None
    about = sample.scores["outcome"].metadata or {}
    assert about["instance"].startswith("navigation")
    # What a model is told has nothing of the arena's name, its demands or its score.
    told = " ".join(message.text for message in sample.messages)
    assert about["instance"] not in told
    assert "reward" not in told
    notes = [one for one in sample.events if one.event == "info" and one.source == KEY]
    told: list[Any] = [one.data for one in notes]
    picture, choice = told
    drawn = sample.attachments[str(picture).removeprefix("attachment://")]
    assert drawn.startswith("![The arena from above](data:image/png;base64,")
    assert choice["margins"].keys() == {"navigationAbility", "visualAbility"}


def test_tools_serve_our_solver_and_those_of_others(home: Path, tmp_path: Path) -> None:
    says = [call("turn", degrees=20), call("go", metres=6), call("go", metres="far"), call("look")]
    model, _ = speaker(*says)
    ours = run(task(home, tongue="tools,picture=0,answers=5", max_episodes=1), tmp_path, model)
    assert samples(ours) == stored_rows(home, ours)
    model, _ = speaker(*says, "I am done.")
    made = task(home, tongue="tools,picture=0,answers=9", max_episodes=1, seed=1)
    theirs = run(made, tmp_path, model, solver=react(tools=arena_tools(), submit=False))
    assert samples(theirs) == stored_rows(home, theirs)
    (sample,) = theirs.samples or []
    assert any("You turned" in message.text for message in sample.messages)
    with server_for(None, home) as address, animalcat.connect(address) as client:
        session = theirs.metadata[PROFILE]["provenance"]["session"]
        (episode,) = client.episodes(session)
    assert episode.spent.answers == 3  # inspect_ai refuses a distance that is no number itself


def test_a_budget_that_is_used_up_counts_and_a_failing_provider_does_not(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, _ = speaker("Wait(0.06)")
    few = task(home, tongue="script,picture=0,answers=30", max_episodes=1, seed=2)
    limited = run(few, tmp_path, model, message_limit=6)
    (sample,) = limited.samples or []
    assert sample.limit is not None
    assert sample.limit.type == "message"
    assert samples(limited) == [("0", 1, "failure")]
    monkeypatch.setattr(speaking, "PAUSES", ())
    model, asked = speaker(RuntimeError("busy"), "Wait(1)", "Wait(1)", "Wait(1)")
    made = run(task(home, max_episodes=1, seed=3), tmp_path, model)
    assert samples(made) == [("0", 1, "void"), ("0", 2, "failure")]
    assert samples(made) == stored_rows(home, made)
    assert len(asked) == 4


def test_a_provider_that_always_fails_ends_the_task_and_is_no_outcome(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(speaking, "PAUSES", ())
    model, _ = speaker(RuntimeError("no credit left"))
    log = run(task(home, seed=5), tmp_path, model)
    assert log.status == "error"
    assert log.error is not None
    assert "the last 3 samples failed" in log.error.message
    assert "no credit left" in log.error.message
    with server_for(None, home) as address, animalcat.connect(address) as client:
        (session,) = (one for one in client.sessions() if one.spec.seed == 5)
        assert [str(one.outcome) for one in client.episodes(session)] == ["void"] * 3


def test_of_answers_that_nobody_can_read_no_ability_is_told(home: Path, tmp_path: Path) -> None:
    model, _ = speaker("I would rather not say.")
    profile = run(task(home, seed=6), tmp_path, model).metadata[PROFILE]
    first, second, *rest = profile["verdict"]["sentences"]
    assert "answers could not be parsed" in first
    assert "No capability is named: most of its answers were not valid actions." in (first + second)
    assert not [one for one in (second, *rest) if "at most" in one or "at least" in one]
    assert {one["status"] for one in profile["nodes"].values()} <= {"not to be read", None}


class Waiting(ModelAPI):
    """Always waits; it notes what it is asked, and ends its process where it is told to."""

    async def generate(self, input: Any, tools: Any, tool_choice: Any, config: Any) -> ModelOutput:
        notes = Path(os.environ["WAITING_ASKED"])
        with notes.open("a") as file:
            file.write(f"{len(input)}\n")
        if len(notes.read_text().split()) == int(os.environ.get("WAITING_ENDS", 0)):
            os._exit(9)
        output = ModelOutput.from_content("waiting/model", "Wait(0.06)")
        output.usage = ModelUsage(input_tokens=50, output_tokens=5, total_tokens=55)
        return output


@modelapi(name="waiting")
def waiting() -> type[ModelAPI]:
    return Waiting


def test_a_killed_run_goes_on_where_it_was_and_asks_for_nothing_twice(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, logs = tmp_path / "asked", str(tmp_path / "logs")
    monkeypatch.setenv("WAITING_ASKED", str(asked))
    root = Path(__file__).parents[3]
    args = {
        "battery": "few",
        "tongue": "script,picture=0,answers=2",
        "max_episodes": 3,
        "seed": 4,
        "data": str(home),
    }
    code = (
        f"import sys; sys.path.insert(0, {str(root)!r}); "
        "import tests.doors.inspect.test_arena; from inspect_ai import eval; "
        f"eval('animalcat/arena', task_args={args!r}, model='waiting/model', log_dir={logs!r}, "
        "display='none')"
    )
    environment = {**os.environ, "WAITING_ENDS": "4"}  # at the second answer of the second episode
    done = subprocess.run([sys.executable, "-c", code], cwd=root, env=environment, check=False)
    assert done.returncode == 9
    (before,) = list_eval_logs(logs)
    (log,) = RUNS.eval_retry(before, log_dir=str(tmp_path / "again"), display="none")
    kept = stored_rows(home, log)
    assert [outcome for _, _, outcome in kept] == ["failure", "void", "failure", "failure"]
    # The attempt that the kill cut short was not over yet when the run went on.
    assert samples(log) == sorted(one for one in kept if one[2] != "void")
    # Two answers each, and those of the attempt that the kill made void.
    assert len(asked.read_text().split()) == 4 + 4
