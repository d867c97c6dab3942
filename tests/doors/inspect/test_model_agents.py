"""Language models play: what they are shown, what becomes of their answers, and a whole session."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import numpy as np
import pytest
from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessageAssistant,
    ContentImage,
    ModelAPI,
    ModelOutput,
    ModelUsage,
    get_model,
    modelapi,
)

from animalcat.apart.process import ApartError, check_reference
from animalcat.doors.speech import Tongue, most_tokens
from animalcat.doors.speech.agents import ModelReference
from animalcat.doors.speech.estimate import LETTERS, PIXELS
from animalcat.doors.speech.speaking import ModelAgent, understand
from animalcat.envs.agents.base import EpisodeInfo
from animalcat.envs.agents.limits.reference import read_reference
from animalcat.envs.agents.load import AgentLoadError, make_agent
from animalcat.envs.answers import Noted
from animalcat.envs.types import CameraSpec, ObservationSpec
from animalcat.errors import AnimalcatError

SPEC = ObservationSpec(camera=CameraSpec(16))
INFO = EpisodeInfo(0, 1, SPEC, time_budget_steps=100)
NAME = "mockllm/model"


def script_model(*answers: Any) -> tuple[Any, list[list[Any]]]:
    """A model that gives these answers, the last one for ever, and what it was shown each time."""
    shown: list[list[Any]] = []
    left = list(answers)

    def answer(messages: list[Any], *_: Any) -> ModelOutput:
        shown.append(list(messages))
        given = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(given, Exception):
            raise given
        output = given if isinstance(given, ModelOutput) else ModelOutput.from_content(NAME, given)
        # Without it the mock counts tokens with a table that it downloads.
        usage = output.usage or ModelUsage(input_tokens=50, output_tokens=5)
        return output.model_copy(update={"usage": usage}, deep=True)

    return get_model(NAME, custom_outputs=answer, memoize=False), shown


def call(name: str, **arguments: Any) -> ModelOutput:
    return ModelOutput.for_tool_call(NAME, name, arguments)


def play_out(agent: ModelAgent, decisions: int) -> list[Any]:
    """The answers of an agent that stands in front of a camera's noise."""
    rng = np.random.default_rng(1)

    async def play() -> list[Any]:
        await agent.reset(INFO)
        still = np.zeros(3, np.float32)
        seen = [
            SPEC.generate(rng)._replace(velocity=still, position=still, health=100.0 - k)
            for k in range(decisions)
        ]
        return [await agent.act(one) for one in seen]

    return asyncio.run(play())


def actions_of(answers: list[Any]) -> list[int]:
    return [action for one in answers for action in getattr(one, "actions", one)]


def notes_of(answers: list[Any]) -> list[Any]:
    return [note for one in answers if isinstance(one, Noted) for note in _several(one)]


def test_a_model_acts_by_scripts_and_is_shown_the_latest_pictures() -> None:
    model, shown = script_model("Think('so');Turn(12)", "Wait(0.06)")
    agent = ModelAgent(model, Tongue("script", picture=16, history=2))
    answers = play_out(agent, 6)
    assert actions_of(answers[:2]) == [1, 1]
    assert [note.answer for note in notes_of(answers)] == [*["read"] * 2, *["repeat"] * 3]
    assert notes_of(answers)[0].text == "Think('so');Turn(12)"
    last = shown[-1]
    pictures = [part for m in last if not isinstance(m.content, str) for part in m.content]
    assert sum(isinstance(part, ContentImage) for part in pictures) == 2
    assert "You turned 12° to the right." in last[3].text
    assert "Turn(-30);Go(5)" in last[0].text


def test_a_model_acts_by_tools_and_each_call_is_answered() -> None:
    both = call("turn", degrees=-12)
    calls = [one.choices[0].message.tool_calls or [] for one in (both, call("look"))]
    both.choices[0].message.tool_calls = [*calls[0], *calls[1]]
    model, shown = script_model(both, call("wait", seconds=0.06))
    answers = play_out(ModelAgent(model, Tongue(picture=16)), 3)
    assert notes_of(answers)[0].text.endswith("turn(degrees=-12)\nlook()")
    # Where a provider takes no pictures from tools, inspect_ai sends them as the user's.
    *_, first, second, pictures = shown[1]
    assert (first.role, second.role, pictures.role) == ("tool", "tool", "user")
    assert first.text == "See below."
    assert "You turned 12° to the left." in second.text


def test_what_is_no_answer_may_be_repaired_once_and_is_told_apart() -> None:
    refused = ModelOutput(
        model=NAME,
        choices=[
            ChatCompletionChoice(
                message=ChatMessageAssistant(content="I must not."), stop_reason="content_filter"
            )
        ],
    )
    model, shown = script_model("Let me think.", refused, ModelOutput(model=NAME), "Go(1)")
    agent = ModelAgent(model, Tongue("script", picture=0))
    answers = play_out(agent, 3)
    kinds = [[note.answer for note in notes_of([one])] for one in answers]
    assert kinds == [["unparseable", "refusal"], ["unparseable"], ["read"]]
    assert "is no command" in shown[1][-1].text
    assert "held back" in shown[2][-1].text


