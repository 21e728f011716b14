"""Plots as SVG, drawn by hand: bars beside each other, and lines on logarithmic axes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

COLOURS = (
    "#2f6f9f",
    "#7fb2d6",
    "#b9c7d3",
    "#c8553d",
    "#e39a86",
    "#8a6d3b",
    "#5d8a4a",
    "#8e6aa8",
)
_FONT = 'font-family="Helvetica, Arial, sans-serif"'
_INK = "#333"


def bars(title: str, groups: Mapping[str, Mapping[str, tuple[float, float, float]]]) -> str:
    """Groups of bars on a logarithmic axis: by group and name, the least, the middle, the most."""
    names = list(dict.fromkeys(name for group in groups.values() for name in group))
    values = [spread for group in groups.values() for spread in group.values()]
    low, high = _decades([v for spread in values for v in spread])
    wide, tall, left, top = 14, 260, 70, 60
    group_width = wide * len(names) + 24
    width = left + group_width * len(groups) + 160
    axis = _Axis(low, high, top + tall, top)
    parts = [_text(left, 24, title, size=15), *_decade_lines(axis, left, width - 160)]
    for g, (label, group) in enumerate(groups.items()):
        start = left + 12 + g * group_width
        parts.append(_text(start + group_width / 2 - 12, top + tall + 20, label, middle=True))
        for number, name in enumerate(names):
            if name not in group:
                continue
            least, middle, most = group[name]
            x, y = start + number * wide, axis.at(middle)
            parts.append(
                f'<rect x="{x}" y="{y:.1f}" width="{wide - 3}" height="{top + tall - y:.1f}" '
                f'fill="{_colour(number)}"><title>{escape(f"{label}, {name}: {middle:,.0f}")}'
                "</title></rect>"
            )
            at = x + (wide - 3) / 2
            parts.append(_line(at, axis.at(least), at, axis.at(most), _INK))
    parts += _legend(names, width - 150, top + 6)
    return _svg(width, top + tall + 40, parts)


def lines(
    title: str, across: str, up: str, series: Mapping[str, Sequence[tuple[float, float]]]
) -> str:
    """Lines on two logarithmic axes."""
    points = [point for line in series.values() for point in line]
    wide, tall, left, top = 300, 220, 70, 60
    vertical = _Axis(*_decades([y for _, y in points]), top + tall, top)
    xs = [x for x, _ in points]
    horizontal = _Axis(min(xs), max(max(xs), min(xs) * 1.01), left + 10, left + wide - 10)
    parts = [_text(left, 24, title, size=15), _text(left, 42, up, size=11)]
    parts += _decade_lines(vertical, left, left + wide)
    for x in sorted(set(xs)):
        parts.append(_text(horizontal.at(x), top + tall + 18, f"{x:,.0f}", middle=True, size=11))
    parts.append(_text(left + wide / 2, top + tall + 36, across, middle=True, size=11))
    for number, line in enumerate(series.values()):
        at = [(horizontal.at(x), vertical.at(y)) for x, y in line]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in at)
        colour = _colour(number)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in at]
    parts += _legend(list(series), left + wide + 16, top + 6)
    return _svg(left + wide + 190, top + tall + 48, parts)


class _Axis:
    """From a value to its place, by logarithm."""

    def __init__(self, low: float, high: float, start: float, end: float) -> None:
        self.low, self.high = low, high
        self._start, self._step = start, (end - start) / math.log(high / low)

    def at(self, value: float) -> float:
        return self._start + math.log(max(value, self.low) / self.low) * self._step


def _decades(values: Sequence[float]) -> tuple[float, float]:
    """The powers of ten around some values."""
    there = [value for value in values if value > 0] or [1.0]
    low = 10.0 ** math.floor(math.log10(min(there)))
    high = 10.0 ** math.ceil(math.log10(max(there)))
    return low, high if high > low else low * 10


def _decade_lines(axis: _Axis, left: float, right: float) -> list[str]:
    parts, value = [], axis.low
    while value <= axis.high * 1.001:
        y = axis.at(value)
        parts.append(_line(left, y, right, y, "#ddd"))
        parts.append(_text(left - 6, y + 4, _short(value), size=11, end=True))
        value *= 10
    return parts


def _short(value: float) -> str:
    for unit, size in (("M", 1e6), ("k", 1e3)):
        if value >= size:
            return f"{value / size:.0f} {unit}"
    return f"{value:g}"


def _legend(names: Sequence[str], x: float, y: float) -> list[str]:
    parts = []
    for number, name in enumerate(names):
        at = y + 20 * number
        parts.append(
            f'<rect x="{x}" y="{at - 9}" width="11" height="11" fill="{_colour(number)}"/>'
        )
        parts.append(_text(x + 17, at + 1, name, size=12))
    return parts


def _colour(number: int) -> str:
    return COLOURS[number % len(COLOURS)]


def _line(x1: float, y1: float, x2: float, y2: float, colour: str) -> str:
    return f'<line x1="{x1}" y1="{y1:.1f}" x2="{x2}" y2="{y2:.1f}" stroke="{colour}"/>'


def _text(
    x: float, y: float, text: str, *, size: int = 13, middle: bool = False, end: bool = False
) -> str:
    anchor = "middle" if middle else "end" if end else "start"
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{_INK}" {_FONT} '
        f'text-anchor="{anchor}">{escape(text)}</text>'
    )


def _svg(width: float, height: float, parts: list[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}">\n'
        f'<rect width="100%" height="100%" fill="#fff"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )
