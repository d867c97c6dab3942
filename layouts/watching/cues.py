"""Cues by which an agent may go where it seems to have a capability, and what tells of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.model.nodes import Cue
from animalcat.layouts.watching.rivals import KEPT, PASSED, SHOWS
from animalcat.portable import arrays as portable

Floats: TypeAlias = npt.NDArray[np.float64]
Mask: TypeAlias = npt.NDArray[np.bool_]
Standing: TypeAlias = Literal["ruled out", "open", "likely"]

ENOUGH: Final = 100.0
"""Bayes factor from which on nothing more is asked for the sake of a cue: then agents that go by it
are beyond doubt. It is more than an alarm needs."""
_EDGE: Final = 0.005
"""Predictions are kept this far from 0 and 1: who masters a demand slips now and then."""


@dataclass(frozen=True, slots=True)
class CueFinding:
    """What was played tells of one cue.

    Attributes:
        cue: The cue.
        episodes: Episodes with an outcome in which it misleads.
        passed: What was reached in them, summed, as shares of the outcome's maximum.
        factor: Bayes factor of an agent that goes by the cue beside one that does not. Where the
            cue misleads, the first keeps little of the success that the layout expects.
    """

    cue: Cue
    episodes: int
    passed: float
    factor: float

    @property
    def standing(self) -> Standing:
        """Whether what was played rules the cue out, leaves it open, or speaks for it."""
        if self.factor < PASSED:
            return "ruled out"
        return "likely" if self.factor > 1.0 / PASSED else "open"

    @property
    def uncertain(self) -> bool:
        """Whether more is to be asked for its sake, where success is expected."""
        return PASSED <= self.factor < ENOUGH


def cue_finding(cue: Cue, misleads: Floats, shares: Floats, predicted: Floats) -> CueFinding:
    """Tell what was played of a cue.

    Args:
        cue: The cue.
        misleads: (episodes,): 1 where it misleads.
        shares: (episodes,): what was reached, as shares of the outcome's maximum; NaN where none
            counts.
        predicted: (episodes,): what the layout expects of each.
    """
    there = (misleads == 1.0) & np.isfinite(shares)
    y, p = shares[there], np.clip(predicted[there], _EDGE, 1.0 - _EDGE)
    usual = y * portable.log(p) + (1.0 - y) * portable.log1p(-p)
    logs = [
        float((y * portable.log(kept * p) + (1.0 - y) * portable.log1p(-kept * p) - usual).sum())
        for kept in KEPT
    ]
    factor = float(portable.exp(np.minimum(logs, 700.0)).mean())
    return CueFinding(cue, int(there.sum()), float(y.sum()), factor)


def instances_to_try(
    findings: Sequence[CueFinding],
    misleading: Mapping[str, Floats],
    success: Floats,
    playable: Mask,
) -> Floats | None:
    """Which instances tell of cues that are not certain, if success is expected there.

    Where the layout expects the agent to fail anyway, it claims nothing that a cue could fake.

    Args:
        findings: What was played of each cue.
        misleading: By the name of each cue, (instances,), 1 where it misleads.
        success: (instances,): what is expected; NaN where it is not known.
        playable: (instances,): whether each may be played next.

    Returns:
        (instances,), 1 for those that are wanted and 0 for the others; None if none is.
    """
    wanted = np.zeros(len(playable))
    for finding in findings:
        if not finding.uncertain:
            continue
        there = playable & (misleading[finding.cue.name] == 1.0) & (success >= SHOWS)
        wanted[there] = 1.0
    return wanted if wanted.any() else None
