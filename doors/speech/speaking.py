"""A language model as an agent: what it is shown, what it answers, and what became of that."""

from __future__ import annotations

import asyncio
import re
import sys
from base64 import b64encode
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from animalcat.apart.output import WAITS
from animalcat.doors.speech.conversation import Conversation, Shown
from animalcat.doors.speech.prompts import prompt
from animalcat.doors.speech.reading import (
    GO_METRES,
    TOOLS,
    TURN_DEGREES,
    WAIT_SECONDS,
    Deed,
    UnreadableError,
    read,
    read_call,
)
from animalcat.doors.speech.tongue import Tongue
from animalcat.envs.answers import Actions, AnswerKind, Note, Noted
from animalcat.errors import AnimalcatError

if TYPE_CHECKING:
    from inspect_ai.model import ChatMessage, Content, Model, ModelOutput
    from inspect_ai.tool import ToolInfo

    from animalcat.envs.agents.base import EpisodeInfo
    from animalcat.envs.answers import Answer
    from animalcat.envs.types import Observation

PAUSES: Final = (1.0, 4.0, 16.0)
"""Seconds before a model is asked again whose provider failed; then the attempt is void."""
CURRENCY: Final = "USD"
"""In which inspect_ai tells costs."""
LIMIT: Final = Note(answer="limit")
"""Notes that a model is not asked any more, since a limit of answers, messages or tokens is met."""
_CUT: Final = ("max_tokens", "model_length")
"""Why an answer ended where it was cut off."""
_NOTE_BYTES: Final = 4096
_LOOK: Final = "look"
_PASSED: Final = "(a picture that you saw before)"
_FAILED: Final = Note(answer="error")  # what it said may hold a key
_NO_TOOL: Final = "You called no tool. Call go, turn, wait or look."
ABOUT: Final = {
    _LOOK: ("See again what you see now. It takes no time.", ""),
    "go": ("Go straight ahead, or backward if it is negative.", f"up to {GO_METRES:g}"),
    "turn": ("Turn to the right, or to the left if it is negative.", f"up to {TURN_DEGREES:g}"),
    "wait": ("Stand still.", f"up to {WAIT_SECONDS:g}"),
}
"""What each tool does, and what its argument may be."""


class Understood(NamedTuple):
    """What a model answered.

    Attributes:
        kind: What became of it.
        deeds: What to do.
        why: What to tell the model where it could not be read.
        text: What it wrote, for the recording.
    """

    kind: AnswerKind
    deeds: tuple[Deed, ...] = ()
    why: str = ""
    text: str = ""


def understand(output: ModelOutput, tongue: Tongue) -> Understood:
    """Read what a model answered.

    Args:
        output: What its provider gave.
        tongue: How it answers.
    """
    if not output.choices:
        return Understood("unparseable", why="The answer is empty.")
    message = output.choices[0].message
    calls = message.tool_calls or []
    written = [message.text, *(f"{call.function}({_arguments(call)})" for call in calls)]
    text = "\n".join(filter(None, written))
    reason = output.choices[0].stop_reason
    if reason == "content_filter":
        return Understood("refusal", why="The answer was held back.", text=text)
    try:
        if tongue.form == "tools":
            return Understood("read", _deeds_of_calls(calls, tongue), text=text)
        return Understood("read", read(message.text, tongue).deeds, text=text)
    except UnreadableError as error:
        if reason in _CUT:
            return Understood("limit", why=f"Your answer was cut off. {error}", text=text)
        return Understood("unparseable", why=str(error), text=text)


def repeat_of(answer: Understood, before: str) -> Understood:
    """The same answer, which is a repeat if it was read and has the words of the one before."""
    same = answer.kind == "read" and answer.text and answer.text == before
    return answer._replace(kind="repeat") if same else answer


