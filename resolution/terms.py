"""The terms and atoms of the logic: data only, hashable, and printed as SEMANTICS says.

A constant is a plain Python value: `str` for a name or string, `int` for a whole number, `float`
for any other. `constant` brings a value into that form, so that equal numbers are equal values.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

Value: TypeAlias = str | int | float
Operator: TypeAlias = Literal["=", "!=", "<", "<=", ">", ">="]

_NAME = re.compile(r"[a-z][A-Za-z0-9_]*\Z")


@dataclass(frozen=True, slots=True, order=True)
class Var:
    """A variable of either sort."""

    name: str

    def __str__(self) -> str:
        return self.name


Term: TypeAlias = Var | Value


@dataclass(frozen=True, slots=True)
class Time:
    """A time term: `base + offset`, or the time point `offset` where there is no base."""

    base: Var | None
    offset: int

    def shifted(self, by: int) -> Time:
        return Time(self.base, self.offset + by)

    def __str__(self) -> str:
        if self.base is None:
            return str(self.offset)
        return f"{self.base}{self.offset:+d}" if self.offset else str(self.base)


@dataclass(frozen=True, slots=True)
class Atom:
    """An atom; `time` is None for a rigid one."""

    predicate: str
    args: tuple[Term, ...]
    time: Time | None

    def __str__(self) -> str:
        terms = [show(arg) for arg in self.args]
        if self.time is not None:
            terms.append(str(self.time))
        return f"{self.predicate}({', '.join(terms)})"


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison between two object terms, or between two time terms."""

    left: Term | Time
    operator: Operator
    right: Term | Time

    def __str__(self) -> str:
        return f"{show(self.left)} {self.operator} {show(self.right)}"


def constant(value: str | float) -> Value:
    """The one form of a value: numbers that are whole become `int`.

    Raises ValueError for what is no value (`nan`, infinities).
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{value} is not a number that can be compared")
        if value.is_integer():
            return int(value)
    return value


def show(term: Term | Time) -> str:
    """A term as text: bare where it is a variable, a lower-case name or a number, else quoted."""
    if isinstance(term, str):
        return term if _NAME.match(term) else json.dumps(term, ensure_ascii=False)
    return str(term)


def parse_value(text: str) -> Value:
    """The constant that `show` printed as `text`."""
    if text.startswith('"'):
        return str(json.loads(text))
    if _NAME.match(text):
        return text
    return constant(float(text)) if re.search(r"[.eE]", text) else int(text)
