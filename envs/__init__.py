"""The environment contract, the backends that play arenas, and the reference agents."""
