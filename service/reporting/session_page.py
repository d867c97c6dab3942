"""The report on a session as one HTML page, which loads nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from markupsafe import Markup

from animalcat.layouts.inference.fit import FitResult
from animalcat.layouts.inference.summary import HDI_SHARE
from animalcat.maps.small import arena_map
from animalcat.plots.prediction import add_observed
from animalcat.plots.style import embed_figure
from animalcat.service.measuring.profile_words import battery_rate, control_cells, warnings
from animalcat.service.reporting import session_report as told
from animalcat.service.reporting.parts import LAST, parts_of
from animalcat.service.reporting.session_figures import scores, session_figures
from animalcat.service.reporting.templates import templates

if TYPE_CHECKING:
    import pandas as pd

Row = Mapping[str, Any]

MOST_MAPS: Final = 1000
"""Most arenas whose maps a page draws; it says how many it leaves out."""


def session_page(
    profile: Row,
    fitted: FitResult,
    rows: Sequence[Row],
    arenas: Mapping[str, str],
    *,
    because: Mapping[tuple[int, int], str] | None = None,
    created: str = "",
) -> str:
    """Make the report on a session.

    Of a long session, episodes are in parts that the page draws when they are opened, so that it
    opens at once; without a script it says of each part what became of its episodes.

    Args:
        profile: The profile with its labels, by the schema "profile".
        fitted: Its posterior, with the data that it was fitted to.
        rows: Rows of the table of outcomes, one an attempt, with their `features`.
        arenas: Arenas by instance, as YAML; an instance without one has no map.
        because: Why instances were chosen, in words, by episode and attempt.
        created: When the session began, as a date.

    Returns:
        An HTML document.
    """
    about: Row = profile.get("provenance", {})
    layout: Row = profile.get("layout", {})
    scales = told.scales_of(fitted)
    nodes = told.node_rows(profile["nodes"], fitted.layout.latents, scales)
    table = add_observed(_predict_mean(rows), fitted)
    figures, missing = _figures(fitted, table, {row.name: row.told for row in nodes})
    units = {f.name: f.unit for f in fitted.layout.features}
    episodes = told.episode_rows(rows, because or {}, units)
    maps, without = _maps([row.instance for row in episodes], arenas)
    parts = parts_of(episodes, maps)
    verdict: Row = profile["verdict"]
    found: Row = profile.get("predicts") or {}
    predicts = {"rivals": (), "draws": 0, **found}
    cited, bibtex = told.citation(profile, created, fitted.layout.source)
    environment = templates()
    numbers: dict[str, Callable[[float], str]] = {
        "number": told.number,
        "digits": lambda value: f"{value:.3f}",
    }
    environment.filters.update(numbers)
    template = environment.get_template("session_report.html.j2")
    return template.render(
        agent=str(about.get("agent", "agent")),
        battery=str(about.get("battery", "–")),
        layout_name=f"{layout.get('name', '–')} ({layout.get('variant') or 'default'})",
        layout_about=fitted.layout.about,
        played_on=told.words_of_backend(profile) or "an unknown backend",
        session=str(about.get("session", "")).removeprefix("sessions/"),
        created=created,
        passed=_upper(told.outcome_words(rows)),
        warnings=warnings(profile),
        invalid_because=_invalid(profile),
        misfits=profile.get("misfits") or (),
        comparison=_comparison(about),
        battery_rate=battery_rate(profile),
        verdict=verdict["sentences"],
        kinds=told.kinds_words(verdict),
        what_now=profile.get("what_now"),
        controls=[control_cells(row) for row in profile.get("controls") or ()],
        nodes=nodes,
        statuses={row.status: row.means for row in nodes if row.means},
        interval=f"{100 * float(profile.get('hdi_share', HDI_SHARE)):g} % interval",
        figures=figures,
        scores=scores(fitted),
        missing=missing,
        strip=episodes,
        parts=parts,
        constant=_constant(fitted),
        predictions=told.predictions(table, fitted.layout.outcomes[0].source),
        of_success=fitted.layout.outcomes[0].source == "success",
        predicts=predicts,
        judgement=profile.get("judgement") or {"text": "", "evidence": ()},
        left_out=about.get("coverage"),
        paradigms=about.get("paradigms") or (),
        episodes=episodes if parts is None else episodes[-LAST:],
        maps=maps,
        without_map=without,
        diagnostics=told.diagnostics_words(profile),
        facts=told.provenance_facts(profile, created),
        diagnostics_whole=told.whole(profile.get("diagnostics", {})),
        provenance_whole=told.whole({k: v for k, v in about.items() if k != "paradigms"}),
        citation=cited,
        bibtex=bibtex,
    )


def _predict_mean(rows: Sequence[Row]) -> pd.DataFrame:
    """What was predicted before each attempt, and what became of it."""
    import pandas as pd

    columns = {name: [row.get(name) for row in rows] for name in ("episode", "outcome")}
    predicted = np.array([row.get("predicted") for row in rows], np.float64)
    return pd.DataFrame({**columns, "predicted": predicted})


def _figures(
    fitted: FitResult, table: pd.DataFrame, nodes: Mapping[str, str]
) -> tuple[dict[str, list[Markup]], dict[str, list[str]]]:
    """Pictures by the part of the page, and why there are none."""
    figures: dict[str, list[Markup]] = {}
    missing: dict[str, list[str]] = {}
    for drawn in session_figures(fitted, table, nodes):
        if drawn.figure is None:
            if drawn.alt not in missing.setdefault(drawn.part, []):
                missing[drawn.part].append(drawn.alt)
        else:
            picture = Markup(embed_figure(drawn.figure, drawn.alt))
            figures.setdefault(drawn.part, []).append(picture)
    return figures, missing


def _maps(instances: Sequence[str], arenas: Mapping[str, str]) -> tuple[dict[str, Markup], str]:
    """Maps by instance, and a sentence about those that are not drawn."""
    wanted = [name for name in dict.fromkeys(instances) if name in arenas]
    maps = {name: Markup(arena_map(arenas[name], name)) for name in wanted[:MOST_MAPS]}
    left = len(set(instances)) - sum(map(bool, maps.values()))
    return maps, f"{left} arenas have no map here." if left else ""


def _invalid(profile: Row) -> list[str]:
    """Why nothing that takes the layout for true is to be read; empty where it may be."""
    judgement: Row = profile.get("judgement") or {}
    return [str(judgement["text"])] if judgement.get("standing") == "not described" else []


def _comparison(about: Row) -> str:
    """How the agent compares with the one that its session was run against; empty if with none."""
    found: Row = about.get("comparison") or {}
    words = str(found.get("words") or "")
    return f"{_upper(words)}." if words else ""


def _constant(fitted: FitResult) -> list[str]:
    """Demands that had one value in all that was played, with it."""
    data = fitted.data
    if data is None or not len(data.features):
        return []
    return [
        f"{feature.name} {told.number(float(values[0]))}"
        + (f" {feature.unit}" if feature.unit != "1" else "")
        for feature, values in zip(fitted.layout.features, data.features.T, strict=True)
        if np.ptp(values) == 0.0
    ]


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]
