"""Pictures of layouts: nothing lies on anything else, and the same layout gives the same bytes."""

from __future__ import annotations

from itertools import combinations, pairwise

import pytest

from animalcat.layouts.library import LAYOUTS, load_layout, variants
from animalcat.plots.graph import arrange_nodes, parents_of

ALL = [(name, variant) for name in LAYOUTS for variant in variants(name)]


@pytest.mark.parametrize(("name", "variant"), ALL)
def test_nodes_stand_apart_and_edges_lead_to_the_right(name: str, variant: str) -> None:
    parents = parents_of(load_layout(name, variant))
    spots, routes = arrange_nodes(parents)
    assert spots.keys() == parents.keys()
    for a, b in combinations(spots.values(), 2):
        assert a[0] != b[0] or abs(a[1] - b[1]) >= 1.0
    assert routes.keys() == {(p, node) for node, given in parents.items() for p in given}
    for (parent, node), route in routes.items():
        assert (route[0], route[-1]) == (spots[parent], spots[node])
        assert all(b[0] - a[0] == 1 for a, b in pairwise(route))
        assert not set(route[1:-1]) & set(spots.values())


def test_a_graph_that_needs_no_crossings_has_none() -> None:
    # Given in an order in which all edges cross.
    parents: dict[str, tuple[str, ...]] = dict.fromkeys((f"a{i}" for i in range(6)), ())
    parents |= {f"b{i}": (f"a{5 - i}",) for i in range(6)}
    parents["end"] = tuple(f"b{i}" for i in range(6))
    steps = [step for route in arrange_nodes(parents).routes.values() for step in pairwise(route)]
    for (a, b), (c, d) in combinations(steps, 2):
        assert a[0] != c[0] or (a[1] - c[1]) * (b[1] - d[1]) >= 0.0
