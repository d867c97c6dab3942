"""Reports on a session: its profile with provenance, and a row for each outcome."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Final, NamedTuple

from animalcat.arena_configs.features.registry import FEATURES
from animalcat.envs.agents.fingerprint import in_words
from animalcat.envs.types import CameraSpec
from animalcat.extending.plugins import in_words as plugins_in_words
from animalcat.layouts.adaptive.learner import Learner
from animalcat.layouts.adaptive.statuses import OtherEnd
from animalcat.layouts.adaptive.stopping import StopVerdict as Stop
from animalcat.layouts.explaining.controls import ControlComparison
from animalcat.layouts.explaining.session import verdict_of
from animalcat.layouts.explaining.verdict import Verdict
from animalcat.layouts.explaining.wording import scale_of
from animalcat.layouts.inference.fit import FitError, FitResult
from animalcat.layouts.inference.live import LivePosterior
from animalcat.layouts.model.calibration import STRANGENESS
from animalcat.layouts.model.priors import ScaledBeta
from animalcat.layouts.reporting.profile import Profile
from animalcat.service.batteries.battery import Battery
from animalcat.service.batteries.instance import arena_identity
from animalcat.service.batteries.naming import link_of, task_of, variant_of
from animalcat.service.measuring.controls import controls_of
from animalcat.service.measuring.faults import unplayable
from animalcat.service.measuring.gate import through_gate
from animalcat.service.measuring.generation import played_instance
from animalcat.service.measuring.measurement import CERTIFICATE_DELAY, Measurement
from animalcat.service.measuring.next_steps import FINER, next_steps
from animalcat.service.measuring.voids import (
    failures_to_dict,
    looks_to_dict,
    voids_by_demand,
    voids_to_dict,
)
from animalcat.service.model import StoredCertificate
from animalcat.service.versions import LOOKS, MOTION
from animalcat.text import names
from animalcat.text.counts import count_of
from animalcat.values import (
    NOTHING,
    PRACTICE,
    CapabilityStatus,
    Decision,
    Episode,
    Outcome,
    Session,
    SessionSpec,
    SessionState,
    Spent,
)
from animalcat.wire.words import CONTRADICTED, NOT_CERTIFIED, NOT_CONFINED

OBSERVED: Final = {
    "return_share": "return",
    "time_left": "time_left",
    "rewards_taken": "rewards",
    "choice": "choice",
}
"""For each column of the table of outcomes besides success, the source that it shows."""
MANY_LOST: Final = 0.1
"""Share of answers in words that were not valid actions from which on readers have to know it."""
MANY_REPEATED: Final = 0.9
"""The same of answers that repeat the one before; who waits repeats itself now and then."""
UNPARSEABLE: Final = "could not be parsed: this measures the format"
REFUSED: Final = "were refusals: this measures what the model is willing to do"
REPEATED: Final = "repeated the one before: what it was shown may not matter to it"
LIMITED: Final = "were cut off by a limit, or not asked for: this measures the limit"
FAILED: Final = "of its provider failed and were made again"
_STRANGE: Final = 0.7
"""Mean of *strangeness* from which on an agent is called a stranger, by nine to one."""
_NO_VERSIONS: Final = "cut short by the end of a server"


class Report(NamedTuple):
    """A profile as JSON values, and its capabilities for use in lists."""

    profile: dict[str, Any]
    capabilities: tuple[CapabilityStatus, ...]


def exported_profile(
    session: Session,
    measurement: Measurement,
    stop: Stop,
    fitted: FitResult | FitError,
    attempts: Sequence[Episode],
    certificates: Mapping[int, StoredCertificate],
    versions: Mapping[str, str],
) -> Report:
    """Return the profile of a finished session: nodes by NUTS, statuses by both posteriors.

    Args:
        session: The session, with the reason why it ended.
        measurement: What was measured.
        stop: What `Measurement.last_verdict` says of the same fit.
        fitted: The fit by NUTS; or its error, and then the nodes are those of the live posterior,
            not certified, with the error as the reason.
        attempts: All attempts of the session.
        certificates: The certificates by number of episodes.
        versions: Version by package of the server that makes the profile.
    """
    about = provenance(session, attempts, versions)
    about["ended"] = stop.end
    about["misfit"] = measurement.learner.misfit
    about["alarm"] = measurement.learner.alarm
    about["retest"] = measurement.learner.retest
    about["limits"] = measurement.limits(stop.status)
    about["comparison"] = measurement.comparison and measurement.comparison.to_dict()
    about["coverage"] = measurement.covers()
    about.update(_calibration(measurement, _as_written(measurement.learner, session.spec.root)))
    about["paradigms"] = paradigm_counts(measurement, attempts)
    about["voids_by_demand"] = _voids(measurement, attempts)
    about["certificates"] = [
        {"n": n, "counted_at": n + CERTIFICATE_DELAY, **certificate.result}
        for n, certificate in sorted(certificates.items())
    ]
    if isinstance(fitted, FitError):
        profile = Profile.of_live(measurement.learner.posterior, stop.status, about)
        reasons = [*profile.diagnostics["reasons"], f"the last fit could not be had: {fitted}"]
        profile = replace(profile, diagnostics={**profile.diagnostics, "reasons": reasons})
    else:
        profile = Profile.of_fit(fitted, stop.status, about)
    profile = through_gate(profile, measurement.learner, session.spec.root)
    draws = None if isinstance(fitted, FitError) else fitted.flat_draws
    controls = controls_of(measurement.battery, attempts)
    profile, judgement = verdict_of(
        measurement.learner,
        profile,
        draws,
        irrelevant(measurement.learner),
        controls,
    )
    steps = next_steps(
        session,
        profile,
        stop.episodes_needed,
        _arenas_left(measurement),
        judgement.blamed,
        measurement.needed_to_narrow(profile, FINER),
    )
    return _report_of(measurement, profile, judgement, controls, steps)


def live_profile(
    session: Session,
    measurement: Measurement,
    attempts: Sequence[Episode],
    versions: Mapping[str, str],
) -> Report:
    """Return the profile according to the live posterior, which says that it is not certified."""
    stop = measurement.verdict(_seconds(attempts))
    if session.state.over:
        word = "cancelled" if session.state is SessionState.CANCELLED else "ended"
        stop = stop.judged(other=OtherEnd(word, session.reason))
    about = provenance(session, attempts, versions)
    about["ended"] = stop.end if session.state.over else None
    about["misfit"] = measurement.learner.misfit
    about["alarm"] = measurement.learner.alarm
    about["retest"] = measurement.learner.retest
    about["limits"] = measurement.limits(stop.status)
    about["comparison"] = measurement.comparison and measurement.comparison.to_dict()
    about["coverage"] = measurement.covers()
    about.update(_calibration(measurement))
    about["paradigms"] = paradigm_counts(measurement, attempts)
    about["voids_by_demand"] = _voids(measurement, attempts)
    profile = Profile.of_live(measurement.learner.posterior, stop.status, about)
    controls = controls_of(measurement.battery, attempts)
    profile, judgement = verdict_of(
        measurement.learner,
        profile,
        irrelevant=irrelevant(measurement.learner),
        controls=controls,
    )
    return _report_of(measurement, profile, judgement, controls)


def _report_of(
    measurement: Measurement,
    profile: Profile,
    verdict: Verdict,
    controls: Sequence[ControlComparison],
    steps: Sequence[Mapping[str, Any]] = (),
) -> Report:
    """Put the parts of a report together, with what would close what it leaves open."""
    battery = measurement.coverage.to_dict()["of"]
    rate = measurement.learner.battery_rate.to_dict(battery)
    content = {**profile.to_dict(), "verdict": verdict.to_dict(), "battery_rate": rate}
    content["controls"] = [row.to_dict() for row in controls]
    content["what_now"] = [dict(step) for step in steps]
    return Report(content, measurement.exported(profile))


def _arenas_left(measurement: Measurement) -> int:
    """Return how many arenas of the battery may still be played."""
    learner = measurement.learner
    again = learner.policy.exposures != 1
    return len(learner.left) if again else max(0, len(learner.left) - learner.n)


def _voids(measurement: Measurement, attempts: Sequence[Episode]) -> dict[str, Any]:
    layout, covered = measurement.learner.layout, measurement.coverage.features
    return voids_to_dict(voids_by_demand(layout, covered, attempts))


def _calibration(measurement: Measurement, otherwise: str = "") -> dict[str, Any]:
    """Return by which earlier agents the layout was calibrated; empty if it was not.

    Args:
        measurement: What was measured.
        otherwise: What the layout as written says, in words.
    """
    calibration, posterior = measurement.learner.layout.calibration, measurement.learner.posterior
    if calibration is None:
        return {}
    covered, layout = measurement.coverage.features, measurement.learner.layout
    with_row = sum(layout.known_of(name, row) is not None for name, row in covered.items())
    return {
        "calibration": {
            "name": calibration.name,
            "layout": calibration.base[0],
            "variant": calibration.base[1],
            "digest": calibration.digest,
            "agents": list(calibration.agents),
            "episodes": calibration.episodes,
            "outcomes": calibration.outcomes,
            "versions": dict(calibration.versions),
            "fit": dict(calibration.fit),
            "instances": with_row,
            "without_row": len(covered) - with_row,
            "as_written": otherwise,
            "strange": any(
                n.name == STRANGENESS and n.mean > _STRANGE for n in posterior.summary()
            ),
        }
    }


def _as_written(learner: Learner, seed: int) -> str:
    """Say what a calibrated layout finds without what earlier agents taught: as of a stranger.

    Empty without an outcome, or for a layout that knows no strangers.
    """
    layout, names = learner.layout, learner.layout.latent_names
    if not learner.n or STRANGENESS not in names:
        return ""
    latents = list(layout.latents)
    stranger = names.index(STRANGENESS)
    latents[stranger] = replace(latents[stranger], prior=ScaledBeta(0.99, 1.0))
    posterior = LivePosterior(replace(layout, latents=tuple(latents)), seed)
    data = learner.data()
    posterior.update_all(data.features, data.outcomes)
    posterior.reweigh(data.weights)
    nodes = posterior.summary()
    return ", ".join(
        f"{names[k]} {scale_of(layout, k, data.features).quantity(nodes[k].mean, *nodes[k].hdi)}"
        for k in layout.capabilities
    )


def irrelevant(learner: Learner) -> frozenset[str]:
    """Features that should not matter: looks, and columns of the user's own outside the layout."""
    return frozenset(
        name
        for name in learner.bank.outside
        if name not in FEATURES or FEATURES[name].group == "look"
    )


