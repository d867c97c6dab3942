"""The small parts: batteries, measurement, settings, lock, events, errors, actions."""

from __future__ import annotations

import asyncio
import dataclasses
import os
from datetime import UTC, datetime
from pathlib import Path

import grpc
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from animalcat.arena_configs.loader import load_text
from animalcat.arena_configs.placement import place
from animalcat.layouts.adaptive.plan import Policy, StoppingRule
from animalcat.layouts.adaptive.statuses import EXHAUSTED
from animalcat.service.batteries.battery import (
    ArenaFile,
    Battery,
    import_files,
    load,
    read_files,
)
from animalcat.service.batteries.naming import paradigm_of
from animalcat.service.errors import CATALOGUE, Code, public
from animalcat.service.host.lock import DirectoryInUseError, DirectoryLock, running_server
from animalcat.service.host.settings import ExposureError, Settings, SettingsError, check_exposure
from animalcat.service.measuring.certificates import fit_seed
from animalcat.service.measuring.measurement import Measurement
from animalcat.service.session.events import Event, EventBus
from animalcat.service.session.turns import FrameError, expand
from animalcat.v1 import gateway_pb2
from animalcat.values import Session, SessionSpec, SessionState

from .conftest import open_floor

SPEC = SessionSpec(
    agent="builtin:random",
    battery="navigation",
    battery_digest="",
    layout="aaio",
    layout_variant="",
    policy=Policy(),
    stop=StoppingRule(20, target_sd=0, futility=0),
    seed=7,
)

RANDOM_PLACES = """!ArenaConfig
arenas:
  0: !Arena
    pass_mark: 0
    t: 250
    items:
    - !Item {name: Agent}
    - !Item {name: GoodGoal, sizes: [!Vector3 {x: -1, y: -1, z: -1}]}
"""


@pytest.fixture(scope="module")
def navigation(tmp_path_factory: pytest.TempPathFactory) -> Battery:
    return open_floor(40, tmp_path_factory.mktemp("batteries"))


class TestBattery:
    def test_what_files_leave_to_chance_is_fixed_by_seed_and_path(self, tmp_path: Path) -> None:
        files = [ArenaFile(f"{name}.yaml", RANDOM_PLACES) for name in ("a-1", "a-2")]
        battery = import_files(files, 1, tmp_path)
        first, second = battery.instances
        assert first.features != second.features
        assert first.seed != second.seed
        fixed = load_text(battery.arena_yaml(first), "fixed").config.first
        assert place(fixed, np.random.default_rng(1)) == place(fixed, np.random.default_rng(2))
        assert import_files(files[:1], 1, tmp_path).instances[0] == first
        assert import_files(files, 2, tmp_path).digest != battery.digest
        assert load(battery.digest, tmp_path) == battery

    def test_the_order_of_files_does_not_matter(self, tmp_path: Path) -> None:
        files = [ArenaFile(f"a-{k}.yaml", RANDOM_PLACES) for k in range(3)]
        one = import_files(files, 0, tmp_path)
        assert import_files(reversed(files), 0, tmp_path) == one
        assert len([p for p in tmp_path.iterdir() if p.is_dir()]) == 1

    def test_files_with_several_arenas_give_an_instance_each(self, tmp_path: Path) -> None:
        text = RANDOM_PLACES + RANDOM_PLACES.split("arenas:\n")[1].replace("  0:", "  1:")
        battery = import_files([ArenaFile("two.yaml", text)], 0, tmp_path)
        assert [i.name for i in battery.instances] == ["two.0", "two.1"]

    @pytest.mark.parametrize(
        ("name", "paradigm"),
        [
            ("01-13-02", "01-13"),
            ("navigation-7", "navigation"),
            ("OP-Cohesion-CD-Fence-X", "OP-Cohesion"),
            ("mazes/one", "mazes"),
            ("one", "all"),
            ("sub/01-13-02", "01-13"),
        ],
    )
    def test_paradigms(self, name: str, paradigm: str) -> None:
        assert paradigm_of(name) == paradigm

    @pytest.mark.data
    @pytest.mark.slow
    def test_the_competition_is_read(self, data_dir: Path, tmp_path: Path) -> None:
        battery = import_files(read_files(data_dir / "animal-ai-competition"), 0, tmp_path)
        assert len(battery.instances) == 346
        # The 69 of the paper, and six of other categories with walls that stand aside.
        assert len(Measurement(SPEC, battery).learner.left) == 75


