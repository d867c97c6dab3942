"""One judgement of whether the layout describes an agent, and the evidence that it rests on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from animalcat.layouts.explaining.prediction import PredictionTest

Standing: TypeAlias = Literal["described", "cannot be told", "not described"]


@dataclass(frozen=True)
class Judgement:
    """Whether the layout describes an agent.

    Attributes:
        standing: Whether it does. If not, no capability is to be read.
        text: The same in a sentence.
        evidence: What it rests on, in sentences, what weighs most first.
    """

    standing: Standing
    text: str
    evidence: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Convert to JSON values, as the schema "profile" documents them."""
        return {"standing": self.standing, "text": self.text, "evidence": list(self.evidence)}


def judge_layout(
    misfit: str,
    prediction: PredictionTest | None,
    power: Mapping[str, Any] | None = None,
    inverted: str = "",
) -> Judgement:
    """Judge whether a layout describes an agent.

    In order of importance: demands that are met the wrong way round, an alarm that stands,
    predictions worse than the agent's own average, held-out scores that are predicted too badly.
    Only where there is none of these can better predictions say that the layout describes the
    agent.

    Args:
        misfit: Where predictions fail, if an alarm stands; else empty.
        prediction: Whether the layout predicts this agent, if that is known.
        power: How well held-out scores are predicted, as `diagnostics["predictive_power"]` of a
            profile; None where that was not looked at.
        inverted: What `wrong_way_round` says of the outcomes.
    """
    read = "its capabilities are not to be read"
    predicted = () if prediction is None else (prediction.text,)
    told = () if power is None else (_power_words(power),)
    if inverted:
        alarm = (f"An alarm stands: {misfit}.",) if misfit else ()
        return Judgement("not described", f"{inverted}: {read}.", (*alarm, *predicted, *told))
    if misfit:
        found = f"An alarm stands: {misfit}."
        told_too = prediction is not None and prediction.standing != "cannot be told"
        less = f"This weighs less: {prediction.text}" if prediction and told_too else ""
        return Judgement(
            "not described",
            f"The layout does not describe this agent: {read}.",
            tuple(filter(None, (found, less, *told))),
        )
    if prediction is not None and prediction.standing == "worse":
        return Judgement(
            "not described",
            "The layout does not describe this agent: it predicts it worse than the agent's own "
            f"average does, and {read}.",
            (*predicted, *told),
        )
    if power is not None and not power["readable"]:
        return Judgement(
            "not described",
            f"The layout does not describe this agent: it predicts held-out scores too badly, and "
            f"{read}.",
            (*told, *predicted),
        )
    if prediction is not None and prediction.standing == "better":
        return Judgement(
            "described",
            "The layout describes this agent, as far as can be judged: no alarm stands, and it "
            "predicts better than the agent's own average does.",
            (*predicted, *told),
        )
    return Judgement(
        "cannot be told",
        "It is not clear yet whether the layout describes this agent; no alarm stands.",
        (*predicted, *told),
    )


def _power_words(power: Mapping[str, Any]) -> str:
    if power["r2"] is None:
        return f"Held-out scores: {power['reason']}."
    r2, least = power["r2"], power["least"]
    return f"Held-out scores are predicted with an R2 of {r2:.2f}; {least:g} is required."
