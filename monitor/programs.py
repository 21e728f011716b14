"""Programs as files: the text, and the CSV files that its rigid predicates are read from."""

from __future__ import annotations

import csv
import gc
import io
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from resolution.checks import check
from resolution.errors import Diagnostic, Lines, ProgramErrors, WhilstError, count, quote
from resolution.parser import decode, parse_partial
from resolution.syntax import Field, Rigid, Source, Span, Tree
from resolution.terms import Value, constant

LARGEST = 64 * 1024 * 1024  # bytes of a file that is read whole

Rows: TypeAlias = tuple[tuple[Value, ...], ...]

_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?", re.ASCII)


class UnreadableFile(WhilstError):
    """A program file that is not there, or cannot be opened."""


@dataclass(frozen=True, slots=True)
class Checked:
    """A program file, and everything that was found in it and in the files it names."""

    tree: Tree
    rigid: dict[str, Rows]
    found: tuple[tuple[Diagnostic, Source], ...]


def check_program(path: Path) -> Checked:
    """Everything that is wrong with a program file. Raises only `UnreadableFile`."""
    try:
        text = read_text(path)
    except ProgramErrors as errors:
        source = errors.source
        return Checked(Tree((), (), source), {}, tuple((d, source) for d in errors.diagnostics))
    return check_text(text, path)


def check_text(text: str, path: Path) -> Checked:
    """The same for a text that stands for a file: what an editor holds and has not written yet."""
    with _no_collection():
        tree, mistakes = parse_partial(text, _shown(path))
        rigid, in_files = _rigid_rows(tree, path.parent)
        found = (*mistakes, *check(tree, rigid))
    own = sorted(found, key=lambda diagnostic: diagnostic.span.start)
    return Checked(tree, rigid, (*((d, tree.source) for d in own), *in_files))


def read_program(path: Path) -> tuple[Tree, dict[str, Rows]]:
    """The tree of a program file and the rows of its rigid predicates.

    Raises `UnreadableFile`, or `ProgramErrors` if the text or one of its CSV files cannot be read.
    What else is wrong with it is for `resolution.checks` to find.
    """
    text = read_text(path)
    with _no_collection():
        tree, mistakes = parse_partial(text, _shown(path))
    if mistakes:
        raise ProgramErrors(mistakes, tree.source)
    rigid, found = _rigid_rows(tree, path.parent)
    if found:
        source = found[0][1]
        raise ProgramErrors([d for d, where in found if where is source], source)
    return tree, rigid


def read_text(path: Path) -> str:
    """The text of a program file."""
    try:
        return decode(_bytes(path), _shown(path))
    except (OSError, ValueError) as error:
        raise UnreadableFile(f"{_shown(path)}: cannot be read: {_reason(error)}") from None


@contextmanager
def _no_collection() -> Iterator[None]:
    """Trees have no cycles: looking for some costs a quarter of the time of a large program."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _bytes(path: Path) -> bytes:
    with path.open("rb") as file:
        data = file.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise ValueError(f"it is larger than {LARGEST // 1024 // 1024} MB")
    return data


def _shown(path: Path) -> str:
    return os.fsencode(path).decode("utf-8", errors="replace")


def _reason(error: OSError | ValueError) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror[0].lower() + error.strerror[1:]
    return str(error)


def _rigid_rows(
    tree: Tree, folder: Path
) -> tuple[dict[str, Rows], list[tuple[Diagnostic, Source]]]:
    rows: dict[str, Rows] = {}
    found: list[tuple[Diagnostic, Source]] = []
    for statement in tree.statements:
        if not isinstance(statement, Rigid) or not statement.source or statement.name in rows:
            continue
        path = folder / statement.source
        try:
            text = decode(_bytes(path), _shown(path))
        except ProgramErrors as errors:
            found.extend((diagnostic, errors.source) for diagnostic in errors.diagnostics)
        except (OSError, ValueError) as error:
            message = f"the rows of {quote(statement.name)} cannot be read: {_reason(error)}"
            hint = f"the file is looked for at {_shown(path)}"
            found.append((Diagnostic(statement.span, message, hint), tree.source))
        else:
            table = _Table(statement, Source(text, _shown(path)))
            rows[statement.name] = tuple(dict.fromkeys(table))
            found.extend((mistake, table.source) for mistake in table.mistakes)
    return rows, found


class _Table:
    """The rows of a CSV file, and the mistakes of those that are none."""

    def __init__(self, rigid: Rigid, source: Source) -> None:
        self.source = source
        self.mistakes: list[Diagnostic] = []
        self._rigid = rigid
        self._lines = Lines(source.text)

    def __iter__(self) -> Iterator[tuple[Value, ...]]:
        fields = self._rigid.fields
        names = [field.name for field in fields]
        lines = io.StringIO(self.source.text, newline="\n")
        reader = csv.reader(lines, strict=True, skipinitialspace=True)
        before = 0
        try:
            for number, cells in enumerate(reader):
                line, before = before + 1, reader.line_num
                if not cells or (number == 0 and [cell.strip() for cell in cells] == names):
                    continue
                if len(cells) != len(fields):
                    message = (
                        f"the row has {count(len(cells), 'cell')}, {quote(self._rigid.name)} has"
                    )
                    self._refuse(line, f"{message} {count(len(fields), 'field')}")
                    continue
                try:
                    yield tuple(map(_value, cells, fields))
                except ValueError as error:
                    self._refuse(line, str(error))
        except csv.Error as error:
            self._refuse(max(1, reader.line_num), f"this is not CSV: {error}")

    def _refuse(self, line: int, message: str) -> None:
        self.mistakes.append(Diagnostic(Span(*self._lines.bounds(line)), message))


def _value(cell: str, field: Field) -> Value:
    """A cell as a value: a number if it reads as one, unless the field is declared a string."""
    if field.type == "string":
        return cell
    text = cell.strip()
    if not _NUMBER.fullmatch(text):
        if field.type is None:
            return cell
        raise ValueError(f"{quote(cell)} is no number, and {quote(field.name)} is {field.type}")
    try:
        value = constant(float(text)) if not text.lstrip("+-").isdigit() else int(text)
    except ValueError:
        raise ValueError(f"{quote(cell)} is too large a number") from None
    if field.type == "int" and not isinstance(value, int):
        raise ValueError(f"{quote(cell)} is not whole, and {quote(field.name)} is int")
    return value
