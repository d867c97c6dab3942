"""A session cannot say of its end what the statuses of its capabilities deny, nor the other way."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, cast, get_args

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from animalcat import values
from animalcat.layouts.adaptive.bank import Bank
from animalcat.layouts.adaptive.learner import Learner
from animalcat.layouts.adaptive.plan import StoppingRule
from animalcat.layouts.adaptive.statuses import (
    CONFIRMED,
    CONTRADICTED,
    PRECISE,
    End,
    Facts,
    OtherEnd,
    SessionJudgement,
    Status,
    judge,
    reached,
)
from animalcat.layouts.inference.fit import FitRequest, fit
from animalcat.layouts.inference.summary import NodeSummary
from animalcat.layouts.library import load_layout
from animalcat.layouts.reporting.profile import NOT_READ
from animalcat.service.measuring.profile_words import STATUS_MEANS

from .conftest import Draw, Play

ROOT: Final = Path(__file__).parents[3]
AAIO: Final = load_layout("aaio")
NAMES: Final = [AAIO.latents[k].name for k in AAIO.capabilities]
DRAWN: Final = settings(
    max_examples=300,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],  # of a busy machine
)


@st.composite
def rules(draw: st.DrawFn) -> StoppingRule:
    share = st.sampled_from([0.0, 0.05, 0.1, 0.3])
    combine = draw(st.sampled_from(["any", "all"]))
    target = draw(share)
    return StoppingRule(
        max_episodes=draw(st.integers(1, 9)),
        target_sd=target,
        targets={NAMES[0]: draw(share)} if draw(st.booleans()) else {},
        target_width=draw(st.sampled_from([0.0, 0.2, 0.5])) if target else 0.0,
        futility=draw(share),
        max_seconds=draw(st.sampled_from([0.0, 30.0])),
        stop_at_alarm=draw(st.booleans()),
        combine="all" if combine == "all" else "any",
    )


@st.composite
def posteriors(draw: st.DrawFn) -> list[NodeSummary]:
    """Summaries of nodes, each somewhere between known exactly and not at all."""
    made: list[NodeSummary] = []
    for latent in AAIO.latents:
        sd = draw(st.sampled_from([0.01, 0.05, 0.1, 0.2, 0.4])) * min(latent.prior.span, 10.0)
        half = sd * draw(st.sampled_from([0.5, 1.6, 3.0]))
        made.append(
            NodeSummary(latent.name, latent.kind, latent.unit, 1.0, sd, (1 - half, 1 + half), 1)
        )
    return made


def flags() -> st.SearchStrategy[dict[str, bool]]:
    return st.fixed_dictionaries({name: st.booleans() for name in NAMES})


@st.composite
def facts(draw: st.DrawFn) -> Facts:
    """Facts of a session; two posteriors of the same data may differ as much as they like here."""
    rule = draw(rules())
    live, last = draw(posteriors()), draw(st.none() | posteriors())
    other = draw(
        st.none()
        | st.builds(
            OtherEnd, st.sampled_from(["ended", "cancelled", "budget", "used up"]), st.just("so")
        )
    )
    return Facts(
        rule,
        played=draw(st.integers(0, 9)),
        seconds=draw(st.sampled_from([0.0, 30.0])),
        left=draw(st.booleans()),
        live=reached(AAIO, rule, live),
        futile=draw(flags()) if rule.futility else dict.fromkeys(NAMES, False),
        noisy=draw(flags()),
        fit=None if last is None else reached(AAIO, rule, last),
        contradicted=draw(st.booleans()),
        readable=draw(st.booleans()),
        settles=draw(st.booleans()),
        other=other,
    )


def contradictions(told: Facts, said: SessionJudgement) -> list[str]:
    """Where what a session says of its end, and of its capabilities, does not go together."""
    decides = told.live if told.fit is None else told.fit
    status, end = said.status, said.end
    limits = {"limited by the battery", "limited by noise"}
    readable = told.readable and not told.contradicted
    claims = {
        "every capability has a status": status.keys() == decides.keys(),
        "a reason has its word": (end is None) == (said.reason == "")
        and (end is None or told.other is not None or end in said.reason),
        "precise is what the decisive posterior knows": all(
            (status[name] == PRECISE) == (decides[name] and readable) for name in status
        ),
        "an end by precision has precise capabilities alone": end != "precise"
        or set(status.values()) <= {PRECISE},
        "an end for nothing left has none that could be known": end != "nothing left to learn"
        or all(status[name] == PRECISE or told.futile[name] for name in status),
        "limits are of sessions with nothing left": not limits & set(status.values())
        or end == "nothing left to learn",
        "what goes on is measuring": ("measuring" in status.values()) <= (end is None),
        "what ended for its budget says so": all(
            (word in status.values()) <= (end == word)
            for word in ("budget", "used up", "ended", "cancelled")
        ),
        "an alarm is over all": (CONTRADICTED in status.values()) == told.contradicted
        and (not told.contradicted or set(status.values()) == {CONTRADICTED}),
        "what may not be read is not": (NOT_READ in status.values())
        == (not told.readable and not told.contradicted),
        "what means nothing settles nothing": readable or end not in CONFIRMED,
        "what is all known has ended for it": end is not None
        or told.rule.combine == "all"
        or not told.settles
        or set(status.values()) != {PRECISE},
    }
    return [claim for claim, holds in claims.items() if not holds]


@DRAWN
@given(facts())
def test_nothing_that_is_said_contradicts_anything_else(told: Facts) -> None:
    assert contradictions(told, judge(told)) == []


@DRAWN
@given(facts())
def test_a_fit_that_says_the_same_changes_nothing(told: Facts) -> None:
    live = judge(replace(told, fit=None))
    assert judge(replace(told, fit=told.live)) == live


@DRAWN
@given(facts())
def test_play_goes_on_where_the_fit_does_not_confirm_what_the_live_posterior_found(
    told: Facts,
) -> None:
    """Until there is another reason to stop, which no posterior has a say in."""
    live = judge(replace(told, fit=None))
    doubted = dict.fromkeys(told.live, False)
    last = judge(replace(told, fit=doubted, futile=doubted))
    if live.end in CONFIRMED:
        assert last.end in (None, "budget", "used up")
        if last.end is None:
            assert told.left
            assert set(last.status.values()) == {"measuring"}


def test_there_is_one_list_of_words() -> None:
    """On the wire, in Python, in tables and pages, in JSON and in the docs."""
    words = set(get_args(Status))
    assert set(STATUS_MEANS) == set(get_args(values.MeasuringStatus)) == words
    schema = json.loads((ROOT / "animalcat" / "schemas" / "profile.schema.json").read_text("utf-8"))
    assert words | {None} in [set(one) for one in _enums(schema)]
    assert {*get_args(End), None} in [set(one) for one in _enums(schema)]
    page = (ROOT / "docs" / "statuses.md").read_text("utf-8")
    ends, statuses = (part.split("\n## ")[0] for part in page.split("\n## ")[1:3])
    assert set(re.findall(r"^\| `(.*?)` \|", ends, re.M)) == set(get_args(End))
    assert set(re.findall(r"^\| `(.*?)` \|", statuses, re.M)) == words


def _enums(schema: Any) -> list[list[Any]]:
    """All enums of a schema, wherever they are."""
    if not isinstance(schema, dict):
        return []
    parts: dict[str, Any] = dict(cast("dict[str, Any]", schema))
    own: Any = parts.get("enum")
    found: list[list[Any]] = [own] if isinstance(own, list) else []
    return found + [one for part in parts.values() for one in _enums(part)]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_real_fits_and_live_posteriors_never_contradict_each_other(
    seed: int, draw_instances: Draw, play: Play
) -> None:
    """Agents of the prior play until both posteriors have enough, as sessions do."""
    draws = np.random.default_rng(seed)
    features = draw_instances(200, seed)
    theta = [
        draws.uniform(1.0, 4.5),
        draws.uniform(0.5, 1.7),
        draws.normal(),
        draws.uniform(0, 0.2),
    ]
    outcomes = play(features, theta, seed)
    rule = StoppingRule(max_episodes=60, target_sd=float(draws.choice([0.09, 0.12, 0.15])))
    learner = Learner(Bank(AAIO, features, ["p"] * 200), None, rule, seed=seed)
    refuted: list[int] = []
    while True:
        stop = learner.verdict()
        assert stop.facts is not None
        assert stop.facts.live == reached(AAIO, rule, learner.summary())
        assert contradictions(stop.facts, judge(stop.facts)) == []
        if stop.stop:
            data = learner.data()
            fitted = fit(FitRequest(AAIO, data.features, data.outcomes, seed))
            last = stop.judged(fit=reached(AAIO, rule, fitted.nodes))
            assert last.facts is not None
            assert contradictions(last.facts, judge(last.facts)) == []
            if last.stop:
                break
            refuted.append(learner.n)
        choice = learner.ask()
        assert choice is not None
        learner.tell(choice.instance, float(outcomes[choice.index]))
    assert learner.n <= 60
    assert all(n < learner.n for n in refuted)
    spans = {latent.name: latent.prior.span for latent in AAIO.latents}
    for node in fitted.nodes:
        if node.name in last.status:
            assert (last.status[node.name] == PRECISE) == (
                node.sd <= rule.target_sd * spans[node.name]
            )
