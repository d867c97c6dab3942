"""What must be known beside a node's estimate: evidence from one side, ends of the range."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.explaining.kinds import PlayedEpisodes
from animalcat.layouts.explaining.wording import Scale, is_share
from animalcat.layouts.inference.evaluator import Evaluator
from animalcat.layouts.inference.summary import NodeSummary
from animalcat.layouts.model.spec import Layout
from animalcat.layouts.model.validation import reached
from animalcat.layouts.reporting.profile import NodeNote, Side, learnt

Floats: TypeAlias = npt.NDArray[np.float64]

BOUND: Final = 0.9
"""Probability with which the value is beyond the bound of one-sided evidence."""
_NEAR: Final = 0.02
"""Distance of an interval from an end of the range, as a share of it, at which they meet."""


def notes(
    layout: Layout,
    nodes: Sequence[NodeSummary],
    draws: Floats,
    played: PlayedEpisodes,
    scales: Sequence[Scale],
) -> dict[str, NodeNote]:
    """Make the note of every node: what its estimate and interval do not say.

    Args:
        layout: The layout.
        nodes: Summaries of the nodes, in the layout's order.
        draws: (draws, latents) of the same posterior; they weigh the same.
        played: What was played.
        scales: How the values of the nodes are read, in the same order.
    """
    evaluator = Evaluator(layout)
    columns = evaluator.columns(played.features)
    touched = evaluator.touched(columns)
    shares = played.shares(layout, columns)
    parents = {node.name: node.link.parents for node in layout.derived}
    parts = [reached(outcome.parents, parents) for outcome in layout.outcomes]
    noted: dict[str, NodeNote] = {}
    for i, (node, latent) in enumerate(zip(nodes, layout.latents, strict=True)):
        told = np.array([latent.name in part for part in parts])
        own = shares[touched[:, i, np.newaxis] & told & np.isfinite(shares)]
        side: Side | None = None
        bound: float | None = None
        if latent.kind == "capability" and len(own):
            if (own >= 1.0).all():
                side, bound = "at least", float(np.quantile(draws[:, i], 1.0 - BOUND))
            elif (own <= 0.0).all():
                side, bound = "at most", float(np.quantile(draws[:, i], BOUND))
        text = ""
        if bound is not None:
            text = f"no {'failure' if side == 'at least' else 'success'} was seen"
        elif not len(own):
            text = "nothing that was played asks for it: this is the prior"
        elif latent.kind == "capability" and learnt(node.sd, latent.prior.sd):
            low, high = latent.prior.low, latent.prior.high
            text = "" if is_share(latent) else _ends(node, low, high, scales[i])
            if _open_above(node, low, high, scales[i]):
                side, bound = "at least", float(np.quantile(draws[:, i], 1.0 - BOUND))
        noted[node.name] = NodeNote(side, bound, text)
    return noted


def _open_above(node: NodeSummary, low: float, high: float, scale: Scale) -> bool:
    """Whether the interval goes on to where nothing is measured, so that there may be no limit."""
    if not np.isfinite(high - low):
        return False
    near = _NEAR * (high - low)
    top = node.hdi[1] >= high - near or scale.past(node.hdi[1])
    return top and not (node.hdi[0] <= low + near)


def _ends(node: NodeSummary, low: float, high: float, scale: Scale) -> str:
    """Whether the interval reaches an end of the range, in words and as readers read it."""
    if not np.isfinite(high - low):
        return ""
    near = _NEAR * (high - low)
    bottom = node.hdi[0] <= low + near
    top = node.hdi[1] >= high - near or scale.past(node.hdi[1])
    if bottom and top:
        return "its interval spans the whole range"
    if top:
        return f"what is beyond {_value(scale, high)} is not measured"
    if bottom and not scale.floor(low):
        return f"what is below {_value(scale, low)} is not measured"
    return ""


def _value(scale: Scale, value: float) -> str:
    return scale.exactly(value)
