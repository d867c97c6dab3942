"""Measure what is being trained: a callback of Stable-Baselines3, which has to be installed."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from animalcat.doors.sb3.measurements import Measurements
from animalcat.lab.batteries import Arenas
from animalcat.lab.result import Result
from animalcat.text.terminals import harmless

try:
    from stable_baselines3.common.callbacks import BaseCallback
except ImportError as error:
    raise ImportError(
        f"animalcat.doors.sb3 needs Stable-Baselines3 ({error}): pip install stable-baselines3"
    ) from error


class MeasureCallback(BaseCallback):
    """Measures the policy every so many steps of training, and once more at the end.

        from animalcat.doors.sb3 import MeasureCallback

        callback = MeasureCallback("navigation", every=10_000, folder="study", max_episodes=30)
        PPO("MlpPolicy", env).learn(100_000, callback=callback)
        callback.results[100_000]

    The policy plays in this process, by `animalcat.measure`, and the training stands still
    meanwhile: neither its environments nor its chance are touched. Each measurement is a session of
    its own, whose agent says the step in its name ("PPO-10000") and its fingerprint. A training
    that is run again with the same weights, steps and options finds the sessions that there are.

    Logged are, for each capability, its posterior mean and the ends of its 90 % interval as readers
    read them, such as metres (`animalcat/navigationAbility`, `..._low` and `..._high`); the success
    rate over the whole battery, likewise (`animalcat/success_rate`); and `animalcat/episodes`.
    """

    def __init__(
        self,
        battery: Arenas,
        *,
        every: int,
        folder: str | os.PathLike[str] = ".animalcat",
        on_result: Callable[[int, Result], None] | None = None,
        verbose: int = 0,
        **options: Any,
    ) -> None:
        """Prepare; nothing is measured yet.

        Args:
            battery: On what; see `animalcat.measure`.
            every: Steps of training between two measurements, those of all environments together.
            folder: The data directory.
            on_result: Is told of every step with what was found out.
            verbose: 1 prints every result's verdict.
            **options: Of `animalcat.measure`, such as `layout`, `max_episodes`, `seed`,
                `deterministic` and `repeat`.

        Raises:
            AnimalcatError: A number is out of its range.
        """
        super().__init__(verbose)
        self._measured = Measurements(
            battery, every=every, folder=folder, on_result=on_result, options=options
        )

    @property
    def results(self) -> Mapping[int, Result]:
        """What each measurement found out, by the step of training."""
        return self._measured.results

    def _on_training_start(self) -> None:
        self._measured.begin(self.num_timesteps)

    def _on_step(self) -> bool:
        if self._measured.due(self.num_timesteps):
            self._measure()
        return True

    def _on_training_end(self) -> None:
        if self.num_timesteps not in self.results:
            self._measure()

    def _measure(self) -> None:
        result = self._measured.take(self.model, self.num_timesteps, self.logger)
        if self.verbose:
            print(harmless(f"step {self.num_timesteps}: {result.verdict.text}"), flush=True)
