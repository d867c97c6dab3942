"""What must be known beside a node's estimate: evidence from one side, ends of the range."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.adaptive.seen import Seen
from animalcat.layouts.explaining.faked import confusing_cues
from animalcat.layouts.explaining.flat import FlatPosterior
from animalcat.layouts.explaining.wording import Scale
from animalcat.layouts.inference.summary import NodeSummary
from animalcat.layouts.model.priors import Prior
from animalcat.layouts.model.spec import Layout
from animalcat.layouts.reporting.profile import NodeNote, Side, learnt
from animalcat.layouts.watching.cues import CueFinding

Floats: TypeAlias = npt.NDArray[np.float64]

BOUND: Final = 0.9
"""Probability with which the value is beyond the bound of one-sided evidence."""
FAR: Final = 1.0 / 6.0
"""By what share of the range a flat prior moves an end of what is said where that leans on the
layout's own: half of the interval that a capability at the usual target has."""
LEANS: Final = "its prior already leans towards"
"""Begins the note of a node whose prior is informative, where no flat one was looked at."""
_TAIL: Final = 1.645
"""Standard normal quantiles of a central 90 % interval."""
_NEAR: Final = 0.02
"""Distance of an interval from an end of the range, as a share of it, at which they meet."""


def notes(
    layout: Layout,
    nodes: Sequence[NodeSummary],
    draws: Floats,
    seen: Sequence[Seen],
    scales: Sequence[Scale],
    cues: Sequence[CueFinding] = (),
    flat: Mapping[str, FlatPosterior] = {},
) -> dict[str, NodeNote]:
    """Make the note of every node: what its estimate and interval do not say.

    The bound of a node is found here and nowhere else. What is said of a limit holds under the
    layout's prior and under a flat one. Where that is far less than the first alone would say, it
    leans on the prior. Where the flat one leaves it open, it is not known.

    Args:
        layout: The layout.
        nodes: Summaries of the nodes, in the layout's order.
        draws: (draws, latents) of the same posterior; they weigh the same.
        seen: What outcomes showed of each node, in the same order.
        scales: How the values of the nodes are read, in the same order.
        cues: What was played tells of each cue, if of any.
        flat: What is known of nodes under flat priors, as `flat_posteriors` finds it.
    """
    unsure = confusing_cues(cues)
    noted: dict[str, NodeNote] = {}
    for i, (node, latent) in enumerate(zip(nodes, layout.latents, strict=True)):
        own, known = seen[i], learnt(node.sd, latent.prior.sd)
        side: Side | None = None
        text = ""
        if not own.any:
            text = "nothing that was played asks for it, so this is the prior"
        elif latent.kind == "capability":
            if own.passed:
                side, text = "at least", "no failure was seen"
            elif own.failed:
                side, text = "at most", "no success was seen"
            elif known:
                if latent.is_share and not scales[i].margin:
                    side = _touched_end(node, scales[i])
                else:
                    side = node.side
                    text = _beyond(node, latent.prior.low, latent.prior.high, scales[i])
        elif (
            latent.kind == "robustness"
            and latent.is_share
            and latent.noiseless == 0.0
            and known
            and _touched_end(node, scales[i]) == "at most"
        ):
            side = "at most"  # it may have no noise
        looked = flat.get(node.name) if known else None
        if latent.informative and latent.kind != "bias" and looked is None:
            text = "; ".join(filter(None, (text, _leaning(latent.prior, scales[i]))))
        bound: float | None = None
        if side is not None:
            share = 1.0 - BOUND if side == "at least" else BOUND
            bound = float(np.quantile(draws[:, i], share))
        instead = ""
        if node.name in unsure and known:
            # Who goes by a cue finds no limit. A limit that was found is none of the cue's.
            finding = unsure[node.name]
            if side == "at least" or (finding.standing == "likely" and side is None):
                instead = finding.cue.name
        note = NodeNote(side, bound, text, instead, known=known)
        noted[node.name] = note if looked is None else _weaken(note, node, looked, scales[i])
    return noted


def _weaken(note: NodeNote, node: NodeSummary, flat: FlatPosterior, scale: Scale) -> NodeNote:
    """The same note, with what holds under a flat prior too; and whether that says far less."""
    own: tuple[float, ...] = node.hdi
    other: tuple[float, ...] = flat.hdi
    bound = note.bound
    if bound is not None:
        at_least = note.side == "at least"
        weaker = flat.quantile(1.0 - BOUND if at_least else BOUND)
        own, bound = (bound,), (min if at_least else max)(bound, weaker)
        other = (bound,)
    moved = max(abs(scale.said(a) - scale.said(b)) for a, b in zip(own, other, strict=True))
    first, last = map(scale.convert, scale.ends)
    span = abs(last - first)
    known = learnt(flat.sd(scale.converted(flat.values)), span / math.sqrt(12.0))
    if known and moved <= FAR * span:
        return replace(note, bound=bound, flat=flat.hdi)
    said = f"leans on its prior: with a flat one {scale.interval(*flat.hdi)}"
    text = "; ".join(filter(None, (note.text, said)))
    return replace(
        note, bound=bound if known else None, text=text, flat=flat.hdi, leans=True, known=known
    )


def _leaning(prior: Prior, scale: Scale) -> str:
    """Where a prior leans before anything is played, as readers read it."""
    low, middle, high = prior.from_standard(np.array([-_TAIL, 0.0, _TAIL])).tolist()
    what = "what is " * bool(scale.beyond(middle))
    return f"{LEANS} {what}{scale.brief(middle, low, high).estimate}"


def _touched_end(node: NodeSummary, scale: Scale) -> Side | None:
    """Which end of its own the interval of a chance reaches, if one alone."""
    bottom, top = _reaches(node, 0.0, 1.0, scale)
    if bottom == top:
        return None
    return "at least" if top else "at most"


def _reaches(node: NodeSummary, low: float, high: float, scale: Scale) -> tuple[bool, bool]:
    """Whether the interval reaches the worse and the better end of what is measured."""
    if not np.isfinite(high - low):
        return False, False
    near = _NEAR * (high - low)
    first, last = node.hdi
    return first <= low + near or scale.none(first), last >= high - near or scale.past(last)


def _beyond(node: NodeSummary, low: float, high: float, scale: Scale) -> str:
    """What is not measured of a capability, in words and as readers read it."""
    if node.side == "at least" and np.isfinite(high):
        beyond = "beyond" if scale.rising else "smaller than"
        return f"what is {beyond} {scale.edge(high)} is not measured"
    if node.side == "at most" and np.isfinite(low) and not scale.floor(low):
        below = "below" if scale.rising else "larger than"
        return f"what is {below} {scale.edge(low)} is not measured"
    if node.side is None and not node.two_sided:
        return "its interval spans the whole range"
    return ""
