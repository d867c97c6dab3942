"""Pictures of layouts: nothing lies on anything else, and the same layout gives the same bytes."""

from __future__ import annotations

from itertools import combinations, pairwise
from pathlib import Path

import pytest

from animalcat.layouts.library import LAYOUTS, load_layout, variants
from animalcat.layouts.reporting.diagram import arrange
from animalcat.layouts.reporting.drawing import draw_layout

ALL = [(name, variant) for name in LAYOUTS for variant in variants(name)]


@pytest.mark.parametrize(("name", "variant"), ALL)
def test_nodes_stand_apart_and_edges_lead_to_the_right(name: str, variant: str) -> None:
    layout = load_layout(name, variant)
    parents = dict.fromkeys((*layout.feature_names, *layout.latent_names), ())
    parents |= {node.name: node.link.parents for node in layout.ordered}
    diagram = arrange(parents)
    assert diagram.spots.keys() == parents.keys()
    for a, b in combinations(diagram.spots.values(), 2):
        assert a[0] != b[0] or abs(a[1] - b[1]) >= 1.0 - 1e-9
    edges = {(p, node) for node, given in parents.items() for p in given}
    assert diagram.routes.keys() == edges
    for (parent, node), route in diagram.routes.items():
        assert route[0] == diagram.spots[parent]
        assert route[-1] == diagram.spots[node]
        assert [at for at, _ in route] == list(range(route[0][0], route[-1][0] + 1))
    assert max(at for at, _ in diagram.spots.values()) == diagram.layers - 1
    assert max(height for _, height in diagram.spots.values()) <= diagram.height


def test_a_graph_that_needs_no_crossings_has_none() -> None:
    # Given in an order in which all edges cross.
    leaves = [f"a{i}" for i in range(6)]
    parents: dict[str, tuple[str, ...]] = dict.fromkeys(leaves, ())
    parents |= {f"b{i}": (f"a{5 - i}", f"a{(5 - i) // 2 * 2}") for i in range(6)}
    parents["end"] = tuple(f"b{i}" for i in range(6))
    routes = arrange(parents).routes.values()
    steps = [step for route in routes for step in pairwise(route)]
    for (a, b), (c, d) in combinations(steps, 2):
        if a[0] == c[0]:
            assert (a[1] - c[1]) * (b[1] - d[1]) >= -1e-9


@pytest.mark.parametrize(("name", "variant"), ALL)
def test_every_node_is_in_the_picture(name: str, variant: str, tmp_path: Path) -> None:
    layout = load_layout(name, variant)
    draw_layout(layout, tmp_path / "one.svg")
    draw_layout(layout, tmp_path / "two.svg")
    text = (tmp_path / "one.svg").read_text("utf-8")
    assert text == (tmp_path / "two.svg").read_text("utf-8")
    drawn = "".join(part.split("<")[0] for part in text.split(">"))
    drawn = "".join(drawn.split())
    for node in (*layout.feature_names, *layout.latent_names, *(n.name for n in layout.derived)):
        assert "".join(node.split()) in drawn


def test_png_and_unknown_endings(tmp_path: Path) -> None:
    layout = load_layout("one-capability")
    draw_layout(layout, tmp_path / "graph.png")
    assert (tmp_path / "graph.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ValueError, match="foo"):
        draw_layout(layout, tmp_path / "graph.foo")
