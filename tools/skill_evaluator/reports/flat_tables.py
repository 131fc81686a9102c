"""Rows of a flat table → CSV, JSON Lines or Parquet, block by block: as many rows as there are, in the memory of a few.

Which metrics there are is known after the last row only. So rows wait in a file without a name where the columns stand
before them.
"""

import csv
import json
from collections.abc import Iterable, Iterator
from io import StringIO
from itertools import islice
from tempfile import TemporaryFile
from typing import IO, Any, Literal

from skill_evaluator.errors import StorageError
from skill_evaluator.records.flat import Row, Table
from skill_evaluator.reports.history import csv_cell

TableForm = Literal["csv", "jsonl", "parquet"]
INSTALL = "`pip install pyarrow` (the extra `parquet` of this package)"
_AT_ONCE = 5_000  # rows of a row group
_BLOCK = 2**20
_ARROW = {"text": "string", "integer": "int64", "number": "float64", "boolean": "bool_"}


def table_blocks(table: Table, rows: Iterable[Row], form: TableForm) -> Iterator[str | bytes]:
    """Yield the text or bytes of a table; raise StorageError where the library for a form is not installed."""
    if form == "jsonl":
        yield from (_line(row) for row in rows)
        return
    if form == "parquet":
        _arrow()  # before any row is read
    with TemporaryFile("w+", encoding="utf-8", errors="surrogatepass") as waiting:
        found: dict[str, None] = {}
        for row in rows:
            found |= dict.fromkeys(row)
            waiting.write(_line(row))
        own = [column.name for column in table.columns]
        names = [*own, *sorted(found.keys() - set(own), key=lambda name: _place(table, name))]
        waiting.seek(0)
        again = (json.loads(line) for line in waiting)
        yield from _csv(names, again) if form == "csv" else _parquet(table, names, again)


def _line(row: Row) -> str:
    return json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n"


def _place(table: Table, name: str) -> tuple[str, int]:
    """Return the key that puts the columns of one metric beside each other, in the order the page has them."""
    starts = [column.name.removesuffix("<metric>") for column in table.of_metrics]
    at = next(at for at, start in enumerate(starts) if name.startswith(start))
    return name.removeprefix(starts[at]), at


def _csv(names: list[str], rows: Iterator[Row]) -> Iterator[str]:
    """Yield the header and a line a row; an apostrophe stands before what a spreadsheet would take for a formula."""
    yield _csv_lines([names])
    while block := list(islice(rows, _AT_ONCE)):
        yield _csv_lines([row.get(name) for name in names] for row in block)


def _csv_lines(lines: Iterable[list[Any]]) -> str:
    text = StringIO()
    csv.writer(text, lineterminator="\n").writerows(map(csv_cell, line) for line in lines)
    return text.getvalue()


def _parquet(table: Table, names: list[str], rows: Iterator[Row]) -> Iterator[bytes]:
    """Yield a file of row groups, every column nullable and of its own type."""
    arrow = _arrow()
    from pyarrow import parquet

    schema = arrow.schema([(name, getattr(arrow, _ARROW[table.kind_of(name)])()) for name in names])
    with TemporaryFile() as file:
        with parquet.ParquetWriter(file, schema) as writer:
            while block := list(islice(rows, _AT_ONCE)):
                writer.write_table(arrow.Table.from_pylist([_whole(row) for row in block], schema=schema))
        yield from _blocks(file)


def _whole(row: Row) -> Row:
    """Return a row whose texts are valid UTF-8: half a surrogate pair is written as its escape."""
    return {
        name: value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value
        for name, value in row.items()
    }


def _blocks(file: IO[bytes]) -> Iterator[bytes]:
    file.seek(0)
    while block := file.read(_BLOCK):
        yield block


def _arrow() -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as problem:
        raise StorageError(f"Parquet needs a library that does not load ({problem}): {INSTALL}") from problem
    return pyarrow
