"""The part of nutpie that the project uses."""

from collections.abc import Sequence
from typing import Any

import numpy.typing as npt
import pymc

class CompiledModel:
    def with_data(self, **updates: npt.NDArray[Any]) -> CompiledModel: ...

def compile_pymc_model(
    model: pymc.Model, *, backend: str = ..., var_names: Sequence[str] | None = ...
) -> CompiledModel: ...
def sample(
    compiled_model: CompiledModel,
    *,
    draws: int,
    tune: int,
    chains: int,
    cores: int,
    seed: int,
    save_warmup: bool,
    progress_bar: bool,
    target_accept: float,
) -> Any: ...
