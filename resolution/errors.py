"""Mistakes, and how they are told.

    WhilstError
    └── ProgramErrors    a program with mistakes: all of them, not only the first

A `Diagnostic` says what is wrong and where; the text it speaks of is a `Source`. Line and column
are computed only when one is shown.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from resolution.syntax import Source, Span

Severity: TypeAlias = Literal["error", "warning"]

SHOWN = 50  # a list of mistakes is cut here: nobody reads the 51st
_WIDTH = 100  # columns of a source line that are shown around the place
_BEFORE = 60  # of which at most so many stand before it
_QUOTED = 40  # characters of the program that a message repeats
_TAB = "    "


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One mistake: the place, the reason in the language's own words, and what to do about it."""

    span: Span
    message: str
    hint: str | None = None
    severity: Severity = "error"


class WhilstError(Exception):
    """Whatever Whilst refuses. Its text is for people, and complete."""


class ProgramErrors(WhilstError):
    """The mistakes of one program, in the order of the text."""

    def __init__(self, diagnostics: Sequence[Diagnostic], source: Source) -> None:
        self.diagnostics = tuple(diagnostics)
        self.source = source
        super().__init__(self.diagnostics, source)

    def __str__(self) -> str:
        return report(self.diagnostics, self.source)


class Lines:
    """Where the lines of a text begin: offset to line and column, both counted from 1."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._starts = [0]
        at = text.find("\n")
        while at >= 0:
            self._starts.append(at + 1)
            at = text.find("\n", at + 1)

    def place(self, offset: int) -> tuple[int, int]:
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def bounds(self, line: int) -> tuple[int, int]:
        """The offsets of a line, without its line break."""
        start = self._starts[line - 1]
        end = self._starts[line] - 1 if line < len(self._starts) else len(self._text)
        return start, end


def render(diagnostic: Diagnostic, source: Source, lines: Lines | None = None) -> str:
    """`file:line:col: error: message`, the line, a caret under the place, and the hint.

    `lines` may be given where many are rendered, so that the text is scanned once.
    """
    lines = lines or Lines(source.text)
    span = diagnostic.span
    line, column = lines.place(span.start)
    told = [f"{source.name}:{line}:{column}: {diagnostic.severity}: {diagnostic.message}"]
    if source.text:
        told.extend(_excerpt(span, source.text, *lines.bounds(line)))
    if diagnostic.hint is not None:
        told.append(f"  hint: {diagnostic.hint}")
    return "\n".join(told)


def report(diagnostics: Sequence[Diagnostic], source: Source, limit: int = SHOWN) -> str:
    """Diagnostics one after another, at most `limit` of them, and how many more there are."""
    lines = Lines(source.text)
    told = [render(diagnostic, source, lines) for diagnostic in diagnostics[:limit]]
    if len(diagnostics) > limit:
        told.append(f"{source.name}: and {len(diagnostics) - limit} more")
    return "\n".join(told)


def quote(text: str) -> str:
    """A piece of a program inside a message: short, and without what would disturb a terminal."""
    shown = "".join(map(_cell, text[:_QUOTED]))
    return f"`{shown}…`" if len(text) > _QUOTED else f"`{shown}`"


def count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _excerpt(span: Span, text: str, start: int, end: int) -> tuple[str, str]:
    """The part of a line around a place, and the carets under it, as wide as a terminal shows."""
    first = max(start, min(span.start - _BEFORE, end - _WIDTH))
    last = min(end, first + _WIDTH)
    before = text[first : span.start]
    marked = text[span.start : max(span.start, min(span.end, last))]
    after = text[span.start + len(marked) : last]
    left = "…" if first > start else ""
    right = "…" if last < end else ""
    shown = "".join(map(_cell, before + marked + after.rstrip()))
    indent = len(left) + sum(map(_columns, before))
    carets = max(1, sum(map(_columns, marked)))
    return f"    {left}{shown}{right}".rstrip(), f"    {' ' * indent}{'^' * carets}"


def _cell(character: str) -> str:
    """What is shown for a character: controls would break the line, or the terminal."""
    if character == "\t":
        return _TAB
    if character < " ":
        return chr(0x2400 + ord(character))
    if unicodedata.category(character) in {"Cc", "Cf", "Cs", "Zl", "Zp"}:
        return "\ufffd"
    return character


def _columns(character: str) -> int:
    if character == "\t":
        return len(_TAB)
    if unicodedata.category(character) in {"Mn", "Me"}:
        return 0
    return 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1
