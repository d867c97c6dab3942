"""A task of sums with demands, and a model that answers them, without a model."""

from __future__ import annotations

import re
from typing import Any

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import match
from inspect_ai.solver import generate

ITEMS = 48


def samples(items: int = ITEMS) -> list[Sample]:
    """Sums of 1 to 12 numbers, four of each length."""
    return [
        Sample(
            input=f"What is {' + '.join(str(7 * k % 10 + i % 3) for k in range(1 + i % 12))}?",
            target=str(sum(7 * k % 10 + i % 3 for k in range(1 + i % 12))),
            id=f"sum-{i:02d}",
            metadata={"length": 1 + i % 12, "source": "made"},
        )
        for i in range(items)
    ]


def answer(input: list[Any], *_: Any) -> ModelOutput:
    """Right up to eight numbers and in one of three longer sums; the same sum is answered alike."""
    numbers = [int(one) for one in re.findall(r"\d+", input[-1].text)]
    right = len(numbers) <= 8 or numbers[0] % 3 == 0
    return model_output(str(sum(numbers) + (not right)))


def model_output(text: str) -> ModelOutput:
    """What a model says. Its usage is set, since inspect_ai downloads a tokenizer to count it."""
    output = ModelOutput.from_content("mockllm/model", text)
    output.usage = ModelUsage(input_tokens=10, output_tokens=2, total_tokens=12)
    return output


def adder(answers: Any = answer) -> Any:
    """A model that adds up."""
    return get_model("mockllm/model", custom_outputs=answers)


@task
def sums(items: int = ITEMS) -> Task:
    """All sums in their order."""
    return Task(
        dataset=MemoryDataset(samples(int(items))), solver=generate(), scorer=match(numeric=True)
    )
