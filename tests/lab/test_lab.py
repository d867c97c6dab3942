"""A study from Python, on one private server: batteries, measuring, results."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import animalcat as ac
from animalcat.lab.batteries import LabBattery
from animalcat.lab.profile import Profile

ARENAS = {
    f"{d} m, {s} m": ac.Arena.goal(distance=d, size=s, angle=4) for d in (4, 14, 30) for s in (1, 4)
}
OPTIONS = {"max_episodes": 5, "certify": False, "seed": 1, "secret": "lab", "progress": False}


class Forward:
    def reset(self, info: ac.EpisodeInfo) -> None: ...

    def act(self, observation: ac.Observation) -> int:
        return 3


class Still(Forward):
    def act(self, observation: ac.Observation) -> int:
        return 0


@pytest.fixture(scope="module")
def battery(lab: ac.Lab) -> LabBattery:
    return lab.battery(ARENAS, name="mine")


@pytest.fixture(scope="module")
def result(lab: ac.Lab, battery: LabBattery) -> ac.Result:
    return lab.measure(Forward(), battery, layout="aaio", **OPTIONS)


def test_a_battery_is_made_of_arenas_in_any_form(
    lab: ac.Lab, battery: LabBattery, tmp_path: Path
) -> None:
    for name, arena in ARENAS.items():
        (tmp_path / f"{name}.yaml").write_text(arena.to_yaml())
    forms = {
        "texts": {name: arena.to_yaml() for name, arena in ARENAS.items()},
        "models": {name: arena.config for name, arena in ARENAS.items()},
        "dicts": {name: arena.config.model_dump(by_alias=True) for name, arena in ARENAS.items()},
        "paths": {name: tmp_path / f"{name}.yaml" for name in ARENAS},
    }
    assert {lab.battery(form, name=name).digest for name, form in forms.items()} == {battery.digest}
    assert lab.battery(tmp_path, name="folder").digest == battery.digest
    assert lab.battery("mine").digest == battery.digest
    frame = battery.to_frame()
    assert sorted(frame.index) == sorted(ARENAS)
    assert frame.loc["14 m, 4 m", "rewardDistance [m]"] == pytest.approx(14.0, abs=0.01)
    assert battery.arena("14 m, 4 m").demands()["rewardSize [m]"] == 4.0
    assert "rewardDistance [m]" in battery._repr_html_()


def test_a_battery_is_reported_on(battery: LabBattery, tmp_path: Path) -> None:
    report = battery.report("aaio")
    assert f"{battery.instances} instances" in report.summary[0]
    frame = report.to_frame()
    last = frame.loc[("navigationAbility", "at random", battery.instances)]
    assert last["unit"] == "m"
    (known,) = [n for n in report.to_dict()["precision"]["nodes"] if n["name"] == frame.index[0][0]]
    share = 1.0 - known["share_of_prior"] ** 2
    assert last["reliability"] == pytest.approx(max(share, 0.0), abs=1e-5)
    assert "reliability" in report._repr_html_()
    assert report.save(tmp_path / "r.html").read_text().count("<svg") > battery.instances / 2
    assert json.loads(report.save(tmp_path / "r.json").read_text())["battery"] == battery.id
    with pytest.raises(ac.AnimalcatError, match=r"\.html or \.json"):
        report.save(tmp_path / "r.txt")
    with pytest.raises(ac.AnimalcatError, match="no-such"):
        battery.report("no-such")


def test_a_result_is_the_session_in_the_types_of_the_field(result: ac.Result) -> None:
    assert result.session.state == "finished"
    outcomes = result.outcomes
    assert list(outcomes["outcome"]).count("success") == result.session.successes
    assert {"rewardDistance [m]", "propensity", "predicted"} <= {*outcomes.columns}
    frame = result.to_frame()
    assert (frame["low"] < frame["high"]).equals(frame["estimate"].notna())
    draws = result.posterior.posterior["navigationAbility [m]"]
    assert draws.sizes["chain"] > 1
    assert result.verdict.text in repr(result)
    assert result.verdict.text.split(".")[0] in result._repr_html_()
    predicted = result.predict(top=2)
    assert predicted["predicted"].between(0.0, 1.0).all()
    assert set(predicted["tells"].dropna()) <= {1, 2}  # of one that was not played


def test_an_episode_is_explained_replayed_and_drawn(result: ac.Result) -> None:
    episode = result.episodes[0]
    assert episode.explain().text
    assert episode.replay().difference is None
    assert episode.frames(16).shape[1:] == (16, 16, 3)
    steps = episode.to_frame()
    assert len(steps) == episode.steps + 1
    assert steps["reward"].sum() == pytest.approx(episode.episode_return, abs=1e-4)
    assert "<polyline" in episode._repr_html_()
    assert result.episodes[-1].number == len(result.episodes) - 1
    assert len(result.episodes[1:3]) == 2
    assert list(result.episodes.to_frame()["outcome"]) == [e.outcome for e in result.episodes]


def test_the_same_call_gives_the_result_that_there_is(
    lab: ac.Lab, battery: LabBattery, result: ac.Result, capfd: pytest.CaptureFixture[str]
) -> None:
    again = lab.measure(Forward, battery, layout="aaio", **OPTIONS)
    assert again.id == result.id
    assert "was finished before" in capfd.readouterr().err
    other = lab.measure(Still, battery, layout="aaio", name="Forward", **OPTIONS)
    assert other.id != result.id
    assert "other content" in capfd.readouterr().err
    assert other.session.successes == 0
    compared = result.compare(other)
    assert set(compared.to_frame()["agent"]) == {"Forward 1", "Forward 2"}
    assert "Forward 2" in repr(compared)
    assert "first has more by" in compared._repr_html_()


def test_agents_of_references_and_files_run_apart(
    lab: ac.Lab, battery: LabBattery, tmp_path: Path
) -> None:
    file = tmp_path / "walker.py"
    file.write_text("class Walker:\n  def reset(self, info): ...\n  def act(self, o): return 3\n")
    options = {**OPTIONS, "max_episodes": 2}
    measured = lab.measure(file, battery, layout="aaio", **options)
    assert measured.agent.endswith("walker.py:Walker")
    assert measured.session.episodes == 2


def test_a_session_is_gone_on_with_by_its_agent_alone(lab: ac.Lab, battery: LabBattery) -> None:
    options = {**OPTIONS, "max_episodes": 1, "secret": "resumed"}
    first = lab.measure(Forward, battery, layout="aaio", **options)
    with pytest.raises(ac.AnimalcatError, match="other content"):
        lab.resume(first, Still, episodes=1, progress=False)
    more = lab.resume(first, Forward, episodes=1, progress=False)
    assert (more.id, more.session.episodes) == (first.id, 2)


def test_a_campaign_of_objects_and_references_is_compared(lab: ac.Lab, battery: LabBattery) -> None:
    agents = {"forward": Forward, "still": Still(), "turner": "builtin:braitenberg"}
    options = {"common": 2, "certify": False, "secret": "lab", "progress": False}
    found = lab.campaign(agents, battery, 8, layout="aaio", **options)
    assert list(found) == list(agents)
    assert sum(result.session.episodes for result in found.values()) == found.campaign.episodes
    assert found["still"].session.successes == 0
    assert "turner" in found.comparison.to_html()
    again = lab.campaign(agents, battery, 8, layout="aaio", **options)
    assert again.campaign.id == found.campaign.id


def test_an_arena_is_what_was_asked_for() -> None:
    for distance, size, angle in ((3, 4, 0), (30, 2, 90), (45, 0.5, 180)):
        arena = ac.Arena.goal(distance, size, angle=angle)
        assert arena.check() == ()
        demands = arena.demands()
        assert demands["rewardDistance [m]"] == pytest.approx(distance, abs=0.01)
        assert demands["rewardSize [m]"] == pytest.approx(size)
        assert ac.Arena(arena.to_yaml()) == arena
    assert np.isclose(ac.Arena.goal(10, angle=90).demands()["rewardBehind"], 0.5)
    assert "<svg" in arena._repr_html_()


def test_what_now_is_a_call_or_a_command_that_finds_the_session() -> None:
    command = "animalcat session resume s-1 --episodes 7 --target-sd 0.08"
    steps = [
        {"text": "Play on:", "command": command, "episodes": 7},
        {"text": "Add arenas:", "command": "animalcat battery report mine", "episodes": None},
        {"text": "The campaign has the budget.", "command": "", "episodes": 7},
    ]
    profile = Profile({}, "--data study")
    assert list(map(profile.next_step, steps)) == [
        "What now? Play on: lab.resume('s-1', agent, episodes=7, target_sd=0.08)",
        "What now? Add arenas: animalcat battery report mine --data study",
        "What now? The campaign has the budget.",
    ]
