"""The path of an episode on the map of its arena, for notebooks."""

from __future__ import annotations

import io
from typing import Final

import numpy as np

from animalcat.arena_configs.loader import load_text
from animalcat.arena_configs.placement import place
from animalcat.arena_configs.sequence import episode_arenas, merge_arenas
from animalcat.maps.small import draw_small
from animalcat.service.recording.reader import Recording
from animalcat.text.showing import figure_html

_MOST: Final = 400
"""Points of a path that are drawn at most."""
_LINE: Final = "fill='none' stroke='#1f77b4' stroke-width='.35' stroke-linejoin='round'"


def path_on_map(recording: Recording) -> str:
    """Draw where the agent went, as HTML; where arenas merge, in the first one.

    Args:
        recording: The episode.
    """
    arenas = episode_arenas(
        merge_arenas(load_text(recording.header.arena_yaml, "the arena").config)
    )
    placed = place(arenas[0], np.random.default_rng(0))
    points = [
        (float(position[0]), 40.0 - float(position[2]))
        for step in recording.steps
        if len(position := step.observation.position) == 3
    ]
    thinned = points[:: max(1, len(points) // _MOST)] + points[-1:]
    line = io.StringIO()
    for x, z in thinned:
        line.write(f"{x:.2f},{z:.2f} ")
    drawn = draw_small([placed], recording.header.instance)
    end = f"<circle cx='{thinned[-1][0]:.2f}' cy='{thinned[-1][1]:.2f}' r='.6' fill='#d62728'/>"
    path = f"<polyline points='{line.getvalue().strip()}' {_LINE}/>{end}" if thinned else ""
    drawn = drawn.replace("</svg>", f"{path}</svg>")
    return figure_html(drawn.replace("<svg ", '<svg style="max-width:20rem" ', 1))
