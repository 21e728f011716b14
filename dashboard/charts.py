"""Columns over time or over delays: drawn with the page, so that they change without flicker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dashboard.markup import Node, bag, h

__all__ = ["Column", "columns"]


@dataclass(frozen=True, slots=True)
class Column:
    """One column: how high, what it says on hover, and how it is marked."""

    value: float | None
    said: str | Node
    mark: str = ""


def columns(
    title: str,
    found: Sequence[Column],
    ends: tuple[Node, Node],
    *,
    top: str,
    kind: str = "",
    lines: Sequence[tuple[float, str]] = (),
) -> Node:
    """A chart: `top` is what its highest column stands for, `ends` what stands below its ends.

    `lines` are marks at places from 0 (left) to 1 (right).
    """
    highest = max((one.value or 0 for one in found), default=0) or 1
    width = 100 / max(1, len(found))
    drawn = [
        h(
            "span",
            class_=f"column {one.mark}".strip(),
            style=f"--x: {place * width:.3f}%; --w: {width * 0.86:.3f}%; "
            f"--h: {100 * (one.value or 0) / highest:.2f}%",
            title=one.said,
            key=str(place),
        )
        for place, one in enumerate(found)
        if one.value
    ]
    drawn += [
        h(
            "span",
            h("b", text),
            class_="mark end" if at > 0.5 else "mark",
            style=f"--x: {100 * at:.2f}%",
            key=text,
        )
        for at, text in lines
    ]
    return h(
        "figure",
        h("figcaption", h("b", title), h("span", top)),
        bag("columns", *drawn),
        bag("ends", h("span", ends[0]), h("span", ends[1])),
        class_=f"chart {kind}".strip(),
        role="img",
        aria_label=f"{title}: at most {top}",
    )