@pytest.mark.parametrize(
    "output",
    [
        call("go", metres=1, fast=True),
        call("go", metres="far"),
        call("go"),
        call("fly", metres=1),
        ModelOutput.from_content(NAME, "go(1)"),
        ModelOutput.from_content(NAME, "word " * 10_000),
    ],
)
def test_wrong_calls_are_unparseable_and_say_why(output: ModelOutput) -> None:
    answer = understand(output, Tongue())
    assert answer.kind == "unparseable"
    assert answer.why


def test_a_provider_that_fails_now_and_then_is_asked_again() -> None:
    busy = RuntimeError("busy")
    model, _ = script_model(busy, "Wait(0.06)", busy, busy, "Wait(1)")
    answers = play_out(ModelAgent(model, Tongue("script"), pauses=(0.0, 0.0)), 2)
    kinds = [note.answer for note in notes_of(answers)]
    assert kinds == ["error", "read", "error", "error", "read"]
    model, _ = script_model(busy)
    with pytest.raises(AnimalcatError, match="failed 3 times: busy"):
        play_out(ModelAgent(model, Tongue("script"), pauses=(0.0, 0.0)), 1)


class Busy(ModelAPI):
    """Has too many requests for ever, after which inspect_ai by itself asks again for ever."""

    asked = 0

    async def generate(self, input: Any, tools: Any, tool_choice: Any, config: Any) -> ModelOutput:
        Busy.asked += 1
        raise RuntimeError("429 too many requests")

    def should_retry(self, ex: Exception) -> bool:
        return Busy.asked < 4


def test_a_provider_that_is_always_busy_is_asked_as_often_as_is_promised(
    capsys: pytest.CaptureFixture[str],
) -> None:
    modelapi(name="busy")(Busy)
    with pytest.raises(AnimalcatError, match="failed 3 times: 429 too"):
        play_out(ModelAgent("busy/model", Tongue("script"), pauses=(0.0, 0.0)), 1)
    assert Busy.asked == 3
    waits = "waiting: 429 too many requests; the provider is asked again in 0 s\n"
    assert capsys.readouterr().err == 2 * waits


def test_what_a_provider_lacks_is_said_in_plain_letters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openai", None)
    lacks = "requires optional dep.* Install with: pip install openai"
    with pytest.raises(AnimalcatError, match=lacks):
        ModelAgent("openai-api/lab/small", Tongue())
    with pytest.raises(ApartError, match=lacks):  # before there is a battery or a session
        check_reference("llm:openai-api/lab/small")
    check_reference(f"llm:{NAME}")


def test_an_answer_that_a_limit_of_tokens_cut_off_is_told_apart() -> None:
    message = ChatMessageAssistant(content="Think('It is far, so I")
    choice = ChatCompletionChoice(message=message, stop_reason="max_tokens")
    cut = understand(ModelOutput(model=NAME, choices=[choice]), Tongue("script"))
    assert cut.kind == "limit"
    assert "cut off" in cut.why


def test_after_its_last_answer_a_model_is_not_asked_again() -> None:
    model, shown = script_model("Wait(0.06)")
    answers = play_out(ModelAgent(model, Tongue("script", answers=2)), 5)
    assert len(shown) == 2
    assert actions_of(answers[2:]) == [0] * 300
    assert [note.answer for note in notes_of(answers)] == ["read", "repeat", "limit"]


def test_the_estimate_of_tokens_is_what_a_whole_episode_is_told() -> None:
    """By the letters and pictures of every request, as the estimate counts them."""
    tongue = Tongue("script", picture=16, history=2, answers=8)
    model, shown = script_model("Wait(0.06)")
    play_out(ModelAgent(model, tongue), 8)
    assert len(shown) == 8
    letters = sum(len(m.text) for request in shown for m in request)
    pictures = sum(
        isinstance(part, ContentImage)
        for request in shown
        for message in request
        if not isinstance(message.content, str)
        for part in message.content
    )
    assert pictures == 1 + 2 * 7
    told = letters / LETTERS + pictures * 16**2 / PIXELS
    most = most_tokens(tongue, SPEC, 1, answer=3)  # the mock says "Wait(0.06)"
    assert most.given == pytest.approx(told, rel=0.1)
    assert most.returned == 24
    assert most_tokens(tongue, SPEC, 10, answer=3).given == pytest.approx(10 * most.given, rel=0.01)


def test_references_name_a_model_and_its_tongue() -> None:
    read = read_reference("llm:openai-api/lab/llama:8b+script,words=no")
    assert read.name == "openai-api/lab/llama:8b"
    assert read.door == ModelReference(read.name, Tongue("script", words=False))
    assert read.ours
    assert not read.in_file
    for wrong in ("llm:", "llm:mockllm/model+mime", "llm:mockllm/model+script,words=maybe"):
        with pytest.raises(AgentLoadError):
            read_reference(wrong)
    with pytest.raises(AgentLoadError, match="no_such_provider"):
        make_agent(read_reference("llm:no_such_provider/x"))


def _several(one: Noted) -> tuple[Any, ...]:
    return one.note if isinstance(one.note, tuple) else (one.note,)
