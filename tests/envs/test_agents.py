"""The reference agents: what they do, that they repeat, that they pass; and their loader."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from animalcat.arena_configs.loader import load_config
from animalcat.arena_configs.model import Arena
from animalcat.arena_configs.outcome import success
from animalcat.envs.agents.base import Agent, EpisodeInfo
from animalcat.envs.agents.load import BUILTIN, AgentLoadError, check_name, load_agent
from animalcat.envs.sim.environment import SimEnvironment
from animalcat.envs.types import ACTIONS, EndedBy, ObservationSpec, Phase
from tests.small import start, thing

SPEC = ObservationSpec()


def play(
    agent: Agent, arena: Arena, spec: ObservationSpec = SPEC, seed: int = 0
) -> tuple[float, EndedBy | None, list[int]]:
    """Return, why it ended (None after 2,000 decisions), and the actions."""
    environment = SimEnvironment(spec)
    step = environment.load(arena, seed)
    agent.reset(EpisodeInfo(0, seed, spec, 0))
    total, actions = 0.0, list[int]()
    while step.phase is not Phase.LAST and len(actions) < 2000:
        action = agent.act(step.observation)
        assert isinstance(action, int)
        actions.append(action)
        step = environment.step(action)
        total += step.reward
    return total, step.ended_by, actions


def open_arena(*items: object, yaw: float = 0.0) -> Arena:
    return Arena(time_limit=250, items=(start(20, 10, yaw=yaw), *items))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", sorted(BUILTIN.keys() - {"planner"}))
def test_the_same_seed_gives_the_same_actions(name: str) -> None:
    arena = open_arena(thing("GoodGoal", 5, 0, 35), thing("Wall", 15, 0, 25, size=(10, 2, 1)))
    runs = [play(load_agent(f"builtin:{name}"), arena)[2] for _ in range(2)]
    assert runs[0] == runs[1]
    again = load_agent(f"builtin:{name}")
    assert [play(again, arena)[2] for _ in range(2)] == runs


def test_random_takes_every_action_and_follows_the_seed() -> None:
    arena = open_arena()
    agent = load_agent("builtin:random")
    one, other = play(agent, arena, seed=1)[2], play(agent, arena, seed=2)[2]
    assert set(one) == set(range(ACTIONS))
    assert one != other


@pytest.mark.parametrize("yaw", [0, 60, 150, 180, 290])
def test_braitenberg_finds_a_goal_wherever_it_starts_to_look(yaw: float) -> None:
    arena = open_arena(thing("GoodGoal", 32, 0, 30), yaw=yaw)
    total, ended_by, _ = play(load_agent("builtin:braitenberg"), arena)
    assert ended_by is EndedBy.GOAL
    assert total > 0


@pytest.mark.slow
@pytest.mark.data
def test_braitenberg_passes_far_more_of_the_easy_competition_than_random(
    data_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = sorted((data_dir / "animal-ai-competition").glob("01-*.yaml"))
    rates: dict[str, float] = {}
    for name in ("random", "braitenberg"):
        agent, passed = load_agent(f"builtin:{name}"), list[bool]()
        for file in files:
            arenas = load_config(file).config.arenas
            arena = arenas[min(arenas)]
            passed.append(success(play(agent, arena)[0], arena.pass_mark))
        rates[name] = float(np.mean(passed))
    with capsys.disabled():
        print(f"\npass rates of {len(files)} arenas of category 1:", rates)
    assert rates["braitenberg"] > 0.65
    assert rates["random"] < 0.3


# --- the loader --------------------------------------------------------------------------------

GOOD = """\
import dataclasses
import neighbour

@dataclasses.dataclass
class Mine:
    turns: int = neighbour.TURNS
    def reset(self, info): self.left = info.episode
    def act(self, observation): return self.turns, 0

class Half:
    def reset(self, info): ...

class Endless:
    def act(self, observation): ...

class Picky:
    def __init__(self, weights): ...
    def reset(self, info): ...
    def act(self, observation): ...

class Blind:
    def reset(self, info): ...
    def act(self): return 3

class Simple:
    reset = staticmethod(lambda info: None)
    act = staticmethod(lambda observation: 3)

number = 3
"""


@pytest.fixture
def agent_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("sys.path", list(__import__("sys").path))
    (tmp_path / "neighbour.py").write_text("TURNS = 2\n")
    file = tmp_path / "mine.py"
    file.write_text(GOOD)
    return file


def test_a_class_of_a_file_is_made_and_sees_its_neighbours(agent_file: Path) -> None:
    agent = load_agent(f"{agent_file}:Mine")
    agent.reset(EpisodeInfo(4, 0, SPEC))
    observation = SimEnvironment(SPEC).load(open_arena(), 0).observation
    assert agent.act(observation) == (2, 0)
    assert load_agent(f"{agent_file}:Simple").act(observation) == 3


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("builtin:clever", "there are: braitenberg, forward, planner, random, scout"),
        (
            "braitenberg",
            "expected builtin:NAME, plugin:NAME, llm:MODEL or path/to/file.py:ClassName",
        ),
        ("builtin:", "expected builtin:NAME"),
        ("{folder}/mine.txt:Mine", "expected builtin:NAME"),
        ("{folder}/nowhere.py:Mine", "there is no file"),
        pytest.param(
            "{folder}/mine.py:Yours",
            "no such class in the file; there are: Blind, Endless, Half, Mine",
            id="A29 a misspelt class",
        ),
        ("{folder}/mine.py:number", "no such class"),
        ("{folder}/mine.py:Half", "lacks act"),
        pytest.param(
            "{folder}/mine.py:Endless",
            "the class lacks reset; an agent has reset",
            id="A28 a class without reset",
        ),
        pytest.param(
            "{folder}/mine.py:Blind",
            r"act cannot be called with one .* act\(self, observation\)",
            id="A27 act takes no argument",
        ),
        ("{folder}/mine.py:Picky", r"Picky\(\) failed: TypeError"),
        ("{folder}/broken.py:Mine", "importing failed: ModuleNotFoundError.*not_there"),
    ],
)
def test_what_is_wrong_with_a_reference_is_said(
    agent_file: Path, reference: str, message: str
) -> None:
    (agent_file.parent / "broken.py").write_text("import not_there\n")
    with pytest.raises(AgentLoadError, match=message):
        load_agent(reference.format(folder=agent_file.parent))


def test_a_class_is_looked_for_before_anything_runs(tmp_path: Path) -> None:
    """And what a file makes otherwise than by a statement is believed."""
    file = tmp_path / "agent.py"
    ran = tmp_path / "ran"
    run = f"open({str(ran)!r}, 'w').close()\n"
    text = (
        run
        + "if True:\n    class Agent: ...\n"
        + "other = Agent\nfrom json import JSONEncoder as Third\n"
    )
    file.write_text(text)
    for name in ("Agent", "other", "Third"):
        check_name(f"{file}:{name}+lapses=0.1")
    with pytest.raises(AgentLoadError, match="no such class in the file; there are: Agent"):
        check_name(f"{file}:Agnet")
    for more in ("from x import *", "globals()['Agnet'] = 1", "def __getattr__(name): ..."):
        file.write_text(f"{text}{more}\n")
        check_name(f"{file}:Agnet")
    file.write_text("class Agent\n")
    with pytest.raises(AgentLoadError, match="importing failed: SyntaxError"):
        check_name(f"{file}:Agent")
    assert not ran.exists()
