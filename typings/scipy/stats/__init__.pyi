import numpy as np
import numpy.typing as npt

_Floats = npt.NDArray[np.float64]

def rankdata(a: npt.ArrayLike, method: str = ..., *, axis: int | None = ...) -> _Floats: ...

class _Interval:
    low: float
    high: float

class _BinomTestResult:
    pvalue: float
    def proportion_ci(self, confidence_level: float = ..., method: str = ...) -> _Interval: ...

def binomtest(k: int, n: int, p: float = ...) -> _BinomTestResult: ...

class _KstestResult:
    pvalue: float

def kstest(rvs: npt.ArrayLike, cdf: str) -> _KstestResult: ...

class _SpearmanResult:
    statistic: float
    pvalue: float

def spearmanr(a: npt.ArrayLike, b: npt.ArrayLike) -> _SpearmanResult: ...

class _Hypergeom:
    # Population, successes in it, and draws, in this order.
    def pmf(self, k: npt.ArrayLike, M: int, n: npt.ArrayLike, N: int) -> _Floats: ...
    def cdf(self, k: npt.ArrayLike, M: int, n: npt.ArrayLike, N: int) -> _Floats: ...
    def sf(self, k: npt.ArrayLike, M: int, n: npt.ArrayLike, N: int) -> _Floats: ...

hypergeom: _Hypergeom
