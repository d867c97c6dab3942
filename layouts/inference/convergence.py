"""How well chains have mixed: R-hat and effective sample sizes (Vehtari et al. 2021).

They are those of ArviZ, whose import takes a second: the tests hold both equal.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.portable import arrays

Floats: TypeAlias = npt.NDArray[np.float64]

_LEAST: Final = 4
"""Fewest draws of a chain of which there is anything to say."""
_TAILS: Final = (0.05, 0.95)
_BLOM: Final = 3.0 / 8.0


def rhat(values: Floats) -> float:
    """Rank-normalised split R-hat of (chains, draws); NaN where it cannot be told."""
    if not _tells(values) or len(values) < 2:
        return np.nan
    halves = _halves(values)
    each = (halves, abs(halves - np.median(halves)))
    return max(_rhat(_normal_scores(part)) for part in each)


def ess(values: Floats, method: Literal["bulk", "tail"]) -> float:
    """Effective sample size of (chains, draws); NaN where it cannot be told."""
    if not _tells(values):
        return np.nan
    if method == "bulk":
        return _ess(_normal_scores(_halves(values)))
    ends = np.quantile(values, _TAILS)
    return min(_ess(_halves((values <= end).astype(np.float64))) for end in ends)


def _tells(values: Floats) -> bool:
    return values.shape[1] >= _LEAST and not np.isnan(values).any()


def _halves(values: Floats) -> Floats:
    """Each chain as two, (chains, draws)."""
    half = values.shape[1] // 2
    return np.concatenate([values[:, :half], values[:, -half:]])


def _normal_scores(values: Floats) -> Floats:
    """What standard normal variables of the same ranks are expected to be (Blom 1958)."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - 0.5 * (counts - 1.0))[np.ravel(place)]
    shares = (ranks - _BLOM) / (values.size - 2.0 * _BLOM + 1.0)
    return arrays.ndtri(shares).reshape(values.shape)


def _rhat(values: Floats) -> float:
    draws = values.shape[1]
    between = draws * np.var(values.mean(axis=1), ddof=1)
    within = np.var(values, axis=1, ddof=1).mean()
    with np.errstate(divide="ignore", invalid="ignore"):  # of chains that never moved
        return float(np.sqrt((between / within + draws - 1.0) / draws))


def _ess(values: Floats) -> float:
    """Effective sample size by Geyer's initial monotone sequence."""
    chains, draws = values.shape
    if np.ptp(values) < np.finfo(np.float64).resolution:
        return float(values.size)
    covariance = _autocovariance(values).mean(axis=0)
    variance = covariance[0] * draws / (draws - 1.0)
    whole = covariance[0]
    if chains > 1:
        whole += np.var(values.mean(axis=1), ddof=1)
    correlation = 1.0 - (variance - covariance) / whole
    kept = np.zeros(draws)
    even, odd = 1.0, correlation[1]
    kept[:2] = even, odd
    lag = 1
    while lag < draws - 3 and even + odd > 0.0:
        even, odd = correlation[lag + 1], correlation[lag + 2]
        if even + odd >= 0.0:
            kept[lag + 1 : lag + 3] = even, odd
        lag += 2
    last = lag - 2
    if even > 0.0:
        kept[last + 1] = even
    for lag in range(1, last - 1, 2):
        if kept[lag + 1] + kept[lag + 2] > kept[lag - 1] + kept[lag]:
            kept[lag + 1 : lag + 3] = (kept[lag - 1] + kept[lag]) / 2.0
    time = -1.0 + 2.0 * kept[: last + 1].sum() + kept[last + 1 : last + 2].sum()
    return float(values.size / max(time, 1.0 / np.log10(values.size)))


def _autocovariance(values: Floats) -> Floats:
    """Autocovariance of each chain at every lag, (chains, draws)."""
    draws = values.shape[1]
    size = 1 << (2 * draws - 1).bit_length()  # padded, so that no lag comes round again
    waves = np.fft.rfft(values - values.mean(axis=1, keepdims=True), n=size, axis=1)
    return np.fft.irfft(waves * np.conjugate(waves), n=size, axis=1)[:, :draws] / draws
