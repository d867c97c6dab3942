"""The notebooks of the documentation run from top to bottom, and show what their words say."""

from __future__ import annotations

import builtins
import json
from pathlib import Path
from typing import Any

import pytest

NOTEBOOKS = Path(__file__).resolve().parents[2] / "docs" / "notebooks"


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs a notebook's code; gives what it defined."""

    def run(name: str) -> dict[str, Any]:
        monkeypatch.chdir(NOTEBOOKS)
        monkeypatch.setenv("MPLBACKEND", "agg")
        cells = json.loads((NOTEBOOKS / name).read_text("utf-8"))["cells"]
        names: dict[str, Any] = {"__name__": "notebook"}
        for cell in cells:
            if cell["cell_type"] == "code":
                source = "".join(cell["source"])
                exec(compile(source, f"{name}: {cell['id']}", "exec"), names)
        return names

    return run


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_layout_is_designed(run: Any) -> None:
    names = run("design_a_layout.ipynb")
    assert all(fitted.converged for fits in ("fits", "mended") for fitted in names[fits].values())
    nodes = {node.name: node.mean for node in names["mended"]["oak"].nodes}
    assert nodes["tableReading"] < 0.5
    assert nodes["carelessness"] < 0.1 < 0.2 < names["fits"]["oak"].nodes[2].mean


def test_anything_is_tested(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one who forgets the third carry is found, by right or wrong, counts and scores."""
    typed: list[str] = []

    def person(prompt: str) -> str:
        typed.append(prompt)
        a, b = prompt.removesuffix(" = ").split("+")
        return str(int(a) + int(b))

    monkeypatch.setattr(builtins, "input", person)
    names = run("test_anything.ipynb")
    nodes = {node.name: node for node in names["learner"].summary()}
    assert 1.5 < nodes["carrying"].mean < 3.5
    assert nodes["span"].mean > 5.5
    assert names["learner"].n <= 40
    assert len(typed) == names["asked"].n == 5
    assert names["asked"].data().outcomes.all()
    found = {variant: nodes["carrying"].mean for variant, nodes in names["found"].items()}
    assert 1.0 < found["tries"] < 3.5
    assert 3.0 < found["share"] < 6.0  # half of the digits are right where five are carried
