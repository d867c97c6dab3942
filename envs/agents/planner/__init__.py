"""An agent that is shown the arena's true state and plans on it; it serves to validate arenas.

`view` reads the state, `terrain` says where the body can go and how far it is, `motion` foresees
where actions lead, `order` says which rewards to take in which order, and `agent` is the agent.
`solving` plays it in the simulator.
"""

from animalcat.envs.agents.planner.agent import PlannerAgent

__all__ = ["PlannerAgent"]
