"""The client of both environments."""

from __future__ import annotations

from typing import Any

from openenv.core import EnvClient
from openenv.core.client_types import StepResult

from .models import AnimalcatAction, AnimalcatObservation, AnimalcatState


class AnimalcatEnv(EnvClient[AnimalcatAction, AnimalcatObservation, AnimalcatState]):
    """Plays arenas over a WebSocket, as README.md shows: `reset`, then `step` until it is done."""

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