def tools() -> list[ToolInfo]:
    """The tools of an agent, as a model is told of them: go, turn, wait and look."""
    from inspect_ai.tool import ToolInfo, ToolParam, ToolParams

    made: list[ToolInfo] = []
    for name, (about, most) in ABOUT.items():
        given = TOOLS.get(name, ())
        taken = {one: ToolParam(type="number", description=f"{one}, {most}") for one in given}
        parameters = ToolParams(properties=taken, required=[*given])
        made.append(ToolInfo(name=name, description=about, parameters=parameters))
    return made


def insist_on_provider(model: str) -> None:
    """Look whether what a model's provider needs is installed; no model is made.

    Raises:
        ValueError: It is not.
    """
    registry: Any = import_module("inspect_ai._util.registry")
    provider: Any = registry.registry_lookup("modelapi", model.partition("/")[0])
    try:
        if provider is not None:
            provider()  # it looks for its packages, and then lacks the name of a model
    except TypeError:
        return
    except Exception as error:  # noqa: BLE001  each provider has errors of its own
        raise ValueError(_plain(error)) from None


class ModelAgent:
    """An agent whose decisions a language model makes, asked by the model API of inspect_ai.

    It has four tools, which act in the arena alone, and runs nothing of what the model wrote.

    Attributes:
        messages: The conversation about the episode so far.
    """

    def __init__(
        self, model: str | Model, tongue: Tongue, pauses: Sequence[float] | None = None
    ) -> None:
        """Find the model.

        Args:
            model: A model of inspect_ai, or its name, such as "openai/gpt-4o". Its key is in the
                environment, where its provider looks for it.
            tongue: How the model is told what it perceives, and how it answers.
            pauses: Seconds before each further try where its provider fails; by default `PAUSES`.

        Raises:
            AnimalcatError: There is no such model, or its provider lacks something.
        """
        from inspect_ai.model import GenerateConfig, get_model

        try:
            # By itself inspect_ai would ask again for ever, and say nothing.
            config = GenerateConfig(max_retries=0 if isinstance(model, str) else None)
            self._model = get_model(model, config=config)
        except Exception as error:  # noqa: BLE001  each provider has errors of its own
            raise AnimalcatError(f"llm:{model}: {_plain(error)}") from None
        self._tongue = tongue
        self._pauses = PAUSES if pauses is None else pauses
        self.messages: list[ChatMessage] = []
        self._talk: Conversation | None = None
        self._notes: list[Note] = []
        self._said = ""
        self._mute = False

    async def reset(self, info: EpisodeInfo) -> None:
        """Begin a conversation about an episode; nothing of earlier ones is in it."""
        from inspect_ai.model import ChatMessageSystem

        self._talk = Conversation(self._tongue, info)
        self.messages = [ChatMessageSystem(content=prompt(self._tongue, info))]
        self._notes = []
        self._said = ""
        self._mute = False

    async def act(self, observation: Observation) -> Answer:
        """Go on with what was answered, or ask the model."""
        talk = self._talk
        assert talk is not None  # an episode is reset before it is played
        while not (said := talk.next(observation)):
            output = await self._ask_model(talk.show())
            answer = repeat_of(understand(output, self._tongue), self._said)
            self._said = answer.text
            self._notes.append(_note(answer, output))
            if answer.kind in ("read", "repeat"):
                talk.hear(answer.deeds)
            else:
                talk.mishear(answer.why)
        if talk.mute and not self._mute:
            self._mute = True
            self._notes.append(LIMIT)
        notes, self._notes = tuple(self._notes), []
        actions = Actions(list(said))
        return Noted(actions, notes) if notes else actions

    async def _ask_model(self, shown: Shown) -> ModelOutput:
        """Show what is perceived, and return what the model answers."""
        self.messages += _replies(self.messages, shown)
        _forget(self.messages, self._tongue.history)
        output = await self._output()
        if output.choices:
            self.messages.append(output.choices[0].message)
        return output

    async def _output(self) -> ModelOutput:
        """Ask until the provider answers, as often as there are pauses, and once more."""
        from inspect_ai.util import LimitExceededError

        for pause in self._pauses:
            try:
                return await self._generate()
            except LimitExceededError:
                raise
            except Exception as error:  # noqa: BLE001  whatever the provider raises
                self._notes.append(_FAILED)
                why = " ".join(str(error).split())[:300]
                sys.stderr.write(f"{WAITS}{why}; the provider is asked again in {pause:g} s\n")
                await asyncio.sleep(pause)
        try:
            return await self._generate()
        except LimitExceededError:
            raise
        except Exception as error:
            times = len(self._pauses) + 1
            raise AnimalcatError(
                f"the provider of {self._model} failed {times} times: {error}"
            ) from error

    async def _generate(self) -> ModelOutput:
        """Ask once; what a provider tells as an error is raised as one."""
        from tenacity import RetryError

        given = tools() if self._tongue.form == "tools" else []
        try:
            output = await self._model.generate(list(self.messages), tools=given)
        except RetryError as error:
            raise RuntimeError(str(error.last_attempt.exception())) from None
        if output.error:
            raise RuntimeError(output.error)
        return output


