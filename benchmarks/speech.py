"""What our own code takes for a turn of a model that speaks, without simulator, model and PNG.

A turn is one answer: what is perceived becomes words and a message with a picture, old pictures are
taken out of the conversation, and what the model wrote is read. Encoding the picture as PNG is
said beside it. The pictures are noise, the largest that there are.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any, Final

import numpy as np

from animalcat.doors.speech import Tongue
from animalcat.doors.speech import conversation as talking
from animalcat.envs.agents.base import EpisodeInfo
from animalcat.envs.types import CameraSpec, ObservationSpec

GOAL: Final = 5.0
"""Milliseconds that a turn of ours may take."""
TURNS: Final = 40
ROUNDS: Final = 25
QUICK: Final = 2


def run(quick: bool) -> list[dict[str, Any]]:
    """Measure turns with pictures of two sizes, in both forms that models answer in."""
    rows: list[dict[str, Any]] = []
    for form in ("script", "tools"):
        for side in (84, 512):
            ours, drawn = asyncio.run(_turns(form, side, QUICK if quick else ROUNDS))
            high = float(np.quantile(ours, 0.99))
            rows.append(
                {
                    "name": f"{form}, {side} pixels",
                    "median": float(np.median(ours)),
                    "p99": high,
                    "unit": "ms of CPU time a turn",
                    "target": GOAL,
                    "met": high <= GOAL,
                    "note": f"{len(ours)} turns; the PNG takes {np.median(drawn):.2g} more",
                }
            )
    return rows


async def _turns(form: Any, side: int, rounds: int) -> tuple[list[float], list[float]]:
    """Milliseconds of our own code and of the PNG, a turn."""
    from inspect_ai.model import ModelOutput, ModelUsage

    from animalcat.doors.speech.speaking import ModelAgent

    name = "mockllm/model"
    usage = ModelUsage(input_tokens=900, output_tokens=20, total_tokens=920)

    class Mute(ModelAgent):
        """Answers at once, and notes how long that took, so that it can be taken off."""

        away = 0.0

        async def _generated(self) -> ModelOutput:
            start = time.process_time()
            if form == "script":
                text = "Think('It is a little to the left of me.');Wait(0.06)"
                output = ModelOutput.from_content(name, text)
            else:
                output = ModelOutput.for_tool_call(name, "wait", {"seconds": 0.06})
            output.usage = usage
            self.away += time.process_time() - start
            return output

    spec = ObservationSpec(camera=CameraSpec(side))
    rng = np.random.default_rng(side)
    agent = Mute(name, Tongue(form, picture=side, answers=TURNS))
    encoded: list[float] = []
    plain = talking.picture

    def timed(observation: Any, wanted: int) -> bytes | None:
        start = time.process_time()
        made = plain(observation, wanted)
        encoded.append(time.process_time() - start)
        return made

    talking.picture = timed
    ours: list[float] = []
    try:
        for _ in range(rounds):
            await agent.reset(EpisodeInfo(0, 1, spec, time_budget_steps=500))
            seen = [spec.generate(rng) for _ in range(TURNS)]
            for observation in seen:
                agent.away, known = 0.0, len(encoded)
                start = time.process_time()
                await agent.act(observation)
                took = time.process_time() - start - agent.away - sum(encoded[known:])
                ours.append(1e3 * took)
    finally:
        talking.picture = plain
    return ours, [1e3 * one for one in encoded]
