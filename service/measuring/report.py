"""Reports on a session: its profile with provenance, and a row for each outcome."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Final, NamedTuple

from animalcat import names
from animalcat.layouts.checking.reanalysis import Drawn, Reanalysis, reanalyse
from animalcat.layouts.inference.fit import FitError, FitResult
from animalcat.layouts.model.spec import Layout
from animalcat.layouts.reporting.profile import Profile
from animalcat.service.batteries.battery import Battery
from animalcat.service.measuring.coverage import covered_features
from animalcat.service.measuring.gate import through_gate
from animalcat.service.measuring.generation import played_instance
from animalcat.service.measuring.measurement import CERTIFICATE_DELAY, Measurement
from animalcat.service.model import (
    CapabilityStatus,
    Decision,
    Episode,
    Outcome,
    Session,
    SessionSpec,
    SessionState,
    StoredCertificate,
)

OBSERVED: Final = {
    "return_share": "return",
    "time_left": "time_left",
    "rewards_taken": "rewards",
    "choice": "choice",
}
"""For each column of the table of outcomes besides success, the source that it shows."""
LABEL: Final = "refitted with the contradicted part widened"
"""Label of the second reading of a contradicted profile."""

_NO_VERSIONS: Final = "played by an older animalcat, or cut short by the end of a server"


class SecondReading(NamedTuple):
    """A profile fitted again after an alarm, or the reason why there is none.

    Attributes:
        where: Where outcomes were given a rate of their own.
        fitted: The fit of the widened layout; None if there is none.
        failed: Why there is no fit; empty if there is one.
    """

    where: str
    fitted: FitResult | None
    failed: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values that follow the schema "profile"."""
        about: dict[str, Any] = {"label": LABEL, "where": self.where}
        if self.fitted is None:
            return {**about, "failed": self.failed}
        whole = Profile.of_fit(self.fitted).to_dict()
        return {**about, **{key: whole[key] for key in ("layout", "nodes", "diagnostics")}}


class Report(NamedTuple):
    """A profile as JSON values, and its capabilities for use in lists."""

    profile: dict[str, Any]
    capabilities: tuple[CapabilityStatus, ...]


def exported_profile(
    session: Session,
    measurement: Measurement,
    fitted: FitResult | FitError,
    attempts: Sequence[Episode],
    certificates: Mapping[int, StoredCertificate],
    versions: Mapping[str, str],
    second: SecondReading | None = None,
) -> Report:
    """Return the profile of a finished session: nodes from NUTS, statuses from the stopping rule.

    After an alarm, a second reading stands beside the first one, which stays.

    Args:
        session: The session.
        measurement: What was measured.
        fitted: The fit by NUTS; or its error, and then the nodes are those of the live posterior,
            not certified, with the error as the reason.
        attempts: All attempts of the session.
        certificates: The certificates by number of episodes.
        versions: Version by package of the server that makes the profile.
        second: The second reading after an alarm; None if there is none.
    """
    verdict = measurement.learner.verdict(_seconds(attempts))
    about = provenance(session, attempts, versions)
    about["reason"] = verdict.reason or session.reason
    about["misfit"] = measurement.learner.misfit
    about["alarm"] = measurement.learner.alarm
    about["retest"] = measurement.learner.retest
    about["limits"] = measurement.limits
    about["coverage"] = measurement.coverage.to_dict()
    about["certificates"] = [
        {"n": n, "counted_at": n + CERTIFICATE_DELAY, **certificate.result}
        for n, certificate in sorted(certificates.items())
    ]
    # A campaign may end a session that its own rule would continue.
    status = {name: "budget" if s == "measuring" else s for name, s in verdict.status.items()}
    if isinstance(fitted, FitError):
        profile = Profile.of_live(measurement.learner.posterior, status, about)
        reasons = [*profile.diagnostics["reasons"], f"the last fit could not be had: {fitted}"]
        profile = replace(profile, diagnostics={**profile.diagnostics, "reasons": reasons})
    else:
        profile = Profile.of_fit(fitted, status, about)
    profile = through_gate(profile, measurement.learner, session.spec.seed)
    content = profile.to_dict()
    if second is not None:
        content["second_reading"] = second.to_dict()
    return Report(content, measurement.with_reach(_capabilities(profile)))


def live_profile(
    session: Session,
    measurement: Measurement,
    attempts: Sequence[Episode],
    versions: Mapping[str, str],
) -> Report:
    """Return the profile according to the live posterior, which says that it is not certified."""
    status = dict(measurement.learner.verdict(_seconds(attempts)).status)
    if session.state is SessionState.CANCELLED:
        status = dict.fromkeys(status, "cancelled")
    about = provenance(session, attempts, versions)
    about["misfit"] = measurement.learner.misfit
    about["alarm"] = measurement.learner.alarm
    about["retest"] = measurement.learner.retest
    about["limits"] = measurement.limits
    about["coverage"] = measurement.coverage.to_dict()
    profile = Profile.of_live(measurement.learner.posterior, status, about)
    return Report(profile.to_dict(), measurement.with_reach(_capabilities(profile)))


