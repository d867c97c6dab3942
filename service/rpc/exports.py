"""Exports a session to files: its profile as one HTML page, its outcomes as a CSV table."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, Final

Row = Mapping[str, Any]

OUTCOME_COLUMNS: Final = (
    "episode",
    "attempt",
    "instance",
    "paradigm",
    "outcome",
    "return",
    "return_share",
    "time_left",
    "rewards_taken",
    "choice",
    "pass_mark",
    "steps",
    "ended_by",
    "score",
    "propensity",
    "predicted",
    "reason",
    "peers_left",
    "peers_propensity",
    "peers_predicted",
    "peers_open",
    "backend",
    "versions",
)
"""First columns of the table of outcomes; those of the meta-features follow, with units."""

_UNCOUNTED: Final = {
    "fault": "attempts ended in a fault and do not count",
    "void": "attempts were voided and do not count",
}


def outcomes_csv(rows: Sequence[Row], units: Mapping[str, str]) -> str:
    """Return the table of outcomes as CSV.

    Args:
        rows: One mapping per attempt, with the keys of `OUTCOME_COLUMNS` and with `features`, which
            maps each meta-feature to its value.
        units: Unit by meta-feature; it becomes part of the column's name.

    Returns:
        CSV text with a header line.
    """
    import pandas as pd  # takes half a second, so not at the start of a server

    table = pd.DataFrame(
        [
            {**row, **row["features"], "versions": json.dumps(row["versions"], sort_keys=True)}
            for row in rows
        ],
        columns=[*OUTCOME_COLUMNS, *units],
    )
    heads = {name: f"{name} [{unit}]" for name, unit in units.items() if unit}
    headed = table.rename(columns=heads)
    return headed.to_csv(index=False, lineterminator="\n")


def profile_html(profile: Mapping[str, Any], outcomes: Sequence[Row]) -> str:
    """Return the profile as one HTML page that needs no network.

    Args:
        profile: The profile, as the schema "profile" documents it.
        outcomes: One mapping per attempt, with `episode`, `instance`, `outcome` and `return`.
            Attempts that were void or ended in a fault are shown but do not count.

    Returns:
        An HTML document.
    """
    about: Row = profile.get("provenance", {})
    agent = str(about.get("agent", "agent"))
    return "\n".join(
        [
            "<!doctype html><html lang='en'><head><meta charset='utf-8'>",
            "<meta name='viewport' content='width=device-width, initial-scale=1'>",
            f"<title>Cognitive profile of {escape(agent)}</title><style>{_STYLE}</style></head>",
            f"<body><main><h1>Cognitive profile of {escape(agent)}</h1>",
            _summary(profile, outcomes),
            _warning(profile),
            _nodes_table(profile["nodes"], profile.get("hdi_share", 0.9)),
            _second_reading(profile),
            _episodes_strip(outcomes),
            _details(profile),
            "</main></body></html>",
        ]
    )


def decimals(sd: float) -> int:
    """Return the number of decimals that shows a standard deviation to two significant figures."""
    return max(0, 1 - math.floor(math.log10(sd))) if sd > 0.0 else 2


def _summary(profile: Mapping[str, Any], outcomes: Sequence[Row]) -> str:
    about: Row = profile.get("provenance", {})
    layout: Row = profile.get("layout", {})
    number = Counter(row["outcome"] for row in outcomes)
    counted = number["success"] + number["failure"]
    words = [
        f"{number['success']} of {counted} episodes passed" if counted else "no episodes",
        *(f"{number[kind]} {what}" for kind, what in _UNCOUNTED.items() if number[kind]),
        f"battery {about.get('battery', '-')}",
        f"layout {layout.get('name', '-')} ({layout.get('variant') or 'default'})",
        f"stopped: {about.get('reason') or '-'}",
    ]
    return "<p class='summary'>" + " · ".join(escape(word) for word in words) + "</p>"


def _warning(profile: Mapping[str, Any]) -> str:
    diagnostics: Row = profile.get("diagnostics", {})
    if diagnostics.get("converged", True):
        return ""
    reasons = "; ".join(map(str, diagnostics.get("reasons") or ["the fit did not converge"]))
    return f"<p class='warning'>Not certified: {escape(reasons)}.</p>"


def _second_reading(profile: Mapping[str, Any]) -> str:
    """Show what the alarm found and the second reading; empty if there was no alarm."""
    about: Row = profile.get("provenance", {})
    if not about.get("misfit"):
        return ""
    found = f"The layout does not describe this agent {about['misfit']}."
    parts = [f"<p class='warning'>{escape(found)}</p>"]
    again: Row | None = profile.get("second_reading")
    if again is not None and "failed" in again:
        parts.append(f"<p>Not {escape(again['label'])}: {escape(again['failed'])}.</p>")
    elif again is not None:
        parts.append(f"<h2>Profile {escape(again['label'])}</h2><p>{escape(again['where'])}</p>")
        parts.append(_nodes_table(again["nodes"], profile.get("hdi_share", 0.9)))
    return "".join(parts)


def _nodes_table(nodes: Mapping[str, Row], share: float) -> str:
    head = (
        f"<tr><th>node<th>estimate<th>{100 * share:g} % interval"
        "<th class='bar'>within its range<th>unit<th>status</tr>"
    )
    return f"<table>{head}{''.join(_node_row(*item) for item in nodes.items())}</table>"


def _node_row(name: str, node: Row) -> str:
    digits = decimals(node["sd"])
    unit = str(node.get("unit") or "")
    low, high = node["hdi"]
    return (
        f"<tr><td>{escape(name)}<span class='kind'>{escape(str(node.get('kind', '')))}</span>"
        f"<td class='n'>{node['mean']:.{digits}f} ± {node['sd']:.{digits}f}"
        f"<td class='n'>{low:.{digits}f} to {high:.{digits}f}"
        f"<td class='bar'>{_interval_bar(node)}"
        f"<td>{escape('' if unit == '1' else unit)}<td>{escape(str(node.get('status') or ''))}</tr>"
    )


def _interval_bar(node: Mapping[str, Any]) -> str:
    """Draw an interval on its node's range, or on three prior deviations if that is infinite."""
    low, high = node["hdi"]
    start, stop = node.get("range") or (None, None)
    if start is None or stop is None:
        reach = 3.0 * float(node.get("prior_sd") or 1.0)
        start, stop = -reach, reach

    def x(value: float) -> float:
        return 200.0 * min(1.0, max(0.0, (value - start) / (stop - start)))

    middle = x(node["mean"])
    return (
        "<svg viewBox='-4 0 208 30' width='208' height='30' role='img'>"
        "<line x1='0' x2='200' y1='8' y2='8' class='axis'/>"
        f"<line x1='{x(low):.1f}' x2='{x(high):.1f}' y1='8' y2='8' class='hdi'/>"
        f"<circle cx='{middle:.1f}' cy='8' r='4'/>"
        f"<text x='0' y='27'>{start:.3g}</text>"
        f"<text x='200' y='27' text-anchor='end'>{stop:.3g}</text></svg>"
    )


