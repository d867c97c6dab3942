"""The numbers that the papers print, from their YAML files."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any

import yaml


@cache
def printed_figures(paper: str) -> dict[str, Any]:
    """What a paper prints: figures and tables by name, as its file has them."""
    path = resources.files("benchmarks.papers").joinpath(f"{paper}.yaml")
    return yaml.safe_load(path.read_text(encoding="utf-8"))
