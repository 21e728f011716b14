"""Facts as files: JSON Lines or CSV, plain or gzip, each event with the line it stands in.

One event a line. A CSV file (`.csv`, `.csv.gz`) has a header: `fact`, the names of fields, `time`,
and `arrival` where it may differ. A cell is a number if it reads as one in JSON, and an empty one
is no value, unless its field is declared a string.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import sys
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

from resolution.errors import WhilstError, count
from resolution.facts import LONGEST_LINE, Fact, RejectedEvent, fact_of, read_event
from resolution.program import Program

_LONGEST = 4 * LONGEST_LINE
"""Bytes of a line beyond which not even its characters are counted."""
_GZIP = b"\x1f\x8b"


class UnreadableFacts(WhilstError):
    """A file of facts that is not there, or is cut short or damaged."""


@dataclass(frozen=True, slots=True)
class Event:
    """What a line of a file came to: a fact, or the reason why it states none."""

    file: str
    line: int
    fact: Fact | None
    reason: str | None = None

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}"


def read_facts(files: Iterable[str], program: Program) -> Iterator[Event]:
    """The events of files in order; `-` is standard input. Raises UnreadableFacts."""
    for file in files:
        name = "standard input" if file == "-" else file
        try:
            with _opened(file) as data:
                rows = _csv if file.removesuffix(".gz").endswith(".csv") else _json_lines
                yield from rows(name, data, program)
        except (EOFError, zlib.error, gzip.BadGzipFile):
            raise UnreadableFacts(f"{name}: the gzip data is cut short or damaged") from None
        except OSError as error:
            reason = error.strerror or str(error)
            raise UnreadableFacts(f"{name}: cannot be read: {reason.lower()}") from None


def _opened(file: str) -> BinaryIO:
    raw = sys.stdin.buffer if file == "-" else open(file, "rb")  # noqa: SIM115
    data = io.BufferedReader(raw)  # type: ignore[type-var]
    if data.peek(2)[:2] == _GZIP:
        return gzip.GzipFile(fileobj=data)  # type: ignore[return-value]
    return data


def _json_lines(name: str, data: BinaryIO, program: Program) -> Iterator[Event]:
    for number, line in _lines(data):
        try:
            text = _decoded(line)
            if text.strip():
                yield Event(name, number, read_event(text, program))
        except RejectedEvent as rejected:
            yield Event(name, number, None, str(rejected))


def _lines(data: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """The lines with their numbers; what is beyond the longest is passed over, not kept."""
    number = 0
    while line := data.readline(_LONGEST + 1):
        number += 1
        yield number, line
        while len(line) > _LONGEST and not line.endswith(b"\n"):
            line = data.readline(_LONGEST + 1)


def _decoded(line: bytes) -> str:
    if len(line) > _LONGEST:
        raise RejectedEvent(f"the event is longer than {LONGEST_LINE:,} characters")
    try:
        return line.decode("utf-8-sig").rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise RejectedEvent(f"not UTF-8 at byte {error.start + 1}") from None


def _csv(name: str, data: BinaryIO, program: Program) -> Iterator[Event]:
    header: list[str] | None = None
    for number, line in _lines(data):
        try:
            cells = _cells(_decoded(line))
            if not cells:
                continue
            if header is None:
                header = [cell.strip() for cell in cells]
                if not {"fact", "time"} <= set(header):
                    raise UnreadableFacts(f"{name}:{number}: a CSV file has a header with `fact`, "
                                          "the names of fields, and `time`")  # fmt: skip
                continue
            yield Event(name, number, fact_of(_event(header, cells, program), program))
        except RejectedEvent as rejected:
            yield Event(name, number, None, str(rejected))


def _cells(text: str) -> list[str]:
    try:
        return next(csv.reader([text], strict=True), [])
    except csv.Error as error:
        raise RejectedEvent(f"not CSV: {error}") from None


def _event(header: list[str], cells: list[str], program: Program) -> dict[str, str | float]:
    if len(cells) != len(header):
        raise RejectedEvent(
            f"the header has {count(len(header), 'column')}, the event {len(cells)}"
        )
    row = dict(zip(header, cells, strict=True))
    fields = program.streams.get(row["fact"], ())
    strings = {field.name for field in fields if field.type == "string"}
    return {
        column: cell if column in strings or column == "fact" else _number(cell)
        for column, cell in row.items()
        if column in strings or (cell and column != "args")
    }


def _number(cell: str) -> str | float:
    """A cell as a number if JSON would read it as one, else as it stands."""
    if cell[:1] not in "-0123456789":
        return cell
    try:
        value = json.loads(cell, parse_constant=str)
    except ValueError:
        return cell
    return value if isinstance(value, int | float) else cell
