"""Sums that take a moment and are answered without a model, for processes that are killed.

What was answered stands in the file that SUMS_ASKED names, a line each. Sums of the lengths in
SUMS_FAIL fail, as a provider does.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import anyio
from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ModelOutput
from inspect_ai.scorer import match
from inspect_ai.solver import Generate, TaskState, solver

from animalcat.doors.inspect import adaptive


@solver
def answers() -> Any:
    async def solve(state: TaskState, generate: Generate) -> TaskState:
        numbers = [int(one) for one in re.findall(r"\d+", state.input_text)]
        await anyio.sleep(0.02 + 0.01 * (numbers[0] % 4))  # so that they end in another order
        if str(len(numbers)) in os.environ.get("SUMS_FAIL", "").split(","):
            raise RuntimeError("the provider is down")
        if asked := os.environ.get("SUMS_ASKED"):
            with Path(asked).open("a") as file:
                file.write(f"{state.sample_id} {state.epoch}\n")
        right = len(numbers) <= 6 or numbers[0] % 3 == 0
        state.output = ModelOutput.from_content("mockllm/model", str(sum(numbers) + (not right)))
        return state

    return solve


@task
def plain(items: int = 60) -> Task:
    """Sums of 1 to 10 numbers."""
    made = [
        Sample(
            input=f"{' + '.join(str(k % 3 + i % 7) for k in range(1 + i % 10))}",
            target=str(sum(k % 3 + i % 7 for k in range(1 + i % 10))),
            id=f"sum-{i:02d}",
            metadata={"difficulty": 1 + i % 10},
        )
        for i in range(int(items))
    ]
    return Task(dataset=MemoryDataset(made), solver=answers(), scorer=match(numeric=True))


@task
def chosen(at_once: int = 1, stop: int = 24) -> Task:
    """The same, adaptively."""
    return adaptive(plain(), "one-capability", stop=stop, at_once=at_once, variant="success")
