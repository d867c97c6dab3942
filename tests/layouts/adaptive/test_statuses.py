"""A session cannot say of its end what the statuses of its capabilities deny, nor the other way."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, cast, get_args

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.special import expit, ndtr

from animalcat import values
from animalcat.layouts.adaptive.bank import Bank
from animalcat.layouts.adaptive.learner import Learner
from animalcat.layouts.adaptive.plan import StoppingRule
from animalcat.layouts.adaptive.statuses import (
    BOUNDED,
    CONFIRMED,
    CONTRADICTED,
    HORIZON,
    PRECISE,
    Asked,
    End,
    Facts,
    Known,
    OtherEnd,
    SessionJudgement,
    Status,
    judge,
    knowledge_of,
)
from animalcat.layouts.adaptive.stopping import StopVerdict
from animalcat.layouts.inference import summary
from animalcat.layouts.inference.live import LivePosterior
from animalcat.layouts.inference.summary import NodeSummary
from animalcat.layouts.library import load_layout
from animalcat.layouts.model.priors import HalfNormal, Normal, Prior, ScaledBeta
from animalcat.layouts.reporting.profile import NOT_READ
from animalcat.service.measuring.profile_words import STATUS_MEANS

ROOT: Final = Path(__file__).parents[3]
AAIO: Final = load_layout("aaio")
NAMES: Final = [AAIO.latents[k].name for k in AAIO.capabilities]
PRIORS: Final[list[Prior]] = [
    ScaledBeta(0.0, 60.0),
    ScaledBeta(0.0, 1.0, 1.0, 10.0),
    Normal(0.0, 1.0),
    HalfNormal(3.0),
]
DRAWN: Final = settings(
    max_examples=100,
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
        max_episodes=draw(st.integers(1, 9) | st.just(60)),
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
    share = st.sampled_from([0.0, 0.1, 0.9])
    for latent in AAIO.latents:
        sd = draw(st.sampled_from([0.01, 0.05, 0.1, 0.2, 0.4])) * min(latent.prior.span, 10.0)
        half = sd * draw(st.sampled_from([0.5, 1.6, 3.0]))
        interval, ends = (1 - half, 1 + half), (draw(share), draw(share))
        made.append(NodeSummary(latent.name, latent.kind, latent.unit, 1.0, sd, interval, 1, ends))
    return made


def flags() -> st.SearchStrategy[dict[str, bool]]:
    return st.fixed_dictionaries({name: st.booleans() for name in NAMES})


@st.composite
def batteries(draw: st.DrawFn) -> dict[str, Asked]:
    """What is asked of each capability, with its ends or without."""
    easiest, hardest = st.sampled_from([-np.inf, 0.5, 1.0]), st.sampled_from([1.0, 1.5, np.inf])
    return {name: Asked(draw(easiest), draw(hardest)) for name in NAMES if draw(st.booleans())}


@st.composite
def facts(draw: st.DrawFn) -> Facts:
    """Facts of a session; two posteriors of the same data may differ as much as they like here."""
    rule, asked = draw(rules()), draw(batteries())
    live, last = draw(posteriors()), draw(st.none() | posteriors())
    other = draw(
        st.none()
        | st.builds(
            OtherEnd, st.sampled_from(["ended", "cancelled", "budget", "used up"]), st.just("so")
        )
    )
    return Facts(
        rule,
        played=draw(st.integers(0, 9) | st.just(HORIZON)),
        seconds=draw(st.sampled_from([0.0, 30.0])),
        left=draw(st.booleans()),
        live=knowledge_of(AAIO, rule, live, asked),
        futile=draw(flags()) if rule.futility else dict.fromkeys(NAMES, False),
        noisy=draw(flags()),
        fit=None if last is None else knowledge_of(AAIO, rule, last, asked),
        asked=asked,
        contradicted=draw(st.booleans()),
        doubted=draw(st.booleans()),
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
    unproven = told.doubted and readable and "open" not in decides.values()
    claims = {
        "every capability has a status": status.keys() == decides.keys(),
        "a reason has its word": (end is None) == (said.reason == "")
        and (end is None or told.other is not None or end in said.reason),
        "precise and bounded are what the decisive posterior knows": all(
            (status[name] == word)
            == (decides[name] == known and readable and not (unproven and end))
            for name in status
            for word, known in ((PRECISE, "precise"), (BOUNDED, "bounded"))
        ),
        "an end by precision has what is known alone": end != "precise"
        or set(status.values()) <= {PRECISE, BOUNDED},
        "bounds end nothing by themselves": end not in CONFIRMED
        or set(status.values()) != {BOUNDED}
        or (end == "nothing left to learn" and told.played >= HORIZON),
        "a session that is precise says what is bounded": end != "precise"
        or ("bounded" in said.reason) == (BOUNDED in status.values()),
        "an end for nothing left has none that could be known": end != "nothing left to learn"
        or all(status[name] in (PRECISE, BOUNDED) or told.futile[name] for name in status),
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
        "what is doubted settles nothing": not unproven or end not in CONFIRMED,
        "what is all known has ended for it": end is not None
        or told.rule.combine == "all"
        or not told.settles
        or unproven
        or not set(status.values()) <= {PRECISE, BOUNDED}
        or (set(status.values()) == {BOUNDED} and told.played < HORIZON),
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
    doubted: dict[str, Known] = dict.fromkeys(told.live, "open")
    last = judge(replace(told, fit=doubted, futile=dict.fromkeys(told.live, False)))
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


SMALL: Final = load_layout("one-capability", "success")
DIFFICULTIES: Final = np.tile(np.linspace(0.5, 9.0, 18), 8)


def after(passes: Callable[[float], bool], rule: StoppingRule) -> tuple[Learner, StopVerdict]:
    """A test of one capability, of an agent that passes what the function says, until its end."""
    bank = Bank(SMALL, DIFFICULTIES.reshape(-1, 1), ["p"] * len(DIFFICULTIES))
    learner = Learner(bank, None, rule, seed=2)
    while not (stop := learner.verdict()).stop:
        choice = learner.ask()
        assert choice is not None
        learner.tell(choice.instance, float(passes(DIFFICULTIES[choice.index])))
    return learner, stop


@pytest.mark.parametrize("target", [0.05, 0.1, 0.15, 0.3])
@pytest.mark.parametrize(("passes", "side"), [(True, "at least"), (False, "at most")])
def test_evidence_from_one_side_is_never_precise(target: float, passes: bool, side: str) -> None:
    """However many are passed, or failed, and whatever the target."""
    rule = StoppingRule(120, target_sd=target)
    learner, stop = after(lambda _: passes, rule)
    assert stop.end != "precise"
    assert PRECISE not in stop.status.values()
    node = learner.summary()[0]
    assert (node.side, node.two_sided) == (side, False)
    if stop.status["ability"] == BOUNDED:
        asked = [DIFFICULTIES[int(row)] for row in learner.played]
        same = 10.0 * target
        assert max(asked) >= 9.0 - same if passes else min(asked) <= 0.5 + same
        assert stop.end == "nothing left to learn"


def test_evidence_from_both_sides_is_precise_soon() -> None:
    learner, stop = after(lambda difficulty: difficulty < 5.0, StoppingRule(120, target_sd=0.1))
    assert (stop.end, stop.status) == ("precise", {"ability": PRECISE})
    assert learner.summary()[0].two_sided
    assert learner.n < 40


def test_a_prior_alone_is_precise_of_nothing() -> None:
    """A prior may be narrower than a target, as that of pushing blocks is."""
    testbed = load_layout("testbed")
    nodes = LivePosterior(testbed, 1).summary()
    push = next(node for node in testbed.latents if node.name == "pushAbility")
    wide = StoppingRule(target_sd=0.3)
    assert push.prior.sd < 0.3 * push.prior.span
    assert set(knowledge_of(testbed, wide, nodes, {}).values()) == {"open"}


@pytest.mark.parametrize("prior", PRIORS, ids=str)
def test_the_evidence_at_the_ends_is_that_of_likelihoods(prior: Prior) -> None:
    """It does not depend on the prior: weights of draws of any prior are likelihoods."""
    z = np.random.default_rng(3).standard_normal(4000)
    values, shares = prior.from_standard(z), ndtr(z)

    def at_ends(likelihood: npt.NDArray[np.float64]) -> tuple[float, float]:
        _, (order, ranked) = summary._rank(values, prior)
        half = np.array([summary._MIDDLE])
        (found,) = summary._intervals(
            ranked[np.newaxis], order[np.newaxis], likelihood / likelihood.sum(), half
        )
        return summary._at_ends(*found.tolist())

    assert at_ends(np.ones(4000)) == pytest.approx((1.0, 1.0), abs=0.25)
    passed_all = at_ends(expit(30.0 * (shares - 0.7)))
    assert passed_all[0] < 0.1
    assert passed_all[1] == pytest.approx(1.0, abs=0.3)
    failed_all = at_ends(expit(30.0 * (0.3 - shares)))
    assert failed_all[1] < 0.1
    assert failed_all[0] == pytest.approx(1.0, abs=0.3)
    assert max(at_ends(np.exp(-0.5 * ((shares - 0.5) / 0.1) ** 2))) < 0.1


def _enums(schema: Any) -> list[list[Any]]:
    """All enums of a schema, wherever they are."""
    if not isinstance(schema, dict):
        return []
    parts: dict[str, Any] = dict(cast("dict[str, Any]", schema))
    own: Any = parts.get("enum")
    found: list[list[Any]] = [own] if isinstance(own, list) else []
    return found + [one for part in parts.values() for one in _enums(part)]
