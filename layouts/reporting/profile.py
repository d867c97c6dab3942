"""The cognitive profile that results from a session or a fit, and its JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from animalcat.layouts.inference.fit import FitResult
from animalcat.layouts.inference.live import LivePosterior
from animalcat.layouts.inference.summary import HDI_SHARE, NodeSummary, Side
from animalcat.layouts.model.spec import Layout, finite_range

VERSION: Final = 1
"""Version of the JSON; readers refuse newer ones."""


LEARNT: Final = 0.7
"""Posterior standard deviation, as a share of the prior's, from which on next to nothing was
learnt: an estimate would only repeat the prior."""
NOT_READ: Final = "not to be read"
"""Status of the capabilities of a profile that predicts too little."""


def learnt(sd: float, prior_sd: float) -> bool:
    """Whether enough was learnt of a node for its estimate to be said, wherever it is said.

    Args:
        sd: Its posterior standard deviation.
        prior_sd: That of its prior.
    """
    return sd < LEARNT * prior_sd


class NodeWords(NamedTuple):
    """A node's estimate as every reader sees it, on pages and in terminals.

    Attributes:
        estimate: What the estimate means, in metres or seconds where it can be read so.
        interval: Its 90 % interval in the same unit.
    """

    estimate: str
    interval: str


@dataclass(frozen=True, slots=True)
class NodeNote:
    """What must be known beside the estimate of one node.

    Attributes:
        side: "at least" where no failure was seen or the interval goes on to the better end of
            what is measured, "at most" where no success was seen or it goes on to the worse, or of
            noise to none; else None.
        bound: With that side, the value that the node is beyond with probability 0.9.
        text: The note in words; empty if there is nothing to say.
        instead: What the agent may go by instead of having this capability; empty for nothing.
        flat: The interval under a flat prior over its range, if that was looked at: what is said
            holds it too.
        leans: Whether what is said would be far more without that.
        known: Whether enough was learnt of the node for its estimate to be said, under both.
    """

    side: Side | None = None
    bound: float | None = None
    text: str = ""
    instead: str = ""
    flat: tuple[float, float] | None = None
    leans: bool = False
    known: bool = True

    @classmethod
    def of_node(cls, node: Mapping[str, Any]) -> NodeNote:
        """Take the note of a node of a profile, as JSON."""
        text, instead = (str(node.get(key) or "") for key in ("note", "instead"))
        flat = node.get("flat")
        return cls(node.get("side"), node.get("bound"), text, instead, flat and (flat[0], flat[1]))


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """A summary of a posterior: every node with its unit, interval and status.

    Attributes:
        layout: The layout that was measured.
        nodes: One summary for each latent node, in the layout's order.
        diagnostics: Quality of the inference, as in `FitResult.diagnostics`.
        status: Status of each capability, for example "budget"; some may be absent.
        provenance: Further facts, JSON-ready: agent, battery, seed, versions, ...
        notes: What must be known beside the estimates, by node; some may be absent.
        words: How the estimates are said to readers, by node; some may be absent.
        predicts: Whether the layout predicts this agent, as `explaining.prediction` found it.
        judgement: Whether the layout describes the agent, as `explaining.judgement` found it.
        misfits: While an alarm stands: where predictions fail, those with the most evidence first.
    """

    layout: Layout
    nodes: Sequence[NodeSummary]
    diagnostics: Mapping[str, Any]
    status: Mapping[str, str] = field(default_factory=dict[str, str])
    provenance: Mapping[str, Any] = field(default_factory=dict[str, Any])
    notes: Mapping[str, NodeNote] = field(default_factory=dict[str, NodeNote])
    words: Mapping[str, NodeWords] = field(default_factory=dict[str, NodeWords])
    predicts: Mapping[str, Any] | None = None
    judgement: Mapping[str, Any] | None = None
    misfits: Sequence[Mapping[str, Any]] = ()

    @classmethod
    def of_fit(
        cls,
        fitted: FitResult,
        status: Mapping[str, str] | None = None,
        provenance: Mapping[str, Any] | None = None,
    ) -> Profile:
        """Make the profile of a fit by NUTS."""
        return cls(fitted.layout, fitted.nodes, fitted.diagnostics, status or {}, provenance or {})

    @classmethod
    def of_live(
        cls,
        posterior: LivePosterior,
        status: Mapping[str, str] | None = None,
        provenance: Mapping[str, Any] | None = None,
    ) -> Profile:
        """Make the profile of a live posterior, to watch a session; it is not certified."""
        nodes = posterior.summary()
        return cls(posterior.layout, nodes, posterior.diagnostics, status or {}, provenance or {})

    def to_dict(self) -> dict[str, Any]:
        """Convert to JSON values, as documented by the schema `profile`."""
        return {
            "version": VERSION,
            "layout": {
                "name": self.layout.name,
                "variant": self.layout.variant,
                "digest": self.layout.digest,
            },
            "hdi_share": HDI_SHARE,
            "nodes": self.nodes_dict(),
            "diagnostics": dict(self.diagnostics),
            "provenance": dict(self.provenance),
            **({} if self.judgement is None else {"judgement": dict(self.judgement)}),
            **({} if self.predicts is None else {"predicts": dict(self.predicts)}),
            **({"misfits": [dict(misfit) for misfit in self.misfits]} if self.misfits else {}),
        }

    def nodes_dict(self) -> dict[str, dict[str, Any]]:
        """Convert the nodes to JSON values by name; `range` has None if the prior has no end."""
        latents = {node.name: node for node in self.layout.latents}
        priors = {name: node.prior for name, node in latents.items()}
        none = NodeNote()
        return {
            node.name: {
                "kind": node.kind,
                "about": latents[node.name].about,
                "unit": node.unit,
                "mean": node.mean,
                "sd": node.sd,
                "hdi": list(node.hdi),
                "ess": node.ess,
                "range": list(finite_range(priors[node.name])),
                "prior_mean": priors[node.name].mean,
                "prior_sd": priors[node.name].sd,
                "informative": latents[node.name].informative,
                "contraction": 1.0 - node.sd / priors[node.name].sd,
                "known": learnt(node.sd, priors[node.name].sd)
                and self.notes.get(node.name, none).known,
                "side": self.notes.get(node.name, none).side,
                "bound": self.notes.get(node.name, none).bound,
                "words": _words_dict(self.words.get(node.name)),
                "note": self.notes.get(node.name, none).text,
                "instead": self.notes.get(node.name, none).instead,
                "flat": _list(self.notes.get(node.name, none).flat),
                "status": self.status.get(node.name),
            }
            for node in self.nodes
        }

    def to_json(self) -> str:
        """Convert to JSON text, indented by two spaces."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _words_dict(words: NodeWords | None) -> dict[str, str] | None:
    return None if words is None else words._asdict()


def _list(interval: tuple[float, float] | None) -> list[float] | None:
    return None if interval is None else [*interval]