class TestMeasurement:
    def test_every_instance_is_played_once_then_it_is_enough(self, navigation: Battery) -> None:
        measurement = Measurement(
            dataclasses.replace(SPEC, stop=StoppingRule(1000, target_sd=0, futility=0)), navigation
        )
        played: set[str] = set()
        number = 0
        while not measurement.learner.verdict().stop:
            decision = measurement.choose(number)
            assert decision is not None
            assert decision.instance not in played
            played.add(decision.instance)
            measurement.learner.tell(decision.instance, True, number)
            number += 1
        assert number == 40
        assert measurement.learner.verdict().reason == EXHAUSTED
        assert measurement.choose(number) is None

    def test_fits_have_seeds_of_their_own(self) -> None:
        keys = [
            (1, "certificate", 16),
            (1, "certificate", 32),
            (1, "profile", 16),
            (2, "profile", 16),
        ]
        assert len({fit_seed(*key) for key in keys}) == 4
        assert fit_seed(*keys[0]) == fit_seed(*keys[0])


class TestExposure:
    @pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "localhost", "::1"])
    def test_this_machine_alone(self, host: str) -> None:
        check_exposure(host, credentials=False)

    @pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "example.org", ""])
    def test_a_wider_bind_needs_credentials(self, host: str) -> None:
        with pytest.raises(ExposureError, match="credentials"):
            check_exposure(host, credentials=False)
        check_exposure(host, credentials=True)

    @pytest.mark.parametrize(
        ("name", "value", "said"),
        [
            ("MAX_WORKERS", "x", "ANIMALCAT_MAX_WORKERS=x: input should be a valid integer"),
            ("PORT", "-3", "ANIMALCAT_PORT=-3: input should be greater than or equal to 0"),
            (
                "DIRECT_NETWORKS",
                "10.0.0.1/8",
                "ANIMALCAT_DIRECT_NETWORKS=.*host bits set",
            ),
            ("WEB", "0.0.0.0:x", "ANIMALCAT_WEB=0.0.0.0:x: this is not a port"),
            ("HOST_NAMES", "here", "host_names.*give JSON"),
        ],
    )
    def test_a_setting_that_will_not_do_is_named(
        self, name: str, value: str, said: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv(f"ANIMALCAT_{name}", value)
        with pytest.raises(SettingsError, match=said):
            Settings()


class TestLock:
    def test_one_holder_at_a_time(self, tmp_path: Path) -> None:
        assert running_server(tmp_path) is None
        lock = DirectoryLock(tmp_path)
        lock.publish("127.0.0.1:5")
        holder = running_server(tmp_path)
        assert holder is not None
        assert holder == ("127.0.0.1:5", os.getpid())
        with pytest.raises(DirectoryInUseError, match=r"127\.0\.0\.1:5") as caught:
            DirectoryLock(tmp_path)
        assert caught.value.holder == holder
        lock.release()
        lock.release()
        assert running_server(tmp_path) is None
        DirectoryLock(tmp_path).release()


class TestErrors:
    def test_every_code_has_its_entry(self) -> None:
        assert set(CATALOGUE) == set(Code)
        assert all(entry.status is not grpc.StatusCode.OK for entry in CATALOGUE.values())

    def test_the_unforeseen_becomes_internal(self, caplog: pytest.LogCaptureFixture) -> None:
        shown = public(RuntimeError("secret"))
        assert shown.code is Code.INTERNAL
        assert "secret" not in shown.message
        assert "secret" in caplog.text


class TestEvents:
    async def test_watchers_get_what_happens_while_they_watch(self) -> None:
        bus = EventBus()
        session = Session("s", SPEC, SessionState.RUNNING, "", datetime(2026, 1, 1, tzinfo=UTC))
        event = Event(session, None)
        bus.publish(event)
        with bus.watch("s") as first, bus.watch("s") as second, bus.watch("t") as other:
            bus.publish(event)
            assert await first.get() == await second.get() == event
            assert first.empty()
            assert other.empty()
        bus.publish(event)
        await asyncio.sleep(0)
        assert first.empty()


@given(
    st.binary(max_size=120),
    st.integers(0, 1200),
    st.integers(0, 2),
    st.integers(0, 3),
    st.integers(0, 1),
)
def test_actions_are_expanded_or_refused(
    actions: bytes, repeat: int, step: int, done: int, slot: int
) -> None:
    listed = gateway_pb2.ActionList(actions=actions, repeat=repeat)
    message = gateway_pb2.Action(slot=slot, step=step, list=listed)
    good = (
        slot == 0
        and step == done
        and 1 <= len(actions) <= 100
        and max(actions) <= 8
        and len(actions) * max(repeat, 1) <= 1000
    )
    if good:
        assert expand(message, done) == actions * max(repeat, 1)
        return
    with pytest.raises(FrameError) as caught:
        expand(message, done)
    assert caught.value.code in (Code.ACTION_OUT_OF_RANGE, Code.ACTION_STALE)