def provenance(
    session: Session, attempts: Sequence[Episode], versions: Mapping[str, str]
) -> dict[str, Any]:
    """Return where a profile comes from: the specification, counts of attempts, and versions.

    The versions that the attempts were played with are kept apart from those of the server that
    makes the profile.
    """
    spec = asdict(replace(session.spec, against=None, prior=None))  # told beside it
    scored = [e for e in attempts if not e.practice and not e.invalid]
    outcomes = [e.outcome for e in scored]
    spent = sum((e.spent for e in attempts), NOTHING)
    return {
        "session": names.session_name(session.id),
        "agent": spec.pop("agent"),
        "battery": spec.pop("battery"),
        "privileged": session.spec.observation_spec.privileged,
        "answers": answers_in_words(spent),
        # Without the seconds, so that a session that is played again gives the same profile.
        "spent": {key: asdict(spent)[key] for key in ("tokens_in", "tokens_out", "costs")},
        "unheard": 2 * (spent.unparseable + spent.refusals) > spent.answers,
        "made": dict(
            Counter(e.decision.made.made_as.value for e in attempts if e.counts and e.decision.made)
        ),
        "reason": session.reason,
        "episodes": outcomes.count(Outcome.SUCCESS) + outcomes.count(Outcome.FAILURE),
        "successes": outcomes.count(Outcome.SUCCESS),
        "voids": outcomes.count(Outcome.VOID),
        "faults": outcomes.count(Outcome.FAULT),
        "unplayable": unplayable(attempts),
        "invalid": sum(bool(e.invalid) and not e.practice for e in attempts),
        "failures_by_default": sum(e.by_default for e in scored),
        "overspent": sum(e.overspent for e in scored),
        "agent_failures": failures_to_dict(scored),
        "withdrawals": looks_to_dict(scored),
        "practised": sum(e.practice and e.settled for e in attempts),
        **{
            key: value
            for key, value in spec.items()
            if key not in ("layout", "layout_variant", "against", "prior")
        },
        "prior": _prior(session.spec),
        "versions": dict(versions),
        "played_with": _versions_used(attempts),
        **_identity(session),
    }


