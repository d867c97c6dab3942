"""Capabilities that an agent seems to have, while it may go by a cue instead."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.explaining.kinds import PlayedEpisodes
from animalcat.layouts.explaining.limits import leave_one_out
from animalcat.layouts.inference.evaluator import Evaluator
from animalcat.layouts.watching.cues import CueFinding, cue_finding

Floats: TypeAlias = npt.NDArray[np.float64]


def find_cues(
    evaluator: Evaluator, draws: Floats, played: PlayedEpisodes, columns: Floats, shares: Floats
) -> tuple[CueFinding, ...]:
    """Tell what was played of every cue of a layout of which it is known where it misleads.

    Args:
        evaluator: Evaluator of the layout.
        draws: (draws, latents) of its posterior; they weigh the same.
        played: What was played.
        columns: (episodes, columns), as `Evaluator.columns` returned them.
        shares: (episodes, outcomes), as `PlayedEpisodes.shares` returned them.
    """
    cues = [cue for cue in evaluator.layout.cues if cue.name in played.misleading]
    if not cues:
        return ()
    if not len(shares):
        nothing = np.zeros(0)
        return tuple(cue_finding(cue, nothing, nothing, nothing) for cue in cues)
    outcome = int(np.isfinite(shares).any(axis=0).argmax())
    y = shares[:, outcome]
    weights = np.ones(len(y)) if played.weights is None else played.weights
    known = np.where(np.isfinite(y), y, 0.0)
    counts = np.where(np.isfinite(y), weights, 0.0)
    each = leave_one_out(evaluator, draws, columns, known, counts, outcome)
    return tuple(cue_finding(cue, played.misleading[cue.name], y, each) for cue in cues)


def confusing_cues(findings: Sequence[CueFinding]) -> dict[str, CueFinding]:
    """By capability, the first cue that an agent may go by instead of having it."""
    found: dict[str, CueFinding] = {}
    for finding in findings:
        if finding.standing != "ruled out":
            found.setdefault(finding.cue.mimics, finding)
    return found
