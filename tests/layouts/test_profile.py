"""The profile's JSON follows its schema."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

import numpy as np
import pytest
from jsonschema import Draft202012Validator, ValidationError

from animalcat.layouts.inference.fit import FitRequest, fit
from animalcat.layouts.inference.live import LivePosterior
from animalcat.layouts.inference.summary import hdi
from animalcat.layouts.model.spec import Layout
from animalcat.layouts.reporting.profile import Profile


def schema(name: str) -> Draft202012Validator:
    text = (resources.files("animalcat") / "schemas" / f"{name}.schema.json").read_text("utf-8")
    Draft202012Validator.check_schema(json.loads(text))
    return Draft202012Validator(json.loads(text))


def profiles(aaio: Layout) -> list[Profile]:
    posterior = LivePosterior(aaio, 1)
    posterior.update([10.0, 1.0, 0.0, 0.0], True, 1)
    status = {
        "navigationAbility": "precise, if the layout holds",
        "visualAbility": "limited by noise",
    }
    provenance = {"agent": "builtin:forward", "seed": 3}
    return [
        Profile.of_live(posterior, status, provenance),
        Profile.of_fit(fit(FitRequest(aaio, [], [], seed=1)), status, provenance),
    ]


def test_json_is_as_documented(aaio: Layout) -> None:
    for profile in profiles(aaio):
        data = json.loads(profile.to_json())
        schema("profile").validate(data)
        assert list(data["nodes"]) == list(aaio.latent_names)
        node = data["nodes"]["visualAbility"]
        assert node["status"] == "limited by noise"
        assert node["range"] == [0.0, 1.9]
        assert data["nodes"]["rightLeftBias"]["range"] == [None, None]
        assert data["nodes"]["rightLeftBias"]["status"] is None
        assert data["layout"]["digest"] == aaio.digest
        assert data["provenance"] == {"agent": "builtin:forward", "seed": 3}


def test_the_schema_refuses_what_is_wrong(aaio: Layout) -> None:
    data: dict[str, Any] = profiles(aaio)[0].to_dict()
    for wrong in (
        {**data, "version": 2},
        {**data, "nodes": {}},
        {**data, "extra": 1},
        {**data, "nodes": {"a": {**data["nodes"]["noiseLevel"], "status": "bored"}}},
        {**data, "nodes": {"a": {**data["nodes"]["noiseLevel"], "hdi": [0.1]}}},
    ):
        with pytest.raises(ValidationError):
            schema("profile").validate(wrong)


def test_hdi_is_the_shortest_interval_with_its_share() -> None:
    g = np.random.default_rng(0)
    values = g.exponential(size=200_000)
    even = np.full(values.size, 1.0 / values.size)
    low, high = hdi(values, even)
    assert low == pytest.approx(0.0, abs=0.01)
    assert high == pytest.approx(-np.log(0.1), rel=0.02)
    # Weights stand for copies.
    counts = g.integers(1, 4, 5_000)
    some, copies = values[:5_000], np.repeat(values[:5_000], counts)
    assert hdi(some, counts / counts.sum()) == pytest.approx(
        hdi(copies, np.full(len(copies), 1.0 / len(copies))), abs=0.01
    )
    assert hdi(np.array([7.0]), np.array([1.0])) == (7.0, 7.0)
