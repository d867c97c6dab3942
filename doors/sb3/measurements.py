"""Measures what is being trained, every so many steps, and logs what was found."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

import numpy as np

from animalcat.errors import AnimalcatError
from animalcat.lab.batteries import Arenas
from animalcat.lab.policies import Model
from animalcat.lab.result import Result
from animalcat.lab.within import measure
from animalcat.layouts.explaining.wording import Scale
from animalcat.layouts.fitting.estimates import scales_of
from animalcat.layouts.library import LAYOUTS, load_layout, parse_layout

PREFIX: Final = "animalcat/"
"""Beginning of the names of what is logged."""


class Logger(Protocol):
    """What a training logs to, as Stable-Baselines3's `Logger` does."""

    def record(self, key: str, value: Any) -> None:
        """Note a value."""
        ...

    def dump(self, step: int) -> None:
        """Write what was noted, at a step of training."""
        ...


class Measurements:
    """The measurements of one training.

    Attributes:
        results: What each found out, by the step of training.
    """

    def __init__(
        self,
        battery: Arenas,
        *,
        every: int,
        folder: str | os.PathLike[str],
        on_result: Callable[[int, Result], None] | None,
        options: dict[str, Any],
    ) -> None:
        """Begin without any.

        Args:
            battery: What `animalcat.measure` takes.
            every: Steps of training from one to the next.
            folder: The data directory.
            on_result: Is told of every step with what was found out.
            options: Of `animalcat.measure`.

        Raises:
            AnimalcatError: There is no such option, or a number is out of its range.
        """
        if every < 1:
            raise AnimalcatError(f"every is {every}; give 1 or more steps", "INVALID_REQUEST")
        if "step" in options:
            raise AnimalcatError(
                "step is the training's own, which every measurement says; leave it out",
                "INVALID_REQUEST",
            )
        self.results: dict[int, Result] = {}
        self._battery = battery
        self._every = every
        self._folder = folder
        self._on_result = on_result
        self._options: dict[str, Any] = {"progress": False, **options}
        self._next = every
        self._scales: dict[str, Scale] = {}

    def begin(self, step: int) -> None:
        """Count from a step on, as that of a training that goes on."""
        self._next = step + self._every

    def due(self, step: int) -> bool:
        """Whether it is time for another one."""
        return step >= self._next

    def take(self, model: Model, step: int, logger: Logger) -> Result:
        """Measure a model as it is, and log what is found out.

        Args:
            model: What is trained.
            step: Steps of training that it had.
            logger: The training's.
        """
        self._next = step + self._every
        options = self._options
        result = measure(model, self._battery, folder=self._folder, step=step, **options)
        self.results[step] = result
        if not self._scales:
            self._scales = scales_for(result)
        log(result, step, logger, self._scales)
        if self._on_result is not None:
            self._on_result(step, result)
        return result


def scales_for(result: Result) -> dict[str, Scale]:
    """How readers read the nodes of a result's layout, by the demands of its whole battery.

    So they are the same from one measurement to the next.
    """
    spec, lab = result.session.spec, result.lab
    layout = load_layout(spec.layout, spec.layout_variant) if spec.layout in LAYOUTS else None
    if layout is None or layout.identity != spec.layout_digest:
        layout = parse_layout(lab.get_layout(spec.layout_digest).text, spec.layout_variant)
    rows = [
        layout.row(instance.name, instance.features) for instance in lab.instances(spec.battery)
    ]
    return scales_of(layout, layout.count_on(np.array(rows), 0))


def log(result: Result, step: int, logger: Logger, scales: Mapping[str, Scale]) -> None:
    """Log each capability, and the success rate over the battery, with their 90 % intervals.

    Args:
        result: What was found out.
        step: Steps of training.
        logger: The training's.
        scales: How each node is read.
    """
    told: dict[str, float | None] = {}
    nodes: dict[str, dict[str, Any]] = result.profile["nodes"]
    for name, node in nodes.items():
        scale = scales[name]
        low, high = sorted(map(scale.convert, node["hdi"]))
        told |= {name: scale.convert(node["mean"]), f"{name}_low": low, f"{name}_high": high}
    rate: dict[str, Any] = result.profile["battery_rate"]
    told |= {"success_rate": rate["value"]}
    told |= {"success_rate_low": rate["low"], "success_rate_high": rate["high"]}
    told |= {"episodes": result.session.episodes}
    for name, value in told.items():
        if value is not None:
            logger.record(f"{PREFIX}{name}", value)
    logger.dump(step)
