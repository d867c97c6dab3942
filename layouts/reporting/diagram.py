"""Places the nodes of a graph in layers from left to right (Sugiyama's method).

This is our own code because Graphviz, which does it well, is not a Python package; igraph, the one
library with it that pip installs alone, has a licence that would bind users of this project.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final, TypeAlias

import numpy as np
from scipy.optimize import isotonic_regression

Edge: TypeAlias = tuple[str, str]
Spot: TypeAlias = tuple[int, float]
"""Layer, counted from the left, and height within it; neighbours are 1 apart."""

_SWEEPS: Final = 24
_BEND: Final = 0.55
"""Room that an edge takes where it passes a layer, as a share of a node's."""


@dataclass(frozen=True, slots=True)
class Diagram:
    """Positions of nodes and routes of edges.

    Attributes:
        spots: Position of each node.
        routes: By (parent, child), the positions that an edge passes through, ends included.
        layers: Number of layers.
        height: Greatest height; the least is 0.
    """

    spots: Mapping[str, Spot]
    routes: Mapping[Edge, tuple[Spot, ...]]
    layers: int
    height: float


def arrange(parents: Mapping[str, Sequence[str]]) -> Diagram:
    """Place the nodes of an acyclic graph: parents left of children, with few crossings.

    Args:
        parents: Parents of every node. The order of the nodes breaks ties.
    """
    layer = _layers(parents)
    chains = {
        (parent, node): [
            parent,
            *(f"{parent}>{node}>{at}" for at in range(layer[parent] + 1, layer[node])),
            node,
        ]
        for node, given in parents.items()
        for parent in dict.fromkeys(given)
    }
    columns: list[list[str]] = [[] for _ in range(max(layer.values()) + 1)]
    for name, at in layer.items():
        columns[at].append(name)
    for (parent, _), chain in chains.items():
        for step, name in enumerate(chain[1:-1], start=1):
            columns[layer[parent] + step].append(name)
    left: dict[str, list[str]] = {name: [] for column in columns for name in column}
    right: dict[str, list[str]] = {name: [] for name in left}
    for chain in chains.values():
        for a, b in itertools.pairwise(chain):
            right[a].append(b)
            left[b].append(a)
    columns = _uncrossed(columns, left, right)
    heights = _heights(columns, left, right, nodes=set(layer))
    spots = {name: (at, heights[name]) for at, column in enumerate(columns) for name in column}
    return Diagram(
        spots={name: spots[name] for name in layer},
        routes={edge: tuple(spots[name] for name in chain) for edge, chain in chains.items()},
        layers=len(columns),
        height=max(heights.values()),
    )


def _layers(parents: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """The layer of each node: right after its last parent, or for roots right before a child."""
    depth: dict[str, int] = {}

    def reach(name: str) -> int:
        if name not in depth:
            depth[name] = 1 + max((reach(p) for p in parents[name]), default=-1)
        return depth[name]

    for name in parents:
        reach(name)
    for name in parents:
        children = [depth[n] for n, given in parents.items() if name in given]
        if not parents[name] and children:
            depth[name] = min(children) - 1
    return depth


def _uncrossed(
    columns: list[list[str]], left: Mapping[str, list[str]], right: Mapping[str, list[str]]
) -> list[list[str]]:
    """Order each layer by sweeps to the mean position of neighbours; keeps the best."""
    best, fewest = columns, _crossings(columns, right)
    for sweep in range(_SWEEPS):
        forward = sweep % 2 == 0
        columns = [list(column) for column in columns]
        order = range(1, len(columns)) if forward else range(len(columns) - 2, -1, -1)
        for at in order:
            near = left if forward else right
            place = {n: i for i, n in enumerate(columns[at - 1 if forward else at + 1])}
            now = {n: i for i, n in enumerate(columns[at])}
            columns[at].sort(
                key=lambda n, near=near, place=place, now=now: (
                    fmean([place[m] for m in near[n]]) if near[n] else now[n]
                )
            )
        if (count := _crossings(columns, right)) < fewest:
            best, fewest = columns, count
    return best


def _crossings(columns: Sequence[Sequence[str]], right: Mapping[str, list[str]]) -> int:
    total = 0
    for column, following in itertools.pairwise(columns):
        place = {name: i for i, name in enumerate(following)}
        ends = [sorted(place[m] for m in right[name]) for name in column]
        flat = [end for part in ends for end in part]
        total += sum(a > b for i, a in enumerate(flat) for b in flat[i + 1 :])
    return total


def _heights(
    columns: Sequence[Sequence[str]],
    left: Mapping[str, list[str]],
    right: Mapping[str, list[str]],
    nodes: set[str],
) -> dict[str, float]:
    """Heights near the neighbours' mean, in the given order, with nodes kept apart."""
    offsets: list[np.ndarray[tuple[int], np.dtype[np.float64]]] = []
    heights: dict[str, float] = {}
    for column in columns:
        room = np.array([1.0 if name in nodes else _BEND for name in column])
        offset = np.concatenate([[0.0], np.cumsum((room[1:] + room[:-1]) / 2.0)])
        offsets.append(offset)
        heights |= {n: float(h - offset[-1] / 2.0) for n, h in zip(column, offset, strict=True)}
    for sweep in range(2 * _SWEEPS):
        order = range(len(columns)) if sweep % 2 else range(len(columns) - 1, -1, -1)
        for at in order:
            wanted = [
                fmean([heights[m] for m in (*left[n], *right[n])] or [heights[n]])
                for n in columns[at]
            ]
            # The nearest heights in this order that are far enough apart.
            fitted = isotonic_regression(np.array(wanted) - offsets[at]).x + offsets[at]
            heights |= dict(zip(columns[at], fitted.tolist(), strict=True))
    least = min(heights.values())
    return {name: height - least for name, height in heights.items()}
