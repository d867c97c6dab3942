"""The Braitenberg agent that comes with the animalai package, as an agent of animalcat."""

from __future__ import annotations

from animalai.agents.braitenberg import Braitenberg

from animalcat import EpisodeInfo, Observation


class AnimalAIBraitenberg:
    """Hands animalcat's rays to animalai's own agent, and its actions back."""

    def reset(self, info: EpisodeInfo) -> None:
        """Start without memory of the last episode."""
        rays = info.observation_spec.rays
        if rays is None:
            raise ValueError(
                "animalai's Braitenberg agent needs rays; create the session with them"
            )
        self.agent = Braitenberg(2 * rays.per_side + 1)

    def act(self, observation: Observation) -> int:
        """Turn animalai's pair of branches into 3 x move + turn."""
        move, turn = self.agent.get_action(observation.rays).action_tuple.discrete[0]
        return int(3 * move + turn)
