"""Layouts that a caller brings along: checked, kept by digest, and used whatever comes later."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest

from animalcat.cli.layout.table import battery_of_folder
from animalcat.cli.shared.tables import calibration_words, variant_words
from animalcat.layouts.library import CALIBRATIONS, load_layout, parse_layout
from animalcat.service.errors import ServiceError
from animalcat.service.library.layouts import (
    layout_of,
    meant_layout,
    own_layout,
    record_of,
)
from animalcat.service.measuring.coverage import calibration_hint, taught_layout
from animalcat.v1 import results_pb2, sessions_pb2
from animalcat.values.sessions import AS_WRITTEN

REACHING = """
name: reaching
features:
  rewardDistance: {unit: m, low: 0, high: 60}
latents:
  reach: {kind: capability, unit: m, prior: {scaled_beta: {low: 0, high: 60}}}
derived:
  passing: {link: {logistic_margin: {ability: reach, demand: rewardDistance, slope: 0.115}}}
outcome: {bernoulli: {probability: passing}}
excludes:
  wallsInWay: {above: 0}
"""


@pytest.mark.asyncio(loop_scope="session")
async def test_a_session_keeps_the_layout_that_it_was_given(service: Any) -> None:
    own = {"layout": "", "layout_definition": REACHING, "certify": False}
    one = await service.create(3, **own)
    wider = REACHING.replace("above: 0", "above: 1")
    other = await service.create(3, **own | {"layout_definition": wider})
    assert one != other
    spec = (await service.get(one)).spec
    assert (spec.layout, spec.layout_definition) == ("reaching", "")
    assert spec.layout_digest == parse_layout(REACHING).identity
    store = service.running.engines.parts.store
    kept = store.session(one.removeprefix("sessions/")).spec
    assert layout_of(kept, store) == parse_layout(REACHING)
    assert store.layout(kept.layout_digest).text == REACHING
    await service.play(one)
    assert [c.name for c in (await service.get(one)).capabilities] == ["reach"]


MERGES = "a: &a {x: 1, y: 2}\n" + "".join(
    f"{new}: &{new} {{<<: [{', '.join([f'*{old}'] * 10)}]}}\n"
    for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)
"""Unfolded it would stop a server for hours."""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("name: [", "layout:1: did not find expected node content"),
        ("[1, 2]", "expected a mapping"),
        (REACHING.replace("slope: 0.115", "slope: steep"), "slope.*'steep'"),
        (REACHING.replace("reaching", "aaio"), "'aaio' is the name of a shipped layout"),
        (REACHING.replace("name: reaching", "name: ''"), "1 to 100 printable"),
        (
            "a: &a [" + "1, " * 200 + "]\nb: &b [" + "*a, " * 200 + "]\nc: [" + "*b, " * 200 + "]",
            r"layout:3: its aliases \(\*b\) repeat more than 50000 values",
        ),
        (MERGES, r"layout:5: its aliases \(\*d\) repeat more than 50000 values"),
        ("[" * 3000 + "]" * 3000, "layout:1: nested deeper than 32 levels"),
        ("#" * (1 << 20) + "\n" + REACHING, "at most 1048576 bytes"),
    ],
)
def test_what_is_no_layout_is_refused(text: str, words: str) -> None:
    with pytest.raises(ServiceError, match=words):
        own_layout(text)


@pytest.mark.asyncio(loop_scope="session")
async def test_a_layout_that_asks_for_what_is_not_measured_is_refused(service: Any) -> None:
    text = REACHING.replace("wallsInWay", "hedges")
    with pytest.raises(grpc.aio.AioRpcError, match="'hedges', which is neither measured") as error:
        await service.create(3, layout="", layout_definition=text)
    assert error.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    policy = sessions_pb2.SelectionPolicy(name=sessions_pb2.POLICY_NAME_VARIANCE, generate=True)
    made = await service.create(3, layout="", layout_definition=REACHING, policy=policy)
    assert made  # the family's open floor has all that it asks for


CALIBRATED = (
    REACHING.replace("name: reaching", "name: trained")
    .replace("features:", "features:\n  easiness: {unit: '1', low: -8, high: 8, if_missing: 0}")
    .replace(
        "outcome: {bernoulli: {probability: passing}}",
        """
  eased: {link: {odds_shift: {probability: passing, easiness: easiness}}}
