"""Rows of a result on a terminal or into a file: table, JSON, CSV."""

from __future__ import annotations

import csv
import json
import unicodedata
from datetime import date, datetime, time
from decimal import Decimal
from itertools import chain, islice
from typing import TextIO

from storage.reading import Rows

__all__ = ["size", "write"]

_LOOK_AHEAD = 1000
"""Rows that a table's widths are taken from; later ones may stand out."""


def write(result: Rows, format: str, out: TextIO) -> None:
    {"table": _table, "json": _json, "csv": _csv}[format](result, out)
    out.flush()


def _json(result: Rows, out: TextIO) -> None:
    """One JSON array, an object a line."""
    before = "["
    for row in result:
        named = dict(zip(result.columns, row, strict=True))
        out.write(f"{before}\n{json.dumps(named, ensure_ascii=False, default=_plain)}")
        before = ","
    out.write("[]\n" if before == "[" else "\n]\n")


def _csv(result: Rows, out: TextIO) -> None:
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(result.columns)
    for row in result:
        writer.writerow("" if value is None else _text(value) for value in row)


def _table(result: Rows, out: TextIO) -> None:
    rows = ([_printable(value) for value in row] for row in result)
    first = list(islice(rows, _LOOK_AHEAD))
    widths = [max(map(_width, column)) for column in zip(result.columns, *first, strict=True)]
    count = 0
    for line in chain([result.columns, ["-" * width for width in widths]], first, rows):
        padded = (
            cell + " " * (width - _width(cell)) for cell, width in zip(line, widths, strict=True)
        )
        out.write("  ".join(padded).rstrip() + "\n")
        count += 1
    count -= 2
    out.write(f"({count} row{'' if count == 1 else 's'})\n")


def _plain(value: object) -> object:
    """A value that JSON has no word for."""
    if isinstance(value, Decimal):
        if not value.is_finite():
            return str(value)
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    return str(value)


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool | list | dict):
        return json.dumps(value, ensure_ascii=False, default=_plain)
    return str(_plain(value)) if not isinstance(value, int | float) else str(value)


def _printable(value: object) -> str:
    """One line that does nothing to a terminal."""
    if value is None:
        return ""
    text = _text(value)
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _width(text: str) -> int:
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )


def size(count: float) -> str:
    """Bytes for people."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"
