"""Certificates: whether the live posterior agrees with a fit by NUTS."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from animalcat.layouts.inference.fit import MAX_RHAT, FitResult
from animalcat.layouts.inference.summary import NodeSummary
from animalcat.portable import scalars

_MAX_MEAN_ERROR: Final = 0.15
"""Largest difference of means, in posterior standard deviations."""
_MAX_LOG_SD_RATIO: Final = 0.15
"""Largest difference of the logarithms of standard deviations."""
MIN_ESS: Final = 400.0
"""A fit with fewer effective draws certifies nothing."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """The comparison of a live posterior with a fit of the same outcomes.

    Attributes:
        passed: Whether the live posterior is accepted.
        reasons: Why not; empty if it passed.
        max_mean_error: Largest difference of means over nodes, in standard deviations of the fit.
        max_log_sd_ratio: Largest difference of log standard deviations over nodes.
        rhat: Worst R-hat of the fit.
        ess: Least effective sample size of the fit.
        usable: Whether the fit is good enough to reseed the live posterior from it.
    """

    passed: bool
    reasons: tuple[str, ...]
    max_mean_error: float
    max_log_sd_ratio: float
    rhat: float
    ess: float
    usable: bool

    def to_dict(self) -> dict[str, Any]:
        """Convert to plain data."""
        return {**asdict(self), "reasons": list(self.reasons)}


def certify(live: Sequence[NodeSummary], fitted: FitResult) -> Certificate:
    """Compare the live posterior with a fit of the same outcomes.

    If the certificate fails and the fit is usable, pass its draws to `LivePosterior.reseed`.

    Args:
        live: Summary of the live posterior when it knew exactly the outcomes of the fit.
        fitted: The fit.

    Raises:
        ValueError: The two have different nodes.
    """
    if [node.name for node in live] != [node.name for node in fitted.nodes]:
        raise ValueError("the live posterior and the fit are of different layouts")
    mean_errors = {
        a.name: abs(a.mean - b.mean) / max(b.sd, 1e-300)
        for a, b in zip(live, fitted.nodes, strict=True)
    }
    sd_ratios = {
        a.name: abs(scalars.log(max(a.sd, 1e-300) / max(b.sd, 1e-300)))
        for a, b in zip(live, fitted.nodes, strict=True)
    }
    rhat = float(fitted.diagnostics["rhat"])
    ess = min(float(fitted.diagnostics["ess_bulk"]), float(fitted.diagnostics["ess_tail"]))
    bad_fit = [
        text
        for bad, text in (
            (not rhat < MAX_RHAT, f"the fit's R-hat {rhat:.3f} is not below {MAX_RHAT}"),
            (not ess > MIN_ESS, f"the fit's ESS {ess:.0f} is not above {MIN_ESS:.0f}"),
        )
        if bad
    ]
    reasons = [
        *bad_fit,
        *(
            f"{name}: means differ by {error:.2f} standard deviations"
            for name, error in mean_errors.items()
            if not error <= _MAX_MEAN_ERROR
        ),
        *(
            f"{name}: standard deviations differ by a factor of {scalars.exp(ratio):.2f}"
            for name, ratio in sd_ratios.items()
            if not ratio <= _MAX_LOG_SD_RATIO
        ),
    ]
    return Certificate(
        passed=not reasons,
        reasons=tuple(reasons),
        max_mean_error=max(mean_errors.values()),
        max_log_sd_ratio=max(sd_ratios.values()),
        rhat=rhat,
        ess=ess,
        usable=not bad_fit,
    )
