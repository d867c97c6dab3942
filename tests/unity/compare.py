"""Holds what a client saw equal to what the simulator gives."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from .conftest import Client, Seen, Steps
from .expected import Message, Told


def assert_same(client: Client, seen: Sequence[Seen], expected: Sequence[Message]) -> None:
    """Every message has the same parts, with equal observations and rewards."""
    assert len(seen) == len(expected)
    for index, (message, told) in enumerate(zip(seen, expected, strict=True)):
        kinds = (message.decision is not None, message.terminal is not None)
        assert kinds == (told.decision is not None, told.terminal is not None), f"message {index}"
        for part, wanted in zip(message, told, strict=True):
            if part is not None and wanted is not None:
                _assert_same_steps(client, part, wanted, f"message {index}")


def _assert_same_steps(client: Client, steps: Steps, told: Told, where: str) -> None:
    assert steps.agent_id == 0
    assert not steps.interrupted, "Unity never says that, of time-outs neither"
    assert steps.reward == pytest.approx(told.reward, abs=1e-6), where
    *sensors, vector = steps.observations
    wanted = told.observation
    state = np.array((wanted.health, *wanted.velocity, *wanted.position), np.float32)
    np.testing.assert_array_equal(vector, state, where)
    if wanted.rays is not None:
        np.testing.assert_array_equal(sensors.pop(), wanted.rays, where)
    if wanted.camera is not None:
        image = np.moveaxis(sensors[0], 0, 2) if client.channels_first else sensors[0]
        np.testing.assert_array_equal(image, wanted.camera / np.float32(255), where)
        sensors.pop()
    assert not sensors, f"{where}: there are more sensors"
