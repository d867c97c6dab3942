"""The client of both environments."""

from __future__ import annotations

from typing import Any

from openenv.core import EnvClient
from openenv.core.client_types import StepResult

from .models import AnimalcatAction, AnimalcatObservation, AnimalcatState


class AnimalcatEnv(EnvClient[AnimalcatAction, AnimalcatObservation, AnimalcatState]):
    """Plays arenas over a WebSocket.

        with AnimalcatEnv(base_url="http://localhost:8000").sync() as env:
            result = env.reset(split="navigation", index=3, seed=1)
            while not result.done:
                result = env.step(AnimalcatAction(answer="Turn(30);Go(5)"))
            print(result.reward)
    """

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
