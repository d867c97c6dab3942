"""The profiles that are shipped to compare with."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from animalcat.cli.main import build
from animalcat.cli.shared.profile_references import (
    FOLDER,
    REFERENCES,
    batteries,
    reference_content,
)
from animalcat.envs.agents.load import load_agent
from animalcat.plots.results import read_results

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference-profiles.md"
SHIPPED = [(agent, battery) for agent in REFERENCES for battery in batteries(agent)]


@pytest.mark.parametrize(("agent", "battery"), SHIPPED)
def test_a_file_says_what_was_measured_and_how(agent: str, battery: str) -> None:
    results = read_results(reference_content(f"reference:{agent}", battery))
    about = results.profile["provenance"]
    assert (about["agent"], about["battery"]) == (agent, battery)
    assert (about["seed"], about["secret"]) == (0, "reference")
    assert about["versions"]["animalcat"]
    assert about["agent_fingerprint"]["digest"]
    assert results.draws.shape == (1000, len(results.layout.latents))
    assert np.isfinite(results.draws).all()
    # Thinned draws still say what the profile says.
    for name, node in results.profile["nodes"].items():
        mean = results.draws[:, results.layout.latent_names.index(name)].mean()
        assert abs(mean - node["mean"]) < 0.2 * node["sd"] + 1e-6, name
    assert f"| {battery} | `{agent}` | {about['successes']} of {about['episodes']} |" in (
        PAGE.read_text()
    )


def test_references_are_compared_with_one_another_and_files(tmp_path: Path) -> None:
    mine = tmp_path / "mine.nc"
    mine.write_bytes(reference_content("reference:random", "navigation"))
    # Without a battery, that of the first file or session is meant.
    done = CliRunner().invoke(
        build(["profile"]), ["profile", "compare", str(mine), "reference:scout", "--json"]
    )
    assert done.exit_code == 0, done.output
    assert '"scout"' in done.stdout
    assert '"random"' in done.stdout


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["reference:nobody", "reference:scout"], "there is no such agent"),
        (["reference:scout", "reference:random"], "say on which battery"),
        (["reference:scout@elsewhere", "reference:random@navigation"], "was not measured on"),
    ],
)
def test_a_reference_to_nothing_is_refused(words: list[str], told: str) -> None:
    done = CliRunner().invoke(build(["profile"]), ["profile", "compare", *words])
    assert done.exit_code == 2
    assert told in done.stderr


@pytest.mark.parametrize("name", [name for name in REFERENCES if name.startswith("ppo-")])
def test_trained_agents_play_from_their_weights(name: str) -> None:
    from animalcat.envs.agents.base import EpisodeInfo
    from animalcat.envs.types import ObservationSpec

    agent = load_agent(f"{FOLDER}/{REFERENCES[name].agent}")
    spec = ObservationSpec()
    seen = [spec.generate(np.random.default_rng(seed)) for seed in range(20)]

    def play_out() -> list[bytes]:
        agent.reset(EpisodeInfo(0, 7, spec))
        return [bytes(agent.act(one)) for one in seen]

    first = play_out()
    assert first == play_out()
    assert {len(actions) for actions in first} == {3}
    assert len({*first}) > 1
