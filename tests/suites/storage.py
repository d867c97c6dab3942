"""Tests the laws of `SqlStore`; each database inherits the class and gives the fixture."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from animalcat.arena_configs.instance import Instance
from animalcat.envs.types import CameraSpec, EndedBy, ObservationSpec
from animalcat.layouts.adaptive.plan import Policy, StoppingRule
from animalcat.service.model import BatteryRecord, LayoutRecord, StoredCampaign, StoredCertificate
from animalcat.service.storage.artefacts import Artefacts, recording_key
from animalcat.service.storage.chain import make_link
from animalcat.service.storage.errors import AlreadyFinishedError, InUseError
from animalcat.service.storage.listing import (
    BadPageError,
    CampaignFilter,
    EpisodeFilter,
    Page,
    SessionFilter,
)
from animalcat.service.storage.sql import SqlStore
from animalcat.values import (
    CampaignSpec,
    CapabilityStatus,
    Decision,
    Episode,
    MadeAs,
    MadeInstance,
    Outcome,
    Ruling,
    SessionSpec,
    SessionState,
    Spent,
)

NOW = datetime(2026, 11, 20, 12, 30, 15, 250, tzinfo=UTC)
SPEC = SessionSpec(
    agent="builtin:braitenberg",
    battery="navigation",
    battery_digest="ab" * 32,
    layout="aaio",
    layout_variant="",
    policy=Policy(random_share=0.25),
    stop=StoppingRule(
        max_episodes=40, target_sd=0.1, targets={"visualAbility": 0.2}, futility=0.02
    ),
    seed=2**63 + 1,
    observation_spec=ObservationSpec(camera=CameraSpec(32, grayscale=True), rays=None),
)
DECISION = Decision("01-01-01", 0.125, 0.3, 1 / 3, {"navigationAbility": -0.7}, "informative")
STATUS = (
    CapabilityStatus("navigationAbility", 2.5, 0.25, "10 m", "measuring", best_sd=0.2, limit="no"),
)
MISFIT = "since episode 20: less success than predicted where paradigm is cup"


def attempt(session: str, number: int, k: int = 0) -> Episode:
    """Return an open attempt."""
    return Episode(session, number, k, DECISION, agent_instance="p1")


def finish_attempt(episode: Episode, outcome: Outcome = Outcome.SUCCESS) -> Episode:
    """Return the attempt, finished."""
    return replace(
        episode,
        outcome=outcome,
        episode_return=0.1 + 0.2,
        steps=17,
        ended_by=EndedBy.GOAL,
        outcomes={"success": 1.0, "time_left": 1 / 3},
        versions={"numpy": "2.3.1", "unity": "Animal-AI 4.1.0"},
    )


WRITES_TO_X: list[Callable[[SqlStore], Any]] = [
    lambda s: s.set_state("x", SessionState.RUNNING),
    lambda s: s.pause("x", True),
    lambda s: s.open_episode(attempt("x", 0)),
    lambda s: s.finish_episode(finish_attempt(attempt("x", 0))),
    lambda s: s.put_certificate("x", StoredCertificate(16, True, {})),
    lambda s: s.finish_session("x", SessionState.FINISHED, "", {}, STATUS),
]


class StorageSuite:
    """What the store does on every database."""

    @pytest.fixture
    def store(self) -> SqlStore:
        """An empty store."""
        raise NotImplementedError("give the store under test")

    @pytest.fixture
    def session(self, store: SqlStore) -> str:
        """A session in the store."""
        return store.create_session("s", SPEC, NOW).id

    def test_a_session_comes_back_as_it_went_in(self, store: SqlStore, session: str) -> None:
        """Every value of a specification survives, including 64-bit seeds and the time."""
        found = store.session(session)
        assert found is not None
        assert (found.spec, found.created, found.state) == (SPEC, NOW, SessionState.WAITING)
        assert (found.episodes, found.successes, found.capabilities) == (0, 0, ())

    def test_what_is_stored_for_good_is_chained(
        self, store: SqlStore, session: str, tmp_path: Path
    ) -> None:
        """A link says what it is about, and holds the digest of what is stored now."""
        files = Artefacts(tmp_path)
        recording = tmp_path / recording_key(session, 0, 0)
        recording.parent.mkdir(parents=True)
        recording.write_bytes(b"steps")
        store.open_episode(attempt(session, 0))
        assert [link.what for link in store.chain(session).links] == ["session", "standing"]
        store.finish_episode(finish_attempt(attempt(session, 0)), files)
        store.invalidate_episode(session, 0, 0, "a bad day")
        store.put_certificate(session, StoredCertificate(16, True, {"a": 0.1}), "cd" * 32)
        nodes: dict[str, Any] = {"nodes": {}}
        state, fit = SessionState.FINISHED, "ef" * 32
        store.finish_session(session, state, "enough", nodes, STATUS, fit=fit)
        links, now, damage = store.chain(session)
        about = ["session", "standing", "0-0", "0-0", "certificate 16", "profile", "standing"]
        assert [link.what for link in links] == about
        assert now == {link.what: link.content for link in links}
        of = ["", "", *[sha256(b"steps").hexdigest()] * 2, "cd" * 32, "ef" * 32, ""]
        assert [link.recording for link in links] == of
        assert (damage, store.damage()) == ((), ())
        before = ""
        for link in links:
            assert link == make_link(before, link.what, link.content, link.recording)
            before = link.digest

    def test_sessions_are_counted_by_state(self, store: SqlStore, session: str) -> None:
        """A state that no session is in is left out."""
        store.create_session("other", SPEC, NOW)
        store.set_state(session, SessionState.RUNNING)
        assert store.count_sessions() == {"WAITING": 1, "RUNNING": 1}

    def test_a_campaign_comes_back_as_it_went_in(self, store: SqlStore, session: str) -> None:
        """A campaign is created once."""
        other = store.create_session("s", SPEC, NOW).id
        spec = CampaignSpec(("a", "b"), SPEC, 200, 5)
        campaign = StoredCampaign("c", spec, (session, other), NOW)
        assert store.create_campaign(campaign) == campaign
        assert store.create_campaign(replace(campaign, sessions=())) == campaign
        assert store.campaign("c") == campaign
        assert store.campaign_of(session) == store.campaign_of(other) == "c"
        assert store.campaign_of("x") == ""
        store.create_campaign(replace(campaign, id="d"))
        assert [found.id for found in store.campaigns()] == ["d", "c"]

    def test_a_campaign_needs_its_sessions(self, store: SqlStore, session: str) -> None:
        """A campaign that names an unknown session is not stored."""
        spec = CampaignSpec(("a", "b"), SPEC, 200)
        with pytest.raises(KeyError):
            store.create_campaign(StoredCampaign("c", spec, (session, "x"), NOW))
        assert store.campaigns() == []
        assert store.campaign("c") is None

    def test_ids_that_are_taken_get_a_number(self, store: SqlStore) -> None:
        """Sessions that want the same id get different ones; the list shows the newest first."""
        ids = [store.create_session("s", SPEC, NOW).id for _ in range(3)]
        assert ids == ["s", "s-2", "s-3"]
        assert [s.id for s in store.sessions()] == ["s-3", "s-2", "s"]

    def test_same_request_id_is_applied_once(self, store: SqlStore) -> None:
        """A repeated request id returns the first session, or is refused for another spec."""
        assert store.requested("r1") is None
        first = store.create_session("s", SPEC, NOW, "r1")
        assert store.requested("r1") == first
        again = store.create_session("t", SPEC, NOW, "r1")
        assert again == first
        assert len(store.sessions()) == 1
        with pytest.raises(ValueError, match="r1"):
            store.create_session("s", replace(SPEC, seed=1), NOW, "r1")
        with pytest.raises(ValueError, match="r1"):
            store.create_session("s", replace(SPEC, layout="own", layout_digest="1"), NOW, "r1")

    def test_a_request_may_come_again_after_an_upgrade(self, store: SqlStore) -> None:
        """What the server adds is not part of the request: the first session is returned."""
        first = store.create_session("s", SPEC, NOW, "r1")
        newer = replace(SPEC, rules=2, layout_digest="ef" * 32)
        assert store.create_session("s", newer, NOW, "r1") == first

    def test_a_layout_comes_back_as_it_went_in(self, store: SqlStore) -> None:
        """A layout's digest always means the same layout; the list is by name and variant."""
        mine = LayoutRecord("ab" * 32, "mine", "", "name: mine\nunit: 'é'\n")
        other = LayoutRecord("cd" * 32, "mine", "no-noise", "name: mine\n")
        for layout in (other, mine, replace(mine, text="name: other\n")):
            store.put_layout(layout)
        assert store.layout(mine.digest) == mine
        assert store.layouts() == [mine, other]
        assert store.layout("x") is None

    def test_unknown_things_read_as_nothing(self, store: SqlStore) -> None:
        """Reads of unknown ids return nothing."""
        assert store.session("x") is None
        assert store.battery("x") is None
        assert store.profile("x") is None
        assert store.episodes("x") == []
        assert store.certificates("x") == {}

    @pytest.mark.parametrize("write", WRITES_TO_X)
    def test_writes_to_unknown_sessions_are_errors(
        self, store: SqlStore, write: Callable[[SqlStore], Any]
    ) -> None:
        """Writes to unknown ids are refused and write nothing."""
        with pytest.raises(KeyError):
            write(store)
        assert store.sessions() == []

    def test_an_attempt_brings_the_state_of_the_capabilities(
        self, store: SqlStore, session: str
    ) -> None:
        """A repeated attempt, before which nothing was learnt, keeps the stored capabilities."""
        store.open_episode(attempt(session, 0), STATUS, MISFIT)
        store.finish_episode(finish_attempt(attempt(session, 0), Outcome.VOID))
        store.open_episode(attempt(session, 0, 1))
        found = store.session(session)
        assert found is not None
        assert (found.capabilities, found.misfit) == (STATUS, MISFIT)

    def test_outcomes_are_counted(self, store: SqlStore, session: str) -> None:
        """Successes and failures count; voids and faults do not."""
        for number, outcome in enumerate(Outcome):
            store.open_episode(attempt(session, number))
            store.finish_episode(finish_attempt(attempt(session, number), outcome))
        found = store.session(session)
        assert found is not None
        assert (found.episodes, found.successes) == (2, 1)
        assert [e.outcome for e in store.episodes(session)] == list(Outcome)

    def test_an_episode_comes_back_as_it_went_in(self, store: SqlStore, session: str) -> None:
        """Every value of an attempt survives, first open and then finished."""
        store.open_episode(attempt(session, 0))
        assert store.episodes(session) == [attempt(session, 0)]
        store.finish_episode(finish_attempt(attempt(session, 0)))
        assert store.episodes(session) == [finish_attempt(attempt(session, 0))]

    def test_a_finished_episode_is_immutable(self, store: SqlStore, session: str) -> None:
        """A finished attempt is neither finished again, nor opened again, nor counted twice."""
        store.open_episode(attempt(session, 0))
        store.finish_episode(finish_attempt(attempt(session, 0)))
        with pytest.raises(AlreadyFinishedError):
            store.finish_episode(finish_attempt(attempt(session, 0), Outcome.FAILURE))
        with pytest.raises(AlreadyFinishedError):
            store.open_episode(attempt(session, 0))
        with pytest.raises(AlreadyFinishedError):
            store.open_episode(attempt(session, 0, 1))
        assert store.episodes(session) == [finish_attempt(attempt(session, 0))]

    def test_of_two_open_attempts_one_counts(self, store: SqlStore, session: str) -> None:
        """At most one attempt at a number counts, whatever callers do."""
        for k in (0, 1):
            store.open_episode(attempt(session, 0, k))
        store.finish_episode(finish_attempt(attempt(session, 0, 1)))
        with pytest.raises(AlreadyFinishedError):
            store.finish_episode(finish_attempt(attempt(session, 0, 0)))
        assert [e.outcome for e in store.episodes(session)] == [None, Outcome.SUCCESS]

    def test_a_person_says_what_attempts_are_at_which_code_failed(
        self, store: SqlStore, session: str
    ) -> None:
        """Only those that wait for it change, the chain knows, and the session says which wait."""
        for number in range(3):
            store.open_episode(attempt(session, number))
        left = replace(attempt(session, 0), outcome=Outcome.VOID, cause="the agent left")
        store.finish_episode(left)
        for number in (1, 2):
            failed = replace(
                attempt(session, number), outcome=Outcome.VOID, ruling=Ruling.AWAITED, seen=True
            )
            store.finish_episode(failed)
        found = store.session(session)
        assert found is not None
        assert (found.unjudged, found.held) == ((1, 2), True)
        links = len(store.chain(session).links)
        judged = store.judge_failures(session, Ruling.FAILURE)
        assert [(e.number, e.outcome, e.counts) for e in judged] == [
            (1, Outcome.FAILURE, True),
            (2, Outcome.FAILURE, True),
        ]
        assert list(store.episodes(session)) == [left, *judged]
        chain = store.chain(session)
        assert len(chain.links) == links + 2
        assert all(chain.now[link.what] == link.content for link in chain.links[-2:])
        found = store.session(session)
        assert found is not None
        assert (found.unjudged, found.episodes, found.held) == ((), 2, False)
        assert store.judge_failures(session, Ruling.REPEAT) == []
        with pytest.raises(ValueError, match="say what it is"):
            store.judge_failures(session, Ruling.AWAITED)

    def test_an_invalid_outcome_is_kept_and_does_not_count(
        self, store: SqlStore, session: str
    ) -> None:
        """The number of an invalid episode may be played again; the first reason stays."""
        for number in (0, 1):
            store.open_episode(attempt(session, number))
            store.finish_episode(finish_attempt(attempt(session, number)))
        invalid = store.invalidate_episode(session, 0, 0, "the agent cheated")
        assert invalid == replace(finish_attempt(attempt(session, 0)), invalid="the agent cheated")
        assert not invalid.counts
        assert store.invalidate_episode(session, 0, 0, "again") == invalid
        found = store.session(session)
        assert found is not None
        assert (found.episodes, found.successes) == (1, 1)
        store.open_episode(attempt(session, 0, 1))
        store.finish_episode(finish_attempt(attempt(session, 0, 1), Outcome.FAILURE))
        assert [e.counts for e in store.episodes(session)] == [False, True, True]
        with pytest.raises(KeyError):
            store.invalidate_episode(session, 7, 0, "why")
        store.open_episode(attempt(session, 2))
        with pytest.raises(ValueError, match="anyway"):
            store.invalidate_episode(session, 2, 0, "why")
        with pytest.raises(ValueError, match="reason"):
            store.invalidate_episode(session, 1, 0, "")

    def test_a_pause_is_kept(self, store: SqlStore, session: str) -> None:
        """A session is paused until it is let go on; one that is over cannot be paused."""
        assert store.pause(session, True).paused
        assert [s.paused for s in store.sessions()] == [True]
        assert not store.pause(session, False).paused
        store.set_state(session, SessionState.CANCELLED)
        with pytest.raises(AlreadyFinishedError):
            store.pause(session, True)

    def test_a_session_that_is_over_stays_over(self, store: SqlStore, session: str) -> None:
        """A session that is over has its profile and keeps its state."""
        profile = {"nodes": {"navigationAbility": {"mean": 2.5, "hdi": [1.0, 4.0]}}}
        ended = store.finish_session(
            session, SessionState.FINISHED, "budget", profile, STATUS, MISFIT
        )
        assert (ended.state, ended.reason, ended.capabilities, ended.misfit) == (
            SessionState.FINISHED,
            "budget",
            STATUS,
            MISFIT,
        )
        assert store.profile(session) == profile
        with pytest.raises(AlreadyFinishedError):
            store.set_state(session, SessionState.RUNNING)
        with pytest.raises(AlreadyFinishedError):
            store.finish_session(session, SessionState.CANCELLED, "", {}, ())
        assert store.session(session) == ended
        assert store.profile(session) == profile

    def test_reads_are_values(self, store: SqlStore, session: str) -> None:
        """Changing what was read or written changes nothing in the store."""
        result: dict[str, Any] = {"max_mean_error": 0.05, "reasons": []}
        store.put_certificate(session, StoredCertificate(16, True, result, "a/16.npz"))
        result["reasons"].append("changed")
        found = store.certificates(session)[16]
        assert found.result == {"max_mean_error": 0.05, "reasons": []}
        found.result["reasons"].append("changed")
        assert store.certificates(session)[16].result["reasons"] == []
        assert store.certificates(session)[16].draws == "a/16.npz"
        with pytest.raises(AlreadyFinishedError):
            store.put_certificate(session, StoredCertificate(16, False, {}))

    def test_a_battery_name_points_to_its_latest_content(self, store: SqlStore) -> None:
        """A battery's name can be stored, stored again with other content, and listed."""
        first = BatteryRecord("b", "00" * 32, 3, ("f.yaml:3: odd",))
        store.put_battery(first)
        assert store.battery("b") == first
        second = BatteryRecord("b", "11" * 32, 4)
        store.put_battery(second)
        store.put_battery(BatteryRecord("a", "22" * 32, 1))
        assert [b.digest for b in store.batteries()] == ["22" * 32, "11" * 32]

    def test_sessions_are_listed_page_by_page(self, store: SqlStore) -> None:
        """Pages go from new to old; changes meanwhile neither repeat nor hide another session."""
        for _ in range(5):
            store.create_session("s", SPEC, NOW)
        first = store.sessions(page=Page(2))
        assert [s.id for s in first] == ["s-5", "s-4"]
        store.create_session("s", SPEC, NOW)
        store.delete_session("s-4")
        second = store.sessions(page=Page(2, first.next))
        assert [s.id for s in second] == ["s-3", "s-2"]
        third = store.sessions(page=Page(2, second.next))
        assert ([s.id for s in third], third.next) == (["s"], "")
        assert store.sessions(page=Page(5)).next == ""
        with pytest.raises(BadPageError, match="first page"):
            store.sessions(page=Page(2, "s-3"))

    def test_sessions_are_found_by_what_they_are(self, store: SqlStore) -> None:
        """Filters by agent, battery and state, and by all of them, hold on every page."""
        for agent in ("ann", "bob"):
            for battery in ("b", "c", "c"):
                store.create_session(agent, replace(SPEC, agent=agent, battery=battery), NOW)
        store.set_state("ann", SessionState.RUNNING)
        store.set_state("ann-3", SessionState.FAILED)
        found = [s.id for s in store.sessions(SessionFilter(agent="ann"))]
        assert found == ["ann-3", "ann-2", "ann"]
        both = SessionFilter(agent="ann", battery="c")
        assert [s.id for s in store.sessions(both)] == ["ann-3", "ann-2"]
        page = store.sessions(both, Page(1))
        assert [s.id for s in store.sessions(both, Page(1, page.next))] == ["ann-2"]
        states = SessionFilter(states=(SessionState.RUNNING, SessionState.FAILED))
        assert [s.id for s in store.sessions(states)] == ["ann-3", "ann"]

    def test_attempts_are_listed_page_by_page(self, store: SqlStore, session: str) -> None:
        """Attempts are in order of number and attempt, filtered by outcome or number."""
        for number, outcome in enumerate((Outcome.SUCCESS, Outcome.VOID, Outcome.FAILURE)):
            store.open_episode(attempt(session, number))
            store.finish_episode(finish_attempt(attempt(session, number), outcome))
        store.open_episode(attempt(session, 1, 1))
        places: list[tuple[int, int]] = []
        page = Page(3)
        while page.limit:
            found = store.episodes(session, page=page)
            places += [(e.number, e.attempt) for e in found]
            page = Page(3 if found.next else 0, found.next)
        assert places == [(0, 0), (1, 0), (1, 1), (2, 0)]
        counted = EpisodeFilter(outcomes=(Outcome.SUCCESS, Outcome.FAILURE))
        assert [e.number for e in store.episodes(session, counted)] == [0, 2]
        tries = store.episodes(session, EpisodeFilter(number=1))
        assert [(e.number, e.attempt) for e in tries] == [(1, 0), (1, 1)]
        still_open = EpisodeFilter(over=False)
        assert [(e.number, e.attempt) for e in store.episodes(session, still_open)] == [(1, 1)]

    def test_attempts_of_all_sessions_are_listed_page_by_page(
        self, store: SqlStore, session: str
    ) -> None:
        """They are in order of session, number and attempt, whatever the session is called."""
        made = [session, "b", "a"]
        for name in made[1:]:
            store.create_session(name, SPEC, NOW)
        for number, name in enumerate((*made, session)):
            store.open_episode(attempt(name, number))
            store.finish_episode(finish_attempt(attempt(name, number)))
        for size in (1, 3):
            places: list[tuple[str, int]] = []
            page = Page(size)
            while page.limit:
                found = store.all_episodes(page=page)
                places += [(e.session, e.number) for e in found]
                page = Page(size if found.next else 0, found.next)
            assert places == [(session, 0), (session, 3), ("b", 1), ("a", 2)]
        with pytest.raises(BadPageError):
            store.all_episodes(page=Page(1, "1-2"))

    def test_numbers_of_attempts_are_kept(self, store: SqlStore, session: str) -> None:
        """What lists show of a session is what its attempts say, after each change of them."""
        ends = [
            (Outcome.SUCCESS, DECISION),
            (Outcome.FAILURE, DECISION),
            (Outcome.SUCCESS, replace(DECISION, reason="practice")),
            (Outcome.VOID, DECISION),
        ]
        for number, (outcome, decision) in enumerate(ends):
            opened = replace(attempt(session, number), decision=decision)
            store.open_episode(opened)
            failed = Ruling.AWAITED if outcome is Outcome.VOID else None
            spent = Spent(0.5, 10, number, {"EUR": 0.25} if number else {"ALL": 2.0})
            store.finish_episode(
                replace(finish_attempt(opened, outcome), ruling=failed, spent=spent)
            )
            assert store.recount(session)[0] == store.recount(session)[1]
        all_spent = Spent(2.0, 40, 6, {"ALL": 2.0, "EUR": 0.75})
        assert store.recount(session)[0] == (2, 1, 1, all_spent)
        store.invalidate_episode(session, 0, 0, "a bad day")
        store.invalidate_episode(session, 0, 0, "again")
        assert store.recount(session) == ((1, 0, 1, all_spent), (1, 0, 1, all_spent))
        store.judge_failures(session, Ruling.FAILURE)
        assert store.recount(session) == ((2, 0, 1, all_spent), (2, 0, 1, all_spent))
        found = store.sessions_by_id([session, "x"])[session]
        assert (found.episodes, found.successes, found.practised, found.unjudged) == (2, 0, 1, ())
        assert found.spent == all_spent

    def test_first_outcomes_are_those_that_count(self, store: SqlStore, session: str) -> None:
        """Of an arena that was played again the first outcome is told, and a twin stands for it."""
        twin = MadeInstance("b", Instance("b.0f", "", {}, 0.0, 10, 1, ""), "", MadeAs.TWIN)
        played = [
            (Outcome.FAILURE, "a", None),
            (Outcome.SUCCESS, "a", None),
            (Outcome.FAULT, "c", None),
            (Outcome.FAILURE, "b.0f", twin),
            (Outcome.SUCCESS, "a", None),
            (Outcome.SUCCESS, "d", None),
        ]
        for number, (outcome, name, made) in enumerate(played):
            opened = replace(
                attempt(session, number), decision=replace(DECISION, instance=name, made=made)
            )
            store.open_episode(opened)
            store.finish_episode(finish_attempt(opened, outcome))
        store.invalidate_episode(session, 0, 0, "the lamp was off")
        store.create_session("idle", SPEC, NOW)
        told = store.first_outcomes({session: 5, "idle": 5})
        assert told == {session: {"a": True, "b": False}, "idle": {}}

    def test_pages_of_states_are_pages_of_the_list(self, store: SqlStore) -> None:
        """Sessions of some states come newest first, and a page begins where the last one ended."""
        states = [SessionState.WAITING, SessionState.RUNNING, SessionState.CANCELLED]
        for number in range(9):
            made = store.create_session(f"s{number}", SPEC, NOW).id
            store.set_state(made, states[number % 3])
        wanted = SessionFilter(states=(SessionState.WAITING, SessionState.CANCELLED))
        first = store.sessions(wanted, Page(4))
        assert [s.id for s in first] == ["s8", "s6", "s5", "s3"]
        assert [s.id for s in store.sessions(wanted, Page(4, first.next))] == ["s2", "s0"]

    def test_how_far_campaigns_are_is_counted(self, store: SqlStore) -> None:
        """By what their sessions have played, and by how many of these go on."""
        spec = CampaignSpec(("x", "y"), SPEC, 200)
        for name in ("c", "d"):
            own = store.create_session(name, SPEC, NOW).id
            store.create_campaign(StoredCampaign(name, spec, (own,), NOW))
        store.set_state("d", SessionState.CANCELLED)
        assert store.campaign_counts(["c", "d", "x"]) == {"c": (0, 1), "d": (0, 0)}

    def test_campaigns_are_listed_page_by_page(self, store: SqlStore, session: str) -> None:
        """Campaigns can be filtered by battery."""
        for name, battery in (("c", "b"), ("d", "b"), ("e", "other")):
            spec = CampaignSpec(("x", "y"), replace(SPEC, battery=battery), 200)
            store.create_campaign(StoredCampaign(name, spec, (session,), NOW))
        page = store.campaigns(page=Page(2))
        assert [c.id for c in (*page, *store.campaigns(page=Page(2, page.next)))] == [
            "e",
            "d",
            "c",
        ]
        assert [c.id for c in store.campaigns(CampaignFilter(battery="b"))] == ["d", "c"]

    def test_a_deleted_session_leaves_nothing(self, store: SqlStore, session: str) -> None:
        """Neither records nor the request id stay behind, and the id may be used again."""
        made = store.create_session("t", SPEC, NOW, "r1").id
        store.open_episode(attempt(made, 0))
        store.finish_episode(finish_attempt(attempt(made, 0)))
        store.put_certificate(made, StoredCertificate(16, True, {}))
        store.finish_session(made, SessionState.FINISHED, "", {"nodes": {}}, STATUS)
        gone: list[str] = []
        store.delete_session(made, lambda: gone.append(made))
        assert gone == [made]
        assert [s.id for s in store.sessions()] == [session]
        assert store.create_session("t", SPEC, NOW, "r1").id == made
        assert store.episodes(made) == []
        assert store.certificates(made) == {}
        assert store.profile(made) is None
        with pytest.raises(KeyError):
            store.delete_session("x")

    def test_what_is_in_use_is_not_deleted(self, store: SqlStore, session: str) -> None:
        """What is in use stays: sessions, campaigns with open sessions, and their battery."""
        store.put_battery(BatteryRecord("b", SPEC.battery_digest, 3))
        store.set_state(session, SessionState.RUNNING)
        with pytest.raises(InUseError, match="cancel"):
            store.delete_session(session)
        spec = CampaignSpec(("a", "b"), SPEC, 200)
        store.create_campaign(StoredCampaign("c", spec, (session,), NOW))
        with pytest.raises(InUseError, match="cancel it"):
            store.delete_campaign("c")
        store.set_state(session, SessionState.CANCELLED)
        with pytest.raises(InUseError, match="campaign c"):
            store.delete_session(session)
        with pytest.raises(InUseError, match="campaign c"):
            store.delete_battery("b")
        store.delete_campaign("c")
        with pytest.raises(InUseError, match=f"session {session}"):
            store.delete_battery("b")
        store.delete_session(session)
        store.put_battery(BatteryRecord("same", SPEC.battery_digest, 3))
        assert store.delete_battery("b") is False
        assert store.delete_battery("same") is True
        assert store.batteries() == []
        for delete in (store.delete_battery, store.delete_campaign):
            with pytest.raises(KeyError):
                delete("x")

    def test_a_failed_deletion_deletes_nothing(self, store: SqlStore, session: str) -> None:
        """If what belongs to a session cannot be deleted, the session stays too."""

        def fail() -> None:
            raise OSError("the disk is gone")

        store.open_episode(attempt(session, 0))
        with pytest.raises(OSError, match="disk"):
            store.delete_session(session, fail)
        assert [s.id for s in store.sessions()] == [session]
        assert store.episodes(session) == [attempt(session, 0)]

    def test_threads_may_write_at_once(self, store: SqlStore) -> None:
        """Eight writers, one per session, and a reader that never sees half of a write."""
        ids = [store.create_session("s", SPEC, NOW).id for _ in range(8)]
        failures: list[BaseException] = []

        def play(session: str) -> None:
            try:
                for number in range(5):
                    store.open_episode(attempt(session, number))
                    store.finish_episode(finish_attempt(attempt(session, number)))
                    found = store.session(session)
                    assert found is not None
                    assert found.episodes == found.successes == number + 1
            except BaseException as error:  # noqa: BLE001 - handed to the test's thread
                failures.append(error)

        threads = [threading.Thread(target=play, args=(session,)) for session in ids]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures
        assert [s.episodes for s in store.sessions()] == [5] * 8
