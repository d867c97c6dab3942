"""Compiles ahead, by using it once, what is compiled on first use and kept on disk.

That is the code of the simulator's sensors and of the layouts, which numba compiles and keeps
beside their modules, and what NUTS samples most layouts by. The PyMC models of the others, such as
those with scores, are not kept anywhere: every fitting process compiles each once in the
background, and nobody waits for that before the first certificate.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Final, NamedTuple

import numpy as np

from animalcat.envs.types import CameraSpec, ObservationSpec, RaySpec
from animalcat.envs.warming import play_briefly
from animalcat.layouts.adaptive.bank import Bank
from animalcat.layouts.adaptive.learner import Learner
from animalcat.layouts.library import LAYOUTS, load_layout
from animalcat.layouts.model.spec import Layout

EPISODES: Final = 12


class Part(NamedTuple):
    """Something that is compiled on first use.

    Attributes:
        name: Its name for people.
        use: Uses it, and so compiles it if that has not been done.
    """

    name: str
    use: Callable[[], None]


def parts() -> Iterator[Part]:
    """Yield everything that is compiled on first use and kept on disk, what takes longest first."""
    yield Part(
        "simulator with a camera", lambda: play_briefly(ObservationSpec(CameraSpec(16), None))
    )
    yield Part("simulator with rays", lambda: play_briefly(ObservationSpec(None, RaySpec(1))))
    yield Part("layouts", _measure_with_all)
    yield Part("sampler", _load_sampler)


def compile_all() -> Iterator[tuple[str, float]]:
    """Use every part in a process of its own, as many at once as there are cores.

    Yields:
        The name of a part that is ready, and the seconds that it took.

    Raises:
        RuntimeError: A part cannot be used here; the message is what its process said.
    """
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for done in as_completed([pool.submit(_apart, part.name) for part in parts()]):
            yield done.result()


def use(name: str) -> None:
    """Use the part of a name."""
    next(part for part in parts() if part.name == name).use()


def _apart(name: str) -> tuple[str, float]:
    began = time.monotonic()
    code = f"from animalcat.service.host.warming import use; use({name!r})"
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{name}: {done.stderr.strip()}")
    return name, time.monotonic() - began


def _measure_with_all() -> None:
    for name in LAYOUTS:
        measure(load_layout(name))


def _load_sampler() -> None:
    from animalcat.layouts.inference.backend import density

    assert density.log_density.address  # compiled when the module is loaded


def measure(layout: Layout) -> None:
    """Measure an agent that alternately passes and fails, on instances drawn at random."""
    generator = np.random.default_rng(0)
    ends = [(f.low, min(f.high, f.low + 1.0)) for f in layout.features]
    features = np.stack([generator.choice(end, 2 * EPISODES) for end in ends], axis=-1)
    learner = Learner(Bank(layout, features, [layout.name] * len(features)))
    for episode in range(EPISODES):
        choice = learner.ask()
        assert choice is not None  # there are more instances than episodes
        outcomes = {outcome.name: float(episode % 2) for outcome in layout.outcomes}
        learner.tell(choice.instance, outcomes)
    learner.summary()
