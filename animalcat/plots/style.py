"""What all pictures share: colours that do not depend on hue alone, units, and saving."""

from __future__ import annotations

import io
import warnings
from base64 import b64encode
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from animalcat.layouts.explaining.wording import Marks
from animalcat.layouts.model.tables import of_kind
from animalcat.machine.files import write_whole

Floats: TypeAlias = npt.NDArray[np.float64]

INK: Final = "#22303c"
SOFT: Final = "#74808c"
PRIOR: Final = "#c3cad1"
MAIN: Final = "#0b6e99"
PAPER: Final = "#fefefe"
"""Inside of markers: the colour of the page."""
BAD: Final = "#c8553d"
AGENTS: Final = ("#0b6e99", "#d17a00", "#1b8a5a", "#b0457b", "#6a5acd", "#7a7a2a", "#22303c")
"""Colours of several agents, which also differ in lightness; markers differ too."""
MARKERS: Final = ("o", "s", "^", "D", "v", "P", "X")
FORMATS: Final = (".svg", ".png", ".pdf")
"""Endings of the files that can be written."""


def with_unit(name: str, unit: str) -> str:
    """A name with its unit in brackets, if it has one."""
    return f"{name} ({unit})" if unit not in ("", "1") else name


class Picture(Figure):
    """A figure that a notebook shows as the last line of a cell, without pyplot or a magic."""

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        """The picture, sharp on fine screens, and how large it is shown."""
        own: Any = self
        wide, high = own.get_size_inches()
        return save_bytes(self, ".png"), {"width": round(96 * wide), "height": round(96 * high)}


class Canvas(NamedTuple):
    """Where a picture is drawn.

    Attributes:
        figure: The figure.
        axes: Its panels.
        own: Whether the figure is ours. On another's nothing is written that belongs to the whole
            of it, but for labels, which every reader has to know.
    """

    figure: Any
    axes: list[Any]
    own: bool

    def entitle(self, title: str, labels: Sequence[str] = ()) -> None:
        """Write the title, and what every reader has to know."""
        if self.own:
            entitle(self.figure, title, labels)
        elif labels:
            self.axes[0].annotate(
                "\n".join(map(plain, labels)), (0.0, 1.0), xycoords="axes fraction",
                xytext=(0, 18), textcoords="offset points", fontsize=8, color=BAD,
            )  # fmt: skip

    def below(self, words: str) -> None:
        """Say under the whole picture what its parts are."""
        if self.own:
            self.figure.supxlabel(words, fontsize=8, color=SOFT)

    def legend(self, handles: Sequence[Any], names: Sequence[str], columns: int = 3) -> None:
        """Name the lines of the picture."""
        if self.own:
            self.figure.legend(
                handles, names, loc="outside lower center", ncols=columns, fontsize=8,
                frameon=False,
            )  # fmt: skip
        else:
            self.axes[0].legend(handles, names, fontsize=8, frameon=False)


def new_figure(width: float, height: float) -> Figure:
    """An empty figure, in inches."""
    return Picture(figsize=(width, height), layout="constrained")


def canvas(
    given: Any, call: str, size: tuple[float, float], rows: int = 1, columns: int = 1,
    count: int | None = None,
) -> Canvas:  # fmt: skip
    """The panels that a picture is drawn on.

    Args:
        given: Axes of matplotlib, one or several; None for those of a new figure.
        call: Name of the function that draws.
        size: Width and height of a new figure in inches.
        rows: Its rows of panels.
        columns: Its columns of panels.
        count: Number of panels; by default all of them.

    Raises:
        TypeError: What was given are no axes.
        ValueError: Their number differs.
    """
    count = rows * columns if count is None else count
    if given is None:
        figure: Any = new_figure(*size)
        made = [figure.add_subplot(rows, columns, k) for k in range(1, count + 1)]
        return Canvas(figure, made, own=True)
    each: list[Any] = list(np.ravel(np.array(given, dtype=object)))
    subplots = "figure, ax = plt.subplots(" + (f"{rows}, {columns}" if count > 1 else "") + ")"
    for one in each:
        if not isinstance(one, Axes):
            several = ". Several agents go into a list: comparison([one, other])"
            raise TypeError(
                f"{call}: ax is {of_kind(one)}, not Axes of matplotlib; make them by {subplots}"
                + several * hasattr(one, "to_frame")
            )
    if len(each) != count:
        raise ValueError(
            f"{call}: ax has {len(each)} axes, and {count} are drawn on; make them by {subplots}"
        )
    return Canvas(each[0].get_figure(root=True), each, own=False)


