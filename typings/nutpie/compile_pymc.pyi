"""What nutpie makes of a PyMC model, and can be given without one."""

from dataclasses import dataclass
from typing import Any

import nutpie

@dataclass
class CompiledPyMCModel(nutpie.CompiledModel):
    def __init__(self, **fields: Any) -> None: ...
