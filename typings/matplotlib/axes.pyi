from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.patches import Patch

class Legend:
    def set_zorder(self, level: float) -> None: ...

class Axes:
    def legend(
        self,
        *,
        handles: Sequence[Patch] = ...,
        loc: str = ...,
        fontsize: float = ...,
        **style: Any,
    ) -> Legend: ...
    def set(self, **properties: Any) -> list[Any]: ...
    def grid(self, *, color: str = ..., linewidth: float = ...) -> None: ...
    def set_facecolor(self, color: str) -> None: ...
    def add_patch(self, p: Patch) -> Patch: ...
    def plot(
        self,
        x: Sequence[float],
        y: Sequence[float],
        *,
        color: str,
        lw: float = ...,
        ls: str = ...,
        marker: str = ...,
        ms: float = ...,
        zorder: float = ...,
    ) -> list[Any]: ...
    def fill_between(
        self,
        x: Sequence[float],
        y1: Sequence[float],
        y2: Sequence[float],
        *,
        color: str,
        alpha: float,
        lw: float,
    ) -> Any: ...
    def set_title(self, label: str, *, loc: str = ..., fontsize: float = ...) -> Any: ...
    def annotate(
        self,
        text: str,
        xy: tuple[float, float],
        xytext: tuple[float, float] | None = ...,
        *,
        textcoords: str = ...,
        arrowprops: Mapping[str, Any] | None = ...,
        ha: str = ...,
        va: str = ...,
        fontsize: float = ...,
        fontweight: str = ...,
        color: str = ...,
        zorder: float = ...,
        annotation_clip: bool = ...,
        bbox: Mapping[str, Any] | None = ...,
    ) -> Any: ...
    def text(self, x: float, y: float, s: str, **style: Any) -> Any: ...
    def set_axis_off(self) -> None: ...
