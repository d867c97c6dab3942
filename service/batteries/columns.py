"""The instances of a battery as columns: one Parquet file on disk, and arrays in memory."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import lru_cache
from importlib import import_module
from operator import eq
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, overload

import numpy as np
import numpy.typing as npt

from animalcat.arena_configs.instance import Instance
from animalcat.arena_configs.origin import Origin
from animalcat.arena_configs.outcome import MarkedPlace
from animalcat.service.batteries.naming import LINK

Row = dict[str, Any]
"""An instance as JSON values, which leave out what is empty."""

ROWS: Final = 2000
"""Instances of a row group, which are held at a time while the file is written."""
KEPT: Final = 2000
"""Most instances of a battery that are kept once made; those of a larger one are made each time."""
_HEAD: Final = "animalcat.battery"
"""Key of what the file says of the whole battery, as JSON."""
_FEATURE: Final = "feature: "
"""How the names of the columns of features begin."""
_WHOLE: Final = "whole_numbers"
"""Key of the features of an instance that are whole numbers in JSON; most are none."""


class ColumnsWriter:
    """Writes rows, some at a time; what is said of the whole comes last."""

    def __init__(self, path: Path, features: Sequence[str]) -> None:
        """Open the file.

        Args:
            path: Where to.
            features: Names of all features that a row may have.
        """
        self._arrow: Any = import_module("pyarrow")
        text, number = self._arrow.string(), self._arrow.float64()
        self._features = list(features)
        self._schema = self._arrow.schema(
            [("name", text), ("missing", text), ("rest", text)]
            + [(f"{_FEATURE}{name}", number) for name in features]
        )
        self._file = import_module("pyarrow.parquet").ParquetWriter(
            path, self._schema, compression="zstd"
        )
        self._rows: list[Row] = []

    def add(self, row: Row) -> None:
        """Write a row."""
        self._rows.append(row)
        if len(self._rows) >= ROWS:
            self._flush()

    def finish(self, head: Mapping[str, Any]) -> None:
        """Write what is left, and what is said of the whole."""
        self._flush()
        self._file.add_key_value_metadata({_HEAD: json.dumps(head)})
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self._file.close()

    def _flush(self) -> None:
        if not self._rows:
            return
        columns: list[Any] = [
            [row["name"] for row in self._rows],
            [_text(row["missing"]) for row in self._rows],
            [_text(_rest(row)) for row in self._rows],
        ]
        for name in self._features:
            values = [row["features"].get(name) for row in self._rows]
            columns.append([None if value is None else float(value) for value in values])
        arrays = [
            self._arrow.array(column, field.type, from_pandas=False)
            for column, field in zip(columns, self._schema, strict=True)
        ]
        self._file.write_table(self._arrow.Table.from_arrays(arrays, schema=self._schema))
        self._rows.clear()


def _rest(row: Row) -> Row:
    rest = {key: row[key] for key in row if key not in ("name", "features", "missing")}
    whole = [name for name, value in row["features"].items() if isinstance(value, int)]
    return {**rest, _WHOLE: whole} if whole else rest


def _text(value: Mapping[str, Any]) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def read_head(path: Path) -> dict[str, Any]:
    """Read what a file says of the whole battery.

    Raises:
        OSError: It cannot be read.
        ValueError: It is no such file.
    """
    path.open("rb").close()  # says why it cannot be read
    metadata: Any = import_module("pyarrow.parquet").read_metadata(path).metadata or {}
    head: Any = json.loads(metadata.get(_HEAD.encode(), b"null"))
    if head is None:
        raise ValueError(f"{path} is not a table of a battery")
    return head


class InstanceColumns(Sequence[Instance]):
    """The instances of a battery, each made of the columns when it is asked for."""

    def __init__(self, path: Path) -> None:
        """Read the columns.

        Raises:
            OSError: The file cannot be read.
            ValueError: It is no such file.
        """
        arrow: Any = import_module("pyarrow")
        file: Any = import_module("pyarrow.parquet").ParquetFile(path, read_dictionary=["missing"])
        features = [name for name in file.schema_arrow.names if name.startswith(_FEATURE)]
        self._features = [name.removeprefix(_FEATURE) for name in features]
        count = file.metadata.num_rows
        self._values = np.empty((count, len(features)))
        self._known = np.empty((count, len(features)), np.bool_)
        self._names: list[str] = []
        self._missing: list[str] = []
        rest: list[Any] = []
        texts: dict[str, str] = {}  # most instances lack the same, for the same reasons
        for group in range(file.num_row_groups):
            table: Any = file.read_row_group(group)
            begin = len(self._names)
            self._names += table["name"].to_pylist()
            self._missing += (texts.setdefault(t, t) for t in table["missing"].to_pylist())
            rest += table["rest"].chunks
            for k, name in enumerate(features):
                there = slice(begin, len(self._names))
                self._values[there, k], self._known[there, k] = _numbers_in(table[name])
        self._made: dict[int, Instance] = {}
        self._rest: Any = arrow.concat_arrays(rest or [arrow.array([], arrow.string())])

    @classmethod
    def of(cls, instances: Iterable[Instance], features: Sequence[str]) -> Self:
        """Hold instances as they come, some at a time.

        Args:
            instances: The instances.
            features: Names of all features that one may have.
        """
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "instances.parquet"
            with ColumnsWriter(path, features) as writer:
                for instance in instances:
                    writer.add(row_of(instance))
                writer.finish({})
            return cls(path)

    def __len__(self) -> int:
        return len(self._names)

    @overload
    def __getitem__(self, index: int) -> Instance: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Instance, ...]: ...
    def __getitem__(self, index: int | slice) -> Instance | tuple[Instance, ...]:
        if isinstance(index, slice):
            return tuple(map(self._instance, range(*index.indices(len(self)))))
        return self._instance(range(len(self))[index])

    def __iter__(self) -> Iterator[Instance]:
        return map(self._instance, range(len(self)))

    def _instance(self, k: int) -> Instance:
        made = self._made.get(k) or instance_of(self.row(k))
        if len(self) <= KEPT:
            self._made[k] = made
        return made

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, InstanceColumns):
            return NotImplemented
        return len(self) == len(other) and all(map(eq, self, other))

    @property
    def names(self) -> Sequence[str]:
        """Names of all instances, in order."""
        return self._names

    def row(self, k: int) -> Row:
        """An instance as JSON values, as it was written."""
        rest: Row = json.loads(self._rest[k].as_py())
        features: dict[str, float] = {
            self._features[i]: value
            for i, value in zip(
                np.flatnonzero(self._known[k]).tolist(),
                self._values[k, self._known[k]].tolist(),
                strict=True,
            )
        }
        for name in rest.pop(_WHOLE, ()):
            features[name] = int(features[name])
        missing = dict(_missing(self._missing[k]))
        return {"name": self._names[k], "features": features, "missing": missing, **rest}

    @property
    def nbytes(self) -> int:
        """Bytes that the columns take in memory, about."""
        sizes = (self._values.nbytes, self._known.nbytes, self._rest.nbytes)
        return sum(sizes) + 90 * len(self._names)


def _numbers_in(column: Any) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """A column's numbers, and where there is one; Arrow's own way to them imports pandas."""
    array: Any = column.combine_chunks()
    bits, numbers = array.buffers()
    there = slice(array.offset, array.offset + len(array))
    known = np.ones(len(array), np.bool_)
    if bits is not None:
        known = np.unpackbits(np.frombuffer(bits, np.uint8), bitorder="little")[there] == 1
    return np.where(known, np.frombuffer(numbers, np.float64)[there], np.nan), known


@lru_cache(maxsize=4096)
def _missing(text: str) -> Mapping[str, str]:
    return json.loads(text)


def row_of(instance: Instance) -> Row:
    """Return an instance as a row, from which `instance_of` makes it again."""
    row = asdict(instance)
    for name in ("places", "origin", "suite", "task_name", "variant", *LINK):
        if not row[name]:
            del row[name]
    return row


def instance_of(row: Row) -> Instance:
    """Make an instance of its row."""
    fields: Row = dict(row)
    fields["places"] = tuple(MarkedPlace(*place) for place in row.get("places", ()))
    if "origin" in row:
        fields["origin"] = Origin(**row["origin"])
    return Instance(**fields)