def _prior(spec: SessionSpec) -> dict[str, Any] | None:
    """Return what the session goes on from; None where it began with nothing."""
    prior = spec.prior
    if prior is None:
        return None
    return {"session": prior.session, "episodes": dict(prior.episodes), "words": prior.words}


def _identity(session: Session) -> dict[str, Any]:
    """Return what the agent and its simulator were, and what differed later."""
    who = session.identity
    return {
        "agent_fingerprint": None if who.fingerprint is None else who.fingerprint.to_dict(),
        "other_fingerprints": [fingerprint.to_dict() for fingerprint in who.others],
        "agent_changes": list(who.changes),
        "simulator_environment": dict(who.simulator),
        "confinement": NOT_CONFINED if who.unconfined else "",
    }


def labels(session: Session, diagnostics: Mapping[str, Any] | None = None) -> list[str]:
    """Return what every reader of a session's results has to know, each in a few words.

    Args:
        session: The session.
        diagnostics: Those of its profile, if it is about that.
    """
    notes: list[str] = []
    if not session.state.over:
        notes.append(f"unfinished: {count_of(session.episodes, 'episode')} so far")
    elif session.state is not SessionState.FINISHED:
        why = f": {session.reason}" if session.reason else ""
        notes.append(f"unfinished: {session.state.name.lower()}{why}")
    if session.misfit:
        notes.append(f"{CONTRADICTED}: the layout does not describe this agent {session.misfit}")
    if diagnostics is not None and not diagnostics.get("converged", True):
        reasons = "; ".join(map(str, diagnostics.get("reasons") or ["the fit did not converge"]))
        notes.append(f"{NOT_CERTIFIED}: {reasons}")
    if prior := session.spec.prior:
        notes.append(prior.words)
    if changes := session.identity.changes:
        notes.append(f"the agent changed: {in_words(changes)}")
    notes += answers_in_words(session.spent)
    if session.spec.observation_spec.privileged:
        notes.append("privileged: the agent was shown the arena's true state")
    if used := session.spec.plugins:
        notes.append(f"plugins: {plugins_in_words(used)}")
    if session.spec.keep_unpassable:
        notes.append("unpassable: arenas that cannot be passed are played too, as requested")
    return notes


