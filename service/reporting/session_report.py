"""What the report on a session says, as plain values for its page."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from animalcat.envs.agents.fingerprint import AgentFingerprint
from animalcat.layouts.checking.scores import auc, murphy
from animalcat.layouts.explaining.wording import Scale, percent, scale_of, words_of
from animalcat.layouts.inference.fit import FitResult
from animalcat.layouts.inference.summary import NodeSummary
from animalcat.layouts.model.nodes import Latent, OutcomeSource
from animalcat.layouts.reporting.profile import NodeNote
from animalcat.plots.prediction import judge_predictions
from animalcat.service.measuring.profile_words import STATUS_MEANS, token_words
from animalcat.text.counts import count_of

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas as pd

    Floats = npt.NDArray[np.float64]

Row = Mapping[str, Any]

_TAIL: Final = 1.6449
"""Standard normal value with 5 % above it."""
_WIDE: Final = 240.0
"""Width of a bar in the units of its picture."""
REASONS: Final[Mapping[str, str]] = {
    "informative": "most informative",
    "random": "drawn at random",
    "listed": "next of the list",
    "generated": "made on demand",
    "probe": "played again, to see how random the agent is",
    "person": "chosen by a person",
    "plugin": "chosen by a plugin",
    "check": "drawn to check the layout",
    "pair": "as a pair with the one before",
}
"""Why an instance was chosen, in words, by the reason of its decision."""
_ENDED: Final[Mapping[str, str]] = {
    "goal": "reached the goal",
    "death": "died",
    "time_limit": "ran out of time",
    "fault": "the simulator failed",
}
_PREDICTED: Final[Mapping[OutcomeSource, str]] = {
    "success": "its success",
    "return": "its score, the share of what could be gained,",
    "time_left": "the share of its time that would be left",
    "rewards": "the share of its rewards that would be taken",
    "choice": "whether the right place would be chosen",
}
_MARKS: Final[Mapping[str, str]] = {
    "success": "●",
    "failure": "×",
    "void": "○",
    "fault": "!",
    "invalid": "⊘",
    "practice": "◌",
}
"""Outcomes as signs, for readers without colour."""


@dataclass(frozen=True)
class NodeRow:
    """A node as the table of the report shows it.

    Attributes:
        name: The node.
        about: Its kind, and what it is.
        reading: The estimate in words, in metres or seconds where it can be read so.
        interval: The 90 % interval in words.
        prior: The prior's 90 % interval in words.
        known: Whether enough was learnt for the estimate to be said.
        contraction: How far the data narrowed the prior, in per cent; in words where they did not.
        status: Why measuring stopped; empty where nothing was decided.
        means: What this status means.
        note: What else must be known; empty if nothing.
        bar: Places of its picture: ends of prior and interval, the mean, and the words at its ends.
    """

    name: str
    about: str
    reading: str
    interval: str
    prior: str
    known: bool
    contraction: str
    status: str
    means: str
    note: str
    bar: Mapping[str, Any]

    @property
    def told(self) -> str:
        """All of it in a sentence, for alternative texts."""
        return f"{self.name}: {self.reading}; 90 % interval {self.interval}, prior {self.prior}."


def node_rows(
    nodes: Mapping[str, Row], latents: Sequence[Latent], scales: Sequence[Scale]
) -> list[NodeRow]:
    """Rows of the table of nodes.

    Args:
        nodes: Nodes of a profile, as JSON.
        latents: The layout's latent nodes, in the same order.
        scales: How each is read.
    """
    return [
        _node_row(nodes[latent.name], latent, scale)
        for latent, scale in zip(latents, scales, strict=True)
        if latent.name in nodes
    ]


def scales_of(fitted: FitResult) -> list[Scale]:
    """How every node of a layout is read, by what was played."""
    features = None if fitted.data is None else fitted.data.features
    return [scale_of(fitted.layout, k, features) for k in range(len(fitted.layout.latents))]


def _node_row(node: Row, latent: Latent, scale: Scale) -> NodeRow:
    low, high = node["hdi"]
    summary = NodeSummary(
        latent.name, latent.kind, latent.unit, node["mean"], node["sd"], (low, high), 0.0
    )
    note = NodeNote.of_node(node)
    known = bool(node.get("known", True))
    words = words_of(summary, scale, note, known=known)
    said = scale.spanned(note, low, high) if known else (low, high)
    before = (
        float(latent.prior.from_standard(np.array([-_TAIL]))[0]),
        float(latent.prior.from_standard(np.array([_TAIL]))[0]),
    )
    narrowed: float = node.get("contraction", 1.0 - node["sd"] / latent.prior.sd)
    status = str(node.get("status") or "")
    return NodeRow(
        name=latent.name,
        about=": ".join(filter(None, (latent.kind, _about(latent, scale)))),
        reading=words.estimate,
        interval=words.interval,
        prior=_minus(scale.interval(*before, finer=10.0)),
        known=known,
        contraction=percent(narrowed)
        if narrowed >= 0.0
        else f"none: it is {percent(-narrowed)} wider",
        status=status,
        means=STATUS_MEANS.get(status, ""),
        note="; ".join(part for part in note.text.split("; ") if part not in words.estimate),
        bar=_bar(node, latent, scale, before, said),
    )


def _about(latent: Latent, scale: Scale) -> str:
    """What a node is; of one that is read by a demand, what it does, as its own unit is no help."""
    return f"{scale.fill('…')}{scale.rate}" if scale.margin else latent.about


def _bar(
    node: Row,
    latent: Latent,
    scale: Scale,
    before: tuple[float, float],
    said: tuple[float, float],
) -> dict[str, Any]:
    prior = latent.prior
    start = prior.low if np.isfinite(prior.low) else prior.mean - 3.0 * prior.sd
    stop = prior.high if np.isfinite(prior.high) else prior.mean + 3.0 * prior.sd

    def x(value: float) -> float:
        share = (value - start) / (stop - start)
        return round(_WIDE * min(1.0, max(0.0, share)), 1)

    low, high = said
    ends = [scale.convert(start), scale.convert(stop)]
    width = abs(ends[1] - ends[0]) / 20.0
    return {
        "prior": [x(before[0]), x(before[1])],
        "hdi": [x(low), max(x(high), x(low) + 1.0)],
        "mean": x(node["mean"]),
        "ends": [_minus(f"{scale.end(at, width)} {scale.unit}".rstrip()) for at in (start, stop)],
    }


def _minus(text: str) -> str:
    return text.replace("-", "−")


_TOLD: Final = (
    *("episode", "attempt", "instance", "paradigm", "reason", "predicted", "outcome"),
    *("ended_by", "return", "pass_mark", "steps", "session"),
)
"""Columns of the table of outcomes that the report reads."""


def told_rows(rows: Iterable[Row], features: Collection[str]) -> list[Row]:
    """What the report reads of a table of outcomes, which may be long.

    Args:
        rows: Rows of the table of outcomes, with their `features`.
        features: Names of those that the layout uses.
    """
    return [
        {name: row.get(name) for name in _TOLD}
        | {"features": {k: v for k, v in row["features"].items() if k in features}}
        for row in rows
    ]


@dataclass(frozen=True, slots=True)
class EpisodeRow:
    """An attempt at an episode as the table shows it.

    Attributes:
        number: Number of the episode.
        attempt: Which attempt at it, from 0.
        instance: Name of the arena.
        paradigm: Its paradigm.
        demands: Its demands that the layout uses, in words.
        why: Why it was chosen.
        predicted: Success predicted before it; empty if nothing was.
        outcome: What became of it.
        mark: The outcome as a sign, for readers without colour.
        ended: How it ended, with return and steps.
        command: The command that plays this attempt again.
    """

    number: int
    attempt: int
    instance: str
    paradigm: str
    demands: str
    why: str
    predicted: str
    outcome: str
    mark: str
    ended: str
    command: str


def episode_rows(
    rows: Sequence[Row], because: Mapping[tuple[int, int], str], layout_features: Mapping[str, str]
) -> list[EpisodeRow]:
    """Rows of the table of episodes.

    Args:
        rows: Rows of the table of outcomes.
        because: Why an instance was chosen, in words, by episode and attempt.
        layout_features: Units of the demands that the layout uses, by name.
    """
    return [_episode_row(row, because, layout_features) for row in rows]


def _episode_row(
    row: Row, because: Mapping[tuple[int, int], str], units: Mapping[str, str]
) -> EpisodeRow:
    features: Mapping[str, float] = row["features"]
    demands = [
        f"{name} {number(features[name])}{'' if unit in ('', '1') else f' {unit}'}"
        for name, unit in units.items()
        if features.get(name) is not None
    ]
    reason = str(row.get("reason") or "")
    why = REASONS.get(reason, reason)
    if more := because.get((row["episode"], row.get("attempt") or 0)):
        why = f"{why}: {more}" if why else more
    predicted = row.get("predicted")
    outcome = str(row["outcome"])
    ended = _ENDED.get(str(row.get("ended_by") or ""), str(row.get("ended_by") or ""))
    facts = [
        ended,
        f"return {number(row['return'])}" if row.get("return") is not None else "",
        f"pass mark {number(row['pass_mark'])}" if row.get("pass_mark") is not None else "",
        f"{row['steps']} steps" if row.get("steps") is not None else "",
    ]
    session = str(row.get("session") or "").removeprefix("sessions/")
    return EpisodeRow(
        number=row["episode"],
        attempt=row.get("attempt") or 0,
        instance=str(row["instance"]),
        paradigm=str(row.get("paradigm") or ""),
        demands=", ".join(demands),
        why=why,
        predicted="" if predicted is None else percent(predicted),
        outcome=outcome,
        mark=_MARKS.get(outcome, "·"),
        ended=", ".join(filter(None, facts)),
        # Without its attempt it would be the last attempt at this number.
        command=f"animalcat episode replay {session} {row['episode']}-{row.get('attempt') or 0}",
    )


def number(value: float) -> str:
    """A number with three significant digits and a true minus."""
    return _minus(f"{value:.3g}")


def predictions(table: pd.DataFrame, source: OutcomeSource = "success") -> list[str]:
    """How good the predictions made before each episode were, in sentences; empty without any.

    Args:
        table: A table of outcomes, as `plots.prediction.add_observed` returns it.
        source: Where the outcome comes from that was predicted.
    """
    try:
        predicted, observed, success = judge_predictions(table)
    except ValueError:
        return []
    parts = murphy(predicted, observed)
    base = parts.uncertainty
    overall = "the overall share of success" if success else "the overall mean"
    said = [
        f"Before each of {len(observed)} episodes {_PREDICTED[source]} was predicted. The Brier "
        f"score of these predictions is {parts.brier:.3f}; 0 is perfect.",
        f"It is the sum of reliability {parts.reliability:.3f} (how far predicted shares are from "
        f"those seen), less resolution {parts.resolution:.3f} (how much the groups differ), plus "
        f"uncertainty {base:.3f} (what always predicting {overall} would score), plus "
        f"{_minus(f'{parts.within:.3f}')} for differences within groups (Murphy 1973; ten groups "
        "of equal width).",
    ]
    if base > 0.0:
        better = 1.0 - parts.brier / base
        how = f"better by {percent(better)}" if better >= 0.0 else f"worse by {percent(-better)}"
        said.append(
            f"That is {how} than the score of always predicting {overall}, which, however, is "
            "known only afterwards."
        )
        if success:
            said.append(_auc_words(auc(predicted, observed), observed))
    else:
        said.append(
            "All outcomes are alike, so nothing says whether hard and easy arenas are told apart."
        )
    return said


def _auc_words(area: float, observed: Floats) -> str:
    """The area under the ROC curve, with what it means where it is no better than guessing."""
    said = f"The area under the ROC curve is {area:.2f}; 0.5 is as good as guessing, 1 is perfect."
    if area >= 0.5:
        return said
    passed = float(observed.sum())
    failed = len(observed) - passed
    # Standard deviation of the area where predictions and outcomes are independent (Mann and
    # Whitney 1947).
    sd = math.sqrt((passed + failed + 1.0) / (12.0 * passed * failed))
    chance = (
        f" With {passed:.0f} passed and {failed:.0f} failed that may be chance."
        if 0.5 - area < _TAIL * sd
        else " That is further below than chance usually gets."
    )
    return (
        f"{said} Below 0.5 it went the wrong way round: arenas that were predicted to be easier "
        f"were passed less often.{chance}"
    )


def diagnostics_words(profile: Row) -> list[str]:
    """How the numbers were inferred and whether that went well, in sentences."""
    found: Row = profile["diagnostics"]
    said: list[str] = []
    if found.get("prior_only") or not found.get("outcomes"):
        said.append("There is no outcome yet: everything here is only the prior.")
    engine = found.get("engine")
    if engine == "nuts":
        chains, draws = found.get("chains", 0), found.get("draws", 0)
        said.append(
            f"The posterior was sampled by NUTS in {chains} chains of {draws:,} draws, after "
            f"{found.get('tune', 0):,} draws of tuning each, from {found['outcomes']} outcomes. "
            "On another processor its numbers differ within Monte Carlo error."
        )
        if "rhat" in found:
            said.append(
                f"R-hat is at most {found['rhat']:.3f} (it should be below 1.01), the effective "
                f"sample size at least {found.get('ess_bulk', 0.0):.0f} in the bulk and "
                f"{found.get('ess_tail', 0.0):.0f} in the tails (at least 400 is needed), with "
                f"{found.get('divergences', 0)} divergent transitions."
            )
    elif engine == "smc":
        said.append(
            f"This is the live posterior of {found.get('particles', 0):,} particles "
            f"(effective: {found.get('ess', 0.0):.0f}), from {found['outcomes']} outcomes. It is "
            "what chose the arenas; a full fit has not confirmed it."
        )
    if not found.get("converged", True) and engine == "nuts":
        said.append("The fit did not pass its checks: do not rely on its numbers.")
    notes: Sequence[str] = found.get("notes") or ()
    said += [f"{note[:1].upper()}{note[1:]}." for note in notes]
    about: Row = profile.get("provenance", {})
    checks: Sequence[Row] = about.get("certificates") or ()
    if checks:
        failed = [str(one["n"]) for one in checks if not one.get("passed")]
        at = ", ".join(str(one["n"]) for one in checks)
        said.append(
            f"The live posterior was compared with a full fit after {at} episodes: "
            + (f"it failed at {', '.join(failed)}, and was made again there." if failed else
               "it agreed each time.")
        )  # fmt: skip
    if retest := about.get("retest"):
        said.append(
            f"{retest['agreements']} of {retest['repeats']} repeats of an arena came out as before."
        )
    return said


def provenance_facts(profile: Row, created: str) -> list[tuple[str, str]]:
    """Where the numbers come from: headings with words."""
    about: Row = profile.get("provenance", {})
    layout: Row = profile.get("layout", {})
    alarm: Row = about.get("alarm") or {}
    facts: list[tuple[str, str]] = [
        ("agent", str(about.get("agent", ""))),
        ("fingerprint", _fingerprint(about)),
        ("battery", f"{about.get('battery', '')} (digest {about.get('battery_digest', '')})"),
        (
            "layout",
            f"{layout.get('name', '')}, variant {layout.get('variant') or 'default'} "
            f"(digest {layout.get('digest', '')})",
        ),
        ("played on", words_of_backend(profile)),
        ("the agent saw", observation_words(about.get("observation_spec") or {})),
        (
            "arenas were chosen",
            _policy_words(about.get("policy") or {}, alarm.get("raised_at")),
        ),
        ("it stopped", str(about.get("reason") or "not yet")),
        ("session", str(about.get("session", "")).removeprefix("sessions/")),
        ("begun", created),
        ("not counted", _say_uncounted(about)),
        ("it spent", token_words(about.get("spent"))),
        ("versions", _versions(about.get("versions") or {})),
    ]
    covered: Row | None = about.get("coverage")
    if covered:
        gaps = "; ".join(f"{n} for {why}" for why, n in covered["left_out"].items())
        words = f"the layout covers {covered['covered']} of {covered['of']} arenas"
        facts.insert(3, ("coverage", f"{words}{f'; left out: {gaps}' if gaps else ''}"))
        facts.insert(4, ("variant", covered.get("variant", "")))
    return [(name, words) for name, words in facts if words]


def _fingerprint(about: Row) -> str:
    """What the agent was, and what differed later."""
    told: Row = about.get("agent_fingerprint") or {}
    known = AgentFingerprint(**{key: value for key, value in told.items() if key != "digest"})
    changes = [str(change) for change in about.get("agent_changes") or ()]
    confinement = [str(about["confinement"])] if about.get("confinement") else []
    return "; ".join([known.words, *confinement, *changes]) if told else ""


def words_of_backend(profile: Row) -> str:
    """Backend, build and version that the numbers come from, with the numbers of attempts."""
    about: Row = profile.get("provenance", {})
    backend = str(about.get("backend") or "")
    parts: list[str] = []
    for one in about.get("played_with") or ():
        versions: Row = one["versions"]
        if not versions:
            parts.append(f"{one['attempts']} attempts: {one.get('why', 'versions unknown')}")
            continue
        words = versions.get("unity-build") or ", ".join(
            f"{name} {versions[name]}" for name in ("motion", "looks") if name in versions
        )
        parts.append(
            f"{words}, animalcat {versions.get('animalcat', '?')} ({one['attempts']} attempts)"
        )
    return f"{backend}: {'; '.join(parts)}" if parts else backend


def observation_words(spec: Row) -> str:
    """What the agent saw, in words."""
    if not spec:
        return ""
    said: list[str] = []
    camera: Row | None = spec.get("camera")
    if camera:
        side, colour = camera["resolution"], "in grey" if camera["grayscale"] else "in colour"
        said.append(f"camera images of {side} × {side} pixels {colour}")
    rays: Row | None = spec.get("rays")
    if rays:
        count = 2 * int(rays.get("per_side", 0)) + 1
        said.append(f"{count} rays over ±{rays.get('max_degrees', 0):g}°")
    period = spec.get("decision_period")
    words = " and ".join(said) or "its own state alone"
    if period:
        words += f", deciding every {period} steps of the physics"
    if spec.get("privileged"):
        words += "; and the arena's true state"
    return words


def _policy_words(policy: Row, alarm: int | None = None) -> str:
    if not policy:
        return ""
    words = f"by the policy {policy.get('name')}"
    if (share := policy.get("random_share")) is not None:
        words += f", {percent(share)} of them at random"
        if alarm:
            words += (
                f", and all of them while the alarm stood, which was raised after {alarm} episodes"
            )
    if policy.get("generate"):
        words += ", with arenas made on demand"
    if policy.get("pairs"):
        words += ", arenas and their controls in pairs"
    return words


def _say_uncounted(about: Row) -> str:
    parts = [
        f"{about[key]} {word}"
        for key, word in (
            ("voids", "voided"),
            ("faults", "ended in a fault"),
            ("invalid", "declared invalid"),
            ("practised", "for practice"),
        )
        if about.get(key)
    ]
    if about.get("failures_by_default"):
        parts.append(f"{about['failures_by_default']} counted as failures by default")
    if about.get("overspent"):
        parts.append(f"{about['overspent']} failed beyond the agent's allowance of time or tokens")
    for key in ("agent_failures", "withdrawals", "voids_by_demand"):
        told: Row = about.get(key) or {}
        if words := told.get("words"):
            parts.append(str(words))
    return ", ".join(parts)


def _versions(versions: Row) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items())


def citation(profile: Row, created: str, source: str) -> tuple[str, str]:
    """How to cite the profile: a sentence, and an entry of BibTeX.

    Args:
        profile: The profile.
        created: Date of the session.
        source: What the layout is taken from.
    """
    about: Row = profile.get("provenance", {})
    layout: Row = profile.get("layout", {})
    session = str(about.get("session", "")).removeprefix("sessions/")
    versions: Row = about.get("versions") or {}
    version = str(versions.get("animalcat", ""))
    title = f"Cognitive profile of {about.get('agent')} on the battery {about.get('battery')}"
    how = (
        f"layout {layout.get('name')} ({layout.get('variant') or 'default'}), "
        f"{about.get('episodes', 0)} episodes on {about.get('backend')}, session {session}, "
        f"battery digest {str(about.get('battery_digest', ''))[:12]}, "
        f"layout digest {str(layout.get('digest', ''))[:12]}"
    )
    when = f" {created}." if created else ""
    words = f"{title}. Measured with animalcat {version}: {how}.{when}"
    if source:
        words += f" The layout follows {source}."
    fields = {
        "title": f"{{{_tex(title)}}}",
        "howpublished": f"animalcat {_tex(version)}",
        "note": _tex(how),
        **({"year": created[:4]} if created else {}),
    }
    inner = ",\n".join(f"  {name} = {{{value}}}" for name, value in fields.items())
    return words, f"@misc{{{_key(session)},\n{inner}\n}}"


def _tex(text: str) -> str:
    """Text in which nothing has a meaning for TeX."""
    escaped = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    return "".join(escaped.get(c, f"\\{c}" if c in "{}$&%#_" else c) for c in text)


def _key(session: str) -> str:
    return "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "-" for c in session) or "x"


def kinds_words(verdict: Row | None) -> str:
    """Probabilities of the kinds of agent, the likeliest first."""
    if not verdict:
        return ""
    known: Mapping[str, float] = verdict["probabilities"]
    order = sorted(known, key=lambda kind: -known[kind])
    return ", ".join(f"{kind} {known[kind]:.2f}" for kind in order)


def outcome_words(rows: Sequence[Row]) -> str:
    """How many episodes were passed, and what does not count."""
    count = Counter(str(row["outcome"]) for row in rows)
    counted = count["success"] + count["failure"]
    words = f"{count['success']} of {counted} episodes passed" if counted else "no episodes yet"
    if count["fault"]:
        words += f"; ended in a fault, not counted: {count_of(count['fault'], 'attempt')}"
    if count["void"]:
        words += f"; voided, not counted: {count_of(count['void'], 'attempt')}"
    if count["invalid"]:
        words += f"; declared invalid, not counted: {count_of(count['invalid'], 'attempt')}"
    if count["practice"]:
        words += f"; for practice, not counted: {count_of(count['practice'], 'attempt')}"
    return words


def whole(value: Any) -> str:
    """A value in full, as JSON."""
    return json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True)
