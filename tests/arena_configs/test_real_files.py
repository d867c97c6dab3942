"""Every real arena file that is at hand, against counts made here from the plain text."""

from __future__ import annotations

import collections
import csv
import re
from pathlib import Path

import numpy as np
import pytest

from animalcat.arena_configs.features.registry import measure_features
from animalcat.arena_configs.features.start import bearing
from animalcat.arena_configs.features.survey import nearest_reward
from animalcat.arena_configs.loader import LoadedConfig, load_config, load_text
from animalcat.arena_configs.outcome import success
from animalcat.arena_configs.placement import Placement, fix, place
from animalcat.arena_configs.returns import max_return
from animalcat.arena_configs.writer import to_yaml

# One worker reads each file once.
pytestmark = [pytest.mark.data, pytest.mark.xdist_group("files")]

AAIO = [f"01-{task:02d}" for task in range(1, 18)] + [f"07-{task:02d}" for task in range(1, 7)]


@pytest.fixture(scope="session")
def competition(data_dir: Path) -> dict[Path, LoadedConfig]:
    return {path: load_config(path) for path in sorted(data_dir.glob("animal-ai-competition/*"))}


@pytest.fixture(scope="session")
def piaagets(data_dir: Path) -> dict[Path, LoadedConfig]:
    return {path: load_config(path) for path in sorted(data_dir.glob("o-piaagets/**/*.yml"))}


@pytest.fixture(scope="session")
def aaio(competition: dict[Path, LoadedConfig]) -> dict[str, Placement]:
    rng = np.random.default_rng(0)
    return {
        path.stem: place(loaded.config.first, rng)
        for path, loaded in competition.items()
        if path.stem[:5] in AAIO
    }


def count_codes(files: dict[Path, LoadedConfig]) -> collections.Counter[str]:
    return collections.Counter(
        problem.code for loaded in files.values() for problem in loaded.problems
    )


def test_competition_needs_no_leniency(competition: dict[Path, LoadedConfig]) -> None:
    assert len(competition) == 346
    assert count_codes(competition) == {}
    for path, loaded in competition.items():
        text = path.read_text("utf-8")
        written = re.findall(r"^ *- !Item", text, re.MULTILINE)
        assert len(loaded.config.first.items) == len(written), path
        assert f"t: {loaded.config.first.time_limit}" in text


@pytest.mark.slow
def test_piaagets_oddities_are_all_found(piaagets: dict[Path, LoadedConfig]) -> None:
    """The three kinds of section 1.12 of the reference that this subset can hold."""
    expected: collections.Counter[str] = collections.Counter()
    for path in piaagets:
        text = path.read_text("utf-8")
        expected["second-document"] += len(re.findall(r"^!ArenaConfig", text, re.MULTILINE)) > 1
        lost = r"^ *- !Vector3.*#.*- *!Item *\n *name:"
        expected["lost-item"] += len(re.findall(lost, text, re.MULTILINE))
        expected["unknown-object"] += len(re.findall(r"^ *name: *GoodGoalMultibOUNCE", text, re.M))
    counted = count_codes(piaagets)
    for code, count in expected.items():
        assert counted[code] == count, code
    assert expected["lost-item"] == 1
    assert expected["unknown-object"] == 1
    assert set(counted) <= {*expected, "duplicate-key", "unequal-lists"}


def test_every_file_survives_both_writers(
    competition: dict[Path, LoadedConfig], piaagets: dict[Path, LoadedConfig]
) -> None:
    sample = [*list(competition.items())[::4], *list(piaagets.items())[::16]]
    for path, loaded in sample:
        for grammar in ("4.x", "3.x"):
            text = to_yaml(loaded.config, grammar)
            assert load_text(text, path.name).config == loaded.config, path


def test_every_file_can_be_fixed(
    competition: dict[Path, LoadedConfig], piaagets: dict[Path, LoadedConfig]
) -> None:
    rng = np.random.default_rng(0)
    sample = [*list(competition.items())[::4], *list(piaagets.items())[::16]]
    skipped = objects = 0
    for path, loaded in sample:
        placement = place(loaded.config.first, rng)
        skipped += len(placement.skipped)
        objects += len(placement.objects)
        again = place(fix(loaded.config.first, rng), rng)
        assert (again.drawn, again.skipped) == ({}, ()), path
    # The arenas were made in Unity, so its rules must let nearly all of their objects be.
    assert skipped < 0.003 * objects


def test_features_of_the_69_instances(aaio: dict[str, Placement]) -> None:
    assert len(aaio) == 69
    spread = collections.Counter[tuple[float, float]]()
    for name, placement in aaio.items():
        assert placement.drawn == {}, f"{name} leaves something to chance"
        features = measure_features(placement).values
        spread[features["rewardBehind"], features["XPos"]] += 1
        assert 2.0 <= features["rewardDistance"] <= 53.75
        assert features["rewardSize"] in (0.5, 1.0, 3.0, 5.0)
        reward = nearest_reward(placement)
        assert reward is not None
        # No instance hangs on where the lines between front, side and behind are drawn.
        away = abs(bearing(placement, reward))
        assert away < 34 or away > 134
        off = min(away, 180 - away)
        assert off < 1 or off > 14
    assert spread == {(0, 0): 18, (0, -1): 12, (0, 1): 12, (1, 0): 11, (1, -1): 9, (1, 1): 7}


@pytest.mark.parametrize(
    ("name", "distance", "size", "behind", "side"),
    [
        ("01-01-01", 2.0, 1.0, 0, 0),
        ("01-03-01", 22.36, 1.0, 0, 0),  # 0.6 degrees off: straight ahead
        ("01-03-03", 53.74, 1.0, 0, 0),
        ("01-04-03", 42.26, 1.0, 0, -1),
        ("01-07-02", 25.32, 5.0, 0, 1),
        ("01-13-02", 26.54, 1.0, 1, -1),
        ("01-16-03", 43.42, 0.5, 1, 0),
        ("07-01-02", 35.36, 1.0, 1, 1),
    ],
)
def test_features_by_hand(
    aaio: dict[str, Placement],
    name: str,
    distance: float,
    size: float,
    behind: float,
    side: float,
) -> None:
    found = measure_features(aaio[name]).values
    assert found["rewardDistance"] == pytest.approx(distance, abs=0.005)
    assert (found["rewardSize"], found["rewardBehind"], found["XPos"]) == (size, behind, side)


def test_nobody_ever_got_more_than_the_best_return(
    data_dir: Path, competition: dict[Path, LoadedConfig]
) -> None:
    """Real outcomes of 30 entrants: none above our bound, and no pass where we say none can be.

    The least return is not theirs: they played a build in which no health ended an episode.
    """
    rng = np.random.default_rng(0)
    bounds = {path.stem: place(x.config.first, rng) for path, x in competition.items()}
    with (data_dir / "aaio/final_rewards.csv").open(newline="") as file:
        rows = {row.pop("instance"): row for row in csv.DictReader(file)}
    closest = np.inf
    for name, placement in bounds.items():
        best = max_return(placement)
        returns = [float(value) for value in rows[name].values() if value]
        assert max(returns) <= best, name
        closest = min(closest, best - max(returns))
        if not success(best, placement.pass_mark):
            assert not any(success(value, placement.pass_mark) for value in returns), name
    assert closest < 0.05