def _episodes_strip(outcomes: Sequence[Row]) -> str:
    if not outcomes:
        return ""
    cells = "".join(
        f"<i class='{escape(str(row['outcome']))}' title='episode {row['episode']}: "
        f"{escape(str(row['instance']))}, {escape(str(row['outcome']))}, "
        f"return {row['return']:.3g}'></i>"
        for row in outcomes
    )
    known = {row["outcome"] for row in outcomes}
    kinds = ["success", "failure", *(kind for kind in _UNCOUNTED if kind in known)]
    key = " ".join(f"<i class='{kind}'></i> {kind}" for kind in kinds)
    return f"<h2>Episodes</h2><div class='strip'>{cells}</div><p class='key'>{key}</p>"


def _details(profile: Mapping[str, Any]) -> str:
    parts: list[str] = []
    for title in ("diagnostics", "provenance"):
        pairs: Row = profile.get(title) or {}
        rows = "".join(
            f"<tr><td>{escape(str(key))}<td>{escape(_plain(value))}</tr>"
            for key, value in pairs.items()
        )
        parts.append(f"<h2>{title.capitalize()}</h2><table class='pairs'>{rows}</table>")
    return "".join(parts)


def _plain(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


_STYLE: Final = """
:root{color-scheme:light dark;--ink:#1c2733;--soft:#6b7785;--rule:#d9dee4;--main:#0b6e99;
--good:#3a9d5d;--bad:#c8553d;--page:#fff}
@media(prefers-color-scheme:dark){:root{--ink:#e6eaee;--soft:#96a2ae;--rule:#36414c;--main:#5cb8e4;
--page:#14191e}}
body{font:16px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--page);margin:0}
main{max-width:60rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.6rem;margin:0}h2{font-size:1.1rem;margin:2rem 0 .5rem}
.summary,.key,.kind{color:var(--soft)}.kind{display:block;font-size:.8rem}
table{border-collapse:collapse;width:100%}th{text-align:left;font-weight:600;color:var(--soft)}
th,td{padding:.4rem .6rem .4rem 0;border-bottom:1px solid var(--rule);vertical-align:middle}
.n{font-variant-numeric:tabular-nums;white-space:nowrap}.pairs td:first-child{width:14rem}
.pairs td{overflow-wrap:anywhere;font-size:.9rem}
.axis{stroke:var(--rule);stroke-width:2}.hdi{stroke:var(--main);stroke-width:6;opacity:.45}
circle{fill:var(--main)}text{fill:var(--soft);font-size:11px}
.warning{border-left:4px solid var(--bad);padding:.4rem .8rem}
.strip{display:flex;flex-wrap:wrap;gap:3px}
i{display:inline-block;width:14px;height:14px;border-radius:3px}
.success{background:var(--good)}.failure{background:var(--bad)}
.fault,.void{box-sizing:border-box;border:2px solid var(--soft)}.void{border-style:dotted}
"""
