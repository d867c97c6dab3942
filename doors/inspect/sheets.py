"""Tables of demands as people write them: of one annotator or several, held against samples."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

IDS: Final = ("instance", "id", "sample", "sample_id")
"""What the column of a CSV may be called that has the samples' ids."""
ANNOTATORS: Final = ("annotator", "rater")
"""What the column may be called that says who gave the demands of a row."""
TEXT_DIGEST: Final = "sha256"
"""The column of a CSV that says for which text of a sample a row was made: its SHA-256."""


class PlanError(ValueError):
    """An adaptive evaluation cannot be set up; the message says why, and what to do."""


def stray_rows(
    file: str, sheet: Mapping[str, dict[str, Any]], samples: Mapping[str, Any], *, partial: bool
) -> str:
    """What a CSV has of other samples, in a sentence; digests of texts are taken out of its rows.

    Raises:
        PlanError: A row was made for another text; or rows and samples are not the same, and
            nobody said that they may differ.
    """
    for name, row in sheet.items():
        said, sample = str(row.pop(TEXT_DIGEST, "")), samples.get(name)
        if sample is not None and said not in ("", "nan", text_digest(sample)):
            raise PlanError(
                f"{file}: the demands of sample {name!r} were made for another text: its SHA-256 "
                f"is {text_digest(sample)[:12]}..., and the column {TEXT_DIGEST} has {said[:12]}..."
            )
    stray = [name for name in sheet if name not in samples]
    bare = [name for name in samples if name not in sheet]
    if (stray or bare) and not partial:
        parts = [f"{len(stray)} of its {len(sheet)} rows are of no sample (as {stray[:1]})"]
        parts = parts * bool(stray) + [
            f"{len(bare)} of {len(samples)} samples have no row (as {bare[:1]})"
        ] * bool(bare)
        raise PlanError(
            f"{file}: {', and '.join(parts)}: is it the table of these samples, numbered alike? "
            "partial=True leaves out what has no partner"
        )
    return f"{len(stray)} of {len(sheet)} rows of {file} are of no sample." * bool(stray)


def text_digest(sample: Any) -> str:
    """SHA-256 of the text of a sample's input."""
    return hashlib.sha256(input_text(sample).encode()).hexdigest()


def input_text(sample: Any) -> str:
    """The text of a sample's input, of all its messages line by line."""
    given = sample.input
    return given if isinstance(given, str) else "\n".join(message.text for message in given)


def read_sheet(path: Path) -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
    """Demands by the id of a sample, of a CSV; and by scale, what has to be known of it.

    Several annotators may have said them: each in rows of its own, which a column `annotator`
    names, or in columns of its own, called SCALE:ANNOTATOR. A sample then has their mean.

    Raises:
        PlanError: It is no table, has no ids, or has one twice.
    """
    try:
        table = pd.read_csv(
            path, sep=None, engine="python", dtype=dict.fromkeys((*IDS, TEXT_DIGEST), str)
        )
    except (OSError, ValueError) as error:
        raise PlanError(f"{path}: no table of demands: {error}") from None
    if not (column := next((name for name in IDS if name in table), "")):
        raise PlanError(
            f"{path} has no column with the ids of samples; call it {', '.join(IDS[:-1])} or "
            f"{IDS[-1]}"
        )
    who = next((name for name in ANNOTATORS if name in table), "")
    if table.duplicated([column, who] if who else column).any():
        first = table[column][table.duplicated([column, who] if who else column)].iloc[0]
        raise PlanError(
            f"{path}: the id {first!r} is there more than once"
            + (f" for one {who}" if who else "; where several said it, name them: annotator")
        )
    table = table.set_index(column)
    told = _of_annotators(table, who)
    for scale, ratings in told.items():
        table[scale] = ratings.mean(axis="columns")
    lost = {f"{scale}:{name}" for scale, ratings in told.items() for name in ratings}
    kept = table.drop(columns=[*lost & {*table}, *filter(None, [who])])
    rows: dict[Any, Any] = kept[~kept.index.duplicated()].to_dict("index")
    return rows, {scale: _agreement(scale, ratings) for scale, ratings in told.items()}


def _of_annotators(table: pd.DataFrame, who: str) -> dict[str, pd.DataFrame]:
    """By scale, a row for each sample and a column for each annotator; empty without any."""
    told: dict[str, dict[str, pd.Series[Any]]] = {}
    for name in map(str, table):
        scale, _, annotator = name.rpartition(":")
        if name in (who, TEXT_DIGEST) or not (who or (scale and annotator)):
            continue
        numbers = pd.to_numeric(table[name], errors="coerce")
        wrong = table[name][numbers.isna() & table[name].notna()]
        if len(wrong) == table[name].count():
            continue  # words
        if len(wrong):
            raise PlanError(
                f"the demand {name!r} of sample {wrong.index[0]!r} is {wrong.iloc[0][:40]!r}, "
                f"which is not a number ({len(wrong)} are none)"
            )
        if who:
            told[name] = {str(one): numbers[rows] for one, rows in _rows_of(table[who])}
        else:
            told.setdefault(scale, {})[annotator] = numbers
    return {scale: pd.DataFrame(each) for scale, each in told.items() if len(each) > 1}


def _rows_of(names: pd.Series[Any]) -> Iterable[tuple[Any, npt.NDArray[np.bool_]]]:
    """Each annotator with a mask of its rows."""
    return [(one, (names == one).to_numpy()) for one in names.dropna().unique()]


def _agreement(scale: str, ratings: pd.DataFrame) -> str:
    """How far annotators agree on a scale, in a sentence; empty where no two said the same sample.

    It is Cohen's kappa with quadratic weights (1968), the mean over pairs of annotators. Written
    with means and variances it takes levels and measures alike.
    """
    kappas, off = list[float](), list[float]()
    for one, other in combinations(ratings, 2):
        pair = ratings[[one, other]].dropna()
        (a, b), apart = pair.to_numpy(np.float64).T, pair[one] - pair[other]
        if len(pair) > 1:
            chance = float(a.var() + b.var() + (a.mean() - b.mean()) ** 2)
            kappas.append(1.0 - float((apart**2).mean()) / chance if chance > 0.0 else 1.0)
            off.append(0.5 * float((apart**2).mean()))
    if not kappas:
        return ""
    kappa, error = float(np.mean(kappas)), float(np.sqrt(np.mean(off) / ratings.shape[1]))
    if kappa < 0.0:
        return (
            f"{scale}: annotators contradict each other (quadratic weighted kappa {kappa:.2f}). Is "
            "the scale of one of them reversed?"
        )
    return (
        f"{scale}: the mean of {ratings.shape[1]} annotators is taken. They agree by a quadratic "
        f"weighted kappa of {kappa:.2f}, and their mean is off by some {error:.2g}, which "
        "intervals do not allow for."
    )
