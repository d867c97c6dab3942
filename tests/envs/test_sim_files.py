"""Every arena file of the two real sets builds and plays."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.envs.real_files import SETS, arena_files, pass_rates, play_all

pytestmark = pytest.mark.data


@pytest.mark.parametrize("name", SETS)
def test_a_sample_of_the_real_files_plays(data_dir: Path, name: str) -> None:
    files = arena_files(data_dir / name)
    assert len(files) > 300
    sample = files[:: len(files) // 25]
    played = play_all(sample, decisions=60)
    assert played.files == len(sample)
    assert played.arenas >= played.files
    assert played.decisions > 40 * played.arenas


@pytest.mark.slow
@pytest.mark.parametrize("name", SETS)
def test_every_real_file_plays(
    data_dir: Path, name: str, record_property: pytest.RecordProperty
) -> None:
    files = arena_files(data_dir / name)
    played = play_all(files, decisions=10)
    record_property("files", len(files))
    record_property("objects skipped", played.skipped.total())
    for (thing, reason), times in played.skipped.most_common():
        print(f"{times:6} {thing}: {reason}")
    assert {"Agent"}.isdisjoint(thing for thing, _ in played.skipped)


def test_the_braitenberg_agent_finds_the_easy_categories_easier(data_dir: Path) -> None:
    """Categories 1 (food) and 10 (causal reasoning): 65 % and 0 % in the real build."""
    files = arena_files(data_dir / SETS[0])
    rates = pass_rates([file for file in files if file.name.startswith(("01-0", "10-0"))][::3])
    assert rates[1][0] / rates[1][1] > 0.65
    assert rates[10][0] / rates[10][1] < 0.1
