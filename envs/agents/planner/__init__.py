"""An agent that is shown the arena's true state and plans on it; it serves to validate arenas.

`view` reads the state, `terrain` says where the body can go and how far it is, `motion` foresees
where actions lead, `order` says which rewards to take in which order, and `agent` is the agent.
`settings` are the abilities that can be taken away, and `beliefs` is what is then left of the
state. `solving` plays it in the simulator.
"""