def answers_in_words(spent: Spent) -> list[str]:
    """Return what a reader has to know of answers: invalid actions, or always the same."""
    asked = spent.answers + spent.limits
    said = (
        (spent.unparseable, spent.answers, f"answers {UNPARSEABLE}", MANY_LOST),
        (spent.refusals, spent.answers, f"answers {REFUSED}", MANY_LOST),
        (spent.repeats, spent.answers, f"answers {REPEATED}", MANY_REPEATED),
        (spent.limits, asked, f"turns {LIMITED}", MANY_LOST),
        (spent.errors, asked + spent.errors, f"calls {FAILED}", MANY_LOST),
    )
    return [f"{lost} of {of} {words}" for lost, of, words, many in said if lost > many * of]


def build_of(versions: Mapping[str, str]) -> str:
    """Return what played an attempt: the Unity build, or the rules and looks of the simulator."""
    if "unity-build" in versions:
        return versions["unity-build"]
    known = [f"{name} {versions[name]}" for name in (MOTION, LOOKS) if name in versions]
    return ", ".join(known)


def paradigm_counts(
    measurement: Measurement, attempts: Sequence[Episode]
) -> list[dict[str, str | int]]:
    """Return what was played of every suite and paradigm.

    A twin stands for its instance. What was made for an offer belongs to the suite that has its
    paradigm, if that is one alone.

    Args:
        measurement: What was measured.
        attempts: All attempts of the session.

    Returns:
        One row for each suite and paradigm, in their order: the instances that the layout covers,
        the episodes that count, and the successes among them.
    """
    places = {
        name: (measurement.suites[name], paradigm)
        for name, paradigm in measurement.candidates.items()
    }
    instances = Counter(places.values())
    suites: dict[str, set[str]] = {}
    for suite, paradigm in instances:
        suites.setdefault(paradigm, set()).add(suite)
    episodes, successes = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for episode in attempts:
        made, place = episode.decision.made, places.get(episode.decision.chosen)
        if place is None and made is not None:
            paradigm = made.instance.paradigm
            known = suites.get(paradigm, set())
            place = (min(known) if len(known) == 1 else "", paradigm)
        if episode.counts and place is not None:
            episodes[place] += 1
            successes[place] += episode.outcome is Outcome.SUCCESS
    return [
        {
            "suite": place[0],
            "paradigm": place[1],
            "instances": instances[place],
            "episodes": episodes[place],
            "successes": successes[place],
        }
        for place in sorted({*instances, *episodes})
    ]