def _deeds_of_calls(calls: Sequence[Any], tongue: Tongue) -> tuple[Deed, ...]:
    """The deeds that calls of tools ask for; looking alone is none."""
    if not calls:
        raise UnreadableError(_NO_TOOL)
    if len(calls) > tongue.deeds:
        raise UnreadableError(
            f"You made {len(calls)} calls at once, and may make {tongue.deeds} at most."
        )
    deeds: list[Deed] = []
    for call in calls:
        if call.parse_error:
            raise UnreadableError(f"The call of {call.function} could not be read.")
        if call.function != _LOOK:
            deeds.append(read_call(call.function, call.arguments))
    return tuple(deeds)


def _replies(before: Sequence[ChatMessage], shown: Shown) -> list[ChatMessage]:
    """What the model is told next: an answer to each call that it made, or a message."""
    from inspect_ai.model import ChatMessageTool, ChatMessageUser

    content = content_of(shown)
    last = before[-1]
    calls = last.tool_calls if last.role == "assistant" else None
    if not calls:
        return [ChatMessageUser(content=content)]
    *others, final = calls
    return [
        *(
            ChatMessageTool(content="See below.", tool_call_id=call.id, function=call.function)
            for call in others
        ),
        ChatMessageTool(content=content, tool_call_id=final.id, function=final.function),
    ]


def content_of(shown: Shown) -> list[Content]:
    """What is shown, as a message of inspect_ai holds it; a picture is a data URL."""
    from inspect_ai.model import ContentImage, ContentText

    parts: list[Content] = [ContentText(text=shown.text)]
    if shown.picture is not None:
        parts.append(ContentImage(image=data_url(shown.picture)))
    return parts


def data_url(picture: bytes) -> str:
    """A PNG as the address that holds it."""
    return f"data:image/png;base64,{b64encode(picture).decode()}"


def _forget(messages: list[ChatMessage], pictures: int) -> None:
    """Take out all pictures but the newest ones; what was told in words stays."""
    from inspect_ai.model import ContentImage, ContentText

    left = pictures
    for place in range(len(messages) - 1, -1, -1):
        content = messages[place].content
        if isinstance(content, str) or not any(isinstance(one, ContentImage) for one in content):
            continue
        if left > 0:
            left -= 1
            continue
        kept = [ContentText(text=_PASSED) if isinstance(p, ContentImage) else p for p in content]
        messages[place] = messages[place].model_copy(update={"content": kept})


def _note(answer: Understood, output: ModelOutput) -> Note:
    usage = output.usage
    text = answer.text.encode()[:_NOTE_BYTES].decode(errors="ignore")
    cost = None if usage is None else usage.total_cost
    return Note(
        text,
        None if usage is None else usage.input_tokens,
        None if usage is None else usage.output_tokens,
        cost,
        "" if cost is None else CURRENCY,
        answer.kind,
    )


def _plain(error: Exception) -> str:
    """What an error of inspect_ai says, on one line and without rich's marks."""
    return re.sub(r"\[/?\w+\]", "", " ".join(str(error).split()))


def _arguments(call: Any) -> str:
    return ", ".join(f"{name}={value}" for name, value in call.arguments.items())