def panels(given: Any, call: str, count: int, columns: int, width: float, height: float) -> Canvas:
    """Panels in rows.

    Args:
        given: Axes of matplotlib; None for those of a new figure.
        call: Name of the function that draws.
        count: Number of panels.
        columns: Most panels in a row.
        width: Width of a panel in inches.
        height: Height of a panel in inches.
    """
    columns = max(1, min(columns, count))
    rows = max(1, -(-count // columns))
    return canvas(given, call, (columns * width, rows * height), rows, columns, count)


def tidy(axes: Any) -> None:
    """Take away what is not needed: the frame at the top and at the right."""
    axes.spines["top"].set_visible(False)
    axes.spines["right"].set_visible(False)
    for spine in axes.spines.values():
        spine.set_color(SOFT)
    axes.tick_params(colors=INK, labelsize=8)


def mark(axes: Any, marks: Marks, at: float, colour: str, wide: float, marker: str = "o") -> None:
    """Draw an interval with its estimate, and an arrow at an end that is open.

    Args:
        axes: Where to.
        marks: What is drawn.
        at: Its height.
        colour: Its colour.
        wide: Width of the interval's line; the marker is larger.
        marker: How the estimate is marked.
    """
    ends = [marks.low, marks.high]
    axes.plot(ends, [at, at], color=colour, lw=wide, zorder=3, solid_capstyle="butt")
    if marks.open:
        end, arrow = (marks.high, ">") if marks.open == "high" else (marks.low, "<")
        axes.plot([end], [at], arrow, color=colour, ms=wide + 4, zorder=3, clip_on=False)
    if marks.at is not None:
        axes.plot(
            [marks.at], [at], marker, color=INK if wide == 1 else PAPER,
            mec=INK if wide == 1 else colour, mew=0 if wide == 1 else 1.9, ms=wide + 3, zorder=4,
            clip_on=False,
        )  # fmt: skip


def entitle(figure: Any, title: str, labels: Sequence[str] = ()) -> None:
    """Write a title, and under it what every reader has to know.

    Args:
        figure: The figure.
        title: The title.
        labels: Labels of a profile: unfinished, contradicted, not certified, privileged.
    """
    words = plain(title)
    for label in labels:
        words += f"\n{plain(label)}"
    if words:
        figure.suptitle(words, fontsize=10, color=BAD if labels else INK, wrap=True)


def plain(text: str) -> str:
    """Text that matplotlib writes as it is: a dollar sign would begin a formula."""
    return " ".join(text.split()).replace("$", r"\$")


def agent_styles(names: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Name, colour and marker of each agent."""
    for k, name in enumerate(names):
        yield name, AGENTS[k % len(AGENTS)], MARKERS[k % len(MARKERS)]


def save(figure: Figure | Axes, path: Path | str, about: str = "") -> None:
    """Write a figure, either completely or not at all; the same figure gives the same bytes.

    Args:
        figure: The figure that a picture returned, or axes of it.
        path: Where to; its ending says which form: `.svg`, `.png` or `.pdf`.
        about: Where its numbers come from, which the file keeps beside the picture.

    Raises:
        TypeError: It is no figure.
        ValueError: The ending is unknown.
        OSError: It cannot be written.
    """
    given: Any = figure
    whole = given.get_figure(root=True) if isinstance(figure, Axes) else given
    if not isinstance(whole, Figure):
        raise TypeError(
            f"save: figure is {of_kind(given)}; give a picture first: save(forest(fit), path)"
        )
    path = Path(path)
    if path.suffix.lower() not in FORMATS:
        raise ValueError(f"{path}: call it {', '.join(FORMATS[:-1])} or {FORMATS[-1]}")
    write_whole(path, save_bytes(whole, path.suffix, about))


def save_bytes(figure: Figure, ending: str, about: str = "") -> bytes:
    """The content of a picture's file.

    Args:
        figure: The figure.
        ending: `.svg`, `.png` or `.pdf`.
        about: Where its numbers come from, which the file keeps beside the picture.
    """
    form = ending.lower()
    buffer = io.BytesIO()
    notes: dict[str, dict[str, Any]] = {
        ".svg": {"Date": None, "Description": about or None},
        ".pdf": {"CreationDate": None, "Subject": about or None},
        ".png": {"Description": about} if about else {},
    }
    settings: Any = mpl
    drawn: Any = figure
    with (
        settings.rc_context({"svg.hashsalt": "animalcat", "svg.fonttype": "path"}),
        warnings.catch_warnings(),
    ):
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # of names in any script
        drawn.savefig(buffer, format=form[1:], dpi=130, metadata=notes.get(form))
    return buffer.getvalue()


def embed_figure(figure: Figure, alt: str) -> str:
    """A figure as an image inside a page, which loads nothing from elsewhere.

    Args:
        figure: The figure.
        alt: What it shows, in a sentence, for those who do not see it.
    """
    drawn: Any = figure
    data = b64encode(save_bytes(figure, ".svg")).decode()
    wide = drawn.get_figwidth() * 6  # at 96 points an inch, where a page has 16 a line
    return (
        f'<img src="data:image/svg+xml;base64,{data}" style="width:{wide:.1f}rem" '
        f'alt="{escape(alt, quote=True)}">'
    )
