"""Unity's side of the ML-Agents protocol, played over the simulator."""
