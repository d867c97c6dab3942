"""The fingerprint of an agent that is an object: the same for the same code and content alone."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from animalcat.envs.agents.fingerprint import differences
from animalcat.envs.agents.objects import fingerprint_of

CELL = """
SPEED = {speed}
def ahead(x):
    return SPEED * x
class Agent:
    table = {{"near": {near}}}
    def __init__(self, weights=0.0):
        self.weights = np.full(3, weights)
        self.rng = np.random.default_rng()
    def reset(self, info):
        self.seen = 0
    def act(self, observation):
        return ahead(self.table["near"]){plus}
"""


def define_class(speed: int = 1, near: int = 2, plus: str = "") -> Any:
    """A class as a notebook's cell defines it: in no file."""
    names: dict[str, Any] = {"np": np, "__name__": "__main__"}
    exec(CELL.format(speed=speed, near=near, plus=plus), names)
    return names["Agent"]


def test_the_same_cell_run_again_gives_the_same_agent() -> None:
    first, again = fingerprint_of(define_class()()), fingerprint_of(define_class()())
    assert first.source == "computed"
    assert first.digest == again.digest  # another seed is the same agent
    assert fingerprint_of(define_class()).digest != first.digest  # a class says nothing of weights
    assert "numpy" in first.options["packages"]


@pytest.mark.parametrize(
    ("other", "what"),
    [
        (lambda: define_class(speed=2)(), "global SPEED"),
        (lambda: define_class(near=3)(), "Agent.table"),
        (lambda: define_class(plus=" + 1")(), "Agent.act"),
        (lambda: define_class()(1.0), "self.weights"),
    ],
)
def test_what_changed_is_named(other: Any, what: str) -> None:
    changes = differences(fingerprint_of(define_class()()), fingerprint_of(other()))
    assert changes == (f"{what} has other content",)


def test_what_cannot_be_read_is_unknown() -> None:
    agent = define_class()()
    agent.lock = threading.Lock()
    assert not fingerprint_of(agent).known
    assert fingerprint_of(agent).process