def provenance(
    session: Session, attempts: Sequence[Episode], versions: Mapping[str, str]
) -> dict[str, Any]:
    """Return where a profile comes from: the specification, counts of attempts, and versions.

    The versions that the attempts were played with are kept apart from those of the server that
    makes the profile.
    """
    spec = asdict(session.spec)
    outcomes = [e.outcome for e in attempts if not e.invalid]
    return {
        "session": names.session_name(session.id),
        "agent": spec.pop("agent"),
        "battery": spec.pop("battery"),
        "privileged": session.spec.observation_spec.privileged,
        "reason": session.reason,
        "episodes": outcomes.count(Outcome.SUCCESS) + outcomes.count(Outcome.FAILURE),
        "successes": outcomes.count(Outcome.SUCCESS),
        "voids": outcomes.count(Outcome.VOID),
        "faults": outcomes.count(Outcome.FAULT),
        "invalid": len(attempts) - len(outcomes),
        "failures_by_default": sum(
            e.outcome is Outcome.FAILURE and bool(e.cause) for e in attempts
        ),
        **{key: value for key, value in spec.items() if key not in ("layout", "layout_variant")},
        "versions": dict(versions),
        "played_with": _played_with(attempts),
    }


def outcome_rows(
    spec: SessionSpec, battery: Battery, attempts: Sequence[Episode]
) -> list[dict[str, Any]]:
    """Return one row per attempt that is over, with the keys that `exports.outcomes_csv` wants."""
    rows: list[dict[str, Any]] = []
    for episode in attempts:
        if episode.outcome is None:
            continue
        instance = played_instance(battery, episode.decision)
        rows.append(
            {
                "episode": episode.number,
                "attempt": episode.attempt,
                "instance": instance.name,
                "paradigm": instance.paradigm,
                "outcome": "invalid" if episode.invalid else episode.outcome.name.lower(),
                "return": episode.episode_return,
                **{column: episode.outcomes.get(source) for column, source in OBSERVED.items()},
                "pass_mark": instance.pass_mark,
                "steps": episode.steps,
                "ended_by": "" if episode.ended_by is None else episode.ended_by.name.lower(),
                "score": episode.decision.score,
                "propensity": episode.decision.propensity,
                "predicted": episode.decision.predicted,
                "reason": episode.decision.reason,
                **{f"peers_{key}": value for key, value in _peers(episode.decision).items()},
                "backend": spec.backend,
                "versions": dict(episode.versions),
                "features": dict(instance.features),
            }
        )
    return rows


def reanalysis(
    spec: SessionSpec, layout: Layout, battery: Battery, attempts: Sequence[Episode]
) -> Reanalysis:
    """Estimate what a session says of the whole battery, by the recorded propensities.

    Args:
        spec: The session's specification.
        layout: The session's layout.
        battery: The battery that it chose from.
        attempts: All attempts of the session.
    """
    paradigms = [
        battery.instances[battery.index[name]].paradigm
        for name in covered_features(layout, battery, as_once=not spec.layout_digest)
    ]
    counted = sorted(
        (e for e in attempts if e.counts),
        key=lambda episode: episode.number,
    )
    draws = [
        Drawn(
            paradigm=played_instance(battery, e.decision).paradigm,
            outcome=float(e.outcome is Outcome.SUCCESS),
            predicted=e.decision.predicted,
            propensity=e.decision.propensity,
            peers=e.decision.peers,
        )
        for e in counted
    ]
    return reanalyse(draws, Counter(paradigms))


def _peers(decision: Decision) -> dict[str, Any]:
    """Return what the decision says of its peers, by field; empty if that is not known."""
    return {} if decision.peers is None else asdict(decision.peers)


def _played_with(attempts: Sequence[Episode]) -> list[dict[str, Any]]:
    """Return each set of versions used, in order of first use, with its number of attempts."""
    seen: dict[tuple[tuple[str, str], ...], int] = Counter(
        tuple(sorted(episode.versions.items())) for episode in attempts
    )
    return [
        {"attempts": n, "versions": dict(versions)}
        if versions
        else {"attempts": n, "versions": {}, "why": _NO_VERSIONS}
        for versions, n in seen.items()
    ]


def _seconds(attempts: Sequence[Episode]) -> float:
    return sum(episode.seconds for episode in attempts)


def _capabilities(profile: Profile) -> tuple[CapabilityStatus, ...]:
    return tuple(
        CapabilityStatus(node.name, node.mean, node.sd, node.unit, profile.status[node.name])
        for node in profile.nodes
        if node.name in profile.status
    )
