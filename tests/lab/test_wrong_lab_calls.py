"""Plausible wrong calls of a study: each is told what was wrong, which argument, and what to do.

A row is a call as somebody would write it, and what its sentence has to contain. Those of layouts,
fits and pictures are in tests/test_wrong_calls.py.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
import pytest

import animalcat as ac
from animalcat.lab.batteries import LabBattery


class Forward:
    def reset(self, info: ac.EpisodeInfo) -> None: ...

    def act(self, observation: ac.Observation) -> int:
        return 3


class Heavy(Forward):
    def __init__(self, weights: str) -> None:
        self.weights = weights


class Mute:
    def reset(self, info: ac.EpisodeInfo) -> None: ...


class Made(NamedTuple):
    """What a call is given: typed loosely, since wrong calls are wrong for the type checker too."""

    lab: Any
    battery: LabBattery
    result: ac.Result
    several: Path


OPTIONS: Final = {"max_episodes": 1, "certify": False, "progress": False, "secret": "wrong"}
ARENA: Final[Any] = ac.Arena
CONNECT: Final[Any] = ac.connect
HERE: Final = Path(__file__)

BAD: Final[dict[str, tuple[Callable[[Made], Any], tuple[str, ...]]]] = {
    "the battery first": (
        lambda m: m.lab.measure(m.battery, Forward()),
        ("agent is a battery", "lab.measure(agent, battery)"),
    ),
    "a built-in agent without its kind": (
        lambda m: m.lab.measure("scout", m.battery),
        ("agent 'scout'", "did you mean 'builtin:scout'"),
    ),
    "a built-in agent misspelt": (
        lambda m: m.lab.measure("builtin:scuot", m.battery),
        ("'builtin:scuot'", "scout"),
    ),
    "a file that is not there": (
        lambda m: m.lab.measure("nowhere.py", m.battery),
        ("there is no file nowhere.py",),
    ),
    "a file of several agents": (
        lambda m: m.lab.measure(m.several, m.battery),
        ("say which class", "several.py:MyAgent", "Left, Right"),
    ),
    "a class that is not in the file": (
        lambda m: m.lab.measure(f"{HERE}:Backward", m.battery),
        ("no such class in the file", "Forward"),
    ),
    "an agent that does not act": (
        lambda m: m.lab.measure(Mute(), m.battery),
        ("has no method act", "reset(info) and act(observation)"),
    ),
    "a class that wants arguments": (
        lambda m: m.lab.measure(Heavy, m.battery),
        ("Heavy cannot be made without arguments", "'weights'", "Heavy(...)"),
    ),
    "a number for an agent": (
        lambda m: m.lab.measure(3, m.battery),
        ("agent 3", "reset(info) and act(observation)"),
    ),
    "a battery misspelt": (
        lambda m: m.lab.measure(Forward(), "navigatoin"),
        ("no battery is called 'navigatoin'", "Did you mean 'navigation'?"),
    ),
    "a battery of batteries": (
        lambda m: m.lab.battery(["navigation"]),
        ("arena 'navigation'", "no such file"),
    ),
    "a battery of numbers": (
        lambda m: m.lab.battery({"near": 3}),
        ("arena 'near'", "int", "Arena.goal(distance=..., size=...)"),
    ),
    "a battery of nothing": (lambda m: m.lab.battery({}), ("one arena at least",)),
    "a battery of a table": (
        lambda m: m.lab.battery(pd.DataFrame({"distance": [1, 2]})),
        ("this is a table", "Arena.goal(distance=d)", "features="),
    ),
    "no battery": (lambda m: m.lab.battery(None), ("NoneType", "lab.list_batteries()")),
    "a folder that is not there": (
        lambda m: m.lab.battery("./nowhere"),
        ("./nowhere: no such file or folder",),
    ),
    "a table of features without names": (
        lambda m: m.lab.battery({"a": ARENA.goal(3)}, features=pd.DataFrame({"x": [1.0]})),
        ("no column 'instance'", "set_index"),
    ),
    "an arena that the battery does not have": (
        lambda m: m.battery.arena("c"),
        ("no arena 'c'", "battery.to_frame().index"),
    ),
    "a layout misspelt": (
        lambda m: m.lab.measure(Forward(), m.battery, layout="aiao"),
        ("no layout is named 'aiao'", "aaio"),
    ),
    "a file of a layout that is not there": (
        lambda m: m.lab.measure(Forward(), m.battery, layout="mine.yaml"),
        ("mine.yaml", "No such file"),
    ),
    "a variant that is not there": (
        lambda m: m.lab.measure(Forward(), m.battery, layout="aaio", layout_variant="metres"),
        ("variant 'metres'", "metres-15"),
    ),
    "a number for a layout": (
        lambda m: m.lab.measure(Forward(), m.battery, layout=3),
        ("layout is 3", "'aaio'"),
    ),
    "an option misspelt": (
        lambda m: m.lab.measure(Forward(), m.battery, max_episode=3),
        ("no option 'max_episode'", "did you mean 'max_episodes'"),
    ),
    "a text for a number": (
        lambda m: m.lab.measure(Forward(), m.battery, max_episodes="20"),
        ("max_episodes is '20'", "whole number"),
    ),
    "a number out of range": (
        lambda m: m.lab.measure(Forward(), m.battery, max_episodes=0),
        ("max_episodes 0", "1 or more"),
    ),
    "a policy misspelt": (
        lambda m: m.lab.measure(Forward(), m.battery, policy="varience"),
        ("'varience'", "variance"),
    ),
    "a policy of the learner": (
        lambda m: m.lab.measure(Forward(), m.battery, policy=ac.values.Policy("random")),
        ("policy is a Policy", "options of their own"),
    ),
    "a preset that is not there": (
        lambda m: m.lab.measure(Forward(), m.battery, preset="fast"),
        ("no preset 'fast'", "quick"),
    ),
    "a rival that is not there": (
        lambda m: m.lab.measure(Forward(), m.battery, against="nobody"),
        ("'nobody'",),
    ),
    "a text for a take": (
        lambda m: m.lab.measure(Forward(), m.battery, take="2"),
        ("take is '2'", "whole number from 1"),
    ),
    "a dict for what the agent sees": (
        lambda m: m.lab.measure(Forward(), m.battery, observation_spec={"rays": True}),
        ("observation_spec is", "ObservationSpec", "camera"),
    ),
    "a pair for a camera": (
        lambda m: m.lab.measure(Forward(), m.battery, camera=(84, 84)),
        ("camera is (84, 84)", "whole number"),
    ),
    "a goal too far": (lambda m: ARENA.goal(100), ("distance is 100", "50 m")),
    "a goal too far for its size": (
        lambda m: ARENA.goal(50, 5),
        ("distance is 50 m", "has room for", "give less"),
    ),
    "a word for a distance": (lambda m: ARENA.goal("far"), ("distance is 'far'", "m")),
    "a goal of another colour": (lambda m: ARENA.goal(10, kind="gold"), ("'gold'", "'green'")),
    "a time with its unit": (
        lambda m: ARENA.goal(10, time_limit="25 s"),
        ("time_limit is '25 s'", "time_limit=250"),
    ),
    "an arena that is not there": (
        lambda m: ARENA("nowhere.yaml"),
        ("arena 'nowhere.yaml'", "no such file"),
    ),
    "YAML that is no arena": (
        lambda m: ARENA("arenas:\n  - x"),
        ("there is no arena in it",),
    ),
    "an episode that was not played": (
        lambda m: m.result.episodes[99],
        ("no episode 99", "0 to 0"),
    ),
    "the name of an episode": (
        lambda m: m.result.explain(any_of("a")),
        ("found by their number", "'a'"),
    ),
    "a session compared": (
        lambda m: m.result.compare(any_of(m.result.session)),
        ("compare takes results", "Session"),
    ),
    "nobody compared": (lambda m: m.result.compare(), ("two agents at least",)),
    "a file of another ending": (
        lambda m: m.result.save("profile.xlsx"),
        ("profile.xlsx", ".json", ".nc"),
    ),
    "a video of another ending": (
        lambda m: m.result.episodes[0].video("film.avi"),
        ("film.avi", ".mp4 or .gif"),
    ),
    "the picture on a word": (
        lambda m: m.result.plot.forest(ax="here"),
        ("ax is a str", "plt.subplots"),
    ),
    "a number for a session": (
        lambda m: m.lab.result(3),
        ("session is 3", "'mine-1a2b3c4d'"),
    ),
    "a session that is not there": (lambda m: m.lab.result("nothing"), ("'nothing'", "Forward")),
    "an agent for its name": (
        lambda m: m.lab.create_session(agent=Forward(), battery="mine"),
        ("agent is a Forward", "evaluate"),
    ),
    "a session evaluated by an agent": (
        lambda m: m.lab.evaluate(m.result.session, Forward()),
        ("session is", "a Forward", "give its id"),
    ),
    "a file for a folder": (lambda m: ac.local(HERE), ("is a file", "a folder is expected")),
    "a host without a port": (lambda m: CONNECT("localhost"), ("'localhost'", "HOST:PORT")),
    "a port without a host": (lambda m: CONNECT(50051), ("50051", "'localhost:50051'")),
    "a server as a web page": (
        lambda m: CONNECT("http://localhost:50051"),
        ("is an URL", "'localhost:50051'"),
    ),
    "a server that is not there": (
        lambda m: CONNECT("localhost:1"),
        ("no animalcat server answers at localhost:1", "animalcat serve"),
    ),
}


def any_of(value: Any) -> Any:
    return value


@pytest.fixture(scope="module")
def lab_things(lab: ac.Lab, tmp_path_factory: pytest.TempPathFactory) -> Made:
    several = tmp_path_factory.mktemp("agents") / "several.py"
    body = "  def reset(self, info): ...\n  def act(self, observation): return 3\n"
    several.write_text(f"class Left:\n{body}class Right:\n{body}")
    battery = lab.battery({"near": ac.Arena.goal(3), "far": ac.Arena.goal(9)}, name="wrong")
    options: Any = OPTIONS
    return Made(lab, battery, lab.measure(Forward(), battery, layout="aaio", **options), several)


@pytest.mark.parametrize("case", BAD)
def test_a_wrong_call_is_told_what_to_do(case: str, lab_things: Made) -> None:
    call, told = BAD[case]
    before = len(lab_things.lab.list_sessions())
    with pytest.raises((ac.AnimalcatError, TypeError, ValueError, IndexError)) as error:
        call(lab_things)
    said = str(error.value)
    assert all(words in said for words in told), said
    frames = traceback.extract_tb(error.value.__traceback__)
    assert not any("asyncio" in frame.filename for frame in frames)
    assert len(frames) < 10
    assert len(lab_things.lab.list_sessions()) == before  # nothing is left of it


def test_the_trace_of_an_agents_error_shows_its_own_line(lab_things: Made) -> None:
    class Fails(Forward):
        def act(self, observation: ac.Observation) -> int:
            return int(np.float64(1.0) / self.missing)  # type: ignore[attr-defined]

    with pytest.raises(AttributeError) as error:
        lab_things.lab.measure(Fails(), lab_things.battery, layout="aaio", **OPTIONS)
    frames = traceback.extract_tb(error.value.__traceback__)
    assert "self.missing" in str(frames[-1].line)
    assert not any("asyncio" in frame.filename for frame in frames)
    assert "judge_failure" in error.value.__notes__[0]
