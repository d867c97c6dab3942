"""Sums for the page about inspect_ai: a task like any other, which knows nothing of demands."""

import random

import anyio
from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ModelOutput
from inspect_ai.scorer import match
from inspect_ai.solver import Generate, TaskState, solver


@solver
def stand_in():
    """Answers in place of a model, so that this page costs nothing: put generate() here for yours.

    It adds up to six numbers of up to two digits.
    """

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        await anyio.sleep(0.05)
        numbers = state.input_text.split(" + ")
        able = len(numbers) <= 6 and max(map(len, numbers)) <= 2
        text = str(sum(map(int, numbers))) if able else "I do not know"
        state.output = ModelOutput.from_content("stand-in", text)
        return state

    return solve


@task
def sums() -> Task:
    """Four sums of each number of terms, from 2 to 10, and of digits, from 1 to 4."""
    chance = random.Random(1)
    samples = []
    for terms in range(2, 11):
        for digits in range(1, 5):
            for copy in range(4):
                numbers = [chance.randrange(10 ** (digits - 1), 10**digits) for _ in range(terms)]
                samples.append(
                    Sample(
                        id=f"{terms}x{digits}-{copy}",
                        input=" + ".join(map(str, numbers)),
                        target=str(sum(numbers)),
                    )
                )
    return Task(dataset=MemoryDataset(samples), solver=stand_in(), scorer=match(numeric=True))
