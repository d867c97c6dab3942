"""The demo: an agent whose limit is known is measured, and its most informative episode shown."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image

from animalcat.cli.demo import DEMOS, Demonstration, Shown
from animalcat.envs.agents.limits.reference import read_reference
from animalcat.layouts.library import load_layout
from tests.printed import DEMO, README, agrees, printed_by_demo


@pytest.mark.parametrize("demo", DEMOS)
def test_what_is_planted_is_what_the_agent_is_called(demo: Demonstration) -> None:
    limits = read_reference(demo.agent).limits
    node = next(
        one for one in load_layout(demo.layout, demo.variant).latents if one.name == demo.node
    )
    assert demo.planted in limits.values()
    assert node.unit == demo.unit
    assert node.prior.low < demo.planted < node.prior.high
    assert demo.typical


def row_of(outcome: str, before: float, now: float, happened: str = "") -> Shown:
    episode: Any = SimpleNamespace(outcome=outcome, decision=SimpleNamespace(predicted=before))
    told = ["It failed.", "It asks for 20 m.", "More is unknown."]
    sentences = [happened, *told] if happened else told
    return Shown(episode, {"expected": now, "happened": happened, "sentences": sentences})


def test_what_told_most_is_expected_now_and_was_not_before() -> None:
    surprise, lesson, known = (
        row_of("failure", 0.6, 0.6), row_of("failure", 0.5, 0.1), row_of("failure", 0.1, 0.05),
    )  # fmt: skip
    assert max((surprise, lesson, known), key=lambda one: one.taught) is lesson
    assert row_of("success", 0.5, 0.9).taught == pytest.approx(1.8)


@pytest.mark.slow
def test_the_demo_prints_in_80_columns_what_the_readme_shows(tmp_path: Path) -> None:
    text = printed_by_demo(tmp_path)
    (block,) = DEMO.findall(README.read_text("utf-8"))
    assert agrees(block, text), f"`python -m tests.printed` writes what the README shows:\n{text}"
    lines = text.splitlines()
    unbroken = ("  ", "video", "picture")  # commands and files are whole
    assert not [one for one in lines if len(one) > 80 and not one.startswith(unbroken)]
    (profile,) = (tmp_path / "animalcat-demo" / "profiles").glob("*/profile.json")
    assert json.loads(profile.read_text("utf-8"))["provenance"]["ended"] == "precise"
    page = profile.with_name("profile.html").read_text("utf-8")
    assert "most informative failure: episode" in page
    assert "data:image/png;base64," in page
    picture = np.asarray(Image.open(profile.with_name("episode.png")))
    assert picture.std() > 10.0
    assert lines[-1].strip() == "animalcat battery import my_arenas/"