def has_repeats(attempts: Iterable[Episode]) -> bool:
    """Return whether an instance has more than one episode that counts."""
    seen: set[str] = set()
    for episode in attempts:
        if episode.counts:
            if episode.decision.instance in seen:
                return True
            seen.add(episode.decision.instance)
    return False


def outcome_rows(
    session: Session,
    battery: Battery,
    attempts: Iterable[Episode],
    weights: Mapping[int, float] | None = None,
) -> Iterator[dict[str, Any]]:
    """Yield one row per attempt that is over, with the keys that `animalcat.outcomes` wants.

    Args:
        session: The session.
        battery: Its battery.
        attempts: All its attempts.
        weights: How many outcomes each episode counts as, by its number; by default one each.
    """
    observed_with = session.spec.observation_spec
    spec, known = session.spec, session.identity.fingerprint
    about = {
        "session": names.session_name(session.id),
        "agent": spec.agent,
        "agent_fingerprint": "" if known is None else known.digest or known.source,
        "battery": spec.battery,
        "layout": f"{spec.layout} ({spec.layout_variant})" if spec.layout_variant else spec.layout,
        "state": session.state.name.lower(),
        "labels": "; ".join(labels(session)),
    }
    for episode in attempts:
        if episode.outcome is None:
            continue
        instance = played_instance(battery, episode.decision)
        yield {
            "episode": episode.number,
            "attempt": episode.attempt,
            "instance": instance.name,
            "suite": instance.suite,
            "paradigm": instance.paradigm,
            "task": task_of(instance),
            "variant": variant_of(instance),
            **link_of(instance)._asdict(),
            "group": battery.groups.get(episode.decision.chosen, instance.name),
            **arena_of(battery, episode.decision)._asdict(),
            "outcome": _word_of(episode, episode.outcome),
            "cause": episode.cause,
            "weight": (weights or {}).get(episode.number, 1.0) if episode.counts else None,
            "return": episode.episode_return,
            **{column: episode.outcomes.get(source) for column, source in OBSERVED.items()},
            "pass_mark": instance.pass_mark,
            "steps": episode.steps,
            "played_before": episode.decision.played_before,
            "ended_by": "" if episode.ended_by is None else episode.ended_by.name.lower(),
            "score": episode.decision.score,
            "propensity": episode.decision.propensity,
            "predicted": episode.decision.predicted,
            "reason": episode.decision.reason,
            **{f"peers_{key}": value for key, value in _peers(episode.decision).items()},
            "tokens_in": episode.spent.tokens_in,
            "tokens_out": episode.spent.tokens_out,
            "answers": episode.spent.answers,
            "unparseable": episode.spent.unparseable,
            "refusals": episode.spent.refusals,
            "repeats": episode.spent.repeats,
            "limits": episode.spent.limits,
            "errors": episode.spent.errors,
            "costs": json.dumps(dict(episode.spent.costs)),
            "backend": spec.backend,
            "versions": json.dumps(dict(episode.versions), sort_keys=True),
            "build": build_of(episode.versions),
            "version": episode.versions.get("animalcat"),
            "decision_period": observed_with.decision_period,
            "camera": camera_words(observed_with.camera),
            **about,
            "features": dict(instance.features),
        }


