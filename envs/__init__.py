"""The environment contract, the backends that play arenas, and the reference agents.

Importing this package registers `animalcat/Arena-v0` with Gymnasium, which looks for no plugins
of its own accord: `import animalcat.envs` first, or
`gymnasium.make("animalcat.envs:animalcat/Arena-v0")`, which does it.
"""

from animalcat.envs.register import register_environments

register_environments()
