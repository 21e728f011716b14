"""The picture of one answer: what held and arrived, what may still arrive, now, the deadline.

Rows of atoms over one axis of time, placed in percent, so that text stays readable at any width.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from dashboard.markup import Node, bag, h
from dashboard.queries import Triple
from dashboard.times import Clock
from dashboard.words import time_of

__all__ = ["timeline"]

_LOWER = re.compile(r"([A-Za-z_]\w*)([+-]\d+)? (>=|>) (\d+)$")
_MARGIN = 0.04
_TICKS = 4


@dataclass(frozen=True, slots=True)
class _Axis:
    first: float
    last: float

    def place(self, tau: float) -> float:
        share = (tau - self.first) / (self.last - self.first)
        return round(100 * (_MARGIN + (1 - 2 * _MARGIN) * min(1.0, max(0.0, share))), 2)

    def at(self, tau: float) -> str:
        return f"--x: {self.place(tau)}%"

    def span(self, first: float, last: float | None) -> str:
        start = self.place(first)
        end = 100.0 if last is None else self.place(last)
        return f"--x: {start}%; --w: {max(0.6, round(end - start, 2))}%"


def timeline(triple: Triple, since: int, decided: int | None, clock: Clock) -> Node:
    """Evidence and hypotheses of a triple, from its first fact to its deadline or decision."""
    now = clock.position()
    held = [found[1] if (found := time_of(atom)) else since for atom in triple.evidence]
    opens = [_opens(atom, triple, since) for atom in triple.hypotheses]
    points = [since, *held, *triple.arrivals, *opens]
    points += [tau for tau in (*triple.closes, triple.deadline, decided) if tau is not None]
    if decided is None:
        points.append(round(now))
    axis = _Axis(min(points), max(*points, min(points) + 1))
    over = decided is not None
    rows = [
        *(
            _evidence(atom, time, arrival, axis, clock)
            for atom, time, arrival in zip(triple.evidence, held, triple.arrivals, strict=True)
        ),
        *(
            _hypothesis(atom, start, closes, None if over else now, axis, clock)
            for atom, start, closes in zip(triple.hypotheses, opens, triple.closes, strict=True)
        ),
    ]
    lines = []
    if not over and clock.tau is not None:
        lines.append(_line("now", axis.place(now), "now"))
    if over and decided is not None:
        kind = "refuted" if triple.hypotheses else "confirmed"
        lines.append(_line("decided", axis.place(decided), kind))
    elif triple.deadline is not None:
        place = axis.place(triple.deadline)
        near = abs(place - axis.place(now)) < 15  # their names would lie on each other
        lines.append(_line("deadline high" if near else "deadline", place, "deadline"))
    return h(
        "figure",
        bag("tracks", *rows, bag("lines", *lines)),
        bag("axis", *_ticks(axis, clock)),
        _legend(bool(triple.evidence), bool(triple.hypotheses), over),
        class_="timeline",
        role="img",
        aria_label=_said(triple),
    )


def _opens(atom: str, triple: Triple, since: int) -> int:
    """The first time point a hypothesis can speak of: its own, or what conditions leave of it."""
    found = time_of(atom)
    if found is None:
        return since
    variable, number = found
    if variable is None:
        return number
    bounds = [_lower(condition, variable) for condition in triple.conditions]
    known = [bound + number for bound in bounds if bound is not None]
    return max(known) if known else since


def _lower(condition: str, variable: str) -> int | None:
    found = _LOWER.match(condition)
    if found is None or found[1] != variable:
        return None
    return int(found[4]) + (found[3] == ">") - int(found[2] or 0)


def _row(kind: str, atom: str, clock: Clock, *marks: Node) -> Node:
    shown = h("code", clock.atom(atom), class_="atom")
    return bag(f"track {kind}", shown, bag("marks", *marks), key=atom)


def _evidence(atom: str, time: int, arrival: int, axis: _Axis, clock: Clock) -> Node:
    return _row(
        "evidence",
        atom,
        clock,
        h("span", class_="way", style=axis.span(time, arrival)),
        h("span", class_="held", style=axis.at(time), title=f"held at τ {time}"),
        h("span", class_="arrived", style=axis.at(arrival), title=f"arrived at τ {arrival}"),
    )


def _hypothesis(
    atom: str, opens: int, closes: int | None, now: float | None, axis: _Axis, clock: Clock
) -> Node:
    until = "for ever" if closes is None else f"until τ {closes}"
    marks = [
        h(
            "span",
            class_="window" if closes is not None else "window endless",
            style=axis.span(opens, closes),
            title=f"may arrive from τ {opens} {until}",
        )
    ]
    if now is not None and (closes is None or now < closes):
        rest = axis.span(max(now, opens), closes)
        marks.append(h("span", class_="rest", style=rest, title=f"may still arrive {until}"))
    if closes is not None and (now is None or now >= closes):
        marks.append(h("span", "✕", class_="closed", style=axis.at(closes), title=f"τ {closes}"))
    return _row("hypothesis", atom, clock, *marks)


def _line(kind: str, place: float, text: str) -> Node:
    side = " end" if place > 85 else " start" if place < 15 else ""
    return h("span", h("b", text), class_=f"line {kind}{side}", style=f"--x: {place}%", key=kind)


def _ticks(axis: _Axis, clock: Clock) -> Iterable[Node]:
    points = {
        round(axis.first + (axis.last - axis.first) * step / (_TICKS - 1)) for step in range(_TICKS)
    }
    return [h("span", clock.at(tau), class_="tick", style=axis.at(tau)) for tau in sorted(points)]


def _legend(evidence: bool, hypotheses: bool, over: bool) -> Node:
    entries: list[Node] = []
    if evidence:
        entries += [
            h("span", h("span", class_="held"), "held"),
            h("span", h("span", class_="arrived"), "arrived"),
        ]
    if hypotheses:
        entries.append(
            h("span", h("span", class_="window"), "might have arrived" if over else "may arrive")
        )
        if not over:
            entries.append(h("span", h("span", class_="rest"), "may still arrive"))
    return h("figcaption", *entries, class_="legend")


def _said(triple: Triple) -> str:
    """The picture in a sentence, for who does not see it."""
    parts = [f"{len(triple.evidence)} facts of evidence"]
    parts.append(f"{len(triple.hypotheses)} hypotheses")
    if triple.deadline is not None:
        parts.append(f"deadline at time point {triple.deadline}")
    return "Time line: " + ", ".join(parts) + "."