def camera_words(camera: CameraSpec | None) -> str:
    """Return the size of a camera's pictures, and whether they are grey; empty without one."""
    if camera is None:
        return ""
    return f"{camera.resolution} x {camera.resolution}{', grey' * camera.grayscale}"


class PlayedArena(NamedTuple):
    """What identifies an arena that was played, wherever it is played again."""

    arena: str
    arena_seed: str


def arena_of(battery: Battery, decision: Decision) -> PlayedArena:
    """Return what identifies the arena that was played."""
    made = decision.made
    if made is not None:
        return PlayedArena(*arena_identity(made.arena_yaml, made.instance))
    return PlayedArena(*battery.identities.get(decision.instance, ("", "")))


def _word_of(episode: Episode, outcome: Outcome) -> str:
    """Return the word by which tables tell what became of an attempt, and whether it counts."""
    if episode.practice and episode.settled:
        return PRACTICE
    return "invalid" if episode.invalid else outcome.name.lower()


def played_arenas(battery: Battery, attempts: Iterable[Episode]) -> dict[str, str]:
    """Return the fixed arenas that were played, as YAML by instance; those that are lost are not.

    Args:
        battery: The session's battery.
        attempts: All attempts of the session.
    """
    arenas: dict[str, str] = {}
    for episode in attempts:
        made = episode.decision.made
        instance = played_instance(battery, episode.decision)
        if instance.name in arenas:
            continue
        try:
            arenas[instance.name] = made.arena_yaml if made else battery.arena_yaml(instance)
        except (OSError, UnicodeDecodeError):  # the page says that there is no map
            continue
    return arenas


def _peers(decision: Decision) -> dict[str, Any]:
    """Return what the decision says of its peers, by field; empty if that is not known."""
    return {} if decision.peers is None else asdict(decision.peers)


def _versions_used(attempts: Iterable[Episode]) -> list[dict[str, Any]]:
    """Return each set of versions used, in order of first use, with its number of attempts."""
    counts: dict[tuple[tuple[str, str], ...], int] = Counter(
        tuple(sorted(episode.versions.items())) for episode in attempts
    )
    return [
        {"attempts": n, "versions": dict(versions)}
        if versions
        else {"attempts": n, "versions": {}, "why": _NO_VERSIONS}
        for versions, n in counts.items()
    ]


def _seconds(attempts: Sequence[Episode]) -> float:
    return sum(episode.seconds for episode in attempts if not episode.practice)
