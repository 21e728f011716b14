"""Pages of a long list: where one begins is in the URL, and so can be shared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

import streamlit as st

from dashboard.markup import Node, h, link
from dashboard.queries import PAGE

__all__ = ["pager", "place", "window"]

Row = TypeVar("Row")


def place() -> tuple[str | None, bool]:
    """The row at which the page begins, as text, and whether it is read backwards from there."""
    if before := st.query_params.get("before"):
        return before, True
    return st.query_params.get("after"), False


def window(rows: Sequence[Row], begun: bool, back: bool) -> tuple[Sequence[Row], bool, bool]:
    """The rows of the page, out of one row more; whether there are rows before, and after."""
    more = len(rows) > PAGE
    if back:
        return rows[-PAGE:], more, True
    return rows[:PAGE], begun, more


def pager(page: str, earlier: str | None, later: str | None, *, away: bool) -> Node | None:
    """Links to the first page, the one before and the next; none where all is on one page."""
    if not (away or earlier or later):
        return None
    kept = {k: v for k, v in st.query_params.items() if k not in ("after", "before")}

    def go(text: str, there: bool, where: Mapping[str, str | None]) -> Node:
        if not there:
            return h("span", text, class_="go", aria_disabled="true")
        return link(page, text, {**kept, **where}, "go")

    return h(
        "nav",
        go("First", away, {}),
        go("Previous", earlier is not None, {"before": earlier}),
        go("Next", later is not None, {"after": later}),
        class_="pager",
        aria_label="Pages",
    )
