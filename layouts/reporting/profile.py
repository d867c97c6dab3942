"""The cognitive profile that results from a session or a fit, and its JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from animalcat.layouts.inference.fit import FitResult
from animalcat.layouts.inference.live import LivePosterior
from animalcat.layouts.inference.summary import HDI_SHARE, NodeSummary
from animalcat.layouts.model.spec import Layout, finite_range

VERSION: Final = 1
"""Version of the JSON; readers refuse newer ones."""


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """A summary of a posterior: every node with its unit, interval and status.

    Attributes:
        layout: The layout that was measured.
        nodes: One summary for each latent node, in the layout's order.
        diagnostics: Quality of the inference, as in `FitResult.diagnostics`.
        status: Status of each capability, for example "measured"; some may be absent.
        provenance: Further facts, JSON-ready: agent, battery, seed, versions, ...
    """

    layout: Layout
    nodes: Sequence[NodeSummary]
    diagnostics: Mapping[str, Any]
    status: Mapping[str, str] = field(default_factory=dict[str, str])
    provenance: Mapping[str, Any] = field(default_factory=dict[str, Any])

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
        diagnostics = {
            "engine": "smc",
            "converged": False,
            "reasons": ["live posterior: not refitted by NUTS"],
            "outcomes": len(posterior.tells),
            "prior_only": not posterior.tells,
            "particles": len(posterior.weights),
            "ess": posterior.ess,
        }
        nodes = posterior.summary()
        return cls(posterior.layout, nodes, diagnostics, status or {}, provenance or {})

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
        }

    def nodes_dict(self) -> dict[str, dict[str, Any]]:
        """Convert the nodes to JSON values by name; `range` has None if the prior has no end."""
        priors = {node.name: node.prior for node in self.layout.latents}
        return {
            node.name: {
                "kind": node.kind,
                "unit": node.unit,
                "mean": node.mean,
                "sd": node.sd,
                "hdi": list(node.hdi),
                "ess": node.ess,
                "range": list(finite_range(priors[node.name])),
                "prior_mean": priors[node.name].mean,
                "prior_sd": priors[node.name].sd,
                "status": self.status.get(node.name),
            }
            for node in self.nodes
        }

    def to_json(self) -> str:
        """Convert to JSON text, indented by two spaces."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