outcome: {bernoulli: {probability: eased}}
calibration:
  name: trained
  base: [reaching, '', abc]
  agents: [one, two]
  episodes: 20
  outcomes: def
  instances: {elsewhere: [0.5, '01234567']}
""".strip("\n"),
    )
)


@pytest.mark.asyncio(loop_scope="session")
async def test_a_calibrated_session_says_so_and_is_for_other_agents(service: Any) -> None:
    own = {"layout": "", "layout_definition": CALIBRATED}
    with pytest.raises(grpc.aio.AioRpcError, match=r"'two' is one of the agents .* --without two"):
        await service.create(3, agent="two", **own)
    session = await service.create(2, **own)
    request = results_pb2.GetProfileRequest(name=f"{session}/profile")
    profile = json.loads((await service.profiles.GetProfile(request)).profile_json)
    told = profile["provenance"]["calibration"]
    assert (told["name"], told["agents"], told["episodes"]) == ("trained", ["one", "two"], 20)
    assert told["instances"] == 0
    assert told["without_row"] == profile["provenance"]["coverage"]["covered"] > 0
    assert "Calibrated (trained)" in calibration_words(profile)


KNOWN_ARENAS = [f"01-{task:02}-0{variation}" for task in (1, 2, 5) for variation in (1, 2, 3)]


def test_a_shipped_calibration_is_meant_where_it_knows_nine_tenths_of_the_arenas(
    data_dir: Path, tmp_path: Path
) -> None:
    written = load_layout("aaio")
    battery = battery_of_folder(data_dir / "animal-ai-competition", KNOWN_ARENAS, tmp_path)
    taken = taught_layout(battery, written)
    assert taken == meant_layout(battery, "aaio", "olympics") == load_layout("aaio", "olympics")
    assert parse_layout(record_of(taken).text, taken.variant) == taken
    assert own_layout(record_of(taken).text, "olympics").identity == taken.identity
    assert "30 earlier agents taught it arenas" in calibration_hint(battery, taken)
    assert "known and not used" in calibration_hint(battery, written)
    scaled = load_layout("aaio", "scaled")
    assert taught_layout(battery, scaled) is scaled  # not the calibrated one
    two = [f"{one.name} again" if i < 2 else one.name for i, one in enumerate(battery.instances)]
    renamed = [replace(one, name=two[i]) for i, one in enumerate(battery.instances)]
    assert taught_layout(replace(battery, instances=tuple(renamed)), written) is written


@pytest.mark.asyncio(loop_scope="session")
async def test_sessions_take_a_shipped_calibration_unless_asked_not_to(
    service: Any, data_dir: Path
) -> None:
    folder = data_dir / "animal-ai-competition"
    files = [(f"{name}.yaml", (folder / f"{name}.yaml").read_bytes()) for name in KNOWN_ARENAS]
    await service.import_files(files, "olympic")

    async def variant_of(session: str) -> str:
        return (await service.get(session)).spec.layout_variant

    own = {"battery": "batteries/olympic"}
    session = await service.create(2, **own)
    assert await variant_of(session) == "olympics"
    for written in ({"layout_variant": AS_WRITTEN}, {"agent": "ironbar"}):
        assert await variant_of(await service.create(2, **own, **written)) == "metres-15"
    await service.play(session)
    request = results_pb2.GetProfileRequest(name=f"{session}/profile")
    profile = json.loads((await service.profiles.GetProfile(request)).profile_json)
    words = calibration_words(profile)
    assert "30 earlier agents" in words
    assert "By the layout as written: navigationAbility" in words
    assert "--calibration none leaves that out" in variant_words(profile)


def test_shipped_calibrations_are_of_the_layouts_that_are_shipped() -> None:
    for name in CALIBRATIONS:
        written, calibrated = load_layout(name), load_layout(name, "olympics")
        assert calibrated.calibration is not None
        assert calibrated.calibration.base == (name, written.variant, written.digest)
        assert len(calibrated.calibration.agents) == 30
