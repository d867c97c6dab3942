"""The fingerprint of an agent that is an object: the same for the same code and content alone."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from animalcat.envs.agents.fingerprint import differences
from animalcat.envs.agents.objects import fingerprint_of, note_played

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


def change_weights(agent: Any) -> None:
    agent.net["layers"][0].arrays[0][1] = 5.0


CHANGES: list[tuple[Callable[[Any], object], str]] = [
    (change_weights, "self.net"),
    (lambda agent: setattr(agent, "scale", np.float32(2)), "self.scale"),
    (lambda agent: agent.named.setdefault("b", 1), "self.named"),
    (lambda agent: setattr(agent.named, "tag", "t"), "self.named"),
    (lambda agent: setattr(agent.__class__, "table", {"near": 9}), "Agent.table"),
]


@pytest.mark.parametrize(("change", "what"), CHANGES)
def test_an_object_that_was_changed_between_two_starts_is_another(change: Any, what: str) -> None:
    # I1 of docs/design/mistakes.md
    agent = define_class()()
    agent.net = {"layers": [Layer()]}
    agent.scale, agent.named, agent.lock = np.float32(1), Named(a=1), threading.Lock()
    first = fingerprint_of(agent)
    assert first.known
    agent.reset(None)  # its memory of an episode, which play has changed
    note_played(agent)
    assert fingerprint_of(agent) == first
    assert fingerprint_of(agent.act).digest == fingerprint_of(agent.act).digest
    change(agent)
    changed = fingerprint_of(agent)
    assert f"{what} has other content" in differences(first, changed)
    assert fingerprint_of(agent).digest == changed.digest


class Named(dict[str, int]):
    """A dict with attributes."""


class Layer:
    """What holds arrays."""

    def __init__(self) -> None:
        self.arrays = (np.zeros(2), np.ones(2))


def test_names_of_attributes_are_no_globals() -> None:
    names: dict[str, Any] = {"b": (n for n in ()), "__name__": "__main__"}
    exec("class Agent:\n    b = 1\n    def act(self, seen): return self.b", names)
    assert fingerprint_of(names["Agent"]()).known


def test_what_cannot_be_read_is_unknown_and_another_at_every_start() -> None:
    agent = define_class()()
    with socket.socket() as agent.line:
        first, again = fingerprint_of(agent), fingerprint_of(agent)
    assert not first.known
    assert differences(first, again) == (
        "nobody can tell whether the agent is the same: self.line (socket) cannot be read",
    )
    assert "self.line (socket) cannot be read" in again.words
