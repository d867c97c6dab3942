"""The speakers of `benchmarks spoken`: scripted models that know pictures and words, and no more.

A speaker is a function of the messages that a language model would get. It decodes the pictures,
looks for food by its colour, and judges how far away it is by how large it looks. What it remembers
are the pictures that are still in the conversation, which are as many as its tongue's `history`.
"""

from __future__ import annotations

import hashlib
import io
import re
from base64 import b64decode
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import atan2, degrees, inf, pi, radians, sqrt, tan
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessageAssistant,
    ContentImage,
    Model,
    ModelOutput,
    ModelUsage,
    get_model,
)
from inspect_ai.tool import ToolCall
from PIL import Image

from animalcat.doors.speech.reading import TOOLS
from animalcat.doors.speech.tongue import Form
from animalcat.envs.sim.camera import FIELD_OF_VIEW

Deeds: TypeAlias = tuple[tuple[str, float], ...]
"""Names of tools with their numbers."""

NAME: Final = "mockllm/model"
FOOD: Final = 1.5
"""Diameter in metres of the food in the battery `spoken`."""
PROBE: Final[Deeds] = (("wait", 1.2), ("go", 0.4))
"""What a speaker does to find out whether it can move yet."""
AROUND: Final[Deeds] = (("turn", 60.0),)
ASIDE: Final[Deeds] = (("go", -1.5), ("turn", 60.0), ("go", 2.0), ("turn", -90.0))
"""Past an edge that food shows behind."""
REST: Final[Deeds] = (("wait", 10.0),)
ROUTES: Final[tuple[Deeds, ...]] = (
    (("turn", -36.0), ("go", 18.0), ("turn", 126.0)),
    (("turn", 12.0), ("go", 14.6), ("turn", -108.0)),
    (("turn", 36.0), ("go", 18.0), ("turn", -126.0)),
)
"""The way behind the screen on the left, ahead and on the right."""
_WENT: Final = re.compile(r"You went (\d+\.\d) m")
_DEED: Final = re.compile(r"(\w+)\((-?\d+\.\d)\)")
ARGUMENTS: Final = {name: argument for name, (argument,) in TOOLS.items()}
_USAGE: Final = ModelUsage(input_tokens=0, output_tokens=0, total_tokens=0)


class Sighting(NamedTuple):
    """Where food is seen.

    Attributes:
        bearing: Degrees to the right of the middle.
        metres: How far away it is, by how large it looks.
    """

    bearing: float
    metres: float


@lru_cache(256)
def sighting(picture: str) -> Sighting | None:
    """Find food in a picture by its colour; None where there is none.

    Args:
        picture: A data URL with a PNG.
    """
    pixels = np.asarray(Image.open(io.BytesIO(b64decode(picture.partition(",")[2]))))
    red, green, blue = (pixels[..., k].astype(np.int64) for k in range(3))
    _, columns = np.nonzero((green > red + 15) & (green > blue + 30))
    if not len(columns):
        return None
    side = pixels.shape[1]
    focal = side / 2 / tan(radians(FIELD_OF_VIEW / 2))
    bearing = degrees(atan2(float(columns.mean()) - (side - 1) / 2, focal))
    return Sighting(bearing, focal * FOOD / (2.0 * sqrt(len(columns) / pi)))


@dataclass(frozen=True)
class Speaker:
    """A scripted model.

    Attributes:
        form: How it answers.
        sight: Metres beyond which it sees no food.
        malformed: Share of its answers that are none.
        parrots: What it always says, whatever it is shown; empty for a speaker that looks.
        seed: Of its malformed answers.
    """

    form: Form = "script"
    sight: float = inf
    malformed: float = 0.0
    parrots: Deeds = ()
    seed: int = 0

    def model(self) -> Model:
        """The speaker as a model of inspect_ai."""
        return get_model(NAME, custom_outputs=self.answer, memoize=False)

    def answer(self, messages: Sequence[Any], *_: Any) -> ModelOutput:
        """Answer a conversation."""
        if self._share(messages) < self.malformed:
            output = ModelOutput.from_content(NAME, "I think that I should go on to the left.")
        elif self.form == "script":
            output = ModelOutput.from_content(NAME, _script(self.parrots or self.deeds(messages)))
        else:
            output = _calls(self.parrots or self.deeds(messages))
        output.usage = _USAGE
        return output

    def deeds(self, messages: Sequence[Any]) -> Deeds:
        """What to do, by the pictures and words of a conversation."""
        seen = [self._see(url) for url in _pictures(messages)]
        own = [said for message in messages if (said := _said(message))]
        moved = any(float(m) >= 0.2 for m in _WENT.findall(_told(messages)))
        if seen and seen[-1] is not None:
            stuck = "something is in the way" in _told(messages, since=True)
            return ASIDE if moved and stuck else _towards(seen[-1])
        before = own[-1] if own else PROBE
        if before == REST or (before == AROUND and own[-6:] == [AROUND] * 6):
            return REST
        if before == AROUND or (moved and before != PROBE):
            return AROUND
        remembered = next((one for one in reversed(seen) if one is not None), None)
        if remembered is None:
            return REST
        return ROUTES[_place(remembered.bearing)] if moved else PROBE

    def _see(self, picture: str) -> Sighting | None:
        found = sighting(picture)
        return found if found is not None and found.metres <= self.sight else None

    def _share(self, messages: Sequence[Any]) -> float:
        """A number between 0 and 1 that is another one for each conversation."""
        said = "".join([str(self.seed), *(m.text for m in messages), *_pictures(messages)[-1:]])
        return int.from_bytes(hashlib.sha256(said.encode()).digest()[:6]) / 2**48


def _towards(seen: Sighting) -> Deeds:
    """To food that is in sight; what is far away is looked at once more on the way."""
    metres = 0.75 * seen.metres if seen.metres > 8.0 else seen.metres + 1.0
    return ("turn", seen.bearing), ("go", min(metres, 35.0))


def _place(bearing: float) -> int:
    return int(bearing > -15.0) + int(bearing > 15.0)


def _pictures(messages: Sequence[Any]) -> list[str]:
    return [
        part.image
        for message in messages
        if not isinstance(message.content, str)
        for part in message.content
        if isinstance(part, ContentImage)
    ]


def _told(messages: Sequence[Any], *, since: bool = False) -> str:
    """All that the speaker was told in words, or what it was told since its last answer."""
    told: list[str] = []
    for one in reversed(messages):
        if one.role == "system" or (since and one.role == "assistant"):
            break
        if one.role != "assistant":
            told.append(one.text)
    return " ".join(reversed(told))


def _said(message: Any) -> Deeds:
    """What an answer of one's own asked for; nothing where it was none, or is no answer."""
    if message.role != "assistant":
        return ()
    if message.tool_calls:
        return tuple((call.function, *call.arguments.values()) for call in message.tool_calls)
    return tuple((name.lower(), float(value)) for name, value in _DEED.findall(message.text))


def _script(deeds: Deeds) -> str:
    return ";".join(f"{name.capitalize()}({value:.1f})" for name, value in deeds)


def _calls(deeds: Deeds) -> ModelOutput:
    made = [
        ToolCall(id=f"call-{k}", function=name, arguments={ARGUMENTS[name]: round(value, 1)})
        for k, (name, value) in enumerate(deeds)
    ]
    message = ChatMessageAssistant(content="", tool_calls=made, model=NAME, source="generate")
    choice = ChatCompletionChoice(message=message, stop_reason="tool_calls")
    return ModelOutput(model=NAME, choices=[choice])
