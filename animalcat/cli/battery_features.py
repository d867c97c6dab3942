"""Writes the meta-features of a battery's arenas, of which only some are held at a time."""

from __future__ import annotations

import csv
import io
import json
import sys
import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, Final

from animalcat.cli.shared.output import MISSING, fail
from animalcat.extending.installing import install
from animalcat.machine.files import write_whole
from animalcat.values import Feature, Instance

CHOICES: Final = "choices"
"""The column of a table that says which places are choices."""
KINDS: Final = ("suite", "paradigm", "task", "variant", "control", "control_of")
"""The columns of a table that say what kind of task an arena is, and of which it is a control."""
_ROWS: Final = 5000
"""Rows of a Parquet file that are held at a time."""


def choices(instance: Instance) -> str:
    """The places that are choices, in the form of the column `choices`."""
    return "; ".join(
        f"{'right' if place.right else 'wrong'} "
        + " ".join(str(v).removesuffix(".0") for v in (place.x, place.z, place.radius))
        for place in instance.places
    )


def print_features(
    name: str,
    known: Iterable[Feature],
    instances: Iterable[Instance],
    drawn: Mapping[str, Sequence[str]],
) -> None:
    """Print all as one JSON object, an instance a line.

    Args:
        name: The battery.
        known: Its meta-features.
        instances: Its instances.
        drawn: What its files left to chance beside looks, by instance.
    """
    out = sys.stdout
    features = [{"name": f.name, "unit": f.unit, "about": f.description} for f in known]
    out.write(f'{{"battery": {json.dumps(name)},\n"features": {json.dumps(features)},\n')
    out.write('"instances": [')
    for number, instance in enumerate(instances):
        out.write(f"{',' if number else ''}\n{json.dumps(_row(instance), ensure_ascii=False)}")
    out.write(f'\n],\n"drawn": {json.dumps(drawn, ensure_ascii=False)}}}\n')


def _row(instance: Instance) -> dict[str, Any]:
    return {
        "instance": instance.name,
        "suite": instance.suite,
        "paradigm": instance.paradigm,
        "task": instance.task,
        "variant": instance.variant,
        "group": instance.group,
        "control": instance.control,
        "control_of": instance.control_of,
        "features": dict(sorted(instance.features.items())),
        "missing": dict(sorted(instance.missing.items())),
        "choices": [
            {"right": place.right, "x": place.x, "z": place.z, "radius": place.radius}
            for place in instance.places
        ],
    }


def write_features(
    path: Path, form: str, heads: Mapping[str, str], instances: Iterable[Instance]
) -> int:
    """Write a table, and return how many rows it has; ends the command where that fails.

    Columns of kinds that no instance has are left out.

    Args:
        path: Where to.
        form: "csv" or "parquet".
        heads: Head of the column of each feature, by its name.
        instances: The instances.
    """
    try:
        with tempfile.TemporaryFile() as spool:
            found: set[str] = set()
            number = 0
            for number, instance in enumerate(instances, 1):  # noqa: B007  the last is the count
                kinds = {kind: getattr(instance, kind) for kind in KINDS}
                row = {**kinds, CHOICES: choices(instance)}
                found |= {name for name, said in row.items() if said}
                line = [instance.name, row, dict(instance.features)]
                spool.write(json.dumps(line).encode() + b"\n")
            said = [name for name in (*KINDS, CHOICES) if name in found]
            write = _write_csv if form == "csv" else _write_parquet
            with _whole(path) as file:
                write(file, said, heads, lambda: _read(spool))
            return number
    except OSError as error:
        fail(f"{path}: cannot be written: {error.strerror}")


def _read(spool: Any) -> Iterator[tuple[str, dict[str, str], dict[str, float]]]:
    spool.seek(0)
    return (json.loads(line) for line in spool)


@contextmanager
def _whole(path: Path) -> Generator[Any]:
    """A file that is there completely or not at all; what is no plain file is written directly."""
    if path.exists() and not path.is_file():
        held = io.BytesIO()
        yield held
        write_whole(path, held.getvalue())
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".animalcat-", delete=False) as file:
        try:
            yield file
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise
    Path(file.name).chmod(0o644)
    Path(file.name).replace(path)


Read = Callable[[], Iterator[tuple[str, dict[str, str], dict[str, float]]]]


def _write_csv(file: BinaryIO, said: Sequence[str], heads: Mapping[str, str], read: Read) -> None:
    text = io.TextIOWrapper(file, "utf-8", newline="", write_through=True)
    writer = csv.writer(text, lineterminator="\n")
    before = [name for name in said if name != CHOICES]
    after = [CHOICES] if CHOICES in said else []
    writer.writerow(["instance", *before, *heads.values(), *after])
    for name, row, features in read():
        values = [features.get(key, "") for key in heads]
        writer.writerow([name, *(row[k] for k in before), *values, *(row[k] for k in after)])
    text.detach()


def _write_parquet(
    file: BinaryIO, said: Sequence[str], heads: Mapping[str, str], read: Read
) -> None:
    try:
        arrow: Any = import_module("pyarrow")
    except ImportError:
        fail(f"Parquet needs pyarrow: {install('server')}", MISSING)
    text, number = arrow.string(), arrow.float64()
    before = [name for name in said if name != CHOICES]
    after = [CHOICES] if CHOICES in said else []
    schema = arrow.schema(
        [(name, text) for name in ("instance", *before)]
        + [(head, number) for head in heads.values()]
        + [(name, text) for name in after]
    )
    rows = read()
    with import_module("pyarrow.parquet").ParquetWriter(file, schema) as writer:
        for first in rows:
            some = [first, *islice(rows, _ROWS - 1)]
            columns = chain(
                [[name for name, _, _ in some]],
                ([row[kind] for _, row, _ in some] for kind in before),
                ([features.get(key) for _, _, features in some] for key in heads),
                ([row[kind] for _, row, _ in some] for kind in after),
            )
            arrays = [
                arrow.array(column, field.type)
                for column, field in zip(columns, schema, strict=True)
            ]
            writer.write_table(arrow.Table.from_arrays(arrays, schema=schema))
