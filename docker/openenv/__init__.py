"""Animal-AI for OpenEnv: arenas to train in, and sessions of animalcat to be measured in."""

from .client import AnimalcatEnv
from .models import AnimalcatAction, AnimalcatObservation, AnimalcatState

__all__ = ["AnimalcatAction", "AnimalcatEnv", "AnimalcatObservation", "AnimalcatState"]
