"""`python -m benchmarks trust` and its pages: small, but the real thing."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib import resources

import jsonschema
import numpy as np
import pytest

from animalcat.bench.sessions import Task, Trajectory, World, simulate, use
from animalcat.layouts.adaptive.bank import Bank
from animalcat.layouts.adaptive.plan import Policy, StoppingRule
from animalcat.layouts.adaptive.policy import DOUBT, Chooser
from animalcat.layouts.library import load_layout
from animalcat.layouts.simulation.synthetic import op_battery
from benchmarks import trust, trust_pages
from benchmarks.trust_agents import ENDS, KNOWN, NAMES, UNSEEN, players_of


@pytest.fixture(scope="module")
def world() -> World:
    battery = op_battery(0)
    made = World(load_layout("object-permanence"), battery.rows(np.arange(0, len(battery), 8)))
    use({"op": made})
    return made


def test_every_kind_of_misfit_plays_and_has_names(world: World) -> None:
    kinds = {**KNOWN, **UNSEEN}
    assert kinds.keys() == NAMES.keys()
    agents = [*players_of(world, kinds), *players_of(world, ENDS)]
    assert [agent.name for agent in agents] == [*kinds, *ENDS]
    for agent in agents:
        p = agent.probability(20, failed=True)
        assert p.shape == (len(world.instances),)
        assert ((p >= 0.0) & (p <= 1.0)).all()


def test_a_session_that_is_judged_makes_all_rows(world: World) -> None:
    (stops,) = (p for p in players_of(world, KNOWN) if p.name == "stops")
    task = Task("op", stops, Policy(), 3, trust.AT[:1], held_out=True, judged=True)
    made = simulate(task)
    assert made.points[0].stands
    assert "time" in made.misfits
    assert made.standing
    whole = replace(made, points=made.points * len(trust.AT))
    rounds: list[list[Trajectory]] = [[whole] * (2 * len(KNOWN))]
    found = trust.misfit_rows("known", rounds)
    assert found[0]["value"] == 0.0  # ours less ours
    named = {row["name"]: row for row in found}
    assert named["stops: stands at 200"]["value"] == 1.0
    assert named["stops: named among the first three"]["value"] == 1.0
    false = trust.false_rows([[whole] * 4])
    assert {row["met"] for row in false if "stands" in row["name"]} == {"no"}


def test_ends_are_counted_by_what_they_claim(world: World) -> None:
    ends = Trajectory("green", "variance", 1, (), None, 50, end="precise", settled=True)
    claims = replace(ends, settled_at=40)
    warned = replace(claims, end="budget", warned=True)
    kinds = [replace(claims, player=name) for name in ENDS]
    rounds = [[*kinds, *[claims] * 15, warned], [*[warned] * 8, *[claims] * 16]]
    found = {row["name"]: row["value"] for row in trust.end_rows(rounds)}
    assert found["misfit: all is called precise without a warning"] == 0.5
    assert found["misfit: the same without the check"] == 1.0
    assert found["false warning, able agents"] == 0.0
    assert found["false warning, agents of the prior"] == pytest.approx(1 / 16)
    assert found["still precise, agents of the prior"] == pytest.approx(15 / 16)
    assert found["times as many episodes, able agents"] == pytest.approx(1.25)


def test_a_session_says_how_it_ended(world: World) -> None:
    rule = StoppingRule(max_episodes=6, target_sd=0.45)
    (player, *_) = players_of(world, ENDS)
    made = simulate(Task("op", player, Policy(), 3, (6,), rule=rule))
    assert made.end in ("precise", "budget")
    assert made.episodes <= 6
    assert made.settled_at is None or made.settled_at <= made.episodes


def test_no_session_begins_when_the_time_is_up() -> None:
    (row,) = trust.section("cost", quick=True, most=-1.0)
    assert row == {"name": "cost: no round of sessions was done in 0 s"}


def test_random_draws_are_rarer_and_choices_sharper_without_doubt(world: World) -> None:
    from animalcat.layouts.adaptive.bank import History
    from animalcat.layouts.inference.live import LivePosterior

    part = world.instances
    bank = Bank(world.layout, part.features(world.layout), part.paradigms)
    chooser, posterior = Chooser(bank, Policy()), LivePosterior(world.layout, 1, particles=500)
    reasons = {
        doubt: [
            choice.reason
            for episode in range(60)
            if (choice := chooser.choose(posterior, History(), episode, doubt=doubt))
        ]
        for doubt in (1.0, DOUBT, 0.0)
    }
    shares = [reasons[doubt].count("random") / 60 for doubt in (1.0, DOUBT, 0.0)]
    assert shares[0] > shares[1] > shares[2] == 0.0


@pytest.mark.slow
def test_a_page_of_one_sided_evidence() -> None:
    content, html = trust_pages.made(trust_pages.PAGES["one-sided"], live=True)
    text = resources.files("animalcat").joinpath("schemas/profile.schema.json").read_text("utf-8")
    jsonschema.validate(json.loads(json.dumps(content)), json.loads(text))
    assert html.count("no limit found") >= 7  # beside each of its capabilities
    assert "no failure was seen" in html
    assert content["predicts"]["standing"] == "cannot be told"
