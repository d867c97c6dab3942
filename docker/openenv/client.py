"""The client of both environments."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from openenv.core import EnvClient
from openenv.core.client_types import StepResult

from .models import AnimalcatAction, AnimalcatObservation, AnimalcatState


class AnimalcatEnv(EnvClient[AnimalcatAction, AnimalcatObservation, AnimalcatState]):
    """Plays arenas over a WebSocket, as README.md shows: `reset`, then `step` until it is done.

    Attributes:
        wait_seconds: How long `reset` waits for a place where others have them all.
    """

    wait_seconds: float = 60.0

    async def _reset_async(self, **options: Any) -> StepResult[AnimalcatObservation]:
        until = time.monotonic() + self.wait_seconds
        while True:
            try:
                return await super()._reset_async(**options)
            except RuntimeError as error:
                if "CAPACITY_REACHED" not in str(error):
                    raise
                if time.monotonic() >= until:
                    raise RuntimeError(
                        f"{error}. No place came free in {self.wait_seconds:g} s: wait for longer "
                        "(wait_seconds), or begin the server with a larger --places"
                    ) from None
            await asyncio.sleep(0.5)

    def _step_payload(self, action: AnimalcatAction) -> dict[str, Any]:
        return {"answer": action.answer}

    def _parse_result(self, payload: dict[str, Any]) -> StepResult[AnimalcatObservation]:
        told = {"reward": payload.get("reward"), "done": payload["done"]}
        observation = AnimalcatObservation.model_validate(payload["observation"] | told)
        return StepResult(
            observation=observation,
            reward=observation.reward,
            done=observation.done,
            metadata=payload.get("metadata"),
        )

    def _parse_state(self, payload: dict[str, Any]) -> AnimalcatState:
        return AnimalcatState.model_validate(payload)
